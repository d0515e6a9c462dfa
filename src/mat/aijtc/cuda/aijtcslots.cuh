/*
   How a warp reads a slice: the decoder that every product shares.

   Method
     A batch of U slots is requested at once: first the slots' heads and masks (the same address in all lanes: one broadcast each), then, nothing waiting in between, values and deltas, then the gathered
     x. A product whose launch overlaps the one before has all but x on its way, or there, when that is over. In packed slices the place of a lane's entry is a count of mask bits, and lanes without an entry request nothing. In spread ones every lane has a place, so that the lanes of a slot read whole
     sectors and places are known before the masks arrive; what a hole holds, zero bits, is thrown away or multiplied by -0.0.

     What is known of a slice decides which code reads it: bytes of a delta, form of the values, masks or none, rows consecutive with bs = 1 or not. All of it is the same for the whole warp.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     A slot: 8 bytes, and 4 R where there are masks; a place: its delta (0, 1, 2, 4 bytes) and its value (0, 1, 4, 8 bytes), each read once and past the caches (x should stay there)

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <../src/parts/cuda/overlap.cuh>
#include <type_traits>

constexpr unsigned AIJTC_ALL_LANES = 0xffffffffu;

/* What a warp does in the batch of slots from t on between its requests for what is the layout's and those for x */
struct NothingBeforeX {
  __device__ __forceinline__ void operator()(int) const { }
};

/* The layout does not change: only x has to wait for the launch before. To wait again costs nothing, and keeps the compiler from asking for an x before everything else of its batch has been asked for */
struct LaunchBeforeX {
  __device__ __forceinline__ void operator()(int) const { WaitForLaunchBefore(); }
};

struct LaunchBeforeFirstX {
  __device__ __forceinline__ void operator()(int t) const
  {
    if (!t) WaitForLaunchBefore();
  }
};

/* What a product needs of an AIJTCLayout, as a kernel argument */
struct LayoutView {
  const AIJTCSlice  *slice;
  const uint8_t     *pattern, *value;
  const PetscScalar *dict;
  const PetscInt    *rid;
  PetscInt           bs;
  PetscInt           gather; /* as in AIJTCParams */
  const PetscInt    *list_start, *list;
};

static inline LayoutView AIJTCLayoutView(const AIJTCLayout &A)
{
  return {A.slice, A.pattern, A.value, A.dict, A.rid, A.params.bs, A.params.gather, A.list_start, A.list};
}

/* A slice, the same in all lanes */
struct SliceView {
  const AIJTCSlot   *slot;
  const uint32_t    *mask;
  const uint8_t     *delta, *value;
  const PetscScalar *dict;
  int                row, slots, period;
  uint32_t           form;
};

template <int R>
__device__ __forceinline__ SliceView LoadSlice(const LayoutView &A, PetscInt s, int period)
{
  const int4 *d   = reinterpret_cast<const int4 *>(A.slice + s);
  const int4  low = __ldg(d), high = __ldg(d + 1);
  SliceView   v;

  v.row    = low.z;
  v.slots  = high.x;
  v.form   = (uint32_t)high.w;
  v.period = period;
  v.dict   = A.dict;
  v.slot   = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * (uint32_t)low.x);
  v.mask   = reinterpret_cast<const uint32_t *>(v.slot + v.slots);
  v.delta  = reinterpret_cast<const uint8_t *>(v.slot) + ((v.form & AIJTC_FORM_FULL ? 8 : 8 + 4 * R) * v.slots + AIJTC_DELTA_ALIGN - 1) / AIJTC_DELTA_ALIGN * AIJTC_DELTA_ALIGN;
  v.value  = A.value + (size_t)AIJTC_UNIT * (uint32_t)low.y;
  return v;
}

/* ---- values: how entry `at` of a slice is read */

struct DoubleValues {
  static constexpr bool                         constant = false, zeros = true; /* zeros: where there is no entry it reads as 0.0, in slices with deltas */
  typedef PetscScalar                           Raw;
  static __device__ __forceinline__ Raw         load(const SliceView &s, int at) { return __ldcs(reinterpret_cast<const PetscScalar *>(s.value) + at); }
  static __device__ __forceinline__ PetscScalar get(const SliceView &, Raw raw) { return raw; }
};

struct FloatValues {
  static constexpr bool                         constant = false, zeros = true;
  typedef float                                 Raw;
  static __device__ __forceinline__ Raw         load(const SliceView &s, int at) { return __ldcs(reinterpret_cast<const float *>(s.value) + at); }
  static __device__ __forceinline__ PetscScalar get(const SliceView &, Raw raw) { return (PetscScalar)raw; }
};

struct DictValues {
  static constexpr bool                         constant = false, zeros = false;
  typedef uint8_t                               Raw;
  static __device__ __forceinline__ Raw         load(const SliceView &s, int at) { return __ldcs(s.value + at); }
  static __device__ __forceinline__ PetscScalar get(const SliceView &s, Raw raw) { return __ldg(s.dict + raw); }
};

/* AIJTC_FORM_CONST: `at` is slot * period + remainder */
struct ConstValues {
  static constexpr bool                         constant = true, zeros = false;
  typedef PetscScalar                           Raw;
  static __device__ __forceinline__ Raw         load(const SliceView &s, int at) { return __ldg(reinterpret_cast<const PetscScalar *>(s.value) + at); }
  static __device__ __forceinline__ PetscScalar get(const SliceView &, Raw raw) { return raw; }
};

/* ---- deltas */

template <int BYTES>
__device__ __forceinline__ uint32_t LoadDelta(const SliceView &s, int at)
{
  if constexpr (BYTES == 1) return __ldcs(s.delta + at);
  else if constexpr (BYTES == 2) return __ldcs(reinterpret_cast<const uint16_t *>(s.delta) + at);
  else if constexpr (BYTES == 4) return __ldcs(reinterpret_cast<const uint32_t *>(s.delta) + at);
  else return 0;
}

/* ---- masks of one slot. They are 8-byte aligned where R is 2 or 4 */

template <int R>
__device__ __forceinline__ void LoadMasks(const uint32_t *from, unsigned (&mask)[R])
{
  if constexpr (R == 1) mask[0] = __ldg(from);
  else {
#pragma unroll
    for (int r = 0; r < R; r += 2) {
      const uint2 pair = __ldg(reinterpret_cast<const uint2 *>(from + r));

      mask[r]     = pair.x;
      mask[r + 1] = pair.y;
    }
  }
}

/* ---- where the lanes' entries point: column = ref(r) + base + delta. STEP: ref(r) = ref(0) + STEP r, 0 if nothing is known */

template <int R, int STEP>
struct Refs {
  int ref[STEP ? 1 : R];
  int rest[STEP ? 1 : R]; /* the row's remainder by the period, 0 with a period of 1 */

  __device__ __forceinline__ int operator()(int r) const { return STEP ? ref[0] + STEP * r : ref[r]; }
  __device__ __forceinline__ int remainder(int r) const { return STEP ? 0 : rest[r]; }
};

/* How entries are placed, and whether there are masks: AIJTC_FORM_FULL; AIJTC_FORM_SPREAD, full or not; packed */
enum Placing {
  PLACING_FULL,
  PLACING_SPREAD,
  PLACING_PACKED
};

/*
   Slots t .. t+U-1 of a slice. before_x(t): above. add(r, on, a, b) is called in ascending (u, r): value a and gathered b of this lane's entry, on: it has one, or a b may be added all the same. Where there is none, a is 0.0, and so is b, or
   -0.0, where a b may be added: it changes no sum. Additions without a condition leave their predicates to the loads of x, of which those of a batch are to be under way together: there are seven.
   PART: some of the slots may not exist. x: a pointer, or what has x[column].
*/
template <int R, int U, int BYTES, class Values, Placing PLACING, bool PART, int STEP, class X, class Before, class Add>
__device__ __forceinline__ void ForBatch(const SliceView &s, int t, int lane, const Refs<R, STEP> &refs, const X &x, Before before_x, Add add)
{
  constexpr bool       FULL = PLACING == PLACING_FULL, harmless = R == 1 && BYTES && Values::zeros; /* with more row groups the condition costs less than the registers */
  const unsigned       mine = 1u << lane, below = mine - 1;
  AIJTCSlot            head[U];
  unsigned             mask[U][R];
  typename Values::Raw raw[U][R];
  int                  col[U][R];
  PetscScalar          b[U][R];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const bool exists = !PART || t + u < s.slots, masked = exists && !FULL && !(s.form & AIJTC_FORM_FULL);
    int2       h = make_int2(0, 0);

    if (exists) h = __ldg(reinterpret_cast<const int2 *>(s.slot + t + u));
    head[u].base  = h.x;
    head[u].where = (uint32_t)h.y;
#pragma unroll
    for (int r = 0; r < R; r++) mask[u][r] = exists ? AIJTC_ALL_LANES : 0;
    if (masked) LoadMasks<R>(s.mask + R * (t + u), mask[u]);
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    const bool exists = !PART || t + u < s.slots, constant = !Values::constant && BYTES == 0 && (head[u].where & AIJTC_SLOT_CONST);
    const int  first  = BYTES && PLACING != PLACING_PACKED ? AIJTC_LANES * R * (t + u) : (int)(head[u].where & ~AIJTC_SLOT_CONST); /* known, where it can be, before the head is there */
    int        before = first;

#pragma unroll
    for (int r = 0; r < R; r++) {
      const bool on   = (mask[u][r] & mine) != 0;
      const int  at   = PLACING == PLACING_PACKED ? before + __popc(mask[u][r] & below) : first + AIJTC_LANES * r + lane;
      const int  from = Values::constant ? (t + u) * s.period + refs.remainder(r) : (constant ? first + refs.remainder(r) : at);
      const bool has  = Values::constant || PLACING != PLACING_PACKED ? exists : on; /* a value lies there, whether or not it is this lane's entry */

      raw[u][r] = 0;
      col[u][r] = refs(r) + head[u].base;
      if (has) raw[u][r] = Values::load(s, from);
      if (BYTES && (PLACING == PLACING_PACKED ? on : exists)) col[u][r] += (int)LoadDelta<BYTES>(s, at);
      if (PLACING == PLACING_PACKED) before += __popc(mask[u][r]);
    }
  }
  before_x(t);
#pragma unroll
  for (int u = 0; u < U; u++) {
#pragma unroll
    for (int r = 0; r < R; r++) {
      const bool on = FULL && !PART ? true : (mask[u][r] & mine) != 0;

      b[u][r] = on ? x[col[u][r]] : (harmless ? -0.0 : 0.0);
    }
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
#pragma unroll
    for (int r = 0; r < R; r++) {
      const bool on = FULL && !PART ? true : (mask[u][r] & mine) != 0;

      add(r, harmless || on, harmless || on ? Values::get(s, raw[u][r]) : 0.0, b[u][r]);
    }
  }
}

template <int R, int U, int BYTES, class Values, Placing PLACING, int STEP, class X, class Before, class Add>
__device__ __forceinline__ void ForSlots(const SliceView &s, int lane, const Refs<R, STEP> &refs, const X &x, Before before_x, Add add)
{
  constexpr bool once  = !std::is_same_v<Before, NothingBeforeX> && BYTES == 0 && STEP == 0; /* columns are known with the slots' heads, and are no constants apart: from the second batch on x and values are better asked for in any order */
  constexpr bool alike = PLACING == PLACING_PACKED && STEP == 0;                             /* one text for whole batches and the last one: masks decide what is read in any case */
  int            t     = 0;

  if constexpr (alike) {
    for (; t < s.slots; t += U) ForBatch<R, U, BYTES, Values, PLACING, true, STEP>(s, t, lane, refs, x, before_x, add);
    return;
  }
  if constexpr (once) {
    if (U <= s.slots) {
      ForBatch<R, U, BYTES, Values, PLACING, false, STEP>(s, 0, lane, refs, x, before_x, add);
      for (t = U; t + U <= s.slots; t += U) ForBatch<R, U, BYTES, Values, PLACING, false, STEP>(s, t, lane, refs, x, NothingBeforeX(), add);
    }
  } else {
    for (; t + U <= s.slots; t += U) ForBatch<R, U, BYTES, Values, PLACING, false, STEP>(s, t, lane, refs, x, before_x, add);
  }
  if (t < s.slots) ForBatch<R, U, BYTES, Values, PLACING, true, STEP>(s, t, lane, refs, x, before_x, add);
}

template <int R, int U, int BYTES, Placing PLACING, int STEP, class X, class Before, class Add>
__device__ __forceinline__ void ForSlotsOfValues(const SliceView &s, int lane, const Refs<R, STEP> &refs, const X &x, Before before_x, Add add)
{
  constexpr bool stores = PLACING == PLACING_SPREAD && BYTES == 0 && (STEP || !std::is_same_v<Before, NothingBeforeX>); /* slices that are spread and not full store values where they store no deltas */
  const uint32_t values = s.form >> AIJTC_FORM_VALUE & 3;

  if constexpr (!stores) {
    if (s.form & AIJTC_FORM_CONST) {
      ForSlots<R, U, BYTES, ConstValues, PLACING, STEP>(s, lane, refs, x, before_x, add);
      return;
    }
  }
  if (values == AIJTC_VALUE_DOUBLE) ForSlots<R, U, BYTES, DoubleValues, PLACING, STEP>(s, lane, refs, x, before_x, add);
  else if (values == AIJTC_VALUE_FLOAT) ForSlots<R, U, BYTES, FloatValues, PLACING, STEP>(s, lane, refs, x, before_x, add);
  else ForSlots<R, U, BYTES, DictValues, PLACING, STEP>(s, lane, refs, x, before_x, add);
}

template <int R, int U, Placing PLACING, class X, class Before, class Add>
__device__ __forceinline__ void ForSlotsOfDeltas(const SliceView &s, int lane, const Refs<R, 0> &refs, const X &x, Before before_x, Add add)
{
  switch (s.form >> AIJTC_FORM_DELTA & 3) {
  case 0:
    ForSlotsOfValues<R, U, 0, PLACING>(s, lane, refs, x, before_x, add);
    break;
  case 1:
    ForSlotsOfValues<R, U, 1, PLACING>(s, lane, refs, x, before_x, add);
    break;
  case 2:
    ForSlotsOfValues<R, U, 2, PLACING>(s, lane, refs, x, before_x, add);
    break;
  default:
    ForSlotsOfValues<R, U, 4, PLACING>(s, lane, refs, x, before_x, add);
  }
}

/* All slots of a slice of any form: before_x(t) and add(r, on, a, b), slots ascending; nothing of both where there are none.
   Slices that lack nothing go the way of spread ones, but in products, where they have no deltas, one of their own, on which no mask takes a predicate from the loads of x: three unknowns 40^3, values compressed, 20.6 -> 19.4 us, a dense
   row among short ones 15.0 -> 13.8. Solvers, which keep more in registers, are up to 1.6 % slower with one way more */
template <int R, int U, class X, class Before, class Add>
__device__ __forceinline__ void ForSlotsOfAnyForm(const SliceView &s, int lane, const Refs<R, 0> &refs, const X &x, Before before_x, Add add)
{
  constexpr bool product = !std::is_same_v<Before, NothingBeforeX>;

  if constexpr (product) {
    if (s.form & AIJTC_FORM_FULL && !(s.form >> AIJTC_FORM_DELTA & 3)) {
      ForSlotsOfValues<R, U, 0, PLACING_FULL>(s, lane, refs, x, before_x, add);
      return;
    }
  }
  if (s.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD)) ForSlotsOfDeltas<R, U, PLACING_SPREAD>(s, lane, refs, x, before_x, add);
  else ForSlotsOfDeltas<R, U, PLACING_PACKED>(s, lane, refs, x, before_x, add);
}
