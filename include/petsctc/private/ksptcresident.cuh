/*
   The parts of a resident kernel: a cooperative kernel, one block a multiprocessor, that does iterations of a Krylov method. Device code, and the host's side of a launch.

   Method   A block has its rows of the resident form (ksptcform.h) and the vectors of these rows in shared memory for the whole call; in device memory is what others need of them: pairs of numbers of
            every row. A product gathers pairs (y, z) and multiplies with y + c z formed anew of each, so that no barrier stands between a vector's update and its product.
            A warp takes KSPTC_SLICES slices at a time, and KSPTC_BATCH slots of each: all columns from shared memory, then all pairs, then the sums, slot by slot. So a row of no more than KSPTC_BATCH
            entries a lane waits for device memory (L2) once.
            Thread 0 of every block derives the scalars from sums of the same bits (sum_barrier.cuh), by the functions of the steps: all leave the loop together.
   Layout   shared memory of a block: values, columns, vectors, starts of slices; ksptcform.h. A vector's element is that of the row by its number within the block. pairs: double2 [m] each
   Memory   a product gathers 16 bytes for every nonzero, by L1 as far as neighbouring rows share columns: 7-point 43^3 8.9 MB, in L2
   References
            CUDA C++ Programming Guide, cooperative groups (grids whose blocks all run at once)
*/
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/ksptcresident.h>
#include <petsctc/private/sum_barrier.cuh>

constexpr int KSPTC_WARPS  = KSPTC_THREADS / KSPTC_LANES;
constexpr int KSPTC_SLICES = 2; /* of a warp at a time, KSPTC_BATCH slots of each in flight: 2 x 8 pairs are 64 registers */
constexpr int KSPTC_BATCH  = 8;

static_assert((KSPTC_WARPS & (KSPTC_WARPS - 1)) == 0 && KSPTC_WARPS >= 4, "the warps' sums are folded by halves, or in fours");

/* What a kernel is told */
template <class Scalars, class Vectors>
struct KSPTCProblem {
  KSPTCForm           A;
  Vectors             v;
  Scalars            *scalars;
  KSPTCChunk<Scalars> chunk;
  double2            *pairs;
  Scalars            *records; /* in device memory, until the call ends: a store to the host's memory would be waited for at the next barrier */
  PetscTCSumRecord   *sums;
  uint64_t           *tag;
  PetscTCLateBlock   *late;
  unsigned long long  bound;
};

/* A block's share of the matrix, and room for the vectors of its rows, in shared memory */
struct KSPTCShare {
  int      first, rows; /* in the matrix */
  int      slices, places;
  double  *value, *vector;
  int32_t *column, *start; /* start[]: places within the block */

  __device__ __forceinline__ KSPTCShare(const KSPTCForm &A, int vectors, double *memory)
  {
    const int b = (int)blockIdx.x, slice = __ldg(A.block_slice + b);

    places = __ldg(A.start + __ldg(A.block_slice + b + 1)) - __ldg(A.start + slice);
    first  = __ldg(A.block_row + b);
    rows   = __ldg(A.block_row + b + 1) - first;
    slices = __ldg(A.block_slice + b + 1) - slice;
    value  = memory;
    column = (int32_t *)(value + places);
    vector = (double *)(column + places);
    start  = (int32_t *)(vector + vectors * rows);
  }
};

/* to[] <- from[], N times 16 bytes of a thread in flight. Both begin and end on 16 bytes: places come in warps, and before the vectors */
template <class T>
__device__ __forceinline__ void KSPTCCopyPlaces(T *to, const T *from, int places)
{
  constexpr int N    = 4;
  const int     quad = places / (int)(sizeof(int4) / sizeof(T));

  for (int k = threadIdx.x; k < quad; k += N * KSPTC_THREADS) {
    int4 part[N];

#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * KSPTC_THREADS < quad) part[n] = __ldg((const int4 *)from + k + n * KSPTC_THREADS);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * KSPTC_THREADS < quad) ((int4 *)to)[k + n * KSPTC_THREADS] = part[n];
    }
  }
}

__device__ __forceinline__ void KSPTCLoadMatrix(const KSPTCForm &A, const KSPTCShare &own)
{
  const int first_slice = __ldg(A.block_slice + blockIdx.x), first_place = __ldg(A.start + first_slice);

  for (int s = threadIdx.x; s <= own.slices; s += KSPTC_THREADS) own.start[s] = __ldg(A.start + first_slice + s) - first_place;
  KSPTCCopyPlaces(own.value, A.value + first_place, own.places);
  KSPTCCopyPlaces(own.column, A.column + first_place, own.places);
}

/* y + c z */
__device__ __forceinline__ double KSPTCCombine(double2 yz, double c)
{
  return fma(c, yz.y, yz.x);
}

/* Calls finish(row, sum) for every row of the block, in the thread that has the row's sum */
template <class Finish>
__device__ __forceinline__ void KSPTCGather(const KSPTCForm &A, const KSPTCShare &own, const double2 *pairs, double c, Finish finish)
{
  const int warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES, lanes = A.lanes, rows = KSPTC_LANES / lanes;

  for (int s = warp; s < own.slices; s += KSPTC_SLICES * KSPTC_WARPS) {
    int    place[KSPTC_SLICES], end[KSPTC_SLICES], slots = 0;
    double sum[KSPTC_SLICES];

#pragma unroll
    for (int q = 0; q < KSPTC_SLICES; q++) {
      const int  slice = s + q * KSPTC_WARPS;
      const bool is    = slice < own.slices;

      place[q] = is ? own.start[slice] + lane : 0;
      end[q]   = is ? own.start[slice + 1] : 0;
      sum[q]   = 0.0;
      slots    = max(slots, (end[q] - place[q] + lane) / KSPTC_LANES);
    }
    for (int t = 0; t < slots; t += KSPTC_BATCH) {
      int     column[KSPTC_SLICES][KSPTC_BATCH];
      double2 pair[KSPTC_SLICES][KSPTC_BATCH];

#pragma unroll
      for (int q = 0; q < KSPTC_SLICES; q++) {
#pragma unroll
        for (int k = 0; k < KSPTC_BATCH; k++) column[q][k] = place[q] + KSPTC_LANES * k < end[q] ? own.column[place[q] + KSPTC_LANES * k] : -1;
      }
#pragma unroll
      for (int q = 0; q < KSPTC_SLICES; q++) {
#pragma unroll
        for (int k = 0; k < KSPTC_BATCH; k++) {
          if (column[q][k] >= 0) pair[q][k] = pairs[column[q][k]];
        }
      }
#pragma unroll
      for (int q = 0; q < KSPTC_SLICES; q++) {
#pragma unroll
        for (int k = 0; k < KSPTC_BATCH; k++) {
          if (column[q][k] >= 0) sum[q] = fma(own.value[place[q] + KSPTC_LANES * k], KSPTCCombine(pair[q][k], c), sum[q]);
        }
        place[q] += KSPTC_LANES * KSPTC_BATCH;
      }
    }
#pragma unroll
    for (int q = 0; q < KSPTC_SLICES; q++) {
      const int row = (s + q * KSPTC_WARPS) * rows + lane / lanes;

      for (int distance = 1; distance < lanes; distance *= 2) sum[q] += __shfl_xor_sync(0xffffffffu, sum[q], distance);
      if (row < own.rows && lane % lanes == 0) finish(row, sum[q]);
    }
  }
}

/* The records of iterations first + 1 .. it, by one block */
template <class Problem>
__device__ __forceinline__ void KSPTCStoreRecords(const Problem &P, PetscInt it)
{
  for (PetscInt k = P.chunk.first + 1 + threadIdx.x; k <= it; k += KSPTC_THREADS) P.chunk.records[k % PETSCTC_RECORDS] = P.records[k % PETSCTC_RECORDS];
}

/* ---- the host's side. kernels[]: all those of a method that may be launched with some form, or work */

/* The least that the device offers to one of them */
PETSC_INTERN PetscErrorCode KSPTCChipOfKernels(const void *const kernels[], int count, KSPTCChip *chip);
/* pairs: of a row; record: its bytes; sums: records of the barrier. can: also false where device memory has no room */
PETSC_INTERN PetscErrorCode KSPTCResidentWorkCreate(const void *const kernels[], int count, const KSPTCForm *form, int vectors, int pairs, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCForm *form, int vectors, void *problem, PetscBool *refused, cudaStream_t stream);

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCResidentRun(const void *kernel, const KSPTCForm *form, int vectors, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, const KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream)
{
  KSPTCProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCheck(form->cuda && work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Form and work space must be those of the device");
  PetscCheck(chunk->last - chunk->first <= PETSCTC_RECORDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " iterations in a call, of which only %d can leave records", chunk->last - chunk->first, (int)PETSCTC_RECORDS);
  problem.A       = *form;
  problem.v       = *v;
  problem.scalars = steps->s;
  problem.chunk   = *chunk;
  problem.pairs   = (double2 *)work->pairs;
  problem.records = (Scalars *)work->records;
  problem.sums    = work->sums;
  problem.tag     = work->tag;
  problem.late    = work->late;
  problem.bound   = (unsigned long long)(1e9 * work->patience);
  PetscCall(KSPTCResidentLaunch(kernel, form, vectors, &problem, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
