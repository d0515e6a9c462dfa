/* What the layout of a MATAIJTC tells of itself: MatAIJTCGetInfo() and MatView(). */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/
#if PETSCTC_HAVE_CUDA
  #include <petscdevice_cuda.h>
#endif

/* The slices of a layout, copied to the host if they are on the device. To be freed */
static PetscErrorCode AIJTCLayoutGetSlices(const AIJTCLayout *l, PetscInt n, AIJTCSlice **slices)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, slices));
  if (!l->cuda) PetscCall(PetscArraycpy(*slices, l->slice, n));
#if PETSCTC_HAVE_CUDA
  else if (n) {
    cudaStream_t stream;

    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCallCUDA(cudaMemcpyAsync(*slices, l->slice, n * sizeof(**slices), cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)(n * sizeof(**slices))));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Slices by the form of their columns and values */
static PetscErrorCode AIJTCLayoutAddForms(const AIJTCLayout *l, MatAIJTCInfo *info)
{
  PetscCount *const offsets[4] = {&info->offsets_none, &info->offsets_1, &info->offsets_2, &info->offsets_4};
  PetscCount *const values[3]  = {&info->values_double, &info->values_float, &info->values_dictionary}; /* in the order of AIJTC_VALUE_* */
  const PetscInt    n          = AIJTCSlicesTotal(l);
  AIJTCSlice       *slices;

  PetscFunctionBegin;
  PetscCall(AIJTCLayoutGetSlices(l, n, &slices));
  for (PetscInt k = 0; k < n; k++) {
    const uint32_t form = slices[k].form;

    if (!slices[k].entries) continue;
    info->padding += PetscMax(slices[k].values - slices[k].entries, 0);
    ++*offsets[(form >> AIJTC_FORM_DELTA) & 3];
    if (form & AIJTC_FORM_CONST) info->values_constant++;
    else ++*values[(form >> AIJTC_FORM_VALUE) & 3];
  }
  PetscCall(PetscFree(slices));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAIJTCAddInfo(const MatAIJTCClass *c, const Mat_AIJTC *tc, MatAIJTCInfo *info)
{
  const AIJTCLayout *l = &tc->layout;

  PetscFunctionBegin;
  info->builds += tc->builds;
  info->refreshes += tc->refreshes;
  if (!tc->valid) PetscFunctionReturn(PETSC_SUCCESS);
  info->cuda = c->cuda;
  info->rows_empty += l->nempty;
  if (!l->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->values_vary) info->values_vary = PETSC_TRUE;
  info->rows_long += l->nlong;
  info->rows_medium += l->nmedium;
  info->rows_short += l->nshort;
  info->slices_long += l->nslices[AIJTC_LONG];
  info->slices_tile += l->nslices[AIJTC_TILE];
  info->slices_row += l->nslices[AIJTC_ROWS];
  info->slices_consecutive += l->nconsecutive;
  PetscCall(AIJTCLayoutAddForms(l, info));
  info->entries += l->nnz;
  info->bytes += AIJTCLayoutBytes(l);
  info->bytes_pattern += l->npattern;
  info->bytes_values += l->nvalue;
  info->gathered_columns += l->nlist;
  info->gather_slices = PetscMax(info->gather_slices, l->params.gather);
  info->bytes_read += AIJTCLayoutBytes(l) - (PetscCount)((l->m + 1) * sizeof(*l->start));
  if (!info->block_size) {
    info->long_row       = l->params.long_min;
    info->short_row      = l->params.short_max;
    info->sort_window    = l->params.window;
    info->rows_per_lane  = l->params.rrows;
    info->block_size     = l->params.bs;
    info->common_offsets = l->common;
    info->near_columns   = l->params.near;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetInfo - Tells what the layout of a `MATAIJTC` matrix holds and how often it was built

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. info - rows of each class, slices of each kind and form, bytes, builds and refreshes, of this process' part; both blocks added for the MPI type (a row counts once in each)

  Level: advanced

  Notes:
  The layout is built at the first product; before that, and when pattern or values have changed since the last product, the numbers may be zero or stale by that change.

  The forms of slices on the GPU are copied from it, 32 bytes a slice.

.seealso: `MATAIJTC`, `MatAIJTCInfo`
@*/
PetscErrorCode MatAIJTCGetInfo(Mat A, MatAIJTCInfo *info)
{
  Mat_AIJTC *tc;
  Mat        b[2] = {A, NULL};

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(info, 2);
  PetscCall(PetscMemzero(info, sizeof(*info)));
  if (MatAIJTCClassOf(A)->mpi) PetscCall(MatAIJTCGetBlocks(A, b));
  for (Mat B : b) {
    if (!MatAIJTCClassOf(B)) continue;
    PetscCall(MatAIJTCGetData(B, &tc));
    PetscCall(MatAIJTCAddInfo(MatAIJTCClassOf(B), tc, info));
  }
  if (info->entries) info->bytes_per_nonzero = (PetscReal)info->bytes_read / (PetscReal)info->entries;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums over all processes of what MatView() prints */
static PetscErrorCode MatAIJTCSumInfo(Mat A, MatAIJTCInfo *info)
{
  PetscCount *const sums[] = {&info->rows_long,    &info->rows_medium,   &info->rows_short, &info->rows_empty,       &info->slices_long, &info->slices_tile,   &info->slices_row,   &info->slices_consecutive, &info->offsets_none,
                              &info->offsets_1,    &info->offsets_2,     &info->offsets_4,  &info->entries,          &info->bytes,       &info->bytes_pattern, &info->bytes_values, &info->values_constant,    &info->values_dictionary,
                              &info->values_float, &info->values_double, &info->bytes_read, &info->gathered_columns, &info->padding};
  constexpr int     nsums  = sizeof(sums) / sizeof(*sums);
  PetscInt64        n[nsums + 2];

  PetscFunctionBegin;
  for (int k = 0; k < nsums; k++) n[k] = *sums[k];
  n[nsums]     = info->builds;
  n[nsums + 1] = info->values_vary;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, n, nsums + 2, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &info->gather_slices, 1, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  for (int k = 0; k < nsums; k++) *sums[k] = (PetscCount)n[k];
  info->builds            = n[nsums] ? 1 : 0; /* by any process */
  info->values_vary       = n[nsums + 1] ? PETSC_TRUE : PETSC_FALSE;
  info->bytes_per_nonzero = info->entries ? (PetscReal)info->bytes_read / (PetscReal)info->entries : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was chosen, and against which bounds */
static PetscErrorCode MatAIJTCViewLayout(const MatAIJTCClass *c, const MatAIJTCSettings *s, const MatAIJTCInfo *i, PetscViewer viewer)
{
  const char *rule = !i->block_size ? "no nonzeros" : i->common_offsets ? "yes (stencil rule)" : i->near_columns ? "no (rule for unstructured matrices; neighbours share parts of x, which is not gathered)" : "no (rule for unstructured matrices)";
  const char *vary = i->values_vary ? "; values are stored as they are since new ones did not fit" : "";

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "    rows: long=%" PetscCount_FMT ", medium=%" PetscCount_FMT ", short=%" PetscCount_FMT ", empty=%" PetscCount_FMT "%s\n", i->rows_long, i->rows_medium, i->rows_short, i->rows_empty,
                                   c->mpi ? " (of both blocks)" : ""));
  PetscCall(PetscViewerASCIIPrintf(viewer, "    form=%s: a row of at most %" PetscInt_FMT " nonzeros takes a lane, of more than %" PetscInt_FMT " is cut into pieces, others go into tiles; sorting window=%" PetscInt_FMT "\n", MatAIJTCForms[s->form],
                                   i->short_row, i->long_row, i->sort_window));
  PetscCall(PetscViewerASCIIPrintf(viewer, "    rows share their offsets: %s\n", rule));
  PetscCall(PetscViewerASCIIPrintf(viewer, "    slices: pieces=%" PetscCount_FMT ", tiles=%" PetscCount_FMT ", rows=%" PetscCount_FMT " (of consecutive rows=%" PetscCount_FMT "); rows per lane=%" PetscInt_FMT ", block size=%" PetscInt_FMT "\n",
                                   i->slices_long, i->slices_tile, i->slices_row, i->slices_consecutive, i->rows_per_lane, i->block_size));
  if (i->gathered_columns) PetscCall(PetscViewerASCIIPrintf(viewer, "    gathered: blocks of %" PetscInt_FMT " slices, %" PetscCount_FMT " columns in their lists\n", i->gather_slices, i->gathered_columns));
  PetscCall(PetscViewerASCIIPrintf(viewer,
                                   "    compress=%s: slices with offsets of 0 bytes=%" PetscCount_FMT ", 1=%" PetscCount_FMT ", 2=%" PetscCount_FMT ", 4=%" PetscCount_FMT "; values constant=%" PetscCount_FMT ", dictionary=%" PetscCount_FMT
                                   ", float=%" PetscCount_FMT ", double=%" PetscCount_FMT "%s\n",
                                   MatAIJTCCompressTypes[s->compress], i->offsets_none, i->offsets_1, i->offsets_2, i->offsets_4, i->values_constant, i->values_dictionary, i->values_float, i->values_double, vary));
  PetscCall(PetscViewerASCIIPrintf(viewer,
                                   "    bytes=%" PetscCount_FMT ": pattern=%" PetscCount_FMT ", values=%" PetscCount_FMT ", rest=%" PetscCount_FMT "; entries=%" PetscCount_FMT ", padding=%" PetscCount_FMT ", a product reads %.2f bytes a nonzero\n",
                                   i->bytes, i->bytes_pattern, i->bytes_values, i->bytes - i->bytes_pattern - i->bytes_values, i->entries, i->padding, (double)i->bytes_per_nonzero));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the parent multiply some process' part because it is too large? */
static PetscErrorCode MatAIJTCAnyTooLarge(Mat A, PetscBool *large)
{
  Mat b[2] = {A, NULL};

  PetscFunctionBegin;
  *large = PETSC_FALSE;
  if (MatAIJTCClassOf(A)->mpi) PetscCall(MatAIJTCGetBlocks(A, b));
  for (Mat B : b)
    if (B && !*large) PetscCall(MatAIJTCTooLarge(B, large));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, large, 1, MPI_C_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only for ASCII_INFO_DETAIL, so that every other view of a matrix is the parent's to the letter */
PetscErrorCode MatView_AIJTC(Mat A, PetscViewer viewer)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  PetscViewerFormat    format;
  PetscBool            ascii, large;
  Mat_AIJTC           *tc;
  MatAIJTCInfo         info;

  PetscFunctionBegin;
  PetscCall((*c->parent.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (!ascii || format != PETSC_VIEWER_ASCII_INFO_DETAIL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCGetData(A, &tc));
  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(MatAIJTCSumInfo(A, &info));
  PetscCall(MatAIJTCAnyTooLarge(A, &large));
  if (c->cuda || tc->settings.layout) PetscCall(PetscViewerASCIIPrintf(viewer, "  sliced layout on the %s, products by %s\n", c->cuda ? "GPU" : "host", c->cuda ? MatAIJTCMMATypes[tc->settings.mma] : "the host twin"));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "  sliced layout on the host, of stencils with few values that are multiplied often; other products by %s (-mat_aijtc_backend host: all by the layout)\n", c->parenttype));
  if (large) PetscCall(PetscViewerASCIIPrintf(viewer, "    products by %s: the layout counts the rows and columns of a process in 32 bits\n", c->parenttype));
  if (!info.builds) PetscCall(PetscViewerASCIIPrintf(viewer, "    not built yet: no product has asked for it\n"));
  else PetscCall(MatAIJTCViewLayout(c, &tc->settings, &info, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
