/*
   Launches the resident kernel. Method, layout, memory traffic, references: tcbcgsresident.cuh
*/
#include "tcbcgsresident.cuh"

using namespace tcbcgsresident;

namespace
{
const void *const kernels[] = {(const void *)ResidentKernel<false, NOWHERE>, (const void *)ResidentKernel<true, NOWHERE>, (const void *)ResidentKernel<false, LEFT>,
                               (const void *)ResidentKernel<true, LEFT>,     (const void *)ResidentKernel<false, RIGHT>,  (const void *)ResidentKernel<true, RIGHT>};

/* Of a side: the one that folds with shuffles, and behind it the one with the Tensor Core */
const void *const *KernelsOf(Side side)
{
  return kernels + 2 * side;
}
} // namespace

PetscErrorCode TCBCGSChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, 6, chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  const KSPTCGrid grid = KSPTCGridOf(form, TCBCGSVectorsOfBlock(scaled).rows);

  PetscFunctionBegin;
  PetscCall(KSPTCResidentWorkCreate(KernelsOf(scaled ? LEFT : NOWHERE), scaled ? 4 : 2, &grid, 2 * (PetscCount)form->m, sizeof(TCBCGSScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;
  const Side side   = !scaled ? NOWHERE : (v->right ? RIGHT : LEFT);

  PetscFunctionBegin;
  PetscCheck(scaled || !v->right, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "There is no preconditioner to stand on the right");
  PetscCall(KSPTCResidentRun(KernelsOf(side)[steps->tensor ? 1 : 0], form, TCBCGSVectorsOfBlock(scaled).rows, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
