/*
   The parts of a resident kernel that reads the matrix from its layout (ksptcstreamed.cuh) and multiplies by what bulk copies have brought to shared memory, for matrices whose rows have few distances to their columns: grids.

   Method   A cooperative kernel, one block of 8 warps a multiprocessor. A block has a patch of the grid (ksptcwindowed.h): a part, the same of each, of some planes that follow each other. What its rows multiply by
            is in windows in shared memory. The block keeps that of its own rows up to date itself, and writes to device memory what others multiply by, too; copies bring the rest in each iteration, a quarter as much
            as consecutive rows would need. While they are under way the block does the slices that do not need them. A load that asks L1, and then L2, for what another multiprocessor has just written has a warp
            wait for each batch of slots.
            Warp w has slices w, w + 8, .. of its block, at most eight, in all phases: vectors that nobody else reads are in registers.
            Slots of a patch's slices are made of those of the layout's before the first call, and anew whenever that may have other values; whether all columns are in the windows is found then. Sums have the
            bits of all other products of the layout.
   Layout   aijtclayout.h; ksptcwindowed.h. Slots: KSPTCWindowTurn[block][slice][turn], and behind them int[block][slice], how many slots, and values of
            entries, if they have such: [block][slice][slot][row]. Shared memory of a block: the windows; a vector of its rows in part, and whole ones; which rows its slices have, and
            what is copied; its slots, a value and a distance each, and for each lane a bit a slot and row.
   Memory   an iteration: 8 bytes written for each row that another block multiplies by, and what the windows have of those read from L2: 7-point 101^3 3.3 and 4.2 MB, 1.5 us at 5.3 TB/s. A product: 8 bytes a nonzero in
            shared memory, 58 MB, 1.8 us at 128 bytes a cycle and multiprocessor
   References
            Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009; PTX ISA: mbarrier, cp.async.bulk
*/
#pragma once

#include <../src/parts/cuda/bulkcopy.cuh>
#include <../src/ksp/resident/ksptcstreamed.cuh>

constexpr int KSPTC_WINDOWED_THREADS = KSPTC_LANES * KSPTC_WINDOWED_WARPS;
constexpr int KSPTC_WINDOWED_BATCH   = 4; /* slices of a warp whose vectors are under way from device memory */
constexpr int KSPTC_WINDOWED_PART    = 2; /* slices of a warp that a vector may have in shared memory beside others that it has not */
static_assert((int)KSPTC_WINDOWED_LANES == (int)KSPTC_LANES, "a row group is a warp's");

/* Vectors of its rows that a kernel has use for in a block's shared memory */
struct KSPTCWindowVectors {
  int  whole; /* as many as there is room for */
  bool part;  /* and one of all rows, or of those of a few rounds */
};

/* What a block has in shared memory */
struct KSPTCWindowShape {
  KSPTCWindows windows;
  int          vectors; /* of its rows */
  int          part;    /* slices whose rows one more vector has */
  size_t       shared;  /* bytes */
};

/* A slot: how far columns are from their rows in the windows */
struct alignas(16) KSPTCWindowSlot {
  PetscScalar a;
  int32_t     to, unused;
};

/* Some slots of a slice, and a bit 4 (slot) + group for each row of a lane that has an entry */
struct KSPTCWindowTurn {
  KSPTCWindowSlot slot[KSPTC_WINDOWED_TURN];
  uint16_t        has[KSPTC_LANES];
};
static_assert(KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_GROUPS <= 16, "a bit for each row of a lane in each slot");
static_assert(sizeof(KSPTCWindowTurn) == KSPTC_WINDOWED_BYTES, "what hosts reckon with");

template <class Scalars, class Vectors>
struct KSPTCWindowedProblem : KSPTCCall<Scalars, Vectors> {
  const KSPTCWindowTurn *slots;
  const PetscScalar     *values; /* if each entry has its own */
  PetscInt               m;
  KSPTCWindowShape       shape;
};

/* A thread's row: its number in the block, its place in the windows, the matrix's row; is there one? */
struct KSPTCWindowRow {
  int  number, place, row;
  bool is;
};

/* Numbers, in device memory, of the values that a block's entries have, if each has its own: [slice][slot][row] */
PETSCTC_HOST_DEVICE size_t KSPTCValuesOfBlock(const KSPTCWindows *windows)
{
  return (size_t)windows->slices * windows->turns * KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_ROWS;
}

/* A block's patch. arrived: an mbarrier */
class KSPTCWindowedShare {
public:
  template <class Problem>
  __device__ __forceinline__ KSPTCWindowedShare(const Problem &P, double *memory, uint64_t *arrived) :
    windows_(P.shape.windows),
    vectors_(P.shape.vectors),
    part_(P.shape.part),
    inner_(KSPTCPatchOf(&windows_, (int)blockIdx.x).inner),
    window_(memory),
    slice_((KSPTCPatchSlice *)vector(vectors_)),
    copy_((KSPTCWindowCopy *)(slice_ + KSPTC_WINDOWED_SLICES)),
    turn_((KSPTCWindowTurn *)(copy_ + KSPTC_WINDOWED_COPIES)),
    slots_((int *)(turn_ + windows_.turns * windows_.slices)),
    values_(P.values ? P.values + (size_t)blockIdx.x * KSPTCValuesOfBlock(&windows_) : nullptr),
    arrived_(arrived)
  {
  }

  /* What is multiplied, by place */
  __device__ __forceinline__ double *windows() const { return window_; }
  /* The k-th of the other vectors in shared memory, by number */
  __device__ __forceinline__ double *vector(int k) const { return part() + KSPTC_WINDOWED_ROWS * (part_ + k * windows_.slices); }
  __device__ __forceinline__ bool    holds(int k) const { return k < vectors_; }
  /* One more, by number. Has it those of that round? */
  __device__ __forceinline__ double *part() const { return window_ + windows_.elements; }
  __device__ __forceinline__ bool    hasPart(int round) const { return KSPTC_WINDOWED_WARPS * (round / KSPTC_WINDOWED_PART * KSPTC_WINDOWED_PART) < part_; }

  /* By all threads, before a barrier of the block */
  __device__ __forceinline__ void initialize(const KSPTCWindowTurn *slots) const
  {
    const KSPTCPatch patch = KSPTCPatchOf(&windows_, (int)blockIdx.x);
    const int        turns = windows_.turns * windows_.slices, counts = windows_.slices;
    const int4      *from  = reinterpret_cast<const int4 *>(slots + (size_t)turns * blockIdx.x);
    const int       *count = reinterpret_cast<const int *>(slots + (size_t)turns * windows_.blocks) + (size_t)counts * blockIdx.x;

    if (threadIdx.x == 0) InitializeBarrier(arrived_, KSPTC_LANES);
    for (int n = (int)threadIdx.x; n < KSPTC_WINDOWED_SLICES; n += KSPTC_WINDOWED_THREADS) slice_[n] = KSPTCSliceOf(&windows_, &patch, n);
    for (int n = (int)threadIdx.x; n < KSPTC_WINDOWED_COPIES; n += KSPTC_WINDOWED_THREADS) copy_[n] = n < KSPTCCopies(&windows_, &patch) ? KSPTCCopyOf(&windows_, &patch, n) : KSPTCWindowCopy{};
    for (int n = (int)threadIdx.x; n < turns * (int)(sizeof(KSPTCWindowTurn) / sizeof(int4)); n += KSPTC_WINDOWED_THREADS) reinterpret_cast<int4 *>(turn_)[n] = __ldg(from + n);
    for (int n = (int)threadIdx.x; n < counts; n += KSPTC_WINDOWED_THREADS) slots_[n] = __ldg(count + n);
    __syncthreads();
  }

  /* What windows have of other blocks' rows is sent for, behind a barrier that orders memory; once an iteration. The last warp does it, which may have a slice less than the others, and no sums to collect */
  __device__ __forceinline__ void request(const PetscScalar *x) const
  {
    unsigned bytes = 0;

    if (threadIdx.x < KSPTC_WINDOWED_THREADS - KSPTC_LANES) return;
    FenceCopies();
    FenceWindows();
#pragma unroll
    for (int n = 0; n < KSPTC_WINDOWED_COPIES; n += KSPTC_LANES) bytes += send(copy_[n + (int)threadIdx.x % KSPTC_LANES], x);
    ArriveWith(arrived_, bytes);
  }

  /* By a warp: what others multiply by, of its rows, as the windows have it. In a loop of its own: behind the tests of each row it would be waited for there */
  __device__ __forceinline__ void publish(PetscScalar *x) const
  {
#pragma unroll 1
    for (int round = 0; round < KSPTC_WINDOWED_ROUNDS; round++) {
      if (slice(round) < inner_) continue;
      const KSPTCPatchSlice of = slice_[slice(round)];

#pragma unroll
      for (int g = 0; g < KSPTC_WINDOWED_GROUPS; g++) {
        const KSPTCWindowRow at = row(of, round, g);

        if (at.is) x[at.row] = window_[at.place];
      }
    }
  }

  /* By a warp, in the rounds' order: there is what slice `round` of it multiplies by. turn: how many iterations have had their windows */
  __device__ __forceinline__ void await(int round, unsigned turn) const
  {
    if (slice(round) >= inner_) AwaitPhase(arrived_, turn & 1);
  }

  /* Calls at(round) for the slices of this warp */
  template <class At>
  __device__ __forceinline__ void forSlices(At at) const
  {
#pragma unroll
    for (int round = 0; round < KSPTC_WINDOWED_ROUNDS; round++) {
      if (slice(round) < windows_.slices) at(round);
    }
  }

  /* Calls at(round, group, row) for all rows that a thread may have. Without a branch: what a row needs from memory is requested with what others need */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
    forRows([](int, int, const KSPTCWindowRow &) {}, at);
  }

  /* The same of load() for the rows of some slices, then of use() for them: what they load is under way together */
  template <class Load, class Use>
  __device__ __forceinline__ void forRows(Load load, Use use) const
  {
    forBatches<0, KSPTC_WINDOWED_ROUNDS, KSPTC_WINDOWED_BATCH, false>(load, use);
  }

  /* The same where load() needs a number of the vector that is there in part, or not at all: load(round, group, row, number), 1 of what is no row. memory: the vector, by row, which nobody writes */
  template <class Load, class Use>
  __device__ __forceinline__ void forRowsWithPart(const double *memory, Load load, Use use) const
  {
    forParts<0>(memory, load, use);
  }

  __device__ __forceinline__ KSPTCWindowRow row(int round, int g) const
  {
    return row(slice_[slice(round)], round, g);
  }

  /* The sums of the rows of this warp's slice of that round, as AddRows() makes them. valued: every entry has a value of its own, in device memory */
  template <bool valued>
  __device__ __forceinline__ void multiply(int round, RowSums<KSPTC_WINDOWED_GROUPS> &sums) const
  {
    const int              k = slice(round), slots = slots_[k], lane = threadIdx.x % KSPTC_LANES;
    const KSPTCWindowTurn *turn    = turn_ + windows_.turns * k;
    const double *const    windows = window_ + slice_[k].place + lane;
    const double          *value   = values_ + KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_ROWS * windows_.turns * k + lane;

#pragma unroll 1
    for (int left = slots; left > 0; left -= KSPTC_WINDOWED_TURN, turn++, value += KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_ROWS) {
      const unsigned has = turn->has[lane];
      double         a[KSPTC_WINDOWED_TURN][valued ? KSPTC_WINDOWED_GROUPS : 1], x[KSPTC_WINDOWED_TURN][KSPTC_WINDOWED_GROUPS];

      if constexpr (valued) {
#pragma unroll
        for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
#pragma unroll
          for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) a[t][r] = t < left ? __ldcg(value + KSPTC_WINDOWED_ROWS * t + KSPTC_LANES * r) : 0.0;
        }
      }
#pragma unroll
      for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
        const KSPTCWindowSlot s = turn->slot[t];

        if constexpr (!valued) a[t][0] = s.a;
#pragma unroll
        for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) x[t][r] = windows[s.to + KSPTC_LANES * r]; /* there is memory wherever a slot points to */
      }
      __syncwarp(); /* so that the compiler asks for all of x before it looks at who has an entry: else each x is waited for */
#pragma unroll
      for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
#pragma unroll
        for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) {
          if (has >> (KSPTC_WINDOWED_GROUPS * t + r) & 1) sums.sum[r] = fma(a[t][valued ? r : 0], x[t][r], sums.sum[r]);
        }
      }
    }
  }

private:
  __device__ __forceinline__ KSPTCWindowRow row(const KSPTCPatchSlice &of, int round, int g) const
  {
    const int k = slice(round), at = KSPTC_LANES * g + (int)threadIdx.x % KSPTC_LANES;

    return {KSPTC_WINDOWED_ROWS * k + at, of.place + at, of.row + at, at < of.rows};
  }
  template <int Begin, int Batch, class At>
  __device__ __forceinline__ void forBatch(const KSPTCPatchSlice (&of)[Batch], At at) const
  {
#pragma unroll
    for (int k = 0; k < Batch * KSPTC_WINDOWED_GROUPS; k++) {
      const int b = k / KSPTC_WINDOWED_GROUPS, g = k % KSPTC_WINDOWED_GROUPS;

      at(Begin + b, g, row(of[b], Begin + b, g));
    }
  }
  /* Which rows they are is looked up before anything is stored, behind which the compiler would look again, row by row. constant: load() reads what nobody writes, which it would ask for when it is used, row by row */
  template <int Begin, int End, int Batch, bool constant, class Load, class Use>
  __device__ __forceinline__ void forBatches(Load load, Use use) const
  {
    KSPTCPatchSlice of[Batch];

#pragma unroll
    for (int b = 0; b < Batch; b++) of[b] = slice_[slice(Begin + b)];
    forBatch<Begin>(of, load);
    if constexpr (constant) __syncwarp();
    forBatch<Begin>(of, use);
    if constexpr (Begin + Batch < End) forBatches<Begin + Batch, End, Batch, constant>(load, use);
  }

  /* Rounds that the part has, slice by slice, which takes fewer registers, and those that it has not, whose numbers are under way together */
  template <int Begin, class Load, class Use>
  __device__ __forceinline__ void forParts(const double *memory, Load load, Use use) const
  {
    constexpr int       End  = Begin + KSPTC_WINDOWED_PART;
    const double *const mine = part() + threadIdx.x / KSPTC_LANES * KSPTC_WINDOWED_ROWS + threadIdx.x % KSPTC_LANES; /* the thread's first row; of the others part()[row.number] would be an address of its own for each */

    if (hasPart(Begin)) {
      forBatches<Begin, End, 1, false>([&](int round, int g, const KSPTCWindowRow &row) { load(round, g, row, row.is ? mine[KSPTC_WINDOWED_ROWS * KSPTC_WINDOWED_WARPS * round + KSPTC_LANES * g] : 1.0); }, use);
    } else {
      forBatches<Begin, End, KSPTC_WINDOWED_PART, true>([&](int round, int g, const KSPTCWindowRow &row) { load(round, g, row, row.is ? __ldg(memory + row.row) : 1.0); }, use);
    }
    if constexpr (End < KSPTC_WINDOWED_ROUNDS) forParts<End>(memory, load, use);
  }

  /* Of this warp in that round */
  __device__ __forceinline__ static int slice(int round)
  {
    return (int)threadIdx.x / KSPTC_LANES + KSPTC_WINDOWED_WARPS * round;
  }

  /* By a thread: sends for a copy, and says for how many bytes. An element at either end that does not begin or end a pair is brought by the thread itself */
  __device__ __forceinline__ unsigned send(const KSPTCWindowCopy &copy, const PetscScalar *x) const
  {
    const int      first = copy.from, end = copy.end, low = first + (first & 1), high = max(end - (end & 1), low);
    double *const  place = window_ + (copy.place - first);
    const unsigned bytes = (unsigned)(high - low) * (unsigned)sizeof(PetscScalar);

    SendBulk(place + low, x + low, bytes, arrived_);
    if (low > first && first < end) place[first] = x[first];
    if (end > high) place[high] = x[high];
    return bytes;
  }

  const KSPTCWindows &windows_;
  int                 vectors_, part_, inner_;
  double             *window_;
  KSPTCPatchSlice    *slice_;
  KSPTCWindowCopy    *copy_;
  KSPTCWindowTurn    *turn_;
  int                *slots_; /* of each slice */
  const PetscScalar  *values_;
  uint64_t           *arrived_;
};

/* ---- the host's side */

/* What a block has in shared memory: vectors of its rows beside the windows, as far as there is room. False: not even the windows */
static inline bool KSPTCWindowsHold(const KSPTCWindows &windows, const KSPTCChip &chip, const KSPTCWindowVectors &vectors, KSPTCWindowShape *shape)
{
  const size_t slice = KSPTC_WINDOWED_ROWS * sizeof(PetscScalar);
  const int    few   = KSPTC_WINDOWED_PART * KSPTC_WINDOWED_WARPS;

  *shape         = {};
  shape->windows = windows;
  for (shape->vectors = vectors.whole; shape->vectors >= 0; shape->vectors--) {
    shape->shared = KSPTCBytesOfWindows(&windows, shape->vectors);
    if (shape->shared > chip.shared) continue;
    const int room = (int)((chip.shared - shape->shared) / slice);

    if (vectors.part) shape->part = room >= windows.slices ? windows.slices : room / few * few;
    shape->shared += shape->part * slice;
    return true;
  }
  return false;
}

/* work->windowed, ->windows, ->slots, ->values. chip: of a kernel. Waits for the device where this build of the layout, or its values, have not been looked at before */
PETSC_INTERN PetscErrorCode KSPTCLookAtWindows(const AIJTCLayout *layout, const KSPTCChip *chip, KSPTCResidentWork *work, cudaStream_t stream);

/* By what the host knows of a layout */
static inline bool KSPTCMayHaveWindows(const AIJTCLayout *A)
{
  return KSPTCStreams(A) && A->params.bs == 1;
}

static inline KSPTCGrid KSPTCGridOf(const KSPTCWindowShape &shape)
{
  return {(unsigned)shape.windows.blocks, KSPTC_WINDOWED_THREADS, shape.shared};
}

/* kernels: for slots that are constants, and for values of entries. taken: there are windows, and one is launched, unless the device refuses it. multiplied: two vectors, which copies take from addresses that are multiples of 16 */
template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCWindowedRun(const void *const kernels[2], const AIJTCLayout *layout, const KSPTCWindowVectors &vectors, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const PetscScalar *const multiplied[2], const Steps *steps,
                                              KSPTCResidentWork *work, PetscBool *taken, PetscBool *refused, cudaStream_t stream)
{
  KSPTCWindowedProblem<Scalars, Vectors> problem = {};
  KSPTCChip                              chip;

  PetscFunctionBegin;
  PetscCall(KSPTCChipGet_CUDA(&chip));
  *taken = (PetscBool)(chip.bulk && KSPTCMayHaveWindows(layout) && ((size_t)multiplied[0] | (size_t)multiplied[1]) % 16 == 0);
  if (!*taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCLookAtWindows(layout, &chip, work, stream));
  *taken = (PetscBool)(work->windowed && KSPTCWindowsHold(work->windows, chip, vectors, &problem.shape));
  if (!*taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.slots        = (const KSPTCWindowTurn *)work->slots;
  problem.values       = work->values;
  problem.m            = layout->m;
  const KSPTCGrid grid = KSPTCGridOf(problem.shape);
  PetscCall(KSPTCResidentLaunch(kernels[work->values ? 1 : 0], &grid, &problem, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
