/*
   Method
     Z = A X for K columns at once, one warp a slice as in the product with a vector. An entry is decoded once, by warp-uniform branches on the slice's form, and multiplied with K gathered numbers:
     what the forms' own code saves in a product with one vector is lost among K loads here, so one code reads all forms.
       ROWS   a lane keeps K sums for each of its R rows and adds the entries of a row in CSR order: each column has the bits of the product with a vector
       TILE   a lane keeps K sums for each of its R rows' quarters; the 4 lanes of a row add theirs by shuffles, and lane q of them stores the columns q, q + 4
       LONG   a lane keeps K sums; 32 lanes add theirs by shuffles and leave K partial sums a piece, which a second kernel adds in the order of the pieces

     No Tensor Core. An m8n8k4 has 8 rows, 4 columns of A and 8 of X: no part of it is wasted only where 8 rows have the same 4 columns, which needs 8 rows with one pattern. In a stencil no two
     rows have one; rows of a node with d unknowns do, and fill d of 8. And nothing would be won: K = 8 means 16 nnz operations against 8 nnz bytes of values and 128 bytes a row, at which the
     CUDA cores' 34 Tflop/s are more than the memory can feed.

   Layout
     include/petsctc/private/aijtclayout.h; X and Z by columns, so that the lanes of a warp read K runs of neighbouring numbers where their rows are neighbours

   Memory traffic
     The layout once for K columns, 8 K bytes a row of X (once if its reuse distance fits the caches) and of Z. 7-point 101^3, K = 8, values stored: 57 + 66 + 66 = 189 MB, 44 us at 4.3 TB/s; a
     product with a vector reads 57 + 16.5 = 74 MB, 17 us: 2.6 products. With constant values 133 MB, 31 us, of which the matrix is 1.

   References
     Yang, Buluc, Owens, Design principles for sparse matrix multiplication on the GPU, Euro-Par 2018
*/
#pragma once

#include "slots.cuh"

/* X and Z of one group of columns */
template <int K>
struct ColumnsView {
  const PetscScalar *__restrict__ x;
  PetscScalar *__restrict__ z;
  PetscCount xstride, zstride;
};

__device__ __forceinline__ uint32_t LoadDeltaOfAnyForm(const SliceView &s, int at)
{
  switch (s.form >> AIJTC_FORM_DELTA & 3) {
  case 0:
    return 0;
  case 1:
    return LoadDelta<1>(s, at);
  case 2:
    return LoadDelta<2>(s, at);
  default:
    return LoadDelta<4>(s, at);
  }
}

/* The value of entry `at`, or that at `constant` of a slot that has but one for each remainder */
__device__ __forceinline__ PetscScalar LoadValueOfAnyForm(const SliceView &s, int at)
{
  switch (s.form >> AIJTC_FORM_VALUE & 3) {
  case AIJTC_VALUE_DOUBLE:
    return DoubleValues::load(s, at);
  case AIJTC_VALUE_FLOAT:
    return FloatValues::get(s, FloatValues::load(s, at));
  default:
    return DictValues::get(s, DictValues::load(s, at));
  }
}

/* add(r, a, column) for every entry of this lane, slot by slot */
template <int R, class Add>
__device__ __forceinline__ void ForEntries(const SliceView &s, int lane, const Refs<R, 0> &refs, Add add)
{
  const unsigned below = (1u << lane) - 1;
  const bool     full = s.form & AIJTC_FORM_FULL, spread = s.form & AIJTC_FORM_SPREAD, constants = s.form & AIJTC_FORM_CONST;
  const bool     deltas = s.form >> AIJTC_FORM_DELTA & 3;

  for (int t = 0; t < s.slots; t++) {
    const int2     head     = __ldg(reinterpret_cast<const int2 *>(s.slot + t));
    const uint32_t where    = (uint32_t)head.y & ~AIJTC_SLOT_CONST;
    const bool     constant = constants || (!deltas && ((uint32_t)head.y & AIJTC_SLOT_CONST));
    unsigned       mask[R];
    int            at[R], before = (int)where;
    PetscScalar    a[R];
    int            column[R];

#pragma unroll
    for (int r = 0; r < R; r++) {
      mask[r] = full ? AIJTC_ALL_LANES : __ldg(s.mask + R * t + r);

      const unsigned placed = spread ? AIJTC_ALL_LANES : mask[r];

      at[r] = before + __popc(placed & below);
      before += __popc(placed);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (!(mask[r] >> lane & 1)) continue;
      if (constants) a[r] = ConstValues::load(s, t * s.period + refs.remainder(r));
      else a[r] = LoadValueOfAnyForm(s, constant ? (int)where + refs.remainder(r) : at[r]);
      column[r] = refs(r) + head.x + (int)LoadDeltaOfAnyForm(s, at[r]);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (mask[r] >> lane & 1) add(r, a[r], column[r]);
    }
  }
}

template <int R, int K>
struct ColumnSums {
  PetscScalar sum[R][K] = {};

  __device__ __forceinline__ void add(int r, PetscScalar a, int column, const ColumnsView<K> &X)
  {
    PetscScalar b[K];

#pragma unroll
    for (int c = 0; c < K; c++) b[c] = __ldg(X.x + (column + c * X.xstride));
#pragma unroll
    for (int c = 0; c < K; c++) sum[r][c] = fma(a, b[c], sum[r][c]);
  }

  /* To all lanes of a group of `lanes` the sums of the group */
  template <int lanes>
  __device__ __forceinline__ void fold()
  {
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int c = 0; c < K; c++) {
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2) sum[r][c] += __shfl_xor_sync(AIJTC_ALL_LANES, sum[r][c], distance);
      }
    }
  }
};

/* The row of place p of a slice that has one row a place, or -1 */
__device__ __forceinline__ int SliceRow(const LayoutView &A, const SliceView &s, int p, int m)
{
  const int row = s.form & AIJTC_FORM_RID ? __ldg(A.rid + s.row + p) : s.row + p;

  return row < m ? row : -1;
}

/* The rows of a slice, group r of this lane at place `place(r)`. A place without row has no entries */
template <int R, class Place>
__device__ __forceinline__ Refs<R, 0> SliceRefs(const LayoutView &A, const SliceView &s, int m, int row[R], Place place)
{
  Refs<R, 0> refs;

#pragma unroll
  for (int r = 0; r < R; r++) {
    row[r]       = SliceRow(A, s, place(r), m);
    refs.rest[r] = row[r] < 0 ? 0 : row[r] % A.bs;
    refs.ref[r]  = row[r] - refs.rest[r];
  }
  return refs;
}

template <int R, int K>
__device__ __forceinline__ void RowsColumns(const LayoutView &A, PetscInt slice, int m, int lane, const ColumnsView<K> &X)
{
  const SliceView  s = LoadSlice<R>(A, slice, A.bs);
  int              row[R];
  const Refs<R, 0> refs = SliceRefs<R>(A, s, m, row, [&](int r) { return AIJTC_LANES * r + lane; });
  ColumnSums<R, K> sums;

  ForEntries<R>(s, lane, refs, [&](int r, PetscScalar a, int column) { sums.add(r, a, column, X); });
#pragma unroll
  for (int r = 0; r < R; r++) {
    if (row[r] < 0) continue;
#pragma unroll
    for (int c = 0; c < K; c++) X.z[row[r] + c * X.zstride] = sums.sum[r][c];
  }
}

template <int R, int K>
__device__ __forceinline__ void TileColumns(const LayoutView &A, PetscInt slice, int m, int lane, const ColumnsView<K> &X)
{
  SliceView        s = LoadSlice<R>(A, slice, 1);
  int              row[R];
  Refs<R, 0>       refs = SliceRefs<R>(A, s, m, row, [&](int r) { return AIJTC_TILE_ROWS * r + lane / AIJTC_TILE_COLS; });
  ColumnSums<R, K> sums;

#pragma unroll
  for (int r = 0; r < R; r++) refs.rest[r] = 0; /* a constant slot has one value */
  ForEntries<R>(s, lane, refs, [&](int r, PetscScalar a, int column) { sums.add(r, a, column, X); });
  sums.template fold<AIJTC_TILE_COLS>();
#pragma unroll
  for (int r = 0; r < R; r++) {
#pragma unroll
    for (int c = 0; c < K; c++) {
      if (row[r] >= 0 && c % AIJTC_TILE_COLS == lane % AIJTC_TILE_COLS) X.z[row[r] + c * X.zstride] = sums.sum[r][c];
    }
  }
}

/* A piece of a long row: partial[K piece + c] */
template <int K>
__device__ __forceinline__ void LongColumns(const LayoutView &A, PetscInt slice, int lane, const ColumnsView<K> &X, PetscScalar *__restrict__ partial)
{
  const SliceView  s    = LoadSlice<1>(A, slice, 1);
  const Refs<1, 0> refs = {{lane}, {0}};
  ColumnSums<1, K> sums;

  ForEntries<1>(s, lane, refs, [&](int r, PetscScalar a, int column) { sums.add(r, a, column, X); });
  sums.template fold<AIJTC_LANES>();
#pragma unroll
  for (int c = 0; c < K; c++) {
    if (c == lane) partial[(PetscCount)K * slice + c] = sums.sum[0][c];
  }
}
