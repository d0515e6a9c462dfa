/*
   Launches the resident kernel of thin blocks. Method, layout, memory traffic, references: tccgthin.cuh
*/
#include "tccgthin.cuh"

using namespace tccgresident;

namespace
{
/* With shuffles and with the Tensor Core; then with a diagonal preconditioner */
const void *const kernels[] = {(const void *)ResidentKernel<ThinShare<PLAIN>>, (const void *)ResidentKernel<ThinShare<SCALED>>};
} // namespace

/* Vectors of a solver in device memory: A p, r, x, and the diagonal */
PetscErrorCode TCCGThinCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  const PetscCount vectors = scaled ? 4 : 3;

  PetscFunctionBegin;
  PetscCall(KSPTCFormWorkCreate(kernels + (scaled ? 1 : 0), 1, form, TCCGThinVectorsOfBlock(scaled), form->m, sizeof(TCCGScalars), Barrier::records, work, can));
  if (*can) PetscCall(KSPTCWorkVectorsCreate(vectors * form->m, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGThin_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(!v->s && !v->constant, PETSC_COMM_SELF, PETSC_ERR_SUP, "Thin blocks have classic recurrences, and no null space");
  PetscCall(KSPTCResidentRun(kernels[v->diagonal ? 1 : 0], form, TCCGThinVectorsOfBlock(v->diagonal != NULL), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
