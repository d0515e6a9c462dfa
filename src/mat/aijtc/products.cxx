/*
   Products of matrices. PETSc dispatches on exact type names, so the dispatch and both phases run while the operands (and the result) are plain parents.

   One function serves as ops->productsetfromoptions and as the composed hook for mixed types. It lets PETSc choose the phases, then puts wrappers before them that open the scope
   again. What the wrappers have to call is kept in a container on the result; some phases replace the result's header, and with it what is composed there, so the container is
   held across each phase and composed again.

   Two rules (docs/mat-inheritance.md): an operand with a hook of its own, a MATTRANSPOSEVIRTUAL say, goes first; and what PETSc changed during a phase stays.
*/
#include <petsctc/private/aijtcimpl.h>

static constexpr char PRODUCT_CONTAINER[] = "__AIJTC_product";

/* What is done to a product's B before PETSc multiplies with it */
typedef enum {
  AIJTC_B_AS_IT_IS,
  AIJTC_B_EXPLICIT,  /* a MAIJ: PETSc multiplies on the device only what MatCreateMAIJ() made from an exact AIJCUSPARSE */
  AIJTC_B_TRANSPOSED /* A B^T of sequential AIJCUSPARSE crashes, and in parallel PETSc computes it wrongly again: A times the transpose of B instead */
} MatAIJTCOperand;

typedef struct {
  PetscErrorCode (*symbolic)(Mat), (*numeric)(Mat); /* PETSc's */
  MatAIJTCOperand    operand;
  Mat                B;      /* the product's B in a type that the parent multiplies; NULL: as it is */
  PetscObjectId      source; /* what it was made from, and in which state: another B may be put in place, or its values may change */
  PetscObjectState   state, nonzerostate;
  PetscBool          host;   /* PETSc multiplies these device matrices on the host */
  PetscBool          copies; /* PETSc's symbolic phase keeps a copy of A's values in this state */
  PetscObjectState   stateA;
  PetscBool          holds; /* and products of these operands: others put in their place would not be seen */
  PetscObjectId      operands[3];
  PetscCtxDestroyFn *destroy;   /* what destroys the data of the symbolic phase */
  PetscBool          hostdense; /* the result was a MATSEQDENSE when it was given to the symbolic phase */
} MatAIJTCProduct;

static PetscErrorCode MatAIJTCProductDestroy(PetscCtxRt ctx)
{
  MatAIJTCProduct *p = *(MatAIJTCProduct **)ctx;

  PetscFunctionBegin;
  PetscCall(MatDestroy(&p->B));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_AIJTC(Mat);

/* A phase of the product: between Begin and End all its matrices are plain parents and B is the converted one */
typedef struct {
  MatAIJTCProduct *product;
  PetscObject      container;
  MatProductType   type;
  Mat              B;
  MatAIJTCScope    scope;
} MatAIJTCPhase;

/* A parallel matrix, or a sequential one whose products are made on the device */
static PetscErrorCode MatIsParallelOrDevice(Mat A, PetscBool *is)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            bound;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, is));
  if (*is) PetscFunctionReturn(PETSC_SUCCESS);
  if (c) *is = c->cuda;
  else PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, is));
  PetscCall(MatBoundToCPU(A, &bound));
  if (bound) *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCChooseOperand(const Mat_Product *p, MatAIJTCProduct *product)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(p->A) ? MatAIJTCClassOf(p->A) : MatAIJTCClassOf(p->B);
  PetscBool            maij, a, b;

  PetscFunctionBegin;
  product->operand = AIJTC_B_AS_IT_IS;
  if (p->type == MATPRODUCT_ABt) {
    PetscCall(MatIsParallelOrDevice(p->A, &a));
    PetscCall(MatIsParallelOrDevice(p->B, &b));
    if (a && b) product->operand = AIJTC_B_TRANSPOSED;
  } else if (c && c->cuda) {
    PetscCall(PetscObjectTypeCompareAny((PetscObject)p->B, &maij, MATSEQMAIJ, MATMPIMAIJ, ""));
    if (maij) product->operand = AIJTC_B_EXPLICIT;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A transpose made before gets the values that B has now. Where the state of B's pattern has changed PETSc refuses to do so, though the pattern may be the same */
static PetscErrorCode MatAIJTCTransposeAgain(Mat B, PetscBool samestate, Mat T)
{
  PetscFunctionBegin;
  if (samestate) {
    PetscCall(MatTranspose(B, MAT_REUSE_MATRIX, &T));
#if PETSCTC_HAVE_CUDA
    Mat b[2];

    PetscCall(MatAIJTCGetBlocksOrSelf(T, b));
    for (Mat block : b) {
      if (block) PetscCall(MatAIJTCHostIsNewest(block));
    }
#endif
  } else {
    Mat another;

    PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &another));
    PetscCall(MatAIJTCStrip(another));
    PetscCall(MatCopy(another, T, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&another));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B^T as a plain parent. Once there it stays the same object, whose arrays the symbolic phase may have kept */
static PetscErrorCode MatAIJTCTransposeOperand(const Mat_Product *p, MatAIJTCProduct *product)
{
  PetscFunctionBegin;
  if (product->B && product->source == ((PetscObject)p->B)->id) PetscCall(MatAIJTCTransposeAgain(p->B, (PetscBool)(product->nonzerostate == p->B->nonzerostate), product->B));
  else {
    PetscCall(MatDestroy(&product->B));
    PetscCall(MatTranspose(p->B, MAT_INITIAL_MATRIX, &product->B));
    PetscCall(MatAIJTCStrip(product->B));
  }
  product->nonzerostate = p->B->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCConvertOperand(const Mat_Product *p, MatAIJTCProduct *product)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(p->A) ? MatAIJTCClassOf(p->A) : MatAIJTCClassOf(p->B);
  PetscObjectState     state;
  Mat                  inner = p->B;

  PetscFunctionBegin;
  if (product->operand == AIJTC_B_AS_IT_IS) PetscFunctionReturn(PETSC_SUCCESS);
  if (product->operand == AIJTC_B_EXPLICIT) PetscCall(MatMAIJGetAIJ(p->B, &inner));
  PetscCall(PetscObjectStateGet((PetscObject)inner, &state));
  if (product->B && product->source == ((PetscObject)p->B)->id && product->state == state) PetscFunctionReturn(PETSC_SUCCESS);
  if (product->operand == AIJTC_B_TRANSPOSED) PetscCall(MatAIJTCTransposeOperand(p, product));
  else {
    PetscCall(MatDestroy(&product->B));
    PetscCall(MatConvert(p->B, c->parenttype, MAT_INITIAL_MATRIX, &product->B));
  }
  product->source = ((PetscObject)p->B)->id;
  product->state  = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   On the host PETSc reuses transposes of the operands' blocks, and a transpose of AIJCUSPARSE that is reused keeps its old values on the device (docs/mat-inheritance.md). Ours
   does not: so the blocks stay ours while the MPI matrices are plain parents.
*/
static PetscErrorCode MatAIJTCKeepBlocks(const MatAIJTCPhase *phase)
{
  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) { /* the operands, not the result */
    MatAIJTCClass *c = phase->scope.c[k], *s;
    Mat            b[2];

    if (!c || !c->cuda || !c->mpi) continue;
    PetscCall(MatAIJTCGetClass(AIJTC_SEQ_CUDA, &s));
    PetscCall(MatAIJTCGetBlocks(phase->scope.A[k], b));
    for (Mat B : b) {
      if (B) PetscCall(MatAIJTCBrand(B, s));
    }
  }
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
  PetscCall(MatAIJTCConvertOperand(p, phase->product));
  phase->B    = p->B;
  phase->type = p->type;
  if (phase->product->B) p->B = phase->product->B;
  if (phase->product->operand == AIJTC_B_TRANSPOSED) p->type = MATPRODUCT_AB;
  PetscCall(MatAIJTCScopeBegin(&phase->scope, p->A, phase->B, p->C, C));
  for (int k = 0; k < 3; k++) PetscCall(PetscObjectReference((PetscObject)phase->scope.A[k])); /* a phase may let go of an operand, which is branded after it */
  if (phase->product->host) PetscCall(MatAIJTCKeepBlocks(phase));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PhaseBegin() has put in place goes, unless PETSc has put something else there: that stays */
static PetscErrorCode MatAIJTCPhaseEnd(Mat C, MatAIJTCPhase *phase)
{
  Mat_Product *p = C->product;

  PetscFunctionBegin;
  PetscCall(MatAIJTCScopeEnd(&phase->scope));
  if (p && phase->product->B && p->B == phase->product->B) {
    p->B = phase->B;
    if (phase->product->operand == AIJTC_B_TRANSPOSED && p->type == MATPRODUCT_AB) p->type = phase->type;
  }
  for (int k = 0; k < 3; k++) PetscCall(PetscObjectDereference((PetscObject)phase->scope.A[k]));
  PetscCall(PetscObjectCompose((PetscObject)C, PRODUCT_CONTAINER, phase->container));
  PetscCall(PetscObjectDereference(phase->container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Brings operands to the host whose values only the device has. AIJCUSPARSE's first triple product of sequential matrices is garbage otherwise; parallel ones on the host read the blocks' arrays as they
   are (algorithms scalable, allatonce, allatonce_merged)
*/
static PetscErrorCode MatAIJTCSyncOperands(const MatAIJTCPhase *phase)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  const bool triple = phase->type == MATPRODUCT_PtAP || phase->type == MATPRODUCT_RARt || phase->type == MATPRODUCT_ABC;

  for (int k = 0; k < 3; k++) {
    const MatAIJTCClass *c    = phase->scope.c[k];
    Mat                  b[2] = {phase->scope.A[k], NULL};

    if (!c || !c->cuda || !(c->mpi ? phase->product->host : triple)) continue;
    if (c->mpi) PetscCall(MatAIJTCGetBlocks(phase->scope.A[k], b));
    for (Mat B : b) PetscCall(MatAIJTCSyncHost(B));
  }
#else
  (void)phase;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operands, B as the user gave it */
static inline void MatAIJTCOperandIds(const Mat_Product *p, Mat B, PetscObjectId id[3])
{
  id[0] = ((PetscObject)p->A)->id;
  id[1] = ((PetscObject)B)->id;
  id[2] = p->C ? ((PetscObject)p->C)->id : 0;
}

/* What the symbolic phase has left, and of which operands */
static PetscErrorCode MatAIJTCSymbolicDone(Mat C, Mat B, MatAIJTCProduct *product)
{
  const Mat_Product *p = C->product;

  PetscFunctionBegin;
  product->numeric = C->ops->productnumeric;
  product->destroy = p->destroy;
  product->stateA  = ((PetscObject)p->A)->state;
  MatAIJTCOperandIds(p, B, product->operands);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both phases before the numeric one once more, if PETSc keeps what is no more so. In scope */
static PetscErrorCode MatAIJTCSymbolicAgain(Mat C, MatAIJTCPhase *phase)
{
  MatAIJTCProduct *product = phase->product;
  Mat_Product     *p       = C->product;
  PetscObjectId    id[3];
  PetscBool        same;

  PetscFunctionBegin;
  MatAIJTCOperandIds(p, phase->B, id);
  PetscCall(PetscArraycmp(id, product->operands, 3, &same));
  if ((same || !(product->copies || product->holds)) && (!product->copies || product->stateA == ((PetscObject)p->A)->state)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(p->destroy == product->destroy, PetscObjectComm((PetscObject)C), PETSC_ERR_SUP, "A product with a scaled transpose cannot be computed again after its operands changed: use MAT_INITIAL_MATRIX");
  if (p->destroy) PetscCall((*p->destroy)(&p->data));
  p->data                 = NULL;
  p->destroy              = NULL;
  C->ops->productsymbolic = NULL;
  PetscCall(MatProductSetFromOptions(C));
  PetscCall((*C->ops->productsymbolic)(C));
  PetscCall(MatAIJTCSymbolicDone(C, phase->B, product));
  C->ops->productsymbolic = MatProductSymbolic_AIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCCallNumeric(Mat C, MatAIJTCPhase *phase)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCSymbolicAgain(C, phase));
  if (phase->product->host) PetscCall(MatAIJTCSyncOperands(phase));
  C->ops->productnumeric = phase->product->numeric;
  PetscCall((*phase->product->numeric)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result's own entry stays: a MATTRANSPOSEVIRTUAL with a factor has put its function there, which calls this one */
static PetscErrorCode MatProductNumeric_AIJTC(Mat C)
{
  PetscErrorCode (*const entry)(Mat) = C->ops->productnumeric;
  MatAIJTCProduct *product;
  MatAIJTCPhase    phase;
  PetscErrorCode   ierr;
  PetscBool        done;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)C, PRODUCT_CONTAINER, &product));
  PetscCall(MatAIJTCMultDense(C, (PetscBool)(product && product->hostdense), &done));
  if (done) {
    C->ops->productnumeric = entry;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  ierr                   = MatAIJTCCallNumeric(C, &phase);
  phase.product->numeric = C->ops->productnumeric; /* a product of three by two products sets it anew */
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  C->ops->productnumeric = entry;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_AIJTC(Mat C)
{
  MatAIJTCPhase        phase;
  PetscErrorCode       ierr;
  const MatAIJTCClass *first; /* PETSc gives a sparse result the type of its first operand */

  PetscFunctionBegin;
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  PetscCall(MatAIJTCSyncOperands(&phase));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSE, &phase.product->hostdense));
  first                   = phase.scope.c[0];
  C->ops->productsymbolic = phase.product->symbolic;
  ierr                    = (*phase.product->symbolic)(C);
  if (!ierr) PetscCall(MatAIJTCSymbolicDone(C, phase.B, phase.product));
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  PetscCall(ierr);
  if (first) PetscCall(MatAIJTCBrandResult(C, first->cuda));
  C->ops->productsymbolic = MatProductSymbolic_AIJTC;
  if (phase.product->numeric) C->ops->productnumeric = MatProductNumeric_AIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own rule: bound operands, or as the options say */
static PetscErrorCode MatAIJTCChooseHost(Mat C, MatAIJTCProduct *product)
{
  const Mat_Product *p         = C->product;
  const char        *options[] = {"-mat_product_algorithm_backend_cpu", p->type == MATPRODUCT_PtAP ? "-matptap_backend_cpu" : "-mattransposematmult_backend_cpu"};
  PetscBool          a, b;

  PetscFunctionBegin;
  product->host = PETSC_FALSE;
  if (p->type != MATPRODUCT_PtAP && p->type != MATPRODUCT_AtB) PetscFunctionReturn(PETSC_SUCCESS); /* no other transposes blocks */
  PetscCall(PetscOptionsGetBool(((PetscObject)C)->options, ((PetscObject)C)->prefix, options[p->api_user ? 1 : 0], &product->host, NULL));
  PetscCall(MatBoundToCPU(p->A, &a));
  PetscCall(MatBoundToCPU(p->B, &b));
  if (a || b) product->host = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^T D in parallel: PETSc multiplies with a MAIJ of A, which for an AIJCUSPARSE is a copy of its values. Products of three, and parallel ones, of device matrices hold products of their operands, or of their blocks */
static PetscErrorCode MatAIJTCChooseCopies(const Mat_Product *p, MatAIJTCProduct *product)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(p->A), *either = c ? c : MatAIJTCClassOf(p->B);
  const bool           three = p->type == MATPRODUCT_PtAP || p->type == MATPRODUCT_RARt || p->type == MATPRODUCT_ABC;

  PetscFunctionBegin;
  product->holds  = (PetscBool)(either && either->cuda && (either->mpi || three));
  product->copies = PETSC_FALSE;
  if (c && c->cuda && c->mpi && p->type == MATPRODUCT_AtB) PetscCall(PetscObjectBaseTypeCompare((PetscObject)p->B, MATMPIDENSE, &product->copies));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hook of the first operand that has another one than ours: MATTRANSPOSEVIRTUAL, MATDIAGONAL and others know what to do with their inner matrices. NULL: none has */
static PetscErrorCode MatAIJTCForeignHook(const Mat_Product *p, PetscErrorCode (**hook)(Mat))
{
  const Mat operands[] = {p->A, p->B, p->type == MATPRODUCT_ABC ? p->C : NULL};

  PetscFunctionBegin;
  *hook = NULL;
  for (Mat X : operands) {
    if (X && !*hook) PetscCall(PetscObjectQueryFunction((PetscObject)X, AIJTC_PRODUCT_HOOK, hook));
    if (*hook == MatProductSetFromOptions_AIJTC) *hook = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_AIJTC(Mat C)
{
  PetscErrorCode (*hook)(Mat);
  MatAIJTCProduct *product;
  MatAIJTCPhase    phase;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(MatAIJTCForeignHook(C->product, &hook));
  if (hook) { /* as PETSc does where the others are plain: it may put inner matrices in place of operands and come back here */
    PetscCall((*hook)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscNew(&product));
  PetscCall(MatAIJTCChooseOperand(C->product, product));
  PetscCall(MatAIJTCChooseHost(C, product));
  PetscCall(MatAIJTCChooseCopies(C->product, product));
  PetscCall(PetscObjectContainerCompose((PetscObject)C, PRODUCT_CONTAINER, product, MatAIJTCProductDestroy));
  PetscCall(MatAIJTCPhaseBegin(C, &phase));
  ierr = MatProductSetFromOptions(C);
  PetscCall(MatAIJTCPhaseEnd(C, &phase));
  PetscCall(ierr);
  product->symbolic = C->ops->productsymbolic;
  if (product->symbolic) C->ops->productsymbolic = MatProductSymbolic_AIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}
