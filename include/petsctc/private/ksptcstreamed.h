/*
   Resident solvers for matrices that do not fit on the chip: ksptcresident.h, but that every product reads the matrix from its layout (aijtclayout.h), and what is multiplied by is in device memory, where all
   blocks gather it. The other vectors of a block's rows stay in its shared memory for the whole call. Raw pointers, sizes and a stream: no PETSc object.

   Block b of B has the slices S b / B .. S (b + 1) / B - 1 of the layout's S, hence their rows. Number 32 R s + 32 r + l of a block is lane l of group r of its slice s, whether there is such a row or not.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <petsctc/private/ksptcresident.h>

/* Can it be read so? Slices of one kind, which need no work between their warps */
static inline PetscBool KSPTCStreams(const AIJTCLayout *A)
{
  return (PetscBool)(A->m == A->n && A->nslices[AIJTC_ROWS] && !A->nslices[AIJTC_LONG] && !A->nslices[AIJTC_TILE] && !A->params.gather);
}

/* How its slices are dealt */
typedef struct {
  PetscInt blocks, slices; /* slices: of a block at most */
  size_t   shared;         /* bytes of a block for so many vectors of its rows */
} KSPTCDeal;

static inline KSPTCDeal KSPTCDealSlices(const AIJTCLayout *A, int vectors)
{
  const PetscInt all  = A->nslices[AIJTC_ROWS];
  KSPTCDeal      deal = {PetscMin(all, (PetscInt)KSPTC_BLOCKS), 0, 0};

  deal.slices = (all - 1) / deal.blocks + 1;
  deal.shared = (size_t)deal.slices * AIJTC_LANES * A->params.rrows * vectors * sizeof(PetscScalar);
  return deal;
}
