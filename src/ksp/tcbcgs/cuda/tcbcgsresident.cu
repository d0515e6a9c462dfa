/*
   Launches the resident kernel. Method, layout, memory traffic, references: tcbcgsresident.cuh
*/
#include "tcbcgsresident.cuh"

using namespace tcbcgsresident;

namespace
{
constexpr int PER_SIDE = 4;

/* Of a side: classic, for forms that blocks hold and for those in part, and then those with one reduction less */
#define KERNELS_OF(side) (const void *)ResidentKernel<Share<side, false>>, (const void *)ResidentKernel<Share<side, true>>, (const void *)SingleKernel<side, false>, (const void *)SingleKernel<side, true>
const void *const kernels[] = {KERNELS_OF(NOWHERE), KERNELS_OF(LEFT), KERNELS_OF(RIGHT)};
#undef KERNELS_OF

const void *const *KernelsOf(Side side)
{
  return kernels + PER_SIDE * side;
}
} // namespace

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
  PetscCall(KSPTCResidentRun(KernelsOf(side)[(v->single ? 2 : 0) + KSPTCKernelAt(form, vectors)], form, vectors, chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
