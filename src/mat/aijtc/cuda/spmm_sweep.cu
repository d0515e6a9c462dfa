/*
   Method
     Z = A X for K = 4 or 8 columns on grids of planes: planes are swept (mult_sweep.cuh) with a window of each column of X in shared memory, so that an X crosses from L2 once a plane and block instead of
     once for each offset that finds nothing in L1. A block has few rows, since a ring of windows holds K columns: in each plane a warp takes one group of 32 rows. Values are constants or stored as they are; one code that knows no other form
     takes a third of the instructions of one that does.

     What waits for memory are then the values, and the heads of slots before them. A warp takes the slots of its rows in segments of 32. Heads come to shared memory by asynchronous copies while the segment before is added up; opened, they tell
     all lanes where in the ring a slot's columns are, which lanes have entries, and where their values. Values are requested some slots ahead, across the ends of segments and planes.

     Groups of rows that cannot be swept, because a slot's columns are in no window, or have deltas, or values another form, are added up behind the sweep from memory, as elsewhere (ColumnsOfGroup()). Sums are added slot by slot: with the bits of
     all other products.

     Compute capability 9.0 and newer.

   Layout
     include/petsctc/private/aijtclayout.h. What SweepOrder and windows count are groups of 32 rows, of which slices have R. Shared memory: ring[K][3][rows of the block + 2 HALO + 2], a room for each warp, barriers and counts.

   Memory traffic
     The layout once; 8 K bytes a row of Z; 8 K (1 + 2 HALO / rows of a block) (planes + 2) / planes of X from L2, of which 8 K from memory. K = 8: 27-point 100^3, values stored: 222 + 64 + 64 MB from memory, 81 us at 4.3 TB/s; X is read
     27 times from shared memory, 20 cycles a slot and group of rows with its head and values: 80 us at 1.75 GHz. 7-point 101^3: 57 + 66 + 66 MB, 44 us.

   References
     mult_sweep.cuh
*/
#include "mult_sweep.cuh"
#include "spmm.cuh"
#include <cuda_pipeline_primitives.h>

namespace
{
constexpr int AT_ONCE = 4; /* slots whose values are under way */

/* One slot of a group of rows, in shared memory */
struct alignas(16) ColumnSlot {
  int      at; /* where in the ring the columns of the group begin */
  unsigned mask;
  int      place;  /* of the group's first value */
  unsigned places; /* lanes that have one; 0: all have the same, or one for each remainder of their row */
};

/* Shared memory of a warp, which takes a group of rows in each plane, of slices of R groups */
template <int R>
struct Room {
  ColumnSlot slot[AIJTC_LANES];     /* of a segment that is open */
  AIJTCSlot  head[AIJTC_LANES];     /* of the next one, on their way */
  uint32_t   mask[AIJTC_LANES * R]; /* likewise, unless the slice is full */
  AIJTCSlice slice[WINDOWS];        /* of planes that follow each other */
};

/* Blocks that have windows of K columns with HALO numbers on either side of WARPS groups of rows: as many as shared memory holds of 8 columns */
template <int K_, int HALO_, int WARPS_>
struct Shape {
  static constexpr int                           K = K_, HALO = HALO_, WARPS = WARPS_, ROWS = AIJTC_LANES * WARPS;
  typedef WindowRing<HALO, K, ROWS, AIJTC_LANES> Windows;
  static constexpr int                           ring = K * WINDOWS * Windows::window;
  template <int R>
  static constexpr size_t bytes = ring * sizeof(PetscScalar) + WARPS * sizeof(Room<R>) + sizeof(typename Windows::State);
};
template <int K>
using Narrow = Shape<K, 128, 20>;
template <int K>
using Middle = Shape<K, 288, K == 8 ? 16 : 20>;

/* By a warp: a slice comes to shared memory, or one without slots if there is none */
__device__ __forceinline__ void RequestSlice(const AIJTCSlice *slice, AIJTCSlice *to, int lane)
{
  constexpr int wide = 16, pieces = sizeof(*slice) / wide;

  if (slice && lane < pieces) __pipeline_memcpy_async(reinterpret_cast<uint8_t *>(to) + wide * lane, reinterpret_cast<const uint8_t *>(slice) + wide * lane, wide);
  if (!slice && lane == 0) {
    to->pattern = to->value = 0;
    to->slots               = 0;
    to->form                = AIJTC_FORM_FULL;
  }
  __pipeline_commit();
}

/* What has been requested is there, and all that lanes have stored */
__device__ __forceinline__ void WaitForRequests()
{
  __pipeline_wait_prior(0);
  __syncwarp();
}

/* Up to AIJTC_LANES slots of a slice */
struct Segment {
  const AIJTCSlice *slice; /* in shared memory */
  int               first; /* slot of lane 0 */

  /* The head of one by each lane */
  template <int R>
  __device__ __forceinline__ void request(const LayoutView &A, int lane, Room<R> *room) const
  {
    constexpr int    wide = sizeof(uint32_t) * (R == 1 ? 1 : 2); /* masks are no better aligned */
    const AIJTCSlot *slot = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * slice->pattern);
    const int        t    = first + lane;

    if (t < slice->slots) {
      __pipeline_memcpy_async(room->head + lane, slot + t, sizeof(*slot));
      if (!(slice->form & AIJTC_FORM_FULL)) {
        const uint8_t *const from = reinterpret_cast<const uint8_t *>(reinterpret_cast<const uint32_t *>(slot + slice->slots) + R * t);

#pragma unroll
        for (int byte = 0; byte < (int)sizeof(uint32_t) * R; byte += wide) __pipeline_memcpy_async(reinterpret_cast<uint8_t *>(room->mask + R * lane) + byte, from + byte, wide);
      }
    }
    __pipeline_commit();
  }
};

/* A segment opened for one group of the rows: its slots are in shared memory, without entries if they cannot be swept or there are no more */
struct OpenSegment {
  enum : unsigned {
    LAST   = 1, /* of its slice */
    SWEPT  = 2,
    PASSED = 4 /* some slot up to the last of these does not look back */
  };
  const PetscScalar *value;         /* of the slice */
  int                count;         /* slots */
  int                behind, ahead; /* slots before `behind` alone look back, slots from `ahead` on alone look ahead */
  unsigned           is;

  /* What was requested of `from`. By a warp that reads no slot any more. q: the group among all, k: its plane. passed: some slot before, of the slice, does not look back */
  template <int R, class Windows>
  __device__ __forceinline__ void open(const LayoutView &A, const Segment &from, PetscInt q, int k, int lane, bool passed, const Windows &windows, Room<R> *room)
  {
    const uint32_t form = from.slice->form;
    const bool     full = form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD), constants = form & AIJTC_FORM_CONST;
    const int      group = (int)(q % R);

    WaitForRequests();
    count                    = min(from.slice->slots - from.first, AIJTC_LANES);
    const bool      exists   = lane < count;
    const AIJTCSlot head     = exists ? room->head[lane] : AIJTCSlot{0, 0};
    const bool      constant = constants || (head.where & AIJTC_SLOT_CONST);
    const int       side     = windows.side(head.base);
    const unsigned  back = __ballot_sync(AIJTC_ALL_LANES, exists && side < 0), forth = __ballot_sync(AIJTC_ALL_LANES, exists && side > 0);
    ColumnSlot      mine = {windows.find(k, head.base, (int)A.bs - 1), 0, (int)(head.where & ~AIJTC_SLOT_CONST), 0};

    if (exists) {
      mine.mask = form & AIJTC_FORM_FULL ? AIJTC_ALL_LANES : room->mask[R * lane + group];
      for (int r = 0; r < group && !constant; r++) mine.place += full ? AIJTC_LANES : __popc(room->mask[R * lane + r]);
    }
    if (constants) mine.place = (from.first + lane) * (int)A.bs;
    if (!constant) mine.places = full ? AIJTC_ALL_LANES : mine.mask;
    value  = reinterpret_cast<const PetscScalar *>(A.value + (size_t)AIJTC_UNIT * from.slice->value);
    behind = AIJTC_LANES - __clz((int)back);
    ahead  = forth ? __ffs((int)forth) - 1 : count;
    is     = from.first + AIJTC_LANES >= from.slice->slots ? LAST : 0;
    if (passed || behind < count) is |= PASSED;

    const bool found   = __all_sync(AIJTC_ALL_LANES, !exists || mine.at >= 0);
    const bool ascends = __popc(back) == behind && __popc(forth) == count - ahead && !(passed && back); /* always, where there are no deltas; windows rely on it */

    if (IsSwept(form) && found && ascends) is |= SWEPT;
    else mine.mask = 0;
    if (!mine.mask) mine.at = 0;
    room->slot[lane] = mine;
    __syncwarp();
  }

private:
  /* No deltas, values of 8 bytes */
  __device__ __forceinline__ static bool IsSwept(uint32_t form) { return !(form >> AIJTC_FORM_DELTA & 3) && ((form & AIJTC_FORM_CONST) || (form >> AIJTC_FORM_VALUE & 3) == AIJTC_VALUE_DOUBLE); }
};

/* What this lane's row has in AT_ONCE slots, on its way: a slot's place here is free for the slot AT_ONCE later when it has been added */
struct Batch {
  PetscScalar a[AT_ONCE];
  int         at[AT_ONCE]; /* -1: no entry */

  /* rest: remainder of the row by the period, if NODES; else 0 */
  template <bool NODES>
  __device__ __forceinline__ void request(int u, const ColumnSlot &slot, const PetscScalar *value, int lane, int rest)
  {
    int place = slot.place + __popc(slot.places & ((1u << lane) - 1));

    if (NODES && !slot.places) place += rest;
    at[u] = -1;
    if (!(slot.mask >> lane & 1)) return;
    at[u] = slot.at;
    a[u]  = __ldg(value + place);
  }

  /* x: of this lane, at the ring's begin; odd: of odd columns */
  template <int WINDOW, int K>
  __device__ __forceinline__ void add(int u, const PetscScalar *x, const PetscScalar *odd, PetscScalar (&sum)[K]) const
  {
    if (at[u] < 0) return;
#pragma unroll
    for (int c = 0; c < K; c++) sum[c] = fma(a[u], (c % 2 ? odd : x)[at[u] + WINDOWS * WINDOW * c], sum[c]);
  }
};

/* Not inlined: the sweep shall have the registers */
template <int R, int K>
__device__ __noinline__ void ColumnsFromMemory(const LayoutView &A, PetscInt slice, int group, int m, const ColumnsView<K> &X)
{
  ColumnsOfGroup<R>(A, slice, group, m, X);
}

/* NODES: rows have remainders by the block size */
template <int R, bool NODES, class Shape>
__global__ void __launch_bounds__(AIJTC_LANES *Shape::WARPS, 1) ColumnSweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, int m, const __grid_constant__ ColumnsView<Shape::K> X)
{
  typedef typename Shape::Windows Windows;
  constexpr int                   K = Shape::K;
  extern __shared__ __align__(16) PetscScalar ring[]; /* then the rooms of warps, State */
  const int                                   lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, deep = (int)order.deep;
  const PetscInt                              in_plane = (PetscInt)(Shape::WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's groups of rows in their planes */
  const PetscInt                              first    = (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  Room<R> *const rooms = reinterpret_cast<Room<R> *>(ring + Shape::ring), *const room = rooms + warp;
  const Windows windows(order, first - warp, ring, reinterpret_cast<typename Windows::State *>(rooms + Shape::WARPS), X.x, X.xstride);
  const auto    of      = [&](int k) { return first + k * order.plane; };
  const auto    exists  = [&](int k) { return k < deep && in_plane < order.plane && of(k) < order.end; };
  const auto    rest_of = [&](int k) { return NODES ? (int)((AIJTC_LANES * of(k) + lane) % A.bs) : 0; };
  const auto    load    = [&](int k) { RequestSlice(exists(k) ? A.slice + of(k) / R : nullptr, room->slice + k % WINDOWS, lane); };
  Segment       segment{room->slice, 0};
  unsigned      others = 0; /* planes whose groups are not swept */
  OpenSegment   now;
  Batch         values;

  load(0);
  if (threadIdx.x == 0) windows.initialize();
  __syncthreads();
  windows.requestFirst();
  WaitForRequests();
  load(1);
  segment.request(A, lane, room);
  now.open(A, segment, of(0), 0, lane, false, windows, room);
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) values.template request<NODES>(u, room->slot[u], now.value, lane, rest_of(0));
  windows.await(-1);
  windows.await(0);
#pragma unroll 1
  for (int k = 0; k < deep; k++) {
    const PetscScalar *const x = ring + lane - rest_of(k), *const odd = x + windows.skew(1);
    PetscScalar sum[K]   = {};
    bool        released = false, awaited = false, swept = true, over = false;

#pragma unroll 1
    while (!over) {
      over  = now.is & OpenSegment::LAST;
      swept = swept && (now.is & OpenSegment::SWEPT);
      segment.first += AIJTC_LANES;
      if (over) {
        WaitForRequests();
        segment = {room->slice + (k + 1) % WINDOWS, 0};
        load(k + 2);
      }
      segment.request(A, lane, room);
#pragma unroll 1
      for (int from = 0;; from += AT_ONCE) {
        const bool end = from + AT_ONCE >= now.count, passed = now.is & OpenSegment::PASSED, release = !released && from + AT_ONCE >= now.behind && (over || passed);

        if (!awaited && from + AT_ONCE > now.ahead) {
          windows.await(k + 1);
          awaited = true;
        }
        if (end) now.open(A, segment, over ? of(k + 1) : of(k), over ? k + 1 : k, lane, !over && passed, windows, room);

        const ColumnSlot *const following = room->slot + (end ? 0 : from + AT_ONCE);
        const int               rest      = rest_of(end && over ? k + 1 : k);

#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
          values.template add<Windows::window, K>(u, x, odd, sum);
          values.template request<NODES>(u, following[u], now.value, lane, rest);
        }
        if (release) windows.release(k - 1);
        released = released || release;
        if (end) break;
      }
    }
    if (!awaited) windows.await(k + 1);
    if (!released) windows.release(k - 1);
    if (swept && exists(k)) StoreColumns(X, AIJTC_LANES * of(k) + lane < m ? (int)(AIJTC_LANES * of(k)) + lane : -1, sum);
    else if (exists(k)) others |= 1u << k;
  }
#pragma unroll 1
  for (int k = 0; k < deep; k++) {
    if (others >> k & 1) ColumnsFromMemory<R>(A, of(k) / R, (int)(of(k) % R), m, X);
  }
}

/* Planes that a multiprocessor takes one after the other; alone: windows of halos count, too */
PetscInt PlanesInTurn(const SweepOrder &order, bool alone)
{
  return ((PetscInt)(AIJTCSweepBlocksOf(order) - 1) / MULTIPROCESSORS + 1) * ((PetscInt)order.deep + (alone ? 2 : 0));
}

/* Is it faster than gathering X by way of L1? Nanoseconds, fitted to what was measured on an H200: docs/log/2026-11.md, "Several columns of grids" */
template <class Shape>
bool Pays(const AIJTCLayout &A, const SweepOrder &order)
{
  constexpr double slot = 15.0, plane = 250.0;                                                              /* of a warp in a plane: each slot, and at least */
  constexpr double group = Shape::K == 8 ? 0.5 : 1.2, gathered = Shape::K == 8 ? 0.29 : 0.19, wait = 700.0; /* of all multiprocessors: each group of rows, each of its slots; a slot for which nothing else is to be done */
  const double     slots = (double)A.nnz / A.m;

  return (PlanesInTurn(order, false) + 0.5) * Shape::WARPS * PetscMax(slot * slots, plane) <= PetscMax((group + gathered * slots) * order.end, wait * slots);
}

/* The order that has the fewest planes in turn. False: halos do not hold what rows reach */
template <class Shape>
bool OrderOf(const AIJTCLayout &A, PetscInt stride, PetscInt reach, SweepOrder *best)
{
  const PetscInt groups = (A.m - 1) / AIJTC_LANES + 1;
  bool           found  = false;

  for (PetscInt plane = stride / AIJTC_LANES; plane <= stride / AIJTC_LANES + 1; plane++) {
    if (plane < Shape::WARPS || reach + A.params.bs - 1 + PetscAbs(plane * AIJTC_LANES - stride) > Shape::HALO) continue;
    for (unsigned deep = 1; deep <= (unsigned)PetscMin((groups - 1) / plane + 1, SWEEP_PLANES); deep++) {
      const SweepOrder order = {0, groups, plane, (unsigned)((plane - 1) / Shape::WARPS + 1), deep, A.n};

      if (found && PlanesInTurn(order, true) >= PlanesInTurn(*best, true)) continue;
      *best = order;
      found = true;
    }
  }
  return found;
}

template <int R, bool NODES, class Shape>
PetscErrorCode Launch(const AIJTCLayout &A, const LayoutView &view, const SweepOrder &order, const ColumnsView<Shape::K> &X, PetscBool *done, cudaStream_t stream)
{
  constexpr int    threads = AIJTC_LANES * Shape::WARPS;
  constexpr size_t bytes   = Shape::template bytes<R>;
  const auto       kernel  = ColumnSweepKernel<R, NODES, Shape>;
  static const int held    = SweepBlocksHeld(kernel, threads, bytes);

  PetscFunctionBegin;
  if (!held) PetscFunctionReturn(PETSC_SUCCESS);
  kernel<<<AIJTCSweepBlocksOf(order), threads, bytes, stream>>>(view, order, (int)A.m, X);
  PetscCallCUDA(cudaGetLastError());
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int R, class Shape>
PetscErrorCode LaunchFor(const AIJTCLayout &A, const LayoutView &view, const SweepOrder &order, const ColumnsView<Shape::K> &X, PetscBool *done, cudaStream_t stream)
{
  return A.params.bs > 1 ? Launch<R, true, Shape>(A, view, order, X, done, stream) : Launch<R, false, Shape>(A, view, order, X, done, stream);
}

/* done: false where the device has not got so much shared memory */
template <class Shape>
PetscErrorCode Sweep(const AIJTCLayout &A, const LayoutView &view, const SweepOrder &order, const ColumnsView<Shape::K> &X, PetscBool *done, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (A.params.rrows == 1) PetscCall((LaunchFor<1, Shape>(A, view, order, X, done, stream)));
  else if (A.params.rrows == 2) PetscCall((LaunchFor<2, Shape>(A, view, order, X, done, stream)));
  else PetscCall((LaunchFor<4, Shape>(A, view, order, X, done, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the values of most slices 8 bytes each, or constants? */
bool HasWideValues(const AIJTCLayout &A)
{
  return A.exact_always || (!A.ndict && A.nvalue < A.nnz);
}

/* Do windows with so much on either side hold what rows reach, and does it pay? Then in which order */
template <class Shape>
bool OrderThatPays(const AIJTCLayout &A, SweepOrder *order)
{
  PetscInt plane, reach;

  if (!A.common || A.nconsecutive != AIJTCSlicesTotal(&A) || !HasWideValues(A) || (!AIJTCPlanes(&A, PETSC_TRUE, &plane, &reach) && !AIJTCPlanes(&A, PETSC_FALSE, &plane, &reach))) return false;
  return OrderOf<Shape>(A, plane, reach, order) && Pays<Shape>(A, *order);
}
} // namespace

template <int K>
PetscErrorCode AIJTCMultColumnsSwept(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream)
{
  SweepOrder order;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if ((size_t)X.x % 16) PetscFunctionReturn(PETSC_SUCCESS); /* the other columns may be at any number */
  if (OrderThatPays<Narrow<K>>(A, &order)) PetscCall(Sweep<Narrow<K>>(A, view, order, X, done, stream));
  else if (OrderThatPays<Middle<K>>(A, &order)) PetscCall(Sweep<Middle<K>>(A, view, order, X, done, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template PetscErrorCode AIJTCMultColumnsSwept<8>(const AIJTCLayout &, const LayoutView &, const ColumnsView<8> &, PetscBool *, cudaStream_t);
template PetscErrorCode AIJTCMultColumnsSwept<4>(const AIJTCLayout &, const LayoutView &, const ColumnsView<4> &, PetscBool *, cudaStream_t);
