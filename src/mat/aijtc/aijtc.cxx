/* What a user sees of MATAIJTC: settings, options, information, view, and the manual page. */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/

const char *const MatAIJTCMMATypes[] = {"tensor", "core", "MatAIJTCMMAType", "MAT_AIJTC_MMA_", NULL};

/* Takes over new settings; the layout is built anew, at the next product, if it depends on what changed */
static PetscErrorCode MatAIJTCSetSettings(Mat A, const MatAIJTCSettings *settings)
{
  MatAIJTCClass     *c = MatAIJTCClassOf(A);
  const AIJTCParams *p = &settings->params;
  Mat_AIJTC         *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetData(A, &tc));
  if (tc->settings.params.long_min != p->long_min || tc->settings.params.short_max != p->short_max || tc->settings.params.window != p->window) tc->valid = PETSC_FALSE;
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
static PetscErrorCode MatAIJTCCheckType(Mat A, Mat_AIJTC **tc)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(MatAIJTCClassOf(A), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix is of type %s, not %s. Set its type first: MatSetType(A, MATAIJTC), or convert it: MatConvert(A, MATAIJTC, MAT_INPLACE_MATRIX, &A)",
             ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(not set)", MATAIJTC);
  PetscCall(MatAIJTCGetData(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCCheckParams(Mat A, const AIJTCParams *p)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);

  PetscFunctionBegin;
  PetscCheck(p->short_max >= 0 && p->short_max <= AIJTC_TILE_COLS, comm, PETSC_ERR_ARG_OUTOFRANGE, "Short rows have at most %" PetscInt_FMT " nonzeros, but a tile row holds %d: use a value from 0 to %d (-mat_aijtc_short_row)", p->short_max,
             AIJTC_TILE_COLS, AIJTC_TILE_COLS);
  PetscCheck(p->long_min >= p->short_max, comm, PETSC_ERR_ARG_OUTOFRANGE, "Long rows have more than %" PetscInt_FMT " nonzeros, short ones at most %" PetscInt_FMT ": the first must not be the smaller (-mat_aijtc_long_row)", p->long_min,
             p->short_max);
  PetscCheck(p->window >= 0, comm, PETSC_ERR_ARG_OUTOFRANGE, "Sorting window of %" PetscInt_FMT " rows: use a positive number, or 0 to sort all rows together (-mat_aijtc_sort_window)", p->window);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetMMA - Selects the arithmetic units that multiply the tiles of a `MATAIJTC` matrix

  Logically Collective

  Input Parameters:
+ A   - the matrix, of type `MATAIJTC`
- mma - `MAT_AIJTC_MMA_TENSOR` or `MAT_AIJTC_MMA_CORE`

  Options Database Key:
. -mat_aijtc_mma (tensor|core) - the units

  Level: intermediate

  Note:
  Both multiply the same tiles of the same layout; the difference between them is the honest share of the Tensor Cores. On the host the choice has no effect.

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
  MatAIJTCGetMMA - Gets the arithmetic units that multiply the tiles of a `MATAIJTC` matrix

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
  MatAIJTCSetRowClasses - Sets the bounds between long, medium and short rows of the tile layout

  Logically Collective

  Input Parameters:
+ A           - the matrix, of type `MATAIJTC`
. long_row    - a row with more nonzeros than this is long: it is cut into pieces that different warps multiply. Default 256
. short_row   - a row with at most this many nonzeros, from 0 to 4, is short: several share a row of a tile. Default 4
- sort_window - rows are sorted by length in windows of so many consecutive rows; 0 sorts all rows together. Default 8192

  Options Database Keys:
+ -mat_aijtc_long_row n    - see `long_row`
. -mat_aijtc_short_row n   - see `short_row`
- -mat_aijtc_sort_window n - see `sort_window`

  Level: advanced

  Note:
  The layout is built again at the next product. A small window keeps rows that share entries of x near each other, a large one leaves fewer padded tiles.

.seealso: `MATAIJTC`, `MatAIJTCGetRowClasses()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCSetRowClasses(Mat A, PetscInt long_row, PetscInt short_row, PetscInt sort_window)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings        = tc->settings;
  settings.params = {long_row, short_row, sort_window};
  PetscCall(MatAIJTCCheckParams(A, &settings.params));
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetRowClasses - Gets the bounds between long, medium and short rows of the tile layout

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameters:
+ long_row    - a row with more nonzeros is long (`NULL` if not wanted)
. short_row   - a row with at most so many nonzeros is short (`NULL` if not wanted)
- sort_window - rows sorted together (`NULL` if not wanted)

  Level: advanced

.seealso: `MATAIJTC`, `MatAIJTCSetRowClasses()`
@*/
PetscErrorCode MatAIJTCGetRowClasses(Mat A, PetscInt *long_row, PetscInt *short_row, PetscInt *sort_window)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  if (long_row) *long_row = tc->settings.params.long_min;
  if (short_row) *short_row = tc->settings.params.short_max;
  if (sort_window) *sort_window = tc->settings.params.window;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetCheck - Compares every product of a `MATAIJTC` matrix with the same product by its parent type, and errors on a difference

  Logically Collective

  Input Parameters:
+ A    - the matrix, of type `MATAIJTC`
. flg  - compare or not
- rtol - allowed difference in an entry, relative to ||A||_F ||x||_2 (plus the entry that is added to); `PETSC_DEFAULT` for 1e-12

  Options Database Keys:
+ -mat_aijtc_check (true|false) - compare every product
- -mat_aijtc_check_rtol rtol    - allowed difference

  Level: intermediate

  Note:
  For finding out whether a strange result comes from this type. Every product then costs two and copies its vectors to the host.

.seealso: `MATAIJTC`
@*/
PetscErrorCode MatAIJTCSetCheck(Mat A, PetscBool flg, PetscReal rtol)
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  if (rtol == (PetscReal)PETSC_DEFAULT) rtol = 1e-12;
  PetscCheck(rtol >= 0.0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "Allowed difference %g must not be negative", (double)rtol);
  settings            = tc->settings;
  settings.check      = flg;
  settings.check_rtol = rtol;
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void MatAIJTCAddInfo(const Mat_AIJTC *tc, MatAIJTCInfo *info)
{
  const AIJTCLayout *l = &tc->layout;

  info->builds += tc->builds;
  info->refreshes += tc->refreshes;
  if (!tc->valid) return;
  info->rows_long += l->nlong;
  info->rows_medium += l->nmedium;
  info->rows_short += l->nshort[0] + l->nshort[1] + l->nshort[2];
  info->rows_empty += l->nempty;
  info->slots += AIJTC_TILE * l->ntiles;
  info->padding += AIJTC_TILE * l->ntiles - l->nnz;
  info->bytes += AIJTCLayoutBytes(l);
  if (l->cuda) info->cuda = PETSC_TRUE;
}

/*@
  MatAIJTCGetInfo - Tells what the tile layout of a `MATAIJTC` matrix holds and how often it was built

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. info - rows of each class, slots and padding, bytes, builds and refreshes, of this process' part; both blocks added for the MPI type (a row counts once in each)

  Level: advanced

  Note:
  The layout is built at the first product; before that, and when pattern or values have changed since the last product, rows and slots may be zero or stale by that change.

.seealso: `MATAIJTC`, `MatAIJTCInfo`
@*/
PetscErrorCode MatAIJTCGetInfo(Mat A, MatAIJTCInfo *info)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(info, 2);
  PetscCall(PetscMemzero(info, sizeof(*info)));
  if (MatAIJTCClassOf(A)->mpi) {
    Mat b[2];

    PetscCall(MatAIJTCGetBlocks(A, b));
    for (Mat B : b) {
      if (!MatAIJTCClassOf(B)) continue;
      PetscCall(MatAIJTCGetData(B, &tc));
      MatAIJTCAddInfo(tc, info);
    }
  } else MatAIJTCAddInfo(tc, info);
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
  PetscCall(PetscOptionsEnum("-mat_aijtc_mma", "Arithmetic units that multiply the tiles", "MatAIJTCSetMMA", MatAIJTCMMATypes, (PetscEnum)s.mma, (PetscEnum *)&s.mma, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_long_row", "Rows with more nonzeros are long", "MatAIJTCSetRowClasses", s.params.long_min, &s.params.long_min, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_short_row", "Rows with at most so many nonzeros are short", "MatAIJTCSetRowClasses", s.params.short_max, &s.params.short_max, NULL));
  PetscCall(PetscOptionsInt("-mat_aijtc_sort_window", "Rows sorted by length together, 0 for all", "MatAIJTCSetRowClasses", s.params.window, &s.params.window, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtc_check", "Compare every product with the parent type's", "MatAIJTCSetCheck", s.check, &s.check, NULL));
  PetscCall(PetscOptionsReal("-mat_aijtc_check_rtol", "Allowed difference, relative to ||A||_F ||x||_2", "MatAIJTCSetCheck", s.check_rtol, &s.check_rtol, NULL));
  PetscOptionsHeadEnd();
  PetscCall(MatAIJTCCheckParams(A, &s.params));
  PetscCall(MatAIJTCSetSettings(A, &s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only for ASCII_INFO_DETAIL, so that every other view of a matrix is the parent's to the letter */
PetscErrorCode MatView_AIJTC(Mat A, PetscViewer viewer)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscViewerFormat    format;
  PetscBool            ascii;
  Mat_AIJTC           *tc;
  MatAIJTCInfo         info;
  PetscInt64           n[8];

  PetscFunctionBegin;
  PetscCall((*c->parent.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (!ascii || format != PETSC_VIEWER_ASCII_INFO_DETAIL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCGetInfo(A, &info));
  n[0] = info.rows_long, n[1] = info.rows_medium, n[2] = info.rows_short, n[3] = info.rows_empty;
  n[4] = info.slots, n[5] = info.padding, n[6] = info.bytes, n[7] = info.builds;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, n, 8, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  tile layout on the %s, products by %s\n", c->cuda ? "GPU" : "host", c->cuda ? MatAIJTCMMATypes[tc->settings.mma] : "the host twin"));
  if (!n[7]) PetscCall(PetscViewerASCIIPrintf(viewer, "    not built yet: no product has asked for it\n"));
  else {
    PetscCall(PetscViewerASCIIPrintf(viewer, "    rows: long=%" PetscInt64_FMT ", medium=%" PetscInt64_FMT ", short=%" PetscInt64_FMT ", empty=%" PetscInt64_FMT "%s\n", n[0], n[1], n[2], n[3], c->mpi ? " (of both blocks)" : ""));
    PetscCall(PetscViewerASCIIPrintf(viewer, "    slots=%" PetscInt64_FMT ", of them padding=%" PetscInt64_FMT ", bytes=%" PetscInt64_FMT "\n", n[4], n[5], n[6]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATAIJTC - "aijtc" - sparse matrices whose `MatMult()` runs on a tile layout for FP64 Tensor Cores: rows sorted by length into long, medium and short ones, packed into
   tiles of 8 rows by 4 nonzeros {cite} Lu, Yuan, Yang, Liu 2026; DASP, Lu and Liu 2023.

   This type is `MATSEQAIJTC` for one process and `MATMPIAIJTC` for several.

   Options Database Keys:
+  -mat_type aijtc                        - sets the type during `MatSetFromOptions()`
.  -mat_aijtc_backend (auto|cuda|host)    - where to compute; auto (the default) takes the GPU when PETSc has CUDA and a device is usable on every process of the matrix
.  -mat_aijtc_mma (tensor|core)           - Tensor Cores (the default) or CUDA cores, on the same tiles
.  -mat_aijtc_long_row n                  - rows with more nonzeros are long (256)
.  -mat_aijtc_short_row n                 - rows with at most so many nonzeros are short (4)
.  -mat_aijtc_sort_window n               - rows sorted by length together (8192; 0 for all)
.  -mat_aijtc_check (true|false)          - compares every product with the parent type's
-  -mat_aijtc_check_rtol rtol             - the difference it allows (1e-12)

   Level: beginner

   Notes:
   The type inherits from `MATAIJCUSPARSE`, or from `MATAIJ` where no GPU is usable; every operation of theirs works, and where AIJCUSPARSE is known to be wrong (host vectors,
   diagonal of a matrix with mostly empty rows, values changed while bound to the CPU or retrieved, first triple product after values set on the device) this type is right.

   The layout is built at the first product and again only when the nonzero pattern changed; new values in the same pattern are gathered into it. It is kept beside PETSc's
   own arrays: `MatView()` with `PETSC_VIEWER_ASCII_INFO_DETAIL` tells its size.

   Values written through the pointers of `MatSeqAIJGetCSRAndMemType()` are seen only after `PetscObjectStateIncrease()`, as that function does not raise the state. All products of a
   matrix are to be made in one device context.

   An assembled `MATAIJCUSPARSE` must be converted, not re-typed: `MatConvert(A, MATAIJTC, MAT_INPLACE_MATRIX, &A)`; `MatSetType()` on it discards the values, as between any two
   types of which neither name begins with the other's.

.seealso: [](ch_matrices), `MATAIJ`, `MATAIJCUSPARSE`, `MatAIJTCSetMMA()`, `MatAIJTCSetRowClasses()`, `MatAIJTCSetCheck()`, `MatAIJTCGetInfo()`, `KSPTCCG`, `KSPTCBCGS`
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
