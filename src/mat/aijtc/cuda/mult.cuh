/* The launches of a product, by kind of slice. See mult.cu. */
#pragma once

#include "mult_dot.cuh"
#include <petscdevice_cuda.h>

static inline unsigned AIJTCBlocksOf(PetscCount warps)
{
  return (unsigned)((warps + AIJTC_WARPS - 1) / AIJTC_WARPS);
}

/* Is a long row in more than one piece? Then all leave partial sums */
static inline bool AIJTCHasPieces(const AIJTCLayout &A)
{
  return A.nslices[AIJTC_LONG] > A.nlong;
}

static inline LayoutView AIJTCLayoutView(const AIJTCLayout &A)
{
  return {A.slice, A.pattern, A.value, A.dict, A.rid, A.params.bs};
}

/*
   Launches a kernel of a product so that it may start while the kernel before it in the stream ends (programmatic dependent launch, compute capability 9.0 and newer): it reads the matrix at once and
   waits with WaitForLaunchBefore() for the vectors. This hides the launch, 2 to 3 us of a product that takes as long. Builds and refreshes end with SettleLayout(), so no product reads a matrix
   that is still being written. shared: AIJTCDotBytes().
*/
template <class... Parameters, class... Arguments>
PetscErrorCode LaunchOverlapping(void (*kernel)(Parameters...), unsigned blocks, unsigned warps, size_t shared, cudaStream_t stream, Arguments... arguments)
{
  static int          major  = -1;
  cudaLaunchConfig_t  config = {};
  cudaLaunchAttribute attribute;

  PetscFunctionBegin;
  if (major < 0) {
    int device;

    PetscCallCUDA(cudaGetDevice(&device));
    PetscCallCUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  }
  attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim                                       = blocks;
  config.blockDim                                      = AIJTC_LANES * warps;
  config.dynamicSmemBytes                              = shared;
  config.stream                                        = stream;
  config.attrs                                         = &attribute;
  config.numAttrs                                      = major >= 9 ? 1 : 0;
  PetscCallCUDA(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One launch for all slices: where there are both kinds, and rrows = rtile = 1 */
static inline bool AIJTCIsMixed(const AIJTCLayout &A)
{
  return A.nslices[AIJTC_ROWS] && A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE] && A.params.rrows == 1 && A.params.rtile == 1;
}
PETSC_INTERN PetscErrorCode AIJTCLayoutMultMixed_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);

/* Blocks of the launch below */
unsigned                    AIJTCRowsBlocks(const AIJTCLayout &A);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultRows_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultTiles_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
/* The sums of long rows from those of their pieces, behind both */
PETSC_INTERN PetscErrorCode AIJTCLayoutSumPieces_CUDA(const AIJTCLayout *layout, const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream);
