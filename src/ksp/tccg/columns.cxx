/* Solves of KSPTCCG with several right-hand sides (kspcolumnsmethod.h): what is its own */
#include "tccgimpl.h"

const TCCGColumnsSteps *KSP_TCCG::columns_table(int backend)
{
#if PETSCTC_HAVE_CUDA
  if (backend == KSPTC_CUDA) return &TCCGColumnsSteps_CUDA;
#endif
  return backend == KSPTC_HOST ? &TCCGColumnsSteps_Host : NULL;
}

PetscErrorCode KSP_TCCG::columns_legal(KSP ksp, KSP_TCCG *cg, const char **why)
{
  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &cg->A, NULL));
  if (cg->single_reduction) *why = "recurrences are not classic";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r and z */
PetscErrorCode KSP_TCCG::columns_residual(KSP ksp, KSP_TCCG *cg, PetscInt c)
{
  const TCCGColumns *v = &cg->block.v;

  PetscFunctionBegin;
  PetscCall(TCCGInitialResidual(ksp, cg, &cg->first_obj[c]));
  PetscCall(KSPTCColumnLoad(cg, ksp->work[0], v->r + c * v->stride));
  if (cg->identity) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSP_PCApply(ksp, ksp->work[0], ksp->work[1]));
  PetscCall(KSPTCColumnLoad(cg, ksp->work[1], v->w + c * v->stride));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSP_TCCG::columns_start(KSP ksp, KSP_TCCG *cg)
{
  const TCCGColumnsSteps *steps = cg->block.steps;

  PetscFunctionBegin;
  cg->late = 0;
  PetscCall((*steps->project)(&cg->block.v, cg->block.w, cg->stream));
  if (ksp->normtype == KSP_NORM_UNPRECONDITIONED && !cg->identity) PetscCall((*steps->residual)(&cg->block.v, cg->block.w, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscReal KSP_TCCG::columns_square(KSP ksp, const KSP_TCCG *cg, const TCCGScalars *s)
{
  if (ksp->normtype == KSP_NORM_NATURAL) return s->beta;
  return ksp->normtype == KSP_NORM_PRECONDITIONED || cg->identity ? s->zz : s->rr;
}

PetscErrorCode KSP_TCCG::columns_begin(KSP_TCCG *cg, const AIJTCLayout *layout, PetscInt it)
{
  const TCCGColumnsSteps *steps = cg->block.steps;
  const TCCGColumns      *v     = &cg->block.v;
  const PetscBool         first = (PetscBool)(it == 1);

  PetscFunctionBegin;
  PetscCall((*steps->direction)(v, first, cg->block.w, cg->stream));
  PetscCall(KSPTCColumnsMultiply(cg, layout, v->p, v->w));
  PetscCall((*steps->curvature)(v, first, cg->block.w, cg->stream));
  PetscCall((*steps->update)(v, cg->block.w, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSP_TCCG::columns_finish(KSP_TCCG *cg)
{
  PetscFunctionBegin;
  PetscCall((*cg->block.steps->settle)(&cg->block.v, cg->block.w, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG's solve */
PetscErrorCode KSP_TCCG::columns_replay(KSP ksp, KSP_TCCG *cg)
{
  PetscBool failed = PETSC_FALSE;
  PetscReal dp;

  PetscFunctionBegin;
  ksp->its  = 0;
  cg->known = PETSC_TRUE;
  cg->obj   = cg->first_obj[cg->columns.which];
  PetscCall(KSPTCLogFlops(cg, (ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED ? 4.0 : 2.0) * cg->n)); /* z.r, and the norm unless it is that */
  PetscCall(TCCGNorm(ksp, cg, 0, &dp, &failed));
  if (failed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall(KSPTCMonitor(ksp, cg, 0, dp));
  ksp->rnorm  = dp;
  ksp->reason = cg->columns.column[cg->columns.which].reason;
  if (!ksp->reason) PetscCall(KSPTCCheckDot(ksp, cg->s.beta, &failed));
  if (!ksp->reason && !failed) PetscCall(TCCGLoop(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}
