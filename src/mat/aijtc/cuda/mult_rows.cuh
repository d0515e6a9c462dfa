/*
   Method
     ROWS slices: a warp adds a slice's rows (aijtcrows.cuh) and stores their sums.

   Memory traffic
     See aijtcslots.cuh; per row 8 bytes of z (8 more for y), 4 of rid where rows are listed; 32 bytes a slice; x once if its reuse distance fits the caches.
     7-point 256^3, R = 4, constant values: 306 MB, 71 us at 4.3 TB/s; values stored: mult_stored.cu.
*/
#pragma once

#include "mult_dot.cuh"
#include <../src/mat/aijtc/cuda/aijtcrows.cuh>

/* The sums of the rows of a slice, or what they add to y */
template <int R, class Dots>
__device__ __forceinline__ void StoreRows(const LayoutView &A, const SliceView &s, PetscInt m, int lane, const RowSums<R> &sums, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  PetscScalar result[R];
  int         row[R];

#pragma unroll
  for (int r = 0; r < R; r++) {
    row[r]    = RowOfLane(A, s, m, lane, r);
    result[r] = y && row[r] >= 0 ? y[row[r]] + sums.sum[r] : sums.sum[r];
    if (row[r] >= 0) z[row[r]] = result[r];
  }
  dots.add(row, result);
}

/* Rows of five nonzeros in the mean, two to a lane, are one batch of ten entries a lane: 5-point 387 x 388 2.64 -> 2.20 us, with values compressed and stored. Of other rows batches are as ever */
template <int R>
constexpr int WiderBatch = R == 2 ? RowsBatch<R> + 1 : RowsBatch<R>;

template <int R>
bool FitsWiderBatch(const AIJTCLayout &A)
{
  return A.params.bs == 1 && A.nnz > (PetscCount)RowsBatch<R> * A.m && A.nnz <= (PetscCount)WiderBatch<R> * A.m;
}

template <int R, int U = RowsBatch<R>, class X, class Dots>
__device__ __forceinline__ void RowsSlice(const LayoutView &A, PetscInt slice, PetscInt m, int lane, const X &x, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const SliceView s = LoadSlice<R>(A, slice, A.bs);
  RowSums<R>      sums;

  AddRows<R, U>(A, s, lane, x, sums, LaunchBeforeX());
  WaitForLaunchBefore(); /* a slice without slots has not waited yet */
  StoreRows(A, s, m, lane, sums, y, z, dots);
}
