/* A product together with dot products of its result: one pass over the matrix and the vectors, for Krylov methods. */
#include <petsc/private/vecimpl.h>
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

PetscErrorCode MatAIJTCDestroyDots(Mat_AIJTC *tc)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (tc->dot) PetscCallCUDA(cudaFree(tc->dot));
  tc->dot = NULL;
  if (tc->dots.cuda) PetscCall(AIJTCDotWorkDestroy_CUDA(&tc->dots));
#else
  (void)tc;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the sums of the next product go: those of the product before stay */
static PetscScalar *MatAIJTCNextDots(Mat_AIJTC *tc, PetscScalar dot[])
{
  tc->turn = (PetscBool)!tc->turn;
  return dot + (tc->turn ? AIJTC_MAT_DOTS : 0);
}

#if PETSCTC_HAVE_CUDA
static PetscErrorCode MatAIJTCCreateDots(Mat_AIJTC *tc)
{
  PetscFunctionBegin;
  if (tc->dot) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCDestroyDots(tc)); /* what a create that failed has left */
  PetscCall(AIJTCDotWorkCreate_CUDA(&tc->layout, &tc->dots));
  PetscCallCUDA(cudaMalloc((void **)&tc->dot, 2 * AIJTC_MAT_DOTS * sizeof(*tc->dot)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCLayoutMultSums_Device(Mat_AIJTC *tc, const MatAIJTCWAXPY *waxpy, Vec x, Vec w, Vec u, Vec y, const PetscScalar **sums)
{
  const PetscBool    tensor = (PetscBool)(tc->settings.mma == MAT_AIJTC_MMA_TENSOR);
  AIJTCWAXPY         of     = waxpy ? waxpy->scalars : AIJTCWAXPY{};
  const PetscScalar *xa, *wa, *ua = NULL;
  PetscScalar       *made, *ya, *to;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCreateDots(tc));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  to = MatAIJTCNextDots(tc, tc->dot);
  if (u) PetscCall(VecCUDAGetArrayRead(u, &ua));
  if (waxpy) {
    PetscCall(VecCUDAGetArrayRead(waxpy->base, &of.base));
    PetscCall(VecCUDAGetArrayRead(waxpy->along, &of.along));
    PetscCall(VecCUDAGetArray(x, &made)); /* may be left as it is */
    PetscCall(VecCUDAGetArray(y, &ya));
    PetscCall(PetscLogGpuTimeBegin());
    PetscCall(AIJTCLayoutWAXPYMultDot_CUDA(&tc->layout, tensor, &of, made, ua, ya, to, &tc->dots, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(VecCUDARestoreArray(y, &ya));
    PetscCall(VecCUDARestoreArray(x, &made));
    PetscCall(VecCUDARestoreArrayRead(waxpy->along, &of.along));
    PetscCall(VecCUDARestoreArrayRead(waxpy->base, &of.base));
  } else {
    PetscCall(VecCUDAGetArrayRead(x, &xa));
    PetscCall(VecCUDAGetArrayRead(w, &wa));
    PetscCall(VecCUDAGetArrayWrite(y, &ya));
    PetscCall(PetscLogGpuTimeBegin());
    PetscCall(AIJTCLayoutMultDot_CUDA(&tc->layout, tensor, xa, wa, ua, ya, to, &tc->dots, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(VecCUDARestoreArrayWrite(y, &ya));
    PetscCall(VecCUDARestoreArrayRead(w, &wa));
    PetscCall(VecCUDARestoreArrayRead(x, &xa));
  }
  if (u) PetscCall(VecCUDARestoreArrayRead(u, &ua));
  *sums = to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCSumsToHost(const PetscScalar sums[], PetscScalar dot[])
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(dot, sums, 2 * sizeof(*dot), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(PetscLogGpuToCpuScalar(2 * sizeof(*dot)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatAIJTCLayoutMultSums_Host(Mat_AIJTC *tc, const MatAIJTCWAXPY *waxpy, Vec x, Vec w, Vec u, Vec y, const PetscScalar **sums)
{
  PetscScalar *const to = MatAIJTCNextDots(tc, tc->host_dot);
  AIJTCWAXPY         of = waxpy ? waxpy->scalars : AIJTCWAXPY{};
  const PetscScalar *xa, *wa, *ua = NULL;
  PetscScalar       *made, *ya;

  PetscFunctionBegin;
  if (u) PetscCall(VecGetArrayRead(u, &ua));
  if (waxpy) {
    PetscCall(VecGetArrayRead(waxpy->base, &of.base));
    PetscCall(VecGetArrayRead(waxpy->along, &of.along));
    PetscCall(VecGetArray(x, &made)); /* may be left as it is */
    PetscCall(VecGetArray(y, &ya));
    PetscCall(AIJTCLayoutWAXPYMultDot_Host(&tc->layout, PETSC_FALSE, &of, made, ua, ya, to, &tc->dots, NULL));
    PetscCall(VecRestoreArray(y, &ya));
    PetscCall(VecRestoreArray(x, &made));
    PetscCall(VecRestoreArrayRead(waxpy->along, &of.along));
    PetscCall(VecRestoreArrayRead(waxpy->base, &of.base));
  } else {
    PetscCall(VecGetArrayRead(x, &xa));
    PetscCall(VecGetArrayRead(w, &wa));
    PetscCall(VecGetArrayWrite(y, &ya));
    PetscCall(AIJTCLayoutMultDot_Host(&tc->layout, PETSC_FALSE, xa, wa, ua, ya, to, &tc->dots, NULL));
    PetscCall(VecRestoreArrayWrite(y, &ya));
    PetscCall(VecRestoreArrayRead(w, &wa));
    PetscCall(VecRestoreArrayRead(x, &xa));
  }
  if (u) PetscCall(VecRestoreArrayRead(u, &ua));
  *sums = to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the product with these vectors one of a layout, and nothing but it? Not if somebody has set another operation (MatSetOperation()), nor where MatMult() says that the matrix is not ready */
PetscErrorCode MatAIJTCMultIsPlain(Mat A, Vec x, Vec w, Vec y, PetscBool *plain)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  MatAIJTCPath         path;
  Mat_AIJTC           *tc;

  PetscFunctionBegin;
  *plain = PETSC_FALSE;
  if (!c || c->mpi || !A->assembled || A->factortype) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCChoosePath(A, c, x, w, y, &path));
  *plain = (PetscBool)(path == AIJTC_WITH_LAYOUT && !tc->settings.check && A->ops->mult == c->mine.mult);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has the layout of a matrix that is ready a product that makes its vector? */
static PetscErrorCode MatAIJTCHasWAXPY(const Mat_AIJTC *tc, PetscBool cuda, PetscBool *has)
{
  PetscFunctionBegin;
  if (!cuda) PetscCall(AIJTCLayoutHasWAXPY_Host(&tc->layout, has));
#if PETSCTC_HAVE_CUDA
  else PetscCall(AIJTCLayoutHasWAXPY_CUDA(&tc->layout, has));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* Of a sequential matrix on a GPU: does its product make its vector? */
PetscErrorCode MatAIJTCMakesVector(Mat A, Vec x, Vec y, PetscBool *makes)
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCMultIsPlain(A, x, x, y, makes));
  if (!*makes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCUpdateLayout(A, MatAIJTCClassOf(A), tc));
  *makes = PETSC_FALSE;
  if (tc->layout.nnz) PetscCall(MatAIJTCHasWAXPY(tc, PETSC_TRUE, makes));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
   If the layout computes the product: y <- A x, and *sums is where w . y and y . y, and unless u is NULL u . y and u . w, are until the product after the next such one, in the memory of the layout. Else *sums is NULL and nothing has been
   done. waxpy: x, which is w, is made of its vectors in the same pass; x and y may be neither of these. NULL: x is there.
   across: of several processes, who adds the sums up over them, else NULL. cuda: sums in device memory will do, else in the host's. Nothing waits; the flops of the sums and of x are for the caller to log.
*/
PetscErrorCode MatAIJTCMultSums(Mat A, PetscBool cuda, const PetscTCAcross *across, const MatAIJTCWAXPY *waxpy, Vec x, Vec w, Vec u, Vec y, const PetscScalar **sums)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC           *tc;
  PetscBool            plain, has = PETSC_TRUE;
  PetscLogDouble       flops;

  PetscFunctionBegin;
  *sums = NULL;
#if PETSCTC_HAVE_CUDA
  if (c && c->mpi && c->cuda && cuda) {
    PetscCall(MatAIJTCMultSums_MPI(A, across, waxpy, x, w, u, y, sums));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#else
  (void)across;
#endif
  PetscCall(MatAIJTCMultIsPlain(A, x, w, y, &plain));
  if (!plain || c->cuda != cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCUpdateLayout(A, c, tc));
  if (tc->layout.nnz && waxpy) PetscCall(MatAIJTCHasWAXPY(tc, cuda, &has));
  if (!tc->layout.nnz || !has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MAT_Mult, A, x, y, 0));
  petsctc_counts.mult++;
  flops = 2.0 * (PetscLogDouble)tc->layout.nnz - (tc->layout.m - tc->layout.nempty);
#if PETSCTC_HAVE_CUDA
  if (c->cuda) {
    PetscCall(MatAIJTCLayoutMultSums_Device(tc, waxpy, x, w, u, y, sums));
    PetscCall(PetscLogGpuFlops(flops));
    PetscCall(MatAIJTCReleaseCSR(A, c, tc));
  } else
#endif
  {
    PetscCall(MatAIJTCLayoutMultSums_Host(tc, waxpy, x, w, u, y, sums));
    PetscCall(PetscLogFlops(flops));
  }
  PetscCall(PetscLogEventEnd(MAT_Mult, A, x, y, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCMultDot - Computes the product y = A x and, in the same pass, the dot products of y with another vector and with itself

  Collective

  Input Parameters:
+ A - the matrix, of any type; the pass is one for `MATSEQAIJTC`
. x - the vector to multiply, of the columns' layout
- w - a vector of the rows' layout; may be `x`

  Output Parameters:
+ y  - the product, another vector than `x` and `w`
. wy - the dot product, sum of w_i y_i
- yy - the square of the 2-norm of `y`

  Level: advanced

  Notes:
  Conjugate gradients needs p'Ap with Ap, BiCGSTAB r'Av with Av, and s'As with (As)'(As): here neither vector is read again for them. On a GPU the two sums come to the host together, which waits for
  them.

  The product has the bits of `MatMult()`. The sums are added in an order that depends on the layout alone: two calls give the same bits; they differ from those of `VecDot()` by rounding.

  Where the layout does not compute the product (other types, several processes, `-mat_aijtc_check`, vectors in other memory, the host without `-mat_aijtc_backend host`) this is `MatMult()` and `VecDotNorm2()`.

.seealso: `MATAIJTC`, `MatMult()`, `VecDotNorm2()`
@*/
PetscErrorCode MatAIJTCMultDot(Mat A, Vec x, Vec w, Vec y, PetscScalar *wy, PetscReal *yy)
{
  const MatAIJTCClass *c    = MatAIJTCClassOf(A);
  const PetscScalar   *sums = NULL;
  PetscScalar          dot[2];

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidHeaderSpecific(x, VEC_CLASSID, 2);
  PetscValidHeaderSpecific(w, VEC_CLASSID, 3);
  PetscValidHeaderSpecific(y, VEC_CLASSID, 4);
  PetscAssertPointer(wy, 5);
  PetscAssertPointer(yy, 6);
  PetscCheckSameComm(A, 1, x, 2);
  PetscCheckSameComm(A, 1, w, 3);
  PetscCheckSameComm(A, 1, y, 4);
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix is not assembled: call MatAssemblyBegin() and MatAssemblyEnd()");
  PetscCheck(x != y && w != y, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_IDN, "The product needs a vector of its own: y is %s", x == y ? "x" : "w");
  PetscCheck(x->map->n == A->cmap->n && w->map->n == A->rmap->n && y->map->n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Local sizes do not fit: matrix %" PetscInt_FMT " x %" PetscInt_FMT ", x %" PetscInt_FMT ", w %" PetscInt_FMT ", y %" PetscInt_FMT, A->rmap->n, A->cmap->n, x->map->n, w->map->n, y->map->n);
  PetscCall(VecSetErrorIfLocked(y, 4));
  if (c) PetscCall(MatAIJTCMultSums(A, c->cuda, NULL, NULL, x, w, NULL, y, &sums));
  if (!sums) {
    PetscCall(MatMult(A, x, y));
    PetscCall(VecDotNorm2(w, y, wy, yy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if PETSCTC_HAVE_CUDA
  if (c->cuda) {
    PetscCall(MatAIJTCSumsToHost(sums, dot));
    PetscCall(PetscLogGpuFlops(4.0 * y->map->n));
  } else
#endif
  {
    PetscCall(PetscArraycpy(dot, sums, 2));
    PetscCall(PetscLogFlops(4.0 * y->map->n));
  }
  *wy = dot[0];
  *yy = PetscRealPart(dot[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
