/* A program that is linked with the library and registers its types itself, as often as it likes, whether or not the options name the library too. */
#include <petsctc.h>

int main(int argc, char **argv)
{
  Mat           A;
  KSP           ksp;
  MatType       mtype;
  KSPType       ktype;
  PetscBool     there;
  PetscMPIInt   size;
  const KSPType types[] = {KSPTCCG, KSPTCBCGS};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscTCInitialized(&there));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "registered before the call: %s\n", PetscBools[there]));
  for (int i = 0; i < 3; i++) PetscCall(PetscTCInitialize());
  PetscCall(PetscTCInitialized(&there));
  PetscCheck(there, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "not registered after PetscTCInitialize()");
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 4, 4, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATAIJTC));
  PetscCall(MatGetType(A, &mtype));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "matrix %s\n", mtype));
  PetscCall(MatDestroy(&A));
  for (int i = 0; i < 2; i++) {
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetType(ksp, types[i]));
    PetscCall(KSPGetType(ksp, &ktype));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solver %s\n", ktype));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(PetscFinalize());
  return 0;
}
