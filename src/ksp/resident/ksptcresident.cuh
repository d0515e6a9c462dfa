/*
   The parts of a resident kernel: a cooperative kernel, one block a multiprocessor, that does iterations of a Krylov method. Device code, and the host's side of a launch.

   Method   A block has the vectors of its rows of the resident form (ksptcform.h) in shared memory for the whole call, beside them what it needs of its ghosts, the other blocks' rows that its own have columns of, and as many
            slices of the matrix as fit. A product reads the other slices from device memory, which is L2 for the most part, the next slots while those before them are added: sums are the same wherever a slice is. To every row that may be a ghost belongs one number an iteration, or two, that its block publishes; the others fetch it while they
            wait for the sums of the next barrier (sum_barrier.cuh), and then do with the ghosts' vectors what the ghosts' block does with them, with the same bits.
            Warp 0 of every block derives the scalars from sums of the same bits, by the functions of the steps, and has them in its registers; where these are few, its first thread alone, and has them in shared memory. What the other
            threads need of them is in KSPTCTold. All wait for that, so block 0 only leaves an iteration's record in shared memory, and another warp stores it (KSPTCRecordLeft). All blocks leave the loop together.
            Parts of a row are slices of other warps; when the block has added all slices, a thread adds the row's.
   Layout   shared memory of a block: values, or their numbers in a dictionary, columns, vectors of the rows and of the ghosts, zeros, of a vector that need not be there as a whole what has room, dictionary, sums of parts, starts and cuts of slices, shown rows, ghosts; ksptcform.h. Where there is room for the vectors alone, ghosts are read from device memory, too. A vector's element is that of the row, or ghost, by its number within the
            block. A vector that is to be multiplied by has those of rows, of ghosts, and the zero. published: PetscTCTagged [m] each, by rows of the form
   Memory   16 bytes a row and number published, 16 a ghost fetched: 7-point 43^3, 1300 ghosts a block, 1.3 and 2.7 MB, in L2. A product: 18 bytes a nonzero in shared memory, 10 of
            which, or 3 with a dictionary, come from L2 for slices that are not held: 2.9 million places, 29 MB, 5.5 us at the 5.3 TB/s of L2
   References
            CUDA C++ Programming Guide, cooperative groups (grids whose blocks all run at once)
*/
#pragma once

#include <petscdevice_cuda.h>
#include <../src/ksp/resident/ksptcmult.cuh>
#include <../src/ksp/resident/ksptcresident.h>
#include <../src/ksp/resident/sum_barrier.cuh>
#include <type_traits>

/* What a kernel is told, but for the matrix */
template <class Scalars, class Vectors>
struct KSPTCCall {
  Vectors             v;
  Scalars            *scalars;
  KSPTCChunk<Scalars> chunk;
  PetscTCTagged      *published;
  double             *kept;    /* vectors of the method in device memory, if it has such: what iterations write there is here, not in v, which is written at the end of a call */
  Scalars            *records; /* in device memory, until the call ends: a store to the host's memory would take its time in every iteration */
  PetscTCPair        *sums;
  uint64_t           *tag;
  PetscTCLateBlock   *late;
  unsigned           *verdict, *before; /* how this call ends, and how the one before has ended: there the next one's will be */
  unsigned            bound;            /* of a wait */
  KSPTCFault          fault;
  bool                tensor; /* sums fold on the Tensor Core. Kernels whose blocks hold all are compiled for either: a branch in each fold costs 3 % of a small system's iteration */

  __device__ __forceinline__ PetscTCPatience patience() const { return PetscTCPatience(late, verdict, bound); }
  /* A barrier of the block, before all others of the grid: has it nothing to do, since an earlier call has given up, or because it is to be absent? */
  __device__ __forceinline__ bool isOut() const
  {
    bool out = false;

    if (threadIdx.x == 0) {
      out = *before == PETSCTC_GIVEN_UP || *verdict == PETSCTC_GIVEN_UP || (fault == KSPTC_FAULT_ABSENT && blockIdx.x == gridDim.x - 1);
      if (!out && blockIdx.x == 0) *before = PETSCTC_OPEN;
    }
    return __syncthreads_or(out);
  }
};

/* The end of a call whose barriers are over, by all threads; well: as far as this block knows. Leaves the tag to the next call. False: nobody writes anything */
template <class Call, class Barrier>
__device__ __forceinline__ bool KSPTCSettles(const Call &P, const Barrier &barrier, PetscInt it, bool well)
{
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) *P.tag = barrier.last();
    if (well && P.fault == KSPTC_FAULT_LATE) (void)P.patience().givesUp((int)it);
    well = well && P.patience().settles();
  }
  return __syncthreads_and(well);
}

template <class Scalars, class Vectors>
struct KSPTCProblem : KSPTCCall<Scalars, Vectors> {
  KSPTCForm A;
};

/* y + c z */
__device__ __forceinline__ double KSPTCCombine(double y, double z, double c)
{
  return fma(c, z, y);
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
    for (int n = 0; n < KSPTC_FETCH; n++) row[n] = g + n * threads < own.ghosts ? own.ghostAt(g + n * threads) : -1;
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

/* Scalars that change within a call, which does not leave x to a later one: those of CG, */
__device__ __forceinline__ void KSPTCMove(const TCCGScalars &from, TCCGScalars &to)
{
  to.beta    = from.beta;
  to.betaold = from.betaold;
  to.dpi     = from.dpi;
  to.dpiold  = from.dpiold;
  to.a       = from.a;
  to.b       = from.b;
  to.rr      = from.rr;
  to.zz      = from.zz;
  to.mean    = from.mean;
  to.shift   = from.shift;
  to.zs      = from.zs;
  to.stop    = from.stop;
  static_assert(sizeof(TCCGScalars) == 19 * sizeof(PetscReal), "late, past, above and below stay: is another one of those that change?");
}

/* those of other methods: all but the bounds */
template <class Scalars>
__device__ __forceinline__ void KSPTCMove(const Scalars &from, Scalars &to)
{
  const PetscReal above = to.above, below = to.below;

  to       = from;
  to.above = above;
  to.below = below;
}

/* The record of an iteration in two parts. In shared memory, on its way to device memory: warp 0, for which all wait, only leaves it. Block 0 has it */
template <class Scalars>
struct KSPTCRecordLeft {
  alignas(16) Scalars scalars;
  PetscInt it; /* its iteration */

  /* By all threads, before the first barrier: there is none yet, but what the kernel does not change is there */
  __device__ __forceinline__ void begin(const Scalars &s)
  {
    if (threadIdx.x) return;
    scalars = s;
    it      = -1;
  }
  /* By warp 0, or its first thread, before a barrier of the block .. */
  __device__ __forceinline__ void leave(PetscInt iteration, const Scalars &s)
  {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    KSPTCMove(s, scalars);
    it = iteration;
  }
  /* .. and by all threads behind that, before the next one: if it is that of this iteration the last warp, which has fewer rows than others, stores it; complete(record), by one thread, adds what has not been known */
  template <class Problem, class Complete>
  __device__ __forceinline__ void store(const Problem &P, PetscInt iteration, Complete complete)
  {
    constexpr int numbers = sizeof(Scalars) / sizeof(PetscReal);
    const int     lane    = threadIdx.x % KSPTC_LANES;
    Scalars      *to      = P.records + iteration % PETSCTC_RECORDS;

    static_assert(numbers <= KSPTC_LANES, "a lane for each number");
    if (blockIdx.x != 0 || threadIdx.x < KSPTC_THREADS - KSPTC_LANES || it != iteration) return;
    if (lane < numbers) reinterpret_cast<PetscReal *>(to)[lane] = reinterpret_cast<const PetscReal *>(&scalars)[lane];
    __syncwarp();
    if (lane == 0) complete(*to);
  }
  template <class Problem>
  __device__ __forceinline__ void store(const Problem &P, PetscInt iteration)
  {
    store(P, iteration, [](Scalars &) {});
  }
};

/* The records of iterations first + 1 .. it, by one block */
template <class Problem>
__device__ __forceinline__ void KSPTCStoreRecords(const Problem &P, PetscInt it)
{
  for (PetscInt k = P.chunk.first + 1 + threadIdx.x; k <= it; k += blockDim.x) P.chunk.records[k % PETSCTC_RECORDS] = P.records[k % PETSCTC_RECORDS];
}

/* The end of a call whose vectors are stored: records, and the scalars that its first thread has, but for those that no kernel changes (KSPTCMove()), by one block */
template <class Problem, class Scalars>
__device__ __forceinline__ void KSPTCLeave(const Problem &P, PetscInt it, const Scalars &s)
{
  if (blockIdx.x != 0) return;
  __syncthreads(); /* the last record may have been stored behind the last barrier */
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) KSPTCMove(s, *P.scalars);
}

/* ---- the host's side. kernels[]: those of a method that may be launched with some form, or work */

/* A cooperative launch: bytes of a block */
typedef struct {
  unsigned blocks, threads;
  size_t   shared;
} KSPTCGrid;

static inline KSPTCGrid KSPTCGridOf(const KSPTCForm *form, KSPTCVectors vectors)
{
  return {(unsigned)form->blocks, KSPTC_THREADS, KSPTCSharedBytes(form, vectors)};
}

/* Of a method's two kernels, the second for forms of which blocks have no room for all, or that have rows in parts: the one for such vectors */
static inline int KSPTCKernelAt(const KSPTCForm *form, KSPTCVectors vectors)
{
  return KSPTCHoldsPart(form, vectors) || form->parts ? 1 : 0;
}

/* Asks for all the shared memory that a block can have: others may use the kernel with another grid. can: so many blocks run at once with so many bytes */
PETSC_INTERN PetscErrorCode KSPTCPrepareKernel(const void *kernel, const KSPTCGrid *grid, PetscBool *can);
/* numbers: published by all rows; record: its bytes; sums: records of the barrier. can: also false where device memory has no room */
PETSC_INTERN PetscErrorCode KSPTCResidentWorkCreate(PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* The same for a form, in blocks of so many vectors. can: also false where the device does not run a kernel of kernels[] so */
PETSC_INTERN PetscErrorCode KSPTCFormWorkCreate(const void *const kernels[], int count, const KSPTCForm *form, KSPTCVectors vectors, PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* work->vectors: so many numbers. can: not where device memory has no room; then `work` holds nothing */
PETSC_INTERN PetscErrorCode KSPTCWorkVectorsCreate(PetscCount numbers, KSPTCResidentWork *work, PetscBool *can);
/* problem: a KSPTCCall, filled, and more. The kernel is prepared before its first launch with this grid. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCGrid *grid, void *problem, KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream);

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCFillCall(const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, KSPTCResidentWork *work, KSPTCCall<Scalars, Vectors> *call)
{
  PetscFunctionBegin;
  PetscCheck(work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space must be that of the device");
  PetscCheck(chunk->last - chunk->first <= PETSCTC_RECORDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " iterations in a call, of which only %d can leave records", chunk->last - chunk->first, (int)PETSCTC_RECORDS);
  call->v         = *v;
  call->scalars   = steps->s;
  call->chunk     = *chunk;
  call->published = work->published;
  call->kept      = work->vectors;
  call->records   = (Scalars *)work->records;
  call->sums      = work->sums;
  call->tag       = work->tag;
  call->late      = work->late;
  call->verdict   = work->verdict + work->calls % 2;
  call->before    = work->verdict + (work->calls + 1) % 2;
  call->bound     = PetscTCPatienceBound(work->patience);
  call->fault     = KSPTCNextFault(work);
  call->tensor    = steps->tensor == PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCResidentRun(const void *kernel, const KSPTCForm *form, KSPTCVectors of_block, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream)
{
  const KSPTCGrid                grid    = KSPTCGridOf(form, of_block);
  KSPTCProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCheck(form->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The form must be that of the device");
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.A = *form;
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
