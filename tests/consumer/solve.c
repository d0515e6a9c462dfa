/* A program of somebody who installed the library: registers the types and solves a tridiagonal system with them. */
#include <petsctc.h>

int main(int argc, char **argv)
{
  const PetscInt n = 50;
  PetscInt       first, last;
  PetscReal      error;
  PetscBool      is_mat, is_ksp;
  Mat            A;
  Vec            x, b;
  KSP            ksp;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscTCInitialize());
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(A, MATAIJTC));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &first, &last));
  for (PetscInt i = first; i < last; ++i) {
    if (i > 0) PetscCall(MatSetValue(A, i, i - 1, -1.0, INSERT_VALUES));
    if (i + 1 < n) PetscCall(MatSetValue(A, i, i + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, i, i, 2.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, b));
  PetscCall(VecSet(x, 0.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPTCCG));
  PetscCall(KSPSetTolerances(ksp, 1e-12, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(VecShift(x, -1.0));
  PetscCall(VecNorm(x, NORM_INFINITY, &error));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is_mat, MATSEQAIJTC, MATMPIAIJTC, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPTCCG, &is_ksp));
  PetscCheck(is_mat && is_ksp, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Other types than asked for");
  /* The smallest eigenvalue is above 0.5 and the residual is below 1e-12 |b| with |b| < 0.8 n */
  PetscCheck(error < 1e-10, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Error %g of the solution, 1e-10 allowed", (double)error);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solved\n"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
