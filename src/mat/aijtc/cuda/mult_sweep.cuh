/*
   Method
     z = A x for large grids of planes whose slices are constants and offsets, so that reading x is nearly all of the work. A block has the same 4096 rows of PLANES planes, one after the other, with x in
     shared memory: the window of its rows, and WINDOW_HALO numbers on either side, of four planes. The rows of a plane gather from its own window and from those of the planes before and behind, while
     the fourth is on its way (`cp.async`). So x crosses from L2 once a plane and block, instead of once for each offset that finds nothing in L1.

     A slot's offset says which window its columns are in: the one nearest. If they are in none, or the slice has another form, x is read from global memory: windows are a matter of speed only. Sums are
     added slot by slot, with the bits of the other kernels (mult_rows.cuh).

   Layout
     include/petsctc/private/aijtclayout.h. A plane is `plane` slices of 4 x 32 rows, layout->stride rows to the nearest slice: windows of following planes are 128 `plane` columns apart. Window j of a block,
     j = -1 .. planes, is at place (j + 1) mod 4 of the ring.

   Memory traffic
     8 bytes a row of z, 8 (1 + 2 WINDOW_HALO / 4096) (PLANES + 2) / PLANES of x from L2, of which 8 from memory; slots and masks. 7-point 256^3: 306 MB from memory, 71 us at 4.3 TB/s; 134 + 189 + 38 MB from
     L2, 68 us at 5.3 TB/s; 7 reads of shared memory a row, 32 us.

   References
     Micikevicius, 3D finite difference computation on GPUs using CUDA, GPGPU-2, 2009
*/
#pragma once

#include "mult_rows.cuh"

constexpr int SWEEP_WARPS  = 32;
constexpr int SWEEP_GROUPS = 4; /* row groups of a slice */
constexpr int SLICE_ROWS   = AIJTC_LANES * SWEEP_GROUPS;
constexpr int SWEEP_ROWS   = SWEEP_WARPS * SLICE_ROWS; /* of a block in a plane */
constexpr int WINDOW_HALO  = 512;
constexpr int WINDOW       = SWEEP_ROWS + 2 * WINDOW_HALO;
constexpr int WINDOWS      = 4;

/* Which slices a block takes: of each plane those from SWEEP_WARPS (its number modulo `groups`) on */
struct SweepOrder {
  PetscInt begin, end; /* slices */
  PetscInt plane;      /* slices of a plane */
  unsigned groups;     /* blocks side by side in a plane */
  unsigned deep;       /* planes of a block */
  PetscInt n;          /* columns */
};

class SweepWindows {
public:
  __device__ __forceinline__ SweepWindows(const SweepOrder &order, PetscScalar *ring, const PetscScalar *x) : ring_(ring), x_(x), n_(order.n), apart_(SLICE_ROWS * order.plane)
  {
    const PetscInt first = (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + (PetscInt)(SWEEP_WARPS * (blockIdx.x % order.groups));

    zero_ = SLICE_ROWS * first - WINDOW_HALO;
  }

  /* By all threads: window j will be there after a wait for this group of copies */
  __device__ __forceinline__ void request(int j) const
  {
    const PetscCount column = (PetscCount)zero_ + (PetscCount)j * apart_;

    for (int i = (int)threadIdx.x; i < WINDOW; i += AIJTC_LANES * SWEEP_WARPS) {
      if (column + i < 0 || column + i >= n_) continue;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(place(j) + i)), "l"(x_ + column + i) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  __device__ __forceinline__ static void wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

  /* The array whose element `column` is x[column] for the SLICE_ROWS columns from `first` on; k: the plane of the rows, base: offset of the columns */
  __device__ __forceinline__ const PetscScalar *holding(PetscInt first, int k, int base) const
  {
    const int      j  = base > apart_ / 2 ? k + 1 : (base < -(apart_ / 2) ? k - 1 : k);
    const PetscInt at = (first - zero_) - j * apart_;

    return at >= 0 && at + SLICE_ROWS <= WINDOW ? place(j) + at - first : x_;
  }

private:
  __device__ __forceinline__ PetscScalar *place(int j) const { return ring_ + WINDOW * ((j + 1) % WINDOWS); }

  PetscScalar       *ring_;
  const PetscScalar *x_;
  PetscInt           n_, apart_, zero_; /* first column of window 0 */
};

/* A slice of constants without deltas: its rows from s.row on */
__device__ __forceinline__ void SweepSlice(const SliceView &s, int k, PetscInt m, int lane, const SweepWindows &windows, const PetscScalar *y, PetscScalar *z, const RowDots<SWEEP_WARPS> &dots)
{
  const bool            full = s.form & AIJTC_FORM_FULL;
  RowSums<SWEEP_GROUPS> sums;

  for (int t = 0; t < s.slots; t++) {
    const int          base = __ldg(&s.slot[t].base);
    const PetscScalar  a    = ConstValues::load(s, t);
    const PetscScalar *x    = windows.holding(s.row + base, k, base);
    unsigned           mask[SWEEP_GROUPS];

#pragma unroll
    for (int r = 0; r < SWEEP_GROUPS; r++) mask[r] = AIJTC_ALL_LANES;
    if (!full) LoadMasks<SWEEP_GROUPS>(s.mask + SWEEP_GROUPS * t, mask);
#pragma unroll
    for (int r = 0; r < SWEEP_GROUPS; r++) {
      const bool on = mask[r] >> lane & 1;

      sums(r, on, a, on ? x[s.row + base + AIJTC_LANES * r + lane] : 0.0);
    }
  }
#pragma unroll
  for (int r = 0; r < SWEEP_GROUPS; r++) {
    const PetscInt row = s.row + AIJTC_LANES * r + lane;

    if (row >= m) continue;
    const PetscScalar result = y ? y[row] + sums.sum[r] : sums.sum[r];

    z[row] = result;
    dots.add(row, result);
  }
}

/* Of any form. Not inlined: it would take the registers of those above */
__device__ __noinline__ void OtherSlice(const LayoutView &A, PetscInt slice, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const RowDots<SWEEP_WARPS> &dots)
{
  RowsSlice<SWEEP_GROUPS>(A, slice, m, threadIdx.x % AIJTC_LANES, x, y, z, dots);
}

/* Brings what a slice is made of to L2: slots, masks and values of up to some 10 slots */
__device__ __forceinline__ void PrefetchSlice(const SliceView &s, int lane)
{
  if (lane < 4) asm volatile("prefetch.global.L2 [%0];" ::"l"(lane < 3 ? reinterpret_cast<const uint8_t *>(s.slot) + 128 * lane : s.value));
}

__global__ void __launch_bounds__(AIJTC_LANES *SWEEP_WARPS, 1)
  SweepKernel(const __grid_constant__ LayoutView A, const __grid_constant__ SweepOrder order, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  extern __shared__ PetscScalar sums[]; /* those of RowDots, then the ring */
  RowDots<SWEEP_WARPS>          dots(w);
  const int                     lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES;
  const SweepWindows            windows(order, sums + (w.w ? 2 * AIJTC_LANES * SWEEP_WARPS : 0), x);
  const PetscInt                in_plane = (PetscInt)(SWEEP_WARPS * (blockIdx.x % order.groups)) + warp; /* number of this warp's slices in their planes */
  PetscInt                      slice    = order.begin + (PetscInt)(blockIdx.x / order.groups * order.deep) * order.plane + in_plane;
  const auto                    exists   = [&](PetscInt q) { return in_plane < order.plane && q < order.end; };
  SliceView                     s        = {};

  LetNextLaunchStart();
  if (exists(slice)) s = LoadSlice<SWEEP_GROUPS>(A, slice, 1);
  WaitForLaunchBefore();
  for (int j = -1; j <= 1; j++) windows.request(j);
  for (int k = 0; k < (int)order.deep; k++, slice += order.plane) {
    const SliceView now = s;

    windows.wait();
    __syncthreads(); /* windows k - 1 .. k + 1 are there, and nobody reads k - 2 any more */
    if (k + 1 < (int)order.deep) windows.request(k + 2);
    if (!exists(slice)) continue;
    if (exists(slice + order.plane)) {
      s = LoadSlice<SWEEP_GROUPS>(A, slice + order.plane, 1);
      PrefetchSlice(s, lane);
    }
    if ((now.form & AIJTC_FORM_CONST) && !(now.form >> AIJTC_FORM_DELTA & 3)) SweepSlice(now, k, m, lane, windows, y, z, dots);
    else OtherSlice(A, slice, m, x, y, z, dots);
  }
  dots.finish();
}
