/*
   Norms and row sums on the device, where AIJCUSPARSE copies its values to the host. They read the CSR arrays that PETSc keeps there: a layout would have to be decoded for the same numbers. Column sums of several processes, NORM_1, are
   taken on the host.

   A matrix whose newest values are on the host, or that is bound to the CPU, keeps the parent's operations.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>
#include <petsctc/private/petsctcdevice.h>

#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>

/* ---- the parent's device arrays, for all operations on them */

/* Are the newest values of a matrix with nonzeros on the device, and may kernels use them there? */
PetscErrorCode MatAIJTCIsOnDevice(Mat A, PetscBool *device)
{
  PetscBool  bound, large;
  PetscCount nnz;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  if (!A->assembled || A->structure_only || (A->offloadmask != PETSC_OFFLOAD_GPU && A->offloadmask != PETSC_OFFLOAD_BOTH)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBoundToCPU(A, &bound));
  if (bound) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCTooLarge(A, &large));
  if (large) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  *device = (PetscBool)(nnz > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In parent scope. write: the device's values become the newest and the state is raised */
PetscErrorCode MatAIJTCGetDeviceCSR(Mat A, PetscBool write, MatAIJTCDeviceCSR *csr)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetNonzeros(A, &csr->nnz));
  PetscCall(MatAIJTCGetDevicePattern(A, csr->nnz, &csr->i, &csr->j));
  if (write) PetscCall(MatSeqAIJCUSPARSEGetArray(A, &csr->a));
  else {
    PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &a));
    csr->a = (PetscScalar *)a;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCRestoreDeviceCSR(Mat A, PetscBool write, MatAIJTCDeviceCSR *csr)
{
  const PetscScalar *a = csr->a;

  PetscFunctionBegin;
  if (write) PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &csr->a));
  else PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &csr->i, &csr->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- norms */

/* In parent scope */
static PetscErrorCode MatNorm_Device(Mat A, NormType type, PetscReal *norm)
{
  MatAIJTCDeviceCSR csr;
  cudaStream_t      stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(PetscLogGpuTimeBegin());
  if (type == NORM_1) PetscCall(AIJTCCsrNorm1_CUDA(A->rmap->n, A->cmap->n, csr.nnz, csr.i, csr.j, csr.a, norm, stream));
  else if (type == NORM_INFINITY) PetscCall(AIJTCCsrNormInfinity_CUDA(A->rmap->n, csr.nnz, csr.i, csr.a, norm, stream));
  else PetscCall(AIJTCCsrNormFrobenius_CUDA(csr.nnz, csr.a, norm, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops((type == NORM_FROBENIUS ? 2.0 : 1.0) * (PetscLogDouble)csr.nnz));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_SeqAIJTC(Mat A, NormType type, PetscReal *norm)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            device;

  PetscFunctionBegin;
  PetscCall(MatAIJTCIsOnDevice(A, &device));
  if (device && (type == NORM_1 || type == NORM_FROBENIUS || type == NORM_INFINITY)) MatAIJTCCallParent(A, NULL, MatNorm_Device(A, type, norm));
  else PetscCall((*c->parent.norm)(A, type, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatAIJTCUseCSR: ctx are the sums of all columns */
static PetscErrorCode AddToColumnSumsAbs(PetscInt, PetscCount nnz, const PetscInt[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  PetscScalar *sum = static_cast<PetscScalar *>(ctx);

  PetscFunctionBegin;
  for (PetscCount k = 0; k < nnz; k++) sum[j[k]] += PetscAbsScalar(a[k]);
  PetscCall(PetscLogFlops((PetscLogDouble)nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the absolute values of a sequential block, on the host */
static PetscErrorCode ColumnSumsAbs(Mat B, PetscScalar sum[])
{
  PetscCount nnz;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(sum, B->cmap->n));
  PetscCall(MatAIJTCGetNonzeros(B, &nnz));
  if (nnz) PetscCall(MatAIJTCWithCSR_Host(B, AddToColumnSumsAbs, sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As PETSc does it, whose sums (3.25, 3.26) begin with what is in the host's array of a vector on the device: with VecGetArrayWrite(), which need not bring the zeros, or nothing */
static PetscErrorCode MatNorm1_MPIAIJTC(Mat A, PetscReal *norm)
{
  Mat             diagonal, other;
  Vec             sums;
  PetscScalar    *own, *outside;
  const PetscInt *column;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &other, &column));
  PetscCall(MatCreateVecs(A, &sums, NULL));
  PetscCall(VecGetArrayWrite(sums, &own));
  PetscCall(ColumnSumsAbs(diagonal, own));
  PetscCall(VecRestoreArrayWrite(sums, &own));
  PetscCall(PetscMalloc1(other->cmap->n, &outside));
  PetscCall(ColumnSumsAbs(other, outside));
  PetscCall(VecSetValues(sums, other->cmap->n, column, outside, ADD_VALUES));
  PetscCall(PetscFree(outside));
  PetscCall(VecAssemblyBegin(sums));
  PetscCall(VecAssemblyEnd(sums));
  PetscCall(VecNorm(sums, NORM_INFINITY, norm));
  PetscCall(VecDestroy(&sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the norms and sums of the blocks */
static PetscErrorCode MatNorm_MPIAIJTC(Mat A, NormType type, PetscReal *norm)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat                  b[2];
  PetscMPIInt          size;
  PetscReal            square = 0.0, part;
  Vec                  sums;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size == 1 || (type != NORM_1 && type != NORM_FROBENIUS && type != NORM_INFINITY)) PetscCall((*c->parent.norm)(A, type, norm));
  else if (type == NORM_1) PetscCall(MatNorm1_MPIAIJTC(A, norm));
  else if (type == NORM_FROBENIUS) {
    PetscCall(MatAIJTCGetBlocks(A, b));
    for (Mat B : b) {
      PetscCall(MatNorm(B, NORM_FROBENIUS, &part));
      square += part * part;
    }
    PetscCallMPI(MPIU_Allreduce(&square, norm, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)A)));
    *norm = PetscSqrtReal(*norm);
  } else {
    PetscCall(MatCreateVecs(A, NULL, &sums));
    PetscCall(MatGetRowSumAbs(A, sums));
    PetscCall(VecNorm(sums, NORM_INFINITY, norm));
    PetscCall(VecDestroy(&sums));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- row sums. MatGetRowSum() is PETSc's product with ones, and so the layout's */

/* In parent scope */
static PetscErrorCode MatGetRowSumAbs_Device(Mat A, Vec v)
{
  MatAIJTCDeviceCSR csr;
  PetscScalar      *sum;
  cudaStream_t      stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(VecCUDAGetArrayWrite(v, &sum));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCCsrRowSumsAbs_CUDA(A->rmap->n, csr.nnz, csr.i, csr.a, sum, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops((PetscLogDouble)csr.nnz));
  PetscCall(VecCUDARestoreArrayWrite(v, &sum));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums are left in host memory, too: PCJACOBI of type rowl1 (PETSc 3.26) takes them for there, and changes some by VecGetArrayWrite(), which brings none from the device */
static PetscErrorCode MatGetRowSumAbs_SeqAIJTC(Mat A, Vec v)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  const PetscScalar   *host;
  PetscBool            device, vdevice;
  PetscInt             n;

  PetscFunctionBegin;
  PetscCall(MatAIJTCIsOnDevice(A, &device));
  PetscCall(PetscTCVecOnDevice(v, &vdevice));
  PetscCall(VecGetLocalSize(v, &n));
  if (device && vdevice && n == A->rmap->n) {
    MatAIJTCCallParent(A, NULL, MatGetRowSumAbs_Device(A, v));
    PetscCall(VecGetArrayRead(v, &host));
    PetscCall(VecRestoreArrayRead(v, &host));
  } else PetscCall((*c->parent.getrowsumabs)(A, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCSetOps_Reductions(MatAIJTCClass *c)
{
  PetscFunctionBegin;
  if (c->mpi) c->mine.norm = MatNorm_MPIAIJTC;
  else {
    c->mine.norm         = MatNorm_SeqAIJTC;
    c->mine.getrowsumabs = MatGetRowSumAbs_SeqAIJTC;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
