/*
   Solvers with their iterations in few calls (ksptcresident.h), from PETSc's side: when that is legal, the resident form of the matrix, and the work of the calls.
*/
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/kspengine.h>

/* ---- when */

static PetscErrorCode KSPTCHasNullSpace(Mat A, PetscBool *has)
{
  MatNullSpace nullsp, transposed;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &nullsp));
  PetscCall(MatGetTransposeNullSpace(A, &transposed));
  *has = (PetscBool)(nullsp || transposed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCMatrixLegal(KSP ksp, KSPTC tc, Mat A, const Vec v[], const char **why)
{
  PetscBool  null = PETSC_FALSE, plain;
  PetscCount nnz;
  Mat_AIJTC *aijtc;

  PetscFunctionBegin;
  PetscCall(KSPTCHasNullSpace(A, &null));
  PetscCall(MatAIJTCMultIsPlain(A, v[0], v[1], v[2], &plain));
  if (null) *why = "the matrix has a null space";
  else if (ksp->transpose_solve) *why = "the system is transposed";
  else if (!plain) *why = "products are not those of a layout of MATAIJTC";
  else if (MatAIJTCClassOf(A)->cuda != (PetscBool)(tc->backend == KSPTC_CUDA)) *why = "matrix and vectors live in different memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  PetscCall(MatAIJTCGetData(A, &aijtc));
  if (!nnz) *why = "the matrix has no nonzeros";
  else if (tc->backend == KSPTC_CUDA && !aijtc->settings.keep_csr) *why = "the matrix keeps no CSR arrays on the device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCResidentLegal(KSP ksp, KSPTC tc, Mat A, const Vec v[], PetscBool identity, const char **why)
{
  PetscBool jacobi;

  PetscFunctionBegin;
  PetscCall(KSPTCReplayLegal(ksp, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (!jacobi && !identity) *why = "the preconditioner is neither none nor jacobi";
  else PetscCall(KSPTCMatrixLegal(ksp, tc, A, v, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- form and work */

static PetscErrorCode KSPTCResidentReleaseWork(KSPTCResident *state)
{
  PetscFunctionBegin;
  state->made = PETSC_FALSE;
#if PETSCTC_HAVE_CUDA
  if (state->backend == KSPTC_CUDA) PetscCall(KSPTCResidentDestroy_CUDA(&state->work));
#endif
  PetscCall(KSPTCResidentDestroy_Host(&state->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentRelease(KSPTC tc)
{
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentReleaseWork(state));
  state->address = NULL;
#if PETSCTC_HAVE_CUDA
  if (state->backend == KSPTC_CUDA) PetscCall(KSPTCFormDestroy_CUDA(&state->form));
#endif
  PetscCall(KSPTCFormDestroy_Host(&state->form));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCCreateForm(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  KSPTC          tc    = (KSPTC)ctx;
  KSPTCResident *state = &tc->resident;
  KSPTCChip      chip;

  PetscFunctionBegin;
  PetscCall((*state->kernel[tc->backend].chip)(&chip));
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(KSPTCFormCreate_CUDA(m, nnz, i, j, a, state->vectors, &chip, &state->form, &state->fits, tc->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCFormCreate_Host(m, nnz, i, j, a, state->vectors, &chip, &state->form, &state->fits, tc->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCFillForm(PetscInt m, PetscCount nnz, const PetscInt i[], PETSC_UNUSED const PetscInt j[], const PetscScalar a[], void *ctx)
{
  KSPTC          tc    = (KSPTC)ctx;
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  PetscCheck(m == state->form.m && nnz == state->form.nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The matrix has another pattern in the same state of its pattern");
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(KSPTCFormFill_CUDA(i, a, &state->form, tc->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCFormFill_Host(i, a, &state->form, tc->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The form of the matrix as it is now. That it does not fit, or found no room in device memory, is remembered too. The key is that of a layout (MatAIJTCUpdateLayout()) */
static PetscErrorCode KSPTCUpdateForm(KSPTC tc, Mat A)
{
  const PetscObjectId    id    = ((PetscObject)A)->id;
  const PetscObjectState value = ((PetscObject)A)->state;
  KSPTCResident         *state = &tc->resident;
  const PetscBool        alike = (PetscBool)(state->address == A && state->id == id && state->nonzerostate == A->nonzerostate && state->backend == tc->backend);

  PetscFunctionBegin;
  if (alike && (state->state == value || !state->fits)) PetscFunctionReturn(PETSC_SUCCESS);
  if (alike) {
    state->address = NULL; /* should anything fail */
    PetscCall(MatAIJTCWithCSR(A, KSPTCFillForm, tc));
  } else {
    PetscCall(KSPTCResidentRelease(tc));
    state->backend = tc->backend;
    PetscCall(MatAIJTCWithCSR(A, KSPTCCreateForm, tc));
  }
  state->address      = A;
  state->id           = id;
  state->nonzerostate = A->nonzerostate;
  state->state        = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCUpdateWork(KSPTC tc, PetscBool scaled)
{
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  if (state->made && state->scaled == scaled && !(state->work.late && state->work.late->late)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCResidentReleaseWork(state));
  PetscCall((*state->kernel[tc->backend].create)(&state->form, scaled, &state->work, &state->can));
  state->made   = PETSC_TRUE;
  state->scaled = scaled;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Before the first iteration: tc->resident.is. If so, D is the diagonal of the preconditioner, nothing if there is none.

   A: the matrix; v[]: three vectors of the solve; identity: there is no preconditioner; unapplied: a vector for its result, where it has not been applied yet and so has no diagonal, else NULL
*/
PetscErrorCode KSPTCResidentSetUp(KSP ksp, KSPTC tc, Mat A, const Vec v[], PetscBool identity, Vec unapplied, KSPTCDiagonal *D)
{
  const KSPTCResidentChoice choice = tc->resident.choice;
  const char              **why    = &tc->last_why_not_call;

  PetscFunctionBegin;
  tc->resident.is = PETSC_FALSE;
  if (choice == KSPTC_RESIDENT_FALSE || (choice == KSPTC_RESIDENT_DECIDE && tc->backend == KSPTC_HOST)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCResidentLegal(ksp, tc, A, v, identity, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCUpdateForm(tc, A));
  if (!tc->resident.fits) *why = "the matrix does not fit on the chip, or its form into device memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCUpdateWork(tc, (PetscBool)!identity));
  if (!tc->resident.can) *why = identity ? "the device does not run the cooperative kernel, or has no memory for its work" : "matrix and preconditioner do not fit on the chip, or their work into device memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (identity) PetscCall(VecDestroy(&D->d));
  if (!identity && unapplied) PetscCall(KSP_PCApply(ksp, v[1], unapplied));
  if (!identity) PetscCall(KSPTCDiagonalTake(ksp, v[1], D));
  if (!identity && !D->d) *why = "a monitor has changed matrix or preconditioner";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  tc->resident.is         = PETSC_TRUE;
  tc->resident.steps_lead = tc->lead;
  tc->last_call           = PETSCTC_MAX_CALL;
  tc->lead                = PETSCTC_MAX_CALL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device has refused a call, which must be the first: the steps do the solve */
PetscErrorCode KSPTCResidentRefused(KSPTC tc)
{
  PetscFunctionBegin;
  PetscCheck(!tc->begun, PETSC_COMM_SELF, PETSC_ERR_GPU, "The device launched the cooperative kernel for %" PetscInt_FMT " iterations and then no more: do other processes share it? Use -ksp_%s_resident false", tc->begun, tc->name);
  tc->resident.is       = PETSC_FALSE;
  tc->last_call         = 0;
  tc->lead              = tc->resident.steps_lead;
  tc->last_why_not_call = "the device refused to launch the cooperative kernel";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentSetFromOptions(KSPTC tc, PetscOptionItems PetscOptionsObject)
{
  static const char *const choices[] = {"false", "true", "decide"};
  char                     name[64], value[16];
  PetscBool                set, decide, on;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_resident", tc->name));
  PetscCall(PetscOptionsString(name, "Run many iterations in one call, matrix and vectors on the chip, where that is legal and they fit: true, false or decide", tc->page, choices[tc->resident.choice], value, sizeof(value), &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcasecmp(value, "decide", &decide));
  if (decide) tc->resident.choice = KSPTC_RESIDENT_DECIDE;
  else {
    PetscCall(PetscOptionsStringToBool(value, &on));
    tc->resident.choice = on ? KSPTC_RESIDENT_TRUE : KSPTC_RESIDENT_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
