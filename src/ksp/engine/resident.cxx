/*
   Solvers with their iterations in few calls (ksptcresident.h), from PETSc's side: when that is legal, the resident form of the matrix, and the work of the calls.
*/
#include <petsctc/private/aijtcimpl.h>
#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctcdevice.h>

PetscLogEvent KSP_TCForm, KSP_TCLoad;

/* ---- when */

static PetscErrorCode KSPTCMatrixLegal(KSP ksp, KSPTC tc, Mat A, const Vec v[], const KSPTCDiagonal *D, const char **why)
{
  KSPTCProjection projection = KSPTC_PROJECTION_NONE;
  PetscBool       plain;
  PetscCount      nnz;

  PetscFunctionBegin;
  PetscCall(KSPTCProjectionOf(ksp, &projection));
  PetscCall(MatAIJTCMultIsPlain(A, v[0], v[1], v[2], &plain));
  if (projection && !(D->projects && tc->resident.may_project)) *why = "the matrix has a null space";
  else if (projection == KSPTC_PROJECTION_OTHER) *why = "the matrix has a null space other than that of the constants";
  else if (ksp->transpose_solve) *why = "the system is transposed";
  else if (!plain) *why = "products are not those of a layout of MATAIJTC";
  else if (MatAIJTCClassOf(A)->cuda != (PetscBool)(tc->backend == KSPTC_CUDA)) *why = "matrix and vectors live in different memory";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetNonzeros(A, &nnz));
  tc->resident.nnz = nnz;
  if (!nnz) *why = "the matrix has no nonzeros";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCResidentLegal(KSP ksp, KSPTC tc, Mat A, const Vec v[], const KSPTCDiagonal *D, const char **why)
{
  PetscBool known;

  PetscFunctionBegin;
  PetscCall(KSPTCReplayLegal(ksp, tc, why));
  if (tc->comm.size > 1) *why = "more than one process";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &known, PCJACOBI, PCNONE, ""));
  if (!known) *why = "the preconditioner is neither none nor jacobi";
  else PetscCall(KSPTCMatrixLegal(ksp, tc, A, v, D, why));
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

static PetscErrorCode KSPTCReleaseForm(KSPTCResident *state)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (state->backend == KSPTC_CUDA) PetscCall(KSPTCFormDestroy_CUDA(&state->form));
#endif
  PetscCall(KSPTCFormDestroy_Host(&state->form));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentRelease(KSPTC tc)
{
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentReleaseWork(state));
  state->address = NULL;
  PetscCall(KSPTCReleaseForm(state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A form to be made */
typedef struct {
  KSPTC            tc;
  KSPTCOrder       order;
  KSPTCVectors     vectors;
  const KSPTCChip *chip;
} KSPTCNewForm;

/* Regions where the layout is gathered, or would be if columns were not near each other; pencils where the layout has found a grid, whose lines are much shorter than its planes: one of a stencil without diagonals,
   since how far rows reach is then the distance of planes; else the matrix's order */
static KSPTCOrder KSPTCOrderOf(const AIJTCLayout *layout)
{
  constexpr PetscInt lines = 4; /* of a plane, at least, and planes */
  KSPTCOrder         order = {NULL, 0, 0};

  order.regions = (PetscBool)(layout->params.gather > 0 || layout->params.near);
  if (order.regions || !layout->common || layout->params.bs > 1 || layout->line <= 0 || layout->line * lines > layout->stride || layout->stride > layout->m / lines) return order;
  if (layout->stride % layout->line || layout->m % layout->stride) return order; /* rows reach as far, but it is no grid */
  order.plane = layout->stride;
  order.line  = layout->line;
  return order;
}

static PetscErrorCode KSPTCCreateForm(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx)
{
  KSPTCNewForm  *form  = (KSPTCNewForm *)ctx;
  const KSPTC    tc    = form->tc;
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(KSPTCFormCreate_CUDA(m, nnz, i, j, a, &form->order, form->vectors, form->chip, &state->form, &state->fits, tc->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCFormCreate_Host(m, nnz, i, j, a, &form->order, form->vectors, form->chip, &state->form, &state->fits, tc->stream));
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
    PetscCall(KSPTCFormFill_CUDA(i, a, &state->form, &state->fits, tc->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCFormFill_Host(i, a, &state->form, &state->fits, tc->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of how many nonzeros a form is not worth it, where there may be windows with constant slots instead, and a call has not found that there are none */
static PetscCount KSPTCFormLimit(const KSPTCResident *state, Mat A)
{
  if (!state->may_window) return PETSC_COUNT_MAX;
  if (state->windowless == ((PetscObject)A)->id && state->windowless_state == A->nonzerostate) return PETSC_COUNT_MAX;
  return state->windows_from[state->wanted == KSPTC_VARIANT_CLASSIC ? 0 : 1];
}

/* Are there windows that are faster, by what the host knows of the layout? Values of entries are read from device memory in every product, those of a form not all */
static PetscBool KSPTCWindowsPay(const KSPTCResident *state, Mat A, const AIJTCLayout *layout, const KSPTCChip *chip)
{
  constexpr PetscCount for_values = 500000;
  const PetscCount     limit      = KSPTCFormLimit(state, A);
  KSPTCWindows         windows;

  if (!chip->bulk || !layout->common || state->nnz < limit || (!KSPTCKeepsSlots(layout) && state->nnz - limit < for_values)) return PETSC_FALSE;
  return (PetscBool)(KSPTCWindowsOf(layout, chip->blocks, &windows) && KSPTCBytesOfWindows(&windows, 0) <= chip->shared);
}

/* Is a form of which so many bytes are read in every product faster than what there is without it? What is in L2 comes at once; a layout that resident kernels can read is waited for,
   slots first and then x, so that a byte of it costs some eight of a form. Where the steps' products gather x, a form is faster whatever its size, as far as that was tried. Measured: docs/log/2026-11.md */
static PetscBool KSPTCFormPays(const KSPTCResident *state, Mat A, PetscCount streamed, const AIJTCLayout *layout, const KSPTCChip *chip)
{
  constexpr PetscCount in_cache = 48000000, beside_gathered = 240000000, of_layout = 8;

  if (state->choice == KSPTC_RESIDENT_FORM) return PETSC_TRUE;
  if (state->may_stream && KSPTCStreams(layout) && KSPTCStreamsWell(layout)) {
    if (streamed > of_layout * (layout->npattern + layout->nvalue)) return PETSC_FALSE;
    if (KSPTCWindowsPay(state, A, layout, chip)) return PETSC_FALSE;
  }
  return (PetscBool)(state->choice == KSPTC_RESIDENT_TRUE || streamed <= (layout->params.gather > 0 ? beside_gathered : in_cache));
}

/* Beside a gathered layout, is a form likely of which so little is read in every product that 8 solves one by one are faster than a block of them? A block's ghosts are estimated by what the lists of as many rows have
   besides those: all rows of such a layout are short, and lists have all their columns. Measured: docs/log/2026-11.md */
PetscErrorCode KSPTCFormLikely(KSP ksp, KSPTC tc, Mat A, const AIJTCLayout *layout, PetscBool *likely)
{
  constexpr PetscCount little = 24000000;
  KSPTCResident       *state  = &tc->resident;
  const KSPTCVectors   thin   = state->thin.rows && ksp->pc_side == PC_LEFT ? state->thin : state->vectors;
  KSPTCChip            chip;
  Mat_AIJTC           *aijtc;

  PetscFunctionBegin;
  *likely = PETSC_FALSE;
  PetscCall(MatAIJTCGetData(A, &aijtc));
  if (!layout->params.gather || (tc->backend == KSPTC_CUDA && !aijtc->settings.keep_csr)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*state->kernel[tc->backend].chip)(&chip));
  if (!chip.blocks || KSPTCLeastStreamed(layout->m, state->nnz, thin, PETSC_FALSE, &chip) > little) PetscFunctionReturn(PETSC_SUCCESS);
  const PetscCount rows = layout->m / chip.blocks + 1, ghosts = PetscMax(layout->nlist / chip.blocks + 1 - rows, 0);

  *likely = (PetscBool)(KSPTCBytesOfVectors(rows, ghosts, rows, thin) <= chip.shared);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May blocks be thin? Where it is left open which recurrences there are, or they are classic */
static PetscBool KSPTCMayThin(const KSPTCResident *state)
{
  return (PetscBool)(state->thin.rows && state->may_thin && (state->wanted == KSPTC_VARIANT_CLASSIC || state->wanted == KSPTC_VARIANT_AUTO));
}

/* And are they to be, for this matrix? */
static PetscBool KSPTCTakesThin(const KSPTCResident *state)
{
  return (PetscBool)(KSPTCMayThin(state) && state->thin_pays);
}

/* What blocks will hold, as far as the sizes tell: thin ones are for where others have no room for their vectors, which ghosts may yet take: then this is a little too much */
static KSPTCVectors KSPTCLikelyVectors(const KSPTCResident *state, PetscInt m, const KSPTCChip *chip)
{
  const PetscBool room = (PetscBool)(KSPTCBytesOfVectors(m, 0, 0, state->vectors) / PetscMax(chip->blocks, 1) <= chip->shared);

  return KSPTCTakesThin(state) && (state->only_thin || !room) ? state->thin : state->vectors;
}

/* Thin blocks only where others have no room for their vectors, or have been found to have none for the preconditioner */
static PetscErrorCode KSPTCCreateForms(KSPTC tc, Mat A, KSPTCNewForm *form)
{
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  if (!state->only_thin) PetscCall(MatAIJTCWithCSR(A, KSPTCCreateForm, form));
  if (state->fits || !KSPTCTakesThin(state)) PetscFunctionReturn(PETSC_SUCCESS);
  form->vectors = state->thin;
  PetscCall(MatAIJTCWithCSR(A, KSPTCCreateForm, form));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Where rows that follow each other share few columns, as in a numbering that scatters a graph with some long edges, of which no layout is gathered, blocks have more ghosts than rows, and wait for them. Regions of the graph may have fewer:
   a second form is made by region, and the one with fewer ghosts kept. A circuit of 150,000 rows in scattered order, one edge in twenty long: 589,000 ghosts, by region 156,000
*/
static PetscErrorCode KSPTCTryRegions(KSPTC tc, Mat A, const AIJTCLayout *layout, KSPTCNewForm *form)
{
  KSPTCResident  *state  = &tc->resident;
  const KSPTCForm before = state->form;
  const bool      fitted = state->fits;

  PetscFunctionBegin;
  if (form->order.regions || form->order.plane > 0 || layout->common || (fitted && before.ghosts <= before.m)) PetscFunctionReturn(PETSC_SUCCESS);
  state->form         = {};
  state->fits         = PETSC_FALSE;
  form->vectors       = state->vectors;
  form->order.regions = PETSC_TRUE;

  const PetscErrorCode ierr   = KSPTCCreateForms(tc, A, form);
  const KSPTCForm      other  = state->form;
  const bool           fewer  = other.ghosts < before.ghosts && (KSPTCFormIsThin(&before) || !KSPTCFormIsThin(&other)); /* thin blocks read most vectors from device memory */
  const bool           better = !ierr && state->fits && (!fitted || fewer);

  if (fitted) { /* one of two stays */
    state->form = better ? before : other;
    PetscCall(KSPTCReleaseForm(state));
    state->form = better ? other : before;
    state->fits = PETSC_TRUE;
  }
  form->order.regions = (PetscBool)better;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCReleaseOrder(PETSC_UNUSED KSPTC tc, KSPTCOrder *order)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(KSPTCOrderRelease_CUDA(order));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(KSPTCOrderRelease_Host(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The form, if there is room for it and it pays: then state->fits */
static PetscErrorCode KSPTCTryForm(KSPTC tc, Mat A)
{
  KSPTCResident     *state = &tc->resident;
  const AIJTCLayout *layout;
  KSPTCChip          chip;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetLayout(A, &layout));
  PetscCall((*state->kernel[tc->backend].chip)(&chip));
  state->fits      = PETSC_FALSE;
  state->thin_pays = (PetscBool)(state->thin_first || state->choice == KSPTC_RESIDENT_FORM || !state->may_stream || !KSPTCStreamsLikely(layout));
  state->pays = KSPTCFormPays(state, A, KSPTCLeastStreamed(A->rmap->n, state->nnz, KSPTCLikelyVectors(state, A->rmap->n, &chip), KSPTCKeepsSlots(layout), &chip), layout, &chip); /* a guess: where slots of the layout are constants, values are few */
  if (!state->pays) PetscFunctionReturn(PETSC_SUCCESS);
  KSPTCNewForm form = {tc, KSPTCOrderOf(layout), state->vectors, &chip};

  PetscCall(PetscLogEventBegin(KSP_TCForm, A, 0, 0, 0));
  PetscErrorCode ierr = KSPTCCreateForms(tc, A, &form);

  if (!ierr) ierr = KSPTCTryRegions(tc, A, layout, &form);
  state->by_region = form.order.regions;
  PetscCall(PetscLogEventEnd(KSP_TCForm, A, 0, 0, 0));
  PetscCall(KSPTCReleaseOrder(tc, &form.order));
  PetscCall(ierr);
  if (!state->fits || KSPTCFormPays(state, A, state->form.streamed, layout, &chip)) PetscFunctionReturn(PETSC_SUCCESS);
  state->pays = state->fits = PETSC_FALSE;
  PetscCall(KSPTCReleaseForm(state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the form, or that there is none, of this pattern, and made for such a solve? The preconditioner aside */
static PetscBool KSPTCSamePattern(KSPTC tc, Mat A)
{
  const KSPTCResident *state = &tc->resident;

  return (PetscBool)(state->address == A && state->id == ((PetscObject)A)->id && state->nonzerostate == A->nonzerostate && state->backend == tc->backend && state->made_by == state->choice && state->made_beside == state->may_stream &&
                     state->made_thin == KSPTCMayThin(state) && state->made_until == KSPTCFormLimit(state, A));
}

/* The form of the matrix as it is now; useless: values are not needed. That it does not fit, or found no room in device memory, or is too large beside the vectors, is remembered too. The key is that of a layout (MatAIJTCUpdateLayout()) */
static PetscErrorCode KSPTCUpdateForm(KSPTC tc, Mat A, PetscBool identity, PetscBool useless)
{
  const PetscObjectState value = ((PetscObject)A)->state;
  KSPTCResident         *state = &tc->resident;
  const PetscBool        same  = KSPTCSamePattern(tc, A);
  PetscBool              only_thin, alike;

  PetscFunctionBegin;
  if (!same) state->scaled_thin = state->scaled_never = PETSC_FALSE;
  only_thin = (PetscBool)(!identity && state->scaled_thin);
  alike     = (PetscBool)(same && state->only_thin == only_thin);
  if (alike && (state->state == value || !state->fits || useless)) PetscFunctionReturn(PETSC_SUCCESS);
  if (alike) {
    state->address = NULL; /* should anything fail */
    PetscCall(MatAIJTCWithCSR(A, KSPTCFillForm, tc));
  }
  if (!alike || !state->fits) { /* not: too many values for the dictionary */
    PetscCall(KSPTCResidentRelease(tc));
    state->backend     = tc->backend;
    state->made_by     = state->choice;
    state->made_beside = state->may_stream;
    state->made_thin   = KSPTCMayThin(state);
    state->made_until  = KSPTCFormLimit(state, A);
    state->only_thin   = only_thin;
    PetscCall(PetscMemzero(state->cannot_hold, sizeof(state->cannot_hold)));
    PetscCall(KSPTCTryForm(tc, A));
  }
  state->address      = A;
  state->id           = ((PetscObject)A)->id;
  state->nonzerostate = A->nonzerostate;
  state->state        = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the work there for this? streamed: what it is for, 0 for a form, whose work depends on the preconditioner */
static PetscBool KSPTCHasWork(const KSPTCResident *state, PetscBool scaled, KSPTCVariant variant, const PetscInt streamed[2])
{
  return (PetscBool)(state->made && (streamed[0] || (state->scaled == scaled && state->made_for == variant)) && state->streamed[0] == streamed[0] && state->streamed[1] == streamed[1] && !KSPTCHasGivenUp(&state->work));
}

/* The work for the layout, if there is one, or else for the form */
static PetscErrorCode KSPTCUpdateWork(KSPTC tc, PetscBool scaled, KSPTCVariant variant)
{
  KSPTCResident             *state       = &tc->resident;
  const KSPTCResidentKernel *kernel      = &state->kernel[tc->backend];
  const AIJTCLayout         *layout      = state->layout;
  const PetscInt             streamed[2] = {layout ? layout->nslices[AIJTC_ROWS] : 0, layout ? layout->params.rrows : 0};

  PetscFunctionBegin;
  if (KSPTCHasWork(state, scaled, variant, streamed)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCResidentReleaseWork(state));
  state->backend = tc->backend;
  PetscCall(PetscLogEventBegin(KSP_TCLoad, 0, 0, 0, 0));
  if (layout) PetscCall((*kernel->create_streamed)(layout, &state->work, &state->can));
  else PetscCall((*kernel->create[variant])(&state->form, scaled, &state->work, &state->can));
  PetscCall(PetscLogEventEnd(KSP_TCLoad, 0, 0, 0, 0));
  state->made        = PETSC_TRUE;
  state->made_for    = variant;
  state->scaled      = scaled;
  state->streamed[0] = streamed[0];
  state->streamed[1] = streamed[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The recurrences to be tried with the matrix on the chip, in this order; their number. Those with one reduction are KSPCG's own where they are asked for: nothing stands in for them. Left open they are the ones with fewest barriers */
static int KSPTCCandidates(const KSPTCResident *state, KSPTCVariant candidates[2])
{
  candidates[0] = state->wanted == KSPTC_VARIANT_AUTO ? (KSPTCIsThin(state) ? KSPTC_VARIANT_CLASSIC : KSPTC_VARIANT_SINGLE) : state->wanted;
  candidates[1] = KSPTC_VARIANT_CLASSIC;
  return state->wanted == KSPTC_VARIANT_AUTO ? 2 : 1;
}

/* The first of them that there is room for */
static PetscErrorCode KSPTCHoldWith(KSPTC tc, PetscBool identity, PetscBool *can)
{
  KSPTCResident *state = &tc->resident;
  KSPTCVariant   candidates[2];
  const int      count = KSPTCCandidates(state, candidates);

  PetscFunctionBegin;
  *can = PETSC_FALSE;
  for (int k = 0; k < count && !*can; k++) {
    const KSPTCVariant variant = candidates[k];

    if (state->cannot_hold[variant][identity]) continue;
    PetscCall(KSPTCUpdateWork(tc, (PetscBool)!identity, variant));
    *can                                  = state->can;
    state->cannot_hold[variant][identity] = (PetscBool) !*can;
    state->variant                        = variant;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool KSPTCCannotHold(const KSPTCResident *state, PetscBool identity)
{
  KSPTCVariant candidates[2];
  PetscBool    cannot = PETSC_TRUE;

  for (int k = KSPTCCandidates(state, candidates) - 1; k >= 0; k--) cannot = (PetscBool)(cannot && state->cannot_hold[candidates[k]][identity]);
  return cannot;
}

/* The matrix on the chip, if *why stays NULL */
static PetscErrorCode KSPTCHoldMatrix(KSPTC tc, Mat A, PetscBool identity, const char **why)
{
  static const char no_room[] = "matrix and preconditioner do not fit on the chip, or their work into device memory";
  KSPTCResident    *state     = &tc->resident;
  Mat_AIJTC        *aijtc;
  PetscBool         can;

  PetscFunctionBegin;
  state->layout = NULL;
  PetscCall(MatAIJTCGetData(A, &aijtc));
  if (tc->backend == KSPTC_CUDA && !aijtc->settings.keep_csr) *why = "the matrix keeps no CSR arrays on the device";
  else if (!identity && state->scaled_never && KSPTCSamePattern(tc, A)) *why = no_room;
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCUpdateForm(tc, A, identity, KSPTCCannotHold(state, identity)));
  if (!state->pays) *why = "the matrix does not fit on the chip, and the steps, or its layout, are as fast as what does not";
  else if (!state->fits) *why = "the vectors do not fit on the chip, or the form of the matrix into device memory, or it is padding for the most part, or has more than 2^26 nonzeros";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCHoldWith(tc, identity, &can));
  if (!can && !identity && KSPTCTakesThin(state) && !KSPTCIsThin(state)) {
    state->scaled_thin = PETSC_TRUE;
    PetscCall(KSPTCHoldMatrix(tc, A, identity, why)); /* in thin blocks, which is not tried twice */
    if (*why) {
      state->scaled_thin  = PETSC_FALSE;
      state->scaled_never = PETSC_TRUE;
      *why                = no_room;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!can) *why = identity ? "the device does not run the cooperative kernel, or has no memory for its work" : no_room;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix read from its layout, if *why stays NULL */
static PetscErrorCode KSPTCStreamMatrix(KSPTC tc, Mat A, PetscBool identity, const char **why)
{
  KSPTCResident     *state = &tc->resident;
  const AIJTCLayout *layout;

  PetscFunctionBegin;
  if (state->backend != tc->backend) PetscCall(KSPTCResidentRelease(tc));
  PetscCall(MatAIJTCGetLayout(A, &layout));
  if (!state->may_stream) *why = "the matrix is not on the chip, and read from its layout recurrences are classic";
  else if (!KSPTCStreams(layout)) *why = "the layout has tiles, long rows or lists of columns";
  else if (state->choice == KSPTC_RESIDENT_DECIDE && !KSPTCStreamsWell(layout))
    *why = layout->params.bs > 1 ? "the matrix does not fit on the chip, and with several unknowns a node the steps are as fast" : "the matrix does not fit on the chip, and with so many nonzeros in a row the steps are as fast";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  state->layout  = layout;
  state->variant = state->wanted == KSPTC_VARIANT_SINGLE || state->wanted == KSPTC_VARIANT_AUTO ? KSPTC_VARIANT_SINGLE : KSPTC_VARIANT_CLASSIC;
  PetscCall(KSPTCUpdateWork(tc, (PetscBool)!identity, state->variant));
  if (state->streamed_state != ((PetscObject)A)->state) state->work.build = 0; /* what has been made of the layout's values is made anew */
  state->streamed_state   = ((PetscObject)A)->state;
  state->streamed_pattern = A->nonzerostate;
  state->streamed_id      = ((PetscObject)A)->id;
  if (!state->can) *why = "the vectors do not fit on the chip, or the device does not run the cooperative kernel";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCPlaceMatrix(KSPTC tc, Mat A, PetscBool identity, const char **why)
{
  const KSPTCResidentChoice choice  = tc->resident.choice;
  const bool                streams = tc->resident.kernel[tc->backend].create_streamed != NULL;

  PetscFunctionBegin;
  if (choice != KSPTC_RESIDENT_LAYOUT) {
    PetscCall(KSPTCHoldMatrix(tc, A, identity, why));
    if (!*why || choice == KSPTC_RESIDENT_FORM || !streams) PetscFunctionReturn(PETSC_SUCCESS);
  }
  *why = NULL;
  if (streams) PetscCall(KSPTCStreamMatrix(tc, A, identity, why));
  else *why = "the method has no kernel that reads the matrix from its layout";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May a call begin before the host has looked at the first norm? The steps know what that may end, and from a zero guess what bounds it sets: KSPConvergedDefault() applies the preconditioner once more otherwise. A preconditioner
   that is one number makes other bounds */
PetscErrorCode KSPTCMayBeginEarly(KSP ksp, KSPTC tc, PetscBool *may)
{
  const KSPTCResidentChoice choice = tc->resident.choice;
  const char               *why;

  PetscFunctionBegin;
  *may = PETSC_FALSE;
  if (choice == KSPTC_RESIDENT_FALSE || (choice == KSPTC_RESIDENT_DECIDE && tc->backend == KSPTC_HOST)) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->comm.size > 1 || !ksp->guess_zero || ksp->normtype == KSP_NORM_NONE || ksp->max_it <= 0 || tc->number > 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCReplayLegal(ksp, tc, &why));
  *may = (PetscBool)!why;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has the last call that read the matrix from its layout found no windows, for which a form may have been given up? */
static void KSPTCLearnOfWindows(KSPTCResident *state, Mat A)
{
  if (!state->made || !state->streamed[0] || state->streamed_id != ((PetscObject)A)->id || !state->work.build || state->work.windowed) return;
  state->windowless       = state->streamed_id;
  state->windowless_state = state->streamed_pattern;
}

/* Other recurrences have no projection */
static void KSPTCMayWant(KSP ksp, KSPTCResident *state, PetscBool identity, const KSPTCDiagonal *D)
{
  if (D->projection) state->wanted = KSPTC_VARIANT_CLASSIC;
  state->may_thin   = (PetscBool)(ksp->pc_side == PC_LEFT && !D->projection);
  state->may_window = (PetscBool)((identity || state->may_thin) && !D->projection);
}

/* Has a block given up waiting in an earlier solve with this pattern? */
static PetscErrorCode KSPTCWasLate(KSPTC tc, Mat A, const char **why)
{
  KSPTCResident *state = &tc->resident;

  PetscFunctionBegin;
  if (!state->late_id) PetscFunctionReturn(PETSC_SUCCESS);
  if (state->late_id != ((PetscObject)A)->id || state->late_pattern != A->nonzerostate) state->late_id = 0;
  else {
    PetscCall(PetscSNPrintf(state->late_text, sizeof(state->late_text), "a block of the resident kernel waited too long for the others in an earlier solve; -ksp_%s_resident tries again", tc->name));
    *why = state->late_text;
  }
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
  PetscCall(KSPTCResidentLegal(ksp, tc, A, v, D, why));
  if (!*why) PetscCall(KSPTCWasLate(tc, A, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  KSPTCMayWant(ksp, &tc->resident, identity, D);
  KSPTCLearnOfWindows(&tc->resident, A);
  PetscCall(KSPTCPlaceMatrix(tc, A, identity, why));
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

/* After so many iterations in calls, whose vectors and scalars are there, the steps go on with the solve. why: NULL, since the device has refused a call */
PetscErrorCode KSPTCResidentLeave(KSPTC tc, PetscInt its, const char *why)
{
  PetscFunctionBegin;
  tc->resident.is       = PETSC_FALSE;
  tc->resident.its      = its;
  tc->last_call         = 0;
  tc->lead              = tc->resident.steps_lead;
  tc->last_why_not_call = why ? why : "the device refused to launch the cooperative kernel";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block has given up in a call, which has left everything as it was: what a view says. Who waits once may wait in every solve with this pattern, so there is no other try */
PetscErrorCode KSPTCResidentGaveUp(KSP ksp, KSPTC tc, const char **why)
{
  KSPTCResident *state = &tc->resident;
  Mat            A;

  PetscFunctionBegin;
  PetscCheck(KSPTCHasGivenUp(&state->work), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A call of the resident kernel has left neither a record nor a stop, and no block has given up: run with -ksp_%s_resident false", tc->name);
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  state->late_id      = ((PetscObject)A)->id;
  state->late_pattern = A->nonzerostate;
  PetscCall(PetscSNPrintf(state->late_text, sizeof(state->late_text), "a block of the resident kernel waited %g s for the others at iteration %d; the solve went on by steps", (double)state->work.patience, state->work.late->iteration));
  PetscCall(PetscInfo(ksp, "Block %d: %s\n", state->work.late->block, state->late_text));
  PetscCall(KSPTCResidentReleaseWork(state));
  *why = state->late_text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentSetFromOptions(KSPTC tc, PetscOptionItems PetscOptionsObject)
{
  static const char *const choices[] = {"false", "true", "decide", "form", "layout"};
  char                     name[64], value[16];
  PetscBool                set, same = PETSC_FALSE, on;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_resident", tc->name));
  PetscCall(PetscOptionsString(name, "Run many iterations in one call, vectors on the chip, where that is legal and they fit: true, false or decide", tc->page, choices[tc->resident.choice], value, sizeof(value), &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  tc->resident.late_id = 0; /* another try */
  for (int k = KSPTC_RESIDENT_DECIDE; k <= KSPTC_RESIDENT_LAYOUT && !same; k++) {
    PetscCall(PetscStrcasecmp(value, choices[k], &same));
    if (same) tc->resident.choice = (KSPTCResidentChoice)k;
  }
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsStringToBool(value, &on));
  tc->resident.choice = on ? KSPTC_RESIDENT_TRUE : KSPTC_RESIDENT_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
