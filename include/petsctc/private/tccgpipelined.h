/*
   Pipelined conjugate gradients in calls (tccgresident.h) with the matrix on the chip: products of A with all vectors that change are carried as recurrences, so that an iteration has one reduction, and
   what a product needs of other blocks comes with it. Raw pointers, sizes and a stream: no PETSc object.

   Method         u = B r, w = A u, m = B w are those of the iterate x. An iteration:

                    n <- A m; z <- n + b z; s <- w + b s; p <- u + b p; x <- x + a p; r <- r - a s; w <- w - a z
                    b <- z.r of now and before; p.Ap <- w.u - b^2 p.Ap of before; a <- z.r / p.Ap

                  x, r, p and the scalars mean what they mean to the steps, z.r and so on too. Rounding errors of the recurrences grow, in the end out of all proportion. So r <- b - A x, s <- A p, z <- A B s,
                  w <- A u are made anew (residual replacement)

                    when a call begins, every PETSCTC_MAX_CALL iterations; the first call of a solve needs w alone
                    when the test or z.r would end the solve: they are asked again with the new r, and the solve goes on if that does not pass
                    when p.Ap has become what ends a solve. Should it still be, u.w + 2 b u.s + b^2 p.s tells, which is p.Ap for whatever p: it ends the solve too, or else p <- u begins anew

                  r is left as it is where it differs from b - A x by no more than rounding errors of computing that, eps (|b| + |A| |x|): there the residual of the classic recurrences is as far from the true one,
                  and goes on to decrease.
   Layout         plain vectors
   Memory traffic of a call on the host: the form and 14 vectors an iteration; on the chip: tccgpipelined.cu
   References     Ghysels, Vanroose, Hiding global synchronization latency in the preconditioned Conjugate Gradient algorithm, Parallel Computing 40, 2014;
                  Cools, Yetkin, Agullo, Giraud, Vanroose, Analyzing the effect of local rounding error propagation on the maximal attainable accuracy of the pipelined CG method, SIMAX 39, 2018
*/
#pragma once

#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

/* The vectors of a block: of its rows x, r, p, s, z, w, m, and with a diagonal preconditioner its diagonal; of its ghosts m */
PETSCTC_HOST_DEVICE KSPTCVectors TCCGPipelinedVectorsOfBlock(bool scaled)
{
  return {scaled ? 8 : 7, 1};
}

/* As TCCGResidentCreate() and TCCGResident(). v->b is needed. Calls begin at multiples of PETSCTC_MAX_CALL: where else they are cut changes rounding errors */
PETSC_INTERN PetscErrorCode TCCGPipelinedCreate_Host(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGPipelinedChipGet_CUDA(KSPTCChip *chip);
PETSC_INTERN PetscErrorCode TCCGPipelinedCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);

PETSC_INTERN PetscErrorCode TCCGPipelined_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGPipelined_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* z.r and w.u, and with a preconditioner the square of the norm that is tested; and of vectors made anew u.s, p.s */
template <bool scaled>
constexpr int TCCG_PIPELINED_SUMS = scaled ? 3 : 2;
template <bool scaled>
constexpr int TCCG_PIPELINED_ANEW = TCCG_PIPELINED_SUMS<scaled> + 2;

enum {
  TCCG_PIPELINED_VERIFY  = -1, /* instead of a stop: the test ends the solve, if its residual is true */
  TCCG_PIPELINED_REPLACE = -2  /* the same: there is no next direction, or rounding says so */
};

constexpr PetscReal TCCG_PIPELINED_GAP = 4.0; /* so many times the rounding errors of b - A x may r differ from that */

/* The sum that the test looks at: that of another place, unless z is r */
template <bool scaled>
PETSCTC_HOST_DEVICE PetscScalar TCCGPipelinedSquare(const PetscScalar sum[])
{
  return sum[scaled ? 2 : 0];
}

/* norm: that which the sums were made for */
template <bool scaled>
PETSCTC_HOST_DEVICE void TCCGPipelinedSetSquare(TCCGScalars &s, PetscTCNorm norm, PetscReal square)
{
  if constexpr (scaled) TCCGSetJudged(s, norm, square);
  else s.rr = s.zz = square;
}

/* Does z.r end the solve? The host, who has it from the record, says so too: the record must be one of vectors made anew then */
PETSCTC_HOST_DEVICE bool TCCGPipelinedEnds(TCCGScalars s)
{
  TCCGDirection<false, 0>{}.begin(s);
  return s.stop != 0.0;
}

/* After an update: ends the iteration and, unless it is the last of the call, begins the next, but for the test and what that looks at. Returns what is to be done first, unless the test has something to say: 0, VERIFY, or REPLACE */
PETSCTC_HOST_DEVICE PetscReal TCCGPipelinedAdvance(TCCGScalars &s, TCCGBefore &before, bool last, const PetscScalar sum[])
{
  before = TCCGEndUntested(s, sum[0]);
  if (TCCGPipelinedEnds(s)) return TCCG_PIPELINED_VERIFY;
  if (last) return 0.0;
  TCCGBeginIteration(s, false, [&]() { TCCGEndCurvature(s, sum[1] - s.b * s.b * s.dpi, false); });
  return s.stop != 0.0 ? (PetscReal)TCCG_PIPELINED_REPLACE : 0.0;
}

/* And with the test: returns what is to be done first. VERIFY: s and the record are as they were before; REPLACE: the next iteration has not begun */
template <bool scaled>
PETSCTC_HOST_DEVICE PetscReal TCCGPipelinedTake(TCCGScalars &s, TCCGScalars &record, PetscTCNorm norm, const TCCGJudged &judged, const TCCGBefore &before, PetscReal first)
{
  if (judged.stop != 0.0 || first == TCCG_PIPELINED_VERIFY) {
    TCCGTakeBack(s, before);
    return TCCG_PIPELINED_VERIFY;
  }
  TCCGPipelinedSetSquare<scaled>(s, norm, judged.square);
  record = s;
  TCCGTakeBackBeginning(record, before);
  if (first == TCCG_PIPELINED_REPLACE) s = record;
  return first;
}

/* p.Ap of vectors made anew, with b as it is or 0 */
PETSCTC_HOST_DEVICE PetscReal TCCGPipelinedCurvature(TCCGScalars &s, bool first, PetscReal b, PetscScalar wu, const PetscScalar us_ps[])
{
  const PetscReal recurred = wu - b * b * s.dpi, now = wu + b * (2.0 * us_ps[0] + b * us_ps[1]);

  if (first || PetscTCSign(recurred) * PetscTCSign(s.dpi) > 0) return first ? now : recurred;
  if (PetscTCSign(now) * PetscTCSign(s.dpi) <= 0) return now;
  s.b = 0.0;
  return wu;
}

/* The same with the sums of vectors made anew: now a stop is one. test: its bounds are not given. ended: after VERIFY; else the record is there, and had these sums but for rounding errors */
template <bool scaled>
PETSCTC_HOST_DEVICE void TCCGPipelinedRefresh(TCCGScalars &s, TCCGScalars &record, bool ended, PetscTCNorm norm, const PetscTCTest &test, bool first, bool last, const PetscScalar sum[])
{
  const PetscReal square = TCCGPipelinedSquare<scaled>(sum);

  if (ended) {
    s.betaold = s.beta;
    s.stop    = TCCGJudge(test, square).stop;
  }
  s.beta = sum[0];
  TCCGPipelinedSetSquare<scaled>(s, norm, square);
  if (ended) record = s;
  if (!last && s.stop == 0.0) TCCGBeginIteration(s, first, [&]() { TCCGEndCurvature(s, TCCGPipelinedCurvature(s, first, s.b, sum[1], sum + TCCG_PIPELINED_SUMS<scaled>), first); });
}

/* d x, x without a preconditioner; d is not looked at then */
template <bool scaled, class T>
PETSCTC_HOST_DEVICE T TCCGPipelinedApply(const T *d, const T &x)
{
  if constexpr (scaled) return *d * x;
  else return x;
}

template <bool scaled, class T>
PETSCTC_HOST_DEVICE void TCCGPipelinedAdd(PetscTCNorm norm, const T &r, const T &u, const T &w, T sum[])
{
  if constexpr (scaled) {
    T zr_square[] = {sum[0], sum[2]};

    TCCGAddJudged(norm, r, u, zr_square);
    sum[0] = zr_square[0];
    sum[2] = zr_square[1];
  } else PetscTCAddProduct(sum[0], r, r);
  PetscTCAddProduct(sum[1], w, u);
}

/* From r, w, s, p and the diagonal: m, and the sums. The scalars' end is the caller's: it is told more than a step is */
template <bool scaled>
struct TCCGPipelinedStart : PetscTCStep<TCCGScalars, scaled ? 5 : 4, 1, TCCG_PIPELINED_ANEW<scaled>> {
  PetscTCNorm norm;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &, const T in[], T out[], T sum[]) const
  {
    const T &r = in[0], &w = in[1], &s = in[2], &p = in[3], u = TCCGPipelinedApply<scaled>(in + 4, r);

    out[0] = TCCGPipelinedApply<scaled>(in + 4, w);
    TCCGPipelinedAdd<scaled>(norm, r, u, w, sum);
    PetscTCAddProduct(sum[TCCG_PIPELINED_SUMS<scaled>], u, s);
    PetscTCAddProduct(sum[TCCG_PIPELINED_SUMS<scaled> + 1], p, s);
  }
};

/* From x, r, p, s, w, the z that the product has brought, and the diagonal: x, r, p, s, w, m, and the sums. Likewise */
template <bool scaled>
struct TCCGPipelinedUpdate : PetscTCStep<TCCGScalars, scaled ? 7 : 6, 6, TCCG_PIPELINED_SUMS<scaled>> {
  PetscTCNorm norm;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &k, const T in[], T out[], T sum[]) const
  {
    const T p = TCCGPipelinedApply<scaled>(in + 6, in[1]) + k.b * in[2], s = in[4] + k.b * in[3], r = in[1] + (-k.a) * s, w = in[4] + (-k.a) * in[5];

    out[0] = in[0] + k.a * p;
    out[1] = r;
    out[2] = p;
    out[3] = s;
    out[4] = w;
    out[5] = TCCGPipelinedApply<scaled>(in + 6, w);
    TCCGPipelinedAdd<scaled>(norm, r, TCCGPipelinedApply<scaled>(in + 6, r), w, sum);
  }
};

/* From a row of A x and |A| |x|: b - A x, and what decides whether that replaces r */
PETSCTC_HOST_DEVICE PetscScalar TCCGPipelinedResidual(PetscScalar b, PetscScalar product, PetscReal magnitude, PetscScalar r, PetscReal gap[2])
{
  const PetscScalar residual = b - product, differs = residual - r;
  const PetscReal   errors = TCCG_PIPELINED_GAP * PETSC_MACHINE_EPSILON * (PetscAbsReal(b) + magnitude);

  gap[0] += differs * differs;
  gap[1] += errors * errors;
  return residual;
}
