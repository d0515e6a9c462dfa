/*
   Method
     The product of a gathered layout: a block of threads for each block of slices. It reads the x of the block's list into shared memory, all columns at the same time, then its warps take the slices, an
     entry's column being a place in the list. So an x comes from L2 once a block instead of once an entry, and no load of an entry waits for another one.

     Lanes, sums and their order are those of other ROWS slices (mult_rows.cuh): the bits of the product do not depend on whether a layout is gathered.

   Layout
     include/petsctc/private/aijtclayout.h. Dynamic shared memory: the sums of dot products (mult_dot.cuh), then x.

   Memory traffic
     Slices as in aijtcslots.cuh, but for their slots' heads, with 2 bytes of delta an entry; 4 bytes a column of a list; a sector of 32 bytes of x for each, from L2, less where columns are neighbours; per row 4 bytes of rid and 8 of z (8 more for y).
     A million nodes of a tetrahedral mesh, 15 a row, numbered at random, 5.9 columns a row: 208 MB, 48 us at 4.3 TB/s, and 190 MB of x from L2. Without lists 480 MB of x.

   References
     Im, Yelick, Vuduc, SPARSITY: optimization framework for sparse matrix kernels, IJHPCA 18(1), 2004 (cache blocking)
*/
#include "mult.cuh"
#include "mult_rows.cuh"

namespace
{
constexpr int GATHER_WARPS   = 8; /* of a block */
constexpr int GATHER_THREADS = AIJTC_LANES * GATHER_WARPS;
constexpr int GATHER_BLOCKS  = 4; /* of a multiprocessor at least: 64 registers */
constexpr int GATHER_BATCH   = 4; /* columns that a thread has under way */
constexpr int GATHER_SLOTS   = 8; /* slots under way */

/* x of the columns first, first + GATHER_THREADS, .. of a list */
__device__ __forceinline__ void StageBatch(const PetscInt *list, int first, int length, const PetscScalar *x, PetscScalar *staged)
{
  int         column[GATHER_BATCH];
  PetscScalar value[GATHER_BATCH];

#pragma unroll
  for (int k = 0; k < GATHER_BATCH; k++) column[k] = first + k * GATHER_THREADS < length ? __ldg(list + first + k * GATHER_THREADS) : -1;
#pragma unroll
  for (int k = 0; k < GATHER_BATCH; k++) value[k] = column[k] < 0 ? 0.0 : x[column[k]];
#pragma unroll
  for (int k = 0; k < GATHER_BATCH; k++)
    if (column[k] >= 0) staged[first + k * GATHER_THREADS] = value[k];
}

/* What a lane has of GATHER_SLOTS slots */
template <class Values, bool PACKED>
struct GatheredSlots {
  unsigned             mask[GATHER_SLOTS];
  uint32_t             place[GATHER_SLOTS];
  typename Values::Raw raw[GATHER_SLOTS];

  /* Slots t, t + 1, .., as far as they exist */
  __device__ __forceinline__ void request(const SliceView &s, int t, int lane, int remainder)
  {
#pragma unroll
    for (int u = 0; u < GATHER_SLOTS; u++) {
      const bool exists = t + u < s.slots;

      mask[u]           = !exists ? 0 : (s.form & AIJTC_FORM_FULL ? AIJTC_ALL_LANES : __ldg(s.mask + t + u));
      const int  at     = PACKED ? (exists ? (int)__ldg(&s.slot[t + u].where) : 0) + __popc(mask[u] & ((1u << lane) - 1)) : AIJTC_LANES * (t + u) + lane;
      const bool stored = PACKED ? mask[u] >> lane & 1 : exists;

      raw[u]   = stored ? Values::load(s, Values::constant ? (t + u) * s.period + remainder : at) : (typename Values::Raw)0;
      place[u] = stored ? LoadDelta<2>(s, at) : 0;
    }
  }
  __device__ __forceinline__ void add(const SliceView &s, int lane, const PetscScalar *staged, PetscScalar &sum) const
  {
    PetscScalar x[GATHER_SLOTS];

#pragma unroll
    for (int u = 0; u < GATHER_SLOTS; u++) x[u] = staged[place[u]];
#pragma unroll
    for (int u = 0; u < GATHER_SLOTS; u++)
      if (mask[u] >> lane & 1) sum = fma(Values::get(s, raw[u]), x[u], sum);
  }
};

template <class Values, bool PACKED>
__device__ __forceinline__ PetscScalar GatheredSumOf(const SliceView &s, int lane, int remainder, const PetscScalar *staged)
{
  GatheredSlots<Values, PACKED> now;
  PetscScalar                   sum = 0.0;

  for (int t = 0; t < s.slots; t += GATHER_SLOTS) {
    now.request(s, t, lane, remainder);
    now.add(s, lane, staged, sum);
  }
  return sum;
}

template <bool PACKED>
__device__ __forceinline__ PetscScalar GatheredSum(const SliceView &s, int lane, int remainder, const PetscScalar *staged)
{
  const uint32_t values = s.form >> AIJTC_FORM_VALUE & 3;

  if (s.form & AIJTC_FORM_CONST) return GatheredSumOf<ConstValues, PACKED>(s, lane, remainder, staged);
  if (values == AIJTC_VALUE_DOUBLE) return GatheredSumOf<DoubleValues, PACKED>(s, lane, remainder, staged);
  if (values == AIJTC_VALUE_FLOAT) return GatheredSumOf<FloatValues, PACKED>(s, lane, remainder, staged);
  return GatheredSumOf<DictValues, PACKED>(s, lane, remainder, staged);
}

/* A slice, and the row of this lane. Requested before the x are there */
struct GatheredSlice {
  SliceView s;
  int       row; /* -1: none */

  __device__ __forceinline__ GatheredSlice(const LayoutView &A, PetscInt slice, int lane) : s(LoadSlice<1>(A, slice, A.bs)), row(__ldg(A.rid + (AIJTC_LANES * slice + lane))) { }

  template <class Dots>
  __device__ __forceinline__ void add(int bs, int lane, const PetscScalar *staged, const PetscScalar *y, PetscScalar *z, const Dots &dots) const
  {
    const int         remainder = bs == 1 || row < 0 ? 0 : (int)((unsigned)row % (unsigned)bs);
    const PetscScalar sum       = s.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD) ? GatheredSum<false>(s, lane, remainder, staged) : GatheredSum<true>(s, lane, remainder, staged);

    if (row < 0) return;
    const PetscScalar result = y ? y[row] + sum : sum;

    z[row] = result;
    dots.add(row, result);
  }
};

__global__ void __launch_bounds__(GATHER_THREADS, GATHER_BLOCKS) GatherKernel(const __grid_constant__ LayoutView A, PetscInt slices, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  extern __shared__ PetscScalar shared[];
  RowDots<GATHER_WARPS>         dots(w);
  PetscScalar                  *staged = shared + w.count() * GATHER_THREADS;
  const int                     lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES;
  const PetscInt                begin = (PetscInt)blockIdx.x * A.gather, end = min(slices, begin + A.gather), first = __ldg(A.list_start + blockIdx.x);
  const int                     length = (int)(__ldg(A.list_start + blockIdx.x + 1) - first);
  GatheredSlice                 slice(A, min(begin + warp, slices - 1), lane);

  WaitForLaunchBefore(); /* the next launch starts when blocks end: let in before, its blocks would only take the room of this one's */
  for (int k = (int)threadIdx.x; k < length; k += GATHER_BATCH * GATHER_THREADS) StageBatch(A.list + first, k, length, x, staged);
  __syncthreads();
  for (PetscInt s = begin + warp; s < end; s += GATHER_WARPS) {
    if (s >= begin + GATHER_WARPS) slice = GatheredSlice(A, s, lane);
    slice.add(A.bs, lane, staged, y, z, dots);
  }
  dots.finish();
}
} // namespace

PetscErrorCode AIJTCLayoutMultGathered_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const size_t shared = AIJTCDotBytes(dots, GATHER_WARPS) + (size_t)layout->longest_list * sizeof(PetscScalar);

  PetscFunctionBegin;
  static_assert(AIJTC_DOTS * sizeof(PetscScalar) * GATHER_THREADS + AIJTC_GATHER_LIST * sizeof(PetscScalar) <= 48 * 1024, "more shared memory is to be asked for");
  PetscCall(LaunchOverlapping(GatherKernel, (unsigned)layout->nblocks, GATHER_THREADS, shared, stream, AIJTCLayoutView(*layout), layout->nslices[AIJTC_ROWS], x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
