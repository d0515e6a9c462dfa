static char help[] = "KSPTCCG against KSPCG: every norm type, preconditioner, kind of guess and start of the norm check; without a null space and with one.\n\n";

#include "ab.h"

static PetscErrorCode Tune(KSP ksp, void *ctx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSORSetSymmetric(pc, SOR_LOCAL_SYMMETRIC_SWEEP));
  PetscCall(KSPSetCheckNormIteration(ksp, *(PetscInt *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With so many of the preconditioners: the first two are part of the steps with a null space too, and with the others rounding decides there how solves end that go on to the limit */
static PetscErrorCode Compare(const char *name, Mat A, Vec b, Vec x0, int npcs)
{
  const KSPNormType norms[]  = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE};
  const PCType      pcs[]    = {PCNONE, PCJACOBI, PCBJACOBI, PCICC, PCSOR};
  const PetscInt    checks[] = {-1, 0, 4, 100};

  PetscFunctionBeginUser;
  for (int n = 0; n < 4; n++) {
    for (int p = 0; p < npcs; p++) {
      PetscInt pass = 0, all = 0;

      for (int g = 0; g < 2; g++) {
        for (int k = 0; k < 4; k++) {
          PetscInt     check = checks[k];
          const ABCase c     = {"", A, NULL, b, g ? x0 : NULL, pcs[p], norms[n], PC_SIDE_DEFAULT, 0, Tune, &check};
          ABRun        run;
          char         text[256];

          PetscCall(ABRunCase(&c, KSPCG, "tccg", &run, text, sizeof(text)));
          all++;
          if (!text[0]) pass++;
          else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  guess %d, check from %" PetscInt_FMT ": %s\n", g, check, text));
        }
      }
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%snorm %s, pc %s: %" PetscInt_FMT " of %" PetscInt_FMT " %s\n", name, KSPNormTypes[norms[n]], pcs[p], pass, all, pass == all ? "PASS" : "FAIL"));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat          A, N;
  MatNullSpace constant;
  Vec          b, x0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(15, 13, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatSingularGrid(15, 13, 0.0, &N));
  PetscCall(MatGetNullSpace(N, &constant));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(Compare("", A, b, x0, 5));
  PetscCall(Compare("null space, not removed from b, ", N, b, x0, 2));
  PetscCall(MatNullSpaceRemove(constant, b));
  PetscCall(Compare("null space, ", N, b, x0, 2));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x0));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tccg_ahead {{0 3}} -ksp_tccg_directions 4 -ksp_tccg_resident {{false true layout}}
      output_file: output/ex1.out
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_cg_single_reduction -ksp_tccg_ahead {{0 3}} -ksp_tccg_resident {{false true layout}}
      output_file: output/ex1.out
      test:
         suffix: host_single
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
