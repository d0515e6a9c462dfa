/*
   Dot products in a fixed summation order: the same input gives the same bits on every run. Raw pointers, sizes and a stream: no PETSc object.
   Launchers of both backends have one signature. The results stay where the vectors live (device memory for _CUDA). On a device only the norm is a launch of its own: solvers take their dot products in
   steps (fusedstep.h) and products (aijtclayout.h).
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>

enum {
  PETSCTC_MAX_DOTS   = 8,  /* dot products of one reduction */
  PETSCTC_MAX_BLOCKS = 528 /* thread blocks of one reduction: 4 for each of the 132 multiprocessors of an H100. A constant, so that sums do not depend on the device */
};

/*
   The seam between a step's sums and what is derived from them. A step that is run with such a thing leaves its own sums in sum[]; add() adds up those of all processes there, in an order that does not depend on who
   comes first; and only then the step's end() derives the scalars, the same on all. With peers the step's last block adds them up itself. Of one process, all zero, nothing comes between, and on a device all is one launch.
*/
typedef struct {
  PetscErrorCode (*add)(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream stream);
  void                      *ctx;
  PetscScalar               *sum;   /* CUDA, without peers: [3 * PETSCTC_MAX_DOTS] that the device writes and reads: of steps, and of products by turns; on the host nothing */
  PetscReal                  rows;  /* of the vectors of all processes, for steps with a mean; 0: of one process */
  const struct PetscTCPeers *peers; /* CUDA: processes that store into each other's memory (src/comm/peers.h), or NULL */
  unsigned                  *tag;   /* with peers: of the last sums. Who adds sums up takes the next one */
} PetscTCAcross;

/* Work space of reductions: partial sums of the blocks and the counter by which the last block knows itself. One per stream of work: reductions that share it must be ordered. */
typedef struct {
  PetscBool     cuda;
  PetscScalar  *partial; /* CUDA: [PETSCTC_MAX_DOTS * PETSCTC_MAX_BLOCKS] */
  unsigned     *arrived; /* CUDA: [1], zero between reductions */
  PetscTCAcross across;  /* set by the caller, at any time between steps */
} PetscTCReduceWork;

/* Does the current device have FP64 mma.m8n8k4 (compute capability 8.0 or newer)? */
PETSC_INTERN PetscErrorCode PetscTCDeviceHasMMA_CUDA(PetscBool *has);

PETSC_INTERN PetscErrorCode PetscTCReduceWorkCreate_Host(PetscTCReduceWork *work);
PETSC_INTERN PetscErrorCode PetscTCReduceWorkCreate_CUDA(PetscTCReduceWork *work);
PETSC_INTERN PetscErrorCode PetscTCReduceWorkDestroy_Host(PetscTCReduceWork *work);
PETSC_INTERN PetscErrorCode PetscTCReduceWorkDestroy_CUDA(PetscTCReduceWork *work);

/* result[k] <- x . y[k], k < count <= 8, one pass over x; each has the bits of a dot product alone */
PETSC_INTERN PetscErrorCode PetscTCMDot_Host(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[]);
/* result[0] <- sqrt(x . x). tensor: partial sums folded on the Tensor Core, else by shuffles on CUDA cores */
PETSC_INTERN PetscErrorCode PetscTCNorm2_Host(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream);
PETSC_INTERN PetscErrorCode PetscTCNorm2_CUDA(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream);
