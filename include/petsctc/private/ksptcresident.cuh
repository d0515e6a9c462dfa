/*
   The parts of a resident kernel: a cooperative kernel, one block a multiprocessor, that does iterations of a Krylov method. Device code, and the host's side of a launch.

   Method   A block has its rows of the resident form (ksptcform.h) and the vectors of these rows in shared memory for the whole call, and beside them what it needs of its ghosts, the other blocks' rows
            that its own have columns of. A product reads shared memory alone. To every row that may be a ghost belongs one number an iteration, or two, that its block publishes; the others fetch it while they
            wait for the sums of the next barrier (sum_barrier.cuh), and then do with the ghosts' vectors what the ghosts' block does with them, with the same bits.
            Warp 0 of every block derives the scalars from sums of the same bits, by the functions of the steps, and has them in its registers; what the other threads need of them is in KSPTCTold. All blocks leave the
            loop together.
   Layout   shared memory of a block: values, columns, vectors of the rows and of the ghosts, zeros, ghosts, starts of slices; ksptcform.h. A vector's element is that of the row, or ghost, by its number within the
            block. A vector that is to be multiplied by has those of rows, of ghosts, and the zero. published: PetscTCTagged [m] each, by rows of the form
   Memory   16 bytes a row and number published, 16 a ghost fetched: 7-point 43^3, 1300 ghosts a block, 1.3 and 2.7 MB, in L2. A product: 18 bytes a nonzero in shared memory
   References
            CUDA C++ Programming Guide, cooperative groups (grids whose blocks all run at once)
*/
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/ksptcresident.h>
#include <petsctc/private/sum_barrier.cuh>

constexpr int KSPTC_THREADS = 512; /* 768 and 1024 are no faster, and have to keep registers in memory */
constexpr int KSPTC_WARPS   = KSPTC_THREADS / KSPTC_LANES;
constexpr int KSPTC_BATCH   = 4; /* slots of a slice in flight */
constexpr int KSPTC_FETCH   = 4; /* ghosts of a thread in flight */

static_assert(KSPTC_WARPS <= KSPTC_LANES, "one warp folds the sums of all");

/* What a kernel is told, but for the matrix */
template <class Scalars, class Vectors>
struct KSPTCCall {
  Vectors             v;
  Scalars            *scalars;
  KSPTCChunk<Scalars> chunk;
  PetscTCTagged      *published;
  Scalars            *records; /* in device memory, until the call ends: a store to the host's memory would take its time in every iteration */
  PetscTCPair        *sums;
  uint64_t           *tag;
  PetscTCLateBlock   *late;
  unsigned long long  bound;
};

template <class Scalars, class Vectors>
struct KSPTCProblem : KSPTCCall<Scalars, Vectors> {
  KSPTCForm A;
};

/* A block's share of the matrix, and room for vectors of its rows and ghosts, in shared memory */
struct KSPTCShare {
  int       first, rows, ghosts; /* first: row of the form */
  int       slices, places;
  double   *value, *vector;
  int32_t  *ghost, *start; /* rows of the form; places within the block */
  uint16_t *column;

  __device__ __forceinline__ KSPTCShare(const KSPTCForm &A, KSPTCVectors vectors, double *memory)
  {
    const int b = (int)blockIdx.x, slice = __ldg(A.block_slice + b);

    places = __ldg(A.start + __ldg(A.block_slice + b + 1)) - __ldg(A.start + slice);
    first  = __ldg(A.block_row + b);
    rows   = __ldg(A.block_row + b + 1) - first;
    ghosts = __ldg(A.block_ghost + b + 1) - __ldg(A.block_ghost + b);
    slices = __ldg(A.block_slice + b + 1) - slice;
    value  = memory;
    column = (uint16_t *)(value + places);
    vector = (double *)(column + places);
    ghost  = (int32_t *)(vector + vectors.rows * rows + vectors.ghosts * ghosts + KSPTC_ZEROS);
    start  = ghost + ghosts;
  }
  /* Calls at(number) for the block's rows, and for its ghosts. Loops are not unrolled: few threads go round twice, and an iteration's code should stay in the instruction cache */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
#pragma unroll 1
    for (int k = threadIdx.x; k < rows; k += KSPTC_THREADS) at(k);
  }
  template <class At>
  __device__ __forceinline__ void forGhosts(At at) const
  {
#pragma unroll 1
    for (int g = threadIdx.x; g < ghosts; g += KSPTC_THREADS) at(g);
  }
  /* The same with at(number, row of the matrix) */
  template <class At>
  __device__ __forceinline__ void forMatrixRows(const KSPTCForm &A, At at) const
  {
    forRows([&](int k) { at(k, KSPTCMatrixRow(A.order, first + k)); });
  }
  template <class At>
  __device__ __forceinline__ void forMatrixGhosts(const KSPTCForm &A, At at) const
  {
    forGhosts([&](int g) { at(g, KSPTCMatrixRow(A.order, ghost[g])); });
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

/* Behind it, a thread has the ghosts that it takes in forGhosts() */
__device__ __forceinline__ void KSPTCLoadMatrix(const KSPTCForm &A, const KSPTCShare &own)
{
  const int first_slice = __ldg(A.block_slice + blockIdx.x), first_place = __ldg(A.start + first_slice);

  for (int s = threadIdx.x; s <= own.slices; s += KSPTC_THREADS) own.start[s] = __ldg(A.start + first_slice + s) - first_place;
  for (int g = threadIdx.x; g < own.ghosts; g += KSPTC_THREADS) own.ghost[g] = __ldg(A.ghost + __ldg(A.block_ghost + blockIdx.x) + g);
  KSPTCCopyPlaces(own.value, A.value + first_place, own.places);
  KSPTCCopyPlaces(own.column, A.column + first_place, own.places);
}

/* y + c z */
__device__ __forceinline__ double KSPTCCombine(double y, double z, double c)
{
  return fma(c, z, y);
}

/* Calls finish(row, sum) for every row of the block, in the thread that has the row's sum; u: of rows and ghosts, and the zero. magnitudes: of |A| |u| */
template <bool magnitudes = false, class Finish>
__device__ __forceinline__ void KSPTCMult(const KSPTCForm &A, const KSPTCShare &own, const double *u, Finish finish)
{
  const int warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES, lanes = A.lanes, shift = __ffs(lanes) - 1; /* division by lanes */
  const int zero = own.rows + own.ghosts;

#pragma unroll 1
  for (int s = warp; s < own.slices; s += KSPTC_WARPS) {
    const int end = own.start[s + 1], row = (KSPTC_LANES * s + lane) >> shift;
    double    sum = 0.0;

#pragma unroll 1
    for (int place = own.start[s] + lane; place < end; place += KSPTC_LANES * KSPTC_BATCH) {
      int    column[KSPTC_BATCH];
      double value[KSPTC_BATCH];

#pragma unroll
      for (int k = 0; k < KSPTC_BATCH; k++) {
        const bool is = place + KSPTC_LANES * k < end;

        column[k] = is ? own.column[place + KSPTC_LANES * k] : zero;
        value[k]  = is ? own.value[place + KSPTC_LANES * k] : 0.0;
      }
#pragma unroll
      for (int k = 0; k < KSPTC_BATCH; k++) sum = magnitudes ? fma(fabs(value[k]), fabs(u[column[k]]), sum) : fma(value[k], u[column[k]], sum);
    }
    for (int distance = 1; distance < lanes; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (row < own.rows && (lane & (lanes - 1)) == 0) finish(row, sum);
  }
}

/* to[g] <- what has been published of the block's ghost g for this tag, by `threads` threads of whole warps, of which this is one; to[] is there after the barrier. False: given up */
__device__ __forceinline__ bool KSPTCFetchGhosts(const PetscTCTagged *published, const KSPTCShare &own, double *to, uint64_t tag, int thread, int threads, const PetscTCPatience &patience, PetscInt it)
{
  const int lane = threadIdx.x % KSPTC_LANES;

#pragma unroll 1
  for (int of_warp = thread - lane; of_warp < own.ghosts; of_warp += KSPTC_FETCH * threads) {
    const int     g = of_warp + lane;
    PetscTCTagged tagged[KSPTC_FETCH];
    int           row[KSPTC_FETCH];

#pragma unroll
    for (int n = 0; n < KSPTC_FETCH; n++) row[n] = g + n * threads < own.ghosts ? own.ghost[g + n * threads] : -1;
    if (!PetscTCAwait<KSPTC_FETCH>([&](int n) { return row[n] >= 0; }, [&](int n) { return published + max(row[n], 0); }, tagged, tag, patience, (int)it)) return false;
#pragma unroll
    for (int n = 0; n < KSPTC_FETCH; n++) {
      if (row[n] >= 0) to[g + n * threads] = tagged[n].number;
    }
  }
  return true;
}

/* What all threads need of the scalars: whether the solve has stopped, and up to three factors */
struct KSPTCTold {
  double stop, one, other, third;

  /* By warp 0 */
  __device__ __forceinline__ void tell(double stopped, double first, double second = 0.0, double last = 0.0)
  {
    if (threadIdx.x % KSPTC_LANES) return;
    stop  = stopped;
    one   = first;
    other = second;
    third = last;
  }
};

/* The record of iteration `it`, by warp 0 */
template <class Problem, class Scalars>
__device__ __forceinline__ void KSPTCRecord(const Problem &P, PetscInt it, const Scalars &s)
{
  if (blockIdx.x == 0 && threadIdx.x == 0) P.records[it % PETSCTC_RECORDS] = s;
}

/* The records of iterations first + 1 .. it, by one block */
template <class Problem>
__device__ __forceinline__ void KSPTCStoreRecords(const Problem &P, PetscInt it)
{
  for (PetscInt k = P.chunk.first + 1 + threadIdx.x; k <= it; k += blockDim.x) P.chunk.records[k % PETSCTC_RECORDS] = P.records[k % PETSCTC_RECORDS];
}

/* The end of a call whose vectors are stored: records, and the scalars that its first thread has, by one block */
template <class Problem, class Scalars>
__device__ __forceinline__ void KSPTCLeave(const Problem &P, PetscInt it, const Scalars &s)
{
  if (blockIdx.x != 0) return;
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) *P.scalars = s;
}

/* ---- the host's side. kernels[]: all those of a method that may be launched with some form, or work */

/* The least that the device offers to one of them */
PETSC_INTERN PetscErrorCode KSPTCChipOfKernels(const void *const kernels[], int count, KSPTCChip *chip);
/* A cooperative launch: bytes of a block */
typedef struct {
  unsigned blocks, threads;
  size_t   shared;
} KSPTCGrid;

static inline KSPTCGrid KSPTCGridOf(const KSPTCForm *form, KSPTCVectors vectors)
{
  return {(unsigned)form->blocks, KSPTC_THREADS, KSPTCMostBytes(form, vectors)};
}

/* Asks for all the shared memory that a block can have: others may use the kernel with another grid. can: so many blocks run at once with so many bytes */
PETSC_INTERN PetscErrorCode KSPTCPrepareKernel(const void *kernel, const KSPTCGrid *grid, PetscBool *can);
/* numbers: published by all rows; record: its bytes; sums: records of the barrier. can: also false where device memory has no room */
PETSC_INTERN PetscErrorCode KSPTCResidentWorkCreate(const void *const kernels[], int count, const KSPTCGrid *grid, PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCGrid *grid, void *problem, PetscBool *refused, cudaStream_t stream);

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCFillCall(const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, const KSPTCResidentWork *work, KSPTCCall<Scalars, Vectors> *call)
{
  PetscFunctionBegin;
  PetscCheck(work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space must be that of the device");
  PetscCheck(chunk->last - chunk->first <= PETSCTC_RECORDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " iterations in a call, of which only %d can leave records", chunk->last - chunk->first, (int)PETSCTC_RECORDS);
  call->v         = *v;
  call->scalars   = steps->s;
  call->chunk     = *chunk;
  call->published = work->published;
  call->records   = (Scalars *)work->records;
  call->sums      = work->sums;
  call->tag       = work->tag;
  call->late      = work->late;
  call->bound     = (unsigned long long)(1e9 * work->patience);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCResidentRun(const void *kernel, const KSPTCForm *form, KSPTCVectors of_block, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, const KSPTCResidentWork *work, PetscBool *refused,
                                              cudaStream_t stream)
{
  const KSPTCGrid                grid    = KSPTCGridOf(form, of_block);
  KSPTCProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCheck(form->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The form must be that of the device");
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.A = *form;
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
