/*
   Method
     Rows by cluster, for gathered layouts: a breadth-first search from all seeds at once, one launch a round. A row's state is its round and the seed that reached it, in one number of 64 bits: the least
     of all offers stands, so that the order in which they come does not matter. The rows of a round are found by a look at all states, which is less than a queue costs: places in one are asked for at a single address, and an offer
     would have to wait for its answer. A warp looks at 32 states, and its lanes share the nonzeros of the rows that it finds. No more blocks than fill the device: with one for each share of the rows all rounds together took 230 us
     more, for a million rows.
     The number of rounds is fixed, so that the host does not wait; behind a round that reached no row nothing is done. Then rows are sorted by cluster, stably.

   Layout
     state[r] = round << 32 | seed, all bits set in no cluster. reached[t]: has round t reached a row? Round 0 are the seeds.

   Memory traffic
     j once, 8 bytes of state for each nonzero at random (L2 holds them for 6 million rows), and for each row and round; 20 bytes a row and those of the sort. A million rows of 15, 7 rounds with rows: 60 MB from memory, 480 MB in sectors and
     56 MB from L2, 107 us at 5 TB/s; the rounds take 360, and no less with states of 32 bits.

   References
     Merrill, Garland, Grimshaw, Scalable GPU graph traversal, PPoPP 2012; CUDA Core Compute Libraries (CUB), DeviceRadixSort
*/
#include "build.cuh"
#include <cub/device/device_radix_sort.cuh>

namespace aijtcbuild
{
namespace
{
constexpr unsigned long long NOT_REACHED  = ~0ull;
constexpr int                ROWS_AT_ONCE = 4; /* that a group of lanes has under way */

struct Search {
  unsigned long long *state;
  int                *reached; /* [AIJTC_CLUSTER_ROUNDS + 1] */
};

/* A row that others are reached from */
struct Front {
  PetscInt begin, end; /* in j */
  unsigned seed;
};

__global__ void __launch_bounds__(THREADS) SeedsKernel(PetscInt m, Search search)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (r <= AIJTC_CLUSTER_ROUNDS) search.reached[r] = r == 0;
  if (r < m) search.state[r] = AIJTCIsSeed(r) ? (unsigned long long)r : NOT_REACHED;
}
static_assert(THREADS > AIJTC_CLUSTER_ROUNDS, "the first block writes reached[]");

/* The rows first .. first + 31 of the round before to front[]; returns how many there are. By a warp */
__device__ __forceinline__ int FindFront(int round, PetscInt first, PetscInt m, const PetscInt *__restrict__ i, const Search &search, Front *front)
{
  const unsigned           lane  = threadIdx.x % AIJTC_LANES;
  const PetscInt           r     = first + (PetscInt)lane;
  const unsigned long long state = r < m ? __ldcg(search.state + r) : NOT_REACHED;
  const bool               mine  = (unsigned)(state >> 32) == (unsigned)(round - 1);
  const unsigned           rows  = __ballot_sync(ALL_LANES, mine);

  __syncwarp(); /* the rows before have been read */
  if (mine) front[__popc(rows & ((1u << lane) - 1))] = {i[r], i[r + 1], (unsigned)state};
  __syncwarp();
  return __popc(rows);
}

/* Offers the columns of `rows` rows, ROW_LANES lanes a row: has one been in no cluster? */
__device__ __forceinline__ bool Offer(int round, const Front *front, int rows, const PetscInt *__restrict__ j, const Search &search)
{
  constexpr int groups = AIJTC_LANES / ROW_LANES;
  const int     lane   = (int)threadIdx.x % ROW_LANES;
  bool          any    = false;

  for (int q = (int)threadIdx.x % AIJTC_LANES / ROW_LANES; q < rows; q += groups * ROWS_AT_ONCE) {
    Front    of[ROWS_AT_ONCE];
    PetscInt longest = 0;

#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; u++) {
      of[u]   = q + u * groups < rows ? front[q + u * groups] : Front{0, 0, 0};
      longest = max(longest, of[u].end - of[u].begin);
    }
    for (PetscInt t = lane; t < longest; t += ROW_LANES) {
      PetscInt           v[ROWS_AT_ONCE];
      unsigned long long held[ROWS_AT_ONCE];

#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) v[u] = t < of[u].end - of[u].begin ? __ldg(j + of[u].begin + t) : -1;
#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) held[u] = v[u] >= 0 ? __ldcg(search.state + v[u]) : 0; /* what L2 holds can only have become less */
#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) {
        const unsigned long long offer = (unsigned long long)round << 32 | of[u].seed;

        if (held[u] > offer) (void)atomicMin(search.state + v[u], offer);
        any = any || held[u] == NOT_REACHED;
      }
    }
  }
  return any;
}

/* Round `round`, from the rows of the round before */
__global__ void __launch_bounds__(THREADS) GrowKernel(int round, PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Search search)
{
  __shared__ Front front[WARPS][AIJTC_LANES];
  Front *const     mine = front[threadIdx.x / AIJTC_LANES];
  bool             any  = false;

  if (!search.reached[round - 1]) return;
  for (PetscCount first = ((PetscCount)blockIdx.x * WARPS + threadIdx.x / AIJTC_LANES) * AIJTC_LANES; first < m; first += (PetscCount)gridDim.x * THREADS) {
    const int rows = FindFront(round, (PetscInt)first, m, i, search, mine);

    any = Offer(round, mine, rows, j, search) || any;
  }
  if (any) search.reached[round] = 1;
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
  SeedsKernel<<<BlocksFor(m, THREADS), THREADS, 0, stream>>>(m, search);
  PetscCallCUDA(cudaGetLastError());
  for (int round = 1; round <= AIJTC_CLUSTER_ROUNDS; round++) {
    GrowKernel<<<PetscMin(BlocksFor(m, THREADS), blocks), THREADS, 0, stream>>>(round, m, A.i, A.j, search);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
/* What the search and the sort take, in one piece of memory */
struct ClusterWork {
  Search    search;
  uint32_t *cluster, *sorted;
  int32_t  *all, *row;
  uint8_t  *temporary;
  size_t    bytes; /* of that */

  void place(PetscInt m, Block &block)
  {
    block.Place(m, &search.state);
    block.Place(AIJTC_CLUSTER_ROUNDS + 1, &search.reached);
    block.Place(m, &cluster);
    block.Place(m, &sorted);
    block.Place(m, &all);
    block.Place(m, &row);
    block.Place((PetscCount)bytes, &temporary);
  }
};

PetscErrorCode Sort(PetscInt m, void *temporary, ClusterWork *work, cudaStream_t stream)
{
  const int bits = BitsFor((uint64_t)(m - 1));

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceRadixSort::SortPairs(temporary, work->bytes, work->cluster, work->sorted, work->all, work->row, (int64_t)m, 0, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode ClusterRows(PetscInt m, const Csr &A, int32_t **row, Scratch &scratch, cudaStream_t stream)
{
  uint8_t  *work  = nullptr;
  size_t    bytes = 0;
  uint32_t *cluster;

  PetscFunctionBegin;
  PetscCall(AIJTCClusterRows_CUDA(m, A.i, A.j, nullptr, &bytes, row, &cluster, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCall(AIJTCClusterRows_CUDA(m, A.i, A.j, work, &bytes, row, &cluster, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild

using namespace aijtcbuild;

PetscErrorCode AIJTCClusterRows_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], void *memory, size_t *bytes, int32_t **order, uint32_t **cluster, PetscTCStream stream)
{
  const Csr   A    = {i, j, nullptr};
  ClusterWork work = {};
  Block       block;

  PetscFunctionBegin;
  PetscCall(Sort(m, nullptr, &work, stream));
  block.memory = (uint8_t *)memory;
  work.place(m, block);
  *bytes   = block.bytes;
  *order   = work.row;
  *cluster = work.sorted;
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Grow(m, A, work.search, stream));
  ClustersKernel<<<BlocksFor(m, THREADS), THREADS, 0, stream>>>(m, work.search.state, work.cluster, work.all);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(Sort(m, work.temporary, &work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
