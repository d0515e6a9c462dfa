/*
   Transposed products of the sequential type: on the device by a layout of the transpose, made at the first of them; else the parent's.

   AIJCUSPARSE multiplies by the transpose of its CSR arrays with atomic additions, in another order every time; the host parent scatters, which costs it no more than its product. So only the
   device has a layout of the transpose. It lives in a container of its own with the key of the matrix' own layout, and a permutation by which new values reach it.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

static constexpr char TRANSPOSED_CONTAINER[] = "__AIJTC_transposed";

PetscErrorCode MatAIJTCDestroyTransposed(Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectCompose((PetscObject)A, TRANSPOSED_CONTAINER, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* ---- the layout of the transpose */

typedef struct {
  Mat_AIJTC tc;   /* settings, key and layout; `held` is not used */
  PetscInt *perm; /* the entry of the matrix that each entry of the transpose is */
} MatAIJTCTransposed;

static PetscErrorCode MatAIJTCTransposedDestroy(PetscCtxRt ctx)
{
  MatAIJTCTransposed *t = *(MatAIJTCTransposed **)ctx;

  PetscFunctionBegin;
  PetscCall(AIJTCTransposedDestroy_CUDA(&t->tc.layout, &t->perm));
  PetscCall(PetscFree(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCTransposedParams(const void *ctx, PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCResolveParams((const Mat_AIJTC *)ctx, m, n, nnz, traits, params));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In parent scope */
static PetscErrorCode MatAIJTCTransposedBuild_Device(Mat A, MatAIJTCTransposed *t)
{
  MatAIJTCDeviceCSR csr;
  cudaStream_t      stream;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(PetscLogGpuTimeBegin());
  ierr = AIJTCTransposedBuild_CUDA(A->rmap->n, A->cmap->n, csr.nnz, csr.i, csr.j, csr.a, MatAIJTCTransposedParams, &t->tc, &t->tc.layout, &t->perm, stream);
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCTransposedBuild(Mat A, MatAIJTCTransposed *t)
{
  PetscCount nnz;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscCall(AIJTCTransposedDestroy_CUDA(&t->tc.layout, &t->perm));
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  if (nnz) MatAIJTCCallParent(A, NULL, MatAIJTCTransposedBuild_Device(A, t));
  else { /* sizes alone, as for the matrix' own */ t->tc.layout.m = t->tc.layout.nempty = A->cmap->n;
    t->tc.layout.n                                                                      = A->rmap->n;
  }
  t->tc.builds++;
  PetscTCCountBuild(AIJTCLayoutBytes(&t->tc.layout), PETSC_TRUE);
  PetscCall(PetscLogEventEnd(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscCall(PetscInfo(A, "Layout of the transpose: %" PetscCount_FMT " bytes, and %" PetscCount_FMT " for the permutation of its values\n", AIJTCLayoutBytes(&t->tc.layout), nnz * (PetscCount)sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCTransposedRefresh(Mat A, MatAIJTCTransposed *t, PetscBool *fits)
{
  const PetscScalar *a;
  cudaStream_t       stream;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  if (!t->tc.layout.nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MAT_AIJTCRefresh, A, 0, 0, 0));
  PetscCall(MatAIJTCGetDeviceValues(A, &a));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCTransposedRefresh_CUDA(&t->tc.layout, t->perm, a, fits, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogEventEnd(MAT_AIJTCRefresh, A, 0, 0, 0));
  if (*fits) {
    t->tc.refreshes++;
    petsctc_counts.refreshes++;
  } else t->tc.values_vary = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The key's rules are those of MatAIJTCUpdateLayout(). Other settings ask for another layout, too */
static PetscErrorCode MatAIJTCGetTransposed(Mat A, Mat_AIJTC **transposed)
{
  const PetscObjectState state = ((PetscObject)A)->state;
  MatAIJTCTransposed    *t     = NULL;
  Mat_AIJTC             *own, *tc;
  PetscBool              same, pattern, valid, fits = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetData(A, &own));
  PetscCall(PetscObjectContainerQuery((PetscObject)A, TRANSPOSED_CONTAINER, &t));
  if (!t) {
    PetscCall(PetscNew(&t));
    t->tc.settings = own->settings;
    PetscCall(PetscObjectContainerCompose((PetscObject)A, TRANSPOSED_CONTAINER, t, MatAIJTCTransposedDestroy));
  }
  *transposed = tc = &t->tc;
  PetscCall(PetscMemcmp(&tc->settings, &own->settings, sizeof(tc->settings), &same));
  PetscCall(MatAIJTCSamePattern(A, &tc->key, &pattern));
  valid = (PetscBool)(tc->valid && same);
  if (valid && pattern && tc->key.state == state) PetscFunctionReturn(PETSC_SUCCESS);
  tc->valid    = PETSC_FALSE; /* should anything fail below */
  tc->settings = own->settings;
  if (!pattern) tc->values_vary = PETSC_FALSE;
  if (valid && pattern) PetscCall(MatAIJTCTransposedRefresh(A, t, &fits));
  if (!fits) PetscCall(MatAIJTCTransposedBuild(A, t));
  PetscCheck(state == ((PetscObject)A)->state, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Building the layout of the transpose changed the state of the matrix");
  PetscCall(MatAIJTCSetKey(A, &tc->key));
  tc->valid = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix whose user promised that it stays symmetric is its own transpose. MAT_SYMMETRIC alone may be of values since replaced */
PetscErrorCode MatAIJTCGetTransposeOrSelf(Mat A, const MatAIJTCClass *c, Mat_AIJTC **tc)
{
  PetscFunctionBegin;
  if (A->symmetric == PETSC_BOOL3_TRUE && A->symmetry_eternal) {
    PetscCall(MatAIJTCGetData(A, tc));
    PetscCall(MatAIJTCUpdateLayout(A, c, *tc));
  } else PetscCall(MatAIJTCGetTransposed(A, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* ---- products */

/* By the parent type: z <- A^T x, or z <- y + A^T x if y is given. AIJCUSPARSE adds to what z held before unless z is y: so y goes into z first */
static PetscErrorCode MatAIJTCParentMultTranspose(Mat A, const MatAIJTCClass *c, MatAIJTCPath path, Vec x, Vec y, Vec z)
{
  const struct _MatOps *ops = NULL;

  PetscFunctionBegin;
  PetscCall(MatAIJTCParentOps(A, c, path, &ops));
  if (y && y != z && path != AIJTC_WITH_HOST && c->cuda) {
    PetscCall(VecCopy(y, z));
    y = z;
  }
  if (y) PetscCall((*ops->multtransposeadd)(A, x, y, z));
  else PetscCall((*ops->multtranspose)(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAny_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  const MatAIJTCClass *c    = MatAIJTCClassOf(A);
  MatAIJTCPath         path = AIJTC_WITH_PARENT;

  PetscFunctionBegin;
  PetscCall(MatAIJTCChoosePath(A, c, x, y, z, &path));
#if PETSCTC_HAVE_CUDA
  if (c->cuda && path == AIJTC_WITH_LAYOUT) {
    Mat_AIJTC *tc;

    PetscCall(MatAIJTCGetTransposeOrSelf(A, c, &tc));
    petsctc_counts.mult++;
    if (tc->settings.check) PetscCall(MatAIJTCMultAndCheck(A, c, tc, x, y, z, MatAIJTCLayoutMult_Device, MatAIJTCParentMultTranspose));
    else PetscCall(MatAIJTCLayoutMult_Device(tc, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatAIJTCParentMultTranspose(A, c, path, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_SeqAIJTC(Mat A, Vec x, Vec z)
{
  return MatMultTransposeAny_SeqAIJTC(A, x, NULL, z);
}

static PetscErrorCode MatMultTransposeAdd_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  return MatMultTransposeAny_SeqAIJTC(A, x, y, z);
}

PetscErrorCode MatAIJTCSetOps_SeqTranspose(MatAIJTCClass *c)
{
  struct _MatOps *m = &c->mine;

  PetscFunctionBegin;
  m->multtranspose    = MatMultTranspose_SeqAIJTC;
  m->multtransposeadd = MatMultTransposeAdd_SeqAIJTC;
  if (c->parent.multhermitiantranspose) m->multhermitiantranspose = MatMultTranspose_SeqAIJTC; /* real scalars */
  if (c->parent.multhermitiantransposeadd) m->multhermitiantransposeadd = MatMultTransposeAdd_SeqAIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}
