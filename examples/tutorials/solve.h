/* What the files of the program solve share: solvesystem.cxx reads, solverun.cxx solves and times, solveprogress.cxx shows that it goes on, solvereport.cxx and solveplot.cxx tell what came out. */
#pragma once

#include <petscksp.h>

#include <string>
#include <vector>

#include "matrixmarket.h"

typedef struct {
  char      file[PETSC_MAX_PATH_LEN], rhs[PETSC_MAX_PATH_LEN], csv[PETSC_MAX_PATH_LEN], plot[PETSC_MAX_PATH_LEN];
  PetscBool have_rhs, compare, only_help, progress;
  PetscInt  laplacian, repeat;
} Settings;

/* A x = b as PETSc's AIJ on the host, from which each solver's is converted */
typedef struct {
  Mat              A;
  Vec              b;
  PetscInt         rows;
  PetscCount       nonzeros;
  PetscBool        symmetric;
  MatrixMarketInfo info; /* size_line is 0 for a PETSc binary file */
} System;

/* Copies between host and device as PETSc's log counts them: vectors and matrices, not the scalars that a solver looks at */
typedef struct {
  PetscLogDouble number_up, number_down, bytes_up, bytes_down;
} Copies;

/* What is not known is negative. Times are in seconds */
typedef struct {
  std::string            mat_type, ksp_type, pc_type;
  KSPConvergedReason     reason;
  PetscInt               iterations;
  PetscReal              true_residual;
  std::vector<PetscReal> history; /* residual norms of the last solve, as the solver computes them, from that of the guess on */
  PetscBool              gpu;     /* do its vectors live there? */
  double                 setup, values, first, second, best, transfer;
  Copies                 copies[2];       /* of the first and the second solve */
  double                 matrix_bytes;    /* where products are computed */
  double                 product_bytes;   /* of these, what a product reads */
  double                 iteration_bytes; /* the same of the matrix and the method's vectors */
  double                 copy_bandwidth;  /* bytes a second read and written by a copy there */
  std::string            ran, why;        /* how it ran, and what stands against a faster way: empty if nothing does */
} Outcome;

/* solvesystem.cxx */
PetscErrorCode CreateLaplacian(PetscInt, System *);
PetscErrorCode LoadMatrix(const char[], System *);
PetscErrorCode LoadRightHandSide(const Settings *, System *);
PetscErrorCode PrintFacts(const Settings *, System *);

/* solverun.cxx */
PetscErrorCode WarmUp(PetscBool gpu);
PetscErrorCode Solve(const Settings *, const System *, const char mat_type[], const char ksp_type[], PetscBool gpu, Outcome *);

/* solvereport.cxx */
PetscErrorCode WriteText(const char file[], const char mode[], const std::string &text);
std::string    BaseName(const char file[]);
std::string    Format(const char format[], ...) PETSC_ATTRIBUTE_FORMAT(1, 2);
double         Reduction(const Outcome &);
PetscErrorCode DescribeRun(KSP, Mat, const System *, Outcome *);
PetscErrorCode PrintReport(const Settings *, const System *, const std::vector<Outcome> &);
PetscErrorCode AppendCSV(const Settings *, const System *, const std::vector<Outcome> &);

/* solveplot.cxx */
PetscErrorCode WritePlot(const Settings *, const std::vector<Outcome> &);
