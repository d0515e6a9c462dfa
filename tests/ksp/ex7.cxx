static char help[] = "Iterations begun before the host looks: the same bits for every number of them, and none where somebody may count.\n\n";

#include "hard.h"
#include "../viewtext.h"

typedef struct {
  PetscInt ahead, max_it;
  PetscErrorCode (*tune)(KSP, void *);
  void              *ctx;
  KSPConvergedReason reason;
  PetscInt           its, nhist;
  PetscReal          hist[AB_HISTORY];
  Vec                x;
} Solve;

static PetscErrorCode SetAhead(KSP ksp, KSPType type, PetscInt ahead)
{
  char name[64], value[16];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_ahead", type));
  PetscCall(PetscSNPrintf(value, sizeof(value), "%" PetscInt_FMT, ahead));
  PetscCall(PetscOptionsSetValue(NULL, name, value));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a view of the solver says contains this text */
static PetscErrorCode Views(KSP ksp, const char text[], PetscBool *found)
{
  char buffer[4000];

  PetscFunctionBeginUser;
  PetscCall(ViewSays((PetscObject)ksp, text, "ex7.txt", buffer, sizeof(buffer), found));
  if (!*found) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  no \"%s\" in\n%s", text, buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveAndRecord(KSP ksp, Vec b, Solve *s)
{
  const PetscReal *hist;

  PetscFunctionBeginUser;
  PetscCall(KSPSetResidualHistory(ksp, NULL, AB_HISTORY, PETSC_TRUE));
  PetscCall(VecDuplicate(b, &s->x));
  PetscCall(KSPSolve(ksp, b, s->x));
  PetscCall(KSPGetConvergedReason(ksp, &s->reason));
  PetscCall(KSPGetIterationNumber(ksp, &s->its));
  PetscCall(KSPGetResidualHistory(ksp, &hist, &s->nhist));
  PetscCall(PetscArraycpy(s->hist, hist, s->nhist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With -ksp_tccg_directions the solution follows so many iterations together where recurrences are KSPCG's */
static PetscErrorCode Follows(KSP ksp, KSPType type)
{
  PetscInt  directions = 1;
  PetscBool single;
  char      buffer[4000], variant[16] = "", says[64], *found;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-ksp_tccg_directions", &directions, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ksp_tccg_variant", variant, sizeof(variant), NULL));
  PetscCall(PetscStrcmp(variant, "single", &single));
  PetscCall(PetscSNPrintf(says, sizeof(says), "the solution follows %" PetscInt_FMT " iterations together\n", directions));
  PetscCall(ViewText((PetscObject)ksp, PETSC_VIEWER_DEFAULT, "ex7.txt", buffer, sizeof(buffer)));
  PetscCall(PetscStrstr(buffer, says, &found));
  if (!found == (directions > 1 && !strcmp(type, "tccg") && !single)) ABFailures++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* says: what the view must contain after the solve */
static PetscErrorCode Run(KSPType type, Mat A, Vec b, PCType pctype, KSPNormType norm, const char says[], Solve *s)
{
  KSP       ksp;
  PC        pc;
  PetscBool found;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(SetAhead(ksp, type, s->ahead));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, s->max_it));
  if (s->tune) PetscCall((*s->tune)(ksp, s->ctx));
  PetscCall(SolveAndRecord(ksp, b, s));
  PetscCall(Views(ksp, says, &found));
  if (!found) ABFailures++;
  if (!strncmp(says, "iterations begun ahead", 22)) PetscCall(Follows(ksp, type));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameSolve(const Solve *a, const Solve *b, PetscBool *same)
{
  PetscFunctionBeginUser;
  *same = (PetscBool)(a->reason == b->reason && a->its == b->its && a->nhist == b->nhist);
  if (*same) PetscCall(PetscArraycmp(a->hist, b->hist, a->nhist, same));
  if (*same) PetscCall(VecEqual(a->x, b->x, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every number of iterations ahead against none, ended by the test and by the number of iterations. With none the view also says this */
static PetscErrorCode SameBits(KSPType type, Mat A, Vec b, PCType pctype, KSPNormType norm, const char saying[], const char what[])
{
  const PetscInt aheads[] = {1, 2, 5, 16}, max_its[] = {200, 1, 7};
  PetscBool      ok = PETSC_TRUE, same;
  char           says[64];

  PetscFunctionBeginUser;
  for (PetscInt max_it : max_its) {
    Solve none = {0, max_it, NULL, NULL, KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};

    PetscCall(Run(type, A, b, pctype, norm, saying, &none));
    for (PetscInt ahead : aheads) {
      Solve some = {ahead, max_it, NULL, NULL, KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};

      PetscCall(PetscSNPrintf(says, sizeof(says), "iterations begun ahead %" PetscInt_FMT "\n", ahead));
      PetscCall(Run(type, A, b, pctype, norm, says, &some));
      PetscCall(SameSolve(&none, &some, &same));
      if (!same)
        PetscCall(PetscPrintf(PETSC_COMM_SELF, "  ahead %" PetscInt_FMT ", at most %" PetscInt_FMT ": %s after %" PetscInt_FMT ", not %s after %" PetscInt_FMT ", or other bits\n", ahead, max_it, KSPConvergedReasons[some.reason], some.its,
                              KSPConvergedReasons[none.reason], none.its));
      ok = (PetscBool)(ok && same);
      PetscCall(VecDestroy(&some.x));
    }
    PetscCall(VecDestroy(&none.x));
  }
  if (!ok) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s%s, pc %s, norm %s: %s\n", type, what, pctype, KSPNormTypes[norm], ok ? "the same bits" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what goes with it */

static PetscErrorCode TuneNormMonitor(KSP ksp, void *)
{
  PetscViewer           viewer;
  PetscViewerAndFormat *vf;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, "ex7monitor.txt", &viewer));
  PetscCall(PetscViewerAndFormatCreate(viewer, PETSC_VIEWER_DEFAULT, &vf));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(KSPMonitorSet(ksp, (KSPMonitorFn *)KSPMonitorResidual, vf, (PetscCtxDestroyFn *)PetscViewerAndFormatDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneLateCheck(KSP ksp, void *)
{
  return KSPSetCheckNormIteration(ksp, 12);
}

static PetscErrorCode TuneLeast(KSP ksp, void *)
{
  return KSPSetMinimumIterations(ksp, 30);
}

static PetscErrorCode TuneUIRNorm(KSP ksp, void *)
{
  return KSPConvergedDefaultSetUIRNorm(ksp);
}

static PetscErrorCode TuneSkip(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 6));
  PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Tuned(KSPType type, Mat A, Vec b, PetscErrorCode (*tune)(KSP, void *), const char what[])
{
  Solve     s[2];
  PetscBool same;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    s[k] = {k ? 4 : 0, 200, tune, NULL, KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};
    PetscCall(Run(type, A, b, PCJACOBI, KSP_NORM_UNPRECONDITIONED, k ? "iterations begun ahead 4" : "fused solves 1", &s[k]));
  }
  PetscCall(SameSolve(&s[0], &s[1], &same));
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: %s, %s\n", type, what, KSPConvergedReasons[s[0].reason], same ? "the same bits" : "FAIL"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&s[k].x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object, solve after solve: ended by the test, by an indefinite matrix (CG), with an error too, by the number of iterations; other settings in between */
static PetscErrorCode Again(KSPType type, Mat A, Vec b, PetscBool indefinite)
{
  const PetscInt aheads[] = {3, 3, 0, 16, 2, 2};
  KSP            ksp;
  Mat            M;
  Vec            x, first;
  PetscBool      same, ok = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &M));
  PetscCall(MatShift(M, -4.0));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &first));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  for (int k = 0; k < 6; k++) {
    KSPConvergedReason reason;
    PetscErrorCode     error = PETSC_SUCCESS;

    PetscCall(SetAhead(ksp, type, aheads[k]));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 200));
    PetscCall(KSPSolve(ksp, b, k ? x : first));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    if (reason < 0) ok = PETSC_FALSE;
    if (k) {
      PetscCall(VecEqual(first, x, &same));
      ok = (PetscBool)(ok && same);
    }
    if (k == 3) PetscCall(KSPReset(ksp));
    if (k % 2 == 0 && indefinite) {
      PetscCall(KSPSetOperators(ksp, M, A));
      PetscCall(KSPSetErrorIfNotConverged(ksp, (PetscBool)(k == 4)));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      error = KSPSolve(ksp, b, x);
      PetscCall(PetscPopErrorHandler());
      PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_FALSE));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      if (k == 4 ? error != PETSC_ERR_NOT_CONVERGED : error || reason != KSP_DIVERGED_INDEFINITE_MAT) ok = PETSC_FALSE;
    }
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 2));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    if (reason != KSP_DIVERGED_ITS) ok = PETSC_FALSE;
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&M));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&first));
  if (!ok) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, solve after solve: %s\n", type, ok ? "the same bits" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- where somebody could tell */

static PetscErrorCode SumOfSolution(KSP ksp, PetscInt, PetscReal, void *ctx)
{
  Vec         x;
  PetscScalar sum;

  PetscFunctionBeginUser;
  PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(VecSum(x, &sum));
  *(PetscScalar *)ctx += sum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneMonitor(KSP ksp, void *ctx)
{
  return KSPMonitorSet(ksp, SumOfSolution, ctx, NULL);
}

static PetscErrorCode AfterNine(KSP, PetscInt it, PetscReal, KSPConvergedReason *reason, void *)
{
  PetscFunctionBeginUser;
  *reason = it == 9 ? KSP_CONVERGED_USER : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneTest(KSP ksp, void *)
{
  return KSPSetConvergenceTest(ksp, AfterNine, NULL, NULL);
}

static PetscErrorCode CountingApply(PC pc, Vec x, Vec y)
{
  PetscScalar *count;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &count));
  *count += 1.0;
  PetscCall(VecCopy(x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneShell(KSP ksp, void *ctx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSHELL));
  PetscCall(PCShellSetContext(pc, ctx));
  PetscCall(PCShellSetApply(pc, CountingApply));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat         A;
  PetscScalar products;
} CountedMat;

static PetscErrorCode CountedMult(Mat S, Vec x, Vec y)
{
  CountedMat *counted;

  PetscFunctionBeginUser;
  PetscCall(MatShellGetContext(S, &counted));
  counted->products += 1.0;
  PetscCall(MatMult(counted->A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode WatchedMatrix(KSPType type, Mat A, Vec b)
{
  CountedMat counted[2] = {
    {A, 0.0},
    {A, 0.0}
  };
  Solve     s[2];
  PetscBool same;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscInt m, n;
    Mat      S;

    s[k] = {k ? 4 : 0, 200, NULL, NULL, KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};
    PetscCall(MatGetLocalSize(A, &m, &n));
    PetscCall(MatCreateShell(PETSC_COMM_SELF, m, n, m, n, &counted[k], &S));
    PetscCall(MatShellSetOperation(S, MATOP_MULT, (PetscErrorCodeFn *)CountedMult));
    PetscCall(Run(type, S, b, PCNONE, KSP_NORM_PRECONDITIONED, k ? "no iterations begun ahead (last: the matrix may count its products)" : "fused solves 1", &s[k]));
    PetscCall(MatDestroy(&S));
  }
  PetscCall(SameSolve(&s[0], &s[1], &same));
  same = (PetscBool)(same && counted[0].products == counted[1].products);
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, the matrix may count its products: %s\n", type, same ? "PASS" : "FAIL"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&s[k].x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the user's function has counted must not depend on what was asked for */
static PetscErrorCode Watched(KSPType type, Mat A, Vec b, PetscErrorCode (*tune)(KSP, void *), const char why[])
{
  PetscScalar counted[2] = {0.0, 0.0};
  Solve       s[2];
  PetscBool   same;
  char        says[128];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    s[k] = {k ? 4 : 0, 200, tune, &counted[k], KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};
    PetscCall(PetscSNPrintf(says, sizeof(says), k ? "no iterations begun ahead (last: %s" : "fused solves 1", why));
    PetscCall(Run(type, A, b, PCJACOBI, KSP_NORM_PRECONDITIONED, says, &s[k]));
  }
  PetscCall(SameSolve(&s[0], &s[1], &same));
  same = (PetscBool)(same && counted[0] == counted[1]);
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: %s\n", type, why, same ? "PASS" : "FAIL"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&s[k].x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a user's monitor may do: the preconditioner's next application is with another matrix */
static PetscErrorCode ScalingMonitor(KSP ksp, PetscInt it, PetscReal, PetscCtx)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  if (it == 3) PetscCall(MatScale(A, 1.25));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves of one object: other values, norms and sides of the matrix, the preconditioner of old values, a monitor that changes the matrix. Its number of iterations, and x, go to its and x */
static PetscErrorCode Series(KSPType type, Mat A, Vec b, PCType pctype, Vec d, PetscInt its[], Vec x[], PetscInt n)
{
  Mat       C;
  KSP       ksp;
  PC        pc;
  PetscBool bcgs;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(type, "tcbcgs", &bcgs));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, C, C));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetFromOptions(ksp)); /* not resident */
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 60));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(MatDiagonalSet(C, d, ADD_VALUES));
    if (!bcgs) PetscCall(KSPSetNormType(ksp, k == 1 ? KSP_NORM_UNPRECONDITIONED : KSP_NORM_PRECONDITIONED));
    PetscCall(KSPSetReusePreconditioner(ksp, (PetscBool)(k == 3)));
    if (k == 5) PetscCall(KSPMonitorSet(ksp, ScalingMonitor, NULL, NULL));
    PetscCall(VecDuplicate(b, &x[k]));
    PetscCall((k == 4 ? KSPSolveTranspose : KSPSolve)(ksp, b, x[k]));
    PetscCall(KSPGetIterationNumber(ksp, &its[k]));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalSeries(KSPType type, Mat A, Vec b, Vec d)
{
  constexpr PetscInt n = 6;
  PetscInt           its[2][n];
  Vec                x[2][n];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(Series(type, A, b, k ? PCPBJACOBI : PCJACOBI, d, its[k], x[k], n));
  for (PetscInt i = 0; i < n; i++) {
    PetscBool same;

    PetscCall(VecEqual(x[0][i], x[1][i], &same));
    if (!same || its[0][i] != its[1][i] || its[0][i] < 4) {
      ABFailures++;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, jacobi in the steps, solve %" PetscInt_FMT ": %" PetscInt_FMT " iterations, not %" PetscInt_FMT ", or other bits\n", type, i, its[0][i], its[1][i]));
    }
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k][i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Jacobi's diagonal is part of the steps, PCPBJACOBI with blocks of one is not: the same numbers */
static PetscErrorCode Diagonal(KSPType type, Mat A, Vec b, PetscInt nnorms)
{
  const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL};
  Mat               C;
  Vec               d;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(ABVecFill(d, 3));
  PetscCall(VecAbs(d));
  for (PetscInt i = 0; i < nnorms; i++) {
    const KSPNormType norm = norms[i];
    Solve             s[2];
    PetscBool         same;

    PetscCall(MatDiagonalSet(C, d, ADD_VALUES));
    for (int k = 0; k < 2; k++) {
      s[k] = {2, 200, NULL, NULL, KSP_CONVERGED_ITERATING, 0, 0, {}, NULL};
      PetscCall(Run(type, C, b, k ? PCPBJACOBI : PCJACOBI, norm, k ? "iterations begun ahead 2" : "the preconditioner is part of the steps", &s[k]));
    }
    PetscCall(SameSolve(&s[0], &s[1], &same));
    if (!same) ABFailures++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, jacobi in the steps, norm %s: %s\n", type, KSPNormTypes[norm], same ? "the same bits" : "OTHER BITS"));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&s[k].x));
  }
  PetscCall(DiagonalSeries(type, A, b, d));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve with options of its own; the view says that products bring sums, or does not */
static PetscErrorCode SolveWithSums(KSPType type, Mat A, Vec b, PetscBool sums, PetscBool expected, Solve *s)
{
  char      options[128], buffer[4000];
  KSP       ksp;
  PetscBool found;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(options, sizeof(options), "-sums_ksp_%s_product_sums %s -sums_ksp_%s_resident false -sums_pc_type none", type, sums ? "true" : "false", type));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "sums_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(SolveAndRecord(ksp, b, s));
  PetscCall(ViewSays((PetscObject)ksp, "dot products with a product of the matrix", "ex7.txt", buffer, sizeof(buffer), &found));
  if (found != expected) {
    ABFailures++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, sums %d: the view says %d\n", type, sums, found));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Dot products in the pass of the product and by steps of their own: the same but for rounding */
static PetscErrorCode ProductSums(KSPType type, Mat A, Vec b)
{
  Solve     s[2] = {};
  PetscBool aijtc, same;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", &aijtc));
  for (int k = 0; k < 2; k++) PetscCall(SolveWithSums(type, A, b, (PetscBool)!k, (PetscBool)(!k && aijtc), &s[k]));
  same = (PetscBool)(s[0].reason == s[1].reason && s[0].its == s[1].its && s[0].nhist == s[1].nhist && s[0].its > 4);
  for (PetscInt i = 0; same && i < s[0].nhist; i++) {
    if (!(PetscAbsReal(s[0].hist[i] - s[1].hist[i]) <= Tolerance(1e-6) * s[0].hist[0])) same = PETSC_FALSE;
  }
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, dot products with the product: %s\n", type, same ? "the same but for rounding" : "OTHERS"));
  for (Solve &k : s) PetscCall(VecDestroy(&k.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Method(KSPType type, Mat A, Vec b, PetscInt nnorms)
{
  const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE, KSP_NORM_NATURAL};
  const PCType      pcs[]   = {PCNONE, PCJACOBI, PCILU};

  PetscFunctionBeginUser;
  for (PCType pc : pcs) {
    for (PetscInt k = 0; k < nnorms; k++) PetscCall(SameBits(type, A, b, pc, norms[k], "fused solves 1", ""));
  }
  PetscCall(Tuned(type, A, b, TuneNormMonitor, "a monitor of norms"));
  PetscCall(Tuned(type, A, b, TuneLateCheck, "norms from iteration 12 on"));
  PetscCall(Tuned(type, A, b, TuneLeast, "30 iterations at least"));
  PetscCall(Tuned(type, A, b, TuneUIRNorm, "relative to the first residual"));
  PetscCall(Tuned(type, A, b, TuneSkip, "no test"));
  PetscCall(Again(type, A, b, (PetscBool)!strcmp(type, "tccg")));
  PetscCall(WatchedMatrix(type, A, b));
  PetscCall(Watched(type, A, b, TuneMonitor, "a monitor may look at the solution"));
  PetscCall(Watched(type, A, b, TuneTest, "the convergence test is the user's"));
  PetscCall(Watched(type, A, b, TuneShell, "the preconditioner may count its applications"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Left open: so many iterations ahead on a GPU, and none elsewhere */
static PetscErrorCode Decided(KSPType type, Mat A, PCType pctype, PetscInt expected)
{
  KSP       ksp;
  PC        pc;
  Vec       x, b;
  PetscBool device;
  char      buffer[4000], says[64], *ahead, *many;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(PetscObjectTypeCompare((PetscObject)x, VECSEQCUDA, &device));
  PetscCall(ABVecFill(b, 2));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 2));
  PetscCall(KSPSetFromOptions(ksp)); /* not resident */
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(ViewText((PetscObject)ksp, PETSC_VIEWER_DEFAULT, "ex7.txt", buffer, sizeof(buffer)));
  PetscCall(PetscStrstr(buffer, "iterations begun ahead", &ahead));
  PetscCall(PetscSNPrintf(says, sizeof(says), "  iterations begun ahead %" PetscInt_FMT "\n", expected));
  PetscCall(PetscStrstr(buffer, says, &many));
  if (expected && device ? !many : !!ahead) {
    ABFailures++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, pc %s: not decided as expected\n%s", type, pctype, buffer));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Decisions(KSPType type, Mat A)
{
  const PetscInt n = 1500001;
  Mat            D;

  PetscFunctionBeginUser;
  PetscCall(Decided(type, A, PCNONE, 2));
  PetscCall(Decided(type, A, PCJACOBI, 2));
  PetscCall(Decided(type, A, PCILU, 0));
  PetscCall(MatCreate(PETSC_COMM_SELF, &D));
  PetscCall(MatSetSizes(D, n, n, n, n));
  PetscCall(MatSetFromOptions(D));
  PetscCall(MatSeqAIJSetPreallocation(D, 1, NULL));
  for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(D, i, i, 1.0 + i % 7, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscCall(Decided(type, D, PCNONE, 1));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A projection against the constants as part of the steps */
static PetscErrorCode Projected(Vec b)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(ABMatSingularGrid(15, 13, 0.0, &A));
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL}) PetscCall(SameBits("tccg", A, b, pctype, norm, "the preconditioner is part of the steps", ", null space"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(ABMatSingularGrid(15, 13, 0.4, &A));
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_NONE}) PetscCall(SameBits("tcbcgs", A, b, pctype, norm, "the preconditioner is part of the steps", ", null space"));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCPBJACOBI as part of the steps */
static PetscErrorCode Blocks(void)
{
  Mat A;
  Vec b;

  PetscFunctionBeginUser;
  for (PetscReal wind : {0.0, 0.3}) {
    const char *const type = wind == 0.0 ? "tccg" : "tcbcgs";

    PetscCall(ABMatBlocks(15, 13, 3, 0.5, wind, &A));
    PetscCall(MatCreateVecs(A, NULL, &b));
    PetscCall(ABVecFill(b, 1));
    PetscCall(SameBits(type, A, b, PCPBJACOBI, KSP_NORM_PRECONDITIONED, "the preconditioner is part of the steps", ", blocks of 3"));
    if (wind == 0.0) PetscCall(SameBits(type, A, b, PCPBJACOBI, KSP_NORM_NATURAL, "the preconditioner is part of the steps", ", blocks of 3"));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Recurrences with a reduction less: PCSOR is none that is part of the steps */
static PetscErrorCode Single(Mat A, Mat N, Vec b)
{
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", "single"));
  for (PCType pctype : {PCNONE, PCJACOBI, PCSOR}) {
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE}) PetscCall(SameBits("tccg", A, b, pctype, norm, "recurrences with a reduction less", ", single"));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tcbcgs_variant", "single"));
  for (PCType pctype : {PCNONE, PCJACOBI, PCSOR}) {
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_NONE}) PetscCall(SameBits("tcbcgs", N, b, pctype, norm, "recurrences with a reduction less", ", single"));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tcbcgs_variant"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, N;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(15, 13, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatGrid(15, 13, 0.4, PETSC_FALSE, &N));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(Method("tccg", A, b, 4));
  PetscCall(Method("tcbcgs", N, b, 3));
  PetscCall(Method("tccr", A, b, 4));
  PetscCall(Diagonal("tccg", A, b, 2));
  PetscCall(Diagonal("tcbcgs", N, b, 1));
  PetscCall(ProductSums("tccg", A, b));
  PetscCall(ProductSums("tcbcgs", N, b));
  PetscCall(Projected(b));
  PetscCall(Blocks());
  PetscCall(Single(A, N, b));
  PetscCall(Decisions("tccg", A));
  PetscCall(Decisions("tcbcgs", N));
  PetscCall(Decisions("tccr", A));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tccg_resident false -ksp_tcbcgs_resident false -ksp_tccr_resident false -ksp_tccg_directions {{1 4}}
      output_file: output/ex7.out
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
