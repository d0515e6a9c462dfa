static char help[] = "KSPTCCG and KSPTCBCGS on several processes, with vectors on the host and on GPUs; several right-hand sides.\n\n";

#include "ab.h"

static PetscErrorCode Check(Mat A, Vec b, KSPType stock, KSPType fused)
{
  const KSPType types[] = {stock, fused};
  PetscReal     norm[2];
  PetscInt      its[2], nfused, nparent;
  PetscBool     ok;
  Vec           x;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &x));
  for (int k = 0; k < 2; k++) {
    KSP ksp;
    PC  pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetType(ksp, types[k]));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecNorm(x, NORM_2, &norm[k]));
    PetscCall(KSPGetIterationNumber(ksp, &its[k]));
    PetscCall(ABGetCounts(ksp, &nfused, &nparent));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  ok = its[0] == its[1] && its[0] > 3 && ABNear(norm[0], norm[1], Tolerance(1e-8), 0.0) && nfused == 1 && nparent == 0 ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s\n", fused, ok ? "PASS" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several right-hand sides: on several processes one after the other */
static PetscErrorCode CheckColumns(Mat A)
{
  const KSPType types[] = {KSPCG, "tccg"};
  PetscReal     norm[2];
  PetscInt      total[2], m;
  VecType       type;
  Mat           B, X;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetVecType(A, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_WORLD, type, m, PETSC_DECIDE, PETSC_DETERMINE, 9, -1, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &X));
  for (int k = 0; k < 2; k++) {
    KSP ksp;
    PC  pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetType(ksp, types[k]));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_matsolve", "true"));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_matsolve"));
    PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
    PetscCall(KSPMatSolve(ksp, B, X));
    PetscCall(MatNorm(X, NORM_FROBENIUS, &norm[k]));
    PetscCall(KSPGetTotalIterations(ksp, &total[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "several columns: %s\n", total[0] == total[1] && total[0] > 27 && ABNear(norm[0], norm[1], Tolerance(1e-8), 0.0) ? "PASS" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt n = 60;
  PetscInt       start, end;
  Mat            A;
  Vec            b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt i = start; i < end; i++) {
    if (i > 0) PetscCall(MatSetValue(A, i, i - 1, -1.0, INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(A, i, i + 1, -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(A, i, i, 2.0 + 0.1 * (i % 7), INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(Check(A, b, KSPCG, "tccg"));
  PetscCall(Check(A, b, KSPBCGS, "tcbcgs"));
  PetscCall(CheckColumns(A));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}}
      output_file: output/ex6.out
      nsize: {{1 2 3}}
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
