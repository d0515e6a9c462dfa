/* How a MATAIJTC comes to be: creation, duplication, conversion both ways, COO assembly, and the table entries that all classes share. */
#include <petsctc/private/aijtcimpl.h>

const char *const MatAIJTCBackendTypes[] = {"auto", "cuda", "host", "MatAIJTCBackendType", "MAT_AIJTC_BACKEND_", NULL};

/* ---- creation */

/* By option */
PetscErrorCode MatAIJTCAskedBackend(Mat A, MatAIJTCBackendType *backend)
{
  PetscFunctionBegin;
  *backend = MAT_AIJTC_BACKEND_AUTO;
  PetscCall(PetscOptionsGetEnum(((PetscObject)A)->options, ((PetscObject)A)->prefix, "-mat_aijtc_backend", MatAIJTCBackendTypes, (PetscEnum *)backend, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CUDA or host parent: by option, else by what every process of the matrix can use. In single precision a usable device is an error: the host in its place would be slow without saying so */
static PetscErrorCode MatAIJTCChooseBackend(Mat A, PetscBool *cuda)
{
  MatAIJTCBackendType backend;

  PetscFunctionBegin;
  PetscCall(MatAIJTCAskedBackend(A, &backend));
  *cuda = PETSC_FALSE;
  if (backend == MAT_AIJTC_BACKEND_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCDeviceUsable(PetscObjectComm((PetscObject)A), cuda));
  PetscCheck(PetscDefined(USE_REAL_DOUBLE) || !(*cuda || backend == MAT_AIJTC_BACKEND_CUDA), PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "MATAIJTC computes on a GPU in double precision only, but this PETSc has single precision. Use -mat_type aijcusparse, -mat_aijtc_backend host, or a PETSc --with-precision=double");
  PetscCheck(*cuda || backend != MAT_AIJTC_BACKEND_CUDA, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "-mat_aijtc_backend cuda, but %s. Use -mat_aijtc_backend auto or host",
             PetscDefined(HAVE_CUDA) ? "no CUDA device is usable on every process of the matrix" : "this PETSc was configured without CUDA");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_AIJTC(Mat A, PetscBool mpi)
{
  MatAIJTCClass *c;
  PetscBool      cuda;

  PetscFunctionBegin;
  PetscCall(MatAIJTCChooseBackend(A, &cuda));
  PetscCall(MatAIJTCGetClass((cuda ? AIJTC_SEQ_CUDA : AIJTC_SEQ_HOST) + (mpi ? 1 : 0), &c));
  MatAIJTCCallParent(NULL, NULL, MatSetType(A, c->parenttype)); /* plain whatever -mat_seqaij_type says: the scope is what the option's function looks at */
  if (!A->factortype) PetscCall(MatAIJTCBrand(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqAIJTC(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate_AIJTC(A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_MPIAIJTC(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate_AIJTC(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_AIJTC(Mat A, MatDuplicateOption op, Mat *B)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*c->parent.duplicate)(A, op, B));
  PetscCall(MatAIJTCBrandResult(*B, c->cuda));
  PetscCall(MatAIJTCSettingsCopy(A, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- conversion. Nothing is composed under a name of ours: factors copy A's composed functions and would not know to remove them. */

/* Under -mat_seqaij_type nothing that lives on may stay a plain SEQAIJ: PETSc makes copies of the type's name, which are ours then, and empties those when it sets that name again. So the local matrix of a MATIS is ours, too */
static PetscErrorCode MatAIJTCBrandLocal(Mat M, PetscBool cuda)
{
  char      type[64];
  PetscBool is, set, asked = PETSC_FALSE;
  Mat       L;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)M, MATIS, &is));
  if (!is) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(((PetscObject)M)->options, ((PetscObject)M)->prefix, "-mat_seqaij_type", type, sizeof(type), &set));
  if (set) PetscCall(PetscStrcmp(type, MATSEQAIJTC, &asked));
  if (!asked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatISGetLocalMat(M, &L));
  PetscCall(MatAIJTCBrandResult(L, cuda));
  PetscCall(MatISRestoreLocalMat(M, &L));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From ours to any type that the parent converts to */
static PetscErrorCode MatConvert_AIJTC_Any(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  if (reuse == MAT_INPLACE_MATRIX) {
    MatAIJTCScope  scope;
    PetscErrorCode ierr;
    PetscBool      unchanged;

    PetscCall(MatAIJTCStrip(A));
    PetscCall(MatAIJTCScopeBegin(&scope, NULL, NULL, NULL, NULL));
    ierr = MatConvert(A, type, reuse, M);
    PetscCall(MatAIJTCScopeEnd(&scope));
    if (ierr) { /* still ours if nothing became of it */
      PetscCall(PetscObjectTypeCompare((PetscObject)A, c->parenttype, &unchanged));
      if (unchanged) PetscCall(MatAIJTCBrand(A, c));
    } else PetscCall(MatAIJTCForget(A));
    PetscCall(ierr);
  } else MatAIJTCCallParent(A, NULL, MatConvert(A, type, reuse, M));
  PetscCall(MatAIJTCBrandLocal(*M, c->cuda));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   To the parent, in scope, in which a new SEQAIJ stays plain under -mat_seqaij_type: as one of ours it would ask for this conversion, without end. The same option makes ours of the blocks of a plain MPIAIJ. PETSc sets
   the type of each block of an MPIAIJCUSPARSE, which keeps the values of a plain SEQAIJ alone: so they are plain meanwhile, and after a conversion in place for good.
*/
static PetscErrorCode MatConvertToParent(Mat A, const MatAIJTCClass *c, MatReuse reuse, Mat *M)
{
  PetscBool mpi;
  Mat       b[2] = {NULL, NULL};

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi && !MatAIJTCClassOf(A)) PetscCall(MatAIJTCGetBlocks(A, b));
  for (int k = 0; k < 2 && reuse == MAT_INPLACE_MATRIX; k++) {
    if (!b[k]) continue;
    PetscCall(MatAIJTCStrip(b[k]));
    PetscCall(MatAIJTCForget(b[k]));
    b[k] = NULL;
  }
  MatAIJTCCallParent(b[0], b[1], MatConvert(A, c->parenttype, reuse, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From any type that converts to the parent: convert, then brand. The root name keeps an MPI matrix on one process what it is, as for other subclasses of AIJ */
static PetscErrorCode MatConvert_Any_AIJTC(Mat A, MatType type, MatReuse reuse, Mat *M, PetscInt number)
{
  MatAIJTCClass *c;
  PetscBool      mpi, root;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  PetscCall(PetscStrcmpAny(type, &root, MATAIJTC, MATAIJ, "")); /* aij: under -mat_seqaij_type it asks for ours */
  if (mpi && root) number |= 1;
  PetscCall(MatAIJTCGetClass(number, &c));
  if (reuse == MAT_REUSE_MATRIX) MatAIJTCCallParent(*M, NULL, MatConvert(A, c->parenttype, reuse, M));
  else {
    PetscCall(MatConvertToParent(A, c, reuse, M));
    PetscCall(MatAIJTCBrand(*M, c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `convertfrom` is given the source alone, so each class has its own */
template <int number>
static PetscErrorCode MatConvertFrom_AIJTC(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  return MatConvert_Any_AIJTC(A, type, reuse, M, number);
}

/* For MatSeqAIJRegister() (-mat_seqaij_type seqaijtc): PETSc calls it on every SeqAIJ it creates, which may be unassembled, or ours already */
PetscErrorCode MatConvert_SeqAIJ_SeqAIJTC(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  PetscBool      cuda;
  MatAIJTCClass *c;

  PetscFunctionBegin;
  if (MatAIJTCClassOf(A) && reuse == MAT_INPLACE_MATRIX) PetscFunctionReturn(PETSC_SUCCESS);
  if (MatAIJTCInScope() && reuse == MAT_INPLACE_MATRIX) PetscFunctionReturn(PETSC_SUCCESS); /* a parent's operation expects the parents that it makes */
  PetscCall(MatAIJTCChooseBackend(A, &cuda));
  PetscCall(MatAIJTCGetClass(cuda ? AIJTC_SEQ_CUDA : AIJTC_SEQ_HOST, &c));
  if (reuse != MAT_INPLACE_MATRIX) {
    PetscCall(MatConvert_Any_AIJTC(A, type, reuse, M, cuda ? AIJTC_SEQ_CUDA : AIJTC_SEQ_HOST));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (cuda) { /* MatConvert() would insist on an assembled matrix */
    PetscErrorCode (*convert)(Mat, MatType, MatReuse, Mat *);

    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatConvert_seqaij_seqaijcusparse_C", &convert));
    PetscCheck(convert, PETSC_COMM_SELF, PETSC_ERR_SUP, "Matrix of type %s cannot become %s", ((PetscObject)A)->type_name, c->parenttype);
    PetscCall((*convert)(A, MATSEQAIJCUSPARSE, reuse, M));
  }
  PetscCall(MatAIJTCBrand(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- COO assembly: PETSc's, in parent scope, at whose end the blocks that it made are branded */

static PetscErrorCode MatSetPreallocationCOO_AIJTC(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  const auto theirs = (PetscErrorCode(*)(Mat, PetscCount, PetscInt[], PetscInt[]))MatAIJTCTheirs(A, "MatSetPreallocationCOO_C");

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*theirs)(A, n, i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_AIJTC(Mat A, const PetscScalar v[], InsertMode mode)
{
  const auto theirs = (PetscErrorCode(*)(Mat, const PetscScalar[], InsertMode))MatAIJTCTheirs(A, "MatSetValuesCOO_C");

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*theirs)(A, v, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCSetOps_Common(MatAIJTCClass *c, PetscInt number)
{
  PetscErrorCode (*const from[AIJTC_NCLASSES])(Mat, MatType, MatReuse, Mat *) = {MatConvertFrom_AIJTC<AIJTC_SEQ_HOST>, MatConvertFrom_AIJTC<AIJTC_MPI_HOST>, MatConvertFrom_AIJTC<AIJTC_SEQ_CUDA>, MatConvertFrom_AIJTC<AIJTC_MPI_CUDA>};
  struct _MatOps *m                                                           = &c->mine;

  PetscFunctionBegin;
  m->destroy               = MatDestroy_AIJTC;
  m->duplicate             = MatDuplicate_AIJTC;
  m->convert               = MatConvert_AIJTC_Any;
  m->convertfrom           = from[number];
  m->view                  = MatView_AIJTC;
  m->setfromoptions        = MatSetFromOptions_AIJTC;
  m->productsetfromoptions = MatProductSetFromOptions_AIJTC; /* in A B^T PETSc gives an unassembled transpose A's type, which is for an exact parent only */
  c->composed[0]           = {"MatSetPreallocationCOO_C", (MatAIJTCFn)MatSetPreallocationCOO_AIJTC, NULL};
  c->composed[1]           = {"MatSetValuesCOO_C", (MatAIJTCFn)MatSetValuesCOO_AIJTC, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}
