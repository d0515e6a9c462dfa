/*
   Method
     The layout in device memory: upload of the pattern built on the host, value refresh by one gather through the permutation, destruction.

   Layout
     include/petsctc/private/aijtclayout.h, array by array as on the host

   Memory traffic
     Upload: 12 bytes a slot (20 with values) from pageable host memory. Refresh: 24 bytes a slot; a 7-point matrix of 101^3 rows has 8.24 million slots: 198 MB,
     46 us at 4.3 TB/s.
*/
#include <petsctc/private/aijtclayout.h>
#include <petscdevice_cuda.h>

namespace
{
constexpr int REFRESH_THREADS = 256;

/* Leaves NULL for an empty array and on failure */
template <class T>
PetscErrorCode DeviceMalloc(PetscCount count, T **array)
{
  const size_t bytes = (size_t)count * sizeof(T);
  cudaError_t  cerr;

  PetscFunctionBegin;
  *array = nullptr;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  cerr = cudaMalloc(array, bytes);
  if (cerr == cudaErrorMemoryAllocation) {
    *array = nullptr;
    (void)cudaGetLastError(); /* the failure is reported here; it must not appear again after the next launch */
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "No room for %zu bytes of MATAIJTC's layout in device memory: use a smaller matrix or more devices", bytes);
  }
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every array gets its room before anything is copied; values too, so that a refresh cannot run out of memory */
PetscErrorCode AllocateArrays(AIJTCLayout *device)
{
  const PetscCount slots = device->ntiles * AIJTC_TILE;

  PetscFunctionBegin;
  PetscCall(DeviceMalloc(device->nrid, &device->rid));
  PetscCall(DeviceMalloc(device->npieces + 1, &device->piece_tile));
  PetscCall(DeviceMalloc(device->nlong + 1, &device->long_piece));
  PetscCall(DeviceMalloc(device->npieces, &device->partial));
  PetscCall(DeviceMalloc(device->nslices + 1, &device->slice_tile));
  PetscCall(DeviceMalloc(slots, &device->col));
  PetscCall(DeviceMalloc(slots, &device->perm));
  PetscCall(DeviceMalloc(slots, &device->val));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class T>
PetscErrorCode CopyToDevice(PetscCount count, const T *host, T *device, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (count && host) PetscCallCUDA(cudaMemcpyAsync(device, host, (size_t)count * sizeof(T), cudaMemcpyHostToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Upload(const AIJTCLayout *host, AIJTCLayout *device, cudaStream_t stream)
{
  const PetscCount slots = host->ntiles * AIJTC_TILE;

  PetscFunctionBegin;
  PetscCall(AllocateArrays(device));
  PetscCall(CopyToDevice(host->nrid, host->rid, device->rid, stream));
  PetscCall(CopyToDevice(host->npieces + 1, host->piece_tile, device->piece_tile, stream));
  PetscCall(CopyToDevice(host->nlong + 1, host->long_piece, device->long_piece, stream));
  PetscCall(CopyToDevice(host->nslices + 1, host->slice_tile, device->slice_tile, stream));
  PetscCall(CopyToDevice(slots, host->col, device->col, stream));
  PetscCall(CopyToDevice(slots, host->perm, device->perm, stream));
  PetscCall(CopyToDevice(slots, host->val, device->val, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ void RefreshKernel(PetscCount slots, const PetscCount *__restrict__ perm, const PetscScalar *__restrict__ a, PetscScalar *__restrict__ val)
{
  const PetscCount s = (PetscCount)blockIdx.x * REFRESH_THREADS + threadIdx.x;

  if (s < slots) {
    const PetscCount e = __ldcs(perm + s);

    val[s] = e < 0 ? 0.0 : __ldg(a + e);
  }
}
} // namespace

PetscErrorCode AIJTCLayoutUpload_CUDA(const AIJTCLayout *host, AIJTCLayout *device, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *device            = *host;
  device->cuda       = PETSC_TRUE;
  device->val        = nullptr;
  device->col        = nullptr;
  device->perm       = nullptr;
  device->rid        = nullptr;
  device->piece_tile = nullptr;
  device->long_piece = nullptr;
  device->slice_tile = nullptr;
  device->partial    = nullptr;
  ierr               = Upload(host, device, stream);
  if (PetscUnlikely(ierr)) (void)AIJTCLayoutDestroy_CUDA(device);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutDestroy_CUDA(AIJTCLayout *layout)
{
  void *const arrays[] = {layout->val, layout->col, layout->perm, layout->rid, layout->piece_tile, layout->long_piece, layout->slice_tile, layout->partial};
  cudaError_t cerr     = cudaSuccess;

  PetscFunctionBegin;
  /* A failed free does not keep the others from being tried, nor leaves a pointer that would be freed again */
  for (void *array : arrays) {
    const cudaError_t e = array ? cudaFree(array) : cudaSuccess;

    if (cerr == cudaSuccess) cerr = e;
  }
  *layout = AIJTCLayout{};
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutRefresh_CUDA(AIJTCLayout *layout, const PetscScalar a[], PetscTCStream stream)
{
  const PetscCount slots = layout->ntiles * AIJTC_TILE;

  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutRefresh_Host()");
  if (!slots) PetscFunctionReturn(PETSC_SUCCESS);
  RefreshKernel<<<(unsigned)((slots + REFRESH_THREADS - 1) / REFRESH_THREADS), REFRESH_THREADS, 0, stream>>>(slots, layout->perm, a, layout->val);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCDeviceHasMMA_CUDA(PetscBool *has)
{
  int device, major;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  *has = (PetscBool)(major >= 8);
  PetscFunctionReturn(PETSC_SUCCESS);
}
