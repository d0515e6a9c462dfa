/*
   Sums of processes whose vectors are on GPUs, and memory of one GPU that kernels of another write.

   Method          By peers: the processes of a node give each other handles to memory of theirs, and kernels store into it over NVLink (peers.cuh). Before that is relied on, each pair has told each other sums twice.
                   By MPI: kernels write sums into memory of the host, which waits for the stream, gathers those of all (comm.cxx), and leaves the totals where kernels read them. No copies.
   Layout          An arena is an allocation of its own, of whole 2 MiB: a handle stands for what lies in one, and smaller ones share
   Memory traffic  none to speak of
   References      CUDA C++ Programming Guide, interprocess communication
*/
#include <cstring>
#include <../src/comm/cuda/mapped.cuh>
#include <../src/comm/cuda/peers.cuh>
#include <../src/parts/cuda/overlap.cuh>

/* The handles' exchange goes on where one process has failed: all must come to the same collective calls */
PetscErrorCode PetscTCArenaCreate_CUDA(MPI_Comm comm, size_t bytes, PetscTCArena *arena, PetscBool *can)
{
  const size_t       whole = (size_t)1 << 21;
  int                done  = 1, all;
  cudaIpcMemHandle_t handle, handles[PETSCTC_MAX_PEERS];
  void              *memory = NULL;

  PetscFunctionBegin;
  *arena = {};
  *can   = PETSC_FALSE;
  std::memset(&handle, 0, sizeof(handle));
  PetscCallMPI(MPI_Comm_size(comm, &arena->size));
  PetscCallMPI(MPI_Comm_rank(comm, &arena->rank));
  PetscCheck(arena->size <= PETSCTC_MAX_PEERS, comm, PETSC_ERR_PLIB, "%d processes are to store into each other's memory, room is for %d", (int)arena->size, (int)PETSCTC_MAX_PEERS);
  bytes = (bytes + whole - 1) / whole * whole;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) done = 0;
  if (done && (cudaMemset(memory, 0, bytes) != cudaSuccess || cudaStreamSynchronize(nullptr) != cudaSuccess)) done = 0;
  if (done && cudaIpcGetMemHandle(&handle, memory) != cudaSuccess) done = 0;
  PetscCallMPI(MPI_Allgather(&handle, (PetscMPIInt)sizeof(handle), MPI_BYTE, handles, (PetscMPIInt)sizeof(handle), MPI_BYTE, comm));
  PetscCallMPI(MPI_Allreduce(&done, &all, 1, MPI_INT, MPI_MIN, comm));
  for (PetscMPIInt rank = 0; rank < arena->size && all; rank++) {
    void *of = memory;

    if (rank != arena->rank && cudaIpcOpenMemHandle(&of, handles[rank], cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
      of   = NULL;
      done = 0;
    }
    arena->of[rank] = static_cast<char *>(of);
  }
  arena->of[arena->rank] = static_cast<char *>(memory);
  (void)cudaGetLastError(); /* what has failed is known */
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &done, 1, MPI_INT, MPI_MIN, comm));
  arena->comm = comm;
  *can        = (PetscBool)done;
  if (!done) PetscCall(PetscTCArenaDestroy_CUDA(arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCArenaDestroy_CUDA(PetscTCArena *arena)
{
  PetscFunctionBegin;
  if (!arena->size) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaDeviceSynchronize()); /* kernels of this process may still store */
  for (PetscMPIInt rank = 0; rank < arena->size; rank++) {
    if (rank != arena->rank && arena->of[rank]) PetscCallCUDA(cudaIpcCloseMemHandle(arena->of[rank]));
  }
  PetscCallMPI(MPI_Barrier(arena->comm));
  if (arena->of[arena->rank]) PetscCallCUDA(cudaFree(arena->of[arena->rank]));
  *arena = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ void AddOfPeersKernel(const PetscTCPeers *peers, unsigned tag, int count, double sum[])
{
  __shared__ double total[PETSCTC_MAX_DOTS];

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (threadIdx.x < (unsigned)count) total[threadIdx.x] = sum[threadIdx.x];
  __syncwarp();
  if (!PetscTCAddOfPeers(peers, tag, count, total) && threadIdx.x < (unsigned)count) total[threadIdx.x] = nan("");
  if (threadIdx.x < (unsigned)count) sum[threadIdx.x] = total[threadIdx.x];
}

static PetscErrorCode PetscTCPeersFree(PetscTCComm *of)
{
  PetscFunctionBegin;
  if (of->peers) PetscCallCUDA(cudaFree(of->peers));
  if (of->missing) PetscCallCUDA(cudaFreeHost(of->missing));
  of->peers   = NULL;
  of->missing = NULL;
  PetscCall(PetscTCArenaDestroy_CUDA(&of->arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* seconds: how long kernels wait */
static PetscErrorCode PetscTCPeersMake(PetscTCComm *of, PetscReal seconds, PetscBool *can)
{
  const size_t bytes = 2 * PETSCTC_MAX_PEERS * PETSCTC_MAX_DOTS * sizeof(PetscTCWord);
  PetscTCPeers peers = {};

  PetscFunctionBegin;
  of->tag = 0;
  PetscCall(PetscTCArenaCreate_CUDA(of->comm, bytes, &of->arena, can));
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCMapped(1, &of->missing, &peers.missing));
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&of->peers), sizeof(peers)));
  peers.ranks    = of->arena.size;
  peers.rank     = of->arena.rank;
  peers.patience = PetscTCPatienceBound(seconds);
  for (int rank = 0; rank < peers.ranks; rank++) peers.record[rank] = reinterpret_cast<PetscTCWord *>(of->arena.of[rank]);
  PetscCallCUDA(cudaMemcpy(of->peers, &peers, sizeof(peers), cudaMemcpyHostToDevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums that are known, twice: both places of each pair */
static PetscErrorCode PetscTCPeersVerify(PetscTCComm *of, PetscBool *right)
{
  const int ranks = of->arena.size;
  double   *sum, host[PETSCTC_MAX_DOTS];

  PetscFunctionBegin;
  *right = PETSC_TRUE;
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&sum), sizeof(host)));
  for (int turn = 0; turn < 2; turn++) {
    for (int k = 0; k < PETSCTC_MAX_DOTS; k++) host[k] = (turn + 1.0) * (k + 1.0) * (of->arena.rank + 1.0);
    PetscCallCUDA(cudaMemcpy(sum, host, sizeof(host), cudaMemcpyHostToDevice));
    PetscCallMPI(MPI_Barrier(of->comm));
    PetscCall(PetscTCCommAdd_CUDA(of, PETSCTC_MAX_DOTS, sum, nullptr));
    PetscCallCUDA(cudaMemcpy(host, sum, sizeof(host), cudaMemcpyDeviceToHost));
    for (int k = 0; k < PETSCTC_MAX_DOTS; k++) *right = (PetscBool)(*right && host[k] == (turn + 1.0) * (k + 1.0) * (ranks * (ranks + 1)) / 2.0);
  }
  PetscCallCUDA(cudaFree(sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCPeersTry_CUDA(MPI_Comm comm, const char **why)
{
  PetscTCComm    of = {};
  cudaDeviceProp device;
  char           mine[16], all[PETSCTC_MAX_PEERS][16];
  MPI_Comm       node;
  PetscMPIInt    size, near;
  int            current, word;
  PetscBool      can, right;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  *why = size > PETSCTC_MAX_PEERS ? "more processes than store into each other's memory" : NULL;
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  PetscCallMPI(MPI_Comm_size(node, &near));
  PetscCallMPI(MPI_Comm_free(&node));
  word = near;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_MIN, comm));
  if (word < size) {
    *why = "several nodes";
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cudaGetDevice(&current));
  PetscCallCUDA(cudaGetDeviceProperties(&device, current));
  static_assert(sizeof(device.uuid) == sizeof(mine), "the identity of a device has another length");
  std::memcpy(mine, &device.uuid, sizeof(mine));
  PetscCallMPI(MPI_Allgather(mine, (PetscMPIInt)sizeof(mine), MPI_BYTE, all, (PetscMPIInt)sizeof(mine), MPI_BYTE, comm));
  for (PetscMPIInt a = 0; a < size; a++) {
    for (PetscMPIInt b = 0; b < a; b++) {
      if (!std::memcmp(all[a], all[b], sizeof(mine))) *why = "processes share a GPU";
    }
  }
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  of.comm  = comm;
  of.size  = size;
  of.layer = PETSCTC_LAYER_PEER;
  PetscCall(PetscTCPeersMake(&of, 2.0, &can));
  if (can) {
    PetscCall(PetscTCPeersVerify(&of, &right));
    PetscCall(PetscTCCommAll(&of, right, &right));
    PetscCall(PetscTCPeersFree(&of));
    if (!right) *why = "what one GPU stores in another's memory does not arrive";
  } else *why = "GPUs cannot open each other's memory";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommCreate_CUDA(PetscTCComm *of)
{
  PetscBool can;

  PetscFunctionBegin;
  if (of->cuda) PetscFunctionReturn(PETSC_SUCCESS);
  if (of->layer == PETSCTC_LAYER_PEER) {
    PetscCall(PetscTCPeersMake(of, PETSCTC_PATIENCE, &can));
    PetscCheck(can, of->comm, PETSC_ERR_GPU_RESOURCE, "No memory that GPUs open for each other is left, which they could before: use -petsctc_comm mpi");
  } else {
    PetscCall(PetscTCMapped(3 * PETSCTC_MAX_DOTS, &of->staged, &of->staged_device));
  }
  of->cuda = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommDestroy_CUDA(PetscTCComm *of)
{
  PetscFunctionBegin;
  PetscCall(PetscTCPeersFree(of));
  if (of->staged) PetscCallCUDA(cudaFreeHost(of->staged));
  of->staged = of->staged_device = NULL;
  of->cuda                       = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommAdd_CUDA(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream stream)
{
  PetscTCComm *const of = static_cast<PetscTCComm *>(ctx);

  PetscFunctionBegin;
  if (of->layer == PETSCTC_LAYER_PEER) {
    PetscCall(LaunchOverlapping(AddOfPeersKernel, 1, 32, 0, stream, of->peers, ++of->tag, (int)count, sum));
  } else {
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCall(PetscTCCommAdd_Host(ctx, count, of->staged + (sum - of->staged_device), stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
