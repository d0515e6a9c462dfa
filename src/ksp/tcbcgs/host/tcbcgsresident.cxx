/*
   Method
     Iterations of BiCGSTAB, step after step (tcbcgssteps.h) with the product of the resident form: the twin of the resident kernel, and its oracle. Rows are added in the kernel's order, dot products in
     that of the steps.

   Layout
     include/petsctc/private/ksptcform.h

   Memory traffic
     The form twice, and the vectors of the steps

   References
     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992
*/
#include <petsctc/private/tcbcgsresident.h>
#include <petsctc/private/tcbcgssteps.h>

PetscErrorCode TCBCGSResidentCreate_Host(PETSC_UNUSED const KSPTCForm *form, PETSC_UNUSED PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* product <- A y, or A B y if B stands on the right, for which scaled is work */
static void Mult(const KSPTCForm *A, const TCBCGSVectors *v, const PetscScalar y[], PetscScalar scaled[], PetscScalar product[])
{
  if (v->right) {
    for (PetscInt k = 0; k < A->m; k++) scaled[k] = y[k] * v->diagonal[k];
  }
  KSPTCFormMult_Host(A, v->right ? scaled : y, product);
}

/* v and alpha */
static PetscErrorCode Breakdown(const KSPTCForm *A, const TCBCGSVectors *v, TCBCGSWork *steps, PetscTCStream stream)
{
  const bool left = v->diagonal && !v->right;

  PetscFunctionBegin;
  Mult(A, v, v->p, v->t, left ? v->t : v->v);
  if (left) PetscCall((*TCBCGSSteps_Host.breakdown_scaled)(A->m, v->t, v->diagonal, v->rp, v->v, steps, stream));
  else PetscCall((*TCBCGSSteps_Host.breakdown)(A->m, v->v, v->rp, steps, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t and omega: r, which s has replaced, is work */
static PetscErrorCode Stabilize(const KSPTCForm *A, const TCBCGSVectors *v, TCBCGSWork *steps, PetscTCStream stream)
{
  const bool left = v->diagonal && !v->right;

  PetscFunctionBegin;
  Mult(A, v, v->s, v->r, left ? v->r : v->t);
  if (left) PetscCall((*TCBCGSSteps_Host.stabilize_scaled)(A->m, v->r, v->diagonal, v->s, v->t, steps, stream));
  else PetscCall((*TCBCGSSteps_Host.stabilize)(A->m, v->t, v->s, steps, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResident_Host(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, PETSC_UNUSED KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const PetscInt n = form->m;

  PetscFunctionBegin;
  PetscCheck(v->diagonal || !v->right, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "There is no preconditioner to stand on the right");
  *refused = PETSC_FALSE;
  for (PetscInt it = chunk->first; it < chunk->last && steps->s->stop == 0.0; it++) {
    PetscCall((*TCBCGSSteps_Host.direction)(n, v->r, v->v, v->p, steps, stream));
    PetscCall(Breakdown(form, v, steps, stream));
    if (steps->s->stop != 0.0) break;
    PetscCall((*TCBCGSSteps_Host.half)(n, v->r, v->v, v->s, steps, stream));
    PetscCall(Stabilize(form, v, steps, stream));
    if (steps->s->stop != 0.0) break;
    steps->test   = KSPTCTestAt(*chunk, it + 1);
    steps->record = &chunk->records[(it + 1) % PETSCTC_RECORDS];
    PetscCall((*TCBCGSSteps_Host.update)(n, v->p, v->s, v->t, v->rp, v->x, v->r, steps, stream));
    steps->record = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
