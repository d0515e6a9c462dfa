/*
   Method
     ROWS slices of consecutive rows whose values are stored one by one. What a warp needs to know of 32 slots, a segment, its lanes load at once, a slot each, one segment ahead, and leave in shared memory. So no batch of slots
     begins with a wait for their heads: half of what a warp waits for where it is alone with its slice, which the last warps of a product are, and all of them where a matrix has no more slices than run at once. (A slice of 77
     nonzeros a row took 17 us.)

     Slices with deltas of other bytes than the kernel is for are added up as elsewhere (mult_rows.cuh). Sums are added slot by slot: with the bits of all other products.

   Layout
     include/petsctc/private/aijtclayout.h. Shared memory: sums of dot products; a segment for each warp.

   Memory traffic
     As mult_rows.cuh

   References
     mult_rows.cuh
*/
#include "mult.cuh"
#include "mult_rows.cuh"

namespace
{
constexpr int      STORED_BLOCKS = 8;                  /* of a multiprocessor at least: 64 registers */
constexpr int      STORED_BATCH  = 8;                  /* entries of a lane under way */
constexpr PetscInt LONG_ENOUGH = 16, SHORT_ENOUGH = 6; /* nonzeros of a row in the mean: always, and for fewer rows */
constexpr PetscInt FEW_ROWS = 2000000;

/* A slot, as all lanes need it */
template <int R>
struct alignas(R == 4 ? 8 : 16) StoredSlot {
  int      base;
  int      where; /* of its first place */
  unsigned mask[R];
};

/* Sums of the slots of a slice */
template <int R, int BYTES, bool NODES>
class StoredSlice {
  static constexpr int U = STORED_BATCH / R; /* slots of a batch */

public:
  __device__ __forceinline__ StoredSlice(const LayoutView &A, PetscInt slice, int lane, StoredSlot<R> *slot) : s(LoadSlice<R>(A, slice, A.bs)), slot_(slot), lane_(lane)
  {
#pragma unroll
    for (int r = 0; r < (NODES ? R : 1); r++) {
      const int row = s.row + AIJTC_LANES * r + lane;

      ref_[r] = NODES ? row - (int)((unsigned)row % (unsigned)A.bs) : row;
    }
  }

  __device__ __forceinline__ bool isStored() const
  {
    return (s.form >> AIJTC_FORM_DELTA & 3) == (BYTES ? 3 : 0);
  }

  __device__ __forceinline__ void add(const PetscScalar *x, RowSums<R> &sums)
  {
    load(0);
#pragma unroll 1
    for (int first = 0; first < s.slots; first += AIJTC_LANES) {
      open();
      load(first + AIJTC_LANES);
      const int count = min(s.slots - first, AIJTC_LANES);

#pragma unroll 1
      for (int t = 0; t < count; t += U) {
        if (s.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD)) addBatch<false>(slot_ + t, x, sums);
        else addBatch<true>(slot_ + t, x, sums);
      }
    }
  }

  const SliceView s;

private:
  /* Requests this lane's slot of those from `first` on */
  __device__ __forceinline__ void load(int first)
  {
    const int t = first + lane_;

    mine_ = {};
    if (t >= s.slots) return;
    const int2 head = __ldg(reinterpret_cast<const int2 *>(s.slot + t));

    mine_.base  = head.x;
    mine_.where = head.y;
#pragma unroll
    for (int r = 0; r < R; r++) mine_.mask[r] = AIJTC_ALL_LANES;
    if (!(s.form & AIJTC_FORM_FULL)) LoadMasks<R>(s.mask + R * t, mine_.mask);
  }

  /* What was requested, for all lanes; those behind the last slot have no entries, but a place that exists */
  __device__ __forceinline__ void open()
  {
    __syncwarp();
    slot_[lane_] = mine_;
    __syncwarp();
  }

  template <bool PACKED>
  __device__ __forceinline__ void addBatch(const StoredSlot<R> *slot, const PetscScalar *x, RowSums<R> &sums) const
  {
    const unsigned mine = 1u << lane_;
    PetscScalar    a[U][R], b[U][R];
    int            delta[U][R];

#pragma unroll
    for (int u = 0; u < U; u++) {
      int before = slot[u].where + (PACKED ? 0 : lane_);

#pragma unroll
      for (int r = 0; r < R; r++) {
        const unsigned mask  = slot[u].mask[r];
        const int      place = before + (PACKED ? __popc(mask & (mine - 1)) : AIJTC_LANES * r);

        a[u][r]     = 0.0;
        delta[u][r] = 0;
        if (mask & mine) {
          a[u][r]     = DoubleValues::load(s, place);
          delta[u][r] = (int)LoadDelta<BYTES>(s, place);
        }
        if (PACKED) before += __popc(mask);
      }
    }
    WaitForLaunchBefore(); /* masks are read again behind it, so that they take no registers */
#pragma unroll
    for (int u = 0; u < U; u++) {
      const int base = slot[u].base;

#pragma unroll
      for (int r = 0; r < R; r++) {
        b[u][r] = 0.0;
        if (slot[u].mask[r] & mine) b[u][r] = x[(NODES ? ref_[NODES ? r : 0] : ref_[0] + AIJTC_LANES * r) + base + delta[u][r]];
      }
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
#pragma unroll
      for (int r = 0; r < R; r++) sums(r, slot[u].mask[r] & mine, a[u][r], b[u][r]);
    }
  }

  StoredSlot<R> *slot_, mine_;
  int            lane_, ref_[NODES ? R : 1];
};

/* Not inlined: the others shall have the registers */
template <int R>
__device__ __noinline__ RowSums<R> SumsFromMemory(const LayoutView &A, PetscInt slice, int lane, const PetscScalar *x)
{
  RowSums<R> sums;

  WaitForLaunchBefore();
  AddRows(A, LoadSlice<R>(A, slice, A.bs), lane, x, sums);
  return sums;
}

template <int R, int BYTES, bool NODES>
__global__ void __launch_bounds__(AIJTC_LANES *AIJTC_WARPS, STORED_BLOCKS)
  StoredKernel(const __grid_constant__ LayoutView A, PetscInt begin, PetscInt end, PetscInt m, const PetscScalar *x, const PetscScalar *y, PetscScalar *z, const __grid_constant__ DotView w)
{
  __shared__ StoredSlot<R> slots[AIJTC_WARPS][AIJTC_LANES];
  RowDots<AIJTC_WARPS>     dots(w);
  const int                lane  = threadIdx.x % AIJTC_LANES;
  const PetscInt           slice = begin + (PetscInt)(AIJTC_WARPS * blockIdx.x + threadIdx.x / AIJTC_LANES);

  LetNextLaunchStart();
  if (slice < end) {
    StoredSlice<R, BYTES, NODES> stored(A, slice, lane, slots[threadIdx.x / AIJTC_LANES]);
    RowSums<R>                   sums;

    if (stored.isStored()) stored.add(x, sums);
    else sums = SumsFromMemory<R>(A, slice, lane, x);
    WaitForLaunchBefore(); /* a slice without slots has not waited yet */
    StoreRows(A, stored.s, m, lane, sums, y, z, dots);
  }
  dots.finish();
}

template <int R>
PetscErrorCode LaunchFor(const AIJTCLayout &A, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const bool     deltas = !(A.params.compress & AIJTC_COMPRESS_PATTERN), nodes = A.params.bs > 1;
  const PetscInt begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], end = begin + A.nslices[AIJTC_ROWS];
  const auto     kernel = deltas ? (nodes ? StoredKernel<R, 4, true> : StoredKernel<R, 4, false>) : (nodes ? StoredKernel<R, 0, true> : StoredKernel<R, 0, false>);

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(kernel, AIJTCStoredBlocks(A), AIJTC_LANES * AIJTC_WARPS, AIJTCDotBytes(dots, AIJTC_WARPS), stream, AIJTCLayoutView(A), begin, end, A.m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

unsigned AIJTCStoredBlocks(const AIJTCLayout &A)
{
  const bool longer = A.nnz >= (PetscCount)LONG_ENOUGH * A.m || (A.nnz >= (PetscCount)SHORT_ENOUGH * A.m && A.m <= FEW_ROWS);

  if (!A.common || !A.exact_always || A.params.gather || !longer || !A.nslices[AIJTC_ROWS] || A.nconsecutive != A.nslices[AIJTC_ROWS]) return 0;
  return AIJTCBlocksOf(A.nslices[AIJTC_ROWS]);
}

PetscErrorCode AIJTCLayoutMultStored_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (layout->params.rrows == 4) PetscCall(LaunchFor<4>(*layout, x, y, z, dots, stream));
  else if (layout->params.rrows == 2) PetscCall(LaunchFor<2>(*layout, x, y, z, dots, stream));
  else PetscCall(LaunchFor<1>(*layout, x, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
