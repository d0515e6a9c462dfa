/*
   Method
     Short rows of width W = 4, 2 or 1: one warp takes 4 tiles, 4 * 32 / W rows. A tile row is shared by 4 / W matrix rows:
       W = 4  the tile's row sums are the results
       W = 2  the tile is added twice, each time with one half of the slots masked (in A and B, so that an Inf or NaN of one matrix row does not reach the other)
       W = 1  a slot is a row: one multiplication, nothing for an MMA to add, so both kinds of arithmetic take this path
     Each 32 results are brought to lane order, then rid is used and z written by one instruction.

   Memory traffic
     12 bytes a slot, per row 4 (rid) + 8 (z, and 8 for y), the gathered x. shallow_water1 (81,920 rows of 4): 3.93 MB + 1 MB + x 0.65 MB = 5.6 MB, 1.3 us at 4.3 TB/s:
     launch and latency (rid and columns, x, z: two dependent loads and a store) decide, about 3.5 us in all.
*/
#pragma once

#include "tilesums.cuh"

constexpr int AIJTC_SHORT_TILES = 4; /* a warp's */

/* One tile: to each lane the sum of matrix row lane % (32 / W) of the tile */
template <class Sums, int W>
__device__ __forceinline__ PetscScalar ShortSums(int lane, PetscScalar a, PetscScalar b)
{
  if constexpr (W == 1) return a * b;
  if constexpr (W == 2) {
    const bool left = !(lane & 2);
    const int  i    = lane / 2 % AIJTC_TILE_ROWS;
    Sums       sums[2];

    sums[0].add(left ? a : 0.0, left ? b : 0.0);
    sums[1].add(left ? 0.0 : a, left ? 0.0 : b);
    const PetscScalar sum0 = sums[0].row(lane, i), sum1 = sums[1].row(lane, i);
    return lane & 1 ? sum1 : sum0;
  }
  if constexpr (W == 4) {
    Sums sums;

    sums.add(a, b);
    return sums.row(lane, lane % AIJTC_TILE_ROWS);
  }
}

template <class Sums, int W>
__device__ __forceinline__ void ShortTiles(const AIJTCLayout &A, PetscInt warp, int lane, const PetscScalar *__restrict__ x, const PetscScalar *y, PetscScalar *z)
{
  constexpr int    T = AIJTC_SHORT_TILES, K = W == 4 ? 0 : (W == 2 ? 1 : 2), ROWS = AIJTC_TILE / W; /* rows of a tile: W tiles give 32 results */
  const PetscCount first = A.short_tile[K] + (PetscCount)T * warp;
  const int        tiles = (int)min((PetscCount)T, A.short_tile[K + 1] - first);
  const PetscInt  *rid   = A.rid + A.rid_short[K] + (PetscCount)T * ROWS * warp;
  PetscScalar      a[T], b[T];
  PetscInt         row[T / W];

#pragma unroll
  for (int r = 0; r < T / W; r++) row[r] = AIJTC_TILE * r + lane < ROWS * tiles ? __ldg(rid + AIJTC_TILE * r + lane) : -1;
  LoadTiles<T>(A.val + (first * AIJTC_TILE + lane), A.col + (first * AIJTC_TILE + lane), tiles, x, a, b);
#pragma unroll
  for (int r = 0; r < T / W; r++) {
    const PetscScalar above  = y && row[r] >= 0 ? y[row[r]] : 0.0;
    PetscScalar       result = 0.0;

#pragma unroll
    for (int t = 0; t < W; t++) {
      const PetscScalar sum = ShortSums<Sums, W>(lane, a[W * r + t], b[W * r + t]);

      if (lane / ROWS == t) result = sum;
    }
    if (row[r] >= 0) z[row[r]] = above + result;
  }
}
