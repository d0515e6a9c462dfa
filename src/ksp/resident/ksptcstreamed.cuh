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

#include <../src/mat/aijtc/cuda/aijtcrows.cuh>
#include <../src/ksp/resident/ksptcresident.cuh>
#include <../src/ksp/resident/ksptcstreamed.h>

constexpr int KSPTC_STREAMED_WARPS   = 32; /* 64 registers a thread, as many as the products have */
constexpr int KSPTC_STREAMED_THREADS = KSPTC_LANES * KSPTC_STREAMED_WARPS;

template <class Scalars, class Vectors>
struct KSPTCStreamedProblem : KSPTCCall<Scalars, Vectors> {
  LayoutView A;
  PetscInt   m, slices;
  KSPTCDeal  deal;
};

/* A vector of the rows of a block, on the chip or in device memory */
class KSPTCStreamedVector {
public:
  /* The k-th of those that a block would keep */
  template <class Problem>
  __device__ __forceinline__ KSPTCStreamedVector(const Problem &P, int k, double *memory, double *device) : chip(k < P.deal.vectors), at_(chip ? memory + k * P.deal.numbers : device)
  {
  }
  __device__ __forceinline__ double &operator()(int number, int row) const { return at_[chip ? number : row]; }

  bool chip;

private:
  double *at_;
};

/* The sums of the rows of a slice, of any form. Not inlined: it has the registers to itself, and is compiled once for all kernels of a file that multiply */
template <int R>
__device__ __noinline__ RowSums<R> KSPTCSumsOfSlice(const LayoutView &A, PetscInt slice, const PetscScalar *x)
{
  RowSums<R> sums;

  AddRows(A, LoadSlice<R>(A, slice, A.bs), threadIdx.x % KSPTC_LANES, x, sums);
  return sums;
}

/* A block's share of the slices. R: rows of a lane in a slice. CALLS: slices that are not kept are added up by a function that is called. Iterations of CG gain by that where these slices are many (tetrahedra, random
   values: 35.9 -> 31.7 us) and lose at most 1 %; those of BiCGSTAB, with more to carry across the call, lose 6 % where slices have few slots (docs/log/2026-11.md) */
template <int R, bool CALLS = false>
class KSPTCStreamedShare {
public:
  template <class Problem>
  __device__ __forceinline__ KSPTCStreamedShare(const Problem &P, double *memory) :

    A_(P.A),
    m_(P.m),
    most_(P.deal.slots),
    first_((PetscInt)((PetscCount)P.slices * blockIdx.x / gridDim.x)),
    slices_((PetscInt)((PetscCount)P.slices * (blockIdx.x + 1) / gridDim.x) - first_),
    slot_((KSPTCKeptSlot<R> *)(memory + P.deal.numbers * P.deal.vectors)),
    slice_((KSPTCKeptSlice *)(slot_ + P.deal.slots * P.deal.slices))
  {
  }

  /* Before all else; a warp keeps its own slices */
  __device__ __forceinline__ void keep() const
  {
    const int warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES;

#pragma unroll 1
    for (int k = warp; k < slices_; k += KSPTC_STREAMED_WARPS) {
      const SliceView s    = LoadSlice<R>(A_, first_ + k, A_.bs);
      const bool      kept = (s.form & AIJTC_FORM_CONST) && !(s.form >> AIJTC_FORM_DELTA & 3) && !(s.form & AIJTC_FORM_RID) && s.slots <= most_;

      if (lane == 0) slice_[k] = {s.row, (int16_t)(kept ? s.slots : -1), (int16_t)(s.form & AIJTC_FORM_RID ? 1 : 0)};
      for (int t = lane; kept && t < s.slots; t += KSPTC_LANES) keepSlot(s, t, slot_[most_ * k + t]);
    }
    __syncwarp();
  }

  /* Calls at(number of the first, rows) for the R rows of this thread in each of its slices, -1: no row; their numbers are KSPTC_LANES apart */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
#pragma unroll 1
    for (int k = threadIdx.x / KSPTC_LANES; k < slices_; k += KSPTC_STREAMED_WARPS) {
      int row[R];

      rowsOf(slice_[k], row);
      at(numberOf(k), row);
    }
  }

  /* Calls at(number of the first, rows, sums) with the sums of these rows times x. The loop is not made of the one above: the compiler would not inline it, and keep in memory what it needs */
  template <class At>
  __device__ __forceinline__ void forProducts(const PetscScalar *x, At at) const
  {
#pragma unroll 1
    for (int k = threadIdx.x / KSPTC_LANES; k < slices_; k += KSPTC_STREAMED_WARPS) {
      const KSPTCKeptSlice s = slice_[k];
      RowSums<R>           sums;
      int                  row[R];

      if (s.slots >= 0) addKept(slot_ + most_ * k, s.slots, x + s.row + threadIdx.x % KSPTC_LANES, sums);
      else if constexpr (CALLS) sums = KSPTCSumsOfSlice<R>(A_, first_ + k, x);
      else AddRows(A_, LoadSlice<R>(A_, first_ + k, A_.bs), threadIdx.x % KSPTC_LANES, x, sums);
      rowsOf(s, row);
      at(numberOf(k), row, sums.sum);
    }
  }

private:
  __device__ __forceinline__ static void keepSlot(const SliceView &s, int t, KSPTCKeptSlot<R> &slot)
  {
    slot.a    = __ldg(reinterpret_cast<const PetscScalar *>(s.value) + t);
    slot.base = __ldg(&s.slot[t].base);
#pragma unroll
    for (int r = 0; r < R; r++) slot.mask[r] = s.form & AIJTC_FORM_FULL ? AIJTC_ALL_LANES : __ldg(s.mask + R * t + r);
  }

  /* As AddRows() does, in its order; x: from this lane's row of the first group on */
  __device__ __forceinline__ static void addKept(const KSPTCKeptSlot<R> *slot, int slots, const PetscScalar *x, RowSums<R> &sums)
  {
    const unsigned mine = 1u << threadIdx.x % KSPTC_LANES;

#pragma unroll 4
    for (int t = 0; t < slots; t++) {
      const KSPTCKeptSlot<R> s = slot[t];

#pragma unroll
      for (int r = 0; r < R; r++) {
        if (s.mask[r] & mine) sums.sum[r] = fma(s.a, x[s.base + KSPTC_LANES * r], sums.sum[r]);
      }
    }
  }

  __device__ __forceinline__ static int numberOf(int k)
  {
    return k * KSPTC_LANES * R + (int)threadIdx.x % KSPTC_LANES;
  }
  __device__ __forceinline__ void rowsOf(const KSPTCKeptSlice &s, int (&row)[R]) const
  {
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int place = s.row + (int)threadIdx.x % KSPTC_LANES + KSPTC_LANES * r;

      row[r] = s.rid ? __ldg(A_.rid + place) : (place < m_ ? place : -1);
    }
  }

  const LayoutView &A_;
  PetscInt          m_, most_, first_;
  int               slices_;
  KSPTCKeptSlot<R> *slot_;
  KSPTCKeptSlice   *slice_;
};

template <int K>
using KSPTCStreamedSums = GridReduceShared<K, KSPTC_STREAMED_THREADS>;

/* ---- the host's side */

static inline KSPTCGrid KSPTCGridOf(const KSPTCDeal &deal)
{
  return {(unsigned)deal.blocks, KSPTC_STREAMED_THREADS, deal.shared};
}

/* others: vectors of the solver in device memory. can: also false where the layout is not to be read so. Kernels are loaded when they are launched */
static inline PetscErrorCode KSPTCStreamedCreate(const AIJTCLayout *layout, size_t record, int sums, PetscCount others, KSPTCResidentWork *work, PetscBool *can)
{
  KSPTCChip chip;

  PetscFunctionBegin;
  *work = {};
  *can  = KSPTCStreams(layout);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCChipGet_CUDA(&chip));
  *can = (PetscBool)(chip.blocks > 0);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCResidentWorkCreate(0, record, sums, work, can));
  if (*can) PetscCall(KSPTCWorkVectorsCreate(others * layout->m, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCStreamedRun(const void *kernel, const AIJTCLayout *layout, PetscInt least, PetscInt most, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, KSPTCResidentWork *work, PetscBool *refused,
                                              cudaStream_t stream)
{
  KSPTCStreamedProblem<Scalars, Vectors> problem = {};
  KSPTCChip                              chip;

  PetscFunctionBegin;
  PetscCheck(layout->cuda && KSPTCStreams(layout), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout must be one of the device, of slices of rows alone");
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  PetscCall(KSPTCChipGet_CUDA(&chip));
  problem.A            = AIJTCLayoutView(*layout);
  problem.m            = layout->m;
  problem.slices       = layout->nslices[AIJTC_ROWS];
  problem.deal         = KSPTCDealSlices(layout, least, most, &chip);
  const KSPTCGrid grid = KSPTCGridOf(problem.deal);
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
