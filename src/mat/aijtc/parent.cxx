/*
   How a MATAIJTC is made from its parent and back: the captured parent tables, branding, stripping, and the parent scope.

   PETSc finds out by exact type name, by vtable entries and by composed functions whether a matrix is an AIJCUSPARSE. So a matrix of ours must be able to *be* its
   parent for the time of a parent's operation (the scope), and to become ours again whatever the operation did to its tables. Two rules make this safe:
     - a slot is taken only from the parent's own function and given back only if it is still ours: hash assembly, binding, submatrices and users put functions there too;
     - the type name's pointer is exchanged and the same pointer put back: callers keep what MatGetType() gave them.
*/
#include <petsctc/private/aijtcimpl.h>

static constexpr size_t NOPS              = sizeof(struct _MatOps) / sizeof(MatAIJTCFn);
static constexpr char   AIJTC_CONTAINER[] = "__AIJTC";

static MatAIJTCClass classes[AIJTC_NCLASSES] = {
  {MATSEQAIJTC, MATSEQAIJ,         PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, {}, {}, {}},
  {MATMPIAIJTC, MATMPIAIJ,         PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE, {}, {}, {}},
  {MATSEQAIJTC, MATSEQAIJCUSPARSE, PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE, {}, {}, {}},
  {MATMPIAIJTC, MATMPIAIJCUSPARSE, PETSC_TRUE,  PETSC_TRUE,  PETSC_FALSE, {}, {}, {}}
};

static int scopes = 0; /* open parent scopes */

static inline MatAIJTCFn *Slots(struct _MatOps *ops)
{
  return reinterpret_cast<MatAIJTCFn *>(ops);
}

/* P becomes a parent that no option reaches, -mat_seqaij_type least of all: by its prefix, since with other options as the default a first use of the device would read them too */
PetscErrorCode MatAIJTCSetParentType(Mat P, MatType type)
{
  PetscFunctionBegin;
  PetscCall(MatSetOptionsPrefix(P, "petsctc_parent_"));
  PetscCall(MatSetType(P, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's table comes from a throw-away parent: not hashing, not bound, not ours */
static PetscErrorCode MatAIJTCClassSetUp(MatAIJTCClass *c, PetscInt number)
{
  Mat P;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&c->mine, sizeof(c->mine)));
  PetscCall(PetscMemzero(c->composed, sizeof(c->composed)));
  PetscCall(MatCreate(PETSC_COMM_SELF, &P));
  PetscCall(MatAIJTCSetParentType(P, c->parenttype));
  c->parent = *P->ops;
  PetscCall(MatAIJTCSetOps_Common(c, number));
  if (c->mpi) PetscCall(MatAIJTCSetOps_MPI(c));
  else PetscCall(MatAIJTCSetOps_Seq(c));
  for (int i = 0; i < AIJTC_MAX_COMPOSED && c->composed[i].name; i++) PetscCall(PetscObjectQueryFunction((PetscObject)P, c->composed[i].name, &c->composed[i].theirs));
  PetscCall(MatDestroy(&P));
  c->set = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCGetClass(PetscInt number, MatAIJTCClass **c)
{
  PetscFunctionBegin;
  *c = &classes[number];
  if (!(*c)->set) {
    if ((*c)->mpi && !classes[number - 1].set) PetscCall(MatAIJTCClassSetUp(&classes[number - 1], number - 1));
    PetscCall(MatAIJTCClassSetUp(*c, number));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PetscFinalize() may be followed by another PetscInitialize() in which other parents hold */
PetscErrorCode MatAIJTCReset_Private(void)
{
  PetscFunctionBegin;
  for (auto &c : classes) c.set = PETSC_FALSE;
  scopes = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NULL if A is not ours, or is in parent scope. `convertfrom` identifies: neither the parent nor binding touches it, and hash assembly restores it. */
MatAIJTCClass *MatAIJTCClassOf(Mat A)
{
  if (!A) return nullptr;
  for (auto &c : classes)
    if (c.set && A->ops->convertfrom == c.mine.convertfrom) return &c;
  return nullptr;
}

static PetscErrorCode Mat_AIJTCDestroy(PetscCtxRt ctx)
{
  Mat_AIJTC *tc = *(Mat_AIJTC **)ctx;

  PetscFunctionBegin;
  PetscCall(MatAIJTCDestroyLayout(tc));
#if PETSCTC_HAVE_CUDA
  PetscCall(MatAIJTCDestroyBorder(tc));
#endif
  PetscCall(PetscFree(tc->held));
  PetscCall(PetscFree(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix' own data, made at first use */
PetscErrorCode MatAIJTCGetData(Mat A, Mat_AIJTC **tc)
{
  MatAIJTCBackendType backend;

  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)A, AIJTC_CONTAINER, tc));
  if (!*tc) {
    PetscCall(PetscNew(tc));
    PetscCall(MatAIJTCSettingsDefault(&(*tc)->settings));
    PetscCall(MatAIJTCAskedBackend(A, &backend));
    (*tc)->settings.layout = (PetscBool)(backend == MAT_AIJTC_BACKEND_HOST);
    PetscCall(PetscObjectContainerCompose((PetscObject)A, AIJTC_CONTAINER, *tc, Mat_AIJTCDestroy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal and off-diagonal block of an MPI matrix, NULL before preallocation */
PetscErrorCode MatAIJTCGetBlocks(Mat A, Mat b[2])
{
  PetscFunctionBegin;
  b[0] = b[1] = NULL;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of an MPI matrix, or a sequential matrix itself and NULL */
PetscErrorCode MatAIJTCGetBlocksOrSelf(Mat A, Mat b[2])
{
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  b[0] = A;
  b[1] = NULL;
  if (mpi) PetscCall(MatAIJTCGetBlocks(A, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TakeComposed(Mat A, const MatAIJTCClass *c, PetscBool take)
{
  PetscFunctionBegin;
  for (int i = 0; i < AIJTC_MAX_COMPOSED && c->composed[i].name; i++) {
    const MatAIJTCFn from = take ? c->composed[i].theirs : c->composed[i].mine, to = take ? c->composed[i].mine : c->composed[i].theirs;
    MatAIJTCFn       f;

    PetscCall(PetscObjectQueryFunction((PetscObject)A, c->composed[i].name, &f));
    if (f && f == from) PetscCall(PetscObjectComposeFunction((PetscObject)A, c->composed[i].name, to)); /* binding to the CPU removes some */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block of an MPI matrix becomes ours. PETSc makes new ones at will, also by our type's name, and plain SEQAIJ for MPIAIJCUSPARSE (MatResetHash()) */
static PetscErrorCode BrandBlock(Mat A, MatAIJTCClass *s, Mat B)
{
  MatAIJTCClass *own = MatAIJTCClassOf(B);
  PetscBool      plain, host;

  PetscFunctionBegin;
  if (own && own != s) PetscCall(MatConvert(B, s->parenttype, MAT_INPLACE_MATRIX, &B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJ, &host));
  if (host && s->cuda && B->assembled) PetscCall(MatConvert(B, s->parenttype, MAT_INPLACE_MATRIX, &B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, s->parenttype, &plain));
  if (plain) PetscCall(MatAIJTCBrand(B, s));
  if (MatAIJTCClassOf(B) != s) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCSettingsCopy(A, B));
#if PETSCTC_HAVE_CUDA
  PetscCall(MatAIJTCSettleBinding(B));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the matrix' own backend and with its settings */
static PetscErrorCode BrandBlocks(Mat A, MatAIJTCClass *c)
{
  MatAIJTCClass *s = c - 1; /* the sequential class of the same parent */
  Mat            b[2];

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetBlocks(A, b));
  for (Mat B : b) {
    if (B && !B->hash_active) PetscCall(BrandBlock(A, s, B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes an exact parent, or one of ours whose tables the parent changed, into one of ours */
PetscErrorCode MatAIJTCBrand(Mat A, MatAIJTCClass *c)
{
  Mat_AIJTC *tc;
  PetscBool  same;

  PetscFunctionBegin;
  for (size_t k = 0; k < NOPS; k++) {
    if (Slots(&c->mine)[k] && Slots(A->ops)[k] == Slots(&c->parent)[k]) Slots(A->ops)[k] = Slots(&c->mine)[k];
  }
  PetscCall(TakeComposed(A, c, PETSC_TRUE));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, AIJTC_PRODUCT_HOOK, MatProductSetFromOptions_AIJTC));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (tc->held) { /* the very string that it had */
    PetscCall(PetscFree(((PetscObject)A)->type_name));
    ((PetscObject)A)->type_name = tc->held;
    tc->held                    = NULL;
  } else {
    PetscCall(PetscObjectTypeCompare((PetscObject)A, c->type, &same));
    if (!same) PetscCall(PetscObjectChangeTypeName((PetscObject)A, c->type));
  }
  if (c->mpi) PetscCall(BrandBlocks(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a parent's routine made: ours if it is exactly a parent of that kind */
PetscErrorCode MatAIJTCBrandResult(Mat C, PetscBool cuda)
{
  PetscFunctionBegin;
  if (!C || !((PetscObject)C)->type_name || C->hash_active || C->factortype) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = cuda ? AIJTC_SEQ_CUDA : AIJTC_SEQ_HOST, last = k + 1; k <= last; k++) {
    MatAIJTCClass *c;
    PetscBool      is;

    PetscCall(PetscObjectTypeCompare((PetscObject)C, classes[k].parenttype, &is));
    if (!is) continue;
    PetscCall(MatAIJTCGetClass(k, &c));
    PetscCall(MatAIJTCBrand(C, c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The reverse of branding: A is again what the parent's creator makes. The layout stays; its key tells whether it still holds. */
PetscErrorCode MatAIJTCStrip(Mat A)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC     *tc;

  PetscFunctionBegin;
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->mpi) {
    Mat b[2];

    PetscCall(MatAIJTCGetBlocks(A, b));
    for (Mat B : b) PetscCall(MatAIJTCStrip(B));
  }
  for (size_t k = 0; k < NOPS; k++) {
    if (Slots(&c->mine)[k] && Slots(A->ops)[k] == Slots(&c->mine)[k]) Slots(A->ops)[k] = Slots(&c->parent)[k];
  }
  PetscCall(TakeComposed(A, c, PETSC_FALSE));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, AIJTC_PRODUCT_HOOK, NULL));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (!tc->held) {
    tc->held                    = ((PetscObject)A)->type_name;
    ((PetscObject)A)->type_name = NULL;
  }
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, c->parenttype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool MatAIJTCInScope(void)
{
  return scopes ? PETSC_TRUE : PETSC_FALSE;
}

/* Until the end up to four matrices are plain parents. NULL, foreign, repeated and hashing matrices are skipped, so scopes nest. */
PetscErrorCode MatAIJTCScopeBegin(MatAIJTCScope *s, Mat A, Mat B, Mat C, Mat D)
{
  const Mat m[AIJTC_SCOPE_MAX] = {A, B, C, D};

  PetscFunctionBegin;
  scopes++;
  for (int i = 0; i < AIJTC_SCOPE_MAX; i++) {
    s->A[i] = m[i];
    s->c[i] = m[i] && !m[i]->hash_active ? MatAIJTCClassOf(m[i]) : NULL;
    if (s->c[i]) PetscCall(MatAIJTCStrip(m[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCScopeEnd(MatAIJTCScope *s)
{
  PetscFunctionBegin;
  scopes--;
  for (int i = 0; i < AIJTC_SCOPE_MAX; i++) {
    if (s->c[i]) PetscCall(MatAIJTCBrand(s->A[i], s->c[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's composed function that ours stands before */
MatAIJTCFn MatAIJTCTheirs(Mat A, const char name[])
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  for (int i = 0; c && i < AIJTC_MAX_COMPOSED && c->composed[i].name; i++)
    if (!strcmp(c->composed[i].name, name)) return c->composed[i].theirs;
  return nullptr;
}

/* Removes what we put on A, which is a plain parent from here on */
PetscErrorCode MatAIJTCForget(Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectCompose((PetscObject)A, AIJTC_CONTAINER, NULL));
  PetscCall(MatAIJTCDestroyTransposed(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatHeaderMerge() calls this with the lists and the name taken away: they come back, with our container, when A has the contents of the other matrix */
PetscErrorCode MatDestroy_AIJTC(Mat A)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  if (((PetscObject)A)->olist) PetscCall(MatAIJTCForget(A));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, AIJTC_PRODUCT_HOOK, NULL));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, c->parenttype));
  PetscCall((*c->parent.destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
