static char help[] = "A program that knows nothing of PETSc-TC: the types come from the command line.\n\n";

/*
  Plain PETSc. Its matrix and solver are chosen by options, so PETSc-TC is used without a change or a new build:

    ex3 -dll_append /path/to/lib/libpetsctc.so -mat_type aijtc -ksp_type tccg -ksp_view
*/
#include <petscksp.h>

int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  KSPConvergedReason reason;
  PetscInt           n = 200, begin, end;

  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));

  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(A)); /* -mat_type */
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; ++row) { /* 1D Laplacian, shifted to be well conditioned */
    if (row > 0) PetscCall(MatSetValue(A, row, row - 1, -1.0, INSERT_VALUES));
    if (row < n - 1) PetscCall(MatSetValue(A, row, row + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, row, row, 3.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp)); /* -ksp_type, -pc_type, ... */
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", reason > 0 ? "Converged" : "NOT converged"));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    args: -dll_append ${PETSCTC_LIB} -mat_type {{aij aijtc}} -ksp_type {{cg tccg}} -pc_type none
    output_file: output/ex3_1.out

TEST*/
