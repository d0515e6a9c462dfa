/*
   What the kernels of conjugate gradients that read the matrix from its layout share: tccgstreamed.cu, tccgstreamedsingle.cu, and by way of windows those of tccgwindowed.cuh, which say method, layout, memory traffic and references.
*/
#pragma once

#include <../src/ksp/resident/ksptcstreamed.cuh>
#include <../src/ksp/tccg/tccgresident.h>
#include <../src/ksp/tccg/tccgsteps.h>

namespace tccgstreamed
{
constexpr int LEAST = 2, MOST = 3;           /* vectors in shared memory, the last one x */
constexpr int SUMS = TCCG_SCALED_SUMS<true>; /* of an iteration's second reduction, at most */

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS, 0>;
using Problem = KSPTCStreamedProblem<TCCGScalars, TCCGVectors>;

/* What iterations write to device memory is in the work: p, or z where A p is carried; r, if that is not z there; and x, where it is not on the chip. [m] each */
constexpr int KEPT = 3;

template <class AnyProblem>
__device__ __forceinline__ double *Kept(const AnyProblem &P, int vector)
{
  return P.kept + (PetscCount)vector * P.m;
}

/* With so many rows to a lane: kernels of iterations that carry A p, in the other file, which compiles beside this */
const void *SingleKernelOf(const AIJTCLayout *layout);

PetscErrorCode RunWindowed(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *taken, PetscBool *refused, cudaStream_t stream);

__device__ __forceinline__ double Scale(const Problem &P, int row)
{
  return P.v.diagonal ? __ldg(P.v.diagonal + row) : 1.0;
}

/* What follows is done by one thread of every block, with sums of the same bits. Begin() and End() are not in line: that would take registers that products need */

__device__ __forceinline__ void BeginIteration(TCCGScalars &s, bool first)
{
  if (first) TCCGDirection<true, 0>{}.begin(s);
  else TCCGDirection<false, 0>{}.begin(s);
}

/* Sums, test and record of iteration `it` */
template <bool projected, class AnyProblem>
__device__ __forceinline__ void EndIteration(const AnyProblem &P, TCCGScalars &s, PetscInt it, const double sum[])
{
  TCCGScalars       left; /* nobody's: the record is the scalars as they are then */
  const PetscTCTest test = KSPTCTestAt(P.chunk, it);

  if constexpr (projected) TCCGEndScaled<true>(s, sum, P.m, test, &left);
  else if (P.v.diagonal) {
    double all[TCCG_SCALED_SUMS<false>];

    TCCGTestedSums(s, P.chunk.test.norm, sum, all);
    TCCGEndScaled<false>(s, all, 0.0, test, &left);
  } else TCCGEndPlain(s, true, sum, test, &left);
  KSPTCRecord(P, it, s);
}

__device__ __noinline__ static void Begin(TCCGScalars &s, bool first)
{
  BeginIteration(s, first);
}

template <bool projected>
__device__ __noinline__ void End(const Problem &P, TCCGScalars &s, PetscInt it, const double sum[])
{
  EndIteration<projected>(P, s, it, sum);
}
} // namespace tccgstreamed
