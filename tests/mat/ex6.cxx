static char help[] = "Matrix products with MATAIJTC: every kind, operands of one type and of mixed types, dense ones, MAIJ, reused with other values.\n\n";

#include "check.h"

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 9;
}
static PetscInt Few(PetscInt row, PetscInt)
{
  return 1 + row % 3;
}
static const Pattern square = {"A", 60, 60, Width}, tall = {"P", 60, 24, Few}, wide = {"R", 24, 60, Few}, narrow = {"D", 60, 7, Width}, flat = {"E", 24, 7, Few};

typedef struct {
  const char    *name;
  MatProductType type;
  const Pattern *A, *B, *C;
} Product;

static const Product products[] = {
  {"A B",     MATPRODUCT_AB,   &square, &tall,   NULL },
  {"A^T B",   MATPRODUCT_AtB,  &square, &tall,   NULL },
  {"P^T A P", MATPRODUCT_PtAP, &square, &tall,   NULL },
  {"R A R^T", MATPRODUCT_RARt, &square, &wide,   NULL },
  {"A B C",   MATPRODUCT_ABC,  &wide,   &square, &tall}
};
static const Product sequential = {"A B^T", MATPRODUCT_ABt, &square, &wide, NULL}; /* PETSc has none in parallel */
static const Product dense[]    = {
     {"A D",     MATPRODUCT_AB,   &square, &narrow, NULL},
     {"A^T D",   MATPRODUCT_AtB,  &square, &narrow, NULL},
     {"R D",     MATPRODUCT_AB,   &wide,   &narrow, NULL},
     {"P D",     MATPRODUCT_AB,   &tall,   &flat,   NULL},
     {"D^T A D", MATPRODUCT_PtAP, &square, &narrow, NULL}
};

static PetscErrorCode MatOfType(const Pattern *p, MatType type, Mat *A)
{
  PetscBool dense;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(type, MATDENSE, &dense));
  PetscCall(MatFromPattern(p, dense ? MATAIJ : type, A));
  if (dense) PetscCall(MatConvert(*A, MATDENSE, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C <- the product of m[0], m[1], m[2] */
static PetscErrorCode Multiply(MatProductType type, Mat m[3], Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(m[0], m[1], m[2], C));
  PetscCall(MatProductSetType(*C, type));
  PetscCall(MatProductSetFill(*C, 2.0));
  PetscCall(MatProductSetFromOptions(*C));
  PetscCall(MatProductSymbolic(*C));
  PetscCall(MatProductNumeric(*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(Mat C, Mat D, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(CheckValues(C, D, 256 * PETSC_MACHINE_EPSILON, what));
  PetscCall(CheckMult(C, D, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool mixed = PETSC_TRUE; /* also products with plain AIJ */

/* t: the type of each operand, NULL as -mat_type says; refB: of the reference's B */
static PetscErrorCode TestProduct(const Product *p, const MatType t[3], MatType refB, PetscBool same)
{
  const Pattern *patterns[3] = {p->A, p->B, p->C};
  Mat            m[3] = {NULL, NULL, NULL}, r[3] = {NULL, NULL, NULL}, C, D;
  PetscBool      dense;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(refB, MATDENSE, &dense));
  for (int k = 0; k < 3; k++) {
    if (!patterns[k]) continue;
    if (t[k]) PetscCall(MatOfType(patterns[k], t[k], &m[k]));
    else PetscCall(MatFromPattern(patterns[k], NULL, &m[k]));
    PetscCall(MatOfType(patterns[k], k == 1 ? refB : MATAIJ, &r[k]));
  }
  PetscCall(Multiply(p->type, m, &C));
  PetscCall(Multiply(p->type, r, &D));
  if (same) PetscCall(CheckSameType(m[0], C, p->name));
  PetscCall(Compare(C, D, p->name));
  /* in parallel PETSc's A^T D keeps a copy of an AIJCUSPARSE's first values */
  for (int round = 0; round < (!mixed && p->type == MATPRODUCT_AtB && dense ? 0 : 2); round++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatScale(m[k], 0.5 + k));
      PetscCall(MatScale(r[k], 0.5 + k));
    }
    PetscCall(MatProductNumeric(C));
    PetscCall(MatProductNumeric(D));
    PetscCall(Compare(C, D, p->name));
  }
  PetscCall(MatProductClear(C));
  PetscCall(MatScale(C, 2.0)); /* a matrix like any other now */
  PetscCall(MatScale(D, 2.0));
  PetscCall(Compare(C, D, "cleared"));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatDestroy(&m[k]));
    PetscCall(MatDestroy(&r[k]));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of one type and of mixed types */
static PetscErrorCode TestSparse(const Product *p)
{
  const MatType mixes[][3] = {
    {NULL,   NULL,   NULL  },
    {MATAIJ, NULL,   MATAIJ},
    {NULL,   MATAIJ, MATAIJ},
    {MATAIJ, MATAIJ, NULL  }
  };

  PetscFunctionBeginUser;
  for (int k = 0; k < (mixed ? (p->C ? 4 : 3) : 1); k++) PetscCall(TestProduct(p, mixes[k], MATAIJ, (PetscBool)(k == 0)));
  PetscCall(CheckReport(p->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDense(void)
{
  const MatType mix[3] = {NULL, MATDENSE, NULL};

  PetscFunctionBeginUser;
  for (const Product &p : dense) {
    PetscCall(TestProduct(&p, mix, MATDENSE, PETSC_FALSE));
    PetscCall(CheckReport(p.name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The old interface, into a result that is there */
static PetscErrorCode TestReuse(void)
{
  Mat A, R, P, Q, C, D;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&square, NULL, &A));
  PetscCall(MatFromPattern(&square, MATAIJ, &R));
  PetscCall(MatFromPattern(&tall, NULL, &P));
  PetscCall(MatFromPattern(&tall, MATAIJ, &Q));
  PetscCall(MatMatMult(A, P, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatMatMult(R, Q, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(CheckSameType(A, C, "MatMatMult"));
  PetscCall(Compare(C, D, "MatMatMult"));
  for (int round = 0; round < 3; round++) {
    PetscCall(MatScale(P, -0.7));
    PetscCall(MatScale(Q, -0.7));
    PetscCall(MatShift(A, 1.0 + round));
    PetscCall(MatShift(R, 1.0 + round));
    PetscCall(MatMatMult(A, P, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatMatMult(R, Q, MAT_REUSE_MATRIX, PETSC_DETERMINE, &D));
    PetscCall(Compare(C, D, "MatMatMult reused"));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatTransposeMatMult(A, P, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatTransposeMatMult(R, Q, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(CheckSameType(A, C, "MatTransposeMatMult"));
  PetscCall(Compare(C, D, "MatTransposeMatMult"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&Q));
  PetscCall(CheckReport("MatMatMult"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Interpolation of two components: local sizes have to fit, so they are multiples of 12 */
static PetscErrorCode TestMAIJ(void)
{
  const Pattern fine = {"fine", 72, 72, Width}, half = {"half", 36, 12, Few};
  Mat           A, R, P, Q, PM, QM, C, D;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&fine, NULL, &A));
  PetscCall(MatFromPattern(&fine, MATAIJ, &R));
  PetscCall(MatFromPattern(&half, NULL, &P));
  PetscCall(MatFromPattern(&half, MATAIJ, &Q));
  PetscCall(MatCreateMAIJ(P, 2, &PM));
  PetscCall(MatCreateMAIJ(Q, 2, &QM));
  PetscCall(MatPtAP(A, PM, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatPtAP(R, QM, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &D));
  PetscCall(CheckSameType(A, C, "MAIJ"));
  PetscCall(Compare(C, D, "MAIJ"));
  for (int round = 0; round < 2; round++) {
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatScale(R, 3.0));
    PetscCall(MatPtAP(A, PM, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatPtAP(R, QM, MAT_REUSE_MATRIX, PETSC_DETERMINE, &D));
    PetscCall(Compare(C, D, "MAIJ reused"));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&PM));
  PetscCall(MatDestroy(&QM));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&Q));
  PetscCall(CheckReport("P^T A P with MAIJ"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool seq = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sequential", &seq, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mixed", &mixed, NULL)); /* with plain AIJ: PETSc multiplies no MPIAIJ with an MPIAIJCUSPARSE */
  if (seq) PetscCall(TestSparse(&sequential));
  else {
    for (const Product &p : products) PetscCall(TestSparse(&p));
    PetscCall(TestDense());
    PetscCall(TestReuse());
    PetscCall(TestMAIJ());
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -sequential
      output_file: output/ex6_sequential.out
      test:
         suffix: sequential
         args: -mat_type {{aij aijtc}}

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex6.out
      test:
         suffix: host
         nsize: {{1 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0

   # not A B^T of sequential matrices (-sequential), in which AIJCUSPARSE crashes
   test:
      suffix: cuda_parallel
      requires: cuda
      nsize: 2
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -mixed 0 -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
