/*
   Method
     z = A x for large grids of planes whose slices are constants and offsets, so that reading x is nearly all of the work. A block has the same 2048 rows of many planes, one after the other, with x in
     shared memory: the window of its rows, and HALO numbers on either side, of three planes. The rows of a plane gather from its own window and from those of the planes before and behind. So x
     crosses from L2 once a plane and block, instead of once for each offset that finds nothing in L1.

     The warps of a block go through the planes each on its own. A window comes as one bulk copy, whose end an mbarrier tells; the warp that is the last to be done with a window sends for the one that takes
     its place. A warp is done with the plane before as soon as it has added the slots that look back, the first ones, and needs the plane behind for the last ones: so a window has a plane's time to come.

     What is left are instructions. While a warp adds up a slice, the slots of its next one come, one to a lane, which finds the window that the slot's columns are in and leaves for all lanes what they need:
     value, masks, and where in the ring the columns of the first lane are. If a slot's columns are in no window, or the slice has another form, x is read from global memory as elsewhere, after the
     sweep: windows are a matter of speed only. Sums are added slot by slot, with the bits of the other kernels (mult_rows.cuh).

     Compute capability 9.0 and newer; elsewhere planes are not swept. Compute Sanitizer's racecheck takes neither a count nor an mbarrier for an order between the reads of a window and the copy that takes its place, and
     reports the two.

   Layout
     include/petsctc/private/aijtclayout.h. A plane is `plane` slices of 4 x 32 rows, layout->stride rows to the nearest slice: windows of following planes are 128 `plane` columns apart. Window j of a block,
     j = -1 .. deep, is at place (j + 1) mod WINDOWS of the ring. Shared memory: sums of RowDots, the ring, a slice for each warp, the ring's barriers and counts.

   Memory traffic
     8 bytes a row of z, 8 (1 + 2 HALO / 2048) (planes + 2) / planes of x from L2, of which 8 from memory; slots and masks. 7-point 256^3: 306 MB from memory, 71 us at 4.3 TB/s; 134 + 183 + 34 MB from
     L2, 64 us at 5.5 TB/s; 7 reads of shared memory a row, 32 us.

   References
     Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009; PTX ISA: mbarrier, cp.async.bulk
*/
#include "mult.cuh"
#include "mult_rows.cuh"
#include <cuda/atomic>

namespace
{
constexpr int SWEEP_WARPS  = 16;
constexpr int SWEEP_BLOCKS = 2;  /* of a multiprocessor */
constexpr int SWEEP_PLANES = 32; /* of a block at most: not more than a mask has bits */
constexpr int SWEEP_GROUPS = 4;  /* row groups of a slice */
constexpr int SLICE_ROWS   = AIJTC_LANES * SWEEP_GROUPS;
constexpr int SWEEP_ROWS   = SWEEP_WARPS * SLICE_ROWS; /* of a block in a plane */
constexpr int WINDOWS      = 3;
constexpr int SWEEP_UNROLL = 4;  /* slots under way */
constexpr int SWEEP_SLOTS  = 27; /* of a slice at most: one to a lane, and those of all warps fit in shared memory */

/* Numbers on either side of a block's rows in a window: not shorter than a line of the grid. Known to the compiler: as an argument of the kernel it cost 5 to 10 % */
constexpr int NARROW_HALO = 128, MIDDLE_HALO = 288, WIDE_HALO = 640;

template <int HALO>
constexpr int WINDOW = SWEEP_ROWS + 2 * HALO;

constexpr PetscCount SWEEP_PATTERN = 256; /* bytes of a slice in the mean: 10 slots with masks */
constexpr PetscInt   FEWEST_PLANES = 4;   /* with fewer of them little of x is in the window before */

/* A slot whose columns are in a window */
struct alignas(16) SweptSlot {
  PetscScalar a;
  int         at, unused; /* place in the ring of the column of lane 0 in the first row group */
  unsigned    mask[SWEEP_GROUPS];
};

/* How far the ring is */
struct RingState {
  uint64_t arrived[WINDOWS];  /* mbarriers: a phase for each window that comes to this place */
  int      released[WINDOWS]; /* warps that are done with a window of this place, all windows together */
};

template <int HALO>
constexpr int SWEEP_SHARED = WINDOWS *WINDOW<HALO> *(int)sizeof(PetscScalar) + SWEEP_WARPS *SWEEP_SLOTS *(int)sizeof(SweptSlot) + (int)sizeof(RingState);

/* Which slices a block takes: of each plane those from SWEEP_WARPS (its number modulo `groups`) on */
struct SweepOrder {
  PetscInt begin, end; /* slices */
  PetscInt plane;      /* slices of a plane */
  unsigned groups;     /* blocks side by side in a plane */
  unsigned deep;       /* planes of a block, at most SWEEP_PLANES */
  PetscInt n;          /* columns */
};

/* Copies to shared memory whose bytes a barrier waits for */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned SharedAddress(const void *of)
{
  return (unsigned)__cvta_generic_to_shared(of);
}

__device__ __forceinline__ void InitializeBarrier(uint64_t *barrier)
{
  asm("mbarrier.init.shared.b64 [%0], 1;" ::"r"(SharedAddress(barrier)) : "memory");
}

__device__ __forceinline__ void AwaitPhase(uint64_t *barrier, unsigned parity)
{
  unsigned over;

  do {
    asm volatile("{\n .reg .pred over;\n mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n selp.b32 %0, 1, 0, over;\n}" : "=r"(over) : "r"(SharedAddress(barrier)), "r"(parity) : "memory");
  } while (!over);
}

/* By one thread. What it has written to shared memory is there with the bytes; 0 bytes: that alone. Multiples of 16 */
__device__ __forceinline__ void CopyBulk(PetscScalar *to, const PetscScalar *from, unsigned bytes, uint64_t *barrier)
{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* behind all reads of what was there before */
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes) : "memory");
  if (bytes) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(SharedAddress(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier)) : "memory");
}
#else /* never launched, SweepIsBuilt() */
__device__ __forceinline__ void InitializeBarrier(uint64_t *) { }
__device__ __forceinline__ void AwaitPhase(uint64_t *, unsigned) { }
__device__ __forceinline__ void CopyBulk(PetscScalar *, const PetscScalar *, unsigned, uint64_t *) { }
#endif

template <int HALO>
class SweepWindows {
public:
  __device__ __forceinline__ SweepWindows(const SweepOrder &order, PetscInt first, PetscScalar *ring, RingState *state, const PetscScalar *x) :
    ring_(ring), state_(state), x_(x), n_(order.n), zero_(SLICE_ROWS * first - HALO), apart_(SLICE_ROWS * order.plane), deep_((int)order.deep)
  {
  }

  /* By one thread, before a barrier of the block */
  __device__ __forceinline__ void initialize() const
  {
    for (int place = 0; place < WINDOWS; place++) {
      InitializeBarrier(state_->arrived + place);
      state_->released[place] = 0;
    }
  }

  /* By a warp: the first windows */
  __device__ __forceinline__ void begin() const
  {
#pragma unroll 1
    for (int j = -1; j < WINDOWS - 1; j++) request(j);
  }

  /* By every warp: window j is there */
  __device__ __forceinline__ void await(int j) const
  {
    AwaitPhase(state_->arrived + (j + 1) % WINDOWS, (unsigned)(j + 1) / WINDOWS & 1);
  }

  /* By every warp, which has awaited window j and needs it no longer */
  __device__ __forceinline__ void release(int j) const
  {
    const int place = (j + 1) % WINDOWS;
    int       count = 0;

    __syncwarp();
    if (threadIdx.x % AIJTC_LANES == 0) count = cuda::atomic_ref<int, cuda::thread_scope_block>(state_->released[place]).fetch_add(1, cuda::memory_order_acq_rel);
    if (__shfl_sync(AIJTC_ALL_LANES, count, 0) % SWEEP_WARPS == SWEEP_WARPS - 1) request(j + WINDOWS);
  }

  /* Which plane are columns `base` from those of their rows in: -1 before, 0, 1 behind */
  __device__ __forceinline__ int side(int base) const
  {
    return base > apart_ / 2 ? 1 : (base < -(apart_ / 2) ? -1 : 0);
  }

  /* Where in the ring is column `base` of those of this warp in plane k, which follow each other for SLICE_ROWS? -1: nowhere */
  __device__ __forceinline__ int find(int k, int base) const
  {
    const int d  = side(base);
    const int at = SLICE_ROWS * (int)(threadIdx.x / AIJTC_LANES) + HALO + base - d * apart_;

    return at >= 0 && at <= WINDOW<HALO> - SLICE_ROWS ? WINDOW<HALO> * ((k + d + 1) % WINDOWS) + at : -1;
  }

private:
  /* By a warp: window j comes, if there is one. All windows but those at either end of x are whole; columns are even, so that only the last of x may be without the other of its pair */
  __device__ __forceinline__ void request(int j) const
  {
    const PetscCount   column = (PetscCount)zero_ + (PetscCount)j * apart_, left = n_ - column;
    const int          begin = column < 0 ? (int)min(-column, (PetscCount)WINDOW<HALO>) : 0, end = left < WINDOW<HALO> ? (int)max(left, (PetscCount)begin) : WINDOW<HALO>;
    const bool         bulk = ((size_t)x_ & 15) == 0;
    const int          odd = bulk ? end & 1 : end - begin, lane = (int)threadIdx.x % AIJTC_LANES; /* what no bulk copy takes */
    PetscScalar *const to = ring_ + WINDOW<HALO> * ((j + 1) % WINDOWS);

    if (j > deep_) return;
    __syncwarp(); /* behind what lane 0 has waited for */
    for (int i = end - odd + lane; i < end; i += AIJTC_LANES) to[i] = x_[column + i];
    __syncwarp();
    if (lane == 0) CopyBulk(to + begin, x_ + column + begin, (unsigned)(end - odd - begin) * (unsigned)sizeof(PetscScalar), state_->arrived + (j + 1) % WINDOWS);
  }

  PetscScalar       *ring_;
  RingState         *state_;
  const PetscScalar *x_;
  PetscInt           n_, zero_, apart_; /* zero_: first column of window 0 */
  int                deep_;
};

/* What must be known of a slice before its slots come. Its rows are those from SLICE_ROWS times its number on */
struct SweepHeader {
  uint32_t pattern, value;
  int      slots; /* -1: there is no such slice */
  uint32_t form;

  __device__ __forceinline__ bool constant() const { return (form & AIJTC_FORM_CONST) && !(form >> AIJTC_FORM_DELTA & 3) && slots <= SWEEP_SLOTS; }
};

__device__ __forceinline__ SweepHeader LoadHeader(const AIJTCSlice *slice)
{
  const uint2 at = __ldg(reinterpret_cast<const uint2 *>(slice));

  return {at.x, at.y, __ldg(&slice->slots), __ldg(&slice->form)};
}

/* This lane's slot of a slice, `at` being the offset of its columns */
__device__ __forceinline__ SweptSlot LoadSlot(const LayoutView &A, const SweepHeader &s, int lane)
{
  const AIJTCSlot *slot = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * s.pattern);
  SweptSlot        mine = {
           0.0, 0, 0, {AIJTC_ALL_LANES, AIJTC_ALL_LANES, AIJTC_ALL_LANES, AIJTC_ALL_LANES}
  };

  if (!s.constant() || lane >= s.slots) return mine;
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
template <int HALO>
__device__ __forceinline__ SweptSlice StoreSlots(const SweepHeader &s, SweptSlot mine, int k, int lane, const SweepWindows<HALO> &windows, SweptSlot *slots)
{
  const bool     exists = lane < s.slots;
  const int      side   = windows.side(mine.at);
  const unsigned back = __ballot_sync(AIJTC_ALL_LANES, exists && side < 0), forth = __ballot_sync(AIJTC_ALL_LANES, exists && side > 0);

  mine.at = windows.find(k, mine.at);
  if (!s.constant() || !__all_sync(AIJTC_ALL_LANES, !exists || mine.at >= 0)) return {false, 0, 0, 0};
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
template <int HALO>
__device__ __forceinline__ void SweepSlice(const SweptSlice &slice, int k, int lane, const SweepWindows<HALO> &windows, const SweptSlot *slots, const PetscScalar *ring, RowSums<SWEEP_GROUPS> &sums)
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
__device__ __forceinline__ void StoreRows(PetscInt first, PetscInt m, const PetscScalar *y, PetscScalar *z, const RowSums<SWEEP_GROUPS> &sums, const PetscScalar *own, const RowDots<SWEEP_WARPS> &dots, SweptTerms<DOTS> &terms)
{
#pragma unroll
  for (int r = 0; r < SWEEP_GROUPS; r++) {
    const PetscInt row = first + AIJTC_LANES * r;
    PetscScalar    sum = sums.sum[r];

    if (!whole && row >= m) continue;
    if (y) sum += y[row];
    z[row] = sum;
    if constexpr (DOTS > 0) terms.add(own ? own[AIJTC_LANES * r] : dots.w(row), sum, DOTS == AIJTC_DOTS ? dots.u(row) : 0.0);
  }
}

/* By a warp, `first` being the row of lane 0 */
template <int DOTS>
__device__ __forceinline__ void StoreSwept(PetscInt first, int lane, PetscInt m, const PetscScalar *y, PetscScalar *z, const RowSums<SWEEP_GROUPS> &sums, const PetscScalar *own, const RowDots<SWEEP_WARPS> &dots, SweptTerms<DOTS> &terms)
{
  if (first + SLICE_ROWS <= m && !y) StoreRows<DOTS, true>(first + lane, m, nullptr, z, sums, own, dots, terms);
  else StoreRows<DOTS, false>(first + lane, m, y, z, sums, own, dots, terms);
}

/* Slices of the planes in `others`, as elsewhere. Not inlined: the sweep shall have the registers */
__device__ __noinline__ void RowsOfSlices(const LayoutView &A, unsigned others, int planes, PetscInt first, PetscInt apart, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const RowDots<SWEEP_WARPS> &dots)
{
#pragma unroll 1
  for (int k = 0; k < planes; k++) {
    if (others >> k & 1) RowsSlice<SWEEP_GROUPS>(A, first + k * apart, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
  }
}

/* DOTS: so many dot products, whose terms take registers that products without them shall have */
template <int HALO, int DOTS>
__global__ void __launch_bounds__(AIJTC_LANES *SWEEP_WARPS, SWEEP_BLOCKS)
  SweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  extern __shared__ PetscScalar sums[]; /* those of RowDots, then the ring, then the slices */
  RowDots<SWEEP_WARPS>          dots(w);
  SweptTerms<DOTS>              terms;
  const int                     lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, deep = (int)order.deep;
  const PetscInt                in_plane = (PetscInt)(SWEEP_WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's slices in their planes */
  const PetscInt                first    = order.begin + (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  PetscScalar *const            ring     = sums + DOTS * AIJTC_LANES * SWEEP_WARPS;
  SweptSlot *const              slots    = reinterpret_cast<SweptSlot *>(ring + WINDOWS * WINDOW<HALO>) + SWEEP_SLOTS * warp; /* of this warp */
  RingState *const              state    = reinterpret_cast<RingState *>(reinterpret_cast<SweptSlot *>(ring + WINDOWS * WINDOW<HALO>) + SWEEP_SLOTS * SWEEP_WARPS);
  const SweepWindows<HALO>      windows(order, first - warp, ring, state, x);
  const auto                    slice  = [&](int k) { return first + k * order.plane; };
  const auto                    exists = [&](int k) { return k < deep && in_plane < order.plane && slice(k) < order.end; };
  const auto                    load   = [&](int k) { return exists(k) ? LoadHeader(A.slice + slice(k)) : SweepHeader{0, 0, -1, 0}; };
  SweepHeader                   next   = load(0);

  LetNextLaunchStart();
  if (threadIdx.x == 0) windows.initialize();
  __syncthreads();
  SweptSlice now    = StoreSlots(next, LoadSlot(A, next, lane), 0, lane, windows, slots);
  unsigned   others = 0; /* planes whose slices are not swept */

  next = load(1);
  WaitForLaunchBefore();
  if (warp == 0) windows.begin();
  windows.await(-1);
  windows.await(0);
#pragma unroll 1
  for (int k = 0; k < deep; k++) {
    const SweptSlot       mine  = LoadSlot(A, next, lane);
    const SweepHeader     later = load(k + 2);
    RowSums<SWEEP_GROUPS> rows;

    SweepSlice(now, k, lane, windows, slots, ring, rows);
    if (now.swept) StoreSwept<DOTS>(SLICE_ROWS * slice(k), lane, m, y, z, rows, DOTS && dots.of(x) ? ring + windows.find(k, 0) + lane : nullptr, dots, terms);
    else if (exists(k)) others |= 1u << k;
    __syncwarp(); /* nobody reads the slots any more */
    now  = StoreSlots(next, mine, k + 1, lane, windows, slots);
    next = later;
  }
  if constexpr (DOTS > 0) dots.add(terms);
  if (others) RowsOfSlices(A, others, deep, first, order.plane, m, x, y, z, dots);
  dots.finish();
}

/* The kernels for one halo */
struct SweepShape {
  decltype(&SweepKernel<NARROW_HALO, 0>) kernel[AIJTC_DOTS / 2 + 1]; /* without dot products, with two, with four */
  int                                    halo, shared;
  int                                   *blocks; /* that a multiprocessor holds, -1: not known yet */

  /* Bytes of shared memory of a block */
  size_t bytes(int dots) const { return shared + dots * sizeof(PetscScalar) * AIJTC_LANES * SWEEP_WARPS; }
};

template <int HALO>
SweepShape ShapeOf()
{
  static int blocks = -1;

  return {
    {SweepKernel<HALO, 0>, SweepKernel<HALO, 2>, SweepKernel<HALO, AIJTC_DOTS>},
    HALO, SWEEP_SHARED<HALO>, &blocks
  };
}

/* With the narrowest halo that holds the lines; those that no halo holds get the widest, too */
SweepShape ShapeFor(const AIJTCLayout &A)
{
  if (A.line <= NARROW_HALO) return ShapeOf<NARROW_HALO>();
  return A.line <= MIDDLE_HALO ? ShapeOf<MIDDLE_HALO>() : ShapeOf<WIDE_HALO>();
}

/* Are the kernels that would run such for bulk copies? */
bool SweepIsBuilt(const SweepShape &shape)
{
  cudaFuncAttributes attributes;
  const cudaError_t  cerr = cudaFuncGetAttributes(&attributes, shape.kernel[0]);

  if (cerr) (void)cudaGetLastError(); /* it must not appear again after the next launch */
  return !cerr && attributes.ptxVersion >= 90;
}

/* Blocks of a kernel that a multiprocessor holds, 0 if it has not enough shared memory. cudaFuncSetAttribute() is then done, too */
int BlocksHeld(const SweepShape &shape, int dots)
{
  const auto kernel = shape.kernel[dots / 2];
  int        blocks = 0;

  if (!cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape.bytes(dots))) (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, AIJTC_LANES * SWEEP_WARPS, shape.bytes(dots));
  (void)cudaGetLastError(); /* a device with less shared memory is no error */
  return blocks;
}

/* And does a multiprocessor hold SWEEP_BLOCKS blocks? With one alone nothing computes while it waits */
bool DeviceSweeps(const SweepShape &shape)
{
  if (*shape.blocks < 0) *shape.blocks = SweepIsBuilt(shape) ? PetscMin(BlocksHeld(shape, 0), PetscMin(BlocksHeld(shape, 2), BlocksHeld(shape, AIJTC_DOTS))) : 0;
  return *shape.blocks >= SWEEP_BLOCKS;
}

/* Small grids: a block has windows of two planes more than it has rows of, and the last blocks may have nothing to do. Is that at most 2.2 times the least? 7-point 101^3 2.10: 8.3 us instead of 8.7; 90^3 2.97: 7.9
   instead of 7.3 */
bool BlocksPay(const SweepOrder &order, unsigned waves)
{
  return 20.0 * (order.deep + 2) * (MULTIPROCESSORS * SWEEP_BLOCKS * SWEEP_WARPS) * waves <= 44.0 * order.end;
}

/* Can the planes be swept, and is it worth it? Not with lines longer than what windows have on either side; with many offsets L1 has most of x, and stride is not the distance of planes. Not with several rows of a node, whose constant slots have a value for each */
bool SweepOf(const AIJTCLayout &A, SweepOrder *order)
{
  order->begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE];
  order->end   = order->begin + A.nslices[AIJTC_ROWS];
  order->plane = (A.stride + SLICE_ROWS / 2) / SLICE_ROWS;
  order->n     = A.n;
  if (!A.common || A.params.bs != 1 || A.params.rrows != SWEEP_GROUPS || A.nconsecutive != A.nslices[AIJTC_ROWS] || order->begin || A.nvalue >= A.nnz) return false;
  if (A.line > ShapeFor(A).halo || order->plane < SWEEP_WARPS || A.npattern > SWEEP_PATTERN * order->end || !DeviceSweeps(ShapeFor(A))) return false;

  const PetscInt planes = (order->end - 1) / order->plane + 1;
  if (planes < FEWEST_PLANES) return false;
  order->groups        = (unsigned)((order->plane - 1) / SWEEP_WARPS + 1);
  const unsigned steps = (unsigned)planes * order->groups, blocks = MULTIPROCESSORS * SWEEP_BLOCKS, waves = (steps - 1) / (blocks * SWEEP_PLANES) + 1;
  order->deep = PetscMin((steps - 1) / (blocks * waves) + 1, (unsigned)planes);
  return BlocksPay(*order, waves);
}

unsigned BlocksOf(const SweepOrder &order)
{
  const PetscInt planes = (order.end - 1) / order.plane + 1;

  return (unsigned)((planes - 1) / (PetscInt)order.deep + 1) * order.groups;
}

} // namespace

unsigned AIJTCSweepBlocks(const AIJTCLayout &A)
{
  SweepOrder order;

  return SweepOf(A, &order) ? BlocksOf(order) : 0;
}

PetscErrorCode AIJTCLayoutMultSwept_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SweepShape shape = ShapeFor(*layout);
  SweepOrder       order;

  PetscFunctionBegin;
  PetscCheck(SweepOf(*layout, &order), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A layout that is not swept");
  PetscCall(LaunchOverlapping(shape.kernel[dots.count() / 2], BlocksOf(order), AIJTC_LANES * SWEEP_WARPS, shape.bytes(dots.count()), stream, AIJTCLayoutView(*layout), order, layout->m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
