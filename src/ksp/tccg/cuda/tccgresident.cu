/*
   Launches the resident kernel. Method, layout, memory traffic, references: tccgresident.cuh
*/
#include "tccgresident.cuh"

using namespace tccgresident;

namespace
{
const void *Choose(bool tensor, bool scaled)
{
  if (tensor) return scaled ? (const void *)ResidentKernel<true, true> : (const void *)ResidentKernel<true, false>;
  return scaled ? (const void *)ResidentKernel<false, true> : (const void *)ResidentKernel<false, false>;
}

/* A kernel may ask for all that a block can have: others may use it with another form. can: so many blocks run at once with so many bytes */
PetscErrorCode Prepare(const void *kernel, int blocks, size_t bytes, PetscBool *can)
{
  cudaFuncAttributes attributes;
  int                device, multiprocessors, most, resident = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaFuncGetAttributes(&attributes, kernel));
  *can = (PetscBool)(attributes.sharedSizeBytes + bytes <= (size_t)most);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int)attributes.sharedSizeBytes));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, THREADS, bytes));
  *can = (PetscBool)(resident * multiprocessors >= blocks);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* L1 is what shared memory leaves: no more of that than the blocks of this call use */
PetscErrorCode LeaveL1(const void *kernel, size_t bytes)
{
  cudaFuncAttributes attributes;
  int                device, whole;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&whole, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaFuncGetAttributes(&attributes, kernel));
  bytes += attributes.sharedSizeBytes + 1024; /* the system's own */
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, (int)PetscMin((size_t)100, (100 * bytes - 1) / whole + 1)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a device without room for all blocks at once says, as one that other processes share may */
PetscErrorCode Launch(const void *kernel, unsigned blocks, size_t shared, void *arguments[], PetscBool *refused, cudaStream_t stream)
{
  const cudaError_t cerr = cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(THREADS), arguments, shared, stream);

  PetscFunctionBegin;
  *refused = (PetscBool)(cerr == cudaErrorCooperativeLaunchTooLarge || cerr == cudaErrorNotSupported || cerr == cudaErrorLaunchOutOfResources);
  if (*refused) (void)cudaGetLastError(); /* it must not appear again after the next launch */
  else PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* False: there is no room. What has been allocated is for a destroy */
PetscErrorCode Allocate(const TCCGForm *form, TCCGResidentWork *work, PetscBool *room)
{
  const size_t sums = Barrier::records * sizeof(*work->sums);
  cudaError_t  cerr = cudaMalloc((void **)&work->pairs, 2 * (size_t)form->m * sizeof(*work->pairs));

  PetscFunctionBegin;
  if (!cerr) cerr = cudaMalloc((void **)&work->sums, sums);
  if (!cerr) cerr = cudaMalloc((void **)&work->tag, sizeof(*work->tag));
  if (!cerr) cerr = cudaMalloc((void **)&work->records, PETSCTC_RECORDS * sizeof(*work->records));
  if (!cerr) cerr = cudaMallocHost((void **)&work->late, sizeof(*work->late));
  *room = (PetscBool)(cerr != cudaErrorMemoryAllocation);
  if (!*room) {
    (void)cudaGetLastError(); /* the steps run: it must not appear again after the next launch */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cerr);
  *work->late = {};
  /* Tags begin with 1 */
  PetscCallCUDA(cudaMemset(work->sums, 0, sums));
  PetscCallCUDA(cudaMemset(work->tag, 0, sizeof(*work->tag)));
  PetscCallCUDA(cudaStreamSynchronize(nullptr)); /* the stream of the solve may be one that does not wait for this one */
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode TCCGChipGet_CUDA(TCCGChip *chip)
{
  int device, cooperative, multiprocessors, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  chip->blocks = cooperative ? PetscMin(multiprocessors, (int)TCCG_BLOCKS) : 0;
  chip->shared = most;
  for (bool tensor : {false, true}) {
    for (bool scaled : {false, true}) {
      cudaFuncAttributes attributes;

      PetscCallCUDA(cudaFuncGetAttributes(&attributes, Choose(tensor, scaled)));
      chip->shared = PetscMin(chip->shared, (size_t)most - attributes.sharedSizeBytes);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentCreate_CUDA(const TCCGForm *form, PetscBool scaled, TCCGResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  for (bool tensor : {false, true}) {
    PetscCall(Prepare(Choose(tensor, scaled), form->blocks, form->shared[scaled], can));
    if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  }
  work->cuda     = PETSC_TRUE;
  work->patience = 10.0;
  PetscCall(Allocate(form, work, can));
  if (!*can) PetscCall(TCCGResidentDestroy_CUDA(work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResidentDestroy_CUDA(TCCGResidentWork *work)
{
  void             *arrays[] = {work->pairs, work->sums, work->tag, work->records};
  PetscTCLateBlock *late     = work->late;

  PetscFunctionBegin;
  *work = {};
  for (void *array : arrays) {
    if (array) PetscCallCUDA(cudaFree(array));
  }
  if (late) PetscCallCUDA(cudaFreeHost(late));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCCGResident_CUDA(const TCCGForm *form, const TCCGChunk *chunk, const TCCGVectors *v, TCCGWork *steps, TCCGResidentWork *work, PetscBool *refused, PetscTCStream stream)
{
  Problem     problem     = {};
  void       *arguments[] = {&problem};
  const bool  scaled      = v->diagonal != NULL;
  const void *kernel      = Choose(steps->tensor, scaled);

  PetscFunctionBegin;
  PetscCheck(form->cuda && work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Form and work space must be those of the device");
  PetscCheck(chunk->last - chunk->first <= PETSCTC_RECORDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " iterations in a call, of which only %d can leave records", chunk->last - chunk->first, (int)PETSCTC_RECORDS);
  problem.A       = *form;
  problem.v       = *v;
  problem.scalars = steps->s;
  problem.chunk   = *chunk;
  problem.pairs   = (double2 *)work->pairs;
  problem.records = work->records;
  problem.sums    = work->sums;
  problem.tag     = work->tag;
  problem.late    = work->late;
  problem.bound   = (unsigned long long)(1e9 * work->patience);
  PetscCall(LeaveL1(kernel, form->shared[scaled]));
  PetscCall(Launch(kernel, (unsigned)form->blocks, form->shared[scaled], arguments, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
