/*
   Method
     ROWS slices: one lane a row of each of R groups of 32 rows. Every row adds its entries one after the other in CSR order, whatever the slice's form: the bits of the product do not depend on
     compression. Lanes add nothing for an entry that they do not have.

     Consecutive rows with bs = 1 have a path of their own for offset patterns: the R groups' addresses differ by constants.

   Memory traffic
     See slots.cuh; per row 8 bytes of z (8 more for y), 4 of rid where rows are listed; 32 bytes a slice; x once if its reuse distance fits the caches.
     7-point 256^3, R = 4: values stored 938 MB + slots and masks 25 MB + slices 4 MB + vectors 268 MB, 287 us at 4.3 TB/s; constant values 306 MB, 71 us.
*/
#pragma once

#include "mult_dot.cuh"

/* Slots requested at once: U R entries a lane */
template <int R>
constexpr int RowsBatch = R == 4 ? 2 : (R == 2 ? 4 : 8);

template <int R>
struct RowSums {
  PetscScalar sum[R] = {};

  __device__ __forceinline__ void operator()(int r, bool on, PetscScalar a, PetscScalar b)
  {
    if (on) sum[r] = fma(a, b, sum[r]);
  }
};

template <class Dots>
__device__ __forceinline__ void StoreRow(int row, PetscScalar sum, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const PetscScalar result = y ? y[row] + sum : sum;

  z[row] = result;
  dots.add(row, result);
}

/* The sums of the rows of a slice, or what they add to y */
template <int R, class Dots>
__device__ __forceinline__ void StoreRows(const LayoutView &A, const SliceView &s, PetscInt m, int lane, const RowSums<R> &sums, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const bool rid   = s.form & AIJTC_FORM_RID;
  const int  first = s.row + lane;

#pragma unroll
  for (int r = 0; r < R; r++) {
    const int row = rid ? __ldg(A.rid + first + AIJTC_LANES * r) : first + AIJTC_LANES * r;

    if (rid ? row >= 0 : row < m) StoreRow(row, sums.sum[r], y, z, dots);
  }
}

template <int R, class Dots>
__device__ __forceinline__ void RowsSlice(const LayoutView &A, PetscInt slice, PetscInt m, int lane, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const Dots &dots)
{
  const SliceView s = LoadSlice<R>(A, slice, A.bs);
  RowSums<R>      sums;
  const auto      add   = [&](int r, bool on, PetscScalar a, PetscScalar b) { sums(r, on, a, b); };
  const bool      rid   = s.form & AIJTC_FORM_RID;
  const int       first = s.row + lane;

  WaitForLaunchBefore();
  if (!rid && A.bs == 1 && !(s.form >> AIJTC_FORM_DELTA & 3)) {
    const Refs<R, AIJTC_LANES> refs = {{first}, {0}};

    if (s.form & AIJTC_FORM_FULL) ForSlotsOfValues<R, RowsBatch<R>, 0, PLACING_FULL>(s, lane, refs, x, add);
    else if (s.form & AIJTC_FORM_SPREAD) ForSlotsOfValues<R, RowsBatch<R>, 0, PLACING_SPREAD>(s, lane, refs, x, add);
    else ForSlotsOfValues<R, RowsBatch<R>, 0, PLACING_PACKED>(s, lane, refs, x, add);
  } else {
    Refs<R, 0> refs;

#pragma unroll
    for (int r = 0; r < R; r++) {
      const int row = rid ? __ldg(A.rid + first + AIJTC_LANES * r) : first + AIJTC_LANES * r; /* -1 for no row: it has no entry */

      refs.rest[r] = A.bs == 1 ? 0 : (unsigned)row % (unsigned)A.bs;
      refs.ref[r]  = row - refs.rest[r];
    }
    ForSlotsOfAnyForm<R, RowsBatch<R>>(s, lane, refs, x, add);
  }
  StoreRows(A, s, m, lane, sums, y, z, dots);
}
