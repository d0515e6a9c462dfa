/*
   Whether a layout is one for windows. Method, layout, memory traffic, references: ksptcwindowed.cuh. Read are the heads of slices and the offsets of their slots, 12 bytes a slot: 7-point 101^3, 0.7 MB
*/
#include <petsctc/private/devicescratch.h>
#include <petsctc/private/ksptcwindowed.cuh>

namespace
{
constexpr int THREADS = 256;

/* A warp a slice */
__global__ void __launch_bounds__(THREADS) LookKernel(const __grid_constant__ LayoutView A, const __grid_constant__ KSPTCWindows windows, PetscInt slices, int *others)
{
  const PetscInt slice = (PetscInt)((blockIdx.x * THREADS + threadIdx.x) / KSPTC_LANES);

  if (slice < slices && !KSPTCInWindows(A, windows, slice) && threadIdx.x % KSPTC_LANES == 0) *others = 1;
}
} // namespace

PetscErrorCode KSPTCLookAtWindows(const AIJTCLayout *layout, const KSPTCWindows *windows, KSPTCResidentWork *work, PetscBool *fit, cudaStream_t stream)
{
  const PetscInt slices = layout->nslices[AIJTC_ROWS];
  Scratch<int>   others;
  PetscBool      room  = PETSC_TRUE;
  int            found = 1;

  PetscFunctionBegin;
  *fit = work->windowed;
  if (layout->build && work->build == layout->build) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(others.allocate(1, stream, &room));
  if (room) {
    PetscCallCUDA(cudaMemsetAsync(others, 0, sizeof(int), stream));
    LookKernel<<<(unsigned)((slices * (PetscCount)KSPTC_LANES - 1) / THREADS + 1), THREADS, 0, stream>>>(AIJTCLayoutView(*layout), *windows, slices, others);
    PetscCallCUDA(cudaGetLastError());
    PetscCallCUDA(cudaMemcpyAsync(&found, others, sizeof(int), cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
  }
  work->build    = layout->build;
  work->windowed = (PetscBool)!found;
  *fit           = work->windowed;
  PetscFunctionReturn(PETSC_SUCCESS);
}
