/*
   Method
     z = A x or z = y + A x: at most one launch for ROWS slices, one for TILE and LONG slices together, and a tiny one that adds the pieces of long rows if one has more than one. A kind that the matrix
     does not have is not launched. Nothing waits for the device,
     and each launch may start while the one before it ends (mult.cuh).

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     slots.cuh, mult_rows.cuh, mult_tiles.cu

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "mult.cuh"

PetscErrorCode AIJTCLayoutMult_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutMult_Host()");
  PetscCall(AIJTCLayoutMultTiles_CUDA(layout, tensor, x, y, z, stream));
  PetscCall(AIJTCLayoutMultRows_CUDA(layout, x, y, z, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
