static char help[] = "Jacobi of a constant diagonal as a factor of norms: PETSc's numbers, tests that end where the norms say, to the bit, changes of the matrix, and what is no such preconditioner.\n\n";

#include "ab.h"

static const char one_number[] = "the preconditioner is one number, a factor of norms";

typedef struct {
  KSPType     stock, fused;
  PetscReal   wind; /* of its matrices */
  const char *off;  /* option */
} Method;

static const Method cg = {KSPCG, "tccg", 0.0, "-ksp_tccg_uniform_pc"}, bcgs = {KSPBCGS, "tcbcgs", 0.4, "-ksp_tcbcgs_uniform_pc"}, *method;

/* A grid of varying coefficients, all of which have this on the diagonal */
static PetscErrorCode MatUniform(PetscInt m, PetscInt k, PetscScalar diag, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(m, k, method->wind, PETSC_FALSE, A));
  for (PetscInt row = 0; row < m * k; row++) PetscCall(MatSetValue(*A, row, row, diag, INSERT_VALUES));
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char name[], const ABCase *c, PetscBool expected)
{
  char text[256];

  PetscFunctionBeginUser;
  PetscCall(ABRunBoth(c, method->stock, method->fused, one_number, expected, text, sizeof(text)));
  PetscCall(ABSayOf(method->fused, name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what is one number, and what is not */

static PetscErrorCode Norms(Mat A, Vec b)
{
  const struct {
    KSPNormType norm;
    PCSide      side;
  } all[] = {
    {KSP_NORM_PRECONDITIONED,   PC_LEFT },
    {KSP_NORM_NATURAL,          PC_LEFT },
    {KSP_NORM_UNPRECONDITIONED, PC_LEFT },
    {KSP_NORM_NONE,             PC_LEFT },
    {KSP_NORM_UNPRECONDITIONED, PC_RIGHT},
    {KSP_NORM_NONE,             PC_RIGHT}
  };
  char name[64];

  PetscFunctionBeginUser;
  for (const auto &k : all) {
    const ABCase c = {"", A, NULL, b, NULL, PCJACOBI, k.norm, k.side, 0, NULL, NULL};

    if (method == &cg ? k.side == PC_RIGHT : k.side == PC_LEFT && (k.norm == KSP_NORM_NATURAL || k.norm == KSP_NORM_UNPRECONDITIONED)) continue; /* PETSc's have them not */
    PetscCall(PetscSNPrintf(name, sizeof(name), "norm %s, %s", KSPNormTypes[k.norm], PCSides[k.side]));
    PetscCall(Compare(name, &c, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numbers(Mat A, Vec b)
{
  ABCase c = {"", A, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, NULL, NULL};

  PetscFunctionBeginUser;
  PetscCall(Norms(A, b));
  c.x0 = b;
  PetscCall(Compare("nonzero guess", &c, PETSC_TRUE));
  c.x0    = NULL;
  c.flags = AB_TRANSPOSE;
  PetscCall(Compare("transposed", &c, PETSC_TRUE));
  if (method == &bcgs) {
    c.norm = KSP_NORM_UNPRECONDITIONED;
    c.side = PC_RIGHT;
    PetscCall(Compare("transposed, RIGHT", &c, PETSC_TRUE));
    c.norm = KSP_NORM_PRECONDITIONED;
    c.side = PC_LEFT;
  }
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

static PetscErrorCode Others(Mat A, Vec b)
{
  PCJacobiType type = PC_JACOBI_ROWMAX;
  ABCase       c    = {"", A, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, SetType, &type};
  Mat          other;

  PetscFunctionBeginUser;
  PetscCall(Compare("largest entries of rows", &c, PETSC_FALSE));
  type = PC_JACOBI_ROWL1;
  PetscCall(Compare("sums of rows", &c, PETSC_FALSE));
  c.A = c.P = A;
  c.tune    = ABWatch;
  PetscCall(Compare("a monitor of the user's", &c, PETSC_FALSE));
  c.tune = NULL;
  PetscCall(MatUniform(15, 13, 22.6, &other));
  c.A = c.P = other;
  PetscCall(MatShift(other, -11.3));
  PetscCall(Compare("a diagonal made the same by operations", &c, PETSC_TRUE));
  PetscCall(MatScale(other, -1.0));
  PetscCall(Compare("a negative diagonal", &c, PETSC_FALSE));
  PetscCall(MatScale(other, -1e-14));
  PetscCall(Compare("a small diagonal", &c, PETSC_FALSE));
  c.name  = "NaN in the diagonal";
  c.A     = A;
  c.flags = AB_END;
  PetscCall(MatScale(other, 1e14));
  PetscCall(MatSetValue(other, 7, 7, PetscSqrtReal(-1.0), INSERT_VALUES));
  PetscCall(ABMatAssemble(other));
  PetscCall(ABReport(&c, method->stock, method->fused));
  PetscCall(MatZeroEntries(other));
  c.flags = 0;
  PetscCall(Compare("a diagonal of zeros, for which there are ones", &c, PETSC_TRUE));
  PetscCall(MatDestroy(&other));
  PetscCall(ABMatGrid(15, 13, method->wind, PETSC_FALSE, &other));
  PetscCall(MatShift(other, 5.0)); /* in few iterations */
  c.A = c.P = other;
  PetscCall(Compare("a diagonal of many numbers", &c, PETSC_FALSE));
  c.A = A;
  PetscCall(Compare("that of another matrix", &c, PETSC_FALSE));
  c.A = other;
  c.P = A;
  PetscCall(Compare("of another matrix", &c, PETSC_TRUE));
  PetscCall(MatDestroy(&other));
  PetscCall(MatCreateNest(PETSC_COMM_SELF, 1, NULL, 1, NULL, &A, &other));
  c.A = c.P = other;
  PetscCall(Compare("a matrix that does not tell when it changes", &c, PETSC_FALSE));
  PetscCall(MatDestroy(&other));
  PetscCall(PetscOptionsSetValue(NULL, method->off, "false"));
  c.A = c.P = A;
  PetscCall(Compare("switched off", &c, PETSC_FALSE));
  PetscCall(PetscOptionsClearValue(NULL, method->off));
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
  PetscCall(ABSay(name, text));
  for (Vec &v : z) PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&h));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one matrix whose values change, and a preconditioner that is kept */

/* The preconditioner made anew */
static PetscErrorCode Reset(KSP ksp, Mat A)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCReset(pc));
  PetscCall(PCSetOperators(pc, A, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve more of PETSc's solver and ours, with preconditioners that are kept or not */
static PetscErrorCode Again(const char name[], const ABCase *c, const KSP ksp[], PetscBool kept, PetscBool expected)
{
  char text[256];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(KSPSetReusePreconditioner(ksp[k], kept));
  PetscCall(ABSolveBoth(c, ksp[0], ksp[1], one_number, expected, text, sizeof(text)));
  PetscCall(ABSayOf(method->fused, name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A preconditioner that has failed: the second solve of each solver */
static PetscErrorCode Failed(Mat A, Vec b, PCSide side)
{
  const KSPNormType norm = side == PC_LEFT ? KSP_NORM_PRECONDITIONED : KSP_NORM_UNPRECONDITIONED;
  const ABCase      c    = {"", A, NULL, b, NULL, PCJACOBI, norm, side, AB_END, NULL, NULL};
  char              text[256], name[64];
  ABRun             run[2];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    KSP ksp;
    PC  pc;

    PetscCall(ABCreate(&c, k ? method->fused : method->stock, &ksp));
    PetscCall(ABSolve(&c, ksp, &run[k]));
    PetscCall(VecDestroy(&run[k].x));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetFailedReason(pc, PC_FACTOR_OTHER));
    PetscCall(ABSolve(&c, ksp, &run[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABCompareRuns(&run[0], &run[1], c.flags, text, sizeof(text)));
  if (!text[0] && run[1].reason != KSP_DIVERGED_PC_FAILED) PetscCall(PetscSNPrintf(text, sizeof(text), "%s", KSPConvergedReasons[run[1].reason]));
  PetscCall(PetscSNPrintf(name, sizeof(name), "a preconditioner that has failed, %s", PCSides[side]));
  PetscCall(ABSayOf(method->fused, name, text));
  for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Changes(Vec b)
{
  ABCase c = {"", NULL, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  KSP    ksp[2];
  Mat    A;

  PetscFunctionBeginUser;
  PetscCall(MatUniform(15, 13, 11.3, &A));
  c.A = A;
  for (int k = 0; k < 2; k++) PetscCall(ABCreate(&c, k ? method->fused : method->stock, &ksp[k]));
  PetscCall(Again("first", &c, ksp, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatScale(A, 3.7));
  PetscCall(Again("scaled", &c, ksp, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatScale(A, 0.3));
  PetscCall(Again("a preconditioner of old values", &c, ksp, PETSC_TRUE, PETSC_FALSE));
  PetscCall(Again("and of new ones", &c, ksp, PETSC_FALSE, PETSC_TRUE));
  for (int k = 0; k < 2; k++) PetscCall(Reset(ksp[k], A));
  PetscCall(Again("a preconditioner made anew", &c, ksp, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatShift(A, 5.0));
  PetscCall(Again("and kept", &c, ksp, PETSC_TRUE, PETSC_FALSE));
  PetscCall(Again("and of new values again", &c, ksp, PETSC_FALSE, PETSC_TRUE));
  PetscCall(MatSetValue(A, 7, 7, 20.0, INSERT_VALUES));
  PetscCall(ABMatAssemble(A));
  PetscCall(Again("one other entry", &c, ksp, PETSC_FALSE, PETSC_FALSE));
  for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ksp[k]));
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
  PetscCall(ABCreate(c, method->fused, &ksp));
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
  char         text[256] = "", name[64], buffer[4000];
  PetscInt     ends      = 0;
  PetscBool    is;
  KSP          ksp;
  ABRun        all;

  PetscFunctionBeginUser;
  PetscCall(ABCreate(&c, method->fused, &ksp));
  PetscCall(KSPSetTolerances(ksp, 1e-12, 1e-300, 1e5, AB_MAX_IT));
  PetscCall(ABSolve(&c, ksp, &all));
  PetscCall(ViewSays((PetscObject)ksp, one_number, "ex13.txt", buffer, sizeof(buffer), &is));
  PetscCall(KSPDestroy(&ksp));
  for (PetscInt k = 1; k < 20; k++) {
    const PetscReal norms[] = {all.hist[k], (PetscReal)(all.hist[k] * (1.0 - 0.5 * PETSC_MACHINE_EPSILON))}; /* and the number before, or the one before that */

    for (PetscReal bound : norms) {
      PetscCall(Ends(&c, bound, 1e5, &all, &ends, text, sizeof(text)));
      if (all.hist[k] > all.hist[0]) PetscCall(Ends(&c, 1e-300, bound / all.hist[0], &all, &ends, text, sizeof(text)));
    }
  }
  if (!text[0] && !is) PetscCall(PetscSNPrintf(text, sizeof(text), "it is not one number"));
  if (!text[0] && !ends) PetscCall(PetscSNPrintf(text, sizeof(text), "norms never grow"));
  PetscCall(PetscSNPrintf(name, sizeof(name), "ends where the norm says, %s", KSPNormTypes[norm]));
  PetscCall(ABSayOf(method->fused, name, text));
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

static PetscErrorCode All(const Method *m)
{
  Mat A;
  Vec b;

  PetscFunctionBeginUser;
  method = m;
  PetscCall(MatUniform(15, 13, 11.3, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(Numbers(A, b));
  PetscCall(Others(A, b));
  if (m == &cg) {
    for (PCJacobiType type : {PC_JACOBI_DIAGONAL, PC_JACOBI_ROWL1, PC_JACOBI_ROWMAX, PC_JACOBI_ROWSUM}) PetscCall(SameAsAIJ(A, b, type));
  }
  PetscCall(Changes(b));
  PetscCall(Failed(A, b, PC_LEFT));
  if (m == &bcgs) PetscCall(Failed(A, b, PC_RIGHT));
  PetscCall(MatShift(A, m == &cg ? -5.5 : -7.5)); /* so that norms grow on their way down */
  PetscCall(FillSmooth(15, 13, b));
  PetscCall(ToTheBit(A, b, KSP_NORM_PRECONDITIONED));
  if (m == &cg) PetscCall(ToTheBit(A, b, KSP_NORM_NATURAL));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(All(&cg));
  PetscCall(All(&bcgs));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_ahead {{0 3}} -ksp_tcbcgs_ahead 3 -ksp_tccg_resident {{false true}} -ksp_tcbcgs_resident {{false true}}
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
