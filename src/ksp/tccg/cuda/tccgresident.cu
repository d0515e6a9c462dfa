/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgresident.cuh"

using namespace tccgresident;

namespace
{
constexpr int PER_KIND = 2;

#define KERNELS_OF(kind, part) (const void *)ResidentKernel<Share<kind, part>>
const void *const kernels[] = {KERNELS_OF(PLAIN, false), KERNELS_OF(PLAIN, true), KERNELS_OF(SCALED, false), KERNELS_OF(SCALED, true), KERNELS_OF(PROJECTED, false), KERNELS_OF(PROJECTED, true)};
#undef KERNELS_OF

/* Of a preconditioner: for forms that blocks hold, and for those in part */
const void *const *KernelsOf(Kind kind)
{
  return kernels + PER_KIND * kind;
}
} // namespace

PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  if (KSPTCFormIsThin(form)) {
    PetscCall(TCCGThinCreate_CUDA(form, scaled, work, can));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPTCFormWorkCreate(KernelsOf(scaled ? SCALED : PLAIN), (scaled ? 2 : 1) * PER_KIND, form, TCCGVectorsOfBlock(scaled), form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  if (KSPTCFormIsThin(form)) {
    PetscCall(TCCGThin_CUDA(form, chunk, v, steps, work, refused, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPTCResidentRun(KernelsOf(!scaled ? PLAIN : v->constant ? PROJECTED : SCALED)[KSPTCKernelAt(form, TCCGVectorsOfBlock(scaled))], form, TCCGVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
