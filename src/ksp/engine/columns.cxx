/*
   KSPMatSolve(): up to 8 right-hand sides at once, with one product of the matrix for all of them (kspcolumns.h). Here what that asks of PETSc's objects, and what the user sees; kspcolumnsmethod.h does the blocks.

   Where blocks are not possible, or not expected to be faster, columns are solved one after the other.
*/
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include <petsctc/private/aijtcimpl.h>
#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctccompat.h>

/* ---- columns of the user's matrices */

/* The solver's vectors are columns c, as in KSPSolve() */
PetscErrorCode KSPTCColumnTake(KSP ksp, Mat B, Mat X, PetscInt c)
{
  Vec b, x;

  PetscFunctionBegin;
  PetscCall(MatDenseGetColumnVecRead(B, c, &b));
  PetscCall(MatDenseGetColumnVec(X, c, &x));
  PetscCall(PetscObjectReference((PetscObject)b));
  PetscCall(PetscObjectReference((PetscObject)x));
  PetscCall(VecDestroy(&ksp->vec_rhs));
  PetscCall(VecDestroy(&ksp->vec_sol));
  ksp->vec_rhs = b;
  ksp->vec_sol = x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCColumnGive(KSP ksp, Mat B, Mat X, PetscInt c)
{
  Vec b = ksp->vec_rhs, x = ksp->vec_sol;

  PetscFunctionBegin;
  PetscCall(MatDenseRestoreColumnVec(X, c, &x));
  PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what the user sees */

/* What KSPSolve() shows of a column that is over */
static PetscErrorCode KSPTCColumnShow(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPConvergedReasonViewFromOptions(ksp));
  if (ksp->viewRate) {
    PetscCall(PetscViewerPushFormat(ksp->viewerRate, ksp->formatRate));
    PetscCall(KSPConvergedRateView(ksp, ksp->viewerRate));
    PetscCall(PetscViewerPopFormat(ksp->viewerRate));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPMatSolve() raises an error for the reason that it finds at the end. "Too many iterations" of a column is one only where it is not inside of another solve, which it alone knows: the first such column is what it finds, behind the
   last batch too */
static void KSPTCColumnNote(KSP ksp, KSPTC tc)
{
  if (!tc->columns.exhausted.any && ksp->errorifnotconverged && ksp->reason == KSP_DIVERGED_ITS) tc->columns.exhausted = {PETSC_TRUE, ksp->its, ksp->rnorm};
}

/* A KSPMatSolve(), or its next batch, begins */
PetscErrorCode KSPTCColumnsBegin(KSP ksp, KSPTC tc)
{
  PetscFunctionBegin;
  if (ksp->reason == KSP_CONVERGED_ITERATING || ksp->reason == KSP_DIVERGED_PC_FAILED) tc->columns.exhausted = {}; /* the first batch: KSPSetUp() has left one of these, batches leave others */
  PETSCTC_KSP_FORGET_BLOCK(ksp);                                                                                   /* each column has its own norms */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCColumnsEnd(KSP ksp, KSPTC tc)
{
  PetscFunctionBegin;
  if (!tc->columns.exhausted.any) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->reason != KSP_DIVERGED_ITS) PetscCall(KSPTCColumnShow(ksp)); /* KSPMatSolve() shows the other in its place */
  ksp->its    = tc->columns.exhausted.its;
  ksp->rnorm  = tc->columns.exhausted.rnorm;
  ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What KSPSolve() does with a solve that is over; KSPMatSolve() shows the last one's reason, if it comes to that */
PetscErrorCode KSPTCColumnOver(KSP ksp, KSPTC tc, PetscBool last)
{
  const PetscBool error = (PetscBool)(ksp->errorifnotconverged && ksp->reason < 0 && ksp->reason != KSP_DIVERGED_ITS);

  PetscFunctionBegin;
  ksp->totalits += ksp->its;
  if (!last || error) PetscCall(KSPTCColumnShow(ksp));
  PetscCheck(!error, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "KSPSolve() has not converged, reason %s", KSPConvergedReasons[ksp->reason]);
  KSPTCColumnNote(ksp, tc);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCColumnsView(KSPTC tc, PetscViewer viewer)
{
  const KSPTCColumns *columns = &tc->columns;

  PetscFunctionBegin;
  if (!(columns->nblocks + columns->nones)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  matrix solves by blocks of up to %d columns: %" PetscInt_FMT ", by columns: %" PetscInt_FMT, (int)PETSCTC_MAX_COLUMNS, columns->nblocks, columns->nones));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  if (columns->last_why) PetscCall(PetscViewerASCIIPrintf(viewer, " (last: %s)", columns->last_why));
  PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one column after the other */

/* KSPSolve() of a column without what KSPMatSolve() shows behind us, of all columns or of the last one; after an error it does not come that far */
static PetscErrorCode KSPTCSolveQuietly(KSP ksp, Vec b, Vec x, PetscBool last)
{
  PetscBool *const shown[] = {&ksp->viewFinalRes, &ksp->viewRate, &ksp->viewMat, &ksp->viewPMat, &ksp->viewRhs, &ksp->viewSol, &ksp->view};
  PetscBool        kept[PETSC_STATIC_ARRAY_LENGTH(shown)];
  const PetscInt   number = last ? (PetscInt)PETSC_STATIC_ARRAY_LENGTH(shown) : 1, views = ksp->numberreasonviews;
  PetscViewer      viewer = ksp->convergedreasonviewer;

  PetscFunctionBegin;
  for (PetscInt i = 0; i < number; i++) {
    kept[i]   = *shown[i];
    *shown[i] = PETSC_FALSE;
  }
  if (last) {
    ksp->numberreasonviews     = 0;
    ksp->convergedreasonviewer = NULL;
  }
  const PetscErrorCode ierr = PETSCTC_KSP_TRANSPOSED(ksp) ? KSPSolveTranspose(ksp, b, x) : KSPSolve(ksp, b, x);

  for (PetscInt i = 0; i < number; i++) *shown[i] = kept[i];
  ksp->numberreasonviews     = views;
  ksp->convergedreasonviewer = viewer;
  if (last && ierr == PETSC_ERR_NOT_CONVERGED && ksp->reason < 0) PetscCall(KSPTCColumnShow(ksp));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns first, .. by themselves, for this reason */
PetscErrorCode KSPTCColumnsByOne(KSP ksp, KSPTC tc, Mat B, Mat X, PetscInt first, const char *why)
{
  const PetscInt columns = B->cmap->N;

  PetscFunctionBegin;
  tc->columns.nones++;
  tc->columns.last_why = why;
  PetscCall(PetscInfo(ksp, "Column by column: %s\n", why));
  for (PetscInt c = first; c < columns; c++) {
    const PetscBool write = ksp->guess_zero;
    Vec             b, x;

    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(write ? MatDenseGetColumnVecWrite(X, c, &x) : MatDenseGetColumnVec(X, c, &x));
    const PetscErrorCode ierr = KSPTCSolveQuietly(ksp, b, x, (PetscBool)(c == columns - 1));

    PetscCall(write ? MatDenseRestoreColumnVecWrite(X, c, &x) : MatDenseRestoreColumnVec(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
    PetscCall(ierr);
    KSPTCColumnNote(ksp, tc);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- when blocks are taken */

static PetscErrorCode KSPTCColumnsMatrixLegal(KSP ksp, KSPTC tc, Mat A, Mat X, const char **why)
{
  MatNullSpace nullsp, transposed;
  PetscBool    plain, x;
  PetscCount   nnz;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &nullsp));
  PetscCall(MatGetTransposeNullSpace(A, &transposed));
  PetscCall(MatAIJTCMultIsPlain(A, ksp->work[2], ksp->work[0], ksp->work[1], &plain));
  PetscCall(PetscObjectTypeCompare((PetscObject)X, tc->backend == KSPTC_CUDA ? MATSEQDENSECUDA : MATSEQDENSE, &x));
  if (nullsp || transposed) *why = "the matrix has a null space";
  else if (!plain) *why = "products are not those of a layout of MATAIJTC";
  else if (MatAIJTCClassOf(A)->cuda != (PetscBool)(tc->backend == KSPTC_CUDA) || !x) *why = "matrix and vectors live in different memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  tc->resident.nnz = nnz;
  if (!nnz) *why = "the matrix has no nonzeros";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is more asked for than a solve from a zero or the given guess? */
static const char *KSPTCColumnsMore(KSP ksp, const KSPTC tc)
{
  if (ksp->guess || ksp->guess_knoll) return "an initial guess is formed for each solve";
  if (PETSCTC_KSP_HAS_HOOKS(ksp)) return "a function is called before or after each solve";
  if (ksp->dmActive) return "the system is that of a DM";
  if (ksp->pauseFinal) return "monitors pause at the end of each solve";
  if (ksp->viewPre || ksp->viewMatExp || ksp->viewPOpExp || ksp->viewEVExp) return "more is viewed with each solve";
  if (ksp->transpose_solve) return "the system is transposed";
  if (tc->variant != KSPTC_VARIANT_CLASSIC) return "recurrences are not classic";
  return NULL;
}

/*
   Where the choice is left open. A block moves 80 n bytes a column and iteration of CG besides the product (96 n with a diagonal), in 4 launches, of BiCGSTAB 144 n (176 n), in 7; resident solves move less. With the matrix on the chip
   8 columns took 0.85 to 1.6 of the time that they take one by one, with that read from its layout 1.0 to 1.7, where the steps would do them 0.5 to 0.97 (docs/log/2026-11.md); beside gathered layouts with forms of which up to 20 MB are read in
   every product 0.97 to 1.45, of more 0.7 to 1.16. From 128 bytes a row on that is read most of an iteration of such solves, and a block of 8 takes 0.4 to 0.6 of their time, one of 4 0.65 to 0.9, one of 2 1.1 to 1.3. Without preconditioner the steps of BiCGSTAB move 32 n less than a block, which must save as much: 7 of 8 times that a layout is read by two products.
*/
static PetscErrorCode KSPTCColumnsPay(KSP ksp, KSPTC tc, Mat A, PetscInt columns, const char **why)
{
  constexpr PetscCount      on_chip = 2000000;
  constexpr PetscReal       much    = 128.0; /* bytes of a layout a row, which blocks of `wide` columns read once for all */
  constexpr PetscInt        wide    = 4;
  const KSPTCResidentChoice choice  = tc->resident.choice;
  const PetscBool           form    = (PetscBool)(choice != KSPTC_RESIDENT_FALSE && choice != KSPTC_RESIDENT_LAYOUT);
  const AIJTCLayout        *layout;
  PetscBool                 none, jacobi, likely = PETSC_FALSE;
  PetscReal                 bytes;

  PetscFunctionBegin;
  if (tc->backend != KSPTC_CUDA) *why = "on the host blocks are no faster";
  else if (columns < 2) *why = "there is one column";
  else if (form && tc->resident.nnz <= on_chip) *why = "the matrix may be on the chip";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetLayout(A, &layout));
  bytes = (PetscReal)(layout->npattern + layout->nvalue) / (PetscReal)PetscMax(layout->m, 1);
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &none));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (form && (none || jacobi)) PetscCall(KSPTCFormLikely(ksp, tc, A, layout, &likely));
  if (likely) *why = "most of the matrix may be on the chip";
  else if (none && bytes < tc->columns.least) *why = "products read too little for blocks to be faster";
  if (*why || choice == KSPTC_RESIDENT_FALSE || choice == KSPTC_RESIDENT_FORM) PetscFunctionReturn(PETSC_SUCCESS);
  if ((bytes < much || columns < wide) && KSPTCStreamsLikely(layout)) *why = "resident solves may read the matrix from its layout";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `why` where columns are solved one by one. Of the preconditioner, and what else it needs, the method knows */
PetscErrorCode KSPTCColumnsLegal(KSP ksp, KSPTC tc, Mat X, const char **why)
{
  PCFailedReason failed;
  Mat            A;

  PetscFunctionBegin;
  PetscCall(KSPTCLegal(ksp, tc, why));
  if (!*why) *why = KSPTCColumnsMore(ksp, tc);
  PetscCall(PCGetFailedReason(ksp->pc, &failed));
  if (!*why && failed) *why = "the preconditioner has failed";
  if (!*why) PetscCall(KSPTCReplayLegal(ksp, tc, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(KSPTCColumnsMatrixLegal(ksp, tc, A, X, why));
  if (!*why && tc->columns.choice == KSPTC_CHOICE_DECIDE) PetscCall(KSPTCColumnsPay(ksp, tc, A, X->cmap->n, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the operation */

/* Where blocks are never taken KSPMatSolve() is PETSc's loop, with all that it shows of each column. Whether they may be is known once there are vectors: KSPMatSolve() sets up before it looks */
PetscErrorCode KSPTCColumnsSetOp(KSP ksp, KSPTC tc)
{
  const KSPTCColumns *columns = &tc->columns;
  PetscBool           device  = PETSC_FALSE;

  PetscFunctionBegin;
  if (columns->choice == KSPTC_CHOICE_DECIDE && ksp->nwork) PetscCall(PetscObjectTypeCompare((PetscObject)ksp->work[0], VECSEQCUDA, &device));
  ksp->ops->matsolve = columns->choice == KSPTC_CHOICE_TRUE || device ? columns->solve : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCColumnsSetFromOptions(KSP ksp, KSPTC tc, PetscOptionItems PetscOptionsObject)
{
  PetscBool set;

  PetscFunctionBegin;
  if (!tc->columns.solve) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCChoiceFromOptions(tc, "matsolve", "KSPMatSolve() for up to 8 columns at once: true, where that is possible, false, or decide", &tc->columns.choice, &set, PetscOptionsObject));
  if (set) PetscCall(KSPTCColumnsSetOp(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCColumnsAttach(KSP ksp, KSPTC tc)
{
  PetscFunctionBegin;
  tc->columns.choice = KSPTC_CHOICE_DECIDE;
  PetscCall(KSPTCColumnsSetOp(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}
