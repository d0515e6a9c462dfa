/*
   Method
     Iterations of BiCGSTAB, step after step (tcbcgssteps.h) with the product of the resident form, or of the layout: the twins of the two resident kernels, and their oracle. Rows are added in the kernel's order, dot products in
     that of the steps.

   Layout
     src/ksp/resident/ksptcform.h, aijtclayout.h

   Memory traffic
     The form or the layout twice, and the vectors of the steps

   References
     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992
*/
#include <../src/ksp/tcbcgs/tcbcgsresident.h>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

/* Iterations with a product of the matrix: multiply(y, product) */
template <class Multiply>
class Iterations {
public:
  Iterations(PetscInt n, const TCBCGSVectors *v, TCBCGSWork *steps, PetscTCStream stream, Multiply multiply) : n_(n), v_(v), steps_(steps), stream_(stream), multiply_(multiply) { }

  PetscErrorCode run(const KSPTCChunk<TCBCGSScalars> *chunk) const
  {
    PetscFunctionBegin;
    PetscCheck(v_->diagonal || !v_->right, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "There is no preconditioner to stand on the right");
    for (PetscInt it = chunk->first; it < chunk->last && steps_->s->stop == 0.0; it++) {
      if (steps_->s->advanced == 0.0) PetscCall((*TCBCGSSteps_Host.direction)(n_, v_->r, v_->v, v_->p, steps_, stream_));
      PetscCall(breakdown());
      if (steps_->s->stop != 0.0) break;
      PetscCall((*TCBCGSSteps_Host.half)(n_, v_->r, v_->v, v_->s, steps_, stream_));
      PetscCall(stabilize());
      if (steps_->s->stop != 0.0) break;
      steps_->test   = KSPTCTestAt(*chunk, it + 1);
      steps_->record = &chunk->records[(it + 1) % PETSCTC_RECORDS];
      if (v_->single) PetscCall((*TCBCGSSteps_Host.advance)(n_, v_->s, v_->t, v_->v, v_->x, v_->r, v_->p, steps_, stream_));
      else PetscCall((*TCBCGSSteps_Host.update)(n_, v_->p, v_->s, v_->t, v_->rp, v_->x, v_->r, steps_, stream_));
      steps_->record = NULL;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

private:
  bool left() const { return v_->diagonal && !v_->right; }

  /* product <- A y, or A B y if B stands on the right, for which scaled is work */
  PetscErrorCode mult(const PetscScalar y[], PetscScalar scaled[], PetscScalar product[]) const
  {
    PetscFunctionBegin;
    if (v_->right) {
      for (PetscInt k = 0; k < n_; k++) scaled[k] = y[k] * v_->diagonal[k];
    }
    PetscCall(multiply_(v_->right ? scaled : y, product));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* v and alpha */
  PetscErrorCode breakdown() const
  {
    PetscFunctionBegin;
    PetscCall(mult(v_->p, v_->t, left() ? v_->t : v_->v));
    if (left()) PetscCall((*TCBCGSSteps_Host.breakdown_scaled)(n_, v_->t, v_->diagonal, v_->rp, v_->v, steps_, stream_));
    else PetscCall((*TCBCGSSteps_Host.breakdown)(n_, v_->v, v_->rp, steps_, stream_));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* t and omega: r, which s has replaced, is work */
  PetscErrorCode stabilize() const
  {
    PetscFunctionBegin;
    PetscCall(mult(v_->s, v_->r, left() ? v_->r : v_->t));
    if (left()) PetscCall((*TCBCGSSteps_Host.stabilize_scaled)(n_, v_->r, v_->diagonal, v_->s, v_->single ? v_->rp : NULL, v_->t, steps_, stream_));
    else PetscCall((*TCBCGSSteps_Host.stabilize)(n_, v_->t, v_->s, v_->single ? v_->rp : NULL, steps_, stream_));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  PetscInt             n_;
  const TCBCGSVectors *v_;
  TCBCGSWork          *steps_;
  PetscTCStream        stream_;
  Multiply             multiply_;
};

PetscErrorCode TCBCGSResident_Host(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto multiply = [form](const PetscScalar y[], PetscScalar product[]) {
    KSPTCFormMult_Host(form, y, product);
    return PETSC_SUCCESS;
  };

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  if (!KSPTCGivesUp_Host(chunk->first, work)) PetscCall(Iterations(form->m, v, steps, stream, multiply).run(chunk));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const auto multiply = [layout, stream](const PetscScalar y[], PetscScalar product[]) { return AIJTCLayoutMult_Host(layout, PETSC_FALSE, y, NULL, product, stream); };

  PetscFunctionBegin;
  PetscCheck(!v->single, PETSC_COMM_SELF, PETSC_ERR_SUP, "With the matrix read from its layout recurrences are classic");
  *refused = PETSC_FALSE;
  if (!KSPTCGivesUp_Host(chunk->first, work)) PetscCall(Iterations(layout->m, v, steps, stream, multiply).run(chunk));
  PetscFunctionReturn(PETSC_SUCCESS);
}
