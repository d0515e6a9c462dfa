/*
   Solver: KSPTCCG

   Method: preconditioned conjugate gradients. One iteration is five fused steps (kspsteps.h) around a matrix product and an application of the preconditioner; the
   scalars live with the vectors and the host reads them once an iteration, to log, monitor and test convergence as KSPCG does.

   Algorithm: the loop, the order of its tests and what each leaves behind are those of KSPCG. Where a scalar is on the host before it is needed, the host tests it; the
   others are tested by the steps, which then freeze the iterate, and the host finds the reason at the next read.

   References: M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
               Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include <petsctc/private/petsctcdevice.h>
#include "tccgimpl.h" /*I "petsctc.h" I*/

/* ---- the solve */

/* Norms for which z is made at the end of every iteration */
static PetscBool TCCGNormOfZ(KSP ksp)
{
  return (PetscBool)(ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_NATURAL);
}

/* Is z made before the first norm, for it or since it is r? */
static PetscBool TCCGBeginsWithZ(KSP ksp, const KSP_TCCG *cg)
{
  return (PetscBool)(TCCGNormOfZ(ksp) || cg->identity);
}

/* Where an iteration does not end with the norm of z, KSPCG makes z behind monitors and test: a monitor or test of the user's may set a preconditioner before that */
static PetscErrorCode TCCGSetUp(KSP ksp, KSP_TCCG *cg)
{
  const char *watched;

  PetscFunctionBegin;
  PetscCall(KSPTCSetUpSteps(ksp, cg));
  PetscCall(PCGetOperators(ksp->pc, &cg->A, NULL));
  PetscCall(KSPTCIdentityPC(ksp, &cg->identity));
  PetscCall(KSPTCReplayLegal(ksp, cg, &watched));
  if (watched && (!TCCGNormOfZ(ksp) || ksp->chknorm > 0)) cg->identity = PETSC_FALSE;
  PetscCall(KSPTCUniformPC(ksp, cg, PETSC_FALSE, ksp->work[1]));
  if (cg->number > 0.0) cg->identity = PETSC_TRUE; /* z is r but for the norm */
  PetscCall(KSPTCMayBeginEarly(ksp, cg, &cg->early));
  if (!TCCGBeginsWithZ(ksp, cg)) cg->early = PETSC_FALSE;
  cg->diagonal.projects = (PetscBool)!cg->single_reduction;
  PetscCall(KSPTCDiagonalMark(ksp, &cg->diagonal));
  cg->resident.is     = PETSC_FALSE;
  cg->resident.wanted = cg->single_reduction ? KSPTC_VARIANT_SINGLE : cg->variant;
  cg->late            = 0;
  cg->kept            = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r <- b - A x, and what KSPCG starts the objective function from: 0 at x = 0 (and -1/2 x'Ax elsewhere, not what its comment says: kept, the value is PETSc's) */
PetscErrorCode TCCGInitialResidual(KSP ksp, KSP_TCCG *cg, PetscReal *obj)
{
  const Vec   X = ksp->vec_sol, B = ksp->vec_rhs, R = ksp->work[0];
  PetscScalar rx, bx;

  PetscFunctionBegin;
  *obj     = 0.0;
  ksp->its = 0;
  if (ksp->guess_zero) PetscCall(VecCopy(B, R));
  else {
    PetscCall(KSP_MatMult(ksp, cg->A, X, R));
    PetscCall(VecAYPX(R, -1.0, B));
    PetscCall(VecDot(R, X, &rx));
    PetscCall(VecDot(B, X, &bx));
    *obj = 0.5 * PetscRealPart(rx) - 0.5 * PetscRealPart(bx);
  }
  if (!cg->single_reduction) PetscCall(VecFlag(R, ksp->reason == KSP_DIVERGED_PC_FAILED)); /* as KSPCG, which leaves it out there */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is z, and with it beta, there at the end of iteration `it`, for its norm or since it is r? Behind an iteration of a call it always is */
static PetscBool TCCGEndsWithZ(KSP ksp, const KSP_TCCG *cg, PetscInt it)
{
  if (cg->identity || cg->resident.is || cg->columns.replays || (it > 0 && it <= cg->resident.its)) return PETSC_TRUE;
  if (ksp->normtype == KSP_NORM_NATURAL) return PETSC_TRUE;
  return ksp->normtype == KSP_NORM_PRECONDITIONED && ksp->chknorm < it + 1 ? PETSC_TRUE : PETSC_FALSE;
}

/* The norm after `it` iterations, from the scalars read. It is 0 where PETSc does not compute one */
PetscErrorCode TCCGNorm(KSP ksp, KSP_TCCG *cg, PetscInt it, PetscReal *dp, PetscBool *failed)
{
  const PetscBool skip = it > 0 && ksp->chknorm >= it + 1 ? PETSC_TRUE : PETSC_FALSE;

  PetscFunctionBegin;
  *failed = PETSC_FALSE;
  *dp     = 0.0;
  if (ksp->normtype == KSP_NORM_NATURAL) {
    PetscCall(KSPTCCheckDot(ksp, cg->s.beta, failed));
    *dp = KSPTCNormFactor(ksp, cg) * PetscSqrtReal(PetscAbsReal(cg->s.beta));
  } else if (ksp->normtype != KSP_NORM_NONE && !skip) {
    *dp = KSPTCNormFactor(ksp, cg) * PetscSqrtReal(ksp->normtype == KSP_NORM_PRECONDITIONED || cg->identity ? cg->s.zz : cg->s.rr);
    PetscCall(KSPTCCheckNorm(ksp, *dp, failed));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is needed for the first norm */
static PetscErrorCode TCCGMakeFirstNorm(KSP ksp, KSP_TCCG *cg)
{
  const PetscBool norm = (PetscBool)(ksp->normtype != KSP_NORM_NONE);

  PetscFunctionBegin;
  if (TCCGBeginsWithZ(ksp, cg)) {
    if (norm) PetscCall(KSPTCMakesFirstNorm(ksp, cg, cg->identity && !TCCGNormOfZ(ksp) ? PETSCTC_NORM_ZZ : KSPTCNormOfType(ksp->normtype)));
    PetscCall(TCCGPrecondition(ksp, cg));
    if (norm) PetscCall(KSPTCFirstNormBegun(cg));
  } else if (norm) PetscCall(TCCGResidual(cg, ksp->work[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first norm, its test, and z of the first iteration. `failed`: leave at once, the reason is set */
static PetscErrorCode TCCGStart(KSP ksp, KSP_TCCG *cg, PetscReal obj, PetscBool *failed)
{
  const PetscBool with_z = TCCGBeginsWithZ(ksp, cg);
  PetscReal       dp;

  PetscFunctionBegin;
  cg->known = (PetscBool)(with_z && ksp->normtype != KSP_NORM_NONE);
  if (cg->known) PetscCall(KSPTCAwaitFirstNorm(cg));
  else if (ksp->normtype != KSP_NORM_NONE) PetscCall(KSPTCReadScalars(cg));
  PetscCall(TCCGNorm(ksp, cg, 0, &dp, failed));
  if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
  cg->obj = obj;

  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall(KSPTCMonitor(ksp, cg, ksp->its, dp));
  ksp->rnorm = dp;
  PetscCall((*ksp->converged)(ksp, ksp->its, dp, &ksp->reason, ksp->cnvP));
  if (cg->early) PetscCall(KSPTCCheckAgrees(ksp, cg, 0));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);

  if (!with_z) PetscCall(TCCGPrecondition(ksp, cg));
  if (cg->known) PetscCall(KSPTCCheckDot(ksp, cg->s.beta, failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z as KSPCG has it is so many times ours, and with it r.z */
static PetscReal TCCGFactorOfZ(const KSP_TCCG *cg)
{
  return cg->number > 0.0 ? cg->number : (PetscReal)1.0;
}

/* beta of iteration i+1: sets the reason when the loop ends with it */
static PetscErrorCode TCCGTestBeta(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const PetscReal beta = cg->s.beta, betaold = cg->s.betaold, c = TCCGFactorOfZ(cg);

  PetscFunctionBegin;
  if (beta == 0.0) {
    ksp->reason = KSP_CONVERGED_ATOL;
    PetscCall(PetscInfo(ksp, "converged due to beta = 0\n"));
  } else if (i > 0 && beta * betaold < 0.0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite preconditioner, beta %g, betaold %g", (double)(c * beta), (double)(c * betaold));
    ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite preconditioner\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* p.Ap as KSPCG has it, whose p is made of z */
static PetscReal TCCGCurvatureOf(const KSP_TCCG *cg, PetscReal dpi)
{
  return TCCGFactorOfZ(cg) * TCCGFactorOfZ(cg) * dpi;
}

/* p.Ap is 0 or has changed its sign */
static PetscErrorCode TCCGNegativeCurvature(KSP ksp, KSP_TCCG *cg)
{
  PetscFunctionBegin;
  if (ksp->converged_neg_curve && !cg->single_reduction) { /* KSPCG has not heard of it there */
    PetscCall(PetscInfo(ksp, "converged due to negative curvature: %g\n", (double)TCCGCurvatureOf(cg, cg->s.dpi)));
    ksp->reason = KSP_CONVERGED_NEG_CURVE;
  } else {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite matrix, dpi %g, dpiold %g", (double)TCCGCurvatureOf(cg, cg->s.dpi), (double)TCCGCurvatureOf(cg, cg->s.dpiold));
    ksp->reason = KSP_DIVERGED_INDEFINITE_MAT;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite matrix\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A step has stopped iteration i+1: find the reason */
static PetscErrorCode TCCGStopped(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool *failed)
{
  PetscFunctionBegin;
  switch ((PetscTCStop)cg->s.stop) {
  case PETSCTC_STOP_BETA_NAN: /* KSPCG sees it before it begins the iteration */
    ksp->its = i;
    PetscCall(KSPTCCheckDot(ksp, cg->s.beta, failed));
    break;
  case PETSCTC_STOP_BETA_ZERO:
  case PETSCTC_STOP_BETA_SIGN:
    PetscCall(TCCGTestBeta(ksp, cg, i));
    break;
  case PETSCTC_STOP_DPI_NAN:
    PetscCall(KSPTCCheckDot(ksp, cg->s.dpi, failed));
    break;
  case PETSCTC_STOP_DPI_SIGN:
    PetscCall(TCCGNegativeCurvature(ksp, cg));
    break;
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "CG steps stopped with code %g, which is none of theirs", (double)cg->s.stop);
  }
  PetscCheck(ksp->reason, PETSC_COMM_SELF, PETSC_ERR_PLIB, "CG steps stopped with code %g at beta %g, p.Ap %g, which do not show it", (double)cg->s.stop, (double)cg->s.beta, (double)cg->s.dpi);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* beta of the iteration after i+1, if it is known yet. The last one decides between two reasons: it is made for that */
static PetscErrorCode TCCGNext(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool *failed)
{
  PetscFunctionBegin;
  if (!cg->known) {
    if (i + 1 < ksp->max_it) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(TCCGPrecondition(ksp, cg));
    PetscCall(KSPTCReadScalars(cg));
  }
  PetscCall(KSPTCCheckDot(ksp, cg->s.beta, failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The steps of iteration i+1 */
static PetscErrorCode TCCGBegin(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const PetscBool first = i == 0 ? PETSC_TRUE : PETSC_FALSE, z_is_r = cg->identity; /* whatever is kept: z has been made */
  const PetscInt  its = ksp->its;
  PetscBool       ends_with_z, carries;

  PetscFunctionBegin;
  PetscCall(KSPTCIdentityKeep(ksp, cg, &cg->identity));
  PetscCall(KSPTCDiagonalKeep(ksp, &cg->diagonal));
  ends_with_z = (PetscBool)(!cg->identity && TCCGEndsWithZ(ksp, cg, i + 1));
  if (!first && !TCCGEndsWithZ(ksp, cg, i)) { /* KSPCG does so before it counts the iteration, which tells after an error */
    ksp->its = PetscMin(its, i);
    PetscCall(TCCGPrecondition(ksp, cg));
    ksp->its = its;
  }
  carries = TCCGCarries(cg);
  if (!carries) PetscCall(TCCGMakeAndMultiply(ksp, cg, i, z_is_r));
  if (carries || !cg->w->made) {
    if (!carries) PetscCall(TCCGDirection(ksp, cg, i, z_is_r));
    if (cg->single_reduction) ksp->its = PetscMin(its, i); /* as above */
    PetscCall(TCCGMultiply(ksp, cg, i, z_is_r));
    ksp->its = its;
  }
  if (ends_with_z && !cg->diagonal.d) PetscCall(carries ? TCCGAdvance(ksp, cg, first, z_is_r, NULL) : TCCGUpdate(ksp, cg, i));
  PetscCall(KSPTCEndsIteration(ksp, cg, i + 1, KSPTCNormOfType(ksp->normtype)));
  if (carries && (!ends_with_z || cg->diagonal.d)) PetscCall(TCCGAdvance(ksp, cg, first, z_is_r, ends_with_z ? cg->diagonal.d : NULL));
  else if (!ends_with_z) PetscCall(TCCGUpdate(ksp, cg, i));
  else PetscCall(cg->diagonal.d ? TCCGUpdateScaled(ksp, cg, i) : TCCGPrecondition(ksp, cg));
  PetscCall(KSPTCIterationBegun(cg, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal or the blocks of the preconditioner where it is part of the steps; a resident solve has taken it */
static PetscErrorCode TCCGTakeDiagonal(KSP ksp, KSP_TCCG *cg)
{
  const PetscBool none = (PetscBool)(cg->diagonal.bs > 1 && TCCGCarries(cg)); /* blocks are part of no step that carries A p */

  PetscFunctionBegin;
  if (!cg->resident.is && !cg->identity && !none && TCCGNormOfZ(ksp)) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[0], &cg->diagonal));
  else if (!cg->resident.is) PetscCall(VecDestroy(&cg->diagonal.d));
  cg->last_pc_in_steps = (PetscBool)(cg->diagonal.d != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many directions are kept in a solve whose iterations begin ahead: those besides KSPCG's must find room */
static PetscErrorCode TCCGKeepDirections(KSP ksp, KSP_TCCG *cg)
{
  const PetscInt large = 1500000; /* rows from which on vectors come from device memory in every iteration. Measured: docs/log/2026-11.md */
  PetscBool      room  = PETSC_TRUE;

  PetscFunctionBegin;
  cg->kept = 1;
  if (!TCCGLeavesX(cg) || TCCGCarries(cg) || cg->resident.is) PetscFunctionReturn(PETSC_SUCCESS);
  if (cg->directions == PETSC_DECIDE && (cg->backend != KSPTC_CUDA || cg->n < large)) PetscFunctionReturn(PETSC_SUCCESS);
  if (cg->directions == PETSC_DECIDE && !cg->p[PETSCTC_LATE - 1]) PetscCall(PetscTCDeviceHasRoom((PETSCTC_LATE - 1) * sizeof(PetscScalar) * cg->n, &room));
  if (cg->directions != 1 && room) cg->kept = PETSCTC_LATE;
  for (PetscInt k = 1; k < cg->kept; k++) PetscCall(TCCGAnother(ksp, &cg->p[k]));
  cg->last_directions = cg->kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1. Afterwards: go on, or the reason is set; `failed`: and leave at once */
static PetscErrorCode TCCGIterate(KSP ksp, KSP_TCCG *cg, PetscInt i, PetscBool *failed)
{
  PetscReal dp;

  PetscFunctionBegin;
  ksp->its = i + 1;
  if (cg->known) PetscCall(TCCGTestBeta(ksp, cg, i));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (cg->columns.replays) {
    PetscCall(KSPTCColumnTaken(cg, i));
    PetscCall(KSPTCLogIteration(cg, 1, TCCGRowFlops(ksp, cg, i)));
  } else PetscCall(KSPTCRun(ksp, cg, i, TCCGResidentIterate, TCCGTakeDiagonal, TCCGBegin));
  if (KSPTCStoppedWithin(cg)) {
    PetscCall(TCCGStopped(ksp, cg, i, failed));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  cg->known = TCCGEndsWithZ(ksp, cg, i + 1);
  PetscCall(TCCGNorm(ksp, cg, i + 1, &dp, failed));
  if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
  cg->obj -= 0.5 * cg->s.a * (cg->known ? cg->s.betaold : cg->s.beta);

  ksp->rnorm = dp;
  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall(KSPTCMonitor(ksp, cg, i + 1, dp));
  PetscCall((*ksp->converged)(ksp, i + 1, dp, &ksp->reason, ksp->cnvP));
  PetscCall(KSPTCCheckAgrees(ksp, cg, i + 1));
  if (!ksp->reason) PetscCall(TCCGNext(ksp, cg, i, failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG's loop. After `failed` it ends with the reason that is set */
PetscErrorCode TCCGLoop(KSP ksp, KSP_TCCG *cg)
{
  PetscBool failed;

  PetscFunctionBegin;
  PetscCall(KSPTCLoop(ksp, cg, TCCGIterate, &failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the solve resident? Then its first call may be under way before the host looks at the first norm */
static PetscErrorCode TCCGBeginResident(KSP ksp, KSP_TCCG *cg)
{
  const Vec v[] = {ksp->work[2], ksp->work[0], ksp->work[1]};

  PetscFunctionBegin;
  PetscCall(KSPTCResidentSetUp(ksp, cg, cg->A, v, cg->identity, NULL, &cg->diagonal));
  if (cg->early && cg->resident.is) PetscCall(TCCGResidentBegin(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_TCCG(KSP ksp, KSPTC tc)
{
  KSP_TCCG *cg     = (KSP_TCCG *)tc;
  PetscBool failed = PETSC_FALSE;
  PetscReal obj;

  PetscFunctionBegin;
  PetscCall(TCCGSetUp(ksp, cg));
  PetscCall(TCCGInitialResidual(ksp, cg, &obj));
  PetscCall(TCCGMakeFirstNorm(ksp, cg));
  if (cg->early) PetscCall(TCCGBeginResident(ksp, cg));
  PetscCall(TCCGStart(ksp, cg, obj, &failed));
  if (failed || ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (!cg->early) PetscCall(TCCGBeginResident(ksp, cg));
  PetscCall(TCCGTakeDiagonal(ksp, cg));
  PetscCall(TCCGKeepDirections(ksp, cg));
  const PetscErrorCode ierr = TCCGLoop(ksp, cg);

  if (!ierr || ierr == PETSC_ERR_NOT_CONVERGED) PetscCall(TCCGSettle(ksp, cg)); /* for one who goes on after that error, too */
  cg->last_single = TCCGCarries(cg);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type */

static PetscErrorCode KSPTCPrepare_TCCG(KSP ksp, KSPTC tc, const char **why)
{
  KSP_TCCG   *cg      = (KSP_TCCG *)tc;
  const char *watched = NULL;

  PetscFunctionBegin;
  if (cg->single_reduction || (ksp->normtype == KSP_NORM_NATURAL && ksp->chknorm > 0)) PetscCall(KSPTCWatched(ksp, tc, &watched)); /* KSPCG multiplies before the monitors then, or makes z and beta twice, before and behind them */
  if (watched) PetscCall(PetscSNPrintf(cg->watched, sizeof(cg->watched), "%s is watched (%s)", cg->single_reduction ? "single reduction" : "the natural norm with -ksp_check_norm_iteration", watched));
  if (cg->radius != 0.0) *why = "a trust-region radius is set";
  else if (cg->obj_min < 0.0) *why = "an objective target is set";
  else if (watched) *why = cg->watched;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCOptions_TCCG(KSP ksp, KSPTC tc)
{
  KSP_TCCG *cg   = (KSP_TCCG *)tc;
  PetscInt  many = cg->directions;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_tccg_directions", &many, NULL));
  PetscCheck(many == PETSC_DECIDE || many == 1 || many == PETSCTC_LATE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-ksp_tccg_directions %" PetscInt_FMT ": it must be 1, %d or decide", many, (int)PETSCTC_LATE);
  cg->directions = many;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCRelease_TCCG(KSPTC tc)
{
  KSP_TCCG *cg = (KSP_TCCG *)tc;

  PetscFunctionBegin;
  PetscCall(KSPTCDiagonalRelease(&cg->diagonal));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&cg->carried[k]));
  for (int k = 1; k < PETSCTC_LATE; k++) PetscCall(VecDestroy(&cg->p[k]));
  PetscCall(KSPTCColumnsRelease(cg));
  PetscCall(KSPTCResidentRelease(tc));
  PetscCall(KSPTCReleaseSteps<KSP_TCCG>(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetRadius_TCCG(KSP ksp, PetscReal radius)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  PetscCall((*((KSP_TCCG *)tc)->set_radius)(ksp, radius));
  ((KSP_TCCG *)tc)->radius = radius;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetObjectiveTarget_TCCG(KSP ksp, PetscReal obj_min)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  PetscCall((*((KSP_TCCG *)tc)->set_obj_min)(ksp, obj_min));
  ((KSP_TCCG *)tc)->obj_min = obj_min;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGGetObjFcn_TCCG(KSP ksp, PetscReal *obj)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  if (tc->last_fused) *obj = ((KSP_TCCG *)tc)->obj;
  else PetscCall((*((KSP_TCCG *)tc)->get_obj)(ksp, obj));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc offers the objective function only without single reduction: follow it */
static PetscErrorCode TCCGWrapGetObjFcn(KSP ksp, KSP_TCCG *cg)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", &cg->get_obj));
  if (cg->get_obj) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_TCCG));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's function exchanges the solve and what gets the objective function */
static PetscErrorCode KSPCGUseSingleReduction_TCCG(KSP ksp, PetscBool flg)
{
  KSPTC     tc;
  KSP_TCCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  cg = (KSP_TCCG *)tc;
  PetscCall((*cg->set_single_reduction)(ksp, flg));
  PetscCall(KSPTCTakeSolve(ksp, tc));
  PetscCall(TCCGWrapGetObjFcn(ksp, cg));
  cg->single_reduction = flg;
  if (!flg && cg->variant == KSPTC_VARIANT_SINGLE) cg->variant = KSPTC_VARIANT_CLASSIC; /* the same switch */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG has the recurrences with one reduction, and vectors for them that KSPSetUp() makes */
static PetscErrorCode KSPTCChoose_TCCG(KSP ksp, KSPTC tc)
{
  const PetscBool single = (PetscBool)(tc->variant == KSPTC_VARIANT_SINGLE);

  PetscFunctionBegin;
  if (single == ((KSP_TCCG *)tc)->single_reduction) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPCGUseSingleReduction(ksp, single));
  ksp->setupstage = KSP_SETUP_NEW; /* KSPCG of PETSc 3.25 leaves that to the user */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   KSPTCCG - "tccg" - The preconditioned conjugate gradient method with fused vector operations

   Options Database Keys:
+  -ksp_type tccg                - selects this type
.  -ksp_tccg_fused (true|false)  - run the iteration in fused steps where that is legal (default), or always as `KSPCG` does
.  -ksp_tccg_variant <classic>   - (classic|single|auto) recurrences
.  -ksp_tccg_resident <decide>   - (true|false|decide) keep the vectors on the GPU's chip and run up to 64 iterations in one call
.  -ksp_tccg_matsolve <decide>   - (true|false|decide) `KSPMatSolve()` for up to 8 columns at once
.  -ksp_monitors_norm_only       - monitors of the user's read the norm alone, see `KSPTCSetMonitorsNormOnly()`
-  -ksp_tccg_mma (tensor|core)   - on a GPU, fold the partial sums of dot products on the Tensor Core (default, where the device has FP64 ones) or on CUDA cores

   Level: beginner

   Notes:
   This is `KSPCG` with another way through an iteration. A vector update and the dot products that follow it share one pass over the vectors. The scalars stay in
   the memory of the vectors. All options of `KSPCG` are options of this type too. Norm types, monitors, convergence tests, reasons, residual histories and
   iteration counts are those of `KSPCG` up to rounding. Any matrix and any preconditioner will do. Sums are added in a fixed order: two runs give the same bits.

   A solve that cannot be fused runs `KSPCG`'s own code: when eigenvalue estimates were requested, with a trust-region radius or an
   objective target, with single reduction and monitors or a test of the user's, with `-ksp_check_norm_iteration` and the natural norm, and for vectors that are
   neither `VECSEQ` nor `VECMPI` nor of their CUDA types. `-ksp_view` counts both kinds and says why, see `KSPTCGetSolveCounts()`.

   On a GPU the host may begin iterations before it has seen the norm of the one before; the steps make the convergence test themselves. Results have the same
   bits. A few products and applications of the preconditioner more may run and be logged. This takes effect with the default convergence test, monitors that look
   at the norm alone (`KSPTCSetMonitorsNormOnly()`), and the common preconditioners that are one fixed operation. `-ksp_view` says why not.

   `PCJACOBI` is part of the steps with the norms `KSP_NORM_PRECONDITIONED` and `KSP_NORM_NATURAL`, and so are `PCPBJACOBI` and `PCVPBJACOBI` with blocks of up to
   16 rows. Their flops are logged, their applications are not. A `PCJACOBI` that is one positive number is a factor of norms and is not applied in iterations. The
   projection against a null space of the constants (`MatSetNullSpace()`) is part of the steps too.

   `-ksp_tccg_resident` takes a sequential `MATAIJTC` without null space or with that of the constants, `PCNONE` or `PCJACOBI`, the default convergence test, and
   monitors that look at the norm alone. The matrix is on the chip too where it fits, up to about 2 million nonzeros on an H200, else as much of it as fits, or it is
   read from its layout; the vectors must fit. `decide` does so where it is expected to be faster, `true` wherever it is possible. Iterates differ from those of the
   steps by rounding. `-ksp_view` says whether a solve was resident, or why not. A kernel of which a block waits 2 s for the others gives up; it has then changed
   nothing, the steps go on with the solve, and `-ksp_view` says so.

   `-ksp_tccg_variant single` takes the recurrences of `KSPCGUseSingleReduction()`, `auto` takes them where the solve is resident with all its vectors and has no
   null space. Iteration counts differ by one or two in many solves.

   `-ksp_tccg_matsolve` takes up to 8 right-hand sides through an iteration together, with one product of the matrix with a block of vectors. Each column has its
   own recurrences and ends by itself. Counts, reasons, histories and monitors come column by column, as if they had been solved one after the other. It takes what
   `-ksp_tccg_resident` takes, but no null space, with `classic` recurrences, and no guess, DM or functions of the user's for each solve. The batch size
   (`KSPSetMatSolveBatchSize()`) is respected.

   The flops logged are those of `KSPCG`, but for a solve that breaks down on a GPU: one more application of the matrix and of the preconditioner may have run and
   been logged. `PCBDDC` and `PCHPDDM` look at the name of the solver's type: with this one they work as with any that is not PETSc's own.

   References:
   M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952;
   Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026

.seealso: [](ch_ksp), `KSPCG`, `KSPTCBCGS`, `MATAIJTC`, `KSPTCGetSolveCounts()`, `KSPTCSetMonitorsNormOnly()`, `KSPCGUseSingleReduction()`, `KSPCGSetRadius()`, `KSPSetComputeEigenvalues()`, `KSPMatSolve()`
M*/
PETSC_EXTERN PetscErrorCode KSPCreate_TCCG(KSP ksp)
{
  KSP_TCCG   *cg;
  PetscObject obj = (PetscObject)ksp;

  PetscFunctionBegin;
  PetscCall(PetscNew(&cg));
  cg->name                     = KSPTCCG;
  cg->page                     = "KSPTCCG";
  cg->prepare                  = KSPTCPrepare_TCCG;
  cg->solve                    = KSPSolve_TCCG;
  cg->choose                   = KSPTCChoose_TCCG;
  cg->options                  = KSPTCOptions_TCCG;
  cg->directions               = PETSC_DECIDE;
  cg->resident.may_stream      = PETSC_TRUE;
  cg->resident.windows_from[0] = 3200000;
  cg->resident.windows_from[1] = 2400000;
  cg->resident.may_project     = PETSC_TRUE;
  cg->columns.solve            = KSPTCMatSolve<KSP_TCCG>;
  cg->diagonal.projects        = PETSC_TRUE;
  cg->release                  = KSPTCRelease_TCCG;
  cg->resident.kernel          = TCCGResidentKernels;
  cg->resident.vectors         = TCCGVectorsOfBlock(false);
  cg->resident.thin            = TCCGThinVectorsOfBlock(false);
  PetscCall(KSPTCAttach(ksp, KSPCG, cg));

  PetscCall(PetscObjectQueryFunction(obj, "KSPCGUseSingleReduction_C", &cg->set_single_reduction));
  PetscCall(PetscObjectQueryFunction(obj, "KSPCGSetRadius_C", &cg->set_radius));
  PetscCall(PetscObjectQueryFunction(obj, "KSPCGSetObjectiveTarget_C", &cg->set_obj_min));
  PetscCheck(cg->set_single_reduction && cg->set_radius && cg->set_obj_min, PetscObjectComm(obj), PETSC_ERR_PLIB, "KSPCG of this PETSc lacks one of the functions KSPTCCG passes on");
  PetscCall(PetscObjectComposeFunction(obj, "KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_TCCG));
  PetscCall(PetscObjectComposeFunction(obj, "KSPCGSetRadius_C", KSPCGSetRadius_TCCG));
  PetscCall(PetscObjectComposeFunction(obj, "KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_TCCG));
  PetscCall(TCCGWrapGetObjFcn(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}
