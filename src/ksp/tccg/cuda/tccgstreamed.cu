/*
   Method
     Iterations of conjugate gradients in one cooperative kernel that reads the matrix from its layout (ksptcstreamed.cuh). An iteration has three barriers:

       direct   x <- x + a p, of the iteration before; p <- z + b p                                    barrier that orders memory: p is there
       multiply w <- A p; p.w                                                                          barrier with a sum
       update   r <- r - a w; z.r, and r.r or z.z; test of the norm, record                            barrier with two sums, one if z is r, five with a projection

     x follows one phase behind, because p is read there anyway: the end of a call brings it up to date. z is not kept: B is a diagonal.

   Layout
     Shared memory of a block: r, w and, if there is room, x of its rows. p is in device memory, in the work, and the diagonal.

   Memory traffic
     An iteration: the matrix; p gathered, read and written by its own row; the diagonal twice. Everything else stays where it is. A call: x, r and p once each way.

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "tccgstreamed.cuh"

using namespace tccgstreamed;

namespace
{
template <int R>
struct Share : KSPTCStreamedShare<R, true> {
  double             *r, *w;
  KSPTCStreamedVector x;

  __device__ __forceinline__ Share(const Problem &P, double *memory) : KSPTCStreamedShare<R, true>(P, memory), r(memory), w(r + P.deal.numbers), x(P, 2, memory, Kept(P, 2)) { }
};

template <bool projected>
__device__ __forceinline__ double Project(double z, double mean)
{
  return projected ? z - mean : z;
}

template <bool projected>
__device__ __forceinline__ double Precondition(const Problem &P, int row, double r, double mean)
{
  return Project<projected>(r * Scale(P, row), mean);
}

template <int R>
__device__ __forceinline__ void Load(const Problem &P, const Share<R> &own)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      own.x(at + KSPTC_LANES * k, row[k]) = P.v.x[row[k]];
      own.r[at + KSPTC_LANES * k]         = P.v.r[row[k]];
    }
  });
}

/* a: of the iteration that x has not followed yet, 0 if there is none. z: what the next direction would take */
template <bool projected, int R>
__device__ __forceinline__ void Store(const Problem &P, const Share<R> &own, double a, double mean)
{
  own.forRows([&](int at, const int(&row)[R]) {
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const double x = own.x(at + KSPTC_LANES * k, row[k]), r = own.r[at + KSPTC_LANES * k], p = Kept(P, 0)[row[k]];

      P.v.x[row[k]] = a == 0.0 ? x : fma(a, p, x);
      P.v.r[row[k]] = r;
      P.v.p[row[k]] = p;
      if (P.v.diagonal) P.v.z[row[k]] = Precondition<projected>(P, row[k], r, mean);
    }
  });
}

/* first: of the solve, whose p may hold anything, and whose z alone has been projected if it is to be. begins: the call, which finds p where the last one has left it */
template <bool projected, int R>
__device__ __forceinline__ void Direct(const Problem &P, const Share<R> &own, bool first, bool begins, double a, double b, double mean)
{
  double *const       to   = Kept(P, 0);
  const double *const from = begins ? P.v.p : to;

  own.forRows([&](int at, const int(&row)[R]) {
    double p[R], scale[R];

#pragma unroll
    for (int k = 0; k < R; k++) {
      p[k]     = !first && row[k] >= 0 ? from[row[k]] : 0.0;
      scale[k] = row[k] >= 0 ? Scale(P, row[k]) : 0.0;
    }
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      if (a != 0.0) own.x(at + KSPTC_LANES * k, row[k]) = fma(a, p[k], own.x(at + KSPTC_LANES * k, row[k]));
      to[row[k]] = projected && first ? P.v.z[row[k]] : KSPTCCombine(Project<projected>(own.r[at + KSPTC_LANES * k] * scale[k], mean), p[k], b);
    }
  });
}

/* w: returns this thread's share of p.w */
template <int R>
__device__ __forceinline__ double Multiply(const Problem &P, const Share<R> &own)
{
  double pw = 0.0;

  own.forProducts(Kept(P, 0), [&](int at, const int(&row)[R], const double(&w)[R]) {
    double p[R];

#pragma unroll
    for (int k = 0; k < R; k++) p[k] = row[k] >= 0 ? Kept(P, 0)[row[k]] : 0.0;
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      own.w[at + KSPTC_LANES * k] = w[k];
      pw                          = fma(p[k], w[k], pw);
    }
  });
  return pw;
}

/* r: adds r.r to sum[0] without preconditioner, else what TCCGAddTested() does or, with a projection, TCCGAddScaled() */
template <bool projected, int R>
__device__ __forceinline__ void Update(const Problem &P, const Share<R> &own, double a, double mean, double sum[])
{
  own.forRows([&](int at, const int(&row)[R]) {
    double scale[R];

#pragma unroll
    for (int k = 0; k < R; k++) scale[k] = row[k] >= 0 ? Scale(P, row[k]) : 0.0;
#pragma unroll
    for (int k = 0; k < R; k++) {
      if (row[k] < 0) continue;
      const double r = fma(-a, own.w[at + KSPTC_LANES * k], own.r[at + KSPTC_LANES * k]), z = Project<projected>(r * scale[k], mean);

      own.r[at + KSPTC_LANES * k] = r;
      if constexpr (projected) TCCGAddScaled<true>(r, z, sum);
      else if (P.v.diagonal) TCCGAddTested(P.chunk.test.norm, r, z, sum);
      else sum[0] = fma(r, r, sum[0]);
    }
  });
}

__device__ __noinline__ void Curve(TCCGScalars &s, bool first, double pw)
{
  TCCGEndCurvature(s, pw, first);
}

/* projected: with a constant null space. A kernel of its own: its sums take registers */
template <int R, bool projected>
__global__ void __launch_bounds__(KSPTC_STREAMED_THREADS, 1) StreamedKernel(const __grid_constant__ Problem P)
{
  constexpr int SUMS_SCALED = projected ? TCCG_SCALED_SUMS<true> : TCCG_TESTED_SUMS;

  union Sums
  {
    KSPTCStreamedSums<1>           one;
    KSPTCStreamedSums<SUMS_SCALED> many;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told; /* b, or a; and mean */
  __shared__ TCCGScalars                 s;
  const Share<R>                         own(P, memory);
  Barrier                                barrier(P.sums, P.tag, P.tensor, P.patience());
  PetscInt                               it = P.chunk.first;
  double                                 a  = 0.0; /* of the iteration that x has not followed yet */
  bool                                   alive;

  static_assert(sizeof(shared) + sizeof(told) + sizeof(s) <= KSPTC_STATIC_SHARED, "KSPTCChipGet_CUDA() leaves room for these: no kernel has more");
  if (threadIdx.x == 0) s = *P.scalars;
  const bool out = P.isOut() || s.stop != 0.0;

  __syncthreads(); /* nobody writes them before all have looked */
  if (out) return; /* all blocks: nobody writes the scalars then */
  own.keep();
  Load(P, own);
  if (threadIdx.x == 0) {
    Begin(s, it == 0);
    told.tell(s.stop, s.b, s.mean);
  }
  alive            = barrier.order((int)it); /* all have the scalars and the tag */
  const bool began = told.stop == 0.0;

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[SUMS_SCALED] = {};

    Direct<projected>(P, own, it == 0, it == P.chunk.first, a, told.one, told.other);
    a     = 0.0;
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    sum[0] = Multiply(P, own);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      Curve(s, it == 0, total[0]);
      told.tell(s.stop, s.a, s.mean);
    });
    if (!alive || told.stop != 0.0) break;
    a      = told.one;
    sum[0] = 0.0;
    Update<projected>(P, own, a, told.other, sum);
    ++it;
    const auto derive = [&](const double total[]) {
      if (threadIdx.x) return;
      End<projected>(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) Begin(s, false);
      told.tell(s.stop, s.b, s.mean);
    };
    alive = projected || P.v.diagonal ? barrier.sum(sum, shared.many, (int)it, derive) : barrier.sum(sum, shared.one, (int)it, derive);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  if (began) Store<projected>(P, own, a, told.other);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) {
    s.shift    = 0.0; /* which z has not too much */
    *P.scalars = s;
  }
}

constexpr int KERNELS = 3;

/* With so many rows to a lane: without a projection, with one, and with A p carried */
template <int R>
const void *const *KernelsWith(const void *single)
{
  static const void *const kernels[KERNELS] = {(const void *)StreamedKernel<R, false>, (const void *)StreamedKernel<R, true>, single};

  return kernels;
}

const void *const *KernelsOf(const AIJTCLayout *layout)
{
  const void *const single = SingleKernelOf(layout);

  return layout->params.rrows == 4 ? KernelsWith<4>(single) : (layout->params.rrows == 2 ? KernelsWith<2>(single) : KernelsWith<1>(single));
}
} // namespace

PetscErrorCode TCCGStreamedCreate_CUDA(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCStreamedCreate(layout, sizeof(TCCGScalars), Barrier::records, KEPT, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGStreamed_CUDA(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  PetscBool taken;

  PetscFunctionBegin;
  PetscCheck(!v->s || !v->constant, PETSC_COMM_SELF, PETSC_ERR_SUP, "Iterations that carry A p have no projection");
  PetscCall(RunWindowed(layout, chunk, v, steps, work, &taken, refused, stream));
  if (taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCStreamedRun(KernelsOf(layout)[v->s ? 2 : (v->constant ? 1 : 0)], layout, LEAST, MOST, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
