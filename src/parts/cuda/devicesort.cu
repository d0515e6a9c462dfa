/*
   Method
     CUB's radix sort and scan, in one place.

   Layout
     src/parts/devicesort.h

   Memory traffic
     Sort: one pass over keys and values for each 8 bits of the key, read and written. Scan: each number read once and written once.

   References
     CCCL, cub::DeviceRadixSort, cub::DeviceScan;
     Adinets, Merrill, Onesweep: a faster least significant digit radix sort for GPUs, 2022;
     Merrill, Garland, Single-pass parallel prefix scan with decoupled look-back, 2016
*/
#include <../src/parts/devicesort.h>

/* Warnings of CUB's headers are not ours */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

PetscErrorCode PetscTCSortPairs_CUDA(void *memory, size_t *bytes, const uint32_t key[], uint32_t sortedkey[], const int32_t value[], int32_t sorted[], PetscCount n, int bits, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(memory, *bytes, key, sortedkey, value, sorted, (int64_t)n, 0, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCSortLongPairs_CUDA(void *memory, size_t *bytes, const uint64_t key[], uint64_t sortedkey[], const int32_t value[], int32_t sorted[], PetscCount n, int bits, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(memory, *bytes, key, sortedkey, value, sorted, (int64_t)n, 0, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(USE_64BIT_INDICES)
PetscErrorCode PetscTCSortIndices_CUDA(void *memory, size_t *bytes, const PetscInt key[], PetscInt sortedkey[], const PetscInt value[], PetscInt sorted[], PetscCount n, int bits, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(memory, *bytes, key, sortedkey, value, sorted, (int64_t)n, 0, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode PetscTCExclusiveSum_CUDA(void *memory, size_t *bytes, const PetscInt number[], PetscInt sum[], PetscCount n, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(memory, *bytes, number, sum, (int64_t)n, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
