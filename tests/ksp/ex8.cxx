static char help[] = "Many iterations of KSPTCCG, KSPTCBCGS and KSPTCCR in one call: what KSPCG, KSPBCGS and KSPCR do, wherever calls and solves end, and the path where it is not legal.\n\n";

#include "ab.h"

typedef struct {
  KSPType     parent, type;
  const char *option, *value; /* that ask for the resident solver */
  const char *variant;        /* of its recurrences */
} Method;

static const Method cg                 = {KSPCG, "tccg", "-ksp_tccg_resident", "true", "classic"};
static const Method cg_single          = {KSPCG, "tccg", "-ksp_tccg_resident", "form", "single"};
static const Method cg_streamed        = {KSPCG, "tccg", "-ksp_tccg_resident", "layout", "classic"};
static const Method cg_streamed_single = {KSPCG, "tccg", "-ksp_tccg_resident", "layout", "auto"};
static const Method bcgs               = {KSPBCGS, "tcbcgs", "-ksp_tcbcgs_resident", "true", NULL};
static const Method bcgs_streamed      = {KSPBCGS, "tcbcgs", "-ksp_tcbcgs_resident", "layout", NULL};
static const Method cr                 = {KSPCR, "tccr", "-ksp_tccr_resident", "true", NULL};

static bool IsCG(const Method *method)
{
  return !strcmp(method->type, cg.type);
}

static bool IsBCGS(const Method *method)
{
  return !strcmp(method->type, bcgs.type);
}

/* KSPCR of PETSc 3.26 updates the residual of the unpreconditioned norm with the wrong sign. Without preconditioner the norms are the same */
static KSPNormType ParentNorm(const Method *method, KSPNormType norm)
{
  return method == &cr && norm == KSP_NORM_UNPRECONDITIONED ? KSP_NORM_PRECONDITIONED : norm;
}

/* What a view says of a resident solve: with the matrix on the chip, or read from its layout */
static const char *const held = "resident, 64 iterations in a call\n", *const streamed = "resident, 64 iterations in a call, the matrix read from its layout\n";

/* With one reduction: auto takes that too, wherever it is resident */
static bool IsSingle(const Method *method)
{
  return method->variant && (!strcmp(method->variant, "single") || !strcmp(method->variant, "auto"));
}

static const char *SaysOf(const Method *method)
{
  if (!strcmp(method->value, "layout")) return streamed;
  return held;
}

static PetscErrorCode Create(const Method *method, const char resident[], Mat A, PCType pctype, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, resident ? method->type : method->parent));
  PetscCall(PetscOptionsSetValue(NULL, method->option, resident ? resident : "false"));
  if (method->variant) PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", method->variant));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(PetscOptionsClearValue(NULL, method->option));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetTolerances(*ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Distance(Vec x, Vec y, PetscReal *distance)
{
  PetscReal norm;
  Vec       d;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &d));
  PetscCall(VecWAXPY(d, -1.0, x, y));
  PetscCall(VecNorm(d, NORM_2, distance));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecDestroy(&d));
  *distance /= norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rounding decides about the last iterations of a solve of more than a hundred: their number may differ by two */
static PetscErrorCode Alike(const ABRun *theirs, const ABRun *ours, PetscBool *alike)
{
  const PetscBool same      = (PetscBool)(theirs->its <= 100 || theirs->reason < 0);
  char            text[256] = "";
  PetscReal       distance  = 0.0;

  PetscFunctionBeginUser;
  if (same || theirs->its == ours->its) PetscCall(ABCompareRuns(theirs, ours, 0, text, sizeof(text)));
  else PetscCall(Distance(theirs->x, ours->x, &distance));
  *alike = (PetscBool)(!text[0] && theirs->reason == ours->reason && PetscAbsInt(theirs->its - ours->its) <= (same ? 0 : 2) && distance <= 1e-5);
  if (!*alike)
    PetscCall(
      PetscPrintf(PETSC_COMM_SELF, "  %s after %" PetscInt_FMT ", not %s after %" PetscInt_FMT ", solutions differ by %g; %s\n", KSPConvergedReasons[ours->reason], ours->its, KSPConvergedReasons[theirs->reason], theirs->its, (double)distance, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ended by the test or by the number of iterations, before, at and behind the end of a call */
static PetscErrorCode Ends(const Method *method, Mat A, Vec b, PCType pctype, PCSide side, KSPNormType norm)
{
  const PetscInt max_its[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 1000};
  PetscBool      ok        = PETSC_TRUE, alike, resident, single;
  char           what[128];

  PetscFunctionBeginUser;
  for (PetscInt max_it : max_its) {
    ABRun run[2];

    if (max_it == 1000 && norm == KSP_NORM_NONE) continue;
    for (int k = 0; k < 2; k++) {
      KSP ksp;

      PetscCall(Create(method, k ? method->value : NULL, A, pctype, &ksp));
      PetscCall(KSPSetNormType(ksp, k ? norm : ParentNorm(method, norm)));
      PetscCall(KSPSetPCSide(ksp, side));
      PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, max_it));
      PetscCall(ABSolvePlain(ksp, b, &run[k]));
      PetscCall(ABViews(ksp, SaysOf(method), &resident));
      PetscCall(ABViews(ksp, "recurrences with a reduction less", &single));
      if (resident != (k ? PETSC_TRUE : PETSC_FALSE) || single != (PetscBool)(k && IsSingle(method))) ok = PETSC_FALSE;
      PetscCall(KSPDestroy(&ksp));
    }
    PetscCall(Alike(&run[0], &run[1], &alike));
    if (max_it == 1000 && run[1].its <= 128) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  only %" PetscInt_FMT " iterations: less than three calls\n", run[1].its));
    ok = (PetscBool)(ok && alike);
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  }
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s%sresident %s, side %s, pc %s, norm %s", method->type, method->variant ? method->variant : "", method->variant ? ", " : "", method->value, PCSides[side], pctype, KSPNormTypes[norm]));
  PetscCall(ABSay(what, ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the first norm ends, or may not end yet, where a call has begun before the host has looked at it. The next solve of the same object is not the worse for it */
static PetscErrorCode FirstNorm(const Method *method, Mat A, Vec b, PCType pctype, KSPNormType norm)
{
  const struct {
    PetscReal          atol, divtol;
    PetscInt           least, checked_from;
    PetscBool          skip;
    KSPConvergedReason reason;
    PetscInt           its; /* -1: PETSc says */
  } cases[] = {
    {1e9,              1e5, 0, -1, PETSC_FALSE, KSP_CONVERGED_ATOL, 0 },
    {Tolerance(1e-50), 0.5, 0, -1, PETSC_FALSE, KSP_DIVERGED_DTOL,  0 },
    {1e9,              1e5, 3, -1, PETSC_FALSE, KSP_CONVERGED_ATOL, 3 },
    {1e9,              1e5, 0, 2,  PETSC_FALSE, KSP_CONVERGED_ATOL, 3 },
    {Tolerance(1e-50), 0.1, 0, 1,  PETSC_FALSE, KSP_DIVERGED_DTOL,  -1},
    {1e9,              0.5, 0, -1, PETSC_TRUE,  KSP_CONVERGED_ITS,  70},
    {Tolerance(1e-50), 1e5, 0, -1, PETSC_FALSE, KSP_CONVERGED_RTOL, -1}
  };
  KSP       ksp[2];
  PetscBool ok = PETSC_TRUE, alike;
  char      what[128];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(Create(method, k ? method->value : NULL, A, pctype, &ksp[k]));
  for (const auto &c : cases) {
    ABRun run[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(KSPSetNormType(ksp[k], norm));
      PetscCall(KSPSetTolerances(ksp[k], PETSC_CURRENT, c.atol, c.divtol, c.skip ? c.its : 1000));
      PetscCall(KSPSetMinimumIterations(ksp[k], c.least));
      PetscCall(KSPSetCheckNormIteration(ksp[k], c.checked_from));
      if (c.skip) PetscCall(KSPSetConvergenceTest(ksp[k], KSPConvergedSkip, NULL, NULL));
      else {
        void *ctx;

        PetscCall(KSPConvergedDefaultCreate(&ctx));
        PetscCall(KSPSetConvergenceTest(ksp[k], KSPConvergedDefault, ctx, KSPConvergedDefaultDestroy));
      }
      PetscCall(ABSolvePlain(ksp[k], b, &run[k]));
    }
    PetscCall(Alike(&run[0], &run[1], &alike));
    if (run[1].reason != c.reason || (c.its >= 0 && run[1].its != c.its)) {
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %s after %" PetscInt_FMT "\n", KSPConvergedReasons[run[1].reason], run[1].its));
      alike = PETSC_FALSE;
    }
    ok = (PetscBool)(ok && alike);
    for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  }
  for (KSP &k : ksp) PetscCall(KSPDestroy(&k));
  PetscCall(PetscSNPrintf(what, sizeof(what), "the first norm, pc %s, norm %s", pctype, KSPNormTypes[norm]));
  PetscCall(ABSay(what, ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object, whose matrix and preconditioner change, gives the bits of one made for each solve; another object of other size solves in between */
static PetscErrorCode Changes(const Method *method, Mat A, Vec b)
{
  PetscBool ok = PETSC_TRUE, same, resident;
  Mat       M, N;
  Vec       c;
  KSP       one, other;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &M));
  PetscCall(ABMatGrid(23, 31, 0.0, PETSC_FALSE, &N));
  PetscCall(MatCreateVecs(N, &c, NULL));
  PetscCall(ABVecFill(c, 3));
  PetscCall(Create(method, SaysOf(method) == held ? "" : method->value, M, PCNONE, &one)); /* "": the option without a value */
  PetscCall(Create(method, "yes", N, PCJACOBI, &other));
  for (int k = 0; k < 6; k++) {
    KSP   fresh;
    PC    pc;
    ABRun run[3];

    PetscCall(KSPGetPC(one, &pc));
    PetscCall(PCSetType(pc, k / 2 % 2 ? PCJACOBI : PCNONE));
    if (k == 1 || k == 3) PetscCall(MatShift(M, 0.1)); /* values */
    if (k == 4) PetscCall(KSPReset(one));
    PetscCall(KSPSetOperators(one, k == 5 ? A : M, k == 5 ? A : M));
    PetscCall(Create(method, method->value, k == 5 ? A : M, k / 2 % 2 ? PCJACOBI : PCNONE, &fresh));
    PetscCall(ABSolvePlain(other, c, &run[2]));
    PetscCall(ABSolvePlain(one, b, &run[0]));
    PetscCall(ABSolvePlain(fresh, b, &run[1]));
    PetscCall(ABViews(one, SaysOf(method), &resident));
    PetscCall(VecEqual(run[0].x, run[1].x, &same));
    ok = (PetscBool)(ok && same && resident && run[0].its == run[1].its && run[0].reason > 0 && run[2].reason > 0);
    for (int r = 0; r < 3; r++) PetscCall(VecDestroy(&run[r].x));
    PetscCall(KSPDestroy(&fresh));
  }
  PetscCall(ABSay("changing matrices and preconditioners", ok));
  PetscCall(KSPDestroy(&one));
  PetscCall(KSPDestroy(&other));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves by steps, which take their sums from products, and resident ones of the same object by turns: each is that of an object of its own */
static PetscErrorCode Turns(const Method *method, Mat A, Vec b)
{
  PetscBool ok = PETSC_TRUE, same;
  KSP       one;

  PetscFunctionBeginUser;
  PetscCall(Create(method, method->value, A, PCNONE, &one));
  for (int k = 0; k < 4; k++) {
    const char *const resident = k % 2 ? method->value : "false";
    KSP               fresh;
    ABRun             run[2];

    PetscCall(PetscOptionsSetValue(NULL, method->option, resident));
    if (method->variant) PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", method->variant));
    PetscCall(KSPSetFromOptions(one));
    PetscCall(PetscOptionsClearValue(NULL, method->option));
    PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
    PetscCall(Create(method, resident, A, PCNONE, &fresh));
    PetscCall(ABSolvePlain(one, b, &run[0]));
    PetscCall(ABSolvePlain(fresh, b, &run[1]));
    PetscCall(VecEqual(run[0].x, run[1].x, &same));
    ok = (PetscBool)(ok && same && run[0].its == run[1].its && run[0].reason == run[1].reason && run[0].reason > 0);
    for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
    PetscCall(KSPDestroy(&fresh));
  }
  PetscCall(ABSay("resident and not by turns", ok));
  PetscCall(KSPDestroy(&one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- where it is not legal */

static PetscErrorCode Watch(KSP, PetscInt, PetscReal, void *)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode TuneMonitor(KSP ksp)
{
  return KSPMonitorSet(ksp, Watch, NULL, NULL);
}

static PetscErrorCode TuneNorm(KSP ksp)
{
  return KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED);
}

static PetscErrorCode EndAfterNine(KSP, PetscInt it, PetscReal, KSPConvergedReason *reason, void *)
{
  *reason = it == 9 ? KSP_CONVERGED_USER : KSP_CONVERGED_ITERATING;
  return PETSC_SUCCESS;
}

static PetscErrorCode TuneTest(KSP ksp)
{
  return KSPSetConvergenceTest(ksp, EndAfterNine, NULL, NULL);
}

static PetscErrorCode TuneCheck(KSP ksp)
{
  Mat A, B;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtc_check", NULL));
  PetscCall(MatSetFromOptions(B));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtc_check"));
  PetscCall(KSPSetOperators(ksp, B, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of the user's own: twice that of the matrix, so that one which goes by it finds half the solution */
static PetscErrorCode Doubled(Mat A, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  PetscCall(VecZeroEntries(y));
  PetscCall(MatMultAdd(A, x, y, y)); /* the matrix' own, which goes by no operation of the user's */
  PetscCall(VecScale(y, 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneProduct(KSP ksp)
{
  Mat A, B;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatSetOperation(B, MATOP_MULT, (PetscErrorCodeFn *)Doubled));
  PetscCall(KSPSetOperators(ksp, B, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With the user's product the solution is half of what it is without */
static PetscErrorCode FollowsTheProduct(const Method *method, Mat A, Vec b)
{
  KSP       ksp;
  ABRun     run[2];
  PetscReal norm, off;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(Create(method, method->value, A, PCNONE, &ksp));
    if (k) PetscCall(TuneProduct(ksp));
    PetscCall(ABSolvePlain(ksp, b, &run[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecNorm(run[0].x, NORM_2, &norm));
  PetscCall(VecAXPY(run[0].x, -2.0, run[1].x));
  PetscCall(VecNorm(run[0].x, NORM_2, &off));
  PetscCall(ABSay("a product of the user's", (PetscBool)(off <= 1e-5 * norm)));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refuses(const Method *method, Mat A, Vec b, PCType pctype, PetscErrorCode (*tune)(KSP), const char why[], bool fused = true)
{
  char      says[128];
  ABRun     run;
  KSP       ksp;
  PetscBool found;

  PetscFunctionBeginUser;
  PetscCall(Create(method, method->value, A, pctype, &ksp));
  if (tune) PetscCall((*tune)(ksp));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(PetscSNPrintf(says, sizeof(says), "%s (last: %s", fused ? "not resident" : "PETSc's path 1", why));
  PetscCall(ABViews(ksp, says, &found));
  PetscCall(ABSay(why, (PetscBool)(found && run.reason > 0)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GridWithOption(PetscReal wind, const char option[], const char value[], Mat *A)
{
  char      before[64];
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, option, before, sizeof(before), &set));
  PetscCall(PetscOptionsSetValue(NULL, option, value));
  PetscCall(ABMatGrid(73, 71, wind, PETSC_FALSE, A));
  if (set) PetscCall(PetscOptionsSetValue(NULL, option, before));
  else PetscCall(PetscOptionsClearValue(NULL, option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long solves with a null space of the constants, with a preconditioner and without, are those of PETSc */
static PetscErrorCode Projects(const Method *method, Mat N, Vec b)
{
  const Method classic = {method->parent, method->type, method->option, method->value, "classic"};
  PetscFunctionBeginUser;
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_UNPRECONDITIONED}) PetscCall(Ends(&classic, N, b, pctype, PC_LEFT, norm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the right nothing is projected: a null space does not matter. ex2 compares such solves */
static PetscErrorCode Right(const Method *method, Mat N, Vec b)
{
  KSP       ksp;
  ABRun     run;
  PetscBool found;

  PetscFunctionBeginUser;
  PetscCall(Create(method, method->value, N, PCJACOBI, &ksp));
  PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 20));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(ABViews(ksp, SaysOf(method), &found));
  PetscCall(ABSay("a null space, from the right", (PetscBool)(found && run.its == 20)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix whose layout is of tiles: it can be held, not read */
static PetscErrorCode Tiles(const Method *method, PetscReal wind, Vec b)
{
  Mat       T;
  KSP       ksp;
  ABRun     run;
  PetscBool found;

  PetscFunctionBeginUser;
  PetscCall(GridWithOption(wind, "-mat_aijtc_params", "form=tile", &T));
  PetscCall(Create(method, method->value, T, PCNONE, &ksp));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(ABViews(ksp, SaysOf(method) != streamed ? SaysOf(method) : "not resident (last: the layout has tiles, long rows or lists of columns)", &found));
  PetscCall(ABSay("tiles", (PetscBool)(found && run.reason > 0)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object solves with a matrix that has CSR arrays, one that has freed them, and the first again: on a GPU the second is read from its layout, whatever the first is, if that may be */
static PetscErrorCode WithoutCSR(const Method *method, Mat A, PetscReal wind, Vec b)
{
  const char *const without = method == &cr ? "not resident (last: the matrix " : strcmp(method->value, "form") ? streamed : "not resident (last: the matrix keeps no CSR arrays on the device)";
  Mat               F;
  KSP               ksp;
  ABRun             run[3];
  PetscBool         ok = PETSC_TRUE, found, cuda;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)b, VECSEQCUDA, &cuda));
  PetscCall(GridWithOption(wind, "-mat_aijtc_keep_csr", "false", &F));
  PetscCall(Create(method, method->value, A, PCNONE, &ksp));
  for (int k = 0; k < 3; k++) {
    PetscCall(KSPSetOperators(ksp, k == 1 ? F : A, k == 1 ? F : A));
    PetscCall(ABSolvePlain(ksp, b, &run[k]));
    PetscCall(ABViews(ksp, k == 1 && cuda ? without : SaysOf(method), &found));
    ok = (PetscBool)(ok && found && run[k].reason == run[0].reason && PetscAbsInt(run[k].its - run[0].its) <= 1);
  }
  PetscCall(VecEqual(run[0].x, run[2].x, &found));
  PetscCall(ABSay("with CSR arrays and without", (PetscBool)(ok && found && run[0].reason > 0)));
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&run[k].x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix that lives on the host, vectors that may not */
static PetscErrorCode RefusesOtherMemory(const Method *method, PetscReal wind, Vec b)
{
  Mat       H;
  KSP       ksp;
  ABRun     run;
  PetscBool resident, cuda;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)b, VECSEQCUDA, &cuda));
  PetscCall(GridWithOption(wind, "-mat_aijtc_backend", "host", &H));
  PetscCall(Create(method, method->value, H, PCNONE, &ksp));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(ABViews(ksp, cuda ? "not resident (last: matrix and vectors live in different memory)" : SaysOf(method), &resident));
  PetscCall(ABSay("a matrix on the host", (PetscBool)(resident && run.reason > 0)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Left open: on a GPU, and there only */
static PetscErrorCode Decides(const Method *method, Mat A, Vec b)
{
  KSP       ksp;
  ABRun     run;
  PetscBool resident, cuda;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)b, VECSEQCUDA, &cuda));
  PetscCall(Create(method, "decide", A, PCJACOBI, &ksp));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(ABViews(ksp, held, &resident)); /* on the chip, whatever was asked for */
  PetscCall(ABSay("left open", (PetscBool)(resident == cuda && run.reason > 0)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All(const Method *method, PetscReal wind)
{
  Mat          A, N;
  MatNullSpace constant;
  Vec          b;

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(73, 71, wind, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    PetscCall(Ends(method, A, b, pctype, PC_LEFT, KSP_NORM_PRECONDITIONED));
    PetscCall(Ends(method, A, b, pctype, PC_LEFT, KSP_NORM_NONE));
    if (!IsBCGS(method)) PetscCall(Ends(method, A, b, pctype, PC_LEFT, KSP_NORM_NATURAL));
    if (method == &cr && strcmp(pctype, PCNONE)) PetscCall(Refuses(method, A, b, pctype, TuneNorm, "the norm is that of the residual before the preconditioner"));
    else PetscCall(Ends(method, A, b, pctype, IsBCGS(method) ? PC_RIGHT : PC_LEFT, KSP_NORM_UNPRECONDITIONED));
  }
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    PetscCall(FirstNorm(method, A, b, pctype, KSP_NORM_PRECONDITIONED));
    if (!IsBCGS(method)) PetscCall(FirstNorm(method, A, b, pctype, KSP_NORM_NATURAL));
    if (IsCG(method)) PetscCall(FirstNorm(method, A, b, pctype, KSP_NORM_UNPRECONDITIONED));
  }
  PetscCall(Changes(method, A, b));
  PetscCall(Turns(method, A, b));
  PetscCall(Decides(method, A, b));
  PetscCall(Refuses(method, A, b, PCSOR, NULL, "the preconditioner is neither none nor jacobi"));
  PetscCall(Refuses(method, A, b, PCNONE, TuneMonitor, method == &cg_single ? "single reduction is watched" : "a monitor may look at the solution", method != &cg_single));
  PetscCall(Refuses(method, A, b, PCNONE, TuneTest, method == &cg_single ? "single reduction is watched" : "the convergence test is the user's", method != &cg_single));
  PetscCall(Refuses(method, A, b, PCJACOBI, TuneCheck, "products are not those of a layout of MATAIJTC"));
  PetscCall(Refuses(method, A, b, PCNONE, TuneProduct, "products are not those of a layout of MATAIJTC"));
  PetscCall(FollowsTheProduct(method, A, b));
  PetscCall(RefusesOtherMemory(method, wind, b));
  PetscCall(Tiles(method, wind, b));
  PetscCall(WithoutCSR(method, A, wind, b));
  PetscCall(ABMatSingularGrid(73, 71, wind, &N));
  PetscCall(MatGetNullSpace(N, &constant));
  PetscCall(MatNullSpaceRemove(constant, b));
  if (IsCG(method) && method != &cg_single) PetscCall(Projects(method, N, b));
  else PetscCall(Refuses(method, N, b, PCJACOBI, NULL, "the matrix has a null space"));
  if (IsBCGS(method)) PetscCall(Right(method, N, b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(All(&cg, 0.0));
  PetscCall(All(&cg_single, 0.0));
  PetscCall(All(&cg_streamed, 0.0));
  PetscCall(All(&cg_streamed_single, 0.0));
  PetscCall(All(&bcgs, 0.4)); /* without wind rounding decides about some ten of its iterations */
  PetscCall(All(&bcgs_streamed, 0.4));
  PetscCall(All(&cr, 0.0));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc
      output_file: output/ex8.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
