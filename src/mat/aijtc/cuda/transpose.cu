/*
   Method
     CSR arrays of the transpose by one stable radix sort of the column indices, each with the number of its entry: the sorted numbers are the permutation, and because the sort is stable every row
     of the transpose ascends. Row pointers and row numbers of entries are binary searches in the sorted columns and in the matrix' row pointers. From them a layout is built like any other,
     and of them only the permutation is kept: new values are one gather and the layout's refresh.

   Layout
     include/petsctc/private/aijtcops.h; the sort looks at as many bits as the number of columns has

   Memory traffic
     Sort: 16 nnz bytes for every 8 bits of a column number. Searches: 12 nnz and the row pointers, which stay in L2. 7-point matrix of 101^3 rows (7.15 million nonzeros, 3 passes): 430 MB, 100 us
     at 4.3 TB/s. Work space: 12 nnz bytes and the sort's. New values: 20 nnz bytes and the refresh.

   References
     CCCL, cub::DeviceRadixSort; Adinets, Merrill, Onesweep: a faster least significant digit radix sort for GPUs, 2022
*/
#include <../src/parts/devicescratch.h>
#include <petsctc/private/aijtcops.h>
#include <../src/parts/devicesort.h>

namespace
{
constexpr unsigned THREADS = 256;

inline unsigned Blocks(PetscCount n)
{
  return (unsigned)((n - 1) / THREADS + 1);
}

__device__ __forceinline__ PetscCount Thread()
{
  return (PetscCount)blockIdx.x * THREADS + threadIdx.x;
}

/* The first place in a sorted array whose number is at least `value` */
__device__ __forceinline__ PetscCount LowerBound(const PetscInt *__restrict__ sorted, PetscCount n, PetscInt value)
{
  PetscCount low = 0;

  while (n > 0) {
    const PetscCount half = n / 2;

    if (__ldg(sorted + low + half) < value) {
      low += half + 1;
      n -= half + 1;
    } else n = half;
  }
  return low;
}

__global__ void __launch_bounds__(THREADS) NumbersKernel(PetscCount n, PetscInt *number)
{
  if (Thread() < n) number[Thread()] = (PetscInt)Thread();
}

__global__ void __launch_bounds__(THREADS) RowPointersKernel(PetscInt n, PetscCount nnz, const PetscInt *__restrict__ column, PetscInt *__restrict__ ti)
{
  if (Thread() <= n) ti[Thread()] = (PetscInt)LowerBound(column, nnz, (PetscInt)Thread());
}

/* Entry e lies in the last row that begins at e or before: empty rows begin there too, but earlier */
__global__ void __launch_bounds__(THREADS) RowsKernel(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, const PetscInt *__restrict__ perm, PetscInt *__restrict__ tj)
{
  if (Thread() < nnz) tj[Thread()] = (PetscInt)LowerBound(i, (PetscCount)m + 1, __ldg(perm + Thread()) + 1) - 1;
}

__global__ void __launch_bounds__(THREADS) PermuteKernel(PetscCount nnz, const PetscInt *__restrict__ perm, const PetscScalar *__restrict__ a, PetscScalar *__restrict__ ta)
{
  if (Thread() < nnz) ta[Thread()] = __ldg(a + __ldcs(perm + Thread()));
}

PetscErrorCode Permute(PetscCount nnz, const PetscInt perm[], const PetscScalar a[], PetscScalar ta[], cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PermuteKernel<<<Blocks(nnz), THREADS, 0, stream>>>(nnz, perm, a, ta);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Column numbers are not negative, so that 32 bits of them sort as unsigned numbers do */
PetscErrorCode SortByColumn(void *memory, size_t *bytes, const PetscInt j[], PetscInt column[], const PetscInt number[], PetscInt perm[], PetscCount nnz, int bits, cudaStream_t stream)
{
  PetscFunctionBegin;
#if PetscDefined(USE_64BIT_INDICES)
  PetscCall(PetscTCSortIndices_CUDA(memory, bytes, j, column, number, perm, nnz, bits, stream));
#else
  PetscCall(PetscTCSortPairs_CUDA(memory, bytes, reinterpret_cast<const uint32_t *>(j), reinterpret_cast<uint32_t *>(column), number, perm, nnz, bits, stream));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* column <- the sorted column numbers, perm <- the entries that have them */
PetscErrorCode SortColumns(PetscInt n, PetscCount nnz, const PetscInt j[], PetscInt column[], PetscInt perm[], cudaStream_t stream)
{
  Scratch<PetscInt> number;
  Scratch<char>     work;
  size_t            bytes = 0;
  int               bits  = 1;

  PetscFunctionBegin;
  while (bits < 8 * (int)sizeof(PetscInt) - 1 && (PetscInt)1 << bits < n) bits++;
  PetscCall(number.allocate(nnz, stream));
  NumbersKernel<<<Blocks(nnz), THREADS, 0, stream>>>(nnz, number);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(SortByColumn(nullptr, &bytes, j, column, number, perm, nnz, bits, stream));
  PetscCall(work.allocate(bytes, stream));
  PetscCall(SortByColumn((void *)(char *)work, &bytes, j, column, number, perm, nnz, bits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The permutation stays as long as the layout does, so it is no scratch */
PetscErrorCode AllocatePermutation(PetscCount nnz, PetscInt **perm)
{
  cudaError_t cerr;

  PetscFunctionBegin;
  *perm = nullptr;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  cerr = cudaMalloc(reinterpret_cast<void **>(perm), nnz * sizeof(PetscInt));
  if (cerr == cudaErrorMemoryAllocation) {
    *perm = nullptr;
    (void)cudaGetLastError();
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "No room for %zu bytes of the permutation of MATAIJTC's transpose in device memory: use a smaller matrix or more devices", (size_t)nnz * sizeof(PetscInt));
  }
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Build(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[], cudaStream_t stream)
{
  AIJTCParams          params;
  Scratch<PetscInt>    ti, tj;
  Scratch<PetscScalar> ta;
  AIJTCTraits          traits;

  PetscFunctionBegin;
  PetscCall(ti.allocate((size_t)n + 1, stream));
  PetscCall(tj.allocate(nnz, stream));
  PetscCall(ta.allocate(nnz, stream));
  PetscCall(AllocatePermutation(nnz, perm));
  PetscCall(AIJTCCsrTranspose_CUDA(m, n, nnz, i, j, ti, tj, *perm, stream));
  PetscCall(Permute(nnz, *perm, a, ta, stream));
  PetscCall(AIJTCProbe_CUDA(n, ti, tj, ta, &traits, stream));
  PetscCall((*choose)(ctx, n, m, nnz, &traits, &params));
  PetscCall(AIJTCLayoutBuild_CUDA(n, m, ti, tj, ta, &params, layout, stream));
  layout->common = traits.common;
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCCsrTranspose_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscInt ti[], PetscInt tj[], PetscInt perm[], PetscTCStream stream)
{
  Scratch<PetscInt> column;

  PetscFunctionBegin;
  if (!nnz) {
    PetscCallCUDA(cudaMemsetAsync(ti, 0, ((size_t)n + 1) * sizeof(PetscInt), stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(column.allocate(nnz, stream));
  PetscCall(SortColumns(n, nnz, j, column, perm, stream));
  RowPointersKernel<<<Blocks((PetscCount)n + 1), THREADS, 0, stream>>>(n, nnz, column, ti);
  PetscCallCUDA(cudaGetLastError());
  if (tj) {
    RowsKernel<<<Blocks(nnz), THREADS, 0, stream>>>(m, nnz, i, perm, tj);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedBuild_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[], PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *layout = {};
  *perm   = nullptr;
  ierr    = Build(m, n, nnz, i, j, a, choose, ctx, layout, perm, stream);
  if (PetscUnlikely(ierr)) (void)AIJTCTransposedDestroy_CUDA(layout, perm);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedRefresh_CUDA(AIJTCLayout *layout, const PetscInt perm[], const PetscScalar a[], PetscBool *fits, PetscTCStream stream)
{
  Scratch<PetscScalar> ta;

  PetscFunctionBegin;
  PetscCall(ta.allocate(layout->nnz, stream));
  PetscCall(Permute(layout->nnz, perm, a, ta, stream));
  PetscCall(AIJTCLayoutRefresh_CUDA(layout, ta, fits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedDestroy_CUDA(AIJTCLayout *layout, PetscInt *perm[])
{
  const cudaError_t cerr = cudaFree(*perm);

  PetscFunctionBegin;
  *perm = nullptr;
  PetscCall(AIJTCLayoutDestroy_CUDA(layout));
  PetscCallCUDA(cerr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
