/*
   The end of an iteration in kernels with the matrix on the chip: tccgresident.cuh and tccgsingle.cu, which say method, layout, memory traffic and references.
*/
#pragma once

#include <../src/ksp/tccg/tccgresident.h>
#include <../src/ksp/tccg/tccgsteps.h>

/* The end of iteration `it`, whose sums are r.r, or scaled: those of TCCGAddTested(), or projected: those of TCCGAddScaled(). n: rows, of a projection */
template <bool scaled, bool projected = false>
__device__ __forceinline__ void TCCGEndTested(const KSPTCChunk<TCCGScalars> &chunk, const KSPTCAsked &asked, PetscInt it, TCCGScalars &s, const double sum[], double n = 0.0)
{
  TCCGScalars left; /* nobody's: the record is the scalars as they are then */
  PetscTCTest test = KSPTCTestAt(chunk, it, asked.test());

  if constexpr (projected) TCCGEndScaled<true>(s, sum, n, test, &left);
  else if constexpr (scaled) {
    double all[TCCG_SCALED_SUMS<false>];

    TCCGTestedSums(s, chunk.test.norm, sum, all); /* the norm that TCCGAddTested() was given, where this iteration has no test too */
    if (KSPTCPasses(asked.passing, chunk.test.norm == PETSCTC_NORM_BETA ? sum[0] : sum[1])) test.norm = PETSCTC_NORM_NONE;
    TCCGEndScaled<false>(s, all, 0.0, test, &left);
  } else {
    if (KSPTCPasses(asked.passing, sum[0])) test.norm = PETSCTC_NORM_NONE;
    TCCGEndPlain(s, true, sum, test, &left);
  }
}

/* What the test says after iteration `it`, where it is asked apart */
__device__ __forceinline__ TCCGJudged TCCGJudgeAsked(const KSPTCChunk<TCCGScalars> &chunk, const KSPTCAsked &asked, PetscInt it, double square)
{
  return KSPTCPasses(asked.passing, square) ? TCCGJudged{square, 0.0} : TCCGJudge(KSPTCTestAt(chunk, it, asked.test()), square);
}
