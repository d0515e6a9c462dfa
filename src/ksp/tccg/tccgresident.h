/*
   Iterations of conjugate gradients without the host, in one call (ksptcresident.h): PCNONE or a diagonal preconditioner. Raw pointers, sizes and a stream: no PETSc object.
*/
#pragma once

#include <../src/ksp/resident/ksptcstreamed.h>

typedef struct {
  PetscScalar       *x, *r, *p;
  PetscScalar       *z;        /* B r at the beginning and at the end; r if there is no preconditioner */
  const PetscScalar *diagonal; /* of B, NULL if there is no preconditioner */
  PetscScalar       *w;        /* work, may be z; where A p is carried, that */
  PetscBool          constant; /* B ends with the projection against a constant null space; then there is a diagonal, and z what the steps leave of it (kspsteps.h: mean, shift) */
  PetscScalar       *s;        /* work where A p is carried (kspsteps.h: advance), else NULL */
} TCCGVectors;

/* The vectors of a block: of its rows x, r, p, A p, and with a diagonal preconditioner its diagonal and z; of its ghosts p and z */
PETSCTC_HOST_DEVICE KSPTCVectors TCCGVectorsOfBlock(bool scaled)
{
  return {scaled ? 6 : 4, 2};
}

/* Those of thin blocks: of its rows p, and of A p, r, x and the diagonal what there is room for; of its ghosts p. The other vectors are in device memory */
PETSCTC_HOST_DEVICE KSPTCVectors TCCGThinVectorsOfBlock(bool scaled)
{
  return {1, 1, scaled ? 4 : 3};
}

/* Those of a block that carries A p: of its rows x, p, w, A z, r and, with a diagonal preconditioner, its diagonal and z; of its ghosts r, w, A z and the diagonal and z */
PETSCTC_HOST_DEVICE KSPTCVectors TCCGSingleVectorsOfBlock(bool scaled)
{
  return {scaled ? 7 : 5, scaled ? 5 : 3};
}

/* With a diagonal preconditioner the kernels' second reduction has two sums: z.r and, of r.r and z.z, that which the test looks at (z.z unless it is r.r). The other one stays what it was. Every sum is records
   that all blocks read */
constexpr int TCCG_TESTED_SUMS = 2;

PETSCTC_HOST_DEVICE void TCCGAddTested(PetscTCNorm norm, PetscScalar r, PetscScalar z, PetscScalar sum[])
{
  const PetscScalar tested = norm == PETSCTC_NORM_RR ? r : z;

  PetscTCAddProduct(sum[0], z, r);
  PetscTCAddProduct(sum[1], tested, tested);
}

/* The sums of an update, in their order */
PETSCTC_HOST_DEVICE void TCCGTestedSums(const TCCGScalars &s, PetscTCNorm norm, const PetscScalar tested[], PetscScalar sum[])
{
  sum[0] = norm == PETSCTC_NORM_RR ? tested[1] : s.rr;
  sum[1] = tested[0];
  sum[2] = norm == PETSCTC_NORM_RR ? s.zz : tested[1];
}

/* Where the test is not asked by those who begin the next iteration (sum_barrier.cuh: sumApart()): the square of the norm has a sum of its own, sum[1], though it is z.r again with the natural norm. sum[0]: z.r */
template <class T>
PETSCTC_HOST_DEVICE void TCCGAddJudged(PetscTCNorm norm, const T &r, const T &z, T sum[])
{
  PetscTCAddProduct(sum[0], z, r);
  PetscTCAddProduct(sum[1], norm == PETSCTC_NORM_RR ? r : z, norm == PETSCTC_NORM_RR || norm == PETSCTC_NORM_BETA ? r : z);
}

/* The square that was tested, and what the test says */
typedef struct {
  PetscReal square, stop;
} TCCGJudged;

/* test: its bounds are not given */
PETSCTC_HOST_DEVICE TCCGJudged TCCGJudge(const PetscTCTest &test, PetscScalar square)
{
  TCCGScalars s = {}, left; /* nobody's */

  PetscTCEndIteration(s, square, test, &left);
  return {square, s.stop};
}

/* What the beginning of an iteration changes, as it was before: for those who begin it before they know what the test says */
typedef struct {
  PetscReal a, b, dpi, dpiold, zs;
} TCCGBefore;

/* The end of an iteration with this z.r */
PETSCTC_HOST_DEVICE TCCGBefore TCCGEndUntested(TCCGScalars &s, PetscScalar zr)
{
  const TCCGBefore before = {s.a, s.b, s.dpi, s.dpiold, s.zs};

  s.betaold = s.beta;
  s.beta    = zr;
  return before;
}

/* The next has not begun */
PETSCTC_HOST_DEVICE void TCCGTakeBack(TCCGScalars &s, const TCCGBefore &before)
{
  s.a      = before.a;
  s.b      = before.b;
  s.dpi    = before.dpi;
  s.dpiold = before.dpiold;
  s.zs     = before.zs;
  s.stop   = 0.0;
}

/* norm: that of TCCGAddJudged() */
PETSCTC_HOST_DEVICE void TCCGSetJudged(TCCGScalars &s, PetscTCNorm norm, PetscReal square)
{
  if (norm == PETSCTC_NORM_RR) s.rr = square;
  else if (norm != PETSCTC_NORM_BETA) s.zz = square;
}

/* Work for calls with this form. can: the device runs the kernel with it, scaled: with a diagonal preconditioner, and has the memory; if not, `work` holds nothing */
PETSC_INTERN PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);

/* For forms of thin blocks, with classic recurrences and no null space */
PETSC_INTERN PetscErrorCode TCCGThinCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGThin_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* Ends before `last` where the scalars stop. steps->tensor: sums fold on the Tensor Core. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode TCCGResident_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* The same with A p carried: v->s is needed. On the host TCCGResident_Host() looks at that */
PETSC_INTERN PetscErrorCode TCCGSingleCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);

PETSC_INTERN PetscErrorCode TCCGSingle_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* The same with the matrix read from its layout (ksptcstreamed.h). A p is carried where v->s is there. can: as above, and the layout is of that kind */
PETSC_INTERN PetscErrorCode TCCGStreamedCreate_CUDA(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can);

PETSC_INTERN PetscErrorCode TCCGStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGStreamed_CUDA(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
