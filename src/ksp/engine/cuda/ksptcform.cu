/*
   Method
     The resident form of a matrix (ksptcform.h), made once for a pattern, its values once for a state of the matrix:
       deal     one thread a block finds its first row by binary search in the row offsets
       count    one warp a slice: the longest row, hence the places; a scan gives the first places of the slices
       fill     one warp a slice: lane l of slot t fetches its entry
     The blocks' first rows and places come to the host between these, which knows then how much shared memory a block needs, and whether there is so much.

   Layout
     include/petsctc/private/ksptcform.h

   Memory traffic
     Row offsets twice, 12 bytes a nonzero read and 12 a place written. 7-point 43^3 (0.55 million nonzeros): 14 MB, 3 us at 4.3 TB/s; the two waits of the host are more.

   References
     CUDA Core Compute Libraries (CUB), DeviceScan
*/
#include <cub/device/device_scan.cuh>
#include <petscdevice_cuda.h>
#include <petsctc/private/devicescratch.h>
#include <petsctc/private/ksptcform.h>

namespace
{
constexpr int THREADS = 256;
constexpr int WARPS   = THREADS / KSPTC_LANES;

/* room: becomes false where there is none */
template <class T>
PetscErrorCode Allocate(PetscCount count, T **array, PetscBool *room)
{
  cudaError_t cerr;

  PetscFunctionBegin;
  *array = NULL;
  if (!count || !*room) PetscFunctionReturn(PETSC_SUCCESS);
  cerr = cudaMalloc((void **)array, (size_t)count * sizeof(T));
  if (cerr == cudaErrorMemoryAllocation) {
    *array = NULL;
    *room  = PETSC_FALSE;
    (void)cudaGetLastError(); /* the steps run: it must not appear again after the next launch */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ void __launch_bounds__(THREADS) DealKernel(int32_t m, PetscCount nnz, PetscCount weight, int blocks, const PetscInt *__restrict__ i, int32_t *__restrict__ block_row)
{
  const PetscCount all = nnz + weight * m;
  const int        k   = (int)(blockIdx.x * THREADS + threadIdx.x);
  int32_t          low = 0, high = m;

  if (k > blocks) return;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;

    if ((__ldg(i + middle) + weight * middle) * blocks < all * k) low = middle + 1;
    else high = middle;
  }
  block_row[k] = low;
}

/* The rows of a slice */
struct SliceRows {
  int32_t first, end;

  __device__ __forceinline__ SliceRows(const KSPTCForm &form, int32_t s)
  {
    const int32_t rows = KSPTC_LANES / form.lanes;
    int           low = 0, high = form.blocks - 1;

    while (low < high) { /* the last block whose first slice is s or before: blocks without rows have no slices */
      const int middle = (low + high + 1) / 2;

      if (__ldg(form.block_slice + middle) <= s) low = middle;
      else high = middle - 1;
    }
    first = __ldg(form.block_row + low) + rows * (s - __ldg(form.block_slice + low));
    end   = min(first + rows, __ldg(form.block_row + low + 1));
  }
};

/* count[s] <- places of slice s, 0 for s = slices */
__global__ void __launch_bounds__(THREADS) CountKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, int32_t *__restrict__ count)
{
  const int32_t s       = (int32_t)(blockIdx.x * WARPS + threadIdx.x / KSPTC_LANES);
  const int     lane    = threadIdx.x % KSPTC_LANES;
  int           longest = 0;

  if (s > form.slices) return;
  if (s < form.slices) {
    const SliceRows rows(form, s);
    const int32_t   row = rows.first + lane;

    if (row < rows.end) longest = (int)(__ldg(i + row + 1) - __ldg(i + row));
  }
  longest = __reduce_max_sync(0xffffffffu, longest);
  if (lane == 0) count[s] = (longest + form.lanes - 1) / form.lanes * KSPTC_LANES;
}

__global__ void __launch_bounds__(THREADS) FillKernel(const __grid_constant__ KSPTCForm form, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a)
{
  const int32_t s    = (int32_t)(blockIdx.x * WARPS + threadIdx.x / KSPTC_LANES);
  const int     lane = threadIdx.x % KSPTC_LANES;

  if (s >= form.slices) return;
  const SliceRows rows(form, s);
  const int32_t   row = rows.first + lane / form.lanes, places = __ldg(form.start + s + 1);
  PetscInt        entry = row < rows.end ? __ldg(i + row) + lane % form.lanes : 0;
  const PetscInt  end   = row < rows.end ? __ldg(i + row + 1) : 0;

  for (int32_t place = __ldg(form.start + s) + lane; place < places; place += KSPTC_LANES) {
    const bool is = entry < end;

    form.column[place] = is ? (int32_t)__ldg(j + entry) : -1;
    form.value[place]  = is ? __ldg(a + entry) : 0.0;
    entry += form.lanes;
  }
}

/* block_row and block_slice, on both sides */
PetscErrorCode DealRows(const PetscInt i[], int32_t block_row[], int32_t block_slice[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  const size_t bytes = (form->blocks + 1) * sizeof(*block_row);

  PetscFunctionBegin;
  PetscCall(Allocate(form->blocks + 1, &form->block_row, room));
  PetscCall(Allocate(form->blocks + 1, &form->block_slice, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  DealKernel<<<form->blocks / THREADS + 1, THREADS, 0, stream>>>(form->m, form->nnz, KSPTCRowWeight(form), form->blocks, i, form->block_row);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(block_row, form->block_row, bytes, cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  KSPTCFormCountSlices(block_row, block_slice, form);
  PetscCallCUDA(cudaMemcpyAsync(form->block_slice, block_slice, bytes, cudaMemcpyHostToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ void __launch_bounds__(THREADS) PickKernel(const __grid_constant__ KSPTCForm form, int32_t *__restrict__ block_start)
{
  const int k = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (k <= form.blocks) block_start[k] = __ldg(form.start + __ldg(form.block_slice + k));
}

/* start[], and on the host the first places of the blocks. No more than 32 places a nonzero, of which there are no more than multiprocessors can hold: they can be counted in 32 bits */
PetscErrorCode CountPlaces(const PetscInt i[], int32_t block_start[], KSPTCForm *form, PetscBool *room, cudaStream_t stream)
{
  Scratch<int32_t> count, picked;
  Scratch<char>    work;
  size_t           bytes = 0;

  PetscFunctionBegin;
  PetscCall(Allocate(form->slices + 1, &form->start, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(count.allocate(form->slices + 1, stream));
  CountKernel<<<form->slices / WARPS + 1, THREADS, 0, stream>>>(*form, i, count);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, (int32_t *)count, form->start, form->slices + 1, stream));
  PetscCall(work.allocate(bytes, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum((void *)(char *)work, bytes, (int32_t *)count, form->start, form->slices + 1, stream));
  PetscCall(picked.allocate(form->blocks + 1, stream));
  PickKernel<<<form->blocks / THREADS + 1, THREADS, 0, stream>>>(*form, picked);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(block_start, (int32_t *)picked, (form->blocks + 1) * sizeof(*block_start), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  form->places = block_start[form->blocks];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* fits: also false where device memory has no room */
PetscErrorCode Create(const PetscInt i[], const PetscInt j[], const PetscScalar a[], const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits, cudaStream_t stream)
{
  int32_t   block_row[KSPTC_BLOCKS + 1], block_slice[KSPTC_BLOCKS + 1], block_start[KSPTC_BLOCKS + 1];
  PetscBool room = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(DealRows(i, block_row, block_slice, form, &room, stream));
  if (room) PetscCall(CountPlaces(i, block_start, form, &room, stream));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  KSPTCFormMeasure(block_row, block_slice, block_start, form);
  if (form->shared[form->vectors] > chip->shared) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Allocate(form->places, &form->column, &room));
  PetscCall(Allocate(form->places, &form->value, &room));
  if (!room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCFormFill_CUDA(i, j, a, form, stream));
  *fits = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode KSPTCFormFill_CUDA(const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCForm *form, PetscTCStream stream)
{
  PetscFunctionBegin;
  FillKernel<<<(form->slices - 1) / WARPS + 1, THREADS, 0, stream>>>(*form, i, j, a);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormDestroy_CUDA(KSPTCForm *form)
{
  void *arrays[] = {form->block_row, form->block_slice, form->start, form->column, form->value};

  PetscFunctionBegin;
  *form = {};
  for (void *array : arrays) {
    if (array) PetscCallCUDA(cudaFree(array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], int vectors, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits, PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *form = {};
  *fits = PETSC_FALSE;
  KSPTCFormShape(m, nnz, vectors, chip, form);
  form->cuda = PETSC_TRUE;
  ierr       = form->blocks ? Create(i, j, a, chip, form, fits, stream) : PETSC_SUCCESS;
  if (ierr || !*fits) PetscCall(KSPTCFormDestroy_CUDA(form));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
