/*
   Method
     Iterations of BiCGSTAB in one cooperative kernel that reads the matrix from its layout (ksptcstreamed.cuh). An iteration has five barriers:

       direct   p <- r + beta (p - omega v)                                      barrier that orders memory: p is there
       first    v <- A p; v.rp                                                   barrier with a sum: alpha
       half     s <- r - alpha v                                                 barrier that orders memory: s is there
       second   t <- A s; t.s, t.t                                               barrier with two sums: omega
       update   x, r; r.r, r.rp; test of the norm, record                        barrier with two sums: beta

     Recurrences with a reduction less would have four, but what they add up takes registers that products need, which made them slower (docs/log/2026-11.md).
     The s of a block's own rows is r - alpha v whenever it is needed, always with the same bits. A diagonal preconditioner from the left scales the sums of the rows; from the right what products multiply by,
     which is then in the memory of s.

   Layout
     Shared memory of a block: r, v and, if there is room, t, rp, x of its rows. p, in the work, and s are in device memory, and the diagonal.

   Memory traffic
     An iteration: the matrix twice; p and s gathered, written, and read by their own rows; of what is not on the chip, t and x written and read, rp read twice.

   References
     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "tcbcgsstreamed.cuh"

using namespace tcbcgsstreamed;

namespace
{
constexpr int LEAST = 2, MOST = 5; /* vectors in shared memory: r, v, t, rp, x */

using Problem = KSPTCStreamedProblem<TCBCGSScalars, TCBCGSVectors>;

template <int R>
struct Share : KSPTCStreamedShare<R> {
  double             *r, *v;
  KSPTCStreamedVector t, rp, x;

  __device__ __forceinline__        Share(const Problem &P, double *memory) : KSPTCStreamedShare<R>(P, memory), r(memory), v(r + P.deal.numbers), t(P, 2, memory, P.v.t), rp(P, 3, memory, const_cast<double *>(P.v.rp)), x(P, 4, memory, Kept(P, 1)) { }
  __device__ __forceinline__ double s(int number, double alpha) const { return KSPTCCombine(r[number], v[number], -alpha); }
};

__device__ __forceinline__ double Scale(const Problem &P, bool scaled, int row)
{
  return scaled ? __ldg(P.v.diagonal + row) : 1.0;
}

__device__ __forceinline__ bool OnTheLeft(const Problem &P)
{
  return P.v.diagonal && !P.v.right;
}

template <int R>
__device__ __forceinline__ void Load(const Problem &P, const Share<R> &own)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      const int number = at + KSPTC_LANES * k;

      if (row[k] < 0) continue;
      own.r[number] = P.v.r[row[k]];
      own.v[number] = P.v.v[row[k]];
      if (own.rp.chip) own.rp(number, row[k]) = P.v.rp[row[k]];
      own.x(number, row[k]) = P.v.x[row[k]];
    }
  });
}

template <int R>
__device__ __forceinline__ void Store(const Problem &P, const Share<R> &own, const KSPTCTold &told)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      const int number = at + KSPTC_LANES * k;

      if (row[k] < 0) continue;
      P.v.r[row[k]] = own.r[number];
      P.v.v[row[k]] = own.v[number];
      P.v.x[row[k]] = own.x(number, row[k]);
      P.v.p[row[k]] = Kept(P, 0)[row[k]];
      if (told.stop == PETSCTC_STOP_D2_ZERO) P.v.s[row[k]] = own.s(number, told.one);
    }
  });
}

/* p, and what is multiplied by. begins: the call, which finds p where the last one has left it */
template <int R>
__device__ __forceinline__ void Direct(const Problem &P, const Share<R> &own, bool begins, double omega, double beta)
{
  double *const       to   = Kept(P, 0);
  const double *const from = begins ? P.v.p : to;

  own.forRows([&](int at, const int(&row)[R]) {
    double p[R], scale[R];

#pragma unroll
    for (int k = 0; k < R; k++) {
      p[k]     = row[k] >= 0 ? from[row[k]] : 0.0;
      scale[k] = row[k] >= 0 ? Scale(P, P.v.right, row[k]) : 0.0;
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      const int number = at + KSPTC_LANES * k;

      if (row[k] < 0) continue;
      p[k]       = KSPTCCombine(own.r[number], KSPTCCombine(p[k], own.v[number], -omega), beta);
      to[row[k]] = p[k];
      if (P.v.right) P.v.s[row[k]] = p[k] * scale[k];
    }
  });
}

/* v: returns this thread's share of v.rp */
template <int R>
__device__ __forceinline__ double First(const Problem &P, const Share<R> &own)
{
  double d1 = 0.0;

  own.forProducts(P.v.right ? P.v.s : Kept(P, 0), [&](int at, const int(&row)[R], const double(&sum)[R]) {
    double rp[R];

#pragma unroll
    for (int k = 0; k < R; k++) rp[k] = row[k] >= 0 ? own.rp(at + KSPTC_LANES * k, row[k]) : 0.0;
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const double v = sum[k] * Scale(P, OnTheLeft(P), row[k]);

      own.v[at + KSPTC_LANES * k] = v;
      d1                          = fma(v, rp[k], d1);
    }
  });
  return d1;
}

/* s, or what is multiplied by */
template <int R>
__device__ __forceinline__ void Half(const Problem &P, const Share<R> &own, double alpha)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] >= 0) P.v.s[row[k]] = own.s(at + KSPTC_LANES * k, alpha) * Scale(P, P.v.right, row[k]);
    }
  });
}

/* t: adds t.s, t.t to sum[] */
template <int R>
__device__ __forceinline__ void Second(const Problem &P, const Share<R> &own, double alpha, double sum[])
{
  own.forProducts(P.v.s, [&](int at, const int(&row)[R], const double(&w)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const int    number = at + KSPTC_LANES * k;
      const double t      = w[k] * Scale(P, OnTheLeft(P), row[k]);

      own.t(number, row[k]) = t;
      TCBCGSAddStabilize<false, false>(0.0, t, own.s(number, alpha), 0.0, sum);
    }
  });
}

/* x, r: adds r.r, r.rp to sum[]. r first, and then x: there are no registers for what both need at once */
template <int R>
__device__ __forceinline__ void Update(const Problem &P, const Share<R> &own, double alpha, double omega, double sum[])
{
  own.forRows([&](int at, const int(&row)[R]) {
    double s[R], a[R], b[R]; /* t and rp, and then p and x */

#pragma unroll
    for (int k = 0; k < R; k++) {
      a[k] = row[k] >= 0 ? own.t(at + KSPTC_LANES * k, row[k]) : 0.0;
      b[k] = row[k] >= 0 ? own.rp(at + KSPTC_LANES * k, row[k]) : 0.0;
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      s[k]           = own.s(at + KSPTC_LANES * k, alpha);
      const double r = fma(-omega, a[k], s[k]);

      own.r[at + KSPTC_LANES * k] = r;
      sum[0]                      = fma(r, r, sum[0]);
      sum[1]                      = fma(r, b[k], sum[1]);
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      a[k] = row[k] >= 0 ? Kept(P, 0)[row[k]] : 0.0;
      b[k] = row[k] >= 0 ? own.x(at + KSPTC_LANES * k, row[k]) : 0.0;
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] >= 0) own.x(at + KSPTC_LANES * k, row[k]) = fma(alpha, a[k], fma(omega, s[k], b[k]));
    }
  });
}

/* What follows is done by one thread of every block, with sums of the same bits */

__device__ __noinline__ void Begin(TCBCGSScalars &s)
{
  TCBCGSBeginIteration(s);
}

__device__ __noinline__ void Breakdown(TCBCGSScalars &s, double d1)
{
  TCBCGSEndBreakdown(s, d1);
}

__device__ __noinline__ void Stabilize(TCBCGSScalars &s, const double sum[])
{
  TCBCGSEndStabilize<false>(s, sum);
}

__device__ __noinline__ void End(const Problem &P, TCBCGSScalars &s, PetscInt it, const double sum[])
{
  EndIteration(P, s, it, sum);
}

template <int R>
__global__ void __launch_bounds__(KSPTC_STREAMED_THREADS, 1) StreamedKernel(const __grid_constant__ Problem P)
{
  union Sums
  {
    KSPTCStreamedSums<1> one;
    KSPTCStreamedSums<2> two;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told; /* omega of the iteration before and beta, or alpha, or alpha and omega */
  __shared__ TCBCGSScalars               s;
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
    Begin(s);
    told.tell(s.stop, s.omegaold, s.beta);
  }
  alive = barrier.order((int)it); /* all have the scalars and the tag */

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[2] = {};

    Direct(P, own, it == P.chunk.first, told.one, told.other);
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    sum[0] = First(P, own);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      Breakdown(s, total[0]);
      told.tell(s.stop, s.alpha);
    });
    if (!alive || told.stop != 0.0) break;
    Half(P, own, told.one);
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    sum[0] = 0.0;
    Second(P, own, told.one, sum);
    alive = barrier.sum(sum, shared.two, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      Stabilize(s, total);
      told.tell(s.stop, s.alpha, s.omega);
    });
    if (!alive || told.stop != 0.0) break;
    sum[0] = sum[1] = 0.0;
    Update(P, own, told.one, told.other, sum);
    ++it;
    alive = barrier.sum(sum, shared.two, (int)it, [&](const double total[]) {
      if (threadIdx.x) return;
      End(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) Begin(s);
      told.tell(s.stop, s.omegaold, s.beta);
    });
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store(P, own, told);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}

const void *KernelOf(const AIJTCLayout *layout)
{
  return layout->params.rrows == 4 ? (const void *)StreamedKernel<4> : (layout->params.rrows == 2 ? (const void *)StreamedKernel<2> : (const void *)StreamedKernel<1>);
}
} // namespace

PetscErrorCode TCBCGSStreamedCreate_CUDA(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCStreamedCreate(layout, sizeof(TCBCGSScalars), Barrier::records, KEPT, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSStreamed_CUDA(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  PetscBool taken;

  PetscFunctionBegin;
  PetscCheck(v->diagonal || !v->right, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "There is no preconditioner to stand on the right");
  PetscCheck(!v->single, PETSC_COMM_SELF, PETSC_ERR_SUP, "With the matrix read from its layout recurrences are classic");
  PetscCall(RunWindowed(layout, chunk, v, steps, work, &taken, refused, stream));
  if (taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCStreamedRun(KernelOf(layout), layout, LEAST, MOST, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
