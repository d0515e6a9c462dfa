static char help[] = "Factorisations of a MATAIJTC and preconditioners built on it: the same solutions and iterations as with MATAIJ on the host, also after changes of values.\n\n";

#include "check.h"

/* The 5-point operator on an m x m grid with varying coefficients, plus wind: symmetric positive definite without, nonsymmetric with */
static PetscErrorCode Grid(MPI_Comm comm, PetscInt m, PetscReal wind, MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, m * m, m * m));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt  i = row % m, j = row / m, step[4] = {-1, 1, -m, m};
    const PetscBool there[4] = {(PetscBool)(i > 0), (PetscBool)(i < m - 1), (PetscBool)(j > 0), (PetscBool)(j < m - 1)};
    PetscScalar     diagonal = 0.05;

    for (int s = 0; s < 4; s++) {
      const PetscInt    col = row + step[s];
      const PetscScalar c   = -1.0 - 0.2 * ((PetscMin(row, col) * 7 + PetscAbsInt(step[s])) % 5);

      diagonal -= c;
      if (there[s]) PetscCall(MatSetValue(*A, row, col, c + (s % 2 ? wind : -wind), INSERT_VALUES));
    }
    PetscCall(MatSetValue(*A, row, row, diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (wind == 0.0) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, KSPType type, PCType pctype, PetscBool options, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 200));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  if (options) PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x <- the solution for a right-hand side made by rule; transposed if asked */
static PetscErrorCode Solve(KSP ksp, PetscBool transpose, PetscInt seed, Vec x)
{
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &b));
  PetscCall(VecFill(b, seed));
  PetscCall((transpose ? KSPSolveTranspose : KSPSolve)(ksp, b, x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |x - ref| <= 1e-9 max|ref|: the factorisations themselves differ by rounding */
static PetscErrorCode CheckSolution(Vec x, Vec ref, const char what[])
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecNorm(ref, NORM_INFINITY, &norm));
  PetscCall(CheckVec(x, ref, Tolerance(1e-9) * norm, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The package that made the factor, if the test says which it has to be */
static PetscErrorCode CheckPackage(KSP ksp, const char what[])
{
  PC            pc;
  Mat           F;
  MatSolverType package;
  char          expected[64];
  PetscBool     set, same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expected, sizeof(expected), &set));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCFactorGetMatrix(pc, &F));
  PetscCall(MatFactorGetSolverType(F, &package));
  if (set) PetscCall(PetscStrcmp(package, expected, &same));
  PetscCall(Check(same, "%s: factor by %s, not %s", what, package, expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorIsOf(KSP ksp, MatSolverType wanted, PetscBool *is)
{
  PC            pc;
  Mat           F;
  MatSolverType package;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCFactorGetMatrix(pc, &F));
  PetscCall(MatFactorGetSolverType(F, &package));
  PetscCall(PetscStrcmp(package, wanted, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFactor(PCType pctype, PetscReal wind)
{
  Mat A, R;
  KSP ksp, ref;
  Vec x, y, s, t;

  PetscFunctionBeginUser;
  PetscCall(Grid(PETSC_COMM_SELF, 11, wind, NULL, &A));
  PetscCall(Grid(PETSC_COMM_SELF, 11, wind, MATAIJ, &R));
  PetscCall(Solver(A, KSPPREONLY, pctype, PETSC_TRUE, &ksp));
  PetscCall(Solver(R, KSPPREONLY, pctype, PETSC_FALSE, &ref));
  PetscCall(MatVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, NULL));
  PetscCall(VecDuplicate(y, &s)); /* standard vectors with whatever matrix */
  PetscCall(VecDuplicate(y, &t));
  for (int round = 0; round < 3; round++) {
    PetscBool stale = PETSC_FALSE, ours; /* stock PETSc does not analyze again for cuSPARSE's transposed solves, which go on with the first factor */

    PetscCall(Solve(ksp, PETSC_FALSE, round, x));
    PetscCall(Solve(ref, PETSC_FALSE, round, y));
    PetscCall(CheckSolution(x, y, pctype));
    PetscCall(Solve(ksp, PETSC_FALSE, round, s));
    PetscCall(CheckSolution(s, y, "standard vectors"));
    PetscCall(FactorIsOf(ksp, MATSOLVERCUSPARSE, &stale));
    PetscCall(CheckOurs(A, &ours));
    if (!round || ours) stale = PETSC_FALSE;
    PetscCall(Solve(ksp, PETSC_TRUE, round, x));
    PetscCall(Solve(ref, PETSC_TRUE, round, t));
    PetscCall(CheckSolution(stale ? t : x, t, "transposed"));
    PetscCall(Solve(ksp, PETSC_TRUE, round, s));
    PetscCall(CheckSolution(stale ? t : s, t, "transposed, standard vectors"));
    PetscCall(CheckMult(A, R, "product between"));
    for (Mat M : {A, R}) { /* other values: factored again at the next solve */
      PetscCall(MatScale(M, 2.0));
      PetscCall(MatShift(M, 1.0 + round));
    }
  }
  PetscCall(CheckPackage(ksp, pctype));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(CheckMult(A, R, "after the factor is gone"));
  PetscCall(KSPDestroy(&ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&s));
  PetscCall(VecDestroy(&t));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport(pctype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the Mat interface: what is available, and a factor that outlives its matrix */
static PetscErrorCode TestMatFactor(void)
{
  Mat           A, R, F;
  Vec           b, x, y;
  MatFactorInfo info;
  IS            row, col;
  KSP           ref;
  PetscBool     available;

  PetscFunctionBeginUser;
  PetscCall(Grid(PETSC_COMM_SELF, 9, 0.3, NULL, &A));
  PetscCall(Grid(PETSC_COMM_SELF, 9, 0.3, MATAIJ, &R));
  for (MatFactorType type : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC}) {
    PetscCall(MatGetFactorAvailable(A, MATSOLVERPETSC, type, &available));
    PetscCall(Check(available, "%s not available", MatFactorTypes[type]));
  }
  PetscCall(MatGetFactorAvailable(A, "nosuchpackage", MAT_FACTOR_LU, &available));
  PetscCall(Check(CheckNot(available), "an unknown package is available"));
  PetscCall(MatGetOrdering(A, MATORDERINGND, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 5.0;
  PetscCall(MatGetFactor(A, NULL, MAT_FACTOR_LU, &F));
  PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
  PetscCall(MatLUFactorNumeric(F, A, &info));
  PetscCall(MatLUFactorNumeric(F, A, &info)); /* and again */
  PetscCall(CheckMult(A, R, "factored"));
  PetscCall(MatVecs(A, &x, &b));
  PetscCall(MatDestroy(&A));
  PetscCall(VecFill(b, 3));
  PetscCall(MatSolve(F, b, x));
  PetscCall(Solver(R, KSPPREONLY, PCLU, PETSC_FALSE, &ref));
  PetscCall(MatCreateVecs(R, &y, NULL));
  PetscCall(Solve(ref, PETSC_FALSE, 3, y));
  PetscCall(CheckSolution(x, y, "factor without its matrix"));
  PetscCall(KSPDestroy(&ref));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatGetFactor"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPC(KSPType type, PCType pctype, PetscReal wind)
{
  Mat                A, R;
  KSP                ksp, ref;
  Vec                x, y;
  PetscInt           its, refits;
  KSPConvergedReason reason, refreason;
  PetscReal          norm;

  PetscFunctionBeginUser;
  PetscCall(Grid(PETSC_COMM_WORLD, 22, wind, NULL, &A));
  PetscCall(Grid(PETSC_COMM_WORLD, 22, wind, MATAIJ, &R));
  PetscCall(Solver(A, type, pctype, PETSC_FALSE, &ksp));
  PetscCall(Solver(R, type, pctype, PETSC_FALSE, &ref));
  PetscCall(MatVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, NULL));
  for (int round = 0; round < 2; round++) {
    PetscCall(Solve(ksp, PETSC_FALSE, round, x));
    PetscCall(Solve(ref, PETSC_FALSE, round, y));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(KSPGetIterationNumber(ref, &refits));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetConvergedReason(ref, &refreason));
    PetscCall(Check((PetscBool)(its == refits && reason == refreason && reason > 0), "%s: %" PetscInt_FMT " iterations, %s, not %" PetscInt_FMT ", %s", pctype, its, KSPConvergedReasons[reason], refits, KSPConvergedReasons[refreason]));
    PetscCall(VecNorm(y, NORM_INFINITY, &norm));
    PetscCall(CheckVec(x, y, Tolerance(1e-6) * norm, pctype)); /* both are solved to 1e-8 only */
    for (Mat M : {A, R}) {
      PetscCall(MatScale(M, 1.5));
      PetscCall(MatShift(M, 0.1));
    }
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PCType pcs[]   = {PCNONE, PCJACOBI, PCBJACOBI, PCASM, PCSOR, PCGAMG, PCREDUNDANT, PCPBJACOBI};
  PetscBool    factors = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-factors", &factors, NULL));
  if (factors) {
    PetscCall(TestFactor(PCLU, 0.3));
    PetscCall(TestFactor(PCILU, 0.3));
    PetscCall(TestFactor(PCCHOLESKY, 0.0));
    PetscCall(TestFactor(PCICC, 0.0));
    PetscCall(TestMatFactor());
  } else {
    for (PCType pc : pcs) {
      PetscCall(TestPC(KSPGMRES, pc, 0.3));
      if (strcmp(pc, PCASM)) /* restricted: not symmetric */
        PetscCall(TestPC(KSPCG, pc, 0.0));
      PetscCall(CheckReport(pc));
    }
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -factors
      output_file: output/ex7_factors.out
      test:
         suffix: factors
         args: -mat_type {{aij aijtc}}
      test:
         suffix: factors_host
         args: -mat_type aijtc -mat_aijtc_backend host -expect petsc
      test:
         suffix: factors_petsc
         args: -mat_type {{aij aijtc}} -pc_factor_mat_solver_type petsc -expect petsc
      test:
         suffix: cuda_factors
         requires: cuda
         args: -mat_type aijtc -expect cusparse -vec_type cuda
      test:
         suffix: cuda_factors_named
         requires: cuda
         args: -mat_type aijtc -pc_factor_mat_solver_type cusparse -vec_type cuda

   # PETSc's own factor of an AIJCUSPARSE keeps that type's functions, which the harness' -checkfunctionlist shows
   test:
      suffix: cuda_factors_petsc
      requires: cuda
      filter: grep -v "function name"
      output_file: output/ex7_factors.out
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -factors -mat_type aijtc -pc_factor_mat_solver_type petsc -vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex7.out
      test:
         suffix: host
         nsize: {{1 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
