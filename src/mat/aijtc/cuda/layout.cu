/*
   Method
     The arrays of a layout in device memory: room for them, copies from and to the host, their end. Arrays whose sizes become known at the same time share an allocation, and all come from the
     memory pool of the stream, which keeps what is given back (PETSc sets no limit): a layout that is built anew finds the memory of the one before, while cudaMalloc() and cudaFree() would map and
     unmap it, 5 to 100 us an array.

   Layout
     include/petsctc/private/aijtclayout.h, array by array as on the host

   Memory traffic
     A copy moves AIJTCLayoutBytes() between host and device; only tests and tuning copy.
*/
#include "build.cuh"
#include "../host/slice.h"

namespace aijtcbuild
{
static PetscErrorCode CheckMalloc(cudaError_t cerr, size_t bytes, void **array)
{
  PetscFunctionBegin;
  if (cerr == cudaErrorMemoryAllocation) {
    *array = nullptr;
    (void)cudaGetLastError(); /* the failure is reported here; it must not appear again after the next launch */
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "No room for %zu bytes of MATAIJTC's layout in device memory: use a smaller matrix or more devices", bytes);
  }
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DeviceMallocBytes(size_t bytes, void **array)
{
  PetscFunctionBegin;
  *array = nullptr;
  if (bytes) PetscCall(CheckMalloc(cudaMalloc(array, bytes), bytes, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DeviceMallocBytes(size_t bytes, void **array, cudaStream_t stream)
{
  PetscFunctionBegin;
  *array = nullptr;
  if (bytes) PetscCall(CheckMalloc(cudaMallocAsync(array, bytes, stream), bytes, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* memory[which] of a layout, with the arrays that `place` puts there */
template <class Place>
static PetscErrorCode AllocateBlock(AIJTCLayout *layout, int which, Place place, cudaStream_t stream)
{
  Block count, block;

  PetscFunctionBegin;
  place(count);
  PetscCall(DeviceMallocBytes(count.bytes, &layout->memory[which], stream));
  block.memory = static_cast<uint8_t *>(layout->memory[which]);
  place(block);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AllocateStart(AIJTCLayout *layout, cudaStream_t stream)
{
  const auto place = [layout](Block &block) {
    block.Place((PetscCount)layout->m + 1, &layout->start);
    block.Place(1, &layout->misfit);
  };

  PetscFunctionBegin;
  PetscCall(AllocateBlock(layout, 0, place, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AllocateSlices(AIJTCLayout *layout, cudaStream_t stream)
{
  const auto place = [layout](Block &block) {
    block.Place(AIJTCSlicesTotal(layout), &layout->slice);
    block.Place(layout->nrid, &layout->rid);
    block.Place(layout->nlong ? (PetscCount)layout->nlong + 1 : 0, &layout->long_piece);
    block.Place(layout->nslices[AIJTC_LONG], &layout->partial);
    block.Place(layout->nlong, &layout->arrived);
    block.Place(AIJTC_MAX_DICT, &layout->dict);
  };

  PetscFunctionBegin;
  PetscCall(AllocateBlock(layout, 1, place, stream));
  if (layout->nlong) PetscCallCUDA(cudaMemsetAsync(layout->arrived, 0, layout->nlong * sizeof(*layout->arrived), stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AllocateStreams(AIJTCLayout *layout, cudaStream_t stream)
{
  const auto place = [layout](Block &block) {
    block.Place(layout->npattern, &layout->pattern);
    block.Place(layout->nvalue, &layout->value);
  };

  PetscFunctionBegin;
  PetscCall(AllocateBlock(layout, 2, place, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AllocateLists(AIJTCLayout *layout, cudaStream_t stream)
{
  const auto place = [layout](Block &block) {
    block.Place((PetscCount)layout->nblocks + 1, &layout->list_start);
    block.Place(layout->nlist, &layout->list);
  };

  PetscFunctionBegin;
  PetscCall(AllocateBlock(layout, 3, place, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild

namespace
{
/* One array of a copy */
template <class T>
PetscErrorCode ToDevice(PetscCount count, const T *host, T *device, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (host && count) PetscCallCUDA(cudaMemcpyAsync(device, host, (size_t)count * sizeof(T), cudaMemcpyHostToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class T>
PetscErrorCode ToHost(PetscCount count, const T *device, T **host, cudaStream_t stream)
{
  PetscFunctionBegin;
  *host = nullptr;
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(count, host));
  PetscCallCUDA(cudaMemcpyAsync(*host, device, (size_t)count * sizeof(T), cudaMemcpyDeviceToHost, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does every slice hold any values, whatever they are? */
PetscBool IsExactAlways(const AIJTCLayout *host)
{
  for (PetscInt s = 0; s < AIJTCSlicesTotal(host); s++) {
    const AIJTCSlice *slice = host->slice + s;

    if (AIJTCFormValue(slice->form) != AIJTC_VALUE_DOUBLE || slice->values != AIJTCSlicePlaces(slice, AIJTCKindGroups(AIJTCSliceKind(host, s), &host->params))) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* Entries of the largest slice of consecutive rows */
PetscInt LargestEntries(const AIJTCLayout *host)
{
  const PetscInt first   = host->nslices[AIJTC_LONG] + host->nslices[AIJTC_TILE];
  PetscInt       largest = 0;

  for (PetscInt s = first; s < first + host->nconsecutive; s++) largest = PetscMax(largest, (PetscInt)host->slice[s].entries);
  return largest;
}

/* The sizes and what was found, without the arrays */
AIJTCLayout WithoutArrays(const AIJTCLayout &from, PetscBool cuda)
{
  AIJTCLayout to = from;

  to.cuda         = cuda;
  to.slice        = nullptr;
  to.pattern      = nullptr;
  to.value        = nullptr;
  to.dict         = nullptr;
  to.rid          = nullptr;
  to.long_piece   = nullptr;
  to.partial      = nullptr;
  to.arrived      = nullptr;
  to.list_start   = nullptr;
  to.list         = nullptr;
  to.start        = nullptr;
  to.misfit       = nullptr;
  to.largest      = 0;
  to.exact_always = PETSC_FALSE;
  for (void *&memory : to.memory) memory = nullptr;
  return to;
}

PetscErrorCode Upload(const AIJTCLayout *host, AIJTCLayout *device, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(aijtcbuild::AllocateStart(device, stream));
  PetscCall(aijtcbuild::AllocateSlices(device, stream));
  PetscCall(aijtcbuild::AllocateStreams(device, stream));
  if (device->params.gather) PetscCall(aijtcbuild::AllocateLists(device, stream));
  if (!host->dict) device->dict = nullptr;
  PetscCall(ToDevice(AIJTCSlicesTotal(host), host->slice, device->slice, stream));
  PetscCall(ToDevice(host->npattern, host->pattern, device->pattern, stream));
  PetscCall(ToDevice(host->nvalue, host->value, device->value, stream));
  PetscCall(ToDevice(AIJTC_MAX_DICT, host->dict, device->dict, stream));
  PetscCall(ToDevice(host->nrid, host->rid, device->rid, stream));
  PetscCall(ToDevice((PetscCount)host->nlong + 1, host->long_piece, device->long_piece, stream));
  PetscCall(ToDevice((PetscCount)host->nblocks + 1, host->list_start, device->list_start, stream));
  PetscCall(ToDevice(host->nlist, host->list, device->list, stream));
  PetscCall(ToDevice((PetscCount)host->m + 1, host->start, device->start, stream));
  PetscCallCUDA(cudaMemsetAsync(device->misfit, 0, sizeof(*device->misfit), stream));
  device->largest      = LargestEntries(host);
  device->exact_always = IsExactAlways(host);
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Download(const AIJTCLayout *device, AIJTCLayout *host, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(ToHost(AIJTCSlicesTotal(device), device->slice, &host->slice, stream));
  PetscCall(ToHost(device->npattern, device->pattern, &host->pattern, stream));
  PetscCall(ToHost(device->nvalue, device->value, &host->value, stream));
  PetscCall(ToHost(AIJTC_MAX_DICT, device->dict, &host->dict, stream));
  PetscCall(ToHost(device->nrid, device->rid, &host->rid, stream));
  PetscCall(ToHost((PetscCount)device->nlong + 1, device->long_piece, &host->long_piece, stream));
  PetscCall(ToHost((PetscCount)device->nblocks + 1, device->list_start, &host->list_start, stream));
  PetscCall(ToHost(device->nlist, device->list, &host->list, stream));
  PetscCall(ToHost((PetscCount)device->m + 1, device->start, &host->start, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

static __global__ void SettledKernel() { }

PetscErrorCode aijtcbuild::SettleLayout(cudaStream_t stream)
{
  PetscFunctionBegin;
  SettledKernel<<<1, 1, 0, stream>>>();
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutUpload_CUDA(const AIJTCLayout *host, AIJTCLayout *device, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(!host->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout to copy from lives in device memory: give one of host memory");
  *device = WithoutArrays(*host, PETSC_TRUE);
  ierr    = Upload(host, device, stream);
  if (PetscUnlikely(ierr)) (void)AIJTCLayoutDestroy_CUDA(device);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutDownload_CUDA(const AIJTCLayout *device, AIJTCLayout *host, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(device->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout to copy from lives in host memory: give one of device memory");
  *host = WithoutArrays(*device, PETSC_FALSE);
  ierr  = Download(device, host, stream);
  if (PetscUnlikely(ierr)) (void)AIJTCLayoutDestroy_Host(host);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory of a pool goes back to it at once, whoever still reads it: hence the wait */
PetscErrorCode AIJTCLayoutDestroy_CUDA(AIJTCLayout *layout)
{
  cudaError_t cerr = layout->memory[0] ? cudaDeviceSynchronize() : cudaSuccess;

  PetscFunctionBegin;
  /* A failed free does not keep the others from being tried, nor leaves a pointer that would be freed again */
  for (void *memory : layout->memory) {
    const cudaError_t e = memory ? cudaFree(memory) : cudaSuccess;

    if (cerr == cudaSuccess) cerr = e;
  }
  *layout = AIJTCLayout{};
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
