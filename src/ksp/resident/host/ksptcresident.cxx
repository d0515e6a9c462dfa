/*
   Method
     The work of resident solvers on the host, most of which need little, and what is asked when a call is over.

   Layout
     src/ksp/resident/ksptcresident.h

   Memory traffic
     none
*/
#include <../src/ksp/resident/ksptcstreamed.h>

PetscErrorCode KSPTCResidentCreate_Host(PETSC_UNUSED const KSPTCForm *form, PETSC_UNUSED PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work          = {};
  work->patience = KSPTC_PATIENCE;
  *can           = PETSC_TRUE;
  PetscCall(PetscNew(&work->late));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCStreamedCreate_Host(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = KSPTCStreams(layout);
  if (*can) PetscCall(KSPTCResidentCreate_Host(NULL, PETSC_FALSE, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentDestroy_Host(KSPTCResidentWork *work)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(work->vectors));
  PetscCall(PetscFree(work->late));
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool KSPTCGivesUp_Host(PetscInt first, KSPTCResidentWork *work)
{
  if (!KSPTCHasGivenUp(work) && KSPTCNextFault(work)) *work->late = {0, (int)first + 1, 1};
  return KSPTCHasGivenUp(work);
}

PetscErrorCode KSPTCResidentCheck(const KSPTCResidentWork *work)
{
  PetscFunctionBegin;
  if (KSPTCHasGivenUp(work))
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Block %d of the resident kernel waited %g s for the others in iteration %d and gave up. Vectors are as before the call: go on by steps, or with new work", work->late->block, (double)work->patience,
            work->late->iteration);
  PetscFunctionReturn(PETSC_SUCCESS);
}
