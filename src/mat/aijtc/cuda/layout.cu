/*
   Method
     The arrays of a layout in device memory: room for them, and their end. Arrays whose sizes become known at the same time share an allocation, and all come from the
     memory pool of the stream, which keeps what is given back (PETSc sets no limit): a layout that is built anew finds the memory of the one before, while cudaMalloc() and cudaFree() would map and
     unmap it, 5 to 100 us an array.

   Layout
     include/petsctc/private/aijtclayout.h, array by array as on the host

   Memory traffic
     4 bytes a long row: `arrived` begins as zeros.
*/
#include "build.cuh"

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

static __global__ void SettledKernel() { }

PetscErrorCode aijtcbuild::SettleLayout(cudaStream_t stream)
{
  PetscFunctionBegin;
  SettledKernel<<<1, 1, 0, stream>>>();
  PetscCallCUDA(cudaGetLastError());
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
