static char help[] = "Solves A x = b for a matrix from a file, with PETSc-TC's types or any of PETSc's.\n\n\
  -f <file>            the matrix: Matrix Market (.mtx, .mtx.gz) or PETSc binary\n\
  -laplacian <n>       instead of a file: the 7-point Laplacian of an n x n x n grid\n\
  -rhs <file>          the right-hand side, in the same formats; without it b = A*1, whose solution is all ones\n\
  -compare             solve with PETSc's types too, everything else equal, and print a table\n\
  -repeat <n>          time the best of n solves; when n > 1 after one that is not timed (default 1, with -compare 5)\n\n\
Everything else by PETSc's options. Defaults of this program, where they are not PETSc's:\n\
  -mat_type aijtc\n\
  -ksp_type tccg       for a symmetric matrix (by the header of its file; a PETSc binary file has none, so it is tested), else tcbcgs\n\
  -pc_type none\n\
With -compare, -mat_type and -ksp_type choose the second line; -compare_mat_type (default aijcusparse with a usable GPU, else aij) and\n\
-compare_ksp_type (default: the second line's without 'tc') the first.\n\n\
The time is that of KSPSolve(): reading, conversion and KSPSetUp() are not in it. The true residual is ||b - A x|| / ||b||, by PETSc's AIJ product.\n\n";

/*
  Examples:
    solve -f apache1.mtx.gz -compare -pc_type jacobi -ksp_max_it 200
    mpiexec -n 2 solve -f cage10.mtx.gz -ksp_monitor -ksp_rtol 1e-10
*/

#include <petsctc.h>
#include <petscdevice.h>
#include <petsctime.h>

#include "matrixmarket.h"

typedef struct {
  char      file[PETSC_MAX_PATH_LEN], rhs[PETSC_MAX_PATH_LEN];
  PetscBool have_rhs, compare, only_help;
  PetscInt  laplacian, repeat;
} Settings;

/* A x = b as PETSc's AIJ on the host, from which each line of the table is converted */
typedef struct {
  Mat              A;
  Vec              b;
  PetscBool        symmetric;
  MatrixMarketInfo info; /* size_line is 0 for a PETSc binary file */
} System;

typedef struct {
  char               mat_type[64], ksp_type[64], pc_type[64];
  KSPConvergedReason reason;
  PetscInt           iterations;
  PetscReal          residual;
  PetscLogDouble     seconds;
} Outcome;

static PetscErrorCode ReadSettings(Settings *s)
{
  PetscBool given;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscOptionsBegin(PETSC_COMM_WORLD, nullptr, "Solve a system from a file", "");
  PetscCall(PetscOptionsString("-f", "Matrix: Matrix Market or PETSc binary", "", s->file, s->file, sizeof(s->file), &given));
  PetscCall(PetscOptionsRangeInt("-laplacian", "7-point Laplacian of an n x n x n grid", "", s->laplacian, &s->laplacian, nullptr, 0, 1290)); /* n^3 fits 32 bits; 0: none */
  PetscCall(PetscOptionsString("-rhs", "Right-hand side, in the same formats", "", s->rhs, s->rhs, sizeof(s->rhs), &s->have_rhs));
  PetscCall(PetscOptionsBool("-compare", "Solve with PETSc's types too", "", s->compare, &s->compare, nullptr));
  s->repeat = s->compare ? 5 : 1;
  PetscCall(PetscOptionsRangeInt("-repeat", "Time the best of so many solves", "", s->repeat, &s->repeat, nullptr, 1, PETSC_INT_MAX));
  PetscOptionsEnd();
  PetscCall(PetscOptionsHasHelp(nullptr, &s->only_help));
  PetscCheck(!given || !s->laplacian, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-f %s and -laplacian %" PetscInt_FMT " are two matrices: give one", s->file, s->laplacian);
  if (s->laplacian) PetscCall(PetscSNPrintf(s->file, sizeof(s->file), "7-point Laplacian, %" PetscInt_FMT "^3", s->laplacian));
  if (given || s->laplacian) s->only_help = PETSC_FALSE;
  PetscCheck(given || s->laplacian || s->only_help, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "No matrix: give one with -f <file>, a Matrix Market (.mtx, .mtx.gz) or PETSc binary file (-help tells more)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By its first bytes; whatever is no PETSc binary file, the Matrix Market reader takes or refuses */
static PetscErrorCode IsPetscBinary(const char file[], PetscInt class_id, PetscBool *binary)
{
  unsigned char bytes[sizeof(PetscInt)] = {0}; /* PETSc's files have integers of its size, the highest byte first */
  uint64_t      found                   = 0;
  PetscMPIInt   rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    FILE *stream = fopen(file, "rb");

    if (stream) {
      if (fread(bytes, 1, sizeof(bytes), stream) != sizeof(bytes)) bytes[0] = 255;
      fclose(stream);
    }
  }
  PetscCallMPI(MPI_Bcast(bytes, sizeof(bytes), MPI_UNSIGNED_CHAR, 0, PETSC_COMM_WORLD));
  for (unsigned char byte : bytes) found = found << 8 | byte;
  *binary = found == (uint64_t)class_id ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -1 for each of the six neighbours in the grid, 6 for the point */
static PetscErrorCode CreateLaplacian(PetscInt n, System *system)
{
  const PetscInt stride[] = {1, n, n * n};
  PetscInt       first, last;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&system->info, sizeof(system->info)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &system->A));
  PetscCall(MatSetSizes(system->A, PETSC_DECIDE, PETSC_DECIDE, n * n * n, n * n * n));
  PetscCall(MatSetType(system->A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(system->A, 7, nullptr));
  PetscCall(MatMPIAIJSetPreallocation(system->A, 7, nullptr, 6, nullptr));
  PetscCall(MatGetOwnershipRange(system->A, &first, &last));
  for (PetscInt row = first; row < last; row++) {
    PetscInt    cols[7], k = 0;
    PetscScalar values[7];

    for (PetscInt d : stride) {
      const PetscInt at = row / d % n;

      if (at > 0) cols[k] = row - d, values[k++] = -1.0;
      if (at < n - 1) cols[k] = row + d, values[k++] = -1.0;
    }
    cols[k] = row, values[k++] = 6.0;
    PetscCall(MatSetValues(system->A, 1, &row, k, cols, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(system->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(system->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(system->A, MAT_SYMMETRIC, PETSC_TRUE));
  system->symmetric = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadMatrix(const char file[], System *system)
{
  PetscBool binary;
  PetscInt  m, n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&system->info, sizeof(system->info)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &system->A));
  PetscCall(MatSetType(system->A, MATAIJ));
  PetscCall(IsPetscBinary(file, MAT_FILE_CLASSID, &binary));
  if (binary) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(system->A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  } else PetscCall(MatLoadMatrixMarket(system->A, file, &system->info));
  PetscCall(MatGetSize(system->A, &m, &n));
  PetscCheck(m == n, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "%s, line %" PetscInt64_FMT ": the matrix has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns; only a square one can be solved with", file, system->info.size_line, m, n);
  PetscCheck(m > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "%s, line %" PetscInt64_FMT ": the matrix has no rows", file, system->info.size_line);
  if (binary) PetscCall(MatIsSymmetric(system->A, 0.0, &system->symmetric));
  else system->symmetric = system->info.symmetry == MATRIXMARKET_SYMMETRIC ? PETSC_TRUE : PETSC_FALSE;
  if (system->symmetric) PetscCall(MatSetOption(system->A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadRightHandSide(const Settings *s, System *system)
{
  PetscBool binary;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(system->A, nullptr, &system->b));
  if (!s->have_rhs) {
    Vec ones;

    PetscCall(MatCreateVecs(system->A, &ones, nullptr));
    PetscCall(VecSet(ones, 1.0));
    PetscCall(MatMult(system->A, ones, system->b));
    PetscCall(VecDestroy(&ones));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(IsPetscBinary(s->rhs, VEC_FILE_CLASSID, &binary));
  if (binary) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, s->rhs, FILE_MODE_READ, &viewer));
    PetscCall(VecLoad(system->b, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  } else {
    MatrixMarketInfo info;

    PetscCall(VecLoadMatrixMarket(system->b, s->rhs, &info));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintFacts(const Settings *s, const System *system)
{
  const char *name = strrchr(s->file, '/') ? strrchr(s->file, '/') + 1 : s->file;
  const char *symmetry;
  PetscInt    m, n, begin, end, length, longest = 0;
  PetscReal   norm;
  MatInfo     info;

  PetscFunctionBegin;
  PetscCall(MatGetSize(system->A, &m, &n));
  PetscCall(MatGetInfo(system->A, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetOwnershipRange(system->A, &begin, &end));
  for (PetscInt row = begin; row < end; ++row) {
    PetscCall(MatGetRow(system->A, row, &length, nullptr, nullptr));
    longest = PetscMax(longest, length);
    PetscCall(MatRestoreRow(system->A, row, &length, nullptr, nullptr));
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &longest, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCall(MatNorm(system->A, NORM_FROBENIUS, &norm));
  PetscCheck(!PetscIsInfOrNanReal(norm), PETSC_COMM_WORLD, PETSC_ERR_FP, "%s: a value is NaN or infinite, or the values are too large", s->file);
  if (system->info.size_line == 0) symmetry = system->symmetric ? "symmetric (tested)" : "general (tested)";
  else symmetry = system->symmetric ? "symmetric (header)" : system->info.symmetry == MATRIXMARKET_SKEW_SYMMETRIC ? "skew-symmetric (header)" : "general (header)";
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Matrix           %s\n  rows           %" PetscInt_FMT "\n  columns        %" PetscInt_FMT "\n  nonzeros       %.0f\n", name, m, n, (double)info.nz_used));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  longest row    %" PetscInt_FMT "\n  symmetry       %s\n  Frobenius norm %.10g\n", longest, symmetry, (double)norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time when all processes, and the GPU if there is one, have done what they were asked before */
static PetscErrorCode ReadClock(PetscBool gpu, PetscLogDouble *seconds)
{
  PetscFunctionBegin;
  if (gpu) {
    PetscDeviceContext context;

    PetscCall(PetscDeviceContextGetCurrentContext(&context));
    PetscCall(PetscDeviceContextSynchronize(context));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeSolves(KSP ksp, Vec b, Vec x, PetscInt repeat, PetscBool gpu, PetscLogDouble *best)
{
  const PetscInt warm_up = repeat > 1 ? 1 : 0;

  PetscFunctionBegin;
  *best = PETSC_MAX_REAL;
  for (PetscInt k = 0; k < repeat + warm_up; ++k) {
    PetscLogDouble start, stop;

    PetscCall(VecSet(x, 0.0));
    PetscCall(ReadClock(gpu, &start));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(ReadClock(gpu, &stop));
    if (k >= warm_up) *best = PetscMin(*best, stop - start);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the host's matrix and vectors, so that no type is judged by itself. Absolute when b = 0. */
static PetscErrorCode TrueResidual(const System *system, Vec x, PetscReal *residual)
{
  Vec       host, r;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(system->A, &host, &r));
  PetscCall(VecCopy(x, host));
  PetscCall(MatMult(system->A, host, r));
  PetscCall(VecAYPX(r, -1.0, system->b));
  PetscCall(VecNorm(r, NORM_2, residual));
  PetscCall(VecNorm(system->b, NORM_2, &norm));
  if (norm > 0.0) *residual /= norm;
  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves with the given types, set as options so that MatSetFromOptions() and KSPSetFromOptions() do what they do in any program */
static PetscErrorCode Solve(const System *system, const char mat_type[], const char ksp_type[], PetscInt repeat, PetscBool gpu, Outcome *outcome)
{
  Mat     A;
  Vec     x, b;
  KSP     ksp;
  PC      pc;
  KSPType method;
  PCType  preconditioner;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(nullptr, "-mat_type", mat_type));
  PetscCall(PetscOptionsSetValue(nullptr, "-ksp_type", ksp_type));
  PetscCall(MatConvert(system->A, mat_type, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecCopy(system->b, b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(TimeSolves(ksp, b, x, repeat, gpu, &outcome->seconds));
  PetscCall(KSPGetConvergedReason(ksp, &outcome->reason));
  PetscCall(KSPGetIterationNumber(ksp, &outcome->iterations));
  PetscCall(TrueResidual(system, x, &outcome->residual));
  PetscCall(KSPGetType(ksp, &method));
  PetscCall(PCGetType(pc, &preconditioner));
  PetscCall(PetscStrncpy(outcome->mat_type, mat_type, sizeof(outcome->mat_type)));
  PetscCall(PetscStrncpy(outcome->ksp_type, method, sizeof(outcome->ksp_type)));
  PetscCall(PetscStrncpy(outcome->pc_type, preconditioner, sizeof(outcome->pc_type)));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double MicrosecondsPerIteration(const Outcome *outcome)
{
  return 1e6 * outcome->seconds / (double)PetscMax(outcome->iterations, 1);
}

static PetscErrorCode PrintOutcome(const Outcome *o)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Solve            -mat_type %s -ksp_type %s -pc_type %s\n  reason         %s\n  iterations     %" PetscInt_FMT "\n", o->mat_type, o->ksp_type, o->pc_type, KSPConvergedReasons[o->reason], o->iterations));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  true residual  %.3e\n  time           %.2f us per iteration\n", (double)o->residual, MicrosecondsPerIteration(o)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintTable(const Outcome outcomes[2])
{
  static const char *const owner[] = {"PETSc", "PETSc-TC"};

  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-9s %-12s %-9s %-9s %10s  %-24s %13s %12s %9s\n", "", "mat_type", "ksp_type", "pc_type", "iterations", "reason", "true residual", "us/iteration", "speed-up"));
  for (int k = 0; k < 2; ++k) {
    const Outcome *o = &outcomes[k];

    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-9s %-12s %-9s %-9s %10" PetscInt_FMT "  %-24s %13.3e %12.2f %9.2f\n", owner[k], o->mat_type, o->ksp_type, o->pc_type, o->iterations, KSPConvergedReasons[o->reason], (double)o->residual,
                          MicrosecondsPerIteration(o), MicrosecondsPerIteration(&outcomes[0]) / MicrosecondsPerIteration(o)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One line of results, or with -compare the table */
static PetscErrorCode SolveAndPrint(const Settings *s, const System *system)
{
  char      mat_type[64] = MATAIJTC, ksp_type[64], stock_mat[64], stock_ksp[64];
  Outcome   outcomes[2];
  PetscBool gpu;

  PetscFunctionBegin;
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_WORLD, &gpu));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  GPU            %s\n\n", gpu ? "usable" : "none usable"));
  PetscCall(PetscStrncpy(ksp_type, system->symmetric ? KSPTCCG : KSPTCBCGS, sizeof(ksp_type)));
  PetscCall(PetscOptionsGetString(nullptr, nullptr, "-mat_type", mat_type, sizeof(mat_type), nullptr));
  PetscCall(PetscOptionsGetString(nullptr, nullptr, "-ksp_type", ksp_type, sizeof(ksp_type), nullptr));
  if (s->compare) {
    PetscCall(PetscStrncpy(stock_mat, gpu ? MATAIJCUSPARSE : MATAIJ, sizeof(stock_mat)));
    PetscCall(PetscStrncpy(stock_ksp, strncmp(ksp_type, "tc", 2) == 0 ? ksp_type + 2 : ksp_type, sizeof(stock_ksp)));
    PetscCall(PetscOptionsGetString(nullptr, nullptr, "-compare_mat_type", stock_mat, sizeof(stock_mat), nullptr));
    PetscCall(PetscOptionsGetString(nullptr, nullptr, "-compare_ksp_type", stock_ksp, sizeof(stock_ksp), nullptr));
    PetscCall(Solve(system, stock_mat, stock_ksp, s->repeat, gpu, &outcomes[0]));
  }
  PetscCall(Solve(system, mat_type, ksp_type, s->repeat, gpu, &outcomes[1]));
  if (s->compare) PetscCall(PrintTable(outcomes));
  else PetscCall(PrintOutcome(&outcomes[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Settings settings;
  System   system;

  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(PetscTCInitialize());
  PetscCall(ReadSettings(&settings));
  if (!settings.only_help) {
    if (settings.laplacian) PetscCall(CreateLaplacian(settings.laplacian, &system));
    else PetscCall(LoadMatrix(settings.file, &system));
    PetscCall(LoadRightHandSide(&settings, &system));
    PetscCall(PrintFacts(&settings, &system));
    PetscCall(SolveAndPrint(&settings, &system));
    PetscCall(VecDestroy(&system.b));
    PetscCall(MatDestroy(&system.A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
