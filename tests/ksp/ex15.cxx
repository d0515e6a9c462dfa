static char help[] = "Resident solvers with the matrix on the chip, its rows dealt to the multiprocessors by region of their graph, since the layout is gathered, or since the numbering leaves more ghosts than rows: PETSc's numbers.\n\n\
  -m <m>, -k <k> : points of the grid, which is numbered at random\n\n";

#include "ab.h"

static const char on_chip[] = "resident, 64 iterations in a call, rows by region of the matrix' graph\n";

/* The grid, each row with a number far from its neighbours'. constants: they are its null space */
static PetscErrorCode MatShuffledGrid(PetscInt m, PetscInt k, PetscReal wind, PetscBool constants, Mat *A)
{
  Mat          grid;
  IS           order;
  PetscInt    *row;
  MatNullSpace space;

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(m, k, wind, constants, &grid));
  PetscCall(PetscMalloc1(m * k, &row));
  for (PetscInt r = 0; r < m * k; r++) {
    const PetscInt other = (PetscInt)((uint64_t)r * 2654435761u % (uint64_t)(r + 1));

    row[r]     = r;
    row[r]     = row[other];
    row[other] = r;
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, m * k, row, PETSC_OWN_POINTER, &order));
  PetscCall(ISSetPermutation(order));
  PetscCall(MatPermute(grid, order, order, A));
  PetscCall(ISDestroy(&order));
  PetscCall(MatDestroy(&grid));
  if (!constants) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, 0, NULL, &space));
  PetscCall(MatSetNullSpace(*A, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IsOurs(Mat A, PetscBool *ours)
{
  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The layout is there after a product, and gathered unless that is switched off */
static PetscErrorCode Gathered(Mat A, Vec b)
{
  PetscBool ours, off = PETSC_FALSE;
  char      buffer[8000], *says, params[64] = "";
  Vec       y;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &y));
  PetscCall(MatMult(A, b, y));
  PetscCall(VecDestroy(&y));
  PetscCall(IsOurs(A, &ours));
  PetscCall(ViewText((PetscObject)A, PETSC_VIEWER_ASCII_INFO_DETAIL, "ex15.txt", buffer, sizeof(buffer)));
  PetscCall(PetscStrstr(buffer, "gathered: blocks of", &says));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijtc_params", params, sizeof(params), NULL));
  PetscCall(PetscStrcmp(params, "gather=0", &off));
  PetscCall(ABSay("gathered where the type is ours", (says != NULL) == (ours && !off) ? "" : "the view says otherwise"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves, the second one with other values in the same pattern */
static PetscErrorCode Compare(KSPType stock, KSPType fused, const char name[], const ABCase *c)
{
  PetscBool   ours;
  KSP         theirs, mine;
  char        text[256], what[128];
  PetscScalar factor = 1.0;

  PetscFunctionBeginUser;
  PetscCall(IsOurs(c->A, &ours));
  PetscCall(ABCreate(c, stock, &theirs));
  PetscCall(ABCreate(c, fused, &mine));
  for (int solve = 0; solve < 2; solve++) {
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s", name, solve ? ", other values" : ""));
    PetscCall(ABSolveBoth(c, theirs, mine, on_chip, ours, text, sizeof(text)));
    PetscCall(ABSayOf(fused, what, text));
    factor *= solve ? 2.0 : 0.5;
    PetscCall(MatScale(c->A, factor));
  }
  PetscCall(KSPDestroy(&theirs));
  PetscCall(KSPDestroy(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Gradients(Mat A, Vec b)
{
  ABCase c = {"", A, NULL, b, NULL, NULL, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  char   name[64];

  PetscFunctionBeginUser;
  for (PCType pc : {PCNONE, PCJACOBI}) {
    c.pc = pc;
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_UNPRECONDITIONED}) {
      c.norm = norm;
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s, norm %s", pc, KSPNormTypes[norm]));
      PetscCall(Compare(KSPCG, "tccg", name, &c));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Stabilized(Mat A, Vec b)
{
  ABCase c = {"", A, NULL, b, NULL, PCNONE, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, NULL, NULL};

  PetscFunctionBeginUser;
  PetscCall(Compare(KSPBCGS, "tcbcgs", "none", &c));
  c.pc = PCJACOBI;
  PetscCall(Compare(KSPBCGS, "tcbcgs", "jacobi", &c));
  c.side = PC_RIGHT;
  c.norm = KSP_NORM_UNPRECONDITIONED;
  PetscCall(Compare(KSPBCGS, "tcbcgs", "jacobi from the right", &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt m = 61, k = 53;
  Mat      A, singular, windy;
  Vec      b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-k", &k, NULL));
  PetscCall(MatShuffledGrid(m, k, 0.0, PETSC_FALSE, &A));
  PetscCall(MatShuffledGrid(m, k, 0.0, PETSC_TRUE, &singular));
  PetscCall(MatShuffledGrid(m, k, 0.3, PETSC_FALSE, &windy));
  PetscCall(MatShift(windy, 4.0)); /* few iterations: rounding grows with them in BiCGSTAB, on larger grids to the sixth digit */
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(Gathered(A, b));
  PetscCall(Gradients(A, b));
  PetscCall(Stabilized(windy, b));
  ABCase c = {"", singular, NULL, b, NULL, PCJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  PetscCall(Compare(KSPCG, "tccg", "a null space of the constants", &c));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&singular));
  PetscCall(MatDestroy(&windy));
  PetscCall(VecDestroy(&b));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_resident form -ksp_tcbcgs_resident form -ksp_tcbcgs_variant {{classic single}} -options_left 0 -m 191 -k 181
      output_file: output/ex15.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
         args: -mat_type {{aij aijtc}} -mat_aijtc_params {{gather=8 gather=0}}
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -mat_aijtc_params {{gather=8 gather=0}}

TEST*/
