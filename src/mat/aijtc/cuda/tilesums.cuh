/*
   What the three row classes share: how a warp goes through tiles, and how the row sums of tiles are formed, on the Tensor Core or on CUDA cores.

   Method
     Lane l owns slot l of every tile: value a and gathered b = x[col]. A Sums object takes (a, b) of one tile after the other and then tells
       row(lane, i)  the sum of tile row i over the tiles so far, to each lane that of the i it asks for
       total(lane)   the sum of all rows, to all lanes
     TensorSums feeds a to A and b to B of the MMA: entry (i, i) of the accumulator is row i's sum. Its total multiplies twice by ones, as the paper's dot product
     does. CoreSums keeps one partial sum a lane and adds lanes by shuffles; everything else (loads, tiles, launch) is the same, so the difference between the two
     is the Tensor Core's share.

     All 32 lanes of a warp must call together. The order of summation depends on nothing but the layout.

   Memory traffic
     12 bytes a slot, read once and past the caches (x should stay there). AIJTC_TILES_AT_ONCE tiles are requested before the first is used: 3 KB a warp. 36 warps
     share a multiprocessor (mult.cuh): 132 x 110 KB = 14 MB in flight, four times 4.3 TB/s x 0.8 us.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <petsctc/private/mma_f64.cuh>

constexpr int      AIJTC_TILES_AT_ONCE = 8;
constexpr unsigned AIJTC_ALL_LANES     = 0xffffffffu;

class TensorSums {
public:
  __device__ __forceinline__ void add(PetscScalar a, PetscScalar b) { SM80_8x8x4_F64F64F64F64_TN::fma(d0_, d1_, a, b, d0_, d1_); }

  __device__ __forceinline__ PetscScalar row(int lane, int i) const { return __shfl_sync(AIJTC_ALL_LANES, own(lane), 4 * i + i / 2); }

  __device__ __forceinline__ PetscScalar total(int lane) const
  {
    const PetscScalar diagonal = lane % 4 == lane / 8 ? own(lane) : 0.0; /* as B: row i / 2, column i holds row sum i, all else 0 */
    PetscScalar       pair0, pair1, sum, unused;

    SM80_8x8x4_F64F64F64F64_TN::fma(pair0, pair1, 1.0, diagonal, 0.0, 0.0);     /* every row holds the 8 row sums; */
    SM80_8x8x4_F64F64F64F64_TN::fma(sum, unused, pair0 + pair1, 1.0, 0.0, 0.0); /* as A: every row holds 4 sums of pairs */
    return sum;
  }

private:
  /* In lane 4 i + i / 2: entry (i, i) of the accumulator */
  __device__ __forceinline__ PetscScalar own(int lane) const { return lane & 4 ? d1_ : d0_; }

  PetscScalar d0_ = 0.0, d1_ = 0.0;
};

class CoreSums {
public:
  __device__ __forceinline__ void add(PetscScalar a, PetscScalar b) { s_ = fma(a, b, s_); }

  __device__ __forceinline__ PetscScalar row(int, int i) const
  {
    PetscScalar s = s_;

    s += __shfl_xor_sync(AIJTC_ALL_LANES, s, 1);
    s += __shfl_xor_sync(AIJTC_ALL_LANES, s, 2);
    return __shfl_sync(AIJTC_ALL_LANES, s, 4 * i);
  }

  __device__ __forceinline__ PetscScalar total(int) const
  {
    PetscScalar s = s_;

#pragma unroll
    for (int lanes = 1; lanes < AIJTC_TILE; lanes *= 2) s += __shfl_xor_sync(AIJTC_ALL_LANES, s, lanes);
    return s;
  }

private:
  PetscScalar s_ = 0.0;
};

/* U tiles, of which the first `tiles` exist, from this lane's slot of the first one: a[u], b[u] = 0 for a tile that does not exist and a slot without entry */
template <int U>
__device__ __forceinline__ void LoadTiles(const PetscScalar *val, const PetscInt *col, int tiles, const PetscScalar *__restrict__ x, PetscScalar (&a)[U], PetscScalar (&b)[U])
{
  PetscInt c[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    c[u] = u < tiles ? __ldcs(col + AIJTC_TILE * u) : -1;
    a[u] = u < tiles ? __ldcs(val + AIJTC_TILE * u) : 0.0;
  }
#pragma unroll
  for (int u = 0; u < U; u++) b[u] = c[u] < 0 ? 0.0 : __ldg(x + c[u]);
}

/* Calls add(t, a, b) for the tiles t = 0 .. tiles-1 that start at tile `first` */
template <class Add>
__device__ __forceinline__ void ForTiles(const AIJTCLayout &A, PetscCount first, int tiles, int lane, const PetscScalar *__restrict__ x, Add add)
{
  constexpr int      U   = AIJTC_TILES_AT_ONCE;
  const PetscScalar *val = A.val + (first * AIJTC_TILE + lane);
  const PetscInt    *col = A.col + (first * AIJTC_TILE + lane);
  PetscScalar        a[U], b[U];
  int                t = 0;

  for (; t + U <= tiles; t += U, val += AIJTC_TILE * U, col += AIJTC_TILE * U) { /* no guards in full batches */
    LoadTiles<U>(val, col, U, x, a, b);
#pragma unroll
    for (int u = 0; u < U; u++) add(t + u, a[u], b[u]);
  }
  if (t == tiles) return;
  LoadTiles<U>(val, col, tiles - t, x, a, b);
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (t + u < tiles) add(t + u, a[u], b[u]);
  }
}
