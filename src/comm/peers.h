/*
   Processes whose GPUs store into each other's memory: arenas, and sums that all add up by themselves. Raw pointers, sizes, a communicator and a stream: no PETSc object.
*/
#pragma once

#include <../src/comm/comm.h>

/* A number on its way to another process: two accesses of 8 bytes, each with half of its bits below and the tag of what it belongs to above. An access of 8 bytes is whole between GPUs, one of 16 need not be */
typedef struct {
  uint64_t half[2];
} PetscTCWord;

constexpr PetscReal PETSCTC_PATIENCE = 60.0; /* seconds that kernels wait for another process */

/* A kernel has waited in vain: for which process; -1: none has, or missing is NULL; PETSCTC_MAX_PEERS: it does not know */
PETSC_INTERN PetscMPIInt PetscTCMissingRank(const PetscTCMissing *missing);

/* For kernels, in device memory. Words of sums of `rank` lie in record[..][tag % 2][rank][k] */
struct PetscTCPeers {
  int             ranks, rank;
  unsigned        patience;                  /* of a wait, as PetscTCPatienceBound() has it */
  PetscTCWord    *record[PETSCTC_MAX_PEERS]; /* of each process */
  PetscTCMissing *missing;
};

/* Who takes part: all processes have the same layer, which is PETSCTC_LAYER_PEER. Memory of this process, all zero at first, and where the others' is for kernels of this one. Collective */
PETSC_INTERN PetscErrorCode PetscTCArenaCreate_CUDA(MPI_Comm comm, size_t bytes, PetscTCArena *arena, PetscBool *can);
/* Of one that is all zero: nothing. Else collective: nobody frees what another still looks at */
PETSC_INTERN PetscErrorCode PetscTCArenaDestroy_CUDA(PetscTCArena *arena);
/* Have all processes a GPU of their own, and do stores of each arrive at every other one? `why` not, on all the same. Collective */
PETSC_INTERN PetscErrorCode PetscTCPeersTry_CUDA(MPI_Comm comm, const char **why);
/* Sums of processes whose vectors are on GPUs, by the layer of->layer. Collective */
PETSC_INTERN PetscErrorCode PetscTCCommCreate_CUDA(PetscTCComm *of);
PETSC_INTERN PetscErrorCode PetscTCCommDestroy_CUDA(PetscTCComm *of);
/* A PetscTCAcross.add of sums in device memory; ctx: a PetscTCComm. By MPI the stream is waited for, and sum[] is of->staged_device */
PETSC_INTERN PetscErrorCode PetscTCCommAdd_CUDA(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream stream);
