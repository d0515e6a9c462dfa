/*
   KSPMatSolve() of KSPTCCG: up to 8 right-hand sides at once, with one product of the matrix for all of them (tccgcolumns.h).

   Method: each column has its own recurrences and ends by itself. The steps test each column's norm and leave records of each, iterations are begun ahead of what the host has looked at, and what it takes from the records it
   keeps until all columns are over. Then it goes through KSPCG's loop column by column: histories, monitors, counts, reasons and errors are those of columns solved one after the other.

   Where that is not possible, or not expected to be faster, columns are solved one after the other.
*/
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>
#include "tccgimpl.h"

static const TCCGColumnsSteps *TCCGColumnsTable(int backend)
{
#if PETSCTC_HAVE_CUDA
  if (backend == KSPTC_CUDA) return &TCCGColumnsSteps_CUDA;
#endif
  return backend == KSPTC_HOST ? &TCCGColumnsSteps_Host : NULL;
}

/* ---- columns of the user's matrices */

/* The solver's vectors are columns c, as in KSPSolve() */
static PetscErrorCode TCCGTakeColumn(KSP ksp, Mat B, Mat X, PetscInt c)
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

static PetscErrorCode TCCGGiveColumn(KSP ksp, Mat B, Mat X, PetscInt c)
{
  Vec b = ksp->vec_rhs, x = ksp->vec_sol;

  PetscFunctionBegin;
  PetscCall(MatDenseRestoreColumnVec(X, c, &x));
  PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one column after the other */

/* What KSPSolve() shows of a column that is over */
static PetscErrorCode TCCGShowColumn(KSP ksp)
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
static void TCCGForgetExhausted(KSP ksp, KSP_TCCG *cg)
{
  if (ksp->reason == KSP_CONVERGED_ITERATING || ksp->reason == KSP_DIVERGED_PC_FAILED) cg->blocks.exhausted = {}; /* the first batch: KSPSetUp() has left one of these, batches leave others */
}

static void TCCGNoteExhausted(KSP ksp, TCCGExhausted *e)
{
  if (!e->any && ksp->errorifnotconverged && ksp->reason == KSP_DIVERGED_ITS) *e = {PETSC_TRUE, ksp->its, ksp->rnorm};
}

static PetscErrorCode TCCGTellExhausted(KSP ksp, const TCCGExhausted *e)
{
  PetscFunctionBegin;
  if (!e->any) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->reason != KSP_DIVERGED_ITS) PetscCall(TCCGShowColumn(ksp)); /* KSPMatSolve() shows the other in its place */
  ksp->its    = e->its;
  ksp->rnorm  = e->rnorm;
  ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPSolve() of a column without what KSPMatSolve() shows behind us, of all columns or of the last one; after an error it does not come that far */
static PetscErrorCode TCCGSolveQuietly(KSP ksp, Vec b, Vec x, PetscBool last)
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
  if (last && ierr == PETSC_ERR_NOT_CONVERGED && ksp->reason < 0) PetscCall(TCCGShowColumn(ksp));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGSolveByColumns(KSP ksp, KSP_TCCG *cg, Mat B, Mat X, PetscInt first)
{
  const PetscInt columns = B->cmap->N;

  PetscFunctionBegin;
  for (PetscInt c = first; c < columns; c++) {
    const PetscBool write = ksp->guess_zero;
    Vec             b, x;

    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(write ? MatDenseGetColumnVecWrite(X, c, &x) : MatDenseGetColumnVec(X, c, &x));
    const PetscErrorCode ierr = TCCGSolveQuietly(ksp, b, x, (PetscBool)(c == columns - 1));

    PetscCall(write ? MatDenseRestoreColumnVecWrite(X, c, &x) : MatDenseRestoreColumnVec(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
    PetscCall(ierr);
    TCCGNoteExhausted(ksp, &cg->blocks.exhausted);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- when blocks are taken */

static PetscErrorCode TCCGColumnsMatrixLegal(KSP ksp, KSP_TCCG *cg, Mat X, const char **why)
{
  MatNullSpace nullsp, transposed;
  PetscBool    plain, x;
  PetscCount   nnz;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(cg->A, &nullsp));
  PetscCall(MatGetTransposeNullSpace(cg->A, &transposed));
  PetscCall(MatAIJTCMultIsPlain(cg->A, ksp->work[2], ksp->work[0], ksp->work[1], &plain));
  PetscCall(PetscObjectTypeCompare((PetscObject)X, cg->backend == KSPTC_CUDA ? MATSEQDENSECUDA : MATSEQDENSE, &x));
  if (nullsp || transposed) *why = "the matrix has a null space";
  else if (!plain) *why = "products are not those of a layout of MATAIJTC";
  else if (MatAIJTCClassOf(cg->A)->cuda != (PetscBool)(cg->backend == KSPTC_CUDA) || !x) *why = "matrix and vectors live in different memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(cg->A, &nnz));
  cg->resident.nnz = nnz;
  if (!nnz) *why = "the matrix has no nonzeros";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The preconditioner is none, or the diagonal that is taken when it has been applied */
static PetscErrorCode TCCGColumnsPCLegal(KSP ksp, KSP_TCCG *cg, const char **why)
{
  PetscFunctionBegin;
  PetscCall(KSPTCIdentityPC(ksp, &cg->identity));
  PetscCall(KSPTCDiagonalMark(ksp, &cg->diagonal));
  if (cg->identity) PetscCall(VecDestroy(&cg->diagonal.d));
  else if (!cg->diagonal.jacobi) *why = "the preconditioner is neither none nor jacobi";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is more asked for than a solve from a zero or the given guess? */
static const char *TCCGColumnsMore(KSP ksp, const KSP_TCCG *cg)
{
  if (ksp->guess || ksp->guess_knoll) return "an initial guess is formed for each solve";
  if (PETSCTC_KSP_HAS_HOOKS(ksp)) return "a function is called before or after each solve";
  if (ksp->dmActive) return "the system is that of a DM";
  if (ksp->pauseFinal) return "monitors pause at the end of each solve";
  if (ksp->viewPre || ksp->viewMatExp || ksp->viewPOpExp || ksp->viewEVExp) return "more is viewed with each solve";
  if (ksp->transpose_solve) return "the system is transposed";
  if (cg->variant != KSPTC_VARIANT_CLASSIC || cg->single_reduction) return "recurrences are not classic";
  return NULL;
}

/*
   Where the choice is left open. A block moves 80 n bytes a column and iteration besides the product (96 n with a diagonal), in 4 launches; resident solves move less. With the matrix on the chip 8 columns took 0.85 to 1.6 of the time
   that they take one by one, with that read from its layout 1.7, where the steps would do them 0.73 to 0.91 (docs/performance.md).
*/
static PetscErrorCode TCCGColumnsPay(KSP_TCCG *cg, PetscInt columns, const char **why)
{
  constexpr PetscCount      on_chip = 2000000, streamed_rows = 1800000;
  const KSPTCResidentChoice choice = cg->resident.choice;
  const AIJTCLayout        *layout;

  PetscFunctionBegin;
  if (cg->backend != KSPTC_CUDA) *why = "on the host blocks are no faster";
  else if (columns < 2) *why = "there is one column";
  else if (choice != KSPTC_RESIDENT_FALSE && choice != KSPTC_RESIDENT_LAYOUT && cg->resident.nnz <= on_chip) *why = "the matrix may be on the chip";
  if (*why || choice == KSPTC_RESIDENT_FALSE || choice == KSPTC_RESIDENT_FORM) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetLayout(cg->A, &layout));
  if (KSPTCStreams(layout) && KSPTCStreamsWell(layout) && layout->m <= streamed_rows) *why = "resident solves may read the matrix from its layout";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `why` where columns are solved one by one. The solver's vectors are columns */
static PetscErrorCode TCCGColumnsLegal(KSP ksp, KSP_TCCG *cg, Mat X, const char **why)
{
  PCFailedReason failed;

  PetscFunctionBegin;
  *why = NULL;
  PetscCall(KSPTCLegal(ksp, cg, why));
  if (!*why) *why = TCCGColumnsMore(ksp, cg);
  PetscCall(PCGetFailedReason(ksp->pc, &failed));
  if (!*why && failed) *why = "the preconditioner has failed";
  if (!*why) PetscCall(KSPTCReplayLegal(ksp, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &cg->A, NULL));
  PetscCall(TCCGColumnsMatrixLegal(ksp, cg, X, why));
  if (!*why && cg->blocks.choice == TCCG_MATSOLVE_DECIDE) PetscCall(TCCGColumnsPay(cg, X->cmap->n, why));
  if (!*why) PetscCall(TCCGColumnsPCLegal(ksp, cg, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a block */

/* The block under way, from the host */
struct TCCGBlock {
  const TCCGColumnsSteps *steps;
  TCCGColumnsWork        *w;
  TCCGColumns             v;
  Mat                     B, X;
  PetscInt                first; /* column of B and X */
};

/* Room for the scalars after iteration `it` */
static PetscErrorCode TCCGReserve(TCCGBlocks *blocks, PetscInt it)
{
  PetscFunctionBegin;
  if (it < blocks->max_taken) PetscFunctionReturn(PETSC_SUCCESS);
  blocks->max_taken = PetscMax(128, 2 * it);
  PetscCall(PetscRealloc(blocks->max_taken * sizeof(*blocks->taken), &blocks->taken));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The scalars as they are now, all that has been begun being over */
static PetscErrorCode TCCGReadColumns(KSP_TCCG *cg, const TCCGBlock *block, TCCGColumnsScalars *s)
{
  PetscFunctionBegin;
  PetscCall((*block->steps->read)(block->w, s, cg->stream));
  if (cg->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpu(sizeof(*s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of the solver's into a column of the block */
static PetscErrorCode TCCGLoad(KSP_TCCG *cg, const TCCGBlock *block, Vec from, PetscScalar to[])
{
  PetscScalar *a[1];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(cg, 1, 0, &from, a));
  PetscCall((*block->steps->copy)(block->v.n, a[0], to, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 1, 0, &from, a, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r and z of all columns, by PETSc's operations; their sums */
static PetscErrorCode TCCGBlockResiduals(KSP ksp, KSP_TCCG *cg, const TCCGBlock *block)
{
  const TCCGColumns *v = &block->v;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < v->columns; c++) {
    PetscCall(TCCGTakeColumn(ksp, block->B, block->X, block->first + c));
    PetscCall(TCCGInitialResidual(ksp, cg, &cg->blocks.column[c].obj));
    PetscCall(TCCGLoad(cg, block, ksp->work[0], v->r + c * v->stride));
    if (!cg->identity) {
      PetscCall(KSP_PCApply(ksp, ksp->work[0], ksp->work[1]));
      PetscCall(TCCGLoad(cg, block, ksp->work[1], v->w + c * v->stride));
    }
    PetscCall(TCCGGiveColumn(ksp, block->B, block->X, block->first + c));
  }
  if (!cg->identity) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[0], &cg->diagonal));
  PetscCheck(cg->identity || cg->diagonal.d, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The preconditioner that was a diagonal is none: run with -ksp_tccg_matsolve false");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first norms and tests: what KSPConvergedDefault() makes of them. NaN is left to the replay. A column that is over is frozen; `live`: the others */
static PetscErrorCode TCCGBlockTests(KSP ksp, KSP_TCCG *cg, const TCCGBlock *block, PetscInt *live)
{
  PetscFunctionBegin;
  *live = 0;
  for (PetscInt c = 0; c < block->v.columns; c++) {
    TCCGColumnState   *column = &cg->blocks.column[c];
    const TCCGScalars *s      = &cg->blocks.taken[0].of[c];
    const PetscReal    square = ksp->normtype == KSP_NORM_NATURAL ? s->beta : (ksp->normtype == KSP_NORM_PRECONDITIONED || cg->identity ? s->zz : s->rr);
    const PetscReal    norm   = ksp->normtype == KSP_NORM_NONE ? 0.0 : PetscSqrtReal(PetscAbsReal(square));

    column->its    = 0;
    column->reason = KSP_CONVERGED_ITERATING;
    column->over   = (PetscBool)PetscIsInfOrNanReal(norm);
    if (!column->over) {
      PetscCall(TCCGTakeColumn(ksp, block->B, block->X, block->first + c));
      PetscCall((*ksp->converged)(ksp, 0, norm, &column->reason, ksp->cnvP));
      PetscCall(TCCGGiveColumn(ksp, block->B, block->X, block->first + c));
      column->over = (PetscBool)(column->reason != KSP_CONVERGED_ITERATING);
    }
    column->ttol   = ksp->ttol;
    column->rnorm0 = ksp->rnorm0;
    if (column->over) PetscCall((*block->steps->freeze)(c, block->w, cg->stream));
    else ++*live;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGBlockStart(KSP ksp, KSP_TCCG *cg, TCCGBlock *block, PetscInt *live)
{
  PetscScalar *d[1];

  PetscFunctionBegin;
  PetscCall(TCCGBlockResiduals(ksp, cg, block));
  if (cg->diagonal.d) PetscCall(KSPTCStepBegin(cg, 1, 0, &cg->diagonal.d, d));
  else PetscCall(KSPTCStepBegin(cg, 0, 0, NULL, NULL));
  block->v.d = cg->diagonal.d ? d[0] : NULL;
  PetscCall((*block->steps->reset)(block->w, cg->stream));
  PetscCall((*block->steps->project)(&block->v, block->w, cg->stream));
  if (ksp->normtype == KSP_NORM_UNPRECONDITIONED && !cg->identity) PetscCall((*block->steps->residual)(&block->v, block->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, cg->diagonal.d ? 1 : 0, 0, &cg->diagonal.d, d, 0.0)); /* the diagonal stays where it is */
  PetscCall(TCCGReserve(&cg->blocks, 0));
  PetscCall(TCCGReadColumns(cg, block, &cg->blocks.taken[0]));
  PetscCall(TCCGBlockTests(ksp, cg, block, live));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* W <- A P. On the host, where a block has a product for each column, of those that go on: the direction of one that was over at once has never been written */
static PetscErrorCode TCCGBlockMultiply(KSP_TCCG *cg, const TCCGColumns *v, const AIJTCLayout *layout)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) PetscCall(AIJTCLayoutMatMult_CUDA(layout, v->columns, v->p, v->stride, v->w, v->stride, cg->stream));
#endif
  for (PetscInt c = 0; c < v->columns && cg->backend == KSPTC_HOST; c++) {
    if (!cg->blocks.column[c].over) PetscCall(AIJTCLayoutMatMult_Host(layout, 1, v->p + c * v->stride, v->stride, v->w + c * v->stride, v->stride, cg->stream));
  }
  petsctc_counts.mult++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration `it` of all columns */
static PetscErrorCode TCCGBlockBegin(KSP ksp, KSP_TCCG *cg, const TCCGBlock *block, const AIJTCLayout *layout, PetscInt it)
{
  const PetscBool    first  = (PetscBool)(it == 1);
  const TCCGColumns *v      = &block->v;
  const PetscInt     number = it % PETSCTC_RECORDS;

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(cg, 0, 0, NULL, NULL));
  PetscCall((*block->steps->direction)(v, first, block->w, cg->stream));
  PetscCall(TCCGBlockMultiply(cg, v, layout));
  PetscCall((*block->steps->curvature)(v, first, block->w, cg->stream));
  block->w->record = &block->w->records[number];
  for (PetscInt c = 0; c < v->columns; c++) {
    ksp->ttol                    = cg->blocks.column[c].ttol;
    ksp->rnorm0                  = cg->blocks.column[c].rnorm0;
    block->w->record->of[c].stop = PETSCTC_STOP_UNWRITTEN;
    PetscCall(KSPTCTest(ksp, it, TCCGNormOfType(ksp->normtype), &block->w->test[c]));
  }
  PetscCall((*block->steps->update)(v, block->w, cg->stream));
  block->w->record = NULL;
  PetscCall((*block->steps->mark)(block->w, (int)number, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 0, 0, NULL, NULL, 0.0));
  cg->blocks.begun = it;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What iteration `it` has left. A column without a record has stopped within it, and its scalars are as they are now */
static PetscErrorCode TCCGBlockTake(KSP_TCCG *cg, const TCCGBlock *block, PetscInt it, PetscInt *live)
{
  TCCGBlocks         *blocks = &cg->blocks;
  TCCGColumnsScalars *s;
  PetscBool           cut = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall((*block->steps->await)(block->w, (int)(it % PETSCTC_RECORDS)));
  PetscCall(TCCGReserve(blocks, it));
  s  = &blocks->taken[it];
  *s = block->w->records[it % PETSCTC_RECORDS];
  for (PetscInt c = 0; c < block->v.columns; c++) cut = (PetscBool)(cut || (!blocks->column[c].over && (PetscTCStop)s->of[c].stop == PETSCTC_STOP_UNWRITTEN));
  if (cg->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpu(sizeof(*s)));
  TCCGColumnsScalars now = {};

  if (cut) PetscCall(TCCGReadColumns(cg, block, &now));
  for (PetscInt c = 0; c < block->v.columns; c++) {
    TCCGColumnState *column = &blocks->column[c];

    if (column->over) continue;
    if ((PetscTCStop)s->of[c].stop == PETSCTC_STOP_UNWRITTEN) s->of[c] = now.of[c];
    column->its  = it;
    column->over = (PetscBool)((PetscTCStop)s->of[c].stop != PETSCTC_STOP_NONE);
    if (column->over) --*live;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations until all columns are over. On a GPU some are begun before the host has looked at those before them: a column that is over stays as it is */
static PetscErrorCode TCCGBlockIterate(KSP ksp, KSP_TCCG *cg, TCCGBlock *block, PetscInt live)
{
  const PetscInt     max_it = PetscMax(ksp->max_it, 1), lead = cg->lead;
  const AIJTCLayout *layout;
  PetscScalar       *x;
  PetscInt           ld;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetLayout(cg->A, &layout));
  PetscCall(MatDenseGetLDA(block->X, &ld));
  PetscCall(MatDenseGetArrayAndMemType(block->X, &x, NULL));
  block->v.x       = x + (PetscCount)block->first * ld;
  block->v.xstride = ld;
  cg->blocks.begun = 0;
  for (PetscInt it = 1; live && it <= max_it; it++) {
    while (cg->blocks.begun < PetscMin(it + lead, max_it)) PetscCall(TCCGBlockBegin(ksp, cg, block, layout, cg->blocks.begun + 1));
    PetscCall(TCCGBlockTake(cg, block, it, &live));
  }
  PetscCall(KSPTCStepBegin(cg, 0, 0, NULL, NULL));
  PetscCall((*block->steps->settle)(&block->v, block->w, cg->stream));
  PetscCall(KSPTCStepEnd(cg, 0, 0, NULL, NULL, 0.0));
  PetscCall(MatDenseRestoreArrayAndMemType(block->X, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what the user sees */

static PetscErrorCode TCCGLogFlops(const KSP_TCCG *cg, PetscLogDouble flops)
{
  PetscFunctionBegin;
  if (cg->backend == KSPTC_CUDA) PetscCall(PetscLogGpuFlops(flops));
  else PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1 of the column that is replayed: its scalars, logged as it would have been, were no row empty */
PetscErrorCode TCCGColumnTaken(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const TCCGBlocks      *blocks = &cg->blocks;
  const TCCGColumnState *column = &blocks->column[blocks->which];
  const PetscLogDouble   flops  = (TCCGRowFlops(ksp, cg, i) - 1.0) * cg->n + 2.0 * (PetscLogDouble)cg->resident.nnz;

  PetscFunctionBegin;
  PetscCheck(i < column->its, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The steps have ended column %" PetscInt_FMT " of a block after %" PetscInt_FMT " iterations, the convergence test has not: run with -ksp_tccg_matsolve false", blocks->which,
             column->its);
  cg->s = blocks->taken[i + 1].of[blocks->which];
  PetscCall(TCCGLogFlops(cg, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG's solve of a column, of which all is known */
static PetscErrorCode TCCGReplay(KSP ksp, KSP_TCCG *cg)
{
  const TCCGColumnState *column = &cg->blocks.column[cg->blocks.which];
  PetscBool              failed = PETSC_FALSE;
  PetscReal              dp;

  PetscFunctionBegin;
  if (ksp->res_hist_reset) ksp->res_hist_len = 0;
  if (ksp->err_hist_reset) ksp->err_hist_len = 0;
  ksp->reason = KSP_CONVERGED_ITERATING;
  ksp->its    = 0;
  ksp->ttol   = column->ttol;
  ksp->rnorm0 = column->rnorm0;
  cg->s       = cg->blocks.taken[0].of[cg->blocks.which];
  cg->known   = PETSC_TRUE;
  cg->obj     = column->obj;
  cg->begun   = column->its;
  PetscCall(TCCGLogFlops(cg, (ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED ? 4.0 : 2.0) * cg->n)); /* z.r, and the norm unless it is that */
  PetscCall(TCCGNorm(ksp, cg, 0, &dp, &failed));
  if (failed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall(KSPMonitor(ksp, 0, dp));
  ksp->rnorm  = dp;
  ksp->reason = column->reason;
  if (!ksp->reason) PetscCall(KSPTCCheckDot(ksp, cg->s.beta, &failed));
  if (!ksp->reason && !failed) PetscCall(TCCGLoop(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What KSPSolve() does with a solve that is over; KSPMatSolve() shows the last one's reason, if it comes to that */
static PetscErrorCode TCCGColumnOver(KSP ksp, PetscBool last)
{
  const PetscBool error = (PetscBool)(ksp->errorifnotconverged && ksp->reason < 0 && ksp->reason != KSP_DIVERGED_ITS);

  PetscFunctionBegin;
  ksp->totalits += ksp->its;
  if (!last || error) PetscCall(TCCGShowColumn(ksp));
  PetscCheck(!error, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "KSPSolve() has not converged, reason %s", KSPConvergedReasons[ksp->reason]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGReplayColumns(KSP ksp, KSP_TCCG *cg, const TCCGBlock *block)
{
  const PetscInt begun = cg->begun; /* of a solve before, for which the next one may have to wait */

  PetscFunctionBegin;
  for (PetscInt c = 0; c < block->v.columns; c++) {
    PetscCall(KSPTCCountFused(cg));
    cg->last_pc_in_steps   = (PetscBool)(cg->diagonal.d != NULL);
    cg->last_why_not_ahead = NULL;
    cg->blocks.which       = c;
    PetscCall(TCCGTakeColumn(ksp, block->B, block->X, block->first + c));
    cg->blocks.replays  = PETSC_TRUE;
    PetscErrorCode ierr = TCCGReplay(ksp, cg);

    cg->blocks.replays = PETSC_FALSE;
    cg->begun          = begun;
    if (!ierr) ierr = TCCGColumnOver(ksp, (PetscBool)(block->first + c == block->X->cmap->n - 1));
    PetscCall(TCCGGiveColumn(ksp, block->B, block->X, block->first + c));
    PetscCall(ierr);
    TCCGNoteExhausted(ksp, &cg->blocks.exhausted);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the operation */

/* Table, work and memory of a block; `room`: is there any? */
static PetscErrorCode TCCGBlockSetUp(KSP ksp, KSP_TCCG *cg, TCCGBlock *block, PetscInt columns, PetscBool *room)
{
  const KSPTCBackend b    = cg->backend;
  const PetscInt     lead = cg->ahead == PETSC_DECIDE ? (b == KSPTC_CUDA ? 2 : 0) : cg->ahead;

  PetscFunctionBegin;
  block->steps = TCCGColumnsTable(b);
  block->w     = &cg->blocks.work[b];
  if (!cg->blocks.have[b]) {
    PetscCall((*block->steps->destroy)(block->w)); /* what a create that failed has left */
    PetscCall((*block->steps->create)(block->w));
    cg->blocks.have[b] = PETSC_TRUE;
  }
  PetscCall(KSPTCUsesTensor(cg, &block->w->tensor));
  PetscCall(VecGetLocalSize(ksp->work[0], &cg->n));
  block->w->record = NULL; /* of a block that ended with an error */
  cg->lead         = lead;
  ksp->reason      = KSP_CONVERGED_ITERATING; /* what a batch before has left */
  cg->resident.is  = PETSC_FALSE;
  cg->late         = 0;
  PetscCall((*block->steps->place)(block->w, cg->n, columns, &block->v, room));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGSolveBlock(KSP ksp, KSP_TCCG *cg, Mat B, Mat X, PetscInt first, PetscBool *room)
{
  TCCGBlock block = {};
  PetscInt  live  = 0;

  PetscFunctionBegin;
  block.B     = B;
  block.X     = X;
  block.first = first;
  PetscCall(TCCGBlockSetUp(ksp, cg, &block, PetscMin(X->cmap->n - first, (PetscInt)TCCG_MAX_COLUMNS), room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGBlockStart(ksp, cg, &block, &live));
  if (live) PetscCall(TCCGBlockIterate(ksp, cg, &block, live));
  PetscCall(TCCGReplayColumns(ksp, cg, &block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGColumnsChoose(KSP ksp, KSP_TCCG *cg, Mat B, Mat X, const char **why)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  *why = NULL;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) *why = "more than one process";
  else if (X->rmap->n != B->rmap->n || !X->cmap->n) *why = "the matrices differ in size, or have no columns";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGTakeColumn(ksp, B, X, 0));
  PetscCall(TCCGColumnsLegal(ksp, cg, X, why));
  PetscCall(TCCGGiveColumn(ksp, B, X, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPMatSolve_TCCG(KSP ksp, Mat B, Mat X)
{
  PetscBool   room  = PETSC_TRUE;
  PetscInt    first = 0;
  const char *why   = NULL;
  KSPTC       tc;
  KSP_TCCG   *cg;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  cg = (KSP_TCCG *)tc;
  TCCGForgetExhausted(ksp, cg);
  PETSCTC_KSP_FORGET_BLOCK(ksp); /* each column has its own norms */
  PetscCall(TCCGColumnsChoose(ksp, cg, B, X, &why));
  for (; !why && first < X->cmap->n; first += TCCG_MAX_COLUMNS) {
    PetscCall(TCCGSolveBlock(ksp, cg, B, X, first, &room));
    if (!room) why = "there is no room for a block in device memory";
    if (!room) break;
  }
  if (why) {
    cg->blocks.ncolumns++;
    cg->blocks.last_why = why;
    PetscCall(PetscInfo(ksp, "Column by column: %s\n", why));
    PetscCall(TCCGSolveByColumns(ksp, cg, B, X, first));
  } else {
    cg->blocks.nblocks++;
    PetscCall(PetscInfo(ksp, "Solved %" PetscInt_FMT " columns in blocks of up to %d\n", X->cmap->n, (int)TCCG_MAX_COLUMNS));
  }
  PetscCall(TCCGTellExhausted(ksp, &cg->blocks.exhausted));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where blocks are never taken KSPMatSolve() is PETSc's loop, with all that it shows of each column. Whether they may be is known once there are vectors: KSPMatSolve() sets up before it looks */
static PetscErrorCode TCCGColumnsSetOp(KSP ksp, KSPTC tc)
{
  const TCCGMatSolveChoice choice = ((KSP_TCCG *)tc)->blocks.choice;
  PetscBool                device = PETSC_FALSE;

  PetscFunctionBegin;
  if (choice == TCCG_MATSOLVE_DECIDE && ksp->nwork) PetscCall(PetscObjectTypeCompare((PetscObject)ksp->work[0], VECSEQCUDA, &device));
  ksp->ops->matsolve = choice == TCCG_MATSOLVE_TRUE || device ? KSPMatSolve_TCCG : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCView_TCCG(KSPTC tc, PetscViewer viewer)
{
  const TCCGBlocks *blocks = &((KSP_TCCG *)tc)->blocks;

  PetscFunctionBegin;
  if (!(blocks->nblocks + blocks->ncolumns)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  matrix solves by blocks of up to %d columns: %" PetscInt_FMT ", by columns: %" PetscInt_FMT, (int)TCCG_MAX_COLUMNS, blocks->nblocks, blocks->ncolumns));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  if (blocks->last_why) PetscCall(PetscViewerASCIIPrintf(viewer, " (last: %s)", blocks->last_why));
  PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGColumnsOptions(KSP ksp, KSP_TCCG *cg, PetscOptionItems PetscOptionsObject)
{
  static const char *const choices[] = {"false", "true", "decide"}; /* as TCCGMatSolveChoice */
  char                     value[16];
  PetscBool                set, decide, on;

  PetscFunctionBegin;
  PetscCall(PetscOptionsString("-ksp_tccg_matsolve", "KSPMatSolve() for up to 8 columns at once: true, where that is possible, false, or decide", "KSPTCCG", choices[cg->blocks.choice], value, sizeof(value), &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcasecmp(value, "decide", &decide));
  if (decide) cg->blocks.choice = TCCG_MATSOLVE_DECIDE;
  else {
    PetscCall(PetscOptionsStringToBool(value, &on));
    cg->blocks.choice = on ? TCCG_MATSOLVE_TRUE : TCCG_MATSOLVE_FALSE;
  }
  PetscCall(TCCGColumnsSetOp(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGColumnsAttach(KSP ksp, KSP_TCCG *cg)
{
  PetscFunctionBegin;
  cg->blocks.choice = TCCG_MATSOLVE_DECIDE;
  cg->view          = KSPTCView_TCCG;
  cg->set_up        = TCCGColumnsSetOp;
  PetscCall(TCCGColumnsSetOp(ksp, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGColumnsRelease(KSP_TCCG *cg)
{
  PetscFunctionBegin;
  for (int b = 0; b < KSPTC_BACKENDS; b++) {
    cg->blocks.have[b] = PETSC_FALSE;
    if (TCCGColumnsTable(b)) PetscCall((*TCCGColumnsTable(b)->destroy)(&cg->blocks.work[b]));
  }
  PetscCall(PetscFree(cg->blocks.taken));
  cg->blocks.max_taken = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
