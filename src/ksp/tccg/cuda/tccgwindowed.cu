/*
   Method
     Iterations of conjugate gradients as in tccgstreamed.cu, with the matrix read from its layout by way of windows (ksptcwindowed.cuh). An iteration has three barriers:

       direct   p <- z + b p                                                                           barrier that orders memory: p is there
       multiply w <- A p; p.w                                                                          barrier with a sum
       update   r <- r - a w; z.r, and r.r or z.z; test of the norm, record                            barrier with two sums, one if z is r
                meanwhile x <- x + a p

   Layout
     Registers: r and w, or z. Shared memory of a block: the windows of p and, if there is room, x of its rows, and the diagonal of all slices, or of as many times 16 as there is room for. In device memory, in the work, p; and the rest of the diagonal.

   Memory traffic
     An iteration, 7-point 101^3 (n rows): p of 0.44 n rows written, which others multiply by, and 0.53 n copied to windows: 8 MB through L2, 1.6 us at 5.3 TB/s; a product reads 8 bytes a nonzero
     and the slots from shared memory, update 16 bytes a row, x 16: 96 MB, 3 us at 128 bytes a cycle and multiprocessor. x that is not there, or values of entries, come from device memory: 16 n bytes in a barrier's time, 8 a nonzero. With a
     preconditioner 8 bytes a row more: 7-point 101^3 6 MB of shared memory, and 2 MB from device memory.

   References
     tccgstreamed.cu, ksptcwindowed.cuh
*/
#include "tccgwindowed.cuh"

using namespace tccgwindowed;

namespace
{
struct Held {
  Rows r, w; /* with a preconditioner z where w was, from update to direct */
};

/* For the first iteration to form z + 0 p, whatever p holds */
template <bool scaled>
__device__ __forceinline__ void Load(const Windowed &P, const Share &own, Held &held)
{
  const bool first = P.chunk.first == 0;

  LoadShared<scaled>(P, own, [&](int row) { return first ? 0.0 : P.v.p[row]; });
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    held.r[round][g] = row.is ? P.v.r[row.row] : 0.0;
    held.w[round][g] = scaled ? held.r[round][g] * ScaleOf<scaled>(P, row) : 0.0;
  });
}

template <bool scaled>
__device__ __forceinline__ void Store(const Windowed &P, const Share &own, const Held &held)
{
  StoreShared(P, own);
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    if (!row.is) return;
    P.v.r[row.row] = held.r[round][g];
    P.v.p[row.row] = own.u[row.place];
    if (scaled) P.v.z[row.row] = held.r[round][g] * ScaleOf<scaled>(P, row);
  });
}

/* p */
template <bool scaled>
__device__ __forceinline__ void Direct(const Windowed &P, const Share &own, const Held &held, double b)
{
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    if (!row.is) return;
    const double z = (scaled ? held.w : held.r)[round][g], p = KSPTCCombine(z, own.u[row.place], b);

    own.u[row.place] = p;
  });
  own.publish(Kept(P, 0));
}

/* w: returns this thread's share of p.w */
template <bool valued>
__device__ __forceinline__ double Multiply(const Share &own, Held &held, unsigned turn)
{
  double pw = 0.0;

  own.forSlices([&](int round) {
    RowSums<GROUPS> rows;

    own.await(round, turn);
    own.multiply<valued>(round, rows);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const KSPTCWindowRow row = own.row(round, g);

      held.w[round][g] = rows.sum[g];
      pw               = fma(row.is ? own.u[row.place] : 0.0, rows.sum[g], pw);
    }
  });
  return pw;
}

/* r, z */
template <bool scaled>
__device__ __forceinline__ void Update(const Windowed &P, const Share &own, Held &held, double a, double sum[])
{
  Rows scale;

  ForRowsScaled<scaled>(
    P, own, [&](int round, int g, const KSPTCWindowRow &, double d) { scale[round][g] = d; },
    [&](int round, int g, const KSPTCWindowRow &) {
      double      &r = held.r[round][g], &w = held.w[round][g];
      const double now = fma(-a, w, r), z = now * scale[round][g];

      r = now;
      if (scaled) w = z;
      AddTested<scaled>(P, now, z, sum);
    });
}

template <bool scaled, bool valued>
__global__ void __launch_bounds__(KSPTC_WINDOWED_THREADS, 1) WindowedKernel(const __grid_constant__ Windowed P)
{
  extern __shared__ __align__(16) double memory[];
  __shared__ uint64_t                    arrived;
  __shared__ Sums                        shared;
  __shared__ KSPTCTold                   told; /* b, or a */
  __shared__ TCCGScalars                 s;
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
  Load<scaled>(P, own, held);
  if (threadIdx.x == 0) {
    BeginIteration(s, it == 0);
    told.tell(s.stop, s.b);
  }
  alive            = barrier.order((int)it); /* all have the scalars and the tag */
  const bool began = told.stop == 0.0;

  while (alive && told.stop == 0.0 && it < P.chunk.last) {
    double sum[TESTED<scaled>] = {};

    Direct<scaled>(P, own, held, told.one);
    alive = barrier.order((int)it + 1);
    if (!alive) break;
    own.request(Kept(P, 0));
    sum[0] = Multiply<valued>(own, held, turn++);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      TCCGEndCurvature(s, total[0], it == 0);
      told.tell(s.stop, s.a);
    });
    if (!alive || told.stop != 0.0) break;
    const double a = told.one;

    sum[0] = 0.0;
    Update<scaled>(P, own, held, a, sum);
    ++it;
    const auto derive = [&](const double total[]) {
      if (threadIdx.x) return;
      EndIteration<false>(P, s, it, total);
      if (s.stop == 0.0 && it < P.chunk.last) BeginIteration(s, false);
      told.tell(s.stop, s.b);
    };
    const auto follow = [&]() { Follow(own, a, [&](int, int, const KSPTCWindowRow &row) { return own.u[row.place]; }); };
    alive             = SumAndFollow<scaled, false>(P, barrier, sum, shared, it, derive, follow);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  if (began) Store<scaled>(P, own, held);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace

static const void *KernelOf(bool single, bool scaled, bool valued)
{
  if (single) return WindowedSingleKernel(scaled, valued);
  if (valued) return scaled ? (const void *)WindowedKernel<true, true> : (const void *)WindowedKernel<false, true>;
  return scaled ? (const void *)WindowedKernel<true, false> : (const void *)WindowedKernel<false, false>;
}

PetscErrorCode tccgstreamed::RunWindowed(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *taken, PetscBool *refused, cudaStream_t stream)
{
  const PetscScalar *const multiplied[] = {work->vectors, work->vectors};
  const bool               single = v->s != NULL, scaled = v->diagonal != NULL;
  const void *const        kernels[] = {KernelOf(single, scaled, false), KernelOf(single, scaled, true)};

  PetscFunctionBegin;
  *taken = PETSC_FALSE;
  if (!v->constant) PetscCall(KSPTCWindowedRun(kernels, layout, VectorsOf(scaled), chunk, v, multiplied, steps, work, taken, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
