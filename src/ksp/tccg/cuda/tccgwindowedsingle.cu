/*
   Method
     Conjugate gradients that carry A p, as tccgstreamedsingle.cu has them, with the matrix read from its layout by way of windows (ksptcwindowed.cuh). An iteration has two barriers:

       multiply w <- A z + b w; p <- z + b p; p.w                                                      barrier with a sum
       update   r <- r - a w; z; z.r, and r.r or z.z; test of the norm, record                         barrier with two sums, one if z is r, that orders memory: z is there
                meanwhile x <- x + a p

   Layout
     Registers: w and p. Shared memory of a block: the windows of z and, if there is room, x of its rows, and the diagonal of all slices, or of as many times 16 as there is room for. In device memory, in the work, z; and the rest of the diagonal. r is z over the
     diagonal, in iterations: of z and the quotient, both rounded, it is off by a unit in the last place at most. Warps whose rows have a diagonal that is 0 or far from 1 somewhere, so that z may not say what r is, have r in device memory, in the work.

   Memory traffic
     An iteration, 7-point 101^3 (n rows): z of 0.44 n rows written, which others multiply by, and 0.53 n copied to windows: 8 MB through L2, 1.6 us at 5.3 TB/s; a product reads 8 bytes a nonzero
     and the slots from shared memory, update 16 bytes a row, x 16: 96 MB, 3 us at 128 bytes a cycle and multiprocessor. x that is not there, or values of entries, come from device memory: 16 n bytes in a barrier's time, 8 a nonzero. With a
     preconditioner 8 bytes a row more: 7-point 101^3 6 MB of shared memory, and 2 MB from device memory.

   References
     tccgstreamedsingle.cu, ksptcwindowed.cuh
*/
#include "tccgwindowed.cuh"

using namespace tccgwindowed;

namespace
{
struct Held {
  Rows w, p;
  bool quotients; /* the warp has r from z */
};

/* z / d for d far from the ends of the range of numbers: what compilers make of a quotient calls a function for those, which costs registers everywhere. Infinity becomes NaN */
__device__ __forceinline__ double Quotient(double z, double d)
{
  double y, q;

  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d)); /* off by 2^-20 or so, of which each of the next two steps makes the square */
  y = fma(y, fma(-d, y, 1.0), y);
  q = z * y;
  return fma(y, fma(-d, q, z), q);
}

/* For the first iteration to form z + 0 p and A z + 0 w, whatever p and w hold */
template <bool scaled>
__device__ __forceinline__ void Load(const Windowed &P, const Share &own, Held &held)
{
  const double least = 0x1p-128;
  const bool   first = P.chunk.first == 0;
  bool         may   = scaled;

  LoadShared<scaled>(P, own, [&](int row) { return P.v.z[row]; });
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    const double d = fabs(ScaleOf<scaled>(P, row));

    held.w[round][g] = !first && row.is ? P.v.w[row.row] : 0.0;
    held.p[round][g] = !first && row.is ? P.v.p[row.row] : 0.0;
    may              = may && d >= least && d <= 1.0 / least;
  });
  held.quotients = __all_sync(AIJTC_ALL_LANES, may);
  own.publish(Kept(P, 0));
  if (!scaled || held.quotients) return;
  own.forRows([&](int, int, const KSPTCWindowRow &row) {
    if (row.is) Kept(P, 1)[row.row] = P.v.r[row.row];
  });
}

/* updated: r is another one than before the call */
template <bool scaled>
__device__ __forceinline__ void Store(const Windowed &P, const Share &own, const Held &held, bool updated)
{
  StoreShared(P, own);
  own.forRows([&](int round, int g, const KSPTCWindowRow &row) {
    if (!row.is) return;
    const double z = own.u[row.place];

    P.v.w[row.row]                    = held.w[round][g];
    P.v.p[row.row]                    = held.p[round][g];
    (scaled ? P.v.z : P.v.r)[row.row] = z;
    if (scaled && updated) P.v.r[row.row] = held.quotients ? Quotient(z, ScaleOf<scaled>(P, row)) : Kept(P, 1)[row.row];
  });
}

/* w and p: returns this thread's share of p.w */
template <bool valued>
__device__ __forceinline__ double Multiply(const Share &own, Held &held, double b, unsigned turn)
{
  double pw = 0.0;

  own.forSlices([&](int round) {
    RowSums<GROUPS> rows;

    own.await(round, turn);
    own.multiply<valued>(round, rows);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const KSPTCWindowRow row = own.row(round, g);
      double              &w = held.w[round][g], &p = held.p[round][g];

      w  = KSPTCCombine(rows.sum[g], w, b);
      p  = KSPTCCombine(row.is ? own.u[row.place] : 0.0, p, b);
      pw = fma(p, w, pw);
    }
  });
  return pw;
}

/* r, z. quotients: r is z over the diagonal. Without preconditioner z is r */
template <bool scaled, bool quotients>
__device__ __forceinline__ void UpdateRows(const Windowed &P, const Share &own, const Held &held, double a, double sum[])
{
  Rows before, scale;

  ForRowsScaled<scaled>(
    P, own,
    [&](int round, int g, const KSPTCWindowRow &row, double d) {
      scale[round][g]  = d;
      before[round][g] = !row.is ? 0.0 : scaled && !quotients ? Kept(P, 1)[row.row] : own.u[row.place];
    },
    [&](int round, int g, const KSPTCWindowRow &row) {
      const double d = scale[round][g], r = fma(-a, held.w[round][g], quotients ? Quotient(before[round][g], d) : before[round][g]), z = r * d;

      if (row.is) own.u[row.place] = z;
      if (row.is && scaled && !quotients) Kept(P, 1)[row.row] = r;
      AddTested<scaled>(P, r, z, sum);
    });
}

template <bool scaled>
__device__ __forceinline__ void Update(const Windowed &P, const Share &own, const Held &held, double a, double sum[])
{
  if constexpr (scaled) {
    if (held.quotients) UpdateRows<true, true>(P, own, held, a, sum);
    else UpdateRows<true, false>(P, own, held, a, sum);
  } else UpdateRows<false, false>(P, own, held, a, sum);
  own.publish(Kept(P, 0));
}

template <bool scaled, bool valued>
__global__ void __launch_bounds__(KSPTC_WINDOWED_THREADS, 1) SingleKernel(const __grid_constant__ Windowed P)
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

    own.request(Kept(P, 0));
    sum[0] = Multiply<valued>(own, held, told.one, turn++);
    alive  = barrier.sum(sum, shared.one, (int)it + 1, [&](const double total[]) {
      if (threadIdx.x) return;
      TCCGEndCarried(s, total[0], it == 0);
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
    const auto follow = [&]() { Follow(own, a, [&](int round, int g, const KSPTCWindowRow &) { return held.p[round][g]; }); };
    alive             = SumAndFollow<scaled, true>(P, barrier, sum, shared, it, derive, follow);
  }
  if (!KSPTCSettles(P, barrier, it, alive)) return;
  if (began) Store<scaled>(P, own, held, it > P.chunk.first);
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace

const void *tccgwindowed::WindowedSingleKernel(bool scaled, bool valued)
{
  if (valued) return scaled ? (const void *)SingleKernel<true, true> : (const void *)SingleKernel<false, true>;
  return scaled ? (const void *)SingleKernel<true, false> : (const void *)SingleKernel<false, false>;
}
