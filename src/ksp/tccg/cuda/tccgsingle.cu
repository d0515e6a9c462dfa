/*
   Method
     Conjugate gradients that carry A p (kspsteps.h: advance) in one cooperative kernel (ksptcresident.cuh), with one barrier an iteration:

       multiply s <- A z, published; z.s, and the sums of the update before                barrier with two sums; test of the norm and record of the iteration before, b, a;
                                                                                           meanwhile s of the ghosts
       update   p <- z + b p; w <- s + b w; x <- x + a p; r <- r - a w; z; of the ghosts w, r, z

     A block makes r of its ghosts itself, with the bits of their own block, so s is all that it needs of others. The last iteration of a call has a barrier of its own behind it, for its test and record.
     With a preconditioner the norm's square is a third sum, which another warp collects and tests while the first one makes b and a: those are not taken where the test ends the solve.
     A number published for a barrier may be fetched still when that of the next one is stored: two arrays, by turns.

   Layout
     Vectors of a block: of its rows x, p, w, s, (the diagonal, r,) z, and behind z that of the ghosts; of the ghosts w, s, (the diagonal, r). Without preconditioner z is r. published: two numbers a row

   Memory traffic
     A call: the form once, x, r, p, w twice. An iteration: 16 bytes a row stored and 16 a ghost fetched, in L2, as in classic ones (tccgresident.cuh); a barrier less, whose latency decides: 1.6 us of 4.7 for 7-point 43^3

   References
     A. T. Chronopoulos, C. W. Gear, s-step iterative methods for symmetric linear systems, J. Comput. Appl. Math. 25(2), 1989;
     E. F. D'Azevedo, V. L. Eijkhout, C. H. Romine, Conjugate gradient algorithms with reduced synchronization overhead on distributed memory multiprocessors, LAPACK Working Note 56, 1993
*/
#include <../src/ksp/resident/ksptcresident.cuh>
#include <../src/ksp/tccg/tccgresident.h>
#include "tccgtested.cuh"

namespace
{
/* z.s, and r.r if z is r, else those of TCCGAddJudged() */
template <bool scaled>
constexpr int SUMS_OF = scaled ? 3 : 2;

template <bool scaled>
using SharedSums = GridReduceShared<SUMS_OF<scaled>, KSPTC_THREADS>;

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS_OF<true>, 2>;
using Problem = KSPTCProblem<TCCGScalars, TCCGVectors>;

struct Share : KSPTCShare {
  double *x, *p, *w, *s, *d, *r, *z;
  double *gw, *gs, *gd, *gr; /* of the ghosts */

  __device__ __forceinline__ Share(const KSPTCForm &A, bool scaled, double *memory) : KSPTCShare(A, TCCGSingleVectorsOfBlock(scaled), memory)
  {
    x  = vector;
    p  = x + rows;
    w  = p + rows;
    s  = w + rows;
    d  = s + rows;
    z  = scaled ? d + 2 * rows : d;
    r  = scaled ? d + rows : z;
    gw = z + rows + ghosts + 1;
    gs = gw + ghosts;
    gd = gs + ghosts;
    gr = scaled ? gd + ghosts : z + rows;
  }
};

/* Shared memory, for the first iteration to form z + 0 p and s + 0 w, whatever p and w hold */
template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, const Share &own)
{
  const bool first = P.chunk.first == 0;

  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.x[k] = P.v.x[row];
    own.p[k] = first ? 0.0 : P.v.p[row];
    own.w[k] = first ? 0.0 : P.v.w[row];
    own.r[k] = P.v.r[row];
    if constexpr (scaled) {
      own.d[k] = P.v.diagonal[row];
      own.z[k] = P.v.z[row];
    }
  });
  if (threadIdx.x == 0) own.z[own.rows + own.ghosts] = 0.0;
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    own.gw[g] = first ? 0.0 : P.v.w[row];
    own.gr[g] = P.v.r[row];
    if constexpr (scaled) {
      own.gd[g]           = P.v.diagonal[row];
      own.z[own.rows + g] = P.v.z[row];
    }
  });
}

template <bool scaled>
__device__ __forceinline__ void Store(const Problem &P, const Share &own)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    P.v.x[row] = own.x[k];
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    P.v.w[row] = own.w[k];
    if constexpr (scaled) P.v.z[row] = own.z[k];
  });
}

__device__ __forceinline__ PetscTCTagged *Published(const Problem &P, uint64_t tag)
{
  return P.published + (tag % 2 ? P.A.m : 0);
}

/* s, published for this tag: returns this thread's share of z.s */
template <bool in_part>
__device__ __forceinline__ double Multiply(const Problem &P, const Share &own, uint64_t tag)
{
  PetscTCTagged *const published = Published(P, tag);
  double               zs        = 0.0;

  KSPTCMult<in_part>(P.A, own, own.z, [&](int k, double s) {
    own.s[k] = s;
    zs       = fma(own.z[k], s, zs);
    PetscTCPublish(published + own.first + k, s, tag);
  });
  return zs;
}

/* Adds r.r to sum[] if z is r, else what TCCGAddJudged() does. All that a row needs is loaded before any of it is stored: the compiler does not move a load past a store to shared memory */
template <bool scaled>
__device__ __forceinline__ void UpdateRows(const Problem &P, const Share &own, double a, double b, double sum[])
{
  own.forRows([&](int k) {
    const double z = own.z[k], p = own.p[k], s = own.s[k], w = own.w[k], r = scaled ? own.r[k] : z, x = own.x[k], d = scaled ? own.d[k] : 1.0;
    const double p_now = KSPTCCombine(z, p, b), w_now = KSPTCCombine(s, w, b), r_now = fma(-a, w_now, r);

    own.p[k] = p_now;
    own.w[k] = w_now;
    own.x[k] = fma(a, p_now, x);
    own.r[k] = r_now;
    if constexpr (scaled) {
      const double z_now = r_now * d;

      own.z[k] = z_now;
      TCCGAddJudged(P.chunk.test.norm, r_now, z_now, sum);
    } else sum[0] = fma(r_now, r_now, sum[0]);
  });
}

/* Of the ghosts w, r and z, as in their own block */
template <bool scaled>
__device__ __forceinline__ void UpdateGhosts(const Share &own, double a, double b)
{
  own.forGhosts([&](int g) {
    const double s = own.gs[g], w = own.gw[g], r = own.gr[g], d = scaled ? own.gd[g] : 1.0;
    const double w_now = KSPTCCombine(s, w, b), r_now = fma(-a, w_now, r);

    own.gw[g] = w_now;
    own.gr[g] = r_now;
    if constexpr (scaled) own.z[own.rows + g] = r_now * d;
  });
}

/* In shared memory, what all threads need of the scalars, and what they leave */
struct Common {
  KSPTCTold                    told;   /* stop, a, b */
  TCCGJudged                   judged; /* of the iteration before, by another warp; without preconditioner stop is 0 */
  KSPTCAsked                   asked;
  KSPTCRecordLeft<TCCGScalars> record;

  __device__ __forceinline__ bool stops() const { return judged.stop != 0.0 || told.stop != 0.0; }
};

/* Where iteration `it` begins: zs is z.s. Leaves a and b */
__device__ __forceinline__ void Begin(TCCGScalars &s, PetscInt it, double zs)
{
  s.zs = zs;
  TCCGBeginCarried(s, it == 0);
}

/* The barrier where iteration `it` begins, unless it is behind the last of the call; and where the one before ends, unless that is another call's. The sums: z.s, z.r and the norm's square.
   Warp 0 does not know what the test says when it makes b and a: they are taken back if that ends the solve. False: given up */
template <bool begins, class Fetch>
__device__ __forceinline__ bool MeetScaled(const Problem &P, Barrier &barrier, TCCGScalars &s, Common &common, PetscInt it, const double sum[], SharedSums<true> &shared, Fetch fetch)
{
  const bool ends   = it > P.chunk.first;
  TCCGBefore before = {}; /* warp 0's */

  if (!barrier.sumApart(
        sum, shared, (int)it + begins, fetch,
        [&](const double total[]) {
          if (ends) {
            before = TCCGEndUntested(s, total[1]);
            common.record.leave(it, s);
          }
          if (begins) Begin(s, it, total[0]);
          common.told.tell(s.stop, s.a, s.b);
        },
        [&](const double total[]) {
          const TCCGJudged judged = ends ? TCCGJudgeAsked(P.chunk, common.asked, it, total[0]) : TCCGJudged{0.0, 0.0};

          if (threadIdx.x % KSPTC_LANES == 0) common.judged = judged;
        }))
    return false;
  if (!ends) return true;
  const TCCGJudged judged = common.judged;

  common.record.store(P, it, [&](TCCGScalars &record) {
    TCCGSetJudged(record, P.chunk.test.norm, judged.square);
    record.stop = judged.stop;
  });
  if (threadIdx.x >= KSPTC_LANES) return true;
  TCCGSetJudged(s, P.chunk.test.norm, judged.square);
  if (judged.stop != 0.0) {
    if (begins) TCCGTakeBack(s, before);
    s.stop = judged.stop;
  }
  return true;
}

/* The same where z is r. The sums: z.s, r.r */
template <bool begins, class Fetch>
__device__ __forceinline__ bool MeetPlain(const Problem &P, Barrier &barrier, TCCGScalars &s, Common &common, PetscInt it, const double sum[], SharedSums<false> &shared, Fetch fetch)
{
  const bool alive = barrier.sum(sum, shared, (int)it + begins, fetch, [&](const double total[]) {
    if (it > P.chunk.first) {
      TCCGEndTested<false>(P.chunk, common.asked, it, s, total + 1);
      common.record.leave(it, s);
    }
    if (!begins) return;
    if (s.stop == 0.0) Begin(s, it, total[0]);
    common.told.tell(s.stop, s.a, s.b);
  });

  common.record.store(P, it);
  return alive;
}

template <bool scaled, bool begins, class Fetch>
__device__ __forceinline__ bool Meet(const Problem &P, Barrier &barrier, TCCGScalars &s, Common &common, PetscInt it, const double sum[], SharedSums<scaled> &shared, Fetch fetch)
{
  if constexpr (scaled) return MeetScaled<begins>(P, barrier, s, common, it, sum, shared, fetch);
  else return MeetPlain<begins>(P, barrier, s, common, it, sum, shared, fetch);
}

/* in_part: for forms of which blocks have no room for all slices, or that have rows in parts */
template <bool scaled, bool in_part>
__device__ __forceinline__ void Solve(const Problem &P, bool tensor)
{
  constexpr int SUMS = SUMS_OF<scaled>;

  extern __shared__ __align__(16) double memory[];
  __shared__ SharedSums<scaled> shared;
  __shared__ Common             common;
  const Share                   own(P.A, scaled, memory);
  Barrier                       barrier(P.sums, P.tag, tensor, P.patience());
  TCCGScalars                   s         = *P.scalars; /* kept by warp 0 */
  PetscInt                      it        = P.chunk.first;
  double                        sum[SUMS] = {};
  bool                          alive     = true;
  const auto                    idle      = [](uint64_t, int, int) { return true; };
  const auto                    fetch     = [&](uint64_t t, int thread, int threads) { return KSPTCFetchGhosts(Published(P, t), own, own.gs, t, thread, threads, barrier.patience(), it + 1); };

  if (P.isOut() || s.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (threadIdx.x == 0) {
    common.judged = {0.0, 0.0}; /* without a preconditioner nobody else does */
    common.asked.set(P.chunk.test, s);
  }
  common.record.begin(s);
  Load<scaled>(P, own);
  __threadfence(); /* others' vectors have been read before their blocks leave the first barrier, and may write them */
  __syncthreads();

  while (it < P.chunk.last) {
    sum[0] = Multiply<in_part>(P, own, barrier.next());
    alive  = Meet<scaled, true>(P, barrier, s, common, it, sum, shared, fetch);
    if (!alive || common.stops()) break;
#pragma unroll
    for (int k = 0; k < SUMS; k++) sum[k] = 0.0;
    UpdateRows<scaled>(P, own, common.told.one, common.told.other, sum + 1);
    UpdateGhosts<scaled>(own, common.told.one, common.told.other);
    __syncthreads(); /* z, and what is told has been read */
    if (++it < P.chunk.last) continue;
    alive = Meet<scaled, false>(P, barrier, s, common, it, sum, shared, idle);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store<scaled>(P, own);
  KSPTCLeave(P, it, s);
}

template <bool scaled, bool in_part>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) SingleKernel(const __grid_constant__ Problem P)
{
  if (!in_part && P.tensor) Solve<scaled, in_part>(P, true);
  else Solve<scaled, in_part>(P, in_part && P.tensor);
}

const void *const kernels[] = {(const void *)SingleKernel<false, false>, (const void *)SingleKernel<false, true>, (const void *)SingleKernel<true, false>, (const void *)SingleKernel<true, true>};

/* Of a preconditioner: for forms that blocks hold, and for those in part */
const void *const *KernelsOf(bool scaled)
{
  return kernels + (scaled ? 2 : 0);
}
} // namespace

PetscErrorCode TCCGSingleCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCheck(!KSPTCFormIsThin(form), PETSC_COMM_SELF, PETSC_ERR_SUP, "Thin blocks have classic recurrences");
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled), 2, form, TCCGSingleVectorsOfBlock(scaled), 2 * (PetscCount)form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGSingle_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  PetscCheck(!v->constant, PETSC_COMM_SELF, PETSC_ERR_SUP, "Iterations that carry A p have no projection");
  PetscCall(KSPTCResidentRun(KernelsOf(scaled)[KSPTCKernelAt(form, TCCGSingleVectorsOfBlock(scaled))], form, TCCGSingleVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
