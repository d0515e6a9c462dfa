/*
   KSPTCCG with its iterations in few calls (tccgresident.h), from PETSc's side: when that is legal, the resident form of the matrix, and the calls, of which each leaves a record for every iteration.
   The host goes through the records as through those of iterations begun ahead, while the next call is under way.
*/
#include <petsctc/private/aijtcimpl.h>
#include "tccgimpl.h"

/* ---- when */

static PetscErrorCode TCCGHasNullSpace(Mat A, PetscBool *has)
{
  MatNullSpace nullsp, transposed;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &nullsp));
  PetscCall(MatGetTransposeNullSpace(A, &transposed));
  *has = (PetscBool)(nullsp || transposed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGMatrixLegal(KSP ksp, KSP_TCCG *cg, const char **why)
{
  PetscBool  null = PETSC_FALSE, plain;
  PetscCount nnz;
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(TCCGHasNullSpace(cg->A, &null));
  PetscCall(MatAIJTCMultIsPlain(cg->A, ksp->work[2], ksp->work[0], ksp->work[1], &plain));
  if (null) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is transposed";
  else if (!plain) *why = "products are not those of a layout of MATAIJTC";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(cg->A, &nnz));
  PetscCall(MatAIJTCGetData(cg->A, &tc));
  if (!nnz) *why = "the matrix has no nonzeros";
  else if (cg->backend == KSPTC_CUDA && !tc->settings.keep_csr) *why = "the matrix keeps no CSR arrays on the device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGResidentLegal(KSP ksp, KSP_TCCG *cg, const char **why)
{
  PetscBool jacobi;

  PetscFunctionBegin;
  PetscCall(KSPTCReplayLegal(ksp, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (!jacobi && !cg->identity) *why = "the preconditioner is neither none nor jacobi";
  else PetscCall(TCCGMatrixLegal(ksp, cg, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- form and work */

static PetscErrorCode TCCGResidentReleaseWork(TCCGResidentState *state)
{
  PetscFunctionBegin;
  state->made = PETSC_FALSE;
#if PETSCTC_HAVE_CUDA
  if (state->backend == KSPTC_CUDA) PetscCall(KSPTCResidentDestroy_CUDA(&state->work));
#endif
  PetscCall(KSPTCResidentDestroy_Host(&state->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentRelease(KSP_TCCG *cg)
{
  TCCGResidentState *state = &cg->resident;

  PetscFunctionBegin;
  PetscCall(TCCGResidentReleaseWork(state));
  state->address = NULL;
#if PETSCTC_HAVE_CUDA
  if (state->backend == KSPTC_CUDA) PetscCall(KSPTCFormDestroy_CUDA(&state->form));
#endif
  PetscCall(KSPTCFormDestroy_Host(&state->form));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGCreateForm(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  KSP_TCCG          *cg    = (KSP_TCCG *)ctx;
  TCCGResidentState *state = &cg->resident;
  KSPTCChip          chip;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) {
    PetscCall(TCCGChipGet_CUDA(&chip));
    PetscCall(KSPTCFormCreate_CUDA(m, nnz, i, j, a, TCCGVectorsOfBlock(false), &chip, &state->form, &state->fits, cg->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCChipGet_Host(&chip));
  PetscCall(KSPTCFormCreate_Host(m, nnz, i, j, a, TCCGVectorsOfBlock(false), &chip, &state->form, &state->fits, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGFillForm(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  KSP_TCCG          *cg    = (KSP_TCCG *)ctx;
  TCCGResidentState *state = &cg->resident;

  PetscFunctionBegin;
  PetscCheck(m == state->form.m && nnz == state->form.nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The matrix has another pattern in the same state of its pattern");
#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) {
    PetscCall(KSPTCFormFill_CUDA(i, j, a, &state->form, cg->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCFormFill_Host(i, j, a, &state->form, cg->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The form of the matrix as it is now. That it does not fit is remembered too. The key is that of a layout (MatAIJTCUpdateLayout()) */
static PetscErrorCode TCCGUpdateForm(KSP_TCCG *cg)
{
  const PetscObjectId    id    = ((PetscObject)cg->A)->id;
  const PetscObjectState value = ((PetscObject)cg->A)->state;
  TCCGResidentState     *state = &cg->resident;
  const PetscBool        alike = (PetscBool)(state->address == cg->A && state->id == id && state->nonzerostate == cg->A->nonzerostate && state->backend == cg->backend);

  PetscFunctionBegin;
  if (alike && (state->state == value || !state->fits)) PetscFunctionReturn(PETSC_SUCCESS);
  if (alike) {
    state->address = NULL; /* should anything fail */
    PetscCall(MatAIJTCWithCSR(cg->A, TCCGFillForm, cg));
  } else {
    PetscCall(TCCGResidentRelease(cg));
    state->backend = cg->backend;
    PetscCall(MatAIJTCWithCSR(cg->A, TCCGCreateForm, cg));
  }
  state->address      = cg->A;
  state->id           = id;
  state->nonzerostate = cg->A->nonzerostate;
  state->state        = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGUpdateWork(KSP_TCCG *cg)
{
  const PetscBool    scaled = (PetscBool)!cg->identity;
  TCCGResidentState *state  = &cg->resident;

  PetscFunctionBegin;
  if (state->made && state->scaled == scaled && !(state->work.late && state->work.late->late)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGResidentReleaseWork(state));
#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) PetscCall(TCCGResidentCreate_CUDA(&state->form, scaled, &state->work, &state->can));
  else
#endif
    PetscCall(TCCGResidentCreate_Host(&state->form, scaled, &state->work, &state->can));
  state->made   = PETSC_TRUE;
  state->scaled = scaled;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the first iteration, the preconditioner has been applied: cg->is_resident. If so, cg->diagonal is that of the preconditioner too */
PetscErrorCode TCCGResidentSetUp(KSP ksp, KSP_TCCG *cg)
{
  const char **why = &cg->last_why_not_call;

  PetscFunctionBegin;
  cg->is_resident = PETSC_FALSE;
  if (cg->resident_choice == TCCG_RESIDENT_FALSE || (cg->resident_choice == TCCG_RESIDENT_DECIDE && cg->backend == KSPTC_HOST)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGResidentLegal(ksp, cg, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (!cg->identity) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[0], &cg->diagonal));
  if (!cg->identity && !cg->diagonal.d) *why = "each result of the preconditioner is checked";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGUpdateForm(cg));
  if (!cg->resident.fits) *why = "the matrix does not fit on the chip";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCCGUpdateWork(cg));
  if (!cg->resident.can) *why = cg->identity ? "the device does not run the cooperative kernel" : "matrix and preconditioner do not fit on the chip";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  cg->is_resident = PETSC_TRUE;
  cg->last_call   = PETSCTC_MAX_CALL;
  cg->lead        = PETSCTC_MAX_CALL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- iterations */

/* The next call: iterations cg->begun + 1 .. last. Their records' places are free */
static PetscErrorCode TCCGResidentChunk(KSP ksp, KSP_TCCG *cg, KSPTCChunk<TCCGScalars> *chunk)
{
  const PetscTCNorm norms[]  = {PETSCTC_NORM_NONE, PETSCTC_NORM_ZZ, PETSCTC_NORM_RR, PETSCTC_NORM_BETA};
  const PetscBool   compared = (PetscBool)(ksp->converged == KSPConvergedDefault);

  PetscFunctionBegin;
  chunk->first         = cg->begun;
  chunk->last          = PetscMax(cg->begun + 1, PetscMin(cg->begun + PETSCTC_MAX_CALL, ksp->max_it));
  chunk->computed_from = ksp->chknorm;
  chunk->compared_from = compared ? PetscMax(ksp->chknorm + 1, ksp->min_it) : PETSC_INT_MAX;
  chunk->test          = {norms[ksp->normtype], ksp->ttol, ksp->divtol * ksp->rnorm0};
  chunk->records       = cg->w->records;
  for (PetscInt it = chunk->first + 1; it <= chunk->last; it++) cg->w->records[it % PETSCTC_RECORDS].stop = PETSCTC_STOP_UNWRITTEN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCCGResidentBegin(KSP ksp, KSP_TCCG *cg)
{
  const PetscInt          scaled = cg->identity ? 0 : 1;
  const Vec               all[] = {cg->diagonal.d, ksp->vec_sol, ksp->work[0], ksp->work[2], ksp->work[1]}, *v = scaled ? all : all + 1;
  TCCGResidentState      *state   = &cg->resident;
  PetscScalar            *array[] = {NULL, NULL, NULL, NULL, NULL}, **a = scaled ? array : array + 1;
  KSPTCChunk<TCCGScalars> chunk;

  PetscFunctionBegin;
  PetscCall(TCCGResidentChunk(ksp, cg, &chunk));
  PetscCall(KSPTCStepBegin(cg, scaled, 4, v, a));
  const TCCGVectors vectors = {array[1], array[2], array[3], scaled ? array[4] : array[2], array[0], array[4]};

#if PETSCTC_HAVE_CUDA
  if (cg->backend == KSPTC_CUDA) PetscCall(TCCGResident_CUDA(&state->form, &chunk, &vectors, cg->w, &state->work, cg->stream));
  else
#endif
    PetscCall(TCCGResident_Host(&state->form, &chunk, &vectors, cg->w, &state->work, cg->stream));
  PetscCall(KSPTCStepEnd(cg, scaled, 4, v, a, 0.0));
  cg->unsettled = PETSC_TRUE;
  PetscCall(KSPTCIterationBegun(cg, chunk.last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1 is over: cg->s are its scalars. The host looks at it, so it is logged as it would have been. Calls are all of the same length but for the last one: hence in which an iteration is */
PetscErrorCode TCCGResidentIterate(KSP ksp, KSP_TCCG *cg, PetscInt i)
{
  const PetscInt       marked = PetscMax(i + 1, PetscMin((i / PETSCTC_MAX_CALL + 1) * PETSCTC_MAX_CALL, ksp->max_it));
  const PetscLogDouble flops  = 2.0 * (PetscLogDouble)cg->resident.form.nnz + (cg->identity ? 10.0 : 13.0) * cg->n;

  PetscFunctionBegin;
  while (cg->begun <= i || (cg->begun < ksp->max_it && cg->begun - i <= PETSCTC_MAX_CALL)) PetscCall(TCCGResidentBegin(ksp, cg));
  PetscCall(KSPTCAwaitMark(cg, i + 1, marked));
  PetscCall(KSPTCResidentCheck(&cg->resident.work));
  petsctc_counts.mult++;
  if (cg->backend == KSPTC_CUDA) PetscCall(PetscLogGpuFlops(flops));
  else PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}
