/* Products of the sequential type: by the layout, or by the parent where the layout cannot be used. */
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/petsctcdevice.h>
#include <../src/vec/vecreduce.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

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

PetscErrorCode MatAIJTCChoosePath(Mat A, const MatAIJTCClass *c, Vec x, Vec y, Vec z, MatAIJTCPath *path)
{
  PetscBool  device, bound, large;
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  if (!c->cuda) {
    PetscCall(MatAIJTCGetData(A, &tc));
    if (!tc->settings.layout && !tc->settings.check) { /* or the layout, as MatMult() finds out by itself */
      *path = AIJTC_WITH_PARENT;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(MatAIJTCTooLarge(A, &large));
  *path = A->structure_only || large ? AIJTC_WITH_PARENT : AIJTC_WITH_LAYOUT;
  if (c->cuda) {
    PetscCall(MatAIJTCVecsOnDevice(x, y, z, &device));
    PetscCall(MatBoundToCPU(A, &bound));
    if (!device || bound) *path = AIJTC_WITH_HOST;
#if PETSCTC_HAVE_CUDA
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
PetscErrorCode MatAIJTCParentOps(Mat A, const MatAIJTCClass *c, MatAIJTCPath path, const struct _MatOps **ops)
{
  MatAIJTCClass *host;

  PetscFunctionBegin;
  *ops = &c->parent;
  if (path == AIJTC_WITH_HOST) {
    PetscCall(MatAIJTCGetClass(AIJTC_SEQ_HOST, &host));
    *ops = &host->parent;
  }
#if PETSCTC_HAVE_CUDA
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

#if PETSCTC_HAVE_CUDA
/* A matrix without nonzeros has no layout. Its vectors are handled by array: a block of an MPI matrix is multiplied with parallel vectors, by some processes only */
PetscErrorCode MatAIJTCLayoutMult_Device(Mat_AIJTC *tc, Vec x, Vec y, Vec z)
{
  const PetscBool    tensor = (PetscBool)(tc->settings.mma == MAT_AIJTC_MMA_TENSOR);
  const size_t       bytes  = tc->layout.m * sizeof(PetscScalar);
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
  if (tc->layout.nnz) PetscCall(AIJTCLayoutMult_CUDA(&tc->layout, tensor, xa, ya, za, stream));
  else if (ya && ya != za) PetscCallCUDA(cudaMemcpyAsync(za, ya, bytes, cudaMemcpyDeviceToDevice, stream));
  else if (!ya && bytes) PetscCallCUDA(cudaMemsetAsync(za, 0, bytes, stream));
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
  if (tc->layout.nnz) PetscCall(AIJTCLayoutMult_Host(&tc->layout, tensor, xa, ya, za, NULL));
  else if (ya && ya != za) PetscCall(PetscArraycpy(za, ya, tc->layout.m));
  else if (!ya) PetscCall(PetscArrayzero(za, tc->layout.m));
  if (y == z) PetscCall(VecRestoreArray(z, &za));
  else PetscCall(VecRestoreArrayWrite(z, &za));
  if (y && y != z) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)tc->layout.nnz - (y ? 0 : tc->layout.m - tc->layout.nempty)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product by the parent type: z <- A x, or z <- y + A x if y is given */
PetscErrorCode MatAIJTCParentMult(Mat A, const MatAIJTCClass *c, MatAIJTCPath path, Vec x, Vec y, Vec z)
{
  const struct _MatOps *ops = NULL;

  PetscFunctionBegin;
  PetscCall(MatAIJTCParentOps(A, c, path, &ops));
  if (y) PetscCall((*ops->multadd)(A, x, y, z));
  else PetscCall((*ops->mult)(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z <- A x (y NULL) or z <- y + A x */
static PetscErrorCode MatMultAny_SeqAIJTC(Mat A, Vec x, Vec y, Vec z)
{
  const MatAIJTCClass *c                             = MatAIJTCClassOf(A);
  PetscErrorCode (*mult)(Mat_AIJTC *, Vec, Vec, Vec) = MatAIJTCLayoutMult_Host;
  Mat_AIJTC   *tc;
  MatAIJTCPath path = AIJTC_WITH_PARENT;
  PetscBool    pays = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatAIJTCChoosePath(A, c, x, y, z, &path));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (!c->cuda && path == AIJTC_WITH_PARENT && !y) {
    PetscCall(MatAIJTCHostPays(A, c, tc, &pays));
    if (pays) path = AIJTC_WITH_LAYOUT;
  }
  if (path != AIJTC_WITH_LAYOUT) {
    PetscCall(MatAIJTCParentMult(A, c, path, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if PETSCTC_HAVE_CUDA
  if (c->cuda) mult = MatAIJTCLayoutMult_Device;
#endif
  PetscCall(MatAIJTCUpdateLayout(A, c, tc));
  petsctc_counts.mult++;
  if (tc->settings.check) PetscCall(MatAIJTCMultAndCheck(A, c, tc, x, y, z, mult, MatAIJTCParentMult));
  else PetscCall((*mult)(tc, x, y, z));
#if PETSCTC_HAVE_CUDA
  PetscCall(MatAIJTCReleaseCSR(A, c, tc));
#endif
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

PetscErrorCode MatAIJTCSetOps_Seq(MatAIJTCClass *c)
{
  struct _MatOps *m = &c->mine;

  PetscFunctionBegin;
  m->mult    = MatMult_SeqAIJTC;
  m->multadd = MatMultAdd_SeqAIJTC;
  PetscCall(MatAIJTCSetOps_SeqTranspose(c));
  PetscCall(MatAIJTCSetOps_SeqOther(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}
