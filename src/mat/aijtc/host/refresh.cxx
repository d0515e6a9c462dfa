/*
   Method
     One gather through the stored permutation: val[s] <- a[perm[s]], 0 in a slot without entry. The value array is made at the first refresh, since a layout that
     will live on the device needs none on the host.

   Memory traffic
     24 bytes a slot (permutation, matrix value, slot value)
*/
#include <petsctc/private/aijtclayout.h>

PetscErrorCode AIJTCLayoutRefresh_Host(AIJTCLayout *layout, const PetscScalar a[], PETSC_UNUSED PetscTCStream stream)
{
  const PetscCount slots = layout->ntiles * AIJTC_TILE;

  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutRefresh_CUDA()");
  if (!layout->val) PetscCall(PetscMalloc1(slots, &layout->val));
  for (PetscCount s = 0; s < slots; s++) layout->val[s] = layout->perm[s] < 0 ? 0.0 : a[layout->perm[s]];
  PetscFunctionReturn(PETSC_SUCCESS);
}
