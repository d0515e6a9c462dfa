/*
   The sums of the rows of a ROWS slice, for all kernels that multiply.

   Method
     One lane a row of each of R groups of 32 rows. Every row adds its entries one after the other in CSR order, whatever the slice's form: the bits of the product do not depend on compression. Lanes add
     nothing for an entry that they do not have, or -0.0, which changes no sum.

     Consecutive rows with bs = 1 have a path of their own for offset patterns: the R groups' addresses differ by constants.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     aijtcslots.cuh; 4 bytes a row of rid where rows are listed

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/mat/aijtc/cuda/aijtcslots.cuh>

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

/* Adds to sums[] the rows of slice s. U: slots requested at once where rows are consecutive, bs = 1 and there are no deltas, else as ever. x: a pointer, or what has x[column]; read as memory that a kernel may write */
template <int R, int U = RowsBatch<R>, class X, class Before = NothingBeforeX>
__device__ __forceinline__ void AddRows(const LayoutView &A, const SliceView &s, int lane, const X &x, RowSums<R> &sums, Before before_x = {})
{
  const auto add   = [&](int r, bool on, PetscScalar a, PetscScalar b) { sums(r, on, a, b); };
  const bool rid   = s.form & AIJTC_FORM_RID;
  const int  first = s.row + lane;

  if (!rid && A.bs == 1 && !(s.form >> AIJTC_FORM_DELTA & 3)) {
    const Refs<R, AIJTC_LANES> refs = {{first}, {0}};

    if (s.form & AIJTC_FORM_FULL) ForSlotsOfValues<R, U, 0, PLACING_FULL>(s, lane, refs, x, before_x, add);
    else if (s.form & AIJTC_FORM_SPREAD) ForSlotsOfValues<R, U, 0, PLACING_SPREAD>(s, lane, refs, x, before_x, add);
    else ForSlotsOfValues<R, U, 0, PLACING_PACKED>(s, lane, refs, x, before_x, add);
  } else {
    Refs<R, 0> refs;

#pragma unroll
    for (int r = 0; r < R; r++) {
      const int row = rid ? __ldg(A.rid + first + AIJTC_LANES * r) : first + AIJTC_LANES * r; /* -1 for no row: it has no entry */

      refs.rest[r] = A.bs == 1 ? 0 : (unsigned)row % (unsigned)A.bs;
      refs.ref[r]  = row - refs.rest[r];
    }
    ForSlotsOfAnyForm<R, RowsBatch<R>>(s, lane, refs, x, before_x, add);
  }
}

/* The row of this lane in group r of slice s, -1: none */
__device__ __forceinline__ int RowOfLane(const LayoutView &A, const SliceView &s, PetscInt m, int lane, int r)
{
  const int at = s.row + lane + AIJTC_LANES * r;

  if (s.form & AIJTC_FORM_RID) return __ldg(A.rid + at);
  return at < m ? at : -1;
}
