static char help[] = "Options, information and errors of MATAIJTC: what a view and MatAIJTCGetInfo() say, wrong settings, other types, and that a matrix works after an error.\n\n";

#include "check.h"
#include <petsctc.h>

/* The call errors with this code, quietly */
#define CheckError(code, what, ...) \
  do { \
    PetscErrorCode error_; \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    error_ = __VA_ARGS__; \
    PetscCall(PetscPopErrorHandler()); \
    PetscCall(Check((PetscBool)(error_ == (code)), "%s: error code %d, not %d", what, (int)error_, (int)(code))); \
  } while (0)

enum {
  M = 100
};

/* 2 long, some medium, short and empty rows */
static PetscInt Width(PetscInt row, PetscInt)
{
  return row == 7 || row == 70 ? 300 : row % 9;
}
static const Pattern pattern = {"pattern", M, 400, Width}, square = {"square", M, M, Width};

/* ---- information */

static PetscErrorCode CheckLayout(Mat A, PetscInt long_row, PetscInt short_row, const char what[])
{
  PetscInt     n[4] = {0, 0, 0, 0}, nnz = 0;
  MatAIJTCInfo info;

  PetscFunctionBeginUser;
  for (PetscInt row = 0; row < M; row++) {
    const PetscInt w = Width(row, 400);

    nnz += w;
    n[!w ? 3 : w > long_row ? 0 : w <= short_row ? 2 : 1]++;
  }
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.rows_long == n[0] && info.rows_medium == n[1] && info.rows_short == n[2] && info.rows_empty == n[3]),
                  "%s: rows %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT ", not %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT, what, info.rows_long, info.rows_medium, info.rows_short, info.rows_empty,
                  n[0], n[1], n[2], n[3]));
  PetscCall(Check((PetscBool)(info.slots - info.padding == nnz && info.padding >= 0 && info.slots % 32 == 0), "%s: slots", what));
  PetscCall(Check((PetscBool)(info.bytes >= info.slots * (PetscCount)(sizeof(PetscScalar) + sizeof(int))), "%s: bytes", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatView() writes in this format contains this text, or does not */
static PetscErrorCode CheckView(Mat A, PetscViewerFormat format, const char text[], PetscBool there)
{
  PetscViewer viewer;
  char        buffer[20000] = "", *found;
  FILE       *f;
  size_t      n;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, "ex9.txt", &viewer));
  PetscCall(PetscViewerPushFormat(viewer, format));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  f = fopen("ex9.txt", "r");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "ex9.txt");
  n         = fread(buffer, 1, sizeof(buffer) - 1, f);
  buffer[n] = 0;
  fclose(f);
  PetscCall(PetscStrstr(buffer, text, &found));
  PetscCall(Check((PetscBool)((found != NULL) == there), "view %s \"%s\":\n%s", there ? "without" : "with", text, buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestInfo(void)
{
  Mat          A, R;
  MatAIJTCInfo info;
  PetscBool    cuda;
  char         text[128];

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_WORLD, &cuda));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.builds == 0 && info.slots == 0 && info.bytes == 0), "a layout before any product"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "not built yet", PETSC_TRUE));
  PetscCall(CheckMult(A, R, "product"));
  PetscCall(CheckLayout(A, 256, 4, "default classes"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.cuda == cuda), "the layout is on the %s", info.cuda ? "GPU" : "host"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, cuda ? "tile layout on the GPU" : "tile layout on the host", PETSC_TRUE));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "not built yet", PETSC_FALSE));
  PetscCall(PetscSNPrintf(text, sizeof(text), "rows: long=%" PetscInt_FMT ", medium=%" PetscInt_FMT ", short=%" PetscInt_FMT ", empty=%" PetscInt_FMT, info.rows_long, info.rows_medium, info.rows_short, info.rows_empty));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, text, PETSC_TRUE));
  PetscCall(PetscSNPrintf(text, sizeof(text), "slots=%" PetscInt64_FMT ", of them padding=%" PetscInt64_FMT ", bytes=%" PetscInt64_FMT, (PetscInt64)info.slots, (PetscInt64)info.padding, (PetscInt64)info.bytes));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, text, PETSC_TRUE));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO, "tile", PETSC_FALSE)); /* every other view is the parent's */
  PetscCall(CheckView(A, PETSC_VIEWER_DEFAULT, "tile", PETSC_FALSE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("information"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- settings */

static PetscErrorCode CheckSettings(Mat A, PetscInt l, PetscInt s, PetscInt w, MatAIJTCMMAType mma, const char what[])
{
  PetscInt        al, as, aw;
  MatAIJTCMMAType amma;

  PetscFunctionBeginUser;
  PetscCall(MatAIJTCGetRowClasses(A, &al, &as, &aw));
  PetscCall(MatAIJTCGetMMA(A, &amma));
  PetscCall(Check((PetscBool)(al == l && as == s && aw == w && amma == mma), "%s: %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT " %s", what, al, as, aw, MatAIJTCMMATypes[amma]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSettings(void)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(CheckSettings(A, 256, 4, 8192, MAT_AIJTC_MMA_TENSOR, "defaults"));
  PetscCall(MatAIJTCSetRowClasses(A, 5, 2, 10));
  PetscCall(MatAIJTCSetMMA(A, MAT_AIJTC_MMA_CORE));
  PetscCall(CheckSettings(A, 5, 2, 10, MAT_AIJTC_MMA_CORE, "set"));
  PetscCall(CheckMult(A, R, "set"));
  PetscCall(CheckLayout(A, 5, 2, "set"));
  PetscCall(MatAIJTCSetRowClasses(A, 0, 0, 0)); /* every row long */
  PetscCall(CheckMult(A, R, "all long"));
  PetscCall(CheckLayout(A, 0, 0, "all long"));
  PetscCall(MatAIJTCGetRowClasses(A, NULL, NULL, NULL));

  PetscCall(PetscOptionsInsertString(NULL, "-one_mat_aijtc_long_row 30 -one_mat_aijtc_short_row 1 -one_mat_aijtc_sort_window 4 -one_mat_aijtc_mma core -one_mat_aijtc_check"));
  PetscCall(MatSetOptionsPrefix(A, "one_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(CheckSettings(A, 30, 1, 4, MAT_AIJTC_MMA_CORE, "by options"));
  PetscCall(CheckMult(A, R, "by options"));
  PetscCall(CheckLayout(A, 30, 1, "by options"));

  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "short rows of 5", MatAIJTCSetRowClasses(A, 256, 5, 0));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "short rows of -1", MatAIJTCSetRowClasses(A, 256, -1, 0));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "long rows shorter than short ones", MatAIJTCSetRowClasses(A, 2, 3, 0));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "negative window", MatAIJTCSetRowClasses(A, 256, 4, -1));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "no such units", MatAIJTCSetMMA(A, (MatAIJTCMMAType)7));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "negative tolerance", MatAIJTCSetCheck(A, PETSC_TRUE, -1.0));
  PetscCall(CheckSettings(A, 30, 1, 4, MAT_AIJTC_MMA_CORE, "after errors"));
  PetscCall(CheckMult(A, R, "after errors"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("settings"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Wrong values on the command line, and a backend that is not there */
static PetscErrorCode TestWrongOptions(void)
{
  const char *const wrong[] = {"-bad_mat_aijtc_short_row 9", "-bad_mat_aijtc_short_row -3", "-bad_mat_aijtc_long_row 1", "-bad_mat_aijtc_sort_window -5"};
  Mat               A;
  PetscBool         cuda;

  PetscFunctionBeginUser;
  for (const char *options : wrong) {
    PetscCall(PetscOptionsInsertString(NULL, options));
    PetscCall(MatFromPattern(&pattern, NULL, &A));
    PetscCall(MatSetOptionsPrefix(A, "bad_"));
    CheckError(PETSC_ERR_ARG_OUTOFRANGE, options, MatSetFromOptions(A));
    PetscCall(CheckSettings(A, 256, 4, 8192, MAT_AIJTC_MMA_TENSOR, options));
    PetscCall(MatDestroy(&A));
    for (const char *name : {"-bad_mat_aijtc_short_row", "-bad_mat_aijtc_long_row", "-bad_mat_aijtc_sort_window"}) PetscCall(PetscOptionsClearValue(NULL, name));
  }
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_WORLD, &cuda));
  for (const char *backend : {"cuda", "host", "auto"}) {
    PetscCall(PetscOptionsSetValue(NULL, "-back_mat_aijtc_backend", backend));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, 5, 5, PETSC_DETERMINE, PETSC_DETERMINE));
    PetscCall(MatSetOptionsPrefix(A, "back_"));
    CheckError(backend[0] == 'c' && !cuda ? PETSC_ERR_SUP : PETSC_SUCCESS, backend, MatSetType(A, MATAIJTC));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(CheckReport("wrong options"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a matrix of another type */

static PetscErrorCode TestOtherType(void)
{
  Mat             A;
  MatAIJTCInfo    info;
  MatAIJTCMMAType mma;
  PetscInt        n;

  PetscFunctionBeginUser;
  for (MatType type : {MATAIJ, MATDENSE}) {
    PetscCall(MatFromPattern(&pattern, MATAIJ, &A));
    PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCSetMMA", MatAIJTCSetMMA(A, MAT_AIJTC_MMA_CORE));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCGetMMA", MatAIJTCGetMMA(A, &mma));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCSetRowClasses", MatAIJTCSetRowClasses(A, 256, 4, 8192));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCGetRowClasses", MatAIJTCGetRowClasses(A, &n, &n, &n));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCSetCheck", MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCGetInfo", MatAIJTCGetInfo(A, &info));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(CheckReport("other types"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- after an error inside an operation the matrix is what it was */

static PetscErrorCode CheckStillOurs(Mat A, Mat R, const char what[])
{
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(A, &ours));
  PetscCall(Check(ours, "after an error in %s: of another type", what));
  PetscCall(CheckMult(A, R, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorWithoutDiagonal(Mat A)
{
  Mat           F;
  MatFactorInfo info;
  IS            is;
  PetscBool     failed;

  PetscFunctionBeginUser;
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &is));
  PetscCall(MatGetFactor(A, NULL, MAT_FACTOR_ILU, &F));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  failed = (PetscBool)(MatILUFactorSymbolic(F, A, is, is, &info) != PETSC_SUCCESS);
  PetscCall(PetscPopErrorHandler());
  PetscCall(Check(failed, "factor of a matrix without diagonal"));
  PetscCall(MatDestroy(&F));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductByUnknownAlgorithm(Mat A)
{
  Mat       C;
  PetscBool failed, cuda;

  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(A, A, NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_AB));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  failed = (PetscBool)(MatProductSetAlgorithm(C, "nosuchalgorithm") || MatProductSetFromOptions(C) || MatProductSymbolic(C));
  PetscCall(PetscPopErrorHandler());
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_WORLD, &cuda));
  PetscCall(Check((PetscBool)(failed || cuda), "a product by an unknown algorithm")); /* AIJCUSPARSE does not look at the algorithm */
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A type that is there, but that no matrix converts to */
static PetscErrorCode ConvertToImpossible(Mat A)
{
  PetscBool failed;

  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  failed = (PetscBool)(MatConvert(A, MATSCATTER, MAT_INPLACE_MATRIX, &A) != PETSC_SUCCESS);
  PetscCall(PetscPopErrorHandler());
  PetscCall(Check(failed, "conversion to %s", MATSCATTER));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestAfterErrors(void)
{
  Mat A, R, B;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&square, NULL, &A));
  PetscCall(MatFromPattern(&square, MATAIJ, &R));
  PetscCall(CheckMult(A, R, "before"));
  PetscCall(FactorWithoutDiagonal(A));
  PetscCall(CheckStillOurs(A, R, "MatILUFactorSymbolic"));
  PetscCall(ProductByUnknownAlgorithm(A));
  PetscCall(CheckStillOurs(A, R, "MatProductSymbolic"));
  B = NULL;
  CheckError(PETSC_ERR_ARG_UNKNOWN_TYPE, "unknown type", MatConvert(A, "nosuchtype", MAT_INITIAL_MATRIX, &B));
  PetscCall(CheckStillOurs(A, R, "MatConvert"));
  CheckError(PETSC_ERR_ARG_UNKNOWN_TYPE, "unknown type, in place", MatConvert(A, "nosuchtype", MAT_INPLACE_MATRIX, &A));
  PetscCall(CheckStillOurs(A, R, "MatConvert in place"));
  PetscCall(ConvertToImpossible(A));
  PetscCall(CheckStillOurs(A, R, "MatConvert in place to a type that takes no values"));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "new nonzero", MatSetValue(A, 0, M - 1, 1.0, INSERT_VALUES)); /* row 0 is empty */
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(CheckStillOurs(A, R, "MatSetValue"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(CheckStillOurs(A, R, "all of them"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("after errors"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestInfo());
  PetscCall(TestSettings());
  PetscCall(TestWrongOptions());
  PetscCall(TestOtherType());
  PetscCall(TestAfterErrors());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_dump false -mat_type aijtc # PETSc itself leaks when it errors
      test:
         suffix: host
         output_file: output/ex9.out
      test:
         suffix: help
         args: -help
         filter: grep -o -e "-mat_aijtc_[a-z_]*" | sort -u
      test:
         suffix: cuda
         requires: cuda
         output_file: output/ex9.out

TEST*/
