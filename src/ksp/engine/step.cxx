/*
   A step from PETSc's side: the arrays of its vectors are taken before and given back after, so that object states, cached norms and the record of which memory is
   current stay right for whatever comes between two steps (a matrix, a preconditioner, a monitor).
*/
#include <petsctc/private/aijtcimpl.h>
#include <../src/ksp/engine/kspengine.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

/* The arrays of v[0..nread-1] to read and of v[nread..nread+nwrite-1] to change. A stopped step leaves what it would have written, so none is write-only */
PetscErrorCode KSPTCStepBegin(KSPTC tc, PetscInt nread, PetscInt nwrite, const Vec v[], PetscScalar *a[])
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < nread + nwrite; i++) {
    const PetscScalar **read = (const PetscScalar **)&a[i];

    if (tc->backend == KSPTC_HOST) PetscCall(i < nread ? VecGetArrayRead(v[i], read) : VecGetArray(v[i], &a[i]));
    else PetscCall(i < nread ? VecCUDAGetArrayRead(v[i], read) : VecCUDAGetArray(v[i], &a[i]));
  }
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(PetscGetCurrentCUDAStream(&tc->stream));
    PetscCall(PetscLogGpuTimeBegin());
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCLogFlops(KSPTC tc, PetscLogDouble flops)
{
  PetscFunctionBegin;
  if (tc->backend == KSPTC_CUDA) PetscCall(PetscLogGpuFlops(flops));
  else PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCStepEnd(KSPTC tc, PetscInt nread, PetscInt nwrite, const Vec v[], PetscScalar *a[], PetscLogDouble flops)
{
  PetscFunctionBegin;
  if (tc->backend == KSPTC_CUDA) PetscCall(PetscLogGpuTimeEnd());
  PetscCall(KSPTCLogFlops(tc, flops));
  for (PetscInt i = 0; i < nread + nwrite; i++) {
    const PetscScalar **read = (const PetscScalar **)&a[i];

    if (tc->backend == KSPTC_HOST) PetscCall(i < nread ? VecRestoreArrayRead(v[i], read) : VecRestoreArray(v[i], &a[i]));
    else PetscCall(i < nread ? VecCUDARestoreArrayRead(v[i], read) : VecCUDARestoreArray(v[i], &a[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The option asks for Tensor Cores: does the device have them? */
PetscErrorCode KSPTCUsesTensor(KSPTC tc, PetscBool *tensor)
{
  PetscFunctionBegin;
  *tensor = tc->tensor;
#if PETSCTC_HAVE_CUDA
  if (tc->tensor && tc->backend == KSPTC_CUDA) PetscCall(PetscTCDeviceHasMMA_CUDA(tensor));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y <- A x, and *sums is where w . y and y . y (and, unless u is NULL, u . y and u . w) are until the next such product of A, in the memory of the vectors; NULL where the matrix does not bring them */
PetscErrorCode KSPTCMultSums(KSP ksp, KSPTC tc, Mat A, Vec x, Vec w, Vec u, Vec y, const PetscScalar **sums)
{
  PetscFunctionBegin;
  *sums = NULL;
  if (tc->sums && !ksp->transpose_solve && !KSPTCChecksResults(ksp)) PetscCall(MatAIJTCMultSums(A, (PetscBool)(tc->backend == KSPTC_CUDA), &tc->across, NULL, x, w, u, y, sums));
  if (*sums) tc->last_sums = PETSC_TRUE;
  else PetscCall(KSP_MatMult(ksp, A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the user leaves it open: on the host it is a pass more; on a GPU less comes from memory, but more work is between the copies. Measured: docs/log/2026-11.md */
static PetscBool KSPTCMakingPays(const struct _n_KSPTC *tc)
{
  const PetscInt large = 5000000; /* rows */

  return (PetscBool)(tc->backend == KSPTC_CUDA && tc->n >= large);
}

/* x <- what waxpy makes, y <- A x, and *sums as KSPTCMultSums() with w = x, in one pass of the matrix where it has that. Else *sums is NULL and nothing has been done */
PetscErrorCode KSPTCWAXPYMultSums(KSP ksp, KSPTC tc, Mat A, const MatAIJTCWAXPY *waxpy, Vec x, Vec u, Vec y, const PetscScalar **sums)
{
  const PetscBool cuda = (PetscBool)(tc->backend == KSPTC_CUDA);

  PetscFunctionBegin;
  *sums = NULL;
  if (!tc->sums || ksp->transpose_solve || KSPTCChecksResults(ksp) || tc->makes == KSPTC_CHOICE_FALSE || (tc->makes == KSPTC_CHOICE_DECIDE && !KSPTCMakingPays(tc))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCMultSums(A, cuda, &tc->across, waxpy, x, x, u, y, sums));
  if (*sums) tc->last_sums = tc->last_made = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
