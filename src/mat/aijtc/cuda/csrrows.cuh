/*
   Method
     Visits every entry of every row of a CSR matrix and sums what the visitor gives for the entries of a row.
     A row belongs to L neighbouring lanes, L the power of two next to the mean row length; each lane takes every L-th entry, then the L sums are added by shuffles. A row of more than
     AIJTC_CSR_LONG entries a lane is left to the whole block: 256 threads take every 256th entry, warps add by shuffles, and the first warp adds the warps' sums. The order of every
     row's sum depends on the row's length and the matrix' mean row length alone.

   Layout
     CSR; one block has 256 / L consecutive rows

   Memory traffic
     What the visitor reads, 4 bytes a row, the stored sums. Rows of L lanes lie side by side: consecutive lanes read consecutive entries.

   References
     Bell, Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC'09 (vector kernel)
*/
#pragma once

#include <petscdevice_cuda.h>
#include <petsctc/private/petsctcimpl.h>

constexpr int      AIJTC_CSR_THREADS = 256;
constexpr PetscInt AIJTC_CSR_LONG    = 64;

template <int lanes>
__device__ __forceinline__ PetscScalar SumOfLanes(PetscScalar s)
{
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) s += __shfl_down_sync(0xffffffffu, s, distance, lanes);
  return s;
}

/* The sum over the block in thread 0 */
__device__ __forceinline__ PetscScalar SumOfBlock(PetscScalar s)
{
  constexpr int          warps = AIJTC_CSR_THREADS / 32;
  __shared__ PetscScalar shared[warps];

  s = SumOfLanes<32>(s);
  __syncthreads(); /* the sums of the row before are read */
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = s;
  __syncthreads();
  return SumOfLanes<warps>(shared[threadIdx.x % warps]);
}

/* visitor.entry(row, k) gives the term of entry k of the row; visitor.sum(row, s) takes the row's sum */
template <int lanes, class Visitor>
__global__ void __launch_bounds__(AIJTC_CSR_THREADS) CsrRowsKernel(PetscInt m, const PetscInt *__restrict__ i, Visitor visitor)
{
  constexpr int  rows  = AIJTC_CSR_THREADS / lanes;
  const PetscInt first = (PetscInt)blockIdx.x * rows, row = first + (PetscInt)threadIdx.x / lanes;
  const PetscInt begin = row < m ? __ldg(i + row) : 0, end = row < m ? __ldg(i + row + 1) : 0;
  const bool     all = end - begin > AIJTC_CSR_LONG * lanes; /* for all threads of the block */
  PetscScalar    s   = 0.0;

  if (!all) {
#pragma unroll 4
    for (PetscInt k = begin + (PetscInt)threadIdx.x % lanes; k < end; k += lanes) s += visitor.entry(row, k);
  }
  s = SumOfLanes<lanes>(s);
  if (row < m && !all && threadIdx.x % lanes == 0) visitor.sum(row, s);
  if (!__syncthreads_or(all)) return;
  for (PetscInt r = first; r < first + rows && r < m; r++) {
    const PetscInt from = __ldg(i + r), to = __ldg(i + r + 1);

    if (to - from <= AIJTC_CSR_LONG * lanes) continue;
    s = 0.0;
#pragma unroll 4
    for (PetscInt k = from + (PetscInt)threadIdx.x; k < to; k += AIJTC_CSR_THREADS) s += visitor.entry(r, k);
    s = SumOfBlock(s);
    if (threadIdx.x == 0) visitor.sum(r, s);
  }
}

template <int lanes, class Visitor>
PetscErrorCode CsrRowsLaunch(PetscInt m, const PetscInt i[], const Visitor &visitor, cudaStream_t stream)
{
  constexpr PetscInt rows = AIJTC_CSR_THREADS / lanes;

  PetscFunctionBegin;
  CsrRowsKernel<lanes><<<(unsigned)((m - 1) / rows + 1), AIJTC_CSR_THREADS, 0, stream>>>(m, i, visitor);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Visitor>
PetscErrorCode CsrRows(PetscInt m, PetscCount nnz, const PetscInt i[], const Visitor &visitor, cudaStream_t stream)
{
  const PetscCount mean = m ? nnz / m : 0;

  PetscFunctionBegin;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  if (mean < 3) PetscCall(CsrRowsLaunch<2>(m, i, visitor, stream));
  else if (mean < 6) PetscCall(CsrRowsLaunch<4>(m, i, visitor, stream));
  else if (mean < 12) PetscCall(CsrRowsLaunch<8>(m, i, visitor, stream));
  else if (mean < 24) PetscCall(CsrRowsLaunch<16>(m, i, visitor, stream));
  else PetscCall(CsrRowsLaunch<32>(m, i, visitor, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
