/*
   Iterations of conjugate gradients without the host, in one call: the product by a resident form (tccgform.h), PCNONE or a diagonal preconditioner. Raw pointers, sizes and a stream: no PETSc object.

   Scalars, records, stops and the meaning of an iteration are those of kspsteps.h: before and after a call, vectors and scalars are what the steps would have left after as many iterations, up to the
   rounding of sums. How iterations are cut into calls changes no bit.
*/
#pragma once

#include <cmath>
#include <petsctc/private/fusedstep.h>
#include <petsctc/private/lateblock.h>
#include <petsctc/private/tccgform.h>

/* Iterations first + 1 .. last of a solve. The norm after iteration `it` is computed from computed_from on and compared with the bounds of `test` from compared_from on; between them it ends the solve
   if it is Inf or NaN. Iteration `it` leaves records[it % PETSCTC_RECORDS], when the call is over; last - first <= PETSCTC_RECORDS */
typedef struct {
  PetscInt     first, last;
  PetscInt     computed_from, compared_from;
  PetscTCTest  test;
  TCCGScalars *records;
} TCCGChunk;

/* The test after iteration `it` */
PETSCTC_HOST_DEVICE PetscTCTest TCCGTestAt(const TCCGChunk &chunk, PetscInt it)
{
  PetscTCTest test = chunk.test;

  if (it < chunk.compared_from) {
    test.above = -1.0;
    test.below = HUGE_VAL;
  }
  if (it < chunk.computed_from) test.norm = PETSCTC_NORM_NONE;
  return test;
}

typedef struct {
  PetscScalar       *x, *r, *p;
  PetscScalar       *z;        /* B r at the beginning and at the end; r if there is no preconditioner */
  const PetscScalar *diagonal; /* of B, NULL if there is no preconditioner */
  PetscScalar       *w;        /* work, may be z */
} TCCGVectors;

/* The sum of a block for a barrier of a cooperative kernel, in one store with what tells for which barrier it is */
typedef struct {
  PetscScalar sum;
  uint64_t    tag;
} PetscTCSumRecord;

typedef struct {
  PetscBool         cuda;
  PetscScalar      *pairs;    /* CUDA: [2 m] z and p of every row, as the product gathers them */
  PetscTCSumRecord *sums;     /* CUDA */
  uint64_t         *tag;      /* CUDA: the last tag given */
  TCCGScalars      *records;  /* CUDA: [PETSCTC_RECORDS] */
  PetscTCLateBlock *late;     /* CUDA: in page-locked host memory */
  PetscReal         patience; /* CUDA: seconds that a block waits for the others */
} TCCGResidentWork;

/* Work for calls with this form. can: the device runs the kernel with it, scaled: with a diagonal preconditioner, and has the memory; if not, `work` holds nothing. Destroy takes what a failed create has left */
PETSC_INTERN PetscErrorCode TCCGResidentCreate_Host(const TCCGForm *form, PetscBool scaled, TCCGResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGResidentCreate_CUDA(const TCCGForm *form, PetscBool scaled, TCCGResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGResidentDestroy_Host(TCCGResidentWork *work);
PETSC_INTERN PetscErrorCode TCCGResidentDestroy_CUDA(TCCGResidentWork *work);

/* Ends before `last` where the scalars stop. steps->tensor: sums fold on the Tensor Core. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode TCCGResident_Host(const TCCGForm *form, const TCCGChunk *chunk, const TCCGVectors *v, TCCGWork *steps, TCCGResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGResident_CUDA(const TCCGForm *form, const TCCGChunk *chunk, const TCCGVectors *v, TCCGWork *steps, TCCGResidentWork *work, PetscBool *refused, PetscTCStream stream);
/* An error if the kernel gave up waiting; to be asked once the call is over. The work is then of no more use */
PETSC_INTERN PetscErrorCode TCCGResidentCheck(const TCCGResidentWork *work);
