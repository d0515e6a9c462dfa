/* Is there a GPU? PETSc's own device queries raise errors, or crash later, on a machine without one, so the CUDA run time is asked. */
#include <petsctc.h> /*I "petsctc.h" I*/
#include <petsctc/private/petsctcdevice.h>
#include <petsc/private/petscimpl.h>
#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif

#if PetscDefined(HAVE_CUDA)
/* PETSc's switches -device_enable none and -device_enable_cuda none */
static PetscErrorCode PetscTCDeviceDisabled(PetscBool *disabled)
{
  PetscFunctionBegin;
  *disabled = PETSC_FALSE;
  for (const char *key : {"-device_enable", "-device_enable_cuda"}) {
    char      value[16];
    PetscBool set, none;

    PetscCall(PetscOptionsGetString(NULL, NULL, key, value, sizeof(value), &set));
    if (!set) continue;
    PetscCall(PetscStrcasecmp(value, "none", &none));
    if (none) *disabled = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*@
  PetscTCDeviceUsable - Tells whether every process of a communicator can use a CUDA device

  Collective

  Input Parameter:
. comm - the communicator

  Output Parameter:
. usable - `PETSC_TRUE` if PETSc has CUDA, a device is found on every process, and PETSc's options do not disable it

  Options Database Keys:
+ -device_enable none      - PETSc's switch for all devices
- -device_enable_cuda none - PETSc's switch for CUDA devices

  Level: advanced

  Note:
  No CUDA context is made and nothing errors on a machine without a GPU.

.seealso: `MATAIJTC`, `PetscTCInitialize()`
@*/
PetscErrorCode PetscTCDeviceUsable(MPI_Comm comm, PetscBool *usable)
{
  PetscMPIInt mine = 0;

  PetscFunctionBegin;
  PetscAssertPointer(usable, 2);
#if PetscDefined(HAVE_CUDA)
  {
    PetscBool disabled;
    int       count = 0;

    PetscCall(PetscTCDeviceDisabled(&disabled));
    if (!disabled && cudaGetDeviceCount(&count) == cudaSuccess) mine = count > 0;
    else (void)cudaGetLastError(); /* clear it: PETSc would find it at its next check */
  }
#endif
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MIN, comm));
  *usable = mine ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Would so many bytes, which are wanted but not needed, leave most of the free device memory to others? */
PetscErrorCode PetscTCDeviceHasRoom(PETSC_UNUSED PetscLogDouble bytes, PetscBool *room)
{
  PetscFunctionBegin;
  *room = PETSC_TRUE;
#if PetscDefined(HAVE_CUDA)
  {
    size_t free = 0, total = 0;

    PetscCallCUDA(cudaMemGetInfo(&free, &total));
    *room = (PetscBool)(4.0 * bytes <= (PetscLogDouble)free);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does a device kernel find the newest values of v, and may it write them? A vector bound to the CPU keeps its CUDA type, but its operations no longer say where the values are */
PetscErrorCode PetscTCVecOnDevice(Vec v, PetscBool *device)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, device, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecBoundToCPU(v, &bound));
  if (bound) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
