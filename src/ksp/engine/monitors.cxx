/*
   Monitors. Where iterations have been begun beyond the one whose norm a monitor gets, x and r are those of a later one. So the monitors of a fused solve read the norm alone, or each iteration waits for them.

   PETSc's that read the norm alone are known here. Of others the user says so (KSPTCSetMonitorsNormOnly()), and then nobody gets x or r from within a monitor: another iteration's would be wrong without a word.

   Not among PETSc's that are known: KSPMonitorDynamicTolerance() sets tolerances within a preconditioner, and matters with those alone that may count their applications; KSPMonitorSingularValue() belongs to solves with estimates
   of eigenvalues, which are not fused. -ksp_converged_rate is no monitor: it reads the history, which is written from the same records.
*/
#include <../src/ksp/engine/kspengine.h> /*I "petsctc.h" I*/

typedef void (*KSPTCFunction)(void);

/* What a monitor reads. Of several the last of these counts: where one is known to look at the iterate, nothing that the user says of others helps */
typedef enum {
  KSPTC_READS_NORM,
  KSPTC_READS_UNKNOWN,
  KSPTC_READS_ITERATE
} KSPTCReads;

static KSPTCReads KSPTCMonitorReads(KSPTCFunction monitor)
{
  const KSPTCFunction norm[]    = {(KSPTCFunction)KSPMonitorResidual, (KSPTCFunction)KSPMonitorResidualDrawLG};
  const KSPTCFunction iterate[] = {(KSPTCFunction)KSPMonitorResidualView,       (KSPTCFunction)KSPMonitorResidualRange,   (KSPTCFunction)KSPMonitorLGRange,       (KSPTCFunction)KSPMonitorTrueResidual, (KSPTCFunction)KSPMonitorTrueResidualView,
                                   (KSPTCFunction)KSPMonitorTrueResidualDrawLG, (KSPTCFunction)KSPMonitorTrueResidualMax, (KSPTCFunction)KSPMonitorError,         (KSPTCFunction)KSPMonitorErrorDraw,    (KSPTCFunction)KSPMonitorErrorDrawLG,
                                   (KSPTCFunction)KSPMonitorSolution,           (KSPTCFunction)KSPMonitorSolutionDraw,    (KSPTCFunction)KSPMonitorSolutionDrawLG};

  for (KSPTCFunction f : norm) {
    if (f == monitor) return KSPTC_READS_NORM;
  }
  for (KSPTCFunction f : iterate) {
    if (f == monitor) return KSPTC_READS_ITERATE;
  }
  return KSPTC_READS_UNKNOWN;
}

/* Does something of the user's come between two iterations, which may look at the solution and change anything? Then why, and what helps */
PetscErrorCode KSPTCWatched(KSP ksp, KSPTC tc, const char **why)
{
  KSPTCReads reads = KSPTC_READS_NORM;

  PetscFunctionBegin;
  *why = NULL;
  for (PetscInt i = 0; i < ksp->numbermonitors && !tc->only_norms; i++) reads = PetscMax(reads, KSPTCMonitorReads((KSPTCFunction)ksp->monitor[i]));
  if (reads == KSPTC_READS_ITERATE) *why = "a monitor of PETSc's looks at the solution or the residual: -ksp_monitor reads only the norm";
  else if (reads == KSPTC_READS_UNKNOWN) *why = "a monitor may look at the solution: -ksp_monitors_norm_only if it reads only the norm";
  /* It ends the solve, and iterations begun beyond its end would have changed x */
  if (ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip) *why = "the convergence test is the user's: -ksp_convergence_test default where PETSc's will do";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- monitors that the user says read the norm alone */

static PetscErrorCode KSPTCIterateAsked(KSP ksp, const char what[])
{
  PetscFunctionBegin;
  SETERRQ(PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_WRONGSTATE,
          "A monitor asks for the %s of iteration %" PetscInt_FMT ", but with -ksp_monitors_norm_only monitors read the norm alone: run without this option, or call KSPTCSetMonitorsNormOnly(ksp, PETSC_FALSE)", what, ksp->its);
}

static PetscErrorCode KSPBuildSolution_NormOnly(KSP ksp, Vec, Vec *)
{
  return KSPTCIterateAsked(ksp, "solution");
}

static PetscErrorCode KSPBuildResidual_NormOnly(KSP ksp, Vec, Vec, Vec *)
{
  return KSPTCIterateAsked(ksp, "residual");
}

/*
   Nobody gets solution or residual from the solver meanwhile, and the solution, which KSPGetSolution() gives and the user may have from KSPSolve(), is locked. The lock ends with the first operation that it stops, and one that
   takes an array for reading does not heed it.

   So it is in every fused solve, though the iterate may be there: what runs here is to run where iterations begin ahead
*/
static PetscErrorCode KSPTCMonitorsReadNormOnly(KSP ksp, PetscInt it, PetscReal rnorm)
{
  const Vec  X             = ksp->vec_sol;
  const auto buildsolution = ksp->ops->buildsolution;
  const auto buildresidual = ksp->ops->buildresidual;
  PetscInt   lock;

  PetscFunctionBegin;
  PetscCall(VecLockWriteSet(X, PETSC_TRUE));
  ksp->ops->buildsolution   = KSPBuildSolution_NormOnly;
  ksp->ops->buildresidual   = KSPBuildResidual_NormOnly;
  const PetscErrorCode ierr = KSPMonitor(ksp, it, rnorm);

  ksp->ops->buildsolution = buildsolution;
  ksp->ops->buildresidual = buildresidual;
  PetscCall(VecLockGet(X, &lock));
  if (lock < 0) PetscCall(VecLockWriteSet(X, PETSC_FALSE));
  PetscCall(ierr);
  if (lock >= 0) PetscCall(KSPTCIterateAsked(ksp, "solution")); /* and has gone on after the error */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPMonitor() of a fused solve */
PetscErrorCode KSPTCMonitor(KSP ksp, KSPTC tc, PetscInt it, PetscReal rnorm)
{
  PetscFunctionBegin;
  if (tc->only_norms && ksp->numbermonitors) PetscCall(KSPTCMonitorsReadNormOnly(ksp, it, rnorm));
  else PetscCall(KSPMonitor(ksp, it, rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what the user says */

static PetscErrorCode KSPTCSetMonitorsNormOnly_TC(KSP ksp, PetscBool flg)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  tc->norm_only = flg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCGetMonitorsNormOnly_TC(KSP ksp, PetscBool *flg)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  *flg = tc->norm_only;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* attach: or take the functions away */
PetscErrorCode KSPTCMonitorsAttach(KSP ksp, PetscBool attach)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPTCSetMonitorsNormOnly_C", attach ? KSPTCSetMonitorsNormOnly_TC : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPTCGetMonitorsNormOnly_C", attach ? KSPTCGetMonitorsNormOnly_TC : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCMonitorsSetFromOptions(KSPTC tc, PetscOptionItems PetscOptionsObject)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsBool("-ksp_monitors_norm_only", "All monitors read the norm alone, so that no iteration waits for them", "KSPTCSetMonitorsNormOnly", tc->norm_only, &tc->norm_only, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPTCSetMonitorsNormOnly - Says that all monitors of a solver read the residual norm alone, so that iterations need not wait for them

  Logically Collective

  Input Parameters:
+ ksp - a solver of type `KSPTCCG`, `KSPTCBCGS` or `KSPTCCR`, whose type is set; nothing happens for other types
- flg - `PETSC_TRUE` if no monitor looks at the solution or the residual, or changes anything of the solve

  Options Database Key:
. -ksp_monitors_norm_only (true|false) - say so, default `false`

  Level: intermediate

  Notes:
  On a GPU these types begin iterations before the host has looked at the one before them, or run up to 64 in one kernel. With a monitor (`KSPMonitorSet()`) of which nothing is known they do not, since it may look at the
  solution of its iteration. That takes several times as long. With this option monitors are called with the norms of all iterations in order, as before, but later.

  `KSPMonitorResidual()` and `KSPMonitorResidualDrawLG()` (`-ksp_monitor`, `-ksp_monitor draw::draw_lg`), and `-ksp_converged_rate`, are known to read the norm alone. They need no option. PETSc's other monitors look at the
  solution or the residual. They go on only without this option.

  A monitor under this option may use its arguments, `KSPGetIterationNumber()`, `KSPGetResidualNorm()`, the history, tolerances and the right-hand side. It must not change matrix, preconditioner or tolerances.

  In every fused solve it is an error (`PETSC_ERR_ARG_WRONGSTATE`) if such a monitor asks for the iterate\:
+ `KSPBuildSolution()` and `KSPBuildResidual()` - always
- the solution from `KSPGetSolution()` or as passed to `KSPSolve()` - in operations that write to it, view or multiply it, or reduce it to a number, for example `VecGetArray()`, `VecView()`, `MatMult()` and `VecNorm()`

  It is not noticed where the vector of the solution is copied (`VecCopy()`) or its array is read (`VecGetArrayRead()`). What is there then is the solution of some later iteration.

  A convergence test of the user's (`KSPSetConvergenceTest()`) still looks at every iteration before the next one begins, since it may end the solve. A solve that is not fused passes the iterate to monitors as PETSc does.

.seealso: `KSPTCCG`, `KSPTCBCGS`, `KSPTCCR`, `KSPTCGetMonitorsNormOnly()`, `KSPMonitorSet()`, `KSPTCGetSolveCounts()`
@*/
PetscErrorCode KSPTCSetMonitorsNormOnly(KSP ksp, PetscBool flg)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscValidLogicalCollectiveBool(ksp, flg, 2);
  PetscTryMethod(ksp, "KSPTCSetMonitorsNormOnly_C", (KSP, PetscBool), (ksp, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPTCGetMonitorsNormOnly - Gets whether all monitors of a solver are said to read the residual norm alone

  Not Collective

  Input Parameter:
. ksp - a solver of type `KSPTCCG`, `KSPTCBCGS` or `KSPTCCR`

  Output Parameter:
. flg - as set

  Level: intermediate

.seealso: `KSPTCCG`, `KSPTCBCGS`, `KSPTCCR`, `KSPTCSetMonitorsNormOnly()`
@*/
PetscErrorCode KSPTCGetMonitorsNormOnly(KSP ksp, PetscBool *flg)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscAssertPointer(flg, 2);
  PetscUseMethod(ksp, "KSPTCGetMonitorsNormOnly_C", (KSP, PetscBool *), (ksp, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}
