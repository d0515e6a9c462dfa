/*
   The dot products that go with a product: w . z and z . z, taken while z = A x is still in registers.

   Method
     A lane adds the terms of the rows that it stores, a warp adds its lanes by shuffles, a block its warps; the block's sums go to device memory. The block that arrives last of a group of
     AIJTC_DOT_GROUP blocks adds theirs, the one that arrives last of all groups adds the groups'. Who arrives last is left to chance, the order of every sum is not: the same bits every run.
     Groups keep the last block's work short: of 32,768 blocks it adds 128 and 256 numbers.

   Layout
     partial[2 b], [2 b + 1]: the sums of block b; behind all blocks' those of the groups. arrived[0]: groups; arrived[1 + g]: blocks of group g; all zero between products.
     The blocks of all launches of a product are numbered through, so that the last of any launch may finish.

   Memory traffic
     8 bytes a row for w, none if it is x (L1 or L2 has it; swept planes have it in shared memory); 32 bytes a block, written and read once, in L2. Beside a product and a separate dot product of 16,777,216 rows this saves 268 MB, 62 us at 4.3 TB/s.
*/
#pragma once

#include <petsctc/private/aijtcslots.cuh>
#include <petsctc/private/aijtclayout.h>
#include <petsctc/private/arrival.cuh>

constexpr int AIJTC_WARPS     = 4;                         /* of a block, but for those that take runs of slices (mult_rows.cu), gather x or sweep planes */
constexpr int AIJTC_DOT_GROUP = AIJTC_LANES * AIJTC_WARPS; /* no block has fewer threads */

/* w NULL: no dot products */
struct DotView {
  const PetscScalar *w;
  PetscScalar       *partial;
  unsigned          *arrived;
  PetscScalar       *result;
  unsigned           first, blocks; /* number of this launch's first block; blocks of all launches */
};

/* Dynamic shared memory of a block */
inline size_t AIJTCDotBytes(const DotView &dots, unsigned warps)
{
  return dots.w ? 2 * sizeof(PetscScalar) * AIJTC_LANES * warps : 0;
}

/* A thread's sums stay in shared memory while it works on slices: registers are what limits a product */
template <int WARPS = AIJTC_WARPS>
class RowDots {
public:
  __device__ __forceinline__ explicit RowDots(const DotView &dots) : dots_(dots)
  {
    if (dots_.w) own(0) = own(1) = 0.0;
  }

  /* What a thread adds of a few rows, in registers */
  struct Terms {
    PetscScalar wz = 0.0, zz = 0.0;

    __device__ __forceinline__ void add(PetscScalar w, PetscScalar z)
    {
      wz = fma(w, z, wz);
      zz = fma(z, z, zz);
    }
  };

  __device__ __forceinline__ bool        on() const { return dots_.w != nullptr; }
  __device__ __forceinline__ bool        of(const PetscScalar *x) const { return dots_.w == x; }
  __device__ __forceinline__ PetscScalar w(PetscInt row) const { return dots_.w[row]; }

  __device__ __forceinline__ void add(const Terms &terms) const
  {
    own(0) += terms.wz;
    own(1) += terms.zz;
  }
  /* Row `row` of z has been stored */
  __device__ __forceinline__ void add(PetscInt row, PetscScalar z) const
  {
    if (!dots_.w) return;
    own(0) = fma(dots_.w[row], z, own(0));
    own(1) = fma(z, z, own(1));
  }

  /* By all threads of the block, after their last add() */
  __device__ __forceinline__ void finish()
  {
    __shared__ PetscScalar sum[2 * WARPS];
    __shared__ bool        last;

    if (!dots_.w) return;
    WaitForLaunchBefore(); /* a block without slices has not waited yet */
    const DotView &dots  = dots_;
    const unsigned block = dots.first + blockIdx.x, group = block / AIJTC_DOT_GROUP, groups = (dots.blocks - 1) / AIJTC_DOT_GROUP + 1;
    const unsigned members = min((unsigned)AIJTC_DOT_GROUP, dots.blocks - group * AIJTC_DOT_GROUP);

    wz_ = own(0);
    zz_ = own(1);
    if (!leave(dots.partial + 2 * block, dots.arrived + 1 + group, members, sum, &last)) return;
    wz_ = zz_ = 0.0;
    if (threadIdx.x < members) gather(dots.partial + 2 * (size_t)(group * AIJTC_DOT_GROUP + threadIdx.x));
    if (!leave(dots.partial + 2 * ((size_t)dots.blocks + group), dots.arrived, groups, sum, &last)) return;
    wz_ = zz_ = 0.0;
    for (unsigned g = threadIdx.x; threadIdx.x < AIJTC_DOT_GROUP && g < groups; g += AIJTC_DOT_GROUP) /* whatever kernel the last block is of */
      gather(dots.partial + 2 * ((size_t)dots.blocks + g));
    fold(sum);
    if (threadIdx.x == 0) {
      dots.result[0] = wz_;
      dots.result[1] = zz_;
    }
  }

private:
  __device__ __forceinline__ PetscScalar &own(int k) const
  {
    extern __shared__ PetscScalar sums[]; /* AIJTCDotBytes(): hardly anything is taken from L1 where there are no dot products */

    return sums[AIJTC_LANES * WARPS * k + threadIdx.x];
  }
  __device__ __forceinline__ void gather(const PetscScalar *from)
  {
    wz_ += __ldcg(from);
    zz_ += __ldcg(from + 1);
  }

  /* Thread 0: the sums of the block */
  __device__ __forceinline__ void fold(PetscScalar sum[])
  {
#pragma unroll
    for (int lanes = AIJTC_LANES / 2; lanes; lanes /= 2) {
      wz_ += __shfl_down_sync(AIJTC_ALL_LANES, wz_, lanes);
      zz_ += __shfl_down_sync(AIJTC_ALL_LANES, zz_, lanes);
    }
    __syncthreads(); /* whoever reads sum[] of the fold before is done */
    if (threadIdx.x % AIJTC_LANES == 0) {
      sum[threadIdx.x / AIJTC_LANES]         = wz_;
      sum[WARPS + threadIdx.x / AIJTC_LANES] = zz_;
    }
    __syncthreads();
    if (threadIdx.x) return;
    wz_ = sum[0];
    zz_ = sum[WARPS];
#pragma unroll
    for (int warp = 1; warp < WARPS; warp++) {
      wz_ += sum[warp];
      zz_ += sum[WARPS + warp];
    }
  }

  /* The block's sums to place `to`; true in all threads of the block that is the last of `members` to come */
  __device__ __forceinline__ bool leave(PetscScalar *to, unsigned *arrived, unsigned members, PetscScalar sum[], bool *last)
  {
    fold(sum);
    if (threadIdx.x == 0) {
      __stcg(to, wz_);
      __stcg(to + 1, zz_);
      *last = PetscTCArriveLast(arrived, members);
    }
    __syncthreads();
    return *last;
  }

  const DotView &dots_;
  PetscScalar    wz_, zz_;
};
