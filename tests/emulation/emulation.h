/*
   CUDA device code on processors: what a kernel finds, for a C++ compiler. Included before all else in each translated source (translate.py); emulation.cxx runs the kernels.

   Method   A block is a thread of the operating system, so that shared memory is thread-local; a block's threads are fibers of it, which go on until they wait for others: at a barrier of the block, or with the lanes of a mask
            at a shuffle or a vote. Blocks of a cooperative launch run at the same time, those of others two by two in their order. Launches, copies and events are over when their function returns; threads of a test may launch at once, and these kernels may wait for each other.
            A barrier that some threads never reach is found and told: nobody runs any more. Shared memory and what is allocated begin as NaN.
   Not here what depends on the machine's timing and order: memory orders weaker than that of the processor (races between blocks may not show), transactions, occupancy (one block a multiprocessor), registers. Multiply-adds
            that the device's compiler fuses by itself are fused as this one does it.
   Use      tests/emulation/run.sh
*/
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <petscdevice_cuda.h>

/* The headers of CUDA have seen the host's compiler; what follows are the sources of kernels */
#undef __shared__
#undef __launch_bounds__
#undef __global__
#undef __grid_constant__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __global__
#define __grid_constant__
#define __noinline__  __attribute__((noinline))
#define __CUDA_ARCH__ 900

extern thread_local uint3 blockIdx;
extern thread_local dim3  blockDim, gridDim;
#define threadIdx (emulation::current->index)

namespace emulation
{
struct Fiber {
  uint3  index;
  int    lane, warp;
  void  *stack;       /* where it goes on */
  Fiber *next, *prev; /* in the ring of those that run */
};

extern thread_local Fiber *current;
extern thread_local char  *dynamic_shared;

/* What all threads of a block vote at a barrier */
struct Vote {
  bool all, any;
};

void yield();
Vote blockBarrier(bool vote);
/* Leaves a value and waits for the lanes of the mask: theirs */
const unsigned long long *exchange(unsigned mask, unsigned long long value);
unsigned long long        nanoseconds();

void        launch(dim3 blocks, dim3 threads, size_t shared, bool cooperative, const std::function<void()> &body);
cudaError_t launchCooperative(const void *kernel, dim3 blocks, dim3 threads, void *arguments[], size_t shared, cudaStream_t stream);

/* kernel<<<blocks, threads, shared, stream>>>(..) */
template <class Call>
void launchCall(dim3 blocks, dim3 threads, size_t shared, cudaStream_t, Call call)
{
  launch(blocks, threads, shared, false, call);
}

/* cudaLaunchKernelEx() */
template <class... Parameters, class... Arguments>
cudaError_t launchConfigured(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...), Arguments &&...arguments)
{
  launch(config->gridDim, config->blockDim, config->dynamicSmemBytes, false, [&] { kernel(arguments...); });
  return cudaSuccess;
}

template <class T>
unsigned long long bitsOf(T value)
{
  unsigned long long bits = 0;

  static_assert(sizeof(T) <= sizeof(bits), "lanes exchange up to 8 bytes");
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T valueOf(unsigned long long bits)
{
  T value;

  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/* The value of lane from(lane) */
template <class T, class From>
T shuffle(unsigned mask, T value, From from)
{
  return valueOf<T>(exchange(mask, bitsOf(value))[from(current->lane)]);
}

template <class T, class Combine>
T reduce(unsigned mask, T value, Combine combine)
{
  const unsigned long long *values = exchange(mask, bitsOf(value));
  bool                      any    = false;
  T                         result = value;

  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    result = any ? combine(result, valueOf<T>(values[lane])) : valueOf<T>(values[lane]);
    any    = true;
  }
  return result;
}

/* ---- instructions that sources have as PTX */

typedef long long Pair __attribute__((vector_size(16)));

/* 16 bytes in one access */
inline void store16(void *to, uint64_t low, uint64_t high)
{
  *(volatile Pair *)to = Pair{(long long)low, (long long)high};
}
inline void load16(const void *from, uint64_t &low, uint64_t &high)
{
  const Pair pair = *(const volatile Pair *)from;

  low  = (uint64_t)pair[0];
  high = (uint64_t)pair[1];
}

/* mma.m8n8k4: four fused multiply-adds for each entry, in order. The device adds with at least that accuracy, in an order of its own */
inline void multiplyTile(double &d0, double &d1, double a, double b, double c0, double c1)
{
  const int                 row = current->lane / 4, column = 2 * (current->lane % 4);
  const unsigned long long *values = exchange(0xffffffffu, bitsOf(a));
  double                    as[4];

  for (int k = 0; k < 4; ++k) as[k] = valueOf<double>(values[4 * row + k]);
  values = exchange(0xffffffffu, bitsOf(b));
  d0     = c0;
  d1     = c1;
  for (int k = 0; k < 4; ++k) {
    d0 = std::fma(as[k], valueOf<double>(values[4 * column + k]), d0);
    d1 = std::fma(as[k], valueOf<double>(values[4 * (column + 1) + k]), d1);
  }
}

/* atom.inc: from `most` on back to 0 */
inline unsigned atomicIncrement(unsigned *at, unsigned most)
{
  unsigned before = __atomic_load_n(at, __ATOMIC_SEQ_CST), after;

  do after = before >= most ? 0 : before + 1;
  while (!__atomic_compare_exchange_n(at, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return before;
}

/* A barrier of bulk copies, which are over at once: the number of arrivals and, in the upper half, of threads that arrive in a phase */
inline uint64_t barrierOf(unsigned threads)
{
  return (uint64_t)threads << 32;
}
inline void arrive(uint64_t *barrier)
{
  __atomic_fetch_add(barrier, 1, __ATOMIC_SEQ_CST);
}
inline void copyBulk(void *to, const void *from, unsigned bytes)
{
  std::memcpy(to, from, bytes);
}
inline bool isOver(const uint64_t *barrier, unsigned parity)
{
  const uint64_t state = __atomic_load_n(barrier, __ATOMIC_SEQ_CST), phases = (uint32_t)state / (state >> 32);

  if ((phases & 1) != parity) return true;
  yield();
  return false;
}
} // namespace emulation

/* ---- functions of CUDA */

inline void __syncthreads()
{
  emulation::blockBarrier(true);
}
inline int __syncthreads_and(int vote)
{
  return emulation::blockBarrier(vote != 0).all;
}
inline int __syncthreads_or(int vote)
{
  return emulation::blockBarrier(vote != 0).any;
}
inline void __syncwarp(unsigned mask = 0xffffffffu)
{
  (void)emulation::exchange(mask, 0);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
  return emulation::shuffle(mask, value, [=](int lane) { return (lane & ~(width - 1)) + (from & (width - 1)); });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance)
{
  return emulation::shuffle(mask, value, [=](int lane) { return (lane ^ distance) & 31; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
  return emulation::shuffle(mask, value, [=](int lane) { return (lane & (width - 1)) + (int)distance < width ? lane + (int)distance : lane; });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
  return emulation::shuffle(mask, value, [=](int lane) { return (lane & (width - 1)) >= (int)distance ? lane - (int)distance : lane; });
}
inline unsigned __ballot_sync(unsigned mask, int vote)
{
  return emulation::reduce(mask, vote ? 1u << emulation::current->lane : 0u, [](unsigned a, unsigned b) { return a | b; });
}
inline int __all_sync(unsigned mask, int vote)
{
  return __ballot_sync(mask, !vote) == 0;
}
inline int __any_sync(unsigned mask, int vote)
{
  return __ballot_sync(mask, vote) != 0;
}
template <class T>
T __reduce_add_sync(unsigned mask, T value)
{
  return emulation::reduce(mask, value, [](T a, T b) { return (T)(a + b); });
}
template <class T>
T __reduce_or_sync(unsigned mask, T value)
{
  return emulation::reduce(mask, value, [](T a, T b) { return (T)(a | b); });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value)
{
  return emulation::reduce(mask, value, [](T a, T b) { return std::max(a, b); });
}
template <class T>
T __reduce_min_sync(unsigned mask, T value)
{
  return emulation::reduce(mask, value, [](T a, T b) { return std::min(a, b); });
}

template <class T>
T __ldg(const T *from)
{
  return *from;
}
template <class T>
T __ldcs(const T *from)
{
  return *from;
}
template <class T>
T __ldcg(const T *from)
{
  if constexpr (std::is_class_v<T>) return *from;
  else return *const_cast<const volatile T *>(from);
}
template <class T, class Value>
void __stcs(T *to, Value value)
{
  *to = value;
}
template <class T, class Value>
void __stcg(T *to, Value value)
{
  *to = value;
}

inline int __popc(unsigned x)
{
  return __builtin_popcount(x);
}
inline int __ffs(int x)
{
  return __builtin_ffs(x);
}
inline int __clz(int x)
{
  return x ? __builtin_clz((unsigned)x) : 32;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
  return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline long long __double_as_longlong(double x)
{
  return emulation::valueOf<long long>(emulation::bitsOf(x));
}
inline int __double2hiint(double x)
{
  return (int)(__double_as_longlong(x) >> 32);
}
inline double __longlong_as_double(long long x)
{
  return emulation::valueOf<double>(emulation::bitsOf(x));
}
inline unsigned __float_as_uint(float x)
{
  return (unsigned)emulation::bitsOf(x);
}
inline float __uint_as_float(unsigned x)
{
  return emulation::valueOf<float>(x);
}
inline void __threadfence()
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system()
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __trap()
{
  std::abort();
}

template <class T, class Value, class Combine>
T emulatedAtomic(T *at, Value value, Combine combine)
{
  T before = *const_cast<volatile T *>(at), after;

  do after = combine(before, (T)value);
  while (!__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return before;
}
template <class T, class Value>
T atomicAdd(T *at, Value value)
{
  return emulatedAtomic(at, value, [](T a, T b) { return (T)(a + b); });
}
template <class T, class Value>
T atomicOr(T *at, Value value)
{
  return emulatedAtomic(at, value, [](T a, T b) { return (T)(a | b); });
}
template <class T, class Value>
T atomicMax(T *at, Value value)
{
  return emulatedAtomic(at, value, [](T a, T b) { return std::max(a, b); });
}
template <class T, class Value>
T atomicMin(T *at, Value value)
{
  return emulatedAtomic(at, value, [](T a, T b) { return std::min(a, b); });
}
template <class T, class Value>
T atomicExch(T *at, Value value)
{
  return emulatedAtomic(at, value, [](T, T b) { return b; });
}
template <class T, class Compare, class Value>
T atomicCAS(T *at, Compare compare, Value value)
{
  T before = (T)compare, after = (T)value;

  (void)__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return before;
}

template <class A, class B>
std::common_type_t<A, B> min(A a, B b)
{
  return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B>
std::common_type_t<A, B> max(A a, B b)
{
  return std::max<std::common_type_t<A, B>>(a, b);
}

/* cuda_runtime.h has these for nvcc alone */
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value)
{
  return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(Parameters...))
{
  return cudaFuncGetAttributes(attributes, (const void *)kernel);
}
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*kernel)(Parameters...), int threads, size_t shared)
{
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, threads, shared);
}

/* Addresses are what they are */
inline size_t __cvta_generic_to_shared(const void *at)
{
  return (size_t)at;
}
inline size_t __cvta_generic_to_global(const void *at)
{
  return (size_t)at;
}
