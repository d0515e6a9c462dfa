/*
   Iterations of BiCGSTAB without the host, in one call (ksptcresident.h): PCNONE or a diagonal preconditioner, from the left or from the right. Raw pointers, sizes and a stream: no PETSc object.
*/
#pragma once

#include <../src/ksp/resident/ksptcstreamed.h>

typedef struct {
  PetscScalar       *x, *r, *p, *v; /* where t = 0 stops an iteration r may have been work */
  PetscScalar       *s, *t;         /* work, but for s where the iteration stops for t = 0 */
  const PetscScalar *rp;
  const PetscScalar *diagonal; /* of B, NULL if there is no preconditioner */
  PetscBool          right;    /* B stands to the right of the matrix: x is then that of A B x = b */
  PetscBool          single;   /* an iteration has a reduction less: that of `advance` in place of update and direction (kspsteps.h). Behind a call p is the last iteration's, unless `advanced` is set. Only with the matrix on the chip */
} TCBCGSVectors;

/* The vectors of a block: of its rows x, r, rp, p, v, t, with a diagonal preconditioner its diagonal, and from the right what is multiplied by; of its ghosts r, p, v, and from the right what is multiplied by, or with a
   reduction less t, which may wait there */
PETSCTC_HOST_DEVICE KSPTCVectors TCBCGSVectorsOfBlock(bool scaled, bool right, bool single)
{
  return {6 + (scaled ? 1 : 0) + (right ? 1 : 0), right || single ? 4 : 3};
}

/* Those of thin blocks: of its rows p and r, of its ghosts r, p, v; and of v what there is room for. The other vectors are in device memory */
PETSCTC_HOST_DEVICE KSPTCVectors TCBCGSThinVectorsOfBlock()
{
  return {2, 3, 1};
}

/* Work for calls with this form. can: the device runs the kernel with it, scaled: with a diagonal preconditioner, on whichever side, and has the memory; if not, `work` holds nothing. The second for those with a reduction less */
PETSC_INTERN PetscErrorCode TCBCGSResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCBCGSSingleCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);

/* For forms of thin blocks, with classic recurrences and no preconditioner from the right: what those above and below do with them */
PETSC_INTERN PetscErrorCode TCBCGSThinCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCBCGSThin_CUDA(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* Ends before `last` where the scalars stop. steps->tensor: sums fold on the Tensor Core. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode TCBCGSResident_Host(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCBCGSResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* The same with the matrix read from its layout (ksptcstreamed.h). can: as above, and the layout is of that kind */
PETSC_INTERN PetscErrorCode TCBCGSStreamedCreate_CUDA(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can);

PETSC_INTERN PetscErrorCode TCBCGSStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCBCGSStreamed_CUDA(const AIJTCLayout *layout, const KSPTCChunk<TCBCGSScalars> *chunk, const TCBCGSVectors *v, TCBCGSWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
