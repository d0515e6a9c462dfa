/* Two PetscInitialize() / PetscFinalize() rounds in one process: a plugin named in the options must register anew in the second. */
#include <petscksp.h>

static PetscErrorCode Solve(PetscInt *its)
{
  const PetscInt n = 100;
  Mat            A;
  Vec            b, x;
  KSP            ksp;
  PetscInt       first, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    if (i > 0) PetscCall(MatSetValue(A, i, i - 1, -1., INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(A, i, i + 1, -1., INSERT_VALUES));
    PetscCall(MatSetValue(A, i, i, 2.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscCallMPI(MPI_Init(&argc, &argv));
  for (int round = 1; round <= 2; round++) {
    PetscInt its;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(Solve(&its));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "round %d iterations %" PetscInt_FMT "\n", round, its));
    PetscCall(PetscFinalize());
  }
  PetscCallMPI(MPI_Finalize());
  return 0;
}
