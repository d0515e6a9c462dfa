/*
   Method
     Z = A X for K columns at once. A warp takes one row group of a slice: a slice of R groups has R warps, so that a lane keeps few sums and many loads can be in flight. An entry is decoded once, by
     warp-uniform branches on the slice's form, and multiplied with K gathered numbers: what the forms' own code saves in a product with one vector is lost among K loads here, so one code reads all
     forms. Slots' heads are read by a lane each, 32 at once, and passed on by shuffles, so that no entry waits for its head. While X is on its way for one slot, what is stored of the next one is requested; what hides the
     rest is many warps: more slots at once mean more registers and were slower by a third.

     How X is gathered:
       By columns (ColumnSums), where rows share their offsets: a lane has a row, and the lanes of a warp read K runs of neighbouring numbers from X as it is. On grids of planes these are in shared memory (spmm_sweep.cu).
       By rows (PairSums), elsewhere: the columns of neighbouring rows lie anywhere, and every number gathered from column-major X would cost a sector of 32 bytes, 32 K bytes an entry from L2. So X is copied
       row by row first: an entry's K numbers are 8 K bytes side by side, read by K / 2 lanes, a pair each. For that the lanes of a warp pass their entries on by shuffles, 64 / K entries at a time.
       So is Z where its rows come in no order and it is too large for L2: a number stored alone is a part of a sector, for which memory reads the rest. It is copied to columns behind.

       ROWS   a row's entries are added in CSR order: each column has the bits of the product with a vector
       TILE   K / 2 lanes of the 4 of a row have a pair of columns each; what several lanes have of a pair is added by shuffles
       LONG   lanes that have the same pair of columns add theirs by shuffles and leave K partial sums a piece, which a second kernel adds in the order of the pieces

     In a gathered layout what a block's list has of X is brought into shared memory (spmm_gather.cu); where that has no room, and by columns, an entry's column is looked up in the list, which L1 has.

     No Tensor Core: docs/operations.md.

   Layout
     include/petsctc/private/aijtclayout.h; X and Z by columns; the copy of X by rows, K numbers each

   Memory traffic
     The layout once for K columns (heads and masks are read by every row group, from L1), 8 K bytes a row of X (once if its reuse distance fits the caches) and of Z; by rows 16 K bytes a row more for the copy of X, and as many for that of Z. 7-point 101^3, K = 8, values stored: 57 + 66 + 66 =
     189 MB, 44 us at 4.3 TB/s; a product with a vector reads 57 + 16.5 = 74 MB, 17 us: 2.6 products. A million tetrahedra nodes, 15 million entries: 177 + 128 MB, 71 us, and 128 MB, 30 us, for the
     copy; X from L2, 960 MB if L1 never has it, where column-major X would be four times as much; by lists it is 200 to 240.

   References
     Yang, Buluc, Owens, Design principles for sparse matrix multiplication on the GPU, Euro-Par 2018
*/
#pragma once

#include <../src/mat/aijtc/cuda/aijtcslots.cuh>

struct alignas(2 * sizeof(PetscScalar)) ScalarPair {
  PetscScalar a, b;
};

/* X and Z of one group of columns; rows: K / 2 pairs a row, NULL where Z is stored by columns at once */
template <int K>
struct ColumnsView {
  const PetscScalar *__restrict__ x;
  PetscScalar *__restrict__ z;
  PetscCount  xstride, zstride;
  ScalarPair *rows;
};

/* The product by columns where planes are swept with K windows each (spmm_sweep.cu). done: false, and nothing has been, where the layout is no grid or it is not worth it. K: 4, 8 */
template <int K>
PetscErrorCode AIJTCMultColumnsSwept(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream);

/* The product of a gathered layout with X by rows, of which lists are brought into shared memory (spmm_gather.cu). done: false, and nothing has been, where the layout is another one or the device has not got so much of that. K: 2, 4, 8 */
template <int K>
PetscErrorCode AIJTCMultColumnsGathered(const AIJTCLayout &A, const LayoutView &view, const PetscScalar *x, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream);

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

/* Of a slice without constant values: what is stored of entry `at`, and the value that this stands for, once it is there */
__device__ __forceinline__ uint64_t LoadRawOfAnyForm(const SliceView &s, int at)
{
  switch (s.form >> AIJTC_FORM_VALUE & 3) {
  case AIJTC_VALUE_DOUBLE:
    return (uint64_t)__double_as_longlong(DoubleValues::load(s, at));
  case AIJTC_VALUE_FLOAT:
    return __float_as_uint(FloatValues::load(s, at));
  default:
    return DictValues::load(s, at);
  }
}

__device__ __forceinline__ PetscScalar ValueOfAnyForm(const SliceView &s, uint64_t raw)
{
  const uint32_t values = s.form >> AIJTC_FORM_VALUE & 3;

  if ((s.form & AIJTC_FORM_CONST) || values == AIJTC_VALUE_DOUBLE) return __longlong_as_double((long long)raw);
  if (values == AIJTC_VALUE_FLOAT) return FloatValues::get(s, __uint_as_float((unsigned)raw));
  return DictValues::get(s, (uint8_t)raw);
}

/* The list of the slice's block in a gathered layout, else NULL */
__device__ __forceinline__ const PetscInt *ListOf(const LayoutView &A, PetscInt slice)
{
  return A.gather ? A.list + __ldg(A.list_start + slice / A.gather) : nullptr;
}

/* What a lane has of a slot and row group; column -1: no entry */
struct Entry {
  PetscScalar a;
  int         column;
};

/* The same on its way */
struct StoredEntry {
  uint64_t raw;
  uint32_t delta;
  bool     on;
};

/* One row group of a slice. A lane keeps the head of one of AIJTC_LANES slots; all lanes learn of it by shuffles, so that no entry waits for its slot's head */
template <int R>
class GroupSlots {
public:
  /* list: NULL, or what columns are places in. ref, rest: the column without base and delta; the row's remainder by the period */
  __device__ __forceinline__ GroupSlots(const SliceView &s, const PetscInt *list, int group, int lane, int ref, int rest) : s_(s), list_(list), group_(group), lane_(lane), ref_(ref), rest_(rest) { }

  /* The heads of slots first, first + 1, ..: by a lane each */
  __device__ __forceinline__ void heads(int first)
  {
    const int t = first + lane_;

    first_ = first;
    base_ = place_ = 0;
    mask_          = 0;
    if (t >= s_.slots) return;
    const int2 head = __ldg(reinterpret_cast<const int2 *>(s_.slot + t));

    base_  = head.x;
    place_ = head.y;
    mask_  = AIJTC_ALL_LANES;
    if (!(s_.form & AIJTC_FORM_FULL)) mask_ = __ldg(s_.mask + R * t + group_);
    if (isConstant(head.y)) return;
    place_ &= (int)~AIJTC_SLOT_CONST;
    if (s_.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD)) place_ += AIJTC_LANES * group_;
    else {
#pragma unroll
      for (int r = 0; r < R - 1; r++) {
        if (r < group_) place_ += __popc(__ldg(s_.mask + R * t + r));
      }
    }
  }

  /* Requests what is stored of this lane's entry in the k-th of these slots */
  __device__ __forceinline__ StoredEntry load(int k) const
  {
    const int      place = __shfl_sync(AIJTC_ALL_LANES, place_, k);
    const unsigned mask  = __shfl_sync(AIJTC_ALL_LANES, mask_, k);
    const int      at    = place + (s_.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD) ? lane_ : __popc(mask & ((1u << lane_) - 1)));
    StoredEntry    entry = {0, 0, (mask >> lane_ & 1) != 0};

    if (!entry.on) return entry;
    entry.delta = LoadDeltaOfAnyForm(s_, at);
    if (s_.form & AIJTC_FORM_CONST) entry.raw = (uint64_t)__double_as_longlong(ConstValues::load(s_, (first_ + k) * s_.period + rest_));
    else entry.raw = LoadRawOfAnyForm(s_, isConstant(place) ? (place & (int)~AIJTC_SLOT_CONST) + rest_ : at);
    return entry;
  }
  /* What it is, once it is there: in lists the column is a load more */
  __device__ __forceinline__ Entry decode(int k, const StoredEntry &stored) const
  {
    const int at = __shfl_sync(AIJTC_ALL_LANES, base_, k) + (int)stored.delta;

    if (!stored.on) return {0.0, -1};
    return {ValueOfAnyForm(s_, stored.raw), list_ ? (int)__ldg(list_ + at) : ref_ + at};
  }

private:
  /* A slot with one value for each remainder, in a slice that has others */
  __device__ __forceinline__ bool isConstant(int where) const
  {
    return where < 0 && !(s_.form >> AIJTC_FORM_DELTA & 3);
  }

  const SliceView &s_;
  const PetscInt  *list_;
  int              group_, lane_, ref_, rest_;
  int              first_, base_, place_; /* of this lane's slot; place_: of the group's first entry */
  unsigned         mask_;
};

/* sums.add() for the slots of one row group. While X is on its way for one slot, what is stored of the next one is requested */
template <int R, class Sums>
__device__ __forceinline__ void ForGroup(const SliceView &s, const PetscInt *list, int group, int lane, int ref, int rest, Sums &sums)
{
  GroupSlots<R> slots(s, list, group, lane, ref, rest);

  for (int first = 0; first < s.slots; first += AIJTC_LANES) {
    const int count = min(s.slots - first, AIJTC_LANES);

    slots.heads(first);
    Entry entry = slots.decode(0, slots.load(0));

    for (int k = 0; k < count; k++) {
      sums.request(entry);
      const StoredEntry next = slots.load(k + 1); /* behind the last slot: nothing, or what nobody looks at */

      sums.add(entry);
      entry = slots.decode(k + 1, next);
    }
  }
}

/* By columns: to row `row`, -1 for none */
template <int K>
__device__ __forceinline__ void StoreColumns(const ColumnsView<K> &X, int row, const PetscScalar (&sum)[K])
{
  if (row < 0) return;
#pragma unroll
  for (int c = 0; c < K; c++) X.z[row + c * X.zstride] = sum[c];
}

/* By columns: K sums of this lane's row */
template <int K>
class ColumnSums {
public:
  __device__ __forceinline__ explicit ColumnSums(const ColumnsView<K> &X) : X_(X) { }

  __device__ __forceinline__ void request(const Entry &entry)
  {
#pragma unroll
    for (int c = 0; c < K; c++) b_[c] = entry.column < 0 ? 0.0 : __ldg(X_.x + (entry.column + c * X_.xstride));
  }
  __device__ __forceinline__ void add(const Entry &entry)
  {
    if (entry.column < 0) return;
#pragma unroll
    for (int c = 0; c < K; c++) sum_[c] = fma(entry.a, b_[c], sum_[c]);
  }
  __device__ __forceinline__ void store(int row) const
  {
    StoreColumns(X_, row, sum_);
  }

private:
  const ColumnsView<K> &X_;
  PetscScalar           sum_[K] = {}, b_[K];
};

/*
   By rows: lane l has columns 2 (l % P) and the next, P = K / 2. In pass p it takes the entry that lane source(p) has decoded. SUMS is P where every pass is of other rows, else 1.
   x: X by rows
*/
template <int K, AIJTCKind KIND>
class PairSums {
public:
  static constexpr int P = K / 2, SUMS = KIND == AIJTC_ROWS ? P : 1;

  __device__ __forceinline__ PairSums(const PetscScalar *x, int lane) : x_(reinterpret_cast<const ScalarPair *>(x) + lane % P), lane_(lane) { }

  __device__ __forceinline__ void request(const Entry &entry)
  {
#pragma unroll
    for (int p = 0; p < P; p++) {
      const int column = __shfl_sync(AIJTC_ALL_LANES, entry.column, source(p));

      on_[p] = column >= 0;
      b_[p]  = {0.0, 0.0};
      if (on_[p]) b_[p] = x_[(PetscCount)P * column];
    }
  }
  __device__ __forceinline__ void add(const Entry &entry)
  {
#pragma unroll
    for (int p = 0; p < P; p++) {
      const PetscScalar a   = __shfl_sync(AIJTC_ALL_LANES, entry.a, source(p));
      ScalarPair       &sum = sum_[SUMS == 1 ? 0 : p];

      if (!on_[p]) continue;
      sum.a = fma(a, b_[p].a, sum.a);
      sum.b = fma(a, b_[p].b, sum.b);
    }
  }

  /* Adds up what lanes have that differ in the bits from `first` to `last` of their number */
  __device__ __forceinline__ void fold(int first, int last)
  {
    for (int distance = first; distance < last; distance *= 2) {
      sum_[0].a += __shfl_xor_sync(AIJTC_ALL_LANES, sum_[0].a, distance);
      sum_[0].b += __shfl_xor_sync(AIJTC_ALL_LANES, sum_[0].b, distance);
    }
  }

  /* To row `row` of z, -1 for none. `row` as this lane decoded it */
  __device__ __forceinline__ void store(const ColumnsView<K> &X, int row)
  {
    if (KIND == AIJTC_TILE) fold(P, AIJTC_TILE_COLS);
#pragma unroll
    for (int p = 0; p < SUMS; p++) {
      const int to = __shfl_sync(AIJTC_ALL_LANES, row, source(p));

      if (to < 0 || (KIND == AIJTC_TILE && lane_ % AIJTC_TILE_COLS >= P)) continue;
      if (X.rows) X.rows[(PetscCount)P * to + lane_ % P] = sum_[p];
      else {
        X.z[to + 2 * (lane_ % P) * X.zstride]       = sum_[p].a;
        X.z[to + (2 * (lane_ % P) + 1) * X.zstride] = sum_[p].b;
      }
    }
  }
  __device__ __forceinline__ const ScalarPair &piece()
  {
    fold(P, AIJTC_LANES);
    return sum_[0];
  }

private:
  __device__ __forceinline__ int source(int p) const
  {
    return KIND == AIJTC_TILE ? lane_ / AIJTC_TILE_COLS * AIJTC_TILE_COLS + lane_ % AIJTC_TILE_COLS / P + AIJTC_TILE_COLS / P * p : lane_ / P + AIJTC_LANES / P * p;
  }

  const ScalarPair *x_;
  int               lane_;
  ScalarPair        sum_[SUMS] = {}, b_[P];
  bool              on_[P];
};

/* The row of place p of a slice that has one row a place, or -1 */
__device__ __forceinline__ int SliceRow(const LayoutView &A, const SliceView &s, int p, int m)
{
  const int row = s.form & AIJTC_FORM_RID ? __ldg(A.rid + s.row + p) : s.row + p;

  return row < m ? row : -1;
}

/* Row group `group` of a slice, by columns */
template <int R, int K>
__device__ __forceinline__ void ColumnsOfGroup(const LayoutView &A, PetscInt slice, int group, int m, const ColumnsView<K> &X)
{
  const int       lane = threadIdx.x % AIJTC_LANES;
  const SliceView s    = LoadSlice<R>(A, slice, A.bs);
  const int       row  = SliceRow(A, s, AIJTC_LANES * group + lane, m);
  const int       rest = row < 0 ? 0 : (int)(row % A.bs);
  ColumnSums<K>   sums(X);

  ForGroup<R>(s, ListOf(A, slice), group, lane, row - rest, rest, sums);
  sums.store(row);
}
