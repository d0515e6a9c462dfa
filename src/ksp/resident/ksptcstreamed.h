/*
   Resident solvers for matrices that do not fit on the chip: ksptcresident.h, but that every product reads the matrix from its layout (aijtclayout.h), and what is multiplied by is in device memory, where all
   blocks gather it. The other vectors of a block's rows stay in its shared memory for the whole call. Raw pointers, sizes and a stream: no PETSc object.

   Block b of B has the slices S b / B .. S (b + 1) / B - 1 of the layout's S, hence their rows. Number 32 R s + 32 r + l of a block is lane l of group r of its slice s, whether there is such a row or not.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <../src/ksp/resident/ksptcresident.h>

/* Can it be read so? Slices of one kind, which need no work between their warps */
static inline PetscBool KSPTCStreams(const AIJTCLayout *A)
{
  return (PetscBool)(A->m == A->n && A->nslices[AIJTC_ROWS] && !A->nslices[AIJTC_LONG] && !A->nslices[AIJTC_TILE] && !A->params.gather);
}

/* How its slices are dealt, and what a block keeps of them */
typedef struct {
  PetscInt blocks, slices; /* slices: of a block at most */
  PetscInt numbers;        /* elements of a vector of its rows */
  PetscInt vectors;        /* of its rows that it keeps */
  PetscInt slots;          /* of a slice at most that it keeps, if they are constants and offsets: 0, none */
  size_t   shared;         /* bytes */
} KSPTCDeal;

/* A slice in shared memory */
typedef struct {
  int32_t row;   /* first row, or place in rid */
  int16_t slots; /* kept, -1: to be read from the layout */
  int16_t rid;   /* is it a place? */
} KSPTCKeptSlice;

/* A slot of a slice of one lane a row in R groups: value, offset of the columns, masks */
template <int R>
struct KSPTCKeptSlot {
  PetscScalar a;
  int32_t     base;
  uint32_t    mask[R];
};

static inline size_t KSPTCBytesOfSlot(PetscInt rrows)
{
  return rrows == 4 ? sizeof(KSPTCKeptSlot<4>) : (rrows == 2 ? sizeof(KSPTCKeptSlot<2>) : sizeof(KSPTCKeptSlot<1>));
}

/* Are its slices constants and offsets, for the most part, of which a block may keep the slots? Without them every slice waits for its slots before it can ask for x */
static inline PetscBool KSPTCKeepsSlots(const AIJTCLayout *A)
{
  return (PetscBool)(A->nvalue < A->nnz && A->params.bs == 1);
}

/* Is it faster than steps around products? Rows of many nonzeros are best read by more warps than a resident kernel has. Measured: docs/log/2026-11.md */
static inline PetscBool KSPTCStreamsWell(const AIJTCLayout *A)
{
  const PetscCount long_rows = 32;

  return (PetscBool)(A->params.bs == 1 && A->nnz <= long_rows * A->m);
}

/* Is it what a resident solve reads whose matrix is not on the chip? A guess, by the rows of which an H200 has room for the least vectors */
static inline PetscBool KSPTCStreamsLikely(const AIJTCLayout *A)
{
  const PetscInt rows = 1800000;

  return (PetscBool)(KSPTCStreams(A) && KSPTCStreamsWell(A) && A->m <= rows);
}

/* From the least vectors on which the solver can do with, as many as fit up to the most that it has use for: with the slots, or if not even the least fit then, without. Whether anything fits, which
   deal.shared > chip->shared says, so depends on the number and the size of the slices alone. The device must run such kernels at all */
static inline KSPTCDeal KSPTCDealSlices(const AIJTCLayout *A, PetscInt least, PetscInt most, const KSPTCChip *chip)
{
  const PetscInt all  = A->nslices[AIJTC_ROWS];
  const PetscInt mean = (PetscInt)((A->nnz - 1) / PetscMax(A->m - A->nempty, 1)) + 1;
  KSPTCDeal      deal = {PetscMin(all, (PetscInt)chip->blocks), 0, 0, 0, 0, 0};

  deal.slices  = (all - 1) / deal.blocks + 1;
  deal.numbers = deal.slices * AIJTC_LANES * A->params.rrows;
  for (int without = KSPTCKeepsSlots(A) ? 0 : 1; without < 2; without++) {
    deal.slots = without ? 0 : mean + 2;
    for (deal.vectors = most; deal.vectors >= least; deal.vectors--) {
      deal.shared = (size_t)deal.numbers * deal.vectors * sizeof(PetscScalar) + (size_t)deal.slices * (sizeof(KSPTCKeptSlice) + deal.slots * KSPTCBytesOfSlot(A->params.rrows));
      if (deal.shared <= chip->shared) return deal;
    }
  }
  return deal;
}
/* Of every method, on the host */
PETSC_INTERN PetscErrorCode KSPTCStreamedCreate_Host(const AIJTCLayout *layout, KSPTCResidentWork *work, PetscBool *can);
