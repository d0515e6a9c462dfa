/*
   What the products that sweep planes share (mult_sweep.cu, mult_waxpy.cu, spmm_sweep.cu): which slices a block takes, how windows of a vector come to shared memory, and how a warp adds up a slice from them.

   Method
     A block has the same SWEEP_ROWS rows of many planes, one after the other. The window of a plane are the columns of these rows and HALO more on either side; WINDOWS of them are in shared memory at a time, in a
     ring. The rows of a plane gather from its own window and from those of the planes before and behind. A warp is done with the plane before as soon as it has added the slots that look back, the first
     ones, and needs the plane behind for the last ones.

     While a warp adds up a slice, the slots of its next one come, one to a lane, which finds the window that the slot's columns are in and leaves for all lanes what they need: value, masks, and where in the ring
     the columns of the first lane are. A slice that has a slot whose columns are in no window, or another form, is for RowsOfSlices(), which reads the vector from memory.

   Layout
     include/petsctc/private/aijtclayout.h. A plane is `plane` slices of 4 x 32 rows, layout->stride rows to the nearest slice: windows of following planes are 128 `plane` columns apart (of several columns: groups of 32 rows, 32 `plane`). Window j of a block,
     j = -1 .. deep, is at place (j + 1) mod WINDOWS of the ring.

   Memory traffic
     mult_sweep.cu, mult_waxpy.cu

   References
     Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009; PTX ISA: mbarrier, cp.async.bulk
*/
#pragma once

#include "mult.cuh"
#include "mult_rows.cuh"
#include <../src/parts/cuda/bulkcopy.cuh>

constexpr int SWEEP_WARPS  = 16;
constexpr int SWEEP_BLOCKS = 2;  /* of a multiprocessor */
constexpr int SWEEP_PLANES = 32; /* of a block at most: not more than a mask has bits */
constexpr int SWEEP_GROUPS = 4;  /* row groups of a slice */
constexpr int SLICE_ROWS   = AIJTC_LANES * SWEEP_GROUPS;
constexpr int SWEEP_ROWS   = SWEEP_WARPS * SLICE_ROWS; /* of a block in a plane */
constexpr int WINDOWS      = 3;
constexpr int SWEEP_UNROLL = 4; /* slots under way */

/* Numbers on either side of a block's rows in a window: not shorter than a line of the grid. Known to the compiler: as an argument of the kernel it cost 5 to 10 % */
constexpr int NARROW_HALO = 128, MIDDLE_HALO = 288, WIDE_HALO = 640;

constexpr PetscCount SWEEP_PATTERN = 256; /* bytes of a slice in the mean: 10 slots with masks */
constexpr PetscInt   FEWEST_PLANES = 4;   /* with fewer of them little of x is in the window before */

/* A slot whose columns are in a window */
struct alignas(16) SweptSlot {
  PetscScalar a;
  int         at, unused; /* place in the ring of the column of lane 0 in the first row group */
  unsigned    mask[SWEEP_GROUPS];
};

/* Which slices a block takes, or, with several columns, which groups of rows of slices: of each plane as many as it has warps, those from that times its number modulo `groups` on */
struct SweepOrder {
  PetscInt begin, end; /* slices, or groups of rows */
  PetscInt plane;      /* of a plane */
  unsigned groups;     /* blocks side by side in a plane */
  unsigned deep;       /* planes of a block, at most SWEEP_PLANES */
  PetscInt n;          /* columns */
};

/* Where the windows of a block are. HALO: numbers on either side of its rows. ROWS, of which a warp has WARP_ROWS: those rows; what the order and `first` count are so many rows, too. MORE: numbers behind, an even number */
template <int HALO, int ROWS = SWEEP_ROWS, int WARP_ROWS = SLICE_ROWS, int MORE = 0>
class WindowPlaces {
public:
  static constexpr int window = ROWS + 2 * HALO + MORE;

  __device__ __forceinline__ WindowPlaces(const SweepOrder &order, PetscInt first) : n_(order.n), zero_(WARP_ROWS * first - HALO), apart_(WARP_ROWS * order.plane), deep_((int)order.deep) { }

  /* Which plane are columns `base` from those of their rows in: -1 before, 0, 1 behind */
  __device__ __forceinline__ int side(int base) const { return base > apart_ / 2 ? 1 : (base < -(apart_ / 2) ? -1 : 0); }

  /* Where in the ring is column `base` of those of this warp in plane k, which follow each other for WARP_ROWS? -1: nowhere, or not with `before` numbers before it */
  __device__ __forceinline__ int find(int k, int base, int before = 0) const
  {
    const int d  = side(base);
    const int at = WARP_ROWS * (int)(threadIdx.x / AIJTC_LANES) + HALO + base - d * apart_;

    return at >= before && at <= window - MORE - WARP_ROWS ? window * ((k + d + 1) % WINDOWS) + at : -1;
  }

protected:
  static constexpr int warps = ROWS / WARP_ROWS; /* of a block */

  /* By a warp: is it the last of the block to count? What the others did before is done */
  __device__ __forceinline__ static bool lastOfWarps(int *counter)
  {
    int count = 0;

    __syncwarp();
    if (threadIdx.x % AIJTC_LANES == 0) count = CountOne(counter);
    return __shfl_sync(AIJTC_ALL_LANES, count, 0) % warps == warps - 1;
  }

  __device__ __forceinline__ PetscCount column(int j) const { return (PetscCount)zero_ + (PetscCount)j * apart_; }

  /* By a warp: window j of x, which has n numbers, comes to `to`, if there is one. All windows but those at either end of x are whole; columns are even, so that only the last of x may be without the other of its pair */
  __device__ __forceinline__ void copy(int j, const PetscScalar *x, PetscCount n, PetscScalar *to, uint64_t *barrier) const
  {
    const PetscCount first = column(j), left = n - first;
    const int        begin = first < 0 ? (int)min(-first, (PetscCount)window) : 0, end = left < window ? (int)max(left, (PetscCount)begin) : window;
    const bool       bulk = ((size_t)x & 15) == 0;
    const int        odd = bulk ? end & 1 : end - begin, lane = (int)threadIdx.x % AIJTC_LANES; /* what no bulk copy takes */

    if (j > deep_) return;
    __syncwarp(); /* behind what lane 0 has waited for */
    for (int i = end - odd + lane; i < end; i += AIJTC_LANES) to[i] = x[first + i];
    __syncwarp();
    if (lane == 0) CopyBulk(to + begin, x + first + begin, (unsigned)(end - odd - begin) * (unsigned)sizeof(PetscScalar), barrier);
  }

  PetscInt n_, zero_, apart_; /* zero_: first column of window 0 */
  int      deep_;
};

/*
   The windows of a vector, or of COLUMNS of them that are xstride numbers apart, in a ring of WINDOWS places: a window comes as bulk copies, whose end an mbarrier tells, and the warp that is the last
   to be done with it sends for the one that takes its place. Of columns, the first is at a multiple of 16 bytes. Where another is not, it has a skew of 1: its windows begin with the number before.
*/
template <int HALO, int COLUMNS = 1, int ROWS = SWEEP_ROWS, int WARP_ROWS = SLICE_ROWS>
class WindowRing : public WindowPlaces<HALO, ROWS, WARP_ROWS, COLUMNS == 1 ? 0 : 2> {
  typedef WindowPlaces<HALO, ROWS, WARP_ROWS, COLUMNS == 1 ? 0 : 2> Places;

public:
  struct State {
    uint64_t arrived[WINDOWS];  /* mbarriers: a phase for each window that comes to this place */
    int      released[WINDOWS]; /* warps that are done with a window of this place, all windows together */
  };

  /* ring[COLUMNS][WINDOWS][window] */
  __device__ __forceinline__ WindowRing(const SweepOrder &order, PetscInt first, PetscScalar *ring, State *state, const PetscScalar *x, PetscCount xstride = 0) : Places(order, first), ring_(ring), state_(state), x_(x), xstride_(xstride) { }

  __device__ __forceinline__ void initialize() const
  {
    for (int place = 0; place < WINDOWS; place++) {
      InitializeBarrier(state_->arrived + place, COLUMNS);
      state_->released[place] = 0;
    }
  }

  /* By all threads */
  __device__ __forceinline__ void requestFirst() const
  {
#pragma unroll 1
    for (int j = -1; j < WINDOWS - 1 && threadIdx.x < AIJTC_LANES; j++) request(j);
  }

  __device__ __forceinline__ void await(int j) const
  {
    AwaitPhase(state_->arrived + (j + 1) % WINDOWS, (unsigned)(j + 1) / WINDOWS & 1);
  }

  __device__ __forceinline__ void release(int j) const
  {
    if (this->lastOfWarps(state_->released + (j + 1) % WINDOWS)) request(j + WINDOWS);
  }

  __device__ __forceinline__ int skew(int c) const
  {
    return COLUMNS > 1 ? (int)(c & xstride_ & 1) : 0;
  }

protected:
  __device__ __forceinline__ void request(int j) const
  {
    const int place = (j + 1) % WINDOWS;

#pragma unroll 1
    for (int c = 0; c < COLUMNS; c++) this->copy(j, x_ + (c * xstride_ - skew(c)), (PetscCount)this->n_ + skew(c), ring_ + this->window * (WINDOWS * c + place), state_->arrived + place);
  }

  PetscScalar       *ring_;
  State             *state_;
  const PetscScalar *x_;
  PetscCount         xstride_;
};

/* What must be known of a slice before its slots come. Its rows are those from SLICE_ROWS times its number on */
struct SweepHeader {
  uint32_t pattern, value;
  int      slots; /* -1: there is no such slice */
  uint32_t form;

  __device__ __forceinline__ bool constant(int most) const { return (form & AIJTC_FORM_CONST) && !(form >> AIJTC_FORM_DELTA & 3) && slots <= most; }
};

__device__ __forceinline__ SweepHeader LoadHeader(const AIJTCSlice *slice)
{
  const uint2 at = __ldg(reinterpret_cast<const uint2 *>(slice));

  return {at.x, at.y, __ldg(&slice->slots), __ldg(&slice->form)};
}

/* This lane's slot of a slice of at most so many, `at` being the offset of its columns */
template <int MOST>
__device__ __forceinline__ SweptSlot LoadSlot(const LayoutView &A, const SweepHeader &s, int lane)
{
  const AIJTCSlot *slot = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * s.pattern);
  SweptSlot        mine = {
           0.0, 0, 0, {AIJTC_ALL_LANES, AIJTC_ALL_LANES, AIJTC_ALL_LANES, AIJTC_ALL_LANES}
  };

  if (!s.constant(MOST) || lane >= s.slots) return mine;
  mine.at = __ldg(&slot[lane].base);
  mine.a  = __ldg(reinterpret_cast<const PetscScalar *>(A.value + (size_t)AIJTC_UNIT * s.value) + lane);
  if (!(s.form & AIJTC_FORM_FULL)) LoadMasks<SWEEP_GROUPS>(reinterpret_cast<const uint32_t *>(slot + s.slots) + SWEEP_GROUPS * lane, mine.mask);
  return mine;
}

template <int DOTS>
using SweptTerms = RowDots<SWEEP_WARPS>::Terms<(DOTS ? DOTS : 2)>;

/* What is in a warp's shared memory: slots before `behind` alone look back, slots from `ahead` on alone look ahead */
struct SweptSlice {
  bool swept;
  int  slots, behind, ahead;
};

/* By a warp: its slots to shared memory, for plane k, if the slice can be swept */
template <class Windows>
__device__ __forceinline__ SweptSlice StoreSlots(const SweepHeader &s, SweptSlot mine, int k, int lane, const Windows &windows, SweptSlot *slots)
{
  const bool     exists = lane < s.slots;
  const int      side   = windows.side(mine.at);
  const unsigned back = __ballot_sync(AIJTC_ALL_LANES, exists && side < 0), forth = __ballot_sync(AIJTC_ALL_LANES, exists && side > 0);

  mine.at = windows.find(k, mine.at);
  if (!s.constant(Windows::slots) || !__all_sync(AIJTC_ALL_LANES, !exists || mine.at >= 0)) return {false, 0, 0, 0};
  if (exists) slots[lane] = mine;
  __syncwarp();
  return {true, s.slots, AIJTC_LANES - __clz((int)back), forth ? __ffs((int)forth) - 1 : s.slots};
}

/* Slots begin .. end - 1. ring: from the column of this lane on */
__device__ __forceinline__ void AddSlots(int begin, int end, const SweptSlot *slots, const PetscScalar *ring, unsigned mine, RowSums<SWEEP_GROUPS> &sums)
{
#pragma unroll SWEEP_UNROLL
  for (int t = begin; t < end; t++) {
    const SweptSlot          s = slots[t];
    const PetscScalar *const x = ring + s.at;

#pragma unroll
    for (int r = 0; r < SWEEP_GROUPS; r++) {
      if (s.mask[r] & mine) sums.sum[r] = fma(s.a, x[AIJTC_LANES * r], sums.sum[r]);
    }
  }
}

/* The sums of a slice in plane k, in the order of its slots; to be called for others too, which have no slots, for the sake of the windows */
template <class Windows>
__device__ __forceinline__ void SweepSlice(const SweptSlice &slice, int k, int lane, const Windows &windows, const SweptSlot *slots, const PetscScalar *ring, RowSums<SWEEP_GROUPS> &sums)
{
  const unsigned mine  = 1u << lane;
  const int      ahead = max(slice.behind, slice.ahead);

  if (slice.ahead < slice.behind) windows.await(k + 1); /* columns that do not ascend */
  AddSlots(0, slice.behind, slots, ring + lane, mine, sums);
  windows.release(k - 1);
  AddSlots(slice.behind, ahead, slots, ring + lane, mine, sums);
  windows.await(k + 1);
  AddSlots(ahead, slice.slots, slots, ring + lane, mine, sums);
}

/* Rows first, first + 32, ..; z is stored, and the terms of its dot products added. own: w of these rows in the ring, NULL if w is not x. whole: all are rows */
template <int DOTS, bool whole>
__device__ __forceinline__ void StoreSweptRows(PetscInt first, PetscInt m, const PetscScalar *y, PetscScalar *z, const RowSums<SWEEP_GROUPS> &sums, const PetscScalar *own, const DotView &w, SweptTerms<DOTS> &terms)
{
#pragma unroll
  for (int r = 0; r < SWEEP_GROUPS; r++) {
    const PetscInt row = first + AIJTC_LANES * r;
    PetscScalar    sum = sums.sum[r];

    if (!whole && row >= m) continue;
    if (y) sum += y[row];
    z[row] = sum;
    if constexpr (DOTS > 0) terms.add(own ? own[AIJTC_LANES * r] : w.w[row], sum, DOTS == AIJTC_DOTS ? w.u[row] : 0.0);
  }
}

/* By a warp, `first` being the row of lane 0 */
template <int DOTS>
__device__ __forceinline__ void StoreSwept(PetscInt first, int lane, PetscInt m, const PetscScalar *y, PetscScalar *z, const RowSums<SWEEP_GROUPS> &sums, const PetscScalar *own, const DotView &w, SweptTerms<DOTS> &terms)
{
  if (first + SLICE_ROWS <= m && !y) StoreSweptRows<DOTS, true>(first + lane, m, nullptr, z, sums, own, w, terms);
  else StoreSweptRows<DOTS, false>(first + lane, m, y, z, sums, own, w, terms);
}

/* Slices of the planes in `others`, as elsewhere. Not inlined: the sweep shall have the registers */
template <class X>
__device__ __noinline__ void RowsOfSlices(const LayoutView &A, unsigned others, int planes, PetscInt first, PetscInt apart, PetscInt m, X x, const PetscScalar *y, PetscScalar *z, const RowDots<SWEEP_WARPS> &dots)
{
#pragma unroll 1
  for (int k = 0; k < planes; k++) {
    if (others >> k & 1) RowsSlice<SWEEP_GROUPS>(A, first + k * apart, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  }
}

/*
   The product. DOTS: so many dot products, whose terms take registers that products without them shall have. Windows are made of order, number of the first slice, memory and Source, and have besides side() and find()

     State                   what their memory holds behind the ring and the slots
     memory                  numbers of their own behind the ring
     slots                   of a slice at most, not more than lanes: those of all warps must fit in shared memory
     initialize()            by one thread, before a barrier of the block
     begin()                 by all threads, behind the launch before: the first windows are sent for. False: nothing is to be done
     prepare(j)              by every warp, before it needs window j, j >= 1: its share of the work on it
     await(j), release(j)    by every warp: window j is there; is needed no longer
     adds                    is the product added to y?
     is(w)                   is the vector multiplied this one?
     elsewhere()             what has its numbers, by column, in memory
*/
template <class Windows, int DOTS>
__global__ void __launch_bounds__(AIJTC_LANES *SWEEP_WARPS, SWEEP_BLOCKS)
  SweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, PetscInt m, const __grid_constant__ typename Windows::Source x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  extern __shared__ __align__(16) PetscScalar ring[]; /* then what windows have of their own, the slices, State; behind the sweep the sums of RowDots */
  SweptTerms<DOTS>                            terms;
  const int                                   lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, deep = (int)order.deep;
  const PetscInt                              in_plane = (PetscInt)(SWEEP_WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's slices in their planes */
  const PetscInt                              first    = order.begin + (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  SweptSlot *const all = reinterpret_cast<SweptSlot *>(ring + WINDOWS * Windows::window + Windows::memory), *const slots = all + Windows::slots * warp; /* of this warp */
  const Windows windows(order, first - warp, ring, reinterpret_cast<typename Windows::State *>(all + Windows::slots * SWEEP_WARPS), x);
  const auto    slice  = [&](int k) { return first + k * order.plane; };
  const auto    exists = [&](int k) { return k < deep && in_plane < order.plane && slice(k) < order.end; };
  const auto    load   = [&](int k) { return exists(k) ? LoadHeader(A.slice + slice(k)) : SweepHeader{0, 0, -1, 0}; };
  SweepHeader   next   = load(0);

  LetNextLaunchStart();
  if (threadIdx.x == 0) windows.initialize();
  __syncthreads();
  SweptSlice now    = StoreSlots(next, LoadSlot<Windows::slots>(A, next, lane), 0, lane, windows, slots);
  unsigned   others = 0; /* planes whose slices are not swept */

  next = load(1);
  WaitForLaunchBefore();
  if (!windows.begin()) return;
  windows.await(-1);
  windows.await(0);
#pragma unroll 1
  for (int k = 0; k < deep; k++) {
    windows.prepare(k + 1);
    const SweptSlot       mine  = LoadSlot<Windows::slots>(A, next, lane);
    const SweepHeader     later = load(k + 2);
    RowSums<SWEEP_GROUPS> rows;

    SweepSlice(now, k, lane, windows, slots, ring, rows);
    if (now.swept) StoreSwept<DOTS>(SLICE_ROWS * slice(k), lane, m, Windows::adds ? y : nullptr, z, rows, DOTS && windows.is(w.w) ? ring + windows.find(k, 0) + lane : nullptr, w, terms);
    else if (exists(k)) others |= 1u << k;
    __syncwarp(); /* nobody reads the slots any more */
    now  = StoreSlots(next, mine, k + 1, lane, windows, slots);
    next = later;
  }
  __syncthreads(); /* the sums' memory is free */
  RowDots<SWEEP_WARPS> dots(w);

  if constexpr (DOTS > 0) dots.add(terms);
  if (others) RowsOfSlices(A, others, deep, first, order.plane, m, windows.elsewhere(), y, z, dots);
  dots.finish();
}

/* Bytes of shared memory of a block */
template <class Windows>
constexpr size_t SweepBytes(int dots)
{
  const size_t sweep = (WINDOWS * Windows::window + Windows::memory) * sizeof(PetscScalar) + SWEEP_WARPS * Windows::slots * sizeof(SweptSlot) + sizeof(typename Windows::State), sums = dots * sizeof(PetscScalar) * AIJTC_LANES * SWEEP_WARPS;

  return sweep > sums ? sweep : sums;
}

/* Blocks of a kernel that a multiprocessor holds, 0 if it has not enough shared memory or the kernel has not been built for bulk copies. cudaFuncSetAttribute() is then done, too */
template <class Kernel>
int SweepBlocksHeld(Kernel *kernel, int threads, size_t bytes)
{
  int blocks = 0;

  if (PetscTCCopiesInBulk((const void *)kernel) && !cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)) (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes);
  (void)cudaGetLastError(); /* a device with less shared memory is no error; it must not appear again after the next launch */
  return blocks;
}

template <class Windows, int DOTS>
int SweepBlocksHeld()
{
  return SweepBlocksHeld(SweepKernel<Windows, DOTS>, AIJTC_LANES * SWEEP_WARPS, SweepBytes<Windows>(DOTS));
}

/* Can the planes of a layout be swept, and is it worth it? Then in which order */
bool AIJTCSweepOf(const AIJTCLayout &A, SweepOrder *order);
/* Blocks of the launch */
unsigned AIJTCSweepBlocksOf(const SweepOrder &order);
