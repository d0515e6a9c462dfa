/*
   The steps of KSPTCCG for several systems with one matrix: blocks of up to 8 columns, each of which has its own scalars, recurrences and end. Raw pointers, sizes and a stream: no PETSc object. Host and
   CUDA steps have one signature and are reached through a table.

   Method         A step of a block is the step of one vector (tccgsteps.h) for each column, with that column's scalars, convergence test and record: the same expressions and the same order of sums, so the
                  same bits. A column whose scalars say `stop` is left as it is while the others go on; only the product of the matrix, which all columns share, computes it in vain. x is updated late, with the
                  next direction (kspsteps.h): nobody looks at it before the solve ends.
   Layout         r, p and w by columns, an even number of elements from one to the next, so that pairs of elements are one access; w is z too where the preconditioner is a diagonal. x is the caller's
   Memory traffic bytes of an iteration of 8 columns of n rows: direction 320 n, curvature 128 n, update 192 n (with a diagonal 320 n, and 64 n if that does not stay in L2), in all 640 n (768 n); and the product,
                  values + 128 n (and 128 n where X is copied by rows first, spmm.cuh). At 4.3 TB/s, without preconditioner:
                    7-point 43^3, n = 79,507, constant values      51 + 10 MB    14 us (in L2 altogether)
                    a million tetrahedra nodes, 15 million values  640 + 433 MB  250 us
   References     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
                  D. P. O'Leary, The block conjugate gradient algorithm and related methods, Linear Algebra Appl. 29, 1980 (which couples the columns: not done here)
*/
#pragma once

#include <petsctc/private/kspsteps.h>

enum {
  TCCG_MAX_COLUMNS = 8 /* what the product takes in one pass */
};

typedef struct {
  TCCGScalars of[TCCG_MAX_COLUMNS];
} TCCGColumnsScalars;

/* A block: column c of r begins at r + c stride, that of x at x + c xstride. d: the diagonal preconditioner of all columns, NULL: none, z is r; else z is w */
typedef struct {
  PetscInt           n, columns;
  PetscCount         stride, xstride;
  PetscScalar       *r, *p, *w, *x;
  const PetscScalar *d;
} TCCGColumns;

/* What TCCGWork is for one vector, and the memory of a block */
typedef struct {
  PetscTCReduceWork   reduce, others[TCCG_MAX_COLUMNS - 1]; /* of the first column, of the others */
  TCCGColumnsScalars *s;                                    /* in the memory of the vectors; nothing before reset */
  PetscBool           tensor;                               /* set by the caller, at any time */
  TCCGColumnsScalars *records;                              /* [PETSCTC_RECORDS + 1] */
  PetscTCEvent       *events;
  PetscTCTest         test[TCCG_MAX_COLUMNS]; /* of the update that ends the coming iteration, and where it leaves the scalars; NULL: no test, no record. Set by the caller, at any time */
  TCCGColumnsScalars *record;
  PetscInt            n, columns; /* for which there is .. */
  PetscScalar        *memory;     /* .. this */
} TCCGColumnsWork;

typedef struct {
  /* create leaves `tensor` alone. destroy of a work that is all zero, or twice, does nothing */
  PetscErrorCode (*create)(TCCGColumnsWork *work);
  PetscErrorCode (*destroy)(TCCGColumnsWork *work);
  /* Sets n, columns, stride, r, p and w of v, in memory that the work keeps for the next block as large. room: PETSC_FALSE where there is none; nothing is left then */
  PetscErrorCode (*place)(TCCGColumnsWork *work, PetscInt n, PetscInt columns, TCCGColumns *v, PetscBool *room);
  /* to <- from, of n elements */
  PetscErrorCode (*copy)(PetscInt n, const PetscScalar from[], PetscScalar to[], PetscTCStream stream);
  /* TCCGSteps of the same names, for all columns: z and its sums as v->d says; identity is its absence, and x always late */
  PetscErrorCode (*reset)(TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*residual)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*project)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*direction)(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*curvature)(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*update)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*settle)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  /* stop <- PETSCTC_STOP_TEST in column c: the host has found that it is over */
  PetscErrorCode (*freeze)(PetscInt c, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*read)(const TCCGColumnsWork *work, TCCGColumnsScalars *host, PetscTCStream stream);
  PetscErrorCode (*mark)(const TCCGColumnsWork *work, int number, PetscTCStream stream);
  PetscErrorCode (*await)(const TCCGColumnsWork *work, int number);
} TCCGColumnsSteps;

PETSC_INTERN const TCCGColumnsSteps TCCGColumnsSteps_Host;
#if PETSCTC_HAVE_CUDA
PETSC_INTERN const TCCGColumnsSteps TCCGColumnsSteps_CUDA;
#endif
