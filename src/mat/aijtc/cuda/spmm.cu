/*
   Method, Memory traffic
     spmm.cuh. Columns are taken in groups of 8, the rest in groups of 4, 2 and 1; each group is at most one launch for each kind of slices and one for the sums of long rows.

   Layout
     include/petsctc/private/aijtclayout.h
*/
#include <petsctc/private/devicescratch.h>
#include "spmm.cuh"
#include <petsctc/private/aijtcops.h>

namespace
{
constexpr int WARPS = 4; /* of a block */

inline unsigned Blocks(PetscInt slices)
{
  return (unsigned)((slices - 1) / WARPS + 1);
}

/* The slice of this warp, -1 for none: slices first .. first + count - 1 */
__device__ __forceinline__ PetscInt WarpSlice(PetscInt first, PetscInt count)
{
  const PetscInt warp = (PetscInt)blockIdx.x * WARPS + (PetscInt)threadIdx.x / AIJTC_LANES;

  return warp < count ? first + warp : -1;
}

template <int R, int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) RowsColumnsKernel(LayoutView A, PetscInt first, PetscInt count, int m, ColumnsView<K> X)
{
  const PetscInt slice = WarpSlice(first, count);

  if (slice >= 0) RowsColumns<R, K>(A, slice, m, threadIdx.x % AIJTC_LANES, X);
}

template <int R, int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) TileColumnsKernel(LayoutView A, PetscInt first, PetscInt count, int m, ColumnsView<K> X)
{
  const PetscInt slice = WarpSlice(first, count);

  if (slice >= 0) TileColumns<R, K>(A, slice, m, threadIdx.x % AIJTC_LANES, X);
}

template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) LongColumnsKernel(LayoutView A, PetscInt count, ColumnsView<K> X, PetscScalar *partial)
{
  const PetscInt slice = WarpSlice(0, count);

  if (slice >= 0) LongColumns<K>(A, slice, threadIdx.x % AIJTC_LANES, X, partial);
}

/* One thread a long row and column */
template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) LongSumsKernel(PetscInt nlong, const PetscInt *__restrict__ rid, const PetscInt *__restrict__ piece, const PetscScalar *__restrict__ partial, ColumnsView<K> X)
{
  const PetscInt thread = (PetscInt)(blockIdx.x * blockDim.x + threadIdx.x), row = thread / K, c = thread % K;
  PetscScalar    sum = 0.0;

  if (row >= nlong) return;
  for (PetscInt p = piece[row]; p < piece[row + 1]; p++) sum += partial[(PetscCount)K * p + c];
  X.z[rid[row] + c * X.zstride] = sum;
}

template <int K>
PetscErrorCode LongRows(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, cudaStream_t stream)
{
  constexpr int        threads = WARPS * AIJTC_LANES;
  const PetscInt       pieces  = A.nslices[AIJTC_LONG];
  Scratch<PetscScalar> partial;

  PetscFunctionBegin;
  if (!pieces) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(partial.allocate((size_t)K * pieces, stream));
  LongColumnsKernel<K><<<Blocks(pieces), threads, 0, stream>>>(view, pieces, X, partial);
  PetscCallCUDA(cudaGetLastError());
  LongSumsKernel<K><<<(unsigned)(((PetscCount)K * A.nlong - 1) / threads + 1), threads, 0, stream>>>(A.nlong, A.rid, A.long_piece, partial, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode Tiles(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, cudaStream_t stream)
{
  const PetscInt first = A.nslices[AIJTC_LONG], count = A.nslices[AIJTC_TILE];

  PetscFunctionBegin;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  if (A.params.rtile == 1) TileColumnsKernel<1, K><<<Blocks(count), WARPS * AIJTC_LANES, 0, stream>>>(view, first, count, (int)A.m, X);
  else TileColumnsKernel<4, K><<<Blocks(count), WARPS * AIJTC_LANES, 0, stream>>>(view, first, count, (int)A.m, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode Rows(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, cudaStream_t stream)
{
  const PetscInt first = A.nslices[AIJTC_LONG] + A.nslices[AIJTC_TILE], count = A.nslices[AIJTC_ROWS];

  PetscFunctionBegin;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  if (A.params.rrows == 1) RowsColumnsKernel<1, K><<<Blocks(count), WARPS * AIJTC_LANES, 0, stream>>>(view, first, count, (int)A.m, X);
  else if (A.params.rrows == 2) RowsColumnsKernel<2, K><<<Blocks(count), WARPS * AIJTC_LANES, 0, stream>>>(view, first, count, (int)A.m, X);
  else RowsColumnsKernel<4, K><<<Blocks(count), WARPS * AIJTC_LANES, 0, stream>>>(view, first, count, (int)A.m, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Groups of K columns while there are K left; moves x, z and the number of columns on */
template <int K>
PetscErrorCode Groups(const AIJTCLayout &A, PetscInt *columns, const PetscScalar **x, PetscCount xstride, PetscScalar **z, PetscCount zstride, cudaStream_t stream)
{
  const LayoutView view = {A.slice, A.pattern, A.value, A.dict, A.rid, A.params.bs};

  PetscFunctionBegin;
  for (; *columns >= K; *columns -= K) {
    const ColumnsView<K> X = {*x, *z, xstride, zstride};

    PetscCall(LongRows<K>(A, view, X, stream));
    PetscCall(Tiles<K>(A, view, X, stream));
    PetscCall(Rows<K>(A, view, X, stream));
    *x += K * xstride;
    *z += K * zstride;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMatMult_CUDA(const AIJTCLayout *layout, PetscInt columns, const PetscScalar x[], PetscCount xstride, PetscScalar z[], PetscCount zstride, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutMatMult_Host()");
  if (!layout->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Groups<8>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscCall(Groups<4>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscCall(Groups<2>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscCall(Groups<1>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
