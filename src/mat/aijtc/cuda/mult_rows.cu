/* Launches the product of ROWS slices. Method, memory traffic: mult_rows.cuh */
#include "mult.cuh"
#include "mult_rows.cuh"

namespace
{
constexpr int ROWS_BLOCKS = 8; /* of a multiprocessor at least: 64 registers */

template <int R>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, ROWS_BLOCKS)
  RowsKernel(const __grid_constant__ LayoutView A, PetscInt begin, PetscInt end, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  LetNextLaunchStart();
  const PetscInt slice = begin + (PetscInt)(AIJTC_WARPS * blockIdx.x + threadIdx.x / AIJTC_LANES);
  RowDots        dots(w.w);

  if (slice < end) RowsSlice<R, RowsBatch<R>, RowsBatch<R>>(A, slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  dots.finish(w);
}

template <int R>
PetscErrorCode Launch(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const PetscInt begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], slices = A.nslices[AIJTC_ROWS];

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(RowsKernel<R>, AIJTCBlocksOf(slices), stream, AIJTCLayoutView(A), begin, begin + slices, A.m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMultRows_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!layout->nslices[AIJTC_ROWS]) PetscFunctionReturn(PETSC_SUCCESS);
  if (layout->params.rrows == 4) PetscCall(Launch<4>(*layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 2) PetscCall(Launch<2>(*layout, x, y, z, dots, stream));
  else PetscCall(Launch<1>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
