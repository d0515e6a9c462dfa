/* The life of a sequential matrix' layout: built from the parent's CSR arrays where they are, refreshed when only values changed, known by its key. */
#include <petsctc/private/aijtcimpl.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

PetscLogEvent MAT_AIJTCBuild, MAT_AIJTCRefresh;

PetscErrorCode MatAIJTCDestroyLayout(Mat_AIJTC *tc)
{
  PetscFunctionBegin;
  tc->valid = PETSC_FALSE;
  PetscCall(MatAIJTCDestroyDots(tc));
#if PETSCTC_HAVE_CUDA
  if (tc->layout.cuda) PetscCall(AIJTCLayoutDestroy_CUDA(&tc->layout));
#endif
  PetscCall(AIJTCLayoutDestroy_Host(&tc->layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The nonzeros of the local matrix. PETSc keeps the pattern on the host always */
PetscErrorCode MatAIJTCGetNonzeros(Mat A, PetscCount *nnz)
{
  const PetscInt *i, *j;
  PetscInt        m;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s gives no row structure", ((PetscObject)A)->type_name);
  *nnz = m && i ? i[m] : 0;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A slice counts rows and columns in 32 bits, and the places of slices in 2^32 units; kernels step behind the last row. More is for the parent */
PetscErrorCode MatAIJTCTooLarge(Mat A, PetscBool *large)
{
  constexpr PetscInt most = INT32_MAX - 1024;

  PetscFunctionBegin;
  *large = (PetscBool)(A->rmap->n > most || A->cmap->n > most);
#if PetscDefined(USE_64BIT_INDICES)
  if (!*large && A->assembled) {
    PetscCount nnz;

    PetscCall(MatAIJTCGetNonzeros(A, &nnz));
    if (nnz > (PetscCount)UINT32_MAX) *large = PETSC_TRUE;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was set, and for the rest what fits an m x n matrix */
PetscErrorCode MatAIJTCResolveParams(const Mat_AIJTC *tc, PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *p)
{
  static const AIJTCCompress compress[] = {AIJTC_COMPRESS_BOTH, AIJTC_COMPRESS_OFF, AIJTC_COMPRESS_PATTERN, AIJTC_COMPRESS_VALUE};
  const MatAIJTCSettings    *s          = &tc->settings;
  PetscInt                   c          = compress[s->compress];

  PetscFunctionBegin;
  if (tc->values_vary) c &= ~AIJTC_COMPRESS_VALUE;
  p->long_min  = s->long_row;
  p->short_max = s->form == MAT_AIJTC_FORM_TILE ? 0 : s->form == MAT_AIJTC_FORM_ROW ? PETSC_DECIDE : s->short_row;
  p->window    = s->window;
  p->rrows     = s->rows_per_lane;
  p->bs        = PETSC_DECIDE;
  p->compress  = (AIJTCCompress)c;
  p->dict_min  = PETSC_DECIDE;
  p->gather    = s->gather;
  PetscCall(AIJTCParamsResolve(m, n, nnz, traits, p));
  if (s->form == MAT_AIJTC_FORM_ROW) p->short_max = p->long_min;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* The parent's device values, brought up to date. Only the copy to the device looks at the type name, so the scope is entered for that alone. */
PetscErrorCode MatAIJTCGetDeviceValues(Mat A, const PetscScalar **a)
{
  PetscScalar *values;
  PetscMemType mtype;

  PetscFunctionBegin;
  if (A->offloadmask == PETSC_OFFLOAD_CPU || A->offloadmask == PETSC_OFFLOAD_UNALLOCATED) MatAIJTCCallParent(A, NULL, MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &values, &mtype));
  else PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &values, &mtype));
  PetscCheck(PetscMemTypeDevice(mtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The parent's values are not on the device");
  *a = values;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In parent scope */
static PetscErrorCode MatAIJTCBuildLayout_Device(Mat A, Mat_AIJTC *tc, PetscCount nnz)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  AIJTCTraits        traits;
  AIJTCParams        params;
  cudaStream_t       stream;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDevicePattern(A, nnz, &i, &j));
  PetscCall(MatAIJTCGetDeviceValues(A, &a));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCProbe_CUDA(A->rmap->n, i, j, a, &traits, stream));
  PetscCall(MatAIJTCResolveParams(tc, A->rmap->n, A->cmap->n, nnz, &traits, &params));
  ierr              = AIJTCLayoutBuild_CUDA(A->rmap->n, A->cmap->n, i, j, a, &params, &tc->layout, stream);
  tc->layout.common = traits.common;
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatAIJTCBuildLayout_Host(Mat A, Mat_AIJTC *tc, PetscCount nnz)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m;
  PetscBool          done;
  AIJTCTraits        traits;
  AIJTCParams        params;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(AIJTCProbe_Host(m, i, j, a, &traits, NULL));
  PetscCall(MatAIJTCResolveParams(tc, A->rmap->n, A->cmap->n, nnz, &traits, &params));
  ierr              = AIJTCLayoutBuild_Host(m, A->cmap->n, i, j, a, &params, &tc->layout, NULL);
  tc->layout.common = traits.common;
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCBuildLayout(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  PetscCount nnz;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscCall(MatAIJTCDestroyLayout(tc)); /* before the memory for the next one is asked for */
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  if (!nnz) { /* the parent may not even have arrays */
    tc->layout.m      = A->rmap->n;
    tc->layout.n      = A->cmap->n;
    tc->layout.nempty = A->rmap->n;
  } else if (c->cuda) {
#if PETSCTC_HAVE_CUDA
    MatAIJTCCallParent(A, NULL, MatAIJTCBuildLayout_Device(A, tc, nnz));
#endif
  } else PetscCall(MatAIJTCBuildLayout_Host(A, tc, nnz));
  tc->builds++;
  PetscTCCountBuild(AIJTCLayoutBytes(&tc->layout), c->cuda);
  tc->layout.build = (PetscCount)petsctc_counts.builds;
  PetscCall(PetscLogEventEnd(MAT_AIJTCBuild, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Stores the matrix' values in the layout, from where the parent keeps them, unless they do not fit its forms */
static PetscErrorCode MatAIJTCRefreshValues(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc, PetscBool *fits)
{
  const PetscScalar *a = NULL;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  if (!tc->layout.nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MAT_AIJTCRefresh, A, 0, 0, 0));
  if (c->cuda) {
#if PETSCTC_HAVE_CUDA
    cudaStream_t stream;

    PetscCall(MatAIJTCGetDeviceValues(A, &a));
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(PetscLogGpuTimeBegin());
    PetscCall(AIJTCLayoutRefresh_CUDA(&tc->layout, a, fits, stream));
    PetscCall(PetscLogGpuTimeEnd());
#endif
  } else {
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    PetscCall(AIJTCLayoutRefresh_Host(&tc->layout, a, fits, NULL));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  }
  PetscCall(PetscLogEventEnd(MAT_AIJTCRefresh, A, 0, 0, 0));
  if (*fits) {
    tc->refreshes++;
    petsctc_counts.refreshes++;
  } else {
    tc->values_vary = PETSC_TRUE;
    PetscCall(PetscInfo(A, "New values do not fit the compressed ones: the layout is built anew, and without compressed values until the pattern changes\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   The layout stands for the matrix while the key holds: the object's id and address and the states of its pattern and values. MatHeaderMerge() gives a matrix the id of the other, and
   MatHeaderReplace() gives the other's contents, container and id another address: so both are needed. Called at every product; must not change the state of the matrix, by which
   KSPSetUp() knows a matrix that changed.
*/
PetscErrorCode MatAIJTCUpdateLayout(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc)
{
  const PetscObjectState state = ((PetscObject)A)->state;
  const PetscBool        valid = tc->valid;
  PetscBool              pattern, fits = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatAIJTCSamePattern(A, &tc->key, &pattern));
  if (valid && pattern && tc->key.state == state) PetscFunctionReturn(PETSC_SUCCESS);
  tc->valid = PETSC_FALSE; /* should anything fail below */
  if (!pattern) tc->values_vary = PETSC_FALSE;
  if (valid && pattern) PetscCall(MatAIJTCRefreshValues(A, c, tc, &fits));
  if (!fits) PetscCall(MatAIJTCBuildLayout(A, c, tc));
  PetscCheck(state == ((PetscObject)A)->state, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Building the layout changed the state of the matrix");
  PetscCall(MatAIJTCSetKey(A, &tc->key));
  tc->valid = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The layout of a sequential MATAIJTC as it is now: until the matrix changes */
PetscErrorCode MatAIJTCGetLayout(Mat A, const AIJTCLayout **layout)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC           *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCUpdateLayout(A, c, tc));
#if PETSCTC_HAVE_CUDA
  if (c->cuda) PetscCall(MatAIJTCReleaseCSR(A, c, tc));
#endif
  *layout = &tc->layout;
  PetscFunctionReturn(PETSC_SUCCESS);
}
