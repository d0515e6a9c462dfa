/*
   Products of matrices. PETSc dispatches on exact type names, so the dispatch and both phases run while the operands (and the result) are plain parents.

   One function serves as ops->productsetfromoptions and as the composed hook for mixed types. It lets PETSc choose the phases, then puts wrappers before them that open the scope
   again. What the wrappers have to call is kept in a container on the result; some phases replace the result's header, and with it what is composed there, so the container is
   held across each phase and composed again.
*/
#include <petsctc/private/aijtcimpl.h>

static constexpr char PRODUCT_CONTAINER[] = "__AIJTC_product";

typedef struct {
  PetscErrorCode (*symbolic)(Mat), (*numeric)(Mat); /* PETSc's */
  Mat              B;                               /* the product's B in a type that the parent multiplies; NULL: as it is */
  Mat              source;                          /* what it was made from, and in which state: another B may be put in place, or its values may change */
  PetscObjectState state;
} MatAIJTCProduct;

static PetscErrorCode MatAIJTCProductDestroy(PetscCtxRt ctx)
{
  MatAIJTCProduct *p = *(MatAIJTCProduct **)ctx;

  PetscFunctionBegin;
  PetscCall(MatDestroy(&p->B));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A phase of the product: between Begin and End all its matrices are plain parents and B is the converted one */
typedef struct {
  MatAIJTCProduct *product;
  PetscObject      container;
  Mat              B;
  MatAIJTCScope    scope;
} MatAIJTCPhase;

/* With a MAIJ, PETSc multiplies on the device only what MatCreateMAIJ() made from an exact AIJCUSPARSE: give it such a one for the time of the phases */
static PetscErrorCode MatAIJTCConvertMAIJ(const Mat_Product *p, MatAIJTCProduct *product)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(p->A) ? MatAIJTCClassOf(p->A) : MatAIJTCClassOf(p->B);
  PetscObjectState     state;
  PetscBool            maij;
  Mat                  inner;

  PetscFunctionBegin;
  if (!c || !c->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)p->B, &maij, MATSEQMAIJ, MATMPIMAIJ, ""));
  if (!maij) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMAIJGetAIJ(p->B, &inner));
  PetscCall(PetscObjectStateGet((PetscObject)inner, &state));
  if (product->B && product->source == p->B && product->state == state) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDestroy(&product->B));
  PetscCall(MatConvert(p->B, c->parenttype, MAT_INITIAL_MATRIX, &product->B));
  product->source = p->B;
  product->state  = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCPhaseBegin(Mat C, MatAIJTCPhase *phase)
{
  Mat_Product *p = C->product;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)C, PRODUCT_CONTAINER, &phase->container));
  PetscCheck(phase->container, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "The result of a product lost what its phases need");
  PetscCall(PetscObjectReference(phase->container));
  PetscCall(PetscContainerGetPointer((PetscContainer)phase->container, &phase->product));
  PetscCall(MatAIJTCConvertMAIJ(p, phase->product));
  phase->B = p->B;
  if (phase->product->B) p->B = phase->product->B;
  PetscCall(MatAIJTCScopeBegin(&phase->scope, p->A, phase->B, p->C, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCPhaseEnd(Mat C, MatAIJTCPhase *phase)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCScopeEnd(&phase->scope));
  if (C->product) C->product->B = phase->B;
  PetscCall(PetscObjectCompose((PetscObject)C, PRODUCT_CONTAINER, phase->container));
  PetscCall(PetscObjectDereference(phase->container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_AIJTC(Mat C)
{
  MatAIJTCPhase  phase;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  C->ops->productnumeric = phase.product->numeric;
  ierr                   = (*phase.product->numeric)(C);
  phase.product->numeric = C->ops->productnumeric; /* a product of three by two products sets it anew */
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  C->ops->productnumeric = MatProductNumeric_AIJTC;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE's first triple product is garbage if only the device has an operand's values: bring them to the host */
static PetscErrorCode MatAIJTCSyncOperands(const Mat_Product *p, const MatAIJTCScope *scope)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (p->type != MATPRODUCT_PtAP && p->type != MATPRODUCT_RARt && p->type != MATPRODUCT_ABC) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3; k++) {
    Mat                  A = scope->A[k];
    const MatAIJTCClass *c = scope->c[k];
    const PetscScalar   *v;

    if (!c || !c->cuda || c->mpi || A->offloadmask != PETSC_OFFLOAD_GPU) continue;
    PetscCall(MatSeqAIJGetArrayRead(A, &v));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &v));
  }
#else
  (void)p;
  (void)scope;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_AIJTC(Mat C)
{
  MatAIJTCPhase        phase;
  PetscErrorCode       ierr;
  const MatAIJTCClass *first; /* PETSc gives a sparse result the type of its first operand */

  PetscFunctionBegin;
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  PetscCall(MatAIJTCSyncOperands(C->product, &phase.scope));
  first                   = phase.scope.c[0];
  C->ops->productsymbolic = phase.product->symbolic;
  ierr                    = (*phase.product->symbolic)(C);
  phase.product->numeric  = C->ops->productnumeric;
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  PetscCall(ierr);
  if (first) PetscCall(MatAIJTCBrandResult(C, first->cuda));
  C->ops->productsymbolic = MatProductSymbolic_AIJTC;
  if (phase.product->numeric) C->ops->productnumeric = MatProductNumeric_AIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_AIJTC(Mat C)
{
  MatAIJTCProduct *product;
  MatAIJTCPhase    phase;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(PetscNew(&product));
  PetscCall(PetscObjectContainerCompose((PetscObject)C, PRODUCT_CONTAINER, product, MatAIJTCProductDestroy));
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  ierr = MatProductSetFromOptions(C);
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  PetscCall(ierr);
  product->symbolic = C->ops->productsymbolic;
  if (product->symbolic) C->ops->productsymbolic = MatProductSymbolic_AIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}
