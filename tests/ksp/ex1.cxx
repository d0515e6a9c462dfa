static char help[] = "KSPTCCG against KSPCG or, with -method cr, KSPTCCR against KSPCR: every norm type, preconditioner, kind of guess and start of the norm check; without a null space and with one.\n\n";

#include "hard.h"

typedef struct {
  const char *name;
  KSPType     parent, type;
  int         nnorms;
  KSPNormType norms[4]; /* those that PETSc's has */
  PetscBool   residual; /* the unpreconditioned norm is compared with that of b - A x: KSPCR of PETSc 3.26 updates its residual with the wrong sign */
} Method;

static const Method methods[] = {
  {"cg", KSPCG, "tccg", 4, {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE}, PETSC_FALSE},
  {"cr", KSPCR, "tccr", 3, {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE},                            PETSC_TRUE }
};

static const PCType pcs[] = {PCNONE, PCJACOBI, PCBJACOBI, PCICC, PCSOR};

static PetscErrorCode Tune(KSP ksp, void *ctx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSORSetSymmetric(pc, SOR_LOCAL_SYMMETRIC_SWEEP));
  PetscCall(KSPSetCheckNormIteration(ksp, *(PetscInt *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With so many of the preconditioners: the first two are part of the steps with a null space too, and with the others rounding decides there how solves end that go on to the limit */
static PetscErrorCode Compare(const Method *method, const char *name, Mat A, Vec b, Vec x0, int npcs)
{
  const PetscInt checks[] = {-1, 0, 4, 100};

  PetscFunctionBeginUser;
  for (int n = 0; n < method->nnorms; n++) {
    for (int p = 0; p < npcs; p++) {
      PetscInt pass = 0, all = 0;

      for (int g = 0; g < 2; g++) {
        for (int k = 0; k < 4; k++) {
          PetscInt     check = checks[k];
          const ABCase c     = {"", A, NULL, b, g ? x0 : NULL, pcs[p], method->norms[n], PC_SIDE_DEFAULT, 0, Tune, &check};
          ABRun        run;
          char         text[256];

          PetscCall(ABRunCase(&c, method->parent, method->type, &run, text, sizeof(text)));
          all++;
          if (!text[0]) pass++;
          else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  guess %d, check from %" PetscInt_FMT ": %s\n", g, check, text));
        }
      }
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%snorm %s, pc %s: %" PetscInt_FMT " of %" PetscInt_FMT " %s\n", name, KSPNormTypes[method->norms[n]], pcs[p], pass, all, pass == all ? "PASS" : "FAIL"));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* So many iterations with the unpreconditioned norm: its first and its last one are those of the residual, and the solution is that of PETSc's method without norm */
static PetscErrorCode CompareResidual(const Method *method, const ABCase *c, PetscInt its, char text[], size_t len)
{
  ABRun     run[2];
  PetscReal first, last, norm, distance;
  Vec       x;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(c->b, &x));
  if (c->x0) PetscCall(VecCopy(c->x0, x));
  else PetscCall(VecSet(x, 0.0));
  PetscCall(ABResidualNorm(c->A, c->b, x, &first));
  for (int k = 0; k < 2; k++) {
    KSP    ksp;
    ABCase mine = *c;

    mine.norm = k ? KSP_NORM_UNPRECONDITIONED : KSP_NORM_NONE;
    PetscCall(ABCreate(&mine, k ? method->type : method->parent, &ksp));
    PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, its));
    PetscCall(ABSolve(&mine, ksp, &run[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABResidualNorm(c->A, c->b, run[1].x, &last));
  PetscCall(VecNorm(run[0].x, NORM_2, &norm));
  PetscCall(VecWAXPY(x, -1.0, run[0].x, run[1].x));
  PetscCall(VecNorm(x, NORM_2, &distance));
  text[0] = 0;
  if (run[1].error || run[1].its != its || run[1].nhist != its + 1 || run[1].fused != 1)
    PetscCall(PetscSNPrintf(text, len, "error %d, %" PetscInt_FMT " iterations, %" PetscInt_FMT " norms, fused %" PetscInt_FMT, (int)run[1].error, run[1].its, run[1].nhist, run[1].fused));
  else if (!ABNear(run[1].hist[0], first, Tolerance(1e-12), 0.0)) PetscCall(PetscSNPrintf(text, len, "the first norm is %g, not %g", (double)run[1].hist[0], (double)first));
  else if (!ABNear(run[1].hist[its], last, Tolerance(1e-10), 0.0)) PetscCall(PetscSNPrintf(text, len, "the last norm is %g, not %g", (double)run[1].hist[its], (double)last));
  else if (run[1].rnorm != run[1].hist[its]) PetscCall(PetscSNPrintf(text, len, "the solver's norm is %g, not %g", (double)run[1].rnorm, (double)run[1].hist[its]));
  else if (!(distance <= Tolerance(1e-6) * norm)) PetscCall(PetscSNPrintf(text, len, "solutions differ by %g of %g", (double)distance, (double)norm));
  for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CompareResiduals(const Method *method, const char *name, Mat A, Vec b, Vec x0, int npcs)
{
  PetscFunctionBeginUser;
  for (int p = 0; p < npcs; p++) {
    PetscInt pass = 0, all = 0, check = -1;

    for (int g = 0; g < 2; g++) {
      for (PetscInt its = 1; its <= 5; its++, all++) {
        const ABCase c = {"", A, NULL, b, g ? x0 : NULL, pcs[p], KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, Tune, &check};
        char         text[256];

        PetscCall(CompareResidual(method, &c, its, text, sizeof(text)));
        if (!text[0]) pass++;
        else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  guess %d, %" PetscInt_FMT " iterations: %s\n", g, its, text));
      }
    }
    if (pass != all) ABFailures++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%snorms of the residual, pc %s: %" PetscInt_FMT " of %" PetscInt_FMT " %s\n", name, pcs[p], pass, all, pass == all ? "PASS" : "FAIL"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the preconditioner behind the second iteration, and looks whether what it is told is the norm of the residual */
static PetscErrorCode SetsJacobi(KSP ksp, PetscInt it, PetscReal told, void *ctx)
{
  PetscInt *good = (PetscInt *)ctx;
  PetscReal norm;
  PC        pc;
  Mat       A;
  Vec       b, x;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(ABResidualNorm(A, b, x, &norm));
  if (ABNear(told, norm, Tolerance(1e-10), 0.0)) ++*good;
  else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  norm %" PetscInt_FMT " is %g, not %g\n", it, (double)told, (double)norm));
  if (it == 2) PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ChangesPreconditioner(const Method *method, Mat A, Vec b)
{
  const PetscInt its  = 6;
  PetscInt       good = 0;
  const ABCase   c    = {"", A, NULL, b, NULL, PCNONE, KSP_NORM_UNPRECONDITIONED, PC_LEFT, 0, NULL, NULL};
  ABRun          run;
  KSP            ksp;

  PetscFunctionBeginUser;
  PetscCall(ABCreate(&c, method->type, &ksp));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, its));
  PetscCall(KSPMonitorSet(ksp, SetsJacobi, &good, NULL));
  PetscCall(ABSolve(&c, ksp, &run));
  PetscCall(ABSay("norms of the residual, with a preconditioner that a monitor sets", (PetscBool)(good == its + 1 && run.its == its && run.fused == 1)));
  PetscCall(VecDestroy(&run.x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both look at w.q, which is not positive at once, or after a few iterations */
static PetscErrorCode CompareIndefinite(const Method *method, Mat A, Vec b)
{
  PetscFunctionBeginUser;
  for (PetscReal shift : {-100.0, -4.5}) {
    PetscInt pass = 0, all = 0, check = -1;
    Mat      M;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &M));
    PetscCall(MatShift(M, shift));
    for (int n = 0; n < method->nnorms; n++, all++) {
      const ABCase c = {"", M, NULL, b, NULL, PCJACOBI, method->norms[n], PC_SIDE_DEFAULT, 0, Tune, &check};
      ABRun        run;
      char         text[256];

      PetscCall(ABRunCase(&c, method->parent, method->type, &run, text, sizeof(text)));
      if (!text[0] && (run.reason != KSP_DIVERGED_INDEFINITE_PC || (run.its == 0) != (shift < -50.0))) {
        ABFailures++;
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s after %" PetscInt_FMT ": this tests nothing", KSPConvergedReasons[run.reason], run.its));
      }
      if (!text[0]) pass++;
      else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  norm %s: %s\n", KSPNormTypes[method->norms[n]], text));
    }
    PetscCall(MatDestroy(&M));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "a preconditioner that is %s: %" PetscInt_FMT " of %" PetscInt_FMT " %s\n", shift < -50.0 ? "negative" : "indefinite", pass, all, pass == all ? "PASS" : "FAIL"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneError(KSP ksp, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(TuneBadPC(ksp, ctx));
  PetscCall(TuneErrorIfNot(ksp, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How solves end, and what goes with them */
static PetscErrorCode HardCases(const Method *method, Mat A, Vec b, Vec x0)
{
  PetscInt its      = 5;
  BadPC    negative = {3, -1.0, PETSC_FALSE}, nan = {3, NAN, PETSC_FALSE}, fails = {3, 0.0, PETSC_TRUE};
  struct {
    const char *name;
    PetscErrorCode (*tune)(KSP, void *);
    void *ctx;
    int   flags;
  } const cases[] = {
    {"no more than 5 iterations",             TuneMaxIt,       &its,      0           },
    {"an absolute tolerance",                 TuneAbsolute,    NULL,      0           },
    {"12 iterations at least",                TuneMinIt,       NULL,      0           },
    {"converged by the number of iterations", TuneMaxits,      NULL,      0           },
    {"a test of the user's",                  TuneUserTest,    NULL,      0           },
    {"eigenvalues",                           TuneEigenvalues, NULL,      AB_PARENT   },
    {"a preconditioner that turns negative",  TuneBadPC,       &negative, 0           },
    {"an error where it does",                TuneError,       &negative, 0           },
    {"a preconditioner that turns NaN",       TuneBadPC,       &nan,      0           },
    {"a preconditioner that fails",           TuneBadPC,       &fails,    0           },
    {"transposed",                            NULL,            NULL,      AB_TRANSPOSE}
  };

  PetscFunctionBeginUser;
  for (int n = 0; n < 2; n++) {
    for (const auto &of : cases) {
      char         name[128];
      const ABCase c = {name, A, NULL, b, NULL, PCJACOBI, method->norms[n], PC_SIDE_DEFAULT, of.flags, of.tune, of.ctx};

      PetscCall(PetscSNPrintf(name, sizeof(name), "norm %s, %s", KSPNormTypes[c.norm], of.name));
      PetscCall(ABReport(&c, method->parent, method->type));
    }
    for (PCType pc : {PCNONE, PCJACOBI, PCSOR}) PetscCall(WatchReport(pc, A, b, x0, pc, method->norms[n], PC_LEFT, method->parent, method->type));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All(const Method *method, const char *name, Mat A, Vec b, Vec x0, int npcs)
{
  PetscFunctionBeginUser;
  PetscCall(Compare(method, name, A, b, x0, npcs));
  if (method->residual) PetscCall(CompareResiduals(method, name, A, b, x0, npcs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const Method *method  = NULL;
  char          name[8] = "cg";
  Mat           A, N;
  MatNullSpace  constant;
  Vec           b, x0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-method", name, sizeof(name), NULL));
  for (const Method &m : methods) {
    if (!strcmp(m.name, name)) method = &m;
  }
  PetscCheck(method, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-method %s", name);
  PetscCall(ABMatGrid(15, 13, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatSingularGrid(15, 13, 0.0, &N));
  PetscCall(MatGetNullSpace(N, &constant));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(All(method, "", A, b, x0, 5));
  if (method->residual) {
    PetscCall(ChangesPreconditioner(method, A, b));
    PetscCall(CompareIndefinite(method, A, b));
    PetscCall(HardCases(method, A, b, x0));
  }
  PetscCall(All(method, "null space, not removed from b, ", N, b, x0, 2));
  PetscCall(MatNullSpaceRemove(constant, b));
  PetscCall(All(method, "null space, ", N, b, x0, 2));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tccg_ahead {{0 3}} -ksp_tccg_directions 4 -ksp_tccg_resident {{false true layout}}
      output_file: output/ex1.out
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_cg_single_reduction -ksp_tccg_ahead {{0 3}} -ksp_tccg_resident {{false true layout}}
      output_file: output/ex1.out
      test:
         suffix: host_single
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -method cr -mat_type {{aij aijtc}} -ksp_tccr_ahead {{0 3}} -ksp_tccr_resident {{false true}}
      output_file: output/ex1_cr.out
      requires: double # in single precision solves end after few iterations, by their number
      test:
         suffix: host_cr
      test:
         suffix: cuda_cr
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
