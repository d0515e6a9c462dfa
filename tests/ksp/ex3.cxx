static char help[] = "KSPTCCG against KSPCG where the method stops early, fails, or may not be fused.\n\n";

#include "hard.h"

static const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE};

/* The case for every norm type, one line each. P NULL: A, x0 NULL: zero guess */
static PetscErrorCode Check(const char *name, Mat A, Mat P, Vec b, Vec x0, PCType pc, int flags = 0, PetscErrorCode (*tune)(KSP, void *) = NULL, void *ctx = NULL)
{
  PetscFunctionBeginUser;
  for (int n = 0; n < 4; n++) {
    char         full[128];
    const ABCase c = {full, A, P, b, x0, pc, norms[n], PC_SIDE_DEFAULT, flags, tune, ctx};

    PetscCall(PetscSNPrintf(full, sizeof(full), "%s, norm %s", name, KSPNormTypes[norms[n]]));
    PetscCall(ABReport(&c, KSPCG, "tccg"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneNegativeCurvature(KSP ksp, void *)
{
  return KSPSetConvergedNegativeCurvature(ksp, PETSC_TRUE);
}

static PetscErrorCode TuneRadius(KSP ksp, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(KSPCGSetRadius(ksp, *(PetscReal *)ctx));
  PetscCall(KSPSetConvergedNegativeCurvature(ksp, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneSingleReduction(KSP ksp, void *)
{
  return KSPCGUseSingleReduction(ksp, PETSC_TRUE);
}

/* On and off again: fused */
static PetscErrorCode TuneSingleReductionOff(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPCGUseSingleReduction(ksp, PETSC_TRUE));
  PetscCall(KSPCGUseSingleReduction(ksp, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneObjective(KSP ksp, void *)
{
  return KSPCGSetObjectiveTarget(ksp, -0.5);
}

static PetscErrorCode Indefinite(void)
{
  const PetscScalar d[] = {1, 2, 3, 4, 5, 6, 7, -8, 9, 10}, zero[10] = {};
  const PetscScalar plus[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, minus[] = {1, -2, 1, 2, -1, 2, 1, -2, 1, 2}, negative[] = {-3, -2, -1, -2, -1, -2, -1, -2, -1, -2};
  PetscReal         radius[] = {0.3, 100.0};
  PetscInt          four     = 4;
  Mat               A, Z, P, M, N;
  Vec               b;

  PetscFunctionBeginUser;
  PetscCall(ABMatDiagonal(10, d, &A));
  PetscCall(ABMatDiagonal(10, zero, &Z));
  PetscCall(ABMatDiagonal(10, plus, &P));
  PetscCall(ABMatDiagonal(10, minus, &M));
  PetscCall(ABMatDiagonal(10, negative, &N));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 3));
  PetscCall(Check("indefinite matrix", A, NULL, b, NULL, PCNONE));
  PetscCall(Check("indefinite matrix, pc mat", A, P, b, NULL, PCMAT));
  PetscCall(Check("negative curvature", A, NULL, b, NULL, PCNONE, 0, TuneNegativeCurvature));
  PetscCall(Check("zero matrix", Z, NULL, b, NULL, PCNONE));
  PetscCall(Check("preconditioner cannot be set up", A, Z, b, NULL, PCLU));
  PetscCall(Check("indefinite preconditioner", P, M, b, NULL, PCMAT));
  PetscCall(Check("indefinite matrix, jacobi", A, P, b, NULL, PCJACOBI));
  PetscCall(Check("indefinite preconditioner, jacobi", P, M, b, NULL, PCJACOBI));
  PetscCall(Check("negative definite, jacobi", P, N, b, NULL, PCJACOBI, 0, TuneMaxIt, &four)); /* z.r < 0 in every iteration, of one sign */
  PetscCall(Check("small radius", A, NULL, b, NULL, PCNONE, AB_PARENT, TuneRadius, &radius[0]));
  PetscCall(Check("large radius", A, NULL, b, NULL, PCNONE, AB_PARENT, TuneRadius, &radius[1]));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&Z));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NotANumber(Mat A, Vec b)
{
  BadPC late = {4, NAN, PETSC_FALSE}, first = {1, NAN, PETSC_FALSE}, fails = {3, 0.0, PETSC_TRUE}, zero = {3, 0.0, PETSC_FALSE}, minus = {3, -1.0, PETSC_FALSE};
  Mat   N;
  Vec   nan, inf;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &nan));
  PetscCall(VecCopy(b, nan));
  PetscCall(VecSetValue(nan, 3, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(nan));
  PetscCall(VecAssemblyEnd(nan));
  PetscCall(VecDuplicate(b, &inf));
  PetscCall(VecCopy(b, inf));
  PetscCall(VecSetValue(inf, 0, PETSC_INFINITY, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(inf));
  PetscCall(VecAssemblyEnd(inf));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &N));
  PetscCall(MatSetValue(N, 5, 5, NAN, INSERT_VALUES));
  PetscCall(ABMatAssemble(N));
  PetscCall(Check("NaN in b", A, NULL, nan, NULL, PCNONE));
  /* What VecNorm() makes of an Inf is up to the BLAS. Where that is finite PETSc logs it and finds the Inf in the next dot product instead, which ends the solve alike */
  PetscCall(Check("Inf in b", A, NULL, inf, NULL, PCNONE, AB_END));
  PetscCall(Check("NaN in b, jacobi", A, NULL, nan, NULL, PCJACOBI));
  PetscCall(Check("NaN in the matrix", N, NULL, b, NULL, PCNONE));
  PetscCall(Check("NaN from jacobi", A, N, b, NULL, PCJACOBI));
  PetscCall(Check("NaN from the preconditioner", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &late));
  PetscCall(Check("NaN from it at once", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &first));
  PetscCall(Check("NaN from it at the end", A, NULL, b, NULL, PCNONE, 0, TuneBadPCAtTheEnd, &late));
  PetscCall(Check("preconditioner fails", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &fails));
  PetscCall(Check("preconditioner becomes zero", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &zero));
  PetscCall(Check("preconditioner turns negative", A, NULL, b, NULL, PCNONE, 0, TuneBadPC, &minus));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&nan));
  PetscCall(VecDestroy(&inf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ends(Mat A, Vec b)
{
  PetscInt zero = 0, one = 1, ten = 10;
  Vec      o, x, Ax;
  int      watched;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &o));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &Ax));
  PetscCall(ABVecFill(x, 5));
  PetscCall(MatMult(A, x, Ax));
  PetscCall(Check("b = 0", A, NULL, o, NULL, PCNONE));
  PetscCall(Check("b = 0, guess", A, NULL, o, x, PCNONE));
  PetscCall(Check("b = 0, guess, jacobi", A, NULL, o, x, PCJACOBI));
  PetscCall(Check("exact guess", A, NULL, Ax, x, PCNONE));
  PetscCall(Check("exact guess, jacobi", A, NULL, Ax, x, PCJACOBI));
  PetscCall(Check("no iteration", A, NULL, b, NULL, PCNONE, 0, TuneMaxIt, &zero));
  PetscCall(Check("no iteration, exact guess", A, NULL, Ax, x, PCNONE, 0, TuneMaxIt, &zero));
  PetscCall(Check("one iteration", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxIt, &one));
  PetscCall(Check("ten iterations", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxIt, &ten));
  PetscCall(Check("absolute tolerance", A, NULL, b, NULL, PCJACOBI, 0, TuneAbsolute));
  PetscCall(Check("divergence", A, NULL, b, x, PCNONE, 0, TuneDivergence));
  PetscCall(Check("minimum iterations", A, NULL, b, NULL, PCICC, 0, TuneMinIt));
  PetscCall(Check("converged maxits", A, NULL, b, NULL, PCJACOBI, 0, TuneMaxits));
  PetscCall(ABWatched(&watched));
  PetscCall(Check("user test", A, NULL, b, NULL, PCJACOBI, watched, TuneUserTest));
  PetscCall(Check("transposed", A, NULL, b, NULL, PCICC, AB_TRANSPOSE));
  PetscCall(Check("eisenstat", A, NULL, b, x, PCEISENSTAT));
  PetscCall(VecDestroy(&o));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&Ax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NullSpace(void)
{
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
  PetscCall(Check("null space", A, NULL, b, NULL, PCNONE));
  PetscCall(Check("null space, jacobi, guess", A, NULL, b, x0, PCJACOBI));
  PetscCall(Check("null space, transposed", A, NULL, b, NULL, PCNONE, AB_TRANSPOSE));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -ksp_error_if_not_converged: the same error code, or convergence */
static PetscErrorCode Errors(Mat A, Vec b)
{
  const PetscScalar minus[] = {1, -2, 1, 2, -1, 2, 1, -2, 1, 2}, plus[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
  Mat               M, P;
  Vec               c;

  PetscFunctionBeginUser;
  PetscCall(ABMatDiagonal(10, minus, &M));
  PetscCall(ABMatDiagonal(10, plus, &P));
  PetscCall(MatCreateVecs(M, NULL, &c));
  PetscCall(ABVecFill(c, 3));
  {
    const ABCase converges = {"error if not converged", A, NULL, b, NULL, PCICC, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, TuneErrorIfNot, NULL};

    PetscCall(ABReport(&converges, KSPCG, "tccg"));
  }
  PetscCall(Check("error, indefinite matrix", M, NULL, c, NULL, PCNONE, 0, TuneErrorIfNot));
  PetscCall(Check("error, indefinite preconditioner", P, M, c, NULL, PCMAT, 0, TuneErrorIfNot));
  PetscCall(Check("error, indefinite preconditioner, jacobi", P, M, c, NULL, PCJACOBI, 0, TuneErrorIfNot));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&P));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec b, x0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(9, 11, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(Ends(A, b));
  PetscCall(NullSpace());
  PetscCall(Indefinite());
  PetscCall(NotANumber(A, b));
  PetscCall(Check("eigenvalues", A, NULL, b, NULL, PCJACOBI, AB_PARENT, TuneEigenvalues));
  PetscCall(Check("single reduction", A, NULL, b, x0, PCJACOBI, 0, TuneSingleReduction));
  PetscCall(Check("single reduction off", A, NULL, b, x0, PCJACOBI, 0, TuneSingleReductionOff));
  PetscCall(Check("objective target", A, NULL, b, NULL, PCJACOBI, AB_PARENT, TuneObjective));
  for (int n = 0; n < 4; n++) {
    PetscCall(WatchReport("monitor", A, b, x0, PCICC, norms[n], PC_SIDE_DEFAULT, KSPCG, "tccg"));
    PetscCall(WatchReport("monitor, no pc", A, b, NULL, PCNONE, norms[n], PC_SIDE_DEFAULT, KSPCG, "tccg"));
  }
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
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tccg_ahead {{0 3}} -ksp_tccg_directions 4 -ksp_tccg_resident {{false true layout}}
      output_file: output/ex3.out
      requires: double # in single precision rounding decides how these end
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_cg_single_reduction -ksp_tccg_ahead {{0 3}} -ksp_tccg_resident {{false true layout}}
      output_file: output/ex3_single.out
      requires: double # in single precision rounding decides how these end
      test:
         suffix: host_single
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda

   test:
      suffix: host_made
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_tccg_product_vector true -ksp_tccg_ahead {{1 3}} -ksp_tccg_directions 4 -ksp_tccg_resident false
      output_file: output/ex3.out
      requires: double # in single precision rounding decides how these end

TEST*/
