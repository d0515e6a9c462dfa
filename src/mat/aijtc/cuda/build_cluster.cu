/*
   Method
     Rows by cluster, for gathered layouts: a breadth-first search from all seeds at once, one round after the other. In most rounds the rows that are in no cluster look at their columns, and join the cluster of the first one that was in one before
     the round: so the order in which rows come does not matter. All rows look where few are in a cluster yet; so in the first rounds it is these, as far as they are new in it, that offer theirs to their columns, and the least row's offer stands.
     Where the pattern is symmetric and columns ascend that is the same. A last round of offers, of all rows in a cluster, is for rows that none of their columns leads to one, where patterns are not symmetric, and for those one step behind what all rounds have
     reached; as a rule there are none, and it does nothing.

     Which rows are in a cluster is a bit a row, a set of bits for each round, so that a round sees what the round before has left. A block copies them to shared memory, where a look at a column waits for nothing, and of all its columns a row reads the
     cluster of one. A warp takes 32 consecutive rows, whose word of bits nobody else writes. Their columns are one piece of j, of which it reads the lines of 32 that it needs, many at a time; a bit for each column, kept by one lane a line, tells the
     lane of a row what it has found.
     The number of rounds is fixed, so that the host does not wait; behind one that reached no row, or left none, nothing is done. Rounds are launched so that each begins while the one before ends (overlap.cuh), which is most
     of the time that an empty one takes. Then rows are sorted by cluster, stably.

   Layout
     cluster[r]: the seed, all bits set: none. Row r has bit r % 32 of word r / 32 of the bits of a round: was it in a cluster behind that round? Round 0 are the seeds.
     found[r]: the least row that has offered its cluster to r, all bits set: none. Of rows in a cluster it has no meaning.
     Dynamic shared memory, of rounds that look: the bits of the round before, where they fit (1.8 million rows).

   Memory traffic
     For each round of rows that look their j, i, and from L2 m / 8 bytes a multiprocessor; a sector of 32 bytes for each row that joins. For each round of offers j of the rows that are new, a sector for each of their columns, and 4 bytes a row.
     A million rows of 15, of which 5 % are new in the second round and 25 % in the third: 60 MB of j in the third round, 45 in the fourth, 20 behind, and 3 times 4 MB of i, 32 us at 4.3 TB/s. 28 bytes a row and those of the sort.

   References
     Beamer, Asanovic, Patterson, Direction-optimizing breadth-first search, SC'12 (rows that look); CUDA Core Compute Libraries (CUB), DeviceRadixSort
*/
#include "build.cuh"
#include <../src/parts/cuda/overlap.cuh>
#include <../src/parts/devicesort.h>

namespace aijtcbuild
{
namespace
{
constexpr uint32_t NO_CLUSTER    = ~0u;
constexpr int      GROW_WARPS    = 32; /* of a block: one block a multiprocessor, as its bits need the shared memory */
constexpr int      GROW_THREADS  = AIJTC_LANES * GROW_WARPS;
constexpr int      LINES         = AIJTC_LANES;         /* of 32 columns each, whose bits a warp has at a time: one a lane */
constexpr int      WINDOW        = AIJTC_LANES * LINES; /* columns of these */
constexpr int      LINES_AT_ONCE = 16;                  /* under way */

struct Search {
  PetscInt  m;
  int       words;   /* of a round; a multiple of four */
  uint32_t *cluster; /* [m] */
  uint32_t *found;   /* [m] */
  uint32_t *bits;    /* [AIJTC_CLUSTER_ROUNDS + 1][words] */
  int      *reached; /* [AIJTC_CLUSTER_ROUNDS + 1]: has the round reached a row? Of offers, and of the seeds: yes */
  int      *left;    /* [AIJTC_CLUSTER_ROUNDS + 1]: has it left one in no cluster? Offers: maybe */

  __device__ __forceinline__ uint32_t *behind(int round) const { return bits + (size_t)round * words; }
};

__global__ void __launch_bounds__(THREADS) SeedsKernel(const __grid_constant__ Search search)
{
  const PetscInt r    = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x; /* of whole words */
  const bool     seed = r < search.m && AIJTCIsSeed(r);
  const unsigned word = __ballot_sync(ALL_LANES, seed);

  if (r <= AIJTC_CLUSTER_ROUNDS) {
    search.reached[r] = r <= AIJTC_CLUSTER_OFFERS;
    search.left[r]    = r == AIJTC_CLUSTER_OFFERS;
  }
  if (r < search.m) {
    search.cluster[r] = seed ? (uint32_t)r : NO_CLUSTER;
    search.found[r]   = NO_CLUSTER;
  }
  if (r % AIJTC_LANES == 0 && r / AIJTC_LANES < search.words) search.bits[r / AIJTC_LANES] = word;
}
static_assert(THREADS > AIJTC_CLUSTER_ROUNDS, "the first block writes reached[] and left[]");

/* Which rows of word w exist? */
__device__ __forceinline__ unsigned RowsOf(int w, PetscInt m)
{
  const PetscCount rows = m - (PetscCount)AIJTC_LANES * w;

  return rows >= AIJTC_LANES ? ALL_LANES : rows > 0 ? (1u << rows) - 1 : 0;
}

/* The row of a lane in j, of those of word w; empty behind the last */
struct Row {
  PetscInt begin, end;

  __device__ __forceinline__ Row(int w, PetscInt m, const PetscInt *__restrict__ i)
  {
    const PetscCount r = (PetscCount)AIJTC_LANES * w + threadIdx.x % AIJTC_LANES;

    begin = __ldg(i + min(r, (PetscCount)m));
    end   = __ldg(i + min(r + 1, (PetscCount)m));
  }
};

/* A lane's row, as far as it is in a window of columns: its places from `from` to `to` - 1, if that is not less */
struct Part {
  int from, to;

  __device__ __forceinline__ Part(const Row &row, PetscInt window) : from((int)max(row.begin - window, (PetscInt)0)), to((int)min(row.end - window, (PetscInt)WINDOW)) { }

  /* Its lines */
  __device__ __forceinline__ unsigned lines() const { return from < to ? ALL_LANES << ((unsigned)from / AIJTC_LANES) & ALL_LANES >> (LINES - 1 - (unsigned)(to - 1) / AIJTC_LANES) : 0; }
  /* The bits of its places from + t, from + t + 1, .. of 32, t being a multiple of 32 and `word` this lane's line */
  __device__ __forceinline__ unsigned bits(int t, unsigned word) const
  {
    const unsigned line = (unsigned)(from + t) / AIJTC_LANES, low = __shfl_sync(ALL_LANES, word, line % LINES), high = __shfl_sync(ALL_LANES, word, (line + 1) % LINES);
    const int      left = to - from - t;

    return __funnelshift_r(low, high, (unsigned)from % AIJTC_LANES) & (left >= AIJTC_LANES ? ALL_LANES : left > 0 ? (1u << left) - 1 : 0);
  }
};

/* The bits of certain lines of a window, a line a lane: is the column in a cluster? j: the window's; end: columns of it that exist. What no row of these lines has may have any bit. By a warp */
__device__ __forceinline__ unsigned FlagColumns(unsigned lines, const PetscInt *__restrict__ j, int end, const uint32_t *before)
{
  int      mine = (int)threadIdx.x % AIJTC_LANES; /* this lane's line, from the first of the next ones */
  unsigned word = 0;

  j += mine;
  end -= mine;
  for (; lines; lines >>= LINES_AT_ONCE) {
    PetscInt column[LINES_AT_ONCE];

#pragma unroll
    for (int u = 0; u < LINES_AT_ONCE; u++) column[u] = (lines >> u & 1) && AIJTC_LANES * u < end ? __ldg(j + AIJTC_LANES * u) : 0;
#pragma unroll
    for (int u = 0; u < LINES_AT_ONCE; u++) {
      const unsigned flags = __ballot_sync(ALL_LANES, before[(unsigned)column[u] / AIJTC_LANES] >> ((unsigned)column[u] % AIJTC_LANES) & 1);

      if (mine == u) word = flags;
    }
    j += AIJTC_LANES * LINES_AT_ONCE;
    end -= AIJTC_LANES * LINES_AT_ONCE;
    mine -= LINES_AT_ONCE;
  }
  return word;
}
static_assert(LINES % LINES_AT_ONCE == 0 && LINES_AT_ONCE < 32, "a warp goes through its lines so many at a time");

/* The place in j of the first column of a lane's row that is in a cluster; -1: there is none, or the lane does not look. By a warp */
__device__ __forceinline__ PetscInt FirstInCluster(bool looks, const Row &row, const PetscInt *__restrict__ j, const uint32_t *before)
{
  PetscInt       place = -1;
  const PetscInt begin = __shfl_sync(ALL_LANES, row.begin, 0) & ~(AIJTC_LANES - 1), end = __shfl_sync(ALL_LANES, row.end, AIJTC_LANES - 1);

  for (PetscInt window = begin; window < end; window += min(end - window, (PetscInt)WINDOW)) {
    const Part     part(row, window);
    const unsigned word    = FlagColumns(__reduce_or_sync(ALL_LANES, looks ? part.lines() : 0), j + window, (int)(end - window), before);
    const int      longest = __reduce_max_sync(ALL_LANES, looks ? part.to - part.from : 0);

#pragma unroll 1
    for (int t = 0; t < longest; t += AIJTC_LANES) {
      const unsigned bits = part.bits(t, word);

      if (!looks || !bits) continue;
      place = window + part.from + t + __ffs((int)bits) - 1;
      looks = false;
    }
  }
  return place;
}

/* A row that joins a cluster: it is stored a turn later, so that nobody waits for it */
struct Joining {
  PetscInt row = -1; /* none */
  uint32_t cluster;

  __device__ __forceinline__ void store(const Search &search) const
  {
    if (row >= 0) search.cluster[row] = cluster;
  }
};

/* Of 32 consecutive rows those that look: they join the cluster of their first column in one. Returns the bits of those that join */
__device__ __forceinline__ unsigned Look(unsigned rows, PetscInt first, const Row &row, const PetscInt *__restrict__ j, const uint32_t *before, const Search &search, Joining &joining)
{
  const unsigned lane  = threadIdx.x % AIJTC_LANES;
  const PetscInt place = FirstInCluster(rows >> lane & 1, row, j, before);

  joining.store(search);
  joining.row = place < 0 ? -1 : first + (PetscInt)lane;
  if (place >= 0) joining.cluster = search.cluster[__ldg(j + place)];
  return __ballot_sync(ALL_LANES, place >= 0);
}

/* The bits of a round, in shared memory if they fit. By all threads, and not by __ldg(), as the kernel may have begun before they were written (overlap.cuh) */
template <bool SHARED>
__device__ __forceinline__ const uint32_t *CopyBits(const uint32_t *bits, int words, uint4 *shared)
{
  if constexpr (SHARED) {
    for (int k = (int)threadIdx.x; k < words / 4; k += GROW_THREADS) shared[k] = __ldcg(reinterpret_cast<const uint4 *>(bits) + k);
    __syncthreads();
    return reinterpret_cast<const uint32_t *>(shared);
  } else return bits;
}

/* The words of a warp, from one turn to the next */
__device__ __forceinline__ int FirstWord()
{
  return (int)(blockIdx.x * GROW_WARPS + threadIdx.x / AIJTC_LANES);
}
__device__ __forceinline__ int WordsOfTurn()
{
  return (int)gridDim.x * GROW_WARPS;
}

/* Round `round`, of rows that look: the first does so in any case. Every other one goes backwards: what the round before has read last is in L2 */
template <bool SHARED>
__global__ void __launch_bounds__(GROW_THREADS, 1) LookKernel(int round, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const __grid_constant__ Search search)
{
  extern __shared__ uint4 shared_bits[];
  const auto              word_of = [&](int k) { return round % 2 ? k : search.words - 1 - k; };
  uint32_t *const         next    = search.behind(round);
  bool                    reached = false, left = false;

  Row ahead(word_of(min(FirstWord(), search.words - 1)), search.m, i); /* asked for a turn before. The first before the wait: i is complete, as SeedsKernel, behind an ordinary launch, is over when a round begins */

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (!search.reached[round - 1] || !search.left[round - 1]) return;
  const uint32_t *const before = CopyBits<SHARED>(search.behind(round - 1), search.words, shared_bits);
  Joining               joining;

  for (int k = FirstWord(); k < search.words; k += WordsOfTurn()) {
    const int      w    = word_of(k);
    const Row      row  = ahead;
    const unsigned word = before[w], mine = ~word & RowsOf(w, search.m);

    ahead                 = Row(word_of(min(k + WordsOfTurn(), search.words - 1)), search.m, i);
    const unsigned joined = mine ? Look(mine, AIJTC_LANES * w, row, j, before, search, joining) : 0;

    reached = reached || joined;
    left    = left || (mine & ~joined);
    if (threadIdx.x % AIJTC_LANES == 0) next[w] = word | joined;
  }
  joining.store(search);
  if (reached) search.reached[round] = 1;
  if (left) search.left[round] = 1;
}

/* Some of the 32 rows of word w offer to all of their columns, whether these are in a cluster or not, which would have to be asked for: two rows at a time, half a warp each */
__device__ __forceinline__ void Offer(unsigned rows, int w, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const Search &search)
{
  constexpr int half = AIJTC_LANES / 2;
  const int     lane = (int)(threadIdx.x % AIJTC_LANES);
  const Row     row(w, search.m, i);

  for (unsigned after; rows; rows = after & (after - 1)) {
    after                = rows & (rows - 1);
    const int      mine  = __ffs((int)(lane < half ? rows : after)) - 1; /* -1: there is one row */
    const PetscInt begin = __shfl_sync(ALL_LANES, row.begin, max(mine, 0)), end = __shfl_sync(ALL_LANES, row.end, max(mine, 0));

    for (PetscInt k = begin + lane % half; mine >= 0 && k < end; k += half) (void)atomicMin(search.found + __ldg(j + k), (uint32_t)(AIJTC_LANES * w + mine));
  }
}

/* Round `round`, of rows that offer: a warp the rows of a word that the round before has reached */
__global__ void __launch_bounds__(THREADS) OfferKernel(int round, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const __grid_constant__ Search search)
{
  const int w = (int)(blockIdx.x * WARPS + threadIdx.x / AIJTC_LANES);

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (w >= search.words) return;
  const unsigned before = search.behind(round - 1)[w], rows = round > 1 ? before & ~search.behind(round - 2)[w] : before;

  if (rows) Offer(rows, w, i, j, search);
}

/* What was offered in that round */
__global__ void __launch_bounds__(THREADS) TakeKernel(int round, const __grid_constant__ Search search)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x; /* of whole words */
  const int      w = (int)(r / AIJTC_LANES), lane = (int)(r % AIJTC_LANES);

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (w >= search.words) return;
  const unsigned before = search.behind(round - 1)[w], none = ~before & RowsOf(w, search.m);
  const uint32_t from   = none >> lane & 1 ? search.found[r] : NO_CLUSTER;
  const unsigned joined = __ballot_sync(ALL_LANES, from != NO_CLUSTER);

  if (from != NO_CLUSTER) search.cluster[r] = search.cluster[from];
  if (lane == 0) search.behind(round)[w] = before | joined;
}

/* The last round, of offers of all rows in a cluster, which is the round that has reached a row last */
__global__ void __launch_bounds__(GROW_THREADS, 1) LastOfferKernel(const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const __grid_constant__ Search search)
{
  const int lane = (int)(threadIdx.x % AIJTC_LANES);

  LetNextLaunchStart();
  WaitForLaunchBefore();
  const int last = AIJTC_LANES - 1 - __clz((int)__ballot_sync(ALL_LANES, lane <= AIJTC_CLUSTER_ROUNDS && search.reached[lane]));

  if (!search.left[last]) return;
  const uint32_t *const before = search.behind(last);
  for (int w = FirstWord(); w < search.words; w += WordsOfTurn())
    if (before[w]) Offer(before[w], w, i, j, search);
}
static_assert(AIJTC_CLUSTER_ROUNDS < AIJTC_LANES, "a lane looks at each round");

/* Takes what was offered last; all rows, to be sorted */
__global__ void __launch_bounds__(THREADS) ClustersKernel(const __grid_constant__ Search search, int32_t *__restrict__ row)
{
  const PetscInt r = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  WaitForLaunchBefore();
  if (r >= search.m) return;
  if (search.cluster[r] == NO_CLUSTER) {
    const uint32_t from = search.found[r];

    search.cluster[r] = from == NO_CLUSTER ? (uint32_t)r : search.cluster[from];
  }
  row[r] = r;
}

/* All rounds */
template <bool SHARED>
PetscErrorCode Grow(const Csr &A, const Search &search, unsigned blocks, cudaStream_t stream)
{
  const size_t bytes = SHARED ? (size_t)search.words * sizeof(uint32_t) : 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaFuncSetAttribute(LookKernel<SHARED>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  SeedsKernel<<<BlocksFor(search.m, THREADS), THREADS, 0, stream>>>(search);
  PetscCallCUDA(cudaGetLastError());
  for (int round = 1; round <= AIJTC_CLUSTER_OFFERS; round++) {
    PetscCall(LaunchOverlapping(OfferKernel, BlocksFor(search.words, WARPS), THREADS, 0, stream, round, A.i, A.j, search));
    PetscCall(LaunchOverlapping(TakeKernel, BlocksFor(search.words, WARPS), THREADS, 0, stream, round, search));
  }
  for (int round = AIJTC_CLUSTER_OFFERS + 1; round <= AIJTC_CLUSTER_ROUNDS; round++) PetscCall(LaunchOverlapping(LookKernel<SHARED>, blocks, GROW_THREADS, bytes, stream, round, A.i, A.j, search));
  PetscCall(LaunchOverlapping(LastOfferKernel, blocks, GROW_THREADS, 0, stream, A.i, A.j, search));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GrowClusters(const Csr &A, const Search &search, cudaStream_t stream)
{
  int device, multiprocessors, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));

  const unsigned blocks = PetscMin(BlocksFor(search.words, GROW_WARPS), (unsigned)multiprocessors);

  if ((size_t)search.words * sizeof(uint32_t) <= (size_t)most) PetscCall(Grow<true>(A, search, blocks, stream));
  else PetscCall(Grow<false>(A, search, blocks, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the search and the sort take, in one piece of memory */
struct ClusterWork {
  Search    search;
  uint32_t *sorted; /* the clusters */
  int32_t  *all, *row;
  uint8_t  *temporary;
  size_t    bytes; /* of that */

  void place(PetscInt m, Block &block)
  {
    search.m     = m;
    search.words = 4 * (int)BlocksFor(m, 4 * AIJTC_LANES);
    block.Place(m, &search.cluster);
    block.Place(m, &search.found);
    block.Place((PetscCount)(AIJTC_CLUSTER_ROUNDS + 1) * search.words, &search.bits);
    block.Place(AIJTC_CLUSTER_ROUNDS + 1, &search.reached);
    block.Place(AIJTC_CLUSTER_ROUNDS + 1, &search.left);
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
  PetscCall(PetscTCSortPairs_CUDA(temporary, &work->bytes, work->search.cluster, work->sorted, work->all, work->row, m, bits, stream));
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
  PetscCall(GrowClusters(A, work.search, stream));
  PetscCall(LaunchOverlapping(ClustersKernel, BlocksFor(m, THREADS), THREADS, 0, stream, work.search, work.all));
  PetscCall(Sort(m, work.temporary, &work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
