/* Solves of KSPTCBCGS with several right-hand sides (kspcolumnsmethod.h): what is its own */
#include "tcbcgsimpl.h"

const TCBCGSColumnsSteps *KSP_TCBCGS::columns_table(int backend)
{
#if PETSCTC_HAVE_CUDA
  if (backend == KSPTC_CUDA) return &TCBCGSColumnsSteps_CUDA;
#endif
  return backend == KSPTC_HOST ? &TCBCGSColumnsSteps_Host : NULL;
}

PetscErrorCode KSP_TCBCGS::columns_legal(KSP ksp, KSP_TCBCGS *bcgs, const char **why)
{
  PetscFunctionBegin;
  if (!bcgs->identity && ksp->pc_side != PC_LEFT) *why = "the preconditioner is not on the left";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSP_TCBCGS::columns_residual(KSP ksp, KSP_TCBCGS *bcgs, PetscInt c)
{
  PetscFunctionBegin;
  PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[BCGS_V], ksp->work[BCGS_T], ksp->work[BCGS_R], ksp->vec_rhs));
  PetscCall(KSPTCColumnLoad(bcgs, ksp->work[BCGS_R], bcgs->block.v.r + c * bcgs->block.v.stride));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSP_TCBCGS::columns_start(KSP, KSP_TCBCGS *bcgs)
{
  PetscFunctionBegin;
  bcgs->single = PETSC_FALSE;
  PetscCall((*bcgs->block.steps->start)(&bcgs->block.v, bcgs->block.w, bcgs->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a diagonal the products go where breakdown and stabilize take them from */
PetscErrorCode KSP_TCBCGS::columns_begin(KSP_TCBCGS *bcgs, const AIJTCLayout *layout, PetscInt)
{
  const TCBCGSColumnsSteps *steps = bcgs->block.steps;
  const TCBCGSColumns      *v     = &bcgs->block.v;
  TCBCGSColumnsWork        *w     = bcgs->block.w;

  PetscFunctionBegin;
  PetscCall((*steps->direction)(v, w, bcgs->stream));
  PetscCall(KSPTCColumnsMultiply(bcgs, layout, v->p, v->d ? v->t : v->v));
  PetscCall((*steps->breakdown)(v, w, bcgs->stream));
  PetscCall((*steps->half)(v, w, bcgs->stream));
  PetscCall(KSPTCColumnsMultiply(bcgs, layout, v->s, v->d ? v->r : v->t));
  PetscCall((*steps->stabilize)(v, w, bcgs->stream));
  PetscCall((*steps->update)(v, w, bcgs->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t is 0: what KSPBCGS then looks at. The column has been frozen since */
PetscErrorCode TCBCGSColumnBroken(KSP ksp, KSP_TCBCGS *bcgs)
{
  const TCBCGSColumns *v  = &bcgs->block.v;
  const PetscCount     at = bcgs->columns.which * v->stride;

  PetscFunctionBegin;
  PetscCall(KSPTCColumnStore(bcgs, v->s + at, ksp->work[BCGS_S]));
  PetscCall(KSPTCColumnStore(bcgs, v->p + at, ksp->work[BCGS_P]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPBCGS's solve. Where the first norm is NaN the count is what it was */
PetscErrorCode KSP_TCBCGS::columns_replay(KSP ksp, KSP_TCBCGS *bcgs)
{
  PetscBool failed = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPTCLogFlops(bcgs, TCBCGSStartFlops(ksp) * bcgs->n));
  PetscCall(TCBCGSFirstNorm(ksp, bcgs, &failed));
  if (failed) PetscFunctionReturn(PETSC_SUCCESS);
  ksp->reason = bcgs->columns.column[bcgs->columns.which].reason;
  if (!ksp->reason) PetscCall(TCBCGSLoop(ksp, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}
