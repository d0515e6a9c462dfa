/* MATAIJTC's PETSc side: the classes (parent x seq/mpi), what each matrix carries, the parent scope. Kernels do not include this. */
#pragma once

#include <petsc/private/matimpl.h>
#include <petsctc.h>
#include <petsctc/private/aijtclayout.h>

PETSC_INTERN PetscLogEvent MAT_AIJTCBuild, MAT_AIJTCRefresh;
