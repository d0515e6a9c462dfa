static char help[] = "Solves after the first one allocate no vector on the host: with another right-hand side, another guess, other values in the same pattern;\nfor these no layout is made where the matrix is on the chip.\n\n\
  -m <m>, -k <k> : points of the grid\n\
  -on_chip       : solves are resident but with blocks for a preconditioner\n\n";

#include "ab.h"
#include <petsctc.h>

static PetscBool on_chip_wanted = PETSC_FALSE;

/* What was changed before a solve */
typedef enum {
  FIRST,
  RHS,
  GUESS,
  VALUES,
  BOTH,
  CHANGES
} Change;
static const char *const changes[] = {"first", "right-hand side", "guess", "values", "values and right-hand side"};

static PetscErrorCode Apply(Change change, Mat A, Vec b, Vec x)
{
  PetscFunctionBeginUser;
  PetscCall(VecSet(x, change == GUESS ? 0.5 : 0.0));
  if (change == RHS || change == BOTH) PetscCall(VecScale(b, 1.5));
  if (change == VALUES || change == BOTH) {
    PetscCall(MatScale(A, 0.75));
    PetscCall(MatShift(A, 0.125));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many arrays of half a vector and more PETSc's memory gives out during a solve, and the last of them */
static PetscErrorCode Count(KSP ksp, Vec b, Vec x, PetscInt *arrays, char last[], size_t len)
{
  const char  name[] = "ex18.txt";
  PetscViewer viewer;
  PetscInt    n;
  char        line[256];
  FILE       *f;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(b, &n));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, name, &viewer));
  PetscCall(PetscMallocTraceSet(viewer, PETSC_TRUE, (PetscLogDouble)(n * sizeof(PetscScalar) / 2)));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscMallocTraceSet(NULL, PETSC_FALSE, 0.0));
  PetscCall(PetscViewerDestroy(&viewer));
  f = fopen(name, "r");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
  *arrays = 0;
  while (fgets(line, sizeof(line), f)) {
    if (strncmp(line, "Alloc", 5)) continue; /* what is given back is traced too */
    PetscCall(PetscStrncpy(last, line, len));
    ++*arrays;
  }
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt  arrays[CHANGES], fused;
  PetscBool resident; /* by the view, of the last one */
  char      last[CHANGES][256];
} Counts;

static PetscErrorCode Solves(const ABCase *c, KSPType type, Counts *counts)
{
  char     buffer[4000];
  KSP      ksp;
  Vec      b, x;
  Mat      A;
  ABCase   copy = *c;
  PetscInt parent;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &A));
  copy.A = A;
  PetscCall(VecDuplicate(c->b, &b));
  PetscCall(VecDuplicate(c->b, &x));
  PetscCall(VecCopy(c->b, b));
  PetscCall(ABCreate(&copy, type, &ksp));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE)); /* 0 but where it is changed */
  for (Change change : {FIRST, RHS, GUESS, VALUES, BOTH}) {
    PetscCall(Apply(change, A, b, x));
    PetscCall(Count(ksp, b, x, &counts->arrays[change], counts->last[change], sizeof(counts->last[change])));
  }
  PetscCall(ABGetCounts(ksp, &counts->fused, &parent));
  PetscCall(ViewSays((PetscObject)ksp, "resident, 64 iterations in a call", "ex18.txt", buffer, sizeof(buffer), &counts->resident));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the chip, from a guess of zero, there is no product: new values are those of the form alone. How often the layout has been built or refreshed for them */
static PetscErrorCode LayoutsForValues(const ABCase *c, KSPType type, PetscInt *made)
{
  MatAIJTCInfo before, after;
  ABCase       copy = *c;
  KSP          ksp;
  Vec          x;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &copy.A));
  PetscCall(VecDuplicate(c->b, &x));
  PetscCall(ABCreate(&copy, type, &ksp));
  PetscCall(KSPSolve(ksp, c->b, x));
  PetscCall(MatAIJTCGetInfo(copy.A, &before));
  PetscCall(Apply(VALUES, copy.A, c->b, x));
  PetscCall(KSPSolve(ksp, c->b, x));
  PetscCall(MatAIJTCGetInfo(copy.A, &after));
  *made = after.builds - before.builds + after.refreshes - before.refreshes;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&copy.A));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first solve takes its method's vectors, which shows that this is seen; the others take none but those that PETSc's take: its convergence test makes one where there is a guess */
static PetscErrorCode Compare(const ABCase *c, KSPType stock, KSPType type)
{
  const PetscBool on_chip = (PetscBool)(on_chip_wanted && strcmp(c->pc, PCPBJACOBI));
  Counts          theirs, ours;
  PetscInt        layouts   = 0;
  char            text[512] = "";

  PetscFunctionBeginUser;
  PetscCall(Solves(c, stock, &theirs));
  PetscCall(Solves(c, type, &ours));
  if (on_chip) PetscCall(LayoutsForValues(c, type, &layouts));
  if (!ours.arrays[FIRST]) PetscCall(PetscSNPrintf(text, sizeof(text), "nothing is seen of the first solve"));
  else if (ours.fused != CHANGES) PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " solves were fused", ours.fused));
  else if (ours.resident != on_chip) PetscCall(PetscSNPrintf(text, sizeof(text), "resident: %d", (int)ours.resident));
  else if (layouts) PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " layouts were made for new values", layouts));
  for (int k = FIRST + 1; k < CHANGES && !text[0]; k++) {
    if (ours.arrays[k] > theirs.arrays[k]) PetscCall(PetscSNPrintf(text, sizeof(text), "another %s: %" PetscInt_FMT " arrays, PETSc %" PetscInt_FMT ", the last one: %s", changes[k], ours.arrays[k], theirs.arrays[k], ours.last[k]));
  }
  PetscCall(ABSayOf(type, c->pc, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt m = 101, k = 97;
  Mat      A, windy;
  Vec      b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-k", &k, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-on_chip", &on_chip_wanted, NULL));
  PetscCall(ABMatGrid(m, k, 0.0, PETSC_FALSE, &A));
  PetscCall(ABMatGrid(m, k, 0.3, PETSC_FALSE, &windy));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  for (PCType pc : {PCNONE, PCJACOBI, PCPBJACOBI}) {
    ABCase c = {"", A, NULL, b, NULL, pc, KSP_NORM_PRECONDITIONED, PC_LEFT, 0, NULL, NULL};

    PetscCall(Compare(&c, KSPCG, "tccg"));
    c.A = windy;
    PetscCall(Compare(&c, KSPBCGS, "tcbcgs"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&windy));
  PetscCall(VecDestroy(&b));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -malloc_debug -options_left 0
      output_file: output/ex18.out
      test:
         suffix: host
         args: -mat_type {{aij aijtc}} -ksp_tccg_variant {{classic single}} -ksp_tcbcgs_variant {{classic single}}
      test:
         suffix: host_resident
         args: -mat_type aijtc -ksp_tccg_resident {{form true}} -ksp_tcbcgs_resident form -ksp_tccg_variant {{classic auto}} -on_chip

TEST*/
