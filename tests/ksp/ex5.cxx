static char help[] = "The life of a fused solver: types away and back, reset, changed matrices, nesting, options, counts, what it hands out.\n\n";

#include "hard.h"

static PetscErrorCode Counts(KSP ksp, PetscInt fused, PetscInt parent, PetscBool *ok)
{
  PetscInt f, p;

  PetscFunctionBeginUser;
  PetscCall(ABGetCounts(ksp, &f, &p));
  *ok = f == fused && p == parent ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ||b - A x|| <= tol ||b|| */
static PetscErrorCode Solves(Mat A, Vec b, Vec x, PetscReal tol, PetscBool *ok)
{
  PetscReal nr, nb;
  Vec       r;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &nr));
  PetscCall(VecNorm(b, NORM_2, &nb));
  PetscCall(VecDestroy(&r));
  *ok = nr <= tol * nb ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object through all types: what one type leaves with it must not reach the next */
static PetscErrorCode Types(Mat A, Vec b, Vec x)
{
  const KSPType types[] = {KSPCG, "tccg", KSPBCGS, "tcbcgs", "tccg", KSPGMRES, "tcbcgs", KSPCG, "tccr", "tccg", "tccr", KSPCR, "tcbcgs", "tccr"};
  KSP           ksp;
  PetscBool     ok = PETSC_TRUE, good;
  PetscErrorCode (*f)(void);
  PetscObject container;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  for (KSPType type : types) {
    const PetscBool ours = (PetscBool)!strncmp(type, "tc", 2), cg = (PetscBool)(!strcmp(type, KSPCG) || !strcmp(type, "tccg"));

    PetscCall(KSPSetType(ksp, type));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Solves(A, b, x, Tolerance(1e-6), &good));
    if (!good) ok = PETSC_FALSE;
    PetscCall(Counts(ksp, ours ? 1 : 0, 0, &good));
    if (!good) ok = PETSC_FALSE;
    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGSetRadius_C", &f));
    if ((f != NULL) != (bool)cg) ok = PETSC_FALSE;
    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPTCGetSolveCounts_C", &f));
    if ((f != NULL) != (bool)ours) ok = PETSC_FALSE;
    PetscCall(PetscObjectQuery((PetscObject)ksp, "__KSPTC", &container));
    if ((container != NULL) != (bool)ours) ok = PETSC_FALSE;
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(ABSay("types away and back", ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reset and a system of another size, then new values in the same matrix */
static PetscErrorCode ResetAndChange(KSPType type, Mat A, Vec b, Vec x)
{
  KSP       ksp;
  Mat       S;
  Vec       bs, xs;
  PetscBool ok[5];

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(4, 5, 0.0, PETSC_FALSE, &S));
  PetscCall(MatCreateVecs(S, &xs, &bs));
  PetscCall(ABVecFill(bs, 4));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-9), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[0]));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPSetOperators(ksp, S, S));
  PetscCall(KSPSolve(ksp, bs, xs));
  PetscCall(Solves(S, bs, xs, Tolerance(1e-6), &ok[1]));
  PetscCall(MatScale(S, 3.0));
  PetscCall(MatShift(S, 0.5));
  PetscCall(KSPSolve(ksp, bs, xs));
  PetscCall(Solves(S, bs, xs, Tolerance(1e-6), &ok[2]));
  PetscCall(KSPSolve(ksp, xs, xs));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[3]));
  PetscCall(Counts(ksp, 5, 0, &ok[4]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&S));
  PetscCall(VecDestroy(&bs));
  PetscCall(VecDestroy(&xs));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, ", type));
  PetscCall(ABSay("reset, other size, changed values", (PetscBool)(ok[0] && ok[1] && ok[2] && ok[3] && ok[4])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two objects by turns, and the same bits each time */
static PetscErrorCode Alternate(KSPType type, Mat A, Vec b)
{
  KSP       ksp[2];
  PetscBool ok = PETSC_TRUE;
  ABRun     first[2], run;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    const ABCase c = {"", A, NULL, b, NULL, k ? PCJACOBI : PCNONE, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, NULL, NULL};

    PetscCall(ABCreate(&c, type, &ksp[k]));
    PetscCall(ABSolve(&c, ksp[k], &first[k]));
  }
  for (int k = 0; k < 6; k++) {
    const ABCase c = {"", A, NULL, b, NULL, NULL, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, NULL, NULL};
    PetscBool    same;

    PetscCall(ABSolve(&c, ksp[k % 2], &run));
    if (run.its != first[k % 2].its || run.its < 5) ok = PETSC_FALSE;
    PetscCall(PetscArraycmp(run.hist, first[k % 2].hist, run.nhist, &same));
    if (!same) ok = PETSC_FALSE;
    PetscCall(VecEqual(run.x, first[k % 2].x, &same));
    if (!same) ok = PETSC_FALSE;
    PetscCall(VecDestroy(&run.x));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPDestroy(&ksp[k]));
    PetscCall(VecDestroy(&first[k].x));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, ", type));
  PetscCall(ABSay("two by turns, the same bits", ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The preconditioner is a few iterations of another solver, whose type ctx names */
static PetscErrorCode TuneNested(KSP ksp, void *ctx)
{
  PC  pc;
  KSP inner;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCKSP));
  PetscCall(PCKSPGetKSP(pc, &inner));
  PetscCall(KSPSetType(inner, (KSPType)ctx));
  PetscCall(KSPSetNormType(inner, KSP_NORM_NONE));
  PetscCall(KSPSetTolerances(inner, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 3));
  PetscCall(KSPGetPC(inner, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nested(Mat A, Vec b, KSPType stock, KSPType fused)
{
  KSP          ksp;
  ABRun        run[2];
  char         text[256];
  const ABCase c[] = {
    {"", A, NULL, b, NULL, PCNONE, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, TuneNested, (void *)stock},
    {"", A, NULL, b, NULL, PCNONE, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, TuneNested, (void *)fused}
  };

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(ABCreate(&c[k], k ? fused : stock, &ksp));
    PetscCall(ABSolve(&c[k], ksp, &run[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABCompareRuns(&run[0], &run[1], 0, text, sizeof(text)));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  if (text[0]) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %s\n", text));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, ", fused));
  PetscCall(ABSay("nested", text[0] ? PETSC_FALSE : PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetObjective(KSP ksp, PetscReal *obj)
{
  PetscErrorCode (*get)(KSP, PetscReal *);

  PetscFunctionBeginUser;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", &get));
  if (get) PetscCall((*get)(ksp, obj));
  else *obj = NAN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 1/2 x'Ax - x'b, from a fused solve and from one that was not. With a nonzero guess KSPCG starts from another constant: there the two must agree */
static PetscErrorCode Objective(Mat A, Vec b, Vec x0)
{
  PetscBool ok = PETSC_TRUE;

  PetscFunctionBeginUser;
  for (int k = 0; k < 12; k++) {
    const PCType      pcs[]   = {PCNONE, PCJACOBI};
    const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE};
    PetscInt          its     = 9;
    const ABCase      c       = {"", A, NULL, b, k / 6 ? x0 : NULL, pcs[k % 2], norms[k / 2 % 3], PC_SIDE_DEFAULT, 0, TuneMaxIt, &its};
    KSP               ksp;
    ABRun             run;
    Vec               Ax;
    PetscScalar       xAx, xb;
    PetscReal         obj, own, fused = 0.0;

    PetscCall(ABCreate(&c, "tccg", &ksp));
    for (int path = 0; path < 2; path++) {
      if (path) PetscCall(KSPCGSetObjectiveTarget(ksp, -1e30));
      PetscCall(ABSolve(&c, ksp, &run));
      PetscCall(VecDuplicate(b, &Ax));
      PetscCall(MatMult(A, run.x, Ax));
      PetscCall(VecDot(run.x, Ax, &xAx));
      PetscCall(VecDot(run.x, b, &xb));
      own = 0.5 * PetscRealPart(xAx) - PetscRealPart(xb);
      PetscCall(GetObjective(ksp, &obj));
      if (c.x0 && path == 0) fused = obj;
      if (c.x0) own = fused;
      if (!ABNear(obj, own, Tolerance(1e-9), 0.0) || run.fused != 1 || run.parent != path) ok = PETSC_FALSE;
      PetscCall(VecDestroy(&Ax));
      PetscCall(VecDestroy(&run.x));
    }
    PetscCall(KSPCGUseSingleReduction(ksp, PETSC_TRUE));
    PetscCall(GetObjective(ksp, &obj));
    if (!PetscIsNanReal(obj)) ok = PETSC_FALSE;
    PetscCall(KSPCGUseSingleReduction(ksp, PETSC_FALSE));
    PetscCall(GetObjective(ksp, &obj));
    if (!ABNear(obj, own, Tolerance(1e-9), 0.0)) ok = PETSC_FALSE;
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABSay("objective function", ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Columns(KSPType type, Mat A)
{
  KSP       ksp;
  Mat       B, X;
  Vec       b, x;
  PetscInt  n;
  PetscBool ok = PETSC_TRUE, good;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, 3, NULL, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecWrite(B, k, &b));
    PetscCall(ABVecFill(b, k + 1));
    PetscCall(MatDenseRestoreColumnVecWrite(B, k, &b));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-9), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPMatSolve(ksp, B, X));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecRead(B, k, &b));
    PetscCall(MatDenseGetColumnVecRead(X, k, &x));
    PetscCall(Solves(A, b, x, Tolerance(1e-6), &good));
    if (!good) ok = PETSC_FALSE;
    PetscCall(MatDenseRestoreColumnVecRead(X, k, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, k, &b));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, ", type));
  PetscCall(ABSay("block of right-hand sides", ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The guess of a solve with right preconditioning must not be added to the solution of the next one, which has none */
static PetscErrorCode Guess(Mat A, Vec b, Vec x0)
{
  KSP       ksp;
  Vec       x;
  PetscBool ok[5];

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x0, &x));
  PetscCall(VecCopy(x0, x));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, "tcbcgs"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-9), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[0]));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[1]));
  PetscCall(PetscOptionsSetValue(NULL, "-guess_ksp_tcbcgs_fused", "false"));
  PetscCall(KSPSetOptionsPrefix(ksp, "guess_"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(VecCopy(x0, x));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[2]));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(A, b, x, Tolerance(1e-6), &ok[3]));
  PetscCall(Counts(ksp, 1, 3, &ok[4]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(ABSay("tcbcgs, right side with a guess, then without", (PetscBool)(ok[0] && ok[1] && ok[2] && ok[3] && ok[4])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors that no step knows */
static PetscErrorCode Nest(KSPType type, Mat A)
{
  KSP       ksp;
  Mat       blocks[4] = {A, NULL, NULL, A}, N;
  Vec       b, x;
  PetscBool ok[2];

  PetscFunctionBeginUser;
  PetscCall(MatCreateNest(PETSC_COMM_SELF, 2, NULL, 2, NULL, blocks, &N));
  PetscCall(MatNestSetVecType(N, VECNEST));
  PetscCall(MatCreateVecs(N, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetOperators(ksp, N, N));
  {
    PC pc;

    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCNONE));
  }
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Solves(N, b, x, Tolerance(1e-6), &ok[0]));
  PetscCall(Counts(ksp, 0, 1, &ok[1]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, ", type));
  PetscCall(ABSay("nested vectors go PETSc's path", (PetscBool)(ok[0] && ok[1])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The public function: what it says, and its error for other types. The plugin is loaded, not linked, so it is found by name */
static PetscErrorCode PublicCounts(Mat A, Vec b, Vec x)
{
  KSP            ksp;
  PetscInt       fused = -1, parent = -1;
  PetscErrorCode ierr, (*get)(KSP, PetscInt *, PetscInt *);

  PetscFunctionBeginUser;
  PetscCall(PetscDLSym(NULL, "KSPTCGetSolveCounts", (void **)&get));
  PetscCheck(get, PETSC_COMM_SELF, PETSC_ERR_LIB, "KSPTCGetSolveCounts() is not exported");
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, "tccg"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall((*get)(ksp, &fused, &parent));
  PetscCall((*get)(ksp, NULL, NULL));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = (*get)(ksp, &fused, &parent);
  PetscCall(PetscPopErrorHandler());
  PetscCall(KSPDestroy(&ksp));
  PetscCall(ABSay("KSPTCGetSolveCounts()", (PetscBool)(fused == 1 && parent == 0 && ierr == PETSC_ERR_SUP)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options, and what -ksp_view says */
static PetscErrorCode Options(KSPType type, Mat A, Vec b, Vec x)
{
  char      name[64];
  KSP       ksp;
  PC        pc;
  PetscBool ok[3];

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_ahead", type)); /* the view does not depend on it */
  PetscCall(PetscOptionsSetValue(NULL, name, "0"));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_mma", type));
  PetscCall(PetscOptionsSetValue(NULL, name, "core"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Counts(ksp, 1, 0, &ok[0]));
  PetscCall(PetscOptionsSetValue(NULL, name, "tensor"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Counts(ksp, 2, 0, &ok[1]));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_fused", type));
  PetscCall(PetscOptionsSetValue(NULL, name, "false"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Counts(ksp, 2, 1, &ok[2]));
  PetscCall(ABSay("options", (PetscBool)(ok[0] && ok[1] && ok[2])));
  PetscCall(KSPReset(ksp)); /* the view of a matrix is not what is tested */
  PetscCall(KSPView(ksp, PETSC_VIEWER_STDOUT_SELF));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a solve of 10 iterations logs, which rounding does not end in single precision either */
static PetscErrorCode FlopsOf(KSPType type, PCType pctype, const char resident[], Mat A, Vec b, PetscLogDouble *flops)
{
  KSP            ksp;
  PC             pc;
  Vec            x;
  PetscLogDouble before;
  PetscBool      fused = PETSC_TRUE;
  char           option[32];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_resident", type));
  PetscCall(PetscOptionsSetValue(NULL, option, resident));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, PETSC_CURRENT, 10));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PetscGetFlops(&before));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscGetFlops(flops));
  *flops -= before;
  if (!strncmp(type, "tc", 2)) PetscCall(Counts(ksp, 1, 0, &fused));
  PetscCheck(fused, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve is PETSc's own: this tests nothing");
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's and `more` a row and an iteration, but for some operations a row that begin or end a solve: one operation an iteration would show */
static PetscErrorCode Flops(KSPType stock, KSPType fused, Mat A, Vec b, PetscReal more, const char what[])
{
  const char *const residents[] = {"false", "form", "layout"};
  PetscInt          n;
  PetscBool         ok = PETSC_TRUE, cuda;
  MatNullSpace      nullspace;
  Mat               H;
  Vec               h;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(b, &n));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &H));
  PetscCall(MatGetNullSpace(A, &nullspace));
  PetscCall(MatSetNullSpace(H, nullspace));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &h));
  PetscCall(VecCopy(b, h));
  PetscCall(PetscObjectTypeCompare((PetscObject)b, VECSEQCUDA, &cuda));
  for (PCType pctype : {PCNONE, PCJACOBI, PCSOR}) {
    PetscLogDouble expected, flops;

    if (cuda && nullspace && (!strcmp(pctype, PCSOR) || !strcmp(stock, KSPCR))) continue; /* MatNullSpaceRemove() is PETSc's there, which logs more on a GPU than on the host */
    PetscCall(FlopsOf(stock, pctype, "false", H, h, &expected));                          /* on a GPU some of PETSc's operations log none */
    for (const char *resident : residents) {
      PetscCall(FlopsOf(fused, pctype, resident, A, b, &flops));
      if (PetscAbsReal((PetscReal)(flops - expected) - 10.0 * more * n) <= 9.5 * n) continue;
      ok = PETSC_FALSE;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "  pc %s, resident %s: %g flops, %g a row more than %s\n", pctype, resident, flops, (flops - expected) / n, stock));
    }
  }
  PetscCall(MatDestroy(&H));
  PetscCall(VecDestroy(&h));
  PetscCall(ABSay(what, ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FlopsWithNullSpace(Vec b)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(ABMatSingularGrid(11, 12, 0.0, &A));
  PetscCall(Flops(KSPCG, "tccg", A, b, 0.0, "flops of tccg with a null space"));
  PetscCall(Flops(KSPCR, "tccr", A, b, 0.0, "flops of tccr with a null space"));
  PetscCall(MatDestroy(&A));
  PetscCall(ABMatSingularGrid(11, 12, 0.4, &A));
  PetscCall(Flops(KSPBCGS, "tcbcgs", A, b, 0.0, "flops of tcbcgs with a null space"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a Jacobi preconditioner that is not applied */
static PetscErrorCode FlopsOfOneNumber(KSPType stock, KSPType fused, Mat A, Vec b, const char what[])
{
  Mat U;
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &U));
  PetscCall(VecDuplicate(b, &d));
  PetscCall(VecSet(d, 5.7));
  PetscCall(MatDiagonalSet(U, d, INSERT_VALUES));
  PetscCall(Flops(stock, fused, U, b, 0.0, what));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&U));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where products make the vectors that they multiply, on the host */
static PetscErrorCode FlopsOfVectorsMade(Mat A, Mat N, Vec b)
{
  const char *const options[][2] = {
    {"-ksp_tccg_product_vector",   "true"},
    {"-ksp_tcbcgs_product_vector", "true"},
    {"-ksp_tccg_directions",       "4"   }
  };

  PetscFunctionBeginUser;
  for (const auto &option : options) PetscCall(PetscOptionsSetValue(NULL, option[0], option[1]));
  PetscCall(Flops(KSPCG, "tccg", A, b, 0.0, "flops of tccg, vectors made"));
  PetscCall(Flops(KSPBCGS, "tcbcgs", N, b, 0.0, "flops of tcbcgs, vectors made"));
  for (const auto &option : options) PetscCall(PetscOptionsClearValue(NULL, option[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, N;
  Vec b, x0, x;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(11, 12, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatGrid(11, 12, 0.4, PETSC_FALSE, &N));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(Types(A, b, x));
  PetscCall(ResetAndChange("tccg", A, b, x));
  PetscCall(ResetAndChange("tcbcgs", N, b, x));
  PetscCall(ResetAndChange("tccr", A, b, x));
  PetscCall(Alternate("tccg", A, b));
  PetscCall(Alternate("tcbcgs", N, b));
  PetscCall(Alternate("tccr", A, b));
  PetscCall(Nested(A, b, KSPCG, "tccg"));
  PetscCall(Nested(N, b, KSPBCGS, "tcbcgs"));
  PetscCall(Nested(A, b, KSPCR, "tccr"));
  PetscCall(Objective(A, b, x0));
  PetscCall(Columns("tccg", A));
  PetscCall(Columns("tcbcgs", N));
  PetscCall(Columns("tccr", A));
  PetscCall(Guess(N, b, x0));
  PetscCall(Nest("tccg", A));
  PetscCall(Nest("tcbcgs", N));
  PetscCall(Nest("tccr", A));
  PetscCall(PublicCounts(A, b, x));
  PetscCall(Flops(KSPCG, "tccg", A, b, 0.0, "flops of tccg"));
  PetscCall(Flops(KSPBCGS, "tcbcgs", N, b, 0.0, "flops of tcbcgs"));
  PetscCall(Flops(KSPCR, "tccr", A, b, 0.0, "flops of tccr"));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", "single"));
  PetscCall(Flops(KSPCG, "tccg", A, b, 2.0, "flops of tccg single"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tcbcgs_variant", "single"));
  PetscCall(Flops(KSPBCGS, "tcbcgs", N, b, 2.0, "flops of tcbcgs single"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tcbcgs_variant"));
  PetscCall(FlopsWithNullSpace(b));
  PetscCall(FlopsOfVectorsMade(A, N, b));
  PetscCall(FlopsOfOneNumber(KSPCG, "tccg", A, b, "flops of tccg with one number"));
  PetscCall(FlopsOfOneNumber(KSPBCGS, "tcbcgs", N, b, "flops of tcbcgs with one number"));
  PetscCall(Options("tccg", A, b, x));
  PetscCall(Options("tcbcgs", N, b, x));
  PetscCall(Options("tccr", A, b, x));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&x));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tccg_ahead {{0 3}} -ksp_tcbcgs_ahead {{0 3}} -ksp_tccr_ahead 3
      output_file: output/ex5.out
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
