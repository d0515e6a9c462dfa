/*
   Launches the product of ROWS slices. Method, memory traffic: mult_rows.cuh

   Order of the slices. On a grid of planes, rows one plane apart read the same x (layout->stride). Where the values are few, so that reading x is most of the work, a block of a large matrix takes slices
   of the same place in PLANES planes, one after the other: what it has loaded for one plane it finds in L1 for the next two. 7-point 256^3: L1 hits 43 -> 58 %, 142 -> 135 us. Where values are read one by
   one this order is 1 to 2 % slower.
*/
#include "mult.cuh"
#include "mult_rows.cuh"

namespace
{
constexpr int      ROWS_BLOCKS = 8; /* of a multiprocessor at least: 64 registers */
constexpr unsigned PLANES      = 8; /* one after the other */

struct SliceOrder {
  PetscInt begin, end;   /* slices */
  unsigned groups, deep; /* groups of AIJTC_WARPS slices in a plane; planes of a chunk */

  /* The k-th slice of this warp */
  __device__ __forceinline__ PetscInt operator()(unsigned k) const
  {
    const unsigned chunk = blockIdx.x / groups, group = blockIdx.x % groups;

    return begin + (PetscInt)(AIJTC_WARPS * ((chunk * deep + k) * groups + group) + threadIdx.x / AIJTC_LANES);
  }
  unsigned blocks() const { return (AIJTCBlocksOf(end - begin) - 1) / (groups * deep) * groups + groups; }
};

SliceOrder OrderOf(const AIJTCLayout &A)
{
  constexpr PetscInt together = 132 * AIJTC_WARPS * ROWS_BLOCKS; /* slices under way at once on an H200; a constant, so that sums do not depend on the device */
  const PetscInt     begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], slices = A.nslices[AIJTC_ROWS], plane = A.stride / (AIJTC_LANES * A.params.rrows);
  SliceOrder         order = {begin, begin + slices, AIJTCBlocksOf(slices), 1};

  if (plane >= AIJTC_WARPS && A.nconsecutive == slices && slices >= 4 * together && A.nvalue < A.nnz) {
    order.groups = (unsigned)((plane + AIJTC_WARPS / 2) / AIJTC_WARPS);
    order.deep   = PLANES;
  }
  return order;
}

template <int R>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, ROWS_BLOCKS)
  RowsKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SliceOrder order, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  RowDots dots(w);

  LetNextLaunchStart();
  for (unsigned k = 0; k < order.deep; k++) {
    const PetscInt slice = order(k);

    if (slice < order.end) RowsSlice<R>(A, slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  }
  dots.finish();
}

template <int R>
PetscErrorCode Launch(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SliceOrder order = OrderOf(A);

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(RowsKernel<R>, order.blocks(), stream, AIJTCLayoutView(A), order, A.m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

unsigned AIJTCRowsBlocks(const AIJTCLayout &A)
{
  return A.nslices[AIJTC_ROWS] ? OrderOf(A).blocks() : 0;
}

PetscErrorCode AIJTCLayoutMultRows_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!layout->nslices[AIJTC_ROWS]) PetscFunctionReturn(PETSC_SUCCESS);
  if (layout->params.rrows == 4) PetscCall(Launch<4>(*layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 2) PetscCall(Launch<2>(*layout, x, y, z, dots, stream));
  else PetscCall(Launch<1>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
