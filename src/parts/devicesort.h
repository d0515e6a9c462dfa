/*
   Sorts and scans on the device that several parts of the library need, compiled once (src/parts/cuda/devicesort.cu): each instance of CUB takes the compiler seconds.

   memory NULL: *bytes becomes the work space that the call with memory takes, of the same n and bits. Nothing waits.
*/
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/petsctcimpl.h>
#include <stdint.h>

/* Pairs by ascending key, of which the lowest `bits` count; equal keys stay in their order */
PETSC_INTERN PetscErrorCode PetscTCSortPairs_CUDA(void *memory, size_t *bytes, const uint32_t key[], uint32_t sortedkey[], const int32_t value[], int32_t sorted[], PetscCount n, int bits, cudaStream_t);
PETSC_INTERN PetscErrorCode PetscTCSortLongPairs_CUDA(void *memory, size_t *bytes, const uint64_t key[], uint64_t sortedkey[], const int32_t value[], int32_t sorted[], PetscCount n, int bits, cudaStream_t);
#if PetscDefined(USE_64BIT_INDICES)
PETSC_INTERN PetscErrorCode PetscTCSortIndices_CUDA(void *memory, size_t *bytes, const PetscInt key[], PetscInt sortedkey[], const PetscInt value[], PetscInt sorted[], PetscCount n, int bits, cudaStream_t);
#endif

/* sum[k] <- number[0] + .. + number[k - 1]; in place if they are the same */
PETSC_INTERN PetscErrorCode PetscTCExclusiveSum_CUDA(void *memory, size_t *bytes, const PetscInt number[], PetscInt sum[], PetscCount n, cudaStream_t);
