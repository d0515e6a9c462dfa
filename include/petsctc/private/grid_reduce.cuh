/*
   GridReduce<K, tensor>: K sums over all threads of a grid, in a fixed order, with one kernel launch. Device code, shared by all kernels that reduce.

   Method   Every thread comes with K private sums.
            warp   tensor: the all-ones product of the paper. Row k of A holds four of the 32 private sums of dot product k and B is all ones, so that after 8
                   m8n8k4 every column of row k of the accumulator is the warp's sum k: up to 8 sums cost what one does.
                   core: five rounds of shuffles for each sum
            block  the warps' sums once more in the same way
            grid   every block leaves its sums in device memory. The block that arrives last, by a counter, adds the blocks' sums in the order of the blocks' numbers
                   (each thread those of its number modulo their number) and folds the threads' sums as above.
            The order depends on the grid's size alone, which the launcher derives from n. Row k does not see the other rows, so a sum has the same bits in any company.
   Layout   stage[k][thread] in shared memory, rows 4 numbers apart in the banks: the 8 x 4 reads of an operand do not conflict.
            partial[k * blocks + block] in device memory
   Memory   8 K blocks bytes written and read (K = 2, 528 blocks: 8 kB, in L2)
   References
            Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026 (all-ones operands);
            CUDA C++ Programming Guide, memory fence functions (the last block)
*/
#pragma once

#include <petsctc/private/arrival.cuh>
#include <petsctc/private/mma_f64.cuh>
#include <petsctc/private/vecreduce.h>

template <int K, bool tensor, int Threads = 256>
struct GridReduce {
  static_assert(K >= 0 && K <= PETSCTC_MAX_DOTS, "more sums than an MMA tile has rows");

  static constexpr int threads = Threads; /* of a block */
  static constexpr int warps   = threads / 32;
  static constexpr int rows    = K > 0 ? K : 1; /* an array of no elements is not C++ */

  struct Shared {
    double stage[rows][tensor ? threads + 4 : 1];
    double warp[rows][warps + 4];
    double total[rows];
    bool   last;
  };

  /* total[] <- the sums over the block, visible to the threads of warp 0. Between what other warps have done before and what warp 0 does after lies a __syncthreads() */
  __device__ static void fold(const double sum[], Shared &shared)
  {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if constexpr (tensor) {
      for (int k = 0; k < K; ++k) shared.stage[k][threadIdx.x] = sum[k];
      __syncwarp();
      foldRows<32>(&shared.stage[0][32 * warp], sizeof(shared.stage[0]) / sizeof(double), lane, &shared.warp[0][warp], sizeof(shared.warp[0]) / sizeof(double));
      __syncthreads();
      if (warp == 0) foldRows<warps>(&shared.warp[0][0], sizeof(shared.warp[0]) / sizeof(double), lane, &shared.total[0], 1);
    } else {
      for (int k = 0; k < K; ++k) {
        const double s = foldLanes<32>(sum[k]);
        if (lane == 0) shared.warp[k][warp] = s;
      }
      __syncthreads();
      for (int k = 0; k < K && warp == 0; ++k) {
        const double s = foldLanes<warps>(shared.warp[k][lane % warps]);
        if (lane == 0) shared.total[k] = s;
      }
    }
    __syncwarp();
  }

  /* The same, visible to all threads */
  __device__ static void block(const double sum[], Shared &shared)
  {
    fold(sum, shared);
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

private:
  /* sum[k * sum_stride] <- sum of the N numbers of row k. A warp together; rows beyond K are zero in the operand, and not read */
  template <int N>
  __device__ static void foldRows(const double *row, int stride, int lane, double *sum, int sum_stride)
  {
    const int k = lane / 4, column = lane % 4;
    double    d0 = 0.0, d1 = 0.0;

    for (int j = 0; j < N; j += 4) SM80_8x8x4_F64F64F64F64_TN::fma(d0, d1, k < K ? row[k * stride + j + column] : 0.0, 1.0, d0, d1);
    if (k < K && column == 0) sum[k * sum_stride] = d0;
  }

  /* Lane 0 of every N lanes: their sum */
  template <int N>
  __device__ static double foldLanes(double s)
  {
    for (int distance = N / 2; distance > 0; distance /= 2) s += __shfl_down_sync(0xffffffffu, s, distance, N);
    return s;
  }
};
