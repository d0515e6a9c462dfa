/*
   Method
     z = A x for large grids of planes whose slices are constants and offsets, so that reading x is nearly all of the work. A block has the same 2048 rows of many planes, one after the other, with x in
     shared memory: the window of its rows, and WINDOW_HALO numbers on either side, of four planes. The rows of a plane gather from its own window and from those of the planes before and behind, while
     the fourth is on its way (`cp.async`). So x crosses from L2 once a plane and block, instead of once for each offset that finds nothing in L1. Two blocks share a multiprocessor: one computes while the
     other waits.

     What is left are instructions. While a warp adds up a slice, the slots of its next one come, one to a lane, which finds the window that the slot's columns are in and leaves for all lanes what they need:
     value, masks, and where in the ring the columns of the first lane are. If a slot's columns are in no window, or the slice has another form, x is read from global memory as elsewhere, after the
     sweep: windows are a matter of speed only. Sums are added slot by slot, with the bits of the other kernels (mult_rows.cuh).

   Layout
     include/petsctc/private/aijtclayout.h. A plane is `plane` slices of 4 x 32 rows, layout->stride rows to the nearest slice: windows of following planes are 128 `plane` columns apart. Window j of a block,
     j = -1 .. planes, is at place (j + 1) mod 4 of the ring. Shared memory: sums of RowDots, the ring, a slice for each warp.

   Memory traffic
     8 bytes a row of z, 8 (1 + 2 WINDOW_HALO / 2048) (planes + 2) / planes of x from L2, of which 8 from memory; slots and masks. 7-point 256^3: 306 MB from memory, 71 us at 4.3 TB/s; 134 + 193 + 34 MB from
     L2, 66 us at 5.5 TB/s; 7 reads of shared memory a row, 32 us.

   References
     Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009
*/
#pragma once

#include "mult_rows.cuh"

constexpr int SWEEP_WARPS  = 16;
constexpr int SWEEP_BLOCKS = 2;  /* of a multiprocessor */
constexpr int SWEEP_PLANES = 16; /* of a block at most: not more than a mask has bits */
constexpr int SWEEP_GROUPS = 4;  /* row groups of a slice */
constexpr int SLICE_ROWS   = AIJTC_LANES * SWEEP_GROUPS;
constexpr int SWEEP_ROWS   = SWEEP_WARPS * SLICE_ROWS; /* of a block in a plane */
constexpr int WINDOW_HALO  = 288;                      /* lines of a grid up to that */
constexpr int WINDOW       = SWEEP_ROWS + 2 * WINDOW_HALO;
constexpr int WINDOWS      = 4;
constexpr int SWEEP_SLOTS  = 27; /* of a slice at most: one to a lane, and those of all warps fit in shared memory */

/* A slot whose columns are in a window */
struct alignas(16) SweptSlot {
  PetscScalar a;
  int         at, unused; /* place in the ring of the column of lane 0 in the first row group */
  unsigned    mask[SWEEP_GROUPS];
};

constexpr int SWEEP_SHARED = WINDOWS * WINDOW * (int)sizeof(PetscScalar) + SWEEP_WARPS * SWEEP_SLOTS * (int)sizeof(SweptSlot);

/* Which slices a block takes: of each plane those from SWEEP_WARPS (its number modulo `groups`) on */
struct SweepOrder {
  PetscInt begin, end; /* slices */
  PetscInt plane;      /* slices of a plane */
  unsigned groups;     /* blocks side by side in a plane */
  unsigned deep;       /* planes of a block, at most SWEEP_PLANES */
  PetscInt n;          /* columns */
};

__device__ __forceinline__ void CopyPairAsync(PetscScalar *to, const PetscScalar *from)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

__device__ __forceinline__ void CopyOneAsync(PetscScalar *to, const PetscScalar *from)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

class SweepWindows {
public:
  __device__ __forceinline__ SweepWindows(const SweepOrder &order, PetscInt first, PetscScalar *ring, const PetscScalar *x) :
    ring_(ring), x_(x), n_(order.n), zero_(SLICE_ROWS * first - WINDOW_HALO), apart_(SLICE_ROWS * order.plane), wide_(((size_t)x & 15) == 0)
  {
  }

  /* By all threads: window j will be there after a wait for the copies and a barrier */
  __device__ __forceinline__ void request(int j) const
  {
    const PetscCount   column = (PetscCount)zero_ + (PetscCount)j * apart_;
    PetscScalar *const to     = ring_ + WINDOW * ((j + 1) % WINDOWS);

#pragma unroll 1
    for (int i = 2 * (int)threadIdx.x; i < WINDOW; i += 2 * AIJTC_LANES * SWEEP_WARPS) {
      const PetscCount left = n_ - column - i;

      if (column + i < 0 || left <= 0) continue; /* columns are even: no pair begins before 0 */
      if (wide_ && left > 1) CopyPairAsync(to + i, x_ + column + i);
      else {
        CopyOneAsync(to + i, x_ + column + i);
        if (left > 1) CopyOneAsync(to + i + 1, x_ + column + i + 1);
      }
    }
  }

  /* Where in the ring is column `base` of those of this warp in plane k, which follow each other for SLICE_ROWS? -1: nowhere */
  __device__ __forceinline__ int find(int k, int base) const
  {
    const int d  = base > apart_ / 2 ? 1 : (base < -(apart_ / 2) ? -1 : 0);
    const int at = SLICE_ROWS * (int)(threadIdx.x / AIJTC_LANES) + WINDOW_HALO + base - d * apart_;

    return at >= 0 && at <= WINDOW - SLICE_ROWS ? WINDOW * ((k + d + 1) % WINDOWS) + at : -1;
  }

private:
  PetscScalar       *ring_;
  const PetscScalar *x_;
  PetscInt           n_, zero_, apart_; /* zero_: first column of window 0 */
  bool               wide_;
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

/* By a warp: its slots to shared memory, for plane k. False: not this slice */
__device__ __forceinline__ bool StoreSlots(const SweepHeader &s, SweptSlot mine, int k, int lane, const SweepWindows &windows, SweptSlot *slots)
{
  const bool exists = lane < s.slots;

  if (!s.constant()) return false;
  mine.at = windows.find(k, mine.at);
  if (exists) slots[lane] = mine;
  return __all_sync(AIJTC_ALL_LANES, !exists || mine.at >= 0);
}

/* The sums of a slice's rows, which stay in `sums` */
__device__ __forceinline__ void SweepSlice(PetscInt first, int nslots, const SweptSlot *slots, const PetscScalar *ring, PetscInt m, const PetscScalar *y, PetscScalar *z, RowSums<SWEEP_GROUPS> &sums)
{
  const int      lane = threadIdx.x % AIJTC_LANES;
  const unsigned mine = 1u << lane;

#pragma unroll 4
  for (int t = 0; t < nslots; t++) {
    const SweptSlot          s = slots[t];
    const PetscScalar *const x = ring + s.at + lane;

#pragma unroll
    for (int r = 0; r < SWEEP_GROUPS; r++) {
      if (s.mask[r] & mine) sums.sum[r] = fma(s.a, x[AIJTC_LANES * r], sums.sum[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < SWEEP_GROUPS; r++) {
    const PetscInt row = first + AIJTC_LANES * r;

    if (row >= m) continue;
    if (y) sums.sum[r] += y[row];
    z[row] = sums.sum[r];
  }
}

/* own: w of these rows in the ring, NULL if w is not x. Not inlined: products without dot products shall have the registers */
__device__ __noinline__ void SweepDots(PetscInt first, const PetscScalar *own, PetscInt m, RowSums<SWEEP_GROUPS> sums, const RowDots<SWEEP_WARPS> &dots)
{
  RowDots<SWEEP_WARPS>::Terms terms;

#pragma unroll
  for (int r = 0; r < SWEEP_GROUPS; r++) {
    const PetscInt row = first + AIJTC_LANES * r;

    if (row < m) terms.add(own ? own[AIJTC_LANES * r] : dots.w(row), sums.sum[r]);
  }
  dots.add(terms);
}

__global__ void __launch_bounds__(AIJTC_LANES *SWEEP_WARPS, SWEEP_BLOCKS)
  SweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  extern __shared__ PetscScalar sums[]; /* those of RowDots, then the ring, then the slices */
  RowDots<SWEEP_WARPS>          dots(w);
  const int                     lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, deep = (int)order.deep;
  const PetscInt                in_plane = (PetscInt)(SWEEP_WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's slices in their planes */
  const PetscInt                first    = order.begin + (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  PetscScalar *const            ring     = sums + (w.w ? 2 * AIJTC_LANES * SWEEP_WARPS : 0);
  SweptSlot *const              slots    = reinterpret_cast<SweptSlot *>(ring + WINDOWS * WINDOW) + SWEEP_SLOTS * warp; /* of this warp */
  const SweepWindows            windows(order, first - warp, ring, x);
  const auto                    slice  = [&](int k) { return first + k * order.plane; };
  const auto                    exists = [&](int k) { return k < deep && in_plane < order.plane && slice(k) < order.end; };
  const auto                    load   = [&](int k) { return exists(k) ? LoadHeader(A.slice + slice(k)) : SweepHeader{0, 0, -1, 0}; };
  SweepHeader                   now = load(0), next = load(1);

  LetNextLaunchStart();
  bool     swept  = StoreSlots(now, LoadSlot(A, now, lane), 0, lane, windows, slots);
  unsigned others = 0; /* planes whose slices are not swept */

  WaitForLaunchBefore();
#pragma unroll 1
  for (int j = -1; j <= 1; j++) windows.request(j);
#pragma unroll 1
  for (int k = 0; k < deep; k++) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads(); /* windows k - 1 .. k + 1 are there, and the warp's slots; nobody reads window k - 2 any more */
    if (k + 1 < deep) windows.request(k + 2);
    const SweptSlot   mine  = LoadSlot(A, next, lane);
    const SweepHeader later = load(k + 2);

    if (swept) {
      const PetscInt        row = SLICE_ROWS * slice(k) + lane;
      RowSums<SWEEP_GROUPS> rows;

      SweepSlice(row, now.slots, slots, ring, m, y, z, rows);
      if (dots.on()) SweepDots(row, dots.of(x) ? ring + windows.find(k, 0) + lane : nullptr, m, rows, dots);
    } else if (exists(k)) others |= 1u << k;
    __syncwarp();
    swept = StoreSlots(next, mine, k + 1, lane, windows, slots);
    now   = next;
    next  = later;
  }
#pragma unroll 1
  for (int k = 0; others >> k; k++) {
    if (others >> k & 1) RowsSlice<SWEEP_GROUPS>(A, slice(k), m, lane, x, y, z, dots);
  }
  dots.finish();
}
