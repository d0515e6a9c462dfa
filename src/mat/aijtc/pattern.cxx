/*
   What tells that the pattern of a sequential matrix has changed: the key of what is made from it, and whether the arrays on the device are those of the host.

   PETSc raises nonzerostate where it changes a pattern, with exceptions: MatSeqAIJCompactOutExtraColumns() renumbers columns in place. There the sizes tell, and nonzerostate is raised here, so that whatever else is
   kept by it follows. AIJCUSPARSE copies a pattern to the device only when values are copied too. So an operation that changes the host's pattern and not its values (MatEliminateZeros()) leaves the device with arrays
   of another length: kernels that read one by the other would read out of bounds.
*/
#include <petsctc/private/aijtcimpl.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

/* The pattern is another one, whatever nonzerostate said. The host has it always; values that only the device has belong to the old one */
static PetscErrorCode MatAIJTCPatternChanged(Mat A)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  PetscCheck(A->offloadmask != PETSC_OFFLOAD_GPU, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The nonzero pattern was changed on the host while only the device had the values: call MatSeqAIJGetArrayRead() before such a change");
  if (A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
#endif
  A->nonzerostate++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the key that of the matrix' pattern as it is now? */
PetscErrorCode MatAIJTCSamePattern(Mat A, const MatAIJTCKey *key, PetscBool *same)
{
  PetscCount nnz;

  PetscFunctionBegin;
  *same = (PetscBool)(key->address == A && key->id == ((PetscObject)A)->id && key->nonzerostate == A->nonzerostate);
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  if (key->nnz == nnz && key->n == A->cmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  *same = PETSC_FALSE;
  PetscCall(MatAIJTCPatternChanged(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCSetKey(Mat A, MatAIJTCKey *key)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCGetNonzeros(A, &key->nnz));
  key->address      = A;
  key->id           = ((PetscObject)A)->id;
  key->nonzerostate = A->nonzerostate;
  key->state        = ((PetscObject)A)->state;
  key->n            = A->cmap->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* Has the device as many nonzeros as the host? Waits for one number, once for each state of the pattern */
static PetscErrorCode MatAIJTCDeviceHasPattern(Mat A, PetscCount nnz, const PetscInt i[], PetscBool *has)
{
  const PetscInt m = A->rmap->n;
  Mat_AIJTC     *tc;
  PetscInt       last = 0;
  cudaStream_t   stream;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetData(A, &tc));
  *has = (PetscBool)(tc->device.id == ((PetscObject)A)->id && tc->device.address == A && tc->device.nonzerostate == A->nonzerostate && tc->device.nnz == nnz);
  if (*has || !m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemcpyAsync(&last, i + m, sizeof(last), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  *has = (PetscBool)(last == nnz);
  if (*has) PetscCall(MatAIJTCSetKey(A, &tc->device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern on the device, in parent scope, as PETSc asks for the exact type. Full row pointers, also of a matrix that AIJCUSPARSE keeps by its nonempty rows. To be got before the values */
PetscErrorCode MatAIJTCGetDevicePattern(Mat A, PetscCount nnz, const PetscInt **i, const PetscInt **j)
{
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, i, j));
  PetscCall(MatAIJTCDeviceHasPattern(A, nnz, *i, &has));
  if (has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, i, j));
  PetscCall(MatAIJTCPatternChanged(A));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, i, j));
  PetscCall(MatAIJTCDeviceHasPattern(A, nnz, *i, &has));
  PetscCheck(has, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc's arrays on the device do not have the matrix' %" PetscCount_FMT " nonzeros", nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
