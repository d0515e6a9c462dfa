/* The launches of a product, by kind of slice. See mult.cu. */
#pragma once

#include "mult_dot.cuh"

constexpr PetscInt MULTIPROCESSORS = 132; /* of an H200; a constant, so that sums do not depend on the device, but for whether it sweeps planes */

/* Blocks of so many warps */
static inline unsigned AIJTCBlocksOf(PetscCount warps, int of = AIJTC_WARPS)
{
  return (unsigned)((warps + of - 1) / of);
}

/* Is a long row in more than one piece? Then all leave partial sums */
static inline bool AIJTCHasPieces(const AIJTCLayout &A)
{
  return A.nslices[AIJTC_LONG] > A.nlong;
}

constexpr int AIJTC_MIXED_WARPS = 8; /* of a block of the launch below */

/* One launch for all slices: where there are both kinds, and rrows = 1 */
static inline bool AIJTCIsMixed(const AIJTCLayout &A)
{
  return A.nslices[AIJTC_ROWS] && A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE] && A.params.rrows == 1;
}
PETSC_INTERN PetscErrorCode AIJTCLayoutMultMixed_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);

/* Blocks of the launch below */
unsigned                    AIJTCRowsBlocks(const AIJTCLayout &A);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultRows_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
/* Of gathered layouts, instead */
PETSC_INTERN PetscErrorCode AIJTCLayoutMultGathered_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
/* Of planes that are swept, instead: its blocks, 0 where they are not */
unsigned                    AIJTCSweepBlocks(const AIJTCLayout &A);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultSwept_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
/* Of rows that share their offsets and whose values are stored one by one, instead: its blocks, with dot products or without, 0 where they are not */
unsigned                    AIJTCStoredBlocks(const AIJTCLayout &A, bool dots);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultStored_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultTiles_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
/* The sums of long rows from those of their pieces, behind both: where there are dot products */
PETSC_INTERN PetscErrorCode AIJTCLayoutSumPieces_CUDA(const AIJTCLayout *layout, const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
