/*
   Method
     Which rows go together. One warp a group of consecutive rows looks at the row offsets, decides whether the group is a slice as it stands, and counts the rows of the classes. Where all groups
     are slices nothing else happens. The rows of the others are listed and sorted by (class, window, decreasing length), packed into as few bits of one key as the matrix needs; the sort is stable,
     so rows of equal keys stay in the order of their numbers. In a gathered layout no group is a slice, and windows are taken of the rows by cluster (build_cluster.cu); a window is then one of blocks, and as all rows of such a
     layout are short, a block of threads sorts it by length alone, in shared memory.

   Memory traffic
     Classification: 4 bytes a row, and as many for the layout's copy of the row offsets, 32 us for 16.8 million rows at 4.3 TB/s. Sorted rows: 24 bytes a row and pass of 8 bits; by blocks of a
     gathered layout 16 in all.

   References
     CUDA Core Compute Libraries (CUB), DeviceSelect, BlockRadixSort; devicesort.h
*/
#include "build.cuh"
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <../src/parts/devicesort.h>
#include <thrust/iterator/counting_iterator.h>

namespace aijtcbuild
{
namespace
{

enum {
  CLASS_LONG,
  CLASS_MEDIUM,
  CLASS_REST
};

__device__ __forceinline__ PetscInt PiecesOf(PetscInt length)
{
  return length / (AIJTC_PIECE * AIJTC_LANES) + (length % (AIJTC_PIECE * AIJTC_LANES) ? 1 : 0);
}

__device__ __forceinline__ int ClassOf(PetscInt length, const AIJTCParams &params)
{
  return length > params.long_min ? CLASS_LONG : length > params.short_max ? CLASS_MEDIUM : CLASS_REST;
}

/* The rows of a group that is no slice, into the counts of this lane */
__device__ void CountRows(PetscInt first, PetscInt last, const PetscInt *__restrict__ i, const AIJTCParams &params, int lane, RowCounts &mine)
{
  for (PetscInt r = first + lane; r < last; r += AIJTC_LANES) {
    const PetscInt length = i[r + 1] - i[r];
    const int      c      = ClassOf(length, params);

    mine.longest = max(mine.longest, (unsigned)length);
    if (c == CLASS_LONG) {
      mine.nlong++;
      mine.pieces += (unsigned long long)PiecesOf(length);
    } else if (c == CLASS_MEDIUM) mine.nmedium++;
    else mine.nrest++;
  }
}

template <class T>
__device__ __forceinline__ void AddUnlessZero(T *to, T n)
{
  if (n) atomicAdd(to, n);
}

/* Into counts that start as zeros. Integers: their order does not matter */
__device__ void AddCounts(const RowCounts &mine, RowCounts *counts)
{
  AddUnlessZero(&counts->pieces, mine.pieces);
  AddUnlessZero(&counts->consecutive, mine.consecutive);
  AddUnlessZero(&counts->nlong, mine.nlong);
  AddUnlessZero(&counts->nmedium, mine.nmedium);
  AddUnlessZero(&counts->nrest, mine.nrest);
  AddUnlessZero(&counts->nempty, mine.nempty);
  if (mine.largest) atomicMax(&counts->largest, mine.largest);
  if (mine.longest) atomicMax(&counts->longest, mine.longest);
}

/* Sums of the lanes, in all of them; largest is the same in all, pieces are rare and stay with the lanes */
__device__ void AddLanes(RowCounts &mine)
{
  mine.nlong   = __reduce_add_sync(ALL_LANES, mine.nlong);
  mine.nmedium = __reduce_add_sync(ALL_LANES, mine.nmedium);
  mine.nrest   = __reduce_add_sync(ALL_LANES, mine.nrest);
  mine.nempty  = __reduce_add_sync(ALL_LANES, mine.nempty);
  mine.longest = __reduce_max_sync(ALL_LANES, mine.longest);
}

__global__ void __launch_bounds__(THREADS) ClassifyKernel(PetscInt m, PetscInt groups, const PetscInt *__restrict__ i, AIJTCParams params, PetscInt *__restrict__ start, int *misfit, uint8_t *__restrict__ flag, RowCounts *counts)
{
  __shared__ RowCounts block;
  const int            lane = (int)threadIdx.x % AIJTC_LANES;
  const PetscInt       rows = AIJTC_LANES * params.rrows;
  RowCounts            mine = {};

  if (threadIdx.x == 0) block = RowCounts{};
  __syncthreads();
  for (PetscInt g = (PetscInt)blockIdx.x * WARPS + (PetscInt)threadIdx.x / AIJTC_LANES; g < groups; g += (PetscInt)gridDim.x * WARPS) {
    const PetscInt first = g * rows, last = m - first < rows ? m : first + rows;
    unsigned       most = 0;

    for (PetscInt r = first + lane; r < last; r += AIJTC_LANES) {
      const PetscInt end    = i[r + 1];
      const unsigned length = (unsigned)(end - i[r]);

      start[r + 1] = end;
      most         = max(most, length);
      mine.nempty += !length;
    }
    most = __reduce_max_sync(ALL_LANES, most);

    const unsigned long long entries = (unsigned long long)(i[last] - i[first]);
    const bool               slice   = !params.gather && (PetscInt)most <= params.short_max && 2 * (int64_t)entries >= (int64_t)most * (last - first);

    if (slice) {
      mine.consecutive++;
      mine.largest = max(mine.largest, entries);
    } else CountRows(first, last, i, params, lane, mine);
    if (lane == 0) flag[g] = slice;
  }
  AddLanes(mine);
  if (mine.pieces && lane) atomicAdd(&block.pieces, mine.pieces);
  if (lane == 0) AddCounts(mine, &block);
  __syncthreads();
  if (threadIdx.x == 0) AddCounts(block, counts);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts->nnz = (unsigned long long)i[m];
    start[0]    = i[0];
    *misfit     = 0;
  }
}

/* Keys ascend in class and window and descend in length */
struct KeyFields {
  PetscInt window; /* rows; 0: all */
  int      length_bits, window_bits;
};

__global__ void KeysKernel(PetscInt n, const int32_t *__restrict__ row, const PetscInt *__restrict__ i, AIJTCParams params, KeyFields fields, unsigned longest, uint64_t *__restrict__ key)
{
  const PetscInt q = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (q >= n) return;

  const PetscInt r = row[q], length = i[r + 1] - i[r];
  const uint64_t window = fields.window ? (uint64_t)(r / fields.window) : 0;

  key[q] = ((((uint64_t)ClassOf(length, params) << fields.window_bits) | window) << fields.length_bits) | (uint64_t)(longest - (unsigned)length);
}

/* Rows in their order to their places in rid; pieces of the long ones, and none after the last of them */
__global__ void PlaceRowsKernel(PetscInt n, PetscInt nlong, PetscInt nmedium, PetscInt rid_tile, PetscInt rid_rows, const int32_t *__restrict__ row, const PetscInt *__restrict__ i, PetscInt *__restrict__ rid, PetscInt *__restrict__ pieces)
{
  const PetscInt q = (PetscInt)blockIdx.x * THREADS + (PetscInt)threadIdx.x;

  if (q == 0 && nlong) pieces[nlong] = 0;
  if (q >= n) return;

  const PetscInt r = row[q];

  if (q < nlong) {
    rid[q]    = r;
    pieces[q] = PiecesOf(i[r + 1] - i[r]);
  } else if (q < nlong + nmedium) rid[rid_tile + (q - nlong)] = r;
  else rid[rid_rows + (q - nlong - nmedium)] = r;
}

struct IsListed {
  const uint8_t *flag;
  PetscInt       rows;

  __host__ __device__ bool operator()(int32_t row) const { return !flag[row / rows]; }
};

/* The rows of the groups that are no slices, ascending */
PetscErrorCode ListRows(const AIJTCLayout *layout, const uint8_t flag[], PetscInt n, int32_t **row, Scratch &scratch, cudaStream_t stream)
{
  const thrust::counting_iterator<int32_t> all(0);
  const IsListed                           listed = {flag, AIJTC_LANES * layout->params.rrows};
  size_t                                   bytes  = 0;
  int32_t                                 *found;
  uint8_t                                 *work;

  PetscFunctionBegin;
  PetscCall(scratch.Get(n, row));
  PetscCall(scratch.Get(1, &found));
  PetscCallCUDA(cub::DeviceSelect::If(nullptr, bytes, all, *row, found, (int64_t)layout->m, listed, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCallCUDA(cub::DeviceSelect::If(work, bytes, all, *row, found, (int64_t)layout->m, listed, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ListGroups(PetscInt groups, PetscInt n, const uint8_t flag[], PetscInt **group, Scratch &scratch, cudaStream_t stream)
{
  const thrust::counting_iterator<PetscInt> all(0);
  size_t                                    bytes = 0;
  PetscInt                                 *found;
  uint8_t                                  *work;

  PetscFunctionBegin;
  PetscCall(scratch.Get(n, group));
  PetscCall(scratch.Get(1, &found));
  PetscCallCUDA(cub::DeviceSelect::Flagged(nullptr, bytes, all, flag, *group, found, (int64_t)groups, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCallCUDA(cub::DeviceSelect::Flagged(work, bytes, all, flag, *group, found, (int64_t)groups, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SortRows(const AIJTCLayout *layout, const PetscInt i[], PetscInt n, unsigned longest, const int32_t row[], int32_t **sorted, Scratch &scratch, cudaStream_t stream)
{
  const AIJTCParams &params = layout->params;
  const PetscInt     window = params.window;
  const KeyFields    fields = {window, BitsFor(longest), window ? BitsFor((uint64_t)((layout->m - 1) / window)) : 0};
  const int          bits   = 2 + fields.window_bits + fields.length_bits;
  size_t             bytes  = 0;
  uint64_t          *key, *sorted_key;
  uint8_t           *work;

  PetscFunctionBegin;
  PetscCall(scratch.Get(n, &key));
  PetscCall(scratch.Get(n, &sorted_key));
  PetscCall(scratch.Get(n, sorted));
  KeysKernel<<<BlocksFor(n, THREADS), THREADS, 0, stream>>>(n, row, i, params, fields, longest, key);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(PetscTCSortLongPairs_CUDA(nullptr, &bytes, key, sorted_key, row, *sorted, n, bits, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCall(PetscTCSortLongPairs_CUDA(work, &bytes, key, sorted_key, row, *sorted, n, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of pieces to where they begin, in place */
PetscErrorCode AddPieces(const AIJTCLayout *layout, Scratch &scratch, cudaStream_t stream)
{
  size_t   bytes = 0;
  uint8_t *work;

  PetscFunctionBegin;
  if (!layout->nlong) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCExclusiveSum_CUDA(nullptr, &bytes, layout->long_piece, layout->long_piece, (PetscCount)layout->nlong + 1, stream));
  PetscCall(scratch.Get((PetscCount)bytes, &work));
  PetscCall(PetscTCExclusiveSum_CUDA(work, &bytes, layout->long_piece, layout->long_piece, (PetscCount)layout->nlong + 1, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of a window of at most ITEMS THREADS by decreasing length, in a block each */
template <int ITEMS>
__global__ void __launch_bounds__(THREADS) SortWindowsKernel(PetscInt n, PetscInt window, unsigned longest, int bits, const int32_t *__restrict__ row, const PetscInt *__restrict__ i, PetscInt *__restrict__ rid)
{
  using Sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS, int32_t>;
  __shared__ typename Sort::TempStorage memory;
  const PetscInt                        first = (PetscInt)blockIdx.x * window;
  const int                             count = (int)min(n - first, window);
  unsigned                              key[ITEMS];
  int32_t                               mine[ITEMS];

#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int p = ITEMS * (int)threadIdx.x + k;

    mine[k] = p < count ? row[first + p] : 0;
    key[k]  = p < count ? longest - (unsigned)(i[mine[k] + 1] - i[mine[k]]) : longest; /* those behind stay there */
  }
  Sort(memory).SortBlockedToStriped(key, mine, 0, bits);
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int p = THREADS * k + (int)threadIdx.x;

    if (p < count) rid[first + p] = mine[k];
  }
}

/* Of a gathered layout, which has short rows alone: to their places in rid */
PetscErrorCode SortBlocks(const AIJTCLayout *layout, const PetscInt i[], unsigned longest, const int32_t row[], cudaStream_t stream)
{
  const PetscInt window = AIJTC_LANES * layout->params.gather;
  const unsigned blocks = BlocksFor(layout->m, window);
  const int      bits   = PetscMax(BitsFor(longest), 1);
  PetscInt      *rid    = layout->rid + layout->rid_rows;

  static_assert(8 * THREADS == AIJTC_LANES * AIJTC_GATHER_MOST, "the largest window has 8 rows a thread");
  PetscFunctionBegin;
  if (window <= THREADS) SortWindowsKernel<1><<<blocks, THREADS, 0, stream>>>(layout->m, window, longest, bits, row, i, rid);
  else if (window <= 2 * THREADS) SortWindowsKernel<2><<<blocks, THREADS, 0, stream>>>(layout->m, window, longest, bits, row, i, rid);
  else if (window <= 4 * THREADS) SortWindowsKernel<4><<<blocks, THREADS, 0, stream>>>(layout->m, window, longest, bits, row, i, rid);
  else SortWindowsKernel<8><<<blocks, THREADS, 0, stream>>>(layout->m, window, longest, bits, row, i, rid);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By their keys, to their places in rid; pieces of the long ones */
PetscErrorCode SortAndPlace(AIJTCLayout *layout, const PetscInt i[], PetscInt n, unsigned longest, const int32_t row[], Scratch &scratch, cudaStream_t stream)
{
  int32_t *sorted;

  PetscFunctionBegin;
  PetscCall(SortRows(layout, i, n, longest, row, &sorted, scratch, stream));
  PlaceRowsKernel<<<BlocksFor(n, THREADS), THREADS, 0, stream>>>(n, layout->nlong, layout->nmedium, layout->rid_tile, layout->rid_rows, sorted, i, layout->rid, layout->long_piece);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(AddPieces(layout, scratch, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode ClassifyRows(const AIJTCLayout *layout, const PetscInt i[], uint8_t flag[], RowCounts *found, RowCounts *counts, cudaStream_t stream)
{
  const PetscInt groups = GroupsOf(layout->m, layout->params);
  unsigned       blocks;

  PetscFunctionBegin;
  PetscCall(BlocksThatFill(&blocks));
  ClassifyKernel<<<PetscMin(BlocksFor(groups, WARPS), blocks), THREADS, 0, stream>>>(layout->m, groups, i, layout->params, layout->start, layout->misfit, flag, found);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(counts, found, sizeof(*counts), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode OrderRows(AIJTCLayout *layout, const Csr &A, const uint8_t flag[], const RowCounts &counts, const int32_t clustered[], PetscInt **group, Scratch &scratch, cudaStream_t stream)
{
  const PetscInt groups = GroupsOf(layout->m, layout->params), n = (PetscInt)counts.nlong + (PetscInt)counts.nmedium + (PetscInt)counts.nrest;
  int32_t       *listed;

  PetscFunctionBegin;
  *group = nullptr;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  if (layout->nconsecutive) PetscCall(ListGroups(groups, layout->nconsecutive, flag, group, scratch, stream));
  PetscCallCUDA(cudaMemsetAsync(layout->rid, 0xff, (size_t)layout->nrid * sizeof(*layout->rid), stream)); /* -1 */
  if (layout->params.gather) PetscCall(SortBlocks(layout, A.i, counts.longest, clustered, stream));
  else {
    PetscCall(ListRows(layout, flag, n, &listed, scratch, stream));
    PetscCall(SortAndPlace(layout, A.i, n, counts.longest, listed, scratch, stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
