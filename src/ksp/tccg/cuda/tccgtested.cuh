/*
   The end of an iteration in kernels with the matrix on the chip: tccgresident.cuh, tccgsingle.cu, which say method, layout, memory traffic and references.
*/
#pragma once

#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

/* The end of iteration `it`, whose sums are r.r, or scaled: those of TCCGAddTested(), or projected: those of TCCGAddScaled(). n: rows, of a projection */
template <bool scaled, bool projected = false>
__device__ __forceinline__ void TCCGEndTested(const KSPTCChunk<TCCGScalars> &chunk, PetscInt it, TCCGScalars &s, const double sum[], double n = 0.0)
{
  TCCGScalars       left; /* nobody's: the record is the scalars as they are then */
  const PetscTCTest test = KSPTCTestAt(chunk, it);

  if constexpr (projected) TCCGEndScaled<true>(s, sum, n, test, &left);
  else if constexpr (scaled) {
    double all[TCCG_SCALED_SUMS<false>];

    TCCGTestedSums(s, chunk.test.norm, sum, all); /* the norm that TCCGAddTested() was given, where this iteration has no test too */
    TCCGEndScaled<false>(s, all, 0.0, test, &left);
  } else TCCGEndPlain(s, true, sum, test, &left);
}
