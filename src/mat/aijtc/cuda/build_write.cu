/*
   Method
     Writes the pattern stream, one warp a slice, walking its rows as the analysis did: the offsets of a slot less their minimum are the deltas, ballots are the masks, a count of the lanes that have one
     the place of an entry. Every lane keeps one of 32 slots, which are written together. Values are looked at only in slices of which the analysis counted fewer values than places: some of their slots
     are constant. Holes, and what fills the slice up to its deltas and to the next slice in both streams, are set to zero, so that equal matrices give equal bytes.

     Values that are stored as they are a gathered layout gets by the same walk: a value has the place of its delta, and its load from a row that lies anywhere is under way while the pattern is written. A kernel of its own for either
     waits, one for shared memory and the other for loads.

   Memory traffic
     4 bytes a nonzero and a row, 8 a row of a gathered layout, and the pattern stream. Slices of consecutive rows, and those of gathered layouts, read their columns once, through shared memory (build_stage.cuh). With values 8 bytes a nonzero more, in
     sectors, and as many written. 26.5 million nonzeros of a 27-point matrix of 100^3 rows: 110 MB, 26 us at 4.3 TB/s; with 4-byte deltas 216 MB, 50 us.
*/
#include "build_values.cuh"

namespace aijtcbuild
{
namespace
{
/* What the kernel needs of the layout */
struct Streams {
  AIJTCSlice     *slice;
  uint8_t        *pattern, *value;
  const PetscInt *rid;
  Places          places; /* of gathered layouts */
};

/* The parts of a slice in the pattern stream */
template <int R>
struct PatternStore {
  AIJTCSlot *slot;
  uint32_t  *mask; /* NULL: none are stored */
  uint8_t   *head_end, *delta, *end;
  int        width; /* bytes of a delta */
  AIJTCSlot  held;  /* of the slots in hand, the one that this lane will write */
  uint32_t   held_mask[R];

  __device__ __forceinline__ PatternStore(uint8_t *stream, const AIJTCSlice &slice)
  {
    const int    form   = (int)(slice.form >> AIJTC_FORM_DELTA & 3);
    const size_t places = slice.form & AIJTC_FORM_SPREAD ? (size_t)AIJTC_LANES * R * slice.slots : slice.entries;
    const size_t head   = (size_t)slice.slots * (sizeof(AIJTCSlot) + (slice.form & AIJTC_FORM_FULL ? 0 : R * sizeof(uint32_t)));
    uint8_t     *begin  = stream + (size_t)AIJTC_UNIT * slice.pattern;

    width    = form == 3 ? 4 : form;
    slot     = reinterpret_cast<AIJTCSlot *>(begin);
    mask     = slice.form & AIJTC_FORM_FULL ? nullptr : reinterpret_cast<uint32_t *>(slot + slice.slots);
    head_end = begin + head;
    delta    = begin + (head + AIJTC_DELTA_ALIGN - 1) / AIJTC_DELTA_ALIGN * AIJTC_DELTA_ALIGN;
    end      = delta + places * width;
  }

  /* Slots in their order; 32 are written together */
  __device__ __forceinline__ void PutHead(const AIJTCSlice &slice, int32_t t, int32_t base, uint32_t where, const unsigned lanes[R], int lane)
  {
    const int32_t first = t / AIJTC_LANES * AIJTC_LANES, mine = first + lane;

    if (mine == t) {
      held = {base, where};
#pragma unroll
      for (int r = 0; r < R; r++) held_mask[r] = lanes[r];
    }
    if ((t + 1 < slice.slots && t + 1 < first + AIJTC_LANES) || mine > t) return;
    slot[mine] = held;
    if (!mask) return;
#pragma unroll
    for (int r = 0; r < R; r++) mask[(size_t)mine * R + r] = held_mask[r];
  }

  __device__ __forceinline__ void PutDelta(int32_t at, uint32_t d)
  {
    if (width == 1) delta[at] = (uint8_t)d;
    else if (width == 2) reinterpret_cast<uint16_t *>(delta)[at] = (uint16_t)d;
    else if (width == 4) reinterpret_cast<uint32_t *>(delta)[at] = d;
  }
};

static_assert((int)AIJTC_DELTA_ALIGN == (int)AIJTC_UNIT && (int)AIJTC_UNIT <= (int)AIJTC_LANES, "FillUnit() fills up to deltas and slices, a byte a lane");

/* Zeros from `end` to the next multiple of AIJTC_UNIT after `begin` */
__device__ __forceinline__ void FillUnit(const uint8_t *begin, uint8_t *end, int lane)
{
  const int rest = (int)((size_t)(end - begin) % AIJTC_UNIT);

  if (rest && lane < AIJTC_UNIT - rest) end[lane] = 0;
}

/* look: slots may be constant, which the values tell */
template <int R>
__device__ void WriteMerged(const AIJTCSlice &slice, const SliceRows<R> &rows, const Csr &A, int period, bool look, PatternStore<R> &pattern, int lane)
{
  int32_t  where = 0;
  Merge<R> merge;

  merge.Start(rows, A.j);
  for (int32_t t = 0; t < slice.slots; t++) {
    const int32_t base = merge.Least();
    unsigned      mask[R];
    int           n = 0, places = 0;
    Slot<R>       slot;
    bool          constant = false, complete;

#pragma unroll
    for (int r = 0; r < R; r++) {
      slot.has[r]  = merge.off[r] == base;
      slot.bits[r] = look && slot.has[r] ? BitsOf(A.a, rows.begin[r] + merge.taken[r]) : 0;
      if (slot.has[r]) merge.Advance(rows, A.j, r);
      mask[r] = __ballot_sync(ALL_LANES, slot.has[r]);
      n += __popc(mask[r]);
      places += __popc(PlacedLanes(slice, mask[r]));
    }
    constant = look && n > period && slot.Uniform(rows.rem, period, &complete);
    pattern.PutHead(slice, t, base, (uint32_t)where | (constant ? AIJTC_SLOT_CONST : 0), mask, lane);
    where += constant ? period : places;
  }
}

/* Values that are written with the pattern (VALUES), 8 bytes each, of one row a lane */
template <bool VALUES>
struct ValueRow {
  const PetscScalar *from; /* the row's first */
  PetscScalar       *to;   /* the slice's */

  /* Of a lane that has this slot, or has not */
  __device__ __forceinline__ PetscScalar load(bool has, int32_t t) const
  {
    if constexpr (VALUES) return has ? from[t] : 0.0;
    else return 0.0;
  }
  __device__ __forceinline__ void store(int32_t at, PetscScalar value) const
  {
    if constexpr (VALUES) to[at] = value;
  }
};

/* One slot; off, value: of this lane, INT_MAX without an entry. Returns the places behind it */
template <int R, bool VALUES>
__device__ __forceinline__ int32_t WriteSlot(const SliceShape &shape, const AIJTCSlice &slice, const SliceRows<R> &rows, int32_t t, const int32_t off[R], PetscScalar value, int32_t before, PatternStore<R> &pattern, const ValueRow<VALUES> &values,
                                             int lane)
{
  int32_t  base = INT_MAX;
  unsigned mask[R];

#pragma unroll
  for (int r = 0; r < R; r++) {
    mask[r] = __ballot_sync(ALL_LANES, rows.Has(r, t));
    base    = min(base, off[r]);
  }
  base = shape.gathered ? 0 : __reduce_min_sync(ALL_LANES, base);
  pattern.PutHead(slice, t, base, (uint32_t)before, mask, lane);
#pragma unroll
  for (int r = 0; r < R; r++) {
    const unsigned placed = PlacedLanes(slice, mask[r]);
    const int32_t  at     = before + __popc(placed & ((1u << lane) - 1));

    if (placed >> lane & 1) {
      pattern.PutDelta(at, mask[r] >> lane & 1 ? (uint32_t)off[r] - (uint32_t)base : 0);
      values.store(at, value);
    }
    before += __popc(placed);
  }
  return before;
}

/* The columns of AT_ONCE slots, and values, are requested before the first is written, which a load behind it would have to wait for */
template <int AT_ONCE, int R, bool VALUES>
__device__ void WriteCSR(const SliceShape &shape, const AIJTCSlice &slice, const SliceRows<R> &rows, const Csr &A, PatternStore<R> &pattern, const ValueRow<VALUES> &values, int lane)
{
  int32_t before = 0; /* places */

  for (int32_t first = 0; first < slice.slots; first += AT_ONCE) {
    int32_t     off[AT_ONCE][R];
    PetscScalar value[AT_ONCE];

#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      value[u] = values.load(rows.Has(0, first + u), first + u);
#pragma unroll
      for (int r = 0; r < R; r++) off[u][r] = rows.Has(r, first + u) ? OffsetOf(A.j, rows.Place(r, first + u), rows.ref[r]) : INT_MAX;
    }
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      if (first + u < slice.slots) before = WriteSlot(shape, slice, rows, first + u, off[u], value[u], before, pattern, values, lane);
    }
  }
}

/* VALUES: with the values, of a gathered layout */
template <int R, bool VALUES>
__global__ void __launch_bounds__(THREADS) WriteKernel(SliceShape shape, Csr A, Streams to, const Units *__restrict__ unit, Stage stage, PetscInt begin, PetscInt end)
{
  const int      lane = (int)threadIdx.x % AIJTC_LANES, warps = (int)blockDim.x / AIJTC_LANES;
  const PetscInt s = begin + (PetscInt)blockIdx.x * warps + (PetscInt)threadIdx.x / AIJTC_LANES;

  if (s >= end) return;

  AIJTCSlice slice = to.slice[s];

  slice.pattern = (uint32_t)unit[s].pattern;
  slice.value   = (uint32_t)unit[s].value;
  if (lane == 0) {
    to.slice[s].pattern = slice.pattern;
    to.slice[s].value   = slice.value;
  }
  if (!slice.entries) return;

  const bool       look  = !VALUES && IsMerged(shape, slice) && HasConstantSlots(slice, R);
  uint8_t         *value = to.value + (size_t)AIJTC_UNIT * slice.value;
  PatternStore<R>  pattern(to.pattern, slice);
  SliceRows<R>     rows;
  ValueRow<VALUES> values = {};

  if (shape.gathered) rows.LoadRuns(slice, to.places.run, lane);
  else rows.Load(shape, slice, to.rid, A.i, lane);

  const Csr near = StageSlice(stage, slice, look, rows, shape.gathered ? Csr{A.i, to.places.place, A.a} : A, lane); /* no slot of a gathered layout is constant, so that no value is looked at, whose order is another */

  if constexpr (VALUES) {
    const PetscInt row = to.rid[slice.row + lane];

    values = {A.a + (row < 0 ? 0 : A.i[row]), reinterpret_cast<PetscScalar *>(value)};
  }
  WaitForStage();
  if (!VALUES && IsMerged(shape, slice)) WriteMerged(slice, rows, near, shape.period(), look, pattern, lane);
  else WriteCSR<VALUES ? 4 : 8 / R>(shape, slice, rows, near, pattern, values, lane);
  FillUnit(reinterpret_cast<uint8_t *>(pattern.slot), pattern.head_end, lane);
  FillUnit(reinterpret_cast<uint8_t *>(pattern.slot), pattern.end, lane);
  FillUnit(value, value + (size_t)slice.values * ValueWidth(slice), lane);
}

/* mixed: some slices have constant slots and others, and their values are looked at */
template <int R, bool VALUES>
PetscErrorCode LaunchWrite(const AIJTCLayout *layout, const Span &span, const Csr &A, const Places &places, const Units unit[], bool mixed, cudaStream_t stream)
{
  constexpr int    most_warps = 4;
  const SliceShape shape      = ShapeOf(layout, span.kind);
  const Streams    to         = {layout->slice, layout->pattern, layout->value, layout->rid, places};
  StagePlan        plan;

  PetscFunctionBegin;
  PetscCall(PlanStage(layout, span, sizeof(PetscInt), mixed ? sizeof(PetscScalar) : 0, 0, most_warps, 1, &plan));
  PetscCall(AllowShared(WriteKernel<R, VALUES>, plan.shared));
  WriteKernel<R, VALUES><<<BlocksFor(span.count, plan.warps), AIJTC_LANES * plan.warps, plan.shared, stream>>>(shape, A, to, unit, plan.stage, span.begin, span.begin + span.count);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode WritePattern(const AIJTCLayout *layout, const Csr &A, const Places &places, const Units unit[], bool mixed, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!places.place) PetscCall(ForSpans(layout, [&](auto groups, const Span &span) { return LaunchWrite<decltype(groups)::value, false>(layout, span, A, places, unit, mixed, stream); }));
  else {
    const Span all = {AIJTC_ROWS, true, 0, layout->nslices[AIJTC_ROWS]}; /* places lie in the order of the slices */

    PetscCall(PatternHasValues(layout) ? LaunchWrite<1, true>(layout, all, A, places, unit, false, stream) : LaunchWrite<1, false>(layout, all, A, places, unit, false, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
