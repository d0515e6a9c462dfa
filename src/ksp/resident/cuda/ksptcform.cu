/*
   Method
     The resident form of a matrix (ksptcform.h), made once for a pattern, its values once for a state of the matrix:
       order    one thread a row: where rows have an order of their own, their numbers in it, or in that of regions (ksptcregions.cu) or pencils; a scan gives their first entries
       deal     one thread a block finds its first row by binary search in the row offsets
       cut      one thread a slice: its first row and lanes; where rows come by length one thread a block has found by binary search where widths change, and counted the parts of long rows
       count    one warp a slice: the longest row, hence the places; a scan gives the first places of the slices
       sort     where too many places would be without entry: rows by block and length, by radix, and then cut and count once more
       mark     one warp a slice: a bit for every column among other blocks' rows, in the block's row of a table of bits; a scan of the words' numbers of bits numbers the ghosts of all blocks
       ghosts   one thread a word: its columns; and their bits among the rows that are shown
       columns  one warp a slice: lane l of slot t numbers its entry's column, a ghost by the bits before its own
       collect  where blocks have no room for all places: which values there are, until there are too many for a dictionary (ksptcvalues.cu)
       fill     the same walk as columns for values, or codes for their numbers
     The blocks' first rows, places and ghosts come to the host between these, which knows then how much shared memory a block needs, and whether there is so much.

   Layout
     src/ksp/resident/ksptcform.h; bits[words * block + column / 32], words = ceil(m / 32)

   Memory traffic
     Row offsets four times, columns twice, values once, 10 bytes a place written; with a dictionary values three times and 3 bytes a place, and two waits more; 8 bytes a word of the table, blocks m / 32 words. 7-point 43^3 (0.55 million nonzeros, 132 blocks): 15 MB and 2.6 MB, 5 us at
     4.3 TB/s; the two waits of the host are more.

   References
     CUDA Core Compute Libraries (CUB), DeviceScan, DeviceRadixSort
*/
#include <cub/device/device_scan.cuh>
#include <petscdevice_cuda.h>
#include <../src/parts/devicescratch.h>
#include <../src/parts/devicesort.h>
#include <../src/ksp/resident/ksptcform.h>
#include <../src/ksp/resident/ksptcregions.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace
{
constexpr int THREADS = 256;
constexpr int WARPS   = THREADS / KSPTC_LANES;

/* room: becomes false where there is none */
template <class T>
PetscErrorCode Allocate(PetscCount count, T **array, PetscBool *room)
{
  cudaError_t cerr;

  PetscFunctionBegin;
  *array = NULL;
  if (!count || !*room) PetscFunctionReturn(PETSC_SUCCESS);
  cerr = cudaMalloc((void **)array, (size_t)count * sizeof(T));
  if (cerr == cudaErrorMemoryAllocation) {
    *array = NULL;
    *room  = PETSC_FALSE;
    (void)cudaGetLastError(); /* the steps run: it must not appear again after the next launch */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* order[], and number[] of each row of the matrix in the form */
__global__ void __launch_bounds__(THREADS) OrderKernel(int32_t m, const PetscInt *__restrict__ from, int32_t *__restrict__ order, int32_t *__restrict__ number)
{
  const int32_t row = (int32_t)(blockIdx.x * THREADS + threadIdx.x);

  if (row >= m) return;
  order[row]         = (int32_t)__ldg(from + row);
  number[order[row]] = row;
}

__global__ void __launch_bounds__(THREADS) PencilsKernel(const __grid_constant__ KSPTCPencils cut, int32_t *__restrict__ order, int32_t *__restrict__ number)
{
  const int32_t row = (int32_t)(blockIdx.x * THREADS + threadIdx.x);

  if (row >= cut.m) return;
  number[row]        = KSPTCPencilRow(cut, row);
  order[number[row]] = row;
}

/* Nonzeros of a row of the form, for a scan, which has the sum of all behind the last */
struct LengthOf {
  int32_t         m;
  const int32_t  *order;
  const PetscInt *i;

  __device__ __forceinline__ PetscInt operator()(int32_t row) const
  {
    const int32_t r = row < m ? order[row] : 0;

    return row < m ? i[r + 1] - i[r] : 0;
  }
};

/* i: first entries of the form's rows, if these came one after the other */
__global__ void __launch_bounds__(THREADS) DealKernel(int32_t m, PetscCount nnz, PetscCount weight, int blocks, const PetscInt *__restrict__ i, int32_t *__restrict__ block_row)
{
  const PetscCount all = nnz + weight * m;
  const int        k   = (int)(blockIdx.x * THREADS + threadIdx.x);
  int32_t          low = 0, high = m;

  if (k > blocks) return;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;

    if ((__ldg(i + middle) + weight * middle) * blocks < all * k) low = middle + 1;
    else high = middle;
  }
  block_row[k] = low;
}

/* The last block whose first one is `at` or before: blocks without rows have no slices */
__device__ __forceinline__ int BlockOf(int blocks, const int32_t *__restrict__ first, int32_t at)
{
  int low = 0, high = blocks - 1;

  while (low < high) {
    const int middle = (low + high + 1) / 2;

    if (__ldg(first + middle) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* The rows of a slice */
struct SliceRows {
  int32_t slice, block, first, end;
  int     lanes;

  __device__ __forceinline__ SliceRows(const KSPTCForm &form, int32_t s) : slice(s), block(BlockOf(form.blocks, form.block_slice, s))
  {
    const int32_t cut = __ldg(form.cut + s);

    lanes = KSPTCCutLanes(cut);
    first = __ldg(form.block_row + block) + KSPTCCutRow(cut);
    end   = min(first + KSPTC_LANES / lanes, __ldg(form.block_row + block + 1));
  }
  /* The slice's entries of one of them */
  __device__ __forceinline__ void entries(const KSPTCForm &form, const PetscInt *__restrict__ i, int32_t of_form, PetscInt *from, PetscInt *to) const
  {
    const int32_t row = KSPTCMatrixRow(form.order, of_form);

    *from = __ldg(i + row);
    *to   = __ldg(i + row + 1);
    KSPTCEntriesAt(form.cut, __ldg(form.block_slice + block), slice, from, to);
  }
};

/* Keys of the rows: first by block, then by length, long ones first; and the rows */
__global__ void __launch_bounds__(THREADS) SortKeysKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, uint64_t *__restrict__ key, int32_t *__restrict__ row)
{
  const int32_t k = (int32_t)(blockIdx.x * THREADS + threadIdx.x);

  if (k >= form.m) return;
  row[k] = KSPTCMatrixRow(form.order, k);
  key[k] = (uint64_t)BlockOf(form.blocks, form.block_row, k) << 32 | (UINT32_MAX - (uint32_t)(i[row[k] + 1] - i[row[k]]));
}

/* order[], which is sorted, turned round */
__global__ void __launch_bounds__(THREADS) NumberKernel(int32_t m, const int32_t *__restrict__ order, int32_t *__restrict__ number)
{
  const int32_t row = (int32_t)(blockIdx.x * THREADS + threadIdx.x);

  if (row < m) number[__ldg(order + row)] = row;
}

/* How blocks whose rows come by length are cut */
__global__ void __launch_bounds__(THREADS) CutsKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, KSPTCCuts *__restrict__ cuts)
{
  const int k = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (k >= form.blocks) return;
  const int32_t first = form.block_row[k], end = form.block_row[k + 1];
  int32_t       until[KSPTC_WIDTHS], rows = 0, parts = 0;

  for (int w = 0; w < KSPTC_WIDTHS; w++) {
    int32_t low = first, high = end;

    while (low < high) {
      const int32_t middle = low + (high - low) / 2, row = form.order[middle];

      if (i[row + 1] - i[row] > KSPTCLengthBelow(w)) low = middle + 1;
      else high = middle;
    }
    until[w] = low - first;
  }
  for (; first + rows < end; rows++) {
    const int32_t  row    = form.order[first + rows];
    const PetscInt length = i[row + 1] - i[row];

    if (length <= KSPTC_PART) break;
    parts += KSPTCPartsOf(length);
  }
  cuts[k] = KSPTCCutsOf(until, rows, parts);
}

__global__ void __launch_bounds__(THREADS) CutKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, const KSPTCCuts *__restrict__ cuts)
{
  const int32_t s = (int32_t)(blockIdx.x * THREADS + threadIdx.x);

  if (s >= form.slices) return;
  const int block = BlockOf(form.blocks, form.block_slice, s);

  form.cut[s] = KSPTCCutAt(cuts[block], s - __ldg(form.block_slice + block), i, form.order ? form.order + __ldg(form.block_row + block) : nullptr);
}

/* Calls at(block, place, entry) for every place of a slice, its lane's by a lane; entry -1: none */
template <class At>
__device__ __forceinline__ void ForPlaces(const KSPTCForm &form, const PetscInt *__restrict__ i, At at)
{
  const int32_t s    = (int32_t)(blockIdx.x * WARPS + threadIdx.x / KSPTC_LANES);
  const int     lane = threadIdx.x % KSPTC_LANES;

  if (s >= form.slices) return;
  const SliceRows rows(form, s);
  const int32_t   of_form = rows.first + lane / rows.lanes, places = __ldg(form.start + s + 1);
  PetscInt        entry = 0, end = 0;

  if (of_form < rows.end) rows.entries(form, i, of_form, &entry, &end);
  entry += lane % rows.lanes;
  for (int32_t place = __ldg(form.start + s) + lane; place < places; place += KSPTC_LANES, entry += rows.lanes) at(rows.block, place, entry < end ? entry : -1);
}

/* count[s] <- places of slice s, 0 for s = slices */
__global__ void __launch_bounds__(THREADS) CountKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, int32_t *__restrict__ count)
{
  const int32_t s       = (int32_t)(blockIdx.x * WARPS + threadIdx.x / KSPTC_LANES);
  const int     lane    = threadIdx.x % KSPTC_LANES;
  int           longest = 0, lanes = 1;

  if (s > form.slices) return;
  if (s < form.slices) {
    const SliceRows rows(form, s);

    lanes = rows.lanes;
    if (rows.first + lane < rows.end) {
      PetscInt from, to;

      rows.entries(form, i, rows.first + lane, &from, &to);
      longest = (int)(to - from);
    }
  }
  longest = __reduce_max_sync(0xffffffffu, longest);
  if (lane == 0) count[s] = (longest + lanes - 1) / lanes * KSPTC_LANES;
}

/* Which columns are ghosts of which block: a table of bits, and how many come before those of a word */
struct GhostTable {
  int32_t        words;  /* of a block */
  uint32_t      *bits;   /* [words * blocks + 1], the last one zero */
  const int32_t *before; /* [words * blocks + 1] */
  const int32_t *number; /* [m] of the rows of the matrix in the form, or NULL */

  __device__ __forceinline__ int32_t column(const PetscInt *__restrict__ j, PetscInt entry) const { return KSPTCMatrixRow(number, (int32_t)__ldg(j + entry)); }
};

__device__ __forceinline__ bool IsGhost(const KSPTCForm &form, int32_t block, int32_t column)
{
  return column < __ldg(form.block_row + block) || column >= __ldg(form.block_row + block + 1);
}

__global__ void __launch_bounds__(THREADS) MarkKernel(const __grid_constant__ KSPTCForm form, const __grid_constant__ GhostTable table, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j)
{
  ForPlaces(form, i, [&](int32_t block, int32_t, PetscInt entry) {
    const int32_t column = entry < 0 ? 0 : table.column(j, entry);

    if (entry >= 0 && IsGhost(form, block, column)) atomicOr(table.bits + (size_t)table.words * block + column / 32, 1u << column % 32);
  });
}

__global__ void __launch_bounds__(THREADS) GhostsKernel(const __grid_constant__ KSPTCForm form, const __grid_constant__ GhostTable table)
{
  const int64_t word = (int64_t)blockIdx.x * THREADS + threadIdx.x;

  if (word >= (int64_t)table.words * form.blocks) return;
  int32_t next = table.before[word];

  if (table.bits[word]) atomicOr(form.shown + word % table.words, table.bits[word]);
  for (uint32_t bits = table.bits[word]; bits; bits &= bits - 1) form.ghost[next++] = (int32_t)(word % table.words) * 32 + __ffs((int)bits) - 1;
}

__global__ void __launch_bounds__(THREADS) ColumnsKernel(const __grid_constant__ KSPTCForm form, const __grid_constant__ GhostTable table, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j)
{
  ForPlaces(form, i, [&](int32_t block, int32_t place, PetscInt entry) {
    const int32_t column = entry < 0 ? 0 : table.column(j, entry), first = __ldg(form.block_row + block), rows = __ldg(form.block_row + block + 1) - first;
    const int32_t ghosts = __ldg(form.block_ghost + block);
    int32_t       number = rows + __ldg(form.block_ghost + block + 1) - ghosts;

    if (entry >= 0 && !IsGhost(form, block, column)) number = column - first;
    else if (entry >= 0) {
      const size_t word = (size_t)table.words * block + column / 32;

      number = rows + table.before[word] + __popc(table.bits[word] & ((1u << column % 32) - 1)) - ghosts;
    }
    form.column[place] = (uint16_t)number;
  });
}

__global__ void __launch_bounds__(THREADS) FillKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a)
{
  ForPlaces(form, i, [&](int32_t, int32_t place, PetscInt entry) { form.value[place] = entry < 0 ? 0.0 : __ldg(a + entry); });
}

/* dict: the bits of the dictionary */
__global__ void __launch_bounds__(THREADS) CodesKernel(const __grid_constant__ KSPTCForm form, const uint64_t *__restrict__ dict, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a)
{
  ForPlaces(form, i, [&](int32_t, int32_t place, PetscInt entry) { form.code[place] = entry < 0 ? 0 : KSPTCCodeOf(dict, __ldg(a + entry)); });
}

/* to[k] <- the sum of from[0] .. from[k - 1] */
template <class From, class To>
PetscErrorCode Scan(From from, To *to, PetscCount length, PetscBool *room, cudaStream_t stream)
{
  Scratch<char> work;
  size_t        bytes = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, to, length, stream));
  PetscCall(work.allocate(bytes, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum((void *)(char *)work, bytes, from, to, length, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* order->made, where there is none yet and room for it */
PetscErrorCode MakeRegions(const PetscInt i[], const PetscInt j[], KSPTCOrder *order, const KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  PetscInt      *made = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!order->regions || order->made) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Allocate(form->m, &made, room));
  if (*room) ierr = KSPTCOrderByRegion_CUDA(form->m, i, j, (PetscInt)KSPTCRowWeight(form), form->blocks, made, room, stream);
  if (*room && !ierr) order->made = made;
  else if (made) PetscCallCUDA(cudaFree(made)); /* it is no order */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* order[], what there is of it, number[], and the first entries of the rows in that order */
PetscErrorCode TakeOrder(const PetscInt i[], const PetscInt j[], KSPTCOrder *order, Scratch<int32_t> &number, Scratch<PetscInt> &first, KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  const PetscInt *rows;

  PetscFunctionBegin;
  if (!KSPTCOrders(order)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MakeRegions(i, j, order, form, room, stream));
  rows = order->regions ? order->made : order->rows;
  PetscCall(Allocate(form->m, &form->order, room));
  PetscCall(number.allocate(form->m, stream, room));
  PetscCall(first.allocate((size_t)form->m + 1, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  if (rows) OrderKernel<<<(form->m - 1) / THREADS + 1, THREADS, 0, stream>>>(form->m, rows, form->order, number);
  else PencilsKernel<<<(form->m - 1) / THREADS + 1, THREADS, 0, stream>>>(KSPTCPencilsOf(form, order), form->order, number);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(Scan(thrust::make_transform_iterator(thrust::make_counting_iterator(0), LengthOf{form->m, form->order, i}), (PetscInt *)first, (PetscCount)form->m + 1, room, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block_row, on both sides. Waits */
PetscErrorCode DealRows(const PetscInt i[], int32_t block_row[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCall(Allocate(form->blocks + 1, &form->block_row, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  DealKernel<<<form->blocks / THREADS + 1, THREADS, 0, stream>>>(form->m, form->nnz, KSPTCRowWeight(form), form->blocks, i, form->block_row);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(block_row, form->block_row, (form->blocks + 1) * sizeof(*block_row), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block_ghost, and the first places of the blocks beside it */
__global__ void __launch_bounds__(THREADS) PickKernel(const __grid_constant__ KSPTCForm form, const __grid_constant__ GhostTable table, int32_t *__restrict__ block_start)
{
  const int k = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (k > form.blocks) return;
  block_start[k]      = __ldg(form.start + __ldg(form.block_slice + k));
  form.block_ghost[k] = table.before[(size_t)table.words * k];
}

struct BitsOf {
  __device__ __forceinline__ int32_t operator()(uint32_t word) const { return __popc(word); }
};

/* start[]. No more than 32 places a nonzero, of which there are no more than KSPTC_NONZEROS: they can be counted in 32 bits */
PetscErrorCode CountPlaces(const PetscInt i[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  Scratch<int32_t> count;

  PetscFunctionBegin;
  PetscCall(Allocate(form->slices + 1, &form->start, room));
  PetscCall(count.allocate(form->slices + 1, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  CountKernel<<<form->slices / WARPS + 1, THREADS, 0, stream>>>(*form, i, count);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(Scan((const int32_t *)count, form->start, form->slices + 1, room, stream));
  PetscCallCUDA(cudaMemcpyAsync(&form->places, form->start + form->slices, sizeof(form->places), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block_slice on both sides, cut[], start[]: blocks cut as it says on the host. Waits */
PetscErrorCode CutSlices(const PetscInt i[], const KSPTCCuts cuts[], int32_t block_slice[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  Scratch<KSPTCCuts> of_blocks;

  PetscFunctionBegin;
  KSPTCFormCountSlices(cuts, block_slice, form);
  for (int32_t *of_others : {form->block_slice, form->start, form->cut}) {
    if (of_others) PetscCallCUDA(cudaFree(of_others)); /* of rows as they were */
  }
  form->block_slice = form->start = form->cut = NULL;
  PetscCall(Allocate(form->blocks + 1, &form->block_slice, room));
  PetscCall(Allocate(form->slices, &form->cut, room));
  PetscCall(of_blocks.allocate(form->blocks, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemcpyAsync(form->block_slice, block_slice, (form->blocks + 1) * sizeof(*block_slice), cudaMemcpyHostToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync((KSPTCCuts *)of_blocks, cuts, form->blocks * sizeof(*cuts), cudaMemcpyHostToDevice, stream));
  CutKernel<<<(form->slices - 1) / THREADS + 1, THREADS, 0, stream>>>(*form, i, of_blocks);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(CountPlaces(i, form, room, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* order[] and number[] with each block's rows by length, and on the host how that is to be cut. Waits */
PetscErrorCode SortRows(const PetscInt i[], Scratch<int32_t> &number, KSPTCCuts cuts[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  constexpr int      bits = 40; /* the length's, and the block's */
  const unsigned     grid = (unsigned)((form->m - 1) / THREADS + 1);
  Scratch<uint64_t>  key, sorted;
  Scratch<int32_t>   row;
  Scratch<char>      work;
  Scratch<KSPTCCuts> of_blocks;
  size_t             bytes = 0;

  PetscFunctionBegin;
  static_assert(KSPTC_BLOCKS <= 1 << (bits - 32), "the block is part of the key");
  PetscCall(key.allocate(form->m, stream, room));
  PetscCall(sorted.allocate(form->m, stream, room));
  PetscCall(row.allocate(form->m, stream, room));
  PetscCall(of_blocks.allocate(form->blocks, stream, room));
  if (!(int32_t *)number) PetscCall(number.allocate(form->m, stream, room));
  PetscCall(PetscTCSortLongPairs_CUDA(nullptr, &bytes, key, sorted, row, form->order, form->m, bits, stream));
  PetscCall(work.allocate(bytes, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  SortKeysKernel<<<grid, THREADS, 0, stream>>>(*form, i, key, row);
  PetscCallCUDA(cudaGetLastError());
  if (!form->order) PetscCall(Allocate(form->m, &form->order, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCSortLongPairs_CUDA((void *)(char *)work, &bytes, key, sorted, row, form->order, form->m, bits, stream));
  NumberKernel<<<grid, THREADS, 0, stream>>>(form->m, form->order, number);
  CutsKernel<<<form->blocks / THREADS + 1, THREADS, 0, stream>>>(*form, i, of_blocks);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(cuts, (KSPTCCuts *)of_blocks, form->blocks * sizeof(*cuts), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MarkGhosts(const PetscInt i[], const PetscInt j[], const KSPTCForm *form, const GhostTable *table, int32_t *before, PetscBool *room, cudaStream_t stream)
{
  const PetscCount length = (PetscCount)table->words * form->blocks + 1;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMemsetAsync(table->bits, 0, (size_t)length * sizeof(*table->bits), stream));
  MarkKernel<<<(form->slices - 1) / WARPS + 1, THREADS, 0, stream>>>(*form, *table, i, j);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(Scan(thrust::make_transform_iterator((const uint32_t *)table->bits, BitsOf()), before, length, room, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block_ghost[], and on the host the first places and ghosts of the blocks */
PetscErrorCode PickBlocks(const GhostTable *table, int32_t block_start[], int32_t block_ghost[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  const size_t     bytes = (form->blocks + 1) * sizeof(*block_start);
  Scratch<int32_t> picked;

  PetscFunctionBegin;
  PetscCall(Allocate(form->blocks + 1, &form->block_ghost, room));
  PetscCall(picked.allocate(form->blocks + 1, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PickKernel<<<form->blocks / THREADS + 1, THREADS, 0, stream>>>(*form, *table, picked);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(block_start, (int32_t *)picked, bytes, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaMemcpyAsync(block_ghost, form->block_ghost, bytes, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  form->places = block_start[form->blocks];
  form->ghosts = block_ghost[form->blocks];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* can: not where a dictionary has no room for the values, nor device memory for their table */
PetscErrorCode Fill(const PetscInt i[], const PetscScalar a[], KSPTCForm *form, PetscBool *can, PetscBool *room, cudaStream_t stream)
{
  const unsigned    grid = (unsigned)((form->slices - 1) / WARPS + 1);
  uint64_t          bits[KSPTC_DICT];
  PetscScalar       dict[KSPTC_DICT];
  Scratch<uint64_t> of_dict;

  PetscFunctionBegin;
  *can = PETSC_TRUE;
  if (!form->coded) {
    FillKernel<<<grid, THREADS, 0, stream>>>(*form, i, a);
    PetscCallCUDA(cudaGetLastError());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPTCCollectValues_CUDA(form->nnz, a, bits, dict, can, room, stream));
  PetscCall(of_dict.allocate(KSPTC_DICT, stream, room));
  if (!*room) *can = PETSC_FALSE;
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemcpyAsync((uint64_t *)of_dict, bits, sizeof(bits), cudaMemcpyHostToDevice, stream));
  PetscCallCUDA(cudaMemcpyAsync(form->dict, dict, sizeof(dict), cudaMemcpyHostToDevice, stream));
  CodesKernel<<<grid, THREADS, 0, stream>>>(*form, of_dict, i, a);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* bits[] and dict[] have been read */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the blocks of a form begin, in host memory */
struct Blocks {
  int32_t row[KSPTC_BLOCKS + 1], slice[KSPTC_BLOCKS + 1], start[KSPTC_BLOCKS + 1], ghost[KSPTC_BLOCKS + 1];

  void measure(const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits) const { KSPTCFormMeasure(row, slice, start, ghost, chip, form, fits); }
};

/* Values from a dictionary, where blocks have no room for all of them and that helps */
PetscErrorCode TryDictionary(const PetscScalar a[], const Blocks *blocks, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits, PetscBool *room, cudaStream_t stream)
{
  uint64_t    bits[KSPTC_DICT];
  PetscScalar dict[KSPTC_DICT];

  PetscFunctionBegin;
  if (!*fits || !form->streamed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCCollectValues_CUDA(form->nnz, a, bits, dict, &form->coded, room, stream));
  if (!form->coded) PetscFunctionReturn(PETSC_SUCCESS);
  blocks->measure(chip, form, fits);
  if (*fits) PetscFunctionReturn(PETSC_SUCCESS);
  form->coded = PETSC_FALSE;
  blocks->measure(chip, form, fits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ghost[], shown[], column[] and value[], or code[] and dict[] */
PetscErrorCode Write(const PetscInt i[], const PetscInt j[], const PetscScalar a[], const GhostTable *table, KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  const PetscCount words = (PetscCount)table->words * form->blocks;
  PetscBool        can;

  PetscFunctionBegin;
  PetscCall(Allocate(form->ghosts, &form->ghost, room));
  PetscCall(Allocate(table->words, &form->shown, room));
  PetscCall(Allocate(form->places, &form->column, room));
  PetscCall(Allocate(form->coded ? 0 : form->places, &form->value, room));
  PetscCall(Allocate(form->coded ? form->places : 0, &form->code, room));
  PetscCall(Allocate(form->coded ? KSPTC_DICT : 0, &form->dict, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemsetAsync(form->shown, 0, table->words * sizeof(*form->shown), stream));
  if (form->ghosts) GhostsKernel<<<(unsigned)((words - 1) / THREADS + 1), THREADS, 0, stream>>>(*form, *table);
  PetscCallCUDA(cudaGetLastError());
  ColumnsKernel<<<(form->slices - 1) / WARPS + 1, THREADS, 0, stream>>>(*form, *table, i, j);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(Fill(i, a, form, &can, room, stream));
  PetscCheck(can || !*room, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The dictionary has no room for the values that it was made for");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* fits: also false where device memory has no room */
PetscErrorCode Create(const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits, cudaStream_t stream)
{
  Blocks                 blocks = {};
  std::vector<KSPTCCuts> cuts(form->blocks);
  PetscBool              room = PETSC_TRUE;
  Scratch<uint32_t>      bits;
  Scratch<int32_t>       before, number;
  Scratch<PetscInt>      first;
  GhostTable             table;

  PetscFunctionBegin;
  PetscCall(TakeOrder(i, j, order, number, first, form, &room, stream));
  if (room) PetscCall(DealRows(form->order ? (const PetscInt *)first : i, blocks.row, form, &room, stream));
  KSPTCFormCutEvenly(blocks.row, form, cuts.data());
  if (room) PetscCall(CutSlices(i, cuts.data(), blocks.slice, form, &room, stream));
  if (room && KSPTCFormSorts(form)) {
    PetscCall(SortRows(i, number, cuts.data(), form, &room, stream));
    if (room) PetscCall(CutSlices(i, cuts.data(), blocks.slice, form, &room, stream));
  }
  table.words = (form->m - 1) / 32 + 1;
  PetscCall(bits.allocate((size_t)table.words * form->blocks + 1, stream, &room));
  PetscCall(before.allocate((size_t)table.words * form->blocks + 1, stream, &room));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  table.bits   = bits;
  table.before = before;
  table.number = number;
  PetscCall(MarkGhosts(i, j, form, &table, before, &room, stream));
  if (room) PetscCall(PickBlocks(&table, blocks.start, blocks.ghost, form, &room, stream));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  blocks.measure(chip, form, fits);
  PetscCall(TryDictionary(a, &blocks, chip, form, fits, &room, stream));
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Write(i, j, a, &table, form, &room, stream));
  *fits = room;
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode KSPTCFormFill_CUDA(const PetscInt i[], const PetscScalar a[], KSPTCForm *form, PetscBool *can, PetscTCStream stream)
{
  PetscBool room = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(Fill(i, a, form, can, &room, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCOrderRelease_CUDA(KSPTCOrder *order)
{
  PetscInt *made = order->made;

  PetscFunctionBegin;
  order->made = NULL;
  if (made) PetscCallCUDA(cudaFree(made));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormDestroy_CUDA(KSPTCForm *form)
{
  void *arrays[] = {form->order, form->block_row, form->block_slice, form->block_ghost, form->start, form->cut, form->shown, form->ghost, form->column, form->value, form->code, form->dict};

  PetscFunctionBegin;
  *form = {};
  for (void *array : arrays) {
    if (array) PetscCallCUDA(cudaFree(array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, KSPTCVectors vectors, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *form = {};
  *fits = PETSC_FALSE;
  KSPTCFormShape(m, nnz, vectors, chip, form);
  form->cuda = PETSC_TRUE;
  ierr       = form->blocks ? Create(i, j, a, order, chip, form, fits, stream) : PETSC_SUCCESS;
  if (ierr || !*fits) PetscCall(KSPTCFormDestroy_CUDA(form));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
