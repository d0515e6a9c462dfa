/*
   Method
     Iterations of conjugate gradients, step after step (tccgsteps.h) with the product of the resident form: the twin of the resident kernel, and its oracle. A row is added in the kernel's order, each
     lane's entries and then the lanes by halves; dot products in that of the steps.

   Layout
     include/petsctc/private/tccgform.h

   Memory traffic
     The form, and the vectors of the steps

   References
     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
*/
#include <petsctc/private/tccgresident.h>
#include <petsctc/private/tccgsteps.h>

PetscErrorCode TCCGResidentCreate_Host(PETSC_UNUSED const TCCGForm *form, PETSC_UNUSED PetscBool scaled, TCCGResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  *can  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentDestroy_Host(TCCGResidentWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentCheck(const TCCGResidentWork *work)
{
  PetscFunctionBegin;
  if (work->late && work->late->late)
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Block %d waited more than %g s for the others in iteration %d: the kernel gave up. Is the GPU shared with a debugger, or this a defect?", work->late->block, (double)work->patience, work->late->iteration);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of the rows of a slice, w[row - first] */
static void MultSlice(const TCCGForm *A, int32_t slice, int32_t rows, const PetscScalar p[], PetscScalar w[])
{
  const int32_t lanes           = A->lanes;
  PetscScalar   sum[TCCG_LANES] = {};

  for (int32_t place = A->start[slice]; place < A->start[slice + 1]; place++) {
    if (A->column[place] >= 0) sum[(place - A->start[slice]) % TCCG_LANES] += A->value[place] * p[A->column[place]];
  }
  for (int32_t distance = 1; distance < lanes; distance *= 2) {
    for (int32_t l = 0; l < TCCG_LANES; l += 2 * distance) sum[l] += sum[l + distance];
  }
  for (int32_t row = 0; row < rows; row++) w[row] = sum[row * lanes];
}

static void Mult(const TCCGForm *A, const PetscScalar p[], PetscScalar w[])
{
  const int32_t rows = TCCGRowsOfSlice(A);

  for (int k = 0; k < A->blocks; k++) {
    int32_t row = A->block_row[k];

    for (int32_t s = A->block_slice[k]; s < A->block_slice[k + 1]; s++, row += rows) MultSlice(A, s, PetscMin(rows, A->block_row[k + 1] - row), p, w + row);
  }
}

PetscErrorCode TCCGResident_Host(const TCCGForm *form, const TCCGChunk *chunk, const TCCGVectors *v, TCCGWork *steps, PETSC_UNUSED TCCGResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  const PetscInt n = form->m;

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  for (PetscInt it = chunk->first; it < chunk->last && steps->s->stop == 0.0; it++) {
    const PetscBool first = (PetscBool)(it == 0);

    PetscCall((*TCCGSteps_Host.direction)(n, first, v->z, v->p, steps, stream));
    if (steps->s->stop != 0.0) break;
    Mult(form, v->p, v->w);
    PetscCall((*TCCGSteps_Host.curvature)(n, first, v->p, v->w, steps, stream));
    steps->test   = TCCGTestAt(*chunk, it + 1);
    steps->record = &chunk->records[(it + 1) % PETSCTC_RECORDS];
    if (v->diagonal) PetscCall((*TCCGSteps_Host.update_scaled)(n, v->p, v->w, v->diagonal, v->x, v->r, v->z, steps, stream));
    else PetscCall((*TCCGSteps_Host.update)(n, PETSC_TRUE, v->p, v->w, v->x, v->r, steps, stream));
    steps->record = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
