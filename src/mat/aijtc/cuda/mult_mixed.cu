/*
   Method
     Slices of long rows, of tiles (mult_tiles.cuh) and of rows (mult_rows.cuh) in one launch, where a warp takes a tile or a row group of 32. Blocks of 8 warps: NotreDame_www 12.0 -> 11.5 us, the web graph of a million rows 62.7 -> 60.7.

   Memory traffic
     mult_tiles.cuh, mult_rows.cuh

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#include "mult_rows.cuh"
#include "mult_tiles.cuh"

namespace
{
template <class Sums>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_MIXED_WARPS, 4)
  MixedKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SliceCounts count, PetscInt m, const __grid_constant__ LongPieces pieces, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  const unsigned             others = count.longblocks + count.tileblocks;
  RowDots<AIJTC_MIXED_WARPS> dots(w);

  LetNextLaunchStart();
  if (blockIdx.x < others) PieceOrTile<Sums>(A, count, pieces, x, y, z, dots);
  else {
    const PetscInt slice = (PetscInt)(AIJTC_MIXED_WARPS * (blockIdx.x - others) + threadIdx.x / AIJTC_LANES);

    if (slice < count.rows) RowsSlice<1>(A, count.longs + count.tiles + slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  }
  dots.finish();
}

template <class Sums>
PetscErrorCode LaunchMixed(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SliceCounts count  = CountsOf(A, AIJTC_MIXED_WARPS);
  const unsigned    blocks = count.longblocks + count.tileblocks + AIJTCBlocksOf(count.rows, AIJTC_MIXED_WARPS);

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(MixedKernel<Sums>, blocks, AIJTC_LANES * AIJTC_MIXED_WARPS, AIJTCDotBytes(dots, AIJTC_MIXED_WARPS), stream, AIJTCLayoutView(A), count, A.m, PiecesOf(A, dots), x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMultMixed_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (tensor) PetscCall(LaunchMixed<TensorSums>(*layout, x, y, z, dots, stream));
  else PetscCall(LaunchMixed<CoreSums>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
