/*
   Method
     ROWS slices of consecutive rows whose values are stored one by one. What a warp needs to know of 32 slots, a segment, is copied to shared memory one segment ahead, a slot by each lane, without a register in between. So no batch
     of slots begins with a wait for their heads: half of what a warp waits for where it is alone with its slice, which the last warps of a product are, and all of them where a matrix has no more slices than run at once.

     All x of a batch are under way together. For that nothing may be kept from one step of a batch to the next but values, deltas and x: masks are read again, and additions have no condition, for which a multiprocessor has seven
     predicates a warp and a batch eight entries. What does not exist adds a zero times -0.0 instead, which is -0.0 and changes no sum. Where no lane lacks an entry, or all have a place, no mask is looked at, or only for x.

     Sums are added slot by slot: with the bits of all other products.

     In wider batches (mult_rows.cuh), with one row of a node a lane, and with four rows a lane, 72 registers and a block less on each multiprocessor are faster where no wave more of blocks is needed.

   Layout
     include/petsctc/private/aijtclayout.h. Shared memory: sums of dot products; two segments for each warp.

   Memory traffic
     As mult_rows.cuh. 27-point 100^3, two rows a lane: values 212 MB, slots and masks 4 MB, slices and vectors 16.5 MB: 54 us at 4.3 TB/s; with deltas 106 MB more, 79 us

   References
     mult_rows.cuh
*/
#include "mult.cuh"
#include "mult_rows.cuh"
#include <cuda_pipeline_primitives.h>

namespace
{
constexpr int      STORED_BLOCKS = 8; /* of a multiprocessor at least: 64 registers */
constexpr PetscInt SHORTEST      = 2; /* nonzeros of a row in the mean */
constexpr unsigned MANY_BLOCKS   = 4 * MULTIPROCESSORS * STORED_BLOCKS;
constexpr unsigned DEEP          = 8; /* rows of a lane in products with dot products, of which each block leaves sums for others to add: 7-point 256^3 cg 581 us an iteration with 2, 559 with 4, 544 with 8 */

/* A slot, as all lanes need it */
template <int R>
struct alignas(8) StoredSlot {
  int      base;
  int      where; /* of its first place */
  unsigned mask[R];
};

/* Are several slices to be taken by a warp? Where rows are longer, or four to a lane, that gains nothing and the loop costs registers */
template <int R, bool NODES>
constexpr bool IsDeep = R < 4 && !NODES;

/* Sums of the slots of a slice, U at once */
template <int R, bool NODES, int U>
class StoredSlice {
public:
  __device__ __forceinline__ StoredSlice(const LayoutView &A, PetscInt slice, int lane, StoredSlot<R> *slot) : s(LoadSlice<R>(A, slice, A.bs)), slot_(slot), lane_(lane)
  {
#pragma unroll
    for (int r = 0; r < (NODES ? R : 1); r++) {
      const int row = s.row + AIJTC_LANES * r + lane;

      ref_[r] = NODES ? row - (int)((unsigned)row % (unsigned)A.bs) : row;
    }
  }

  __device__ __forceinline__ void add(const PetscScalar *x, RowSums<R> &sums)
  {
    switch (s.form >> AIJTC_FORM_DELTA & 3) {
    case 0:
      addSlots<0>(x, sums);
      break;
    case 1:
      addSlots<1>(x, sums);
      break;
    case 2:
      addSlots<2>(x, sums);
      break;
    default:
      addSlots<4>(x, sums);
    }
  }

  const SliceView s;

private:
  template <int BYTES>
  __device__ __forceinline__ void addSlots(const PetscScalar *x, RowSums<R> &sums)
  {
    __syncwarp(); /* the slice before is read */
    load(0);
#pragma unroll 1
    for (int first = 0; first < s.slots; first += AIJTC_LANES) {
      const StoredSlot<R> *slot = segmentOf(first);
      int                  left = min(s.slots - first, AIJTC_LANES);

      __pipeline_wait_prior(0);
      __syncwarp();
      load(first + AIJTC_LANES);
      if (s.form & AIJTC_FORM_FULL) {
#pragma unroll 1
        for (; left >= U; left -= U, slot += U) addBatch<BYTES, PLACING_FULL, false>(slot, left, x, sums);
        if (left > 0) addBatch<BYTES, PLACING_FULL, true>(slot, left, x, sums);
      } else if (s.form & AIJTC_FORM_SPREAD) {
#pragma unroll 1
        for (; left >= U; left -= U, slot += U) addBatch<BYTES, PLACING_SPREAD, false>(slot, left, x, sums);
        if (left > 0) addBatch<BYTES, PLACING_SPREAD, true>(slot, left, x, sums);
      } else {
#pragma unroll 1
        for (; left > 0; left -= U, slot += U) addBatch<BYTES, PLACING_PACKED, true>(slot, left, x, sums);
      }
    }
  }

  /* Two segments alternate */
  __device__ __forceinline__ StoredSlot<R> *segmentOf(int first) const
  {
    return slot_ + first % (2 * AIJTC_LANES);
  }

  /* Sends for this lane's slot of those from `first` on. Those behind the last one have no entries */
  __device__ __forceinline__ void load(int first)
  {
    constexpr int  wide = R == 1 ? 4 : 8;
    const int      t    = first + lane_;
    StoredSlot<R> *to   = segmentOf(first) + lane_;

    if (t < s.slots) {
      __pipeline_memcpy_async(to, s.slot + t, sizeof(*s.slot));
      if (!(s.form & AIJTC_FORM_FULL)) {
#pragma unroll
        for (int byte = 0; byte < 4 * R; byte += wide) __pipeline_memcpy_async(reinterpret_cast<uint8_t *>(to->mask) + byte, reinterpret_cast<const uint8_t *>(s.mask + R * t) + byte, wide);
      }
    } else {
#pragma unroll
      for (int r = 0; r < R; r++) to->mask[r] = 0;
    }
    __pipeline_commit();
  }

  __device__ __forceinline__ int ref(int r) const
  {
    return NODES ? ref_[NODES ? r : 0] : ref_[0] + AIJTC_LANES * r;
  }

  /* U slots, or, PART, `left` of them. What no lane has, and what a hole stores, is a = 0.0 and b = -0.0 */
  template <int BYTES, Placing PLACING, bool PART>
  __device__ __forceinline__ void addBatch(const StoredSlot<R> *slot, int left, const PetscScalar *x, RowSums<R> &sums) const
  {
    constexpr bool FULL = PLACING == PLACING_FULL, PACKED = PLACING == PLACING_PACKED;
    const unsigned mine = 1u << lane_;
    PetscScalar    a[U][R], b[U][R];
    int            delta[U][R];

#pragma unroll
    for (int u = 0; u < U; u++) {
      int before = slot[u].where + (PACKED ? 0 : lane_);

#pragma unroll
      for (int r = 0; r < R; r++) {
        const unsigned mask  = PACKED ? slot[u].mask[r] : 0;
        const bool     has   = PACKED ? (mask & mine) != 0 : !PART || u < left; /* a place */
        const int      place = before + (PACKED ? __popc(mask & (mine - 1)) : AIJTC_LANES * r);

        a[u][r]     = has ? DoubleValues::load(s, place) : 0.0;
        delta[u][r] = has ? (int)LoadDelta<BYTES>(s, place) : 0;
        before += __popc(mask);
      }
    }
    WaitForLaunchBefore();
#pragma unroll
    for (int u = 0; u < U; u++) {
      const int base = slot[u].base;

#pragma unroll
      for (int r = 0; r < R; r++) {
        const bool has = FULL ? !PART || u < left : (slot[u].mask[r] & mine) != 0; /* an entry */

        b[u][r] = has ? x[ref(r) + base + delta[u][r]] : -0.0;
      }
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
#pragma unroll
      for (int r = 0; r < R; r++) sums(r, true, a[u][r], b[u][r]);
    }
  }

  StoredSlot<R> *slot_;
  int            lane_, ref_[NODES ? R : 1];
};

template <int R, bool NODES, int U, int BLOCKS>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, BLOCKS)
  StoredKernel(const __grid_constant__ LayoutView A, PetscInt begin, PetscInt end, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  __shared__ StoredSlot<R> slots[AIJTC_WARPS][2 * AIJTC_LANES];
  RowDots<AIJTC_WARPS>     dots(w);
  const int                lane = threadIdx.x % AIJTC_LANES;
  const int                warp = threadIdx.x / AIJTC_LANES;

  LetNextLaunchStart();
  for (PetscInt slice = begin + (PetscInt)(AIJTC_WARPS * blockIdx.x) + warp; slice < end; slice += (PetscInt)(AIJTC_WARPS * gridDim.x)) {
    StoredSlice<R, NODES, U> stored(A, slice, lane, slots[warp]);
    RowSums<R>               sums;

    stored.add(x, sums);
    WaitForLaunchBefore(); /* a slice without slots has not waited yet */
    StoreRows(A, stored.s, m, lane, sums, y, z, dots);
    if (!IsDeep<R, NODES>) break;
  }
  dots.finish();
}

/* How often a multiprocessor's places are taken */
constexpr unsigned WavesOf(unsigned blocks, int places)
{
  return (blocks - 1) / (MULTIPROCESSORS * (unsigned)places) + 1;
}

template <int R, bool NODES, int U>
PetscErrorCode LaunchFor(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  constexpr int  fewest = U > RowsBatch<R> || (NODES ? R == 1 : R == 4) ? STORED_BLOCKS - 1 : STORED_BLOCKS;
  const PetscInt begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], end = begin + A.nslices[AIJTC_ROWS];
  const unsigned blocks = AIJTCStoredBlocks(A, dots.w);
  const bool     fewer  = WavesOf(blocks, fewest) == WavesOf(blocks, STORED_BLOCKS);
  const auto     kernel = fewer ? StoredKernel<R, NODES, U, fewest> : StoredKernel<R, NODES, U, STORED_BLOCKS>;

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(kernel, blocks, AIJTC_LANES * AIJTC_WARPS, AIJTCDotBytes(dots, AIJTC_WARPS), stream, AIJTCLayoutView(A), begin, end, A.m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int R>
PetscErrorCode LaunchOfGroups(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (A.params.bs > 1) PetscCall((LaunchFor<R, true, RowsBatch<R>>(A, x, y, z, dots, stream)));
  else if (FitsWiderBatch<R>(A)) PetscCall((LaunchFor<R, false, WiderBatch<R>>(A, x, y, z, dots, stream)));
  else PetscCall((LaunchFor<R, false, RowsBatch<R>>(A, x, y, z, dots, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

unsigned AIJTCStoredBlocks(const AIJTCLayout &A, bool dots)
{
  const unsigned blocks = AIJTCBlocksOf(A.nslices[AIJTC_ROWS]);
  const bool     stored = A.common && A.exact_always && !A.params.gather && A.nslices[AIJTC_ROWS] && A.nconsecutive == A.nslices[AIJTC_ROWS], deltas = !(A.params.compress & AIJTC_COMPRESS_PATTERN);
  const bool     deep = dots && A.params.bs == 1 && A.params.rrows < 4 && blocks > MANY_BLOCKS;

  if (!stored || A.nnz < (PetscCount)SHORTEST * A.m || (deltas && A.m >= AIJTC_MANY_ROWS_DELTAS)) return 0;
  return deep ? (blocks * (unsigned)A.params.rrows - 1) / DEEP + 1 : blocks;
}

PetscErrorCode AIJTCLayoutMultStored_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (layout->params.rrows == 4) PetscCall(LaunchOfGroups<4>(*layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 2) PetscCall(LaunchOfGroups<2>(*layout, x, y, z, dots, stream));
  else PetscCall(LaunchOfGroups<1>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
