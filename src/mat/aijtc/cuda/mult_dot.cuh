/*
   The dot products that go with a product: w . z and z . z, and for another vector u also u . z and u . w, taken while z = A x is still in registers.

   Method
     A lane adds the terms of the rows that it stores, a warp adds its lanes by shuffles, a block its warps; the block's sums go to device memory. The block that arrives last of a group of
     AIJTC_DOT_GROUP blocks adds theirs, the one that arrives last of all groups adds the groups'. Who arrives last is left to chance, the order of every sum is not: the same bits every run.
     Groups keep the last block's work short: of 32,768 blocks it adds 128 and 256 numbers. Where a kernel has few blocks the last one of all adds them at once, which has a way through L2 less.

   Layout
     partial[K b .. K b + K - 1]: the K sums of block b, 2 or 4; behind all blocks' those of the groups. arrived[0]: groups, or few blocks; arrived[1 + g]: blocks of group g; all zero between products.
     The blocks of all launches of a product are numbered through, so that the last of any launch may finish.

   Memory traffic
     8 bytes a row for w, none if it is x (L1 or L2 has it; swept planes have it in shared memory); 8 for u; 16 K bytes a block, written and read once, in L2. Beside a product and a separate dot product of 16,777,216 rows this saves 268 MB, 62 us at 4.3 TB/s.
*/
#pragma once

#include <../src/mat/aijtc/cuda/aijtcslots.cuh>
#include <petsctc/private/aijtclayout.h>
#include <../src/parts/cuda/arrival.cuh>

constexpr int AIJTC_WARPS     = 4;                         /* of a block, but for those that take runs of slices (mult_rows.cu), gather x or sweep planes */
constexpr int AIJTC_DOT_GROUP = AIJTC_LANES * AIJTC_WARPS; /* no block has fewer threads */

constexpr int AIJTC_DOT_FEW = 4 * AIJTC_DOT_GROUP; /* so few blocks are no groups */

constexpr int AIJTC_DOTS = 4; /* at most */

/* w NULL: no dot products; u NULL: two */
struct DotView {
  const PetscScalar *w, *u;
  PetscScalar       *partial;
  unsigned          *arrived;
  PetscScalar       *result;
  unsigned           first, blocks; /* number of this launch's first block; blocks of all launches */

  __host__ __device__ __forceinline__ int count() const { return !w ? 0 : (u ? AIJTC_DOTS : 2); }
};

/* Dynamic shared memory of a block */
inline size_t AIJTCDotBytes(const DotView &dots, unsigned warps)
{
  return dots.count() * sizeof(PetscScalar) * AIJTC_LANES * warps;
}

/* A thread's sums stay in shared memory while it works on slices: registers are what limits a product */
template <int WARPS = AIJTC_WARPS>
class RowDots {
public:
  __device__ __forceinline__ explicit RowDots(const DotView &dots) : dots_(dots)
  {
    for (int k = 0; k < dots_.count(); k++) own(k) = 0.0;
  }

  /* What a thread adds of a few rows, in registers. K: 2 or 4 sums */
  template <int K>
  struct Terms {
    PetscScalar sum[K] = {};

    __device__ __forceinline__ void add(PetscScalar w, PetscScalar z, PetscScalar u)
    {
      sum[0] = fma(w, z, sum[0]);
      sum[1] = fma(z, z, sum[1]);
      if constexpr (K == AIJTC_DOTS) {
        sum[2] = fma(u, z, sum[2]);
        sum[3] = fma(u, w, sum[3]);
      }
    }
  };

  template <int K>
  __device__ __forceinline__ void add(const Terms<K> &terms) const
  {
#pragma unroll
    for (int k = 0; k < K; k++) own(k) += terms.sum[k];
  }
  /* Rows of z, -1: none. All of w and u is requested before any of it is waited for: to the compiler sums in shared memory may lie anywhere */
  template <int R>
  __device__ __forceinline__ void add(const int (&row)[R], const PetscScalar (&z)[R]) const
  {
    if (!dots_.w) return;
    if (dots_.u) addRows<R, AIJTC_DOTS>(row, z);
    else addRows<R, 2>(row, z);
  }
  __device__ __forceinline__ void add(int row, PetscScalar z) const
  {
    add<1>({row}, {z});
  }

  /* By all threads of the block, after their last add() */
  __device__ __forceinline__ void finish() const
  {
    if (!dots_.w) return;
    WaitForLaunchBefore(); /* a block without slices has not waited yet */
    if (dots_.u) finish<AIJTC_DOTS>();
    else finish<2>();
  }

private:
  template <int R, int K>
  __device__ __forceinline__ void addRows(const int (&row)[R], const PetscScalar (&z)[R]) const
  {
    PetscScalar w[R], u[R];
    Terms<K>    terms;

#pragma unroll
    for (int r = 0; r < R; r++) {
      w[r] = row[r] >= 0 ? dots_.w[row[r]] : 0.0;
      u[r] = K == AIJTC_DOTS && row[r] >= 0 ? dots_.u[row[r]] : 0.0;
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (row[r] >= 0) terms.add(w[r], z[r], u[r]);
    }
    add(terms);
  }

  template <int K>
  __device__ __forceinline__ void finish() const
  {
    __shared__ PetscScalar shared[K * WARPS];
    __shared__ bool        last;

    const DotView &dots  = dots_;
    const unsigned block = dots.first + blockIdx.x, group = block / AIJTC_DOT_GROUP, groups = (dots.blocks - 1) / AIJTC_DOT_GROUP + 1;
    const unsigned members = min((unsigned)AIJTC_DOT_GROUP, dots.blocks - group * AIJTC_DOT_GROUP);
    const bool     few     = dots.blocks <= AIJTC_DOT_FEW;
    PetscScalar   *of = dots.partial, *to = of + K * (size_t)block;
    PetscScalar    sum[K];

#pragma unroll
    for (int k = 0; k < K; k++) sum[k] = own(k);
    if (!few) {
      if (!leave<K>(to, dots.arrived + 1 + group, members, sum, shared, &last)) return;
#pragma unroll
      for (int k = 0; k < K; k++) sum[k] = 0.0;
      if (threadIdx.x < members) gather<K>(of + K * (size_t)(group * AIJTC_DOT_GROUP + threadIdx.x), sum);
      of += K * (size_t)dots.blocks;
      to = of + K * (size_t)group;
    }
    const unsigned last_of = few ? dots.blocks : groups;

    if (!leave<K>(to, dots.arrived, last_of, sum, shared, &last)) return;
#pragma unroll
    for (int k = 0; k < K; k++) sum[k] = 0.0;
    for (unsigned g = threadIdx.x; threadIdx.x < AIJTC_DOT_GROUP && g < last_of; g += AIJTC_DOT_GROUP) gather<K>(of + K * (size_t)g, sum); /* alike, whatever kernel the last block is of */
    fold<K>(sum, shared);
#pragma unroll
    for (int k = 0; k < K && threadIdx.x == 0; k++) dots.result[k] = sum[k];
  }

  __device__ __forceinline__ PetscScalar &own(int k) const
  {
    extern __shared__ PetscScalar sums[]; /* AIJTCDotBytes(): hardly anything is taken from L1 where there are no dot products */

    return sums[AIJTC_LANES * WARPS * k + threadIdx.x];
  }
  template <int K>
  __device__ __forceinline__ static void gather(const PetscScalar *from, PetscScalar sum[])
  {
#pragma unroll
    for (int k = 0; k < K; k++) sum[k] += __ldcg(from + k);
  }

  /* Thread 0: the sums of the block */
  template <int K>
  __device__ __forceinline__ static void fold(PetscScalar sum[], PetscScalar shared[])
  {
#pragma unroll
    for (int lanes = AIJTC_LANES / 2; lanes; lanes /= 2) {
#pragma unroll
      for (int k = 0; k < K; k++) sum[k] += __shfl_down_sync(AIJTC_ALL_LANES, sum[k], lanes);
    }
    __syncthreads(); /* whoever reads shared[] of the fold before is done */
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (threadIdx.x % AIJTC_LANES == 0) shared[WARPS * k + threadIdx.x / AIJTC_LANES] = sum[k];
    }
    __syncthreads();
    if (threadIdx.x) return;
#pragma unroll
    for (int k = 0; k < K; k++) {
      sum[k] = shared[WARPS * k];
#pragma unroll
      for (int warp = 1; warp < WARPS; warp++) sum[k] += shared[WARPS * k + warp];
    }
  }

  /* The block's sums to place `to`; true in all threads of the block that is the last of `members` to come */
  template <int K>
  __device__ __forceinline__ static bool leave(PetscScalar *to, unsigned *arrived, unsigned members, PetscScalar sum[], PetscScalar shared[], bool *last)
  {
    fold<K>(sum, shared);
    if (threadIdx.x == 0) {
#pragma unroll
      for (int k = 0; k < K; k++) __stcg(to + k, sum[k]);
      *last = PetscTCArriveLast(arrived, members);
    }
    __syncthreads();
    return *last;
  }

  const DotView &dots_;
};
