/* Tolerances in the precision of this PETSc */
#pragma once

#include <petscsys.h>

/* A relative tolerance chosen for double precision. The rounding unit of single precision is 8 times the square root of that of double: so the same part of the digits is asked for */
static inline PetscReal Tolerance(double tolerance)
{
#if PetscDefined(USE_REAL_SINGLE)
  return 8 * PetscSqrtReal((PetscReal)tolerance);
#else
  return tolerance;
#endif
}
