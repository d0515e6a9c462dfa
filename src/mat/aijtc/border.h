/*
   The border of a matrix of several processes: the rows that have entries in columns of others. Raw pointers, sizes and a stream: no PETSc object.
*/
#pragma once

#include <../src/comm/halo.h>

enum {
  AIJTC_BORDER_SUMS = 4 /* of a product, at most */
};

/* Compressed rows, those without entries left out */
typedef struct {
  PetscInt          m, lanes; /* rows; threads of each, a power of two up to 32 */
  PetscCount        nnz;
  PetscInt         *row, *i, *j; /* device: [m], [m + 1], [nnz]: a row of the matrix, its entries, their ghosts */
  PetscScalar      *a;
  PetscScalar      *sum; /* [2 * AIJTC_BORDER_SUMS], of products by turns, for the caller */
  PetscTCReduceWork work;
} AIJTCBorder;

/* Of a product that has begun: y has the part of this process's columns, and of that there are sums (nsums 2: w . y and y . y; 4: u . y and u . w too; 0: none are wanted) */
typedef struct {
  int                 nsums;
  const PetscScalar  *w, *u;
  const PetscScalar  *from;  /* NULL: these are 0 */
  PetscScalar        *to;    /* those of the whole y; may be from */
  const PetscTCPeers *peers; /* to add them up over, or NULL */
  unsigned            tag;   /* of these sums */
} AIJTCBorderSums;

/* Arrays in host memory, of all m rows. Destroy of a border that is all zero does nothing */
PETSC_INTERN PetscErrorCode AIJTCBorderCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCBorder *border);
PETSC_INTERN PetscErrorCode AIJTCBorderDestroy_CUDA(AIJTCBorder *border);
/* a: in device memory */
PETSC_INTERN PetscErrorCode AIJTCBorderRefresh_CUDA(AIJTCBorder *border, const PetscScalar a[], PetscTCStream stream);
/* y <- y + B ghosts, and the sums of the whole y, with peers those of all processes. Waits for the ghosts; of one that does not come y is NaN */
PETSC_INTERN PetscErrorCode AIJTCBorderMultAdd_CUDA(const AIJTCBorder *border, const PetscTCGhosts *ghosts, PetscBool tensor, PetscScalar y[], const AIJTCBorderSums *sums, PetscTCStream stream);
