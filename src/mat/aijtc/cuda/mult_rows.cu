/*
   Launches the product of ROWS slices. Method, memory traffic: mult_rows.cuh

   Order of the slices. What limits a product beside the memory is how often x is read from L2, and that depends on which slices share an L1.
     One after the other, four warps a block: where nothing is known or to be gained.
     Plane by plane: on a grid of planes, rows one plane apart read the same x (layout->stride). Where the values are few, so that reading x is most of the work, a block of a large matrix takes slices
     of the same place in PLANES planes, one after the other: what it has loaded for one plane it finds in L1 for the next two. 7-point 256^3: L1 hits 43 -> 58 %, 142 -> 135 us. Where values are read one
     by one this order is 1 to 2 % slower.
     In runs: rows that do not share their offsets still have neighbours' columns near each other if they are numbered well, which is told by how far they reach (layout->stride again). A block of
     RUN_WARPS warps has a multiprocessor for itself and takes a run of slices: its L1 holds what thousands of consecutive rows read. A million tetrahedra nodes, RCM numbering: 110 -> 96 us; a
     random one would be 3 % slower. Not with two row groups, which such rows have on request alone.
     Slots known ahead: of rows that share their offsets and whose values are stored, one slice after the other, by a kernel of its own (mult_stored.cu).
     Planes swept: with few offsets, and lines that windows of x hold, in shared memory instead of L1, by a kernel of its own (mult_sweep.cu).
*/
#include "mult.cuh"
#include "mult_rows.cuh"

namespace
{
constexpr int      ROWS_BLOCKS = 8; /* of a multiprocessor at least: 64 registers */
constexpr int      RUN_WARPS   = 32;
constexpr unsigned PLANES      = 8;  /* one after the other */
constexpr unsigned RUN         = 8;  /* slices of a warp at most: longer runs, far from each other, would share less of L2 */
constexpr PetscInt NEAR        = 16; /* columns are near if they are within this part of the rows */

struct SliceOrder {
  PetscInt begin, end; /* slices */
  unsigned nblocks;
  unsigned warps;        /* of a block: AIJTC_WARPS, or RUN_WARPS for runs */
  unsigned groups, deep; /* groups of `warps` slices in a plane; slices that a warp takes */
};

/* The k-th slice of a warp, if it is before order.end */
__device__ __forceinline__ PetscInt SliceOf(const SliceOrder &order, unsigned k)
{
  return order.begin + (PetscInt)(AIJTC_WARPS * ((blockIdx.x / order.groups * order.deep + k) * order.groups + blockIdx.x % order.groups) + threadIdx.x / AIJTC_LANES);
}

/* Where the run of a block begins */
__device__ __forceinline__ PetscInt RunOf(const SliceOrder &order, unsigned block)
{
  return order.begin + (PetscInt)((PetscCount)(order.end - order.begin) * block / order.nblocks);
}

SliceOrder PlaneByPlane(SliceOrder order, PetscInt plane)
{
  order.groups  = (unsigned)((plane + AIJTC_WARPS / 2) / AIJTC_WARPS);
  order.deep    = PLANES;
  order.nblocks = (order.nblocks - 1) / (order.groups * order.deep) * order.groups + order.groups;
  return order;
}

/* As many blocks as multiprocessors, or a multiple, so that all are busy to the end */
SliceOrder InRuns(SliceOrder order)
{
  const unsigned slices = (unsigned)(order.end - order.begin), waves = (slices - 1) / (MULTIPROCESSORS * RUN_WARPS * RUN) + 1;

  order.nblocks = MULTIPROCESSORS * waves;
  order.warps   = RUN_WARPS;
  return order;
}

SliceOrder OrderOf(const AIJTCLayout &A)
{
  const PetscInt   begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], slices = A.nslices[AIJTC_ROWS], plane = A.stride / (AIJTC_LANES * A.params.rrows);
  const PetscInt   together    = MULTIPROCESSORS * AIJTC_WARPS * ROWS_BLOCKS; /* slices under way at once */
  const SliceOrder order       = {begin, begin + slices, AIJTCBlocksOf(slices), AIJTC_WARPS, AIJTCBlocksOf(slices), 1};
  const bool       consecutive = A.nconsecutive == slices, large = slices >= 4 * together;

  if (A.common && large && consecutive && plane >= AIJTC_WARPS && A.nvalue < A.nnz) return PlaneByPlane(order, plane);
  if (!A.common && A.params.rrows != 2 && slices >= 2 * MULTIPROCESSORS * RUN_WARPS && A.stride > 0 && A.stride <= A.m / NEAR) return InRuns(order);
  return order;
}

template <int R, int U, int WARPS>
__global__ void __launch_bounds__(AIJTC_LANES *WARPS, ROWS_BLOCKS *AIJTC_WARPS / WARPS)
  RowsKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SliceOrder order, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  RowDots<WARPS> dots(w);

  LetNextLaunchStart();
  if constexpr (WARPS == RUN_WARPS) {
    const PetscInt end = RunOf(order, blockIdx.x + 1);

    for (PetscInt slice = RunOf(order, blockIdx.x) + (PetscInt)(threadIdx.x / AIJTC_LANES); slice < end; slice += WARPS) RowsSlice<R, U>(A, slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  } else {
    for (unsigned k = 0; k < order.deep; k++) {
      const PetscInt slice = SliceOf(order, k);

      if (slice < order.end) RowsSlice<R, U>(A, slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
    }
  }
  dots.finish();
}

template <int R>
PetscErrorCode Launch(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SliceOrder order  = OrderOf(A);
  auto             kernel = FitsWiderBatch<R>(A) ? RowsKernel<R, WiderBatch<R>, AIJTC_WARPS> : RowsKernel<R, RowsBatch<R>, AIJTC_WARPS>;

  PetscFunctionBegin;
  if constexpr (R != 2) {
    if (order.warps == RUN_WARPS) kernel = RowsKernel<R, RowsBatch<R>, RUN_WARPS>;
  }
  PetscCall(LaunchOverlapping(kernel, order.nblocks, AIJTC_LANES * order.warps, AIJTCDotBytes(dots, order.warps), stream, AIJTCLayoutView(A), order, A.m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

unsigned AIJTCRowsBlocks(const AIJTCLayout &A)
{
  if (!A.nslices[AIJTC_ROWS]) return 0;
  if (A.params.gather) return (unsigned)A.nblocks;

  const unsigned swept = AIJTCSweepBlocks(A), stored = swept ? 0 : AIJTCStoredBlocks(A, true);
  return swept ? swept : (stored ? stored : OrderOf(A).nblocks);
}

PetscErrorCode AIJTCLayoutMultRows_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!layout->nslices[AIJTC_ROWS]) PetscFunctionReturn(PETSC_SUCCESS);
  if (layout->params.gather) PetscCall(AIJTCLayoutMultGathered_CUDA(layout, x, y, z, dots, stream));
  else if (AIJTCSweepBlocks(*layout)) PetscCall(AIJTCLayoutMultSwept_CUDA(layout, x, y, z, dots, stream));
  else if (AIJTCStoredBlocks(*layout, dots.w)) PetscCall(AIJTCLayoutMultStored_CUDA(layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 4) PetscCall(Launch<4>(*layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 2) PetscCall(Launch<2>(*layout, x, y, z, dots, stream));
  else PetscCall(Launch<1>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
