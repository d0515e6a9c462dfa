/*
   What the processes of a solver tell each other: sums of steps, and before a solve that all are about to do the same. Raw pointers, sizes and a communicator: no PETSc object.
*/
#pragma once

#include <../src/vec/vecreduce.h>

/* Who takes part. Of one process, or all zero: nothing is told, and nothing is ever waited for */
typedef struct {
  MPI_Comm     comm;
  PetscMPIInt  size;
  PetscScalar *sums; /* [size * PETSCTC_MAX_DOTS], of all processes */
} PetscTCComm;

/* comm: one that is used by nobody else meanwhile, as the inner one of a PETSc object; not duplicated. destroy of one that is all zero, or twice, does nothing */
PETSC_INTERN PetscErrorCode PetscTCCommCreate(MPI_Comm comm, PetscTCComm *of);
PETSC_INTERN PetscErrorCode PetscTCCommDestroy(PetscTCComm *of);
/* A PetscTCAcross.add of sums in the host's memory; ctx: a PetscTCComm. Collective */
PETSC_INTERN PetscErrorCode PetscTCCommAdd_Host(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream stream);
/* least[k], most[k] <- of v[k] on all processes, k < n <= 16. Collective */
PETSC_INTERN PetscErrorCode PetscTCCommRange(const PetscTCComm *of, PetscInt n, const PetscInt64 v[], PetscInt64 least[], PetscInt64 most[]);
/* Is it true on all? Collective */
PETSC_INTERN PetscErrorCode PetscTCCommAll(const PetscTCComm *of, PetscBool mine, PetscBool *all);
