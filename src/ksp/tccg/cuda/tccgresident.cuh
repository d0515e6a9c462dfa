/*
   Method
     Iterations of conjugate gradients in one cooperative kernel, one block a multiprocessor. A block has its rows of the resident form (tccgform.h) and the vectors of these rows in shared memory for
     the whole call; in device memory is what others need of them, the pair (z, p) of every row. An iteration has two barriers:

       gather   w <- A p, with p = z + b p formed anew of every gathered pair, so that no barrier stands between the direction and its product; p of the block's own rows in shared memory alone.
                p.w                                                                                                                                             barrier with a sum
       update   x, r, z, and the pairs; r.r, z.r, z.z; test of the norm, record                                                                                barrier with three sums, one if z is r

     Pairs are read between the second barrier and the next first one, and written between the first and the second: one array does. Thread 0 of every block derives the scalars from sums of the same
     bits, by the functions of the steps (tccgsteps.h): all leave the loop together.

     A warp takes SLICES slices at a time, and BATCH slots of each: all columns from shared memory, then all pairs, then the sums, slot by slot. So a row of no more than BATCH entries a lane waits for
     device memory (L2) once.

   Layout
     Shared memory of a block: values, vectors x, r, p, w (and the diagonal and z), columns, starts of slices; tccgform.h. A vector's element is that of the row by its number within the block.
     pairs: double2 [m].

   Memory traffic
     A call: the form once, the vectors twice. An iteration: 16 bytes gathered for every nonzero, by L1 as far as neighbouring rows share columns, and 16 bytes a row stored, all in L2. 7-point 43^3:
     8.9 MB and 1.3 MB, and 0.8 MB a look at the barrier's records; latencies decide: gather and each barrier are 0.7 us or so where nothing is to be waited for.

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952;
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/sum_barrier.cuh>
#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

namespace tccgresident
{
constexpr int THREADS = TCCG_THREADS;
constexpr int WARPS   = THREADS / TCCG_LANES;
constexpr int SLICES  = 2; /* of a warp at a time, BATCH slots of each in flight: 2 x 8 pairs are 64 registers */
constexpr int BATCH   = 8;
constexpr int SUMS    = 3; /* of an iteration's second reduction, with a preconditioner */

using Barrier = SumBarrier<TCCG_BLOCKS, SUMS>;

static_assert((WARPS & (WARPS - 1)) == 0 && WARPS >= 4, "the warps' sums are folded by halves, or in fours");

/* What the kernel is told */
struct Problem {
  TCCGForm           A;
  TCCGVectors        v;
  TCCGScalars       *scalars;
  TCCGChunk          chunk;
  double2           *pairs;
  TCCGScalars       *records; /* in device memory, until the call ends: a store to the host's memory would be waited for at the next barrier */
  PetscTCSumRecord  *sums;
  uint64_t          *tag;
  PetscTCLateBlock  *late;
  unsigned long long bound;
};

/* p = z + b p */
__device__ __forceinline__ double Direction(double2 zp, double b)
{
  return fma(b, zp.y, zp.x);
}

/* A block's share of the problem, in shared memory */
struct Share {
  int      first, rows; /* in the matrix */
  int      slices;
  double  *value, *x, *r, *p, *w, *d, *z; /* z is r, and d nothing, without a preconditioner */
  int32_t *column, *start;                /* start[]: places within the block */

  __device__ __forceinline__ Share(const TCCGForm &A, bool scaled, double *memory)
  {
    const int b = (int)blockIdx.x, slice = __ldg(A.block_slice + b), places = __ldg(A.start + __ldg(A.block_slice + b + 1)) - __ldg(A.start + slice);

    first  = __ldg(A.block_row + b);
    rows   = __ldg(A.block_row + b + 1) - first;
    slices = __ldg(A.block_slice + b + 1) - slice;
    value  = memory;
    x      = value + places;
    r      = x + rows;
    p      = r + rows;
    w      = p + rows;
    d      = w + rows;
    z      = scaled ? d + rows : r;
    column = (int32_t *)(scaled ? z + rows : d);
    start  = column + places;
  }
};

/* to[] <- from[], N times 16 bytes of a thread in flight. Both begin and end on 16 bytes: places come in warps, and a row has an even number of vectors */
template <class T>
__device__ __forceinline__ void CopyPlaces(T *to, const T *from, int places)
{
  constexpr int N    = 4;
  const int     quad = places / (int)(sizeof(int4) / sizeof(T));

  for (int k = threadIdx.x; k < quad; k += N * THREADS) {
    int4 part[N];

#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * THREADS < quad) part[n] = __ldg((const int4 *)from + k + n * THREADS);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * THREADS < quad) ((int4 *)to)[k + n * THREADS] = part[n];
    }
  }
}

/* Shared memory and this block's pairs, for the first iteration to form z + 0 p, whatever p holds */
template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, const Share &own)
{
  const int first_slice = __ldg(P.A.block_slice + blockIdx.x), first_place = __ldg(P.A.start + first_slice), places = __ldg(P.A.start + first_slice + own.slices) - first_place;

  for (int s = threadIdx.x; s <= own.slices; s += THREADS) own.start[s] = __ldg(P.A.start + first_slice + s) - first_place;
  CopyPlaces(own.value, P.A.value + first_place, places);
  CopyPlaces(own.column, P.A.column + first_place, places);
  for (int k = threadIdx.x; k < own.rows; k += THREADS) {
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
  for (int k = threadIdx.x; k < own.rows; k += THREADS) {
    P.v.x[own.first + k] = own.x[k];
    P.v.r[own.first + k] = own.r[k];
    P.v.p[own.first + k] = own.p[k];
    if constexpr (scaled) P.v.z[own.first + k] = own.z[k];
  }
}

/* The records of iterations first + 1 .. it, by one block */
__device__ __forceinline__ void StoreRecords(const Problem &P, PetscInt it)
{
  for (PetscInt k = P.chunk.first + 1 + threadIdx.x; k <= it; k += THREADS) P.chunk.records[k % PETSCTC_RECORDS] = P.records[k % PETSCTC_RECORDS];
}

/* w and the new p of the block's rows: returns this thread's share of p.w */
__device__ __forceinline__ double Gather(const Problem &P, const Share &own, double b)
{
  const double2 *pairs = P.pairs;
  const int      warp = threadIdx.x / TCCG_LANES, lane = threadIdx.x % TCCG_LANES, lanes = P.A.lanes, rows = TCCG_LANES / lanes;
  double         pw = 0.0;

  for (int s = warp; s < own.slices; s += SLICES * WARPS) {
    int    place[SLICES], end[SLICES], slots = 0;
    double sum[SLICES];

#pragma unroll
    for (int q = 0; q < SLICES; q++) {
      const int  slice = s + q * WARPS;
      const bool is    = slice < own.slices;

      place[q] = is ? own.start[slice] + lane : 0;
      end[q]   = is ? own.start[slice + 1] : 0;
      sum[q]   = 0.0;
      slots    = max(slots, (end[q] - place[q] + lane) / TCCG_LANES);
    }
    for (int t = 0; t < slots; t += BATCH) {
      int     column[SLICES][BATCH];
      double2 pair[SLICES][BATCH];

#pragma unroll
      for (int q = 0; q < SLICES; q++) {
#pragma unroll
        for (int k = 0; k < BATCH; k++) column[q][k] = place[q] + TCCG_LANES * k < end[q] ? own.column[place[q] + TCCG_LANES * k] : -1;
      }
#pragma unroll
      for (int q = 0; q < SLICES; q++) {
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
          if (column[q][k] >= 0) pair[q][k] = pairs[column[q][k]];
        }
      }
#pragma unroll
      for (int q = 0; q < SLICES; q++) {
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
          if (column[q][k] >= 0) sum[q] = fma(own.value[place[q] + TCCG_LANES * k], Direction(pair[q][k], b), sum[q]);
        }
        place[q] += TCCG_LANES * BATCH;
      }
    }
#pragma unroll
    for (int q = 0; q < SLICES; q++) {
      const int row = (s + q * WARPS) * rows + lane / lanes;

      for (int distance = 1; distance < lanes; distance *= 2) sum[q] += __shfl_xor_sync(0xffffffffu, sum[q], distance);
      if (row < own.rows && lane % lanes == 0) {
        const double p = Direction(make_double2(own.z[row], own.p[row]), b);

        own.p[row] = p;
        own.w[row] = sum[q];
        pw         = fma(p, sum[q], pw);
      }
    }
  }
  return pw;
}

/* x, r, z of the block's rows, and the pairs: adds r.r, z.r, z.z to sum[], the first alone if z is r */
template <bool scaled>
__device__ __forceinline__ void Update(const Problem &P, const Share &own, double a, double sum[])
{
  for (int k = threadIdx.x; k < own.rows; k += THREADS) {
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
  const PetscTCTest      test   = TCCGTestAt(P.chunk, it);
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
__global__ void __launch_bounds__(THREADS, 1) ResidentKernel(const __grid_constant__ Problem P)
{
  using One  = GridReduce<1, tensor, THREADS>;
  using Many = GridReduce<scaled ? SUMS : 1, tensor, THREADS>;
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
  StoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}
} // namespace tccgresident
