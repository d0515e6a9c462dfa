/*
   Method
     Values of the pattern into the forms that the slices have, one warp a slice: of a refresh, and of a build once the pattern stream is written, unless values are written with it (build_write.cu). In CSR order the entry of a slot is known; in merged
     order every lane counts the mask bits that it has passed, which is how many entries of its row it has taken. Columns are not read. The masks of 32 slots are read at once, one slot a lane, while
     the values of a slice of consecutive rows are on the way to shared memory (build_stage.cuh). A value that its form does not hold sets a flag; the host reads it, and so waits, only if some form can
     fail.

     Where every place stores 8 bytes, which no value can fail to fit, a warp takes one row group of a slice, in a kernel that has nothing to tell forms apart: a group needs less room in shared memory, so that more warps
     are under way, and fewer instructions. Not where slices are small anyway.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     8 bytes a nonzero and 4 a row read, the masks of slices in merged order, the values written. A 7-point matrix of 256^3 rows with stored values: 1.04 GB read, 0.94 GB written: 460 us at 4.3 TB/s; a
     27-point one of 100^3 rows: 0.42 GB, 100 us.
*/
#include "build_values.cuh"

namespace aijtcbuild
{
namespace
{
/* What the kernels need of the layout, and the values */
struct ValuesView {
  const AIJTCSlice  *slice;
  const uint8_t     *pattern;
  uint8_t           *value;
  const PetscInt    *rid, *start;
  const PetscScalar *dict, *a;
  int                ndict;
  int               *misfit;
};

/* Slots from a multiple of AIJTC_LANES on, one a lane; behind the last without entries */
template <int R>
struct SlotHeads {
  uint32_t where, mask[R];

  __device__ __forceinline__ void Load(const AIJTCSlice &slice, const uint8_t *pattern, int32_t t)
  {
    const AIJTCSlot *slot = reinterpret_cast<const AIJTCSlot *>(pattern + (size_t)AIJTC_UNIT * slice.pattern);
    const uint32_t  *bits = reinterpret_cast<const uint32_t *>(slot + slice.slots);

    where = 0;
#pragma unroll
    for (int r = 0; r < R; r++) mask[r] = t < slice.slots ? ALL_LANES : 0;
    if (t >= slice.slots) return;
    where = __ldg(&slot[t].where);
    if (slice.form & AIJTC_FORM_FULL) return;
#pragma unroll
    for (int r = 0; r < R; r++) mask[r] = __ldg(bits + (size_t)t * R + r);
  }
};

template <int R>
__device__ void StoreMerged(const AIJTCSlice &slice, const SliceRows<R> &rows, const PetscScalar *a, const uint8_t *pattern, SlotHeads<R> heads, int period, ValueStore &values, int lane)
{
  PetscInt next[R];

#pragma unroll
  for (int r = 0; r < R; r++) next[r] = rows.begin[r];
  for (int32_t first = 0; first < slice.slots; first += AIJTC_LANES) {
    const int32_t n = min(slice.slots - first, (int32_t)AIJTC_LANES);

    if (first) heads.Load(slice, pattern, first + lane);
#pragma unroll 2
    for (int32_t k = 0; k < n; k++) {
      const uint32_t where = __shfl_sync(ALL_LANES, heads.where, k);
      unsigned       placed[R];
      Slot<R>        slot;

#pragma unroll
      for (int r = 0; r < R; r++) {
        const unsigned mask = __shfl_sync(ALL_LANES, heads.mask[r], k);

        placed[r]    = PlacedLanes(slice, mask);
        slot.has[r]  = mask >> lane & 1;
        slot.bits[r] = slot.has[r] ? BitsOf(a, next[r]) : 0;
        next[r] += slot.has[r];
      }
      if (slice.form & AIJTC_FORM_CONST) values.PutConstant(slot, rows.rem, period, (first + k) * period, lane);
      else if (where & AIJTC_SLOT_CONST) values.PutConstant(slot, rows.rem, period, (int32_t)(where & ~AIJTC_SLOT_CONST), lane);
      else values.PutEntries(slot, placed, (int32_t)where, lane);
    }
  }
}

/* The values of several slots are requested before the first is stored, which a load behind it would have to wait for */
template <int R>
__device__ void StoreCSR(const AIJTCSlice &slice, const SliceRows<R> &rows, const PetscScalar *a, int period, ValueStore &values, int lane)
{
  constexpr int at_once = 8 / R;
  int32_t       before  = 0;

  for (int32_t first = 0; first < slice.slots; first += at_once) {
    Slot<R> slot[at_once];

#pragma unroll
    for (int u = 0; u < at_once; u++) {
#pragma unroll
      for (int r = 0; r < R; r++) {
        slot[u].has[r]  = rows.Has(r, first + u);
        slot[u].bits[r] = slot[u].has[r] ? BitsOf(a, rows.Place(r, first + u)) : 0;
      }
    }
#pragma unroll
    for (int u = 0; u < at_once; u++) {
      unsigned placed[R];

      if (first + u >= slice.slots) break;
#pragma unroll
      for (int r = 0; r < R; r++) placed[r] = PlacedLanes(slice, __ballot_sync(ALL_LANES, slot[u].has[r]));
      if (slice.form & AIJTC_FORM_CONST) values.PutConstant(slot[u], rows.rem, period, (first + u) * period, lane);
      else values.PutEntries(slot[u], placed, before, lane);
#pragma unroll
      for (int r = 0; r < R; r++) before += __popc(placed[r]);
    }
  }
}

template <int R>
__global__ void __launch_bounds__(THREADS) ValuesKernel(SliceShape shape, ValuesView A, Stage stage, PetscInt begin, PetscInt end)
{
  DictCopy        *dict = reinterpret_cast<DictCopy *>(SharedMemory());
  const int        lane = (int)threadIdx.x % AIJTC_LANES, warps = (int)blockDim.x / AIJTC_LANES;
  const PetscInt   s      = begin + (PetscInt)blockIdx.x * warps + (PetscInt)threadIdx.x / AIJTC_LANES;
  const AIJTCSlice slice  = s < end ? A.slice[s] : AIJTCSlice{}; /* one without slots */
  const bool       merged = IsMerged(shape, slice);
  ValueStore       values(A.value, slice, dict);
  SliceRows<R>     rows;
  SlotHeads<R>     heads;

  rows.Load(shape, slice, A.rid, A.start, lane);

  const Csr near = StageSlice(stage, slice, true, rows, {nullptr, nullptr, A.a}, lane);

  if (merged) heads.Load(slice, A.pattern, lane);
  if (A.ndict) dict->Load(A.dict, A.ndict);
  WaitForStage();
  if (merged) StoreMerged(slice, rows, near.a, A.pattern, heads, shape.period(), values, lane);
  else StoreCSR(slice, rows, near.a, shape.period(), values, lane);
  if (!values.fits) *A.misfit = 1;
}

/* Where one row group of a slice has its places: of AIJTC_LANES slots one a lane */
template <int R>
struct GroupHeads {
  int32_t  place; /* before those of the group */
  uint32_t mask;

  __device__ __forceinline__ void Load(const AIJTCSlice &slice, const uint8_t *pattern, int32_t t, int group)
  {
    SlotHeads<R> heads;

    heads.Load(slice, pattern, t);
    place = (int32_t)heads.where;
    mask  = heads.mask[0];
#pragma unroll
    for (int r = 1; r < R; r++) {
      if (r <= group) place += __popc(PlacedLanes(slice, heads.mask[r - 1]));
      if (r == group) mask = heads.mask[r];
    }
  }
};

/* The values of several slots are requested before the first is stored. rows: of the group */
template <int R>
__device__ __forceinline__ void StoreDoubles(const AIJTCSlice &slice, const SliceRows<1> &rows, bool merged, const PetscScalar *a, const uint8_t *pattern, GroupHeads<R> heads, int group, PetscScalar *value, int lane)
{
  constexpr int  at_once = 4;
  const unsigned below   = (1u << lane) - 1;
  PetscInt       next    = rows.Place(0, 0);

  for (int32_t first = 0; first < slice.slots; first += AIJTC_LANES) {
    if (first) heads.Load(slice, pattern, first + lane, group);
    for (int32_t k = 0; k < min(slice.slots - first, (int32_t)AIJTC_LANES); k += at_once) {
      PetscScalar bits[at_once];
      int32_t     at[at_once];
      unsigned    placed = 0;

#pragma unroll
      for (int u = 0; u < at_once; u++) {
        const unsigned mask = __shfl_sync(ALL_LANES, heads.mask, k + u), places = PlacedLanes(slice, mask);

        at[u]   = __shfl_sync(ALL_LANES, heads.place, k + u) + __popc(places & below);
        bits[u] = 0.0;
        if (mask >> lane & 1) bits[u] = a[next];
        if (merged) next += (PetscInt)(mask >> lane & 1);
        else next += rows.step;
        placed |= (first + k + u < slice.slots ? places >> lane & 1 : 0) << u;
      }
#pragma unroll
      for (int u = 0; u < at_once; u++) {
        if (placed >> u & 1) value[at[u]] = bits[u]; /* 0 in a hole */
      }
    }
  }
}

template <int R>
__global__ void __launch_bounds__(THREADS) DoublesKernel(SliceShape shape, ValuesView A, Stage stage, PetscInt begin, PetscInt end)
{
  const int      lane = (int)threadIdx.x % AIJTC_LANES, warps = (int)blockDim.x / AIJTC_LANES;
  const PetscInt warp = (PetscInt)blockIdx.x * warps + (PetscInt)threadIdx.x / AIJTC_LANES, s = begin + warp / R;
  const int      group = (int)(warp % R);
  AIJTCSlice     slice = s < end ? A.slice[s] : AIJTCSlice{}; /* one without slots */
  SliceRows<1>   rows;
  GroupHeads<R>  heads;

  slice.row += (int32_t)AIJTC_LANES * group;
  rows.Load(shape, slice, A.rid, A.start, lane);
  slice.entries = rows.Entries();

  const Csr near = StageSlice(stage, slice, true, rows, {nullptr, nullptr, A.a}, lane);

  heads.Load(slice, A.pattern, lane, group);
  WaitForStage();
  StoreDoubles<R>(slice, rows, IsMerged(shape, slice), near.a, A.pattern, heads, group, reinterpret_cast<PetscScalar *>(A.value + (size_t)AIJTC_UNIT * slice.value), lane);
}

template <int R>
PetscErrorCode LaunchValues(const AIJTCLayout *layout, const Span &span, const ValuesView &A, cudaStream_t stream)
{
  constexpr int    most_warps = 4, few = 8; /* nonzeros a row: a group is too little for a warp */
  const SliceShape shape   = ShapeOf(layout, span.kind);
  const bool       doubles = layout->exact_always && (R == 1 || layout->nnz > few * (PetscCount)layout->m);
  const int        groups  = doubles ? R : 1;
  const auto       kernel  = doubles ? DoublesKernel<R> : ValuesKernel<R>;
  const size_t     dict    = layout->ndict ? (sizeof(DictCopy) + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN : 0;
  StagePlan        plan;

  PetscFunctionBegin;
  PetscCall(PlanStage(layout, span, 0, sizeof(PetscScalar), dict, most_warps, groups, &plan));
  PetscCall(AllowShared(kernel, plan.shared));
  kernel<<<BlocksFor((PetscCount)groups * span.count, plan.warps), AIJTC_LANES * plan.warps, plan.shared, stream>>>(shape, A, plan.stage, span.begin, span.begin + span.count);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode StoreValues(const AIJTCLayout *layout, const PetscScalar a[], cudaStream_t stream)
{
  const ValuesView A = {layout->slice, layout->pattern, layout->value, layout->rid, layout->start, layout->dict, a, (int)layout->ndict, layout->misfit};

  PetscFunctionBegin;
  PetscCall(ForSpans(layout, [&](auto groups, const Span &span) { return LaunchValues<decltype(groups)::value>(layout, span, A, stream); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild

/* A refresh that cannot fail does not wait; after the wait of the others no product can start too early */
PetscErrorCode AIJTCLayoutRefresh_CUDA(AIJTCLayout *layout, const PetscScalar a[], PetscBool *fits, PetscTCStream stream)
{
  int found = 0;

  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutRefresh_Host()");
  *fits = PETSC_TRUE;
  if (!layout->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(aijtcbuild::StoreValues(layout, a, stream));
  if (layout->exact_always) {
    PetscCall(aijtcbuild::SettleLayout(stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cudaMemcpyAsync(&found, layout->misfit, sizeof(found), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  if (found) PetscCallCUDA(cudaMemsetAsync(layout->misfit, 0, sizeof(*layout->misfit), stream));
  *fits = found ? PETSC_FALSE : PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
