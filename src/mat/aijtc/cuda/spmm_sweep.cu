/*
   Method
     Z = A X for 8 columns on grids of planes, whatever values are: planes are swept (mult_sweep.cuh) with a window of each column of X in shared memory, so that an X crosses from L2 once a plane and block instead of
     once for each offset that finds nothing in L1. A block has few rows, since a ring of windows holds 8 columns: in each plane a warp takes one group of 32 rows.

     What waits for memory are then the values, and the heads of slots before them. A warp takes the slots of its rows in segments of 32, whose heads are read by a lane each, while the segment before is added up, and passed on by shuffles;
     values come a batch of slots ahead, across the ends of segments and planes.

     Groups of rows that cannot be swept, because a slot's columns are in no window or have deltas, are added up behind the sweep from memory, as elsewhere (ColumnsOfGroup()). Sums are added slot by slot: with the bits of all other
     products.

     Compute capability 9.0 and newer.

   Layout
     include/petsctc/private/aijtclayout.h. What SweepOrder and windows count are groups of 32 rows, of which slices have R. Shared memory: ring[8][3][rows of the block + 2 HALO], barriers and counts.

   Memory traffic
     The layout once; 64 bytes a row of Z; 64 (1 + 2 HALO / rows of a block) (planes + 2) / planes of X from L2, of which 64 from memory. 27-point 100^3, values stored: 222 + 64 + 64 MB from memory, 81 us at 4.3 TB/s; X is read
     27 times from shared memory, 1.7 GB, 16 cycles a slot and group of rows: 60 us at 1.75 GHz. 7-point 101^3: 57 + 66 + 66 MB, 44 us.

   References
     mult_sweep.cuh
*/
#include "mult_sweep.cuh"
#include "spmm.cuh"
#include <cuda_pipeline_primitives.h>

namespace
{
constexpr int K       = COLUMNS;
constexpr int AT_ONCE = 4; /* slots whose values are requested together */

/* One slot of a group of rows, in shared memory */
struct alignas(16) ColumnSlot {
  int      at; /* where in the ring the columns of the group begin */
  unsigned mask;
  int      place;  /* of the group's first value */
  unsigned places; /* lanes that have one; 0: all have the same, or one for each remainder of their row */
};

/* Shared memory of a warp: the slots of a segment, the slices of its rows in planes that follow each other */
struct Room {
  ColumnSlot slot[AIJTC_LANES];
  AIJTCSlice slice[WINDOWS];
};

/* Blocks that have windows with HALO numbers on either side of WARPS groups of rows: as many as shared memory holds of 8 columns */
template <int HALO_, int WARPS_>
struct Shape {
  static constexpr int                           HALO = HALO_, WARPS = WARPS_, ROWS = AIJTC_LANES * WARPS;
  typedef WindowRing<HALO, K, ROWS, AIJTC_LANES> Windows;
  static constexpr int                           ring  = K * WINDOWS * Windows::window;
  static constexpr size_t                        bytes = ring * sizeof(PetscScalar) + WARPS * sizeof(Room) + sizeof(typename Windows::State);
};
typedef Shape<128, 20> Narrow;
typedef Shape<288, 16> Middle;

/* Up to AIJTC_LANES slots of a slice of R groups of rows, the head of one by each lane, on their way */
template <int R>
struct Segment {
  const AIJTCSlice *slice; /* in shared memory */
  int               first; /* slot of lane 0 */
  int2              head;
  unsigned          masks[R];

  __device__ __forceinline__ void request(const LayoutView &A, int lane)
  {
    const AIJTCSlot *slot = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * slice->pattern);
    const int        t    = first + lane;

    head = make_int2(0, 0);
#pragma unroll
    for (int r = 0; r < R; r++) masks[r] = t < slice->slots ? AIJTC_ALL_LANES : 0;
    if (t >= slice->slots) return;
    head = __ldg(reinterpret_cast<const int2 *>(slot + t));
    if (!(slice->form & AIJTC_FORM_FULL)) LoadMasks<R>(reinterpret_cast<const uint32_t *>(slot + slice->slots) + R * t, masks);
  }
};

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

__device__ __forceinline__ void WaitForSlices()
{
  __pipeline_wait_prior(0);
  __syncwarp();
}

/* A segment opened for one group of the rows: its slots are in shared memory, without entries if they cannot be swept or there are no more */
struct OpenSegment {
  const PetscScalar *value;         /* of the slice */
  int                count;         /* slots */
  int                behind, ahead; /* slots before `behind` alone look back, slots from `ahead` on alone look ahead */
  bool               last;          /* of its slice */
  bool               swept;
  bool               passed; /* some slot up to the last of these does not look back */

  /* q: the group among all, k: its plane. By a warp that does not read `slots` any more. passed_before: of what came before in the slice */
  template <int R, class Windows>
  __device__ __forceinline__ void open(const LayoutView &A, const Segment<R> &from, PetscInt q, int k, int lane, bool passed_before, const Windows &windows, ColumnSlot *slots)
  {
    const uint32_t form = from.slice->form;
    const bool     full = form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD), constants = form & AIJTC_FORM_CONST, constant = constants || from.head.y < 0;
    const int      side = windows.side(from.head.x), group = (int)(q % R);
    ColumnSlot     mine = {windows.find(k, from.head.x), from.masks[0], from.head.y & (int)~AIJTC_SLOT_CONST, 0};

    count                 = min(from.slice->slots - from.first, AIJTC_LANES);
    const bool     exists = lane < count;
    const unsigned back = __ballot_sync(AIJTC_ALL_LANES, exists && side < 0), forth = __ballot_sync(AIJTC_ALL_LANES, exists && side > 0);

#pragma unroll
    for (int r = 1; r < R; r++) {
      if (r <= group && !constant) mine.place += full ? AIJTC_LANES : __popc(from.masks[r - 1]);
      if (r == group) mine.mask = from.masks[r];
    }
    if (constants) mine.place = (from.first + lane) * (int)A.bs;
    if (!constant) mine.places = full ? AIJTC_ALL_LANES : mine.mask;
    value  = reinterpret_cast<const PetscScalar *>(A.value + (size_t)AIJTC_UNIT * from.slice->value);
    behind = AIJTC_LANES - __clz((int)back);
    ahead  = forth ? __ffs((int)forth) - 1 : count;
    last   = from.first + AIJTC_LANES >= from.slice->slots;
    swept  = IsSwept(form) && __all_sync(AIJTC_ALL_LANES, !exists || mine.at >= (int)A.bs - 1);             /* a lane reads as many numbers before its own, at most */
    swept  = swept && __popc(back) == behind && __popc(forth) == count - ahead && !(passed_before && back); /* columns ascend, as far as windows are concerned */
    passed = passed_before || behind < count;
    if (!swept) mine.mask = 0;
    if (!exists || !swept) mine.at = 0;
    __syncwarp();
    slots[lane] = mine;
    __syncwarp();
  }

private:
  /* No deltas, values of 8 bytes */
  __device__ __forceinline__ static bool IsSwept(uint32_t form)
  {
    return !(form >> AIJTC_FORM_DELTA & 3) && ((form & AIJTC_FORM_CONST) || (form >> AIJTC_FORM_VALUE & 3) == AIJTC_VALUE_DOUBLE);
  }
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
  template <int WINDOW>
  __device__ __forceinline__ void add(int u, const PetscScalar *x, const PetscScalar *odd, PetscScalar (&sum)[K]) const
  {
    if (at[u] < 0) return;
#pragma unroll
    for (int c = 0; c < K; c++) sum[c] = fma(a[u], (c % 2 ? odd : x)[at[u] + WINDOWS * WINDOW * c], sum[c]);
  }
};

/* Not inlined: the sweep shall have the registers */
template <int R>
__device__ __noinline__ void ColumnsFromMemory(const LayoutView &A, PetscInt slice, int group, int m, const ColumnsView<K> &X)
{
  ColumnsOfGroup<R>(A, slice, group, m, X);
}

/* NODES: rows have remainders by the block size */
template <int R, bool NODES, class Shape>
__global__ void __launch_bounds__(AIJTC_LANES *Shape::WARPS, 1) ColumnSweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, int m, const __grid_constant__ ColumnsView<K> X)
{
  typedef typename Shape::Windows Windows;
  extern __shared__ __align__(16) PetscScalar ring[]; /* then the rooms of warps, State */
  const int                                   lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, deep = (int)order.deep;
  const PetscInt                              in_plane = (PetscInt)(Shape::WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's groups of rows in their planes */
  const PetscInt                              first    = (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  Room *const rooms = reinterpret_cast<Room *>(ring + Shape::ring), *const room = rooms + warp;
  const Windows windows(order, first - warp, ring, reinterpret_cast<typename Windows::State *>(rooms + Shape::WARPS), X.x, X.xstride);
  const auto    of      = [&](int k) { return first + k * order.plane; };
  const auto    exists  = [&](int k) { return k < deep && in_plane < order.plane && of(k) < order.end; };
  const auto    rest_of = [&](int k) { return NODES ? (int)((AIJTC_LANES * of(k) + lane) % A.bs) : 0; };
  const auto    load    = [&](int k) { RequestSlice(exists(k) ? A.slice + of(k) / R : nullptr, room->slice + k % WINDOWS, lane); };
  Segment<R>    segment{room->slice, 0, {}, {}};
  unsigned      others = 0; /* planes whose groups are not swept */
  OpenSegment   now;
  Batch         values;

  load(0);
  if (threadIdx.x == 0) windows.initialize();
  __syncthreads();
  windows.requestFirst();
  WaitForSlices();
  load(1);
  segment.request(A, lane);
  now.open(A, segment, of(0), 0, lane, false, windows, room->slot);
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
      over  = now.last;
      swept = swept && now.swept;
      segment.first += AIJTC_LANES;
      if (over) {
        WaitForSlices();
        segment = {room->slice + (k + 1) % WINDOWS, 0, {}, {}};
        load(k + 2);
      }
      segment.request(A, lane);
#pragma unroll 1
      for (int from = 0;; from += AT_ONCE) {
        const bool end = from + AT_ONCE >= now.count, release = !released && from + AT_ONCE >= now.behind && (over || now.passed);

        if (!awaited && from + AT_ONCE > now.ahead) {
          windows.await(k + 1);
          awaited = true;
        }
        if (end) now.open(A, segment, over ? of(k + 1) : of(k), over ? k + 1 : k, lane, !over && now.passed, windows, room->slot);

        const ColumnSlot *const following = room->slot + (end ? 0 : from + AT_ONCE);
        const int               rest      = rest_of(end && over ? k + 1 : k);

#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
          values.template add<Windows::window>(u, x, odd, sum);
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
  for (int k = 0; others >> k; k++) {
    if (others >> k & 1) ColumnsFromMemory<R>(A, of(k) / R, (int)(of(k) % R), m, X);
  }
}

/* How far apart planes are, and how far a row reaches in one: of a stencil without diagonals, or of one that reaches a line and a row beyond a plane. False: no planes */
bool PlanesOf(const AIJTCLayout &A, PetscInt *plane, PetscInt *reach)
{
  const PetscInt half = A.line / 2;

  *plane = A.stride;
  *reach = A.line;
  if (A.line > 0 && A.line % 2 == 0 && A.m % A.stride && A.m % (A.stride - half) == 0) {
    *plane = A.stride - half;
    *reach = half;
  }
  return A.line > 0 && 2 * *reach < *plane;
}

/* Planes that a multiprocessor takes one after the other, with `alone` for each block, before and behind its own */
PetscInt PlanesInTurn(const SweepOrder &order, PetscInt alone)
{
  return ((PetscInt)(AIJTCSweepBlocksOf(order) - 1) / MULTIPROCESSORS + 1) * ((PetscInt)order.deep + alone);
}

/* Is it faster than gathering X by way of L1? Nanoseconds, measured on an H200: docs/performance.md, "Several columns of grids" */
template <class Shape>
bool Pays(const AIJTCLayout &A, const SweepOrder &order)
{
  constexpr double slot = 17.0, plane = 250.0; /* of a warp in a plane: each slot; at least */
  constexpr double gathered = 0.35;            /* of all multiprocessors: each slot of a group of rows */
  const double     slots    = (double)A.nnz / A.m;

  return (double)PlanesInTurn(order, 1) * Shape::WARPS * PetscMax(slot * slots, plane) <= gathered * slots * order.end;
}

/* The order that has the fewest planes in turn. False: halos do not hold what rows reach */
template <class Shape>
bool OrderOf(const AIJTCLayout &A, PetscInt stride, PetscInt reach, SweepOrder *best)
{
  const PetscInt groups = (A.m - 1) / AIJTC_LANES + 1;
  bool           found  = false;

  for (PetscInt plane = stride / AIJTC_LANES; plane <= stride / AIJTC_LANES + 1; plane++) {
    if (plane < Shape::WARPS || reach + PetscAbs(plane * AIJTC_LANES - stride) > Shape::HALO) continue;
    for (unsigned deep = 1; deep <= (unsigned)PetscMin((groups - 1) / plane + 1, SWEEP_PLANES); deep++) {
      const SweepOrder order = {0, groups, plane, (unsigned)((plane - 1) / Shape::WARPS + 1), deep, A.n};

      if (found && PlanesInTurn(order, 2) >= PlanesInTurn(*best, 2)) continue;
      *best = order;
      found = true;
    }
  }
  return found;
}

template <int R, bool NODES, class Shape>
PetscErrorCode Launch(const AIJTCLayout &A, const LayoutView &view, const SweepOrder &order, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream)
{
  const auto kernel = ColumnSweepKernel<R, NODES, Shape>;
  int        held   = 0;

  PetscFunctionBegin;
  if (PetscTCCopiesInBulk((const void *)kernel) && !cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)Shape::bytes))
    (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, kernel, AIJTC_LANES * Shape::WARPS, Shape::bytes);
  (void)cudaGetLastError(); /* a device with less shared memory is no error; it must not appear again after the next launch */
  if (!held) PetscFunctionReturn(PETSC_SUCCESS);
  kernel<<<AIJTCSweepBlocksOf(order), AIJTC_LANES * Shape::WARPS, Shape::bytes, stream>>>(view, order, (int)A.m, X);
  PetscCallCUDA(cudaGetLastError());
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int R, class Shape>
PetscErrorCode LaunchFor(const AIJTCLayout &A, const LayoutView &view, const SweepOrder &order, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream)
{
  return A.params.bs > 1 ? Launch<R, true, Shape>(A, view, order, X, done, stream) : Launch<R, false, Shape>(A, view, order, X, done, stream);
}

/* done: false where halos do not hold what rows reach, where it does not pay, or the device has not got so much shared memory */
template <class Shape>
PetscErrorCode Sweep(const AIJTCLayout &A, const LayoutView &view, PetscInt plane, PetscInt reach, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream)
{
  SweepOrder order;

  PetscFunctionBegin;
  if (!OrderOf<Shape>(A, plane, reach, &order) || !Pays<Shape>(A, order)) PetscFunctionReturn(PETSC_SUCCESS);
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
} // namespace

PetscErrorCode AIJTCMultColumnsSwept(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<COLUMNS> &X, PetscBool *done, cudaStream_t stream)
{
  PetscInt plane, reach;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!A.common || A.nconsecutive != AIJTCSlicesTotal(&A) || (size_t)X.x % 16 || !HasWideValues(A) || !PlanesOf(A, &plane, &reach)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Sweep<Narrow>(A, view, plane, reach, X, done, stream));
  if (!*done) PetscCall(Sweep<Middle>(A, view, plane, reach, X, done, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
