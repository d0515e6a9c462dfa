/*
   What tests of kernels of several processes share, whose GPUs store into each other's memory. Without MPI: all processes of a test are one. Kernels that wait for each other run side by side: each rank has a thread and a stream. Their
   grids are small, so all are on one device at once.
*/
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>
#include <gtest/gtest.h>
#include <../src/comm/peers.h>

#if PETSCTC_HAVE_CUDA
  #include <cuda_runtime.h>

/* The clock of emulated kernels is slow */
  #if defined(PETSCTC_EMULATED)
constexpr double clock_rate = 0.01;
  #else
constexpr double clock_rate = 1.0;
  #endif

/* How long a kernel waits, in the units of PetscTCPeers */
inline unsigned patienceOf(double seconds)
{
  return (unsigned)(clock_rate * seconds * 1e9 / 1024.0);
}

constexpr double patient = 10.0, impatient = 0.005; /* seconds: a test has failed then; and where nobody will come */

/* Numbers that kernels of all ranks reach, all zero at first. mapped: memory of the host, which a test reads and writes while kernels run */
template <class T>
class Shared {
public:
  Shared(size_t count, bool mapped) : n(std::max(count, (size_t)1)), mapped(mapped)
  {
    void *memory = nullptr;

    if (mapped) {
      EXPECT_EQ(cudaSuccess, cudaHostAlloc(&memory, n * sizeof(T), cudaHostAllocMapped));
      std::memset(memory, 0, n * sizeof(T));
    } else {
      EXPECT_EQ(cudaSuccess, cudaMalloc(&memory, n * sizeof(T)));
      EXPECT_EQ(cudaSuccess, cudaMemset(memory, 0, n * sizeof(T)));
    }
    at = static_cast<T *>(memory);
  }
  Shared(const Shared &)            = delete;
  Shared &operator=(const Shared &) = delete;
  ~Shared() { EXPECT_EQ(cudaSuccess, mapped ? cudaFreeHost(at) : cudaFree(at)); }

                 operator T *() const { return at; }
  void           set(const std::vector<T> &values) { EXPECT_EQ(cudaSuccess, cudaMemcpy(at, values.data(), std::min(n, values.size()) * sizeof(T), cudaMemcpyDefault)); }
  std::vector<T> get() const
  {
    std::vector<T> values(n);

    EXPECT_EQ(cudaSuccess, cudaMemcpy(values.data(), at, n * sizeof(T), cudaMemcpyDefault));
    return values;
  }

private:
  size_t n;
  bool   mapped;
  T     *at = nullptr;
};

template <class T>
using SharedOfRanks = std::vector<std::unique_ptr<Shared<T>>>;

/* does(rank, stream) of all ranks at once. What it asks for is over when this returns */
inline void sideBySide(int ranks, const std::function<void(int, cudaStream_t)> &does)
{
  std::vector<cudaStream_t> streams(ranks);
  std::vector<std::thread>  threads;

  for (cudaStream_t &stream : streams) EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize()); /* these streams do not wait for copies of other ones */
  for (int rank = 0; rank < ranks; rank++) {
    threads.emplace_back([&, rank] {
      does(rank, streams[rank]);
      EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(streams[rank])) << "rank " << rank;
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}
#endif
