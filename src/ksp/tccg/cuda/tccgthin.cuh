/*
   Method
     The iterations of tccgresident.cuh in thin blocks, for matrices of more rows, or with more ghosts, than blocks have room for with all vectors: of its rows a block has in shared memory what products multiply by, p, alone, and
     of A p, r, x and a diagonal preconditioner, in this order, as much as there is room for, before the matrix; the rest of them is in device memory, which is L2 as far as there is room; z is made of r where it is needed.
     Of its ghosts a block has p, too, and nothing else: direct publishes p of the rows that are some block's ghost, and then fetches that of its own ghosts, before the product.

   Layout
     In shared memory p of a block's rows and behind it that of its ghosts. In device memory by rows of the form: A p, r, x, (the diagonal), [m] each

   Memory traffic
     An iteration, a row: A p written and read, r read twice and written, x read and written, 56 bytes of which blocks may have some, 16 for the diagonal, 16 published; the slices that are not held, 10 bytes a nonzero; 16 a
     ghost, in sectors of 32. A million nodes of a tetrahedral mesh, 15 a row, 0.9 ghosts a row: 140 + 72 + 29 MB, 56 us at 4.3 TB/s

   References
     tccgresident.cuh
*/
#pragma once

#include "tccgresident.cuh"

namespace tccgresident
{
constexpr int BATCH = 4; /* rows of a thread that are loaded at once */

template <Kind preconditioner>
struct ThinShare : KSPTCShare {
  static constexpr Kind kind    = preconditioner;
  static constexpr bool in_part = true, scaled = kind != PLAIN, thin = true;
  static_assert(kind != PROJECTED, "thin blocks keep no z");

  double *p;
  double *kept; /* the vectors in device memory, of all blocks */
  int     m;

  __device__ __forceinline__ ThinShare(const Problem &P, double *memory) : KSPTCShare(P.A, TCCGThinVectorsOfBlock(scaled), memory), p(vector), kept(P.kept), m(P.A.m) { }

  /* Of row k */
  __device__ __forceinline__ double &w(int k) const { return of<0>(k); }
  __device__ __forceinline__ double &r(int k) const { return of<1>(k); }
  __device__ __forceinline__ double &x(int k) const { return of<2>(k); }
  __device__ __forceinline__ double &d(int k) const { return of<3>(k); }

private:
  template <int vector_in_memory>
  __device__ __forceinline__ double &of(int k) const
  {
    const int at = vector_in_memory * rows + k;

    return at < mores ? more[at] : kept[vector_in_memory * m + first + k];
  }
};

template <Kind kind>
__device__ __forceinline__ void Load(const Problem &P, const ThinShare<kind> &own)
{
  const bool first = P.chunk.first == 0;

  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.p[k] = first ? 0.0 : P.v.p[row];
    own.r(k) = P.v.r[row];
    own.x(k) = P.v.x[row];
    if constexpr (own.scaled) own.d(k) = P.v.diagonal[row];
  });
  if (threadIdx.x == 0) own.p[own.rows + own.ghosts] = 0.0;
}

template <Kind kind>
__device__ __forceinline__ void Store(const Problem &P, const ThinShare<kind> &own)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    const double r = own.r(k);

    P.v.x[row] = own.x(k);
    P.v.r[row] = r;
    P.v.p[row] = own.p[k];
    if constexpr (own.scaled) P.v.z[row] = r * own.d(k);
  });
}

/* p, published for the next barrier's tag, and that of the ghosts */
template <Kind kind>
__device__ __forceinline__ bool Direct(const Problem &P, const ThinShare<kind> &own, double b, double, const Barrier &barrier, PetscInt it)
{
  double r[BATCH], d[BATCH];

  own.template forRowBatches<BATCH>(
    [&](int n, int k) {
      r[n] = own.r(k);
      d[n] = own.scaled ? own.d(k) : 1.0;
    },
    [&](int n, int k) {
      const double p = KSPTCCombine(own.scaled ? r[n] * d[n] : r[n], own.p[k], b);

      own.p[k] = p;
      if (own.isShown(k)) PetscTCPublish(P.published + own.first + k, p, barrier.next());
    });
  return __syncthreads_and(KSPTCFetchGhosts(P.published, own, own.p + own.rows, barrier.next(), (int)threadIdx.x, KSPTC_THREADS, barrier.patience(), it));
}

/* w: returns this thread's share of p.w */
template <Kind kind>
__device__ __forceinline__ double Multiply(const Problem &P, const ThinShare<kind> &own)
{
  double pw = 0.0;

  KSPTCMult<true>(P.A, own, own.p, [&](int k, double w) {
    own.w(k) = w;
    pw       = fma(own.p[k], w, pw);
  });
  return pw;
}

/* x, r: adds to sum[] what Update() of other blocks does */
template <Kind kind>
__device__ __forceinline__ void Update(const Problem &P, const ThinShare<kind> &own, double a, double, uint64_t, double sum[])
{
  double w[BATCH], r[BATCH], x[BATCH], d[BATCH];

  own.template forRowBatches<BATCH>(
    [&](int n, int k) {
      w[n] = own.w(k);
      r[n] = own.r(k);
      x[n] = own.x(k);
      d[n] = own.scaled ? own.d(k) : 1.0;
    },
    [&](int n, int k) {
      const double now = fma(-a, w[n], r[n]);

      own.x(k) = fma(a, own.p[k], x[n]);
      own.r(k) = now;
      if constexpr (own.scaled) TCCGAddTested(P.chunk.test.norm, now, now * d[n], sum);
      else sum[0] = fma(now, now, sum[0]);
    });
}

/* Nothing of the ghosts changes in an update */
template <Kind kind>
__device__ __forceinline__ bool Fetch(const Problem &, const ThinShare<kind> &, uint64_t, int, int, const PetscTCPatience &, PetscInt)
{
  return true;
}
} // namespace tccgresident
