static char help[] = "Resident solvers with a part of the matrix on the chip, its few values in a dictionary and then too many for one: PETSc's numbers.\n\n\
  -m <m>, -k <k> : points of the grid\n\
  -part          : blocks have no room for all of the matrix, unless its values are few\n\n";

#include "ab.h"

static const char resident[] = "resident, 64 iterations in a call\n", in_part[] = "resident, 64 iterations in a call, part of the matrix read from device memory";
static PetscBool  part = PETSC_FALSE;

/* Every entry gets a value of its own, symmetric as before */
static PetscErrorCode MakeDistinct(Mat A, Vec like)
{
  Vec          d;
  PetscScalar *a;
  PetscInt     n;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(like, &d));
  PetscCall(VecGetLocalSize(d, &n));
  PetscCall(VecGetArrayWrite(d, &a));
  for (PetscInt i = 0; i < n; i++) a[i] = 1.0 + 0.1 * (PetscScalar)((uint64_t)i * 2654435761u % 4294967291u) / 4294967291.0;
  PetscCall(VecRestoreArrayWrite(d, &a));
  PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Three solves of the same solvers: few values; others, as few; many, in the same pattern */
static PetscErrorCode Compare(KSPType stock, KSPType fused, const char name[], const ABCase *c)
{
  static const char *const values[] = {"few values", "other values", "many values"};
  Mat                      A        = c->A;
  ABCase                   changed  = *c;
  PetscBool                ours;
  KSP                      theirs, mine;
  char                     text[256], what[128];

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", &ours));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &changed.A));
  PetscCall(ABCreate(&changed, stock, &theirs));
  PetscCall(ABCreate(&changed, fused, &mine));
  for (int solve = 0; solve < 3; solve++) {
    if (solve == 1) PetscCall(MatScale(changed.A, 0.75));
    if (solve == 2) PetscCall(MakeDistinct(changed.A, c->b));
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s", name, values[solve]));
    PetscCall(ABSolveBoth(&changed, theirs, mine, part && solve == 2 ? in_part : resident, ours, text, sizeof(text)));
    PetscCall(ABSayOf(fused, what, text));
  }
  PetscCall(KSPDestroy(&theirs));
  PetscCall(KSPDestroy(&mine));
  PetscCall(MatDestroy(&changed.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt m = 61, k = 53;
  Mat      A, windy;
  Vec      b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-k", &k, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-part", &part, NULL));
  PetscCall(ABMatGrid(m, k, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatGrid(m, k, 0.3, PETSC_FALSE, &windy));
  PetscCall(MatShift(A, 4.0)); /* few iterations: rounding grows with them */
  PetscCall(MatShift(windy, 4.0));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  ABCase gradients = {"", A, NULL, b, NULL, PCNONE, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  PetscCall(Compare(KSPCG, "tccg", "none", &gradients));
  ABCase stabilized = {"", windy, NULL, b, NULL, PCNONE, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, NULL, NULL};
  PetscCall(Compare(KSPBCGS, "tcbcgs", "none", &stabilized));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&windy));
  PetscCall(VecDestroy(&b));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_resident form -ksp_tcbcgs_resident form -options_left 0
      output_file: output/ex16.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
         args: -mat_type {{aij aijtc}} -m 150 -k 140
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -m 650 -k 620 -part

TEST*/
