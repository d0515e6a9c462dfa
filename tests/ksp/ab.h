/*
   A/B: one system solved by PETSc's own method and by the fused one, in the same program. What must agree: the reason, the iteration count, the length of the residual
   history, its first ten entries to 1e-6 (in double precision, see Tolerance()) and the later ones to 5e-2 (CG and BiCGSTAB amplify rounding as they go), the last norm as its entry, the solution to 1e-6 (and 1e-12, where it is 0), and
   the error code of a solve that errors. Everything is decided here; the programs print names, counts and PASS or what differs.
*/
#pragma once

#include <petscksp.h>
#include "../precision.h"
#include "../viewtext.h"

enum {
  AB_HISTORY   = 500,
  AB_TRANSPOSE = 1, /* flags of a case: solve with the transpose */
  AB_PARENT    = 2, /* the solve must go PETSc's path */
  AB_END       = 4  /* compare how the solve ends (error code, reason, iteration count), and no norms */
};

typedef struct {
  const char *name;
  Mat         A, P;  /* P NULL: A */
  Vec         b, x0; /* x0 NULL: zero guess */
  PCType      pc;
  KSPNormType norm;
  PCSide      side;
  int         flags;
  PetscErrorCode (*tune)(KSP, void *);
  void *ctx;
} ABCase;

typedef struct {
  PetscErrorCode     error;
  KSPConvergedReason reason;
  PetscInt           its, nhist, fused, parent;
  PetscReal          rnorm, hist[AB_HISTORY];
  Vec                x;
} ABRun;

static PETSC_UNUSED PetscInt ABFailures = 0;

/* Flags of a solve that something of the user's looks on at between iterations: KSPCG multiplies before that with single reduction, and does it itself */
static PETSC_UNUSED PetscErrorCode ABWatched(int *flags)
{
  PetscBool single;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-ksp_cg_single_reduction", &single));
  *flags = single ? AB_PARENT : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plugin is not linked: its function is found by name */
static PETSC_UNUSED PetscErrorCode ABGetCounts(KSP ksp, PetscInt *fused, PetscInt *parent)
{
  PetscErrorCode (*get)(KSP, PetscInt *, PetscInt *);

  PetscFunctionBeginUser;
  *fused = *parent = 0;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPTCGetSolveCounts_C", &get));
  if (get) PetscCall((*get)(ksp, fused, parent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does nothing to PETSc's types */
static PETSC_UNUSED PetscErrorCode ABSetNormOnly(KSP ksp, PetscBool flg)
{
  PetscErrorCode (*set)(KSP, PetscBool), (*get)(KSP, PetscBool *);
  PetscBool got;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPTCSetMonitorsNormOnly_C", &set));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPTCGetMonitorsNormOnly_C", &get));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*set)(ksp, flg));
  PetscCall((*get)(ksp, &got));
  if (got != flg) ABFailures++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In single precision rounding decides after few iterations when a method ends and how */
#define AB_MAX_IT (PetscDefined(USE_REAL_SINGLE) ? 6 : 60)

static PETSC_UNUSED PetscErrorCode ABCreate(const ABCase *c, KSPType type, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)c->A), ksp));
  PetscCall(KSPSetOperators(*ksp, c->A, c->P ? c->P : c->A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetFromOptions(*ksp)); /* how the fused methods run */
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, c->pc ? c->pc : PCNONE));
  PetscCall(KSPSetNormType(*ksp, c->norm));
  if (c->side != PC_SIDE_DEFAULT) PetscCall(KSPSetPCSide(*ksp, c->side));
  PetscCall(KSPSetTolerances(*ksp, Tolerance(1e-8), PetscDefined(USE_REAL_SINGLE) ? 1e-30 : 1e-50, 1e5, AB_MAX_IT));
  PetscCall(KSPSetInitialGuessNonzero(*ksp, c->x0 ? PETSC_TRUE : PETSC_FALSE));
  if (c->tune) PetscCall((*c->tune)(*ksp, c->ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABSolve(const ABCase *c, KSP ksp, ABRun *run)
{
  const PetscReal *hist;
  Vec              b;

  PetscFunctionBeginUser;
  PetscCall(KSPSetResidualHistory(ksp, NULL, AB_HISTORY, PETSC_TRUE));
  PetscCall(VecDuplicate(c->b, &b));
  PetscCall(VecCopy(c->b, b));
  PetscCall(VecDuplicate(c->b, &run->x));
  if (c->x0) PetscCall(VecCopy(c->x0, run->x));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  run->error = c->flags & AB_TRANSPOSE ? KSPSolveTranspose(ksp, b, run->x) : KSPSolve(ksp, b, run->x);
  PetscCall(PetscPopErrorHandler());
  PetscCall(VecDestroy(&b));
  PetscCall(KSPGetConvergedReason(ksp, &run->reason));
  PetscCall(KSPGetIterationNumber(ksp, &run->its));
  PetscCall(KSPGetResidualNorm(ksp, &run->rnorm));
  PetscCall(KSPGetResidualHistory(ksp, &hist, &run->nhist));
  PetscCall(PetscArraycpy(run->hist, hist, run->nhist));
  PetscCall(ABGetCounts(ksp, &run->fused, &run->parent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a solver that is set up, from a zero guess */
static PETSC_UNUSED PetscErrorCode ABSolvePlain(KSP ksp, Vec b, ABRun *run)
{
  const ABCase c = {"", NULL, NULL, b, NULL, NULL, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, NULL, NULL};

  PetscFunctionBeginUser;
  PetscCall(ABSolve(&c, ksp, run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ||b - A x|| */
PETSC_UNUSED static PetscErrorCode ABResidualNorm(Mat A, Vec b, Vec x, PetscReal *norm)
{
  Vec r;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, norm));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does a view of the solver say this? */
static PETSC_UNUSED PetscErrorCode ABViews(KSP ksp, const char text[], PetscBool *found)
{
  char buffer[4000];

  PetscFunctionBeginUser;
  PetscCall(ViewSays((PetscObject)ksp, text, "ab.txt", buffer, sizeof(buffer), found));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A check that compares no runs */
static PETSC_UNUSED PetscErrorCode ABSay(const char what[], PetscBool ok)
{
  PetscFunctionBeginUser;
  if (!ok) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s\n", what, ok ? "PASS" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscBool ABNear(PetscReal a, PetscReal b, PetscReal relative, PetscReal absolute)
{
  if (PetscIsInfOrNanReal(a) || PetscIsInfOrNanReal(b)) return PetscIsInfOrNanReal(a) && PetscIsInfOrNanReal(b) ? PETSC_TRUE : PETSC_FALSE;
  return PetscAbsReal(a - b) <= relative * PetscMax(PetscAbsReal(a), PetscAbsReal(b)) + absolute ? PETSC_TRUE : PETSC_FALSE;
}

/* Norms far below the first are rounding: what is 1e-13 of it may be anything */
static PETSC_UNUSED PetscErrorCode ABCompareRuns(const ABRun *a, const ABRun *b, int flags, char *text, size_t len)
{
  const PetscReal floor = a->nhist ? Tolerance(1e-13) * a->hist[0] : 0.0;
  PetscReal       na, nd;
  Vec             d;

  PetscFunctionBeginUser;
  text[0] = 0;
  if (a->error != b->error) PetscCall(PetscSNPrintf(text, len, "error code %d, not %d", (int)b->error, (int)a->error));
  else if (a->reason != b->reason) PetscCall(PetscSNPrintf(text, len, "reason %s, not %s", KSPConvergedReasons[b->reason], KSPConvergedReasons[a->reason]));
  else if (a->its != b->its) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " iterations, not %" PetscInt_FMT, b->its, a->its));
  else if (flags & AB_END) PetscFunctionReturn(PETSC_SUCCESS);
  else if (a->nhist != b->nhist) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " norms in the history, not %" PetscInt_FMT, b->nhist, a->nhist));
  if (text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt i = 0; i < a->nhist; i++) {
    if (!ABNear(a->hist[i], b->hist[i], i < 10 ? Tolerance(1e-6) : 5e-2, PetscIsInfOrNanReal(floor) ? 0.0 : floor)) {
      PetscCall(PetscSNPrintf(text, len, "norm %" PetscInt_FMT " is %g, not %g", i, (double)b->hist[i], (double)a->hist[i]));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  if (!ABNear(a->rnorm, b->rnorm, 5e-2, PetscIsInfOrNanReal(floor) ? 0.0 : floor)) {
    PetscCall(PetscSNPrintf(text, len, "last norm %g, not %g", (double)b->rnorm, (double)a->rnorm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecDuplicate(a->x, &d));
  PetscCall(VecWAXPY(d, -1.0, a->x, b->x));
  PetscCall(VecNorm(d, NORM_2, &nd));
  PetscCall(VecNorm(a->x, NORM_2, &na));
  PetscCall(VecDestroy(&d));
  if (PetscIsInfOrNanReal(na)) {
    PetscCall(VecNorm(b->x, NORM_2, &nd));
    if (!PetscIsInfOrNanReal(nd)) PetscCall(PetscSNPrintf(text, len, "a finite solution, where PETSc's is not"));
  } else if (!(nd <= Tolerance(1e-6) * na + Tolerance(1e-12))) PetscCall(PetscSNPrintf(text, len, "solutions differ by %g of %g", (double)nd, (double)na));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was looked at, and PASS or what differs, which is a failure */
static PETSC_UNUSED PetscErrorCode ABSay(const char what[], const char text[])
{
  PetscFunctionBeginUser;
  if (text[0]) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s\n", what, text[0] ? text : "PASS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABSayOf(KSPType type, const char what[], const char text[])
{
  char name[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s", type, what));
  PetscCall(ABSay(name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve more by each of these solvers: ours is to be fused, in some iterations, and its view to contain `part` or not, as expected. `text` is empty when all agrees */
static PETSC_UNUSED PetscErrorCode ABSolveBoth(const ABCase *c, KSP stock, KSP fused, const char part[], PetscBool expected, char text[], size_t len)
{
  ABRun     theirs, ours;
  char      buffer[4000];
  PetscBool says = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(ABSolve(c, stock, &theirs));
  PetscCall(ABSolve(c, fused, &ours));
  PetscCall(ViewSays((PetscObject)fused, part, "ab.txt", buffer, sizeof(buffer), &says));
  PetscCall(ABCompareRuns(&theirs, &ours, c->flags, text, len));
  if (!text[0] && says != expected) PetscCall(PetscSNPrintf(text, len, "the view %s \"%s\"", says ? "says" : "does not say", part));
  if (!text[0] && (!ours.fused || ours.its < 4)) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " iterations, fused %" PetscInt_FMT, ours.its, ours.fused));
  PetscCall(VecDestroy(&theirs.x));
  PetscCall(VecDestroy(&ours.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same by solvers of its own */
static PETSC_UNUSED PetscErrorCode ABRunBoth(const ABCase *c, KSPType stock, KSPType fused, const char part[], PetscBool expected, char text[], size_t len)
{
  KSP theirs, ours;

  PetscFunctionBeginUser;
  PetscCall(ABCreate(c, stock, &theirs));
  PetscCall(ABCreate(c, fused, &ours));
  PetscCall(ABSolveBoth(c, theirs, ours, part, expected, text, len));
  PetscCall(KSPDestroy(&theirs));
  PetscCall(KSPDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One case by both methods. `text` is empty when all agrees */
static PETSC_UNUSED PetscErrorCode ABRunCase(const ABCase *c, KSPType stock, KSPType fused, ABRun *ours, char *text, size_t len)
{
  KSP   ksp;
  ABRun theirs;

  PetscFunctionBeginUser;
  PetscCall(ABCreate(c, stock, &ksp));
  PetscCall(ABSolve(c, ksp, &theirs));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(ABCreate(c, fused, &ksp));
  PetscCall(ABSolve(c, ksp, ours));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(ABCompareRuns(&theirs, ours, c->flags, text, len));
  if (!text[0] && ours->fused != (c->flags & AB_PARENT ? 0 : 1)) PetscCall(PetscSNPrintf(text, len, "%s", c->flags & AB_PARENT ? "fused, must not be" : "not fused, must be"));
  if (text[0]) ABFailures++;
  PetscCall(VecDestroy(&theirs.x));
  PetscCall(VecDestroy(&ours->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One case, one line: what PETSc says and PASS */
static PETSC_UNUSED PetscErrorCode ABReport(const ABCase *c, KSPType stock, KSPType fused)
{
  ABRun run;
  char  text[256];

  PetscFunctionBeginUser;
  PetscCall(ABRunCase(c, stock, fused, &run, text, sizeof(text)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %s, %s: %s\n", c->name, run.error ? "error" : KSPConvergedReasons[run.reason], run.fused ? "fused" : "PETSc's path", text[0] ? text : "PASS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABLook(KSP, PetscInt, PetscReal, PetscCtx)
{
  return PETSC_SUCCESS;
}

/* A `tune`: a monitor that is none of PETSc's looks on */
static PETSC_UNUSED PetscErrorCode ABWatch(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPMonitorSet(ksp, ABLook, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices, of the type -mat_type says */

static PETSC_UNUSED PetscErrorCode ABMatCreate(PetscInt n, PetscInt width, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, n, n, n, n));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, width, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABMatAssemble(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -laplace + wind . grad on an m x k grid with varying coefficients; `neumann`: rows sum to 0 */
static PETSC_UNUSED PetscErrorCode ABMatGrid(PetscInt m, PetscInt k, PetscReal wind, PetscBool neumann, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(m * k, 5, A));
  for (PetscInt row = 0; row < m * k; row++) {
    const PetscInt  i = row % m, j = row / m;
    const PetscInt  step[]  = {-1, 1, -m, m};
    const PetscBool there[] = {(PetscBool)(i > 0), (PetscBool)(i < m - 1), (PetscBool)(j > 0), (PetscBool)(j < k - 1)};
    PetscScalar     diag    = 0.0;

    for (int s = 0; s < 4; s++) {
      const PetscInt    col = row + step[s];
      const PetscScalar c = -1.0 - 0.2 * ((PetscMin(row, col) * 7 + PetscAbsInt(step[s])) % 5), w = wind * (s % 2 ? 1.0 : -1.0);

      if (!there[s]) {
        if (!neumann) diag += 1.0;
        continue;
      }
      diag -= neumann ? c + w : c;
      PetscCall(MatSetValue(*A, row, col, c + w, INSERT_VALUES));
    }
    PetscCall(MatSetValue(*A, row, row, diag, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same with rows that sum to 0, and the constants for its null space */
static PETSC_UNUSED PetscErrorCode ABMatSingularGrid(PetscInt m, PetscInt k, PetscReal wind, Mat *A)
{
  MatNullSpace constants;

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(m, k, wind, PETSC_TRUE, A));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, 0, NULL, &constants));
  PetscCall(MatSetNullSpace(*A, constants));
  PetscCall(MatNullSpaceDestroy(&constants));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* m x k nodes of bs unknowns: a weighted graph, its edges between the same unknown of neighbours and, up to 60 times as heavy, between the unknowns of a node; plus `shift` on the diagonal
   (0: rows sum to 0) and wind, through the nodes too */
static PETSC_UNUSED PetscErrorCode ABMatBlocks(PetscInt m, PetscInt k, PetscInt bs, PetscReal shift, PetscReal wind, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(m * k * bs, 4 + bs, A));
  PetscCall(MatSetBlockSize(*A, bs));
  for (PetscInt row = 0; row < m * k * bs; row++) {
    const PetscInt  node = row / bs, i = node % m, j = node / m;
    const PetscInt  step[]  = {-1, 1, -m, m};
    const PetscBool there[] = {(PetscBool)(i > 0), (PetscBool)(i < m - 1), (PetscBool)(j > 0), (PetscBool)(j < k - 1)};
    PetscScalar     diag    = shift;

    for (int s = 0; s < 4; s++) {
      const PetscInt    col = row + step[s] * bs;
      const PetscScalar c   = 1.0 + 0.2 * ((PetscMin(row, col) * 7 + PetscAbsInt(step[s])) % 5);

      if (!there[s]) continue;
      diag += c;
      PetscCall(MatSetValue(*A, row, col, -c + wind * (s % 2 ? 1.0 : -1.0), INSERT_VALUES));
    }
    for (PetscInt col = node * bs; col < (node + 1) * bs; col++) {
      const PetscScalar c = 1.0 + ((node * 11 + (row + col) * 5 + PetscAbsInt(row - col)) % 60);

      if (col == row) continue;
      diag += c;
      PetscCall(MatSetValue(*A, row, col, -c + 4.0 * wind * (col > row ? 1.0 : -1.0), INSERT_VALUES));
    }
    PetscCall(MatSetValue(*A, row, row, diag, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABMatDiagonal(PetscInt n, const PetscScalar d[], Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(n, 1, A));
  for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(*A, i, i, d[i], INSERT_VALUES));
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries between -1 and 1, the same in every run, however many processes there are */
static PETSC_UNUSED PetscErrorCode ABVecFill(Vec v, PetscInt seed)
{
  PetscInt     start, end;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(v, &start, &end));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt i = start; i < end; i++) a[i - start] = PetscSinReal((PetscReal)(1 + 13 * i + 7 * seed));
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PETSC_UNUSED PetscErrorCode ABFinish(void)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " failures\n", ABFailures));
  PetscFunctionReturn(PETSC_SUCCESS);
}
