static char help[] = "The smallest C program with PETSc-TC: a nonsymmetric 1D problem solved with aijtc and tcbcgs.\n\n";

/*
  As ex1.cxx, in C and for a nonsymmetric matrix: convection and diffusion on a line. Everything can be overridden by options,
  for example -mat_type aij -ksp_type gmres -pc_type jacobi.
*/
#include <petsctc.h>

int main(int argc, char **argv)
{
  Mat       A;
  Vec       x, b, error;
  KSP       ksp;
  PC        pc;
  PetscInt  n = 100, begin, end;
  PetscReal norm;

  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTCInitialize()); /* from here on PETSc knows aijtc, tccg and tcbcgs */
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));

  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(A, MATAIJTC));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; ++row) {
    if (row > 0) PetscCall(MatSetValue(A, row, row - 1, -1.5, INSERT_VALUES)); /* the flow comes from the left */
    if (row < n - 1) PetscCall(MatSetValue(A, row, row + 1, -0.5, INSERT_VALUES));
    PetscCall(MatSetValue(A, row, row, 3.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));

  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &error));
  PetscCall(VecSet(error, 1.0)); /* the solution will be all ones */
  PetscCall(MatMult(A, error, b));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPTCBCGS));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetTolerances(ksp, PetscDefined(USE_REAL_SINGLE) ? 1e-5 : 1e-10, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));

  PetscCall(VecAXPY(error, -1.0, x));
  PetscCall(VecNorm(error, NORM_INFINITY, &norm));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Largest error %s the tolerance\n", norm < (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-8) ? "below" : "ABOVE"));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&error));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -mat_type {{aij aijtc}} -ksp_type {{bcgs tcbcgs}}
    output_file: output/ex2_1.out

TEST*/
