/*
   Method
     The iterations of tcbcgsresident.cuh in thin blocks, for matrices of more rows, or with more ghosts, than blocks have room for with all vectors: of its rows a block has in shared memory what products multiply by, p and r
     alone, and of v as much as there is room for, before the matrix: an iteration reads v twice, and writes it; x, rp, t and the rest of v are in device memory, which is L2 as far as there is room. Only rows that are some block's
     ghost are published. Products ask for what they need of a slice's rows, rp and the diagonal, before they add it.

   Layout
     Vectors of a block in shared memory: p, r, and behind each of them those of the ghosts; v of the ghosts. In device memory by rows of the form, a block's one after the other: x, rp, v, t, (the diagonal)

   Memory traffic
     An iteration: 48 bytes a row: t written and read, rp read twice, x read and written; 24 a row whose v has no room: written, and read twice; the slices that are not held, twice; 32 bytes a ghost. A road network of 1.4 million
     rows, 0.05 ghosts each, with room for 0.4 of v: 107 MB with its 9 MB of matrix, 20 us at the 5.3 TB/s of L2, where 50 MB stay for the most part, 25 us at 4.3 TB/s

   References
     tcbcgsresident.cuh
*/
#pragma once

#include "tcbcgsresident.cuh"

namespace tcbcgsresident
{
/* What does not come from shared memory is loaded for so many rows at once */
constexpr int BATCH = 4;

template <bool scaled>
struct ThinShare : KSPTCShare {
  static constexpr bool in_part = true;

  double *p, *r, *gp, *gr, *gv;
  double *kept; /* the vectors in device memory, of all blocks */
  int     m;

  __device__ __forceinline__ ThinShare(const Problem &P, bool, double *memory) : KSPTCShare(P.A, TCBCGSThinVectorsOfBlock(), memory)
  {
    p    = vector;
    r    = p + rows + ghosts + 1;
    gv   = r + rows + ghosts + 1;
    gp   = p + rows;
    gr   = r + rows;
    kept = P.kept;
    m    = P.A.m;
  }
  /* Of row k. Their places are computed from what a kernel has in its parameters: five pointers are ten registers */
  __device__ __forceinline__ double &x(int k) const { return kept[first + k]; }
  __device__ __forceinline__ double &rp(int k) const { return kept[first + m + k]; }
  __device__ __forceinline__ double &v(int k) const { return k < mores ? more[k] : kept[first + 2 * m + k]; }
  __device__ __forceinline__ double &t(int k) const { return kept[first + 3 * m + k]; }
  __device__ __forceinline__ double &d(int k) const { return kept[first + 4 * m + k]; }
};

template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, const ThinShare<scaled> &own)
{
  KSPTCLoadMatrix(P.A, own);
  own.forMatrixRows(P.A, [&](int k, int row) {
    own.p[k]  = P.v.p[row];
    own.r[k]  = P.v.r[row];
    own.x(k)  = P.v.x[row];
    own.rp(k) = P.v.rp[row];
    own.v(k)  = P.v.v[row];
    if constexpr (scaled) own.d(k) = P.v.diagonal[row];
  });
  if (threadIdx.x == 0) own.gp[own.ghosts] = own.gr[own.ghosts] = 0.0;
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    own.gp[g] = P.v.p[row];
    own.gr[g] = P.v.r[row];
    own.gv[g] = P.v.v[row];
  });
}

template <bool scaled>
__device__ __forceinline__ void Store(const Problem &P, const ThinShare<scaled> &own, double stop)
{
  own.forMatrixRows(P.A, [&](int k, int row) {
    P.v.x[row] = own.x(k);
    P.v.r[row] = own.r[k];
    P.v.p[row] = own.p[k];
    P.v.v[row] = own.v(k);
    if (stop == PETSCTC_STOP_D2_ZERO) P.v.s[row] = own.r[k];
  });
}

/* p */
template <bool scaled>
__device__ __forceinline__ void Direct(const Problem &, const ThinShare<scaled> &own, double omega, double beta)
{
  double v[BATCH];

  own.template forRowBatches<BATCH>([&](int n, int k) { v[n] = own.v(k); }, [&](int n, int k) { own.p[k] = Direction(own.r[k], own.p[k], v[n], omega, beta); });
  own.forGhosts([&](int g) { own.gp[g] = Direction(own.gr[g], own.gp[g], own.gv[g], omega, beta); });
}

/* s, where r was */
template <bool scaled>
__device__ __forceinline__ void Half(const Problem &, const ThinShare<scaled> &own, double alpha)
{
  double v[BATCH];

  own.template forRowBatches<BATCH>([&](int n, int k) { v[n] = own.v(k); }, [&](int n, int k) { own.r[k] = KSPTCCombine(own.r[k], v[n], -alpha); });
  own.forGhosts([&](int g) { own.gr[g] = KSPTCCombine(own.gr[g], own.gv[g], -alpha); });
}

/* v, published for this tag: returns this thread's share of v.rp */
template <bool scaled>
__device__ __forceinline__ double First(const Problem &P, const ThinShare<scaled> &own, uint64_t tag)
{
  double d1 = 0.0;

  KSPTCMultReady<true>(
    P.A, own, own.p, [&](int k) { return make_double2(own.rp(k), scaled ? own.d(k) : 1.0); },
    [&](int k, double sum, double2 of_row) {
      const double v = scaled ? sum * of_row.y : sum;

      own.v(k) = v;
      d1       = fma(v, of_row.x, d1);
      if (own.isShown(k)) PetscTCPublish(P.published + own.first + k, v, tag);
    });
  return d1;
}

/* t: adds t.s, t.t to sum[] */
template <bool single, bool scaled>
__device__ __forceinline__ void Second(const Problem &P, const ThinShare<scaled> &own, uint64_t, double sum[])
{
  static_assert(!single, "thin blocks have classic recurrences");
  KSPTCMultReady<true>(
    P.A, own, own.r, [&](int k) { return scaled ? own.d(k) : 1.0; },
    [&](int k, double row, double d) {
      const double t = scaled ? row * d : row;

      own.t(k) = t;
      TCBCGSAddStabilize<false, false>(0.0, t, own.r[k], 0.0, sum);
    });
}

/* x, r, published for this tag: adds r.r, r.rp to sum[] */
template <bool scaled>
__device__ __forceinline__ void Update(const Problem &P, const ThinShare<scaled> &own, double alpha, double omega, uint64_t tag, double sum[])
{
  double t[BATCH], rp[BATCH], x[BATCH];

  own.template forRowBatches<BATCH>(
    [&](int n, int k) {
      t[n]  = own.t(k);
      rp[n] = own.rp(k);
      x[n]  = own.x(k);
    },
    [&](int n, int k) {
      const double s = own.r[k], r = fma(-omega, t[n], s);

      sum[0]   = fma(r, r, sum[0]);
      sum[1]   = fma(r, rp[n], sum[1]);
      own.x(k) = fma(alpha, own.p[k], fma(omega, s, x[n]));
      own.r[k] = r;
      if (own.isShown(k)) PetscTCPublish(P.published + P.A.m + own.first + k, r, tag);
    });
}
} // namespace tcbcgsresident
