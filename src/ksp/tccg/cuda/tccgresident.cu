/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgresident.cuh"

using namespace tccgresident;

namespace
{
const void *const kernels[] = {(const void *)ResidentKernel<false, false>, (const void *)ResidentKernel<true, false>, (const void *)ResidentKernel<false, true>, (const void *)ResidentKernel<true, true>};

/* Of a preconditioner: the one that folds with shuffles, and behind it the one with the Tensor Core */
const void *const *KernelsOf(bool scaled)
{
  return kernels + (scaled ? 2 : 0);
}
} // namespace

PetscErrorCode TCCGChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, 4, chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  const KSPTCGrid grid = KSPTCGridOf(form, TCCGVectorsOfBlock(scaled).rows);

  PetscFunctionBegin;
  PetscCall(KSPTCResidentWorkCreate(KernelsOf(scaled), 2, &grid, form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentRun(KernelsOf(scaled)[steps->tensor ? 1 : 0], form, TCCGVectorsOfBlock(scaled).rows, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
