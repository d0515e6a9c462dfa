/*
   Method
     What form each slice takes and how long it is; then where it starts in the streams. One warp a slice, blocks that stay.

     ROWS slices are walked in merged order first: that counts their distinct offsets and finds out whether rows ascend, whether slots are uniform, whether values are floats. The walk ends as soon as
     there are more than twice as many offsets as entries in the longest row. Only if the count of bytes does not decide without the width of the deltas, or decides against the merged order, the rows
     are walked once more in CSR order. Tiles and pieces are walked in CSR order.

     Dictionary: the values of slices that are not constant are put into a hash table of the block, in shared memory; one that is new there is put into the table in device memory. Beyond
     AIJTC_MAX_DICT distinct ones everybody stops. Which keys the table holds does not depend on the order in which they came; one block sorts them at the end.

     Whether there is a dictionary decides the bytes of every value, so sizes are computed in a pass of their own over the slices (32 bytes each), then added up by CUB.

   Memory traffic
     The CSR arrays once: 12 bytes a nonzero, 4 a row; once more from L2 for values that may go into a dictionary and for rows without common offsets. A 7-point matrix of 256^3 rows: 1.47 GB,
     340 us at 4.3 TB/s.

   References
     CUDA Core Compute Libraries (CUB), DeviceScan
*/
#include "build_slots.cuh"
#include <cub/device/device_scan.cuh>

namespace aijtcbuild
{
namespace
{
/* ---- the dictionary */

__device__ __forceinline__ bool Overflown(const DictTable &table)
{
  return *static_cast<const volatile int *>(&table.overflow) != 0;
}

/* Was the key not in the table? */
__device__ bool Insert(DictTable &table, unsigned long long key)
{
  int h = (int)((key * 0x9e3779b97f4a7c15ull) >> 54); /* the upper 10 bits: 0 .. DictTable::size - 1 */

  if (key == DictTable::empty) return !*static_cast<volatile int *>(&table.has_empty) && !atomicExch(&table.has_empty, 1);
  for (int probe = 0; probe < DictTable::size; probe++, h = (h + 1) % DictTable::size) {
    if (Overflown(table)) return false;

    unsigned long long held = *static_cast<volatile unsigned long long *>(&table.key[h]);

    if (held == DictTable::empty) {
      held = atomicCAS(&table.key[h], DictTable::empty, key);
      if (held == DictTable::empty) {
        if (atomicAdd(&table.count, 1) >= AIJTC_MAX_DICT) atomicExch(&table.overflow, 1);
        return true;
      }
    }
    if (held == key) return false;
  }
  atomicExch(&table.overflow, 1);
  return false;
}

__device__ __forceinline__ void InsertBoth(DictTable &block, DictTable &all, unsigned long long key)
{
  if (Insert(block, key)) (void)Insert(all, key);
}

/* The values of a slice, lane by lane */
template <int R>
__device__ void InsertValues(const SliceRows<R> &rows, const PetscScalar *__restrict__ a, DictTable &block, DictTable &all)
{
  if (Overflown(block)) return;
  if (Overflown(all)) {
    block.overflow = 1;
    return;
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    unsigned long long last = 0;
    bool               some = false;

    for (int32_t t = 0; rows.Has(r, t); t++) {
      const unsigned long long bits = BitsOf(a, rows.Place(r, t));

      if (some && bits == last) continue;
      last = bits;
      some = true;
      InsertBoth(block, all, bits);
    }
  }
  if (Overflown(block)) atomicExch(&all.overflow, 1);
}

/* Ascending keys in dict, zeros behind; no dictionary if they are too many, or stand for too few values. One block of DictTable::size threads */
__global__ void SortDictKernel(const DictTable *table, PetscScalar *dict, StreamCounts *counts)
{
  __shared__ unsigned long long key[AIJTC_MAX_DICT];
  __shared__ int                taken;
  const int                     n    = table->count + table->has_empty;
  const bool                    none = table->overflow || n > AIJTC_MAX_DICT || counts->stored < DICT_MIN_VALUES;
  const unsigned long long      mine = table->key[threadIdx.x];

  if (threadIdx.x == 0) {
    taken         = 0;
    counts->ndict = none ? 0 : n;
  }
  if (threadIdx.x < AIJTC_MAX_DICT) {
    key[threadIdx.x]  = DictTable::empty; /* also the key that it stands for, the largest */
    dict[threadIdx.x] = 0.0;
  }
  __syncthreads();
  if (!none && mine != DictTable::empty) key[atomicAdd(&taken, 1)] = mine;
  __syncthreads();
  if (!none && (int)threadIdx.x < n) {
    int rank = 0;

    for (int k = 0; k < n; k++) rank += key[k] < key[threadIdx.x];
    dict[rank] = __longlong_as_double((long long)key[threadIdx.x]);
  }
}

/* ---- the slices */

/* Which rows the q-th slice of a kind has */
struct SliceOrigin {
  const PetscInt *long_piece; /* LONG */
  PetscInt        nlong;
  PetscInt        nconsecutive; /* ROWS */
  const PetscInt *group;        /* of the consecutive ones; NULL: each is its own number */
  PetscInt        rid;          /* where the others begin in rid */
  PetscInt        rows;         /* of a slice */

  __device__ __forceinline__ AIJTCSlice operator()(PetscInt q) const
  {
    AIJTCSlice slice = {};

    if (long_piece) {
      PetscInt low = 0, above = nlong; /* long_piece[low] <= q < long_piece[above] */

      while (above - low > 1) {
        const PetscInt middle = (low + above) / 2;

        if (long_piece[middle] <= q) low = middle;
        else above = middle;
      }
      slice.row   = (int32_t)low;
      slice.first = (int32_t)((q - long_piece[low]) * AIJTC_PIECE * AIJTC_LANES);
      slice.form  = AIJTC_FORM_RID;
    } else if (q < nconsecutive) {
      slice.row = (int32_t)((group ? group[q] : q) * rows);
    } else {
      slice.row  = (int32_t)(rid + (q - nconsecutive) * rows);
      slice.form = AIJTC_FORM_RID;
    }
    return slice;
  }
};

/* What a walk over a slice finds */
struct Profile {
  int32_t  slots     = 0;
  uint32_t spread    = 0;     /* the largest delta (CSR order) */
  int32_t  values    = 0;     /* values stored if the slice is not FORM_CONST, without holes */
  int32_t  constants = 0;     /* constant slots if it is not */
  bool     uniform   = true;  /* all slots */
  bool     floats    = true;  /* all values; of this lane, then of all */
  bool     filler    = false; /* a constant slot lacks a row remainder */
};

/* Merged order; false: rows do not ascend, or there are more than `most` distinct offsets */
template <int R>
__device__ bool WalkMerged(const SliceRows<R> &rows, const Csr &A, bool values, int period, int32_t most, Profile &profile)
{
  Merge<R> merge;
  int32_t  last = INT_MIN;

  merge.Start(rows, A.j);
  for (;; profile.slots++) {
    const int32_t base = merge.Least();
    Slot<R>       slot;

    if (base == Merge<R>::end) break;
    if (base <= last || profile.slots == most) return false;
    last = base;
#pragma unroll
    for (int r = 0; r < R; r++) {
      slot.has[r]  = merge.off[r] == base;
      slot.bits[r] = values && slot.has[r] ? BitsOf(A.a, rows.begin[r] + merge.taken[r]) : 0;
      if (slot.has[r]) {
        merge.Advance(rows, A.j, r);
        if (values) profile.floats = profile.floats && IsFloat(slot.bits[r]);
      }
    }

    const int n = slot.Count();

    if (values) {
      bool       complete;
      const bool uniform = slot.Uniform(rows.rem, period, &complete);

      const bool constant = uniform && n > period;

      if (constant) profile.filler = profile.filler || !complete;
      profile.uniform = profile.uniform && uniform;
      profile.constants += constant;
      profile.values += constant ? period : n;
    } else profile.values += n;
  }
  profile.floats = __all_sync(ALL_LANES, profile.floats);
  return true;
}

template <int R>
__device__ void WalkCSR(const SliceRows<R> &rows, const Csr &A, bool columns, bool values, int period, Profile &profile)
{
  for (int32_t t = 0; t < profile.slots; t++) {
    int32_t least = INT_MAX, most = INT_MIN;
    Slot<R> slot;

#pragma unroll
    for (int r = 0; r < R; r++) {
      slot.has[r]  = rows.Has(r, t);
      slot.bits[r] = values && slot.has[r] ? BitsOf(A.a, rows.Place(r, t)) : 0;
      if (columns && slot.has[r]) {
        const int32_t off = OffsetOf(A.j, rows.Place(r, t), rows.ref[r]);

        least = min(least, off);
        most  = max(most, off);
      }
      if (values && slot.has[r]) profile.floats = profile.floats && IsFloat(slot.bits[r]);
    }
    if (columns) {
      least          = __reduce_min_sync(ALL_LANES, least);
      most           = __reduce_max_sync(ALL_LANES, most);
      profile.spread = max(profile.spread, (uint32_t)most - (uint32_t)least);
    }
    if (values && profile.uniform) {
      bool complete;

      profile.uniform = slot.Uniform(rows.rem, period, &complete);
    }
  }
  profile.floats = __all_sync(ALL_LANES, profile.floats);
}

/* The bytes of a delta in the form */
__device__ __forceinline__ uint32_t DeltaForm(int width)
{
  return (uint32_t)(width == 4 ? 3 : width) << AIJTC_FORM_DELTA;
}

/* Gives every lane a place if something is stored for each entry and there are few holes. slice has its form, and the number of its values without holes */
template <int R>
__device__ __forceinline__ void SetPlaces(const Profile &profile, int period, AIJTCSlice &slice)
{
  const bool    constant = slice.form & AIJTC_FORM_CONST;
  const int64_t places   = (int64_t)slice.slots * (AIJTC_LANES * R);

  if (slice.form & AIJTC_FORM_FULL || (constant && !(slice.form >> AIJTC_FORM_DELTA & 3))) return;
  if (14 * places > 15 * (int64_t)slice.entries || places > INT_MAX) return;
  slice.form |= AIJTC_FORM_SPREAD;
  if (!constant) slice.values = (int32_t)places - profile.constants * (AIJTC_LANES * R - period);
}

/* Slots, entries, values and form; whether values are floats as FORM_FLOATS. slice has its rows, and entries */
template <int R>
__device__ Profile Analyze(const SliceShape &shape, const SliceRows<R> &rows, const Csr &A, AIJTCCompress compress, AIJTCSlice &slice)
{
  const bool    pattern = compress & AIJTC_COMPRESS_PATTERN, values = compress & AIJTC_COMPRESS_VALUE;
  const int     period  = shape.period();
  const int32_t longest = rows.Longest(), slots = (longest + rows.step - 1) / rows.step;
  const auto    full   = [&](int32_t of) { return (int64_t)of * (AIJTC_LANES * R) == slice.entries; };
  bool          merged = false;
  int64_t       spare  = 0; /* bytes an entry that deltas may have and still be too many */
  Profile       profile;

  if (pattern && shape.kind == AIJTC_ROWS) {
    merged = WalkMerged(rows, A, values, period, longest > INT_MAX / 2 ? INT_MAX : 2 * longest, profile);
    if (merged) spare = (int64_t)profile.slots * (full(profile.slots) ? 8 : 8 + 4 * R) - (int64_t)slots * (full(slots) ? 8 : 8 + 4 * R);
  }
  if (!merged || spare > slice.entries) {
    Profile csr;
    int     width;

    csr.slots  = slots;
    csr.values = slice.entries;
    if (pattern || values) WalkCSR(rows, A, pattern, values, period, csr);
    width = !pattern ? 4 : csr.spread == 0 && shape.kind != AIJTC_ROWS ? 0 : csr.spread < 256 ? 1 : csr.spread < 65536 ? 2 : 4;
    if (!merged || spare > (int64_t)width * slice.entries) {
      profile = csr;
      slice.form |= DeltaForm(width);
    }
  }
  slice.slots = profile.slots;
  if (full(slice.slots)) slice.form |= AIJTC_FORM_FULL;
  slice.values = profile.values;
  if (values && profile.uniform && (int64_t)slice.slots * period < slice.entries) {
    slice.form |= AIJTC_FORM_CONST;
    slice.values = slice.slots * period;
  } else if (values && profile.floats) slice.form |= FORM_FLOATS;
  SetPlaces<R>(profile, period, slice);
  return profile;
}

template <int R>
__global__ void __launch_bounds__(THREADS) AnalyzeKernel(SliceShape shape, SliceOrigin origin, Csr A, const PetscInt *__restrict__ rid, AIJTCCompress compress, PetscInt count, AIJTCSlice *__restrict__ slices, DictTable *table, StreamCounts *counts)
{
  __shared__ DictTable block;
  const int            lane   = (int)threadIdx.x % AIJTC_LANES;
  unsigned long long   stored = 0;

  for (int k = (int)threadIdx.x; k < DictTable::size; k += THREADS) block.key[k] = DictTable::empty;
  if (threadIdx.x == 0) block.count = block.overflow = block.has_empty = 0;
  __syncthreads();
  for (PetscInt q = (PetscInt)blockIdx.x * WARPS + (PetscInt)threadIdx.x / AIJTC_LANES; q < count; q += (PetscInt)gridDim.x * WARPS) {
    AIJTCSlice   slice = origin(q);
    SliceRows<R> rows;

    rows.Load(shape, slice, rid, A.i, lane);
    slice.entries = rows.Entries();
    if (slice.entries) {
      const Profile profile = Analyze(shape, rows, A, compress, slice);

      if ((compress & AIJTC_COMPRESS_VALUE) && !(slice.form & AIJTC_FORM_CONST)) {
        stored += (unsigned long long)profile.values;
        InsertValues(rows, A.a, block, *table);
        if (profile.filler && lane == 0) InsertBoth(block, *table, 0);
      }
    } else slice.form |= AIJTC_FORM_FULL;
    if (lane == 0) slices[q] = slice;
  }
  if (lane == 0 && stored) atomicAdd(&counts->stored, stored);
}

struct AddUnits {
  __host__ __device__ Units operator()(const Units &a, const Units &b) const { return {a.pattern + b.pattern, a.value + b.value}; }
};

__device__ __forceinline__ unsigned long long UnitsOf(unsigned long long bytes)
{
  return (bytes + AIJTC_UNIT - 1) / AIJTC_UNIT;
}

/* The form of the values, and the units of every slice in both streams; none after the last */
__global__ void SizesKernel(PetscInt nlong, PetscInt ntile, PetscInt nslices, int rtile, int rrows, AIJTCCompress compress, AIJTCSlice *__restrict__ slices, Units *__restrict__ unit, StreamCounts *counts)
{
  const PetscInt s = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (s > nslices) return;
  if (s == nslices) {
    unit[s] = {0, 0};
    return;
  }

  AIJTCSlice slice = slices[s];
  const int  R     = s < nlong ? 1 : s < nlong + ntile ? rtile : rrows;
  const int  delta = (int)(slice.form >> AIJTC_FORM_DELTA & 3), delta_bytes = delta == 3 ? 4 : delta;
  int        value = AIJTC_VALUE_DOUBLE;

  if (slice.entries && (compress & AIJTC_COMPRESS_VALUE) && !(slice.form & AIJTC_FORM_CONST)) value = counts->ndict ? AIJTC_VALUE_DICT : slice.form & FORM_FLOATS ? AIJTC_VALUE_FLOAT : AIJTC_VALUE_DOUBLE;
  slice.form &= ~FORM_FLOATS;
  slice.form |= (uint32_t)value << AIJTC_FORM_VALUE;
  slices[s].form = slice.form;

  const unsigned long long places  = slice.form & AIJTC_FORM_SPREAD ? (unsigned long long)slice.slots * AIJTC_LANES * R : slice.entries;
  unsigned long long       pattern = (unsigned long long)slice.slots * (sizeof(AIJTCSlot) + (slice.form & AIJTC_FORM_FULL ? 0 : sizeof(uint32_t) * R));

  if (value != AIJTC_VALUE_DOUBLE || (unsigned long long)slice.values != places) counts->inexact = 1;
  if (delta) pattern = (pattern + AIJTC_DELTA_ALIGN - 1) / AIJTC_DELTA_ALIGN * AIJTC_DELTA_ALIGN + places * delta_bytes;
  unit[s] = {UnitsOf(pattern), UnitsOf((unsigned long long)slice.values * (value == AIJTC_VALUE_DOUBLE ? 8 : value == AIJTC_VALUE_FLOAT ? 4 : 1))};
}

template <int R>
PetscErrorCode LaunchAnalyze(const AIJTCLayout *layout, AIJTCKind kind, const SliceOrigin &origin, const Csr &A, AIJTCSlice *slices, DictTable *table, StreamCounts *counts, cudaStream_t stream)
{
  const SliceShape shape = {kind, layout->m, (int)layout->params.bs};
  const PetscInt   count = layout->nslices[kind];
  int              device, processors, resident;
  unsigned         blocks;

  PetscFunctionBegin;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, AnalyzeKernel<R>, THREADS, 0));
  blocks = PetscMin(BlocksFor(count, WARPS), (unsigned)(processors * PetscMax(resident, 1)));
  AnalyzeKernel<R><<<blocks, THREADS, 0, stream>>>(shape, origin, A, layout->rid, layout->params.compress, count, slices, table, counts);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AnalyzeKinds(const AIJTCLayout *layout, const Csr &A, const PetscInt *group, DictTable *table, StreamCounts *counts, cudaStream_t stream)
{
  const PetscInt    rtile = layout->params.rtile, rrows = layout->params.rrows;
  const SliceOrigin pieces     = {layout->long_piece, layout->nlong, 0, nullptr, 0, 0};
  const SliceOrigin tiles      = {nullptr, 0, 0, nullptr, layout->rid_tile, AIJTC_TILE_ROWS * rtile};
  const SliceOrigin rows       = {nullptr, 0, layout->nconsecutive, group, layout->rid_rows, AIJTC_LANES * rrows};
  AIJTCSlice       *first_tile = layout->slice + layout->nslices[AIJTC_LONG], *first_rows = first_tile + layout->nslices[AIJTC_TILE];

  PetscFunctionBegin;
  PetscCall(LaunchAnalyze<1>(layout, AIJTC_LONG, pieces, A, layout->slice, table, counts, stream));
  if (rtile == 1) PetscCall(LaunchAnalyze<1>(layout, AIJTC_TILE, tiles, A, first_tile, table, counts, stream));
  else PetscCall(LaunchAnalyze<4>(layout, AIJTC_TILE, tiles, A, first_tile, table, counts, stream));
  if (rrows == 1) PetscCall(LaunchAnalyze<1>(layout, AIJTC_ROWS, rows, A, first_rows, table, counts, stream));
  else if (rrows == 2) PetscCall(LaunchAnalyze<2>(layout, AIJTC_ROWS, rows, A, first_rows, table, counts, stream));
  else PetscCall(LaunchAnalyze<4>(layout, AIJTC_ROWS, rows, A, first_rows, table, counts, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AnalyzeSlices(AIJTCLayout *layout, const Csr &A, const PetscInt *group, PetscScalar dict[], Units unit[], Scratch &scratch, StreamCounts *counts, cudaStream_t stream)
{
  const PetscInt slices = AIJTCSlicesTotal(layout);
  const AddUnits add;
  StreamCounts  *found;
  DictTable     *table;
  size_t         bytes = 0;
  uint8_t       *work;

  PetscFunctionBegin;
  PetscCall(scratch.Get(1, &found));
  PetscCall(scratch.Get(1, &table));
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, bytes, unit, unit, add, Units{0, 0}, slices + 1, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCallCUDA(cudaMemsetAsync(found, 0, sizeof(*found), stream));
  PetscCallCUDA(cudaMemsetAsync(table, 0, sizeof(*table), stream));
  PetscCallCUDA(cudaMemsetAsync(table->key, 0xff, sizeof(table->key), stream)); /* DictTable::empty */
  PetscCall(AnalyzeKinds(layout, A, group, table, found, stream));
  SortDictKernel<<<1, DictTable::size, 0, stream>>>(table, dict, found);
  PetscCallCUDA(cudaGetLastError());
  SizesKernel<<<BlocksFor((PetscCount)slices + 1, THREADS), THREADS, 0, stream>>>(layout->nslices[AIJTC_LONG], layout->nslices[AIJTC_TILE], slices, (int)layout->params.rtile, (int)layout->params.rrows, layout->params.compress, layout->slice, unit,
                                                                                  found);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(work, bytes, unit, unit, add, Units{0, 0}, slices + 1, stream));
  PetscCallCUDA(cudaMemcpyAsync(&found->total, unit + slices, sizeof(*unit), cudaMemcpyDeviceToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync(counts, found, sizeof(*counts), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
