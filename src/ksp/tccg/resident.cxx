/*
   KSPTCCG with its iterations in few calls (tccgresident.h), of which each leaves a record for every iteration. The host goes through the records as through those of iterations begun ahead, while the next
   call is under way.
*/
#include "tccgimpl.h"

const KSPTCResidentKernel TCCGResidentKernels[KSPTC_BACKENDS] = {
  {KSPTCChipGet_Host, {KSPTCResidentCreate_Host, KSPTCResidentCreate_Host}, KSPTCStreamedCreate_Host},
#if PETSCTC_HAVE_CUDA
  {KSPTCChipGet_CUDA, {TCCGResidentCreate_CUDA, TCCGSingleCreate_CUDA},     TCCGStreamedCreate_CUDA }
#endif
};

static PetscErrorCode TCCGCall(KSP_TCCG *cg, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, PetscBool *refused)
{
  KSPTCResident *state = &cg->resident;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) {
    if (state->layout) PetscCall(TCCGStreamed_CUDA(state->layout, chunk, v, cg->w, &state->work, refused, cg->stream));
    else if (state->variant == KSPTC_VARIANT_SINGLE) PetscCall(TCCGSingle_CUDA(&state->form, chunk, v, cg->w, &state->work, refused, cg->stream));
    else PetscCall(TCCGResident_CUDA(&state->form, chunk, v, cg->w, &state->work, refused, cg->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (state->layout) PetscCall(TCCGStreamed_Host(state->layout, chunk, v, cg->w, &state->work, refused, cg->stream));
  else PetscCall(TCCGResident_Host(&state->form, chunk, v, cg->w, &state->work, refused, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentBegin(KSP ksp, KSP_TCCG *cg)
{
  const bool              scaled = !cg->identity, carries = TCCGCarries(cg);
  const PetscInt          writes  = carries ? 6 : 4;
  PetscBool               refused = PETSC_FALSE;
  PetscInt                read    = 0;
  Vec                     v[7];
  PetscScalar            *a[7] = {};
  KSPTCChunk<TCCGScalars> chunk;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentChunk(ksp, cg, KSPTCNormOfType(ksp->normtype), &chunk));
  if (scaled) v[read++] = cg->diagonal.d;
  PetscScalar **const written = a + read;

  v[read]     = ksp->vec_sol;
  v[read + 1] = ksp->work[0];
  v[read + 2] = ksp->work[2];
  v[read + 3] = ksp->work[1];
  if (carries) PetscCall(TCCGCarriedVectors(ksp, cg, v + read + 4));
  PetscCall(KSPTCStepBegin(cg, read, writes, v, a));
  const TCCGVectors vectors =
    {written[0], written[1], written[2], scaled ? written[3] : written[1], scaled ? a[0] : NULL, carries ? written[5] : written[3], (PetscBool)(cg->diagonal.projection == KSPTC_PROJECTION_CONSTANT), carries ? written[4] : NULL};

  PetscCall(TCCGCall(cg, &chunk, &vectors, &refused));
  PetscCall(KSPTCStepEnd(cg, read, writes, v, a, 0.0));
  PetscCall(KSPTCResidentBegun(cg, chunk.last, refused));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row's, of the steps and so of KSPCG */
PetscLogDouble TCCGRowFlops(KSP ksp, const KSP_TCCG *cg, PetscInt i)
{
  PetscLogDouble flops = i ? 8.0 : 6.0; /* direction, curvature, update */

  if (TCCGCarries(cg) && i) flops += 2.0; /* A p */

  if (ksp->normtype == KSP_NORM_UNPRECONDITIONED) flops += 2.0;
  flops += ksp->normtype == KSP_NORM_PRECONDITIONED ? 4.0 : 2.0;
  return flops + KSPTCDiagonalFlops(&cg->diagonal);
}

PetscErrorCode TCCGResidentIterate(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(KSPTCResidentIterate(ksp, cg, i, TCCGResidentBegin, 1, TCCGRowFlops(ksp, cg, i)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
