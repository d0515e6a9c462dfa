/*
   Reads Matrix Market files (https://math.nist.gov/MatrixMarket/formats.html), plain or gzipped, into PETSc objects.

   Accepted: matrix; coordinate or array; real, integer or pattern (its entries are 1); general, symmetric or skew-symmetric. Not accepted: complex, hermitian.
   The file is read once, by the first process, in a stream. Entries given twice are added. A symmetric file stores one triangle: the lower one by the
   standard, the upper one is taken as well, a mixture of both is an error (it would leave open whether an entry counts twice).

   Whatever is wrong with a file is an error on every process, PETSC_ERR_FILE_OPEN, PETSC_ERR_FILE_READ, PETSC_ERR_FILE_UNEXPECTED, PETSC_ERR_SUP (a kind of
   file not handled) or PETSC_ERR_ARG_OUTOFRANGE (too large for PetscInt), whose message begins with the file and the line.
*/
#pragma once

#include <petscmat.h>

typedef enum {
  MATRIXMARKET_GENERAL,
  MATRIXMARKET_SYMMETRIC,
  MATRIXMARKET_SKEW_SYMMETRIC
} MatrixMarketSymmetry;

/* What the first lines of the file say */
typedef struct {
  MatrixMarketSymmetry symmetry;
  PetscInt             rows, cols;
  PetscInt64           stored;    /* entries in the file */
  PetscInt64           size_line; /* number of the line with the sizes, for messages about them */
} MatrixMarketInfo;

/* Fills A: its type is set (MATAIJ or derived from it), its sizes are not. Collective. */
PetscErrorCode MatLoadMatrixMarket(Mat A, const char file[], MatrixMarketInfo *info);

/* Fills b, whose sizes are set, from a file of one column. Collective. */
PetscErrorCode VecLoadMatrixMarket(Vec b, const char file[], MatrixMarketInfo *info);
