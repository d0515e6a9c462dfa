/*
   GridReduce<K>: K sums over all threads of a grid, in a fixed order, with one kernel launch. Device code, shared by all kernels that reduce.

   Method   Every thread comes with K private sums.
            warp   tensor: products with ones, as in the paper. The 32 private sums of a dot product as B and ones as A: the accumulator's columns hold the 8 sums of its columns, two in each lane. The
                   lanes' sums of these two as A and ones as B: every entry is the warp's sum. Operands are where the lanes have them: nothing is staged, and all lanes have the result.
                   core: five rounds of shuffles
            block  the warps' sums once more in the same way
            grid   every block leaves its sums in device memory. The block that arrives last, by a counter, adds the blocks' sums in the order of the blocks' numbers
                   (each thread those of its number modulo their number) and folds the threads' sums as above.
            The order depends on the grid's size alone, which the launcher derives from n. Each dot product has its own instructions, so a sum has the same bits in any company.
   Layout   warp[k][warp] in shared memory; partial[k * blocks + block] in device memory
   Memory   8 K blocks bytes written and read (K = 2, 528 blocks: 8 kB, in L2)
   References
            Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026 (all-ones operands);
            CUDA C++ Programming Guide, memory fence functions (the last block)
*/
#pragma once

#include <../src/parts/cuda/arrival.cuh>
#include <../src/parts/cuda/mma_f64.cuh>
#include <../src/vec/vecreduce.h>

template <int K, int Threads>
struct GridReduceShared {
  double warp[K > 0 ? K : 1][Threads / 32]; /* an array of no elements is not C++ */
  double total[K > 0 ? K : 1];
  bool   last;
};

template <int K, bool tensor, int Threads = 256>
struct GridReduce {
  static_assert(K >= 0 && K <= PETSCTC_MAX_DOTS, "more sums than a reduction has");

  static constexpr int threads = Threads; /* of a block */
  static constexpr int warps   = threads / 32;
  static constexpr int rows    = K > 0 ? K : 1;

  using Shared = GridReduceShared<K, Threads>;

  /* total[] <- the sums over the block, in all threads of warp 0. Between what other warps have done before and what warp 0 does after lies a __syncthreads() */
  __device__ __forceinline__ static void fold(const double sum[], Shared &shared, double total[])
  {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

#pragma unroll
    for (int k = 0; k < K; ++k) total[k] = sum[k];
    foldWarp<32>(total);
    if (lane == 0) {
#pragma unroll
      for (int k = 0; k < K; ++k) shared.warp[k][warp] = total[k];
    }
    __syncthreads();
    if (warp != 0) return;
#pragma unroll
    for (int k = 0; k < K; ++k) total[k] = lane < warps ? shared.warp[k][lane] : 0.0;
    foldWarp<(warps <= 8 ? 8 : warps <= 16 ? 16 : 32)>(total);
  }

  /* total[k] <- its sum over the first N lanes, a power of two; the others have 0. To all lanes; on CUDA cores to the first N */
  template <int N>
  __device__ __forceinline__ static void foldWarp(double total[])
  {
    if constexpr (tensor) {
      double even[rows], odd[rows];

#pragma unroll
      for (int k = 0; k < K; ++k) SM80_8x8x4_F64F64F64F64_TN::fma(even[k], odd[k], 1.0, total[k], 0.0, 0.0);
#pragma unroll
      for (int k = 0; k < K; ++k) SM80_8x8x4_F64F64F64F64_TN::fma(total[k], odd[k], even[k] + odd[k], 1.0, 0.0, 0.0);
    } else {
#pragma unroll
      for (int distance = N / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int k = 0; k < K; ++k) total[k] += __shfl_xor_sync(0xffffffffu, total[k], distance);
      }
    }
  }

  /* shared.total[] <- the same, visible to all threads */
  __device__ __forceinline__ static void block(const double sum[], Shared &shared)
  {
    double total[rows];

    fold(sum, shared, total);
    if (threadIdx.x == 0) {
#pragma unroll
      for (int k = 0; k < K; ++k) shared.total[k] = total[k];
    }
    __syncthreads();
  }

  /* True in one thread of the grid, when all blocks have come this far; total[] is then complete for it */
  __device__ static bool grid(const double sum[], double partial[], unsigned *arrived, Shared &shared)
  {
    if constexpr (K > 0) block(sum, shared);
    else __syncthreads(); /* what this block has read, it has read before it arrives */
    if (gridDim.x == 1) return threadIdx.x == 0;

    if (threadIdx.x == 0) {
      for (int k = 0; k < K; ++k) partial[k * gridDim.x + blockIdx.x] = shared.total[k];
      shared.last = PetscTCArriveLast(arrived, gridDim.x);
    }
    __syncthreads();
    if (!shared.last) return false;

    if constexpr (K > 0) {
      double s[K] = {};
      for (unsigned b = threadIdx.x; b < gridDim.x; b += threads) {
        for (int k = 0; k < K; ++k) s[k] += __ldcg(&partial[k * gridDim.x + b]);
      }
      block(s, shared);
    }
    return threadIdx.x == 0;
  }
};

/* GridReduce::grid() where how sums are folded is known when the kernel runs: a branch of all threads, in place of a second kernel */
template <int K>
__device__ __forceinline__ bool GridReduceBy(bool tensor, const double sum[], double partial[], unsigned *arrived, GridReduceShared<K, 256> &shared)
{
  if constexpr (K > 0) {
    if (tensor) return GridReduce<K, true>::grid(sum, partial, arrived, shared);
  }
  return GridReduce<K, false>::grid(sum, partial, arrived, shared);
}
