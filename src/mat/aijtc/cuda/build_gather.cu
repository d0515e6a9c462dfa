/*
   Method
     The lists of a gathered layout: a block of threads for each block of slices puts the columns of its rows into a hash table in shared memory. A first pass counts them, so that the host can decide and
     ask for memory; a second one sorts them into the list, remembers in the table the place of each, and writes for every nonzero the place of its column. The layout is then built from the places as others are from columns.

   Layout
     Table: open addressing, at most half full; a free place holds FREE. Where a list would be longer than AIJTC_GATHER_LIST everybody stops: the layout is not gathered then.

   Memory traffic
     j twice, the places and the lists once: a million rows of 15 nonzeros, lists of 6 columns a row, 204 MB, 48 us at 4.3 TB/s. What takes the time is shared memory: three accesses a nonzero and the sort.

   References
     CUDA Core Compute Libraries (CUB), BlockRadixSort, DeviceScan
*/
#include "build.cuh"
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace aijtcbuild
{
namespace
{
constexpr int     TABLE = 2 * AIJTC_GATHER_LIST;
constexpr int32_t FREE  = -1;

/* What the host must know */
struct ListCounts {
  unsigned long long columns; /* of all lists */
  int                longest;
  int                unused; /* 0 */
};

/* Rows of the blocks */
struct Blocks {
  const PetscInt *rid;    /* from the first row slice on */
  PetscInt        places; /* of rid */
  PetscInt        rows;   /* places of a block */

  __device__ __forceinline__ PetscInt begin() const { return (PetscInt)blockIdx.x * rows; }
  __device__ __forceinline__ PetscInt end() const { return min(places, begin() + rows); }
};

struct ColumnTable {
  int32_t *column; /* [TABLE] */
  int     *count;

  __device__ void clear() const
  {
    for (int h = (int)threadIdx.x; h < TABLE; h += THREADS) column[h] = FREE;
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
  }
  static __device__ __forceinline__ int hash(int32_t c) { return (int)((uint32_t)c * 0x9e3779b9u >> 19); }
  /* Not behind the last column of a list */
  __device__ void insert(int32_t c) const
  {
    int h = hash(c);

    while (*static_cast<volatile int *>(count) <= AIJTC_GATHER_LIST) {
      const int32_t held = atomicCAS(column + h, FREE, c);

      if (held == FREE) atomicAdd(count, 1);
      if (held == FREE || held == c) return;
      h = (h + 1) % TABLE;
    }
  }
  /* Of a column that is there */
  __device__ __forceinline__ int find(int32_t c) const
  {
    int h = hash(c);

    while (column[h] != c) h = (h + 1) % TABLE;
    return h;
  }
};
static_assert(TABLE == 1 << 13, "ColumnTable::hash() takes 13 bits");

/* visit(place in j) for the nonzeros of a block */
template <class Visit>
__device__ __forceinline__ void ForNonzeros(const Blocks &blocks, const PetscInt *__restrict__ i, Visit visit)
{
  const int lane = (int)threadIdx.x % ROW_LANES;

  for (PetscInt p = blocks.begin() + (PetscInt)threadIdx.x / ROW_LANES; p < blocks.end(); p += THREADS / ROW_LANES) {
    const PetscInt r = blocks.rid[p];

    if (r < 0) continue;
    for (PetscInt k = i[r] + lane; k < i[r + 1]; k += ROW_LANES) visit(k);
  }
}

__global__ void __launch_bounds__(THREADS) LengthsKernel(Blocks blocks, Csr A, PetscInt *__restrict__ length, ListCounts *counts)
{
  __shared__ int32_t column[TABLE];
  __shared__ int     count;
  const ColumnTable  table = {column, &count};

  table.clear();
  ForNonzeros(blocks, A.i, [&](PetscInt k) { table.insert(A.j[k]); });
  __syncthreads();
  if (threadIdx.x) return;
  length[blockIdx.x] = count;
  atomicAdd(&counts->columns, (unsigned long long)count);
  atomicMax(&counts->longest, count);
  if (blockIdx.x == 0) length[gridDim.x] = 0; /* so that the sums of the lengths end with all of them */
}

template <int ITEMS>
using ListSort = cub::BlockRadixSort<int32_t, THREADS, ITEMS>;

constexpr int MOST_ITEMS = AIJTC_GATHER_LIST / THREADS;

struct ListMemory {
  int32_t  column[TABLE];
  uint16_t place[TABLE];
  union
  {
    int32_t                                    list[AIJTC_GATHER_LIST];
    typename ListSort<MOST_ITEMS>::TempStorage sort;
  };
  int count, listed;
};

/* The list of at most THREADS ITEMS columns, ascending, and their places into the table */
template <int ITEMS>
__device__ void SortList(ListMemory &memory, const ColumnTable &table, int32_t behind, int bits)
{
  auto   &sort = reinterpret_cast<typename ListSort<ITEMS>::TempStorage &>(memory.sort);
  int32_t mine[ITEMS];

  static_assert(sizeof(sort) <= sizeof(memory.sort), "fewer items need no more memory");
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int p = THREADS * k + (int)threadIdx.x;

    mine[k] = p < memory.count ? memory.list[p] : behind;
  }
  __syncthreads();
  ListSort<ITEMS>(sort).SortBlockedToStriped(mine, 0, bits);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int p = THREADS * k + (int)threadIdx.x;

    if (p >= memory.count) continue;
    memory.list[p]                    = mine[k];
    memory.place[table.find(mine[k])] = (uint16_t)p;
  }
  __syncthreads();
}

/* As few items as will do: a sort takes most of the time */
__device__ void SortList(ListMemory &memory, const ColumnTable &table, int32_t behind, int bits)
{
  const int items = (memory.count + THREADS - 1) / THREADS;

  if (items <= MOST_ITEMS / 4) SortList<MOST_ITEMS / 4>(memory, table, behind, bits);
  else if (items <= MOST_ITEMS / 2) SortList<MOST_ITEMS / 2>(memory, table, behind, bits);
  else if (items <= 3 * MOST_ITEMS / 4) SortList<3 * MOST_ITEMS / 4>(memory, table, behind, bits);
  else SortList<MOST_ITEMS>(memory, table, behind, bits);
}

__global__ void __launch_bounds__(THREADS) ListsKernel(Blocks blocks, Csr A, PetscInt n, int bits, const PetscInt *__restrict__ start, PetscInt *__restrict__ list, PetscInt *__restrict__ places)
{
  extern __shared__ uint4 shared_lists[];
  ListMemory             &memory = *reinterpret_cast<ListMemory *>(shared_lists);
  const ColumnTable       table  = {memory.column, &memory.count};

  if (threadIdx.x == 0) memory.listed = 0;
  table.clear();
  ForNonzeros(blocks, A.i, [&](PetscInt k) { table.insert(A.j[k]); });
  __syncthreads();
  for (int h = (int)threadIdx.x; h < TABLE; h += THREADS)
    if (memory.column[h] != FREE) memory.list[atomicAdd(&memory.listed, 1)] = memory.column[h];
  __syncthreads();
  SortList(memory, table, (int32_t)n, bits);
  for (int k = (int)threadIdx.x; k < memory.count; k += THREADS) list[start[blockIdx.x] + k] = memory.list[k];
  ForNonzeros(blocks, A.i, [&](PetscInt k) { places[k] = memory.place[table.find(A.j[k])]; });
}

/* Lengths into *length, one more than there are blocks */
PetscErrorCode CountColumns(const AIJTCLayout *layout, const Blocks &blocks, const Csr &A, PetscInt **length, ListCounts *counts, Scratch &scratch, cudaStream_t stream)
{
  ListCounts *found;
  const auto  place = [&](Block &block) {
    block.Place(1, &found);
    block.Place((PetscCount)layout->nblocks + 1, length);
  };

  PetscFunctionBegin;
  PetscCall(scratch.GetAll(place));
  PetscCallCUDA(cudaMemsetAsync(found, 0, sizeof(*found), stream));
  LengthsKernel<<<(unsigned)layout->nblocks, THREADS, 0, stream>>>(blocks, A, *length, found);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(counts, found, sizeof(*counts), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MakeLists(AIJTCLayout *layout, const Blocks &blocks, const Csr &A, const PetscInt length[], PetscInt **places, Scratch &scratch, cudaStream_t stream)
{
  size_t   bytes = 0;
  uint8_t *work;

  PetscFunctionBegin;
  PetscCall(AllocateLists(layout, stream));
  PetscCall(scratch.Get((PetscCount)layout->nnz, places));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, length, layout->list_start, (int64_t)layout->nblocks + 1, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(work, bytes, length, layout->list_start, (int64_t)layout->nblocks + 1, stream));
  PetscCallCUDA(cudaFuncSetAttribute(ListsKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(ListMemory)));
  ListsKernel<<<(unsigned)layout->nblocks, THREADS, sizeof(ListMemory), stream>>>(blocks, A, layout->n, BitsFor((uint64_t)layout->n), layout->list_start, layout->list, *places);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode GatherColumns(AIJTCLayout *layout, const Csr &A, PetscInt **places, Scratch &scratch, cudaStream_t stream)
{
  const PetscInt slices = layout->nslices[AIJTC_ROWS], gather = layout->params.gather;
  const Blocks   blocks = {layout->rid + layout->rid_rows, AIJTC_LANES * slices, AIJTC_LANES * gather};
  ListCounts     counts = {};
  PetscInt      *length = nullptr;

  PetscFunctionBegin;
  layout->nblocks = (slices - 1) / gather + 1;
  if (layout->nnz && AIJTCSlicesTotal(layout) == slices) PetscCall(CountColumns(layout, blocks, A, &length, &counts, scratch, stream));
  const bool many = 2 * counts.columns > (unsigned long long)layout->nnz, longer = counts.longest > AIJTC_GATHER_LIST; /* smaller blocks do not have fewer columns together */
  if (!length || many || longer) {
    layout->params.gather = longer && !many ? AIJTCGatherLess(gather) : 0;
    layout->nblocks       = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  layout->nlist        = (PetscInt)counts.columns;
  layout->longest_list = (PetscInt)counts.longest;
  PetscCall(MakeLists(layout, blocks, A, length, places, scratch, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
