/*
   Method
     The layout from the CSR arrays in device memory, without a copy of them to the host: order of the rows (build_order.cu), form and size of every slice (build_analyze.cu), the streams
     (build_write.cu). The host waits twice, for the numbers of slices and for the bytes of the streams, because it must ask for memory.

   Layout
     include/petsctc/private/aijtclayout.h; the same bytes as AIJTCLayoutBuild_Host()

   Memory traffic
     The CSR arrays twice and the layout once. A 7-point matrix of 256^3 rows with stored values: 3.9 GB, 0.9 ms at 4.3 TB/s, and the time of the allocations.

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
  const PetscInt   tile_rows = AIJTC_TILE_ROWS * layout->params.rtile, slice_rows = AIJTC_LANES * layout->params.rrows;
  const PetscInt   tiles = SlicesFor(counts.nmedium, tile_rows), listed = SlicesFor(counts.nrest, slice_rows);
  const PetscCount nrid = (PetscCount)counts.nlong + (PetscCount)tiles * tile_rows + (PetscCount)listed * slice_rows;

  PetscFunctionBegin;
  PetscCheck(counts.pieces + counts.consecutive + (PetscCount)tiles + listed <= PETSC_INT32_MAX - 1 && nrid <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "MATAIJTC's layout of %" PetscInt_FMT " rows needs more than 2^31 - 1 slices or places for rows: use more processes", layout->m);
  layout->nlong               = (PetscInt)counts.nlong;
  layout->nmedium             = (PetscInt)counts.nmedium;
  layout->nempty              = (PetscInt)counts.nempty;
  layout->nshort              = layout->m - layout->nlong - layout->nmedium - layout->nempty;
  layout->nslices[AIJTC_LONG] = (PetscInt)counts.pieces;
  layout->nslices[AIJTC_TILE] = tiles;
  layout->nslices[AIJTC_ROWS] = (PetscInt)counts.consecutive + listed;
  layout->nconsecutive        = (PetscInt)counts.consecutive;
  layout->rid_tile            = layout->nlong;
  layout->rid_rows            = layout->rid_tile + tiles * tile_rows;
  layout->nrid                = (PetscInt)nrid;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for the streams, and the dictionary */
PetscErrorCode AllocateStreams(AIJTCLayout *layout, const StreamCounts &counts, const PetscScalar dict[], cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCheck(PetscMax(counts.total.pattern, counts.total.value) <= UINT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATAIJTC's layout needs streams of more than %d * 2^32 bytes: use more processes", (int)AIJTC_UNIT);
  layout->npattern     = (PetscCount)counts.total.pattern * AIJTC_UNIT;
  layout->nvalue       = (PetscCount)counts.total.value * AIJTC_UNIT;
  layout->ndict        = counts.ndict;
  layout->exact_always = counts.inexact ? PETSC_FALSE : PETSC_TRUE;
  PetscCall(DeviceMalloc(layout->npattern, &layout->pattern));
  PetscCall(DeviceMalloc(layout->nvalue, &layout->value));
  if (layout->ndict) {
    PetscCall(DeviceMalloc(AIJTC_MAX_DICT, &layout->dict));
    PetscCallCUDA(cudaMemcpyAsync(layout->dict, dict, AIJTC_MAX_DICT * sizeof(*dict), cudaMemcpyDeviceToDevice, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Build(const Csr &A, AIJTCLayout *layout, cudaStream_t stream)
{
  const PetscInt groups = GroupsOf(layout->m, layout->params);
  Scratch        scratch(stream);
  RowCounts      rows;
  StreamCounts   streams;
  uint8_t       *flag;
  PetscInt      *group, slices;
  PetscScalar   *dict;
  Units         *unit;

  PetscFunctionBegin;
  PetscCall(AIJTCParamsResolve(layout->m, layout->n, 0, 1, PETSC_TRUE, &layout->params)); /* checks them */
  PetscCall(DeviceMalloc((PetscCount)layout->m + 1, &layout->start));
  if (!layout->m) {
    PetscCallCUDA(cudaMemsetAsync(layout->start, 0, sizeof(*layout->start), stream));
    layout->exact_always = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cudaMemcpyAsync(layout->start, A.i, (size_t)(layout->m + 1) * sizeof(*A.i), cudaMemcpyDeviceToDevice, stream));
  PetscCall(scratch.Get(groups, &flag));
  PetscCall(ClassifyRows(layout->m, A.i, layout->params, flag, scratch, &rows, stream));
  layout->nnz = (PetscCount)rows.nnz;
  PetscCall(SetSizes(layout, rows));
  slices = AIJTCSlicesTotal(layout);
  PetscCall(DeviceMalloc(slices, &layout->slice));
  PetscCall(DeviceMalloc(layout->nrid, &layout->rid));
  PetscCall(DeviceMalloc(layout->nslices[AIJTC_LONG], &layout->partial));
  if (layout->nlong) PetscCall(DeviceMalloc((PetscCount)layout->nlong + 1, &layout->long_piece));
  PetscCall(OrderRows(layout, A.i, flag, rows, &group, scratch, stream));
  PetscCall(scratch.Get(AIJTC_MAX_DICT, &dict));
  PetscCall(scratch.Get((PetscCount)slices + 1, &unit));
  PetscCall(AnalyzeSlices(layout, A, group, dict, unit, scratch, &streams, stream));
  PetscCall(AllocateStreams(layout, streams, dict, stream));
  PetscCall(WriteSlices(layout, A, unit, stream));
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
