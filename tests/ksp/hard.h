/* Settings and preconditioners that the hard cases of both methods use */
#pragma once

#include "ab.h"

static PETSC_UNUSED PetscErrorCode TuneMaxIt(KSP ksp, void *ctx)
{
  return KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, *(PetscInt *)ctx);
}

static PETSC_UNUSED PetscErrorCode TuneAbsolute(KSP ksp, void *)
{
  return KSPSetTolerances(ksp, 0.0, 1e-3, PETSC_CURRENT, PETSC_CURRENT);
}

static PETSC_UNUSED PetscErrorCode TuneDivergence(KSP ksp, void *)
{
  return KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, 1.01, PETSC_CURRENT);
}

static PETSC_UNUSED PetscErrorCode TuneMinIt(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, 0.1, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetMinimumIterations(ksp, 12));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode TuneMaxits(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, 1e-30, PETSC_CURRENT, PETSC_CURRENT, 7));
  PetscCall(KSPConvergedDefaultSetConvergedMaxits(ksp, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode TuneErrorIfNot(KSP ksp, void *)
{
  return KSPSetErrorIfNotConverged(ksp, PETSC_TRUE);
}

static PETSC_UNUSED PetscErrorCode TestAfterFive(KSP, PetscInt it, PetscReal rnorm, KSPConvergedReason *reason, void *)
{
  *reason = it >= 5 && rnorm >= 0.0 ? KSP_CONVERGED_HAPPY_BREAKDOWN : KSP_CONVERGED_ITERATING;
  return PETSC_SUCCESS;
}

static PETSC_UNUSED PetscErrorCode TuneUserTest(KSP ksp, void *)
{
  return KSPSetConvergenceTest(ksp, TestAfterFive, NULL, NULL);
}

/* Eigenvalue estimates */
static PETSC_UNUSED PetscErrorCode TuneEigenvalues(KSP ksp, void *)
{
  return KSPSetComputeEigenvalues(ksp, PETSC_TRUE);
}

/* A preconditioner that turns bad at its k-th application: z <- value r, and fails if asked to */
typedef struct {
  PetscInt  k;
  PetscReal value;
  PetscBool fail;
} BadPC;

typedef struct {
  BadPC    bad;
  PetscInt applied;
} BadPCContext;

static PETSC_UNUSED PetscErrorCode BadPCApply(PC pc, Vec x, Vec y)
{
  BadPCContext *c;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &c));
  PetscCall(VecCopy(x, y));
  if (++c->applied < c->bad.k) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->bad.fail) PetscCall(PCSetFailedReason(pc, PC_SUBPC_ERROR));
  PetscCall(VecScale(y, c->bad.fail ? INFINITY : c->bad.value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode BadPCDestroy(PC pc)
{
  BadPCContext *c;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &c));
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode TuneBadPC(KSP ksp, void *ctx)
{
  BadPCContext *c;
  PC            pc;

  PetscFunctionBeginUser;
  PetscCall(PetscNew(&c));
  c->bad = *(BadPC *)ctx;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSHELL));
  PetscCall(PCShellSetContext(pc, c));
  PetscCall(PCShellSetApply(pc, BadPCApply));
  PetscCall(PCShellSetDestroy(pc, BadPCDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bad in the application that follows the last iteration */
static PETSC_UNUSED PetscErrorCode TuneBadPCAtTheEnd(KSP ksp, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(TuneBadPC(ksp, ctx));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, ((BadPC *)ctx)->k - 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A monitor that builds solution and residual, and writes their norms into the history of PetscReals it is given */
typedef struct {
  PetscInt  n;
  PetscReal solution[AB_HISTORY], residual[AB_HISTORY];
} Watch;

static PETSC_UNUSED PetscErrorCode WatchMonitor(KSP ksp, PetscInt, PetscReal, void *ctx)
{
  Watch *w = (Watch *)ctx;
  Vec    x, r, v;

  PetscFunctionBeginUser;
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(VecDuplicate(x, &v));
  PetscCall(KSPBuildSolution(ksp, v, NULL));
  PetscCall(VecNorm(v, NORM_2, &w->solution[w->n]));
  PetscCall(KSPBuildResidual(ksp, NULL, v, &r));
  PetscCall(VecNorm(r, NORM_2, &w->residual[w->n++]));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same case by both methods under the watch of such a monitor */
static PETSC_UNUSED PetscErrorCode WatchReport(const char *name, Mat A, Vec b, Vec x0, PCType pc, KSPNormType norm, PCSide side, KSPType stock, KSPType fused)
{
  const ABCase  c       = {name, A, NULL, b, x0, pc, norm, side, 0, NULL, NULL};
  const KSPType types[] = {stock, fused};
  Watch         w[2];
  PetscBool     same = PETSC_TRUE;
  int           flags;

  PetscFunctionBeginUser;
  PetscCall(ABWatched(&flags));
  for (int t = 0; t < 2; t++) {
    KSP   ksp;
    ABRun run;

    w[t].n = 0;
    PetscCall(ABCreate(&c, types[t], &ksp));
    PetscCall(KSPMonitorSet(ksp, WatchMonitor, &w[t], NULL));
    PetscCall(ABSolve(&c, ksp, &run));
    PetscCall(VecDestroy(&run.x));
    PetscCall(KSPDestroy(&ksp));
    if (t == 1 && run.fused != (flags ? 0 : 1)) same = PETSC_FALSE;
  }
  if (w[0].n != w[1].n || w[0].n < 3) same = PETSC_FALSE;
  for (PetscInt i = 0; i < w[0].n && same; i++) {
    if (!ABNear(w[0].solution[i], w[1].solution[i], Tolerance(1e-6), 0.0) || !ABNear(w[0].residual[i], w[1].residual[i], i < 10 ? Tolerance(1e-6) : 5e-2, Tolerance(1e-12) * w[0].residual[0])) same = PETSC_FALSE;
  }
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, norm %s: solutions and residuals of every iteration: %s\n", name, KSPNormTypes[norm], same ? "PASS" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
