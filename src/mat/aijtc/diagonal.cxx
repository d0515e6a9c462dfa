/*
   Operations on and with the diagonal, on the device: AIJCUSPARSE shifts and sets a diagonal on the host, extracts it with the wrong row pointers from a matrix with mostly empty rows, and scales
   in two passes of which one goes over rows thread by thread.

   A matrix whose newest values are on the host, or that is bound to the CPU, or whose pattern would change, keeps the parent's operations.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>
#include <petsctc/private/petsctcdevice.h>

#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>

/* v, or a device copy of its local part if it is a host vector: AIJCUSPARSE leaves device memory behind on those. w takes a reference, NULL for NULL */
static PetscErrorCode MatAIJTCGetDeviceVec(Mat A, Vec v, PetscBool right, Vec *w)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscBool          device = PETSC_TRUE;
  PetscInt           n;

  PetscFunctionBegin;
  *w = v;
  if (v) PetscCall(PetscTCVecOnDevice(v, &device));
  if (device) {
    PetscCall(PetscObjectReference((PetscObject)v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatCreateVecs(A, right ? w : NULL, right ? NULL : w));
  PetscCall(VecGetLocalSize(*w, &n));
  PetscCall(VecGetArrayRead(v, &from));
  PetscCall(VecGetArrayWrite(*w, &to));
  PetscCall(PetscArraycpy(to, from, n));
  PetscCall(VecRestoreArrayWrite(*w, &to));
  PetscCall(VecRestoreArrayRead(v, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- scaling */

/* In parent scope. l and r on the device or NULL */
static PetscErrorCode MatDiagonalScale_Device(Mat A, Vec l, Vec r)
{
  const PetscScalar *la = NULL, *ra = NULL;
  MatAIJTCDeviceCSR  csr;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (l) PetscCall(VecCUDAGetArrayRead(l, &la));
  if (r) PetscCall(VecCUDAGetArrayRead(r, &ra));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_TRUE, &csr));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCCsrDiagonalScale_CUDA(A->rmap->n, csr.nnz, csr.i, csr.j, csr.a, la, ra, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(((l ? 1.0 : 0.0) + (r ? 1.0 : 0.0)) * (PetscLogDouble)csr.nnz));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_TRUE, &csr));
  if (r) PetscCall(VecCUDARestoreArrayRead(r, &ra));
  if (l) PetscCall(VecCUDARestoreArrayRead(l, &la));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_Device_AnyVecs(Mat A, Vec l, Vec r)
{
  Vec ldevice, rdevice;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetDeviceVec(A, l, PETSC_FALSE, &ldevice));
  PetscCall(MatAIJTCGetDeviceVec(A, r, PETSC_TRUE, &rdevice));
  MatAIJTCCallParent(A, NULL, MatDiagonalScale_Device(A, ldevice, rdevice));
  PetscCall(VecDestroy(&ldevice));
  PetscCall(VecDestroy(&rdevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCCheckScaling(Vec v, PetscInt n, const char side[])
{
  PetscInt local = n;

  PetscFunctionBegin;
  if (v) PetscCall(VecGetLocalSize(v, &local));
  PetscCheck(local == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "%s scaling vector has local size %" PetscInt_FMT ", the matrix asks for %" PetscInt_FMT, side, local, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The MPI type calls this on its blocks without their public function, so the state is raised here */
static PetscErrorCode MatDiagonalScale_SeqAIJTC(Mat A, Vec l, Vec r)
{
#if PETSCTC_HAVE_CUDA
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            bound, large;
  PetscCount           nnz;
#endif

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatAIJTCTooLarge(A, &large));
  if (c->cuda && !bound && !large) {
    PetscCall(MatAIJTCCheckScaling(l, A->rmap->n, "Left"));
    PetscCall(MatAIJTCCheckScaling(r, A->cmap->n, "Right"));
    PetscCall(MatAIJTCGetNonzeros(A, &nnz));
    if (nnz && !A->structure_only) PetscCall(MatDiagonalScale_Device_AnyVecs(A, l, r));
  } else
#endif
    MatAIJTCCallParent(A, NULL, (*A->ops->diagonalscale)(A, l, r));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* ---- diagonal */

/* In parent scope */
static PetscErrorCode MatGetDiagonal_Device(Mat A, Vec d)
{
  MatAIJTCDeviceCSR csr;
  PetscScalar      *da;
  cudaStream_t      stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(VecCUDAGetArrayWrite(d, &da));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCCsrGetDiagonal_CUDA(A->rmap->n, csr.i, csr.j, csr.a, da, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(VecCUDARestoreArrayWrite(d, &da));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Else the host parent's: AIJCUSPARSE writes the device copy of a host vector, which nobody reads */
static PetscErrorCode MatGetDiagonal_SeqAIJTC(Mat A, Vec d)
{
  MatAIJTCClass *host;
  PetscBool      device, ddevice;
  PetscInt       n;

  PetscFunctionBegin;
  PetscCall(MatAIJTCIsOnDevice(A, &device));
  PetscCall(PetscTCVecOnDevice(d, &ddevice));
  PetscCall(VecGetLocalSize(d, &n));
  PetscCall(MatAIJTCGetClass(AIJTC_SEQ_HOST, &host));
  if (device && ddevice && n == A->rmap->n) MatAIJTCCallParent(A, NULL, MatGetDiagonal_Device(A, d));
  else MatAIJTCCallParent(A, NULL, (*host->parent.getdiagonal)(A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In parent scope. d is a device vector or NULL */
static PetscErrorCode MatSetDiagonal_Device(Mat A, Vec d, PetscScalar shift, PetscBool add)
{
  const PetscScalar *da = NULL;
  MatAIJTCDeviceCSR  csr;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (d) PetscCall(VecCUDAGetArrayRead(d, &da));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_TRUE, &csr));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCCsrSetDiagonal_CUDA(A->rmap->n, csr.i, csr.j, csr.a, da, shift, add, stream));
  PetscCall(PetscLogGpuTimeEnd());
  if (add) PetscCall(PetscLogGpuFlops((PetscLogDouble)A->rmap->n));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_TRUE, &csr));
  if (d) PetscCall(VecCUDARestoreArrayRead(d, &da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In parent scope */
static PetscErrorCode MatHasDiagonal_Device(Mat A, PetscBool *full)
{
  MatAIJTCDeviceCSR csr;
  cudaStream_t      stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatAIJTCGetDeviceCSR(A, PETSC_FALSE, &csr));
  PetscCall(AIJTCCsrHasDiagonal_CUDA(A->rmap->n, csr.i, csr.j, full, stream));
  PetscCall(MatAIJTCRestoreDeviceCSR(A, PETSC_FALSE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May the diagonal be changed on the device? Entries that do not exist are the parent's to insert */
static PetscErrorCode MatAIJTCHasDeviceDiagonal(Mat A, PetscBool *full)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCIsOnDevice(A, full));
  if (*full) MatAIJTCCallParent(A, NULL, MatHasDiagonal_Device(A, full));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_SeqAIJTC(Mat A, PetscScalar shift)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            full;

  PetscFunctionBegin;
  PetscCall(MatAIJTCHasDeviceDiagonal(A, &full));
  if (full) MatAIJTCCallParent(A, NULL, MatSetDiagonal_Device(A, NULL, shift, PETSC_TRUE));
  else PetscCall((*c->parent.shift)(A, shift));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalSet_SeqAIJTC(Mat A, Vec d, InsertMode mode)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            full;
  Vec                  ddevice;

  PetscFunctionBegin;
  PetscCall(MatAIJTCHasDeviceDiagonal(A, &full));
  if (full && (mode == INSERT_VALUES || mode == ADD_VALUES)) {
    PetscCall(MatAIJTCGetDeviceVec(A, d, PETSC_FALSE, &ddevice));
    MatAIJTCCallParent(A, NULL, MatSetDiagonal_Device(A, ddevice, 0.0, (PetscBool)(mode == ADD_VALUES)));
    PetscCall(VecDestroy(&ddevice));
  } else PetscCall((*c->parent.diagonalset)(A, d, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the diagonal blocks if those of all processes have their whole diagonal; the parent sets value by value and assembles */
static PetscErrorCode MatShift_MPIAIJTC(Mat A, PetscScalar shift)
{
  const MatAIJTCClass *c    = MatAIJTCClassOf(A);
  Mat                  b[2] = {NULL, NULL};
  PetscBool            full = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatHasCongruentLayouts(A, &full));
  if (full && A->rmap->n) {
    PetscCall(MatAIJTCGetBlocks(A, b));
    full = PETSC_FALSE;
    if (b[0] && MatAIJTCClassOf(b[0])) PetscCall(MatAIJTCHasDeviceDiagonal(b[0], &full));
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &full, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (!full) PetscCall((*c->parent.shift)(A, shift));
  else if (A->rmap->n) PetscCall(MatShift(b[0], shift));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode MatAIJTCSetOps_Diagonal(MatAIJTCClass *c)
{
  struct _MatOps *m = &c->mine;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (c->mpi) {
    m->shift = MatShift_MPIAIJTC;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (c->cuda) {
    m->getdiagonal = MatGetDiagonal_SeqAIJTC;
    m->diagonalset = MatDiagonalSet_SeqAIJTC;
    m->shift       = MatShift_SeqAIJTC;
  }
#endif
  m->diagonalscale = MatDiagonalScale_SeqAIJTC;
  PetscFunctionReturn(PETSC_SUCCESS);
}
