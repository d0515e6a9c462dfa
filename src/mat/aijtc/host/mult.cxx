/*
   Method
     The product z = A x or z = y + A x from the tiles, one matrix row after the other: the oracle of the CUDA kernels, and the product of machines without a GPU.

     Entries of a row are added one by one in the order of the matrix row, beginning with y: the order of a plain CSR product, so medium and short rows have the
     bits of MATSEQAIJ's product without inodes (compiled alike). A long row adds the sums of its pieces, each begun at 0. The kernels add the same numbers in
     another, equally fixed order (four partial sums a tile row), so compare them with a tolerance of a few eps sum |a| |x|.

     A row's entries fill its slots from the first on, hence the first slot without entry ends the row. Such a slot is never multiplied: an Inf or NaN in x stays
     with the rows that have the entry.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     12 bytes a slot, 12 bytes a row (rid, z), the gathered x: a 7-point matrix of 101^3 rows moves 120 MB

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include <petsctc/private/aijtclayout.h>

namespace
{
/* sum + the entries in slots slot..slot+width-1 of `tiles` consecutive tiles */
inline PetscScalar AddSlots(const AIJTCLayout *layout, PetscCount slot, PetscCount tiles, int width, const PetscScalar x[], PetscScalar sum)
{
  const PetscScalar *val = layout->val + slot;
  const PetscInt    *col = layout->col + slot;

  for (PetscCount t = 0; t < tiles; t++, val += AIJTC_TILE, col += AIJTC_TILE) {
    for (int k = 0; k < width; k++) {
      if (col[k] < 0) return sum;
      sum += val[k] * x[col[k]];
    }
  }
  return sum;
}

void LongRows(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  for (PetscInt q = 0; q < layout->nlong; q++) {
    const PetscInt r   = layout->rid[q];
    PetscScalar    sum = y ? y[r] : 0.0;

    for (PetscInt p = layout->long_piece[q]; p < layout->long_piece[q + 1]; p++) sum += AddSlots(layout, AIJTC_TILE * layout->piece_tile[p], layout->piece_tile[p + 1] - layout->piece_tile[p], AIJTC_TILE, x, 0.0);
    z[r] = sum;
  }
}

void MediumRows(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  for (PetscInt q = 0; q < layout->nmedium; q++) {
    const PetscInt   r = layout->rid[layout->rid_medium + q], s = q / AIJTC_TILE_ROWS;
    const PetscCount first = layout->slice_tile[s];

    z[r] = AddSlots(layout, AIJTC_TILE * first + AIJTC_TILE_COLS * (q % AIJTC_TILE_ROWS), layout->slice_tile[s + 1] - first, AIJTC_TILE_COLS, x, y ? y[r] : 0.0);
  }
}

void ShortRows(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  for (int k = 0; k < 3; k++) {
    const int width = AIJTC_TILE_COLS >> k;

    for (PetscInt q = 0; q < layout->nshort[k]; q++) {
      const PetscInt r = layout->rid[layout->rid_short[k] + q];

      z[r] = AddSlots(layout, AIJTC_TILE * layout->short_tile[k] + (PetscCount)width * q, 1, width, x, y ? y[r] : 0.0);
    }
  }
}

void EmptyRows(const AIJTCLayout *layout, const PetscScalar y[], PetscScalar z[])
{
  if (z == y) return;
  for (PetscInt q = 0; q < layout->nempty; q++) {
    const PetscInt r = layout->rid[layout->rid_empty + q];

    z[r] = y ? y[r] : 0.0;
  }
}
} // namespace

PetscErrorCode AIJTCLayoutMult_Host(const AIJTCLayout *layout, PETSC_UNUSED PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PETSC_UNUSED PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutMult_CUDA()");
  PetscCheck(layout->val || !layout->ntiles, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The layout has no values: call AIJTCLayoutRefresh_Host() first");
  LongRows(layout, x, y, z);
  MediumRows(layout, x, y, z);
  ShortRows(layout, x, y, z);
  EmptyRows(layout, y, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}
