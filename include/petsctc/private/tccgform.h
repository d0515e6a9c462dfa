/*
   The resident form of a matrix: rows dealt to the blocks of one kernel, each of which holds its own in shared memory. Raw pointers, sizes and a stream: no PETSc object. Every launcher X_CUDA has
   a host twin X_Host of the same signature, and the arrays that they make have the same bytes.

   Block k has the consecutive rows block_row[k] .. block_row[k + 1] - 1: as even a share of nonzeros + TCCG_ROW_WEIGHT rows as whole rows allow, which is how much of them a multiprocessor must hold.

   Its rows are cut, from its first on, into slices of 32 / lanes rows; block k has the slices from block_slice[k] on. `lanes`, a power of two from 1 to 32, is the least with which nonzeros <= 8 lanes
   rows. Slice s has (start[s + 1] - start[s]) / 32 slots, ceil(longest / lanes) of its longest row. Lane l of slot t has the place start[s] + 32 t + l: entry lanes t + l % lanes, in the order of the CSR
   row, of the slice's row l / lanes. column and value of a place without entry are -1 and 0: it is never multiplied, so an Inf in x stays with the rows that have the entry.
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TCCG_THREADS    = 512, /* of a block: 4, 8, 16 or 32 warps. To be tuned: it decides how many blocks few rows get, so both twins know it */
  TCCG_BLOCKS     = 132, /* at most: the multiprocessors of an H100 and an H200. A constant, so that sums do not depend on a larger device */
  TCCG_LANES      = 32,
  TCCG_LANE_SHARE = 8, /* nonzeros of a row that one lane takes, in the mean at most */
  TCCG_ROW_WEIGHT = 3  /* a row's vectors are as large as so many nonzeros */
};

/* What a device offers to a kernel of which one block runs on each multiprocessor */
typedef struct {
  int    blocks; /* at most TCCG_BLOCKS; 0: it does not run such kernels */
  size_t shared; /* bytes of a block */
} TCCGChip;

PETSC_INTERN PetscErrorCode TCCGChipGet_Host(TCCGChip *chip); /* that of an H200, without limit to the bytes: the form can be made for every matrix */
PETSC_INTERN PetscErrorCode TCCGChipGet_CUDA(TCCGChip *chip);

typedef struct {
  PetscBool    cuda; /* memory space of the arrays */
  int32_t      m;
  PetscCount   nnz;
  int32_t      blocks, lanes, slices, places;
  int32_t     *block_row;   /* [blocks + 1] */
  int32_t     *block_slice; /* [blocks + 1] */
  int32_t     *start;       /* [slices + 1] */
  int32_t     *column;      /* [places] */
  PetscScalar *value;       /* [places] */
  size_t       shared[2];   /* bytes that a block holds at most, matrix and vectors: without and with a diagonal preconditioner */
} TCCGForm;

/* The vectors of a block: x, r, p, A p, and with a diagonal preconditioner its diagonal and z */
static inline int TCCGVectorsOfBlock(PetscBool scaled)
{
  return scaled ? 6 : 4;
}

/* values, vectors, columns, starts of slices, in this order */
static inline size_t TCCGBytesOfBlock(PetscCount places, PetscCount rows, PetscCount slices, PetscBool scaled)
{
  return (size_t)places * (sizeof(PetscScalar) + sizeof(int32_t)) + (size_t)rows * TCCGVectorsOfBlock(scaled) * sizeof(PetscScalar) + (size_t)(slices + 1) * sizeof(int32_t);
}

/* The form of a square matrix of nnz > 0 nonzeros from its CSR arrays, which live where the form will. fits: the blocks' shares without preconditioner fit into chip->shared, and the form into device memory; otherwise, and on
   failure, the form holds nothing. Waits for the device. */
PETSC_INTERN PetscErrorCode TCCGFormCreate_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const TCCGChip *chip, TCCGForm *form, PetscBool *fits, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGFormCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const TCCGChip *chip, TCCGForm *form, PetscBool *fits, PetscTCStream stream);
/* Columns and values anew, from CSR arrays of the same pattern */
PETSC_INTERN PetscErrorCode TCCGFormFill_Host(const PetscInt i[], const PetscInt j[], const PetscScalar a[], TCCGForm *form, PetscTCStream stream);
PETSC_INTERN PetscErrorCode TCCGFormFill_CUDA(const PetscInt i[], const PetscInt j[], const PetscScalar a[], TCCGForm *form, PetscTCStream stream);
/* Takes a form that is all zero, or what a failed create has left */
PETSC_INTERN PetscErrorCode TCCGFormDestroy_Host(TCCGForm *form);
PETSC_INTERN PetscErrorCode TCCGFormDestroy_CUDA(TCCGForm *form);

/* What both twins of a create agree on before they look at a row; places that cannot fit are found here, before anything is allocated. blocks 0: it cannot fit */
static inline void TCCGFormShape(PetscInt m, PetscCount nnz, const TCCGChip *chip, TCCGForm *form)
{
  const PetscCount wanted_bytes = 65536; /* of a block, where there are more of them: a quarter of what it has, so that L1 keeps the rest */
  PetscCount       bytes, warps, blocks;

  form->m     = (int32_t)m;
  form->nnz   = nnz;
  form->lanes = 1;
  while (form->lanes < TCCG_LANES && nnz > (PetscCount)TCCG_LANE_SHARE * form->lanes * m) form->lanes *= 2;
  bytes        = (PetscCount)TCCGBytesOfBlock(nnz, m, 0, PETSC_FALSE);
  warps        = ((PetscCount)m * form->lanes - 1) / TCCG_LANES + 1;
  blocks       = PetscMax((warps - 1) / (TCCG_THREADS / TCCG_LANES) + 1, (bytes - 1) / wanted_bytes + 1);
  form->blocks = (int32_t)PetscMin(blocks, (PetscCount)chip->blocks);
  if (form->blocks && (size_t)bytes / form->blocks > chip->shared) form->blocks = 0;
}

/* The bytes of the largest block, from arrays in host memory: places of the blocks are block_start[] */
static inline void TCCGFormMeasure(const int32_t block_row[], const int32_t block_slice[], const int32_t block_start[], TCCGForm *form)
{
  form->shared[0] = form->shared[1] = 0;
  for (int k = 0; k < form->blocks; k++) {
    for (int scaled = 0; scaled < 2; scaled++) {
      const size_t bytes = TCCGBytesOfBlock(block_start[k + 1] - block_start[k], block_row[k + 1] - block_row[k], block_slice[k + 1] - block_slice[k], (PetscBool)scaled);

      form->shared[scaled] = PetscMax(form->shared[scaled], bytes);
    }
  }
}

static inline int32_t TCCGRowsOfSlice(const TCCGForm *form)
{
  return TCCG_LANES / form->lanes;
}

/* The first slices of the blocks */
static inline void TCCGFormCountSlices(const int32_t block_row[], int32_t block_slice[], TCCGForm *form)
{
  const int32_t rows = TCCGRowsOfSlice(form);

  block_slice[0] = 0;
  for (int k = 0; k < form->blocks; k++) block_slice[k + 1] = block_slice[k] + (block_row[k + 1] - block_row[k] + rows - 1) / rows;
  form->slices = block_slice[form->blocks];
}
