static char help[] = "Conversions to and from MATAIJTC: new, in place, reused; re-typing; type names and settings that stay.\n\n";

#include "check.h"
#include <petsctc.h>

static char mattype[64]; /* the type under test, of -mat_type */

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 9;
}
static const Pattern square = {"square", 48, 48, Width}, tall = {"tall", 60, 36, Width};

/* P + P^T of a square pattern */
static PetscErrorCode Symmetric(MatType type, Mat *A)
{
  Mat T;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&square, type, A));
  PetscCall(MatTranspose(*A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatAXPY(*A, 1.0, T, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(*A, MAT_SYMMETRY_ETERNAL, PETSC_TRUE));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Mat A, Mat B, Mat C, PetscScalar a)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, a));
  if (B) PetscCall(MatScale(B, a));
  if (C) PetscCall(MatScale(C, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckIs(Mat A, MatType type, const char what[])
{
  PetscBool is;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, type, &is));
  if (!is) {
    MatType t;
    char    seq[64], mpi[64];

    PetscCall(MatGetType(A, &t));
    PetscCall(PetscSNPrintf(seq, sizeof(seq), "seq%s", type));
    PetscCall(PetscSNPrintf(mpi, sizeof(mpi), "mpi%s", type));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is, seq, mpi, ""));
    PetscCall(Check(is, "%s: type %s, not %s", what, t, type));
  } else PetscCall(Check(is, "%s", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There and back: new, reused with other values, in place. `symmetric`: only such a matrix has that type */
static PetscErrorCode TestType(MatType type, PetscBool symmetric, PetscBool reuse, const Pattern *p)
{
  Mat  A, R, B, C;
  char what[128];

  PetscFunctionBeginUser;
  PetscCall(symmetric ? Symmetric(NULL, &A) : MatFromPattern(p, NULL, &A));
  PetscCall(symmetric ? Symmetric(MATAIJ, &R) : MatFromPattern(p, MATAIJ, &R));
  PetscCall(PetscSNPrintf(what, sizeof(what), "to %s", type));
  PetscCall(CheckMult(A, R, what)); /* the layout is there when the conversion begins */
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckIs(B, type, what));
  PetscCall(CheckMult(B, R, what));
  PetscCall(CheckMult(A, R, "source of a conversion"));
  if (reuse) {
    PetscCall(Scale(A, R, NULL, -2.0));
    PetscCall(MatConvert(A, type, MAT_REUSE_MATRIX, &B));
    PetscCall(CheckMult(B, R, what));
  }

  PetscCall(PetscSNPrintf(what, sizeof(what), "from %s", type));
  PetscCall(MatConvert(B, mattype, MAT_INITIAL_MATRIX, &C));
  PetscCall(CheckSameType(A, C, what));
  PetscCall(CheckMult(C, R, what));
  if (reuse) {
    PetscCall(Scale(B, R, A, 0.3));
    PetscCall(MatConvert(B, mattype, MAT_REUSE_MATRIX, &C));
    PetscCall(CheckSameType(A, C, what));
    PetscCall(CheckMult(C, R, what));
  }
  PetscCall(MatDestroy(&C));

  PetscCall(PetscSNPrintf(what, sizeof(what), "in place from %s", type));
  PetscCall(MatConvert(B, mattype, MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckSameType(A, B, what));
  PetscCall(CheckMult(B, R, what));
  PetscCall(PetscSNPrintf(what, sizeof(what), "in place to %s", type));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckIs(B, type, what));
  PetscCall(CheckMult(B, R, what));
  PetscCall(Scale(B, R, NULL, 3.0));
  PetscCall(CheckMult(B, R, what));
  PetscCall(MatConvert(B, mattype, MAT_INPLACE_MATRIX, &B)); /* and again */
  PetscCall(CheckSameType(A, B, what));
  PetscCall(CheckMult(B, R, what));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport(type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSetType() on an assembled MATAIJ keeps its values, and what MatGetType() gave stays readable */
static PetscErrorCode TestSetType(void)
{
  Mat       A, B, R;
  MatType   before, after;
  PetscBool same;
  char      copy[64];

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&tall, MATAIJ, &A));
  PetscCall(MatFromPattern(&tall, MATAIJ, &R));
  PetscCall(MatFromPattern(&tall, NULL, &B));
  PetscCall(MatSetType(A, mattype));
  PetscCall(CheckSameType(B, A, "re-typed"));
  PetscCall(CheckMult(A, R, "re-typed"));
  PetscCall(MatSetType(A, mattype));
  PetscCall(CheckSameType(B, A, "re-typed to its own type"));
  PetscCall(CheckMult(A, R, "re-typed to its own type"));
  PetscCall(MatDestroy(&B));

  PetscCall(MatGetType(A, &before));
  PetscCall(PetscStrncpy(copy, before, sizeof(copy)));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(Scale(A, R, B, 1.5));
  PetscCall(CheckSameType(A, B, "duplicate"));
  PetscCall(CheckMult(B, R, "duplicate"));
  PetscCall(MatAXPY(A, 1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatGetType(A, &after));
  PetscCall(PetscStrcmp(copy, before, &same)); /* read after all that */
  PetscCall(Check((PetscBool)(same && before == after), "the type's name moved"));
  PetscCall(MatDestroy(&B));

  PetscCall(MatConvert(A, mattype, MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckSameType(A, B, "converted to its own type"));
  PetscCall(MatScale(R, 2.0));
  PetscCall(CheckMult(B, R, "converted to its own type"));
  PetscCall(MatConvert(A, mattype, MAT_REUSE_MATRIX, &B));
  PetscCall(CheckMult(B, R, "reused of its own type"));
  PetscCall(MatConvert(B, MATSAME, MAT_INPLACE_MATRIX, &B));
  PetscCall(CheckMult(B, R, "in place of its own type"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatSetType"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The virtual transpose, its explicit form, and the explicit transpose */
static PetscErrorCode TestTranspose(void)
{
  Mat A, R, T, TR, C;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&tall, NULL, &A));
  PetscCall(MatFromPattern(&tall, MATAIJ, &R));
  PetscCall(MatTranspose(R, MAT_INITIAL_MATRIX, &TR));
  PetscCall(MatCreateTranspose(A, &T));
  PetscCall(CheckMult(T, TR, "virtual transpose"));
  PetscCall(MatConvert(T, mattype, MAT_INITIAL_MATRIX, &C));
  PetscCall(CheckSameType(A, C, "virtual transpose made explicit"));
  PetscCall(CheckMult(C, TR, "virtual transpose made explicit"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&T));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(CheckSameType(A, T, "transpose"));
  PetscCall(CheckMult(T, TR, "transpose"));
  PetscCall(Scale(A, R, NULL, 7.0));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &T));
  PetscCall(MatTranspose(R, MAT_REUSE_MATRIX, &TR));
  PetscCall(CheckMult(T, TR, "reused transpose"));
  PetscCall(MatTranspose(T, MAT_INPLACE_MATRIX, &T));
  PetscCall(CheckSameType(A, T, "transpose in place"));
  PetscCall(CheckMult(T, R, "transpose in place"));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&TR));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("transposes"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Settings go with duplicates and with the blocks of an MPI matrix */
static PetscErrorCode CheckSettings(Mat A, const char what[])
{
  const char     *params = "short=1,long=20,window=16";
  PetscBool       ours, same;
  MatAIJTCMMAType mma = MAT_AIJTC_MMA_CORE;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(A, &ours));
  if (ours) PetscCall(MatAIJTCGetParams(A, &params));
  if (ours) PetscCall(MatAIJTCGetMMA(A, &mma));
  PetscCall(PetscStrcmp(params, "short=1,long=20,window=16", &same));
  PetscCall(Check((PetscBool)(same && mma == MAT_AIJTC_MMA_CORE), "%s has other settings", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSettings(void)
{
  Mat       A, B;
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&square, NULL, &A));
  PetscCall(CheckOurs(A, &ours));
  if (ours) PetscCall(MatAIJTCSetParams(A, "short=1,long=20,window=16"));
  if (ours) PetscCall(MatAIJTCSetMMA(A, MAT_AIJTC_MMA_CORE));
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(CheckSettings(B, "the duplicate"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatGetDiagonalBlock(B, &A));
  PetscCall(CheckSettings(A, "the diagonal block"));
  PetscCall(MatDestroy(&B));
  PetscCall(CheckReport("settings"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool cusparse = PETSC_FALSE; /* needs a GPU */

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", mattype, sizeof(mattype), NULL));
  PetscCall(TestType(MATAIJ, PETSC_FALSE, PETSC_TRUE, &tall));
  PetscCall(TestType(MATBAIJ, PETSC_FALSE, PETSC_TRUE, &square));
  PetscCall(TestType(MATSBAIJ, PETSC_TRUE, PETSC_TRUE, &square));
  PetscCall(TestType(MATDENSE, PETSC_FALSE, PETSC_TRUE, &tall));
  PetscCall(TestType(MATIS, PETSC_FALSE, PETSC_FALSE, &square));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-with_aijcusparse", &cusparse, NULL));
  if (cusparse) PetscCall(TestType(MATAIJCUSPARSE, PETSC_FALSE, PETSC_TRUE, &tall));
  PetscCall(TestSetType());
  PetscCall(TestTranspose());
  PetscCall(TestSettings());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex3.out
      test:
         suffix: host
         nsize: {{1 4}}
         args: -mat_type {{aij aijtc}}

   test:
      suffix: cuda
      requires: cuda
      nsize: {{1 2}}
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -mat_type aijtc -with_aijcusparse -vec_type cuda -use_gpu_aware_mpi 0
      output_file: output/ex3_cuda.out

TEST*/
