/*
   Method
     Rows by cluster, for gathered layouts: a breadth-first search from all seeds at once, one launch a round. A row's state is its round and the seed that reached it, in one number of 64 bits. In the first rounds the rows of the round before
     offer their seeds to their columns: the least of all offers stands, so that the order in which they come does not matter. Later the rows that are in no cluster look for one in their columns: nobody offers what another offer has beaten,
     nothing is atomic, and what L1 holds will do.
     The rows that a round is about are found by a look at all states, which is less than a queue costs: places in one are asked for at a single address, and an offer would have to wait for its answer. A warp looks at 32 states, and its lanes
     share the nonzeros of the rows that it finds. A round waits for loads that wait for each other, state, column, state: so a lane has four columns under way, in 40 registers, and there are no more blocks than the device holds at once
     (with one for each share of the rows all rounds together took 230 us more, for a million rows).
     The number of rounds is fixed, so that the host does not wait; behind a round that reached no row nothing is done. Then rows are sorted by cluster, stably.

   Layout
     state[r] = round << 32 | seed, all bits set in no cluster. reached[t]: has round t reached a row? Round 0 are the seeds.

   Memory traffic
     Rounds that offer: j of a third of the rows once; rounds that look: of a row in no cluster, in all j of nine tenths of the rows of a tetrahedral mesh. 8 bytes of state for each of these at random (L2 holds them for 6 million rows), and 8 and
     4 of row offsets for each row and round; 20 bytes a row and those of the sort. A million rows of 15, 10 rounds that look for rows: 70 MB from memory, 560 MB in sectors and 120 MB from L2, 136 us at 5 TB/s; the rounds take some 240, by what
     builds take (360 when all offered).

   References
     Merrill, Garland, Grimshaw, Scalable GPU graph traversal, PPoPP 2012; Beamer, Asanovic, Patterson, Direction-optimizing breadth-first search, SC'12; CUDA Core Compute Libraries (CUB), DeviceRadixSort
*/
#include "build.cuh"
#include <cub/device/device_radix_sort.cuh>

namespace aijtcbuild
{
namespace
{
constexpr unsigned long long NOT_REACHED     = ~0ull;
constexpr int                ROWS_AT_ONCE    = 2; /* that a group of lanes has under way */
constexpr int                ENTRIES_AT_ONCE = 2; /* of each, a lane */
constexpr int                GROW_BLOCKS     = 6; /* of a multiprocessor: 40 registers */

struct Search {
  unsigned long long *state;
  int                *reached; /* [AIJTC_CLUSTER_ROUNDS + 1] */
};

/* A row of which a round looks at the columns */
struct FoundRow {
  PetscInt begin, end; /* in j */
  unsigned id;         /* its seed, or, if it has none, its number */
};

__global__ void __launch_bounds__(THREADS) SeedsKernel(PetscInt m, Search search)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (r <= AIJTC_CLUSTER_ROUNDS) search.reached[r] = r == 0;
  if (r < m) search.state[r] = AIJTCIsSeed(r) ? (unsigned long long)r : NOT_REACHED;
}
static_assert(THREADS > AIJTC_CLUSTER_ROUNDS, "the first block writes reached[]");

/* Rows that joined in the round before offer their seeds to their columns */
struct Offering {
  static __device__ __forceinline__ bool               looks(unsigned long long state, int round) { return (unsigned)(state >> 32) == (unsigned)(round - 1); }
  static __device__ __forceinline__ unsigned           id(unsigned long long state, PetscInt) { return (unsigned)state; }
  static __device__ __forceinline__ unsigned long long stateOf(const Search &search, PetscInt v) { return __ldcg(search.state + v); } /* what L2 holds can only have become less */

  /* held: the state of column v. Is there a row that has been in no cluster? */
  __device__ __forceinline__ bool visit(const FoundRow &row, PetscInt v, unsigned long long held, int round, const Search &search)
  {
    const unsigned long long offer = (unsigned long long)round << 32 | row.id;

    if (held > offer) (void)atomicMin(search.state + v, offer);
    return held == NOT_REACHED;
  }
  __device__ __forceinline__ bool settle(const FoundRow &, int, const Search &) { return false; }
};

/* Rows in no cluster join the least of those that their columns were in before the round; what others write meanwhile does not count */
struct Joining {
  unsigned least = ~0u;

  static __device__ __forceinline__ bool               looks(unsigned long long state, int) { return state == NOT_REACHED; }
  static __device__ __forceinline__ unsigned           id(unsigned long long, PetscInt row) { return (unsigned)row; }
  static __device__ __forceinline__ unsigned long long stateOf(const Search &search, PetscInt v) { return search.state[v]; } /* as good from L1 */

  __device__ __forceinline__ bool visit(const FoundRow &, PetscInt, unsigned long long held, int round, const Search &)
  {
    if (held < (unsigned long long)round << 32) least = min(least, (unsigned)held);
    return false;
  }
  __device__ __forceinline__ bool settle(const FoundRow &row, int round, const Search &search)
  {
    const unsigned lane = threadIdx.x % AIJTC_LANES, seed = __reduce_min_sync(((1u << ROW_LANES) - 1) << (lane / ROW_LANES * ROW_LANES), least);

    if (seed != ~0u && lane % ROW_LANES == 0) search.state[row.id] = (unsigned long long)round << 32 | seed;
    return seed != ~0u;
  }
};

/* Of the rows first .. first + 31 those that look at their columns to found[]; returns how many there are. By a warp */
template <class Way>
__device__ __forceinline__ int FindRows(int round, PetscInt first, PetscInt m, const PetscInt *__restrict__ i, const Search &search, FoundRow *found)
{
  const unsigned           lane  = threadIdx.x % AIJTC_LANES;
  const PetscInt           r     = first + (PetscInt)lane;
  const unsigned long long state = r < m ? __ldcg(search.state + r) : 0;
  const PetscInt           begin = r < m ? __ldg(i + r) : 0, end = r < m ? __ldg(i + r + 1) : 0; /* asked for with the state, not behind it */
  const bool               mine = r < m && Way::looks(state, round);
  const unsigned           rows = __ballot_sync(ALL_LANES, mine);

  __syncwarp(); /* the rows before have been read */
  if (mine) found[__popc(rows & ((1u << lane) - 1))] = {begin, end, Way::id(state, r)};
  __syncwarp();
  return __popc(rows);
}

/* Visits the columns of `rows` rows, ROW_LANES lanes a row: does a row join a cluster? */
template <class Way>
__device__ __forceinline__ bool VisitColumns(int round, const FoundRow *found, int rows, const PetscInt *__restrict__ j, const Search &search)
{
  constexpr int groups = AIJTC_LANES / ROW_LANES;
  const int     lane   = (int)threadIdx.x % ROW_LANES;
  bool          any    = false;

  for (int q = (int)threadIdx.x % AIJTC_LANES / ROW_LANES; q < rows; q += groups * ROWS_AT_ONCE) {
    FoundRow row[ROWS_AT_ONCE];
    Way      way[ROWS_AT_ONCE];
    PetscInt longest = 0;

#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; u++) {
      row[u]  = q + u * groups < rows ? found[q + u * groups] : FoundRow{0, 0, 0};
      longest = max(longest, row[u].end - row[u].begin);
    }
    for (PetscInt t = lane; t < longest; t += ROW_LANES * ENTRIES_AT_ONCE) {
      PetscInt           v[ROWS_AT_ONCE][ENTRIES_AT_ONCE];
      unsigned long long held[ROWS_AT_ONCE][ENTRIES_AT_ONCE];

#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) {
#pragma unroll
        for (int e = 0; e < ENTRIES_AT_ONCE; e++) v[u][e] = t + ROW_LANES * e < row[u].end - row[u].begin ? __ldg(j + row[u].begin + t + ROW_LANES * e) : -1;
      }
#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) {
#pragma unroll
        for (int e = 0; e < ENTRIES_AT_ONCE; e++) held[u][e] = v[u][e] >= 0 ? Way::stateOf(search, v[u][e]) : 0;
      }
#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) {
#pragma unroll
        for (int e = 0; e < ENTRIES_AT_ONCE; e++)
          if (v[u][e] >= 0) any = way[u].visit(row[u], v[u][e], held[u][e], round, search) || any;
      }
    }
#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; u++)
      if (q + u * groups < rows) any = way[u].settle(row[u], round, search) || any;
  }
  return any;
}

/* Round `round` */
template <class Way>
__global__ void __launch_bounds__(THREADS, GROW_BLOCKS) GrowKernel(int round, PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Search search)
{
  __shared__ FoundRow found[WARPS][AIJTC_LANES];
  FoundRow *const     mine = found[threadIdx.x / AIJTC_LANES];
  bool                any  = false;

  if (!search.reached[round - 1]) return;
  for (PetscCount first = ((PetscCount)blockIdx.x * WARPS + threadIdx.x / AIJTC_LANES) * AIJTC_LANES; first < m; first += (PetscCount)gridDim.x * THREADS) {
    const int rows = FindRows<Way>(round, (PetscInt)first, m, i, search, mine);

    any = VisitColumns<Way>(round, mine, rows, j, search) || any;
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
  PetscCall(BlocksThatFill(&blocks, GROW_BLOCKS));
  SeedsKernel<<<BlocksFor(m, THREADS), THREADS, 0, stream>>>(m, search);
  PetscCallCUDA(cudaGetLastError());
  for (int round = 1; round <= AIJTC_CLUSTER_ROUNDS; round++) {
    const auto kernel = round <= AIJTC_CLUSTER_OFFERS ? GrowKernel<Offering> : GrowKernel<Joining>;

    kernel<<<PetscMin(BlocksFor(m, THREADS), blocks), THREADS, 0, stream>>>(round, m, A.i, A.j, search);
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
