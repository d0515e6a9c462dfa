/*
   Method
     Iterations of BiCGSTAB in one cooperative kernel (ksptcresident.cuh). An iteration has three barriers:

       direct   p <- r + beta (p - omega v), of the block's rows and of its ghosts
       first    v <- A p, published; v.rp                                                                   barrier with a sum: alpha; meanwhile v of the ghosts
       half     s <- r - alpha v, of the block's rows and of its ghosts
       second   t <- A s; t.s, t.t                                                                          barrier with two sums: omega
       update   x, r, published; r.r, r.rp; test of the norm, record                                        barrier with two sums: beta; meanwhile r of the ghosts

     With one reduction less (single), two:

       direct   p, as above
       first    v <- A p, published; v.rp                                      barrier with two sums, the other one r.r of the iteration before: its test and record; alpha; meanwhile v of the ghosts
       half     s, as above
       second   t <- A s, published; t.s, t.t, t.rp, s.rp                      barrier with four sums: omega, beta; meanwhile t of the ghosts
       update   x, r <- s - omega t, this of the block's rows and of its ghosts; r.r

     and a third one behind the last iteration of a call, for its test.
     s takes the place of r. v is published before the first barrier and fetched before the second, r published before the third and fetched before the first: an array of each does. So do v and t.
     A diagonal preconditioner from the left scales the sums of the rows; from the right what products multiply by, which is a vector of its own then.

   Layout
     Vectors of a block: of its rows x, rp, v, t, (the diagonal,) p, r, and behind p and r those of the ghosts; (from the right u, the diagonal times p or s, likewise;) v of the ghosts, and where t of the ghosts waits for the
     update (single: from the right behind u). published: v of all rows, then r, or t.

   Memory traffic
     A call: the form once, the vectors twice. An iteration: 32 bytes a row stored and 32 a ghost fetched, 7-point 43^3 2.5 MB and 5.4 MB, and 0.3 to 0.6 MB a look at a barrier's records, in L2; as with
     conjugate gradients latencies decide.

   References
     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/ksp/resident/ksptcresident.cuh>
#include <../src/ksp/tcbcgs/tcbcgsresident.h>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

namespace tcbcgsresident
{
constexpr int SUMS = 4; /* at most, of a reduction */

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS, 2>;
using Problem = KSPTCProblem<TCBCGSScalars, TCBCGSVectors>;

/* Where the diagonal preconditioner stands */
enum Side {
  NOWHERE,
  LEFT,
  RIGHT
};

/* part: for forms of which blocks have no room for all slices, or that have rows in parts */
template <Side side, bool part>
struct Share : KSPTCShare {
  static constexpr bool in_part = part; /* then there are few registers for the scalars */

  double *x, *rp, *v, *t, *d, *p, *r, *u; /* d is nothing without a preconditioner, u what is multiplied by if that is neither p nor r */
  double *gp, *gr, *gu, *gv, *gt;         /* of the ghosts */

  __device__ __forceinline__ Share(const Problem &P, bool single, double *memory) : KSPTCShare(P.A, TCBCGSVectorsOfBlock(side != NOWHERE, side == RIGHT, single), memory)
  {
    const int all = rows + ghosts;

    x  = vector;
    rp = x + rows;
    v  = rp + rows;
    t  = v + rows;
    d  = t + rows;
    p  = side == NOWHERE ? d : d + rows;
    r  = p + all + 1;
    u  = side == RIGHT ? r + all : r;
    gv = u + all + 1;
    gp = p + rows;
    gr = r + rows;
    gu = u + rows;
    gt = side == RIGHT ? gu : gv + ghosts;
  }
};

/* What a product of p or r multiplies by */
template <Side side, bool part>
__device__ __forceinline__ const double *Factor(const Share<side, part> &own, const double *of)
{
  return side == RIGHT ? own.u : of;
}

__device__ __forceinline__ double Direction(double r, double p, double v, double omega, double beta)
{
  return KSPTCCombine(r, KSPTCCombine(p, v, -omega), beta);
}

template <bool scaled>
__device__ __forceinline__ double Scaled(double y, const double *d, int k)
{
  if constexpr (scaled) return y * d[k];
  else return y;
}

/* Shared memory */
template <Side side, bool part>
__device__ __forceinline__ void Load(const Problem &P, const Share<side, part> &own)
{
  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.x[k]  = P.v.x[row];
    own.r[k]  = P.v.r[row];
    own.rp[k] = P.v.rp[row];
    own.p[k]  = P.v.p[row];
    own.v[k]  = P.v.v[row];
    if constexpr (side != NOWHERE) own.d[k] = P.v.diagonal[row];
  });
  if (threadIdx.x == 0) {
    own.gu[own.ghosts] = 0.0;
    if constexpr (side != RIGHT) own.gp[own.ghosts] = 0.0;
  }
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    own.gr[g] = P.v.r[row];
    own.gp[g] = P.v.p[row];
    own.gv[g] = P.v.v[row];
  });
}

template <Side side, bool part>
__device__ __forceinline__ void Store(const Problem &P, const Share<side, part> &own, double stop)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    P.v.x[row] = own.x[k];
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    P.v.v[row] = own.v[k];
    if (stop == PETSCTC_STOP_D2_ZERO) P.v.s[row] = own.r[k];
  });
}

/* to[] of the rows, then of the ghosts <- what of() says of their numbers in p and r, and in v; and from the right what is multiplied by */
template <Side side, bool part, class Of>
__device__ __forceinline__ void Set(const Problem &P, const Share<side, part> &own, double *to, Of of)
{
  own.forRows([&](int k) {
    to[k] = of(k, own.v[k]);
    if constexpr (side == RIGHT) own.u[k] = to[k] * own.d[k];
  });
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    const int k = own.rows + g;

    to[k] = of(k, own.gv[g]);
    if constexpr (side == RIGHT) own.u[k] = to[k] * P.v.diagonal[row];
  });
}

/* p */
template <Side side, bool part>
__device__ __forceinline__ void Direct(const Problem &P, const Share<side, part> &own, double omega, double beta)
{
  Set(P, own, own.p, [&](int k, double v) { return Direction(own.r[k], own.p[k], v, omega, beta); });
}

/* s, where r was */
template <Side side, bool part>
__device__ __forceinline__ void Half(const Problem &P, const Share<side, part> &own, double alpha)
{
  Set(P, own, own.r, [&](int k, double v) { return KSPTCCombine(own.r[k], v, -alpha); });
}

/* v, published for this tag: returns this thread's share of v.rp */
template <Side side, bool part>
__device__ __forceinline__ double First(const Problem &P, const Share<side, part> &own, uint64_t tag)
{
  double d1 = 0.0;

  KSPTCMult<part>(P.A, own, Factor(own, own.p), [&](int k, double sum) {
    const double v = Scaled<side == LEFT>(sum, own.d, k);

    own.v[k] = v;
    d1       = fma(v, own.rp[k], d1);
    PetscTCPublish(P.published + own.first + k, v, tag);
  });
  return d1;
}

/* t: adds t.s, t.t to sum[]; single: t.rp, s.rp too, and t is published for this tag */
template <bool single, Side side, bool part>
__device__ __forceinline__ void Second(const Problem &P, const Share<side, part> &own, uint64_t tag, double sum[])
{
  KSPTCMult<part>(P.A, own, Factor(own, own.r), [&](int k, double row) {
    const double t = Scaled<side == LEFT>(row, own.d, k), s = own.r[k];

    own.t[k] = t;
    TCBCGSAddStabilize<single, false>(0.0, t, s, own.rp[k], sum);
    if constexpr (single) PetscTCPublish(P.published + P.A.m + own.first + k, t, tag);
  });
}

/* x, r, published for this tag: adds r.r, r.rp to sum[] */
template <Side side, bool part>
__device__ __forceinline__ void Update(const Problem &P, const Share<side, part> &own, double alpha, double omega, uint64_t tag, double sum[])
{
  own.forRows([&](int k) {
    const double s = own.r[k], r = fma(-omega, own.t[k], s), x = fma(alpha, own.p[k], fma(omega, s, own.x[k]));

    sum[0]   = fma(r, r, sum[0]);
    sum[1]   = fma(r, own.rp[k], sum[1]);
    own.x[k] = x;
    own.r[k] = r;
    PetscTCPublish(P.published + P.A.m + own.first + k, r, tag);
  });
}

/* single: x, and r of rows and ghosts; adds r.r to sum[] */
template <Side side, bool part>
__device__ __forceinline__ void UpdateAll(const Share<side, part> &own, double alpha, double omega, double sum[])
{
  own.forRows([&](int k) {
    const double s = own.r[k], r = fma(-omega, own.t[k], s);

    sum[0]   = fma(r, r, sum[0]);
    own.x[k] = fma(alpha, own.p[k], fma(omega, s, own.x[k]));
    own.r[k] = r;
  });
  own.forGhosts([&](int g) { own.gr[g] = fma(-omega, own.gt[g], own.gr[g]); });
}

/* Sums, test and record of iteration `it`, by who keeps the scalars. Step: what ends it */
template <class Step>
__device__ __forceinline__ void End(const Problem &P, TCBCGSScalars &s, PetscInt it, const double sum[], const KSPTCAsked &asked, KSPTCRecordLeft<TCBCGSScalars> &record)
{
  TCBCGSScalars left; /* nobody's: the record is the scalars as they are then */
  Step          step = {};

  step.test = KSPTCTestAt(P.chunk, it, asked.test());
  if (KSPTCPasses(asked.passing, sum[0])) step.test.norm = PETSCTC_NORM_NONE;
  step.record = &left;
  step.end(s, sum);
  record.leave(it, s);
}

/* Tells what the next iteration begins with and, for what comes before it, alpha */
__device__ __forceinline__ void TellNext(const TCBCGSScalars &s, KSPTCTold &told)
{
  TCBCGSScalars next = s;

  TCBCGSBeginIteration(next);
  told.tell(s.stop, s.alpha, next.omegaold, next.beta);
}

/* Share: how a block has the vectors of its rows */
template <class Share>
__device__ __forceinline__ void Solve(const Problem &P, bool tensor)
{
  union Sums
  {
    GridReduceShared<1, KSPTC_THREADS> one;
    GridReduceShared<2, KSPTC_THREADS> two;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told;     /* omega of the iteration before and beta, or alpha, or alpha and omega */
  __shared__ TCBCGSScalars               of_first; /* the first thread's, where warp 0 has no registers for them */
  __shared__ KSPTCRecordLeft<TCBCGSScalars> record;
  __shared__ KSPTCAsked                     asked;
  const Share                               own(P, false, memory);
  Barrier                                   barrier(P.sums, P.tag, tensor, P.patience());
  TCBCGSScalars                             mine    = *P.scalars; /* kept by warp 0, else */
  TCBCGSScalars                            &s       = Share::in_part ? of_first : mine;
  PetscInt                                  it      = P.chunk.first;
  const auto                                fetch_v = [&](uint64_t t, int thread, int threads) { return KSPTCFetchGhosts(P.published, own, own.gv, t, thread, threads, barrier.patience(), it + 1); };
  const auto                                fetch_r = [&](uint64_t t, int thread, int threads) { return KSPTCFetchGhosts(P.published + P.A.m, own, own.gr, t, thread, threads, barrier.patience(), it); };
  const double                              none    = 0.0;
  bool                                      alive;

  if (P.isOut() || mine.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (Share::in_part && threadIdx.x == 0) s = mine;
  if (threadIdx.x == 0) asked.set(P.chunk.test, mine);
  record.begin(mine);
  Load(P, own);
  __threadfence(); /* others' vectors have been read before their blocks leave the first barrier, and may write them */
  alive = barrier.sum(&none, shared.one, (int)it, [&](const double[]) {
    if (Share::in_part && threadIdx.x) return;
    TCBCGSBeginIteration(s);
    told.tell(s.stop, s.omegaold, s.beta);
  });

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double t[SUMS] = {}, r[SUMS] = {};

    Direct(P, own, told.one, told.other);
    __syncthreads();
    const double d1 = First(P, own, barrier.next());

    alive = barrier.sum(&d1, shared.one, (int)it + 1, fetch_v, [&](const double total[]) {
      if (Share::in_part && threadIdx.x) return;
      TCBCGSEndBreakdown(s, total[0]);
      told.tell(s.stop, s.alpha);
    });
    if (!alive || told.stop != 0.0) break;
    Half(P, own, told.one);
    __syncthreads();
    Second<false>(P, own, 0, t);
    alive = barrier.sum(t, shared.two, (int)it + 1, [&](const double total[]) {
      if (Share::in_part && threadIdx.x) return;
      TCBCGSEndStabilize<false>(s, total);
      told.tell(s.stop, s.alpha, s.omega);
    });
    if (!alive || told.stop != 0.0) break;
    Update(P, own, told.one, told.other, barrier.next(), r);
    ++it;
    alive = barrier.sum(r, shared.two, (int)it, fetch_r, [&](const double total[]) {
      if (Share::in_part && threadIdx.x) return;
      End<TCBCGSUpdate>(P, s, it, total, asked, record);
      if (s.stop == 0.0 && it < P.chunk.last) TCBCGSBeginIteration(s);
      told.tell(s.stop, s.omegaold, s.beta);
    });
    record.store(P, it);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store(P, own, told.stop);
  KSPTCLeave(P, it, s);
}

template <class Share>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) ResidentKernel(const __grid_constant__ Problem P)
{
  if (!Share::in_part && P.tensor) Solve<Share>(P, true);
  else Solve<Share>(P, Share::in_part && P.tensor);
}

template <Side side, bool part>
__device__ __forceinline__ void SolveSingle(const Problem &P, bool tensor)
{
  union Sums
  {
    GridReduceShared<2, KSPTC_THREADS> two;
    GridReduceShared<4, KSPTC_THREADS> four;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told;     /* alpha, omega, beta of the next direction */
  __shared__ TCBCGSScalars               of_first; /* as above */
  __shared__ KSPTCRecordLeft<TCBCGSScalars> record;
  __shared__ KSPTCAsked                     asked;
  const Share<side, part>                   own(P, true, memory);
  Barrier                                   barrier(P.sums, P.tag, tensor, P.patience());
  TCBCGSScalars                             mine     = *P.scalars; /* kept by warp 0, else */
  TCBCGSScalars                            &s        = part ? of_first : mine;
  PetscInt                                  it       = P.chunk.first;
  const auto                                fetch_v  = [&](uint64_t t, int thread, int threads) { return KSPTCFetchGhosts(P.published, own, own.gv, t, thread, threads, barrier.patience(), it + 1); };
  const auto                                fetch_t  = [&](uint64_t t, int thread, int threads) { return KSPTCFetchGhosts(P.published + P.A.m, own, own.gt, t, thread, threads, barrier.patience(), it + 1); };
  double                                    first[2] = {}; /* v.rp, and r.r of the iteration before */
  bool                                      alive;

  if (P.isOut() || mine.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (part && threadIdx.x == 0) s = mine;
  if (threadIdx.x == 0) asked.set(P.chunk.test, mine);
  record.begin(mine);
  Load(P, own);
  __threadfence(); /* others' vectors have been read before their blocks leave the first barrier, and may write them */
  alive = barrier.sum(first, shared.two, (int)it, [&](const double[]) {
    if (part && threadIdx.x) return;
    s.advanced = 1.0; /* Direct() is about to */
    TellNext(s, told);
  });

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double second[SUMS] = {};

    Direct(P, own, told.other, told.third);
    __syncthreads();
    first[0] = First(P, own, barrier.next());
    alive    = barrier.sum(first, shared.two, (int)it + 1, fetch_v, [&](const double total[]) {
      if (part && threadIdx.x) return;
      if (it > P.chunk.first) End<TCBCGSAdvance>(P, s, it, total + 1, asked, record);
      if (s.stop == 0.0) TCBCGSEndBreakdown(s, total[0]);
      told.tell(s.stop, s.alpha);
    });
    record.store(P, it);
    if (!alive || told.stop != 0.0) break;
    const double alpha = told.one;

    Half(P, own, alpha);
    __syncthreads();
    Second<true>(P, own, barrier.next(), second);
    alive = barrier.sum(second, shared.four, (int)it + 1, fetch_t, [&](const double total[]) {
      if (part && threadIdx.x) return;
      TCBCGSEndStabilize<true>(s, total);
      TellNext(s, told);
    });
    if (!alive || told.stop != 0.0) break;
    first[0] = first[1] = 0.0;
    UpdateAll(own, alpha, told.other, first + 1);
    if (++it < P.chunk.last) continue;
    alive = barrier.sum(first, shared.two, (int)it, [&](const double total[]) {
      if (part && threadIdx.x) return;
      End<TCBCGSAdvance>(P, s, it, total + 1, asked, record);
      told.tell(s.stop, s.alpha);
    });
    record.store(P, it);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store(P, own, told.stop);
  if (threadIdx.x == 0) s.advanced = 0.0; /* p is the last iteration's */
  KSPTCLeave(P, it, s);
}

template <Side side, bool part>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) SingleKernel(const __grid_constant__ Problem P)
{
  if (!part && P.tensor) SolveSingle<side, part>(P, true);
  else SolveSingle<side, part>(P, part && P.tensor);
}
} // namespace tcbcgsresident
