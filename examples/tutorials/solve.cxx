static char help[] = "Solves A x = b for a matrix from a file, with PETSc-TC's types or any of PETSc's, and reports what that took.\n\n\
  -f <file>            the matrix: Matrix Market (.mtx, .mtx.gz) or PETSc binary\n\
  -laplacian <n>       instead of a file: the 7-point Laplacian of an n x n x n grid\n\
  -rhs <file>          the right-hand side, in the same formats; without it b = A*1, whose solution is all ones\n\
  -compare             solve with PETSc's types too, everything else equal, and print both side by side\n\
  -repeat <n>          1: one solve; more: one solve, then the best of n others (default 1, with -compare 5)\n\
  -solve_csv <file>    append one line for each solver, after a line of names if the file is new or empty\n\
  -solve_plot <file>   draw the residual against time, as SVG\n\
  -solve_progress      show iteration and residual while a solve takes longer than 2 seconds (default: if stderr is a terminal, and no -ksp_monitor is given)\n\n\
Everything else by PETSc's options. Defaults of this program, where they are not PETSc's:\n\
  -mat_type aijtc\n\
  -ksp_type tccg       for a symmetric matrix (by the header of its file; a PETSc binary file has none, so it is tested), else tcbcgs\n\
  -pc_type none\n\
With -compare, -mat_type and -ksp_type choose the second column; -compare_mat_type (default aijcusparse with a usable GPU, else aij) and\n\
-compare_ksp_type (default: the second column's without 'tc') the first.\n\n\
What the report says:\n\
  reduction            last residual norm / first one, as the solver computes them\n\
  true residual        ||b - A x|| / ||b||, by PETSc's AIJ product on the host\n\
  set-up               from PETSc's AIJ on the host until the solver is set up and the first product is done: conversion, copies, layout, preconditioner\n\
  values               the same after new values in the same places (MatScale()); like the second solve only with -repeat 2 or more\n\
  first, second, best solve   KSPSolve(); an iteration's time is that of the best solve / iterations\n\
  vectors to and fro   b to the GPU and x back, which a program on the host pays for each solve\n\
  matrix               its memory where products are computed: PETSc's CSR, and beside it the layout of MATAIJTC\n\
  bandwidth            bytes that the products read of the matrix, and that the method reads and writes of vectors (CG: 11 numbers a row), / an iteration's\n\
                       time; for cg, bcgs, cr and ours with none or jacobi. It can exceed that of a copy where caches or the chip hold what is read again\n\
  bytes copied         between host and GPU in a solve, as -log_view counts them (stages 'First solve' and 'Second solve')\n\n";

/*
  Examples:
    solve -f apache1.mtx.gz -compare -pc_type jacobi -ksp_max_it 200
    solve -f apache1.mtx.gz -compare -pc_type jacobi -solve_csv runs.csv -solve_plot apache1.svg
    mpiexec -n 2 solve -f cage10.mtx.gz -ksp_monitor -ksp_rtol 1e-10
*/

#include "solve.h"

#include <petsctc.h>

#include <unistd.h>

/* Is there -ksp_monitor or -ksp_monitor_*? A monitor shows the progress by itself, which -ksp_monitors_norm_only does not. */
static bool Monitored(const char *options)
{
  static const char name[] = "-ksp_monitor";

  for (const char *at = strstr(options, name); at; at = strstr(at + 1, name)) {
    if (strchr(" _", at[strlen(name)])) return true; /* the end of the options as well: strchr() finds the null character */
  }
  return false;
}

static PetscErrorCode ReadSettings(Settings *s)
{
  PetscBool given;
  char     *all;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscOptionsBegin(PETSC_COMM_WORLD, nullptr, "Solve a system from a file", "");
  PetscCall(PetscOptionsString("-f", "Matrix: Matrix Market or PETSc binary", "", s->file, s->file, sizeof(s->file), &given));
  PetscCall(PetscOptionsRangeInt("-laplacian", "7-point Laplacian of an n x n x n grid", "", s->laplacian, &s->laplacian, nullptr, 0, 1290)); /* n^3 fits 32 bits; 0: none */
  PetscCall(PetscOptionsString("-rhs", "Right-hand side, in the same formats", "", s->rhs, s->rhs, sizeof(s->rhs), &s->have_rhs));
  PetscCall(PetscOptionsBool("-compare", "Solve with PETSc's types too", "", s->compare, &s->compare, nullptr));
  s->repeat = s->compare ? 5 : 1;
  PetscCall(PetscOptionsRangeInt("-repeat", "Time the best of so many solves", "", s->repeat, &s->repeat, nullptr, 1, PETSC_INT_MAX));
  PetscCall(PetscOptionsString("-solve_csv", "Append the results to this file", "", s->csv, s->csv, sizeof(s->csv), nullptr));
  PetscCall(PetscOptionsString("-solve_plot", "Draw the residual against time to this SVG file", "", s->plot, s->plot, sizeof(s->plot), nullptr));
  PetscCall(PetscOptionsGetAll(nullptr, &all));
  s->progress = isatty(STDERR_FILENO) && !Monitored(all) ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(PetscFree(all));
  PetscCall(PetscOptionsBool("-solve_progress", "Show the progress of long solves on stderr", "", s->progress, &s->progress, nullptr));
  PetscOptionsEnd();
  PetscCall(PetscOptionsHasHelp(nullptr, &s->only_help));
  PetscCheck(!given || !s->laplacian, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-f %s and -laplacian %" PetscInt_FMT " are two matrices: give one", s->file, s->laplacian);
  if (s->laplacian) PetscCall(PetscSNPrintf(s->file, sizeof(s->file), "7-point Laplacian, %" PetscInt_FMT "^3", s->laplacian));
  if (given || s->laplacian) s->only_help = PETSC_FALSE;
  PetscCheck(given || s->laplacian || s->only_help, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "No matrix: give one with -f <file>, a Matrix Market (.mtx, .mtx.gz) or PETSc binary file (-help tells more)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A file that cannot be written is to be an error before the solves, not after them */
static PetscErrorCode CheckFiles(const Settings *s)
{
  PetscFunctionBegin;
  if (s->csv[0]) PetscCall(WriteText(s->csv, "a", ""));
  if (s->plot[0]) PetscCall(WriteText(s->plot, "a", ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveAndReport(const Settings *s, const System *system)
{
  char                 mat_type[64] = MATAIJTC, ksp_type[64], stock_mat[64], stock_ksp[64];
  std::vector<Outcome> outcomes(s->compare ? 2 : 1);
  PetscBool            gpu;

  PetscFunctionBegin;
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_WORLD, &gpu));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  GPU            %s\n\n", gpu ? "usable" : "none usable"));
  PetscCall(PetscStrncpy(ksp_type, system->symmetric ? KSPTCCG : KSPTCBCGS, sizeof(ksp_type)));
  PetscCall(PetscOptionsGetString(nullptr, nullptr, "-mat_type", mat_type, sizeof(mat_type), nullptr));
  PetscCall(PetscOptionsGetString(nullptr, nullptr, "-ksp_type", ksp_type, sizeof(ksp_type), nullptr));
  PetscCall(WarmUp(gpu));
  if (s->compare) {
    PetscCall(PetscStrncpy(stock_mat, gpu ? MATAIJCUSPARSE : MATAIJ, sizeof(stock_mat)));
    PetscCall(PetscStrncpy(stock_ksp, strncmp(ksp_type, "tc", 2) == 0 ? ksp_type + 2 : ksp_type, sizeof(stock_ksp)));
    PetscCall(PetscOptionsGetString(nullptr, nullptr, "-compare_mat_type", stock_mat, sizeof(stock_mat), nullptr));
    PetscCall(PetscOptionsGetString(nullptr, nullptr, "-compare_ksp_type", stock_ksp, sizeof(stock_ksp), nullptr));
    PetscCall(Solve(s, system, stock_mat, stock_ksp, gpu, &outcomes[0]));
  }
  PetscCall(Solve(s, system, mat_type, ksp_type, gpu, &outcomes.back()));
  PetscCall(PrintReport(s, system, outcomes));
  if (s->csv[0]) PetscCall(AppendCSV(s, system, outcomes));
  if (s->plot[0]) PetscCall(WritePlot(s, outcomes));
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
    PetscCall(CheckFiles(&settings));
    if (settings.laplacian) PetscCall(CreateLaplacian(settings.laplacian, &system));
    else PetscCall(LoadMatrix(settings.file, &system));
    PetscCall(LoadRightHandSide(&settings, &system));
    PetscCall(PrintFacts(&settings, &system));
    PetscCall(SolveAndReport(&settings, &system));
    PetscCall(VecDestroy(&system.b));
    PetscCall(MatDestroy(&system.A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
