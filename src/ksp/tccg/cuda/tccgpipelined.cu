/*
   Method
     Pipelined conjugate gradients (tccgpipelined.h) in one cooperative kernel (ksptcresident.cuh), with one barrier an iteration:

       multiply z <- A m + b z
       update   p, s, x, r, w; m, published; the sums                       barrier with two sums; test of the norm, record, b, a; meanwhile m of the ghosts

     With a preconditioner the norm's square is a third sum, which another warp collects and tests while the first one makes b and a.

     Numbers are published for every barrier, and the next one's may be stored while another block still fetches this one's: two arrays, by turns.
     Vectors that are made anew take four products, each with a barrier of its own, and one more for what decides whether r is replaced goes with the second.

   Layout
     Vectors of a block: of its rows x, r, p, s, z, w, (the diagonal,) m, and behind m that of the ghosts. published: two numbers a row

   Memory traffic
     A call: the form once, x, r and p twice. Vectors made anew: b. An iteration: 16 bytes a row stored and 16 a ghost fetched, in L2, as with two barriers (tccgresident.cuh), whose latencies decide: half as much was expected,
     2.2 us for 7-point 43^3, and 3.2 came (docs/performance.md). Vectors made anew: five barriers, the time of some three iterations

   References
     Ghysels, Vanroose, Hiding global synchronization latency in the preconditioned Conjugate Gradient algorithm, Parallel Computing 40, 2014
*/
#include <petsctc/private/ksptcresident.cuh>
#include <petsctc/private/tccgpipelined.h>
#include "tccgtested.cuh"

namespace
{
using Barrier = SumBarrier<KSPTC_BLOCKS, TCCG_PIPELINED_ANEW<true>, 2>;
using Problem = KSPTCProblem<TCCGScalars, TCCGVectors>;

/* Products of vectors that are made anew */
enum Stage {
  OF_X, /* b - A x to z */
  OF_P, /* s */
  OF_S, /* z */
  OF_R, /* w */
  STAGES
};

/* In shared memory */
struct Common {
  KSPTCTold                    told;   /* what is to be done first, or stop, and a, b; between stages whether r is replaced */
  TCCGJudged                   judged; /* by another warp */
  KSPTCAsked                   asked;
  KSPTCRecordLeft<TCCGScalars> record;

  __device__ __forceinline__ double first() const { return judged.stop != 0.0 ? (double)TCCG_PIPELINED_VERIFY : told.stop; }
};

struct Share : KSPTCShare {
  double *x, *r, *p, *s, *z, *w, *d, *m;

  __device__ __forceinline__ Share(const KSPTCForm &A, bool scaled, double *memory) : KSPTCShare(A, TCCGPipelinedVectorsOfBlock(scaled), memory)
  {
    x = vector;
    r = x + rows;
    p = r + rows;
    s = p + rows;
    z = s + rows;
    w = z + rows;
    d = w + rows;
    m = scaled ? d + rows : d;
  }
};

/* Where a solve begins there is no direction yet */
template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, const Share &own)
{
  const bool first = P.chunk.first == 0;

  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.x[k] = P.v.x[row];
    own.r[k] = P.v.r[row];
    own.p[k] = first ? 0.0 : P.v.p[row];
    own.s[k] = own.z[k] = 0.0;
    if constexpr (scaled) own.d[k] = P.v.diagonal[row];
  });
  if (threadIdx.x == 0) own.m[own.rows + own.ghosts] = 0.0;
}

template <bool scaled>
__device__ __forceinline__ void Store(const Problem &P, const Share &own)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    P.v.x[row] = own.x[k];
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    if constexpr (scaled) P.v.z[row] = own.d[k] * own.r[k];
  });
}

__device__ __forceinline__ PetscTCTagged *Published(const Problem &P, uint64_t tag)
{
  return P.published + (tag % 2 ? P.A.m : 0);
}

/* m <- x, p, B s or B r, published for this tag */
template <bool scaled>
__device__ __forceinline__ void PublishOperand(const Problem &P, const Share &own, int stage, uint64_t tag)
{
  PetscTCTagged *const published = Published(P, tag);
  const double *const  of        = stage == OF_X ? own.x : stage == OF_P ? own.p : stage == OF_S ? own.s : own.r;

  own.forRows([&](int k) {
    own.m[k] = stage < OF_S ? of[k] : TCCGPipelinedApply<scaled>(own.d + k, of[k]);
    PetscTCPublish(published + own.first + k, own.m[k], tag);
  });
}

/* The product of a stage, of m. gap[]: as TCCGPipelinedResidual() */
template <bool in_part>
__device__ __forceinline__ void MultiplyStage(const Problem &P, const Share &own, int stage, double gap[2])
{
  double *const to = stage == OF_P ? own.s : stage == OF_R ? own.w : own.z;

  KSPTCMult<in_part>(P.A, own, own.m, [&](int k, double product) { to[k] = product; });
  if (stage != OF_X) return;
  KSPTCMult<in_part, true>(P.A, own, own.m, [&](int k, double magnitude) { to[k] = TCCGPipelinedResidual(P.v.b[KSPTCMatrixRow(P.A.order, own.first + k)], to[k], magnitude, own.r[k], gap); }); /* by the thread that has just left to[k] */
}

/* m, published, and the sums of vectors made anew */
template <bool scaled>
__device__ __forceinline__ void Start(const Problem &P, const Share &own, uint64_t tag, double sum[])
{
  PetscTCTagged *const published = Published(P, tag);

  own.forRows([&](int k) {
    const double in[] = {own.r[k], own.w[k], own.s[k], own.p[k], scaled ? own.d[k] : 0.0};

    TCCGPipelinedStart<scaled>{{}, P.chunk.test.norm}.element({}, in, own.m + k, sum);
    PetscTCPublish(published + own.first + k, own.m[k], tag);
  });
}

template <bool scaled>
__device__ __forceinline__ void Update(const Problem &P, const Share &own, double a, double b, uint64_t tag, double sum[])
{
  PetscTCTagged *const published = Published(P, tag);
  TCCGScalars          scalars   = {};

  scalars.a = a;
  scalars.b = b;
  own.forRows([&](int k) {
    const double in[] = {own.x[k], own.r[k], own.p[k], own.s[k], own.w[k], own.z[k], scaled ? own.d[k] : 0.0};
    double       out[6];

    TCCGPipelinedUpdate<scaled>{{}, P.chunk.test.norm}.element(scalars, in, out, sum);
    own.x[k] = out[0];
    own.r[k] = out[1];
    own.p[k] = out[2];
    own.s[k] = out[3];
    own.w[k] = out[4];
    own.m[k] = out[5];
    PetscTCPublish(published + own.first + k, out[5], tag);
  });
}

/* The barrier behind the update of iteration `it`. False: given up */
template <class Many, bool scaled, class Fetch>
__device__ __forceinline__ bool Meet(const Problem &P, Barrier &barrier, TCCGScalars &s, Common &common, PetscInt it, const double sum[], typename Many::Shared &shared, Fetch fetch)
{
  constexpr int SUMS = TCCG_PIPELINED_SUMS<scaled>;
  TCCGBefore    before; /* warp 0's */
  double        first   = 0.0;
  const auto    advance = [&](const double total[]) {
    first = TCCGPipelinedAdvance(s, before, it == P.chunk.last, total);
    common.told.tell(first, s.a, s.b);
    TCCGScalars ended = s;

    TCCGTakeBackBeginning(ended, before);
    common.record.leave(it, ended);
  };
  const auto judge = [&](const double total[]) {
    const TCCGJudged judged = TCCGJudgeAsked(P.chunk, common.asked, it, total[0]);

    if (threadIdx.x % KSPTC_LANES == 0) common.judged = judged;
  };
  bool alive;

  if constexpr (scaled) alive = barrier.template sumApart<Many, SUMS>(sum, shared, (int)it, fetch, advance, judge);
  else {
    alive = barrier.template sum<Many, SUMS>(sum, shared, (int)it, fetch, [&](const double total[]) {
      advance(total);
      judge(total);
    });
  }
  if (!alive) return false;
  const TCCGJudged judged = common.judged;

  if (common.first() != TCCG_PIPELINED_VERIFY) common.record.store(P, it, [&](TCCGScalars &record) { TCCGPipelinedSetSquare<scaled>(record, P.chunk.test.norm, judged.square); });
  if (threadIdx.x >= KSPTC_LANES) return true;
  TCCGScalars record; /* has been left */

  TCCGPipelinedTake<scaled>(s, record, P.chunk.test.norm, judged, before, first);
  return true;
}

/* in_part: for forms of which blocks have no room for all slices, or that have rows in parts */
template <bool tensor, bool scaled, bool in_part>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) PipelinedKernel(const __grid_constant__ Problem P)
{
  constexpr int SUMS = TCCG_PIPELINED_SUMS<scaled>, ANEW = TCCG_PIPELINED_ANEW<scaled>;

  using Gap  = GridReduce<2, tensor, KSPTC_THREADS>;
  using Anew = GridReduce<ANEW, tensor, KSPTC_THREADS>;
  using Many = GridReduce<SUMS, tensor, KSPTC_THREADS>;
  union Sums
  {
    typename Gap::Shared  gap;
    typename Anew::Shared anew;
    typename Many::Shared many;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ Common                      common;
  const Share                            own(P.A, scaled, memory);
  Barrier                                barrier(P.sums, P.tag, P.patience());
  TCCGScalars                            s     = *P.scalars; /* kept by warp 0 */
  PetscInt                               it    = P.chunk.first;
  double                                 again = TCCG_PIPELINED_REPLACE;
  bool                                   alive = true;
  const auto                             fetch = [&](uint64_t tag, int thread, int threads) { return KSPTCFetchGhosts(Published(P, tag), own, own.m + own.rows, tag, thread, threads, barrier.patience(), it); };

  if (P.isOut() || s.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (threadIdx.x == 0) common.asked.set(P.chunk.test, s);
  common.record.begin(s);
  Load<scaled>(P, own);
  while (alive && again < 0.0) {
    double gap[2] = {}, anew[ANEW] = {};

#pragma unroll 1
    for (int stage = it ? OF_X : OF_R; alive && stage < STAGES; stage++) {
      __syncthreads(); /* nobody reads m any more */
      PublishOperand<scaled>(P, own, stage, barrier.next());
      alive = barrier.template sum<Gap, 2>(gap, shared.gap, (int)it, fetch, [&](const double total[]) { common.told.tell(0.0, total[0] > total[1]); });
      if (!alive) break;
      if (stage == OF_P && common.told.one != 0.0) own.forRows([&](int k) { own.r[k] = own.z[k]; });
      MultiplyStage<in_part>(P, own, stage, gap);
    }
    if (!alive) break;
    __syncthreads();
    Start<scaled>(P, own, barrier.next(), anew);
    alive = barrier.template sum<Anew, ANEW>(anew, shared.anew, (int)it, fetch, [&](const double total[]) {
      TCCGScalars record;
      const bool  ended = again == TCCG_PIPELINED_VERIFY;

      TCCGPipelinedRefresh<scaled>(s, record, ended, P.chunk.test.norm, KSPTCTestAt(P.chunk, it, common.asked.test()), it == 0, it == P.chunk.last, total);
      if (ended) common.record.leave(it, record);
      common.told.tell(s.stop, s.a, s.b);
      if (threadIdx.x == 0) common.judged.stop = 0.0;
    });
    if (again == TCCG_PIPELINED_VERIFY) common.record.store(P, it);
    while (alive && common.first() == 0.0 && it < P.chunk.last) {
      const double a = common.told.one, b = common.told.other;
      double       sum[SUMS] = {};

      KSPTCMult<in_part>(P.A, own, own.m, [&](int k, double product) { own.z[k] = KSPTCCombine(product, own.z[k], b); });
      __syncthreads();
      Update<scaled>(P, own, a, b, barrier.next(), sum);
      ++it;
      alive = Meet<Many, scaled>(P, barrier, s, common, it, sum, shared.many, fetch);
    }
    again = common.first();
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store<scaled>(P, own);
  KSPTCLeave(P, it, s);
}

const void *const kernels[] = {(const void *)PipelinedKernel<false, false, false>, (const void *)PipelinedKernel<true, false, false>, (const void *)PipelinedKernel<false, false, true>, (const void *)PipelinedKernel<true, false, true>,
                               (const void *)PipelinedKernel<false, true, false>,  (const void *)PipelinedKernel<true, true, false>,  (const void *)PipelinedKernel<false, true, true>,  (const void *)PipelinedKernel<true, true, true>};

/* Of a preconditioner: those that fold with shuffles and with the Tensor Core, and then those for forms in part */
const void *const *KernelsOf(bool scaled)
{
  return kernels + (scaled ? 4 : 0);
}
} // namespace

PetscErrorCode TCCGPipelinedChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, PETSC_STATIC_ARRAY_LENGTH(kernels), chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGPipelinedCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCheck(!KSPTCFormIsThin(form), PETSC_COMM_SELF, PETSC_ERR_SUP, "Thin blocks have classic recurrences");
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled), 4, form, TCCGPipelinedVectorsOfBlock(scaled), 2 * (PetscCount)form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGPipelined_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentRun(KernelsOf(scaled)[KSPTCKernelAt(form, TCCGPipelinedVectorsOfBlock(scaled), steps->tensor)], form, TCCGPipelinedVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
