/*
   Method
     Operations on the parent's CSR arrays in device memory that AIJCUSPARSE does on the host or in several passes.
       sums of |a|      one visit of all rows (csrrows.cuh); the norms take the largest sum
       NORM_1           the same over the transpose's rows, whose entries the permutation of a transpose finds
       NORM_FROBENIUS   the norm of the values as a vector (vecreduce.h)
       diagonal         one thread a row: binary search, which finds the entry of a sorted row in a few reads of one or two lines; what it does not find is sought entry by entry, for
                        rows need not be sorted
       scaling          one visit of all rows, both sides at once

   Layout
     CSR

   Memory traffic
     For the 7-point matrix of 101^3 rows (1.03 million rows, 7.15 million nonzeros) at 4.3 TB/s:
       sums of |a|, largest row sum  8 nnz + 12 m bytes: 70 MB, 16 us       NORM_FROBENIUS   8 nnz: 57 MB, 13 us
       scaling                      20 nnz + 20 m: 164 MB, 38 us           diagonal         about 64 m: 66 MB, 15 us
       NORM_1                       the sort of a transpose (transpose.cu) and 12 nnz read through it

   References
     CCCL, cub::DeviceReduce
*/
#include "csrrows.cuh"
#include <../src/parts/devicescratch.h>
#include <petsctc/private/aijtcops.h>
#include <../src/vec/vecreduce.h>
#include <cub/device/device_reduce.cuh>

namespace
{
constexpr unsigned THREADS = 256;

inline unsigned Blocks(PetscCount n)
{
  return (unsigned)((n - 1) / THREADS + 1);
}

/* ---- sums */

struct AbsSums {
  const PetscScalar *__restrict__ a;
  PetscScalar *__restrict__ result;

  __device__ __forceinline__ PetscScalar entry(PetscInt, PetscInt k) const { return fabs(__ldg(a + k)); }
  __device__ __forceinline__ void        sum(PetscInt row, PetscScalar s) const { result[row] = s; }
};

struct PermutedAbsSums {
  const PetscScalar *__restrict__ a;
  const PetscInt *__restrict__ perm;
  PetscScalar *__restrict__ result;

  __device__ __forceinline__ PetscScalar entry(PetscInt, PetscInt k) const { return fabs(__ldg(a + __ldg(perm + k))); }
  __device__ __forceinline__ void        sum(PetscInt row, PetscScalar s) const { result[row] = s; }
};

/* The larger one, in which a NaN loses */
struct Larger {
  __device__ __forceinline__ PetscScalar operator()(PetscScalar a, PetscScalar b) const { return fmax(a, b); }
};

PetscErrorCode LargestSum(PetscInt m, const PetscScalar sum[], PetscReal *norm, cudaStream_t stream)
{
  Scratch<PetscScalar> largest;
  Scratch<char>        work;
  size_t               bytes = 0;

  PetscFunctionBegin;
  PetscCall(largest.allocate(1, stream));
  PetscCallCUDA(cub::DeviceReduce::Reduce(nullptr, bytes, sum, (PetscScalar *)largest, m, Larger(), (PetscScalar)0.0, stream));
  PetscCall(work.allocate(bytes, stream));
  PetscCallCUDA(cub::DeviceReduce::Reduce((void *)(char *)work, bytes, sum, (PetscScalar *)largest, m, Larger(), (PetscScalar)0.0, stream));
  PetscCallCUDA(cudaMemcpyAsync(norm, (PetscScalar *)largest, sizeof(*norm), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- diagonal */

/* The place of column `column` in a row, or end */
__device__ __forceinline__ PetscInt FindColumn(const PetscInt *__restrict__ j, PetscInt begin, PetscInt end, PetscInt column)
{
  PetscInt low = begin, high = end;

  while (low < high) {
    const PetscInt middle = low + (high - low) / 2;

    if (__ldg(j + middle) < column) low = middle + 1;
    else high = middle;
  }
  if (low < end && __ldg(j + low) == column) return low;
  for (low = begin; low < end && __ldg(j + low) != column; low++) { }
  return low;
}

__global__ void __launch_bounds__(THREADS) GetDiagonalKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, PetscScalar *__restrict__ d)
{
  const PetscInt row = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (row >= m) return;
  const PetscInt end = __ldg(i + row + 1), k = FindColumn(j, __ldg(i + row), end, row);
  d[row] = k < end ? __ldg(a + k) : 0.0;
}

/* All threads that find nothing write the same number: no order to keep */
__global__ void __launch_bounds__(THREADS) HasDiagonalKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int *missing)
{
  const PetscInt row = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (row >= m) return;
  const PetscInt end = __ldg(i + row + 1);
  if (FindColumn(j, __ldg(i + row), end, row) == end) *missing = 1;
}

__global__ void __launch_bounds__(THREADS) SetDiagonalKernel(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscScalar *__restrict__ a, const PetscScalar *__restrict__ d, PetscScalar shift, bool add)
{
  const PetscInt row = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (row >= m) return;
  const PetscInt    end = __ldg(i + row + 1), k = FindColumn(j, __ldg(i + row), end, row);
  const PetscScalar value = (d ? __ldg(d + row) : 0.0) + shift;
  if (k < end) a[k] = add ? a[k] + value : value;
}

/* ---- scaling */

template <bool left, bool right>
struct Scaling {
  const PetscInt *__restrict__ j;
  PetscScalar *__restrict__ a;
  const PetscScalar *__restrict__ l, *__restrict__ r;

  __device__ __forceinline__ PetscScalar entry(PetscInt row, PetscInt k) const
  {
    PetscScalar value = a[k];

    if (left) value *= __ldg(l + row);
    if (right) value *= __ldg(r + __ldg(j + k));
    a[k] = value;
    return 0.0;
  }
  __device__ __forceinline__ void sum(PetscInt, PetscScalar) const { }
};
} // namespace

PetscErrorCode AIJTCCsrRowSumsAbs_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscScalar sum[], PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(CsrRows(m, nnz, i, AbsSums{a, sum}, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrNorm1_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream)
{
  Scratch<PetscInt>    ti, perm;
  Scratch<PetscScalar> sum;

  PetscFunctionBegin;
  *norm = 0.0;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ti.allocate((size_t)n + 1, stream));
  PetscCall(perm.allocate(nnz, stream));
  PetscCall(sum.allocate(n, stream));
  PetscCall(AIJTCCsrTranspose_CUDA(m, n, nnz, i, j, ti, nullptr, perm, stream));
  PetscCall(CsrRows(n, nnz, ti, PermutedAbsSums{a, perm, sum}, stream));
  PetscCall(LargestSum(n, sum, norm, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrNormInfinity_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream)
{
  Scratch<PetscScalar> sum;

  PetscFunctionBegin;
  *norm = 0.0;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(sum.allocate(m, stream));
  PetscCall(CsrRows(m, nnz, i, AbsSums{a, sum}, stream));
  PetscCall(LargestSum(m, sum, norm, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrNormFrobenius_CUDA(PetscCount nnz, const PetscScalar a[], PetscReal *norm, PetscTCStream stream)
{
  Scratch<PetscScalar> partial, result;
  Scratch<unsigned>    arrived;
  PetscTCReduceWork    work;

  PetscFunctionBegin;
  *norm = 0.0;
  if (!nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(partial.allocate(PETSCTC_MAX_DOTS * PETSCTC_MAX_BLOCKS, stream));
  PetscCall(result.allocate(1, stream));
  PetscCall(arrived.allocate(1, stream));
  PetscCallCUDA(cudaMemsetAsync((unsigned *)arrived, 0, sizeof(unsigned), stream));
  work = {PETSC_TRUE, partial, arrived, {}};
  PetscCall(PetscTCNorm2_CUDA((PetscInt)nnz, a, result, PETSC_FALSE, &work, stream));
  PetscCallCUDA(cudaMemcpyAsync(norm, (PetscScalar *)result, sizeof(*norm), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrGetDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscScalar d[], PetscTCStream stream)
{
  PetscFunctionBegin;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  GetDiagonalKernel<<<Blocks(m), THREADS, 0, stream>>>(m, i, j, a, d);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrHasDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscBool *full, PetscTCStream stream)
{
  Scratch<int> missing;
  int          any = 0;

  PetscFunctionBegin;
  *full = PETSC_TRUE;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(missing.allocate(1, stream));
  PetscCallCUDA(cudaMemsetAsync((int *)missing, 0, sizeof(int), stream));
  HasDiagonalKernel<<<Blocks(m), THREADS, 0, stream>>>(m, i, j, missing);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(&any, (int *)missing, sizeof(int), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  *full = (PetscBool)!any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrSetDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar d[], PetscScalar shift, PetscBool add, PetscTCStream stream)
{
  PetscFunctionBegin;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  SetDiagonalKernel<<<Blocks(m), THREADS, 0, stream>>>(m, i, j, a, d, shift, add);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrDiagonalScale_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar left[], const PetscScalar right[], PetscTCStream stream)
{
  PetscFunctionBegin;
  if (left && right) PetscCall(CsrRows(m, nnz, i, Scaling<true, true>{j, a, left, right}, stream));
  else if (left) PetscCall(CsrRows(m, nnz, i, Scaling<true, false>{j, a, left, right}, stream));
  else if (right) PetscCall(CsrRows(m, nnz, i, Scaling<false, true>{j, a, left, right}, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
