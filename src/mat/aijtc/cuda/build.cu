/*
   Method
     The layout from the CSR arrays in device memory, without a copy of them to the host: order of the rows (build_order.cu; where blocks of them are to gather x together build_cluster.cu and build_gather.cu), form and size of every slice (build_analyze.cu), the pattern stream
     (build_write.cu), the values as a refresh stores them (refresh.cu), unless they are written with it. The host waits twice, for the numbers of slices and for the bytes of the streams (and lists), because it must ask for memory.

   Layout
     include/petsctc/private/aijtclayout.h; the same bytes as AIJTCLayoutBuild_Host()

   Memory traffic
     Columns twice, values once (twice if they may be compressed), row offsets four times, and the layout once. 117 million nonzeros of a 7-point matrix of 256^3 rows, values stored as they are:
     3.2 GB, 0.75 ms at 4.3 TB/s. 26.5 million of a 27-point matrix of 100^3 rows: 0.65 GB, 0.15 ms. The launches and waits take 60 us of any build.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
     Lu, Liu, DASP: specific dense matrix multiply-accumulate units accelerated general sparse matrix-vector multiplication, SC'23
*/
#include "build.cuh"

namespace
{
using namespace aijtcbuild;

PetscInt SlicesFor(unsigned rows, PetscInt of)
{
  return ((PetscInt)rows + of - 1) / of;
}

/* All sizes but those of the streams */
PetscErrorCode SetSizes(AIJTCLayout *layout, const RowCounts &counts)
{
  const PetscInt   slice_rows = AIJTC_LANES * layout->params.rrows;
  const PetscInt   tiles = SlicesFor(counts.nmedium, AIJTC_TILE_ROWS), listed = SlicesFor(counts.nrest, slice_rows);
  const PetscCount nrid = (PetscCount)counts.nlong + (PetscCount)tiles * AIJTC_TILE_ROWS + (PetscCount)listed * slice_rows;

  PetscFunctionBegin;
  PetscCheck(counts.pieces + counts.consecutive + (PetscCount)tiles + listed <= PETSC_INT32_MAX - 1 && nrid <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "MATAIJTC's layout of %" PetscInt_FMT " rows needs more than 2^31 - 1 slices or places for rows: use more processes", layout->m);
  layout->nnz                 = (PetscCount)counts.nnz;
  layout->largest             = (PetscInt)PetscMin(counts.largest, (unsigned long long)PETSC_INT32_MAX);
  layout->nlong               = (PetscInt)counts.nlong;
  layout->nmedium             = (PetscInt)counts.nmedium;
  layout->nempty              = (PetscInt)counts.nempty;
  layout->nshort              = layout->m - layout->nlong - layout->nmedium - layout->nempty;
  layout->nslices[AIJTC_LONG] = (PetscInt)counts.pieces;
  layout->nslices[AIJTC_TILE] = tiles;
  layout->nslices[AIJTC_ROWS] = (PetscInt)counts.consecutive + listed;
  layout->nconsecutive        = (PetscInt)counts.consecutive;
  layout->rid_tile            = layout->nlong;
  layout->rid_rows            = layout->rid_tile + tiles * AIJTC_TILE_ROWS;
  layout->nrid                = (PetscInt)nrid;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the analysis has found */
PetscErrorCode SetStreamSizes(AIJTCLayout *layout, const StreamCounts &counts)
{
  PetscFunctionBegin;
  PetscCheck(PetscMax(counts.total.pattern, counts.total.value) <= UINT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATAIJTC's layout needs streams of more than %d * 2^32 bytes: use more processes", (int)AIJTC_UNIT);
  layout->npattern     = (PetscCount)counts.total.pattern * AIJTC_UNIT;
  layout->nvalue       = (PetscCount)counts.total.value * AIJTC_UNIT;
  layout->ndict        = counts.ndict;
  layout->exact_always = counts.inexact ? PETSC_FALSE : PETSC_TRUE;
  layout->stride       = counts.stride;
  layout->line         = counts.line;
  if (!layout->ndict) layout->dict = nullptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No rows: one offset */
PetscErrorCode BuildEmpty(AIJTCLayout *layout, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(layout->start, 0, sizeof(*layout->start), stream));
  layout->exact_always  = PETSC_TRUE;
  layout->params.gather = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a plan has found and allocated that is not the last */
PetscErrorCode ForgetRows(AIJTCLayout *layout, Found *found, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaFreeAsync(layout->memory[1], stream));
  layout->memory[1] = nullptr;
  PetscCallCUDA(cudaMemsetAsync(found, 0, sizeof(*found), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a build has in temporary memory */
struct Work {
  Found       *found;
  uint8_t     *flag;
  PetscInt    *group     = nullptr;
  int32_t     *clustered = nullptr; /* rows by cluster, once they are known */
  Places       places    = {};
  Units       *unit      = nullptr;
  StreamCounts streams; /* on the host */
};

/* The classes of rows. Where not all are short, or none has entries, the layout is not gathered, and they are classified anew */
PetscErrorCode CountRows(const Csr &A, AIJTCLayout *layout, const Work &work, RowCounts *rows, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(ClassifyRows(layout, A.i, work.flag, &work.found->rows, rows, stream));
  if (!layout->params.gather || (rows->nnz && rows->nrest == (unsigned)layout->m)) PetscFunctionReturn(PETSC_SUCCESS);
  layout->params.gather = 0;
  PetscCallCUDA(cudaMemsetAsync(&work.found->rows, 0, sizeof(work.found->rows), stream));
  PetscCall(ClassifyRows(layout, A.i, work.flag, &work.found->rows, rows, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Clusters do not follow from the counts, so that the device finds them while the host asks for memory */
PetscErrorCode PlanRows(const Csr &A, AIJTCLayout *layout, Work *work, Scratch &scratch, cudaStream_t stream)
{
  RowCounts rows;

  PetscFunctionBegin;
  PetscCall(CountRows(A, layout, *work, &rows, stream));
  if (layout->params.gather && !work->clustered) PetscCall(ClusterRows(layout->m, A, &work->clustered, scratch, stream));
  PetscCall(SetSizes(layout, rows));
  PetscCall(AllocateSlices(layout, stream));
  PetscCall(OrderRows(layout, A, work->flag, rows, work->clustered, &work->group, scratch, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What lists are found with, and what is kept of them; its memory is not taken twice */
PetscErrorCode AllocatePlaces(const AIJTCLayout *layout, Places *places, Scratch &kept)
{
  PetscFunctionBegin;
  if (places->place) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(kept.GetAll([&](Block &block) {
    block.Place((PetscCount)layout->nnz, &places->place);
    block.Place((PetscCount)AIJTC_LANES * layout->nslices[AIJTC_ROWS], &places->run);
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The slices, unless the lists of a gathered layout can not be: then *planned is false, and params.gather what to plan for instead */
PetscErrorCode PlanSlices(const Csr &A, AIJTCLayout *layout, Work *work, bool *planned, Scratch &scratch, Scratch &kept, cudaStream_t stream)
{
  Scratch    temporary(stream);
  FoundLists lists = {};
  PetscInt   gather;

  PetscFunctionBegin;
  PetscCall(PlanRows(A, layout, work, scratch, stream));
  gather = layout->params.gather;
  if (gather) {
    PetscCall(AllocatePlaces(layout, &work->places, kept));
    PetscCall(FindLists(layout, A, work->places, &lists, &work->found->lists, temporary, stream));
  }
  PetscCall(AnalyzeSlices(layout, A, work->group, &work->found->table, &work->found->lists, &work->unit, scratch, &work->streams, stream));
  if (gather) PetscCall(StoreLists(layout, lists, work->streams.lists, stream));
  *planned = gather == layout->params.gather;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gathered if it may be: then work->places is all that `kept` holds; else it holds nothing */
PetscErrorCode Plan(const Csr &A, AIJTCLayout *layout, Work *work, Scratch &scratch, Scratch &kept, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (layout->m != layout->n || layout->params.rrows > 1) layout->params.gather = 0;
  for (bool planned = false; !planned;) {
    PetscCall(PlanSlices(A, layout, work, &planned, scratch, kept, stream));
    if (!planned) PetscCall(ForgetRows(layout, work->found, stream));
  }
  if (!layout->params.gather) {
    PetscCall(kept.Release());
    work->places = {};
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Build(const Csr &A, AIJTCLayout *layout, cudaStream_t stream)
{
  Scratch    scratch(stream), kept(stream);
  Work       work;
  const auto place = [&](Block &block) {
    block.Place(1, &work.found);
    block.Place(GroupsOf(layout->m, layout->params), &work.flag);
  };

  PetscFunctionBegin;
  PetscCall(AIJTCParamsResolve(layout->m, layout->n, 0, &AIJTC_TRAITS_EMPTY, &layout->params)); /* checks them */
  PetscCall(AllocateStart(layout, stream));
  if (!layout->m) {
    PetscCall(BuildEmpty(layout, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(scratch.GetAll(place));
  PetscCallCUDA(cudaMemsetAsync(work.found, 0, sizeof(*work.found), stream));
  PetscCall(Plan(A, layout, &work, scratch, kept, stream));
  PetscCall(SetStreamSizes(layout, work.streams));
  PetscCall(AllocateStreams(layout, stream));
  PetscCall(WritePattern(layout, A, work.places, work.unit, work.streams.mixed, stream));
  if (!PatternHasValues(layout)) PetscCall(StoreValues(layout, A.a, stream));
  PetscCall(SettleLayout(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutBuild_CUDA(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const AIJTCParams *params, AIJTCLayout *layout, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *layout        = AIJTCLayout{};
  layout->m      = m;
  layout->n      = n;
  layout->cuda   = PETSC_TRUE;
  layout->params = *params;
  ierr           = Build({i, j, a}, layout, stream);
  if (PetscUnlikely(ierr)) {
    (void)cudaStreamSynchronize(stream); /* kernels that were launched before the failure may still write */
    (void)AIJTCLayoutDestroy_CUDA(layout);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
