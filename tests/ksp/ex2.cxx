static char help[] = "KSPTCBCGS against KSPBCGS: every norm type, side, preconditioner, kind of guess and start of the norm check; without a null space and with one.\n\n";

#include "ab.h"

static PetscErrorCode Tune(KSP ksp, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetCheckNormIteration(ksp, *(PetscInt *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With so many of the preconditioners: the first two are part of the steps from the left with a null space too, and with the others rounding decides there how solves end that go on to the limit */
static PetscErrorCode CompareAll(const char *name, Mat A, Vec b, Vec x0, int npcs)
{
  const KSPNormType norms[]  = {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE, KSP_NORM_NONE};
  const PCSide      sides[]  = {PC_LEFT, PC_RIGHT, PC_LEFT, PC_RIGHT};
  const PCType      pcs[]    = {PCNONE, PCJACOBI, PCBJACOBI, PCILU, PCSOR, PCEISENSTAT};
  const PetscInt    checks[] = {-1, 0, 3, 100};

  PetscFunctionBeginUser;
  for (int n = 0; n < 4; n++) {
    for (int p = 0; p < npcs; p++) {
      PetscInt pass = 0, all = 0, fused = 0;

      for (int g = 0; g < 2; g++) {
        for (int k = 0; k < 4; k++) {
          PetscInt     check = checks[k];
          const int    flags = g && sides[n] == PC_RIGHT ? AB_PARENT : 0;
          const ABCase c     = {"", A, NULL, b, g ? x0 : NULL, pcs[p], norms[n], sides[n], flags, Tune, &check};
          ABRun        run;
          char         text[256];

          PetscCall(ABRunCase(&c, KSPBCGS, "tcbcgs", &run, text, sizeof(text)));
          all++;
          fused += run.fused;
          if (!text[0]) pass++;
          else PetscCall(PetscPrintf(PETSC_COMM_SELF, "  guess %d, check from %" PetscInt_FMT ": %s\n", g, check, text));
        }
      }
      PetscCall(
        PetscPrintf(PETSC_COMM_SELF, "%snorm %s, side %s, pc %s: %" PetscInt_FMT " fused, %" PetscInt_FMT " of %" PetscInt_FMT " %s\n", name, KSPNormTypes[norms[n]], PCSides[sides[n]], pcs[p], fused, pass, all, pass == all ? "PASS" : "FAIL"));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, N;
  Vec b, x0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(15, 13, 0.4, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x0, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(x0, 2));
  PetscCall(CompareAll("", A, b, x0, 6));
  PetscCall(ABMatSingularGrid(15, 13, 0.4, &N));
  PetscCall(MatMult(N, x0, b)); /* solvable: from the right nothing is projected */
  PetscCall(ABVecFill(x0, 1));
  PetscCall(CompareAll("null space, ", N, b, x0, 2));
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
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}} -ksp_tcbcgs_ahead {{0 3}} -ksp_tcbcgs_resident {{false true layout}}
      output_file: output/ex2.out
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda
   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -ksp_tcbcgs_variant single -ksp_tcbcgs_ahead {{0 3}} -ksp_tcbcgs_resident {{false form}}
      output_file: output/ex2.out
      test:
         suffix: host_single
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
