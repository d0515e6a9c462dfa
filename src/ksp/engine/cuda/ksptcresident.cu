/*
   The host's side of the resident kernels: what the device offers to them, their work, launches. Method, layout, memory traffic, references: ksptcresident.cuh
*/
#include <petsctc/private/ksptcresident.cuh>

namespace
{
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
  PetscCallCUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, KSPTC_THREADS, bytes));
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
} // namespace

PetscErrorCode KSPTCChipOfKernels(const void *const kernels[], int count, KSPTCChip *chip)
{
  int device, cooperative, multiprocessors, most;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  chip->blocks = cooperative ? PetscMin(multiprocessors, (int)KSPTC_BLOCKS) : 0;
  chip->shared = most;
  for (int k = 0; k < count; k++) {
    cudaFuncAttributes attributes;

    PetscCallCUDA(cudaFuncGetAttributes(&attributes, kernels[k]));
    chip->shared = PetscMin(chip->shared, (size_t)most - attributes.sharedSizeBytes);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentWorkCreate(const void *const kernels[], int count, const KSPTCForm *form, int vectors, int pairs, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  *work = {};
  for (int k = 0; k < count; k++) {
    PetscCall(Prepare(kernels[k], form->blocks, form->shared[vectors], can));
    if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  }
  work->cuda     = PETSC_TRUE;
  work->patience = 10.0;
  PetscCallCUDA(cudaMalloc((void **)&work->pairs, pairs * (size_t)form->m * sizeof(double2)));
  PetscCallCUDA(cudaMalloc((void **)&work->sums, sums * sizeof(*work->sums)));
  PetscCallCUDA(cudaMalloc((void **)&work->tag, sizeof(*work->tag)));
  PetscCallCUDA(cudaMalloc(&work->records, PETSCTC_RECORDS * record));
  PetscCallCUDA(cudaMallocHost((void **)&work->late, sizeof(*work->late)));
  *work->late = {};
  /* Tags begin with 1 */
  PetscCallCUDA(cudaMemset(work->sums, 0, sums * sizeof(*work->sums)));
  PetscCallCUDA(cudaMemset(work->tag, 0, sizeof(*work->tag)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCResidentDestroy_CUDA(KSPTCResidentWork *work)
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

PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCForm *form, int vectors, void *problem, cudaStream_t stream)
{
  void *arguments[] = {problem};

  PetscFunctionBegin;
  PetscCall(LeaveL1(kernel, form->shared[vectors]));
  PetscCallCUDA(cudaLaunchCooperativeKernel(kernel, dim3((unsigned)form->blocks), dim3(KSPTC_THREADS), arguments, form->shared[vectors], stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
