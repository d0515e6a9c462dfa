/*
   What the processes of a solver tell each other: sums of steps, and before a solve that all are about to do the same. Raw pointers, sizes and a communicator: no PETSc object.
*/
#pragma once

#include <../src/vec/vecreduce.h>

enum {
  PETSCTC_MAX_PEERS = 8 /* processes that store into each other's memory: those of a node */
};

/* How sums and the vectors' elements that others need come from one process to another */
typedef enum {
  PETSCTC_LAYER_AUTO, /* the fastest that there is */
  PETSCTC_LAYER_PEER, /* GPUs store into each other's memory, the host has nothing to do with it */
  PETSCTC_LAYER_MPI   /* by MPI, which the host calls */
} PetscTCLayer;
PETSC_INTERN const char *const PetscTCLayers[];

/* What a wait that has given up leaves in the host's memory. `late` is set last */
typedef struct {
  int rank, late;
} PetscTCMissing;

/* Memory of this process that others write, and theirs */
typedef struct {
  MPI_Comm    comm;
  PetscMPIInt size, rank;
  char       *of[PETSCTC_MAX_PEERS]; /* [rank]: of this process */
} PetscTCArena;

/* Who takes part. Of one process, or all zero: nothing is told, and nothing is ever waited for */
typedef struct {
  MPI_Comm     comm;
  PetscMPIInt  size;
  PetscScalar *sums; /* [size * PETSCTC_MAX_DOTS], of all processes */

  /* On GPUs */
  PetscTCLayer         layer;
  const char          *why; /* not by peers */
  PetscBool            cuda;
  PetscScalar         *staged, *staged_device; /* by MPI: [3 * PETSCTC_MAX_DOTS] in the memory of the host, where kernels write and read it */
  PetscTCArena         arena;                  /* by peers: records of sums */
  struct PetscTCPeers *peers;                  /* in device memory */
  PetscTCMissing      *missing;                /* in the host's memory */
  unsigned             tag;                    /* of the last sums */
} PetscTCComm;

/* comm: one that is used by nobody else meanwhile, as the inner one of a PETSc object; not duplicated. destroy of one that is all zero, or twice, does nothing; else it is collective */
PETSC_INTERN PetscErrorCode PetscTCCommCreate(MPI_Comm comm, PetscTCComm *of);
PETSC_INTERN PetscErrorCode PetscTCCommDestroy(PetscTCComm *of);
/* The layer of processes with vectors on GPUs, by the option -petsctc_comm and what there is; why: not by peers, NULL if it is. Found out once for a communicator. Collective */
PETSC_INTERN PetscErrorCode PetscTCLayerOf(MPI_Comm comm, PetscTCLayer *layer, const char **why);
/* Of peers: the process whose sums a kernel has waited for in vain, or -1 */
PETSC_INTERN PetscMPIInt PetscTCCommMissing(const PetscTCComm *of);
/* A PetscTCAcross.add of sums in the host's memory; ctx: a PetscTCComm. Collective */
PETSC_INTERN PetscErrorCode PetscTCCommAdd_Host(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream stream);
/* least[k], most[k] <- of v[k] on all processes, k < n <= 16. Collective */
PETSC_INTERN PetscErrorCode PetscTCCommRange(const PetscTCComm *of, PetscInt n, const PetscInt64 v[], PetscInt64 least[], PetscInt64 most[]);
/* Is it true on all? Collective */
PETSC_INTERN PetscErrorCode PetscTCCommAll(const PetscTCComm *of, PetscBool mine, PetscBool *all);
