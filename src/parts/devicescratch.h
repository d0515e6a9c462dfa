/* Device memory for the time of an operation, taken from and given back to the stream that works on it: nothing waits. A failure is PETSc's memory error, unless the caller asks whether there is room, and leaves nothing behind. */
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/petsctcimpl.h>

template <class T>
class Scratch {
public:
  Scratch()                           = default;
  Scratch(const Scratch &)            = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch()
  {
    if (array_) (void)cudaFreeAsync(array_, stream_);
  }

  /* room: becomes false where there is none */
  PetscErrorCode allocate(size_t count, cudaStream_t stream, PetscBool *room)
  {
    cudaError_t cerr;

    PetscFunctionBegin;
    PetscCheck(!array_, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Allocated twice");
    if (!count || !*room) PetscFunctionReturn(PETSC_SUCCESS);
    cerr = cudaMallocAsync(reinterpret_cast<void **>(&array_), count * sizeof(T), stream);
    if (cerr == cudaErrorMemoryAllocation) {
      array_ = nullptr;
      *room  = PETSC_FALSE;
      (void)cudaGetLastError(); /* it is told here; it must not appear again after the next launch */
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCallCUDA(cerr);
    stream_ = stream;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscErrorCode allocate(size_t count, cudaStream_t stream)
  {
    PetscBool room = PETSC_TRUE;

    PetscFunctionBegin;
    PetscCall(allocate(count, stream, &room));
    PetscCheck(room, PETSC_COMM_SELF, PETSC_ERR_MEM, "No room for %zu bytes of work space in device memory: use a smaller matrix or more devices", count * sizeof(T));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  operator T *() const { return array_; }

private:
  T           *array_  = nullptr;
  cudaStream_t stream_ = nullptr;
};
