/*
   Method
     Host twin of cuda/spmm.cu: one product with a vector for each column. Host matrices keep PETSc's product with a dense matrix, which takes four columns at a time; this is what tests compare with.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     The layout once a column
*/
#include <petsctc/private/aijtcops.h>

PetscErrorCode AIJTCLayoutMatMult_Host(const AIJTCLayout *layout, PetscInt columns, const PetscScalar x[], PetscCount xstride, PetscScalar z[], PetscCount zstride, PetscTCStream stream)
{
  PetscFunctionBegin;
  for (PetscInt c = 0; c < columns; c++) PetscCall(AIJTCLayoutMult_Host(layout, PETSC_FALSE, x + c * xstride, NULL, z + c * zstride, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
