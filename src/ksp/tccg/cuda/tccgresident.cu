/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgregister.cuh"
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
  if (!*can && !scaled) PetscCall(TCCGRegisterCreate_CUDA(form, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGRegisterCreate_CUDA(const KSPTCForm *form, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = (PetscBool)(form->most_rows <= TCCG_REGISTER_ROWS * TCCG_REGISTER_THREADS);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCFormWorkCreate(TCCGRegisterKernels, 2, form, TCCGTightVectorsOfBlock(), form->m, sizeof(TCCGScalars), Barrier::records, work, can, TCCG_REGISTER_THREADS));
  work->tight = *can;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const bool scaled = v->diagonal != NULL;

  PetscFunctionBegin;
  if (work->tight) {
    PetscCall(KSPTCResidentRun(TCCGRegisterKernels[steps->tensor ? 1 : 0], form, TCCGTightVectorsOfBlock(), chunk, v, steps, work, refused, stream, TCCG_REGISTER_THREADS));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPTCResidentRun(KernelsOf(!scaled ? PLAIN : v->constant ? PROJECTED : SCALED)[steps->tensor ? 1 : 0], form, TCCGVectorsOfBlock(scaled), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
