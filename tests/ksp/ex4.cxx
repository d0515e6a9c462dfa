static char help[] = "KSPTCBCGS against KSPBCGS where the method stops early, breaks down, fails, or may not be fused.\n\n";

#include "hard.h"

static const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE, KSP_NORM_NONE};
static const PCSide      sides[] = {PC_LEFT, PC_RIGHT, PC_LEFT, PC_RIGHT};

/* The case for every norm type and side, one line each. P NULL: A, x0 NULL: zero guess; with a guess the right side is PETSc's */
static PetscErrorCode Check(const char *name, Mat A, Mat P, Vec b, Vec x0, PCType pc, int flags = 0, PetscErrorCode (*tune)(KSP, void *) = NULL, void *ctx = NULL)
{
  PetscFunctionBeginUser;
  for (int n = 0; n < 4; n++) {
    char         full[128];
    const int    guess = x0 && sides[n] == PC_RIGHT ? AB_PARENT : 0;
    const ABCase c     = {full, A, P, b, x0, pc, norms[n], sides[n], flags | guess, tune, ctx};

    PetscCall(PetscSNPrintf(full, sizeof(full), "%s, norm %s %s", name, KSPNormTypes[norms[n]], PCSides[sides[n]]));
    PetscCall(ABReport(&c, KSPBCGS, "tcbcgs"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices of two rows on which the method ends within two iterations */
static PetscErrorCode Breakdowns(void)
{
  const PetscScalar  skew[] = {0, 1, -1, 0}, identity[] = {1, 0, 0, 1}, nilpotent[] = {0, 1, 0, 0}, singular[] = {1, 0, 0, 0}, swap[] = {0, 1, 1, 0};
  const PetscScalar  null[] = {0, 0, 0, 0}, rotation[] = {1, 1, -1, 1};
  const PetscScalar *values[] = {skew, identity, nilpotent, singular, swap, null, rotation};
  const char        *names[]  = {"skew", "identity", "nilpotent", "singular", "swap", "zero", "rotation"};
  PetscInt           zero     = 0;

  PetscFunctionBeginUser;
  for (int k = 0; k < 7; k++) {
    for (int rhs = 0; rhs < 3; rhs++) {
      const PetscScalar right[3][2] = {
        {1, 0},
        {1, 1},
        {0, 1}
      };
      char name[64];
      Mat  A;
      Vec  b;

      PetscCall(ABMatCreate(2, 2, &A));
      for (PetscInt i = 0; i < 2; i++)
        for (PetscInt j = 0; j < 2; j++) PetscCall(MatSetValue(A, i, j, values[k][2 * i + j], INSERT_VALUES));
      PetscCall(ABMatAssemble(A));
      PetscCall(MatCreateVecs(A, NULL, &b));
      for (PetscInt i = 0; i < 2; i++) PetscCall(VecSetValue(b, i, right[rhs][i], INSERT_VALUES));
      PetscCall(VecAssemblyBegin(b));
      PetscCall(VecAssemblyEnd(b));
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s, b = (%g, %g)", names[k], (double)right[rhs][0], (double)right[rhs][1]));
      PetscCall(Check(name, A, NULL, b, NULL, PCNONE));
      PetscCall(PetscStrlcat(name, ", no iteration", sizeof(name)));
      PetscCall(Check(name, A, NULL, b, NULL, PCNONE, 0, TuneMaxIt, &zero));
      PetscCall(MatDestroy(&A));
      PetscCall(VecDestroy(&b));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r.rp is 0 after one iteration, v.rp is not in the next */
static PetscErrorCode ZeroRho(void)
{
  const PetscScalar values[] = {1, 1, -1, 1, 1, 0, 1, 0, 2};
  Mat               A;
  Vec               b;

  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(3, 3, &A));
  for (PetscInt i = 0; i < 3; i++)
    for (PetscInt j = 0; j < 3; j++) PetscCall(MatSetValue(A, i, j, values[3 * i + j], INSERT_VALUES));
  PetscCall(ABMatAssemble(A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(VecSetValue(b, 0, 1.0, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(Check("rho = 0", A, NULL, b, NULL, PCNONE));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NotANumber(Mat A, Vec b)
{
  BadPC late = {6, NAN, PETSC_FALSE}, first = {1, NAN, PETSC_FALSE}, fails = {4, 0.0, PETSC_TRUE}, odd = {4, 0.0, PETSC_FALSE}, even = {5, 0.0, PETSC_FALSE};
  Mat   N, Z;
  Vec   nan, inf;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &nan));
  PetscCall(VecCopy(b, nan));
  PetscCall(VecSetValue(nan, 3, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(nan));
  PetscCall(VecAssemblyEnd(nan));
  PetscCall(VecDuplicate(b, &inf));
  PetscCall(VecCopy(b, inf));
  PetscCall(VecSetValue(inf, 0, INFINITY, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(inf));
  PetscCall(VecAssemblyEnd(inf));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &N));
  PetscCall(MatSetValue(N, 5, 5, NAN, INSERT_VALUES));
  PetscCall(ABMatAssemble(N));
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &Z));
  PetscCall(Check("NaN in b", A, NULL, nan, NULL, PCNONE));
  /* What VecNorm() makes of an Inf is up to the BLAS. Where that is finite PETSc logs it and finds the Inf in the next dot product instead, which ends the solve alike */
  PetscCall(Check("Inf in b", A, NULL, inf, NULL, PCJACOBI, AB_END));
  PetscCall(Check("NaN in the matrix", N, NULL, b, NULL, PCNONE));
  PetscCall(Check("NaN from the preconditioner", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &late));
  PetscCall(Check("NaN from it at once", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &first));
  PetscCall(Check("preconditioner cannot be set up", A, Z, b, NULL, PCLU));
  PetscCall(Check("preconditioner fails", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &fails));
  PetscCall(Check("preconditioner becomes zero", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &odd));
  PetscCall(Check("preconditioner becomes zero later", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &even));
  PetscCall(MatDestroy(&N));
  PetscCall(MatDestroy(&Z));
  PetscCall(VecDestroy(&nan));
  PetscCall(VecDestroy(&inf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ends(Mat A, Vec b)
{
  PetscInt zero = 0, one = 1, ten = 10;
  Vec      o, x, Ax;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &o));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &Ax));
  PetscCall(ABVecFill(x, 5));
  PetscCall(MatMult(A, x, Ax));
  PetscCall(Check("b = 0", A, NULL, o, NULL, PCNONE));
  PetscCall(Check("b = 0, guess, jacobi", A, NULL, o, x, PCJACOBI, 0, TuneMaxIt, &ten));
  PetscCall(Check("exact guess", A, NULL, Ax, x, PCNONE));
  PetscCall(Check("no iteration", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxIt, &zero));
  PetscCall(Check("one iteration", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxIt, &one));
  PetscCall(Check("ten iterations", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxIt, &ten));
  PetscCall(Check("absolute tolerance", A, NULL, b, NULL, PCJACOBI, 0, TuneAbsolute));
  PetscCall(Check("divergence", A, NULL, b, x, PCNONE, 0, TuneDivergence));
  PetscCall(Check("minimum iterations", A, NULL, b, NULL, PCSOR, 0, TuneMinIt));
  PetscCall(Check("converged maxits", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxits));
  PetscCall(Check("user test", A, NULL, b, NULL, PCJACOBI, 0, TuneUserTest));
  PetscCall(Check("transposed", A, NULL, b, NULL, PCILU, AB_TRANSPOSE));
  PetscCall(Check("eigenvalues", A, NULL, b, NULL, PCJACOBI, AB_PARENT, TuneEigenvalues));
  PetscCall(VecDestroy(&o));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&Ax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NullSpace(void)
{
  PetscInt     twelve = 12;
  Mat          A;
  Vec          b, x0;
  MatNullSpace constant;

  PetscFunctionBeginUser;
  PetscCall(ABMatSingularGrid(9, 11, 0.0, &A));
  PetscCall(MatGetNullSpace(A, &constant));
  PetscCall(MatSetTransposeNullSpace(A, constant));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(Check("null space", A, NULL, b, NULL, PCNONE, 0, TuneMaxIt, &twelve));
  PetscCall(Check("null space, jacobi, guess", A, NULL, b, x0, PCJACOBI, 0, TuneMaxIt, &twelve));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -ksp_error_if_not_converged: the same error code, or convergence */
static PetscErrorCode Errors(Mat A, Vec b)
{
  const ABCase converges = {"error if not converged", A, NULL, b, NULL, PCILU, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, TuneErrorIfNot, NULL};
  Mat          S;
  Vec          c;

  PetscFunctionBeginUser;
  PetscCall(ABReport(&converges, KSPBCGS, "tcbcgs"));
  PetscCall(ABMatCreate(2, 2, &S));
  PetscCall(MatSetValue(S, 0, 1, 1.0, INSERT_VALUES));
  PetscCall(MatSetValue(S, 1, 0, -1.0, INSERT_VALUES));
  PetscCall(MatSetValue(S, 0, 0, 0.0, INSERT_VALUES));
  PetscCall(MatSetValue(S, 1, 1, 0.0, INSERT_VALUES));
  PetscCall(ABMatAssemble(S));
  PetscCall(MatCreateVecs(S, NULL, &c));
  PetscCall(VecSet(c, 1.0));
  PetscCall(Check("error, breakdown", S, NULL, c, NULL, PCNONE, 0, TuneErrorIfNot));
  PetscCall(MatDestroy(&S));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec b, x0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(9, 11, 0.4, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(Ends(A, b));
  PetscCall(NullSpace());
  PetscCall(Breakdowns());
  PetscCall(ZeroRho());
  PetscCall(NotANumber(A, b));
  for (int n = 0; n < 4; n++) PetscCall(WatchReport("monitor", A, b, sides[n] == PC_LEFT ? x0 : NULL, PCILU, norms[n], sides[n], KSPBCGS, "tcbcgs"));
  /* errors leave PETSc's nesting count of solves as it was, so they come last */
  PetscCall(Errors(A, b));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tcbcgs_ahead {{0 3}} -ksp_tcbcgs_resident {{false true layout}}
      output_file: output/ex4.out
      requires: double # in single precision rounding decides how these end
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda
   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_tcbcgs_variant single -ksp_tcbcgs_ahead 3 -ksp_tcbcgs_resident {{false form}}
      output_file: output/ex4.out
      requires: double # in single precision rounding decides how these end
      test:
         suffix: host_single
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda
   test:
      suffix: host_made
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_tcbcgs_product_vector true -ksp_tcbcgs_variant {{classic single}} -ksp_tcbcgs_ahead 3 -ksp_tcbcgs_resident false
      output_file: output/ex4.out
      requires: double # in single precision rounding decides how these end

TEST*/
