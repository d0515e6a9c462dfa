/*
   Method
     x <- base - shift + alpha along, z <- A x and dot products of both, in one pass, for Krylov methods: the vector that is multiplied is made of two others in every iteration. Planes are swept (mult_sweep.cuh). A
     window of x is made in shared memory: bulk copies bring those of `along`, which comes to the window's place in the ring, and of `base`, which comes beside it; when both are there each warp turns its share of
     `along` into x, and stores to memory what is of the block's own rows. Halos are made by every block that has them, from the same numbers to the same bits. x must be neither of the two, whose windows other
     blocks still read.

     A window is begun when the plane before it is: base's place is free for the next window when all warps have had their share, a place in the ring when all are done with what was there.

     Slices that are not swept read both vectors from memory and make x for themselves.

     alpha = over / under, or its opposite, all in memory, as is what says that nothing is to be done.

   Layout
     mult_sweep.cuh. Shared memory: the ring, the window of `base`, a slice for each warp, barriers and counts; behind the sweep the sums of RowDots.

   Memory traffic
     8 bytes a row of x and z each, written; 2 x 8 (1 + 2 HALO / 2048) (planes + 2) / planes from L2, of which 16 from memory; slots and masks. 7-point 256^3: 574 MB, 133 us at 4.3 TB/s, where a step of its own and the product
     move 708 MB, 165 us.

   References
     mult_sweep.cuh
*/
#include "mult_sweep.cuh"
#include <algorithm>

namespace
{
struct VectorSum {
  AIJTCWAXPY   of;
  PetscScalar *x;
};

/* In one instruction, on 16 bytes: the compiler splits it if it may */
__device__ __forceinline__ void StorePair(PetscScalar *to, double2 pair)
{
  asm volatile("st.global.v2.f64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "d"(pair.x), "d"(pair.y) : "memory");
}

/* x by column, before it is there */
struct SumInMemory {
  const PetscScalar *base, *along;
  PetscScalar        alpha, shift;

  __device__ __forceinline__ PetscScalar operator[](PetscInt column) const { return fma(alpha, along[column], base[column] - shift); }
};

template <int HALO>
class SumWindows : public WindowPlaces<HALO> {
public:
  typedef VectorSum Source;

  struct State {
    PetscScalar alpha, shift;
    uint64_t    arrived[WINDOWS]; /* mbarriers: a phase for each window of `along` that comes to this place */
    uint64_t    staged;           /* for each window of `base` */
    uint64_t    made[WINDOWS];    /* for each window of x */
    int         released[WINDOWS];
    int         shares; /* warps that have had theirs of a window, all windows together */
  };
  static constexpr bool adds   = false;
  static constexpr int  memory = WindowPlaces<HALO>::window, slots = 12; /* memory: of `base` */

  __device__ __forceinline__ SumWindows(const SweepOrder &order, PetscInt first, PetscScalar *ring, State *state, const VectorSum &sum) :
    WindowPlaces<HALO>(order, first), ring_(ring), state_(state), sum_(sum), rows_(SLICE_ROWS * (int)min((unsigned)SWEEP_WARPS, (unsigned)order.plane - SWEEP_WARPS * (blockIdx.x % order.groups)))
  {
  }

  __device__ __forceinline__ void initialize() const
  {
    for (int place = 0; place < WINDOWS; place++) {
      InitializeBarrier(state_->arrived + place);
      InitializeBarrier(state_->made + place);
      state_->released[place] = 0;
    }
    InitializeBarrier(&state_->staged);
    state_->shares = 0;
  }

  __device__ __forceinline__ bool begin() const
  {
    if (*sum_.of.stop != 0.0) return false;
    if (threadIdx.x == 0) {
      const PetscScalar alpha = *sum_.of.over / *sum_.of.under;

      state_->alpha = sum_.of.minus ? -alpha : alpha;
      state_->shift = sum_.of.shift ? *sum_.of.shift : 0.0;
    }
    __syncthreads();
    if (threadIdx.x < AIJTC_LANES) {
#pragma unroll 1
      for (int j = -1; j < WINDOWS - 1; j++) requestAlong(j);
      requestBase(-1);
    }
    prepare(-1);
    prepare(0);
    return true;
  }

  __device__ __forceinline__ void prepare(int j) const
  {
    const int place = (j + 1) % WINDOWS;

    AwaitPhase(state_->arrived + place, (unsigned)(j + 1) / WINDOWS & 1);
    AwaitPhase(&state_->staged, (unsigned)(j + 1) & 1);
    make(j, ring_ + this->window * place);
    if (!this->lastOfWarps(&state_->shares)) return;
    if (threadIdx.x % AIJTC_LANES == 0) Arrive(state_->made + place);
    requestBase(j + 1);
  }

  __device__ __forceinline__ void await(int j) const
  {
    AwaitPhase(state_->made + (j + 1) % WINDOWS, (unsigned)(j + 1) / WINDOWS & 1);
  }

  __device__ __forceinline__ void release(int j) const
  {
    if (this->lastOfWarps(state_->released + (j + 1) % WINDOWS)) requestAlong(j + WINDOWS);
  }

  __device__ __forceinline__ bool is(const PetscScalar *) const
  {
    return true;
  }
  __device__ __forceinline__ SumInMemory elsewhere() const
  {
    return {sum_.of.base, sum_.of.along, state_->alpha, state_->shift};
  }

private:
  __device__ __forceinline__ PetscScalar *base() const
  {
    return ring_ + WINDOWS * this->window;
  }
  __device__ __forceinline__ void requestAlong(int j) const
  {
    const int place = (j + 1) % WINDOWS;

    this->copy(j, sum_.of.along, this->n_, ring_ + this->window * place, state_->arrived + place);
  }
  __device__ __forceinline__ void requestBase(int j) const
  {
    this->copy(j, sum_.of.base, this->n_, base(), &state_->staged);
  }

  /* This thread's share of window j, two numbers at a time; what is beyond the ends of x nobody reads */
  __device__ __forceinline__ void make(int j, PetscScalar *window) const
  {
    const PetscScalar  alpha = state_->alpha, shift = state_->shift;
    const PetscCount   first = this->column(j) + HALO;
    const int          rows  = j >= 0 && j < this->deep_ ? (int)max((PetscCount)0, min((PetscCount)rows_, this->n_ - first)) : 0; /* of the block in this plane */
    PetscScalar *const x     = sum_.x + first;
    const bool         pairs = ((size_t)sum_.x & 15) == 0;

#pragma unroll 1
    for (int i = 2 * (int)threadIdx.x; i < WindowPlaces<HALO>::window; i += 2 * AIJTC_LANES * SWEEP_WARPS) {
      double2 *const of = reinterpret_cast<double2 *>(window + i);
      const double2  a = *of, b = *reinterpret_cast<const double2 *>(base() + i);
      const double2  sum = {fma(alpha, a.x, b.x - shift), fma(alpha, a.y, b.y - shift)};
      const int      row = i - HALO;

      *of = sum;
      if ((unsigned)row >= (unsigned)rows) continue;
      if (pairs && row + 1 < rows) StorePair(x + row, sum);
      else {
        x[row] = sum.x;
        if (row + 1 < rows) x[row + 1] = sum.y;
      }
    }
  }

  PetscScalar     *ring_;
  State           *state_;
  const VectorSum &sum_;
  int              rows_; /* of a plane */
};

template <int HALO>
PetscErrorCode LaunchFor(const AIJTCLayout *layout, const SweepOrder &order, const VectorSum &x, PetscScalar *z, const DotView &dots, cudaStream_t stream)
{
  const auto kernel = dots.count() == 2 ? SweepKernel<SumWindows<HALO>, 2> : SweepKernel<SumWindows<HALO>, AIJTC_DOTS>;

  return LaunchOverlapping(kernel, AIJTCSweepBlocksOf(order), AIJTC_LANES * SWEEP_WARPS, SweepBytes<SumWindows<HALO>>(dots.count()), stream, AIJTCLayoutView(*layout), order, layout->m, x, (const PetscScalar *)nullptr, z, dots);
}

template <int HALO>
bool DeviceHolds()
{
  static const int blocks = std::min(SweepBlocksHeld<SumWindows<HALO>, 2>(), SweepBlocksHeld<SumWindows<HALO>, AIJTC_DOTS>());

  return blocks >= SWEEP_BLOCKS;
}

/* The kernels for one halo */
struct SumShape {
  decltype(&LaunchFor<NARROW_HALO>) launch;
  bool (*held)();
};

SumShape ShapeFor(const AIJTCLayout &A)
{
  if (A.line <= NARROW_HALO) return {LaunchFor<NARROW_HALO>, DeviceHolds<NARROW_HALO>};
  if (A.line <= MIDDLE_HALO) return {LaunchFor<MIDDLE_HALO>, DeviceHolds<MIDDLE_HALO>};
  return {LaunchFor<WIDE_HALO>, DeviceHolds<WIDE_HALO>};
}
} // namespace

/* Not with slices of more slots than windows of two vectors leave room for: as they are full but at the ends of lines, the largest one tells */
PetscErrorCode AIJTCLayoutHasWAXPY_CUDA(const AIJTCLayout *layout, PetscBool *has)
{
  SweepOrder order;

  PetscFunctionBegin;
  *has = (PetscBool)(layout->m == layout->n && layout->largest <= SLICE_ROWS * SumWindows<NARROW_HALO>::slots && AIJTCSweepOf(*layout, &order) && ShapeFor(*layout).held());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutWAXPYMultDot_CUDA(const AIJTCLayout *layout, PETSC_UNUSED PetscBool tensor, const AIJTCWAXPY *of, PetscScalar x[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream)
{
  const DotView dots = {x, u, work->partial, work->arrived, result, 0, work->rows};
  SweepOrder    order;
  PetscBool     has;

  PetscFunctionBegin;
  PetscCall(AIJTCLayoutHasWAXPY_CUDA(layout, &has));
  PetscCheck(has && AIJTCSweepOf(*layout, &order), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The product with this layout makes no vector: ask AIJTCLayoutHasWAXPY_CUDA()");
  PetscCheck(work->cuda && work->rows == AIJTCSweepBlocksOf(order), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space is for %u blocks of rows, the layout has %u: create it once the layout is complete", work->rows, AIJTCSweepBlocksOf(order));
  PetscCheck(x != of->base && x != of->along && z != of->base && z != of->along && z != x && z != u, PETSC_COMM_SELF, PETSC_ERR_ARG_IDN, "Neither the vector made nor the product may be another of the vectors");
  PetscCall(ShapeFor(*layout).launch(layout, order, {*of, x}, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
