/* Preloaded: makes PETSc say that it is another release than the one the library was built for. */
#include <petscsys.h>

PETSC_EXTERN PetscErrorCode PetscGetVersionNumber(PetscInt *major, PetscInt *minor, PetscInt *subminor, PetscInt *release)
{
  if (major) *major = PETSC_VERSION_MAJOR;
  if (minor) *minor = PETSC_VERSION_MINOR + 73;
  if (subminor) *subminor = 0;
  if (release) *release = 1;
  return PETSC_SUCCESS;
}
