static char help[] = "KSPTCCG, KSPTCBCGS and KSPTCCR on several processes, fused: beside PETSc's, on random partitions beside one process, and where processes disagree.\n\n";

#include "ab.h"

/* The same matrix on all processes, of which each has `rows`; PETSC_DECIDE: as PETSc deals them, whole blocks */
static PetscErrorCode Distribute(MPI_Comm comm, Mat whole, PetscInt rows, Mat *A)
{
  PetscInt     start, end, n, bs;
  MatNullSpace nullsp;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(whole, &n, NULL));
  PetscCall(MatGetBlockSize(whole, &bs));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, rows, rows, n, n));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt    *cols;
    const PetscScalar *vals;
    PetscInt           ncols;

    PetscCall(MatGetRow(whole, row, &ncols, &cols, &vals));
    PetscCall(MatSetValues(*A, 1, &row, ncols, cols, vals, INSERT_VALUES));
    PetscCall(MatRestoreRow(whole, row, &ncols, &cols, &vals));
  }
  PetscCall(ABMatAssemble(*A));
  PetscCall(MatGetNullSpace(whole, &nullsp));
  if (nullsp) {
    PetscCall(MatNullSpaceCreate(comm, PETSC_TRUE, 0, NULL, &nullsp));
    PetscCall(MatSetNullSpace(*A, nullsp));
    PetscCall(MatNullSpaceDestroy(&nullsp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- beside PETSc's, with the same processes */

typedef enum {
  GRID,
  SINGULAR,
  BLOCKS,
  VARIED,
  WIND,
  MATRICES
} Matrix;

typedef struct {
  const char *type, *stock;
  Matrix      matrix;
  PCType      pc;
  KSPNormType norm;
  PCSide      side;
  PetscBool   in_steps; /* does the view say that the preconditioner is part of the steps? */
} Row;

static const Row rows[] = {
  {"tccg",   KSPCG,   GRID,     PCNONE,      KSP_NORM_UNPRECONDITIONED, PC_LEFT,  PETSC_FALSE},
  {"tccg",   KSPCG,   GRID,     PCJACOBI,    KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tccg",   KSPCG,   GRID,     PCJACOBI,    KSP_NORM_NATURAL,          PC_LEFT,  PETSC_TRUE },
  {"tccg",   KSPCG,   GRID,     PCJACOBI,    KSP_NORM_UNPRECONDITIONED, PC_LEFT,  PETSC_FALSE},
  {"tccg",   KSPCG,   GRID,     PCJACOBI,    KSP_NORM_NONE,             PC_LEFT,  PETSC_FALSE},
  {"tccg",   KSPCG,   GRID,     PCBJACOBI,   KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_FALSE},
  {"tccg",   KSPCG,   SINGULAR, PCNONE,      KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tccg",   KSPCG,   SINGULAR, PCJACOBI,    KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tccg",   KSPCG,   BLOCKS,   PCPBJACOBI,  KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tccg",   KSPCG,   VARIED,   PCVPBJACOBI, KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tcbcgs", KSPBCGS, WIND,     PCNONE,      KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_FALSE},
  {"tcbcgs", KSPBCGS, WIND,     PCJACOBI,    KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tcbcgs", KSPBCGS, WIND,     PCJACOBI,    KSP_NORM_UNPRECONDITIONED, PC_RIGHT, PETSC_FALSE},
  {"tcbcgs", KSPBCGS, WIND,     PCBJACOBI,   KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_FALSE},
  {"tcbcgs", KSPBCGS, SINGULAR, PCJACOBI,    KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tcbcgs", KSPBCGS, BLOCKS,   PCPBJACOBI,  KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tcbcgs", KSPBCGS, VARIED,   PCVPBJACOBI, KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
  {"tccr",   KSPCR,   GRID,     PCNONE,      KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_FALSE},
  {"tccr",   KSPCR,   GRID,     PCJACOBI,    KSP_NORM_PRECONDITIONED,   PC_LEFT,  PETSC_TRUE },
};

/* Blocks of 3 rows and of 1 by turns; a last process may have blocks of 1 alone */
static PetscErrorCode SetVaried(Mat A)
{
  PetscInt n, sizes[400], count = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  for (PetscInt i = 0; i < n;) {
    sizes[count] = n - i >= 3 && count % 2 == 0 && i < 100 ? 3 : 1;
    i += sizes[count++];
  }
  PetscCall(MatSetVariableBlockSizes(A, count, sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A `tune`: BiCGSTAB amplifies rounding, so its later norms depend on the order of sums */
static PetscErrorCode EndEarly(KSP ksp, void *)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-3), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Matrix kind, Mat *whole)
{
  PetscFunctionBeginUser;
  if (kind == SINGULAR) PetscCall(ABMatSingularGrid(19, 17, 0.0, whole));
  else if (kind == BLOCKS || kind == VARIED) PetscCall(ABMatBlocks(9, 11, 3, 0.5, 0.0, whole));
  else PetscCall(ABMatGrid(19, 17, kind == WIND ? 0.3 : 0.0, PETSC_FALSE, whole));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BesidePETSc(void)
{
  char text[256], name[128];

  PetscFunctionBeginUser;
  for (const Row &row : rows) {
    Mat    whole, A;
    ABCase c = {};

    PetscCall(Create(row.matrix, &whole));
    PetscCall(Distribute(PETSC_COMM_WORLD, whole, PETSC_DECIDE, &A));
    if (row.matrix == VARIED) PetscCall(SetVaried(A));
    c.A    = A;
    c.pc   = row.pc;
    c.norm = row.norm;
    c.side = row.side;
    if (!strcmp(row.stock, KSPBCGS)) c.tune = EndEarly;
    PetscCall(MatCreateVecs(A, NULL, &c.b));
    PetscCall(ABVecFill(c.b, 0));
    PetscCall(ABRunBoth(&c, row.stock, row.type, "part of the steps", row.in_steps, text, sizeof(text)));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, matrix %d, %s, %s", row.type, (int)row.matrix, row.pc, KSPNormTypes[row.norm]));
    PetscCall(ABSay(name, text));
    PetscCall(VecDestroy(&c.b));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&whole));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- beside one process */

/* Rows of this process in partition number k, the same numbers on all: some processes have no row, some a single one */
static PetscErrorCode PartOf(PetscInt k, PetscInt n, PetscInt *rows_here)
{
  unsigned    state = 12345u + 7919u * (unsigned)k;
  PetscMPIInt rank, size;
  PetscInt    left = n;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  *rows_here = 0;
  for (PetscMPIInt r = 0; r < size; r++) {
    PetscInt here = left;

    state = 1664525u * state + 1013904223u;
    if (r < size - 1) here = (state >> 20) % 4 == 0 ? 0 : ((state >> 20) % 4 == 1 ? 1 : (PetscInt)((state >> 8) % (unsigned)(left + 1)));
    here = PetscMin(here, left);
    if (r == rank) *rows_here = here;
    left -= here;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveOn(Mat A, KSPType type, Vec *x, PetscInt *its, PetscInt *fused)
{
  KSP      ksp;
  PC       pc;
  Vec      b;
  PetscInt parent;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(ABVecFill(b, 0));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-9), PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPSolve(ksp, b, *x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(ABGetCounts(ksp, fused, &parent));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far this process's part of x is from that of `whole` at most */
static PetscErrorCode Distance(Vec x, Vec whole, PetscReal *far)
{
  const PetscScalar *a, *b;
  PetscInt           start, end;

  PetscFunctionBeginUser;
  *far = 0.0;
  PetscCall(VecGetOwnershipRange(x, &start, &end));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(whole, &b));
  for (PetscInt i = start; i < end; i++) *far = PetscMax(*far, PetscAbsScalar(a[i - start] - b[i]));
  PetscCall(VecRestoreArrayRead(whole, &b));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, far, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Partitions(KSPType type, PetscInt many)
{
  Mat       whole;
  Vec       alone;
  PetscInt  n, its, fused;
  PetscReal most;
  char      text[256] = "", name[64];

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(11, 7, strcmp(type, "tcbcgs") ? 0.0 : 0.3, PETSC_FALSE, &whole));
  PetscCall(MatGetSize(whole, &n, NULL));
  PetscCall(SolveOn(whole, type, &alone, &its, &fused));
  PetscCall(VecNorm(alone, NORM_INFINITY, &most));
  for (PetscInt k = 0; k < many && !text[0]; k++) {
    PetscInt  here, its_here, fused_here;
    PetscReal far;
    PetscBool same = PETSC_TRUE;
    Mat       A;
    Vec       x, again;

    PetscCall(PartOf(k, n, &here));
    PetscCall(Distribute(PETSC_COMM_WORLD, whole, here, &A));
    PetscCall(SolveOn(A, type, &x, &its_here, &fused_here));
    if (k % 8 == 0) {
      PetscCall(SolveOn(A, type, &again, &its_here, &fused_here));
      PetscCall(VecEqual(x, again, &same));
      PetscCall(VecDestroy(&again));
    }
    PetscCall(Distance(x, alone, &far));
    if (!(far <= Tolerance(1e-6) * most)) PetscCall(PetscSNPrintf(text, sizeof(text), "partition %" PetscInt_FMT ": the solution is %g off, of %g", k, (double)far, (double)most));
    else if (PetscAbsInt(its_here - its) > 1) PetscCall(PetscSNPrintf(text, sizeof(text), "partition %" PetscInt_FMT ": %" PetscInt_FMT " iterations, %" PetscInt_FMT " on one process", k, its_here, its));
    else if (fused_here != 1) PetscCall(PetscSNPrintf(text, sizeof(text), "partition %" PetscInt_FMT ": not fused", k));
    else if (!same) PetscCall(PetscSNPrintf(text, sizeof(text), "partition %" PetscInt_FMT ": a second solve has other bits", k));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %" PetscInt_FMT " partitions", type, many));
  PetscCall(ABSay(name, text));
  PetscCall(VecDestroy(&alone));
  PetscCall(MatDestroy(&whole));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- processes that disagree */

static PetscErrorCode CreateSolver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetType(*ksp, "tccg"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Disagree(void)
{
  PetscMPIInt    rank, size;
  PetscInt       fused, parent;
  PetscErrorCode ierr;
  Mat            whole, A;
  Vec            x, b;
  KSP            ksp;
  PetscBool      says;
  char           buffer[4000];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Create(GRID, &whole));
  PetscCall(Distribute(PETSC_COMM_WORLD, whole, PETSC_DECIDE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(ABVecFill(b, 0));

  /* one does not want to fuse: none does, and all say so */
  PetscCall(CreateSolver(A, &ksp));
  if (rank == size - 1) PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_fused", "false"));
  PetscCall(KSPSetFromOptions(ksp));
  if (rank == size - 1) PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_fused"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(ABGetCounts(ksp, &fused, &parent));
  PetscCall(ViewSays((PetscObject)ksp, "fusing is switched off", "ex21.txt", buffer, sizeof(buffer), &says));
  PetscCall(ABSay("one does not fuse", fused == 0 && parent == 1 && says ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(KSPDestroy(&ksp));

  /* different recurrences: an error on all, which leaves a solver that works */
  PetscCall(CreateSolver(A, &ksp));
  if (rank == 0 && size > 1) PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_ahead", "1"));
  PetscCall(KSPSetFromOptions(ksp));
  if (rank == 0 && size > 1) PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_ahead"));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  PetscCall(ABSay("unequal options", ierr == (size > 1 ? PETSC_ERR_ARG_INCOMP : PETSC_SUCCESS) ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(KSPDestroy(&ksp));

  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&whole));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- ways from one process to another: whichever it is, all bits are the same */

static PetscErrorCode Layers(KSPType type)
{
  const char *const layers[] = {"auto", "mpi"};
  Mat               whole;
  Vec               x[2][2];
  PetscInt          its[2][2], fused, n;
  PetscBool         same = PETSC_TRUE;
  int               all;
  char              name[64];

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(11, 7, strcmp(type, "tcbcgs") ? 0.0 : 0.3, PETSC_FALSE, &whole));
  for (int k = 0; k < 2; k++) {
    MPI_Comm comm;
    Mat      A;

    PetscCall(PetscOptionsSetValue(NULL, "-petsctc_comm", layers[k]));
    PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &comm)); /* of which nobody has chosen yet */
    PetscCall(Distribute(comm, whole, PETSC_DECIDE, &A));
    PetscCall(SolveOn(A, type, &x[k][0], &its[k][0], &fused));
    PetscCall(MatScale(A, 3.0)); /* and the border has new values */
    PetscCall(SolveOn(A, type, &x[k][1], &its[k][1], &fused));
    same = (PetscBool)(same && fused == 1);
    PetscCall(MatDestroy(&A));
    PetscCallMPI(MPI_Comm_free(&comm));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-petsctc_comm"));
  for (int solve = 0; solve < 2; solve++) {
    const PetscScalar *a[2];
    PetscBool          here;

    for (int k = 0; k < 2; k++) PetscCall(VecGetArrayRead(x[k][solve], &a[k]));
    PetscCall(VecGetLocalSize(x[0][solve], &n));
    PetscCall(PetscArraycmp(a[0], a[1], n, &here));
    for (int k = 0; k < 2; k++) PetscCall(VecRestoreArrayRead(x[k][solve], &a[k]));
    same = (PetscBool)(same && here && its[0][solve] == its[1][solve]);
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k][solve]));
  }
  all = same;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, the layers' bits", type));
  PetscCall(ABSay(name, all ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(MatDestroy(&whole));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(BesidePETSc());
  PetscCall(Partitions("tccg", 40));
  PetscCall(Partitions("tcbcgs", 20));
  PetscCall(Partitions("tccr", 10));
  PetscCall(Disagree());
  PetscCall(Layers("tccg"));
  PetscCall(Layers("tcbcgs"));
  PetscCall(Layers("tccr"));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      requires: !single
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0
      output_file: output/ex21.out
      nsize: {{1 2 3 4}}
      test:
         suffix: aij
      test:
         suffix: aijtc
         args: -mat_type aijtc
      test:
         suffix: layout
         args: -mat_type aijtc -mat_aijtc_backend host

   test:
      suffix: cuda
      requires: !single cuda
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc -mat_aijtc_backend cuda -petsctc_comm {{auto mpi}}
      output_file: output/ex21.out
      nsize: {{2 3 4}}

TEST*/
