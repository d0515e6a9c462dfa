/* What a user sets: settings, options, and the manual page. Tuning values are in tuning.cxx, what the layout then tells in info.cxx. */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/

const char *const MatAIJTCMMATypes[]      = {"tensor", "core", "MatAIJTCMMAType", "MAT_AIJTC_MMA_", NULL};
const char *const MatAIJTCCompressTypes[] = {"auto", "off", "pattern", "value", "MatAIJTCCompressType", "MAT_AIJTC_COMPRESS_", NULL};

PetscErrorCode MatAIJTCSettingsDefault(MatAIJTCSettings *s)
{
  PetscFunctionBegin;
  s->mma        = MAT_AIJTC_MMA_TENSOR;
  s->compress   = MAT_AIJTC_COMPRESS_AUTO;
  s->keep_csr   = PETSC_TRUE;
  s->layout     = PETSC_FALSE;
  s->check      = PETSC_FALSE;
  s->check_rtol = AIJTC_CHECK_RTOL;
  PetscCall(MatAIJTCSettingsParse(PETSC_COMM_SELF, "", s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool MatAIJTCSameLayout(const MatAIJTCSettings *a, const MatAIJTCSettings *b)
{
  return a->form == b->form && a->compress == b->compress && a->long_row == b->long_row && a->short_row == b->short_row && a->window == b->window && a->rows_per_lane == b->rows_per_lane && a->gather == b->gather;
}

/* Takes over new settings if they are right; the layout is built anew, at the next product, if it depends on what changed */
PetscErrorCode MatAIJTCSetSettings(Mat A, const MatAIJTCSettings *settings)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC     *tc;

  PetscFunctionBegin;
  PetscCheck(settings->check_rtol >= 0.0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE, "Allowed difference %g: use 0 or a positive number (-mat_aijtc_check_rtol)", (double)settings->check_rtol);
  PetscCall(MatAIJTCGetData(A, &tc));
  if (!MatAIJTCSameLayout(&tc->settings, settings)) {
    tc->valid       = PETSC_FALSE;
    tc->host        = {};
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
  char                 params[AIJTC_PARAMS_LENGTH];
  PetscBool            set;

  PetscFunctionBegin;
  if (c->parent.setfromoptions) PetscCall((*c->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(MatAIJTCGetData(A, &tc));
  s = tc->settings;
  PetscOptionsHeadBegin(PetscOptionsObject, "AIJTC options");
  PetscCall(PetscOptionsEnum("-mat_aijtc_backend", "Where to compute, read when the type is set", "MATAIJTC", MatAIJTCBackendTypes, (PetscEnum)backend, (PetscEnum *)&backend, &set));
  PetscCheck(!set || backend == MAT_AIJTC_BACKEND_AUTO || (backend == MAT_AIJTC_BACKEND_CUDA) == (c->cuda == PETSC_TRUE), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "-mat_aijtc_backend %s for a matrix that already computes on the %s: set the options prefix before the type", MatAIJTCBackendTypes[backend], c->cuda ? "GPU" : "host");
  if (set) s.layout = (PetscBool)(backend == MAT_AIJTC_BACKEND_HOST);
  PetscCall(PetscOptionsEnum("-mat_aijtc_mma", "Arithmetic units that multiply tiles and long rows", "MatAIJTCSetMMA", MatAIJTCMMATypes, (PetscEnum)s.mma, (PetscEnum *)&s.mma, NULL));
  PetscCall(PetscOptionsEnum("-mat_aijtc_compress", "What is compressed without loss", "MatAIJTCSetCompress", MatAIJTCCompressTypes, (PetscEnum)s.compress, (PetscEnum *)&s.compress, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtc_keep_csr", "Keep the parent's device arrays beside the layout", "MatAIJTCSetKeepCSR", s.keep_csr, &s.keep_csr, NULL));
  PetscCall(PetscOptionsBool("-mat_aijtc_check", "Compare every product with a vector with the parent type's", "MatAIJTCSetCheck", s.check, &s.check, NULL));
  PetscCall(PetscOptionsReal("-mat_aijtc_check_rtol", "Allowed difference, relative to ||A||_F ||x||_2", "MatAIJTCSetCheck", s.check_rtol, &s.check_rtol, NULL));
  PetscCall(MatAIJTCSettingsFormat(&s, params));
  PetscCall(PetscOptionsString("-mat_aijtc_params", "Tuning values of the layout, KEY=VALUE,KEY=VALUE", "MatAIJTCSetParams", params, params, sizeof(params), &set));
  if (set) PetscCall(MatAIJTCSettingsParse(PetscObjectComm((PetscObject)A), params, &s));
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
.  -mat_aijtc_backend (auto|cuda|host)          - where to compute; auto (the default) takes the GPU when PETSc has CUDA and a device is usable on every process of the matrix,
                                                  else the host, there with the parent's products where the layout's are not known to be faster; host has the layout multiply on the host
.  -mat_aijtc_compress (auto|off|pattern|value) - what is compressed, without loss: pattern and values (the default), nothing, or one of them
.  -mat_aijtc_mma (tensor|core)                 - Tensor Cores (the default) or CUDA cores for tiles and long rows
.  -mat_aijtc_keep_csr (true|false)             - keep the parent's device arrays beside the layout (the default)
.  -mat_aijtc_check (true|false)                - compares every product with a vector with the parent type's
.  -mat_aijtc_check_rtol rtol                   - the difference it allows (1e-12; in single precision 1e-4)
-  -mat_aijtc_params KEY=VALUE,KEY=VALUE        - for developers: tuning values of the layout, see `MatAIJTCSetParams()`

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

.seealso: [](ch_matrices), `MATAIJ`, `MATAIJCUSPARSE`, `MatAIJTCSetCompress()`, `MatAIJTCSetMMA()`, `MatAIJTCSetKeepCSR()`, `MatAIJTCSetCheck()`, `MatAIJTCGetInfo()`, `MatAIJTCSetParams()`, `MatAIJTCMultDot()`, `MatAIJTCBackendType`, `PetscTCDeviceUsable()`, `KSPTCCG`, `KSPTCBCGS`
M*/

/*MC
   MATSEQAIJTC - "seqaijtc" - `MATAIJTC` on one process

   Level: beginner

.seealso: `MATAIJTC`, `MATMPIAIJTC`
M*/

/*MC
   MATMPIAIJTC - "mpiaijtc" - `MATAIJTC` distributed over several processes, by its two blocks of type `MATSEQAIJTC`

   Options Database Key:
.  -petsctc_comm (auto|peer|mpi) - how GPUs of several processes tell each other numbers: by stores into each other's memory, on one node with a GPU for each process, or by MPI; `auto` (the default) takes the
                                   first where a first exchange arrives. Asked once for a communicator

   Level: beginner

   Notes:
   On GPUs `MatMult()` sends the elements of the vector that others need before it multiplies with this process's columns, and then adds what has come. A product that waits 60 seconds for another process is a
   `PETSC_ERR_LIB`: all processes of the matrix must multiply, in the same order. Results have the same bits whichever way numbers go.

.seealso: `MATAIJTC`, `MATSEQAIJTC`
M*/
