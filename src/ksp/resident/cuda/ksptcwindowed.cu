/*
   Slots of the slices that windows have, and whether a layout is one for windows. Layout, memory traffic, references: ksptcwindowed.cuh.

   Method   A warp a slice, a lane four of its rows. Each row goes through its entries as its slice of the layout has them. Of the distances that rows come to next, the least is the next slot's, with the value that the
            first such row has: rows with both are done with that entry. So rows keep the order of their entries, and where rows have the same distances and values, as on a grid, a slice has as many slots as a row has entries.
   Memory   Read are the heads of the layout's slices that a slice has rows of, most often two, and their slots, 24 bytes each: 7-point 101^3, 3 MB; written 128 bytes for four slots of a slice, 2 MB, and, with
            values of entries, 4 kB, 68 MB
*/
#include <../src/parts/devicescratch.h>
#include <../src/ksp/resident/ksptcwindowed.cuh>

namespace
{
constexpr int THREADS = 128;
constexpr int GROUPS  = KSPTC_WINDOWED_GROUPS;

/* The entries of a row, one after the other, of a slice without deltas. groups: of the layout's slices */
class Entries {
public:
  __device__ Entries(const LayoutView &A, int groups, PetscInt row, bool is) : slots_(0), t_(0), groups_(groups), group_((int)(row / KSPTC_LANES % groups)), lane_((int)(row % KSPTC_LANES))
  {
    if (!is) return;
    slice_ = LoadSlice<1>(A, row / (groups * KSPTC_LANES), 1); /* but for deltas, which there are not, it is the same for any number of groups */
    plain_ = !(slice_.form >> AIJTC_FORM_DELTA & 3) && !(slice_.form & AIJTC_FORM_RID);
    if (plain_) slots_ = slice_.slots;
    find();
  }

  __device__ bool isPlain() const { return plain_; }
  /* Of the one that is next, INT_MAX: of none */
  __device__ int         distance() const { return distance_; }
  __device__ PetscScalar value() const { return value_; }

  __device__ void advance()
  {
    t_++;
    find();
  }

private:
  __device__ void find()
  {
    distance_ = INT_MAX;
    while (t_ < slots_ && !(mask(group_) >> lane_ & 1)) t_++;
    if (t_ >= slots_) return;
    distance_ = __ldg(&slice_.slot[t_].base);
    value_    = valueAt(slice_.form & AIJTC_FORM_CONST ? t_ : place(__ldg(&slice_.slot[t_].where)));
  }

  /* Of the next slot */
  __device__ unsigned mask(int group) const { return slice_.form & AIJTC_FORM_FULL ? AIJTC_ALL_LANES : __ldg(slice_.mask + groups_ * t_ + group); }

  /* Of the next entry's value among those of its slice, which is not one of constants alone */
  __device__ int place(uint32_t where) const
  {
    int at = (int)(where & ~AIJTC_SLOT_CONST);

    if (where & AIJTC_SLOT_CONST) return at;
    if (slice_.form & AIJTC_FORM_SPREAD) return at + KSPTC_LANES * group_ + lane_;
    for (int r = 0; r < group_; r++) at += __popc(mask(r));
    return at + __popc(mask(group_) & ((1u << lane_) - 1));
  }

  __device__ PetscScalar valueAt(int at) const
  {
    switch (slice_.form >> AIJTC_FORM_VALUE & 3) {
    case AIJTC_VALUE_FLOAT:
      return FloatValues::get(slice_, FloatValues::load(slice_, at));
    case AIJTC_VALUE_DICT:
      return DictValues::get(slice_, DictValues::load(slice_, at));
    default:
      return DoubleValues::get(slice_, DoubleValues::load(slice_, at));
    }
  }

  SliceView   slice_;
  int         slots_, t_, groups_, group_, lane_;
  bool        plain_    = true;
  int         distance_ = INT_MAX;
  PetscScalar value_    = 0.0;
};

/* The next slot of a warp's rows: how far its columns are. False: none has an entry left */
__device__ bool NextDistance(const Entries (&row)[GROUPS], int *distance)
{
  int least = INT_MAX;

  for (int r = 0; r < GROUPS; r++) least = min(least, row[r].distance());
  *distance = __reduce_min_sync(AIJTC_ALL_LANES, least);
  return *distance < INT_MAX;
}

/* Of the rows that come to this distance next the first one's value */
__device__ PetscScalar FirstValue(const Entries (&row)[GROUPS], int distance)
{
  PetscScalar value = 0.0;
  bool        found = false;

  for (int r = 0; r < GROUPS; r++) {
    const unsigned with = __ballot_sync(AIJTC_ALL_LANES, row[r].distance() == distance);

    if (!found && with) value = __shfl_sync(AIJTC_ALL_LANES, row[r].value(), __ffs((int)with) - 1);
    found = found || with;
  }
  return value;
}

/* A slot's entries are taken: bits of the groups. of: [row], their values, or NULL: all are `value` */
__device__ unsigned Take(Entries (&row)[GROUPS], int distance, PetscScalar value, PetscScalar *of)
{
  unsigned has = 0;

  for (int r = 0; r < GROUPS; r++) {
    const bool is = row[r].distance() == distance && (of || __double_as_longlong(row[r].value()) == __double_as_longlong(value));

    if (of) of[KSPTC_LANES * r] = is ? row[r].value() : 0.0;
    if (!is) continue;
    has |= 1u << r;
    row[r].advance();
  }
  return has;
}

/* A warp a slice. values: of all entries, or NULL: slots are constants */
__global__ void __launch_bounds__(THREADS) SlotsKernel(const __grid_constant__ LayoutView A, int groups, const __grid_constant__ KSPTCWindows windows, KSPTCWindowTurn *slots, int *counts, PetscScalar *values, int *others)
{
  const int warp = (int)((blockIdx.x * THREADS + threadIdx.x) / KSPTC_LANES), block = warp / windows.slices, k = warp % windows.slices, lane = (int)threadIdx.x % KSPTC_LANES;

  if (block >= windows.blocks) return;
  const KSPTCPatch      patch       = KSPTCPatchOf(&windows, block);
  const KSPTCPatchSlice of          = KSPTCSliceOf(&windows, &patch, k);
  const auto            entries     = [&](int at) { return Entries(A, groups, of.row + at, at < of.rows); };
  Entries               row[GROUPS] = {entries(lane), entries(KSPTC_LANES + lane), entries(2 * KSPTC_LANES + lane), entries(3 * KSPTC_LANES + lane)};
  KSPTCWindowTurn      *turn        = slots + ((size_t)block * windows.slices + k) * windows.turns;
  PetscScalar          *value       = values ? values + ((size_t)block * windows.slices + k) * windows.turns * KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_ROWS + lane : nullptr;
  bool                  fits        = true;
  int                   n = 0, distance = 0;
  unsigned              all = 0;

  for (int r = 0; r < GROUPS; r++) fits = fits && row[r].isPlain();
  for (; NextDistance(row, &distance); n++) {
    const int         t    = n % KSPTC_WINDOWED_TURN;
    bool              near = false;
    const int         to   = KSPTCPlacesTo(&windows, patch.pitch, distance, &near);
    const PetscScalar a    = FirstValue(row, distance);

    fits = fits && near && n / KSPTC_WINDOWED_TURN < windows.turns;
    if (!__all_sync(AIJTC_ALL_LANES, fits)) break;
    all = (t ? all : 0) | Take(row, distance, a, values ? value + (size_t)KSPTC_WINDOWED_ROWS * n : nullptr) << (GROUPS * t);
    if (lane == 0) turn[n / KSPTC_WINDOWED_TURN].slot[t] = {a, to, 0};
    turn[n / KSPTC_WINDOWED_TURN].has[lane] = (uint16_t)all;
  }
  if (lane == 0) counts[(size_t)block * windows.slices + k] = n; /* slots of the last turn behind that are 0, which nobody has an entry in */
  if (!__all_sync(AIJTC_ALL_LANES, fits) && lane == 0) *others = 1;
}

/* Room in the work for so many bytes */
PetscErrorCode Reserve(size_t bytes, KSPTCResidentWork *work, PetscBool *room)
{
  PetscFunctionBegin;
  *room = PETSC_TRUE;
  if (work->slot_bytes >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (work->slots) PetscCallCUDA(cudaFree(work->slots));
  work->slots            = NULL;
  work->slot_bytes       = 0;
  const cudaError_t cerr = cudaMalloc(&work->slots, bytes);

  *room = (PetscBool)(cerr != cudaErrorMemoryAllocation);
  if (!*room) {
    work->slots = NULL;
    (void)cudaGetLastError(); /* what is multiplied is gathered: it must not appear again after the next launch */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cerr);
  work->slot_bytes = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* valued: a value for each entry. fit: all slots are in the windows, and there is room for them */
PetscErrorCode MakeSlots(const AIJTCLayout *layout, bool valued, KSPTCResidentWork *work, PetscBool *fit, cudaStream_t stream)
{
  const KSPTCWindows &windows = work->windows;
  const PetscCount    slices  = (PetscCount)windows.blocks * windows.slices;
  const size_t        bytes = (windows.blocks * KSPTCBytesOfSlots(&windows) + 255) / 256 * 256, all = valued ? windows.blocks * KSPTCValuesOfBlock(&windows) * sizeof(PetscScalar) : 0;
  Scratch<int>        others;
  PetscBool           room;
  int                 found = 1;

  PetscFunctionBegin;
  work->values = NULL;
  PetscCall(Reserve(bytes + all, work, &room));
  PetscCall(others.allocate(1, stream, &room));
  if (room) {
    KSPTCWindowTurn *const slots = (KSPTCWindowTurn *)work->slots;

    if (valued) work->values = (PetscScalar *)((char *)work->slots + bytes);
    PetscCallCUDA(cudaMemsetAsync(others, 0, sizeof(int), stream));
    PetscCallCUDA(cudaMemsetAsync(slots, 0, bytes, stream)); /* blocks copy all, slots that slices do not have too */
    SlotsKernel<<<(unsigned)((slices * KSPTC_LANES - 1) / THREADS + 1), THREADS, 0, stream>>>(AIJTCLayoutView(*layout), (int)layout->params.rrows, windows, slots, (int *)(slots + slices * windows.turns), work->values, others);
    PetscCallCUDA(cudaGetLastError());
    PetscCallCUDA(cudaMemcpyAsync(&found, others, sizeof(int), cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
  }
  *fit = (PetscBool)!found;
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

/* Slots of constants need no values, but where a grid has several materials, or is periodic, some slices have more of them: then with twice as many turns. Else, unless most slots are constants, values of entries: gathered, constants are faster */
PetscErrorCode KSPTCLookAtWindows(const AIJTCLayout *layout, const KSPTCChip *chip, KSPTCResidentWork *work, cudaStream_t stream)
{
  const bool constants = KSPTCKeepsSlots(layout);
  PetscBool  fit       = PETSC_FALSE;

  PetscFunctionBegin;
  if (layout->build && work->build == layout->build) PetscFunctionReturn(PETSC_SUCCESS);
  work->build    = 0; /* should anything fail */
  work->windowed = PETSC_FALSE;
  if (KSPTCWindowsOf(layout, chip->blocks, &work->windows)) {
    PetscCall(MakeSlots(layout, !constants, work, &fit, stream));
    if (!fit && constants) {
      work->windows.turns *= 2;
      if (KSPTCBytesOfWindows(&work->windows, 0) <= chip->shared) PetscCall(MakeSlots(layout, false, work, &fit, stream));
    }
  }
  work->windowed = fit;
  work->build    = layout->build;
  PetscFunctionReturn(PETSC_SUCCESS);
}
