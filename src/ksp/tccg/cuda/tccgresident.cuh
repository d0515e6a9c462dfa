/*
   Method
     Iterations of conjugate gradients in one cooperative kernel (ksptcresident.cuh). Others gather the pair (z, p) of every row. An iteration has two barriers:

       gather   w <- A p, with p = z + b p formed anew of every gathered pair, so that no barrier stands between the direction and its product; p of the block's own rows in shared memory alone.
                p.w                                                                                                                                             barrier with a sum
       update   x, r, z, and the pairs; r.r, z.r, z.z; test of the norm, record                                                                                barrier with three sums, one if z is r

     Pairs are read between the second barrier and the next first one, and written between the first and the second: one array does.

   Layout
     Vectors of a block: x, r, p, w (and the diagonal and z). pairs: double2 [m].

   Memory traffic
     A call: the form once, the vectors twice. An iteration: 16 bytes gathered for every nonzero and 16 bytes a row stored, all in L2. 7-point 43^3: 8.9 MB and 1.3 MB, and 0.8 MB a look at the barrier's
     records; latencies decide: gather and each barrier are 0.7 us or so where nothing is to be waited for.

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <petsctc/private/ksptcresident.cuh>
#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

namespace tccgresident
{
constexpr int SUMS = 3; /* of an iteration's second reduction, with a preconditioner */

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS>;
using Problem = KSPTCProblem<TCCGScalars, TCCGVectors>;

struct Share : KSPTCShare {
  double *x, *r, *p, *w, *d, *z; /* z is r, and d nothing, without a preconditioner */

  __device__ __forceinline__ Share(const KSPTCForm &A, bool scaled, double *memory) : KSPTCShare(A, TCCGVectorsOfBlock(scaled), memory)
  {
    x = vector;
    r = x + rows;
    p = r + rows;
    w = p + rows;
    d = w + rows;
    z = scaled ? d + rows : r;
  }
};

/* Shared memory and this block's pairs, for the first iteration to form z + 0 p, whatever p holds */
template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, const Share &own)
{
  KSPTCLoadMatrix(P.A, own);
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    const int    row = own.first + k;
    const double z = P.v.z[row], p = P.chunk.first == 0 ? 0.0 : P.v.p[row];

    own.x[k] = P.v.x[row];
    own.r[k] = P.v.r[row];
    own.p[k] = p;
    if constexpr (scaled) {
      own.d[k] = P.v.diagonal[row];
      own.z[k] = z;
    }
    P.pairs[row] = make_double2(z, p);
  }
}

template <bool scaled>
__device__ __forceinline__ void Store(const Problem &P, const Share &own)
{
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    P.v.x[own.first + k] = own.x[k];
    P.v.r[own.first + k] = own.r[k];
    P.v.p[own.first + k] = own.p[k];
    if constexpr (scaled) P.v.z[own.first + k] = own.z[k];
  }
}

/* w and the new p of the block's rows: returns this thread's share of p.w */
__device__ __forceinline__ double Gather(const Problem &P, const Share &own, double b)
{
  double pw = 0.0;

  KSPTCGather(P.A, own, P.pairs, b, [&](int row, double w) {
    const double p = KSPTCCombine(make_double2(own.z[row], own.p[row]), b);

    own.p[row] = p;
    own.w[row] = w;
    pw         = fma(p, w, pw);
  });
  return pw;
}

/* x, r, z of the block's rows, and the pairs: adds r.r, z.r, z.z to sum[], the first alone if z is r */
template <bool scaled>
__device__ __forceinline__ void Update(const Problem &P, const Share &own, double a, double sum[])
{
  for (int k = threadIdx.x; k < own.rows; k += KSPTC_THREADS) {
    const double p = own.p[k], r = fma(-a, own.w[k], own.r[k]);
    double       z = r;

    own.x[k] = fma(a, p, own.x[k]);
    own.r[k] = r;
    sum[0]   = fma(r, r, sum[0]);
    if constexpr (scaled) {
      z        = r * own.d[k];
      own.z[k] = z;
      sum[1]   = fma(z, r, sum[1]);
      sum[2]   = fma(z, z, sum[2]);
    }
    P.pairs[own.first + k] = make_double2(z, p);
  }
}

__device__ __forceinline__ void Begin(TCCGScalars &s, bool first)
{
  if (first) TCCGDirection<true>{}.begin(s);
  else TCCGDirection<false>{}.begin(s);
}

__device__ __forceinline__ void Curve(TCCGScalars &s, bool first, const double pw[])
{
  TCCGCurvature step = {};

  step.first = first;
  step.end(s, pw);
}

/* Sums, test and record of iteration `it` */
template <bool scaled>
__device__ __forceinline__ void End(const Problem &P, TCCGScalars &s, PetscInt it, const double sum[])
{
  __shared__ TCCGScalars unread;
  const PetscTCTest      test   = KSPTCTestAt(P.chunk, it);
  TCCGScalars           *record = blockIdx.x == 0 ? &P.records[it % PETSCTC_RECORDS] : &unread;

  if constexpr (scaled) {
    TCCGUpdateScaled step = {};

    step.test   = test;
    step.record = record;
    step.end(s, sum);
  } else {
    TCCGUpdate step = {};

    step.identity = true;
    step.test     = test;
    step.record   = record;
    step.end(s, sum);
  }
}

template <bool tensor, bool scaled>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) ResidentKernel(const __grid_constant__ Problem P)
{
  using One  = GridReduce<1, tensor, KSPTC_THREADS>;
  using Many = GridReduce<scaled ? SUMS : 1, tensor, KSPTC_THREADS>;
  union Sums
  {
    typename One::Shared  one;
    typename Many::Shared many;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ TCCGScalars                 s;
  const Share                            own(P.A, scaled, memory);
  const uint64_t                         tag = *P.tag;
  Barrier                                barrier(P.sums, P.tag, P.late, P.bound);
  PetscInt                               it = P.chunk.first;
  bool                                   alive;

  if (P.scalars->stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (threadIdx.x == 0) s = *P.scalars;
  Load<scaled>(P, own);
  const double none = 0.0;
  alive             = barrier.template sum<One, 1, true>(&none, shared.one, (int)it, [&](const double[]) { Begin(s, it == 0); });
  const bool began  = s.stop == 0.0;

  while (alive && s.stop == 0.0 && it < P.chunk.last) {
    double       sum[SUMS] = {};
    const double pw        = Gather(P, own, s.b);

    alive = barrier.template sum<One, 1, false>(&pw, shared.one, (int)it + 1, [&](const double total[]) { Curve(s, it == 0, total); });
    if (!alive || s.stop != 0.0) break;
    Update<scaled>(P, own, s.a, sum);
    ++it;
    alive = barrier.template sum<Many, (scaled ? SUMS : 1), true>(sum, shared.many, (int)it, [&](const double total[]) {
      End<scaled>(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) Begin(s, false);
    });
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *P.tag = tag + 2 * (uint64_t)(P.chunk.last - P.chunk.first) + 1;
  if (!alive) return;
  if (began) Store<scaled>(P, own);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace tccgresident
