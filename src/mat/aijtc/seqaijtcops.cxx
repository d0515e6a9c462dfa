/* Operations of the sequential type, other than products, in which AIJCUSPARSE asks for its exact type, compares tables, or is wrong. docs/mat-inheritance.md lists the latter. */
#include <petsctc/private/aijtcimpl.h>

#if PETSCTC_HAVE_CUDA
/* ---- operations in which AIJCUSPARSE compares type names or tables */

static PetscErrorCode MatScale_SeqAIJTC(Mat A, PetscScalar a)
{
  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*A->ops->scale)(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAXPY_SeqAIJTC(Mat Y, PetscScalar a, Mat X, MatStructure str)
{
  PetscFunctionBegin;
  MatAIJTCCallParent(Y, X, (*Y->ops->axpy)(Y, a, X, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetOption_SeqAIJTC(Mat A, MatOption o, PetscBool flg)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*c->parent.setoption)(A, o, flg)); /* also while hashing, when the scope changes nothing */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- where AIJCUSPARSE is wrong */

/* The parent leaves the mask at BOTH, and so forgets on unbinding what the host changed while bound. The device layouts are freed while bound. */
static PetscErrorCode MatBindToCPU_SeqAIJTC(Mat A, PetscBool flg)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat_AIJTC     *tc;

  PetscFunctionBegin;
  if (!flg && A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall((*c->parent.bindtocpu)(A, flg));
  PetscCall(MatAIJTCGetData(A, &tc));
  if (flg) {
    PetscCall(MatAIJTCDestroyLayout(tc));
    PetscCall(MatAIJTCDestroyTransposed(A));
  }
  PetscCall(MatAIJTCBrand(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings values to the host that only the device has */
PetscErrorCode MatAIJTCSyncHost(Mat A)
{
  const PetscScalar *v;

  PetscFunctionBegin;
  if (!A || A->offloadmask != PETSC_OFFLOAD_GPU) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetArrayRead(A, &v));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent wrote the host's values and told nobody */
PetscErrorCode MatAIJTCHostIsNewest(Mat A)
{
  PetscFunctionBegin;
  if (A->offloadmask == PETSC_OFFLOAD_BOTH || A->offloadmask == PETSC_OFFLOAD_GPU) A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent works on the host arrays as they are, and leaves the device with the old pattern */
static PetscErrorCode MatEliminateZeros_SeqAIJTC(Mat A, PetscBool keep)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall(MatAIJTCSyncHost(A));
  PetscCall((*c->parent.eliminatezeros)(A, keep));
  PetscCall(MatAIJTCHostIsNewest(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTranspose_SeqAIJTC(Mat A, MatReuse reuse, Mat *B)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.transpose)(A, reuse, B));
  if (reuse == MAT_REUSE_MATRIX) PetscCall(MatAIJTCHostIsNewest(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLoad_SeqAIJTC(Mat A, PetscViewer viewer)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.load)(A, viewer));
  PetscCall(MatAIJTCHostIsNewest(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Assembly by hash puts the operations back that a matrix had before it was bound to the CPU: bind it again */
PetscErrorCode MatAIJTCSettleBinding(Mat A)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscBool            bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  if (c->cuda && bound && A->ops->mult == c->mine.mult) PetscCall(MatBindToCPU_SeqAIJTC(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SeqAIJTC(Mat A, MatAssemblyType type)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.assemblyend)(A, type));
  PetscCall(MatAIJTCSettleBinding(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent copies the host array as it is, even when the device has newer values */
static PetscErrorCode MatStoreValues_SeqAIJTC(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAIJTCSyncHost(A));
  PetscCall((*(PetscErrorCode(*)(Mat))MatAIJTCTheirs(A, "MatStoreValues_C"))(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatRetrieveValues_SeqAIJTC(Mat A)
{
  PetscFunctionBegin;
  PetscCall((*(PetscErrorCode(*)(Mat))MatAIJTCTheirs(A, "MatRetrieveValues_C"))(A));
  PetscCall(MatAIJTCHostIsNewest(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJCopySubArray_SeqAIJTC(Mat A, PetscInt n, const PetscInt idx[], PetscScalar v[])
{
  const auto theirs = (PetscErrorCode(*)(Mat, PetscInt, const PetscInt[], PetscScalar[]))MatAIJTCTheirs(A, "MatSeqAIJCopySubArray_C");

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*theirs)(A, n, idx, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent makes a matrix of A's type, which knows nothing of A's settings */
static PetscErrorCode MatPermute_SeqAIJTC(Mat A, IS rows, IS cols, Mat *B)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.permute)(A, rows, cols, B));
  PetscCall(MatAIJTCSettingsCopy(A, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCSetOps_SeqOther(MatAIJTCClass *c)
{
  PetscFunctionBegin;
  c->mine.permute = MatPermute_SeqAIJTC;
  PetscCall(MatAIJTCSetOps_Diagonal(c));
#if PETSCTC_HAVE_CUDA
  if (c->cuda) {
    struct _MatOps *m = &c->mine;

    PetscCall(MatAIJTCSetOps_Reductions(c));
    m->scale       = MatScale_SeqAIJTC;
    m->axpy        = MatAXPY_SeqAIJTC;
    m->setoption   = MatSetOption_SeqAIJTC;
    m->bindtocpu   = MatBindToCPU_SeqAIJTC;
    m->assemblyend = MatAssemblyEnd_SeqAIJTC;
    m->transpose   = MatTranspose_SeqAIJTC;
    if (c->parent.eliminatezeros) m->eliminatezeros = MatEliminateZeros_SeqAIJTC;
    m->load        = MatLoad_SeqAIJTC;
    c->composed[2] = {"MatSeqAIJCopySubArray_C", (MatAIJTCFn)MatSeqAIJCopySubArray_SeqAIJTC, NULL};
    c->composed[3] = {"MatStoreValues_C", (MatAIJTCFn)MatStoreValues_SeqAIJTC, NULL};
    c->composed[4] = {"MatRetrieveValues_C", (MatAIJTCFn)MatRetrieveValues_SeqAIJTC, NULL};
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
