/*
   The steps of KSPTCCG from PETSc's side: the arrays of their vectors, and the flops that are logged, which are those of KSPCG.
*/
#include "tccgimpl.h"

PetscErrorCode TCCGResidual(KSP_TCCG *cg, Vec R)
{
  PetscScalar *a[1];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(cg, 1, 0, &R, a));
  PetscCall((*cg->steps->residual)(cg->n, a[0], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 1, 0, &R, a, 2.0 * cg->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The flops of KSPCG: z.r always, z.z for its norm only */
static PetscLogDouble TCCGProjectFlops(KSP ksp, KSP_TCCG *cg)
{
  return (ksp->normtype == KSP_NORM_PRECONDITIONED ? 4.0 : 2.0) * cg->n;
}

/* The same at the end of an iteration, and those of a preconditioner that is one number and not applied */
static PetscLogDouble TCCGIdentityFlops(KSP ksp, KSP_TCCG *cg)
{
  return TCCGProjectFlops(ksp, cg) + (cg->number > 0.0 ? (PetscLogDouble)cg->n : 0.0);
}

/* z <- B r, beta <- z.r, zz <- z.z */
PetscErrorCode TCCGPrecondition(KSP ksp, KSP_TCCG *cg)
{
  const Vec    R = ksp->work[0], Z = cg->identity ? R : ksp->work[1];
  const Vec    v[] = {Z, R};
  PetscScalar *a[2];

  PetscFunctionBegin;
  if (!cg->identity && !KSPTCInVain(cg)) PetscCall(KSP_PCApply(ksp, R, Z));
  PetscCall(KSPTCStepBegin(cg, 2, 0, v, a));
  PetscCall((*cg->steps->project)(cg->n, a[0], a[1], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 2, 0, v, a, TCCGProjectFlops(ksp, cg)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May x follow an update with the next direction, which reads p as well? Where iterations may begin ahead nobody looks at x before the solve ends */
PetscBool TCCGLeavesX(const KSP_TCCG *cg)
{
  return (PetscBool)(cg->lead > 0);
}

/* The p of iteration i+1 */
static Vec TCCGDirectionOf(KSP ksp, const KSP_TCCG *cg, PetscInt i)
{
  return i % cg->kept ? cg->p[i % cg->kept] : ksp->work[2];
}

/* Takes the place of that of iteration i+1-kept. x follows when it lacks as many updates as there are places, and then the first of them is to be written */
PetscErrorCode TCCGDirection(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool z_is_r)
{
  const PetscBool    first = (PetscBool)(i == 0), follows = (PetscBool)(cg->late == cg->kept);
  const PetscInt     many = follows ? cg->kept : 1, writes = follows ? 2 : 1;
  const Vec          P     = TCCGDirectionOf(ksp, cg, i);
  PetscInt           reads = 1, next = 1;
  const PetscScalar *old[PETSCTC_LATE];
  Vec                v[PETSCTC_LATE + 3];
  PetscScalar       *a[PETSCTC_LATE + 3];

  PetscFunctionBegin;
  v[0] = z_is_r ? ksp->work[0] : ksp->work[1];
  for (PetscInt k = 0; k < many && !first; k++) {
    const Vec of = TCCGDirectionOf(ksp, cg, i - many + k);

    if (of != P) v[reads++] = of;
  }
  v[reads] = P;
  if (follows) v[reads + 1] = ksp->vec_sol;
  PetscCall(KSPTCStepBegin(cg, reads, writes, v, a));
  for (PetscInt k = 0; k < many && !first; k++) old[k] = TCCGDirectionOf(ksp, cg, i - many + k) == P ? a[reads] : a[next++];
  PetscCall((*cg->steps->direction)(cg->n, first, a[0], many, old, a[reads], follows ? a[reads + 1] : NULL, cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, reads, writes, v, a, first ? 0.0 : (2.0 + (follows ? 2.0 * many : 0.0)) * cg->n));
  if (follows) cg->late = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The end of a solve by steps: x is complete */
PetscErrorCode TCCGSettle(KSP ksp, KSP_TCCG *cg)
{
  Vec          v[PETSCTC_LATE + 1];
  PetscScalar *a[PETSCTC_LATE + 1];

  PetscFunctionBegin;
  if (!cg->late) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < cg->kept; k++) v[k] = TCCGDirectionOf(ksp, cg, k);
  v[cg->kept] = ksp->vec_sol;
  PetscCall(KSPTCStepBegin(cg, cg->kept, 1, v, a));
  PetscCall((*cg->steps->settle)(cg->n, cg->kept, a, a[cg->kept], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, cg->kept, 1, v, a, 2.0 * cg->s.late * cg->n)); /* cg->late counts those begun in vain too */
  cg->late = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector like KSPCG's, which KSPSetUp() may have made anew, in other memory */
PetscErrorCode TCCGAnother(KSP ksp, Vec *v)
{
  PetscBool alike = PETSC_TRUE;

  PetscFunctionBegin;
  if (*v) PetscCall(PetscObjectTypeCompare((PetscObject)*v, ((PetscObject)ksp->work[0])->type_name, &alike));
  if (!alike) PetscCall(VecDestroy(v));
  if (!*v) PetscCall(VecDuplicate(ksp->work[0], v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A z and A p of iterations that carry A p: KSPCG's where it was told to, else ours */
PetscErrorCode TCCGCarriedVectors(KSP ksp, KSP_TCCG *cg, Vec carried[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    if (ksp->nwork < 5) PetscCall(TCCGAnother(ksp, &cg->carried[k]));
    carried[k] = ksp->nwork < 5 ? cg->carried[k] : ksp->work[3 + k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w <- A p and p.w, or where A p is carried A z and z.A z, by the product or by a step of its own: then the update finds it done */
PetscErrorCode TCCGMultiply(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool z_is_r)
{
  const PetscBool carries = TCCGCarries(cg);
  const PetscBool first   = (PetscBool)(i == 0);
  Vec             v[] = {TCCGDirectionOf(ksp, cg, i), ksp->work[1]}, carried[2] = {};
  PetscScalar    *a[2];

  PetscFunctionBegin;
  cg->w->first = first;
  cg->w->sums  = NULL;
  cg->w->made  = PETSC_FALSE;
  if (carries) {
    PetscCall(TCCGCarriedVectors(ksp, cg, carried));
    v[0] = z_is_r ? ksp->work[0] : ksp->work[1];
    v[1] = carried[0];
  }
  if (KSPTCInVain(cg)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCMultSums(ksp, cg, cg->A, v[0], v[0], NULL, v[1], &cg->w->sums));
  if (cg->w->sums) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCStepBegin(cg, 2, 0, v, a));
  if (carries) PetscCall((*cg->steps->slope)(cg->n, a[0], a[1], cg->w, cg->stream));
  else PetscCall((*cg->steps->curvature)(cg->n, first, a[0], a[1], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 2, 0, v, a, 2.0 * cg->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the direction stop the solve, as the host knows without one? Then the product is left out. On a GPU the host does not know */
static PetscBool TCCGDirectionStops(const KSP_TCCG *cg)
{
  const TCCGScalars *s = cg->w->s;

  if (cg->backend != KSPTC_HOST) return PETSC_FALSE;
  return (PetscBool)(PetscIsInfOrNanReal(s->beta) || s->beta == 0.0 || s->beta * s->betaold < 0.0);
}

/* p, w <- A p and p.w in the pass of the product, where that makes p: then cg->w->made. Not where x follows with p, nor where p takes the old one's place, which the product still reads, nor where z is where w goes */
PetscErrorCode TCCGMakeAndMultiply(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool z_is_r)
{
  const Vec          P = TCCGDirectionOf(ksp, cg, i), old = i ? TCCGDirectionOf(ksp, cg, i - 1) : NULL;
  const TCCGScalars *s     = cg->w->s; /* addresses alone */
  MatAIJTCWAXPY      waxpy = {
         ksp->work[0], old, {NULL, NULL, &s->beta, &s->betaold, &s->shift, &s->stop, PETSC_FALSE}
  };

  PetscFunctionBegin;
  cg->w->made = PETSC_FALSE;
  if (!i || old == P || !z_is_r || cg->late == cg->kept || KSPTCInVain(cg) || TCCGDirectionStops(cg)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCWAXPYMultSums(ksp, cg, cg->A, &waxpy, P, NULL, ksp->work[1], &cg->w->sums));
  if (!cg->w->sums) PetscFunctionReturn(PETSC_SUCCESS);
  cg->w->first = PETSC_FALSE;
  cg->w->made  = PETSC_TRUE;
  PetscCall(KSPTCLogFlops(cg, 2.0 * cg->n)); /* of p */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the dot product that the update finds done */
static PetscLogDouble TCCGSumsFlops(const KSP_TCCG *cg)
{
  return cg->w->sums ? 2.0 * cg->n : 0.0;
}

PetscErrorCode TCCGUpdate(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const PetscBool late   = TCCGLeavesX(cg);
  const PetscInt  writes = late ? 1 : 2;
  const Vec       v[]    = {TCCGDirectionOf(ksp, cg, i), ksp->work[1], ksp->work[0], ksp->vec_sol};
  PetscLogDouble  flops  = 2.0 * writes * cg->n + TCCGSumsFlops(cg);
  PetscScalar    *a[4]   = {NULL, NULL, NULL, NULL};

  PetscFunctionBegin;
  if (ksp->normtype == KSP_NORM_UNPRECONDITIONED) flops += 2.0 * cg->n;
  if (cg->identity) flops += TCCGIdentityFlops(ksp, cg);
  PetscCall(KSPTCStepBegin(cg, 2, writes, v, a));
  PetscCall((*cg->steps->update)(cg->n, cg->identity, a[0], a[1], a[3], a[2], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 2, writes, v, a, flops));
  cg->late = late ? cg->late + 1 : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TCCGUpdate() and TCCGPrecondition() in one step. z takes the place of w */
PetscErrorCode TCCGUpdateScaled(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const PetscBool late   = TCCGLeavesX(cg);
  const PetscInt  writes = late ? 2 : 3;
  const Vec       v[]    = {TCCGDirectionOf(ksp, cg, i), cg->diagonal.d, ksp->work[0], ksp->work[1], ksp->vec_sol};
  PetscLogDouble  flops  = (2.0 * writes - 2.0 + KSPTCDiagonalFlops(&cg->diagonal)) * cg->n + TCCGProjectFlops(ksp, cg) + TCCGSumsFlops(cg);
  PetscScalar    *a[5]   = {NULL, NULL, NULL, NULL, NULL};

  PetscFunctionBegin;
  cg->w->constant = (PetscBool)(cg->diagonal.projection == KSPTC_PROJECTION_CONSTANT);
  PetscCall(KSPTCStepBegin(cg, 2, writes, v, a));
  const PetscTCBlocks blocks = KSPTCBlocksOf(&cg->diagonal, cg->n, a[1]);

  if (blocks.size > 1) PetscCall((*cg->steps->update_blocks)(cg->n, &blocks, a[0], a[3], a[4], a[2], a[3], cg->w, cg->stream));
  else PetscCall((*cg->steps->update_scaled)(cg->n, a[0], a[3], a[1], a[4], a[2], a[3], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 2, writes, v, a, flops));
  cg->late = late ? cg->late + 1 : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of TCCGDirection() and TCCGUpdate() where A p is carried; with the preconditioner's diagonal d in place of TCCGUpdateScaled(). z_is_r: in this iteration */
PetscErrorCode TCCGAdvance(KSP ksp, KSP_TCCG *cg, PetscBool first, PetscBool z_is_r, Vec d)
{
  const PetscInt writes = d ? 5 : 4;
  PetscInt       reads  = 1;
  PetscLogDouble flops  = (first ? 4.0 : 8.0) * cg->n + TCCGSumsFlops(cg);
  Vec            v[7], carried[2] = {};
  PetscScalar   *a[7];

  PetscFunctionBegin;
  PetscCall(TCCGCarriedVectors(ksp, cg, carried));
  v[0] = carried[0];
  if (d || !z_is_r) v[reads++] = d ? d : ksp->work[1];
  v[reads]     = ksp->work[2];
  v[reads + 1] = carried[1];
  v[reads + 2] = ksp->vec_sol;
  v[reads + 3] = ksp->work[0];
  if (d) v[reads + 4] = ksp->work[1];
  if (ksp->normtype == KSP_NORM_UNPRECONDITIONED) flops += 2.0 * cg->n;
  if (d) flops += KSPTCDiagonalFlops(&cg->diagonal) * cg->n;
  if (d || cg->identity) flops += TCCGIdentityFlops(ksp, cg);
  PetscCall(KSPTCStepBegin(cg, reads, writes, v, a));
  PetscScalar **const to = a + reads;

  if (d) PetscCall((*cg->steps->advance_scaled)(cg->n, first, a[0], a[1], to[0], to[1], to[2], to[3], to[4], cg->w, cg->stream));
  else PetscCall((*cg->steps->advance)(cg->n, first, cg->identity, z_is_r ? NULL : a[1], a[0], to[0], to[1], to[2], to[3], cg->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, reads, writes, v, a, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}
