/* The sequential type: products with the tile layout, and the layout's life. */
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/petsctcdevice.h>
#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif

PetscLogEvent MAT_AIJTCBuild, MAT_AIJTCRefresh;

/* ---- the layout */

PetscErrorCode MatAIJTCDestroyLayout(Mat_AIJTC *tc)
{
  PetscFunctionBegin;
  tc->valid = PETSC_FALSE;
#if PetscDefined(HAVE_CUDA)
  if (tc->layout.cuda) PetscCall(AIJTCLayoutDestroy_CUDA(&tc->layout));
#endif
  PetscCall(AIJTCLayoutDestroy_Host(&tc->layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCBuildLayout(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  const PetscInt *i, *j;
  PetscInt        m;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscCall(MatAIJTCDestroyLayout(tc));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s gives no row structure", ((PetscObject)A)->type_name);
  PetscCall(AIJTCLayoutBuild_Host(A->rmap->n, A->cmap->n, i, j, &tc->settings.params, &tc->layout));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
#if PetscDefined(HAVE_CUDA)
  if (c->cuda) {
    AIJTCLayout  host = tc->layout;
    cudaStream_t stream;

    PetscCall(PetscMemzero(&tc->layout, sizeof(tc->layout)));
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscErrorCode ierr = AIJTCLayoutUpload_CUDA(&host, &tc->layout, stream);
    PetscCall(AIJTCLayoutDestroy_Host(&host));
    PetscCall(ierr);
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)AIJTCLayoutBytes(&tc->layout)));
  }
#else
  (void)c;
#endif
  tc->builds++;
  petsctc_counts.builds++;
  PetscCall(PetscLogEventEnd(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* The parent's device values, brought up to date. Only the copy to the device looks at the type name, so the scope is entered for that alone. */
static PetscErrorCode MatAIJTCGetDeviceValues(Mat A, const PetscScalar **a)
{
  const PetscInt *i, *j;
  PetscScalar    *values;
  PetscMemType    mtype;

  PetscFunctionBegin;
  if (A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED) MatAIJTCCallParent(A, NULL, MatSeqAIJGetCSRAndMemType(A, &i, &j, &values, &mtype));
  else PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &values, &mtype));
  PetscCheck(PetscMemTypeDevice(mtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The parent's values are not on the device");
  *a = values;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Copies the matrix' values into the layout's slots, from where the parent keeps them */
static PetscErrorCode MatAIJTCRefreshValues(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  const PetscScalar *a = NULL;

  PetscFunctionBegin;
  if (!tc->layout.nnz) PetscFunctionReturn(PETSC_SUCCESS); /* nothing to copy, and the parent may not even have arrays */
  PetscCall(PetscLogEventBegin(MAT_AIJTCRefresh, A, 0, 0, 0));
  if (c->cuda) {
#if PetscDefined(HAVE_CUDA)
    cudaStream_t stream;

    PetscCall(MatAIJTCGetDeviceValues(A, &a));
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(AIJTCLayoutRefresh_CUDA(&tc->layout, a, stream));
#endif
  } else {
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    PetscCall(AIJTCLayoutRefresh_Host(&tc->layout, a, NULL));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  }
  PetscCall(PetscLogEventEnd(MAT_AIJTCRefresh, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   The layout stands for the matrix while the key holds: the object's id and address and the states of its pattern and values. MatHeaderMerge() gives a matrix the id of the other, and
   MatHeaderReplace() gives the other's contents, container and id another address: so both are needed. Called at every product; must not change the state of the matrix, by which
   KSPSetUp() knows a matrix that changed.
*/
static PetscErrorCode MatAIJTCUpdateLayout(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  const PetscObjectState state   = ((PetscObject)A)->state;
  const PetscObjectId    id      = ((PetscObject)A)->id;
  const PetscBool        pattern = (PetscBool)(tc->valid && tc->address == A && tc->id == id && tc->nonzerostate == A->nonzerostate);

  PetscFunctionBegin;
  if (pattern && tc->state == state) PetscFunctionReturn(PETSC_SUCCESS);
  if (!pattern) PetscCall(MatAIJTCBuildLayout(A, c, tc));
  tc->valid = PETSC_FALSE; /* should the refresh fail */
  PetscCall(MatAIJTCRefreshValues(A, c, tc));
  if (pattern) {
    tc->refreshes++;
    petsctc_counts.refreshes++;
  }
  PetscCheck(state == ((PetscObject)A)->state, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Building the layout changed the state of the matrix");
  tc->valid        = PETSC_TRUE;
  tc->address      = A;
  tc->id           = id;
  tc->nonzerostate = A->nonzerostate;
  tc->state        = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products */

typedef enum {
  AIJTC_WITH_LAYOUT, /* the tile kernels */
  AIJTC_WITH_PARENT, /* the parent's kernels, on the parent's device */
  AIJTC_WITH_HOST    /* the host parent's kernels: AIJCUSPARSE writes the device copy of a host vector, which nobody reads */
} MatAIJTCPath;

static PetscErrorCode MatAIJTCVecsOnDevice(Vec x, Vec y, Vec z, PetscBool *device)
{
  const Vec v[] = {x, y, z};

  PetscFunctionBegin;
  *device = PETSC_TRUE;
  for (Vec w : v) {
    if (w && *device) PetscCall(PetscTCVecOnDevice(w, device));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCChoosePath(Mat A, const MatAIJTCClass *c, Vec x, Vec y, Vec z, MatAIJTCPath *path)
{
  PetscBool device, bound;

  PetscFunctionBegin;
  *path = A->structure_only ? AIJTC_WITH_PARENT : AIJTC_WITH_LAYOUT;
  if (c->cuda) {
    PetscCall(MatAIJTCVecsOnDevice(x, y, z, &device));
    PetscCall(MatBoundToCPU(A, &bound));
    if (!device || bound) *path = AIJTC_WITH_HOST;
#if PetscDefined(HAVE_CUDA)
    else if (*path == AIJTC_WITH_LAYOUT) {
      static PetscBool asked = PETSC_FALSE, mma;

      if (!asked) {
        PetscCall(PetscTCDeviceHasMMA_CUDA(&mma));
        asked = PETSC_TRUE;
        if (!mma) PetscCall(PetscInfo(A, "The device has no FP64 Tensor Cores (compute capability 8.0 or newer): products by %s\n", c->parenttype));
      }
      if (!mma) *path = AIJTC_WITH_PARENT;
    }
#endif
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The table of the type whose operations are right for these vectors, its device values up to date */
static PetscErrorCode MatAIJTCParentOps(Mat A, const MatAIJTCClass *c, MatAIJTCPath path, const struct _MatOps **ops)
{
  MatAIJTCClass *host;

  PetscFunctionBegin;
  *ops = &c->parent;
  if (path == AIJTC_WITH_HOST) {
    PetscCall(MatAIJTCGetClass(AIJTC_SEQ_HOST, &host));
    *ops = &host->parent;
  }
#if PetscDefined(HAVE_CUDA)
  else if (c->cuda && A->rmap->n && !A->structure_only) {
    const PetscScalar *a;

    PetscCall(MatAIJTCGetDeviceValues(A, &a));
  }
#else
  (void)A;
#endif
  petsctc_counts.mult_parent++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode MatAIJTCLayoutMult_Device(Mat_AIJTC *tc, Vec x, Vec y, Vec z)
{
  const PetscBool    tensor = (PetscBool)(tc->settings.mma == MAT_AIJTC_MMA_TENSOR);
  const PetscScalar *xa, *ya = NULL;
  PetscScalar       *za;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(VecCUDAGetArrayRead(x, &xa));
  if (y && y != z) PetscCall(VecCUDAGetArrayRead(y, &ya));
  if (y == z) {
    PetscCall(VecCUDAGetArray(z, &za));
    ya = za;
  } else PetscCall(VecCUDAGetArrayWrite(z, &za));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCLayoutMult_CUDA(&tc->layout, tensor, xa, ya, za, stream));
  PetscCall(PetscLogGpuTimeEnd());
  if (y == z) PetscCall(VecCUDARestoreArray(z, &za));
  else PetscCall(VecCUDARestoreArrayWrite(z, &za));
  if (y && y != z) PetscCall(VecCUDARestoreArrayRead(y, &ya));
  PetscCall(VecCUDARestoreArrayRead(x, &xa));
  PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)tc->layout.nnz - (y ? 0 : tc->layout.m - tc->layout.nempty)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatAIJTCLayoutMult_Host(Mat_AIJTC *tc, Vec x, Vec y, Vec z)
{
  const PetscBool    tensor = (PetscBool)(tc->settings.mma == MAT_AIJTC_MMA_TENSOR);
  const PetscScalar *xa, *ya = NULL;
  PetscScalar       *za;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(x, &xa));
  if (y && y != z) PetscCall(VecGetArrayRead(y, &ya));
  if (y == z) {
    PetscCall(VecGetArray(z, &za));
    ya = za;
  } else PetscCall(VecGetArrayWrite(z, &za));
  PetscCall(AIJTCLayoutMult_Host(&tc->layout, tensor, xa, ya, za, NULL));
  if (y == z) PetscCall(VecRestoreArray(z, &za));
  else PetscCall(VecRestoreArrayWrite(z, &za));
  if (y && y != z) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)tc->layout.nnz - (y ? 0 : tc->layout.m - tc->layout.nempty)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product by the parent type: z <- A x, or z <- y + A x if y is given */
static PetscErrorCode MatAIJTCParentMult(Mat A, const MatAIJTCClass *c, MatAIJTCPath path, Vec x, Vec y, Vec z)
{
  const struct _MatOps *ops = NULL;

  PetscFunctionBegin;
  PetscCall(MatAIJTCParentOps(A, c, path, &ops));
  if (y) PetscCall((*ops->multadd)(A, x, y, z));
  else PetscCall((*ops->mult)(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ||x||_2 of the local part: a block of an MPI matrix is multiplied with the parallel vector itself */
static PetscErrorCode VecNormLocalPart(Vec x, PetscReal *norm)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBegin;
  *norm = 0.0;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  for (PetscInt k = 0; k < n; k++) *norm += a[k] * a[k];
  *norm = PetscSqrtReal(*norm);
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   -mat_aijtc_check: |z - zref| <= rtol (||A||_F ||x||_2 + |y|) in every entry, Inf and NaN in the same places. A sum of n products is off by at most n eps |a|.|x| whatever
   the order of its terms, and |a|.|x| <= ||A||_F ||x||_2, so the default rtol of 1e-12 allows rows of about 5000 nonzeros.
*/
typedef struct {
  PetscInt  row; /* that differs, -1 if none does */
  PetscReal value, parent, bound;
} MatAIJTCDifference;

static PetscErrorCode MatAIJTCCompare(Mat A, Mat_AIJTC *tc, Vec x, Vec y, Vec z, Vec ref, MatAIJTCDifference *d)
{
  const PetscScalar *za, *ra, *ya = NULL;
  PetscReal          anorm, xnorm;
  PetscInt           m;

  PetscFunctionBegin;
  d->row = -1;
  PetscCall(MatNorm(A, NORM_FROBENIUS, &anorm));
  PetscCall(VecNormLocalPart(x, &xnorm));
  PetscCall(VecGetLocalSize(z, &m));
  PetscCall(VecGetArrayRead(z, &za));
  PetscCall(VecGetArrayRead(ref, &ra));
  if (y) PetscCall(VecGetArrayRead(y, &ya));
  for (PetscInt k = 0; k < m && d->row < 0; k++) {
    const PetscReal bound = tc->settings.check_rtol * (anorm * xnorm + (ya ? PetscAbsScalar(ya[k]) : 0.0));
    const bool      same  = PetscIsInfOrNanScalar(ra[k]) ? PetscIsInfOrNanScalar(za[k]) : PetscAbsScalar(za[k] - ra[k]) <= bound || PetscIsInfOrNanReal(bound);

    if (!same) *d = {k, PetscRealPart(za[k]), PetscRealPart(ra[k]), bound};
  }
  if (y) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(ref, &ra));
  PetscCall(VecRestoreArrayRead(z, &za));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCMultAndCheck(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc, Vec x, Vec y, Vec z, PetscErrorCode (*mult)(Mat_AIJTC *, Vec, Vec, Vec))
{
  Vec                yold = y, ref;
  MatAIJTCDifference d;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(z, &ref));
  if (y && y == z) {
    PetscCall(VecDuplicate(y, &yold));
    PetscCall(VecCopy(y, yold));
  }
  PetscCall((*mult)(tc, x, y, z));
  PetscCall(MatAIJTCParentMult(A, c, AIJTC_WITH_PARENT, x, yold, ref));
  PetscCall(MatAIJTCCompare(A, tc, x, yold, z, ref, &d));
  if (yold != y) PetscCall(VecDestroy(&yold));
  PetscCall(VecDestroy(&ref));
  PetscCheck(d.row < 0, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "Product of the tile layout differs in row %" PetscInt_FMT ": %.17g, by the parent type %.17g, allowed difference %g. Run without this type (-mat_type aij) and report the matrix, or loosen -mat_aijtc_check_rtol %g", d.row,
             (double)d.value, (double)d.parent, (double)d.bound, (double)tc->settings.check_rtol);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z <- A x (y NULL) or z <- y + A x */
static PetscErrorCode MatMultAny_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  const MatAIJTCClass *c                             = MatAIJTCClassOf(A);
  PetscErrorCode (*mult)(Mat_AIJTC *, Vec, Vec, Vec) = MatAIJTCLayoutMult_Host;
  Mat_AIJTC   *tc;
  MatAIJTCPath path;

  PetscFunctionBegin;
  PetscCall(MatAIJTCChoosePath(A, c, x, y, z, &path));
  if (path != AIJTC_WITH_LAYOUT) {
    PetscCall(MatAIJTCParentMult(A, c, path, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if PetscDefined(HAVE_CUDA)
  if (c->cuda) mult = MatAIJTCLayoutMult_Device;
#endif
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCUpdateLayout(A, c, tc));
  petsctc_counts.mult++;
  if (tc->settings.check) PetscCall(MatAIJTCMultAndCheck(A, c, tc, x, y, z, mult));
  else PetscCall((*mult)(tc, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SeqAIJTC(Mat A, Vec x, Vec z)
{
  return MatMultAny_SeqAIJTC(A, x, NULL, z);
}

static PetscErrorCode MatMultAdd_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  return MatMultAny_SeqAIJTC(A, x, y, z);
}

/* The transposed products are the parent's, or the host parent's for host vectors */
static PetscErrorCode MatAIJTCTransposeOps(Mat A, Vec x, Vec y, Vec z, MatAIJTCPath *path, const struct _MatOps **ops)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall(MatAIJTCChoosePath(A, c, x, y, z, path));
  PetscCall(MatAIJTCParentOps(A, c, *path, ops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_SeqAIJTC(Mat A, Vec x, Vec z)
{
  const struct _MatOps *ops = NULL;
  MatAIJTCPath          path;

  PetscFunctionBegin;
  PetscCall(MatAIJTCTransposeOps(A, x, NULL, z, &path, &ops));
  PetscCall((*ops->multtranspose)(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE adds to what z held before unless z is y: so y goes into z first */
static PetscErrorCode MatMultTransposeAdd_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  const struct _MatOps *ops = NULL;
  MatAIJTCPath          path;

  PetscFunctionBegin;
  PetscCall(MatAIJTCTransposeOps(A, x, y, z, &path, &ops));
  if (y != z && path != AIJTC_WITH_HOST && MatAIJTCClassOf(A)->cuda) {
    PetscCall(VecCopy(y, z));
    y = z;
  }
  PetscCall((*ops->multtransposeadd)(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCSetOps_Seq(MatAIJTCClass *c)
{
  struct _MatOps *m = &c->mine;

  PetscFunctionBegin;
  m->mult             = MatMult_SeqAIJTC;
  m->multadd          = MatMultAdd_SeqAIJTC;
  m->multtranspose    = MatMultTranspose_SeqAIJTC;
  m->multtransposeadd = MatMultTransposeAdd_SeqAIJTC;
  if (c->parent.multhermitiantranspose) m->multhermitiantranspose = MatMultTranspose_SeqAIJTC; /* real scalars */
  if (c->parent.multhermitiantransposeadd) m->multhermitiantransposeadd = MatMultTransposeAdd_SeqAIJTC;
  PetscCall(MatAIJTCSetOps_SeqOther(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}
