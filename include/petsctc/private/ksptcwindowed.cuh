/*
   The parts of a resident kernel that reads the matrix from its layout (ksptcstreamed.cuh) and multiplies by what bulk copies have brought to shared memory, for matrices whose slices are constants and offsets: grids.

   Method   A cooperative kernel, one block of 8 warps a multiprocessor. A block has consecutive rows; their columns are near the rows themselves and, `apart` before and behind, near the same rows of the planes
            before and behind. So there are three windows of the vector that is multiplied, or one where all columns are near. A block keeps that of its own rows up to date itself; the rest of the windows comes from
            device memory in each iteration, by copies of which nobody waits for one by one, as many slices at a time as the block has warps. A load that asks L1, and then L2, for what another multiprocessor has just
            written has a warp wait for each batch of slots.
            Warp w has slices w, w + 8, .. of its block, at most eight, in all phases: vectors that nobody else reads are in registers.
            That all slices are so, and all their columns in a window, is looked at before the first call, once for each build of a layout. Sums have the bits of all other products of the layout.
   Layout   aijtclayout.h: slices of 4 x 32 consecutive rows. Shared memory of a block: the windows, of which that of its own rows is the first; vectors of its rows; the slots of its slices, a value and a place each, and for each lane a bit a slot and row.
   Memory   an iteration: 8 bytes a row written, and what the windows have of other blocks' rows read from L2: 7-point 101^3 8 and 17 MB, 5 us at 5.3 TB/s. A product: 8 bytes a nonzero in shared memory, 58 MB, 1.8 us at
            128 bytes a cycle and multiprocessor
   References
            Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009; PTX ISA: mbarrier, cp.async.bulk
*/
#pragma once

#include <petsctc/private/bulkcopy.cuh>
#include <petsctc/private/ksptcstreamed.cuh>

constexpr int KSPTC_WINDOWED_WARPS   = 8; /* 255 registers a thread: with twice as many warps vectors are spilled */
constexpr int KSPTC_WINDOWED_THREADS = KSPTC_LANES * KSPTC_WINDOWED_WARPS;
constexpr int KSPTC_WINDOWED_ROUNDS  = 8; /* slices of a warp at most */
constexpr int KSPTC_WINDOWED_GROUPS  = 4; /* row groups of a slice */
constexpr int KSPTC_WINDOWED_ROWS    = KSPTC_LANES * KSPTC_WINDOWED_GROUPS;
constexpr int KSPTC_WINDOWED_TURN    = 4; /* slots under way */
constexpr int KSPTC_WINDOWED_BATCH   = 4; /* slices of a warp whose vectors are under way from device memory */
constexpr int KSPTC_WINDOWED_COPIES  = 2 + 2 * KSPTC_WINDOWED_ROUNDS;

/* How slices are dealt, and what a block has in shared memory */
struct KSPTCWindows {
  int    blocks, slices; /* slices: of a block at most */
  int    numbers;        /* elements of a vector of its rows */
  int    count;          /* of windows: 1 or 3 */
  int    apart, halo;    /* columns; halo, on either side of a window, is even */
  int    length;         /* elements of a window */
  int    vectors, turns; /* of its rows; of KSPTC_WINDOWED_TURN slots, of a slice at most */
  size_t shared;         /* bytes */
};

/* A slot whose columns are in a window */
struct alignas(16) KSPTCWindowSlot {
  PetscScalar a;
  int32_t     at, unused; /* place, in the windows, of the column of the slice's first row */
};

/* Some slots of a slice, and a bit 4 (slot) + group for each row of a lane that has an entry */
struct KSPTCWindowTurn {
  KSPTCWindowSlot slot[KSPTC_WINDOWED_TURN];
  uint16_t        has[KSPTC_LANES];
};
static_assert(KSPTC_WINDOWED_TURN * KSPTC_WINDOWED_GROUPS <= 16, "a bit for each row of a lane in each slot");

/* Window 0 is that of the block's own rows, 1 that of the plane before, 2 behind: columns from the rows' */
__device__ __forceinline__ int KSPTCDistanceOf(const KSPTCWindows &windows, int window)
{
  return window == 0 ? 0 : (window == 1 ? -windows.apart : windows.apart);
}

/* The window for columns `base` from their rows */
__device__ __forceinline__ int KSPTCWindowOf(const KSPTCWindows &windows, int base)
{
  if (windows.count == 1) return 0;
  return base > windows.apart / 2 ? 2 : (base < -(windows.apart / 2) ? 1 : 0);
}

/* By a warp: is this a slice of constants and offsets, whose columns are all in windows? */
__device__ __forceinline__ bool KSPTCInWindows(const LayoutView &A, const KSPTCWindows &windows, PetscInt slice)
{
  const SliceView s  = LoadSlice<KSPTC_WINDOWED_GROUPS>(A, slice, 1);
  bool            is = (s.form & AIJTC_FORM_CONST) && !(s.form >> AIJTC_FORM_DELTA & 3) && !(s.form & AIJTC_FORM_RID) && s.slots <= windows.turns * KSPTC_WINDOWED_TURN;

  for (int t = threadIdx.x % KSPTC_LANES; is && t < s.slots; t += KSPTC_LANES) {
    const int base = __ldg(&s.slot[t].base);

    is = abs(base - KSPTCDistanceOf(windows, KSPTCWindowOf(windows, base))) <= windows.halo;
  }
  return __all_sync(AIJTC_ALL_LANES, is);
}

template <class Scalars, class Vectors>
struct KSPTCWindowedProblem : KSPTCCall<Scalars, Vectors> {
  LayoutView   A;
  PetscInt     m, slices;
  KSPTCWindows windows;
  bool         tensor; /* sums fold on the Tensor Core */
};

/* A block's share of the slices. arrived: mbarriers, one a copy */
class KSPTCWindowedShare {
public:
  template <class Problem>
  __device__ __forceinline__ KSPTCWindowedShare(const Problem &P, double *memory, uint64_t *arrived) :
    A_(P.A),
    windows_(P.windows),
    m_(P.m),
    first_((PetscInt)((PetscCount)P.slices * blockIdx.x / gridDim.x)),
    slices_((PetscInt)((PetscCount)P.slices * (blockIdx.x + 1) / gridDim.x) - first_),
    rows_((int)min((PetscInt)(KSPTC_WINDOWED_ROWS * slices_), P.m - KSPTC_WINDOWED_ROWS * first_)),
    window_(memory),
    turn_((KSPTCWindowTurn *)(memory + P.windows.count * P.windows.length + P.windows.vectors * P.windows.numbers)),
    turns_((int *)(turn_ + P.windows.turns * P.windows.slices)),
    arrived_(arrived)
  {
  }

  /* What is multiplied, of the block's own rows */
  __device__ __forceinline__ double *own() const { return window_ + windows_.halo; }
  /* The k-th of the other vectors in shared memory */
  __device__ __forceinline__ double *vector(int k) const { return window_ + windows_.count * windows_.length + k * windows_.numbers; }
  __device__ __forceinline__ bool    holds(int k) const { return k < windows_.vectors; }

  /* By all threads, before a barrier of the block */
  __device__ __forceinline__ void initialize() const
  {
    if (threadIdx.x < KSPTC_WINDOWED_COPIES) InitializeBarrier(arrived_ + threadIdx.x);
    for (int k = warp(); k < slices_; k += KSPTC_WINDOWED_WARPS) keep(k);
    __syncwarp();
  }

  /* By warp 0: what windows have of other blocks' rows is sent for, behind a barrier that orders memory; once an iteration */
  __device__ __forceinline__ void request(const PetscScalar *x) const
  {
    const int of_block = KSPTC_WINDOWED_ROWS * slices_, lane = threadIdx.x % KSPTC_LANES;

    FenceCopies();
    if (lane == 0) copy(0, 0, windows_.halo, x, arrived_);
    if (lane == 1) copy(0, windows_.halo + of_block, 2 * windows_.halo + of_block, x, arrived_ + 1);
    if (lane < 2 || KSPTC_WINDOWED_WARPS * ((lane - 2) / 2) >= slices_ || windows_.count == 1) return; /* nobody would wait for what no slice needs */
    const int round = (lane - 2) / 2, step = KSPTC_WINDOWED_ROWS * KSPTC_WINDOWED_WARPS, beside = 2 * windows_.halo + 2;

    copy(1 + lane % 2, round ? min(step * round, of_block) + beside : 0, min(step * (round + 1), of_block) + beside, x, arrived_ + lane);
  }

  /* By a warp, in the rounds' order: there is what slice `round` of it multiplies by. turn: how many iterations have had their windows */
  __device__ __forceinline__ void await(int round, unsigned turn) const
  {
    if (round == 0) {
      AwaitPhase(arrived_, turn & 1);
      AwaitPhase(arrived_ + 1, turn & 1);
    }
    if (windows_.count == 1) return;
    AwaitPhase(arrived_ + 2 + 2 * round, turn & 1);
    AwaitPhase(arrived_ + 3 + 2 * round, turn & 1);
  }

  /* Calls at(round, number of this lane's first row of the slice) for the slices of this warp. Numbers of the groups' rows are KSPTC_LANES apart */
  template <class At>
  __device__ __forceinline__ void forSlices(At at) const
  {
#pragma unroll
    for (int round = 0; round < KSPTC_WINDOWED_ROUNDS; round++) {
      const int k = warp() + KSPTC_WINDOWED_WARPS * round;

      if (k < slices_) at(round, KSPTC_WINDOWED_ROWS * k + (int)(threadIdx.x % KSPTC_LANES));
    }
  }

  /* Calls at(round, group, number, is there such a row?) for all rows that a thread may have. Without a branch: what a row needs from memory is requested with what others need */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
    forRows<0, KSPTC_WINDOWED_ROUNDS>(at);
  }

  /* The same of load() for the rows of some slices, then of use() for them: what they load is under way together */
  template <class Load, class Use>
  __device__ __forceinline__ void forRows(Load load, Use use) const
  {
    forBatches<0>(load, use);
  }

  /* The sums of the rows of this warp's slice of that round, as AddRows() makes them */
  __device__ __forceinline__ void multiply(int round, RowSums<KSPTC_WINDOWED_GROUPS> &sums) const
  {
    const int              k = warp() + KSPTC_WINDOWED_WARPS * round, turns = turns_[k], lane = threadIdx.x % KSPTC_LANES;
    const KSPTCWindowTurn *turn    = turn_ + windows_.turns * k;
    const double *const    windows = window_ + lane;

#pragma unroll 1
    for (int n = 0; n < turns; n++, turn++) {
      const unsigned has = turn->has[lane];
      double         a[KSPTC_WINDOWED_TURN], x[KSPTC_WINDOWED_TURN][KSPTC_WINDOWED_GROUPS];

#pragma unroll
      for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
        const KSPTCWindowSlot s = turn->slot[t];

        a[t] = s.a;
#pragma unroll
        for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) x[t][r] = windows[s.at + KSPTC_LANES * r]; /* there is memory wherever a slot points to */
      }
      __syncwarp(); /* so that the compiler asks for all of x before it looks at who has an entry: else each x is waited for */
#pragma unroll
      for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
#pragma unroll
        for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) {
          if (has >> (KSPTC_WINDOWED_GROUPS * t + r) & 1) sums.sum[r] = fma(a[t], x[t][r], sums.sum[r]);
        }
      }
    }
  }

  /* The row of a number, and whether the block has it */
  __device__ __forceinline__ int row(int number) const
  {
    return KSPTC_WINDOWED_ROWS * (int)first_ + number;
  }
  __device__ __forceinline__ bool isRow(int number) const
  {
    return number < rows_;
  }

private:
  template <int Begin, int Count, class At>
  __device__ __forceinline__ void forRows(At at) const
  {
    const int first = KSPTC_WINDOWED_ROWS * warp() + (int)(threadIdx.x % KSPTC_LANES);

#pragma unroll
    for (int k = 0; k < Count * KSPTC_WINDOWED_GROUPS; k++) {
      const int round = Begin + k / KSPTC_WINDOWED_GROUPS, g = k % KSPTC_WINDOWED_GROUPS, number = first + KSPTC_WINDOWED_WARPS * KSPTC_WINDOWED_ROWS * round + KSPTC_LANES * g;

      at(round, g, number, number < rows_);
    }
  }
  template <int Begin, class Load, class Use>
  __device__ __forceinline__ void forBatches(Load load, Use use) const
  {
    forRows<Begin, KSPTC_WINDOWED_BATCH>(load);
    forRows<Begin, KSPTC_WINDOWED_BATCH>(use);
    if constexpr (Begin + KSPTC_WINDOWED_BATCH < KSPTC_WINDOWED_ROUNDS) forBatches<Begin + KSPTC_WINDOWED_BATCH>(load, use);
  }

  __device__ __forceinline__ static int warp()
  {
    return (int)threadIdx.x / KSPTC_LANES;
  }

  /* The column that a window begins with: even, for the sake of copies */
  __device__ __forceinline__ int begin(int window) const
  {
    const int distance = KSPTCDistanceOf(windows_, window);

    return row(0) + distance - windows_.halo - (distance & 1);
  }

  /* By a warp: its slots, and those that it has not too, in which nobody has an entry */
  __device__ __forceinline__ void keep(int k) const
  {
    const SliceView        s     = LoadSlice<KSPTC_WINDOWED_GROUPS>(A_, first_ + k, 1);
    const int              turns = (s.slots + KSPTC_WINDOWED_TURN - 1) / KSPTC_WINDOWED_TURN, lane = threadIdx.x % KSPTC_LANES, own = KSPTC_WINDOWED_ROWS * k + windows_.halo;
    KSPTCWindowTurn *const turn = turn_ + windows_.turns * k;

    for (int n = 0; n < turns; n++) {
      unsigned has = 0;

      for (int t = 0; t < KSPTC_WINDOWED_TURN; t++) {
        const int  of   = KSPTC_WINDOWED_TURN * n + t;
        const bool is   = of < s.slots;
        const int  base = is ? __ldg(&s.slot[of].base) : 0, window = KSPTCWindowOf(windows_, base);

        if (lane == 0) turn[n].slot[t] = {is ? __ldg(reinterpret_cast<const PetscScalar *>(s.value) + of) : 0.0, is ? windows_.length * window + row(0) + KSPTC_WINDOWED_ROWS * k + base - begin(window) : own, 0};
        for (int r = 0; r < KSPTC_WINDOWED_GROUPS; r++) {
          const unsigned mask = !is ? 0 : s.form & AIJTC_FORM_FULL ? AIJTC_ALL_LANES : __ldg(s.mask + KSPTC_WINDOWED_GROUPS * of + r);

          has |= (mask >> lane & 1) << (KSPTC_WINDOWED_GROUPS * t + r);
        }
      }
      turn[n].has[lane] = (uint16_t)has;
    }
    if (lane == 0) turns_[k] = turns;
  }

  /* By a thread: places from .. to - 1 of a window, as far as there are such columns. from is even, so that only the last column may be without the other of its pair */
  __device__ __forceinline__ void copy(int window, int from, int to, const PetscScalar *x, uint64_t *barrier) const
  {
    const int     zero = begin(window), first = max(zero + from, 0), end = max(min(zero + to, (int)m_), first);
    double *const place = window_ + windows_.length * window + (first - zero);
    const int     odd   = (end - first) & 1;

    if (odd) place[end - first - 1] = x[end - 1];
    CopyBulk(place, x + first, (unsigned)(end - first - odd) * (unsigned)sizeof(PetscScalar), barrier);
  }

  const LayoutView   &A_;
  const KSPTCWindows &windows_;
  PetscInt            m_, first_;
  int                 slices_, rows_;
  double             *window_;
  KSPTCWindowTurn    *turn_;
  int                *turns_; /* of each slice */
  uint64_t           *arrived_;
};

/* ---- the host's side */

static inline int KSPTCEven(int number)
{
  return number + (number & 1);
}

/* Windows with up to so many vectors of the rows beside them, for a kernel that has `shared` bytes. False: they are not for this layout */
static inline bool KSPTCWindowsOf(const AIJTCLayout *A, const KSPTCChip *chip, int vectors, KSPTCWindows *windows)
{
  const PetscInt all  = A->nslices[AIJTC_ROWS];
  const PetscInt mean = (PetscInt)((A->nnz - 1) / PetscMax(A->m - A->nempty, 1)) + 1;

  *windows = {};
  if (!KSPTCStreams(A) || !KSPTCKeepsSlots(A) || A->params.rrows != KSPTC_WINDOWED_GROUPS || A->nconsecutive != all || chip->blocks == 0) return false;
  windows->blocks = (int)PetscMin(all, (PetscInt)chip->blocks);
  windows->slices = (int)(all - 1) / windows->blocks + 1;
  if (windows->slices > KSPTC_WINDOWED_WARPS * KSPTC_WINDOWED_ROUNDS) return false;
  windows->numbers    = KSPTC_WINDOWED_ROWS * windows->slices;
  windows->turns      = ((int)mean + 1 + KSPTC_WINDOWED_TURN - 1) / KSPTC_WINDOWED_TURN;
  const int  all_near = KSPTCEven((int)A->stride), near = KSPTCEven((int)A->line);
  const bool one  = windows->numbers + 2 * (PetscCount)all_near <= 3 * (PetscCount)(windows->numbers + 2 * near);
  windows->count  = one ? 1 : 3;
  windows->apart  = one ? 0 : (int)A->stride;
  windows->halo   = one ? all_near : near;
  windows->length = windows->numbers + 2 * windows->halo + 2;
  for (windows->vectors = vectors; windows->vectors >= 0; windows->vectors--) {
    windows->shared = ((size_t)windows->count * windows->length + (size_t)windows->vectors * windows->numbers) * sizeof(PetscScalar) + (size_t)windows->slices * (windows->turns * sizeof(KSPTCWindowTurn) + sizeof(int));
    if (windows->shared <= chip->shared) return true;
  }
  return false;
}

/* The same, and all slices of the layout are so. Waits for the device where this build of the layout has not been looked at before, for which `work` is */
PETSC_INTERN PetscErrorCode KSPTCLookAtWindows(const AIJTCLayout *layout, const KSPTCWindows *windows, KSPTCResidentWork *work, PetscBool *fit, cudaStream_t stream);

static inline KSPTCGrid KSPTCGridOf(const KSPTCWindows &windows)
{
  return {(unsigned)windows.blocks, KSPTC_WINDOWED_THREADS, windows.shared};
}

/* has: windows are for this layout, by what the host knows of it, and for this device. vectors: that the kernel has use for in shared memory */
static inline PetscErrorCode KSPTCWindowsOfKernel(const void *kernel, const AIJTCLayout *layout, int vectors, KSPTCWindows *windows, PetscBool *has)
{
  KSPTCChip chip;

  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(&kernel, 1, &chip));
  *has = (PetscBool)(PetscTCCopiesInBulk(kernel) && KSPTCWindowsOf(layout, &chip, vectors, windows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* can: the device runs the kernel, or there are no windows. Where they are not for this layout they may be for the next one that the same work serves */
static inline PetscErrorCode KSPTCWindowedPrepare(const void *kernel, const AIJTCLayout *layout, int vectors, PetscBool *can)
{
  KSPTCWindows windows = {};
  PetscBool    has;

  PetscFunctionBegin;
  *can = PETSC_TRUE;
  if (!PetscTCCopiesInBulk(kernel)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCWindowsOfKernel(kernel, layout, vectors, &windows, &has));
  if (!has) {
    windows        = {};
    windows.blocks = 1;
  }
  const KSPTCGrid grid = KSPTCGridOf(windows);
  PetscCall(KSPTCPrepareKernel(kernel, &grid, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* taken: there are windows, and the kernel is launched, unless the device refuses it. multiplied: two vectors, which copies take from addresses that are multiples of 16 */
template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCWindowedRun(const void *kernel, const AIJTCLayout *layout, int vectors, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const PetscScalar *const multiplied[2], const Steps *steps, KSPTCResidentWork *work,
                                              PetscBool *taken, PetscBool *refused, cudaStream_t stream)
{
  KSPTCWindowedProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCall(KSPTCWindowsOfKernel(kernel, layout, vectors, &problem.windows, taken));
  if (((size_t)multiplied[0] | (size_t)multiplied[1]) % 16) *taken = PETSC_FALSE;
  if (*taken) PetscCall(KSPTCLookAtWindows(layout, &problem.windows, work, taken, stream));
  if (!*taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.A            = AIJTCLayoutView(*layout);
  problem.m            = layout->m;
  problem.slices       = layout->nslices[AIJTC_ROWS];
  problem.tensor       = steps->tensor == PETSC_TRUE;
  const KSPTCGrid grid = KSPTCGridOf(problem.windows);
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
