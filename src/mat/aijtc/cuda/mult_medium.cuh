/*
   Method
     Medium rows: one warp takes S slices of 8 rows (1 or 4), whose tiles lie one behind the other: it goes through all of them as one run, so that loads of the next
     slice are under way while a slice is added, and takes the 8 row sums out where a slice ends. At the end lane l holds the sum of packed row l of the 8 S, so rid
     is read and z written by one instruction each.

     S = 4 keeps 8 tiles of a 5- or 7-point row in flight; S = 1 spreads a small matrix or wide rows over more warps.

   Memory traffic
     12 bytes a slot, per row 4 (rid) + 1 (slice_tile) + 8 (z, and 8 for y), the gathered x once if its reuse distance fits the caches.
     7-point, 101^3 rows: 2 tiles a slice, 8.24e6 slots: 99 MB + 13 MB + x 8 MB = 120 MB, 28 us at 4.3 TB/s. 5-point, 387 x 388: 17.6 MB, 4.1 us, and less when
     the matrix stays in L2. 8 tiles x 384 bytes in flight a warp.
*/
#pragma once

#include "tilesums.cuh"

template <class Sums, int S>
__device__ __forceinline__ void MediumSlices(const AIJTCLayout &A, PetscInt slice, int lane, const PetscScalar *__restrict__ x, const PetscScalar *y, PetscScalar *z)
{
  const int         slices = min(S, A.nslices - slice);
  const PetscInt    row    = lane < AIJTC_TILE_ROWS * slices ? __ldg(A.rid + A.rid_medium + AIJTC_TILE_ROWS * slice + lane) : -1;
  const PetscCount  tile   = __ldg(A.slice_tile + slice + min(lane, slices)); /* lane s: the first tile of slice s */
  const PetscCount  first  = __shfl_sync(AIJTC_ALL_LANES, tile, 0);
  const int         start  = (int)(tile - first);
  const PetscScalar above  = y && row >= 0 ? y[row] : 0.0;
  int               s = 0, end = __shfl_sync(AIJTC_ALL_LANES, start, 1);
  PetscScalar       result = 0.0;
  Sums              sums;

  ForTiles(A, first, __shfl_sync(AIJTC_ALL_LANES, start, S), lane, x, [&](int t, PetscScalar a, PetscScalar b) {
    sums.add(a, b);
    if (t + 1 < end) return;
    const PetscScalar sum = sums.row(lane, lane % AIJTC_TILE_ROWS);

    if (lane / AIJTC_TILE_ROWS == s) result = sum;
    sums = Sums();
    s++;
    end = __shfl_sync(AIJTC_ALL_LANES, start, s + 1);
  });
  if (row >= 0) z[row] = above + result;
}
