static char help[] = "Jacobi of a constant diagonal as a factor of norms: PETSc's numbers, tests that end where the norms say, to the bit, changes of the matrix, and what is no such preconditioner.\n\n";

#include "ab.h"
#include "../viewtext.h"

static const char one_number[] = "the preconditioner is one number, a factor of norms";

static PetscErrorCode Report(const char what[], const char text[])
{
  PetscFunctionBeginUser;
  if (text[0]) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %s\n", what, text[0] ? text : "PASS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A grid of varying coefficients, all of which have `diag` times `scale` on the diagonal */
static PetscErrorCode MatUniform(PetscInt m, PetscInt k, PetscScalar diag, PetscScalar scale, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(m, k, 0.0, PETSC_FALSE, A));
  for (PetscInt row = 0; row < m * k; row++) PetscCall(MatSetValue(*A, row, row, diag, INSERT_VALUES));
  PetscCall(ABMatAssemble(*A));
  PetscCall(MatScale(*A, scale));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve more of each of these solvers */
static PetscErrorCode SolveBoth(const ABCase *c, KSP stock, KSP fused, PetscBool expected, char text[], size_t len)
{
  ABRun     theirs, ours;
  char      buffer[4000];
  PetscBool is = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(ABSolve(c, stock, &theirs));
  PetscCall(ABSolve(c, fused, &ours));
  PetscCall(ViewSays((PetscObject)fused, one_number, "ex13.txt", buffer, sizeof(buffer), &is));
  PetscCall(ABCompareRuns(&theirs, &ours, c->flags, text, len));
  if (!text[0] && is != expected) PetscCall(PetscSNPrintf(text, len, "the preconditioner is %s", is ? "one number" : "not one number"));
  if (!text[0] && (!ours.fused || ours.its < 4)) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " iterations, fused %" PetscInt_FMT, ours.its, ours.fused));
  PetscCall(VecDestroy(&theirs.x));
  PetscCall(VecDestroy(&ours.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char name[], const ABCase *c, PetscBool expected)
{
  KSP  stock, fused;
  char text[256];

  PetscFunctionBeginUser;
  PetscCall(ABCreate(c, KSPCG, &stock));
  PetscCall(ABCreate(c, "tccg", &fused));
  PetscCall(SolveBoth(c, stock, fused, expected, text, sizeof(text)));
  PetscCall(Report(name, text));
  PetscCall(KSPDestroy(&stock));
  PetscCall(KSPDestroy(&fused));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves that may end at once: how they end */
static PetscErrorCode EndAlike(const char name[], const ABCase *c)
{
  ABRun run;
  char  text[256];

  PetscFunctionBeginUser;
  PetscCall(ABRunCase(c, KSPCG, "tccg", &run, text, sizeof(text)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %s\n", name, text[0] ? text : "PASS"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what is one number, and what is not */

static PetscErrorCode Numbers(Mat A, Vec b)
{
  const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE};
  ABCase            c       = {"", A, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  char              name[64];

  PetscFunctionBeginUser;
  for (KSPNormType norm : norms) {
    c.norm = norm;
    PetscCall(PetscSNPrintf(name, sizeof(name), "norm %s", KSPNormTypes[norm]));
    PetscCall(Compare(name, &c, PETSC_TRUE));
  }
  c.norm = KSP_NORM_PRECONDITIONED;
  c.x0   = b;
  PetscCall(Compare("nonzero guess", &c, PETSC_TRUE));
  c.x0    = NULL;
  c.flags = AB_TRANSPOSE;
  PetscCall(Compare("transposed", &c, PETSC_TRUE));
  c.flags = 0;
  c.pc    = PCNONE;
  PetscCall(Compare("no preconditioner", &c, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetType(KSP ksp, void *type)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCJacobiSetType(pc, *(PCJacobiType *)type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Look(KSP, PetscInt, PetscReal, PetscCtx)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Watch(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPMonitorSet(ksp, Look, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Others(Mat A, Vec b)
{
  PCJacobiType type = PC_JACOBI_ROWMAX;
  ABCase       c    = {"", A, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, SetType, &type};
  Mat          other;

  PetscFunctionBeginUser;
  PetscCall(Compare("largest entries of rows", &c, PETSC_FALSE));
  type = PC_JACOBI_ROWL1;
  PetscCall(Compare("sums of rows", &c, PETSC_FALSE));
  c.tune = NULL;
  c.A = c.P = A;
  PetscCall(Compare("one number", &c, PETSC_TRUE));
  c.tune = Watch;
  PetscCall(Compare("a monitor of the user's", &c, PETSC_FALSE));
  c.tune = NULL;
  PetscCall(MatUniform(15, 13, -11.3, -1.0, &other)); /* with -A, whose preconditioner is negative too, as it should be */
  c.A = c.P = other;
  PetscCall(MatShift(other, -22.6));
  PetscCall(MatScale(other, -1.0));
  PetscCall(Compare("a diagonal made the same by operations", &c, PETSC_TRUE));
  PetscCall(MatScale(other, -1.0));
  PetscCall(Compare("a negative diagonal", &c, PETSC_FALSE));
  PetscCall(MatScale(other, -1e-14));
  PetscCall(Compare("a small diagonal", &c, PETSC_FALSE));
  c.A     = A;
  c.flags = AB_END;
  PetscCall(MatScale(other, 1e14));
  PetscCall(MatSetValue(other, 7, 7, PetscSqrtReal(-1.0), INSERT_VALUES));
  PetscCall(ABMatAssemble(other));
  PetscCall(EndAlike("NaN in the diagonal", &c));
  PetscCall(MatZeroEntries(other));
  c.flags = 0;
  PetscCall(Compare("a diagonal of zeros, for which there are ones", &c, PETSC_FALSE));
  PetscCall(MatDestroy(&other));
  PetscCall(ABMatGrid(15, 13, 0.0, PETSC_FALSE, &other));
  c.A = c.P = other;
  PetscCall(Compare("a diagonal of many numbers", &c, PETSC_FALSE));
  c.A = A;
  PetscCall(Compare("that of another matrix", &c, PETSC_FALSE));
  c.A = other;
  c.P = A;
  PetscCall(Compare("of another matrix", &c, PETSC_TRUE));
  PetscCall(MatDestroy(&other));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_uniform_pc", "false"));
  c.A = c.P = A;
  PetscCall(Compare("switched off", &c, PETSC_FALSE));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_uniform_pc"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is Jacobi of this type that of the same matrix in MATSEQAIJ? */
static PetscErrorCode SameAsAIJ(Mat A, Vec b, PCJacobiType type)
{
  Vec       h, z[2];
  PetscReal norm, difference;
  char      text[128] = "", name[64];
  Mat       H;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &H));
  PetscCall(MatCreateVecs(H, NULL, &h));
  PetscCall(VecCopy(b, h));
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(PCJacobiSetType(pc, type));
    PetscCall(PCSetOperators(pc, k ? H : A, k ? H : A));
    PetscCall(VecDuplicate(k ? h : b, &z[k]));
    PetscCall(PCApply(pc, k ? h : b, z[k]));
    PetscCall(PCDestroy(&pc));
  }
  PetscCall(VecCopy(z[0], h));
  PetscCall(VecAXPY(h, -1.0, z[1]));
  PetscCall(VecNorm(z[1], NORM_INFINITY, &norm));
  PetscCall(VecNorm(h, NORM_INFINITY, &difference));
  if (!(difference <= 4.0 * PETSC_MACHINE_EPSILON * norm)) PetscCall(PetscSNPrintf(text, sizeof(text), "differs by %g of %g", (double)difference, (double)norm));
  PetscCall(PetscSNPrintf(name, sizeof(name), "type %s as with MATSEQAIJ", PCJacobiTypes[type]));
  PetscCall(Report(name, text));
  for (Vec &v : z) PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&h));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reset(KSP ksp, Mat A)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCReset(pc));
  PetscCall(PCSetOperators(pc, A, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one matrix whose values change, and a preconditioner that is kept */

static PetscErrorCode Changes(Vec b)
{
  ABCase c = {"", NULL, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  KSP    stock, fused;
  char   text[256];
  Mat    A;

  PetscFunctionBeginUser;
  PetscCall(MatUniform(15, 13, 11.3, 1.0, &A));
  c.A = A;
  PetscCall(ABCreate(&c, KSPCG, &stock));
  PetscCall(ABCreate(&c, "tccg", &fused));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_TRUE, text, sizeof(text)));
  PetscCall(Report("first", text));
  PetscCall(MatScale(A, 3.7));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_TRUE, text, sizeof(text)));
  PetscCall(Report("scaled", text));
  PetscCall(KSPSetReusePreconditioner(stock, PETSC_TRUE));
  PetscCall(KSPSetReusePreconditioner(fused, PETSC_TRUE));
  PetscCall(MatScale(A, 0.3));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_FALSE, text, sizeof(text)));
  PetscCall(Report("a preconditioner of old values", text));
  PetscCall(KSPSetReusePreconditioner(stock, PETSC_FALSE));
  PetscCall(KSPSetReusePreconditioner(fused, PETSC_FALSE));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_TRUE, text, sizeof(text)));
  PetscCall(Report("and of new ones", text));
  PetscCall(Reset(stock, A));
  PetscCall(Reset(fused, A));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_TRUE, text, sizeof(text)));
  PetscCall(Report("a preconditioner made anew", text));
  PetscCall(KSPSetReusePreconditioner(stock, PETSC_TRUE));
  PetscCall(KSPSetReusePreconditioner(fused, PETSC_TRUE));
  PetscCall(MatShift(A, 5.0));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_FALSE, text, sizeof(text)));
  PetscCall(Report("and kept", text));
  PetscCall(KSPSetReusePreconditioner(stock, PETSC_FALSE));
  PetscCall(KSPSetReusePreconditioner(fused, PETSC_FALSE));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_TRUE, text, sizeof(text)));
  PetscCall(Report("and of new values again", text));
  PetscCall(MatSetValue(A, 7, 7, 20.0, INSERT_VALUES));
  PetscCall(ABMatAssemble(A));
  PetscCall(SolveBoth(&c, stock, fused, PETSC_FALSE, text, sizeof(text)));
  PetscCall(Report("one other entry", text));
  PetscCall(KSPDestroy(&stock));
  PetscCall(KSPDestroy(&fused));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a norm that is the bound ends the solve, and the number before it does not */

static PetscErrorCode Ends(const ABCase *c, PetscReal atol, PetscReal dtol, const ABRun *all, PetscInt *ends, char text[], size_t len)
{
  const PetscReal    bound  = dtol * all->hist[0];
  PetscInt           its    = 0;
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
  KSP                ksp;
  ABRun              run;

  PetscFunctionBeginUser;
  for (; its < all->nhist; its++) {
    if (all->hist[its] <= atol) reason = all->hist[its] < atol ? KSP_CONVERGED_ATOL : KSP_CONVERGED_RTOL; /* so says KSPConvergedDefault() */
    else if (all->hist[its] >= bound) reason = KSP_DIVERGED_DTOL;
    if (reason) break;
  }
  if (!reason) PetscFunctionReturn(PETSC_SUCCESS);
  *ends += reason == KSP_DIVERGED_DTOL && its;
  PetscCall(ABCreate(c, "tccg", &ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-30, atol, dtol, AB_MAX_IT));
  PetscCall(ABSolve(c, ksp, &run));
  if (run.reason != reason || run.its != its || run.rnorm != all->hist[its])
    PetscCall(PetscSNPrintf(text, len, "bounds %.17g, %.17g: %s after %" PetscInt_FMT " iterations, norm %.17g, not %s after %" PetscInt_FMT ", %.17g", (double)atol, (double)bound, KSPConvergedReasons[run.reason], run.its, (double)run.rnorm,
                            KSPConvergedReasons[reason], its, (double)all->hist[its]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&run.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ToTheBit(Mat A, Vec b, KSPNormType norm)
{
  const ABCase c         = {"", A, NULL, b, NULL, PCJACOBI, norm, PC_SIDE_DEFAULT, 0, NULL, NULL};
  char         text[256] = "", name[64];
  PetscInt     ends      = 0;
  KSP          ksp;
  ABRun        all;

  PetscFunctionBeginUser;
  PetscCall(ABCreate(&c, "tccg", &ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-12, 1e-300, 1e5, AB_MAX_IT));
  PetscCall(ABSolve(&c, ksp, &all));
  PetscCall(KSPDestroy(&ksp));
  for (PetscInt k = 1; k < 20; k++) {
    const PetscReal norms[] = {all.hist[k], (PetscReal)(all.hist[k] * (1.0 - 0.5 * PETSC_MACHINE_EPSILON))}; /* and the number before, or the one before that */

    for (PetscReal bound : norms) {
      PetscCall(Ends(&c, bound, 1e5, &all, &ends, text, sizeof(text)));
      if (all.hist[k] > all.hist[0]) PetscCall(Ends(&c, 1e-300, bound / all.hist[0], &all, &ends, text, sizeof(text)));
    }
  }
  if (!text[0] && !ends) PetscCall(PetscSNPrintf(text, sizeof(text), "norms never grow"));
  PetscCall(PetscSNPrintf(name, sizeof(name), "ends where the norm says, %s", KSPNormTypes[norm]));
  PetscCall(Report(name, text));
  PetscCall(VecDestroy(&all.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Close to the eigenvector of the least eigenvalue: the first steps are far too long for the others, and norms grow */
static PetscErrorCode FillSmooth(PetscInt m, PetscInt k, Vec b)
{
  PetscFunctionBeginUser;
  for (PetscInt row = 0; row < m * k; row++) PetscCall(VecSetValue(b, row, PetscSinReal(PETSC_PI * (PetscReal)(row % m + 1) / (PetscReal)(m + 1)) * PetscSinReal(PETSC_PI * (PetscReal)(row / m + 1) / (PetscReal)(k + 1)), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatUniform(15, 13, 11.3, 1.0, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(Numbers(A, b));
  PetscCall(Others(A, b));
  for (PCJacobiType type : {PC_JACOBI_DIAGONAL, PC_JACOBI_ROWL1, PC_JACOBI_ROWMAX, PC_JACOBI_ROWSUM}) PetscCall(SameAsAIJ(A, b, type));
  PetscCall(Changes(b));
  PetscCall(MatShift(A, -5.5));
  PetscCall(FillSmooth(15, 13, b));
  PetscCall(ToTheBit(A, b, KSP_NORM_PRECONDITIONED));
  PetscCall(ToTheBit(A, b, KSP_NORM_NATURAL));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_ahead {{0 3}} -ksp_tccg_resident {{false true}}
      output_file: output/ex13.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type {{aij aijtc aijcusparse}} -mat_vec_type cuda

TEST*/
