/*
   How the sums of tile rows and of whole tiles are formed, on the Tensor Core or on CUDA cores.

   Method
     Lane l owns slot l of every tile of 8 x 4: value a and gathered b. A Sums object takes (a, b) of one tile after the other and then tells
       row(lane, i)  the sum of tile row i over the tiles so far, to each lane that of the i it asks for
       total(lane)   the sum of all rows, to all lanes
     TensorSums feeds a to A and b to B of the MMA: entry (i, i) of the accumulator is row i's sum. Its total multiplies twice by ones, as the paper's dot product
     does. CoreSums keeps one partial sum a lane and adds lanes by shuffles; everything else (loads, slots, launch) is the same, so the difference between the two
     is the Tensor Core's share.

     All 32 lanes of a warp must call together. The order of summation depends on nothing but the layout.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP, SC'23
*/
#pragma once

#include <../src/mat/aijtc/cuda/aijtcslots.cuh>
#include <../src/parts/cuda/mma_f64.cuh>

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
    for (int lanes = 1; lanes < AIJTC_LANES; lanes *= 2) s += __shfl_xor_sync(AIJTC_ALL_LANES, s, lanes);
    return s;
  }

private:
  PetscScalar s_ = 0.0;
};
