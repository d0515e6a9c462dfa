/*
   Method
     The work of resident solvers on the host, most of which need none, and what is asked when a call is over.

   Layout
     include/petsctc/private/ksptcresident.h

   Memory traffic
     none
*/
#include <petsctc/private/ksptcstreamed.h>

PetscErrorCode KSPTCResidentCreate_Host(PETSC_UNUSED const KSPTCForm *form, PETSC_UNUSED PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCStreamedCreate_Host(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = KSPTCStreams(layout);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentDestroy_Host(KSPTCResidentWork *work)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(work->vectors));
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentCheck(const KSPTCResidentWork *work)
{
  PetscFunctionBegin;
  if (work->late && work->late->late)
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Block %d waited more than %g s for the others in iteration %d: the kernel gave up. Is the GPU shared with a debugger, or this a defect?", work->late->block, (double)work->patience, work->late->iteration);
  PetscFunctionReturn(PETSC_SUCCESS);
}
