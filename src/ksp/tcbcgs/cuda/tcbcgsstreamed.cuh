/*
   What the kernels of BiCGSTAB that read the matrix from its layout share: tcbcgsstreamed.cu, tcbcgswindowed.cu, which say method, layout, memory traffic and references.
*/
#pragma once

#include <../src/ksp/resident/ksptcstreamed.cuh>
#include <../src/ksp/tcbcgs/tcbcgsresident.h>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

namespace tcbcgsstreamed
{
constexpr int SUMS = 2; /* at most, of a reduction */

using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS, 0>;

/* What iterations write to device memory is in the work: p, and x where it is not on the chip, [m] each; or in s and t, which are work */
constexpr int KEPT = 2;

template <class AnyProblem>
__device__ __forceinline__ double *Kept(const AnyProblem &P, int vector)
{
  return P.kept + (PetscCount)vector * P.m;
}

PetscErrorCode RunWindowed(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *taken, PetscBool *refused, cudaStream_t stream);

/* Sums, test and record of iteration `it`, by one thread of every block, with sums of the same bits */
template <class AnyProblem>
__device__ __forceinline__ void EndIteration(const AnyProblem &P, TCBCGSScalars &s, PetscInt it, const double sum[])
{
  TCBCGSScalars left; /* nobody's: the record is the scalars as they are then */
  TCBCGSUpdate  step = {};

  step.test   = KSPTCTestAt(P.chunk, it);
  step.record = &left;
  step.end(s, sum);
  KSPTCRecord(P, it, s);
}
} // namespace tcbcgsstreamed
