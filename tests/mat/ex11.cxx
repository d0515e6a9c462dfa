static char help[] = "-mat_seqaij_type seqaijtc: every sequential MATAIJ that PETSc makes is of our type, the blocks of a parallel one too. The reference is dense.\n\n";

#include "check.h"

static PetscInt Width(PetscInt row, PetscInt)
{
  return (row * 3) % 9;
}
static const Pattern pattern = {"pattern", 50, 42, Width};

/* The same entries in a dense matrix */
static PetscErrorCode Dense(const Pattern *p, Mat *D)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, p->M, p->N, NULL, D));
  PetscCall(MatGetOwnershipRange(*D, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < PetscMin((*p->length)(row, p->N), p->N); k++) PetscCall(MatSetValue(*D, row, Column(row, k, p->N), Entry(row, Column(row, k, p->N)), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*D, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckDiagonalBlock(Mat A, const char what[])
{
  char      type[64] = MATSEQAIJ;
  Mat       B;
  PetscBool is;
  MatType   actual;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", type, sizeof(type), NULL));
  PetscCall(MatGetDiagonalBlock(A, &B));
  PetscCall(MatGetType(B, &actual));
  PetscCall(PetscStrcmp(actual, type, &is));
  PetscCall(Check(is, "%s: block of type %s, not %s", what, actual, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There and back, as a new matrix, into that again, and in place. What becomes an AIJ has blocks of the asked type */
static PetscErrorCode CheckConversion(Mat A, Mat D, MatType type)
{
  Mat  B, C;
  char what[64];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "to %s and back", type));
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckMult(B, D, what));
  PetscCall(MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(CheckMult(C, D, what));
  PetscCall(CheckDiagonalBlock(C, what));
  PetscCall(MatConvert(B, MATAIJ, MAT_REUSE_MATRIX, &C));
  PetscCall(CheckMult(C, D, what));
  PetscCall(MatConvert(C, type, MAT_INPLACE_MATRIX, &C));
  PetscCall(CheckMult(C, D, what));
  PetscCall(MatConvert(C, MATAIJ, MAT_INPLACE_MATRIX, &C));
  PetscCall(CheckMult(C, D, what));
  PetscCall(CheckDiagonalBlock(C, what));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckConversions(Mat A, Mat D)
{
  Mat B;

  PetscFunctionBeginUser;
  for (MatType type : {MATDENSE, MATBAIJ, MATIS}) PetscCall(CheckConversion(A, D, type));
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckMult(B, D, "to aij"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatConvert(B, MATAIJ, MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckMult(B, D, "to aij in place"));
  PetscCall(MatConvert(B, "aijtc", MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckMult(B, D, "to aijtc in place"));
  PetscCall(MatConvert(B, MATDENSE, MAT_INPLACE_MATRIX, &B));
  PetscCall(MatConvert(B, "aijtc", MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckMult(B, D, "from dense to aijtc in place"));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of A again, as triples */
static PetscErrorCode CheckCOO(Mat A, Mat D)
{
  PetscInt     start, end, total = 0, at = 0, m, n, *i, *j;
  PetscScalar *v;
  Mat          B;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatGetLocalSize(A, &m, &n));
  for (PetscInt row = start; row < end; row++) total += Width(row, 0);
  PetscCall(PetscMalloc3(total, &i, total, &j, total, &v));
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < Width(row, 0); k++, at++) {
      i[at] = row;
      j[at] = Column(row, k, pattern.N);
      v[at] = 2.0 * Entry(row, j[at]);
    }
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
  PetscCall(MatSetSizes(B, m, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(B, MATAIJ));
  PetscCall(MatSetPreallocationCOO(B, total, i, j));
  PetscCall(MatSetValuesCOO(B, v, INSERT_VALUES));
  PetscCall(CheckMult(B, D, "from triples"));
  PetscCall(CheckDiagonalBlock(B, "from triples"));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, D, B, E;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &A));
  PetscCall(Dense(&pattern, &D));
  PetscCall(CheckDiagonalBlock(A, "assembled"));
  PetscCall(CheckMult(A, D, "assembled"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(D, 2.0));
  PetscCall(CheckMult(A, D, "scaled"));
  PetscCall(CheckConversions(A, D));
  PetscCall(CheckCOO(A, D));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTranspose(D, MAT_INITIAL_MATRIX, &E));
  PetscCall(CheckDiagonalBlock(B, "transpose"));
  PetscCall(CheckMult(B, E, "transpose"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(CheckDiagonalBlock(B, "duplicate"));
  PetscCall(CheckMult(B, D, "duplicate"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatTransposeMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &B));
  PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &E));
  PetscCall(CheckMult(E, D, "to dense"));
  PetscCall(MatDestroy(&E));
  PetscCall(MatTransposeMatMult(D, D, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &E));
  PetscCall(CheckMult(B, E, "product"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&D));
  PetscCall(CheckReport("-mat_seqaij_type"));
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex11.out
      test:
         suffix: host
         nsize: {{1 3}}
         args: -mat_seqaij_type {{seqaij seqaijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_seqaij_type seqaijtc -use_gpu_aware_mpi 0

TEST*/
