static char help[] = "Options, information and errors of MATAIJTC: what a view and MatAIJTCGetInfo() say, wrong settings, other types, and that a matrix works after an error.\n\n";

#include "check.h"
#include "../viewtext.h"
#include <petsctc.h>

enum {
  M = 100
};

/* 2 long, some medium, short and empty rows */
static PetscInt Width(PetscInt row, PetscInt)
{
  return row == 7 || row == 70 ? 300 : row % 9;
}
static PetscInt Three(PetscInt, PetscInt)
{
  return 3;
}
static PetscInt Seven(PetscInt, PetscInt)
{
  return 7;
}
static const Pattern pattern = {"pattern", M, 400, Width}, square = {"square", M, M, Width}, banded = {"banded", M, 400, Three}, mesh = {"mesh", M, M, Seven}, empty = {"empty", M, M, None};

/* ---- information */

static PetscErrorCode CheckLayout(Mat A, PetscInt long_row, PetscInt short_row, const char what[])
{
  PetscCount   n[4] = {0, 0, 0, 0}, nnz = 0, slices, offsets, values;
  MatAIJTCInfo info;

  PetscFunctionBeginUser;
  for (PetscInt row = 0; row < M; row++) {
    const PetscInt w = Width(row, 400);

    nnz += w;
    n[!w ? 3 : w > long_row ? 0 : w <= short_row ? 2 : 1]++;
  }
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.rows_long == n[0] && info.rows_medium == n[1] && info.rows_short == n[2] && info.rows_empty == n[3]),
                  "%s: rows %" PetscCount_FMT " %" PetscCount_FMT " %" PetscCount_FMT " %" PetscCount_FMT ", not %" PetscCount_FMT " %" PetscCount_FMT " %" PetscCount_FMT " %" PetscCount_FMT, what, info.rows_long, info.rows_medium, info.rows_short,
                  info.rows_empty, n[0], n[1], n[2], n[3]));
  slices  = info.slices_long + info.slices_tile + info.slices_row;
  offsets = info.offsets_none + info.offsets_1 + info.offsets_2 + info.offsets_4;
  values  = info.values_constant + info.values_dictionary + info.values_float + info.values_double;
  PetscCall(Check((PetscBool)(slices > 0 && offsets == values && offsets > 0 && offsets <= slices && info.slices_consecutive <= info.slices_row), "%s: %" PetscCount_FMT " slices, %" PetscCount_FMT " with offsets, %" PetscCount_FMT " with values",
                  what, slices, offsets, values));
  PetscCall(Check((PetscBool)((info.slices_long > 0) == (n[0] > 0) && (info.slices_tile > 0) == (n[1] > 0)), "%s: kinds of slices", what));
  PetscCall(Check((PetscBool)(info.entries == nnz && info.bytes_read < info.bytes && info.bytes_pattern + info.bytes_values < info.bytes_read && info.bytes_per_nonzero == (PetscReal)info.bytes_read / (PetscReal)nnz), "%s: bytes", what));
  PetscCall(Check((PetscBool)(info.long_row == long_row && info.short_row == short_row), "%s: classes %" PetscInt_FMT " %" PetscInt_FMT, what, info.long_row, info.short_row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatView() writes in this format contains this text, or does not */
static PetscErrorCode CheckView(Mat A, PetscViewerFormat format, const char text[], PetscBool there)
{
  char buffer[20000], *found;

  PetscFunctionBeginUser;
  PetscCall(ViewText((PetscObject)A, format, "ex9.txt", buffer, sizeof(buffer)));
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
  PetscCall(Check((PetscBool)(info.builds == 0 && info.entries == 0 && info.bytes == 0), "a layout before any product"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "not built yet", PETSC_TRUE));
  PetscCall(CheckMult(A, R, "product"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(CheckLayout(A, info.long_row, info.short_row, "chosen classes"));
  PetscCall(Check((PetscBool)(info.cuda == cuda), "the layout is on the %s", info.cuda ? "GPU" : "host"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, cuda ? "sliced layout on the GPU" : "sliced layout on the host", PETSC_TRUE));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "not built yet", PETSC_FALSE));
  PetscCall(PetscSNPrintf(text, sizeof(text), "rows: long=%" PetscCount_FMT ", medium=%" PetscCount_FMT ", short=%" PetscCount_FMT ", empty=%" PetscCount_FMT, info.rows_long, info.rows_medium, info.rows_short, info.rows_empty));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, text, PETSC_TRUE));
  PetscCall(PetscSNPrintf(text, sizeof(text), "bytes=%" PetscCount_FMT ": pattern=%" PetscCount_FMT ", values=%" PetscCount_FMT, info.bytes, info.bytes_pattern, info.bytes_values));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, text, PETSC_TRUE));
  PetscCall(Check((PetscBool)!info.common_offsets, "rows of more than 256 nonzeros share their offsets"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "rows share their offsets: no (rule for unstructured matrices)", PETSC_TRUE));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO, "layout", PETSC_FALSE)); /* every other view is the parent's */
  PetscCall(CheckView(A, PETSC_VIEWER_DEFAULT, "layout", PETSC_FALSE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("information"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By what rule the layout was chosen */
static PetscErrorCode TestRule(void)
{
  Mat          A, R;
  MatAIJTCInfo info;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&banded, NULL, &A));
  PetscCall(MatFromPattern(&banded, MATAIJ, &R));
  PetscCall(CheckMult(A, R, "bands"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check(info.common_offsets, "bands: another rule"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "rows share their offsets: yes (stencil rule)", PETSC_TRUE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatFromPattern(&empty, NULL, &A));
  PetscCall(MatFromPattern(&empty, MATAIJ, &R));
  PetscCall(CheckMult(A, R, "empty"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(!info.common_offsets && !info.block_size), "empty: a rule"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "rows share their offsets: no nonzeros", PETSC_TRUE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("rule"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- settings */

static PetscErrorCode CheckParams(Mat A, const char expected[], const char what[])
{
  const char *params;
  PetscBool   same;

  PetscFunctionBeginUser;
  PetscCall(MatAIJTCGetParams(A, &params));
  PetscCall(PetscStrcmp(params, expected, &same));
  PetscCall(Check(same, "%s: parameters \"%s\", not \"%s\"", what, params, expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSettings(Mat A, const char params[], MatAIJTCMMAType mma, const char what[])
{
  MatAIJTCMMAType amma;

  PetscFunctionBeginUser;
  PetscCall(CheckParams(A, params, what));
  PetscCall(MatAIJTCGetMMA(A, &amma));
  PetscCall(Check((PetscBool)(amma == mma), "%s: %s", what, MatAIJTCMMATypes[amma]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSettings(void)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(CheckSettings(A, "", MAT_AIJTC_MMA_TENSOR, "defaults"));
  PetscCall(MatAIJTCSetParams(A, "window=10,long=5,short=2"));
  PetscCall(MatAIJTCSetMMA(A, MAT_AIJTC_MMA_CORE));
  PetscCall(CheckSettings(A, "short=2,long=5,window=10", MAT_AIJTC_MMA_CORE, "set"));
  PetscCall(CheckMult(A, R, "set"));
  PetscCall(CheckLayout(A, 5, 2, "set"));
  PetscCall(MatAIJTCSetParams(A, "short=0,long=0,window=0")); /* every row long */
  PetscCall(CheckMult(A, R, "all long"));
  PetscCall(CheckLayout(A, 0, 0, "all long"));
  PetscCall(MatAIJTCSetParams(A, "form=row,gather=64,rows=4,window=1,long=3,short=0"));
  PetscCall(CheckParams(A, "short=0,long=3,window=1,rows=4,gather=64,form=row", "all of them"));
  PetscCall(MatAIJTCSetParams(A, "rows=2,form=auto"));
  PetscCall(CheckParams(A, "rows=2", "others than before"));
  for (const char *none : {(const char *)NULL, ""}) {
    PetscCall(MatAIJTCSetParams(A, none));
    PetscCall(CheckParams(A, "", "none"));
  }

  PetscCall(PetscOptionsInsertString(NULL, "-one_mat_aijtc_params long=30,short=1,window=4 -one_mat_aijtc_mma core -one_mat_aijtc_check"));
  PetscCall(MatSetOptionsPrefix(A, "one_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(CheckSettings(A, "short=1,long=30,window=4", MAT_AIJTC_MMA_CORE, "by options"));
  PetscCall(CheckMult(A, R, "by options"));
  PetscCall(CheckLayout(A, 30, 1, "by options"));

  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "no such units", MatAIJTCSetMMA(A, (MatAIJTCMMAType)7));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "no such compression", MatAIJTCSetCompress(A, (MatAIJTCCompressType)7));
  CheckError(PETSC_ERR_ARG_OUTOFRANGE, "negative tolerance", MatAIJTCSetCheck(A, PETSC_TRUE, -1.0));
  PetscCall(CheckSettings(A, "short=1,long=30,window=4", MAT_AIJTC_MMA_CORE, "after errors"));
  PetscCall(CheckMult(A, R, "after errors"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("settings"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the message of an error in ctx */
static PetscErrorCode KeepMessage(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type, const char *message, void *ctx)
{
  if (type == PETSC_ERROR_INITIAL) (void)PetscStrncpy((char *)ctx, message, 1024);
  return code;
}

/* Errors tell the key, its value and what is allowed, and change nothing */
static PetscErrorCode TestWrongParams(void)
{
  const struct {
    const char    *params;
    PetscErrorCode code;
    const char    *says[3];
  } wrong[] = {
    {"short=-3",                    PETSC_ERR_ARG_OUTOFRANGE, {"short", "'-3'", "0 or more"}                                             },
    {"long=2,short=3",              PETSC_ERR_ARG_OUTOFRANGE, {"long", "'2'", "no less than the 3 of short"}                             },
    {"window=-1",                   PETSC_ERR_ARG_OUTOFRANGE, {"window", "'-1'", "0 (all rows) or more"}                                 },
    {"rows=2,window=1e3",           PETSC_ERR_ARG_OUTOFRANGE, {"window", "'1e3'", "0 (all rows) or more"}                                },
    {"window=99999999999999999999", PETSC_ERR_ARG_OUTOFRANGE, {"window", "'99999999999999999999'", "0 (all rows) or more"}               },
    {"rows=3",                      PETSC_ERR_ARG_OUTOFRANGE, {"rows", "'3'", "1, 2 or 4"}                                               },
    {"rows=-1",                     PETSC_ERR_ARG_OUTOFRANGE, {"rows", "'-1'", "1, 2 or 4"}                                              },
    {"gather=65",                   PETSC_ERR_ARG_OUTOFRANGE, {"gather", "'65'", "0 (none) to 64"}                                       },
    {"gather=-7",                   PETSC_ERR_ARG_OUTOFRANGE, {"gather", "'-7'", "0 (none) to 64"}                                       },
    {"form=tiles",                  PETSC_ERR_ARG_OUTOFRANGE, {"form", "'tiles'", "auto, tile or row"}                                   },
    {"form=",                       PETSC_ERR_ARG_OUTOFRANGE, {"form", "''", "auto, tile or row"}                                        },
    {"rows=2,short",                PETSC_ERR_ARG_OUTOFRANGE, {"short", "''", "0 or more"}                                               },
    {"rows=2,short=1,rows=4",       PETSC_ERR_ARG_WRONG,      {"rows", "'4'", "once"}                                                    },
    {"form=auto,form=auto",         PETSC_ERR_ARG_WRONG,      {"form", "'auto'", "once"}                                                 },
    {"tiles=4",                     PETSC_ERR_ARG_WRONG,      {"'tiles'", "'4'", "short, long, window, rows, gather or form"}            },
    {"rows=2,",                     PETSC_ERR_ARG_WRONG,      {"Unknown key ''", "value ''", "short, long, window, rows, gather or form"}}
  };
  Mat  A;
  char message[1024];

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatAIJTCSetParams(A, "short=1,form=row"));
  for (const auto &w : wrong) {
    PetscErrorCode code;

    message[0] = 0;
    PetscCall(PetscPushErrorHandler(KeepMessage, message));
    code = MatAIJTCSetParams(A, w.params);
    PetscCall(PetscPopErrorHandler());
    PetscCall(Check((PetscBool)(code == w.code), "%s: error code %d, not %d", w.params, (int)code, (int)w.code));
    for (const char *part : w.says) {
      char *found;

      PetscCall(PetscStrstr(message, part, &found));
      PetscCall(Check((PetscBool)(found != NULL), "%s: the error lacks \"%s\": %s", w.params, part, message));
    }
    PetscCall(CheckParams(A, "short=1,form=row", w.params));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(CheckReport("wrong parameters"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The classes of the rows follow the form, and the bounds that were set */
static PetscErrorCode TestForms(void)
{
  Mat          A, R;
  MatAIJTCInfo info;
  char         params[32];

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(MatAIJTCSetParams(A, "form=tile"));
  PetscCall(CheckMult(A, R, "tiles"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(CheckLayout(A, info.long_row, 0, "tiles"));
  PetscCall(MatAIJTCSetParams(A, "form=row"));
  PetscCall(CheckMult(A, R, "rows"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(CheckLayout(A, info.long_row, info.long_row, "rows"));
  PetscCall(Check((PetscBool)(info.rows_medium == 0 && info.slices_tile == 0), "rows: tiles"));
  PetscCall(MatAIJTCSetParams(A, "form=row,long=6,short=2"));
  PetscCall(CheckMult(A, R, "rows of at most 6"));
  PetscCall(CheckLayout(A, 6, 6, "rows of at most 6"));
  for (PetscInt lane : {1, 2, 4}) {
    PetscCall(PetscSNPrintf(params, sizeof(params), "long=6,short=2,rows=%" PetscInt_FMT, lane));
    PetscCall(MatAIJTCSetParams(A, params));
    PetscCall(CheckMult(A, R, "row groups"));
    PetscCall(CheckLayout(A, 6, 2, "row groups"));
    PetscCall(MatAIJTCGetInfo(A, &info));
    PetscCall(Check((PetscBool)(info.rows_per_lane == lane), "row groups of %" PetscInt_FMT, lane));
  }
  PetscCall(MatAIJTCSetParams(A, "long=5")); /* the bound that was set holds */
  PetscCall(CheckMult(A, R, "long rows set"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.long_row == 5 && info.short_row <= 5), "long rows set"));
  PetscCall(MatAIJTCSetParams(A, "short=100000"));
  PetscCall(CheckMult(A, R, "short rows set"));
  PetscCall(CheckLayout(A, 100000, 100000, "short rows set"));
  PetscCall(PetscOptionsInsertString(NULL, "-two_mat_aijtc_params form=tile,short=3,rows=4"));
  PetscCall(MatSetOptionsPrefix(A, "two_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(CheckMult(A, R, "by options"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.rows_per_lane == 4), "by options"));
  PetscCall(CheckLayout(A, info.long_row, 0, "by options"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("forms"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern's entries, few and exact in single precision */
static PetscErrorCode SetFewValues(Mat A)
{
  PetscFunctionBeginUser;
  for (PetscInt row = 0; row < M; row++)
    for (PetscInt k = 0; k < Width(row, 400); k++) PetscCall(MatSetValue(A, row, Column(row, k, 400), 0.25 * (PetscScalar)(1 + (row + k) % 3), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is compressed changes the bytes and no bit of the product */
static PetscErrorCode TestCompress(void)
{
  Mat          A, R;
  Vec          x, y, z;
  MatAIJTCInfo info[4];
  PetscCount   values[4];
  PetscBool    same;
  const bool   floats = sizeof(PetscScalar) > sizeof(float);

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(SetFewValues(A));
  PetscCall(SetFewValues(R));
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  for (int k = 0; k < 4; k++) {
    MatAIJTCCompressType compress;

    PetscCall(MatAIJTCSetCompress(A, (MatAIJTCCompressType)k));
    PetscCall(MatAIJTCGetCompress(A, &compress));
    PetscCall(Check((PetscBool)(compress == (MatAIJTCCompressType)k), "%s as set", MatAIJTCCompressTypes[k]));
    PetscCall(MatMult(A, x, k ? z : y));
    if (k) PetscCall(VecEqual(y, z, &same));
    if (k) PetscCall(Check(same, "%s: another product", MatAIJTCCompressTypes[k]));
    PetscCall(CheckMult(A, R, MatAIJTCCompressTypes[k]));
    PetscCall(MatAIJTCGetInfo(A, &info[k]));
    values[k] = info[k].values_constant + info[k].values_dictionary + info[k].values_float;
  }
  /* There are too few values for a dictionary: where they are stored as floats already, only the pattern is compressed */
  PetscCall(Check((PetscBool)(info[0].bytes < info[2].bytes && info[2].bytes < info[1].bytes && info[0].bytes < info[3].bytes && (floats ? info[3].bytes < info[1].bytes : info[3].bytes <= info[1].bytes)),
                  "bytes: auto %" PetscCount_FMT ", off %" PetscCount_FMT ", pattern %" PetscCount_FMT ", value %" PetscCount_FMT, info[0].bytes, info[1].bytes, info[2].bytes, info[3].bytes));
  PetscCall(Check((PetscBool)((!floats || (values[0] > 0 && values[3] > 0)) && values[1] == 0 && values[2] == 0), "slices of compressed values"));
  PetscCall(Check((PetscBool)(info[1].offsets_none + info[1].offsets_1 + info[1].offsets_2 == 0 && info[3].offsets_none + info[3].offsets_1 + info[3].offsets_2 == 0), "compressed offsets"));
  PetscCall(Check((PetscBool)(info[1].bytes_values >= info[1].entries * (PetscCount)sizeof(PetscScalar) && info[1].bytes_pattern >= info[1].entries * 4), "bytes of no compression"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("compression"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckCounts(Mat A, PetscInt builds, PetscInt refreshes, PetscBool vary, const char what[])
{
  MatAIJTCInfo info;

  PetscFunctionBeginUser;
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(
    Check((PetscBool)(info.builds == builds && info.refreshes == refreshes && info.values_vary == vary), "%s: %" PetscInt_FMT " builds, %" PetscInt_FMT " refreshes%s", what, info.builds, info.refreshes, info.values_vary ? ", values vary" : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that stop fitting their compressed form: built anew once, and refreshed from then on */
static PetscErrorCode TestVaryingValues(void)
{
  Mat A, R, B, S;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
  PetscCall(MatZeroEntries(A));
  PetscCall(MatZeroEntries(R));
  PetscCall(CheckMult(A, R, "zeros"));
  PetscCall(CheckCounts(A, 1, 0, PETSC_FALSE, "zeros"));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatAXPY(A, 1.0 + k, B, SAME_NONZERO_PATTERN));
    PetscCall(MatAXPY(R, 1.0 + k, S, SAME_NONZERO_PATTERN));
    PetscCall(CheckMult(A, R, "values"));
    PetscCall(CheckCounts(A, 2, k, PETSC_TRUE, "values"));
  }
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, "new ones did not fit", PETSC_TRUE));
  PetscCall(MatZeroEntries(A));
  PetscCall(MatZeroEntries(R));
  PetscCall(CheckMult(A, R, "zeros again"));
  PetscCall(CheckCounts(A, 2, 3, PETSC_TRUE, "zeros again"));
  PetscCall(MatAIJTCSetCompress(A, MAT_AIJTC_COMPRESS_PATTERN));
  PetscCall(CheckMult(A, R, "pattern"));
  PetscCall(CheckCounts(A, 3, 3, PETSC_FALSE, "pattern"));
  PetscCall(MatAXPY(A, 1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(R, 1.0, S, SAME_NONZERO_PATTERN));
  PetscCall(CheckMult(A, R, "pattern, values"));
  PetscCall(CheckCounts(A, 3, 4, PETSC_FALSE, "pattern, values"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(CheckReport("varying values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckMultTranspose(Mat A, Mat R, const char what[])
{
  Vec x, y, xr, yr;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, &y, &x));
  PetscCall(MatCreateVecs(R, &yr, &xr));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(xr, 1));
  PetscCall(MatMultTranspose(A, x, y));
  PetscCall(MatMultTranspose(R, xr, yr));
  PetscCall(CheckVec(y, yr, Tolerance(1e-11), what)); /* columns of some 100 entries up to 60 */
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was set, and what the layout has after a product; columns: in its lists, PETSC_DECIDE if any number will do */
static PetscErrorCode CheckGather(Mat A, Mat R, const char set[], PetscInt slices, PetscCount columns, const char what[])
{
  MatAIJTCInfo info;
  char         text[128];

  PetscFunctionBeginUser;
  PetscCall(CheckParams(A, set, what));
  PetscCall(CheckMult(A, R, what));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.gather_slices == slices && (info.gathered_columns > 0) == (slices > 0) && (columns == PETSC_DECIDE || info.gathered_columns == columns)), "%s: blocks of %" PetscInt_FMT " slices, %" PetscCount_FMT " columns", what,
                  info.gather_slices, info.gathered_columns));
  PetscCall(PetscSNPrintf(text, sizeof(text), "    gathered: blocks of %" PetscInt_FMT " slices, %" PetscCount_FMT " columns in their lists\n", info.gather_slices, info.gathered_columns));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, slices ? text : "gathered:", slices ? PETSC_TRUE : PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asked for, and done where the matrix allows */
static PetscErrorCode TestGather(void)
{
  Mat          A, R, B;
  Vec          x, y, z;
  MatAIJTCInfo info;
  PetscBool    same;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&mesh, NULL, &A));
  PetscCall(MatFromPattern(&mesh, MATAIJ, &R));
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(CheckGather(A, R, "", 0, 0, "by default, few rows"));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatAIJTCSetParams(A, "gather=4"));
  PetscCall(CheckGather(A, R, "gather=4", 4, M, "one block of all rows"));
  PetscCall(MatMult(A, x, z));
  PetscCall(VecEqual(y, z, &same));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(same || info.cuda), "gathered: another product"));
  PetscCall(Check((PetscBool)(info.slices_row == 4 && info.slices_consecutive == 0 && info.bytes_read == info.bytes - (M + 1) * (PetscCount)sizeof(PetscInt)), "gathered: slices and bytes"));
  PetscCall(CheckMultTranspose(A, R, "gathered, transpose"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(CheckGather(A, R, "gather=4", 4, M, "other values"));
  PetscCall(CheckCounts(A, 2, 1, PETSC_FALSE, "gathered"));
  PetscCall(MatAIJTCSetParams(A, "gather=4")); /* as it is */
  PetscCall(CheckGather(A, R, "gather=4", 4, M, "set again"));
  PetscCall(CheckCounts(A, 2, 1, PETSC_FALSE, "set again"));
  PetscCall(MatAIJTCSetParams(A, "rows=2,gather=4"));
  PetscCall(CheckGather(A, R, "rows=2,gather=4", 0, 0, "two rows a lane"));
  PetscCall(MatAIJTCSetParams(A, "gather=4,form=tile"));
  PetscCall(CheckGather(A, R, "gather=4,form=tile", 0, 0, "tiles"));
  PetscCall(PetscOptionsInsertString(NULL, "-four_mat_aijtc_params gather=3"));
  PetscCall(MatSetOptionsPrefix(A, "four_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(CheckGather(A, R, "gather=3", 3, PETSC_DECIDE, "by option"));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(CheckGather(B, R, "gather=3", 3, PETSC_DECIDE, "duplicate"));
  PetscCall(MatAIJTCSetParams(A, "gather=64"));
  PetscCall(CheckGather(A, R, "gather=64", 64, M, "the most"));
  PetscCall(MatAIJTCSetParams(A, "gather=0"));
  PetscCall(CheckGather(A, R, "gather=0", 0, 0, "never"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(MatAIJTCSetParams(A, "gather=8"));
  PetscCall(CheckGather(A, R, "gather=8", 0, 0, "not square"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("gathered layouts"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 32,768 rows of six columns each among the 64 around them; the first 64 share their offsets, the others do not */
static PetscErrorCode MatNearby(MatType type, Mat *A)
{
  const PetscInt m = 32768;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, m, m, m));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 6, NULL));
  for (PetscInt row = 0; row < m; row++) {
    for (PetscInt k = 0; k < 6; k++) {
      const PetscInt step = row < 64 ? 5 : 2 * (row % 5) + 5, column = row / 64 * 64 + (row + k * step) % 64;

      PetscCall(MatSetValue(*A, row, column, Entry(row, column), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not gathered unless it is asked for, since neighbours share x anyway; all slices have offsets then, those of the first rows too */
static PetscErrorCode TestNearby(void)
{
  const char   says[] = "neighbours share parts of x, which is not gathered";
  Mat          A, R;
  MatAIJTCInfo info;

  PetscFunctionBeginUser;
  PetscCall(MatNearby(NULL, &A));
  PetscCall(MatNearby(MATSEQAIJ, &R));
  PetscCall(CheckGather(A, R, "", 0, 0, "neighbours share x"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)(info.near_columns && !info.common_offsets && info.slices_row > 0 && info.offsets_none == 0), "neighbours share x: another rule"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, says, PETSC_TRUE));
  PetscCall(MatAIJTCSetParams(A, "gather=8"));
  PetscCall(CheckGather(A, R, "gather=8", 8, PETSC_DECIDE, "asked for"));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(Check((PetscBool)!info.near_columns, "asked for: the rule of before"));
  PetscCall(CheckView(A, PETSC_VIEWER_ASCII_INFO_DETAIL, says, PETSC_FALSE));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("neighbours that share x"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device arrays come and go, the products stay */
static PetscErrorCode TestKeepCSR(void)
{
  Mat       A, R;
  PetscBool keep;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&square, NULL, &A));
  PetscCall(MatFromPattern(&square, MATAIJ, &R));
  PetscCall(MatAIJTCGetKeepCSR(A, &keep));
  PetscCall(Check(keep, "kept by default"));
  PetscCall(PetscOptionsInsertString(NULL, "-three_mat_aijtc_keep_csr false"));
  PetscCall(MatSetOptionsPrefix(A, "three_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatAIJTCGetKeepCSR(A, &keep));
  PetscCall(Check(CheckNot(keep), "not kept by option"));
  for (int k = 0; k < 2; k++) {
    PetscCall(CheckMult(A, R, "first"));
    PetscCall(CheckMult(A, R, "again"));
    PetscCall(CheckMultTranspose(A, R, "transpose"));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(CheckMult(A, R, "other values"));
    PetscCall(MatSetValue(A, 7, 7, 3.0, ADD_VALUES)); /* in the pattern: row 7 is full */
    PetscCall(MatSetValue(R, 7, 7, 3.0, ADD_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
    PetscCall(CheckMult(A, R, "values set"));
    PetscCall(CheckMultTranspose(A, R, "transpose, values set"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("device arrays"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Wrong values on the command line, and a backend that is not there */
static PetscErrorCode TestWrongOptions(void)
{
  const char *const wrong[][2] = {
    {"-bad_mat_aijtc_params",     "long=1,short=2"},
    {"-bad_mat_aijtc_params",     "rows=8"        },
    {"-bad_mat_aijtc_check_rtol", "-1"            }
  };
  Mat       A;
  PetscBool cuda;

  PetscFunctionBeginUser;
  for (const auto &option : wrong) {
    PetscCall(PetscOptionsSetValue(NULL, option[0], option[1]));
    PetscCall(MatFromPattern(&pattern, NULL, &A));
    PetscCall(MatSetOptionsPrefix(A, "bad_"));
    CheckError(PETSC_ERR_ARG_OUTOFRANGE, option[1], MatSetFromOptions(A));
    PetscCall(CheckSettings(A, "", MAT_AIJTC_MMA_TENSOR, option[1]));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscOptionsClearValue(NULL, option[0]));
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
  const char     *params;

  PetscFunctionBeginUser;
  for (MatType type : {MATAIJ, MATDENSE}) {
    PetscCall(MatFromPattern(&pattern, MATAIJ, &A));
    PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCSetMMA", MatAIJTCSetMMA(A, MAT_AIJTC_MMA_CORE));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCGetMMA", MatAIJTCGetMMA(A, &mma));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCSetParams", MatAIJTCSetParams(A, "gather=8"));
    CheckError(PETSC_ERR_ARG_WRONG, "MatAIJTCGetParams", MatAIJTCGetParams(A, &params));
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
  PetscCall(TestRule());
  PetscCall(TestSettings());
  PetscCall(TestWrongParams());
  PetscCall(TestForms());
  PetscCall(TestCompress());
  PetscCall(TestGather());
  PetscCall(TestNearby());
  PetscCall(TestVaryingValues());
  PetscCall(TestKeepCSR());
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
