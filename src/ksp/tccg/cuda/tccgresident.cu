/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgresident.cuh"

using namespace tccgresident;

namespace
{
constexpr int PER_KIND = 4;

const void *const kernels[] = {(const void *)ResidentKernel<false, PLAIN, false>,     (const void *)ResidentKernel<true, PLAIN, false>,     (const void *)ResidentKernel<false, PLAIN, true>,     (const void *)ResidentKernel<true, PLAIN, true>,
                               (const void *)ResidentKernel<false, SCALED, false>,    (const void *)ResidentKernel<true, SCALED, false>,    (const void *)ResidentKernel<false, SCALED, true>,    (const void *)ResidentKernel<true, SCALED, true>,
                               (const void *)ResidentKernel<false, PROJECTED, false>, (const void *)ResidentKernel<true, PROJECTED, false>, (const void *)ResidentKernel<false, PROJECTED, true>, (const void *)ResidentKernel<true, PROJECTED, true>};

/* Of a preconditioner: those that fold with shuffles and with the Tensor Core, and then those for forms in part */
const void *const *KernelsOf(Kind kind)
{
  return kernels + PER_KIND * kind;
}
} // namespace

PetscErrorCode TCCGChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, 3 * PER_KIND, chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled ? SCALED : PLAIN), (scaled ? 2 : 1) * PER_KIND, form, TCCGVectorsOfBlock(scaled), form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentRun(KernelsOf(!scaled ? PLAIN : v->constant ? PROJECTED : SCALED)[KSPTCKernelAt(form, TCCGVectorsOfBlock(scaled), steps->tensor)], form, TCCGVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
