/*
   Launches the resident kernel. Method, layout, memory traffic, references: tcbcgsresident.cuh
*/
#include "tcbcgsresident.cuh"

using namespace tcbcgsresident;

namespace
{
constexpr int PER_SIDE = 8;

/* Of a side: classic with shuffles and with the Tensor Core, both for forms in part, and then those with one reduction less */
const void *const kernels[] = {(const void *)ResidentKernel<false, Share<NOWHERE, false>>,
                               (const void *)ResidentKernel<true, Share<NOWHERE, false>>,
                               (const void *)ResidentKernel<false, Share<NOWHERE, true>>,
                               (const void *)ResidentKernel<true, Share<NOWHERE, true>>,
                               (const void *)SingleKernel<false, NOWHERE, false>,
                               (const void *)SingleKernel<true, NOWHERE, false>,
                               (const void *)SingleKernel<false, NOWHERE, true>,
                               (const void *)SingleKernel<true, NOWHERE, true>,
                               (const void *)ResidentKernel<false, Share<LEFT, false>>,
                               (const void *)ResidentKernel<true, Share<LEFT, false>>,
                               (const void *)ResidentKernel<false, Share<LEFT, true>>,
                               (const void *)ResidentKernel<true, Share<LEFT, true>>,
                               (const void *)SingleKernel<false, LEFT, false>,
                               (const void *)SingleKernel<true, LEFT, false>,
                               (const void *)SingleKernel<false, LEFT, true>,
                               (const void *)SingleKernel<true, LEFT, true>,
                               (const void *)ResidentKernel<false, Share<RIGHT, false>>,
                               (const void *)ResidentKernel<true, Share<RIGHT, false>>,
                               (const void *)ResidentKernel<false, Share<RIGHT, true>>,
                               (const void *)ResidentKernel<true, Share<RIGHT, true>>,
                               (const void *)SingleKernel<false, RIGHT, false>,
                               (const void *)SingleKernel<true, RIGHT, false>,
                               (const void *)SingleKernel<false, RIGHT, true>,
                               (const void *)SingleKernel<true, RIGHT, true>};

const void *const *KernelsOf(Side side)
{
  return kernels + PER_SIDE * side;
}
} // namespace

PetscErrorCode TCBCGSChipGet_CUDA(KSPTCChip *chip)
{
  PetscFunctionBegin;
  PetscCall(KSPTCChipOfKernels(kernels, 3 * PER_SIDE, chip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateWork(const KSPTCForm *form, PetscBool scaled, bool single, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled ? LEFT : NOWHERE), (scaled ? 2 : 1) * PER_SIDE, form, TCBCGSVectorsOfBlock(scaled, scaled, single), 2 * (PetscCount)form->m, sizeof(TCBCGSScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  if (KSPTCFormIsThin(form)) PetscCall(TCBCGSThinCreate_CUDA(form, scaled, work, can));
  else PetscCall(CreateWork(form, scaled, false, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSSingleCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCheck(!KSPTCFormIsThin(form), PETSC_COMM_SELF, PETSC_ERR_SUP, "Thin blocks have classic recurrences");
  PetscCall(CreateWork(form, scaled, true, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled  = v->diagonal != NULL;
  const Side side    = !scaled ? NOWHERE : (v->right ? RIGHT : LEFT);
  const auto vectors = TCBCGSVectorsOfBlock(scaled, v->right, v->single);

  PetscFunctionBegin;
  PetscCheck(scaled || !v->right, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "There is no preconditioner to stand on the right");
  if (KSPTCFormIsThin(form)) {
    PetscCall(TCBCGSThin_CUDA(form, chunk, v, steps, work, refused, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPTCResidentRun(KernelsOf(side)[(v->single ? 4 : 0) + KSPTCKernelAt(form, vectors, steps->tensor)], form, vectors, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
