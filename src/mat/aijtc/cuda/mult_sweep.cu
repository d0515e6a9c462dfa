/*
   Method
     z = A x for large grids of planes whose slices are constants and offsets, so that reading x is nearly all of the work: planes are swept (mult_sweep.cuh), with x in shared memory. So x crosses from L2 once a plane and
     block, instead of once for each offset that finds nothing in L1.

     The warps of a block go through the planes each on its own. A window comes as one bulk copy, whose end an mbarrier tells; the warp that is the last to be done with a window sends for the one that takes its place: so
     a window has a plane's time to come. What is left are instructions.

     x is read from memory, as elsewhere, for slices that are not swept, after the sweep: windows are a matter of speed only. Sums are added slot by slot, with the bits of the other kernels (mult_rows.cuh).

     Compute capability 9.0 and newer; elsewhere planes are not swept. Compute Sanitizer's racecheck takes neither a count nor an mbarrier for an order between the reads of a window and the copy that takes its place, and
     reports the two.

   Layout
     mult_sweep.cuh. Shared memory: the ring, a slice for each warp, the ring's barriers and counts; behind the sweep the sums of RowDots.

   Memory traffic
     8 bytes a row of z, 8 (1 + 2 HALO / 2048) (planes + 2) / planes of x from L2, of which 8 from memory; slots and masks. 7-point 256^3: 306 MB from memory, 71 us at 4.3 TB/s; 134 + 183 + 34 MB from
     L2, 64 us at 5.5 TB/s; 7 reads of shared memory a row, 32 us.

   References
     mult_sweep.cuh
*/
#include "mult_sweep.cuh"
#include <algorithm>

namespace
{
template <int HALO>
class SweepWindows : public WindowRing<HALO> {
public:
  typedef const PetscScalar *Source;

  static constexpr int  memory = 0, slots = 27;
  static constexpr bool adds = true;

  __device__ __forceinline__ SweepWindows(const SweepOrder &order, PetscInt first, PetscScalar *ring, typename WindowRing<HALO>::State *state, Source x) : WindowRing<HALO>(order, first, ring, state, x) { }

  __device__ __forceinline__ bool begin() const
  {
    this->requestFirst();
    return true;
  }

  __device__ __forceinline__ void prepare(int) const { }

  __device__ __forceinline__ bool   is(const PetscScalar *w) const { return w == this->x_; }
  __device__ __forceinline__ Source elsewhere() const { return this->x_; }
};

/* The kernels for one halo */
struct SweepShape {
  decltype(&SweepKernel<SweepWindows<NARROW_HALO>, 0>) kernel[AIJTC_DOTS / 2 + 1]; /* without dot products, with two, with four */
  int                                                  halo;
  size_t (*bytes)(int dots);
  int (*held)(); /* blocks of any of the kernels that a multiprocessor holds */
};

template <int HALO>
int BlocksHeld()
{
  static const int blocks = std::min({SweepBlocksHeld<SweepWindows<HALO>, 0>(), SweepBlocksHeld<SweepWindows<HALO>, 2>(), SweepBlocksHeld<SweepWindows<HALO>, AIJTC_DOTS>()});

  return blocks;
}

template <int HALO>
SweepShape ShapeOf()
{
  return {
    {SweepKernel<SweepWindows<HALO>, 0>, SweepKernel<SweepWindows<HALO>, 2>, SweepKernel<SweepWindows<HALO>, AIJTC_DOTS>},
    HALO, SweepBytes<SweepWindows<HALO>>, BlocksHeld<HALO>
  };
}

/* With the narrowest halo that holds the lines; those that no halo holds get the widest, too */
SweepShape ShapeFor(const AIJTCLayout &A)
{
  if (A.line <= NARROW_HALO) return ShapeOf<NARROW_HALO>();
  return A.line <= MIDDLE_HALO ? ShapeOf<MIDDLE_HALO>() : ShapeOf<WIDE_HALO>();
}

/* Small grids: a block has windows of two planes more than it has rows of, and the last blocks may have nothing to do. Is that at most 2.2 times the least? 7-point 101^3 2.10: 8.3 us instead of 8.7; 90^3 2.97: 7.9
   instead of 7.3 */
bool BlocksPay(const SweepOrder &order, unsigned waves)
{
  return 20.0 * (order.deep + 2) * (MULTIPROCESSORS * SWEEP_BLOCKS * SWEEP_WARPS) * waves <= 44.0 * order.end;
}

} // namespace

/* Can the planes be swept, and is it worth it? Not with lines longer than what windows have on either side; with many offsets L1 has most of x, and stride is not the distance of planes. Not with several rows of a node, whose constant slots have a value for each */
bool AIJTCSweepOf(const AIJTCLayout &A, SweepOrder *order)
{
  order->begin = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE];
  order->end   = order->begin + A.nslices[AIJTC_ROWS];
  order->plane = (A.stride + SLICE_ROWS / 2) / SLICE_ROWS;
  order->n     = A.n;
  if (!A.common || A.params.bs != 1 || A.params.rrows != SWEEP_GROUPS || A.nconsecutive != A.nslices[AIJTC_ROWS] || order->begin || A.nvalue >= A.nnz) return false;
  if (A.line > ShapeFor(A).halo || order->plane < SWEEP_WARPS || A.npattern > SWEEP_PATTERN * order->end || ShapeFor(A).held() < SWEEP_BLOCKS) return false;

  const PetscInt planes = (order->end - 1) / order->plane + 1;
  if (planes < FEWEST_PLANES) return false;
  order->groups        = (unsigned)((order->plane - 1) / SWEEP_WARPS + 1);
  const unsigned steps = (unsigned)planes * order->groups, blocks = MULTIPROCESSORS * SWEEP_BLOCKS, waves = (steps - 1) / (blocks * SWEEP_PLANES) + 1;
  order->deep = PetscMin((steps - 1) / (blocks * waves) + 1, (unsigned)planes);
  return BlocksPay(*order, waves);
}

unsigned AIJTCSweepBlocksOf(const SweepOrder &order)
{
  const PetscInt planes = (order.end - 1) / order.plane + 1;

  return (unsigned)((planes - 1) / (PetscInt)order.deep + 1) * order.groups;
}

unsigned AIJTCSweepBlocks(const AIJTCLayout &A)
{
  SweepOrder order;

  return AIJTCSweepOf(A, &order) ? AIJTCSweepBlocksOf(order) : 0;
}

PetscErrorCode AIJTCLayoutMultSwept_CUDA(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], const DotView &dots, cudaStream_t stream)
{
  const SweepShape shape = ShapeFor(*layout);
  SweepOrder       order;

  PetscFunctionBegin;
  PetscCheck(AIJTCSweepOf(*layout, &order), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A layout that is not swept");
  PetscCall(LaunchOverlapping(shape.kernel[dots.count() / 2], AIJTCSweepBlocksOf(order), AIJTC_LANES * SWEEP_WARPS, shape.bytes(dots.count()), stream, AIJTCLayoutView(*layout), order, layout->m, x, y, z, dots));
  PetscFunctionReturn(PETSC_SUCCESS);
}
