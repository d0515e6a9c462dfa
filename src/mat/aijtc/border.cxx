/*
   Products of the MPI type on GPUs: the elements that others need leave first, the product with this process's columns hides their way, and one kernel adds what has come from others, with the sums that a solver wants.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/petsctcdevice.h>
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
  #include <../src/mat/aijtc/border.h>

/* What a matrix keeps of its border */
struct _n_MatAIJTCBorder {
  PetscTCHalo      halo;
  AIJTCBorder      border;
  PetscBool        sums;         /* of the product: does it bring them on all processes? */
  PetscInt         turn;         /* 0 or 1: which place the sums of the last product are in */
  PetscObjectId    id;           /* of the block of other processes' columns */
  PetscObjectState nonzerostate; /* of the matrix, for which it was made */
  PetscObjectState state;        /* of the block of other processes' columns, whose values it has */
};

PetscErrorCode MatAIJTCDestroyBorder(Mat_AIJTC *tc)
{
  PetscFunctionBegin;
  if (!tc->border) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(AIJTCBorderDestroy_CUDA(&tc->border->border));
  PetscCall(PetscTCHaloDestroy_CUDA(&tc->border->halo));
  PetscCall(PetscFree(tc->border));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCMakeBorder(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  PetscFunctionBegin;
  PetscCall(AIJTCBorderCreate_CUDA(m, nnz, i, j, a, static_cast<AIJTCBorder *>(ctx)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCRefreshBorder(PetscInt, PetscCount, const PetscInt[], const PetscInt[], const PetscScalar a[], void *ctx)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(AIJTCBorderRefresh_CUDA(static_cast<AIJTCBorder *>(ctx), a, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode MatAIJTCBuildBorder(Mat A, Mat_AIJTC *tc, Mat own, Mat B, Vec x, Vec y)
{
  const PetscInt *ghost, *ranges;
  const char     *why;
  PetscTCLayer    layer;
  PetscCount      nnz;
  PetscInt        nghosts;
  PetscMPIInt     tag;
  MPI_Comm        comm = PetscObjectComm((PetscObject)A);
  PetscTCComm     all  = {};
  PetscBool       plain;

  PetscFunctionBegin;
  PetscCall(MatAIJTCDestroyBorder(tc));
  PetscCall(PetscNew(&tc->border));
  tc->border->nonzerostate = A->nonzerostate;
  PetscCall(PetscObjectGetId((PetscObject)B, &tc->border->id));
  PetscCall(PetscTCLayerOf(comm, &layer, &why));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, NULL, &ghost));
  PetscCall(MatGetLocalSize(B, NULL, &nghosts));
  PetscCall(MatGetOwnershipRangesColumn(A, &ranges));
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &tag));
  PetscCall(PetscTCHaloCreate_CUDA(comm, tag, layer, nghosts, ghost, ranges, &tc->border->halo));
  PetscCall(MatAIJTCGetNonzeros(B, &nnz));
  if (nnz) PetscCall(MatAIJTCWithCSR_Host(B, MatAIJTCMakeBorder, &tc->border->border));
  else PetscCall(MatAIJTCMakeBorder(0, 0, NULL, NULL, NULL, &tc->border->border));
  PetscCall(PetscObjectStateGet((PetscObject)B, &tc->border->state));
  /* Products with columns of this process that have no entries bring no sums, but where there are no rows these are 0 */
  PetscCall(MatAIJTCGetNonzeros(own, &nnz));
  PetscCall(MatAIJTCMultIsPlain(own, x, x, y, &plain));
  all.comm = comm;
  PetscCallMPI(MPI_Comm_size(comm, &all.size));
  PetscCall(PetscTCCommAll(&all, (PetscBool)(plain && (nnz || !A->rmap->n)), &tc->border->sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The border for a product with vectors on the device, up to date, or NULL: the parent's product. Collective where there is none for this pattern yet */
static PetscErrorCode MatAIJTCGetBorder(Mat A, Vec x, Vec y, struct _n_MatAIJTCBorder **border)
{
  const MatAIJTCClass         *c = MatAIJTCClassOf(A);
  PetscObjectState             state;
  PetscObjectId                id;
  PetscBool                    dx, dy;
  Mat_AIJTC                   *tc;
  Mat                          block[2];
  cudaStream_t                 stream;
  enum cudaStreamCaptureStatus capturing;

  PetscFunctionBegin;
  *border = NULL;
  if (!c || !c->cuda || !A->assembled || A->structure_only) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCVecOnDevice(x, &dx));
  PetscCall(PetscTCVecOnDevice(y, &dy));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (!dx || !dy || A->boundtocpu || tc->settings.check) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetBlocks(A, block));
  PetscCall(PetscObjectGetId((PetscObject)block[1], &id));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaStreamIsCapturing(stream, &capturing));
  PetscCheck(capturing == cudaStreamCaptureStatusNone, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product of several processes cannot be captured in a CUDA graph: it waits for that one product of the others. Capture products of sequential matrices");
  if (!tc->border || tc->border->nonzerostate != A->nonzerostate || tc->border->id != id) PetscCall(MatAIJTCBuildBorder(A, tc, block[0], block[1], x, y));
  PetscCall(PetscObjectStateGet((PetscObject)block[1], &state));
  if (state != tc->border->state && tc->border->border.nnz) PetscCall(MatAIJTCWithCSR(block[1], MatAIJTCRefreshBorder, &tc->border->border));
  tc->border->state      = state;
  const PetscMPIInt late = PetscTCMissingRank(tc->border->halo.missing);

  PetscCheck(late < 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "A product has waited 60 seconds for elements of its vector from another process, which has failed or multiplies later. If it is to be so late: -petsctc_comm mpi");
  *border = tc->border;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends the elements of x, or of what waxpy makes, that others need */
static PetscErrorCode MatAIJTCBorderPush(struct _n_MatAIJTCBorder *border, const MatAIJTCWAXPY *waxpy, Vec x, PetscTCGhosts *ghosts)
{
  AIJTCWAXPY         of = waxpy ? waxpy->scalars : AIJTCWAXPY{};
  const PetscScalar *xa = NULL;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (waxpy) {
    PetscCall(VecCUDAGetArrayRead(waxpy->base, &of.base));
    PetscCall(VecCUDAGetArrayRead(waxpy->along, &of.along));
  } else PetscCall(VecCUDAGetArrayRead(x, &xa));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(PetscTCHaloPush_CUDA(&border->halo, xa, waxpy ? &of : NULL, ghosts, stream));
  PetscCall(PetscLogGpuTimeEnd());
  if (waxpy) {
    PetscCall(VecCUDARestoreArrayRead(waxpy->along, &of.along));
    PetscCall(VecCUDARestoreArrayRead(waxpy->base, &of.base));
  } else PetscCall(VecCUDARestoreArrayRead(x, &xa));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y <- y + B x, and the sums that are wanted, of w and u */
static PetscErrorCode MatAIJTCBorderAdd(Mat A, struct _n_MatAIJTCBorder *border, const PetscTCGhosts *ghosts, Vec w, Vec u, Vec y, AIJTCBorderSums *sums)
{
  Mat_AIJTC   *tc;
  cudaStream_t stream;
  PetscScalar *ya;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(PetscTCHaloAwait_CUDA(&border->halo, stream));
  if (!border->border.m && !ghosts->neighbors && !sums->nsums) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  if (w) PetscCall(VecCUDAGetArrayRead(w, &sums->w));
  if (u) PetscCall(VecCUDAGetArrayRead(u, &sums->u));
  PetscCall(VecCUDAGetArray(y, &ya));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(AIJTCBorderMultAdd_CUDA(&border->border, ghosts, (PetscBool)(tc->settings.mma == MAT_AIJTC_MMA_TENSOR), ya, sums, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(VecCUDARestoreArray(y, &ya));
  if (u) PetscCall(VecCUDARestoreArrayRead(u, &sums->u));
  if (w) PetscCall(VecCUDARestoreArrayRead(w, &sums->w));
  PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)border->border.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_MPIAIJTC(Mat A, Vec x, Vec y)
{
  const MatAIJTCClass      *c    = MatAIJTCClassOf(A);
  AIJTCBorderSums           none = {};
  struct _n_MatAIJTCBorder *border;
  PetscTCGhosts             ghosts;
  Mat                       block[2];

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetBorder(A, x, y, &border));
  if (!border) {
    PetscCall((*c->parent.mult)(A, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatAIJTCGetBlocks(A, block));
  PetscCall(MatAIJTCBorderPush(border, NULL, x, &ghosts));
  PetscCall((*block[0]->ops->mult)(block[0], x, y));
  PetscCall(MatAIJTCBorderAdd(A, border, &ghosts, NULL, NULL, y, &none));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   MatAIJTCMultSums() of several processes, with the sums of all. Whether there are is the same on all; whether the product makes its vector each process decides for itself, as that changes nothing that goes between them
*/
PetscErrorCode MatAIJTCMultSums_MPI(Mat A, const PetscTCAcross *across, const MatAIJTCWAXPY *waxpy, Vec x, Vec w, Vec u, Vec y, const PetscScalar **sums)
{
  AIJTCBorderSums           on = {};
  struct _n_MatAIJTCBorder *border;
  PetscTCGhosts             ghosts;
  PetscBool                 makes = PETSC_TRUE;
  PetscScalar              *place;
  Mat                       block[2];
  cudaStream_t              stream;

  PetscFunctionBegin;
  *sums = NULL;
  if (!across || !(across->rows > 0.0) || A->ops->mult != MatMult_MPIAIJTC) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetBorder(A, x, y, &border));
  if (!border || !border->sums) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetBlocks(A, block));
  if (waxpy) PetscCall(MatAIJTCMakesVector(block[0], x, y, &makes));
  if (!makes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(MAT_Mult, A, x, y, 0));
  PetscCall(MatAIJTCBorderPush(border, waxpy, x, &ghosts));
  PetscCall(MatAIJTCMultSums(block[0], PETSC_TRUE, NULL, waxpy, x, w, u, y, &on.from));
  PetscCheck(on.from || !A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product with this process's columns has no sums, which it had when the processes agreed");
  border->turn = 1 - border->turn;
  place        = border->border.sum + border->turn * AIJTC_BORDER_SUMS;
  on.nsums     = u ? 4 : 2;
  on.peers     = across->peers;
  if (across->peers) on.tag = ++*across->tag;
  else place = across->sum + (1 + border->turn) * PETSCTC_MAX_DOTS;
  on.to = place;
  PetscCall(MatAIJTCBorderAdd(A, border, &ghosts, w, u, y, &on));
  if (!across->peers) {
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall((*across->add)(across->ctx, on.nsums, place, stream));
  }
  *sums = place;
  PetscCall(PetscLogEventEnd(MAT_Mult, A, x, y, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
