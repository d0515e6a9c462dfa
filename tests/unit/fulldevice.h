/* A device without free memory */
#pragma once

#include <gtest/gtest.h>
#include <petsctc/private/petsctcimpl.h>
#include <vector>

#if PETSCTC_HAVE_CUDA
  #include <cuda_runtime.h>

/* Takes all device memory, and gives it back piece by piece */
class FullDevice {
public:
  FullDevice()
  {
    size_t available = 0, total = 0;

    EXPECT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
    for (size_t bytes = available; bytes >= least;) {
      void *piece = nullptr;

      if (cudaMalloc(&piece, bytes) == cudaSuccess) pieces.push_back(piece);
      else {
        (void)cudaGetLastError();
        bytes /= 2;
      }
    }
  }
  FullDevice(const FullDevice &) = delete;
  ~FullDevice()
  {
    while (GiveBack()) { }
  }
  bool GiveBack()
  {
    if (pieces.empty()) return false;
    EXPECT_EQ(cudaFree(pieces.back()), cudaSuccess);
    pieces.pop_back();
    return true;
  }

private:
  static constexpr size_t least = 256; /* the unit of cudaMalloc(): less leaves room for small arrays */
  std::vector<void *>     pieces;
};

/* What streams gave back leaves the pool, where builds would find it */
inline cudaError_t EmptyPool()
{
  int           device = 0;
  cudaMemPool_t pool   = nullptr;
  cudaError_t   cerr   = cudaGetDevice(&device);

  if (cerr == cudaSuccess) cerr = cudaDeviceGetDefaultMemPool(&pool, device);
  return cerr == cudaSuccess ? cudaMemPoolTrimTo(pool, 0) : cerr;
}

#endif
