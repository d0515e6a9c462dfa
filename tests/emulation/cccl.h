/* What the sources use of CCCL, in place of its headers (translate.py): the same results, one after the other */
#pragma once

#include <numeric>
#include <vector>
#include <petscdevice_cuda.h>

namespace thrust
{
template <class T>
struct counting_iterator {
  T first;

  explicit counting_iterator(T first) : first(first) { }
  T operator[](int64_t k) const { return (T)(first + k); }
};

template <class T>
counting_iterator<T> make_counting_iterator(T first)
{
  return counting_iterator<T>(first);
}

template <class From, class Function>
struct transform_iterator {
  From     from;
  Function function;

  auto operator[](int64_t k) const { return function(from[k]); }
};

template <class From, class Function>
transform_iterator<From, Function> make_transform_iterator(From from, Function function)
{
  return {from, function};
}
} // namespace thrust

namespace cub
{
/* The first call of a device-wide function asks for the size of its work. True: this is it */
inline bool asksForBytes(const void *work, size_t &bytes)
{
  bytes = 1;
  return !work;
}

struct DeviceScan {
  template <class From, class To, class Add, class T>
  static cudaError_t ExclusiveScan(void *work, size_t &bytes, From from, To to, Add add, T first, int64_t n, cudaStream_t)
  {
    for (int64_t k = 0; !asksForBytes(work, bytes) && k < n; k++) {
      const T value = from[k]; /* which may be to[k] */

      to[k] = first;
      first = add(first, value);
    }
    return cudaSuccess;
  }
  template <class From, class T>
  static cudaError_t ExclusiveSum(void *work, size_t &bytes, From from, T *to, int64_t n, cudaStream_t stream)
  {
    return ExclusiveScan(
      work, bytes, from, to, [](T a, T b) { return (T)(a + b); }, (T)0, n, stream);
  }
};

struct DeviceReduce {
  template <class From, class T, class Combine>
  static cudaError_t Reduce(void *work, size_t &bytes, From from, T *to, int64_t n, Combine combine, T first, cudaStream_t)
  {
    if (asksForBytes(work, bytes)) return cudaSuccess;
    for (int64_t k = 0; k < n; k++) first = combine(first, from[k]);
    *to = first;
    return cudaSuccess;
  }
};

struct DeviceSelect {
  template <class From, class To, class Count, class Chosen>
  static cudaError_t If(void *work, size_t &bytes, From from, To to, Count count, int64_t n, Chosen chosen, cudaStream_t)
  {
    if (asksForBytes(work, bytes)) return cudaSuccess;
    *count = 0;
    for (int64_t k = 0; k < n; k++) {
      if (chosen(from[k])) to[(*count)++] = from[k];
    }
    return cudaSuccess;
  }
  template <class From, class Flags, class To, class Count>
  static cudaError_t Flagged(void *work, size_t &bytes, From from, Flags flags, To to, Count count, int64_t n, cudaStream_t)
  {
    if (asksForBytes(work, bytes)) return cudaSuccess;
    *count = 0;
    for (int64_t k = 0; k < n; k++) {
      if (flags[k]) to[(*count)++] = from[k];
    }
    return cudaSuccess;
  }
};

/* Bits begin .. end-1 of a key as they are sorted */
template <class Key>
std::make_unsigned_t<Key> sortedBits(Key key, int begin, int end)
{
  constexpr int bits = 8 * sizeof(Key);
  auto          k    = (std::make_unsigned_t<Key>)key;

  if (std::is_signed_v<Key>) k ^= (std::make_unsigned_t<Key>)1 << (bits - 1);
  k = (std::make_unsigned_t<Key>)(k << (bits - end)); /* end > 0: of no bits nobody asks for a sort */
  return (std::make_unsigned_t<Key>)(k >> (bits - end + begin));
}

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void *work, size_t &bytes, const Key *key, Key *sorted, const Value *value, Value *with, int64_t n, int begin, int end, cudaStream_t)
  {
    std::vector<int64_t> order((size_t)n);

    if (asksForBytes(work, bytes)) return cudaSuccess;
    std::iota(order.begin(), order.end(), 0);
    if (end > begin) std::stable_sort(order.begin(), order.end(), [=](int64_t a, int64_t b) { return sortedBits(key[a], begin, end) < sortedBits(key[b], begin, end); });
    for (int64_t k = 0; k < n; k++) {
      sorted[k] = key[order[(size_t)k]];
      with[k]   = value[order[(size_t)k]];
    }
    return cudaSuccess;
  }
};

template <class T, int Threads>
class BlockScan {
public:
  struct TempStorage {
    T value[Threads];
  };

  explicit BlockScan(TempStorage &memory) : memory_(memory) { }
  void ExclusiveSum(T value, T &before, T &all)
  {
    memory_.value[threadIdx.x] = value;
    __syncthreads();
    before = std::accumulate(memory_.value, memory_.value + threadIdx.x, (T)0);
    all    = std::accumulate(memory_.value, memory_.value + Threads, (T)0);
    __syncthreads();
  }

private:
  TempStorage &memory_;
};

template <class Key, int Threads, int Items, class Value>
class BlockRadixSort {
public:
  struct TempStorage {
    Key   key[2][Threads * Items];
    Value value[2][Threads * Items];
  };

  explicit BlockRadixSort(TempStorage &memory) : memory_(memory) { }
  void SortBlockedToStriped(Key (&key)[Items], Value (&value)[Items], int begin, int end)
  {
    const int me = (int)threadIdx.x;
    size_t    bytes;

    for (int k = 0; k < Items; k++) {
      memory_.key[0][me * Items + k]   = key[k];
      memory_.value[0][me * Items + k] = value[k];
    }
    __syncthreads();
    if (!me) (void)DeviceRadixSort::SortPairs(&bytes, bytes, memory_.key[0], memory_.key[1], memory_.value[0], memory_.value[1], Threads * Items, begin, end, nullptr);
    __syncthreads();
    for (int k = 0; k < Items; k++) {
      key[k]   = memory_.key[1][me + k * Threads];
      value[k] = memory_.value[1][me + k * Threads];
    }
  }

private:
  TempStorage &memory_;
};
} // namespace cub

/* Copies that go on while their thread does: here they are over at once. The last `zeros` bytes are 0 */
inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0)
{
  std::memcpy(to, from, bytes - zeros);
  std::memset((char *)to + bytes - zeros, 0, zeros);
}
inline void __pipeline_commit() { }
inline void __pipeline_wait_prior(size_t) { }
