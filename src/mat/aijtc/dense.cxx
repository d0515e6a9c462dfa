/*
   Products of a sequential device matrix or its transpose with a dense matrix, by the layout: the numeric phase. The symbolic one is the parent's, and so is everything that is not A B or A^T B
   with dense B and C of one process.

   B and C may be on the host or the device, with any leading dimension. What is on the host travels once.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>

#if PETSCTC_HAVE_CUDA
  #include <../src/parts/devicescratch.h>

/* A dense matrix' numbers as the kernel reads or writes them: in place on the device, else in a copy */
typedef struct {
  PetscScalar         *array;
  PetscCount           stride;
  PetscInt             rows, columns, lda;
  PetscMemType         mtype;
  Scratch<PetscScalar> copy;
  PetscScalar         *device; /* array or copy */
} MatAIJTCDense;

static PetscErrorCode MatAIJTCDenseDevice(Mat D, MatAIJTCDense *d, cudaStream_t stream)
{
  PetscFunctionBegin;
  d->rows    = D->rmap->n;
  d->columns = D->cmap->n;
  PetscCall(MatDenseGetLDA(D, &d->lda));
  d->device = d->array;
  d->stride = d->lda;
  if (PetscMemTypeHost(d->mtype)) {
    PetscCall(d->copy.allocate((size_t)d->rows * d->columns, stream));
    d->device = d->copy;
    d->stride = d->rows;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between the array on the host and its copy */
static PetscErrorCode MatAIJTCDenseCopy(MatAIJTCDense *d, PetscBool todevice, cudaStream_t stream)
{
  const size_t number = sizeof(PetscScalar), width = number * d->rows, bytes = width * d->columns;

  PetscFunctionBegin;
  if (!PetscMemTypeHost(d->mtype) || !bytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (todevice) {
    PetscCallCUDA(cudaMemcpy2DAsync(d->device, width, d->array, number * d->lda, width, d->columns, cudaMemcpyHostToDevice, stream));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  } else {
    PetscCallCUDA(cudaMemcpy2DAsync(d->array, number * d->lda, d->device, width, width, d->columns, cudaMemcpyDeviceToHost, stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  }
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* the array is the caller's again */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCMultDense_Arrays(const AIJTCLayout *layout, Mat B, Mat C, MatAIJTCDense *b, MatAIJTCDense *c)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCDenseDevice(B, b, stream));
  PetscCall(MatAIJTCDenseDevice(C, c, stream));
  PetscCall(MatAIJTCDenseCopy(b, PETSC_TRUE, stream));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCLayoutMatMult_CUDA(layout, c->columns, b->device, b->stride, c->device, c->stride, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)layout->nnz * c->columns));
  PetscCall(MatAIJTCDenseCopy(c, PETSC_FALSE, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCMultDense_Layout(const AIJTCLayout *layout, Mat B, Mat C)
{
  MatAIJTCDense      b = {}, c = {};
  const PetscScalar *ba;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  if (!layout->nnz) {
    PetscCall(MatZeroEntries(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatDenseGetArrayReadAndMemType(B, &ba, &b.mtype));
  PetscCall(MatDenseGetArrayWriteAndMemType(C, &c.array, &c.mtype));
  b.array = (PetscScalar *)ba;
  ierr    = MatAIJTCMultDense_Arrays(layout, B, C, &b, &c);
  PetscCall(MatDenseRestoreArrayWriteAndMemType(C, &c.array));
  PetscCall(MatDenseRestoreArrayReadAndMemType(B, &ba));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is this a product for the layout? Not with -mat_aijtc_check, which compares products with vectors alone */
static PetscErrorCode MatAIJTCIsDenseProduct(Mat C, PetscBool *is)
{
  const Mat_Product   *p = C->product;
  const MatAIJTCClass *c = MatAIJTCClassOf(p->A);
  MatAIJTCPath         path;
  Mat_AIJTC           *tc;

  PetscFunctionBegin;
  *is = PETSC_FALSE;
  if (!c || !c->cuda || c->mpi || (p->type != MATPRODUCT_AB && p->type != MATPRODUCT_AtB)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)p->B, is, MATSEQDENSE, MATSEQDENSECUDA, ""));
  if (*is) PetscCall(PetscObjectTypeCompareAny((PetscObject)C, is, MATSEQDENSE, MATSEQDENSECUDA, ""));
  if (!*is) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCChoosePath(p->A, c, NULL, NULL, NULL, &path));
  PetscCall(MatAIJTCGetData(p->A, &tc));
  *is = (PetscBool)(path == AIJTC_WITH_LAYOUT && !tc->settings.check);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
   The numeric phase of C = A B or A^T B if it is one for the layout; `done` tells. Not in parent scope. onhost: C was a MATSEQDENSE before the symbolic phase, which makes it a MATSEQDENSECUDA, and
   is to be one again.
*/
PetscErrorCode MatAIJTCMultDense(Mat C, PetscBool onhost, PetscBool *done)
{
  PetscFunctionBegin;
  *done = PETSC_FALSE;
#if PETSCTC_HAVE_CUDA
  PetscCall(MatAIJTCIsDenseProduct(C, done));
  if (*done) {
    const Mat_Product   *p = C->product;
    const MatAIJTCClass *c = MatAIJTCClassOf(p->A);
    Mat_AIJTC           *tc;

    if (p->type == MATPRODUCT_AtB) PetscCall(MatAIJTCGetTransposeOrSelf(p->A, c, &tc));
    else {
      PetscCall(MatAIJTCGetData(p->A, &tc));
      PetscCall(MatAIJTCUpdateLayout(p->A, c, tc));
    }
    PetscCall(MatAIJTCMultDense_Layout(&tc->layout, p->B, C));
    petsctc_counts.mult++;
    if (onhost) PetscCall(MatConvert(C, MATSEQDENSE, MAT_INPLACE_MATRIX, &C));
  }
#else
  (void)C;
  (void)onhost;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
