/*
   How a warp walks over the rows of a slice, the same for analysis, writing and refresh.

   Method
     SliceRows holds the R rows of each lane: where their entries begin, how many there are, what the columns are counted from. There are two orders of slots:
       CSR order   slot t takes entry first + step t of the row. Piece of a long row: step 32, first lane; tiles: step 4, first lane % 4; lane-per-row slices: step 1, first 0.
       Merged      the slot after an offset is that of the least offset not yet passed in any row: a minimum over the lanes' cursors, each at the first entry of its row not yet taken.
                   Rows must ascend strictly; where one does not, the minimum does not grow, which tells.

   Memory traffic
     A lane reads its row one entry after the other, in shared memory where the slice was copied there (build_stage.cuh); else each 32-byte sector comes from memory and serves the following slots from
     L1, if L1 holds the rows of all its warps.
*/
#pragma once

#include "build.cuh"
#include <climits>

namespace aijtcbuild
{
/* What a lane must know of a slice's kind, the same in all lanes */
struct SliceShape {
  AIJTCKind kind;
  PetscInt  m;
  int       bs;
  bool      gathered;
  bool      ordered; /* all slices have their slots in the order of the rows' entries */

  __device__ __forceinline__ int period() const { return kind == AIJTC_ROWS ? bs : 1; }
};

static inline SliceShape ShapeOf(const AIJTCLayout *layout, AIJTCKind kind)
{
  const bool gathered = layout->params.gather > 0, ordered = gathered || layout->params.near || !(layout->params.compress & AIJTC_COMPRESS_PATTERN);

  return {kind, layout->m, (int)layout->params.bs, gathered, ordered};
}

/* Does the slice have its slots in merged order? */
__device__ __forceinline__ bool IsMerged(const SliceShape &shape, const AIJTCSlice &slice)
{
  return shape.kind == AIJTC_ROWS && !(slice.form >> AIJTC_FORM_DELTA & 3);
}

/* Has the slice constant slots besides others? Each of them stores fewer values than it has places */
__device__ __forceinline__ bool HasConstantSlots(const AIJTCSlice &slice, int groups)
{
  const int64_t places = slice.form & AIJTC_FORM_SPREAD ? (int64_t)AIJTC_LANES * groups * slice.slots : slice.entries;

  return !(slice.form & AIJTC_FORM_CONST) && slice.values < places;
}

template <int R>
struct SliceRows {
  PetscInt begin[R]; /* the row's first entry in the CSR arrays, or in the places (build.cuh) */
  int32_t  len[R];   /* entries, none if there is no row */
  int32_t  ref[R];
  int32_t  rem[R]; /* remainder of the row by the slice's period */
  int32_t  step, first;

  __device__ __forceinline__ void Load(const SliceShape &shape, const AIJTCSlice &slice, const PetscInt *__restrict__ rid, const PetscInt *__restrict__ i, int lane)
  {
    const bool tile = shape.kind == AIJTC_TILE, piece = shape.kind == AIJTC_LONG;

    step  = piece ? AIJTC_LANES : tile ? AIJTC_TILE_COLS : 1;
    first = piece ? lane : tile ? lane % AIJTC_TILE_COLS : 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      const PetscInt place = slice.row + (piece ? 0 : tile ? lane / AIJTC_TILE_COLS : AIJTC_LANES * r + lane);
      const PetscInt row   = slice.form & AIJTC_FORM_RID ? rid[place] : place;

      begin[r] = 0;
      len[r] = ref[r] = rem[r] = 0;
      if (row < 0 || row >= shape.m) continue;
      begin[r] = i[row] + slice.first;
      len[r]   = (int32_t)(i[row + 1] - begin[r]);
      if (piece) {
        len[r] = min(len[r], (int32_t)(AIJTC_PIECE * AIJTC_LANES));
        ref[r] = lane;
      } else {
        ref[r] = shape.gathered ? 0 : (int32_t)(row - row % shape.bs);
        rem[r] = shape.kind == AIJTC_ROWS ? (int32_t)(row % shape.bs) : 0;
      }
    }
  }

  /* Rows of a gathered layout, all of which are short and listed from rid[0] on, by the places of their columns in the list */
  __device__ __forceinline__ void LoadRuns(const AIJTCSlice &slice, const Run *__restrict__ run, int lane)
  {
    step  = 1;
    first = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      const Run mine = run[slice.row + AIJTC_LANES * r + lane];

      begin[r] = mine.begin;
      len[r]   = (int32_t)(mine.end - mine.begin);
      ref[r] = rem[r] = 0;
    }
  }

  /* Of the longest row */
  __device__ __forceinline__ int32_t Longest() const
  {
    int32_t most = 0;

#pragma unroll
    for (int r = 0; r < R; r++) most = max(most, len[r]);
    return __reduce_max_sync(ALL_LANES, most);
  }

  /* Of all rows: several lanes share a row of a tile, all the row of a piece */
  __device__ __forceinline__ int32_t Entries() const
  {
    int32_t sum = 0;

#pragma unroll
    for (int r = 0; r < R; r++) sum += first == 0 ? len[r] : 0;
    return __reduce_add_sync(ALL_LANES, sum);
  }

  __device__ __forceinline__ bool Has(int r, int32_t t) const
  {
    return first + step * t < len[r];
  }
  __device__ __forceinline__ PetscInt Place(int r, int32_t t) const
  {
    return begin[r] + first + step * t;
  }
};

/* Column less ref: less than INT_MAX, since columns are. In any memory, hence no __ldg() */
__device__ __forceinline__ int32_t OffsetOf(const PetscInt *j, PetscInt place, int32_t ref)
{
  return (int32_t)j[place] - ref;
}

/* Cursors of the merged order */
template <int R>
struct Merge {
  static constexpr int32_t end = INT_MAX; /* of the row: no offset */

  int32_t taken[R], off[R];

  __device__ __forceinline__ void Read(const SliceRows<R> &rows, const PetscInt *j, int r) { off[r] = taken[r] < rows.len[r] ? OffsetOf(j, rows.begin[r] + taken[r], rows.ref[r]) : end; }
  __device__ __forceinline__ void Start(const SliceRows<R> &rows, const PetscInt *j)
  {
#pragma unroll
    for (int r = 0; r < R; r++) {
      taken[r] = 0;
      Read(rows, j, r);
    }
  }
  __device__ __forceinline__ int32_t Least() const
  {
    int32_t least = off[0];

#pragma unroll
    for (int r = 1; r < R; r++) least = min(least, off[r]);
    return __reduce_min_sync(ALL_LANES, least);
  }
  __device__ __forceinline__ void Advance(const SliceRows<R> &rows, const PetscInt *j, int r)
  {
    taken[r]++;
    Read(rows, j, r);
  }
};

__device__ __forceinline__ uint64_t BitsOf(const PetscScalar *a, PetscInt place)
{
  return (uint64_t)__double_as_longlong(a[place]);
}

__device__ __forceinline__ bool IsFloat(uint64_t bits)
{
  const double v = __longlong_as_double((long long)bits);

  return v == (double)(float)v;
}

/* One slot: which lanes have an entry, its value's bits */
template <int R>
struct Slot {
  bool     has[R];
  uint64_t bits[R];

  __device__ __forceinline__ int Count() const
  {
    int n = 0;

#pragma unroll
    for (int r = 0; r < R; r++) n += __popc(__ballot_sync(ALL_LANES, has[r]));
    return n;
  }

  /* The bits of the first entry of a row remainder; false if there is none. The same in all lanes. */
  __device__ __forceinline__ bool First(const int32_t rem[R], int p, uint64_t *of) const
  {
    bool found = false;

#pragma unroll
    for (int r = 0; r < R; r++) {
      if (found) continue;
      const unsigned lanes = __ballot_sync(ALL_LANES, has[r] && rem[r] == p);

      if (lanes) {
        *of   = __shfl_sync(ALL_LANES, bits[r], __ffs((int)lanes) - 1);
        found = true;
      }
    }
    return found;
  }

  /* Do entries of equal row remainder have the same bits? complete: there is an entry of each */
  __device__ __forceinline__ bool Uniform(const int32_t rem[R], int period, bool *complete) const
  {
    bool same = true;

    *complete = true;
    for (int p = 0; p < period; p++) {
      uint64_t of = 0;

      if (!First(rem, p, &of)) *complete = false;
#pragma unroll
      for (int r = 0; r < R; r++) same = same && (!has[r] || rem[r] != p || bits[r] == of);
    }
    return __all_sync(ALL_LANES, same);
  }
};
} // namespace aijtcbuild
