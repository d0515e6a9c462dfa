/*
   The halo of a vector of several processes: the elements that others need of it, stored into their memory by this GPU. Raw pointers, sizes, a communicator and a stream: no PETSc object.
*/
#pragma once

#include <../src/comm/peers.h>

/* Which elements go where */
typedef struct {
  PetscInt    nsend, *rows;                /* [nsend]: elements of this process that others need, one receiver after the other */
  PetscInt    begin[PETSCTC_MAX_PEERS];    /* of those of each in rows[] */
  PetscInt    place[PETSCTC_MAX_PEERS];    /* where they begin in its ghosts */
  PetscInt    nghosts[PETSCTC_MAX_PEERS];  /* of each */
  PetscBool   neighbor[PETSCTC_MAX_PEERS]; /* something goes there or comes from there */
  PetscMPIInt size, rank;
} PetscTCHaloPlan;

/* Halves of the arena are taken by turns. In each the words of the ghosts, and then one of every process: that it has come so far, which bounds how far a process is ahead of one that it needs nothing of */
typedef struct {
  PetscTCHaloPlan plan;
  PetscTCArena    arena;
  PetscInt       *rows;    /* of plan, in device memory */
  void           *missing; /* a PetscTCMissing in the host's memory .. */
  PetscTCMissing *missing_device;
  unsigned        tag; /* of the last one */
} PetscTCHalo;

/* Ghosts of kernels that wait for them: word g and those of neighbors, behind them */
typedef struct {
  const PetscTCWord *word;
  PetscInt           nghosts;
  unsigned           neighbors; /* bit r: process r is one */
  unsigned           tag, patience;
  PetscTCMissing    *missing;
} PetscTCGhosts;

/* ghost: [nghosts] numbers of elements of others, ascending; ranges[size + 1]: whose they are. Collective. Destroy of a plan that is all zero does nothing */
PETSC_INTERN PetscErrorCode PetscTCHaloPlanCreate(MPI_Comm comm, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHaloPlan *plan);
PETSC_INTERN PetscErrorCode PetscTCHaloPlanDestroy(PetscTCHaloPlan *plan);
/* can: not, there is no room on some GPU; then *halo is all zero. Collective */
PETSC_INTERN PetscErrorCode PetscTCHaloCreate_CUDA(MPI_Comm comm, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHalo *halo, PetscBool *can);
/* Collective, unless it is all zero */
PETSC_INTERN PetscErrorCode PetscTCHaloDestroy_CUDA(PetscTCHalo *halo);
/* Stores the elements of x. ghosts: for one kernel, which must come next in the stream and wait for all of them. The same number of calls on all processes */
PETSC_INTERN PetscErrorCode PetscTCHaloPush_CUDA(PetscTCHalo *halo, const PetscScalar x[], PetscTCGhosts *ghosts, PetscTCStream stream);
