/*
   Method
     Values of the same pattern into the forms that the slices have, one warp a slice. In CSR order the entry of a slot is known; in merged order every lane counts the mask bits that it has passed,
     which is how many entries of its row it has taken. Columns are not read. A value that its form does not hold sets a flag; the host reads it, and so waits, only if some form can fail.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     8 bytes a nonzero and 4 a row read, the masks of slices in merged order, the values written. A 7-point matrix of 256^3 rows with stored values: 1.04 GB read, 0.94 GB written: 460 us at 4.3 TB/s.
*/
#include "build_values.cuh"

namespace aijtcbuild
{
namespace
{
struct RefreshView {
  const AIJTCSlice  *slice;
  const uint8_t     *pattern;
  uint8_t           *value;
  const PetscInt    *rid, *start;
  const PetscScalar *dict, *a;
  int                ndict;
  int               *misfit;
};

template <int R>
__device__ void RefreshMerged(const AIJTCSlice &slice, const SliceRows<R> &rows, const RefreshView &A, int period, ValueStore<true> &values, int lane)
{
  const AIJTCSlot *head = reinterpret_cast<const AIJTCSlot *>(A.pattern + (size_t)AIJTC_UNIT * slice.pattern);
  const uint32_t  *bits = reinterpret_cast<const uint32_t *>(head + slice.slots);
  PetscInt         next[R];

#pragma unroll
  for (int r = 0; r < R; r++) next[r] = rows.begin[r];
#pragma unroll 2
  for (int32_t t = 0; t < slice.slots; t++) {
    const uint32_t where = __ldg(&head[t].where);
    unsigned       placed[R];
    Slot<R>        slot;

#pragma unroll
    for (int r = 0; r < R; r++) {
      const unsigned mask = slice.form & AIJTC_FORM_FULL ? ALL_LANES : __ldg(bits + (size_t)t * R + r);

      placed[r]    = PlacedLanes(slice, mask);
      slot.has[r]  = mask >> lane & 1;
      slot.bits[r] = slot.has[r] ? BitsOf(A.a, next[r]) : 0;
      next[r] += slot.has[r];
    }
    if (slice.form & AIJTC_FORM_CONST) values.PutConstant(slot, rows.rem, period, t * period, lane);
    else if (where & AIJTC_SLOT_CONST) values.PutConstant(slot, rows.rem, period, (int32_t)(where & ~AIJTC_SLOT_CONST), lane);
    else values.PutEntries(slot, placed, (int32_t)where, lane);
  }
}

template <int R>
__device__ void RefreshCSR(const AIJTCSlice &slice, const SliceRows<R> &rows, const RefreshView &A, int period, ValueStore<true> &values, int lane)
{
  int32_t before = 0;

  for (int32_t t = 0; t < slice.slots; t++) {
    unsigned placed[R];
    Slot<R>  slot;

#pragma unroll
    for (int r = 0; r < R; r++) {
      slot.has[r]  = rows.Has(r, t);
      slot.bits[r] = slot.has[r] ? BitsOf(A.a, rows.Place(r, t)) : 0;
      placed[r]    = PlacedLanes(slice, __ballot_sync(ALL_LANES, slot.has[r]));
    }
    if (slice.form & AIJTC_FORM_CONST) values.PutConstant(slot, rows.rem, period, t * period, lane);
    else values.PutEntries(slot, placed, before, lane);
#pragma unroll
    for (int r = 0; r < R; r++) before += __popc(placed[r]);
  }
}

template <int R>
__global__ void __launch_bounds__(THREADS) RefreshKernel(SliceShape shape, RefreshView A, PetscInt begin, PetscInt end)
{
  __shared__ DictCopy dict;
  const int           lane = (int)threadIdx.x % AIJTC_LANES;
  const PetscInt      s    = begin + (PetscInt)blockIdx.x * WARPS + (PetscInt)threadIdx.x / AIJTC_LANES;

  dict.Load(A.dict, A.ndict);
  if (s >= end) return;

  const AIJTCSlice slice = A.slice[s];
  ValueStore<true> values(A.value, slice, dict);
  SliceRows<R>     rows;

  rows.Load(shape, slice, A.rid, A.start, lane);
  if (IsMerged(shape, slice)) RefreshMerged(slice, rows, A, shape.period(), values, lane);
  else RefreshCSR(slice, rows, A, shape.period(), values, lane);
  if (!values.fits) *A.misfit = 1;
}

template <int R>
PetscErrorCode LaunchRefresh(const AIJTCLayout *layout, AIJTCKind kind, PetscInt begin, const RefreshView &A, cudaStream_t stream)
{
  const SliceShape shape = {kind, layout->m, (int)layout->params.bs};
  const PetscInt   count = layout->nslices[kind];

  PetscFunctionBegin;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  RefreshKernel<R><<<BlocksFor(count, WARPS), THREADS, 0, stream>>>(shape, A, begin, begin + count);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RefreshKinds(const AIJTCLayout *layout, const PetscScalar a[], int *misfit, cudaStream_t stream)
{
  const PetscInt    rtile = layout->params.rtile, rrows = layout->params.rrows, tiles = layout->nslices[AIJTC_LONG], rows = tiles + layout->nslices[AIJTC_TILE];
  const RefreshView A = {layout->slice, layout->pattern, layout->value, layout->rid, layout->start, layout->dict, a, (int)layout->ndict, misfit};

  PetscFunctionBegin;
  PetscCall(LaunchRefresh<1>(layout, AIJTC_LONG, 0, A, stream));
  if (rtile == 1) PetscCall(LaunchRefresh<1>(layout, AIJTC_TILE, tiles, A, stream));
  else PetscCall(LaunchRefresh<4>(layout, AIJTC_TILE, tiles, A, stream));
  if (rrows == 1) PetscCall(LaunchRefresh<1>(layout, AIJTC_ROWS, rows, A, stream));
  else if (rrows == 2) PetscCall(LaunchRefresh<2>(layout, AIJTC_ROWS, rows, A, stream));
  else PetscCall(LaunchRefresh<4>(layout, AIJTC_ROWS, rows, A, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace
} // namespace aijtcbuild

PetscErrorCode AIJTCLayoutRefresh_CUDA(AIJTCLayout *layout, const PetscScalar a[], PetscBool *fits, PetscTCStream stream)
{
  aijtcbuild::Scratch scratch(stream);
  int                *misfit = nullptr, found = 0;

  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutRefresh_Host()");
  *fits = PETSC_TRUE;
  if (!layout->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (!layout->exact_always) {
    PetscCall(scratch.Get(1, &misfit));
    PetscCallCUDA(cudaMemsetAsync(misfit, 0, sizeof(*misfit), stream));
  }
  PetscCall(aijtcbuild::RefreshKinds(layout, a, misfit, stream));
  PetscCall(aijtcbuild::SettleLayout(stream));
  if (layout->exact_always) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemcpyAsync(&found, misfit, sizeof(found), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  *fits = found ? PETSC_FALSE : PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
