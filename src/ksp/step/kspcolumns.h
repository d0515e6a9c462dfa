/*
   Several systems with one matrix: what the steps of blocks of columns (tccgcolumns.h, tcbcgscolumns.h) have in common. Raw pointers, sizes and a stream: no PETSc object. Host and CUDA steps have one signature and are
   reached through a table.

   A step of a block is the step of one vector (fusedstep.h) for each column, with that column's scalars, convergence test and record: the same expressions and the same order of sums, so the same bits. A column whose
   scalars say `stop` is left as it is while the others go on; only the product of the matrix, which all columns share, computes it in vain.
   Vectors of a block lie by columns, an even number of elements from one to the next, so that pairs of elements are one access. x is the caller's.
*/
#pragma once

#include <../src/ksp/step/kspsteps.h>

template <class Scalars>
struct PetscTCColumnsScalars {
  Scalars of[PETSCTC_MAX_COLUMNS];
};

/* A block: column c of x begins at x + c xstride, that of a method's vectors c stride behind the first. d: the diagonal preconditioner of all columns, NULL: none */
struct PetscTCColumns {
  PetscInt           n, columns;
  PetscCount         stride, xstride;
  PetscScalar       *x;
  const PetscScalar *d;
};

/* What a method's work is for one vector, and the memory of a block */
template <class Scalars>
struct PetscTCColumnsWork {
  using All = PetscTCColumnsScalars<Scalars>;

  PetscTCReduceWork reduce, others[PETSCTC_MAX_COLUMNS - 1]; /* of the first column, of the others */
  All              *s;                                       /* in the memory of the vectors; nothing before reset */
  PetscBool         tensor;                                  /* set by the caller, at any time */
  All              *records;                                 /* [PETSCTC_RECORDS + 1] */
  PetscTCEvent     *events;
  PetscTCTest       test[PETSCTC_MAX_COLUMNS]; /* of the step that ends the coming iteration, and where it leaves the scalars; NULL: no test, no record. Set by the caller, at any time */
  All              *record;
  PetscInt          n, columns; /* for which there is .. */
  PetscScalar      *memory;     /* .. this */
};

/* What the tables of all methods have. Columns is the method's PetscTCColumns */
template <class Scalars, class Columns>
struct PetscTCColumnsTable {
  using Work = PetscTCColumnsWork<Scalars>;

  /* create leaves `tensor` alone. destroy of a work that is all zero, or twice, does nothing */
  PetscErrorCode (*create)(Work *work);
  PetscErrorCode (*destroy)(Work *work);
  /* Sets n, columns, stride and the method's vectors of v, in memory that the work keeps for the next block as large. room: PETSC_FALSE where there is none; nothing is left then */
  PetscErrorCode (*place)(Work *work, PetscInt n, PetscInt columns, Columns *v, PetscBool *room);
  /* to <- from, of n elements */
  PetscErrorCode (*copy)(PetscInt n, const PetscScalar from[], PetscScalar to[], PetscTCStream stream);
  /* All scalars of all columns as those of one vector after the reset of the method */
  PetscErrorCode (*reset)(Work *work, PetscTCStream stream);
  /* stop <- PETSCTC_STOP_TEST in column c: the host has found that it is over */
  PetscErrorCode (*freeze)(PetscInt c, Work *work, PetscTCStream stream);
  PetscErrorCode (*read)(const Work *work, PetscTCColumnsScalars<Scalars> *host, PetscTCStream stream);
  PetscErrorCode (*mark)(const Work *work, int number, PetscTCStream stream);
  PetscErrorCode (*await)(const Work *work, int number);
};
