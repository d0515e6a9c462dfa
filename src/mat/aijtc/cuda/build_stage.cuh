/*
   How a warp gets the entries of its slice, or of the rows that a probe looks into, into shared memory before it walks over them.

   Method
     Lanes that walk their own rows entry by entry touch 32 lines with each load, and a warp keeps alive as many lines as it has rows: with long rows, more than L1 holds, so that sectors come from L2
     several times. But the rows of a slice of consecutive rows are one run of the CSR arrays. The warp copies it to shared memory by asynchronous copies of 16 bytes, all in flight at once, and walks
     there. Where the run starts within 16 bytes stays as it is, so that any alignment of the arrays will do; the ends are copied element by element, nothing outside the run is read.
     So is what a gathered layout has instead of columns, which lies there in the order of its rows. Slices of other listed rows, and those larger than the room of a warp, are walked in the CSR arrays. They have launches of their own, to
     which L1 is left.

   Layout
     Dynamic shared memory: what the block needs, then for each warp the run of columns and the run of values. Lanes read their rows with the stride of the row length: without bank conflicts if that is
     odd; even a power of two costs less than the copy.

   Memory traffic
     What is copied comes from memory once: 4 bytes a nonzero for columns, 8 for values.
*/
#pragma once

#include "build_slots.cuh"
#include <cuda_pipeline_primitives.h>
#include <type_traits>

namespace aijtcbuild
{
constexpr unsigned STAGE_ALIGN = 16; /* bytes of a copy */

/* The room of one warp. Nothing is copied where there is no room */
struct Stage {
  int32_t  entries;         /* of a slice, at most; 0: no slice is copied */
  unsigned columns, values; /* bytes; 0: not copied */
  unsigned block;           /* bytes in front, of the block */
};

__device__ __forceinline__ uint8_t *SharedMemory()
{
  extern __shared__ uint4 shared_memory[];

  return reinterpret_cast<uint8_t *>(shared_memory);
}

/* n elements; returns where they are. By all lanes of a warp */
template <class T>
__device__ __forceinline__ const T *CopyRun(uint8_t *room, const T *from, int32_t n, int lane)
{
  constexpr int32_t wide = STAGE_ALIGN / sizeof(T);
  const unsigned    skew = (unsigned)(reinterpret_cast<uintptr_t>(from) % STAGE_ALIGN);
  T                *to   = reinterpret_cast<T *>(room + skew);
  const int32_t     head = min(n, (int32_t)((STAGE_ALIGN - skew) % STAGE_ALIGN / sizeof(T))), body = head + (n - head) / wide * wide;

  for (int32_t k = head + wide * lane; k < body; k += wide * AIJTC_LANES) __pipeline_memcpy_async(to + k, from + k, STAGE_ALIGN);
  if (lane < head) __pipeline_memcpy_async(to + lane, from + lane, sizeof(T));
  if (body + lane < n) __pipeline_memcpy_async(to + body + lane, from + body + lane, sizeof(T));
  return to;
}

/* Starts the copies of a slice, and returns arrays that hold it; rows then counts from the first entry copied. WaitForStage() must come before they are read. values: are they read? A stage of a span that is not consecutive has no room (PlanStage()) */
template <int R>
__device__ __forceinline__ Csr StageSlice(const Stage &stage, const AIJTCSlice &slice, bool values, SliceRows<R> &rows, const Csr &A, int lane)
{
  if (slice.entries > stage.entries) return A;

  const PetscInt run  = __shfl_sync(ALL_LANES, rows.begin[0], 0);
  uint8_t       *room = SharedMemory() + stage.block + threadIdx.x / AIJTC_LANES * (stage.columns + stage.values);
  Csr            near = {A.i, A.j + run, A.a + run};

#pragma unroll
  for (int r = 0; r < R; r++) rows.begin[r] -= run;
  if (stage.columns) near.j = CopyRun(room, A.j + run, slice.entries, lane);
  if (stage.values && values) near.a = CopyRun(room + stage.columns, A.a + run, slice.entries, lane);
  return near;
}

__device__ __forceinline__ void WaitForStage()
{
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
}

/* The slices of one launch */
struct Span {
  AIJTCKind kind;
  bool      consecutive; /* of consecutive rows, or of others that lie one behind the other in the arrays that are read */
  PetscInt  begin, count;
};

/* launch(integral constant R, span) for LONG pieces, tiles, slices of consecutive and of listed rows, R being their row groups */
template <class Launch>
PetscErrorCode ForSpans(const AIJTCLayout *layout, Launch launch)
{
  const PetscInt tiles = layout->nslices[AIJTC_LONG], rows = tiles + layout->nslices[AIJTC_TILE], listed = rows + layout->nconsecutive;
  const Span     spans[] = {
        {AIJTC_LONG, false, 0,      tiles                                             },
        {AIJTC_TILE, false, tiles,  rows - tiles                                      },
        {AIJTC_ROWS, true,  rows,   layout->nconsecutive                              },
        {AIJTC_ROWS, false, listed, layout->nslices[AIJTC_ROWS] - layout->nconsecutive}
  };

  PetscFunctionBegin;
  for (const Span &span : spans) {
    const PetscInt groups = span.kind == AIJTC_ROWS ? layout->params.rrows : 1;

    if (!span.count) continue;
    if (groups == 1) PetscCall(launch(std::integral_constant<int, 1>(), span));
    else if (groups == 2) PetscCall(launch(std::integral_constant<int, 2>(), span));
    else PetscCall(launch(std::integral_constant<int, 4>(), span));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A launch of warps that stage */
struct StagePlan {
  Stage  stage;
  int    warps;  /* of a block */
  int    blocks; /* that a processor holds */
  size_t shared; /* dynamic, of a block */
  int    processors;
};

/* Bytes of a warp for a run of elements of so many bytes */
constexpr size_t RunBytes(PetscCount entries, size_t element)
{
  return element ? ((size_t)entries * element + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN + STAGE_ALIGN : 0;
}

/* Room for the largest slice of consecutive rows, unless it is far above the mean; of a gathered layout, whose largest is not known, for half as many entries again as the mean has. Blocks of up to most_warps warps, as many as a processor
   holds the most warps with, but small ones rather than large ones. column, value: bytes of an element that is copied, 0 if none is. block: bytes that the block needs. warps_of_slice: more than one share it by row groups, of which few are larger by an eighth than their part of the largest. */
static inline PetscErrorCode PlanStage(const AIJTCLayout *layout, const Span &span, size_t column, size_t value, size_t block, int most_warps, int warps_of_slice, StagePlan *plan)
{
  constexpr int    warps_by_registers = 32, blocks_of_processor = 32;
  const PetscCount mean    = layout->nnz * AIJTC_LANES * layout->params.rrows / layout->m;
  const PetscCount largest = layout->params.gather ? mean + mean / 2 + AIJTC_LANES : PetscMin((PetscCount)layout->largest, 2 * mean + AIJTC_LANES), entries = warps_of_slice > 1 ? largest / warps_of_slice * 9 / 8 + AIJTC_LANES : largest;
  const size_t     room = RunBytes(entries, column) + RunBytes(entries, value);
  int              device, processor_bytes, block_bytes, reserved, most = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&plan->processors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processor_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device));
  plan->stage  = {0, 0, 0, (unsigned)block};
  plan->warps  = WARPS;
  plan->blocks = warps_by_registers / WARPS;
  plan->shared = block;
  if (!span.consecutive || !entries || (!column && !value)) PetscFunctionReturn(PETSC_SUCCESS);
  for (int warps = 1; warps <= most_warps && block + warps * room <= (size_t)block_bytes; warps++) {
    const int blocks = (int)PetscMin(processor_bytes / (block + warps * room + reserved), (size_t)PetscMin(blocks_of_processor, warps_by_registers / warps));

    if (blocks * warps <= most) continue;
    most         = blocks * warps;
    plan->stage  = {(int32_t)entries, (unsigned)RunBytes(entries, column), (unsigned)RunBytes(entries, value), (unsigned)block};
    plan->warps  = warps;
    plan->blocks = blocks;
    plan->shared = block + warps * room;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* More than 48 KB of dynamic shared memory are to be asked for */
template <class Kernel>
PetscErrorCode AllowShared(Kernel *kernel, size_t bytes)
{
  PetscFunctionBegin;
  if (bytes > 48 * 1024) PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace aijtcbuild
