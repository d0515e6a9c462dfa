/*
   Method
     Iterations of BiCGSTAB in one cooperative kernel (ksptcresident.cuh). Others gather of every row the pairs (r, q), q = p - omega v, and (r, v). An iteration has three barriers:

       first    v <- A p, with p = r + beta q formed anew of every gathered pair; p of the block's own rows, and the pairs (r, v); v.rp             barrier with a sum: alpha
       second   t <- A s, with s = r - alpha v formed anew of every gathered pair; t.s, t.t                                                       barrier with two sums: omega
       update   x, r, and the pairs (r, q); r.r, r.rp; test of the norm, record                                                                   barrier with two sums: beta

     s of the block's own rows is r - alpha v whenever it is needed, always with the same bits. The barrier between the second product and the update publishes nothing: nobody gathers what was written
     before it.
     Pairs (r, q) are read between the third barrier and the first, and written between the second and the third; (r, v) read between the first and the second, written between the third and the first.
     A diagonal preconditioner from the left scales the sums of the rows. From the right it scales both halves of a pair, so that products find d p and d s.

   Layout
     Vectors of a block: x, r, rp, p, v, t (and the diagonal). pairs: double2 [2 m], (r, q) of all rows and then (r, v).

   Memory traffic
     A call: the form once, the vectors twice. An iteration: 32 bytes gathered for every nonzero and 32 a row stored, all in L2. 7-point 43^3: 17.8 MB and 2.5 MB, and 0.3 to 0.6 MB a look at a barrier's
     records; as with conjugate gradients latencies decide.

   References
     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <petsctc/private/ksptcresident.cuh>
#include <petsctc/private/tcbcgsresident.h>
#include <petsctc/private/tcbcgssteps.h>

namespace tcbcgsresident
{
constexpr int SUMS = 2; /* at most, of a reduction */

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS>;
using Problem = KSPTCProblem<TCBCGSScalars, TCBCGSVectors>;

/* Where the diagonal preconditioner stands */
enum Side {
  NOWHERE,
  LEFT,
  RIGHT
};

struct Share : KSPTCShare {
  double *x, *r, *rp, *p, *v, *t, *d; /* d is nothing without a preconditioner */

  __device__ __forceinline__ Share(const KSPTCForm &A, bool scaled, double *memory) : KSPTCShare(A, TCBCGSVectorsOfBlock(scaled), memory)
  {
    x  = vector;
    r  = x + rows;
    rp = r + rows;
    p  = rp + rows;
    v  = p + rows;
    t  = v + rows;
    d  = t + rows;
  }
  /* q, of which the next direction is made */
  __device__ __forceinline__ double q(int k, double omega) const { return fma(-omega, v[k], p[k]); }
  __device__ __forceinline__ double s(int k, double alpha) const { return fma(-alpha, v[k], r[k]); }
  /* A pair as others gather it */
  template <Side side>
  __device__ __forceinline__ double2 pair(int k, double y, double z) const
  {
    if constexpr (side == RIGHT) return make_double2(y * d[k], z * d[k]);
    else return make_double2(y, z);
  }
  /* A row of the preconditioned product */
  template <Side side>
  __device__ __forceinline__ double product(int k, double sum) const
  {
    if constexpr (side == LEFT) return sum * d[k];
    else return sum;
  }
};

/* Shared memory and this block's pairs for the first product. omega: of the iteration before */
template <Side side>
__device__ __forceinline__ void Load(const Problem &P, const Share &own, double omega)
{
  KSPTCLoadMatrix(P.A, own);
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    const int row = own.first + k;

    own.x[k]  = P.v.x[row];
    own.r[k]  = P.v.r[row];
    own.rp[k] = P.v.rp[row];
    own.p[k]  = P.v.p[row];
    own.v[k]  = P.v.v[row];
    if constexpr (side != NOWHERE) own.d[k] = P.v.diagonal[row];
    P.pairs[row] = own.pair<side>(k, own.r[k], own.q(k, omega));
  }
}

__device__ __forceinline__ void Store(const Problem &P, const Share &own, const TCBCGSScalars &s)
{
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    const int row = own.first + k;

    P.v.x[row] = own.x[k];
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    P.v.v[row] = own.v[k];
    if (s.stop == PETSCTC_STOP_D2_ZERO) P.v.s[row] = own.s(k, s.alpha);
  }
}

/* p, v, and the pairs for the second product: returns this thread's share of v.rp */
template <Side side>
__device__ __forceinline__ double First(const Problem &P, const Share &own, double omegaold, double beta)
{
  double2 *pairs = P.pairs + P.A.m;
  double   d1    = 0.0;

  KSPTCGather(P.A, own, P.pairs, beta, [&](int k, double sum) {
    const double v = own.product<side>(k, sum), r = own.r[k];

    own.p[k]             = KSPTCCombine(make_double2(r, own.q(k, omegaold)), beta);
    own.v[k]             = v;
    pairs[own.first + k] = own.pair<side>(k, r, v);
    d1                   = fma(v, own.rp[k], d1);
  });
  return d1;
}

/* t: adds t.s, t.t to sum[] */
template <Side side>
__device__ __forceinline__ void Second(const Problem &P, const Share &own, double alpha, double sum[])
{
  KSPTCGather(P.A, own, P.pairs + P.A.m, -alpha, [&](int k, double row) {
    const double t = own.product<side>(k, row);

    own.t[k] = t;
    sum[0]   = fma(t, own.s(k, alpha), sum[0]);
    sum[1]   = fma(t, t, sum[1]);
  });
}

/* x, r, and the pairs for the first product: adds r.r, r.rp to sum[] */
template <Side side>
__device__ __forceinline__ void Update(const Problem &P, const Share &own, double alpha, double omega, double sum[])
{
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    const double s = own.s(k, alpha), r = fma(-omega, own.t[k], s);

    own.x[k]               = fma(alpha, own.p[k], fma(omega, s, own.x[k]));
    own.r[k]               = r;
    sum[0]                 = fma(r, r, sum[0]);
    sum[1]                 = fma(r, own.rp[k], sum[1]);
    P.pairs[own.first + k] = own.pair<side>(k, r, own.q(k, omega));
  }
}

/* Sums, test and record of iteration `it` */
__device__ __forceinline__ void End(const Problem &P, TCBCGSScalars &s, PetscInt it, const double sum[])
{
  __shared__ TCBCGSScalars unread;
  TCBCGSUpdate             step = {};

  step.test   = KSPTCTestAt(P.chunk, it);
  step.record = blockIdx.x == 0 ? &P.records[it % PETSCTC_RECORDS] : &unread;
  step.end(s, sum);
}

template <bool tensor, Side side>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) ResidentKernel(const __grid_constant__ Problem P)
{
  using One = GridReduce<1, tensor, KSPTC_THREADS>;
  using Two = GridReduce<2, tensor, KSPTC_THREADS>;
  union Sums
  {
    typename One::Shared one;
    typename Two::Shared two;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ TCBCGSScalars               s;
  const Share                            own(P.A, side != NOWHERE, memory);
  const uint64_t                         tag = *P.tag;
  Barrier                                barrier(P.sums, P.tag, P.late, P.bound);
  PetscInt                               it = P.chunk.first;
  bool                                   alive;

  if (P.scalars->stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (threadIdx.x == 0) s = *P.scalars;
  Load<side>(P, own, P.scalars->omega);
  const double none = 0.0;
  alive             = barrier.template sum<One, 1, true>(&none, shared.one, (int)it, [&](const double[]) { TCBCGSDirection{}.begin(s); });

  while (alive && it < P.chunk.last) {
    double       t[SUMS] = {}, r[SUMS] = {};
    const double d1 = First<side>(P, own, s.omegaold, s.beta);

    alive = barrier.template sum<One, 1, true>(&d1, shared.one, (int)it + 1, [&](const double total[]) { TCBCGSEndBreakdown(s, total[0]); });
    if (!alive || s.stop != 0.0) break;
    Second<side>(P, own, s.alpha, t);
    alive = barrier.template sum<Two, 2, false>(t, shared.two, (int)it + 1, [&](const double total[]) { TCBCGSEndStabilize(s, total); });
    if (!alive || s.stop != 0.0) break;
    Update<side>(P, own, s.alpha, s.omega, r);
    ++it;
    alive = barrier.template sum<Two, 2, true>(r, shared.two, (int)it, [&](const double total[]) {
      End(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) TCBCGSDirection{}.begin(s);
    });
    if (s.stop != 0.0) break;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *P.tag = tag + 3 * (uint64_t)(P.chunk.last - P.chunk.first) + 1;
  if (!alive) return;
  Store(P, own, s);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace tcbcgsresident
