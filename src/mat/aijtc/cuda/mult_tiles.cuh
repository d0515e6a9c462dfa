/*
   What the launches share that take slices of tiles and of long rows (mult_tiles.cu, mult_mixed.cu).

   Method
     TILE slices: one warp takes 8 rows. A slot is a tile of 8 rows x 4 entries, in the operand order of the MMA; the row sums stand on the diagonal of its accumulator. At the end lane l < 8 holds the sum
     of the slice's row l, so rid is read and z written by one instruction each.

     LONG slices, in the same launch: one warp a piece of up to 32 slots (1024 nonzeros) of a row. Where every long row is one piece the warp stores the row's result; otherwise it leaves the piece's sum in
     `partial`, and the warp that finds itself the last of its row (arrival.cuh) adds the pieces: lane l those of number l, l + 32, .., then the lanes. Which warp that is has no say in the result. With dot products
     it would have, in what block's sum the row is: then LongSumsKernel, launched behind all others, adds the pieces.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     See aijtcslots.cuh; per row 4 bytes (rid) + 8 (z, and 8 for y), 32 bytes a slice, the gathered x. 7-point 101^3, no compression: 86 MB of entries + 3 MB of slots and masks + 25 MB = 114 MB,
     27 us at 4.3 TB/s.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#pragma once

#include "mult.cuh"
#include "sums.cuh"

constexpr int TileBatch = 8; /* slots requested together, of pieces too */

template <class Sums, class Dots>
__device__ __forceinline__ void TileSlice(const LayoutView &A, PetscInt slice, int lane, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const SliceView  s   = LoadSlice<1>(A, slice, 1);
  const int        row = lane < AIJTC_TILE_ROWS ? __ldg(A.rid + s.row + lane) : -1, of = __shfl_sync(AIJTC_ALL_LANES, row, lane / AIJTC_TILE_COLS);
  const Refs<1, 0> refs = {{A.bs == 1 ? of : of - (int)((unsigned)of % (unsigned)A.bs)}, {0}};
  Sums             sums;

  ForSlotsOfAnyForm<1, TileBatch>(s, lane, refs, x, LaunchBeforeX(), [&](int, bool, PetscScalar a, PetscScalar b) { sums.add(a, b); });
  WaitForLaunchBefore(); /* a slice without slots has not waited yet */

  PetscScalar result = sums.row(lane, lane % AIJTC_TILE_ROWS);

  if (row < 0) return;
  if (y) result += y[row];
  z[row] = result;
  dots.add(row, result);
}

/* Where long rows have several pieces */
struct LongPieces {
  const PetscInt *first;   /* of each row, and behind the last one's; NULL: each row is one piece */
  PetscScalar    *sum;     /* of each piece */
  unsigned       *arrived; /* NULL: LongSumsKernel adds them */

  /* By a warp: those of row q */
  __device__ __forceinline__ PetscScalar total(PetscInt q, int lane) const
  {
    const PetscInt end   = __ldg(first + q + 1);
    PetscScalar    total = 0.0;

    for (PetscInt piece = __ldg(first + q) + lane; piece < end; piece += AIJTC_LANES) total += __ldcg(sum + piece);
#pragma unroll
    for (int lanes = 1; lanes < AIJTC_LANES; lanes *= 2) total += __shfl_xor_sync(AIJTC_ALL_LANES, total, lanes);
    return total;
  }
  /* By a warp: leaves the sum of a piece of row q. Is it the last, so that the row is to be added up? */
  __device__ __forceinline__ bool leave(PetscInt q, PetscInt piece, PetscScalar total, int lane) const
  {
    bool last = false;

    if (!lane) {
      __stcg(sum + piece, total);
      last = arrived && PetscTCArriveLast(arrived + q, (unsigned)(__ldg(first + q + 1) - __ldg(first + q)));
    }
    __syncwarp();
    return __shfl_sync(AIJTC_ALL_LANES, last, 0);
  }
};

/* A piece of row rid[s.row], or all of it */
template <class Sums, class Dots>
__device__ __forceinline__ void LongSlice(const LayoutView &A, PetscInt slice, const LongPieces &pieces, int lane, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const SliceView  s    = LoadSlice<1>(A, slice, 1);
  const Refs<1, 0> refs = {{lane}, {0}};
  Sums             sums;

  ForSlotsOfAnyForm<1, TileBatch>(s, lane, refs, x, LaunchBeforeFirstX(), [&](int, bool, PetscScalar a, PetscScalar b) { sums.add(a, b); });
  WaitForLaunchBefore(); /* likewise */

  PetscScalar total = sums.total(lane);

  if (pieces.first) {
    if (!pieces.leave(s.row, slice, total, lane)) return;
    total = pieces.total(s.row, lane);
  }
  if (lane) return;
  const PetscInt row = __ldg(A.rid + s.row);

  if (y) total += y[row];
  z[row] = total;
  dots.add(row, total);
}

/* What the launches are told of the slices: pieces, then tiles, then rows */
struct SliceCounts {
  PetscInt longs, tiles, rows;
  unsigned longblocks, tileblocks;
};

/* One warp a slice; the longest slices begin first */
template <class Sums, int WARPS>
__device__ __forceinline__ void PieceOrTile(const LayoutView &A, const SliceCounts &count, const LongPieces &pieces, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const RowDots<WARPS> &dots)
{
  const bool     piece = blockIdx.x < count.longblocks;
  const int      lane  = threadIdx.x % AIJTC_LANES;
  const PetscInt slice = (PetscInt)(WARPS * (piece ? blockIdx.x : blockIdx.x - count.longblocks) + threadIdx.x / AIJTC_LANES);

  if (piece && slice < count.longs) LongSlice<Sums>(A, slice, pieces, lane, x, y, z, dots);
  if (!piece && slice < count.tiles) TileSlice<Sums>(A, count.longs + slice, lane, x, y, z, dots);
}

static inline LongPieces PiecesOf(const AIJTCLayout &A, const DotView &dots)
{
  if (!AIJTCHasPieces(A)) return {nullptr, nullptr, nullptr};
  return {A.long_piece, A.partial, dots.w ? nullptr : A.arrived};
}

static inline SliceCounts CountsOf(const AIJTCLayout &A, int warps)
{
  return {A.nslices[AIJTC_LONG], A.nslices[AIJTC_TILE], A.nslices[AIJTC_ROWS], AIJTCBlocksOf(A.nslices[AIJTC_LONG], warps), AIJTCBlocksOf(A.nslices[AIJTC_TILE], warps)};
}
