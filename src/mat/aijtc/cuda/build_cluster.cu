/*
   Method
     Rows by cluster, for gathered layouts: a breadth-first search from all seeds at once, one launch a round. A row's state is its round and the seed that reached it, in one number of 64 bits: the least
     of all offers stands, so that the order in which they come does not matter. Who finds a row in no cluster puts it into the queue, where each round's rows lie behind those of the round before.
     The number of rounds is fixed, so that the host does not wait; a round without rows ends at once. Then rows are sorted by cluster, stably.

   Layout
     state[r] = round << 32 | seed, all bits set in no cluster. size[t]: rows of round t in the queue, round 0 being the seeds.

   Memory traffic
     j once, 8 bytes of state for each nonzero at random (L2 holds them for 6 million rows); rows 24 bytes each and those of the sort. A million rows of 15: 60 + 480 MB of sectors from L2, 110 us at 5 TB/s.

   References
     Merrill, Garland, Grimshaw, Scalable GPU graph traversal, PPoPP 2012; CUDA Core Compute Libraries (CUB), DeviceRadixSort
*/
#include "build.cuh"
#include <cooperative_groups.h>
#include <cub/device/device_radix_sort.cuh>

namespace aijtcbuild
{
namespace
{
constexpr unsigned long long NOT_REACHED = ~0ull;

struct Search {
  unsigned long long *state;
  int32_t            *queue;
  unsigned           *size; /* [AIJTC_CLUSTER_ROUNDS + 1] */
};

/* A place in the queue behind `begin`, among those of a round */
__device__ __forceinline__ void Append(const Search &search, int round, unsigned begin, int32_t row)
{
  const auto active = cooperative_groups::coalesced_threads();
  unsigned   first  = 0;

  if (active.thread_rank() == 0) first = atomicAdd(search.size + round, active.size());
  search.queue[begin + active.shfl(first, 0) + active.thread_rank()] = row;
}

__global__ void __launch_bounds__(THREADS) SeedsKernel(PetscInt m, Search search)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (r >= m) return;
  const bool seed = AIJTCIsSeed(r);

  search.state[r] = seed ? (unsigned long long)r : NOT_REACHED;
  if (seed) Append(search, 0, 0, r);
}

/* Round `round`, from the rows of the round before */
__global__ void __launch_bounds__(THREADS) GrowKernel(int round, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Search search)
{
  const unsigned lane = threadIdx.x % ROW_LANES, workers = gridDim.x * (THREADS / ROW_LANES);
  unsigned       before = 0, end;

  for (int t = 0; t < round - 1; t++) before += search.size[t];
  end = before + search.size[round - 1];
  for (unsigned q = before + (blockIdx.x * THREADS + threadIdx.x) / ROW_LANES; q < end; q += workers) {
    const int32_t            u     = search.queue[q];
    const unsigned long long offer = (unsigned long long)round << 32 | (unsigned)search.state[u];

    for (PetscInt k = i[u] + (PetscInt)lane; k < i[u + 1]; k += ROW_LANES) {
      const PetscInt v = j[k];

      if (__ldcg(search.state + v) <= offer) continue; /* what L2 holds can only have become less */
      if (atomicMin(search.state + v, offer) == NOT_REACHED) Append(search, round, end, v);
    }
  }
}

__global__ void __launch_bounds__(THREADS) ClustersKernel(PetscInt m, const unsigned long long *__restrict__ state, uint32_t *__restrict__ cluster, int32_t *__restrict__ row)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (r >= m) return;
  cluster[r] = state[r] == NOT_REACHED ? (uint32_t)r : (uint32_t)state[r];
  row[r]     = r;
}

PetscErrorCode Grow(PetscInt m, const Csr &A, const Search &search, cudaStream_t stream)
{
  unsigned blocks;

  PetscFunctionBegin;
  PetscCall(BlocksThatFill(&blocks));
  PetscCallCUDA(cudaMemsetAsync(search.size, 0, (AIJTC_CLUSTER_ROUNDS + 1) * sizeof(*search.size), stream));
  SeedsKernel<<<BlocksFor(m, THREADS), THREADS, 0, stream>>>(m, search);
  PetscCallCUDA(cudaGetLastError());
  for (int round = 1; round <= AIJTC_CLUSTER_ROUNDS; round++) {
    GrowKernel<<<blocks, THREADS, 0, stream>>>(round, A.i, A.j, search);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode ClusterRows(PetscInt m, const Csr &A, int32_t **row, Scratch &scratch, cudaStream_t stream)
{
  const int  bits  = BitsFor((uint64_t)(m - 1));
  size_t     bytes = 0;
  Search     search;
  uint32_t  *cluster, *sorted;
  int32_t   *all;
  uint8_t   *work;
  const auto place = [&](Block &block) {
    block.Place(m, &search.state);
    block.Place(m, &search.queue);
    block.Place(AIJTC_CLUSTER_ROUNDS + 1, &search.size);
    block.Place(m, &cluster);
    block.Place(m, &sorted);
    block.Place(m, &all);
    block.Place(m, row);
    block.Place((PetscCount)bytes, &work);
  };

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, cluster, sorted, all, *row, (int64_t)m, 0, bits, stream));
  PetscCall(scratch.GetAll(place));
  PetscCall(Grow(m, A, search, stream));
  ClustersKernel<<<BlocksFor(m, THREADS), THREADS, 0, stream>>>(m, search.state, cluster, all);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(work, bytes, cluster, sorted, all, *row, (int64_t)m, 0, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
