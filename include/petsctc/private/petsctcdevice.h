/* Questions about the device that several parts of the glue ask */
#pragma once

#include <petscvec.h>

PETSC_INTERN PetscErrorCode PetscTCVecOnDevice(Vec, PetscBool *);
PETSC_INTERN PetscErrorCode PetscTCDeviceHasRoom(PetscLogDouble, PetscBool *);
