/*
   Method
     What form each slice takes and how long it is; then where it starts in the streams. One warp a slice, blocks that stay. What is walked over of a slice of consecutive rows, columns or values or
     both, is first copied to shared memory (build_stage.cuh); without compression only the lengths of rows matter.

     ROWS slices are walked in merged order first: that counts their distinct offsets and finds out whether rows ascend, whether slots are uniform, whether values are floats. The walk ends as soon as
     there are more than twice as many offsets as entries in the longest row. Only if the count of bytes does not decide without the width of the deltas, or decides against the merged order, the rows
     are walked once more in CSR order. Tiles and pieces are walked in CSR order. There no value is read any more once they are known to be neither uniform nor floats.

     Dictionary: the values of slices that are not constant are put into a hash table of the block, in shared memory; one that is new there is put into the table in device memory. Beyond
     AIJTC_MAX_DICT distinct ones everybody stops. Which values the table holds does not depend on the order in which they came; one block sorts them at the end.

     Whether there is a dictionary decides the bytes of every value, so sizes are computed in a pass of their own over the slices (32 bytes each), then added up by CUB.

   Memory traffic
     4 bytes a row; 4 a nonzero with compressed patterns, 8 with compressed values. A 7-point matrix of 256^3 rows, both compressed: 1.47 GB, 340 us at 4.3 TB/s; a 27-point one of 100^3 rows, the
     pattern compressed: 110 MB, 26 us.

   References
     CUDA Core Compute Libraries (CUB), DeviceScan
*/
#include "build_stage.cuh"
#include <cub/device/device_scan.cuh>

namespace aijtcbuild
{
namespace
{
/* ---- the dictionary */

/* Others may set it at the same time, all by atomicExch() */
__device__ __forceinline__ bool Overflown(const DictTable &table)
{
  return *static_cast<const volatile int *>(&table.overflow) != 0;
}

/* Was it not in the table? */
__device__ bool Insert(DictTable &table, unsigned long long bits)
{
  const unsigned long long key = ~bits;
  int                      h   = (int)((bits * 0x9e3779b97f4a7c15ull) >> 54); /* the upper 10 bits: 0 .. DictTable::size - 1 */

  if (!key) return !*static_cast<volatile int *>(&table.has_zero) && !atomicExch(&table.has_zero, 1);
  for (int probe = 0; probe < DictTable::size; probe++, h = (h + 1) % DictTable::size) {
    if (Overflown(table)) return false;

    unsigned long long held = *static_cast<volatile unsigned long long *>(&table.key[h]);

    if (!held) {
      held = atomicCAS(&table.key[h], 0ull, key);
      if (!held) {
        if (atomicAdd(&table.count, 1) >= AIJTC_MAX_DICT) atomicExch(&table.overflow, 1);
        return true;
      }
    }
    if (held == key) return false;
  }
  atomicExch(&table.overflow, 1);
  return false;
}

__device__ __forceinline__ void InsertBoth(DictTable &block, DictTable &all, unsigned long long bits)
{
  if (Insert(block, bits)) (void)Insert(all, bits);
}

/* AIJTCLayout.line of a slice */
template <int R>
__device__ int32_t Line(const SliceRows<R> &rows, const PetscInt *j, int32_t stride)
{
  int32_t line = 0;

#pragma unroll
  for (int r = 0; r < R; r++) {
    for (int32_t t = 0; rows.Has(r, t); t++) {
      const int32_t far = abs((int32_t)(j[rows.Place(r, t)] - rows.ref[r]));

      line = max(line, min(far, stride - far));
    }
  }
  return __reduce_max_sync(ALL_LANES, line);
}

/* The values of a slice, lane by lane */
template <int R>
__device__ void InsertValues(const SliceRows<R> &rows, const PetscScalar *a, DictTable &block, DictTable &all)
{
  if (Overflown(block)) return;
  if (Overflown(all)) {
    atomicExch(&block.overflow, 1);
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
}

/* By one lane of each warp that has inserted values: not by all, since that many atomic operations on one word take longer than all else */
__device__ __forceinline__ void PassOnOverflow(DictTable &all)
{
  if (!Overflown(all)) atomicExch(&all.overflow, 1);
}

/* Entries of the dictionary; 0: there is none, as there are too many or they stand for too few values */
__device__ __forceinline__ int DictLength(const DictTable &table, const AIJTCParams &params)
{
  const int n = table.count + table.has_zero;

  if (!(params.compress & AIJTC_COMPRESS_VALUE)) return 0;
  return table.overflow || n > AIJTC_MAX_DICT || table.stored < (unsigned long long)params.dict_min ? 0 : n;
}

static_assert(THREADS == AIJTC_MAX_DICT, "SortDict() has a thread for each entry");

/* The n values of the table, ascending by their bits, and zeros behind. By one block */
__device__ void SortDict(const DictTable &table, int n, PetscScalar *dict)
{
  __shared__ unsigned long long bits[AIJTC_MAX_DICT];
  __shared__ int                taken;
  const int                     me = (int)threadIdx.x;

  if (me == 0) taken = 0;
  bits[me] = ~0ull; /* what has_zero stands for, the largest */
  dict[me] = 0.0;
  __syncthreads();
  for (int k = me; k < DictTable::size; k += THREADS)
    if (table.key[k]) bits[atomicAdd(&taken, 1)] = ~table.key[k];
  __syncthreads();
  if (me < n) {
    int rank = 0;

    for (int k = 0; k < n; k++) rank += bits[k] < bits[me];
    dict[rank] = __longlong_as_double((long long)bits[me]);
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
  int32_t  slots = 0;
  int32_t  low = 0, high = 0; /* the least and the largest offset, if the pattern is compressed */
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
    if (!profile.slots) profile.low = base;
    profile.high = last = base;
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
      profile.low    = t ? min(profile.low, least) : least;
      profile.high   = t ? max(profile.high, most) : most;
    }
    if (values && profile.uniform) {
      bool complete;

      profile.uniform = slot.Uniform(rows.rem, period, &complete);
    }
    if (values && !profile.uniform && !__all_sync(ALL_LANES, profile.floats)) {
      if (!columns) break; /* nothing is left to be found out */
      values = false;
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
__device__ __forceinline__ void SetPlaces(const SliceShape &shape, const Profile &profile, AIJTCSlice &slice)
{
  const bool    constant = slice.form & AIJTC_FORM_CONST;
  const int64_t places   = (int64_t)slice.slots * (AIJTC_LANES * R);

  if (slice.form & AIJTC_FORM_FULL || (constant && !(slice.form >> AIJTC_FORM_DELTA & 3))) return;
  if (!AIJTCFewHoles(shape.gathered, places, slice.entries) || places > INT_MAX) return;
  slice.form |= AIJTC_FORM_SPREAD;
  if (!constant) slice.values = (int32_t)places - profile.constants * (AIJTC_LANES * R - shape.period());
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

  if (shape.kind == AIJTC_ROWS && !shape.ordered) {
    merged = WalkMerged(rows, A, values, period, longest > INT_MAX / 2 ? INT_MAX : 2 * longest, profile);
    if (merged) spare = (int64_t)profile.slots * (full(profile.slots) ? 8 : 8 + 4 * R) - (int64_t)slots * (full(slots) ? 8 : 8 + 4 * R);
  }
  if (!merged || spare > slice.entries) {
    Profile csr;
    int     width;

    csr.slots  = slots;
    csr.values = slice.entries;
    if ((pattern && !shape.gathered) || values) WalkCSR(rows, A, pattern && !shape.gathered, values, period, csr);
    width = shape.gathered ? 2 : !pattern ? 4 : csr.spread == 0 && shape.kind != AIJTC_ROWS ? 0 : csr.spread < 256 ? 1 : csr.spread < 65536 ? 2 : 4;
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
  SetPlaces<R>(shape, profile, slice);
  return profile;
}

/* What the kernel leaves, besides the slices */
struct Findings {
  DictTable    *table;
  StreamCounts *counts;
};

__device__ __forceinline__ void ClearTable(DictTable &table)
{
  for (int k = (int)threadIdx.x; k < DictTable::size; k += (int)blockDim.x) table.key[k] = 0;
  if (threadIdx.x == 0) table.count = table.overflow = table.has_zero = 0;
  __syncthreads();
}

template <int R>
__global__ void __launch_bounds__(THREADS)
  AnalyzeKernel(SliceShape shape, SliceOrigin origin, Csr A, const PetscInt *__restrict__ rid, AIJTCCompress compress, PetscInt begin, PetscInt end, AIJTCSlice *__restrict__ slices, Stage stage, Findings found)
{
  DictTable         &block = *reinterpret_cast<DictTable *>(SharedMemory()); /* if values may be compressed */
  const int          lane = (int)threadIdx.x % AIJTC_LANES, warps = (int)blockDim.x / AIJTC_LANES;
  const PetscInt     middle = origin.nconsecutive ? origin.nconsecutive / 2 : -1;
  unsigned long long stored = 0;
  bool               full   = false; /* told that the block's table is */

  if (compress & AIJTC_COMPRESS_VALUE) ClearTable(block);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    found.counts->inexact = found.counts->mixed = found.counts->unused = 0; /* for the next kernel */
    if (!origin.nconsecutive) found.counts->stride = found.counts->line = 0;
  }
  for (PetscInt q = begin + (PetscInt)blockIdx.x * warps + (PetscInt)threadIdx.x / AIJTC_LANES; q < end; q += (PetscInt)gridDim.x * warps) {
    AIJTCSlice   slice = origin(q);
    Profile      profile;
    SliceRows<R> rows;
    int32_t      stride = 0, line = 0;

    rows.Load(shape, slice, rid, A.i, lane);
    slice.entries = rows.Entries();
    if (slice.entries) {
      const Csr near = StageSlice(stage, slice, true, rows, A, lane);

      WaitForStage();
      profile = Analyze(shape, rows, near, compress, slice);
      stride  = max(abs(profile.low), abs(profile.high));
      if (q == middle && (compress & AIJTC_COMPRESS_PATTERN)) line = Line(rows, near.j, stride);
      if ((compress & AIJTC_COMPRESS_VALUE) && !(slice.form & AIJTC_FORM_CONST)) {
        stored += (unsigned long long)profile.values;
        InsertValues(rows, near.a, block, *found.table);
        if (profile.filler && lane == 0) InsertBoth(block, *found.table, 0);
      }
      __syncwarp(); /* all have read what the next slice will overwrite */
      if ((compress & AIJTC_COMPRESS_VALUE) && lane == 0 && !full && Overflown(block)) {
        PassOnOverflow(*found.table);
        full = true;
      }
    } else slice.form |= AIJTC_FORM_FULL;
    if (lane == 0) slices[q] = slice;
    if (lane == 0 && q == middle) {
      found.counts->stride = stride;
      found.counts->line   = line;
    }
  }
  if (lane == 0 && stored) atomicAdd(&found.table->stored, stored);
}

struct AddUnits {
  __host__ __device__ Units operator()(const Units &a, const Units &b) const { return {a.pattern + b.pattern, a.value + b.value}; }
};

__device__ __forceinline__ unsigned long long UnitsOf(unsigned long long bytes)
{
  return (bytes + AIJTC_UNIT - 1) / AIJTC_UNIT;
}

/* The dictionary; the form of the values, and the units of every slice in both streams; none after the last. others: slices in front of those of rows */
__global__ void __launch_bounds__(THREADS)
  SizesKernel(PetscInt others, PetscInt nslices, AIJTCParams params, const DictTable *__restrict__ table, PetscScalar *__restrict__ dict, AIJTCSlice *__restrict__ slices, Units *__restrict__ unit, StreamCounts *counts)
{
  const PetscInt s     = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;
  const int      ndict = DictLength(*table, params);

  if (blockIdx.x == 0) {
    if (ndict) SortDict(*table, ndict, dict);
    if (threadIdx.x == 0) counts->ndict = ndict;
  }
  if (s > nslices) return;
  if (s == nslices) {
    unit[s] = {0, 0};
    return;
  }

  AIJTCSlice slice = slices[s];
  const int  R     = s < others ? 1 : (int)params.rrows;
  const int  delta = (int)(slice.form >> AIJTC_FORM_DELTA & 3), delta_bytes = delta == 3 ? 4 : delta;
  int        value = AIJTC_VALUE_DOUBLE;

  if (slice.entries && (params.compress & AIJTC_COMPRESS_VALUE) && !(slice.form & AIJTC_FORM_CONST)) value = ndict ? AIJTC_VALUE_DICT : slice.form & FORM_FLOATS ? AIJTC_VALUE_FLOAT : AIJTC_VALUE_DOUBLE;
  slice.form &= ~FORM_FLOATS;
  slice.form |= (uint32_t)value << AIJTC_FORM_VALUE;
  slices[s].form = slice.form;

  const unsigned long long places  = slice.form & AIJTC_FORM_SPREAD ? (unsigned long long)slice.slots * AIJTC_LANES * R : slice.entries;
  unsigned long long       pattern = (unsigned long long)slice.slots * (sizeof(AIJTCSlot) + (slice.form & AIJTC_FORM_FULL ? 0 : sizeof(uint32_t) * R));

  if (value != AIJTC_VALUE_DOUBLE || (unsigned long long)slice.values != places) counts->inexact = 1;
  if (HasConstantSlots(slice, R)) counts->mixed = 1;
  if (delta) pattern = (pattern + AIJTC_DELTA_ALIGN - 1) / AIJTC_DELTA_ALIGN * AIJTC_DELTA_ALIGN + places * delta_bytes;
  unit[s] = {UnitsOf(pattern), UnitsOf((unsigned long long)slice.values * (value == AIJTC_VALUE_DOUBLE ? 8 : value == AIJTC_VALUE_FLOAT ? 4 : 1))};
}

SliceOrigin OriginOf(const AIJTCLayout *layout, AIJTCKind kind, const PetscInt *group)
{
  if (kind == AIJTC_LONG) return {layout->long_piece, layout->nlong, 0, nullptr, 0, 0};
  if (kind == AIJTC_TILE) return {nullptr, 0, 0, nullptr, layout->rid_tile, AIJTC_TILE_ROWS};
  return {nullptr, 0, layout->nconsecutive, group, layout->rid_rows, AIJTC_LANES * layout->params.rrows};
}

template <int R>
PetscErrorCode LaunchAnalyze(const AIJTCLayout *layout, const Span &span, const Csr &A, const PetscInt *group, const Findings &found, cudaStream_t stream)
{
  const AIJTCCompress compress = layout->params.compress;
  const bool          pattern = compress & AIJTC_COMPRESS_PATTERN, values = compress & AIJTC_COMPRESS_VALUE;
  const SliceShape    shape      = ShapeOf(layout, span.kind);
  const PetscInt      kind_begin = span.kind == AIJTC_LONG ? 0 : layout->nslices[AIJTC_LONG] + (span.kind == AIJTC_TILE ? 0 : layout->nslices[AIJTC_TILE]), begin = span.begin - kind_begin;
  StagePlan           plan;
  unsigned            blocks;

  PetscFunctionBegin;
  PetscCall(PlanStage(layout, span, pattern ? sizeof(PetscInt) : 0, values ? sizeof(PetscScalar) : 0, values ? RunBytes(1, sizeof(DictTable)) : 0, WARPS, 1, &plan));
  PetscCall(AllowShared(AnalyzeKernel<R>, plan.shared));
  blocks = PetscMin(BlocksFor(span.count, plan.warps), (unsigned)(plan.processors * plan.blocks));
  AnalyzeKernel<R><<<blocks, AIJTC_LANES * plan.warps, plan.shared, stream>>>(shape, OriginOf(layout, span.kind, group), A, layout->rid, compress, begin, begin + span.count, layout->slice + kind_begin, plan.stage, found);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AnalyzeSlices(AIJTCLayout *layout, const Csr &A, const PetscInt *group, DictTable *table, const ListCounts *lists, Units **unit, Scratch &scratch, StreamCounts *counts, cudaStream_t stream)
{
  const size_t   copied = layout->params.gather ? sizeof(*counts) : offsetof(StreamCounts, lists);
  const PetscInt slices = AIJTCSlicesTotal(layout);
  const AddUnits add;
  uint8_t       *places, *work;
  size_t         bytes = 0;
  Findings       found = {table, nullptr};
  const auto     place = [&](Block &block) {
    block.Place(slices * (PetscCount)sizeof(**unit) + (PetscCount)sizeof(StreamCounts), &places);
    block.Place((PetscCount)bytes, &work);
  };

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(nullptr, bytes, *unit, *unit, add, Units{0, 0}, slices + 1, stream));
  PetscCall(scratch.GetAll(place));
  *unit        = reinterpret_cast<Units *>(places);
  found.counts = reinterpret_cast<StreamCounts *>(*unit + slices);
  PetscCall(ForSpans(layout, [&](auto groups, const Span &span) { return LaunchAnalyze<decltype(groups)::value>(layout, span, A, group, found, stream); }));
  SizesKernel<<<BlocksFor((PetscCount)slices + 1, THREADS), THREADS, 0, stream>>>(layout->nslices[AIJTC_LONG] + layout->nslices[AIJTC_TILE], slices, layout->params, table, layout->dict, layout->slice, *unit, found.counts);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cub::DeviceScan::ExclusiveScan(work, bytes, *unit, *unit, add, Units{0, 0}, slices + 1, stream));
  if (layout->params.gather) PetscCallCUDA(cudaMemcpyAsync(&found.counts->lists, lists, sizeof(*lists), cudaMemcpyDeviceToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync(counts, found.counts, copied, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
