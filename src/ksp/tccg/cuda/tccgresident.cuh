/*
   Method
     Iterations of conjugate gradients in one cooperative kernel (ksptcresident.cuh). An iteration has two barriers:

       direct   p <- z + b p, of the block's rows and of its ghosts
       multiply w <- A p; p.w                                                                                      barrier with a sum
       update   x, r, z, published; r.r and z.r, or z.z; test of the norm, record                                  barrier with two sums, one if z is r, five with a projection; meanwhile z of the ghosts

     z is published before the second barrier and fetched before the first one of the next iteration: one array does.

   Layout
     Vectors of a block: of its rows x, r, w, (the diagonal, z,) p, and behind p that of the ghosts; z of the ghosts.

   Memory traffic
     A call: the form once, the vectors twice. An iteration: 16 bytes a row stored and 16 a ghost fetched, 7-point 43^3 1.3 MB and 2.7 MB, and 0.3 to 0.8 MB a look at the barrier's records, in L2; latencies
     decide: a barrier is a fold of the block, a store and a load of L2, and a division, 0.94 us by itself and some 1.6 us here (docs/log/2026-11.md).

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/ksp/resident/ksptcresident.cuh>
#include <../src/ksp/tccg/tccgresident.h>
#include "tccgtested.cuh"

namespace tccgresident
{
constexpr int SUMS = TCCG_SCALED_SUMS<true>; /* of an iteration's second reduction, at most */

/* The preconditioner */
enum Kind {
  PLAIN, /* none */
  SCALED,
  PROJECTED /* and then against a constant null space */
};

template <Kind kind>
constexpr int SUMS_OF = kind == PLAIN    ? 1
                        : kind == SCALED ? TCCG_TESTED_SUMS
                                         : TCCG_SCALED_SUMS<true>;

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS, 1, 4>;
using Problem = KSPTCProblem<TCCGScalars, TCCGVectors>;

/* part: for forms of which blocks have no room for all slices, or that have rows in parts */
template <Kind preconditioner, bool part>
struct Share : KSPTCShare {
  static constexpr Kind kind    = preconditioner;
  static constexpr bool in_part = part, scaled = kind != PLAIN, thin = false;

  double *x, *r, *w, *d, *z, *p, *y; /* y: z of the ghosts. z is r, and d nothing, without a preconditioner */

  __device__ __forceinline__ Share(const Problem &P, double *memory) : KSPTCShare(P.A, TCCGVectorsOfBlock(scaled), memory)
  {
    x = vector;
    r = x + rows;
    w = r + rows;
    d = w + rows;
    z = scaled ? d + rows : r;
    p = scaled ? z + rows : d;
    y = p + rows + ghosts + 1;
  }
};

/* Shared memory, for the first iteration to form z + 0 p, whatever p holds */
template <Kind kind, bool part>
__device__ __forceinline__ void Load(const Problem &P, const Share<kind, part> &own)
{
  const bool first = P.chunk.first == 0;

  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.x[k] = P.v.x[row];
    own.r[k] = P.v.r[row];
    own.p[k] = first ? 0.0 : P.v.p[row];
    if constexpr (own.scaled) {
      own.d[k] = P.v.diagonal[row];
      own.z[k] = P.v.z[row];
    }
  });
  if (threadIdx.x == 0) own.p[own.rows + own.ghosts] = 0.0;
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    own.p[own.rows + g] = first ? 0.0 : P.v.p[row];
    own.y[g]            = P.v.z[row];
  });
}

template <Kind kind, bool part>
__device__ __forceinline__ void Store(const Problem &P, const Share<kind, part> &own)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    P.v.x[row] = own.x[k];
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    if constexpr (own.scaled) P.v.z[row] = own.z[k];
  });
}

/* p of the block's rows and of its ghosts, for all threads: false if others have been waited for too long, which is not here. shift: 0 but for a projection */
template <Kind kind, bool part>
__device__ __forceinline__ bool Direct(const Problem &, const Share<kind, part> &own, double b, double shift, const Barrier &, PetscInt)
{
  own.forRows([&](int k) { own.p[k] = KSPTCCombine(own.z[k] - shift, own.p[k], b); });
  own.forGhosts([&](int g) { own.p[own.rows + g] = KSPTCCombine(own.y[g] - shift, own.p[own.rows + g], b); });
  __syncthreads();
  return true;
}

/* w: returns this thread's share of p.w */
template <Kind kind, bool part>
__device__ __forceinline__ double Multiply(const Problem &P, const Share<kind, part> &own)
{
  double pw = 0.0;

  KSPTCMult<part>(P.A, own, own.p, [&](int k, double w) {
    own.w[k] = w;
    pw       = fma(own.p[k], w, pw);
  });
  return pw;
}

/* x, r, z, published for this tag: adds r.r to sum[] if z is r, else what TCCGAddTested() does or, with a projection, TCCGAddScaled() */
template <Kind kind, bool part>
__device__ __forceinline__ void Update(const Problem &P, const Share<kind, part> &own, double a, double mean, uint64_t tag, double sum[])
{
  own.forRows([&](int k) {
    const double x = fma(a, own.p[k], own.x[k]), r = fma(-a, own.w[k], own.r[k]), z = kind == PLAIN ? r : kind == SCALED ? r * own.d[k] : r * own.d[k] - mean;

    own.x[k] = x;
    own.r[k] = r;
    if constexpr (kind == PLAIN) sum[0] = fma(r, r, sum[0]);
    else {
      own.z[k] = z;
      if constexpr (kind == PROJECTED) TCCGAddScaled<true>(r, z, sum);
      else TCCGAddTested(P.chunk.test.norm, r, z, sum);
    }
    PetscTCPublish(P.published + own.first + k, z, tag);
  });
}

/* While the sums of an update come in: z of the ghosts. False: given up */
template <Kind kind, bool part>
__device__ __forceinline__ bool Fetch(const Problem &P, const Share<kind, part> &own, uint64_t tag, int thread, int threads, const PetscTCPatience &patience, PetscInt it)
{
  return KSPTCFetchGhosts(P.published, own, own.y, tag, thread, threads, patience, it);
}

__device__ __forceinline__ void Begin(TCCGScalars &s, bool first)
{
  if (first) TCCGDirection<true, 0>{}.begin(s);
  else TCCGDirection<false, 0>{}.begin(s);
}

/* Sums, test and record of iteration `it` */
template <Kind kind>
__device__ __forceinline__ void End(const Problem &P, TCCGScalars &s, PetscInt it, const double sum[], const KSPTCAsked &asked, KSPTCRecordLeft<TCCGScalars> &record)
{
  TCCGEndTested<kind != PLAIN, kind == PROJECTED>(P.chunk, asked, it, s, sum, P.A.m);
  record.leave(it, s);
}

/* Block: how a block has the vectors of its rows */
template <class Block>
__device__ __forceinline__ void Solve(const Problem &P, bool tensor)
{
  constexpr Kind kind = Block::kind;

  union Sums
  {
    GridReduceShared<1, KSPTC_THREADS>             one;
    GridReduceShared<SUMS_OF<kind>, KSPTC_THREADS> many;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told;     /* b and shift, or a and mean */
  __shared__ TCCGScalars                 of_first; /* the first thread's, where warp 0 has no registers for them */
  __shared__ KSPTCRecordLeft<TCCGScalars> record;
  __shared__ KSPTCAsked                   asked;
  const Block                             own(P, memory);
  Barrier                                 barrier(P.sums, P.tag, tensor, P.patience());
  TCCGScalars                             mine  = *P.scalars; /* kept by warp 0, else */
  TCCGScalars                            &s     = Block::thin ? of_first : mine;
  PetscInt                                it    = P.chunk.first;
  const auto                              fetch = [&](uint64_t t, int thread, int threads) { return Fetch(P, own, t, thread, threads, barrier.patience(), it); };
  const double                            none  = 0.0;
  bool                                    alive;

  if (P.isOut() || mine.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  if (Block::thin && threadIdx.x == 0) s = mine;
  if (threadIdx.x == 0) asked.set(P.chunk.test, mine);
  record.begin(mine);
  Load(P, own);
  __threadfence(); /* others' vectors have been read before their blocks leave the first barrier, and may write them */
  alive            = barrier.sum(&none, shared.one, (int)it, [&](const double[]) {
    if (Block::thin && threadIdx.x) return;
    Begin(s, it == 0);
    told.tell(s.stop, s.b, s.shift);
  });
  const bool began = told.stop == 0.0;

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[SUMS_OF<kind>] = {};

    alive = Direct(P, own, told.one, kind == PROJECTED ? told.other : 0.0, barrier, it);
    if (!alive) break;
    const double pw = Multiply(P, own);

    alive = barrier.sum(&pw, shared.one, (int)it + 1, [&](const double total[]) {
      if (Block::thin && threadIdx.x) return;
      TCCGEndCurvature(s, total[0], it == 0);
      told.tell(s.stop, s.a, s.mean);
    });
    if (!alive || told.stop != 0.0) break;
    Update(P, own, told.one, told.other, barrier.next(), sum);
    ++it;
    alive = barrier.sum(sum, shared.many, (int)it, fetch, [&](const double total[]) {
      if (Block::thin && threadIdx.x) return;
      End<kind>(P, s, it, total, asked, record);
      if (s.stop == 0.0 && it < P.chunk.last) Begin(s, false);
      told.tell(s.stop, s.b, s.shift);
    });
    record.store(P, it);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  if (began) Store(P, own);
  KSPTCLeave(P, it, s);
}

template <class Block>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) ResidentKernel(const __grid_constant__ Problem P)
{
  if (!Block::in_part && P.tensor) Solve<Block>(P, true);
  else Solve<Block>(P, Block::in_part && P.tensor);
}
} // namespace tccgresident
