/* What the library did since PetscTCInitialize(), printed at the end with -petsctc_summary */
#pragma once

#include <petscsys.h>

typedef struct {
  PetscInt64 mult;            /* products with a layout of ours */
  PetscInt64 mult_parent;     /* products that the parent type did */
  PetscInt64 builds;          /* layouts built */
  PetscInt64 refreshes;       /* layouts whose values were gathered again */
  PetscInt64 fused, fallback; /* Krylov solves by the fused steps; by PETSc's own solver */
  PetscInt64 chip, streamed;  /* of the fused ones, those with many iterations in one kernel: the matrix on the chip; read from its layout */
  PetscInt64 columns;         /* and those that were columns of a block */
  PetscInt64 iterations;      /* of all solves */
  PetscInt64 bytes;           /* of the largest layout */
  PetscBool  cuda;            /* that one is on the GPU */
  char       why[160];        /* what stood against a faster way the last time */
} PetscTCCounts;

PETSC_INTERN PetscTCCounts petsctc_counts;

/* A layout has been built */
static inline void PetscTCCountBuild(PetscCount bytes, PetscBool cuda)
{
  petsctc_counts.builds++;
  if ((PetscInt64)bytes <= petsctc_counts.bytes) return;
  petsctc_counts.bytes = (PetscInt64)bytes;
  petsctc_counts.cuda  = cuda;
}
