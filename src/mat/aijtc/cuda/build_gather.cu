/*
   Method
     The lists of a gathered layout: a block of threads for each block of slices. Its columns are a set of bits in shared memory, in two levels, of which the ranks of the bits are the places in the list, so that nothing is sorted:
     a bit for each page of 32 columns tells whether the page has any, the rank of that bit where the page is among those that have, and there lie its 32 bits. The columns are read three times: for the first level, for the
     second, and to write the place of each. Where the first level does not fit in shared memory it is done for one window of columns after the other. The layout is then built from the places as others are from columns. They are
     written block after block, in the order in which blocks come, and row after row of a block: in the order of the CSR arrays rows of one block would share sectors with rows of others, which memory then has to read before it writes.

     How long the lists are the host learns afterwards, to decide and to ask for memory; so they are written to a temporary place first, and copied. It does not wait for that alone: the slices are analysed in the meantime, for
     nothing where the layout is not gathered after all.

   Layout
     ColumnSet. Temporary lists: one behind the other in the order in which blocks come, each with room for as many columns as it may have. Where a list would be longer than AIJTC_GATHER_LIST its block stops: the layout is not
     gathered then.

   Memory traffic
     j three times, of which two from L2, the places once, the lists three times: a million rows of 15 nonzeros, lists of 3.7 columns a row, 60 + 60 + 44 MB, 38 us at 4.3 TB/s, and 120 MB from L2; 8 bytes a row. What takes the time is
     shared memory, some ten accesses a nonzero, and what waits for j.

   References
     Jacobson, Space-efficient static trees and graphs, FOCS 1989 (rank); CUDA Core Compute Libraries (CUB), BlockScan, DeviceScan
*/
#include "build.cuh"
#include <cub/block/block_scan.cuh>
#include <../src/parts/devicesort.h>

namespace aijtcbuild
{
namespace
{
constexpr int LIST_THREADS = 512;
constexpr int WORD         = 32;      /* bits; columns of a page */
constexpr int WINDOW       = 1 << 22; /* columns of a window: its first level takes 24 KB */
constexpr int ROWS_AT_ONCE = 4;       /* that a group of lanes has under way */

/* Rows of the blocks */
struct Blocks {
  const PetscInt *rid;    /* from the first row slice on */
  PetscInt        places; /* of rid */
  PetscInt        rows;   /* places of a block */

  __device__ __forceinline__ PetscInt begin() const { return (PetscInt)blockIdx.x * rows; }
  __device__ __forceinline__ PetscInt end() const { return min(places, begin() + rows); }
};

/* A row of a block: its entries in j, and where their places go, from those of the block on */
struct BlockRow {
  PetscInt begin, length, to;
};

using Scan = cub::BlockScan<int, LIST_THREADS>;

/* Shared memory of a block; its rows, and the words of the first level follow it */
struct ListMemory {
  uint32_t                   bits[AIJTC_GATHER_LIST];   /* columns of a page; every page has at least one */
  uint32_t                   page[AIJTC_GATHER_LIST];   /* its number in the window */
  uint16_t                   before[AIJTC_GATHER_LIST]; /* columns before those of the page, of the whole list */
  typename Scan::TempStorage scan;
  unsigned long long         room, entry; /* what the block has taken begins there */
};

/* The columns first .. first + WINDOW - 1 of a block */
struct ColumnSet {
  ListMemory *memory;
  uint32_t   *touched; /* a bit a page: has it columns? */
  uint16_t   *pages;   /* that have, before those of the word of touched[] */
  int         words;
  PetscInt    first;

  static __device__ __forceinline__ void set(uint32_t *word, unsigned bit)
  {
    const uint32_t mask = 1u << bit;

    if (!(*static_cast<volatile uint32_t *>(word) & mask)) atomicOr(word, mask); /* neighbours share words, and atomic operations on one word wait for each other */
  }
  static __device__ __forceinline__ int rank(uint32_t word, unsigned bit) { return __popc(word & ((1u << bit) - 1)); }

  __device__ __forceinline__ bool has(PetscInt c) const { return c >= first && c - first < WINDOW; }
  __device__ __forceinline__ void touch(PetscInt c) const
  {
    const unsigned page = (unsigned)(c - first) / WORD;

    set(touched + page / WORD, page % WORD);
  }
  /* Where is the page of a column among those that have any? */
  __device__ __forceinline__ int find(PetscInt c) const
  {
    const unsigned page = (unsigned)(c - first) / WORD;

    return pages[page / WORD] + rank(touched[page / WORD], page % WORD);
  }
  __device__ __forceinline__ void insert(PetscInt c) const { set(memory->bits + find(c), (unsigned)(c - first) % WORD); }
  __device__ __forceinline__ int  place(PetscInt c) const
  {
    const int p = find(c);

    return memory->before[p] + rank(memory->bits[p], (unsigned)(c - first) % WORD);
  }
};

/* before[k]: set bits in front of those of word k, `sum` being those in front of all; take(k, place of the first bit). Returns the sum behind all. By all threads of a block */
template <class Take>
__device__ __forceinline__ int RankWords(const uint32_t *bits, int words, int sum, uint16_t *before, typename Scan::TempStorage &scan, Take take)
{
  for (int first = 0; first < words; first += LIST_THREADS) {
    const int k = first + (int)threadIdx.x;
    int       place, all;

    Scan(scan).ExclusiveSum(k < words ? __popc(bits[k]) : 0, place, all);
    if (k < words) {
      before[k] = (uint16_t)(sum + place);
      take(k, sum + place);
    }
    sum += all;
    __syncthreads(); /* before the next scan */
  }
  return sum;
}

/* visit(bit) */
template <class Visit>
__device__ __forceinline__ void ForBits(uint32_t word, Visit visit)
{
  for (; word; word &= word - 1) visit(__ffs((int)word) - 1);
}

/* The rows of the block, where their places go, and room for its list; returns where that is. By all threads */
__device__ __forceinline__ PetscInt LoadRows(const Blocks &blocks, const PetscInt *__restrict__ i, BlockRow *rows, ListMemory &memory, Run *__restrict__ run, ListCounts *counts)
{
  const int places = (int)(blocks.end() - blocks.begin());
  int       all    = 0;

  for (int first = 0; first < places; first += LIST_THREADS) {
    const int      p = first + (int)threadIdx.x;
    const PetscInt r = p < places ? blocks.rid[blocks.begin() + p] : -1, begin = r < 0 ? 0 : i[r], length = r < 0 ? 0 : i[r + 1] - begin;
    int            before, sum;

    Scan(memory.scan).ExclusiveSum((int)length, before, sum);
    if (p < places) rows[p] = {begin, length, (PetscInt)(all + before)};
    all += sum;
    __syncthreads(); /* before the next scan */
  }
  if (threadIdx.x == 0) {
    memory.room  = atomicAdd(&counts->room, (unsigned long long)min(all, (int)AIJTC_GATHER_LIST));
    memory.entry = atomicAdd(&counts->entries, (unsigned long long)all);
  }
  __syncthreads();
  for (int p = (int)threadIdx.x; p < places; p += LIST_THREADS) {
    const PetscInt to = (PetscInt)memory.entry + rows[p].to;

    run[blocks.begin() + p] = {to, to + rows[p].length};
  }
  return (PetscInt)memory.room;
}

/* visit(entry of the block, column) for the nonzeros of a block that are in the set's window, ROW_LANES lanes a row */
template <class Visit>
__device__ __forceinline__ void ForColumns(const ColumnSet &set, const BlockRow *rows, int places, const PetscInt *__restrict__ j, Visit visit)
{
  constexpr int groups = LIST_THREADS / ROW_LANES;
  const int     lane   = (int)threadIdx.x % ROW_LANES;

  for (int first = (int)threadIdx.x / ROW_LANES; first < places; first += ROWS_AT_ONCE * groups) {
    BlockRow row[ROWS_AT_ONCE];
    PetscInt longest = 0;

#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; u++) {
      row[u]  = first + u * groups < places ? rows[first + u * groups] : BlockRow{0, 0, 0};
      longest = max(longest, row[u].length);
    }
    for (PetscInt t = lane; t < longest; t += ROW_LANES) {
      PetscInt column[ROWS_AT_ONCE];

#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) column[u] = t < row[u].length ? __ldg(j + row[u].begin + t) : -1;
#pragma unroll
      for (int u = 0; u < ROWS_AT_ONCE; u++) {
        if (set.has(column[u])) visit(row[u].to + t, column[u]);
      }
    }
  }
}

/* The columns of one window, `count` being those of the windows before it: those of all so far, more than AIJTC_GATHER_LIST if there are too many. By all threads */
__device__ __forceinline__ int ListWindow(const ColumnSet &set, const BlockRow *rows, int places, const PetscInt *__restrict__ j, int count, PetscInt *__restrict__ list, PetscInt *__restrict__ place)
{
  ListMemory &memory = *set.memory;

  for (int k = (int)threadIdx.x; k < set.words; k += LIST_THREADS) set.touched[k] = 0;
  __syncthreads();
  ForColumns(set, rows, places, j, [&](PetscInt, PetscInt c) { set.touch(c); });
  __syncthreads();
  const int pages = RankWords(set.touched, set.words, 0, set.pages, memory.scan, [&](int k, int place) {
    ForBits(set.touched[k], [&](int bit) {
      if (place < AIJTC_GATHER_LIST) memory.page[place++] = (uint32_t)(WORD * k + bit);
    });
  });

  if (pages > AIJTC_GATHER_LIST || !pages) return count + pages;
  for (int p = (int)threadIdx.x; p < pages; p += LIST_THREADS) memory.bits[p] = 0;
  __syncthreads();
  ForColumns(set, rows, places, j, [&](PetscInt, PetscInt c) { set.insert(c); });
  __syncthreads();
  count = RankWords(memory.bits, pages, count, memory.before, memory.scan, [&](int p, int place) {
    ForBits(memory.bits[p], [&](int bit) {
      if (place < AIJTC_GATHER_LIST) list[place++] = set.first + (PetscInt)(WORD * memory.page[p]) + bit;
    });
  });
  if (count > AIJTC_GATHER_LIST) return count;
  ForColumns(set, rows, places, j, [&](PetscInt e, PetscInt c) { place[e] = set.place(c); });
  __syncthreads(); /* before the next window */
  return count;
}

/* Words of the first level of windows of so many columns */
__host__ __device__ inline int WordsOf(PetscInt columns)
{
  return (int)(((columns < WINDOW ? columns : (PetscInt)WINDOW) - 1) / (WORD * WORD) + 1);
}

__global__ void __launch_bounds__(LIST_THREADS) ListsKernel(Blocks blocks, Csr A, PetscInt n, FoundLists found, Places places, ListCounts *counts)
{
  extern __shared__ uint4 shared_lists[];
  ListMemory             &memory  = *reinterpret_cast<ListMemory *>(shared_lists);
  BlockRow *const         rows    = reinterpret_cast<BlockRow *>(&memory + 1);
  uint32_t *const         touched = reinterpret_cast<uint32_t *>(rows + blocks.rows);
  uint16_t *const         pages   = reinterpret_cast<uint16_t *>(touched + WordsOf(n));
  const PetscInt          from    = LoadRows(blocks, A.i, rows, memory, places.run, counts);
  int                     count   = 0;

  for (PetscInt first = 0; first < n && count <= AIJTC_GATHER_LIST; first += min(n - first, (PetscInt)WINDOW))
    count = ListWindow({&memory, touched, pages, WordsOf(n - first), first}, rows, (int)(blocks.end() - blocks.begin()), A.j, count, found.list + from, places.place + memory.entry);
  if (threadIdx.x) return;
  count                    = min(count, AIJTC_GATHER_LIST + 1);
  found.length[blockIdx.x] = count;
  found.from[blockIdx.x]   = from;
  atomicAdd(&counts->columns, (unsigned long long)count);
  atomicMax(&counts->longest, count);
  if (blockIdx.x == 0) found.length[gridDim.x] = 0; /* so that the sums of the lengths end with all of them */
}

__global__ void __launch_bounds__(THREADS) CopyListsKernel(FoundLists found, PetscInt *__restrict__ start, PetscInt *__restrict__ list)
{
  const PetscInt to = found.start[blockIdx.x], length = found.start[blockIdx.x + 1] - to, from = found.from[blockIdx.x];

  if (threadIdx.x == 0) start[blockIdx.x] = to;
  if (threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) start[gridDim.x] = to + length;
  for (PetscInt k = (PetscInt)threadIdx.x; k < length; k += THREADS) list[to + k] = found.list[from + k];
}

/* Temporary lists, and what they take */
PetscErrorCode AllocateTemporary(const AIJTCLayout *layout, FoundLists *found, uint8_t **work, size_t *bytes, Scratch &scratch, cudaStream_t stream)
{
  const PetscInt   blocks = layout->nblocks;
  const PetscCount most   = PetscMin(layout->nnz, (PetscCount)blocks * AIJTC_GATHER_LIST);

  PetscFunctionBegin;
  PetscCall(PetscTCExclusiveSum_CUDA(nullptr, bytes, found->length, found->start, (PetscCount)blocks + 1, stream));
  PetscCall(scratch.GetAll([&](Block &block) {
    block.Place((PetscCount)blocks + 1, &found->length);
    block.Place((PetscCount)blocks + 1, &found->start);
    block.Place(blocks, &found->from);
    block.Place(most, &found->list);
    block.Place((PetscCount)*bytes, work);
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode FindLists(AIJTCLayout *layout, const Csr &A, const Places &places, FoundLists *found, ListCounts *counts, Scratch &scratch, cudaStream_t stream)
{
  const PetscInt slices = layout->nslices[AIJTC_ROWS], gather = layout->params.gather;
  const Blocks   blocks = {layout->rid + layout->rid_rows, AIJTC_LANES * slices, AIJTC_LANES * gather};
  const size_t   shared = sizeof(ListMemory) + blocks.rows * sizeof(BlockRow) + WordsOf(layout->n) * (sizeof(uint32_t) + sizeof(uint16_t));
  size_t         bytes  = 0;
  uint8_t       *work;

  PetscFunctionBegin;
  layout->nblocks = (slices - 1) / gather + 1;
  PetscCall(AllocateTemporary(layout, found, &work, &bytes, scratch, stream));
  PetscCallCUDA(cudaFuncSetAttribute(ListsKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
  ListsKernel<<<(unsigned)layout->nblocks, LIST_THREADS, shared, stream>>>(blocks, A, layout->n, *found, places, counts);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(PetscTCExclusiveSum_CUDA(work, &bytes, found->length, found->start, (PetscCount)layout->nblocks + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode StoreLists(AIJTCLayout *layout, const FoundLists &found, const ListCounts &counts, cudaStream_t stream)
{
  const bool many = 2 * counts.columns > (unsigned long long)layout->nnz, longer = counts.longest > AIJTC_GATHER_LIST; /* smaller blocks do not have fewer columns together */

  PetscFunctionBegin;
  if (many || longer) {
    layout->params.gather = many ? 0 : AIJTCGatherLess(layout->params.gather);
    layout->nblocks       = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  layout->nlist        = (PetscInt)counts.columns;
  layout->longest_list = (PetscInt)counts.longest;
  PetscCall(AllocateLists(layout, stream));
  CopyListsKernel<<<(unsigned)layout->nblocks, THREADS, 0, stream>>>(found, layout->list_start, layout->list);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
