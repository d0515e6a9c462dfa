/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgresident.cuh"

using namespace tccgresident;

namespace
{
constexpr int KERNELS = 6;

const void *const kernels[KERNELS] = {(const void *)ResidentKernel<false, PLAIN>, (const void *)ResidentKernel<true, PLAIN>,      (const void *)ResidentKernel<false, SCALED>,
                                      (const void *)ResidentKernel<true, SCALED>, (const void *)ResidentKernel<false, PROJECTED>, (const void *)ResidentKernel<true, PROJECTED>};

/* Of a preconditioner: the one that folds with shuffles, and behind it the one with the Tensor Core */
const void *const *KernelsOf(Kind kind)
{
  return kernels + 2 * kind;
}
} // namespace

PetscErrorCode TCCGChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, KERNELS, chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled ? SCALED : PLAIN), scaled ? 4 : 2, form, TCCGVectorsOfBlock(scaled), form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentRun(KernelsOf(!scaled ? PLAIN : v->constant ? PROJECTED : SCALED)[steps->tensor ? 1 : 0], form, TCCGVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
