/*
   KSPTCBCGS with its iterations in few calls (tcbcgsresident.h), of which each leaves a record for every iteration. The host goes through the records as through those of iterations begun ahead, while the
   next call is under way.
*/
#include "tcbcgsimpl.h"

const KSPTCResidentKernel TCBCGSResidentKernels[KSPTC_BACKENDS] = {
  {KSPTCChipGet_Host, {KSPTCResidentCreate_Host, KSPTCResidentCreate_Host}, KSPTCStreamedCreate_Host },
#if PETSCTC_HAVE_CUDA
  {KSPTCChipGet_CUDA, {TCBCGSResidentCreate_CUDA, TCBCGSSingleCreate_CUDA}, TCBCGSStreamedCreate_CUDA}
#endif
};

/* From the right a Jacobi preconditioner makes its diagonal when it is first applied, which is here in the first solve */
PetscErrorCode TCBCGSResidentSetUp(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec v[] = {ksp->work[BCGS_P], ksp->work[BCGS_R], ksp->work[BCGS_T]};
  Mat       A;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(KSPTCResidentSetUp(ksp, bcgs, A, v, bcgs->identity, ksp->pc_side == PC_RIGHT ? ksp->work[BCGS_T] : NULL, &bcgs->diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBCGSCall(KSP_TCBCGS *bcgs, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, PetscBool *refused)
{
  KSPTCResident *state = &bcgs->resident;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (bcgs->backend == KSPTC_CUDA) {
    if (state->layout) PetscCall(TCBCGSStreamed_CUDA(state->layout, chunk, v, bcgs->w, &state->work, refused, bcgs->stream));
    else PetscCall(TCBCGSResident_CUDA(&state->form, chunk, v, bcgs->w, &state->work, refused, bcgs->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (state->layout) PetscCall(TCBCGSStreamed_Host(state->layout, chunk, v, bcgs->w, &state->work, refused, bcgs->stream));
  else PetscCall(TCBCGSResident_Host(&state->form, chunk, v, bcgs->w, &state->work, refused, bcgs->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResidentBegin(KSP ksp, KSP_TCBCGS *bcgs)
{
  const PetscInt            scaled = bcgs->diagonal.d ? 1 : 0;
  const Vec                 all[] = {bcgs->diagonal.d, ksp->work[BCGS_RP], ksp->vec_sol, ksp->work[BCGS_R], ksp->work[BCGS_P], ksp->work[BCGS_V], ksp->work[BCGS_S], ksp->work[BCGS_T]}, *v = scaled ? all : all + 1;
  PetscScalar              *array[8] = {}, **a = scaled ? array : array + 1;
  PetscBool                 refused = PETSC_FALSE;
  KSPTCChunk<TCBCGSScalars> chunk;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentChunk(ksp, bcgs, ksp->normtype == KSP_NORM_NONE ? PETSCTC_NORM_NONE : PETSCTC_NORM_RR, &chunk));
  PetscCall(KSPTCStepBegin(bcgs, scaled + 1, 6, v, a));
  const TCBCGSVectors vectors = {array[2], array[3], array[4], array[5], array[6], array[7], array[1], array[0], (PetscBool)(scaled && ksp->pc_side == PC_RIGHT), bcgs->single};

  PetscCall(TCBCGSCall(bcgs, &chunk, &vectors, &refused));
  PetscCall(KSPTCStepEnd(bcgs, scaled + 1, 6, v, a, 0.0));
  PetscCall(KSPTCResidentBegun(bcgs, chunk.last, refused));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row's are those of the steps, and so of KSPBCGS: a preconditioner on the right is applied twice too */
PetscLogDouble TCBCGSRowFlops(KSP ksp, const KSP_TCBCGS *bcgs)
{
  return (bcgs->diagonal.d || bcgs->number > 0.0 ? 24.0 : 22.0) + (bcgs->single ? 2.0 : 0.0) - (ksp->normtype == KSP_NORM_NONE ? 2.0 : 0.0);
}

PetscErrorCode TCBCGSResidentIterate(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(KSPTCResidentIterate(ksp, bcgs, i, TCBCGSResidentBegin, 2, TCBCGSRowFlops(ksp, bcgs)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
