/* The one place for differences between PETSc versions. 3.26 is built and tested, 3.25 must compile. */
#pragma once

#include <petscversion.h>

#if PETSC_VERSION_LT(3, 25, 0)
  #error "PETSc-TC needs PETSc 3.25 or newer"
#endif
