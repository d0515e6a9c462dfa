/*
   Method
     z = A x or z = y + A x in one launch for all classes: the grid is the long pieces' blocks, then the medium slices', the short tiles', the empty rows'. A class
     that the matrix does not have gets no block. Only if a long row has more than one piece a second, tiny launch adds the pieces. Nothing waits for the device.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     See mult_long.cuh, mult_medium.cuh, mult_short.cuh. Empty rows: 12 bytes each, nothing when z is y. Predictions (H200, 4.3 TB/s): 7-point 101^3 28 us,
     5-point 387 x 388 4-5 us, apache1 (6.3 MB of tiles) and cage10 (2 MB) about 4 us, shallow_water1 about 3.5 us: these three fit L2 and are bound by latency.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#include "mult.cuh"
#include <petscdevice_cuda.h>

namespace
{
/* Fewer slices than this leave the device idle when a warp takes 4 of them: 8 warps on each of 132 multiprocessors */
constexpr PetscInt WIDE_SLICES = 4224;
/* Slices of more tiles than this on average have enough loads in flight one by one */
constexpr PetscInt WIDE_TILES = 8;

unsigned BlocksOf(PetscCount warps)
{
  return (unsigned)((warps + AIJTC_WARPS - 1) / AIJTC_WARPS);
}

template <class Sums, int S>
PetscErrorCode Launch(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], cudaStream_t stream)
{
  PartBlocks blocks;
  unsigned   end = 0;

  PetscFunctionBegin;
  blocks.end[PART_LONG]   = end += BlocksOf(A.npieces);
  blocks.end[PART_MEDIUM] = end += BlocksOf((A.nslices + S - 1) / S);
  for (int k = 0; k < 3; k++) blocks.end[PART_SHORT4 + k] = end += BlocksOf((A.short_tile[k + 1] - A.short_tile[k] + AIJTC_SHORT_TILES - 1) / AIJTC_SHORT_TILES);
  blocks.end[PART_EMPTY] = end += z == y ? 0 : BlocksOf(((PetscCount)A.nempty + 31) / 32);
  if (end) {
    MultKernel<Sums, S><<<end, 32 * AIJTC_WARPS, 0, stream>>>(A, blocks, x, y, z);
    PetscCallCUDA(cudaGetLastError());
  }
  if (A.npieces > A.nlong) {
    LongSumsKernel<<<BlocksOf(A.nlong), 32 * AIJTC_WARPS, 0, stream>>>(A, y, z);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMult_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream)
{
  const AIJTCLayout &A      = *layout;
  const PetscCount   medium = A.short_tile[0] - A.medium_tile; /* tiles */
  const bool         wide   = A.nslices >= WIDE_SLICES && medium <= WIDE_TILES * (PetscCount)A.nslices;

  PetscFunctionBegin;
  PetscCheck(A.cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutMult_Host()");
  if (tensor) {
    if (wide) PetscCall((Launch<TensorSums, 4>(A, x, y, z, stream)));
    else PetscCall((Launch<TensorSums, 1>(A, x, y, z, stream)));
  } else {
    if (wide) PetscCall((Launch<CoreSums, 4>(A, x, y, z, stream)));
    else PetscCall((Launch<CoreSums, 1>(A, x, y, z, stream)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
