/*
   Method
     Conjugate gradients that carry A p (kspsteps.h: advance) in one cooperative kernel that reads the matrix from its layout (ksptcstreamed.cuh). An iteration has two barriers:

       multiply w <- A z + b w; p <- z + b p; p.w                                                      barrier with a sum
       update   x <- x + a p; r <- r - a w; z; z.r, and r.r or z.z; test of the norm, record           barrier with two sums, one if z is r, that orders memory: z is there

     What is multiplied is z, which is there before b is: so b need not be known before the barrier that z needs anyway, and the two are one. With p of its own rows at hand p.w takes nothing but the sum, which has its barrier by
     itself: p.w is not made of z.A z then.

   Layout
     Shared memory of a block: w, p and, if there is room, x of its rows. In device memory z, which all blocks gather, and, where z is not r, r, both in the work; and the diagonal.

   Memory traffic
     An iteration: the matrix; z gathered, and read by its own row; r read and written (with a preconditioner z written besides); the diagonal. 7-point 101^3, constant values: as classic ones (tccgstreamed.cu), and a barrier
     and a pass over the vectors less, of 2 and 1.5 us. A call: z, r, x, w and p once each way

   References
     A. T. Chronopoulos, C. W. Gear, s-step iterative methods for symmetric linear systems, J. Comput. Appl. Math. 25(2), 1989;
     E. F. D'Azevedo, V. L. Eijkhout, C. H. Romine, Conjugate gradient algorithms with reduced synchronization overhead on distributed memory multiprocessors, LAPACK Working Note 56, 1993
*/
#include "tccgstreamed.cuh"

using namespace tccgstreamed;

namespace
{
template <int R>
struct Share : KSPTCStreamedShare<R> {
  double             *w, *p;
  KSPTCStreamedVector x;

  __device__ __forceinline__ Share(const Problem &P, double *memory) : KSPTCStreamedShare<R>(P, memory), w(memory), p(w + P.deal.numbers), x(P, 2, memory, Kept(P, 2)) { }
};

/* r, which is z without a preconditioner */
__device__ __forceinline__ double *Residual(const Problem &P)
{
  return Kept(P, P.v.diagonal ? 1 : 0);
}

/* For the first iteration to form z + 0 p and A z + 0 w, whatever p and w hold */
template <int R>
__device__ __forceinline__ void Load(const Problem &P, const Share<R> &own)
{
  const bool first = P.chunk.first == 0;

  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      own.x(at + KSPTC_LANES * k, row[k]) = P.v.x[row[k]];
      own.w[at + KSPTC_LANES * k]         = first ? 0.0 : P.v.w[row[k]];
      own.p[at + KSPTC_LANES * k]         = first ? 0.0 : P.v.p[row[k]];
      Kept(P, 0)[row[k]]                  = P.v.z[row[k]];
      if (P.v.diagonal) Residual(P)[row[k]] = P.v.r[row[k]];
    }
  });
}

template <int R>
__device__ __forceinline__ void Store(const Problem &P, const Share<R> &own)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      P.v.x[row[k]] = own.x(at + KSPTC_LANES * k, row[k]);
      P.v.w[row[k]] = own.w[at + KSPTC_LANES * k];
      P.v.p[row[k]] = own.p[at + KSPTC_LANES * k];
      P.v.z[row[k]] = Kept(P, 0)[row[k]];
      if (P.v.diagonal) P.v.r[row[k]] = Residual(P)[row[k]];
    }
  });
}

/* w and p: returns this thread's share of p.w */
template <int R>
__device__ __forceinline__ double Multiply(const Problem &P, const Share<R> &own, double b)
{
  double pw = 0.0;

  own.forProducts(Kept(P, 0), [&](int at, const int(&row)[R], const double(&sum)[R]) {
    double z[R];

#pragma unroll
    for (int k = 0; k < R; k++) z[k] = row[k] >= 0 ? Kept(P, 0)[row[k]] : 0.0;
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const double w = KSPTCCombine(sum[k], own.w[at + KSPTC_LANES * k], b), p = KSPTCCombine(z[k], own.p[at + KSPTC_LANES * k], b);

      own.w[at + KSPTC_LANES * k] = w;
      own.p[at + KSPTC_LANES * k] = p;
      pw                          = fma(p, w, pw);
    }
  });
  return pw;
}

/* x, r, z: adds r.r to sum[0] without preconditioner, else what TCCGAddTested() does */
template <int R>
__device__ __forceinline__ void Update(const Problem &P, const Share<R> &own, double a, double sum[])
{
  own.forRows([&](int at, const int(&row)[R]) {
    double scale[R], r[R];

#pragma unroll
    for (int k = 0; k < R; k++) {
      scale[k] = row[k] >= 0 ? Scale(P, row[k]) : 0.0;
      r[k]     = row[k] >= 0 ? Residual(P)[row[k]] : 0.0;
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const int number = at + KSPTC_LANES * k;

      r[k]                  = fma(-a, own.w[number], r[k]);
      Residual(P)[row[k]]   = r[k];
      own.x(number, row[k]) = fma(a, own.p[number], own.x(number, row[k]));
      if (P.v.diagonal) {
        const double z = r[k] * scale[k];

        Kept(P, 0)[row[k]] = z;
        TCCGAddTested(P.chunk.test.norm, r[k], z, sum);
      } else sum[0] = fma(r[k], r[k], sum[0]);
    }
  });
}

__device__ __noinline__ void Curve(TCCGScalars &s, bool first, double pw)
{
  TCCGEndCarried(s, pw, first);
}

template <int R>
__global__ void __launch_bounds__(KSPTC_STREAMED_THREADS, 1) SingleKernel(const __grid_constant__ Problem P)
{
  union Sums
  {
    KSPTCStreamedSums<1>                one;
    KSPTCStreamedSums<TCCG_TESTED_SUMS> many;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told; /* b, or a */
  __shared__ TCCGScalars                 s;
  const Share<R>                         own(P, memory);
  Barrier                                barrier(P.sums, P.tag, P.tensor, P.patience());
  PetscInt                               it = P.chunk.first;
  bool                                   alive;

  if (threadIdx.x == 0) s = *P.scalars;
  const bool out = P.isOut() || s.stop != 0.0;

  __syncthreads(); /* nobody writes them before all have looked */
  if (out) return; /* all blocks: nobody writes the scalars then */
  own.keep();
  Load(P, own);
  if (threadIdx.x == 0) {
    Begin(s, it == 0);
    told.tell(s.stop, s.b);
  }
  alive            = barrier.order((int)it); /* all have the scalars and the tag */
  const bool began = told.stop == 0.0;

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[TCCG_TESTED_SUMS] = {};

    sum[0] = Multiply(P, own, told.one);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      Curve(s, it == 0, total[0]);
      told.tell(s.stop, s.a);
    });
    if (!alive || told.stop != 0.0) break;
    sum[0] = 0.0;
    Update(P, own, told.one, sum);
    ++it;
    const auto derive = [&](const double total[]) {
      if (threadIdx.x) return;
      End<false>(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) Begin(s, false);
      told.tell(s.stop, s.b);
    };
    alive = P.v.diagonal ? barrier.template sum<true>(sum, shared.many, (int)it, derive) : barrier.template sum<true>(sum, shared.one, (int)it, derive);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  if (began) Store(P, own);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace

const void *tccgstreamed::SingleKernelOf(const AIJTCLayout *layout)
{
  return layout->params.rrows == 4 ? (const void *)SingleKernel<4> : (layout->params.rrows == 2 ? (const void *)SingleKernel<2> : (const void *)SingleKernel<1>);
}
