/*
   Method
     Iterations of conjugate gradients, step after step (tccgsteps.h) with the product of the resident form, or of the layout: the twins of the two resident kernels, and their oracle. Rows are added in the
     kernel's order, dot products in that of the steps.

   Layout
     src/ksp/resident/ksptcform.h, aijtclayout.h

   Memory traffic
     The form or the layout, and the vectors of the steps

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
*/
#include <../src/ksp/tccg/tccgresident.h>
#include <../src/ksp/tccg/tccgsteps.h>

/* An iteration up to its product. mult(p, w): w <- A p */
template <class Mult>
static PetscErrorCode Begin(PetscInt n, PetscBool first, const TCCGVectors *v, TCCGWork *steps, PetscTCStream stream, Mult mult)
{
  PetscFunctionBegin;
  if (v->s) {
    PetscCall(mult(v->z, v->s));
    PetscCall((*TCCGSteps_Host.slope)(n, v->z, v->s, steps, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  const PetscScalar *const old[] = {v->p};

  PetscCall((*TCCGSteps_Host.direction)(n, first, v->z, 1, old, v->p, NULL, steps, stream));
  if (steps->s->stop != 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(mult(v->p, v->w));
  PetscCall((*TCCGSteps_Host.curvature)(n, first, v->p, v->w, steps, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(PetscInt n, PetscBool first, const TCCGVectors *v, TCCGWork *steps, PetscTCStream stream)
{
  PetscFunctionBegin;
  if (v->s && v->diagonal) PetscCall((*TCCGSteps_Host.advance_scaled)(n, first, v->s, v->diagonal, v->p, v->w, v->x, v->r, v->z, steps, stream));
  else if (v->s) PetscCall((*TCCGSteps_Host.advance)(n, first, PETSC_TRUE, NULL, v->s, v->p, v->w, v->x, v->r, steps, stream));
  else if (v->diagonal) PetscCall((*TCCGSteps_Host.update_scaled)(n, v->p, v->w, v->diagonal, v->x, v->r, v->z, steps, stream));
  else PetscCall((*TCCGSteps_Host.update)(n, PETSC_TRUE, v->p, v->w, v->x, v->r, steps, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Mult>
static PetscErrorCode Iterate(PetscInt n, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, PetscTCStream stream, Mult mult)
{
  PetscFunctionBegin;
  PetscCheck(!v->s || !v->constant, PETSC_COMM_SELF, PETSC_ERR_SUP, "Iterations that carry A p have no projection");
  for (PetscInt it = chunk->first; it < chunk->last && steps->s->stop == 0.0; it++) {
    const PetscBool first = (PetscBool)(it == 0);

    PetscCall(Begin(n, first, v, steps, stream, mult));
    if (steps->s->stop != 0.0) break;
    steps->test     = KSPTCTestAt(*chunk, it + 1);
    steps->record   = &chunk->records[(it + 1) % PETSCTC_RECORDS];
    steps->constant = v->constant;
    PetscCall(End(n, first, v, steps, stream));
    steps->record = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto mult = [form](const PetscScalar p[], PetscScalar w[]) {
    KSPTCFormMult_Host(form, p, w);
    return PETSC_SUCCESS;
  };

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  if (!KSPTCGivesUp_Host(chunk->first, work)) PetscCall(Iterate(form->m, chunk, v, steps, stream, mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto mult = [layout, stream](const PetscScalar p[], PetscScalar w[]) { return AIJTCLayoutMult_Host(layout, PETSC_FALSE, p, NULL, w, stream); };

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  if (!KSPTCGivesUp_Host(chunk->first, work)) PetscCall(Iterate(layout->m, chunk, v, steps, stream, mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}
