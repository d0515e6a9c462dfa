/*
   When a solve may be fused. The matrix and the preconditioner are free: products go through KSP_MatMult() and KSP_PCApply(), so null spaces, transposed solves and any
   type work as in PETSc. What decides is where the vectors are and what the solver is asked to record.
*/
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctcdevice.h>

static PetscErrorCode KSPTCVecBackend(Vec v, KSPTCBackend *backend, PetscBool *known)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(PetscTCVecOnDevice(v, &device));
  *backend = device ? KSPTC_CUDA : KSPTC_HOST;
  *known   = PETSC_TRUE;
  /* A CUDA vector that is not on the device is bound to the CPU: its values are in host memory as those of any other */
  if (!device) PetscCall(PetscObjectTypeCompareAny((PetscObject)v, known, VECSEQ, VECMPI, VECSEQCUDA, VECMPICUDA, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCChooseBackend(KSP ksp, KSPTC tc, const char **why)
{
  KSPTCBackend other;
  PetscBool    known;

  PetscFunctionBegin;
  PetscCall(KSPTCVecBackend(ksp->vec_sol, &tc->backend, &known));
  if (!known) *why = "the vectors are neither seq nor seqcuda";
  for (PetscInt i = 0; i < ksp->nwork && !*why; i++) {
    PetscCall(KSPTCVecBackend(ksp->work[i], &other, &known));
    if (!known) *why = "the vectors are neither seq nor seqcuda";
    else if (other != tc->backend) *why = "solution and work vectors are in different memories";
  }
  if (!PETSCTC_HAVE_CUDA && tc->backend == KSPTC_CUDA && !*why) *why = "on a GPU fused steps compute in double precision only";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Steps look at no sizes: where these do not fit, PETSc's solver is to say so */
static PetscErrorCode KSPTCSizesFit(KSP ksp, PetscBool *fit)
{
  Mat      A[2];
  PetscInt n, m, k;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
  PetscCall(VecGetLocalSize(ksp->vec_rhs, &m));
  *fit = (PetscBool)(m == n);
  for (PetscInt i = 0; i < ksp->nwork && *fit; i++) {
    PetscCall(VecGetLocalSize(ksp->work[i], &m));
    *fit = (PetscBool)(m == n);
  }
  PetscCall(PCGetOperators(ksp->pc, &A[0], &A[1]));
  for (Mat M : A) {
    PetscCall(MatGetLocalSize(M, &m, &k));
    if (m != n || k != n) *fit = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `why` when the solve cannot be fused, else the backend that computes it */
PetscErrorCode KSPTCLegal(KSP ksp, KSPTC tc, const char **why)
{
  PetscBool fit = PETSC_FALSE;

  PetscFunctionBegin;
  *why           = NULL;
  tc->only_norms = tc->norm_only;
  PetscCall(PetscTCCommCreate(PetscObjectComm((PetscObject)ksp), &tc->comm));
  PetscCall((*tc->prepare)(ksp, tc, why));
  if (!tc->fused) *why = "fusing is switched off";
  else if (ksp->calc_sings) *why = "eigenvalue estimates were requested";
  if (!*why) PetscCall(KSPTCChooseBackend(ksp, tc, why));
  if (!*why) PetscCall(KSPTCSizesFit(ksp, &fit));
  if (!*why && !fit) *why = "matrix and vectors differ in size";
  PetscCall(KSPTCAgree(ksp, tc, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a null space to remove KSP_PCApply() and, from the left, KSP_PCApplyBAorAB() end with a projection */
PetscErrorCode KSPTCProjectionOf(KSP ksp, KSPTCProjection *projection)
{
  Mat          A;
  MatNullSpace nullsp;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  if (ksp->transpose_solve) PetscCall(MatGetTransposeNullSpace(A, &nullsp));
  else PetscCall(MatGetNullSpace(A, &nullsp));
  if (!nullsp || ksp->pc_side != PC_LEFT) *projection = KSPTC_PROJECTION_NONE;
  else *projection = nullsp->has_cnst && !nullsp->n && !nullsp->remove ? KSPTC_PROJECTION_CONSTANT : KSPTC_PROJECTION_OTHER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A debugging PETSc that is to stop at errors looks at each result of a product and of the preconditioner: these are then made one by one */
PetscBool KSPTCChecksResults(KSP ksp)
{
  return (PetscBool)(PetscDefined(USE_DEBUG) && ksp->pc->erroriffailure);
}

/* Is KSP_PCApply() the identity, of which nobody wants each result checked? Then z is r and needs no copy */
PetscErrorCode KSPTCIdentityPC(KSP ksp, PetscBool *identity)
{
  KSPTCProjection projection = KSPTC_PROJECTION_NONE;

  PetscFunctionBegin;
  PetscCall(KSPTCProjectionOf(ksp, &projection));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, identity));
  if (projection != KSPTC_PROJECTION_NONE || KSPTCChecksResults(ksp)) *identity = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before an iteration: a monitor of the user's may have set a preconditioner, but where that is one number there is none */
PetscErrorCode KSPTCIdentityKeep(KSP ksp, KSPTC tc, PetscBool *identity)
{
  PetscFunctionBegin;
  if (*identity && tc->number == 0.0) PetscCall(KSPTCIdentityPC(ksp, identity));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is KSP_PCApply(), which has run, the product with a diagonal or with blocks on it, of which nobody wants each result checked, and then the projection that it was? */
static PetscErrorCode KSPTCIsDiagonalPC(KSP ksp, const KSPTCDiagonal *D, PetscBool *diagonal)
{
  KSPTCProjection projection = KSPTC_PROJECTION_NONE;
  PetscBool       none, stand;

  PetscFunctionBegin;
  PetscCall(KSPTCProjectionOf(ksp, &projection));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, diagonal));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &none));
  PetscCall(KSPTCBlocksStand(ksp, D, &stand));
  if (D->bs > 1) *diagonal = PETSC_TRUE;
  if (projection == KSPTC_PROJECTION_CONSTANT && D->projects) *diagonal = (PetscBool)(*diagonal || none); /* of ones: there is z to be made */
  else if (projection != KSPTC_PROJECTION_NONE) *diagonal = PETSC_FALSE;
  if (!stand || projection != D->projection || !ksp->pc->setupcalled || KSPTCChecksResults(ksp)) *diagonal = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At the beginning of a solve: what the preconditioner has been made for */
PetscErrorCode KSPTCDiagonalMark(KSP ksp, KSPTCDiagonal *D)
{
  PetscFunctionBegin;
  D->pc = ksp->pc;
  PetscCall(KSPTCProjectionOf(ksp, &D->projection));
  PetscCall(PCGetOperators(ksp->pc, NULL, &D->P));
  PetscCall(PetscObjectStateGet((PetscObject)D->P, &D->state));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &D->jacobi));
  if (D->jacobi) PetscCall(PCJacobiGetType(ksp->pc, &D->type));
  PetscCall(KSPTCBlocksMark(ksp, D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the preconditioner a diagonal or blocks on it, and still what it was then? A monitor of the user's may have changed it or the matrix, which PETSc would see at the next application */
static PetscErrorCode KSPTCDiagonalStands(KSP ksp, const KSPTCDiagonal *D, PetscBool *stands)
{
  Mat              P;
  PetscObjectState state;
  PetscBool        jacobi;
  PCJacobiType     type = D->type;

  PetscFunctionBegin;
  PetscCall(KSPTCIsDiagonalPC(ksp, D, stands));
  if (!*stands) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  PetscCall(PetscObjectStateGet((PetscObject)P, &state));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (jacobi) PetscCall(PCJacobiGetType(ksp->pc, &type));
  *stands = (PetscBool)(ksp->pc == D->pc && P == D->P && (state == D->state || ksp->pc->reusepreconditioner) && jacobi == D->jacobi && type == D->type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets D->d, made like v if it is not there or unlike it, to the diagonal or the blocks that the preconditioner is; NULL if it is neither, or no more what it was at KSPTCDiagonalMark() */
PetscErrorCode KSPTCDiagonalTake(KSP ksp, Vec v, KSPTCDiagonal *D)
{
  PetscBool diagonal, alike = PETSC_FALSE;
  PetscInt  n, m            = 0;

  PetscFunctionBegin;
  PetscCall(KSPTCDiagonalStands(ksp, D, &diagonal));
  PetscCall(KSPTCAll(ksp, &diagonal));
  if (diagonal && D->bs > 1) {
    PetscCall(KSPTCBlocksTake(ksp, v, D));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetLocalSize(v, &n));
  if (D->d) {
    PetscCall(PetscObjectTypeCompare((PetscObject)D->d, ((PetscObject)v)->type_name, &alike));
    PetscCall(VecGetLocalSize(D->d, &m));
  }
  if (!diagonal || !alike || n != m) PetscCall(VecDestroy(&D->d));
  if (!diagonal) PetscFunctionReturn(PETSC_SUCCESS);
  D->key.bs = 0;
  if (!D->d) PetscCall(VecDuplicate(v, &D->d));
  if (D->jacobi) PetscCall(PCJacobiGetDiagonal(ksp->pc, D->d, NULL));
  else PetscCall(VecSet(D->d, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before an iteration: unless the preconditioner is what it was D->d is destroyed, and the preconditioner applied by itself */
PetscErrorCode KSPTCDiagonalKeep(KSP ksp, KSPTCDiagonal *D)
{
  PetscBool keep;

  PetscFunctionBegin;
  if (!D->d) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCDiagonalStands(ksp, D, &keep));
  if (!keep) PetscCall(VecDestroy(&D->d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCDiagonalRelease(KSPTCDiagonal *D)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&D->d));
  PetscCall(PetscFree(D->sizes));
  D->key.bs = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
