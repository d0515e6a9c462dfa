/*
   Sends elements of a vector to the processes that need them.

   Method          By peers: a thread an element. The receiver is that whose part of the list it is in, at most 8; the word has the tag of the product (peers.cuh). Then a word for each neighbor, which it waits for too: so no process
                   begins product t + 2, which takes the places of t, before all its neighbors are through with t.
                   By MPI: kernels write the elements into memory of the host, which waits for that alone, while the product with columns of this process is under way, and exchanges messages; a copy brings what has come to the device.
                   Of a vector that a product makes of two others the elements are made here a second time, by the same expression, so that they leave before the product begins. Where the product does nothing, since
                   a solve has stopped, they leave all the same: the others wait for them, and nobody needs what comes of it.
   Layout          arena[tag % 2][ghosts, then processes]; send[] and receive[] one process after the other
   Memory traffic  12 bytes read (20 of a vector that is made), 16 bytes stored over NVLink an element: 10,201 elements 0.16 MB, 0.4 us at 400 GB/s, and one way of 0.8 us
   References      see peers.cuh
*/
#include <../src/comm/cuda/mapped.cuh>
#include <../src/comm/cuda/peers.cuh>
#include <../src/comm/halo.h>
#include <../src/parts/cuda/overlap.cuh>

struct Targets {
  int          begin[PETSCTC_MAX_PEERS];
  PetscTCWord *to[PETSCTC_MAX_PEERS];   /* where the first element of each goes */
  PetscTCWord *told[PETSCTC_MAX_PEERS]; /* what neighbors wait for beside; NULL: no neighbor */
};

/* An element of a vector, or of what two others make */
struct ElementOf {
  const PetscInt *rows;
  const double   *x; /* NULL: made */
  AIJTCWAXPY      of;

  __device__ __forceinline__ double operator()(int t) const
  {
    const PetscInt row = rows[t];

    if (x) return x[row];
    const double alpha = *of.over / *of.under;

    return fma(of.minus ? -alpha : alpha, of.along[row], of.base[row] - (of.shift ? *of.shift : 0.0));
  }
};

static __global__ void __launch_bounds__(256) PushKernel(int n, int ranks, ElementOf element, unsigned tag, Targets targets)
{
  LetNextLaunchStart();
  WaitForLaunchBefore();
  const int t = (int)(blockIdx.x * 256 + threadIdx.x);

  if (t < n) {
    int          first = 0;
    PetscTCWord *to    = nullptr;

#pragma unroll
    for (int rank = 0; rank < PETSCTC_MAX_PEERS; ++rank) {
      if (rank < ranks && t >= targets.begin[rank]) {
        first = targets.begin[rank];
        to    = targets.to[rank];
      }
    }
    PetscTCSend(to + (t - first), element(t), tag);
  } else if (t - n < ranks) {
    PetscTCWord *told = nullptr;

#pragma unroll
    for (int rank = 0; rank < PETSCTC_MAX_PEERS; ++rank) {
      if (rank == t - n) told = targets.told[rank];
    }
    if (told) PetscTCSend(told, 0.0, tag);
  }
}

static __global__ void __launch_bounds__(256) StageKernel(int n, ElementOf element, double *to)
{
  LetNextLaunchStart();
  WaitForLaunchBefore();
  const int t = (int)(blockIdx.x * 256 + threadIdx.x);

  if (t < n) to[t] = element(t);
}

static PetscTCWord *HalfOf(const PetscTCHalo *halo, int rank, unsigned tag)
{
  return reinterpret_cast<PetscTCWord *>(halo->arena.of[rank]) + (tag % 2) * ((size_t)halo->plan.all[rank] + PETSCTC_MAX_PEERS);
}

static PetscErrorCode CreateStaged(PetscTCHalo *halo)
{
  PetscScalar *unused;

  PetscFunctionBegin;
  PetscCall(PetscTCMapped((size_t)halo->plan.nsend, &halo->send, &halo->send_device));
  PetscCall(PetscTCMapped((size_t)halo->plan.nghosts, &halo->receive, &unused));
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&halo->ghosts), (size_t)PetscMax(halo->plan.nghosts, 1) * sizeof(*halo->ghosts)));
  PetscCall(PetscMalloc1(2 * halo->plan.size, &halo->requests));
  PetscCallCUDA(cudaEventCreateWithFlags(&halo->sent, cudaEventDisableTiming));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloCreate_CUDA(MPI_Comm comm, PetscMPIInt tag, PetscTCLayer layer, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHalo *halo)
{
  PetscBool can = PETSC_FALSE;

  PetscFunctionBegin;
  *halo            = {};
  halo->comm       = comm;
  halo->tag_of_mpi = tag;
  PetscCall(PetscTCHaloPlanCreate(comm, nghosts, ghost, ranges, &halo->plan));
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&halo->rows), (size_t)PetscMax(halo->plan.nsend, 1) * sizeof(*halo->rows)));
  PetscCallCUDA(cudaMemcpy(halo->rows, halo->plan.rows, (size_t)halo->plan.nsend * sizeof(*halo->rows), cudaMemcpyHostToDevice));
  if (layer == PETSCTC_LAYER_PEER) PetscCall(PetscTCArenaCreate_CUDA(comm, 2 * ((size_t)nghosts + PETSCTC_MAX_PEERS) * sizeof(PetscTCWord), &halo->arena, &can));
  halo->layer = can ? PETSCTC_LAYER_PEER : PETSCTC_LAYER_MPI;
  if (can) PetscCall(PetscTCMapped(1, &halo->missing, &halo->missing_device));
  else PetscCall(CreateStaged(halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloDestroy_CUDA(PetscTCHalo *halo)
{
  void *mapped[] = {halo->missing, halo->send, halo->receive}, *device[] = {halo->rows, halo->ghosts};

  PetscFunctionBegin;
  PetscCall(PetscTCArenaDestroy_CUDA(&halo->arena));
  PetscCall(PetscTCHaloPlanDestroy(&halo->plan));
  for (void *memory : device) {
    if (memory) PetscCallCUDA(cudaFree(memory));
  }
  for (void *memory : mapped) {
    if (memory) PetscCallCUDA(cudaFreeHost(memory));
  }
  if (halo->sent) PetscCallCUDA(cudaEventDestroy(halo->sent));
  PetscCall(PetscFree(halo->requests));
  *halo = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloPush_CUDA(PetscTCHalo *halo, const PetscScalar x[], const AIJTCWAXPY *of, PetscTCGhosts *ghosts, PetscTCStream stream)
{
  const PetscTCHaloPlan *const plan    = &halo->plan;
  const unsigned               tag     = ++halo->tag;
  const ElementOf              element = {halo->rows, x, of ? *of : AIJTCWAXPY{}};
  Targets                      targets = {};

  PetscFunctionBegin;
  *ghosts = {};
  if (halo->layer == PETSCTC_LAYER_MPI) {
    ghosts->number = halo->ghosts;
    if (!plan->nsend && !plan->nghosts) PetscFunctionReturn(PETSC_SUCCESS);
    if (plan->nsend) PetscCall(LaunchOverlapping(StageKernel, (unsigned)((plan->nsend + 255) / 256), 256, 0, stream, (int)plan->nsend, element, halo->send_device));
    PetscCallCUDA(cudaEventRecord(halo->sent, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *ghosts = {NULL, HalfOf(halo, plan->rank, tag), plan->nghosts, 0, tag, PetscTCPatienceBound(PETSCTC_PATIENCE), halo->missing_device};
  for (int rank = 0; rank < plan->size; rank++) {
    targets.begin[rank] = (int)plan->begin[rank];
    targets.to[rank]    = HalfOf(halo, rank, tag) + plan->place[rank];
    if (plan->to[rank] || plan->from[rank]) {
      targets.told[rank] = HalfOf(halo, rank, tag) + plan->all[rank] + plan->rank;
      ghosts->neighbors |= 1u << rank;
    }
  }
  if (!ghosts->neighbors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LaunchOverlapping(PushKernel, (unsigned)((plan->nsend + plan->size + 255) / 256), 256, 0, stream, (int)plan->nsend, (int)plan->size, element, tag, targets));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloAwait_CUDA(PetscTCHalo *halo, PetscTCStream stream)
{
  const PetscTCHaloPlan *const plan = &halo->plan;
  PetscMPIInt                  n    = 0;

  PetscFunctionBegin;
  if (halo->layer == PETSCTC_LAYER_PEER || (!plan->nsend && !plan->nghosts)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaEventSynchronize(halo->sent)); /* and so what came before has been copied */
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    if (plan->from[rank]) PetscCallMPI(MPI_Irecv(halo->receive + plan->first[rank], plan->from[rank], MPIU_SCALAR, rank, halo->tag_of_mpi, halo->comm, &halo->requests[n++]));
  }
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    if (plan->to[rank]) PetscCallMPI(MPI_Isend(halo->send + plan->begin[rank], plan->to[rank], MPIU_SCALAR, rank, halo->tag_of_mpi, halo->comm, &halo->requests[n++]));
  }
  PetscCallMPI(MPI_Waitall(n, halo->requests, MPI_STATUSES_IGNORE));
  if (plan->nghosts) PetscCallCUDA(cudaMemcpyAsync(halo->ghosts, halo->receive, (size_t)plan->nghosts * sizeof(*halo->ghosts), cudaMemcpyHostToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
