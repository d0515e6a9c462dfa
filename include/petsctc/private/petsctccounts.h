/* What the library did since PetscTCInitialize(), printed at the end with -petsctc_summary */
#pragma once

#include <petscsys.h>

typedef struct {
  PetscInt64 mult;            /* products with a layout of ours */
  PetscInt64 mult_parent;     /* products that the parent type did */
  PetscInt64 builds;          /* layouts built */
  PetscInt64 refreshes;       /* layouts whose values were gathered again */
  PetscInt64 fused, fallback; /* Krylov solves by the fused steps; by PETSc's own solver */
} PetscTCCounts;

PETSC_INTERN PetscTCCounts petsctc_counts;
