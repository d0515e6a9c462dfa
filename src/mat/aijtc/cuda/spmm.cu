/*
   Method
     spmm.cuh. Columns are taken in groups of 8, the rest in groups of 4, 2 and 1; each group is at most one launch for each kind of slices, one for the sums of long rows and one that copies X row by row.

     Where a product with one vector sweeps the planes of a grid (mult_sweep.cu), whose values are few, the columns are taken one after the other instead, which is faster than 8 at once there. Not with columns that begin between two multiples of 16
     bytes, which no bulk copy takes whole. Other grids are swept with windows of 8 or 4 columns where that pays (spmm_sweep.cu).

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     spmm.cuh; swept, K times that of a product: the slots again for each column, which are little where planes are swept, and x and z. 7-point 256^3, K = 8, all compressed: 2.45 GB, 570 us at 4.3 TB/s; with one product at 90 us
     720 us.
*/
#include <../src/parts/devicescratch.h>
#include "mult.cuh"
#include "spmm.cuh"
#include <petsctc/private/aijtcops.h>

namespace
{
constexpr int WARPS  = 4; /* of a block */
constexpr int BLOCKS = 8; /* of a multiprocessor at least: 64 registers */

inline unsigned Blocks(PetscCount warps)
{
  return (unsigned)((warps - 1) / WARPS + 1);
}

/* The slices first .. first + count - 1, R row groups each, one a warp */
template <int R>
struct Groups {
  PetscInt first, count;

  unsigned            blocks() const { return Blocks((PetscCount)R * count); }
  __device__ PetscInt warp() const { return (PetscInt)(blockIdx.x * WARPS + threadIdx.x / AIJTC_LANES); }
  __device__ bool     exists() const { return warp() < R * count; }
  __device__ PetscInt slice() const { return first + warp() / R; }
  __device__ int      group() const { return (int)(warp() % R); }
};

template <int R, int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES, BLOCKS) ColumnsKernel(const __grid_constant__ LayoutView A, const __grid_constant__ Groups<R> groups, int m, const __grid_constant__ ColumnsView<K> X)
{
  if (groups.exists()) ColumnsOfGroup<R>(A, groups.slice(), groups.group(), m, X);
}

/* x: X by rows */
template <int R, int K, AIJTCKind KIND>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES, BLOCKS) PairsKernel(const __grid_constant__ LayoutView A, const __grid_constant__ Groups<R> groups, int m, const PetscScalar *__restrict__ x, const __grid_constant__ ColumnsView<K> X)
{
  const int lane = threadIdx.x % AIJTC_LANES;

  if (!groups.exists()) return;
  const SliceView   s    = LoadSlice<R>(A, groups.slice(), KIND == AIJTC_ROWS ? A.bs : 1);
  const int         row  = SliceRow(A, s, KIND == AIJTC_ROWS ? AIJTC_LANES * groups.group() + lane : lane / AIJTC_TILE_COLS, m);
  const int         rest = row < 0 ? 0 : (int)(row % A.bs);
  PairSums<K, KIND> sums(x, lane);

  ForGroup<R>(s, KIND == AIJTC_ROWS ? ListOf(A, groups.slice()) : nullptr, groups.group(), lane, row - rest, KIND == AIJTC_ROWS ? rest : 0 /* a constant slot of a tile has one value */, sums);
  sums.store(X, row);
}

/* Pieces of long rows: partial[K piece + c] */
template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES, BLOCKS) PiecesKernel(const __grid_constant__ LayoutView A, const __grid_constant__ Groups<1> groups, const PetscScalar *__restrict__ x, PetscScalar *__restrict__ partial)
{
  const int lane = threadIdx.x % AIJTC_LANES;

  if (!groups.exists()) return;
  const SliceView         s = LoadSlice<1>(A, groups.slice(), 1);
  PairSums<K, AIJTC_LONG> sums(x, lane);

  ForGroup<1>(s, nullptr, 0, lane, lane, 0, sums);
  const ScalarPair sum = sums.piece();
  if (lane < K / 2) reinterpret_cast<ScalarPair *>(partial)[(PetscCount)(K / 2) * groups.slice() + lane] = sum;
}

/* One thread a long row and column */
template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) LongSumsKernel(PetscInt nlong, const PetscInt *__restrict__ rid, const PetscInt *__restrict__ piece, const PetscScalar *__restrict__ partial, ColumnsView<K> X)
{
  const PetscInt thread = (PetscInt)(blockIdx.x * blockDim.x + threadIdx.x), row = thread / K, c = thread % K;
  PetscScalar    sum = 0.0;

  if (row >= nlong) return;
  for (PetscInt p = piece[row]; p < piece[row + 1]; p++) sum += partial[(PetscCount)K * p + c];
  if (X.rows) reinterpret_cast<PetscScalar *>(X.rows)[(PetscCount)K * rid[row] + c] = sum;
  else X.z[rid[row] + c * X.zstride] = sum;
}

/* X row by row: a thread copies a pair of columns of a row, so that a warp reads sectors and writes a run */
template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) ByRowsKernel(PetscInt n, const PetscScalar *__restrict__ x, PetscCount xstride, ScalarPair *__restrict__ rows)
{
  const PetscCount thread = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x, row = thread / (K / 2), pair = thread % (K / 2);

  if (row < n) rows[thread] = {x[row + 2 * pair * xstride], x[row + (2 * pair + 1) * xstride]};
}

/* The other way */
template <int K>
__global__ void __launch_bounds__(WARPS *AIJTC_LANES) FromRowsKernel(PetscInt m, const ScalarPair *__restrict__ rows, PetscScalar *__restrict__ z, PetscCount zstride)
{
  const PetscCount thread = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x, row = thread / (K / 2), pair = thread % (K / 2);

  if (row >= m) return;
  const ScalarPair of = rows[thread];

  z[row + 2 * pair * zstride]       = of.a;
  z[row + (2 * pair + 1) * zstride] = of.b;
}

/* Blocks of a launch with a thread for each pair of columns of a row */
template <int K>
unsigned PairBlocks(PetscInt rows)
{
  return Blocks(((PetscCount)rows * (K / 2) - 1) / AIJTC_LANES + 1);
}

/* Are rows stored anywhere in a Z that is too large for L2? Most are listed then */
bool ScattersRows(const AIJTCLayout &A)
{
  constexpr PetscInt many = 500000;

  return A.m >= many && 2 * A.nconsecutive < A.nslices[AIJTC_ROWS];
}

template <int R, int K>
PetscErrorCode ByColumns(const AIJTCLayout &A, const LayoutView &view, const ColumnsView<K> &X, cudaStream_t stream)
{
  const Groups<R> groups = {0, A.nslices[AIJTC_ROWS]};

  PetscFunctionBegin;
  ColumnsKernel<R, K><<<groups.blocks(), WARPS * AIJTC_LANES, 0, stream>>>(view, groups, (int)A.m, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int R, int K, AIJTCKind KIND>
PetscErrorCode Pairs(const AIJTCLayout &A, const LayoutView &view, PetscInt first, const PetscScalar *x, const ColumnsView<K> &X, cudaStream_t stream)
{
  const Groups<R> groups = {first, A.nslices[KIND]};

  PetscFunctionBegin;
  if (!groups.count) PetscFunctionReturn(PETSC_SUCCESS);
  PairsKernel<R, K, KIND><<<groups.blocks(), WARPS * AIJTC_LANES, 0, stream>>>(view, groups, (int)A.m, x, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode LongRows(const AIJTCLayout &A, const LayoutView &view, const PetscScalar *x, const ColumnsView<K> &X, cudaStream_t stream)
{
  constexpr int        threads = WARPS * AIJTC_LANES;
  const Groups<1>      pieces  = {0, A.nslices[AIJTC_LONG]};
  Scratch<PetscScalar> partial;

  PetscFunctionBegin;
  if (!pieces.count) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(partial.allocate((size_t)K * pieces.count, stream));
  PiecesKernel<K><<<pieces.blocks(), threads, 0, stream>>>(view, pieces, x, partial);
  PetscCallCUDA(cudaGetLastError());
  LongSumsKernel<K><<<(unsigned)(((PetscCount)K * A.nlong - 1) / threads + 1), threads, 0, stream>>>(A.nlong, A.rid, A.long_piece, partial, X);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode SlicesByRows(const AIJTCLayout &A, const LayoutView &view, const PetscScalar *x, const ColumnsView<K> &X, cudaStream_t stream)
{
  const PetscInt tiles = A.nslices[AIJTC_LONG], rows = tiles + A.nslices[AIJTC_TILE];

  PetscFunctionBegin;
  PetscCall(LongRows<K>(A, view, x, X, stream));
  PetscCall((Pairs<1, K, AIJTC_TILE>(A, view, tiles, x, X, stream)));
  if (A.params.rrows == 1) PetscCall((Pairs<1, K, AIJTC_ROWS>(A, view, rows, x, X, stream)));
  else if (A.params.rrows == 2) PetscCall((Pairs<2, K, AIJTC_ROWS>(A, view, rows, x, X, stream)));
  else PetscCall((Pairs<4, K, AIJTC_ROWS>(A, view, rows, x, X, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode ByRows(const AIJTCLayout &A, const LayoutView &view, ColumnsView<K> X, cudaStream_t stream)
{
  constexpr int        threads = WARPS * AIJTC_LANES;
  Scratch<PetscScalar> x, z;
  PetscBool            done;

  PetscFunctionBegin;
  PetscCall(x.allocate((size_t)K * A.n, stream));
  if (ScattersRows(A)) {
    PetscCall(z.allocate((size_t)K * A.m, stream));
    X.rows = reinterpret_cast<ScalarPair *>((PetscScalar *)z);
  }
  ByRowsKernel<K><<<PairBlocks<K>(A.n), threads, 0, stream>>>(A.n, X.x, X.xstride, reinterpret_cast<ScalarPair *>((PetscScalar *)x));
  PetscCallCUDA(cudaGetLastError());
  PetscCall(AIJTCMultColumnsGathered<K>(A, view, x, X, &done, stream));
  if (!done) PetscCall(SlicesByRows<K>(A, view, x, X, stream));
  if (!X.rows) PetscFunctionReturn(PETSC_SUCCESS);
  FromRowsKernel<K><<<PairBlocks<K>(A.m), threads, 0, stream>>>(A.m, X.rows, X.z, X.zstride);
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
PetscErrorCode Product(const AIJTCLayout &A, const ColumnsView<K> &X, cudaStream_t stream)
{
  const LayoutView view = AIJTCLayoutView(A);
  PetscBool        done = PETSC_FALSE;

  PetscFunctionBegin;
  if constexpr (K > 2) PetscCall(AIJTCMultColumnsSwept<K>(A, view, X, &done, stream));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (!A.common || A.nslices[AIJTC_ROWS] != AIJTCSlicesTotal(&A)) PetscCall(ByRows<K>(A, view, X, stream));
  else if (A.params.rrows == 1) PetscCall((ByColumns<1, K>(A, view, X, stream)));
  else if (A.params.rrows == 2) PetscCall((ByColumns<2, K>(A, view, X, stream)));
  else PetscCall((ByColumns<4, K>(A, view, X, stream)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Groups of K columns while there are K left; moves x, z and the number of columns on */
template <int K>
PetscErrorCode Products(const AIJTCLayout &A, PetscInt *columns, const PetscScalar **x, PetscCount xstride, PetscScalar **z, PetscCount zstride, cudaStream_t stream)
{
  PetscFunctionBegin;
  for (; *columns >= K; *columns -= K) {
    PetscCall(Product<K>(A, {*x, *z, xstride, zstride, nullptr}, stream));
    *x += K * xstride;
    *z += K * zstride;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has every column of X the alignment of bulk copies? */
bool IsAligned(const PetscScalar *x, PetscCount xstride)
{
  constexpr size_t align = 16;

  return reinterpret_cast<uintptr_t>(x) % align == 0 && (size_t)xstride * sizeof(*x) % align == 0;
}
} // namespace

PetscErrorCode AIJTCLayoutMatMult_CUDA(const AIJTCLayout *layout, PetscInt columns, const PetscScalar x[], PetscCount xstride, PetscScalar z[], PetscCount zstride, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutMatMult_Host()");
  if (!layout->m) PetscFunctionReturn(PETSC_SUCCESS);
  if (IsAligned(x, xstride) && AIJTCSweepBlocks(*layout)) {
    for (PetscInt c = 0; c < columns; c++) PetscCall(AIJTCLayoutMult_CUDA(layout, PETSC_FALSE, x + c * xstride, NULL, z + c * zstride, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Products<8>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscCall(Products<4>(*layout, &columns, &x, xstride, &z, zstride, stream));
  PetscCall(Products<2>(*layout, &columns, &x, xstride, &z, zstride, stream));
  if (columns) PetscCall(AIJTCLayoutMult_CUDA(layout, PETSC_FALSE, x, NULL, z, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
