/*
   Method
     Block size: rows are compared with the next one: length, first and last column. A block keeps the answers for a chunk, as many rows as are a multiple of every block size tried (840, the least common multiple of 2 .. 8), counts the
     groups of each size whose rows are all alike, and adds its counts to those of the others. Of more than AIJTC_PROBE_CHUNKS chunks so many are looked into.
     Longest row: the maximum of a block's, by the same kernel; one more atomic operation a block.
     Common offsets: one warp copies the 32 rows of each group looked into to shared memory (build_stage.cuh) and walks over them, a row a lane, from one distinct offset to the next: the minimum over the lanes' next entries. Rows must
     ascend strictly; where one does not, the minimum does not grow, which tells. On the way the lanes compare the values of an offset with those bs lanes before them. Where offsets are not common, sectors of x are counted as bits in
     shared memory. The block size is taken from the counts where they are, so that the host waits once for all answers.

   Memory traffic
     4 bytes a row; of the chunks 4 more, and 8 (in sectors of 32 bytes: up to all column numbers of short rows) where neighbours are equally long. A 7-point matrix of 256^3 rows: 67 MB, 16 us at 4.3 TB/s, and 7 MB of 215,040 rows looked into.
     The groups looked into: at most 64 x 32 rows of 256 entries, 6 MB. What would take the time, two loads one behind the other for each of up to 2 L distinct offsets, is done in shared memory.
*/
#include "build_stage.cuh"
#include <climits>

namespace aijtcbuild
{
namespace
{
constexpr int        SIZES         = AIJTC_MAX_BS + 1;
constexpr PetscCount GROUP_ENTRIES = AIJTC_LANES * AIJTC_PROBE_ROW;
constexpr size_t     GROUP_COLUMNS = RunBytes(GROUP_ENTRIES, sizeof(PetscInt)), GROUP_VALUES = RunBytes(GROUP_ENTRIES, sizeof(PetscScalar)); /* bytes of shared memory */

struct GroupCounts {
  unsigned counted[SIZES], alike[SIZES];
};

struct ProbeCounts {
  GroupCounts blocks;
  unsigned    sampled, common, distinct, near; /* groups with nonzeros, of them those with common offsets, and of these those with distinct values; of the others those that are near */
  unsigned    longest;
};

__host__ __device__ int BlockSizeOf(const GroupCounts &counts)
{
  int bs = 1;

  for (int b = 2; b <= AIJTC_MAX_BS; b++) {
    if (counts.counted[b] >= 4 && 16 * (uint64_t)counts.alike[b] >= 15 * (uint64_t)counts.counted[b]) bs = b;
  }
  return bs;
}

enum {
  ROW_AS_NEXT  = 1, /* alike to the next row */
  ROW_NONZEROS = 2
};

__device__ __forceinline__ uint8_t CompareRow(PetscInt r, PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j)
{
  const PetscInt begin = i[r], end = i[r + 1];
  uint8_t        state = begin < end ? ROW_NONZEROS : 0;

  if (r + 1 < m) {
    const PetscInt next = i[r + 2];

    if (next - end == end - begin && (begin == end || (j[begin] == j[end] && j[end - 1] == j[next - 1]))) state |= ROW_AS_NEXT;
  }
  return state;
}

/* Of all rows the longest; `looked` chunks are looked into */
__global__ void __launch_bounds__(THREADS) AllRowsKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt looked, ProbeCounts *counts)
{
  __shared__ uint8_t     row[AIJTC_PROBE_CHUNK];
  __shared__ GroupCounts block;
  __shared__ unsigned    longest;
  unsigned               mine = 0;

  if (threadIdx.x == 0) longest = 0;
  if (threadIdx.x < SIZES) block.counted[threadIdx.x] = block.alike[threadIdx.x] = 0;
  __syncthreads(); /* a block may have no chunk */
#pragma unroll 4
  for (PetscCount r = (PetscCount)blockIdx.x * THREADS + threadIdx.x; r < m; r += (PetscCount)gridDim.x * THREADS) mine = max(mine, (unsigned)(i[r + 1] - i[r]));
  for (PetscInt q = (PetscInt)blockIdx.x; q < looked; q += (PetscInt)gridDim.x) {
    const PetscInt first = AIJTCProbeRow(m, q);
    const int      n     = (int)PetscMin(m - first, (PetscInt)AIJTC_PROBE_CHUNK);

    __syncthreads();
    for (int k = (int)threadIdx.x; k < n; k += THREADS) row[k] = CompareRow(first + k, m, i, j);
    __syncthreads();
    for (int b = 2; b <= AIJTC_MAX_BS; b++) {
      unsigned counted = 0, alike = 0;

      for (int g = (int)threadIdx.x; g < n / b; g += THREADS) {
        int any = 0, all = ROW_AS_NEXT;

        for (int k = 0; k < b; k++) {
          any |= row[g * b + k];
          if (k < b - 1) all &= row[g * b + k];
        }
        if (!(any & ROW_NONZEROS)) continue;
        counted++;
        alike += all ? 1 : 0;
      }
      counted = __reduce_add_sync(ALL_LANES, counted);
      alike   = __reduce_add_sync(ALL_LANES, alike);
      if (threadIdx.x % AIJTC_LANES == 0 && counted) {
        atomicAdd(&block.counted[b], counted);
        atomicAdd(&block.alike[b], alike);
      }
    }
  }
  mine = __reduce_max_sync(ALL_LANES, mine);
  if (threadIdx.x % AIJTC_LANES == 0) atomicMax(&longest, mine);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(&counts->longest, longest);
  if (threadIdx.x < SIZES && block.counted[threadIdx.x]) {
    atomicAdd(&counts->blocks.counted[threadIdx.x], block.counted[threadIdx.x]);
    atomicAdd(&counts->blocks.alike[threadIdx.x], block.alike[threadIdx.x]);
  }
}

/* Of a lane, later of a group: entries, those that are floats, those with an entry of the same offset in the row bs before, and of these those with equal values */
struct ValueCounts {
  unsigned entries = 0, floats = 0, pairs = 0, equal = 0;

  /* By a warp: an offset that the lanes in `having` have, with a value of these bits */
  __device__ void add(unsigned having, uint64_t bits, int bs)
  {
    const int      lane = (int)threadIdx.x, before = lane - bs;
    const uint64_t other = __shfl_up_sync(ALL_LANES, bits, bs);

    if (!(having >> lane & 1)) return;
    entries++;
    floats += IsFloat(bits) ? 1 : 0;
    if (before < 0 || !(having >> before & 1)) return;
    pairs++;
    equal += bits == other ? 1 : 0;
  }
  __device__ bool areDistinct() const
  {
    const unsigned of_all[] = {__reduce_add_sync(ALL_LANES, entries), __reduce_add_sync(ALL_LANES, floats), __reduce_add_sync(ALL_LANES, pairs), __reduce_add_sync(ALL_LANES, equal)};

    return 2 * of_all[1] <= of_all[0] && of_all[2] && 2 * of_all[3] <= of_all[2];
  }
};

/* Copies the rows of a group, a lane's from begin to end, to shared memory, from whose first entry begin and end count then */
__device__ Csr StageGroup(PetscInt &begin, PetscInt &end, const Csr &A)
{
  const int      lane    = (int)threadIdx.x;
  const PetscInt run     = __shfl_sync(ALL_LANES, begin, 0);
  uint8_t *const room    = SharedMemory();
  const int32_t  entries = __reduce_max_sync(ALL_LANES, begin < end ? (int32_t)(end - run) : 0);
  const Csr      near    = {A.i, CopyRun(room, A.j + run, entries, lane), CopyRun(room + GROUP_COLUMNS, A.a + run, entries, lane)};

  WaitForStage();
  begin -= run;
  end -= run;
  return near;
}

/* Has the group of 32 rows, a lane's from `place` to `end`, common offsets? The same in all lanes. If so, its values are counted */
__device__ bool OffsetsAreCommon(PetscInt place, PetscInt end, int32_t ref, int32_t longest, int bs, const Csr &A, ValueCounts &values)
{
  int32_t last = INT_MIN;

  for (int32_t distinct = 0;; distinct++) {
    const int32_t offset = place < end ? (int32_t)A.j[place] - ref : INT_MAX; /* columns are less */
    const int32_t least  = __reduce_min_sync(ALL_LANES, offset);

    if (least == INT_MAX) return true;
    if (least <= last || distinct >= 2 * longest) return false;
    const bool has = offset == least;

    values.add(__ballot_sync(ALL_LANES, has), has ? BitsOf(A.a, place) : 0, bs);
    place += has ? 1 : 0;
    last = least;
  }
}

/* Do rows with so many entries, from j[0] on, share sectors of x? By a warp, alone in its block */
__device__ bool RowsAreNear(const PetscInt *j, int32_t entries)
{
  __shared__ uint32_t sectors[AIJTC_PROBE_SECTORS / 32]; /* a bit each */
  unsigned            mine = 0;

  for (int k = (int)threadIdx.x; k < AIJTC_PROBE_SECTORS / 32; k += AIJTC_LANES) sectors[k] = 0;
  __syncwarp();
  for (int32_t e = (int32_t)threadIdx.x; e < entries; e += AIJTC_LANES) {
    const uint32_t sector = AIJTCProbeSector(j[e]);

    atomicOr(sectors + sector / 32, 1u << sector % 32);
  }
  __syncwarp();
  for (int k = (int)threadIdx.x; k < AIJTC_PROBE_SECTORS / 32; k += AIJTC_LANES) mine += (unsigned)__popc(sectors[k]);
  return AIJTCSectorsAreFew(__reduce_add_sync(ALL_LANES, mine), entries);
}

/* One warp a block, one block a group */
__global__ void __launch_bounds__(AIJTC_LANES) GroupsKernel(PetscInt m, Csr A, ProbeCounts *counts)
{
  const PetscCount group = (PetscCount)blockIdx.x * (m / AIJTC_LANES) / gridDim.x;
  const PetscCount row   = AIJTC_LANES * group + threadIdx.x;
  PetscInt         begin = row < m ? A.i[row] : 0, end = row < m ? A.i[row + 1] : 0;
  const PetscInt   length  = end - begin;
  const int32_t    longest = __reduce_max_sync(ALL_LANES, (int32_t)(length > AIJTC_PROBE_ROW ? AIJTC_PROBE_ROW + 1 : length));
  const int        bs      = BlockSizeOf(counts->blocks);
  ValueCounts      values;
  bool             common = false, near = false;

  if (!longest) return;
  if (longest <= AIJTC_PROBE_ROW) {
    const Csr staged = StageGroup(begin, end, A);

    common = OffsetsAreCommon(begin, end, (int32_t)(row - row % bs), longest, bs, staged, values);
    near   = !common && RowsAreNear(staged.j, __reduce_max_sync(ALL_LANES, length ? (int32_t)end : 0));
  }
  const bool distinct = common && values.areDistinct();

  if (threadIdx.x) return;
  atomicAdd(&counts->sampled, 1u);
  if (common) atomicAdd(&counts->common, 1u);
  if (distinct) atomicAdd(&counts->distinct, 1u);
  if (near) atomicAdd(&counts->near, 1u);
}
} // namespace
} // namespace aijtcbuild

PetscErrorCode AIJTCProbe_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCTraits *traits, PetscTCStream stream)
{
  using namespace aijtcbuild;
  const unsigned groups = (unsigned)PetscMin(PetscMax(m / AIJTC_LANES, 1), (PetscInt)AIJTC_PROBE);
  Scratch        scratch(stream);
  unsigned       blocks;
  ProbeCounts   *found, counts;

  PetscFunctionBegin;
  *traits = AIJTC_TRAITS_EMPTY;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(scratch.Get(1, &found));
  PetscCallCUDA(cudaMemsetAsync(found, 0, sizeof(*found), stream));
  PetscCall(BlocksThatFill(&blocks));
  AllRowsKernel<<<PetscMin(BlocksFor(m, THREADS), blocks), THREADS, 0, stream>>>(m, i, j, AIJTCProbeChunks(m), found);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(AllowShared(GroupsKernel, GROUP_COLUMNS + GROUP_VALUES));
  GroupsKernel<<<groups, AIJTC_LANES, GROUP_COLUMNS + GROUP_VALUES, stream>>>(m, {i, j, a}, found);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(&counts, found, sizeof(counts), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  traits->bs       = BlockSizeOf(counts.blocks);
  traits->common   = (PetscBool)(4 * counts.common >= 3 * counts.sampled);
  traits->distinct = (PetscBool)(counts.sampled && 4 * counts.distinct >= 3 * counts.sampled);
  traits->near     = (PetscBool)(counts.sampled && 4 * counts.near >= 3 * counts.sampled);
  traits->longest  = (PetscInt)counts.longest;
  PetscFunctionReturn(PETSC_SUCCESS);
}
