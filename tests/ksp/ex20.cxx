static char help[] = "Watched solves: who reads the norm alone sees what PETSc's own types show, of iterations begun ahead or on the chip; who looks at the iterate gets that of the iteration, or an error.\n\n";

#include "ab.h"

typedef struct {
  KSPType     parent, type;
  const char *variant; /* of ours, NULL: it has none */
  PetscReal   wind;
} Method;

static const Method methods[] = {
  {KSPCG,   "tccg",   "classic", 0.0},
  {KSPCG,   "tccg",   "single",  0.0},
  {KSPBCGS, "tcbcgs", "classic", 0.4},
  {KSPCR,   "tccr",   NULL,      0.0}
};

static bool IsSingle(const Method *method)
{
  return method->variant && !strcmp(method->variant, "single");
}

/* How ours runs: by steps, three iterations ahead, or on the chip. What the view says where that is so, and where not */
typedef struct {
  const char *name, *ahead, *resident, *says, *not_so;
} Path;

static const Path paths[] = {
  {"steps", "3", "false", "iterations begun ahead 3\n",          "no iterations begun ahead (last: %s)\n"},
  {"chip",  "0", "true",  "resident, 64 iterations in a call\n", "not resident (last: %s)\n"             }
};

static const char *const may_look = "a monitor may look at the solution: -ksp_monitors_norm_only if it reads only the norm";
static const char *const looks    = "a monitor of PETSc's looks at the solution or the residual: -ksp_monitor reads only the norm";
static const char *const tests    = "the convergence test is the user's: -ksp_convergence_test default where PETSc's will do";

/* ---- what a monitor sees */

typedef struct {
  PetscInt           n, it[AB_HISTORY], its[AB_HISTORY], nhist[AB_HISTORY];
  PetscReal          norm[AB_HISTORY], rnorm[AB_HISTORY];
  KSPConvergedReason reason[AB_HISTORY];
} Seen;

/* All that one who reads the norm alone may ask for */
static PetscErrorCode Recorder(KSP ksp, PetscInt it, PetscReal norm, PetscCtx ctx)
{
  Seen    *seen = (Seen *)ctx;
  PetscInt k    = seen->n++;

  PetscFunctionBeginUser;
  seen->it[k]   = it;
  seen->norm[k] = norm;
  PetscCall(KSPGetIterationNumber(ksp, &seen->its[k]));
  PetscCall(KSPGetResidualNorm(ksp, &seen->rnorm[k]));
  PetscCall(KSPGetResidualHistory(ksp, NULL, &seen->nhist[k]));
  PetscCall(KSPGetConvergedReason(ksp, &seen->reason[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What -ksp_monitor has written */
static PetscErrorCode ReadMonitor(const char name[], Seen *seen)
{
  FILE *f = fopen(name, "r");
  char  line[256];

  PetscFunctionBeginUser;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
  while (fgets(line, sizeof(line), f)) {
    int    it;
    double norm;

    if (sscanf(line, "%d KSP Residual norm %lf", &it, &norm) != 2) continue;
    seen->it[seen->n]     = it;
    seen->norm[seen->n++] = (PetscReal)norm;
  }
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* text is empty when both have seen the same */
static PetscErrorCode CompareSeen(const Seen *theirs, const Seen *ours, char text[], size_t len)
{
  PetscFunctionBeginUser;
  if (theirs->n != ours->n) PetscCall(PetscSNPrintf(text, len, "the monitor has seen %" PetscInt_FMT " norms, not %" PetscInt_FMT, ours->n, theirs->n));
  for (PetscInt k = 0; k < theirs->n && !text[0]; k++) {
    const PetscReal rtol = k < 10 ? Tolerance(1e-6) : 5e-2, floor = Tolerance(1e-13) * theirs->norm[0];

    if (theirs->it[k] != ours->it[k] || theirs->its[k] != ours->its[k] || theirs->nhist[k] != ours->nhist[k] || theirs->reason[k] != ours->reason[k] || !ABNear(theirs->norm[k], ours->norm[k], rtol, floor) ||
        !ABNear(theirs->rnorm[k], ours->rnorm[k], rtol, floor))
      PetscCall(PetscSNPrintf(text, len, "the monitor has seen %g in iteration %" PetscInt_FMT ", not %g, or another state", (double)ours->norm[k], ours->it[k], (double)theirs->norm[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- cases */

static PetscErrorCode AfterNine(KSP, PetscInt it, PetscReal, KSPConvergedReason *reason, PetscCtx)
{
  *reason = it == 9 ? KSP_CONVERGED_USER : KSP_CONVERGED_ITERATING;
  return PETSC_SUCCESS;
}

static PetscErrorCode TuneTest(KSP ksp)
{
  return KSPSetConvergenceTest(ksp, AfterNine, NULL, NULL);
}

typedef struct {
  const char *name;
  bool        records; /* a monitor of the user's does */
  bool        only;    /* of which the user says so */
  const char *option, *value;
  PetscErrorCode (*tune)(KSP);
  const char *why; /* it is not the path. NULL: it is */
} Case;

#define MONITOR_FILE "ex20monitor.txt"

static const Case cases[] = {
  {"a monitor of the user's",                          true,  false, NULL,                         NULL,                  NULL,     may_look},
  {"the same, of the norm alone",                      true,  true,  NULL,                         NULL,                  NULL,     NULL    },
  {"the same by an option",                            true,  false, "-ksp_monitors_norm_only",    NULL,                  NULL,     NULL    },
  {"the same beside PETSc's",                          true,  true,  "-ksp_monitor",               "ascii:" MONITOR_FILE, NULL,     NULL    },
  {"-ksp_monitor",                                     false, false, "-ksp_monitor",               "ascii:" MONITOR_FILE, NULL,     NULL    },
  {"-ksp_monitor draw::draw_lg",                       false, false, "-ksp_monitor",               "draw::draw_lg",       NULL,     NULL    },
  {"-ksp_converged_rate",                              false, false, "-ksp_converged_rate",        "ascii:ex20rate.txt",  NULL,     NULL    },
  {"-ksp_monitor draw",                                false, false, "-ksp_monitor",               "draw",                NULL,     looks   },
  {"-ksp_monitor_true_residual",                       false, false, "-ksp_monitor_true_residual", "ascii:ex20other.txt", NULL,     looks   },
  {"-ksp_monitor_true_residual draw::draw_lg",         false, false, "-ksp_monitor_true_residual", "draw::draw_lg",       NULL,     looks   },
  {"-ksp_monitor_true_residual beside the user's",     true,  false, "-ksp_monitor_true_residual", "ascii:ex20other.txt", NULL,     looks   },
  {"-ksp_monitor_max",                                 false, false, "-ksp_monitor_max",           "ascii:ex20other.txt", NULL,     looks   },
  {"-ksp_monitor_range",                               false, false, "-ksp_monitor_range",         "ascii:ex20other.txt", NULL,     looks   },
  {"-ksp_monitor_solution",                            false, false, "-ksp_monitor_solution",      "ascii:ex20other.txt", NULL,     looks   },
  {"a test of the user's",                             false, false, NULL,                         NULL,                  TuneTest, tests   },
  {"a test of the user's, monitors of the norm alone", true,  true,  NULL,                         NULL,                  TuneTest, tests   }
};

/* path NULL: PETSc's type */
static PetscErrorCode Create(const Method *method, const Path *path, Mat A, KSP *ksp)
{
  char name[3][64];
  PC   pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, path ? method->type : method->parent));
  PetscCall(PetscSNPrintf(name[0], sizeof(name[0]), "-ksp_%s_ahead", method->type));
  PetscCall(PetscSNPrintf(name[1], sizeof(name[1]), "-ksp_%s_resident", method->type));
  PetscCall(PetscSNPrintf(name[2], sizeof(name[2]), "-ksp_%s_variant", method->type));
  PetscCall(PetscOptionsSetValue(NULL, name[0], path ? path->ahead : "0"));
  PetscCall(PetscOptionsSetValue(NULL, name[1], path ? path->resident : "false"));
  if (method->variant) PetscCall(PetscOptionsSetValue(NULL, name[2], method->variant));
  PetscCall(KSPSetFromOptions(*ksp));
  for (const char *n : name) PetscCall(PetscOptionsClearValue(NULL, n));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetNormType(*ksp, KSP_NORM_PRECONDITIONED));
  PetscCall(KSPSetTolerances(*ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 200));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveCase(const Case *c, const Method *method, const Path *path, Mat A, Vec b, Seen *seen, ABRun *run, PetscReal *rate, KSP *ksp)
{
  PetscReal rsq;

  PetscFunctionBeginUser;
  seen->n = 0;
  if (c->option) PetscCall(PetscOptionsSetValue(NULL, c->option, c->value));
  PetscCall(Create(method, path, A, ksp));
  if (c->option) PetscCall(PetscOptionsClearValue(NULL, c->option));
  if (c->records) PetscCall(KSPMonitorSet(*ksp, Recorder, seen, NULL));
  if (c->only) PetscCall(ABSetNormOnly(*ksp, PETSC_TRUE));
  if (c->tune) PetscCall((*c->tune)(*ksp));
  PetscCall(ABSolvePlain(*ksp, b, run));
  PetscCall(KSPComputeConvergenceRate(*ksp, rate, &rsq, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The path is the one that is expected, or the view says this */
static PetscErrorCode CheckPath(const Case *c, const Method *method, const Path *path, KSP ksp, char text[], size_t len)
{
  char      says[256], buffer[4000];
  PetscBool found, refused;

  PetscFunctionBeginUser;
  if (!c->why) PetscCall(PetscStrncpy(says, path->says, sizeof(says)));
  else if (IsSingle(method)) PetscCall(PetscSNPrintf(says, sizeof(says), "fused solves 0, PETSc's path 1 (last: single reduction is watched (%s))\n", c->why));
  else PetscCall(PetscSNPrintf(says, sizeof(says), path->not_so, c->why));
  PetscCall(ViewSays((PetscObject)ksp, says, "ex20.txt", buffer, sizeof(buffer), &found));
  PetscCall(ViewSays((PetscObject)ksp, "(last: ", "ex20.txt", buffer, sizeof(buffer), &refused));
  if (!found || refused != (c->why ? PETSC_TRUE : PETSC_FALSE)) {
    PetscCall(PetscSNPrintf(text, len, "the view does not say so"));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "no \"%s\" in\n%s", says, buffer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SayOfPath(const Method *method, const Path *path, const char name[], const char text[])
{
  char what[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s, %s", IsSingle(method) ? "single, " : "", path->name, name));
  PetscCall(ABSayOf(method->type, what, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const Case *c, const Method *method, const Path *path, Mat A, Vec b)
{
  const bool file      = c->value && strstr(c->value, MONITOR_FILE);
  char       text[256] = "";
  Seen      *seen;
  ABRun     *run;
  PetscReal  rate[2];
  KSP        ksp[2];

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(4, &seen));
  PetscCall(PetscMalloc1(2, &run));
  for (int k = 0; k < 2; k++) {
    PetscCall(SolveCase(c, method, k ? path : NULL, A, b, &seen[k], &run[k], &rate[k], &ksp[k]));
    if (k) PetscCall(CheckPath(c, method, path, ksp[k], text, sizeof(text)));
    PetscCall(KSPDestroy(&ksp[k]));
    if (file) PetscCall(ReadMonitor(MONITOR_FILE, &seen[2 + k])); /* the monitor has closed it */
  }
  if (!text[0]) PetscCall(ABCompareRuns(&run[0], &run[1], 0, text, sizeof(text)));
  if (!text[0]) PetscCall(CompareSeen(&seen[0], &seen[1], text, sizeof(text)));
  if (!text[0]) PetscCall(CompareSeen(&seen[2], &seen[3], text, sizeof(text)));
  if (!text[0] && !ABNear(rate[0], rate[1], Tolerance(1e-3), 0.0)) PetscCall(PetscSNPrintf(text, sizeof(text), "rate %g, not %g", (double)rate[1], (double)rate[0]));
  if (!text[0] && ((c->records && seen[1].n != run[1].its + 1) || (file && seen[3].n != run[1].its + 1))) PetscCall(PetscSNPrintf(text, sizeof(text), "not all norms have been seen"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  PetscCall(PetscFree(seen));
  PetscCall(PetscFree(run));
  PetscCall(SayOfPath(method, path, c->name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- monitors that ask for the iterate */

typedef struct {
  Vec       x, t, v; /* x: as passed to KSPSolve() */
  PetscInt  n;
  PetscReal norm[AB_HISTORY];
  PetscErrorCode (*ask)(KSP, void *);
} Asker;

static PetscErrorCode AskBuildSolution(KSP ksp, void *ctx)
{
  Asker *a = (Asker *)ctx;

  PetscFunctionBeginUser;
  PetscCall(KSPBuildSolution(ksp, a->v, NULL));
  PetscCall(VecNorm(a->v, NORM_2, &a->norm[a->n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskBuildSolutionInPlace(KSP ksp, void *ctx)
{
  Asker *a = (Asker *)ctx;
  Vec    x;

  PetscFunctionBeginUser;
  PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(VecNorm(x, NORM_2, &a->norm[a->n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskBuildResidual(KSP ksp, void *ctx)
{
  Asker *a = (Asker *)ctx;
  Vec    r;

  PetscFunctionBeginUser;
  PetscCall(KSPBuildResidual(ksp, a->t, a->v, &r));
  PetscCall(VecNorm(r, NORM_2, &a->norm[a->n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskSolution(KSP ksp, void *ctx)
{
  Asker *a = (Asker *)ctx;
  Vec    x;

  PetscFunctionBeginUser;
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(VecNorm(x, NORM_2, &a->norm[a->n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskOwn(KSP, void *ctx)
{
  Asker      *a = (Asker *)ctx;
  PetscScalar dot;

  PetscFunctionBeginUser;
  PetscCall(VecDot(a->x, a->x, &dot));
  a->norm[a->n] = PetscSqrtReal(PetscRealPart(dot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskArray(KSP, void *ctx)
{
  Asker       *a = (Asker *)ctx;
  PetscScalar *x;

  PetscFunctionBeginUser;
  PetscCall(VecGetArray(a->x, &x));
  a->norm[a->n] = PetscAbsScalar(x[0]);
  PetscCall(VecRestoreArray(a->x, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Goes on after an error */
static PetscErrorCode AskRegardless(KSP, void *ctx)
{
  Asker *a = (Asker *)ctx;

  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  const PetscErrorCode ignored = VecNorm(a->x, NORM_2, &a->norm[a->n]);
  PetscCall(PetscPopErrorHandler());
  if (ignored) a->norm[a->n] = 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AskMonitor(KSP ksp, PetscInt, PetscReal, PetscCtx ctx)
{
  Asker *a = (Asker *)ctx;

  PetscFunctionBeginUser;
  PetscCall((*a->ask)(ksp, a));
  a->n++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first message of an error */
static PetscErrorCode KeepMessage(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type, const char *message, void *ctx)
{
  if (type == PETSC_ERROR_INITIAL && message) (void)PetscStrncpy((char *)ctx, message, 512);
  return code;
}

/* b is copied: after an error it stays locked */
static PetscErrorCode SolveAsked(KSP ksp, Vec b, Asker *a, char message[512], PetscErrorCode *error)
{
  Vec c;

  PetscFunctionBeginUser;
  a->n       = 0;
  message[0] = 0;
  PetscCall(VecDuplicate(b, &c));
  PetscCall(VecCopy(b, c));
  PetscCall(PetscPushErrorHandler(KeepMessage, message));
  *error = KSPSolve(ksp, c, a->x);
  PetscCall(PetscPopErrorHandler());
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*ask)(KSP, void *);
  bool tells; /* the message names the option */
} askers[] = {
  {"KSPBuildSolution()",                 AskBuildSolution,        true },
  {"KSPBuildSolution() of no vector",    AskBuildSolutionInPlace, true },
  {"KSPBuildResidual()",                 AskBuildResidual,        true },
  {"KSPGetSolution() and VecNorm()",     AskSolution,             false},
  {"VecDot() of the user's vector",      AskOwn,                  false},
  {"VecGetArray() of the user's vector", AskArray,                false},
  {"one who goes on after the error",    AskRegardless,           true }
};

/* An error at once; without the option the same solver gives the iterates that PETSc's gives */
static PetscErrorCode Asks(int which, const Method *method, const Path *path, Mat A, Vec b)
{
  char           text[256] = "", message[512];
  PetscInt       lock      = 0;
  Asker         *a;
  PetscErrorCode error;
  KSP            ksp[2];

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(2, &a));
  for (int k = 0; k < 2; k++) {
    for (Vec *v : {&a[k].x, &a[k].t, &a[k].v}) PetscCall(VecDuplicate(b, v));
    a[k].ask = askers[which].ask;
    PetscCall(Create(method, k ? path : NULL, A, &ksp[k]));
    PetscCall(KSPMonitorSet(ksp[k], AskMonitor, &a[k], NULL));
  }
  PetscCall(SolveAsked(ksp[0], b, &a[0], message, &error));
  if (error) PetscCall(PetscSNPrintf(text, sizeof(text), "PETSc's type errs: %s", message));
  PetscCall(ABSetNormOnly(ksp[1], PETSC_TRUE));
  PetscCall(SolveAsked(ksp[1], b, &a[1], message, &error));
  PetscCall(VecLockGet(a[1].x, &lock));
  if (!text[0] && (error != PETSC_ERR_ARG_WRONGSTATE || a[1].n > 1 || lock)) PetscCall(PetscSNPrintf(text, sizeof(text), "error %d in call %" PetscInt_FMT ", lock %" PetscInt_FMT, (int)error, a[1].n, lock));
  if (!text[0] && askers[which].tells && !strstr(message, "-ksp_monitors_norm_only")) PetscCall(PetscSNPrintf(text, sizeof(text), "the message is \"%s\"", message));
  PetscCall(ABSetNormOnly(ksp[1], PETSC_FALSE));
  PetscCall(SolveAsked(ksp[1], b, &a[1], message, &error));
  if (!text[0] && (error || a[0].n != a[1].n)) PetscCall(PetscSNPrintf(text, sizeof(text), "afterwards error %d, %" PetscInt_FMT " iterates, not %" PetscInt_FMT, (int)error, a[1].n, a[0].n));
  for (PetscInt i = 0; i < a[0].n && !text[0]; i++) {
    if (!ABNear(a[0].norm[i], a[1].norm[i], i < 10 ? Tolerance(1e-6) : 5e-2, Tolerance(1e-12) * a[0].norm[0])) PetscCall(PetscSNPrintf(text, sizeof(text), "iterate %" PetscInt_FMT ": %g, not %g", i, (double)a[1].norm[i], (double)a[0].norm[i]));
  }
  for (int k = 0; k < 2; k++) {
    for (Vec *v : {&a[k].x, &a[k].t, &a[k].v}) PetscCall(VecDestroy(v));
    PetscCall(KSPDestroy(&ksp[k]));
  }
  PetscCall(PetscFree(a));
  PetscCall(SayOfPath(method, path, askers[which].name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In a block of columns monitors come when the solutions of all are there */
static PetscErrorCode AsksInColumns(const Method *method, Mat A, Vec b)
{
  const PetscInt columns = 3;
  PetscInt       n;
  char           text[256] = "", message[512] = "", name[64];
  VecType        vectype;
  Mat            B, X;
  KSP            ksp;
  Asker          a = {};
  PetscErrorCode error;

  PetscFunctionBeginUser;
  PetscCall(VecGetType(b, &vectype));
  PetscCall(VecGetLocalSize(b, &n));
  for (Mat *M : {&B, &X}) {
    PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, vectype, n, columns, n, columns, -1, NULL, M));
    PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(VecDuplicate(b, &a.v));
  a.ask = AskBuildSolution;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_matsolve", method->type));
  PetscCall(PetscOptionsSetValue(NULL, name, "true"));
  PetscCall(Create(method, &paths[0], A, &ksp));
  PetscCall(PetscOptionsClearValue(NULL, name));
  PetscCall(ABSetNormOnly(ksp, PETSC_TRUE));
  PetscCall(KSPMonitorSet(ksp, AskMonitor, &a, NULL));
  PetscCall(PetscPushErrorHandler(KeepMessage, message));
  error = KSPMatSolve(ksp, B, X);
  PetscCall(PetscPopErrorHandler());
  if (error != PETSC_ERR_ARG_WRONGSTATE || a.n || !strstr(message, "-ksp_monitors_norm_only")) PetscCall(PetscSNPrintf(text, sizeof(text), "error %d: %s", (int)error, message));
  PetscCall(ABSayOf(method->type, "columns, KSPBuildSolution()", text));
  PetscCall(VecDestroy(&a.v));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (int round = 0; round < 2; round++) { /* errors leave PETSc's nesting count of solves as it was, so they come last */
    for (const Method &method : methods) {
      Mat A;
      Vec b;

      PetscCall(ABMatGrid(27, 25, method.wind, PETSC_FALSE, &A));
      PetscCall(MatCreateVecs(A, NULL, &b));
      PetscCall(ABVecFill(b, 1));
      for (const Path &path : paths) {
        if (!round) {
          for (const Case &c : cases) PetscCall(Report(&c, &method, &path, A, b));
        } else {
          for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(askers); k++) PetscCall(Asks(k, &method, &path, A, b));
        }
      }
      if (round && method.variant && !IsSingle(&method)) PetscCall(AsksInColumns(&method, A, b));
      PetscCall(MatDestroy(&A));
      PetscCall(VecDestroy(&b));
    }
  }
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -nox
      output_file: output/ex20.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
