/*
   Solver: KSPTCCR

   Method: preconditioned conjugate residuals. An iteration is a list of passes (tccrlist.h), run by launches or in one kernel; the scalars live with the vectors.

   Algorithm: the loop, the order of its tests and what each leaves behind are those of KSPCR. The steps of an iteration begin with the direction, which KSPCR makes behind the test of the one before.

   References: M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
*/
#include "../method/listmethod.h" /*I "petsctc.h" I*/
#include "tccrlist.h"

struct KSP_TCCR : KSPTCListMethod<KSP_TCCR, TCCR> {
  static const KSPTCListRunners<TCCR> *runners(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCCROnDevice;
#endif
    return backend == KSPTC_HOST ? &TCCROnHost : NULL;
  }

  static Vec vec(KSP ksp, const KSP_TCCR *cr, int v)
  {
    if (v == TCCR_X) return ksp->vec_sol;
    return v == TCCR_D ? cr->diagonal.d : ksp->work[v];
  }

  /* KSPCR's; those of a diagonal with the pass that applies it */
  template <class P>
  static PetscLogDouble flops(KSP ksp, const KSP_TCCR *, bool begins)
  {
    const bool norm = ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED;

    if constexpr (P::ends) return norm ? 4.0 : 2.0;
    else return P::flops - (begins && P::to[0] == TCCR_P ? 4.0 : 0.0); /* b is 0 */
  }

  static PetscErrorCode normOf(KSP ksp, KSP_TCCR *cr, PetscReal *dp, PetscBool *fail)
  {
    PetscFunctionBegin;
    *dp = 0.0;
    if (ksp->normtype == KSP_NORM_NATURAL) *dp = PetscSqrtReal(PetscAbsReal(cr->s.st));
    else if (ksp->normtype != KSP_NORM_NONE) {
      *dp = PetscSqrtReal(cr->s.square);
      PetscCall(KSPTCCheckNorm(ksp, *dp, fail));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode stopped(KSP ksp, KSP_TCCR *cr, PetscBool *fail)
  {
    PetscFunctionBegin;
    PetscCheck((int)cr->s.stop == TCCR_STOP_WQ_NAN || (int)cr->s.stop == TCCR_STOP_WQ_SIGN, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Passes stopped with code %g, which is none of theirs", (double)cr->s.stop);
    PetscCall(KSPTCCheckDot(ksp, cr->s.wq, fail));
    if (*fail) PetscFunctionReturn(PETSC_SUCCESS);
    ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite or negative definite PC\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};

/* r, s, p, w, t, and the sums of the first norm */
static PetscErrorCode TCCRStart(KSP ksp, KSP_TCCR *cr)
{
  const Vec X = ksp->vec_sol, B = ksp->vec_rhs, R = ksp->work[TCCR_R], S = ksp->work[TCCR_S], P = ksp->work[TCCR_P], W = ksp->work[TCCR_W], T = ksp->work[TCCR_T];

  PetscFunctionBegin;
  if (ksp->guess_zero) PetscCall(VecCopy(B, R));
  else {
    PetscCall(KSP_MatMult(ksp, cr->A, X, R));
    PetscCall(VecAYPX(R, -1.0, B));
  }
  PetscCall(VecFlag(R, ksp->reason == KSP_DIVERGED_PC_FAILED));
  PetscCall(KSP_PCApply(ksp, R, P));
  PetscCall(KSP_MatMult(ksp, cr->A, P, W));
  PetscCall(VecCopy(P, S));
  PetscCall(VecCopy(W, T));
  PetscCall(KSPTCMakesFirstNorm(ksp, cr, cr->norm));
  if (cr->extra) PetscCall((KSPTCListPass<TCCRSums<true, true>>(ksp, cr)));
  else PetscCall((KSPTCListPass<TCCRSums<false, true>>(ksp, cr)));
  PetscCall(KSPTCFirstNormBegun(cr));
  PetscCall(KSPTCAwaitFirstNorm(cr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_TCCR(KSP ksp, KSPTC tc)
{
  KSP_TCCR   *cr   = (KSP_TCCR *)tc;
  PetscBool   fail = PETSC_FALSE;
  PetscReal   dp;
  const char *why = NULL, *watched;

  PetscFunctionBegin;
  PetscCall(KSPTCListSetUp(ksp, cr));
  PetscCall(KSPTCWatched(ksp, cr, &watched));
  cr->extra = ksp->normtype == KSP_NORM_UNPRECONDITIONED && (watched || cr->apply != KSPTC_APPLY_NONE); /* r for its norm; without preconditioner it is s, unless a monitor may set one */
  if (cr->extra) why = "the norm is that of the residual before the preconditioner";
  PetscCall(TCCRStart(ksp, cr));
  PetscCall(KSP_TCCR::normOf(ksp, cr, &dp, &fail));
  if (fail) PetscFunctionReturn(PETSC_SUCCESS);
  ksp->its = 0;
  PetscCall(KSPTCMonitor(ksp, cr, 0, dp));
  ksp->rnorm = dp;
  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall((*ksp->converged)(ksp, 0, dp, &ksp->reason, ksp->cnvP));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  const Vec v[] = {ksp->work[TCCR_S], ksp->work[TCCR_T], ksp->work[TCCR_P]};

  PetscCall(KSPTCListLoop(ksp, cr, v, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   KSPTCCR - "tccr" - The preconditioned conjugate residual method with fused vector operations

   Options Database Keys:
+  -ksp_type tccr               - selects this type
.  -ksp_tccr_fused (true|false) - run the iteration in fused steps where that is legal (default), or always as `KSPCR` does
.  -ksp_tccr_resident <decide>  - (true|false|decide) keep the vectors on the GPU's chip and run up to 64 iterations in one call
.  -ksp_monitors_norm_only      - monitors of the user's read the norm alone, see `KSPTCSetMonitorsNormOnly()`
-  -ksp_tccr_mma (tensor|core)  - on a GPU, fold the partial sums of dot products on the Tensor Core (default, where the device has FP64 ones) or on CUDA cores

   Level: beginner

   Notes:
   This is `KSPCR` with another way through an iteration. Vector updates and the dot products that follow them share one pass over the vectors. The scalars stay in the memory
   of the vectors. Norm types, monitors, convergence tests, reasons, residual histories and iteration counts are those of `KSPCR` up to rounding. Any matrix and any
   preconditioner will do that `KSPCR` takes: both symmetric, the preconditioner positive definite. Sums are added in a fixed order: two runs give the same bits.

   `PCJACOBI` is part of the steps: its flops are logged, its applications are not. With `-ksp_tccr_resident` solves with `PCNONE`, or with `PCJACOBI` and a norm other than
   `KSP_NORM_UNPRECONDITIONED`, run many iterations in one call where vectors and matrix fit on the chip, under the conditions of `KSPTCCG` and without null space.

   With `KSP_NORM_UNPRECONDITIONED` `KSPCR` adds to the residual what it should subtract (PETSc 3.26), and tests the norm of that. This type tests the norm of the residual.

   A solve with estimates of eigenvalues runs `KSPCR`'s own code. `-ksp_view` says so, see `KSPTCGetSolveCounts()`.

   References:
   M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952

.seealso: [](ch_ksp), `KSPCR`, `KSPTCCG`, `KSPTCBCGS`, `MATAIJTC`, `KSPTCGetSolveCounts()`, `KSPTCSetMonitorsNormOnly()`
M*/
PETSC_EXTERN PetscErrorCode KSPCreate_TCCR(KSP ksp)
{
  return KSPTCListCreate<KSP_TCCR>(ksp, KSPTCCR, "KSPTCCR", KSPCR, KSPSolve_TCCR);
}
