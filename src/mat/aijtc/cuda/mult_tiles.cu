/*
   Method
     Slices of tiles and of long rows in a launch of their own (mult_tiles.cuh), and the one that adds the pieces of long rows where there are dot products.

     Where there are no tiles, warps that run together take the same piece of different rows: of rows that have their columns everywhere, what they read of x lies together, and L1 holds it. 300 rows of 60,000: 72.8 -> 50.8 us, 2000 of
     10,000: 58.4 -> 53.4.

   Memory traffic
     mult_tiles.cuh

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#include "mult_tiles.cuh"

namespace
{
constexpr int TILES_BLOCKS = 8; /* of a multiprocessor at least: 64 registers */

template <class Sums>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, TILES_BLOCKS)
  TilesKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SliceCounts count, const __grid_constant__ LongPieces pieces, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  RowDots<> dots(w);

  LetNextLaunchStart();
  PieceOrTile<Sums>(A, count, pieces, x, y, z, dots);
  dots.finish();
}

__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS) LongSumsKernel(PetscInt nlong, const PetscInt *__restrict__ rid, const __grid_constant__ LongPieces pieces, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  const PetscInt q    = (PetscInt)(AIJTC_WARPS * blockIdx.x + threadIdx.x / AIJTC_LANES);
  const int      lane = threadIdx.x % AIJTC_LANES;
  RowDots<>      dots(w);

  LetNextLaunchStart();
  if (q < nlong) {
    PetscScalar total = pieces.total(q, lane);

    if (!lane) {
      const PetscInt row = __ldg(rid + q);

      if (y) total += y[row];
      z[row] = total;
      dots.add(row, total);
    }
  }
  dots.finish();
}

/* Which pieces the warps take */
struct PieceOrder {
  unsigned pieces, each; /* of a row in the mean */

  /* The k-th warp: each piece once, and where all rows have `each`, the first ones of all rows, then the second ones, and so on */
  __device__ __forceinline__ PetscInt operator()(unsigned k) const
  {
    const unsigned longer = pieces % each, height = pieces / each, behind = longer * (height + 1); /* in columns of `each`, of which the first `longer` ones are longer than height */

    if (each == 1) return (PetscInt)k;
    if (k < behind) return (PetscInt)(k % (height + 1) * each + k / (height + 1));
    return (PetscInt)((k - behind) % height * each + longer + (k - behind) / height);
  }
};

template <class Sums>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, TILES_BLOCKS)
  LongKernel(const __grid_constant__ LayoutView A, const __grid_constant__ PieceOrder order, const __grid_constant__ LongPieces pieces, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  const unsigned k = AIJTC_WARPS * blockIdx.x + threadIdx.x / AIJTC_LANES;
  RowDots<>      dots(w);

  LetNextLaunchStart();
  if (k < order.pieces) LongSlice<Sums>(A, order(k), pieces, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  dots.finish();
}

template <class Sums>
PetscErrorCode LaunchLong(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const PieceOrder order = {(unsigned)A.nslices[AIJTC_LONG], (unsigned)((A.nslices[AIJTC_LONG] + A.nlong / 2) / A.nlong)};

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(LongKernel<Sums>, AIJTCBlocksOf(order.pieces), AIJTC_LANES * AIJTC_WARPS, AIJTCDotBytes(dots, AIJTC_WARPS), stream, AIJTCLayoutView(A), order, PiecesOf(A, dots), x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Sums>
PetscErrorCode LaunchTiles(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SliceCounts count = CountsOf(A, AIJTC_WARPS);

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(TilesKernel<Sums>, count.longblocks + count.tileblocks, AIJTC_LANES * AIJTC_WARPS, AIJTCDotBytes(dots, AIJTC_WARPS), stream, AIJTCLayoutView(A), count, PiecesOf(A, dots), x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMultTiles_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!layout->nslices[AIJTC_LONG] && !layout->nslices[AIJTC_TILE]) PetscFunctionReturn(PETSC_SUCCESS);
  if (!layout->nslices[AIJTC_TILE]) {
    if (tensor) PetscCall(LaunchLong<TensorSums>(*layout, x, y, z, dots, stream));
    else PetscCall(LaunchLong<CoreSums>(*layout, x, y, z, dots, stream));
  } else if (tensor) PetscCall(LaunchTiles<TensorSums>(*layout, x, y, z, dots, stream));
  else PetscCall(LaunchTiles<CoreSums>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutSumPieces_CUDA(const AIJTCLayout *layout, const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!AIJTCHasPieces(*layout) || !dots.w) PetscFunctionReturn(PETSC_SUCCESS);
  /* Not overlapping: its blocks would wait in places that those of the pieces need */
  LongSumsKernel<<<AIJTCBlocksOf(layout->nlong), AIJTC_LANES * AIJTC_WARPS, AIJTCDotBytes(dots, AIJTC_WARPS), stream>>>(layout->nlong, layout->rid, PiecesOf(*layout, dots), y, z, dots);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
