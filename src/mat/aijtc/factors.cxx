/*
   Factorisations: the parent's, found under our type name. Every phase runs in parent scope, because it copies A's composed functions and, in a debug PETSc, asks for the exact
   type.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/petsctcdevice.h>

static constexpr char FACTOR_CONTAINER[] = "__AIJTC_factor";

/*
   cuSPARSE's transposed LU solves go on with the values of the first that was solved with, because PETSc does not analyse again for them. So once there was such a solve, every later
   numeric phase is followed by one on a factor made for the purpose, whose first transposed solve is right; those of LU and ILU need what the symbolic phase was given.
*/
typedef struct {
  struct _MatOps theirs; /* the slots of the factor that ours stand before */
  PetscBool      cuda;
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *);
  IS            row, col; /* of the symbolic phase */
  MatFactorInfo info;
  PetscBool     transposed; /* solved with, transposed */
  Mat           again;      /* for the transposed solves; NULL: the factor itself */
} MatAIJTCFactor;

static PetscErrorCode MatAIJTCFactorDestroy(PetscCtxRt ctx)
{
  MatAIJTCFactor *f = *(MatAIJTCFactor **)ctx;

  PetscFunctionBegin;
  PetscCall(ISDestroy(&f->row));
  PetscCall(ISDestroy(&f->col));
  PetscCall(MatDestroy(&f->again));
  PetscCall(PetscFree(f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCFactorWrap(Mat, MatAIJTCFactor *);

static PetscErrorCode MatAIJTCGetFactorData(Mat F, MatAIJTCFactor **f)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, FACTOR_CONTAINER, f));
  PetscCheck(*f, PetscObjectComm((PetscObject)F), PETSC_ERR_PLIB, "The factor lost what its phases need");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Remembers the arguments of a symbolic phase of LU or ILU */
static PetscErrorCode MatAIJTCFactorArguments(MatAIJTCFactor *f, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  if (!f->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectReference((PetscObject)row));
  PetscCall(PetscObjectReference((PetscObject)col));
  PetscCall(ISDestroy(&f->row));
  PetscCall(ISDestroy(&f->col));
  f->row        = row;
  f->col        = col;
  f->info       = *info;
  f->transposed = PETSC_FALSE;
  PetscCall(MatDestroy(&f->again));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is in parent scope */
static PetscErrorCode MatAIJTCFactorAgain(Mat F, Mat A, MatAIJTCFactor *f, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&f->again));
  PetscCall((*f->create)(A, F->factortype, &f->again));
  if (F->factortype == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(f->again, A, f->row, f->col, &f->info));
  else PetscCall(MatILUFactorSymbolic(f->again, A, f->row, f->col, &f->info));
  PetscCall(MatLUFactorNumeric(f->again, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A phase: theirs, in A's parent scope; the functions that it installs are wrapped afterwards. Slot is a member of struct _MatOps, Args what follows (F, A) */
template <auto Slot, typename... Args>
static PetscErrorCode MatAIJTCFactorPhase(Mat F, Mat A, Args... args)
{
  MatAIJTCFactor *f;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetFactorData(F, &f));
  F->ops->*Slot = f->theirs.*Slot;
  MatAIJTCCallParent(A, NULL, (*(f->theirs.*Slot))(F, A, args...));
  if constexpr (sizeof...(Args) == 3) PetscCall(MatAIJTCFactorArguments(f, args...)); /* the symbolic phases of LU and ILU */
  if constexpr (sizeof...(Args) == 1) {
    if (f->transposed) MatAIJTCCallParent(A, NULL, MatAIJTCFactorAgain(F, A, f, args...));
  }
  PetscCall(MatAIJTCFactorWrap(F, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cuSPARSE's triangular solves fill a host vector's device copy, which nobody reads: give them device vectors */
template <auto Slot>
static PetscErrorCode MatAIJTCFactorSolve(Mat F, Vec b, Vec x)
{
  PetscErrorCode (*solve)(Mat, Vec, Vec) = NULL;
  PetscBool       bdevice, xdevice;
  MatAIJTCFactor *f;
  Vec             bcopy, xcopy;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetFactorData(F, &f));
  if (Slot == &_MatOps::solvetranspose && f->row) {
    f->transposed = PETSC_TRUE;
    if (f->again) { /* made by their package, so its functions are theirs */
      F     = f->again;
      solve = F->ops->solvetranspose;
    }
  }
  if (!solve) solve = f->theirs.*Slot;
  PetscCall(PetscTCVecOnDevice(b, &bdevice));
  PetscCall(PetscTCVecOnDevice(x, &xdevice));
  if (bdevice && xdevice) {
    PetscCall((*solve)(F, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatCreateVecs(F, &xcopy, &bcopy));
  PetscCall(VecCopy(b, bcopy));
  PetscCall((*solve)(F, bcopy, xcopy));
  PetscCall(VecCopy(xcopy, x));
  PetscCall(VecDestroy(&bcopy));
  PetscCall(VecDestroy(&xcopy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts ours before the function that F has in this slot, if it is not there already */
template <auto Slot, typename Fn>
static void Wrap(Mat F, MatAIJTCFactor *f, Fn ours)
{
  if (!(F->ops->*Slot) || F->ops->*Slot == ours) return;
  f->theirs.*Slot = F->ops->*Slot;
  F->ops->*Slot   = ours;
}

static PetscErrorCode MatAIJTCFactorWrap(Mat F, MatAIJTCFactor *f)
{
  using Ops  = struct _MatOps;
  using Info = const MatFactorInfo *;

  PetscFunctionBegin;
  Wrap<&Ops::lufactorsymbolic>(F, f, MatAIJTCFactorPhase<&Ops::lufactorsymbolic, IS, IS, Info>);
  Wrap<&Ops::ilufactorsymbolic>(F, f, MatAIJTCFactorPhase<&Ops::ilufactorsymbolic, IS, IS, Info>);
  Wrap<&Ops::choleskyfactorsymbolic>(F, f, MatAIJTCFactorPhase<&Ops::choleskyfactorsymbolic, IS, Info>);
  Wrap<&Ops::iccfactorsymbolic>(F, f, MatAIJTCFactorPhase<&Ops::iccfactorsymbolic, IS, Info>);
  Wrap<&Ops::lufactornumeric>(F, f, MatAIJTCFactorPhase<&Ops::lufactornumeric, Info>);
  Wrap<&Ops::choleskyfactornumeric>(F, f, MatAIJTCFactorPhase<&Ops::choleskyfactornumeric, Info>);
  if (f->cuda) {
    Wrap<&Ops::solve>(F, f, MatAIJTCFactorSolve<&Ops::solve>);
    Wrap<&Ops::solvetranspose>(F, f, MatAIJTCFactorSolve<&Ops::solvetranspose>);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factor that `create` makes of A as a plain parent, its phases wrapped */
static PetscErrorCode MatAIJTCGetFactor(Mat A, MatFactorType type, PetscErrorCode (*create)(Mat, MatFactorType, Mat *), PetscBool cuda, Mat *F)
{
  MatAIJTCFactor *f;

  PetscFunctionBegin;
  MatAIJTCCallParent(A, NULL, (*create)(A, type, F));
  if (!*F) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&f));
  f->cuda   = cuda;
  f->create = create;
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, FACTOR_CONTAINER, f, MatAIJTCFactorDestroy));
  PetscCall(MatAIJTCFactorWrap(*F, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* A handler declines a matrix with the host parent: PETSc goes on to the next package, as it does for AIJ */
static PetscErrorCode MatGetFactor_seqaijtc_cusparse(Mat A, MatFactorType type, Mat *F)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *);

  PetscFunctionBegin;
  *F = NULL;
  if (!c || !c->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, c->parenttype, type, NULL, NULL, &create));
  PetscCheck(create, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "PETSc has no %s factorisation of type %s for %s", MatFactorTypes[type], MATSOLVERCUSPARSE, c->parenttype);
  PetscCall(MatAIJTCGetFactor(A, type, create, PETSC_TRUE, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
   PETSc's own package is found for our type through its entry for SEQAIJ, by the prefix of the name and before any entry that we could add. So the entry itself is taken: a
   matrix that is not ours goes on to PETSc's function.
*/
static PetscErrorCode (*petsc_create[MAT_FACTOR_NUM_TYPES])(Mat, MatFactorType, Mat *);

static PetscErrorCode MatGetFactor_seqaij_petsc_AIJTC(Mat A, MatFactorType type, Mat *F)
{
  PetscFunctionBegin;
  *F = NULL;
  if (MatAIJTCClassOf(A)) PetscCall(MatAIJTCGetFactor(A, type, petsc_create[type], PETSC_FALSE, F));
  else PetscCall((*petsc_create[type])(A, type, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCRegisterFactors(void)
{
  PetscFunctionBegin;
  for (MatFactorType type : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC}) {
#if PETSCTC_HAVE_CUDA
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJTC, type, MatGetFactor_seqaijtc_cusparse));
#endif
    PetscErrorCode (*create)(Mat, MatFactorType, Mat *);

    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, type, NULL, NULL, &create));
    PetscCheck(create, PETSC_COMM_SELF, PETSC_ERR_LIB, "PETSc has no %s factorisation of its own for %s", MatFactorTypes[type], MATSEQAIJ);
    petsc_create[type] = create;
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJ, type, MatGetFactor_seqaij_petsc_AIJTC));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
