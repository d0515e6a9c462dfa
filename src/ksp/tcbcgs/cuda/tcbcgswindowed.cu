/*
   Method
     Iterations of BiCGSTAB as in tcbcgsstreamed.cu, with the matrix read from its layout by way of windows (ksptcwindowed.cuh). Five barriers:

       direct   p <- r + beta (p - omega v)                                      barrier that orders memory: p is there
       first    v <- A p; v.rp                                                   barrier with a sum: alpha
       half     s <- r - alpha v                                                 barrier that orders memory: s is there
       second   t <- A s; t.s, t.t                                               barrier with two sums: omega
       update   r <- s - omega t; r.r, r.rp; test of the norm, record            barrier with two sums: beta
                meanwhile x <- x + alpha p + omega s

     A diagonal preconditioner from the left scales the sums of the rows. From the right it is left to the other kernel: what is multiplied would be a vector more.

   Layout
     Registers: v, and r or, from `second` to `update`, t. Shared memory of a block: the windows of p, then of s, and, if there is room, rp and x of its rows. In device memory p, in the work, s and the diagonal.

   Memory traffic
     An iteration, 7-point 101^3 (n rows), rp in shared memory: p read twice and written, s of 0.44 n rows written, twice 0.53 n copied to windows, x read and written: 54 MB through L2, 10 us at 5.3 TB/s, of which 25 MB
     have a barrier's time. Values of entries twice, 16 bytes a nonzero

   References
     tcbcgsstreamed.cu, ksptcwindowed.cuh
*/
#include <../src/ksp/resident/ksptcwindowed.cuh>
#include "tcbcgsstreamed.cuh"

using namespace tcbcgsstreamed;

namespace
{
constexpr int                ROUNDS = KSPTC_WINDOWED_ROUNDS, GROUPS = KSPTC_WINDOWED_GROUPS;
constexpr KSPTCWindowVectors VECTORS = {2, false}; /* rp, x */

using Windowed = KSPTCWindowedProblem<TCBCGSScalars, TCBCGSVectors>;

struct Share : KSPTCWindowedShare {
  double       *u;             /* by place: p, then s */
  bool          rpchip, xchip; /* are these in shared memory, by number? Else they are by row */
  const double *rp_;
  double       *x_;

  __device__ __forceinline__ Share(const Windowed &P, double *memory, uint64_t *arrived) : KSPTCWindowedShare(P, memory, arrived), u(windows()), rpchip(holds(0)), xchip(holds(1)), rp_(rpchip ? vector(0) : P.v.rp), x_(xchip ? vector(1) : Kept(P, 1))
  {
  }

  __device__ __forceinline__ double  rp(const KSPTCWindowRow &row) const { return rp_[rpchip ? row.number : row.row]; }
  __device__ __forceinline__ double &x(const KSPTCWindowRow &row) const { return x_[xchip ? row.number : row.row]; }
};

/* Of this thread's rows, in registers. Of numbers that are no rows all such vectors are 0 */
typedef double Rows[ROUNDS][GROUPS];

struct Held {
  Rows v, r; /* t where r was */
};

__device__ __forceinline__ void Load(const Windowed &P, const Share &own, Held &held)
{
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    held.v[round][g] = row.is ? P.v.v[row.row] : 0.0;
    held.r[round][g] = row.is ? P.v.r[row.row] : 0.0;
    if (row.is && own.rpchip) own.vector(0)[row.number] = P.v.rp[row.row];
    if (row.is) own.x(row) = P.v.x[row.row];
  });
}

/* Where t is 0, r is s */
__device__ __forceinline__ void Store(const Windowed &P, const Share &own, const Held &held, double stop)
{
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    if (!row.is) return;
    P.v.v[row.row] = held.v[round][g];
    P.v.r[row.row] = stop == PETSCTC_STOP_D2_ZERO ? own.u[row.place] : held.r[round][g];
    if (stop == PETSCTC_STOP_D2_ZERO) P.v.s[row.row] = own.u[row.place];
    P.v.x[row.row] = own.x(row);
    P.v.p[row.row] = Kept(P, 0)[row.row];
  });
}

/* p. begins: the call, which finds it where the last one has left it */
__device__ __forceinline__ void Direct(const Windowed &P, const Share &own, const Held &held, bool begins, double omega, double beta)
{
  double *const       to   = Kept(P, 0);
  const double *const from = begins ? P.v.p : to;
  Rows                p;

  own.forRows([&](int round, int g, const KSPTCWindowRow &row) { p[round][g] = row.is ? from[row.row] : 0.0; },
              [&](int round, int g, const KSPTCWindowRow &row) {
                const double now = KSPTCCombine(held.r[round][g], KSPTCCombine(p[round][g], held.v[round][g], -omega), beta);

                if (!row.is) return;
                own.u[row.place] = now;
                to[row.row]      = now;
              });
}

/* to[] <- A u of a slice, with the preconditioner */
template <bool scaled, bool valued>
__device__ __forceinline__ void Multiply(const Windowed &P, const Share &own, int round, unsigned turn, double (&to)[GROUPS])
{
  double          scale[GROUPS];
  RowSums<GROUPS> rows;

#pragma unroll
  for (int g = 0; g < GROUPS; g++) {
    const KSPTCWindowRow row = own.row(round, g);

    scale[g] = scaled && row.is ? __ldg(P.v.diagonal + row.row) : 1.0;
  }
  own.await(round, turn);
  own.multiply<valued>(round, rows);
#pragma unroll
  for (int g = 0; g < GROUPS; g++) to[g] = rows.sum[g] * scale[g];
}

/* v: returns this thread's share of v.rp */
template <bool scaled, bool valued>
__device__ __forceinline__ double First(const Windowed &P, const Share &own, Held &held, unsigned turn)
{
  double d1 = 0.0;

  own.forSlices([&](int round) {
    double rp[GROUPS];

#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const KSPTCWindowRow row = own.row(round, g);

      rp[g] = row.is ? own.rp(row) : 0.0;
    }
    Multiply<scaled, valued>(P, own, round, turn, held.v[round]);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) d1 = fma(held.v[round][g], rp[g], d1);
  });
  return d1;
}

/* s */
__device__ __forceinline__ void Half(const Windowed &P, const Share &own, const Held &held, double alpha)
{
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    const double s = KSPTCCombine(held.r[round][g], held.v[round][g], -alpha);

    if (row.is) own.u[row.place] = s;
  });
  own.publish(P.v.s);
}

/* t: adds t.s, t.t to sum[] */
template <bool scaled, bool valued>
__device__ __forceinline__ void Second(const Windowed &P, const Share &own, Held &held, unsigned turn, double sum[])
{
  own.forSlices([&](int round) {
    Multiply<scaled, valued>(P, own, round, turn, held.r[round]);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const KSPTCWindowRow row = own.row(round, g);

      TCBCGSAddStabilize<false, false>(0.0, held.r[round][g], row.is ? own.u[row.place] : 0.0, 0.0, sum);
    }
  });
}

/* r: adds r.r, r.rp to sum[] */
__device__ __forceinline__ void Update(const Share &own, Held &held, double omega, double sum[])
{
  Rows rp;

  own.forRows([&](int round, int g, const KSPTCWindowRow &row) { rp[round][g] = row.is ? own.rp(row) : 0.0; },
              [&](int round, int g, const KSPTCWindowRow &row) {
                double &r = held.r[round][g];

                r      = fma(-omega, r, row.is ? own.u[row.place] : 0.0);
                sum[0] = fma(r, r, sum[0]);
                sum[1] = fma(r, rp[round][g], sum[1]);
              });
}

/* x */
__device__ __forceinline__ void Follow(const Windowed &P, const Share &own, double alpha, double omega)
{
  Rows p, x;

  own.forRows(
    [&](int round, int g, const KSPTCWindowRow &row) {
      p[round][g] = row.is ? Kept(P, 0)[row.row] : 0.0;
      x[round][g] = row.is ? own.x(row) : 0.0;
    },
    [&](int round, int g, const KSPTCWindowRow &row) {
      if (row.is) own.x(row) = fma(alpha, p[round][g], fma(omega, own.u[row.place], x[round][g]));
    });
}

template <bool scaled, bool valued>
__global__ void __launch_bounds__(KSPTC_WINDOWED_THREADS, 1) WindowedKernel(const __grid_constant__ Windowed P)
{
  union Sums
  {
    GridReduceShared<1, KSPTC_WINDOWED_THREADS> one;
    GridReduceShared<2, KSPTC_WINDOWED_THREADS> two;
  };
  extern __shared__ __align__(16) double memory[];
  __shared__ uint64_t                    arrived;
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told; /* omega of the iteration before and beta, or alpha, or alpha and omega */
  __shared__ TCBCGSScalars               s;
  const Share                            own(P, memory, &arrived);
  Barrier                                barrier(P.sums, P.tag, P.tensor, P.patience());
  PetscInt                               it   = P.chunk.first;
  unsigned                               turn = 0;
  Held                                   held;
  bool                                   alive;

  if (threadIdx.x == 0) s = *P.scalars;
  const bool out = P.isOut() || s.stop != 0.0;

  __syncthreads(); /* nobody writes them before all have looked */
  if (out) return; /* all blocks: nobody writes the scalars then */
  own.initialize(P.slots);
  Load(P, own, held);
  if (threadIdx.x == 0) {
    TCBCGSBeginIteration(s);
    told.tell(s.stop, s.omegaold, s.beta);
  }
  alive = barrier.order((int)it); /* all have the scalars and the tag */

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[SUMS] = {};

    Direct(P, own, held, it == P.chunk.first, told.one, told.other);
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    own.request(Kept(P, 0));
    sum[0] = First<scaled, valued>(P, own, held, turn++);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      TCBCGSEndBreakdown(s, total[0]);
      told.tell(s.stop, s.alpha);
    });
    if (!alive || told.stop != 0.0) break;
    Half(P, own, held, told.one);
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    own.request(P.v.s);
    sum[0] = 0.0;
    Second<scaled, valued>(P, own, held, turn++, sum);
    alive = barrier.sum(sum, shared.two, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      TCBCGSEndStabilize<false>(s, total);
      told.tell(s.stop, s.alpha, s.omega);
    });
    if (!alive || told.stop != 0.0) break;
    const double alpha = told.one, omega = told.other;
    const bool   collects = threadIdx.x < SUMS * KSPTC_LANES; /* these warps have no time meanwhile */

    sum[0] = sum[1] = 0.0;
    Update(own, held, omega, sum);
    ++it;
    if (collects) Follow(P, own, alpha, omega);
    alive = barrier.sum(
      sum, shared.two, (int)it,
      [&](uint64_t, int, int) {
        Follow(P, own, alpha, omega);
        return true;
      },
      [&](const double total[]) {
        if (threadIdx.x) return;
        EndIteration(P, s, it, total);
        if (s.stop == 0.0 && it < P.chunk.last) TCBCGSBeginIteration(s);
        told.tell(s.stop, s.omegaold, s.beta);
      });
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  Store(P, own, held, told.stop);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace

static const void *KernelOf(bool scaled, bool valued)
{
  if (valued) return scaled ? (const void *)WindowedKernel<true, true> : (const void *)WindowedKernel<false, true>;
  return scaled ? (const void *)WindowedKernel<true, false> : (const void *)WindowedKernel<false, false>;
}

PetscErrorCode tcbcgsstreamed::RunWindowed(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *taken, PetscBool *refused, cudaStream_t stream)
{
  const PetscScalar *const multiplied[] = {work->vectors, v->s};
  const bool               scaled       = v->diagonal != NULL;
  const void *const        kernels[]    = {KernelOf(scaled, false), KernelOf(scaled, true)};

  PetscFunctionBegin;
  *taken = PETSC_FALSE;
  if (!v->right) PetscCall(KSPTCWindowedRun(kernels, layout, VECTORS, chunk, v, multiplied, steps, work, taken, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
