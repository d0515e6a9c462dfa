/*
   Launches the resident kernel of thin blocks. Method, layout, memory traffic, references: tcbcgsthin.cuh
*/
#include "tcbcgsthin.cuh"

using namespace tcbcgsresident;

namespace
{
/* With shuffles and with the Tensor Core; then with a diagonal preconditioner */
const void *const kernels[] = {(const void *)ResidentKernel<ThinShare<false>>, (const void *)ResidentKernel<ThinShare<true>>};
} // namespace

/* Vectors of a solver in device memory: x, rp, v, t, and the diagonal */
PetscErrorCode TCBCGSThinCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  const PetscCount vectors = scaled ? 5 : 4;

  PetscFunctionBegin;
  PetscCall(KSPTCFormWorkCreate(kernels + (scaled ? 1 : 0), 1, form, TCBCGSThinVectorsOfBlock(), 2 * (PetscCount)form->m, sizeof(TCBCGSScalars), Barrier::records, work, can));
  if (*can) PetscCall(KSPTCWorkVectorsCreate(vectors * form->m, work, can));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBCGSThin_CUDA(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(!v->single && !v->right, PETSC_COMM_SELF, PETSC_ERR_SUP, "Thin blocks have classic recurrences, and a preconditioner from the left");
  PetscCall(KSPTCResidentRun(kernels[v->diagonal ? 1 : 0], form, TCBCGSThinVectorsOfBlock(), chunk, v, steps, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
