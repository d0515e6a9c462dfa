/* What a user sets: settings, options, and the manual page. What the layout then tells is in info.cxx. */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/

const char *const MatAIJTCMMATypes[]      = {"tensor", "core", "MatAIJTCMMAType", "MAT_AIJTC_MMA_", NULL};
const char *const MatAIJTCFormTypes[]     = {"auto", "tile", "row", "MatAIJTCFormType", "MAT_AIJTC_FORM_", NULL};
const char *const MatAIJTCCompressTypes[] = {"auto", "off", "pattern", "value", "MatAIJTCCompressType", "MAT_AIJTC_COMPRESS_", NULL};

PetscErrorCode MatAIJTCSettingsDefault(MatAIJTCSettings *s)
{
  PetscFunctionBegin;
  s->mma           = MAT_AIJTC_MMA_TENSOR;
  s->form          = MAT_AIJTC_FORM_AUTO;
  s->compress      = MAT_AIJTC_COMPRESS_AUTO;
  s->long_row      = PETSC_DECIDE;
  s->short_row     = PETSC_DECIDE;
  s->window        = PETSC_DECIDE;
  s->rows_per_lane = PETSC_DECIDE;
  s->tile_groups   = PETSC_DECIDE;
  s->gather        = PETSC_DECIDE;
  s->keep_csr      = PETSC_TRUE;
  s->check         = PETSC_FALSE;
  s->check_rtol    = AIJTC_CHECK_RTOL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool MatAIJTCSameLayout(const MatAIJTCSettings *a, const MatAIJTCSettings *b)
{
  return a->form == b->form && a->compress == b->compress && a->long_row == b->long_row && a->short_row == b->short_row && a->window == b->window && a->rows_per_lane == b->rows_per_lane && a->tile_groups == b->tile_groups && a->gather == b->gather;
}

static PetscErrorCode MatAIJTCCheckSettings(Mat A, const MatAIJTCSettings *s)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);

  PetscFunctionBegin;
  PetscCheck(s->short_row >= 0 || s->short_row == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE, "Short rows have at most %" PetscInt_FMT " nonzeros: use a number from 0 on, or PETSC_DECIDE (-mat_aijtc_short_row)", s->short_row);
  PetscCheck(s->long_row >= 0 || s->long_row == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE, "Long rows have more than %" PetscInt_FMT " nonzeros: use a number from 0 on, or PETSC_DECIDE (-mat_aijtc_long_row)", s->long_row);
  PetscCheck(s->long_row >= s->short_row || s->long_row == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE,
             "Long rows have more than %" PetscInt_FMT " nonzeros, short ones at most %" PetscInt_FMT ": the first must not be the smaller (-mat_aijtc_long_row)", s->long_row, s->short_row);
  PetscCheck(s->window >= 0 || s->window == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE, "Sorting window of %" PetscInt_FMT " rows: use a positive number, 0 to sort all rows together, or PETSC_DECIDE (-mat_aijtc_sort_window)", s->window);
  PetscCheck(s->rows_per_lane == PETSC_DECIDE || s->rows_per_lane == 1 || s->rows_per_lane == 2 || s->rows_per_lane == 4, comm, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " rows to a lane: use 1, 2, 4 or PETSC_DECIDE (-mat_aijtc_rows_per_lane)",
             s->rows_per_lane);
  PetscCheck(s->tile_groups == PETSC_DECIDE || s->tile_groups == 1 || s->tile_groups == 4, comm, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " groups of 8 rows to a slice of tiles: use 1, 4 or PETSC_DECIDE (-mat_aijtc_tile_groups)", s->tile_groups);
  PetscCheck((s->gather >= 0 && s->gather <= AIJTC_GATHER_MOST) || s->gather == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE, "Blocks of %" PetscInt_FMT " slices: use 1 to %d, 0 for no gathered layout, or PETSC_DECIDE (-mat_aijtc_gather_slices)",
             s->gather, (int)AIJTC_GATHER_MOST);
  PetscCheck(s->check_rtol >= 0.0, comm, PETSC_ERR_ARG_OUTOFRANGE, "Allowed difference %g: use 0 or a positive number (-mat_aijtc_check_rtol)", (double)s->check_rtol);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes over new settings if they are right; the layout is built anew, at the next product, if it depends on what changed */
static PetscErrorCode MatAIJTCSetSettings(Mat A, const MatAIJTCSettings *settings)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC     *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckSettings(A, settings));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (!MatAIJTCSameLayout(&tc->settings, settings)) {
    tc->valid       = PETSC_FALSE;
    tc->values_vary = PETSC_FALSE;
  }
  tc->settings = *settings;
  if (c && c->mpi) {
    Mat b[2];

    PetscCall(MatAIJTCGetBlocks(A, b));
    for (Mat B : b)
      if (MatAIJTCClassOf(B)) PetscCall(MatAIJTCSetSettings(B, settings));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, made from A, works as A does */
PetscErrorCode MatAIJTCSettingsCopy(Mat A, Mat B)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  if (!MatAIJTCClassOf(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCSetSettings(B, &tc->settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix' data if it is ours; a clear error if not */
PetscErrorCode MatAIJTCCheckType(Mat A, Mat_AIJTC **tc)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(MatAIJTCClassOf(A), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix is of type %s, not %s. Set its type first: MatSetType(A, MATAIJTC), or convert it: MatConvert(A, MATAIJTC, MAT_INPLACE_MATRIX, &A)",
             ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(not set)", MATAIJTC);
  PetscCall(MatAIJTCGetData(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetMMA - Selects the arithmetic units that multiply the tiles and long rows of a `MATAIJTC` matrix

  Logically Collective

  Input Parameters:
+ A   - the matrix, of type `MATAIJTC`
- mma - `MAT_AIJTC_MMA_TENSOR` or `MAT_AIJTC_MMA_CORE`

  Options Database Key:
. -mat_aijtc_mma (tensor|core) - the units

  Level: intermediate

  Note:
  Both multiply the same layout; the difference between them is the honest share of the Tensor Cores. Rows that take a lane each are multiplied by CUDA cores in both. On the host the
  choice has no effect.

.seealso: `MATAIJTC`, `MatAIJTCMMAType`, `MatAIJTCGetMMA()`
@*/
PetscErrorCode MatAIJTCSetMMA(Mat A, MatAIJTCMMAType mma)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscCheck(mma == MAT_AIJTC_MMA_TENSOR || mma == MAT_AIJTC_MMA_CORE, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "%d is not a MatAIJTCMMAType", (int)mma);
  settings     = tc->settings;
  settings.mma = mma;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetMMA - Gets the arithmetic units that multiply the tiles and long rows of a `MATAIJTC` matrix

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. mma - the units

  Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCMMAType`, `MatAIJTCSetMMA()`
@*/
PetscErrorCode MatAIJTCGetMMA(Mat A, MatAIJTCMMAType *mma)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(mma, 2);
  *mma = tc->settings.mma;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetForm - Selects how a `MATAIJTC` matrix deals its rows out to the lanes of a warp

  Logically Collective

  Input Parameters:
+ A    - the matrix, of type `MATAIJTC`
- form - `MAT_AIJTC_FORM_AUTO`, `MAT_AIJTC_FORM_TILE` or `MAT_AIJTC_FORM_ROW`

  Options Database Key:
. -mat_aijtc_form (auto|tile|row) - the form

  Level: intermediate

  Note:
  The layout is built again at the next product. Tiles and single rows do without the `short_row` of `MatAIJTCSetRowClasses()`; rows longer than its `long_row` are cut into pieces in every form.

.seealso: `MATAIJTC`, `MatAIJTCFormType`, `MatAIJTCGetForm()`, `MatAIJTCSetRowClasses()`, `MatAIJTCSetMMA()`
@*/
PetscErrorCode MatAIJTCSetForm(Mat A, MatAIJTCFormType form)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscCheck(form == MAT_AIJTC_FORM_AUTO || form == MAT_AIJTC_FORM_TILE || form == MAT_AIJTC_FORM_ROW, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "%d is not a MatAIJTCFormType", (int)form);
  settings      = tc->settings;
  settings.form = form;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetForm - Gets how a `MATAIJTC` matrix deals its rows out to the lanes of a warp

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. form - as set

  Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCFormType`, `MatAIJTCSetForm()`
@*/
PetscErrorCode MatAIJTCGetForm(Mat A, MatAIJTCFormType *form)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(form, 2);
  *form = tc->settings.form;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetCompress - Selects what the layout of a `MATAIJTC` matrix compresses, without loss

  Logically Collective

  Input Parameters:
+ A        - the matrix, of type `MATAIJTC`
- compress - `MAT_AIJTC_COMPRESS_AUTO` (pattern and values), `MAT_AIJTC_COMPRESS_OFF`, `MAT_AIJTC_COMPRESS_PATTERN` or `MAT_AIJTC_COMPRESS_VALUE`

  Options Database Key:
. -mat_aijtc_compress (auto|off|pattern|value) - what is compressed

  Level: intermediate

  Note:
  The product is the same to the last bit whatever is compressed, as long as the classes of the rows are the same. The layout is built again at the next product.

  When new values of the same pattern do not fit the compressed ones, the layout is built anew and from then on without compressed values, until the pattern or these settings change.

.seealso: `MATAIJTC`, `MatAIJTCCompressType`, `MatAIJTCGetCompress()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetCompress(Mat A, MatAIJTCCompressType compress)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscCheck(compress == MAT_AIJTC_COMPRESS_AUTO || compress == MAT_AIJTC_COMPRESS_OFF || compress == MAT_AIJTC_COMPRESS_PATTERN || compress == MAT_AIJTC_COMPRESS_VALUE, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             "%d is not a MatAIJTCCompressType", (int)compress);
  settings          = tc->settings;
  settings.compress = compress;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetCompress - Gets what the layout of a `MATAIJTC` matrix compresses

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. compress - as set

  Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCCompressType`, `MatAIJTCSetCompress()`
@*/
PetscErrorCode MatAIJTCGetCompress(Mat A, MatAIJTCCompressType *compress)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(compress, 2);
  *compress = tc->settings.compress;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetRowClasses - Sets the bounds between long, medium and short rows of the layout of a `MATAIJTC` matrix

  Logically Collective

  Input Parameters:
+ A           - the matrix, of type `MATAIJTC`
. long_row    - a row with more nonzeros than this is long: it is cut into pieces that different warps multiply
. short_row   - a row with at most this many nonzeros is short: it takes one lane; those between are medium and go into tiles of 8 rows by 4 nonzeros
- sort_window - the rows of slices that are not consecutive are sorted by length in windows of so many consecutive rows; 0 sorts all rows together

  Options Database Keys:
+ -mat_aijtc_long_row n    - see `long_row`
. -mat_aijtc_short_row n   - see `short_row`
- -mat_aijtc_sort_window n - see `sort_window`

  Level: advanced

  Notes:
  `PETSC_DECIDE`, the default of all three, chooses by whether the rows of the matrix share their offsets; `MatAIJTCGetInfo()` tells what was chosen.

  The layout is built again at the next product. A small window keeps rows that share entries of x near each other, a large one brings rows of equal length together.

.seealso: `MATAIJTC`, `MatAIJTCGetRowClasses()`, `MatAIJTCSetForm()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetRowClasses(Mat A, PetscInt long_row, PetscInt short_row, PetscInt sort_window)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings           = tc->settings;
  settings.long_row  = long_row;
  settings.short_row = short_row;
  settings.window    = sort_window;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetRowClasses - Gets the bounds between long, medium and short rows of the layout of a `MATAIJTC` matrix, as set

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameters:
+ long_row    - a row with more nonzeros is long (`NULL` if not wanted)
. short_row   - a row with at most so many nonzeros is short (`NULL` if not wanted)
- sort_window - rows sorted together (`NULL` if not wanted)

  Level: advanced

  Note:
  `PETSC_DECIDE` stands for a bound that was not set.

.seealso: `MATAIJTC`, `MatAIJTCSetRowClasses()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCGetRowClasses(Mat A, PetscInt *long_row, PetscInt *short_row, PetscInt *sort_window)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  if (long_row) *long_row = tc->settings.long_row;
  if (short_row) *short_row = tc->settings.short_row;
  if (sort_window) *sort_window = tc->settings.window;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetRowGroups - Sets how many rows the slices of the layout of a `MATAIJTC` matrix have

  Logically Collective

  Input Parameters:
+ A             - the matrix, of type `MATAIJTC`
. rows_per_lane - short rows that a lane multiplies at once: 1, 2 or 4
- tile_groups   - groups of 8 medium rows that a warp multiplies at once: 1 or 4

  Options Database Keys:
+ -mat_aijtc_rows_per_lane n - see `rows_per_lane`
- -mat_aijtc_tile_groups n   - see `tile_groups`

  Level: developer

  Note:
  `PETSC_DECIDE`, the default of both, chooses by the sizes of the matrix and by whether its rows share their offsets. The layout is built again at the next product.

.seealso: `MATAIJTC`, `MatAIJTCGetRowGroups()`, `MatAIJTCSetRowClasses()`, `MatAIJTCSetGather()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetRowGroups(Mat A, PetscInt rows_per_lane, PetscInt tile_groups)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings               = tc->settings;
  settings.rows_per_lane = rows_per_lane;
  settings.tile_groups   = tile_groups;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetRowGroups - Gets how many rows the slices of the layout of a `MATAIJTC` matrix have, as set

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameters:
+ rows_per_lane - short rows of a lane (`NULL` if not wanted)
- tile_groups   - groups of 8 medium rows of a warp (`NULL` if not wanted)

  Level: developer

.seealso: `MATAIJTC`, `MatAIJTCSetRowGroups()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCGetRowGroups(Mat A, PetscInt *rows_per_lane, PetscInt *tile_groups)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  if (rows_per_lane) *rows_per_lane = tc->settings.rows_per_lane;
  if (tile_groups) *tile_groups = tc->settings.tile_groups;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetGather - Sets how many slices of the layout of a `MATAIJTC` matrix gather their entries of x together

  Logically Collective

  Input Parameters:
+ A      - the matrix, of type `MATAIJTC`
- slices - slices of a block, of 32 rows each, whose columns are listed once: 1 to 64; 0 for a layout without such blocks

  Options Database Key:
. -mat_aijtc_gather_slices n - see `slices`

  Level: advanced

  Notes:
  Rows of unstructured meshes do not share their offsets, but neighbours share columns. In a gathered layout rows are clustered by a breadth-first search of the graph of the matrix, a block of rows
  reads the entries of x that it needs once, into the shared memory of a multiprocessor, and columns are stored as places among them.

  `PETSC_DECIDE`, the default, chooses by the sizes of the matrix, by whether its rows share their offsets, and where there are few nonzeros by whether neighbouring rows share parts of x anyway. A layout is gathered only if the matrix is square (for the MPI type: of the blocks the
  diagonal one), all rows are short (`MatAIJTCSetRowClasses()`), a lane has one row (`MatAIJTCSetRowGroups()`), no block has more than 4096 columns, and the columns of all blocks together are at most
  half the nonzeros; else the layout is as with 0. Where a block has more than 4096 columns, half as many slices are tried first, again and again, as long as that is a whole number and at least 8.
  `MatAIJTCGetInfo()` tells what came of it. The `sort_window` of `MatAIJTCSetRowClasses()` has no effect on a gathered layout.

  On the host the product is the same to the last bit, gathered or not. The layout is built again at the next product.

.seealso: `MATAIJTC`, `MatAIJTCGetGather()`, `MatAIJTCSetRowClasses()`, `MatAIJTCSetRowGroups()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetGather(Mat A, PetscInt slices)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings        = tc->settings;
  settings.gather = slices;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetGather - Gets how many slices of the layout of a `MATAIJTC` matrix gather their entries of x together, as set

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. slices - slices of a block; 0 for none, `PETSC_DECIDE` if it was not set

  Level: advanced

.seealso: `MATAIJTC`, `MatAIJTCSetGather()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCGetGather(Mat A, PetscInt *slices)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(slices, 2);
  *slices = tc->settings.gather;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetKeepCSR - Tells whether the parent type's device arrays stay beside the layout of a `MATAIJTC` matrix

  Logically Collective

  Input Parameters:
+ A    - the matrix, of type `MATAIJTC`
- keep - `PETSC_FALSE` to free them when the layout is built and the host has the values

  Options Database Key:
. -mat_aijtc_keep_csr (true|false) - keep them

  Level: advanced

  Notes:
  Takes effect after the next `MatMult()`. Every operation still works: one that needs the arrays, such as a factorization or new values, has them copied
  from the host again, and they stay until a product builds or refreshes the layout again. So this saves memory where the matrix stays as it is, and costs time where it does not.

  The arrays stay where the host does not have the newest values, as after `MatSetValuesCOO()` on the device; in the result of a matrix product; and in a matrix that AIJCUSPARSE keeps by its
  nonempty rows. A choice made by `MatCUSPARSESetUseCPUSolve()`, and not by its option, has to be made again after the arrays were freed, and pointers into them, as from
  `MatSeqAIJGetCSRAndMemType()`, are invalid. On the host backend there are no device arrays.

.seealso: `MATAIJTC`, `MatAIJTCGetKeepCSR()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetKeepCSR(Mat A, PetscBool keep)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings          = tc->settings;
  settings.keep_csr = keep;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetKeepCSR - Gets whether the parent type's device arrays stay beside the layout of a `MATAIJTC` matrix

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. keep - as set

  Level: advanced

.seealso: `MATAIJTC`, `MatAIJTCSetKeepCSR()`
@*/
PetscErrorCode MatAIJTCGetKeepCSR(Mat A, PetscBool *keep)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(keep, 2);
  *keep = tc->settings.keep_csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}
/*@
  MatAIJTCSetCheck - Compares every product of a `MATAIJTC` matrix with a vector with the same product by its parent type, and errors on a difference

  Logically Collective

  Input Parameters:
+ A    - the matrix, of type `MATAIJTC`
. flg  - compare or not
- rtol - allowed difference in an entry, relative to ||A||_F ||x||_2 (plus the entry that is added to); `PETSC_DEFAULT` for 1e-12 (1e-4 in single precision)

  Options Database Keys:
+ -mat_aijtc_check (true|false) - compare every product with a vector
- -mat_aijtc_check_rtol rtol    - allowed difference

  Level: intermediate

  Note:
  For finding out whether a strange result comes from this type. Every product then costs two and copies its vectors to the host. Products with dense matrices are then left to the parent type.

.seealso: `MATAIJTC`
@*/
PetscErrorCode MatAIJTCSetCheck(Mat A, PetscBool flg, PetscReal rtol)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  if (rtol == (PetscReal)PETSC_DEFAULT) rtol = AIJTC_CHECK_RTOL;
  settings            = tc->settings;
  settings.check      = flg;
  settings.check_rtol = rtol;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetFromOptions_AIJTC(Mat A, PetscOptionItems PetscOptionsObject)
{
  const MatAIJTCClass *c       = MatAIJTCClassOf(A);
  MatAIJTCBackendType  backend = c->cuda ? MAT_AIJTC_BACKEND_CUDA : MAT_AIJTC_BACKEND_HOST;
  Mat_AIJTC           *tc;
  MatAIJTCSettings     s;
  PetscBool            set;

  PetscFunctionBegin;
  if (c->parent.setfromoptions) PetscCall((*c->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(MatAIJTCGetData(A, &tc));
  s = tc->settings;
  PetscOptionsHeadBegin(PetscOptionsObject, "AIJTC options");
  PetscCall(PetscOptionsEnum("-mat_aijtc_backend", "Where to compute, read when the type is set", "MATAIJTC", MatAIJTCBackendTypes, (PetscEnum)backend, (PetscEnum *)&backend, &set));
  PetscCheck(!set || backend == MAT_AIJTC_BACKEND_AUTO || (backend == MAT_AIJTC_BACKEND_CUDA) == (c->cuda == PETSC_TRUE), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "-mat_aijtc_backend %s for a matrix that already computes on the %s: set the options prefix before the type", MatAIJTCBackendTypes[backend], c->cuda ? "GPU" : "host");
  PetscCall(PetscOptionsEnum("-mat_aijtc_mma", "Arithmetic units that multiply tiles and long rows", "MatAIJTCSetMMA", MatAIJTCMMATypes, (PetscEnum)s.mma, (PetscEnum *)&s.mma, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtc_form", "How rows are dealt out to lanes", "MatAIJTCSetForm", MatAIJTCFormTypes, (PetscEnum)s.form, (PetscEnum *)&s.form, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtc_compress", "What is compressed without loss", "MatAIJTCSetCompress", MatAIJTCCompressTypes, (PetscEnum)s.compress, (PetscEnum *)&s.compress, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_long_row", "Rows with more nonzeros are long", "MatAIJTCSetRowClasses", s.long_row, &s.long_row, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_short_row", "Rows with at most so many nonzeros are short", "MatAIJTCSetRowClasses", s.short_row, &s.short_row, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_sort_window", "Rows sorted by length together, 0 for all", "MatAIJTCSetRowClasses", s.window, &s.window, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_rows_per_lane", "Short rows of a lane: 1, 2 or 4", "MatAIJTCSetRowGroups", s.rows_per_lane, &s.rows_per_lane, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_tile_groups", "Groups of 8 medium rows of a warp: 1 or 4", "MatAIJTCSetRowGroups", s.tile_groups, &s.tile_groups, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_gather_slices", "Slices whose entries of x are gathered together, 0 for none", "MatAIJTCSetGather", s.gather, &s.gather, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtc_keep_csr", "Keep the parent's device arrays beside the layout", "MatAIJTCSetKeepCSR", s.keep_csr, &s.keep_csr, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtc_check", "Compare every product with a vector with the parent type's", "MatAIJTCSetCheck", s.check, &s.check, NULL));
  PetscCall(PetscOptionsReal("-mat_aijtc_check_rtol", "Allowed difference, relative to ||A||_F ||x||_2", "MatAIJTCSetCheck", s.check_rtol, &s.check_rtol, NULL));
  PetscOptionsHeadEnd();
  PetscCall(MatAIJTCSetSettings(A, &s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATAIJTC - "aijtc" - sparse matrices whose `MatMult()` runs on a compressed layout for the GPU: rows of few nonzeros take a lane each, longer ones go into tiles of 8 rows by 4
   nonzeros for FP64 Tensor Cores, very long ones are cut into pieces, after Lu, Yuan, Yang and Liu (2026) and DASP, Lu and Liu (2023).

   This type is `MATSEQAIJTC` for one process and `MATMPIAIJTC` for several.

   Options Database Keys:
+  -mat_type aijtc                              - sets the type during `MatSetFromOptions()`
.  -mat_aijtc_backend (auto|cuda|host)          - where to compute; auto (the default) takes the GPU when PETSc has CUDA and a device is usable on every process of the matrix
.  -mat_aijtc_form (auto|tile|row)              - how rows are dealt out to lanes: by length (the default), all in tiles, each to a lane
.  -mat_aijtc_compress (auto|off|pattern|value) - what is compressed, without loss: pattern and values (the default), nothing, or one of them
.  -mat_aijtc_mma (tensor|core)                 - Tensor Cores (the default) or CUDA cores for tiles and long rows
.  -mat_aijtc_long_row n                        - rows with more nonzeros are long (by default chosen for the matrix, as the next five)
.  -mat_aijtc_short_row n                       - rows with at most so many nonzeros are short
.  -mat_aijtc_sort_window n                     - rows sorted by length together (0 for all)
.  -mat_aijtc_rows_per_lane (1|2|4)             - short rows that a lane multiplies at once
.  -mat_aijtc_tile_groups (1|4)                 - groups of 8 medium rows that a warp multiplies at once
.  -mat_aijtc_gather_slices n                   - slices of 32 rows, at most 64, whose entries of x are gathered together, where the matrix allows (0: none)
.  -mat_aijtc_keep_csr (true|false)             - keep the parent's device arrays beside the layout (the default)
.  -mat_aijtc_check (true|false)                - compares every product with a vector with the parent type's
-  -mat_aijtc_check_rtol rtol                   - the difference it allows (1e-12; in single precision 1e-4)

   Level: beginner

   Notes:
   The type inherits from `MATAIJCUSPARSE`, or from `MATAIJ` where no GPU is usable; every operation of theirs works, and where AIJCUSPARSE is known to be wrong (host vectors,
   diagonal of a matrix with mostly empty rows, values changed while bound to the CPU or retrieved, first triple product after values set on the device) this type is right.

   The layout is built at the first product, on the GPU from the parent's device arrays, and again when the nonzero pattern changed or new values do not fit their compressed form; other
   new values are stored into it. It is kept beside PETSc's own arrays. `MatView()` with `PETSC_VIEWER_ASCII_INFO_DETAIL` tells its size and what was chosen.

   `-help` lists the options of a matrix whose type comes from `-mat_type`; after a `MatSetType()` in the code PETSc takes them for printed.

   A local matrix of 2^31 or more rows or columns is multiplied by the parent type.

   Values written through the pointers of `MatSeqAIJGetCSRAndMemType()` are seen only after `PetscObjectStateIncrease()`, as that function does not raise the state. All products of a
   matrix are to be made in one device context.

   An assembled `MATAIJCUSPARSE` must be converted, not re-typed: `MatConvert(A, MATAIJTC, MAT_INPLACE_MATRIX, &A)`; `MatSetType()` on it discards the values, as between any two
   types of which neither name begins with the other's.

.seealso: [](ch_matrices), `MATAIJ`, `MATAIJCUSPARSE`, `MatAIJTCSetForm()`, `MatAIJTCSetCompress()`, `MatAIJTCSetMMA()`, `MatAIJTCSetRowClasses()`, `MatAIJTCSetRowGroups()`, `MatAIJTCSetGather()`, `MatAIJTCSetKeepCSR()`, `MatAIJTCSetCheck()`, `MatAIJTCGetInfo()`, `MatAIJTCMultDot()`, `MatAIJTCBackendType`, `PetscTCDeviceUsable()`, `KSPTCCG`, `KSPTCBCGS`
M*/

/*MC
   MATSEQAIJTC - "seqaijtc" - `MATAIJTC` on one process

   Level: beginner

.seealso: `MATAIJTC`, `MATMPIAIJTC`
M*/

/*MC
   MATMPIAIJTC - "mpiaijtc" - `MATAIJTC` distributed over several processes, by its two blocks of type `MATSEQAIJTC`

   Level: beginner

.seealso: `MATAIJTC`, `MATSEQAIJTC`
M*/
