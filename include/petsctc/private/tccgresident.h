/*
   Iterations of conjugate gradients without the host, in one call (ksptcresident.h): PCNONE or a diagonal preconditioner. Raw pointers, sizes and a stream: no PETSc object.
*/
#pragma once

#include <petsctc/private/ksptcstreamed.h>

typedef struct {
  PetscScalar       *x, *r, *p;
  PetscScalar       *z;        /* B r at the beginning and at the end; r if there is no preconditioner */
  const PetscScalar *diagonal; /* of B, NULL if there is no preconditioner */
  PetscScalar       *w;        /* work, may be z */
  PetscBool          constant; /* B ends with the projection against a constant null space; then there is a diagonal, and z what the steps leave of it (kspsteps.h: mean, shift) */
  const PetscScalar *b;        /* the right-hand side, for those that make the residual anew (tccgpipelined.h) */
} TCCGVectors;

/* The vectors of a block: of its rows x, r, p, A p, and with a diagonal preconditioner its diagonal and z; of its ghosts p and z */
PETSCTC_HOST_DEVICE KSPTCVectors TCCGVectorsOfBlock(bool scaled)
{
  return {scaled ? 6 : 4, 2};
}

/* What the device offers to the kernel */
PETSC_INTERN PetscErrorCode TCCGChipGet_CUDA(KSPTCChip *chip);

/* Work for calls with this form. can: the device runs the kernel with it, scaled: with a diagonal preconditioner, and has the memory; if not, `work` holds nothing */
PETSC_INTERN PetscErrorCode TCCGResidentCreate_Host(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGResidentCreate_CUDA(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);

/* Ends before `last` where the scalars stop. steps->tensor: sums fold on the Tensor Core. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode TCCGResident_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGResident_CUDA(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);

/* The same with the matrix read from its layout (ksptcstreamed.h). can: as above, and the layout is of that kind */
PETSC_INTERN PetscErrorCode TCCGStreamedCreate_Host(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode TCCGStreamedCreate_CUDA(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can);

PETSC_INTERN PetscErrorCode TCCGStreamed_Host(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGStreamed_CUDA(const AIJTCLayout *layout, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
