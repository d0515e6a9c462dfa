/*
   Method
     Iterations of conjugate gradients, step after step (tccgsteps.h) with the product of the resident form, or of the layout: the twins of the two resident kernels, and their oracle. Rows are added in the
     kernel's order, dot products in that of the steps.

   Layout
     include/petsctc/private/ksptcform.h, aijtclayout.h

   Memory traffic
     The form or the layout, and the vectors of the steps

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
*/
#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

/* mult(): w <- A p */
template <class Mult>
static PetscErrorCode Iterate(PetscInt n, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, PetscTCStream stream, Mult mult)
{
  PetscFunctionBegin;
  for (PetscInt it = chunk->first; it < chunk->last && steps->s->stop == 0.0; it++) {
    const PetscBool first = (PetscBool)(it == 0);

    PetscCall((*TCCGSteps_Host.direction)(n, first, v->z, v->p, NULL, steps, stream));
    if (steps->s->stop != 0.0) break;
    PetscCall(mult());
    PetscCall((*TCCGSteps_Host.curvature)(n, first, v->p, v->w, steps, stream));
    steps->test     = KSPTCTestAt(*chunk, it + 1);
    steps->record   = &chunk->records[(it + 1) % PETSCTC_RECORDS];
    steps->constant = v->constant;
    if (v->diagonal) PetscCall((*TCCGSteps_Host.update_scaled)(n, v->p, v->w, v->diagonal, v->x, v->r, v->z, steps, stream));
    else PetscCall((*TCCGSteps_Host.update)(n, PETSC_TRUE, v->p, v->w, v->x, v->r, steps, stream));
    steps->record = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, PETSC_UNUSED KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto mult = [&]() {
    KSPTCFormMult_Host(form, v->p, v->w);
    return PETSC_SUCCESS;
  };

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  PetscCall(Iterate(form->m, chunk, v, steps, stream, mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, PETSC_UNUSED KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto mult = [&]() { return AIJTCLayoutMult_Host(layout, PETSC_FALSE, v->p, NULL, v->w, stream); };

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  PetscCall(Iterate(layout->m, chunk, v, steps, stream, mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}
