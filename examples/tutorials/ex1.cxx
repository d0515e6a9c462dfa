static char help[] = "The smallest C++ program with PETSc-TC: a 2D Laplacian solved with aijtc and tccg.\n\n";

/*
  Three lines make it a PETSc-TC program: the header, PetscTCInitialize(), and the types. The types may come from the command line instead,
  which also overrides those set here: try -mat_type aij -ksp_type cg, or -ksp_monitor, -ksp_view, -pc_type jacobi.
*/
#include <petsctc.h>

int main(int argc, char **argv)
{
  Mat       A;
  Vec       x, b, error;
  KSP       ksp;
  PC        pc;
  PetscInt  n = 20, begin, end;
  PetscReal norm;

  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(PetscTCInitialize()); /* from here on PETSc knows aijtc, tccg and tcbcgs */
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-n", &n, nullptr));

  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n));
  PetscCall(MatSetType(A, MATAIJTC));
  PetscCall(MatSetFromOptions(A)); /* after MatSetType(), so that options win */
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; ++row) { /* each process fills its rows: 4 and -1 for the neighbours on the n x n grid */
    const PetscInt i = row / n, j = row % n;

    if (i > 0) PetscCall(MatSetValue(A, row, row - n, -1.0, INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(A, row, row + n, -1.0, INSERT_VALUES));
    if (j > 0) PetscCall(MatSetValue(A, row, row - 1, -1.0, INSERT_VALUES));
    if (j < n - 1) PetscCall(MatSetValue(A, row, row + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, row, row, 4.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));

  PetscCall(MatCreateVecs(A, &x, &b)); /* vectors that live where the matrix computes: on the GPU or on the host */
  PetscCall(VecDuplicate(x, &error));
  PetscCall(VecSet(error, 1.0)); /* the solution will be all ones */
  PetscCall(MatMult(A, error, b));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPTCCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
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

  testset:
    output_file: output/ex1_1.out
    args: -mat_type {{aij aijtc}}
    test:
      suffix: 1
      nsize: {{1 2}}
      args: -ksp_type {{cg tccg}}
    test:
      suffix: tcbcgs
      args: -ksp_type tcbcgs

TEST*/
