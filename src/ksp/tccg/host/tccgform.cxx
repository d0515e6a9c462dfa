/*
   Method
     The resident form of a matrix (tccgform.h) on the host: the twin of cuda/tccgform.cu, and the oracle of its tests.

   Layout
     include/petsctc/private/tccgform.h

   Memory traffic
     CSR once, the form once
*/
#include <petsctc/private/tccgform.h>

PetscErrorCode TCCGChipGet_Host(TCCGChip *chip)
{
  PetscFunctionBegin;
  chip->blocks = TCCG_BLOCKS;
  chip->shared = SIZE_MAX;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGFormDestroy_Host(TCCGForm *form)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(form->block_row));
  PetscCall(PetscFree(form->block_slice));
  PetscCall(PetscFree(form->start));
  PetscCall(PetscFree(form->column));
  PetscCall(PetscFree(form->value));
  *form = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block_row[k] is the first row before which lie k parts of the weight, of `blocks` */
static void DealRows(const PetscInt i[], TCCGForm *form)
{
  const PetscCount all = form->nnz + (PetscCount)TCCG_ROW_WEIGHT * form->m;
  int32_t          row = 0;

  for (int k = 0; k <= form->blocks; k++) {
    while (row < form->m && (i[row] + (PetscCount)TCCG_ROW_WEIGHT * row) * form->blocks < all * k) row++;
    form->block_row[k] = row;
  }
}

/* start[], and the first places of the blocks */
static PetscErrorCode CountPlaces(const PetscInt i[], TCCGForm *form, int32_t block_start[])
{
  const int32_t rows   = TCCGRowsOfSlice(form);
  PetscCount    places = 0;

  PetscFunctionBegin;
  for (int k = 0; k < form->blocks; k++) {
    int32_t row = form->block_row[k];

    block_start[k] = (int32_t)places;
    for (int32_t s = form->block_slice[k]; s < form->block_slice[k + 1]; s++) {
      const int32_t end     = PetscMin(row + rows, form->block_row[k + 1]);
      PetscInt      longest = 0;

      for (; row < end; row++) longest = PetscMax(longest, i[row + 1] - i[row]);
      form->start[s] = (int32_t)places;
      places += (longest + form->lanes - 1) / form->lanes * (PetscCount)TCCG_LANES;
      PetscCheck(places <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The resident form would have more than 2^31 places: use -ksp_tccg_resident false");
    }
  }
  block_start[form->blocks] = form->start[form->slices] = form->places = (int32_t)places;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGFormFill_Host(const PetscInt i[], const PetscInt j[], const PetscScalar a[], TCCGForm *form, PETSC_UNUSED PetscTCStream stream)
{
  const int32_t lanes = form->lanes;

  PetscFunctionBegin;
  for (int k = 0; k < form->blocks; k++) {
    for (int32_t s = form->block_slice[k]; s < form->block_slice[k + 1]; s++) {
      const int32_t first = form->block_row[k] + (s - form->block_slice[k]) * TCCGRowsOfSlice(form);

      for (int32_t place = form->start[s]; place < form->start[s + 1]; place++) {
        const int32_t  lane = (place - form->start[s]) % TCCG_LANES, slot = (place - form->start[s]) / TCCG_LANES, row = first + lane / lanes;
        const PetscInt entry = row < form->block_row[k + 1] ? i[row] + lanes * slot + lane % lanes : 0;
        const bool     is    = row < form->block_row[k + 1] && entry < i[row + 1];

        form->column[place] = is ? (int32_t)j[entry] : -1;
        form->value[place]  = is ? a[entry] : (PetscScalar)0.0;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const PetscInt i[], const PetscInt j[], const PetscScalar a[], const TCCGChip *chip, TCCGForm *form, PetscBool *fits)
{
  int32_t block_start[TCCG_BLOCKS + 1];

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(form->blocks + 1, &form->block_row));
  PetscCall(PetscMalloc1(form->blocks + 1, &form->block_slice));
  DealRows(i, form);
  TCCGFormCountSlices(form->block_row, form->block_slice, form);
  PetscCall(PetscMalloc1(form->slices + 1, &form->start));
  PetscCall(CountPlaces(i, form, block_start));
  TCCGFormMeasure(form->block_row, form->block_slice, block_start, form);
  *fits = (PetscBool)(form->shared[0] <= chip->shared);
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(form->places, &form->column));
  PetscCall(PetscMalloc1(form->places, &form->value));
  PetscCall(TCCGFormFill_Host(i, j, a, form, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGFormCreate_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const TCCGChip *chip, TCCGForm *form, PetscBool *fits, PETSC_UNUSED PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *form = {};
  *fits = PETSC_FALSE;
  TCCGFormShape(m, nnz, chip, form);
  ierr = form->blocks ? Create(i, j, a, chip, form, fits) : PETSC_SUCCESS;
  if (ierr || !*fits) PetscCall(TCCGFormDestroy_Host(form));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
