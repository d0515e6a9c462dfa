/*
   The halo of a vector of several processes: the elements that others need of it, from this GPU to theirs. Raw pointers, sizes, a communicator and a stream: no PETSc object.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <../src/comm/peers.h>

/* Which elements go where. Arrays are of all processes, but for rows[] */
typedef struct {
  PetscMPIInt size, rank;
  PetscInt    nsend, *rows;                        /* [nsend]: elements of this process that others need, one receiver after the other */
  PetscMPIInt nghosts, *to, *begin, *from, *first; /* ghosts of this process; how many elements go to each, where they begin in rows[]; how many come from each, where they begin in the ghosts */
  PetscInt   *place, *all;                         /* where those to each begin in its ghosts; how many ghosts each has */
} PetscTCHaloPlan;

typedef struct {
  MPI_Comm        comm;
  PetscMPIInt     tag_of_mpi;
  PetscTCLayer    layer;
  PetscTCHaloPlan plan;
  PetscInt       *rows; /* of plan, in device memory */

  /* By peers. Halves of the arena are taken by turns. In each the words of the ghosts, and then one of every process: that it has come so far, which bounds how far a process is ahead of one that it needs nothing of */
  PetscTCArena    arena;
  PetscTCMissing *missing, *missing_device; /* in the host's memory */
  unsigned        tag;                      /* of the last one */

  /* By MPI: memory of the host, that the device writes, and what has come in that of both */
  PetscScalar *send, *send_device, *receive, *ghosts;
  MPI_Request *requests;
  PetscTCEvent sent;
} PetscTCHalo;

/* For the kernel that needs the ghosts. By peers it waits for word g, and for those of neighbors, behind them; by MPI, word NULL, they are there */
typedef struct {
  const PetscScalar *number;
  const PetscTCWord *word;
  PetscInt           nghosts;
  unsigned           neighbors; /* bit r: process r is one */
  unsigned           tag, patience;
  PetscTCMissing    *missing;
} PetscTCGhosts;

/* ghost: [nghosts] numbers of elements of others, ascending; ranges[size + 1]: whose they are. Collective. Destroy of a plan that is all zero does nothing */
PETSC_INTERN PetscErrorCode PetscTCHaloPlanCreate(MPI_Comm comm, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHaloPlan *plan);
PETSC_INTERN PetscErrorCode PetscTCHaloPlanDestroy(PetscTCHaloPlan *plan);
/* By this layer, or, of peers, by MPI if there is no room on some GPU. tag: for messages, of nobody else. Collective */
PETSC_INTERN PetscErrorCode PetscTCHaloCreate_CUDA(MPI_Comm comm, PetscMPIInt tag, PetscTCLayer layer, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHalo *halo);
/* Collective, unless it is all zero */
PETSC_INTERN PetscErrorCode PetscTCHaloDestroy_CUDA(PetscTCHalo *halo);
/* Sends elements of x; of: of what it makes, and x is NULL. As many calls on all processes. What comes next in the stream hides the way; then PetscTCHaloAwait_CUDA(), and next in the stream one kernel with these ghosts, which waits for all of them */
PETSC_INTERN PetscErrorCode PetscTCHaloPush_CUDA(PetscTCHalo *halo, const PetscScalar x[], const AIJTCWAXPY *of, PetscTCGhosts *ghosts, PetscTCStream stream);
PETSC_INTERN PetscErrorCode PetscTCHaloAwait_CUDA(PetscTCHalo *halo, PetscTCStream stream);
