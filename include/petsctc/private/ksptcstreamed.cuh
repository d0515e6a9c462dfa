/*
   The parts of a resident kernel whose matrix is read from its layout (ksptcstreamed.h).

   Method   A cooperative kernel, one block of 32 warps a multiprocessor. A warp takes every 32nd slice of its block, in all phases of an iteration: what a thread leaves in shared memory it finds again by itself. A
            product is that of mult_rows.cuh, slice by slice, with the same bits. What it multiplies by is written by the blocks that have its rows; then comes a barrier that orders memory (sum_barrier.cuh), and
            leaves L1 empty.
   Layout   aijtclayout.h; shared memory of a block: vectors of its rows, by their numbers (ksptcstreamed.h)
   Memory   an iteration: matrix and 8 bytes a row written, gathered as in any product, and read again by their own row; nothing else. 7-point 101^3, constant values: 8 + 8 MB and what L1 does not find of x, 25 MB, from
            L2, 8 us at 5.3 TB/s
   References
            CUDA C++ Programming Guide, cooperative groups (grids whose blocks all run at once)
*/
#pragma once

#include <petsctc/private/aijtcrows.cuh>
#include <petsctc/private/ksptcresident.cuh>
#include <petsctc/private/ksptcstreamed.h>

constexpr int KSPTC_STREAMED_WARPS   = 32; /* 64 registers a thread, as many as the products have */
constexpr int KSPTC_STREAMED_THREADS = KSPTC_LANES * KSPTC_STREAMED_WARPS;

template <class Scalars, class Vectors>
struct KSPTCStreamedProblem : KSPTCCall<Scalars, Vectors> {
  LayoutView A;
  PetscInt   m, slices;
  int        numbers; /* of a block at most: elements of a vector in shared memory */
  bool       tensor;  /* sums fold on the Tensor Core */
};

/* A block's share of the slices. R: rows of a lane in a slice */
template <int R>
class KSPTCStreamedShare {
public:
  __device__ __forceinline__ KSPTCStreamedShare(const LayoutView &A, PetscInt m, PetscInt slices) :
    A_(A), m_(m), first_((PetscInt)((PetscCount)slices * blockIdx.x / gridDim.x)), slices_((PetscInt)((PetscCount)slices * (blockIdx.x + 1) / gridDim.x) - first_)
  {
  }

  /* Calls at(number of the first, rows) for the R rows of this thread in each of its slices, -1: no row; their numbers are KSPTC_LANES apart */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
    forSlices([&](const SliceView &, int number, const int(&row)[R]) { at(number, row); });
  }

  /* Calls at(number of the first, rows, sums) with the sums of these rows times x */
  template <class At>
  __device__ __forceinline__ void forProducts(const PetscScalar *x, At at) const
  {
    forSlices([&](const SliceView &s, int number, const int(&row)[R]) {
      RowSums<R> sums;

      AddRows(A_, s, threadIdx.x % KSPTC_LANES, x, sums);
      at(number, row, sums.sum);
    });
  }

private:
  template <class At>
  __device__ __forceinline__ void forSlices(At at) const
  {
    const int warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES;

#pragma unroll 1
    for (PetscInt k = warp; k < slices_; k += KSPTC_STREAMED_WARPS) {
      const SliceView s = LoadSlice<R>(A_, first_ + k, A_.bs);
      int             row[R];

#pragma unroll
      for (int r = 0; r < R; r++) row[r] = RowOfLane(A_, s, m_, lane, r);
      at(s, (int)k * KSPTC_LANES * R + lane, row);
    }
  }

  const LayoutView &A_;
  PetscInt          m_, first_, slices_;
};

template <int K>
union KSPTCStreamedSums
{
  typename GridReduce<K, true, KSPTC_STREAMED_THREADS>::Shared  tensor;
  typename GridReduce<K, false, KSPTC_STREAMED_THREADS>::Shared core;
};

/* A barrier with K sums, folded as the problem says */
template <int K, class Problem, class Barrier, class Derive>
__device__ __forceinline__ bool KSPTCStreamedSum(const Problem &P, Barrier &barrier, const double sum[], KSPTCStreamedSums<K> &shared, PetscInt it, Derive derive)
{
  const auto nothing = [](uint64_t, int, int) { return true; };

  if (P.tensor) return barrier.template sum<GridReduce<K, true, KSPTC_STREAMED_THREADS>, K>(sum, shared.tensor, (int)it, nothing, derive);
  return barrier.template sum<GridReduce<K, false, KSPTC_STREAMED_THREADS>, K>(sum, shared.core, (int)it, nothing, derive);
}

/* ---- the host's side */

static inline KSPTCGrid KSPTCGridOf(const KSPTCDeal &deal)
{
  return {(unsigned)deal.blocks, KSPTC_STREAMED_THREADS, deal.shared};
}

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCStreamedRun(const void *kernel, const AIJTCLayout *layout, int vectors, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, const KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream)
{
  const KSPTCDeal                        deal    = KSPTCDealSlices(layout, vectors);
  const KSPTCGrid                        grid    = KSPTCGridOf(deal);
  KSPTCStreamedProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCheck(layout->cuda && KSPTCStreams(layout), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout must be one of the device, of slices of rows alone");
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.A       = AIJTCLayoutView(*layout);
  problem.m       = layout->m;
  problem.slices  = layout->nslices[AIJTC_ROWS];
  problem.numbers = (int)(deal.slices * AIJTC_LANES * layout->params.rrows);
  problem.tensor  = steps->tensor == PETSC_TRUE;
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
