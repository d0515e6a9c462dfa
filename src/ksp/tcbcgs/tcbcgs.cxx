/*
   Solver: KSPTCBCGS

   Method: stabilized biconjugate gradients. One iteration is five fused steps (kspsteps.h) around two applications of the preconditioned operator; the scalars live with
   the vectors and the host reads them once an iteration, to log, monitor and test convergence as KSPBCGS does.

   Algorithm: the loop, the order of its tests and what each leaves behind are those of KSPBCGS, but for one: an initial guess that an earlier solve with right
   preconditioning has put aside is not added to the solution of a later solve that has none.

   References: H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat.
               Comput. 13(2), 1992
               Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "tcbcgsimpl.h" /*I "petsctc.h" I*/

/* ---- the steps on vectors. Flops are those of KSPBCGS, r.rp of the coming iteration with the update that makes r */

/* A row's, at the beginning of a solve: r.r as rho, and as the norm */
PetscLogDouble TCBCGSStartFlops(KSP ksp)
{
  return ksp->normtype == KSP_NORM_NONE ? 2.0 : 4.0;
}

/* A row's, of a preconditioner that is one number and not applied */
static PetscLogDouble TCBCGSNumberFlops(const KSP_TCBCGS *bcgs)
{
  return bcgs->number > 0.0 ? 1.0 : 0.0;
}

static PetscErrorCode TCBCGSStart(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec    v[] = {ksp->work[BCGS_R], ksp->work[BCGS_RP], ksp->work[BCGS_P], ksp->work[BCGS_V]};
  PetscScalar *a[4];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(bcgs, 1, 3, v, a));
  PetscCall((*bcgs->steps->start)(bcgs->n, a[0], a[1], a[2], a[3], bcgs->w, bcgs->stream));
  PetscCall(KSPTCStepEnd(bcgs, 1, 3, v, a, TCBCGSStartFlops(ksp) * bcgs->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBCGSDirection(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec    v[] = {ksp->work[BCGS_R], ksp->work[BCGS_V], ksp->work[BCGS_P]};
  PetscScalar *a[3];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(bcgs, 2, 1, v, a));
  PetscCall((*bcgs->steps->direction)(bcgs->n, a[0], a[1], a[2], bcgs->w, bcgs->stream));
  PetscCall(KSPTCStepEnd(bcgs, 2, 1, v, a, 4.0 * bcgs->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* work[to] <- K work[from] with a preconditioner that is a diagonal or blocks on it: the product goes to work[product], and step(arrays, blocks) of that, the diagonal, work[from], rp and work[to] is behind it.
   flops: a row's besides the preconditioner's */
template <class Step>
static PetscErrorCode TCBCGSApplyScaled(KSP ksp, KSP_TCBCGS *bcgs, PetscInt from, PetscInt product, PetscInt to, Step step, PetscLogDouble flops)
{
  const Vec    v[] = {ksp->work[product], bcgs->diagonal.d, ksp->work[from], ksp->work[BCGS_RP], ksp->work[to]};
  PetscScalar *a[5];
  Mat          A;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  bcgs->w->sums     = NULL;
  bcgs->w->constant = (PetscBool)(bcgs->diagonal.projection == KSPTC_PROJECTION_CONSTANT);
  if (!KSPTCInVain(bcgs)) PetscCall(KSP_MatMult(ksp, A, ksp->work[from], ksp->work[product]));
  PetscCall(KSPTCStepBegin(bcgs, 4, 1, v, a));
  PetscCall(step(a, KSPTCBlocksOf(&bcgs->diagonal, bcgs->n, a[1])));
  PetscCall(KSPTCStepEnd(bcgs, 4, 1, v, a, (flops + KSPTCDiagonalFlops(&bcgs->diagonal)) * bcgs->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* work[to] <- K work[from]; without preconditioner the product may bring the dot products with work[other] and, unless u is NULL, with u */
static PetscErrorCode TCBCGSApply(KSP ksp, KSP_TCBCGS *bcgs, PetscInt from, PetscInt other, Vec u, PetscInt to, PetscInt work)
{
  Mat A;

  PetscFunctionBegin;
  bcgs->w->sums = NULL;
  if (KSPTCInVain(bcgs)) PetscFunctionReturn(PETSC_SUCCESS);
  if (bcgs->identity) {
    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(KSPTCMultSums(ksp, bcgs, A, ksp->work[from], ksp->work[other], u, ksp->work[to], &bcgs->w->sums));
  } else PetscCall(KSP_PCApplyBAorAB(ksp, ksp->work[from], ksp->work[to], ksp->work[work]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* alpha if it is not there, and s, whose making needs nothing else */
static PetscErrorCode TCBCGSHalf(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec    v[] = {ksp->work[BCGS_V], ksp->work[BCGS_RP], ksp->work[BCGS_R], ksp->work[BCGS_S]};
  PetscScalar *a[4];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(bcgs, 3, 1, v, a));
  if (!bcgs->diagonal.d && !bcgs->w->sums) PetscCall((*bcgs->steps->breakdown)(bcgs->n, a[0], a[1], bcgs->w, bcgs->stream));
  PetscCall((*bcgs->steps->half)(bcgs->n, a[2], a[0], a[3], bcgs->w, bcgs->stream));
  PetscCall(KSPTCStepEnd(bcgs, 3, 1, v, a, ((bcgs->diagonal.d ? 2.0 : 4.0) + TCBCGSNumberFlops(bcgs)) * bcgs->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* omega if it is not there, x and r */
static PetscErrorCode TCBCGSUpdate(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec      v[]   = {ksp->work[BCGS_P], ksp->work[BCGS_S], ksp->work[BCGS_T], ksp->work[BCGS_RP], ksp->vec_sol, ksp->work[BCGS_R]};
  PetscLogDouble flops = ((ksp->normtype == KSP_NORM_NONE ? 12.0 : 14.0) - (bcgs->diagonal.d ? 4.0 : 0.0) + TCBCGSNumberFlops(bcgs)) * bcgs->n;
  PetscScalar   *a[6];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(bcgs, 4, 2, v, a));
  if (!bcgs->diagonal.d && !bcgs->w->sums) PetscCall((*bcgs->steps->stabilize)(bcgs->n, a[2], a[1], NULL, bcgs->w, bcgs->stream));
  PetscCall((*bcgs->steps->update)(bcgs->n, a[0], a[1], a[2], a[3], a[4], a[5], bcgs->w, bcgs->stream));
  PetscCall(KSPTCStepEnd(bcgs, 4, 2, v, a, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* omega if it is not there, x, r and p of the next iteration */
static PetscErrorCode TCBCGSAdvance(KSP ksp, KSP_TCBCGS *bcgs)
{
  const Vec      v[]   = {ksp->work[BCGS_S], ksp->work[BCGS_T], ksp->work[BCGS_V], ksp->work[BCGS_RP], ksp->vec_sol, ksp->work[BCGS_R], ksp->work[BCGS_P]};
  PetscLogDouble flops = ((ksp->normtype == KSP_NORM_NONE ? 18.0 : 20.0) - (bcgs->diagonal.d ? 8.0 : 0.0) + TCBCGSNumberFlops(bcgs)) * bcgs->n;
  PetscScalar   *a[7];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(bcgs, 4, 3, v, a));
  if (!bcgs->diagonal.d && !bcgs->w->sums) PetscCall((*bcgs->steps->stabilize)(bcgs->n, a[1], a[0], a[3], bcgs->w, bcgs->stream));
  PetscCall((*bcgs->steps->advance)(bcgs->n, a[0], a[1], a[2], a[4], a[5], a[6], bcgs->w, bcgs->stream));
  PetscCall(KSPTCStepEnd(bcgs, 4, 3, v, a, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solve */

/* Count and norm after `it` iterations, for the monitors too; the history gets `logged` */
static PetscErrorCode TCBCGSLog(KSP ksp, KSP_TCBCGS *bcgs, PetscInt it, PetscReal rnorm, PetscReal logged)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectSAWsTakeAccess((PetscObject)ksp));
  ksp->its   = it;
  ksp->rnorm = rnorm;
  PetscCall(PetscObjectSAWsGrantAccess((PetscObject)ksp));
  PetscCall(KSPLogResidualHistory(ksp, logged));
  PetscCall(KSPTCMonitor(ksp, bcgs, it, rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of r, from the scalars. `failed`: leave at once, the reason is set */
static PetscErrorCode TCBCGSNorm(KSP ksp, KSP_TCBCGS *bcgs, PetscBool *failed)
{
  PetscFunctionBegin;
  bcgs->dp = KSPTCNormFactor(ksp, bcgs) * PetscSqrtReal(bcgs->s.rr);
  PetscCall(KSPTCCheckNorm(ksp, bcgs->dp, failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The norm of the first residual, from the scalars, for the history and the monitors. `failed`: leave at once, the reason is set */
PetscErrorCode TCBCGSFirstNorm(KSP ksp, KSP_TCBCGS *bcgs, PetscBool *failed)
{
  PetscFunctionBegin;
  bcgs->dp = 0.0;
  if (ksp->normtype != KSP_NORM_NONE) {
    PetscCall(TCBCGSNorm(ksp, bcgs, failed));
    if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TCBCGSLog(ksp, bcgs, 0, bcgs->dp, bcgs->dp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the preconditioner one number? Then iterates are those without, and r is KSPBCGS's but for the norm: from the left, KSPInitialResidual() has left it in t before it was applied */
static PetscErrorCode TCBCGSTakeNumber(KSP ksp, KSP_TCBCGS *bcgs)
{
  const PetscBool applied = (PetscBool)(ksp->pc_side == PC_LEFT);

  PetscFunctionBegin;
  PetscCall(KSPTCUniformPC(ksp, bcgs, applied, ksp->work[BCGS_V]));
  if (bcgs->number == 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  bcgs->identity = PETSC_TRUE;
  if (!applied) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecCopy(ksp->work[BCGS_T], ksp->work[BCGS_R]));
  PetscCall(VecFlag(ksp->work[BCGS_R], ksp->reason == KSP_DIVERGED_PC_FAILED));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first residual, and what is needed for its norm */
static PetscErrorCode TCBCGSInitialResidual(KSP ksp, KSP_TCBCGS *bcgs)
{
  const PetscBool norm = (PetscBool)(ksp->normtype != KSP_NORM_NONE);

  PetscFunctionBegin;
  PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[BCGS_V], ksp->work[BCGS_T], ksp->work[BCGS_R], ksp->vec_rhs));
  PetscCall(TCBCGSTakeNumber(ksp, bcgs));
  PetscCall(KSPTCMayBeginEarly(ksp, bcgs, &bcgs->early));
  if (norm) PetscCall(KSPTCMakesFirstNorm(ksp, bcgs, PETSCTC_NORM_RR));
  PetscCall(TCBCGSStart(ksp, bcgs));
  if (norm) PetscCall(KSPTCFirstNormBegun(bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first norm and its test. `failed`: leave at once, the reason is set */
static PetscErrorCode TCBCGSTestFirstNorm(KSP ksp, KSP_TCBCGS *bcgs, PetscBool *failed)
{
  PetscFunctionBegin;
  if (ksp->normtype != KSP_NORM_NONE) PetscCall(KSPTCAwaitFirstNorm(bcgs));
  PetscCall(TCBCGSFirstNorm(ksp, bcgs, failed));
  if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*ksp->converged)(ksp, 0, bcgs->dp, &ksp->reason, ksp->cnvP));
  if (bcgs->early) PetscCall(KSPTCCheckAgrees(ksp, bcgs, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the solve resident? Then its first call may be under way before the host looks at the first norm */
static PetscErrorCode TCBCGSBeginResident(KSP ksp, KSP_TCBCGS *bcgs)
{
  PetscFunctionBegin;
  PetscCall(TCBCGSResidentSetUp(ksp, bcgs));
  if (bcgs->resident.is && (bcgs->resident.layout || bcgs->resident.variant == KSPTC_VARIANT_CLASSIC)) bcgs->single = PETSC_FALSE;
  bcgs->last_single = bcgs->single;
  if (bcgs->early && bcgs->resident.is) PetscCall(TCBCGSResidentBegin(ksp, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBCGSBreakdown(KSP ksp, const char *error, const char *info)
{
  PetscFunctionBegin;
  PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "%s", error);
  ksp->reason = KSP_DIVERGED_BREAKDOWN;
  PetscCall(PetscInfo(ksp, "%s\n", info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t is 0. If s is 0 too, x + alpha p is the solution. The history gets the norm last computed, the monitors get 0, as in KSPBCGS */
static PetscErrorCode TCBCGSZeroT(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i)
{
  PetscScalar ss;

  PetscFunctionBegin;
  if (bcgs->columns.replays) PetscCall(TCBCGSColumnBroken(ksp, bcgs));
  PetscCall(VecDot(ksp->work[BCGS_S], ksp->work[BCGS_S], &ss));
  if (ss != 0.0) {
    PetscCall(TCBCGSBreakdown(ksp, "KSPSolve has failed due to singular preconditioned operator", "Failed due to singular preconditioned operator"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecAXPY(ksp->vec_sol, bcgs->s.alpha, ksp->work[BCGS_P]));
  ksp->reason = KSP_CONVERGED_RTOL;
  PetscCall(TCBCGSLog(ksp, bcgs, i + 1, 0.0, bcgs->dp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of an iteration of a column. Where v.rp stops it the second is left out, but on a GPU */
static int TCBCGSProducts(const KSP_TCBCGS *bcgs)
{
  const PetscTCStop stop = (PetscTCStop)bcgs->s.stop;

  return bcgs->backend == KSPTC_HOST && (stop == PETSCTC_STOP_D1_NAN || stop == PETSCTC_STOP_D1_ZERO) ? 1 : 2;
}

/* A step has stopped iteration i+1: find the reason */
static PetscErrorCode TCBCGSStopped(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i, PetscBool *failed)
{
  PetscFunctionBegin;
  switch ((PetscTCStop)bcgs->s.stop) {
  case PETSCTC_STOP_D1_NAN:
    PetscCall(KSPTCCheckDot(ksp, bcgs->s.d1, failed));
    break;
  case PETSCTC_STOP_D1_ZERO:
    PetscCall(TCBCGSBreakdown(ksp, "KSPSolve breakdown due to zero inner product", "Breakdown due to zero inner product"));
    break;
  case PETSCTC_STOP_D2_ZERO:
    PetscCall(TCBCGSZeroT(ksp, bcgs, i));
    break;
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "BiCGSTAB steps stopped with code %g, which is none of theirs", (double)bcgs->s.stop);
  }
  PetscCheck(ksp->reason, PETSC_COMM_SELF, PETSC_ERR_PLIB, "BiCGSTAB steps stopped with code %g at v.rp %g, t.t %g, which do not show it", (double)bcgs->s.stop, (double)bcgs->s.d1, (double)bcgs->s.tt);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v <- K p, and v.rp unless half is to begin with it */
static PetscErrorCode TCBCGSFirst(KSP ksp, KSP_TCBCGS *bcgs)
{
  const auto step = [bcgs](PetscScalar *const a[], const PetscTCBlocks &blocks) {
    if (blocks.size > 1) return (*bcgs->steps->breakdown_blocks)(bcgs->n, &blocks, a[0], a[3], a[4], bcgs->w, bcgs->stream);
    return (*bcgs->steps->breakdown_scaled)(bcgs->n, a[0], a[1], a[3], a[4], bcgs->w, bcgs->stream);
  };

  PetscFunctionBegin;
  if (bcgs->diagonal.d) PetscCall(TCBCGSApplyScaled(ksp, bcgs, BCGS_P, BCGS_T, BCGS_V, step, 2.0));
  else PetscCall(TCBCGSApply(ksp, bcgs, BCGS_P, BCGS_RP, NULL, BCGS_V, BCGS_T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t <- K s, and its sums unless update or advance is to begin with them. r is work */
static PetscErrorCode TCBCGSSecond(KSP ksp, KSP_TCBCGS *bcgs)
{
  const auto step = [bcgs](PetscScalar *const a[], const PetscTCBlocks &blocks) {
    const PetscScalar *rp = bcgs->single ? a[3] : NULL;

    if (blocks.size > 1) return (*bcgs->steps->stabilize_blocks)(bcgs->n, &blocks, a[0], a[2], rp, a[4], bcgs->w, bcgs->stream);
    return (*bcgs->steps->stabilize_scaled)(bcgs->n, a[0], a[1], a[2], rp, a[4], bcgs->w, bcgs->stream);
  };

  PetscFunctionBegin;
  if (bcgs->diagonal.d) PetscCall(TCBCGSApplyScaled(ksp, bcgs, BCGS_S, BCGS_R, BCGS_T, step, bcgs->single ? 8.0 : 4.0));
  else PetscCall(TCBCGSApply(ksp, bcgs, BCGS_S, BCGS_S, bcgs->single ? ksp->work[BCGS_RP] : NULL, BCGS_T, BCGS_R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does v.rp stop the solve, as the host knows? Then half finds that, and the product is left out. On a GPU the host does not know */
static PetscBool TCBCGSBreaksDown(const KSP_TCBCGS *bcgs, const PetscScalar *d1)
{
  return (PetscBool)(bcgs->backend == KSPTC_HOST && (*d1 == 0.0 || PetscIsInfOrNanScalar(*d1)));
}

/* Has the end of iteration i made p of the next one, whose scalars come with its breakdown? A call may have left that to the steps that have gone on */
static PetscBool TCBCGSAdvanced(const KSP_TCBCGS *bcgs, PetscInt i)
{
  return (PetscBool)(i && bcgs->single && !(i == bcgs->resident.its && bcgs->s.advanced == 0.0));
}

/* s, t <- K s and their sums in the pass of the product, where that makes s, and where the product before has left v.rp: then bcgs->w->made */
static PetscErrorCode TCBCGSMakeAndMultiply(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i)
{
  const PetscScalar   *d1    = bcgs->w->sums, *sums;
  const TCBCGSScalars *s     = bcgs->w->s;              /* addresses alone */
  const PetscBool      ahead = TCBCGSAdvanced(bcgs, i); /* rho of this iteration is not there yet */
  MatAIJTCWAXPY        waxpy = {
           ksp->work[BCGS_R], ksp->work[BCGS_V], {NULL, NULL, ahead ? &s->rhonext : &s->rho, d1, NULL, &s->stop, PETSC_TRUE}
  };
  Mat A;

  PetscFunctionBegin;
  bcgs->w->made = NULL;
  if (!bcgs->identity || !d1 || KSPTCInVain(bcgs) || TCBCGSBreaksDown(bcgs, d1)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(KSPTCWAXPYMultSums(ksp, bcgs, A, &waxpy, ksp->work[BCGS_S], bcgs->single ? ksp->work[BCGS_RP] : NULL, ksp->work[BCGS_T], &sums));
  if (!sums) PetscFunctionReturn(PETSC_SUCCESS);
  bcgs->w->sums = sums;
  bcgs->w->made = d1;
  PetscCall(KSPTCLogFlops(bcgs, (4.0 + TCBCGSNumberFlops(bcgs)) * bcgs->n)); /* of s and v.rp */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The steps of iteration i+1 */
static PetscErrorCode TCBCGSBegin(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(KSPTCIdentityKeep(ksp, bcgs, &bcgs->identity));
  PetscCall(KSPTCDiagonalKeep(ksp, &bcgs->diagonal));
  if (!TCBCGSAdvanced(bcgs, i)) PetscCall(TCBCGSDirection(ksp, bcgs));
  PetscCall(TCBCGSFirst(ksp, bcgs));
  PetscCall(TCBCGSMakeAndMultiply(ksp, bcgs, i));
  if (!bcgs->w->made) {
    PetscCall(TCBCGSHalf(ksp, bcgs));
    PetscCall(TCBCGSSecond(ksp, bcgs));
  }
  PetscCall(KSPTCEndsIteration(ksp, bcgs, i + 1, ksp->normtype == KSP_NORM_NONE ? PETSCTC_NORM_NONE : PETSCTC_NORM_RR));
  if (bcgs->single) PetscCall(TCBCGSAdvance(ksp, bcgs));
  else PetscCall(TCBCGSUpdate(ksp, bcgs));
  PetscCall(KSPTCIterationBegun(bcgs, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal or the blocks of the preconditioner where it is part of composed steps; a resident solve has taken it */
static PetscErrorCode TCBCGSTakeDiagonal(KSP ksp, KSP_TCBCGS *bcgs)
{
  PetscFunctionBegin;
  if (!bcgs->resident.is && ksp->pc_side == PC_LEFT && !ksp->transpose_solve && bcgs->number == 0.0) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[BCGS_R], &bcgs->diagonal));
  else if (!bcgs->resident.is) PetscCall(VecDestroy(&bcgs->diagonal.d));
  bcgs->last_pc_in_steps = (PetscBool)(bcgs->diagonal.d != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1. Afterwards: go on, or the reason is set; `failed`: and leave at once */
static PetscErrorCode TCBCGSIterate(KSP ksp, KSP_TCBCGS *bcgs, PetscInt i, PetscBool *failed)
{
  PetscFunctionBegin;
  if (bcgs->columns.replays) {
    PetscCall(KSPTCColumnTaken(bcgs, i));
    PetscCall(KSPTCLogIteration(bcgs, TCBCGSProducts(bcgs), TCBCGSRowFlops(ksp, bcgs)));
  } else PetscCall(KSPTCRun(ksp, bcgs, i, TCBCGSResidentIterate, TCBCGSTakeDiagonal, TCBCGSBegin));
  if (KSPTCStoppedWithin(bcgs)) {
    PetscCall(TCBCGSStopped(ksp, bcgs, i, failed));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ksp->normtype != KSP_NORM_NONE && ksp->chknorm < i + 2) {
    PetscCall(TCBCGSNorm(ksp, bcgs, failed));
    if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TCBCGSLog(ksp, bcgs, i + 1, bcgs->dp, bcgs->dp));
  PetscCall((*ksp->converged)(ksp, i + 1, bcgs->dp, &ksp->reason, ksp->cnvP));
  if (!ksp->reason && bcgs->s.rho == 0.0) PetscCall(TCBCGSBreakdown(ksp, "KSPSolve breakdown due to zero inner product", "Breakdown due to zero rho inner product"));
  PetscCall(KSPTCCheckAgrees(ksp, bcgs, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPBCGS's loop. After `failed` it ends with the reason that is set */
PetscErrorCode TCBCGSLoop(KSP ksp, KSP_TCBCGS *bcgs)
{
  PetscBool failed;

  PetscFunctionBegin;
  PetscCall(KSPTCLoop(ksp, bcgs, TCBCGSIterate, &failed));
  if (failed) PetscFunctionReturn(PETSC_SUCCESS);
  if (!bcgs->columns.replays && bcgs->number == 0.0) PetscCall(KSPUnwindPreconditioner(ksp, ksp->vec_sol, ksp->work[BCGS_T])); /* columns have a preconditioner from the left, or none; so have iterates without it */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_TCBCGS(KSP ksp, KSPTC tc)
{
  KSP_TCBCGS *bcgs   = (KSP_TCBCGS *)tc;
  PetscBool   failed = PETSC_FALSE;

  PetscFunctionBegin;
  bcgs->single              = (PetscBool)(bcgs->variant != KSPTC_VARIANT_CLASSIC);
  bcgs->resident.wanted     = bcgs->variant;
  bcgs->resident.may_stream = (PetscBool)(bcgs->variant != KSPTC_VARIANT_SINGLE);
  PetscCall(KSPTCSetUpSteps(ksp, bcgs));
  PetscCall(KSPTCIdentityPC(ksp, &bcgs->identity));
  PetscCall(KSPTCDiagonalMark(ksp, &bcgs->diagonal));
  PetscCall(TCBCGSInitialResidual(ksp, bcgs));
  if (bcgs->early) PetscCall(TCBCGSBeginResident(ksp, bcgs));
  PetscCall(TCBCGSTestFirstNorm(ksp, bcgs, &failed));
  if (failed || ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (!bcgs->early) PetscCall(TCBCGSBeginResident(ksp, bcgs));
  PetscCall(TCBCGSTakeDiagonal(ksp, bcgs));
  PetscCall(TCBCGSLoop(ksp, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type */

/*
   With right preconditioning and a nonzero guess KSPBCGS keeps the guess in its private data, for the final sum and for KSPBuildSolution(): that solve is PETSc's.
   Its reset drops the guess, which must not reach a solve that has none.
*/
static PetscErrorCode KSPTCPrepare_TCBCGS(KSP ksp, KSPTC tc, const char **why)
{
  PetscFunctionBegin;
  if (ksp->pc_side == PC_RIGHT && !ksp->guess_zero) *why = "nonzero initial guess with right preconditioning";
  else if (tc->parent.reset) PetscCall((*tc->parent.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCRelease_TCBCGS(KSPTC tc)
{
  PetscFunctionBegin;
  PetscCall(KSPTCDiagonalRelease(&((KSP_TCBCGS *)tc)->diagonal));
  PetscCall(KSPTCColumnsRelease((KSP_TCBCGS *)tc));
  PetscCall(KSPTCResidentRelease(tc));
  PetscCall(KSPTCReleaseSteps<KSP_TCBCGS>(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   KSPTCBCGS - "tcbcgs" - The stabilized biconjugate gradient method with fused vector operations

   Options Database Keys:
+  -ksp_type tcbcgs               - selects this type
.  -ksp_tcbcgs_fused (true|false) - run the iteration in fused steps where that is legal (default), or always as `KSPBCGS` does
.  -ksp_tcbcgs_variant <classic>  - (classic|single|auto) recurrences
.  -ksp_tcbcgs_resident <decide>  - (true|false|decide) keep the vectors on the GPU's chip and run up to 64 iterations in one call
.  -ksp_tcbcgs_matsolve <decide>  - (true|false|decide) `KSPMatSolve()` for up to 8 columns at once
.  -ksp_monitors_norm_only        - monitors of the user's read the norm alone, see `KSPTCSetMonitorsNormOnly()`
-  -ksp_tcbcgs_mma (tensor|core)  - on a GPU, fold the partial sums of dot products on the Tensor Core (default, where the device has FP64 ones) or on CUDA cores

   Level: beginner

   Notes:
   This is `KSPBCGS` with another way through an iteration. A vector update and the dot products that follow it share one pass over the vectors. The scalars stay in
   the memory of the vectors. Norm types, preconditioning sides, monitors, convergence tests, reasons, residual histories and iteration counts are those of `KSPBCGS`
   up to rounding, to which BiCGSTAB is sensitive. Any matrix and any preconditioner will do. Sums are added in a fixed order: two runs give the same bits.

   A solve that cannot be fused runs `KSPBCGS`'s own code: when eigenvalue estimates were requested, with a nonzero initial guess and right
   preconditioning, and for vectors that are neither `VECSEQ` nor `VECMPI` nor of their CUDA types. `-ksp_view` counts both kinds and says why, see `KSPTCGetSolveCounts()`.

   `KSPBCGS` adds the initial guess of an earlier solve with right preconditioning to the solution of every later one; this type does not.

   On a GPU the host may begin iterations before it has seen the norm of the one before; the steps make the convergence test themselves. Results have the same
   bits. A few products and applications of the preconditioner more may run and be logged. This takes effect with the default convergence test, monitors that look
   at the norm alone (`KSPTCSetMonitorsNormOnly()`), and the common preconditioners that are one fixed operation. `-ksp_view` says why not.

   From the left `PCJACOBI` is part of the steps, and so are `PCPBJACOBI` and `PCVPBJACOBI` with blocks of up to 16 rows. Their flops are logged, their applications are
   not. A `PCJACOBI` that is one positive number is, from either side, not applied in iterations; from the left it is a factor of the norm. With one of these or
   `PCNONE` from the left the projection against a null space of the constants (`MatSetNullSpace()`) is part of the steps too.

   `-ksp_tcbcgs_resident` takes a sequential `MATAIJTC`, from the left without null space, `PCNONE` or `PCJACOBI` from either side, the default convergence test, and
   monitors that look at the norm alone. The matrix is on the chip too where it fits, up to about 1.6 million nonzeros on an H200, else as much of it as fits, or it
   is read from its layout; the vectors must fit. `decide` does so where it is expected to be faster, `true` wherever it is possible. Iterates differ from those of
   the steps by rounding. `-ksp_view` says whether a solve was resident, or why not. A kernel of which a block waits 2 s for the others gives up; it has then changed
   nothing, the steps go on with the solve, and `-ksp_view` says so.

   `-ksp_tcbcgs_variant single` has two reductions an iteration instead of three, and a pass over the vectors less: r.rp of the next iteration is made of s.rp and
   t.rp. Norms are still those of the residual that is there, and tested in every iteration. Iteration counts differ somewhat. `auto` takes it but where the matrix is
   read from its layout, for which there are `classic` recurrences alone.

   `-ksp_tcbcgs_matsolve` takes up to 8 right-hand sides through an iteration together, with one product of the matrix with a block of vectors. Each column has its
   own recurrences and ends by itself. Counts, reasons, histories and monitors come column by column, as if they had been solved one after the other. It takes what
   `-ksp_tcbcgs_resident` takes, but no null space, `PCJACOBI` from the left only, and `classic` recurrences.

   The flops logged are those of `KSPBCGS`, 2 n more an iteration with `-ksp_tcbcgs_variant single` and some 2 n more a solve. In a solve that breaks down on a GPU one
   more application of the matrix and of the preconditioner may have run and been logged. `PCBDDC` and `PCHPDDM` look at the name of the solver's type: with this one
   they work as with any that is not PETSc's own.

.seealso: [](ch_ksp), `KSPBCGS`, `KSPTCCG`, `MATAIJTC`, `KSPTCGetSolveCounts()`, `KSPTCSetMonitorsNormOnly()`, `KSPSetPCSide()`
M*/
PETSC_EXTERN PetscErrorCode KSPCreate_TCBCGS(KSP ksp)
{
  KSP_TCBCGS *bcgs;

  PetscFunctionBegin;
  PetscCall(PetscNew(&bcgs));
  bcgs->name                     = KSPTCBCGS;
  bcgs->page                     = "KSPTCBCGS";
  bcgs->prepare                  = KSPTCPrepare_TCBCGS;
  bcgs->solve                    = KSPSolve_TCBCGS;
  bcgs->release                  = KSPTCRelease_TCBCGS;
  bcgs->diagonal.projects        = PETSC_TRUE;
  bcgs->resident.kernel          = TCBCGSResidentKernels;
  bcgs->resident.vectors         = TCBCGSVectorsOfBlock(false, false, false);
  bcgs->resident.thin            = TCBCGSThinVectorsOfBlock();
  bcgs->resident.thin_first      = PETSC_TRUE;
  bcgs->resident.windows_from[0] = 4000000;
  bcgs->resident.windows_from[1] = 4000000;
  bcgs->columns.solve            = KSPTCMatSolve<KSP_TCBCGS>;
  bcgs->columns.least            = 18.0;
  PetscCall(KSPTCAttach(ksp, KSPBCGS, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}
