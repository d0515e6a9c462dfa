/* Memory of the host that kernels write and read */
#pragma once

#include <cstring>
#include <petscdevice_cuda.h>

/* n of them, all zero, at least one. Freed by cudaFreeHost(*host) */
template <class T>
static PetscErrorCode PetscTCMapped(size_t n, T **host, T **device)
{
  const size_t bytes = PetscMax(n, (size_t)1) * sizeof(T);

  PetscFunctionBegin;
  PetscCallCUDA(cudaHostAlloc(reinterpret_cast<void **>(host), bytes, cudaHostAllocMapped));
  std::memset(*host, 0, bytes);
  PetscCallCUDA(cudaHostGetDevicePointer(reinterpret_cast<void **>(device), *host, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
