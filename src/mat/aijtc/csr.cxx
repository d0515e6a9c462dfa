/* The CSR arrays of a sequential matrix, where its type keeps them, for those who make something else of them. The state of the matrix stays. */
#include <petsctc/private/aijtcimpl.h>

#if PETSCTC_HAVE_CUDA
/* In parent scope */
static PetscErrorCode MatAIJTCWithCSR_Device(Mat A, MatAIJTCUseCSR use, void *ctx)
{
  MatAIJTCDeviceCSR csr;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  ierr = (*use)(A->rmap->n, csr.nnz, csr.i, csr.j, csr.a, ctx);
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* use() with arrays in host memory. The matrix has nonzeros */
PetscErrorCode MatAIJTCWithCSR_Host(Mat A, MatAIJTCUseCSR use, void *ctx)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m;
  PetscBool          done;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s gives no row structure", ((PetscObject)A)->type_name);
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  ierr = (*use)(m, i[m], i, j, a, ctx);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* use() with arrays in device memory if the type's products are made there. The matrix has nonzeros */
PetscErrorCode MatAIJTCWithCSR(Mat A, MatAIJTCUseCSR use, void *ctx)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (MatAIJTCClassOf(A)->cuda) {
    MatAIJTCCallParent(A, NULL, MatAIJTCWithCSR_Device(A, use, ctx));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatAIJTCWithCSR_Host(A, use, ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}
