/*
   The host's side of the resident kernels: what the device offers to them, their work, launches. Method, layout, memory traffic, references: ksptcresident.cuh
*/
#include <../src/ksp/resident/ksptcresident.cuh>

namespace
{
__global__ void CompiledForKernel() { }

/* Were the kernels compiled for a GPU that has them? */
PetscErrorCode HasBulkCopies(int device, PetscBool *has)
{
  static int         asked = -1; /* the device that has been asked last */
  static PetscBool   last;
  cudaFuncAttributes attributes;

  PetscFunctionBegin;
  if (asked != device) {
    PetscCallCUDA(cudaFuncGetAttributes(&attributes, (const void *)CompiledForKernel));
    last  = (PetscBool)(attributes.ptxVersion >= 90);
    asked = device;
  }
  *has = last;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a device without room for all blocks at once says, as one that other processes share may */
PetscErrorCode Launch(const void *kernel, const KSPTCGrid &grid, void *arguments[], PetscBool *refused, cudaStream_t stream)
{
  const cudaError_t cerr = cudaLaunchCooperativeKernel(kernel, dim3(grid.blocks), dim3(grid.threads), arguments, grid.shared, stream);

  PetscFunctionBegin;
  *refused = (PetscBool)(cerr == cudaErrorCooperativeLaunchTooLarge || cerr == cudaErrorNotSupported || cerr == cudaErrorLaunchOutOfResources);
  if (*refused) (void)cudaGetLastError(); /* it must not appear again after the next launch */
  else PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* room: false where there is none. What has been allocated is for a destroy */
PetscErrorCode Allocate(size_t published, size_t records, size_t sums, KSPTCResidentWork *work, PetscBool *room)
{
  cudaError_t cerr = published ? cudaMalloc((void **)&work->published, published) : cudaSuccess;

  PetscFunctionBegin;
  if (!cerr) cerr = cudaMalloc((void **)&work->sums, sums);
  if (!cerr) cerr = cudaMalloc((void **)&work->tag, sizeof(*work->tag));
  if (!cerr) cerr = cudaMalloc((void **)&work->verdict, 2 * sizeof(*work->verdict));
  if (!cerr) cerr = cudaMalloc(&work->records, records);
  if (!cerr) cerr = cudaMallocHost((void **)&work->late, sizeof(*work->late));
  *room = (PetscBool)(cerr != cudaErrorMemoryAllocation);
  if (!*room) {
    (void)cudaGetLastError(); /* the steps run: it must not appear again after the next launch */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cerr);
  *work->late = {};
  /* Tags begin with 1, and verdicts are open */
  if (published) PetscCallCUDA(cudaMemset(work->published, 0, published));
  PetscCallCUDA(cudaMemset(work->sums, 0, sums));
  PetscCallCUDA(cudaMemset(work->tag, 0, sizeof(*work->tag)));
  PetscCallCUDA(cudaMemset(work->verdict, 0, 2 * sizeof(*work->verdict)));
  PetscCallCUDA(cudaStreamSynchronize(nullptr)); /* the stream of the solve may be one that does not wait for this one */
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode KSPTCPrepareKernel(const void *kernel, const KSPTCGrid *grid, PetscBool *can)
{
  cudaFuncAttributes attributes;
  int                device, multiprocessors, most, resident = 0;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PetscCallCUDA(cudaFuncGetAttributes(&attributes, kernel));
  PetscCheck(attributes.sharedSizeBytes <= KSPTC_STATIC_SHARED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A resident kernel has %zu bytes of static shared memory, more than the %d that KSPTCChipGet_CUDA() leaves for them", attributes.sharedSizeBytes,
             (int)KSPTC_STATIC_SHARED);
  *can = (PetscBool)(attributes.sharedSizeBytes + grid->shared <= (size_t)most);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int)attributes.sharedSizeBytes));
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, (int)grid->threads, grid->shared));
  *can = (PetscBool)((unsigned)(resident * multiprocessors) >= grid->blocks);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No kernel of a solver is asked: to load it takes some ms, and most are never launched */
PetscErrorCode KSPTCChipGet_CUDA(KSPTCChip *chip)
{
  int device, cooperative, multiprocessors, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  chip->blocks = cooperative ? PetscMin(multiprocessors, (int)KSPTC_BLOCKS) : 0;
  chip->shared = (size_t)most - KSPTC_STATIC_SHARED;
  PetscCall(HasBulkCopies(device, &chip->bulk));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentWorkCreate(PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work          = {};
  work->cuda     = PETSC_TRUE;
  work->patience = KSPTC_PATIENCE;
  PetscCall(Allocate((size_t)numbers * sizeof(*work->published), PETSCTC_RECORDS * record, sums * sizeof(*work->sums), work, can));
  if (!*can) PetscCall(KSPTCResidentDestroy_CUDA(work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormWorkCreate(const void *const kernels[], int count, const KSPTCForm *form, KSPTCVectors vectors, PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can)
{
  const KSPTCGrid grid = KSPTCGridOf(form, vectors);

  PetscFunctionBegin;
  *work = {};
  *can  = PETSC_TRUE;
  for (int k = 0; k < count && *can; k++) PetscCall(KSPTCPrepareKernel(kernels[k], &grid, can));
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCResidentWorkCreate(numbers, record, sums, work, can));
  work->in_part = KSPTCHoldsPart(form, vectors);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCWorkVectorsCreate(PetscCount numbers, KSPTCResidentWork *work, PetscBool *can)
{
  const cudaError_t cerr = cudaMalloc((void **)&work->vectors, (size_t)numbers * sizeof(*work->vectors));

  PetscFunctionBegin;
  *can = (PetscBool)(cerr != cudaErrorMemoryAllocation);
  if (*can) PetscCallCUDA(cerr);
  else {
    work->vectors = NULL;
    (void)cudaGetLastError(); /* the steps run: it must not appear again after the next launch */
    PetscCall(KSPTCResidentDestroy_CUDA(work));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentDestroy_CUDA(KSPTCResidentWork *work)
{
  void             *arrays[] = {work->published, work->sums, work->tag, work->verdict, work->records, work->vectors, work->slots};
  PetscTCLateBlock *late     = work->late;

  PetscFunctionBegin;
  *work = {};
  for (void *array : arrays) {
    if (array) PetscCallCUDA(cudaFree(array));
  }
  if (late) PetscCallCUDA(cudaFreeHost(late));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCGrid *grid, void *problem, KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream)
{
  void     *arguments[] = {problem};
  PetscBool can         = PETSC_TRUE;

  PetscFunctionBegin;
  if (work->prepared != kernel || work->prepared_blocks != grid->blocks || work->prepared_shared != grid->shared) {
    PetscCall(KSPTCPrepareKernel(kernel, grid, &can));
    *refused = (PetscBool)!can;
    if (!can) PetscFunctionReturn(PETSC_SUCCESS);
    work->prepared        = kernel;
    work->prepared_blocks = grid->blocks;
    work->prepared_shared = grid->shared;
  }
  PetscCall(Launch(kernel, *grid, arguments, refused, stream));
  if (!*refused) work->calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
