/*
   -mat_aijtc_keep_csr false: the parent's device arrays are freed once the layout holds the matrix and the host has the values.

   AIJCUSPARSE has no function for that. What it keeps on the device hangs on the matrix' spptr, which its own destroy frees. So the matrix takes the spptr of an empty parent, and that
   parent is destroyed with the other. To AIJCUSPARSE the matrix is then one whose values were never on the device: it copies them there when an operation asks for them.
*/
#include <petsctc/private/aijtcimpl.h>

#if PETSCTC_HAVE_CUDA
/*
   The arrays stay
     - if the host does not have the newest values: they would have to be copied there;
     - if the matrix was never assembled: AIJCUSPARSE knows by the state of the pattern, which is 0 in the empty parent, that it has no pattern on the device;
     - if the matrix is the result of a product, or is kept by its nonempty rows: a product that is computed again holds on to the device arrays of either.
   In parent scope.
*/
static PetscErrorCode MatAIJTCCanRelease(Mat A, PetscBool *can)
{
  const PetscInt *i, *ifull, *j;

  PetscFunctionBegin;
  *can = PETSC_FALSE;
  if (A->offloadmask != PETSC_OFFLOAD_BOTH || !A->nonzerostate || A->product || !A->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &ifull, &j));
  *can = (PetscBool)(i == ifull);
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &ifull, &j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's options, such as its algorithms, are in its spptr too: the empty parent reads those of A */
static PetscErrorCode MatAIJTCCreateEmptyParent(Mat A, const MatAIJTCClass *c, Mat *P)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, P));
  PetscCall(MatSetSizes(*P, A->rmap->n, A->cmap->n, A->rmap->n, A->cmap->n));
  PetscCall(MatAIJTCSetParentType(*P, c->parenttype));
  PetscCall(PetscObjectSetOptions((PetscObject)*P, ((PetscObject)A)->options));
  PetscCall(MatSetOptionsPrefix(*P, ((PetscObject)A)->prefix));
  PetscObjectOptionsBegin((PetscObject)*P);
  PetscCall((*c->parent.setfromoptions)(*P, PetscOptionsObject));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCReleaseInScope(Mat A, const MatAIJTCClass *c)
{
  PetscBool can;
  Mat       P;
  void     *spptr;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCanRelease(A, &can));
  if (!can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCCreateEmptyParent(A, c, &P));
  spptr           = P->spptr;
  P->spptr        = A->spptr;
  A->spptr        = spptr;
  A->offloadmask  = PETSC_OFFLOAD_CPU;
  A->transupdated = PETSC_FALSE; /* the explicit transpose is gone too */
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a product with the layout: once for each new state of the layout, if the arrays shall not stay */
PetscErrorCode MatAIJTCReleaseCSR(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  const PetscInt changes = tc->builds + tc->refreshes;

  PetscFunctionBegin;
  if (!c->cuda || tc->settings.keep_csr || tc->released == changes) PetscFunctionReturn(PETSC_SUCCESS);
  tc->released = changes;
  MatAIJTCCallParent(A, NULL, MatAIJTCReleaseInScope(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
