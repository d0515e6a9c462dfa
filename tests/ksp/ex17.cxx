static char help[] = "Solvers on the chip whose blocks have no room for all vectors of their rows, or none beside a preconditioner: PETSc's numbers.\n\n\
  -m <m>, -k <k> : points of the grid\n\
  -cg            : conjugate gradients, else BiCGSTAB\n\
  -rows          : too many rows for all vectors; else for those of a preconditioner\n\n";

#include "ab.h"

static const char whole[] = "resident, 64 iterations in a call, part of the matrix read from device memory\n";
static PetscBool  rows = PETSC_FALSE, cg = PETSC_FALSE;

/* One pair of solvers, without a preconditioner, with one, and without again */
static PetscErrorCode Compare(const ABCase *c)
{
  static const PCType pcs[]      = {PCNONE, PCJACOBI, PCNONE};
  const char *const type_of_ours = cg ? "tccg" : "tcbcgs", *const thin = cg ? "vectors in device memory but for one\n" : "vectors in device memory but for two\n";
  KSP       theirs, mine;
  PetscBool ours;
  char      text[256];

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)c->A, "seqaijtc", &ours));
  PetscCall(ABCreate(c, cg ? KSPCG : KSPBCGS, &theirs));
  PetscCall(ABCreate(c, type_of_ours, &mine));
  for (PCType type : pcs) {
    for (KSP ksp : {theirs, mine}) {
      PC pc;

      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetType(pc, type));
    }
    PetscCall(ABSolveBoth(c, theirs, mine, rows || strcmp(type, PCNONE) ? thin : whole, ours, text, sizeof(text)));
    PetscCall(ABSayOf(type_of_ours, type, text));
  }
  PetscCall(KSPDestroy(&theirs));
  PetscCall(KSPDestroy(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt m = 61, k = 53;
  Mat      A;
  Vec      b, d;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-k", &k, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-rows", &rows, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cg", &cg, NULL));
  PetscCall(ABMatGrid(m, k, cg ? 0.0 : 0.3, PETSC_FALSE, &A));
  PetscCall(MatShift(A, 4.0)); /* few iterations: rounding grows with them */
  PetscCall(MatCreateVecs(A, &d, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(ABVecFill(d, 2));
  PetscCall(VecScale(d, 0.1)); /* a diagonal of many values */
  PetscCall(VecShift(d, 1.0));
  PetscCall(MatDiagonalScale(A, d, cg ? d : NULL));
  ABCase c = {"", A, NULL, b, NULL, PCNONE, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, NULL, NULL};
  PetscCall(Compare(&c));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&d));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -cg -ksp_tccg_resident form -options_left 0
      output_file: output/ex17_cg.out
      requires: double cuda # in single precision rounding decides after few iterations
      test:
         suffix: cuda_cg_preconditioner
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -m 850 -k 840
      test:
         suffix: cuda_cg_rows
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -m 1200 -k 1100 -rows

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tcbcgs_resident form -options_left 0
      output_file: output/ex17.out
      requires: double cuda # in single precision rounding decides after few iterations
      test:
         suffix: cuda_preconditioner
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -m 750 -k 740
      test:
         suffix: cuda_rows
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -m 1200 -k 1100 -rows

TEST*/
