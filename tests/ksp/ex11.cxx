static char help[] = "KSPMatSolve() of KSPTCCG and KSPTCBCGS, blocks of columns against PETSc's loop over columns with KSPCG and KSPBCGS: counts, reasons, norms, histories, solutions, errors.\n\n";

#include <petsctc.h>
#include "ab.h"

enum {
  MAX_COLUMNS = 11,
  MAX_NORMS   = 4000
};

typedef struct {
  KSPType   parent, type;
  PetscReal wind, rtol, floor; /* of norms in a history, relative to the largest: rounding errors of BiCGSTAB grow */
} Method;

static const Method cg = {KSPCG, "tccg", 0.0, 1e-8, 1e-13}, bcgs = {KSPBCGS, "tcbcgs", 0.4, 1e-6, 1e-10}, *method = &cg;

/* An option of the method's, NULL: no more */
static PetscErrorCode SetOption(const char option[], const char value[])
{
  char name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_%s", method->type, option));
  if (value) PetscCall(PetscOptionsSetValue(NULL, name, value));
  else PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a solve with several right-hand sides leaves: PETSc shows each column's reason when it is over */
typedef struct {
  PetscErrorCode     error;
  PetscInt           columns, its[MAX_COLUMNS], nhist, last_its, total;
  KSPConvergedReason reason[MAX_COLUMNS], last_reason;
  PetscReal          rnorm[MAX_COLUMNS], hist[MAX_NORMS];
  PetscLogDouble     flops;
  Mat                X;
} Run;

typedef struct {
  const char *name;
  Mat         A, B, X0; /* X0 NULL: zero guess */
  PCType      pc;
  KSPNormType norm;
  PetscInt    batch, max_it;
  PetscReal   rtol;
  PetscBool   history_resets;
  const char *why; /* of the view, where columns are solved one by one; "": in blocks */
  PetscErrorCode (*tune)(KSP);
} Case;

static PetscErrorCode NoteColumn(KSP ksp, PetscCtx ctx)
{
  Run *run = (Run *)ctx;

  PetscFunctionBeginUser;
  if (run->columns < MAX_COLUMNS) {
    PetscCall(KSPGetIterationNumber(ksp, &run->its[run->columns]));
    PetscCall(KSPGetConvergedReason(ksp, &run->reason[run->columns]));
    PetscCall(KSPGetResidualNorm(ksp, &run->rnorm[run->columns]));
  }
  run->columns++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's type (matsolve NULL) or ours */
static PetscErrorCode Create(const Case *c, const char matsolve[], KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, c->A, c->A));
  PetscCall(KSPSetType(*ksp, matsolve ? method->type : method->parent));
  if (matsolve) PetscCall(SetOption("matsolve", matsolve));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(SetOption("matsolve", NULL));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, c->pc));
  PetscCall(KSPSetNormType(*ksp, c->norm));
  PetscCall(KSPSetTolerances(*ksp, c->rtol > 0.0 ? c->rtol : Tolerance(method->rtol), PetscDefined(USE_REAL_SINGLE) ? 1e-30 : 1e-50, 1e5, c->max_it ? c->max_it : AB_MAX_IT));
  PetscCall(KSPSetInitialGuessNonzero(*ksp, c->X0 ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, MAX_NORMS, c->history_resets));
  if (c->batch) PetscCall(KSPSetMatSolveBatchSize(*ksp, c->batch));
  if (c->tune) PetscCall((*c->tune)(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's loop leaves the columns in use that it was solving when an error came. That they may not be is not an error */
static PetscErrorCode GiveBack(Mat B, Mat X)
{
  Vec b = NULL, x = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  (void)MatDenseRestoreColumnVecWrite(X, 0, &x);
  (void)MatDenseRestoreColumnVecRead(B, 0, &b);
  PetscCall(PetscPopErrorHandler());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(const Case *c, KSP ksp, PetscErrorCode (*solve)(KSP, Mat, Mat), Run *run)
{
  const PetscReal *hist;
  PetscLogDouble   before;
  PetscInt         nhist;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(run, sizeof(*run)));
  PetscCall(MatDuplicate(c->X0 ? c->X0 : c->B, MAT_COPY_VALUES, &run->X));
  PetscCall(KSPConvergedReasonViewSet(ksp, NoteColumn, run, NULL));
  PetscCall(PetscGetFlops(&before));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  run->error = (*solve)(ksp, c->B, run->X);
  PetscCall(PetscPopErrorHandler());
  PetscCall(PetscGetFlops(&run->flops));
  run->flops -= before;
  if (run->error) PetscCall(GiveBack(c->B, run->X));
  PetscCall(KSPConvergedReasonViewCancel(ksp));
  PetscCall(KSPGetIterationNumber(ksp, &run->last_its));
  PetscCall(KSPGetTotalIterations(ksp, &run->total));
  PetscCall(KSPGetConvergedReason(ksp, &run->last_reason));
  PetscCall(KSPGetResidualHistory(ksp, &hist, &nhist));
  run->nhist = PetscMin(nhist, (PetscInt)MAX_NORMS);
  PetscCall(PetscArraycpy(run->hist, hist, run->nhist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Norms are looked at as in ABCompareRuns(), the first ten of each column and the later ones */
static PetscErrorCode CompareHistories(const Run *a, const Run *b, char *text, size_t len)
{
  PetscReal largest = 0.0;

  PetscFunctionBeginUser;
  if (a->nhist != b->nhist) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " norms in the history, not %" PetscInt_FMT, b->nhist, a->nhist));
  for (PetscInt i = 0; i < a->nhist; i++) {
    if (!PetscIsInfOrNanReal(a->hist[i])) largest = PetscMax(largest, a->hist[i]);
  }
  for (PetscInt i = 0, column = 0, at = 0; i < a->nhist && !text[0]; i++, at++) {
    if (column < a->columns && at > a->its[column]) {
      column++;
      at = 0;
    }
    if (!ABNear(a->hist[i], b->hist[i], at < 10 ? Tolerance(1e-6) : 5e-2, Tolerance(method->floor) * largest)) PetscCall(PetscSNPrintf(text, len, "norm %" PetscInt_FMT " is %g, not %g", i, (double)b->hist[i], (double)a->hist[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of PETSc's that are not finite need not be ours' bits, but must not be finite either */
static PetscErrorCode CompareSolutions(const Run *a, const Run *b, char *text, size_t len)
{
  PetscInt columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(a->X, NULL, &columns));
  for (PetscInt c = 0; c < columns && !text[0]; c++) {
    Vec       x, y, d;
    PetscReal nx, nd;

    PetscCall(MatDenseGetColumnVecRead(a->X, c, &x));
    PetscCall(MatDenseGetColumnVecRead(b->X, c, &y));
    PetscCall(VecDuplicate(x, &d));
    PetscCall(VecWAXPY(d, -1.0, x, y));
    PetscCall(VecNorm(d, NORM_2, &nd));
    PetscCall(VecNorm(x, NORM_2, &nx));
    if (PetscIsInfOrNanReal(nx) ? !PetscIsInfOrNanReal(nd) : !(nd <= Tolerance(1e-6) * nx + Tolerance(1e-12))) PetscCall(PetscSNPrintf(text, len, "solutions of column %" PetscInt_FMT " differ by %g of %g", c, (double)nd, (double)nx));
    PetscCall(VecDestroy(&d));
    PetscCall(MatDenseRestoreColumnVecRead(b->X, c, &y));
    PetscCall(MatDenseRestoreColumnVecRead(a->X, c, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Run *a, const Run *b, char *text, size_t len)
{
  PetscFunctionBeginUser;
  text[0] = 0;
  if (a->error != b->error) PetscCall(PetscSNPrintf(text, len, "error code %d, not %d", (int)b->error, (int)a->error));
  if (!text[0] && a->columns != b->columns) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " columns shown, not %" PetscInt_FMT, b->columns, a->columns));
  for (PetscInt c = 0; c < a->columns && !text[0]; c++) {
    if (a->its[c] != b->its[c] || a->reason[c] != b->reason[c])
      PetscCall(PetscSNPrintf(text, len, "column %" PetscInt_FMT ": %s after %" PetscInt_FMT ", not %s after %" PetscInt_FMT, c, KSPConvergedReasons[b->reason[c]], b->its[c], KSPConvergedReasons[a->reason[c]], a->its[c]));
    else if (!ABNear(a->rnorm[c], b->rnorm[c], 5e-2, Tolerance(1e-13))) PetscCall(PetscSNPrintf(text, len, "column %" PetscInt_FMT ": norm %g, not %g", c, (double)b->rnorm[c], (double)a->rnorm[c]));
  }
  if (a->error || text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (a->last_its != b->last_its || a->last_reason != b->last_reason || a->total != b->total) PetscCall(PetscSNPrintf(text, len, "another count or reason is left"));
  if (!text[0]) PetscCall(CompareHistories(a, b, text, len));
  if (!text[0]) PetscCall(CompareSolutions(a, b, text, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the view is to say behind `solves` solves */
static PetscErrorCode CheckView(KSP ksp, const Case *c, PetscInt solves, char *text, size_t len)
{
  char      expected[256], buffer[4000];
  PetscBool found, aijtc;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)c->A, "seqaijtc", &aijtc));
  if (!c->why || !aijtc) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->why[0]) PetscCall(PetscSNPrintf(expected, sizeof(expected), "matrix solves by blocks of up to 8 columns: 0, by columns: %" PetscInt_FMT " (last: %s)\n", solves, c->why));
  else PetscCall(PetscSNPrintf(expected, sizeof(expected), "matrix solves by blocks of up to 8 columns: %" PetscInt_FMT ", by columns: 0\n", solves));
  PetscCall(ViewSays((PetscObject)ksp, expected, "ex11.txt", buffer, sizeof(buffer), &found));
  if (!found) PetscCall(PetscSNPrintf(text, len, "the view lacks: %s", expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One case by PETSc's loop and by ours; `text` is empty when all agrees */
static PetscErrorCode Both(const Case *c, PetscErrorCode (*solve)(KSP, Mat, Mat), char *text, size_t len)
{
  PetscInt columns, solves;
  KSP      ksp;
  Run     *run;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(2, &run));
  PetscCall(MatGetSize(c->B, NULL, &columns));
  solves = c->batch ? (columns - 1) / c->batch + 1 : 1;
  PetscCall(Create(c, NULL, &ksp));
  PetscCall(Solve(c, ksp, solve, &run[0]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Create(c, "true", &ksp));
  PetscCall(Solve(c, ksp, solve, &run[1]));
  PetscCall(Compare(&run[0], &run[1], text, len));
  if (!text[0] && !run[1].error) PetscCall(CheckView(ksp, c, solves, text, len));
  PetscCall(KSPDestroy(&ksp));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&run[k].X));
  PetscCall(PetscFree(run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const Case *c)
{
  char text[512];

  PetscFunctionBeginUser;
  PetscCall(Both(c, KSPMatSolve, text, sizeof(text)));
  PetscCall(ABSayOf(method->type, c->name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- right-hand sides */

/* A dense matrix where the vectors of A are */
static PetscErrorCode Dense(Mat A, PetscInt columns, Mat *B)
{
  PetscInt n;
  VecType  type;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetVecType(A, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, n, columns, n, columns, -1, NULL, B));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns that end at different iterations: every third is A times a vector with few nonzeros, column 1 is zero */
static PetscErrorCode FillColumns(Mat A, Mat B, PetscInt seed)
{
  PetscInt n, columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, &n, &columns));
  for (PetscInt c = 0; c < columns; c++) {
    Vec b, x;

    PetscCall(MatDenseGetColumnVecWrite(B, c, &b));
    PetscCall(VecDuplicate(b, &x));
    if (c % 3 == 2) {
      PetscCall(VecSet(x, 0.0));
      PetscCall(VecSetValue(x, (31 * c) % n, 1.0, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(x));
      PetscCall(VecAssemblyEnd(x));
      PetscCall(MatMult(A, x, b));
    } else if (c == 1) PetscCall(VecSet(b, 0.0));
    else PetscCall(ABVecFill(b, seed + c));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDenseRestoreColumnVecWrite(B, c, &b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- tests */

/* Why not in blocks, of a case that otherwise is. BiCGSTAB computes the unpreconditioned norm with a preconditioner on the right */
static const char *WhyNot(KSPNormType norm, PCType pc, Mat guess)
{
  if (method != &bcgs || norm != KSP_NORM_UNPRECONDITIONED) return "";
  return guess ? "nonzero initial guess with right preconditioning" : (strcmp(pc, PCNONE) ? "the preconditioner is not on the left" : "");
}

/* All norms and both preconditioners, from a zero and a given guess */
static PetscErrorCode Norms(Mat A, Mat B, Mat X0)
{
  PetscFunctionBeginUser;
  for (KSPNormType norm : {KSP_NORM_NONE, KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL}) {
    for (PCType pc : {PCNONE, PCJACOBI}) {
      for (Mat guess : {(Mat)NULL, X0}) {
        char name[96];
        Case c = {name, A, B, guess, pc, norm, 0, norm == KSP_NORM_NONE ? 5 : 0, 0.0, PETSC_FALSE, WhyNot(norm, pc, guess), NULL};

        if (norm == KSP_NORM_NATURAL && method == &bcgs) continue;
        PetscCall(PetscSNPrintf(name, sizeof(name), "norm %s, pc %s%s", KSPNormTypes[norm], pc, guess ? ", guess" : ""));
        PetscCall(Report(&c));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Widths of blocks, batches, the history of the last column alone. Nothing is computed with numbers that have never been written: a debugging PETSc fills memory with NaN that trap */
static PetscErrorCode Widths(Mat A)
{
  const PetscInt columns[] = {1, 2, 3, 7, 8, 9, 11}, batches[] = {0, 1, 3, 8, 20};

  PetscFunctionBeginUser;
  for (PetscInt k : columns) {
    Mat  B;
    char text[512] = "", name[96];

    PetscCall(Dense(A, k, &B));
    PetscCall(FillColumns(A, B, k));
    for (PetscInt batch : batches) {
      const Case c = {"", A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, batch, 0, 0.0, (PetscBool)(batch == 3), "", NULL};

      PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_ON));
      if (!text[0]) PetscCall(Both(&c, KSPMatSolve, text, sizeof(text)));
      PetscCall(PetscFPTrapPop());
    }
    PetscCall(PetscSNPrintf(name, sizeof(name), "%" PetscInt_FMT " columns", k));
    PetscCall(ABSayOf(method->type, name, text));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckLate(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetCheckNormIteration(ksp, 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AtLeast(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetMinimumIterations(ksp, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Skip(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromGuess(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPConvergedDefaultSetUIRNorm(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UserMonitor(KSP, PetscInt, PetscReal, PetscCtx)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Watched(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPMonitorSet(ksp, UserMonitor, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sees the norms of the history, which are compared */
static PetscErrorCode NormMonitor(KSP ksp, PetscInt, PetscReal norm, PetscCtx)
{
  const PetscReal *hist;
  PetscInt         nhist;

  PetscFunctionBeginUser;
  PetscCall(KSPGetResidualHistory(ksp, &hist, &nhist));
  if (hist[nhist - 1] != norm) ABFailures++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NormsWatched(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPMonitorSet(ksp, NormMonitor, NULL, NULL));
  PetscCall(ABSetNormOnly(ksp, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UserSolve(KSP, Vec, Vec, PetscCtx)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Before(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetPreSolve(ksp, UserSolve, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fails(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tests and ends that are asked for */
static PetscErrorCode Ends(Mat A, Mat B, Mat X0)
{
  const KSPNormType norm    = KSP_NORM_PRECONDITIONED;
  const Case        cases[] = {
           {"the norm is checked late",      A, B, NULL, PCJACOBI, norm, 0, 0, 0.0, PETSC_FALSE, "",                                                                                      CheckLate   },
           {"a least number of iterations",  A, B, NULL, PCNONE,   norm, 0, 0, 0.0, PETSC_FALSE, "",                                                                                      AtLeast     },
           {"no test",                       A, B, NULL, PCJACOBI, norm, 0, 5, 0.0, PETSC_FALSE, "",                                                                                      Skip        },
           {"relative to the first norm",    A, B, X0,   PCJACOBI, norm, 0, 0, 0.0, PETSC_FALSE, "",                                                                                      FromGuess   },
           {"too many iterations",           A, B, NULL, PCNONE,   norm, 0, 4, 0.0, PETSC_FALSE, "",                                                                                      NULL        },
           {"one iteration",                 A, B, NULL, PCNONE,   norm, 0, 1, 0.0, PETSC_FALSE, "",                                                                                      NULL        },
           {"another preconditioner",        A, B, NULL, PCSOR,    norm, 0, 0, 0.0, PETSC_FALSE, "the preconditioner is neither none nor jacobi",                                         NULL        },
           {"a monitor of the user's",       A, B, NULL, PCNONE,   norm, 0, 0, 0.0, PETSC_FALSE, "a monitor may look at the solution: -ksp_monitors_norm_only if it reads only the norm", Watched     },
           {"a monitor of the norm alone",   A, B, NULL, PCNONE,   norm, 0, 0, 0.0, PETSC_FALSE, "",                                                                                      NormsWatched},
           {"a function before each column", A, B, NULL, PCNONE,   norm, 0, 0, 0.0, PETSC_FALSE, "a function is called before or after each solve",                                       Before      }
  };

  PetscFunctionBeginUser;
  for (const Case &c : cases) PetscCall(Report(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Mat A, Mat B)
{
  const Case c = {"transposed", A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, "the system is transposed", NULL};
  char       text[512];

  PetscFunctionBeginUser;
  PetscCall(Both(&c, KSPMatSolveTranspose, text, sizeof(text)));
  PetscCall(ABSayOf(method->type, c.name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diverges(KSP ksp)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_TRUE));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, 1e-3, PETSC_CURRENT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reasons are shown before they are errors, the only column's too */
static PetscErrorCode Shown(Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(Dense(A, 1, &B));
  PetscCall(FillColumns(A, B, 1));
  const Case cases[] = {
    {"divergence is an error",                   A, B, NULL, PCNONE, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, NULL, Diverges},
    {"divergence of a column alone is an error", A, B, NULL, PCSOR,  KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, NULL, Diverges}
  };

  for (const Case &c : cases) PetscCall(Report(&c));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG: a diagonal with one negative entry, which only some columns see, and one column with NaN */
static PetscErrorCode BreakdownsOfCG(void)
{
  const PetscInt n = 40;
  PetscScalar    d[n];
  Mat            A, B;

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < n; i++) d[i] = i == 20 ? -6.0 : 1.0 + i;
  PetscCall(ABMatDiagonal(n, d, &A));
  PetscCall(Dense(A, 8, &B));
  for (PetscInt c = 0; c < 8; c++) {
    for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(B, i, c, i == 20 && c % 2 ? 0.0 : PetscSinReal((PetscReal)(1 + i + 3 * c)), INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(B));
  Case cases[] = {
    {"indefinite matrix",             A, B, NULL, PCNONE,   KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, "",   NULL },
    {"indefinite preconditioner",     A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, "",   NULL },
    {"indefinite, natural norm",      A, B, NULL, PCJACOBI, KSP_NORM_NATURAL,        0, 0, 0.0, PETSC_FALSE, "",   NULL },
    {"indefinite matrix is an error", A, B, NULL, PCNONE,   KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, NULL, Fails}
  };

  for (const Case &c : cases) PetscCall(Report(&c));
  PetscCall(MatSetValue(B, 3, 2, (PetscScalar)NAN, INSERT_VALUES));
  PetscCall(ABMatAssemble(B));
  cases[0].name = "NaN in a column";
  cases[1].name = "NaN in a column, jacobi";
  cases[2].name = "NaN in a column, natural norm";
  cases[3].name = "NaN in a column is an error";
  for (const Case &c : cases) PetscCall(Report(&c));
  cases[0].name   = "NaN in a column, no norm";
  cases[0].norm   = KSP_NORM_NONE;
  cases[0].max_it = 5;
  PetscCall(Report(&cases[0]));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* BiCGSTAB: v.rp is 0 (`zero`), or t is, of blocks of two rows of the matrix; columns that see only one row of each end well */
static PetscErrorCode BreakdownsOfBCGS(PetscBool zero)
{
  const PetscInt n = 40;
  Mat            A, B;

  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(n, 2, &A));
  for (PetscInt i = 0; i < n; i++) {
    PetscCall(MatSetValue(A, i, i, zero ? (i % 2 ? -1.0 : 1.0) : (i % 2 ? 0.0 : 1.0), INSERT_VALUES));
    PetscCall(MatSetValue(A, i, i % 2 ? i - 1 : i + 1, zero || i % 2 ? 0.0 : 1.0, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(A));
  PetscCall(Dense(A, 8, &B));
  for (PetscInt c = 0; c < 8; c++) {
    for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(B, i, c, i % 2 && c % 3 ? 0.0 : 1.0 + c, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(B));
  const Case cases[] = {
    {zero ? "v.rp is 0" : "t is 0",                         A, B, NULL, PCNONE, KSP_NORM_PRECONDITIONED,   0, 0, 0.0, PETSC_FALSE, "",   NULL },
    {zero ? "v.rp is 0, no norm" : "t is 0, no norm",       A, B, NULL, PCNONE, KSP_NORM_NONE,             0, 5, 0.0, PETSC_FALSE, "",   NULL },
    {zero ? "v.rp is 0, right" : "t is 0, right",           A, B, NULL, PCNONE, KSP_NORM_UNPRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, "",   NULL },
    {zero ? "v.rp is 0 is an error" : "t is 0 is an error", A, B, NULL, PCNONE, KSP_NORM_PRECONDITIONED,   0, 0, 0.0, PETSC_FALSE, NULL, Fails}
  };

  for (const Case &c : cases) {
    PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_ON));
    PetscCall(Report(&c));
    PetscCall(PetscFPTrapPop());
  }
  PetscCall(MatSetValue(B, 3, 2, (PetscScalar)NAN, INSERT_VALUES));
  PetscCall(ABMatAssemble(B));
  for (Case c : cases) {
    char name[64];

    PetscCall(PetscSNPrintf(name, sizeof(name), "NaN in a column, and %s", c.name));
    c.name = name;
    PetscCall(Report(&c));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object: other values, another preconditioner and width, and the first again to the bit, whatever is begun ahead */
static PetscErrorCode Reuse(Mat A, Mat B)
{
  const char *const ahead[]   = {"0", "1", "4", "16"};
  Case              c         = {"reuse", A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_TRUE, NULL, NULL};
  char              text[512] = "";
  PetscBool         same;
  Mat               B3, X, shifted;
  KSP               ksp;
  Run              *run;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(2, &run));
  PetscCall(Dense(A, 3, &B3));
  PetscCall(FillColumns(A, B3, 5));
  PetscCall(Create(&c, "true", &ksp));
  PetscCall(Solve(&c, ksp, KSPMatSolve, &run[0]));
  X = run[0].X;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &shifted));
  PetscCall(MatShift(shifted, 1.0));
  for (int k = 0; k < 3 && !text[0]; k++) { /* new values, a narrower block, the first */
    c.A = k == 0 ? shifted : A;
    c.B = k == 1 ? B3 : B;
    PetscCall(KSPSetOperators(ksp, c.A, c.A));
    PetscCall(Solve(&c, ksp, KSPMatSolve, &run[0]));
    KSP theirs;

    PetscCall(Create(&c, NULL, &theirs));
    PetscCall(Solve(&c, theirs, KSPMatSolve, &run[1]));
    run[1].total = run[0].total;
    PetscCall(Compare(&run[1], &run[0], text, sizeof(text)));
    PetscCall(KSPDestroy(&theirs));
    if (k == 2) PetscCall(MatEqual(run[0].X, X, &same));
    if (!text[0] && k == 2 && !same) PetscCall(PetscSNPrintf(text, sizeof(text), "other bits"));
    for (int j = 0; j < 2; j++) PetscCall(MatDestroy(&run[j].X));
  }
  PetscCall(ABSayOf(method->type, "reuse with new values and widths", text));
  PetscCall(KSPDestroy(&ksp));
  for (const char *k : ahead) {
    PetscCall(SetOption("ahead", k));
    PetscCall(Create(&c, "true", &ksp));
    PetscCall(SetOption("ahead", NULL));
    PetscCall(Solve(&c, ksp, KSPMatSolve, &run[0]));
    PetscCall(MatEqual(run[0].X, X, &same));
    if (!same) PetscCall(PetscSNPrintf(text, sizeof(text), "other bits with %s ahead", k));
    PetscCall(MatDestroy(&run[0].X));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABSayOf(method->type, "the same bits, whatever is begun ahead", text));
  PetscCall(MatDestroy(&shifted));
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&B3));
  PetscCall(PetscFree(run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyColumns(Mat from, Mat to)
{
  PetscInt columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(from, NULL, &columns));
  for (PetscInt c = 0; c < columns; c++) {
    Vec a, b;

    PetscCall(MatDenseGetColumnVecRead(from, c, &a));
    PetscCall(MatDenseGetColumnVecWrite(to, c, &b));
    PetscCall(VecCopy(a, b));
    PetscCall(MatDenseRestoreColumnVecWrite(to, c, &b));
    PetscCall(MatDenseRestoreColumnVecRead(from, c, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of a larger matrix that begin anywhere */
static PetscErrorCode Strided(Mat A, Mat B)
{
  Case     c = {"columns of a larger matrix", A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, "", NULL};
  PetscInt n, columns;
  Mat      large[2], part[2];
  KSP      ksp;
  Run     *run;
  char     text[512];

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(2, &run));
  PetscCall(MatGetSize(B, &n, &columns));
  PetscCall(Create(&c, NULL, &ksp));
  PetscCall(Solve(&c, ksp, KSPMatSolve, &run[0]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDuplicate(run[0].X, MAT_COPY_VALUES, &run[1].X));
  Mat x = run[1].X;
  for (int k = 0; k < 2; k++) {
    VecType type;

    PetscCall(MatGetVecType(A, &type));
    PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, n + 4, columns, n + 4, columns, -1, NULL, &large[k]));
    PetscCall(ABMatAssemble(large[k]));
    PetscCall(MatDenseGetSubMatrix(large[k], 1, n + 1, PETSC_DECIDE, PETSC_DECIDE, &part[k]));
  }
  PetscCall(CopyColumns(B, part[0]));
  PetscCall(CopyColumns(B, part[1]));
  PetscCall(Create(&c, "true", &ksp));
  PetscCall(PetscMemcpy(&run[1], &run[0], sizeof(run[0])));
  run[1].columns = 0;
  PetscCall(KSPConvergedReasonViewSet(ksp, NoteColumn, &run[1], NULL));
  PetscCall(KSPMatSolve(ksp, part[0], part[1]));
  PetscCall(CopyColumns(part[1], x));
  run[1].X = x;
  PetscCall(Compare(&run[0], &run[1], text, sizeof(text)));
  if (!text[0]) PetscCall(CheckView(ksp, &c, 1, text, sizeof(text)));
  PetscCall(ABSayOf(method->type, c.name, text));
  PetscCall(KSPDestroy(&ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDenseRestoreSubMatrix(large[k], &part[k]));
    PetscCall(MatDestroy(&large[k]));
    PetscCall(MatDestroy(&run[k].X));
  }
  PetscCall(PetscFree(run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The flops of 20 iterations are PETSc's on the host within a hundredth: the first norm may be logged otherwise. On a GPU some of PETSc's operations log none */
static PetscErrorCode Flops(Mat A, Mat B)
{
  Case c = {"flops", NULL, NULL, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 20, 0.0, PETSC_FALSE, "", Skip};
  Mat  H, D;
  Vec  b;
  KSP  ksp;
  Run *run;
  char text[512] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(2, &run));
  PetscCall(MatDenseGetColumnVecWrite(B, 1, &b)); /* it was 0, which ends BiCGSTAB at once: on a GPU with iterations in vain */
  PetscCall(ABVecFill(b, 1));
  PetscCall(MatDenseRestoreColumnVecWrite(B, 1, &b));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &H));
  PetscCall(MatConvert(B, MATSEQDENSE, MAT_INITIAL_MATRIX, &D));
  for (int k = 0; k < 2; k++) {
    c.A = k ? A : H;
    c.B = k ? B : D;
    PetscCall(Create(&c, k ? "true" : NULL, &ksp));
    PetscCall(Solve(&c, ksp, KSPMatSolve, &run[k]));
    PetscCall(MatDestroy(&run[k].X));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&H));
  PetscCall(MatDestroy(&D));
  if (!(PetscAbsReal((PetscReal)(run[1].flops - run[0].flops)) <= 0.01 * run[0].flops)) PetscCall(PetscSNPrintf(text, sizeof(text), "%g flops, not %g", (double)run[1].flops, (double)run[0].flops));
  PetscCall(ABSayOf(method->type, c.name, text));
  PetscCall(PetscFree(run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `false`: PETSc's loop, nothing is counted. `decide`: that too on the host; blocks on a GPU, where solves one by one are not resident; BiCGSTAB without preconditioner takes them if a product reads 18 bytes a row */
static PetscErrorCode Choices(Mat A, Mat B)
{
  const char *const choices[] = {"false", "decide", "decide", "decide"}, *const residents[] = {"decide", "decide", "false", "false"};
  const char *const blocks = "matrix solves by blocks of up to 8 columns: 1, by columns: 0\n", *const columns = "matrix solves by blocks of up to 8 columns: 0, by columns: 1 (";
  char      text[512] = "", buffer[4000];
  PetscBool found, aijtc, cuda, pays = PETSC_TRUE;
  VecType   type;
  KSP       ksp;
  Run      *run;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", &aijtc));
  if (aijtc && method == &bcgs) {
    MatAIJTCInfo info;
    PetscInt     n;

    PetscCall(MatAIJTCGetInfo(A, &info));
    PetscCall(MatGetSize(A, &n, NULL));
    pays = (PetscBool)(info.bytes_pattern + info.bytes_values >= 18 * n);
  }
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrstr(type, "cuda", (char **)&type));
  cuda = (PetscBool)(type != NULL);
  PetscCall(PetscMalloc1(1, &run));
  for (int k = 0; k < 4; k++) {
    const Case        c    = {"", A, B, NULL, k == 3 ? PCNONE : PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, NULL, NULL};
    const PetscBool   none = (PetscBool)(k == 0 || !cuda);
    const char *const says = none ? "matrix solves" : ((k == 2 || (k == 3 && pays)) && aijtc ? blocks : columns);

    PetscCall(SetOption("resident", residents[k]));
    PetscCall(Create(&c, choices[k], &ksp));
    PetscCall(SetOption("resident", "false")); /* as for all others */
    PetscCall(Solve(&c, ksp, KSPMatSolve, run));
    PetscCall(ViewSays((PetscObject)ksp, says, "ex11.txt", buffer, sizeof(buffer), &found));
    if (found == none || run->columns != 8) PetscCall(PetscSNPrintf(text, sizeof(text), "%s: the view %s: %s", choices[k], found ? "says" : "lacks", says));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&run->X));
  }
  PetscCall(PetscFree(run));
  PetscCall(ABSayOf(method->type, "choices", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 25 neighbours on a grid of m x m points, each pair with a value of its own */
static PetscErrorCode WideGrid(PetscInt m, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(m * m, 25, A));
  for (PetscInt row = 0; row < m * m; row++) {
    for (PetscInt dj = -2; dj <= 2; dj++) {
      for (PetscInt di = -2; di <= 2; di++) {
        const PetscInt i = row % m + di, j = row / m + dj, col = j * m + i, step = PetscAbsInt(dj * m + di);

        if (i >= 0 && i < m && j >= 0 && j < m) PetscCall(MatSetValue(*A, row, col, step ? -1.0 - 0.001 * ((PetscMin(row, col) * 7 + step) % 500) : 40.0, INSERT_VALUES));
      }
    }
  }
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `decide` where solves one by one would read the matrix from its layout, which has more than 128 bytes a row: blocks of four columns, not of three, but of tiles, which those solves cannot read. On the host nothing is counted */
static PetscErrorCode WideRows(void)
{
  char      text[512] = "", buffer[4000], params[64] = "";
  PetscBool found, aijtc, cuda, tiles;
  VecType   type;
  KSP       ksp;
  Mat       A, B;
  Run      *run;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(1, &run));
  PetscCall(WideGrid(24, &A));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", &aijtc));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijtc_params", params, sizeof(params), NULL));
  PetscCall(PetscStrcmp(params, "form=tile", &tiles));
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrstr(type, "cuda", (char **)&type));
  cuda = (PetscBool)(type != NULL);
  for (PetscInt columns = 3; columns <= 4; columns++) {
    PetscCall(Dense(A, columns, &B));
    PetscCall(FillColumns(A, B, 1));
    const Case        c    = {"", A, B, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, 0, 0, 0.0, PETSC_FALSE, NULL, NULL};
    const char *const says = !cuda ? "matrix solves" : (aijtc && (tiles || columns == 4) ? "columns: 1, by columns: 0\n" : (aijtc ? "by columns: 1 (last: resident solves may read the matrix from its layout)" : "columns: 0, by columns: 1 ("));

    PetscCall(SetOption("resident", "layout"));
    PetscCall(Create(&c, "decide", &ksp));
    PetscCall(SetOption("resident", "false")); /* as for all others */
    PetscCall(Solve(&c, ksp, KSPMatSolve, run));
    PetscCall(ViewSays((PetscObject)ksp, says, "ex11.txt", buffer, sizeof(buffer), &found));
    if (found != cuda || run->columns != columns) PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " columns: the view %s: %s", columns, found ? "says" : "lacks", says));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&run->X));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree(run));
  PetscCall(ABSayOf(method->type, "wide rows", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* "Too many iterations" in any column is an error, though the last column and batch have none, and what is shown of the last column is its own. The first among the tests that raise an error: PETSc forgets the nesting of solves after
   one */
static PetscErrorCode Exhausted(Mat A)
{
  char text[512] = "";
  Mat  B;
  KSP  ksp;
  Run *run;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(1, &run));
  PetscCall(Dense(A, 8, &B));
  for (PetscInt c = 0; c < 7; c++) {
    Vec b;

    PetscCall(MatDenseGetColumnVecWrite(B, c, &b));
    PetscCall(ABVecFill(b, 1 + c));
    PetscCall(MatDenseRestoreColumnVecWrite(B, c, &b));
  }
  const Case c = {"too many iterations is an error", A, B, NULL, PCNONE, KSP_NORM_PRECONDITIONED, 7, 4, 0.0, PETSC_FALSE, NULL, Fails};

  PetscCall(Create(&c, "true", &ksp));
  PetscCall(Solve(&c, ksp, KSPMatSolve, run));
  if (run->error != PETSC_ERR_NOT_CONVERGED || run->last_reason != KSP_DIVERGED_ITS || run->last_its != 4)
    PetscCall(PetscSNPrintf(text, sizeof(text), "error code %d, %s after %" PetscInt_FMT, (int)run->error, KSPConvergedReasons[run->last_reason], run->last_its));
  if (!text[0] && (run->columns != 9 || run->reason[6] != KSP_DIVERGED_ITS || run->reason[7] != KSP_CONVERGED_ATOL || run->reason[8] != KSP_DIVERGED_ITS))
    PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " columns shown, the last but one %s", run->columns, KSPConvergedReasons[run->reason[7]]));
  PetscCall(ABSay(c.name, text)); /* of either method */
  PetscCall(MatDestroy(&B));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&run->X));
  PetscCall(PetscFree(run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All(const Method *m)
{
  Mat A, B, X0;

  PetscFunctionBeginUser;
  method = m;
  PetscCall(ABMatGrid(19, 23, m->wind, PETSC_FALSE, &A));
  PetscCall(Dense(A, 8, &B));
  PetscCall(FillColumns(A, B, 1));
  PetscCall(Dense(A, 8, &X0));
  PetscCall(FillColumns(A, X0, 20));
  PetscCall(Norms(A, B, X0));
  PetscCall(Widths(A));
  PetscCall(Ends(A, B, X0));
  PetscCall(Transposed(A, B));
  PetscCall(Shown(A));
  if (m == &cg) PetscCall(BreakdownsOfCG());
  else {
    PetscCall(BreakdownsOfBCGS(PETSC_TRUE));
    PetscCall(BreakdownsOfBCGS(PETSC_FALSE));
  }
  PetscCall(Reuse(A, B));
  PetscCall(Strided(A, B));
  PetscCall(Choices(A, B));
  PetscCall(WideRows());
  PetscCall(Flops(A, B)); /* changes B */
  PetscCall(MatDestroy(&X0));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool other = PETSC_FALSE;
  Mat       A;

  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(19, 23, 0.0, PETSC_FALSE, &A));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-exhausts_bcgs", &other, NULL));
  method = other ? &bcgs : &cg;
  PetscCall(Exhausted(A)); /* the first error */
  PetscCall(MatDestroy(&A));
  PetscCall(All(&cg));
  PetscCall(All(&bcgs));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_resident false -ksp_tcbcgs_resident false
      output_file: output/ex11.out
      test:
         suffix: host
         args: -mat_type {{aij aijtc}}
      test:
         suffix: host_ahead
         args: -mat_type aijtc -exhausts_bcgs -ksp_tccg_ahead 3 -ksp_tcbcgs_ahead 3
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda -mat_type {{aij aijcusparse aijtc}}
      test:
         suffix: cuda_core
         requires: cuda
         args: -exhausts_bcgs -mat_vec_type cuda -mat_type aijtc -ksp_tccg_mma core -ksp_tccg_ahead 0 -ksp_tcbcgs_mma core -ksp_tcbcgs_ahead 0
      test:
         suffix: cuda_tiles
         requires: cuda
         args: -mat_vec_type cuda -mat_type aijtc -mat_aijtc_params form=tile

TEST*/
