/*
   Method
     Z = A X for K columns, of a gathered layout: a block of threads for each block of slices, as with one vector (mult_gather.cu). It copies what its list has of X, by rows, into shared memory, without registers in between; then a lane has a row, and reads for each entry the numbers that lie
     there side by side, a pair at a time. Pairs are taken in an order that differs among neighbouring lanes: otherwise all lanes would ask the same banks.

     Where the mean list leaves room for two blocks on a multiprocessor, one copies while the other adds; blocks whose lists are longer take K / 2 columns after the other, and read their slices again. Else one block of twice as many warps has all, or, where the longest list has no room, entries read L2 (spmm.cu).
     What is stored of a warp's first slots is on its way while X is copied. One code reads all forms of values, as in spmm.cuh.

     Each row's entries are added in CSR order: each column has the bits of the product with a vector.

   Layout
     include/petsctc/private/aijtclayout.h; X by rows, K numbers each; shared memory: for each column of a list K numbers, or K / 2, and as many zeros

   Memory traffic
     The layout once, but for slots' heads where slices are spread; 4 + 8 K bytes a column of a list, from L2; 8 K bytes a row of Z; the copies of X and Z (spmm.cuh). A million tetrahedra nodes in RCM numbering, K = 8: 290 MB, 68 us at 4.3 TB/s, of which 200 MB of X cross from L2 instead of 960; and 64 us for the
     copies. It takes 150 us and those 64: a slot's numbers are 33 wavefronts of shared memory, 70 us of all multiprocessors, and what else a block waits for is hidden by one other block

   References
     Im, Yelick, Vuduc, SPARSITY: optimization framework for sparse matrix kernels, IJHPCA 18(1), 2004 (cache blocking);
     Yang, Buluc, Owens, Design principles for sparse matrix multiplication on the GPU, Euro-Par 2018
*/
#include <cuda_pipeline_primitives.h>
#include "spmm.cuh"

namespace
{
constexpr int MOST_WARPS = 16; /* of a block that has a multiprocessor for itself; half of them where there are two: 128 registers of a thread, both ways */
constexpr int SLOTS      = 8;  /* of a slice under way */

/* What a lane has of SLOTS slots */
class Slots {
public:
  /* Slots t, t + 1, ..: those behind the last are that once more, and nobody's entries. Which form places and values have is asked once for all of them */
  __device__ __forceinline__ void request(const SliceView &s, int t, int lane, int remainder)
  {
    if (s.form & (AIJTC_FORM_FULL | AIJTC_FORM_SPREAD)) requestPlaced<false>(s, t, lane, remainder);
    else requestPlaced<true>(s, t, lane, remainder);
  }
  /* When they are there: this lane's entry in the u-th. Where it has none that is -0 times what is at `none`, which shall be 0 and changes no sum, not even one that is -0 */
  template <bool AS_STORED>
  __device__ __forceinline__ PetscScalar value(const SliceView &s, int u) const
  {
    if (!is(u)) return (PetscScalar)-0.0;
    return AS_STORED ? (PetscScalar)__longlong_as_double((long long)raw_[u]) : ValueOfAnyForm(s, raw_[u]);
  }
  __device__ __forceinline__ int place(int u, int none) const { return is(u) ? (int)place_[u] : none; }

private:
  __device__ __forceinline__ bool is(int u) const { return is_ >> u & 1; }

  template <bool PACKED>
  __device__ __forceinline__ void requestPlaced(const SliceView &s, int t, int lane, int remainder)
  {
    unsigned mask[SLOTS];
    int      at[SLOTS];

    is_ = 0;
#pragma unroll
    for (int u = 0; u < SLOTS; u++) mask[u] = AIJTC_ALL_LANES;
    if (!(s.form & AIJTC_FORM_FULL)) {
#pragma unroll
      for (int u = 0; u < SLOTS; u++) mask[u] = __ldg(s.mask + min(t + u, s.slots - 1));
    }
#pragma unroll
    for (int u = 0; u < SLOTS; u++) {
      const int slot = min(t + u, s.slots - 1);

      at[u] = AIJTC_LANES * slot + lane;
      if (PACKED) at[u] = (int)__ldg(&s.slot[slot].where) + __popc(mask[u] & ((1u << lane) - 1));
      if (t + u < s.slots) is_ |= (mask[u] >> lane & 1) << u;
      if (!PACKED || is(u)) place_[u] = LoadDelta<2>(s, at[u]);
    }
    const auto load = [&](auto of) {
#pragma unroll
      for (int u = 0; u < SLOTS; u++)
        if (!PACKED || is(u)) raw_[u] = of(u);
    };

    if (s.form & AIJTC_FORM_CONST) load([&](int u) { return (uint64_t)__double_as_longlong(ConstValues::load(s, min(t + u, s.slots - 1) * s.period + remainder)); });
    else if ((s.form >> AIJTC_FORM_VALUE & 3) == AIJTC_VALUE_DOUBLE) load([&](int u) { return (uint64_t)__double_as_longlong(DoubleValues::load(s, at[u])); });
    else load([&](int u) { return LoadRawOfAnyForm(s, at[u]); });
  }

  unsigned is_; /* a bit for each: has this lane an entry? */
  uint32_t place_[SLOTS];
  uint64_t raw_[SLOTS];
};

/* C sums of a row */
template <int C>
class RowColumns {
public:
  static constexpr int P = C / 2;

  /* none: the place of zeros */
  __device__ __forceinline__ RowColumns(const ScalarPair *staged, int none, int lane) : staged_(staged), none_(none), lane_(lane) { }

  __device__ __forceinline__ void add(const SliceView &s, const Slots &slots)
  {
    if ((s.form & AIJTC_FORM_CONST) || (s.form >> AIJTC_FORM_VALUE & 3) == AIJTC_VALUE_DOUBLE) addValues<true>(s, slots);
    else addValues<false>(s, slots);
  }
  /* They are those of the pairs first, first + 1, .. */
  template <int K>
  __device__ __forceinline__ void store(const ColumnsView<K> &X, int first, int row) const
  {
    if (row < 0) return;
#pragma unroll
    for (int k = 0; k < P; k++) {
      const int at = first + pair(k);

      if (X.rows) X.rows[(PetscCount)(K / 2) * row + at] = sum_[k];
      else {
        X.z[row + 2 * at * X.zstride]       = sum_[k].a;
        X.z[row + (2 * at + 1) * X.zstride] = sum_[k].b;
      }
    }
  }

private:
  /* Without branches where values are what they stand for, so that the numbers of one slot are on their way while those of another are added */
  template <bool AS_STORED>
  __device__ __forceinline__ void addValues(const SliceView &s, const Slots &slots)
  {
#pragma unroll
    for (int u = 0; u < SLOTS; u++) {
      const PetscScalar a    = slots.value<AS_STORED>(s, u);
      const int         from = P * slots.place(u, none_);

#pragma unroll
      for (int k = 0; k < P; k++) {
        const ScalarPair b = staged_[from + pair(k)];

        sum_[k].a = fma(a, b.a, sum_[k].a);
        sum_[k].b = fma(a, b.b, sum_[k].b);
      }
    }
  }
  /* The one that this lane takes as the k-th */
  __device__ __forceinline__ int pair(int k) const
  {
    return lane_ % P ^ k;
  }

  const ScalarPair *staged_;
  int               none_, lane_;
  ScalarPair        sum_[P] = {};
};

/* The pairs first, .., first + P - 1 of the rows of X, K / 2 pairs each, in a list; by whole warps: a lane reads a column for 32 and passes it on to those that copy it. To be waited for */
template <int K, int P>
__device__ __forceinline__ void Stage(const PetscInt *list, int length, const ScalarPair *rows, int first, ScalarPair *staged)
{
  constexpr int BATCH = 4, EACH = AIJTC_LANES / P;
  const int     lane = threadIdx.x % AIJTC_LANES, threads = (int)blockDim.x;

#pragma unroll 1
  for (int from = (int)threadIdx.x - lane; from < length; from += BATCH * threads) {
    int column[BATCH];

#pragma unroll
    for (int n = 0; n < BATCH; n++) column[n] = from + n * threads + lane < length ? __ldg(list + from + n * threads + lane) : -1;
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
#pragma unroll
      for (int i = 0; i < P; i++) {
        const int at = EACH * i + lane / P, of = __shfl_sync(AIJTC_ALL_LANES, column[n], at);

        if (of >= 0) __pipeline_memcpy_async(staged + P * (from + n * threads + at) + lane % P, rows + ((PetscCount)(K / 2) * of + first + lane % P), sizeof(ScalarPair));
      }
    }
  }
  __pipeline_commit();
}

/* What a block of threads does, C columns after the other */
template <int K, int C>
__device__ __forceinline__ void AddBlock(const LayoutView &A, PetscInt slices, const ScalarPair *x, const ColumnsView<K> &X, ScalarPair *staged)
{
  constexpr int  P    = C / 2;
  const int      lane = threadIdx.x % AIJTC_LANES, warp = threadIdx.x / AIJTC_LANES, warps = blockDim.x / AIJTC_LANES;
  const PetscInt begin = (PetscInt)blockIdx.x * A.gather, end = min(slices, begin + A.gather), list = __ldg(A.list_start + blockIdx.x);
  const int      length = (int)(__ldg(A.list_start + blockIdx.x + 1) - list);
  Slots          slots;

  if (threadIdx.x < P) staged[P * length + threadIdx.x] = {0.0, 0.0};
#pragma unroll 1
  for (int first = 0; first < K / 2; first += P) {
    bool staging = true;

    if (first) __syncthreads(); /* all have added */
    Stage<K, P>(A.list + list, length, x, first, staged);
#pragma unroll 1
    for (PetscInt at = begin + warp; at < end || staging; at += warps) {
      const bool      is   = at < end;
      const PetscInt  mine = is ? at : begin;
      const SliceView s    = LoadSlice<1>(A, mine, A.bs);
      const int       row = is ? __ldg(A.rid + (AIJTC_LANES * mine + lane)) : -1, rest = row < 0 ? 0 : (int)((unsigned)row % (unsigned)A.bs);
      RowColumns<C>   sums(staged, length, lane);

      if (s.slots) slots.request(s, 0, lane, rest);
      if (staging) {
        __pipeline_wait_prior(0);
        __syncthreads();
        staging = false;
      }
      if (!is) break;
#pragma unroll 1
      for (int t = 0; t < s.slots; t += SLOTS) {
        if (t) slots.request(s, t, lane, rest);
        sums.add(s, slots);
      }
      sums.store(X, first, row);
    }
  }
}

/* How many columns at once where not all K are */
template <int K>
constexpr int LESS = K > 2 ? K / 2 : K;

/* Bytes for a list of this length, C columns at once */
template <int C>
__host__ __device__ inline size_t BytesFor(PetscInt length)
{
  return C * sizeof(PetscScalar) * ((size_t)length + 1);
}

/* x: X by rows. bytes: of shared memory */
template <int K>
__global__ void __launch_bounds__(MOST_WARPS *AIJTC_LANES, 1) GatherColumnsKernel(const __grid_constant__ LayoutView A, PetscInt slices, size_t bytes, const ScalarPair *__restrict__ x, const __grid_constant__ ColumnsView<K> X)
{
  extern __shared__ __align__(16) ScalarPair staged[];

  if (BytesFor<K>(__ldg(A.list_start + blockIdx.x + 1) - __ldg(A.list_start + blockIdx.x)) <= bytes) AddBlock<K, K>(A, slices, x, X, staged);
  else AddBlock<K, LESS<K>>(A, slices, x, X, staged);
}
} // namespace

template <int K>
PetscErrorCode AIJTCMultColumnsGathered(const AIJTCLayout &A, const LayoutView &view, const PetscScalar *x, const ColumnsView<K> &X, PetscBool *done, cudaStream_t stream)
{
  const size_t all = A.params.gather ? BytesFor<K>(A.longest_list) : 0, least = BytesFor<LESS<K>>(A.longest_list);
  int          device, processor, reserved, most;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!all) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device));
  PetscCallCUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const size_t   half  = (size_t)(processor / 2 - reserved);
  const bool     two   = least <= half && BytesFor<K>(A.nlist / A.nblocks) <= half;
  const size_t   bytes = two ? PetscMin(all, half) : all;
  const unsigned warps = (unsigned)PetscMin(A.params.gather, two ? MOST_WARPS / 2 : MOST_WARPS);

  if (bytes > (size_t)most) PetscFunctionReturn(PETSC_SUCCESS); /* halves in one block were slower than entries that read L2 */
  PetscCallCUDA(cudaFuncSetAttribute(GatherColumnsKernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  GatherColumnsKernel<K><<<(unsigned)A.nblocks, warps * AIJTC_LANES, bytes, stream>>>(view, A.nslices[AIJTC_ROWS], bytes, reinterpret_cast<const ScalarPair *>(x), X);
  PetscCallCUDA(cudaGetLastError());
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template PetscErrorCode AIJTCMultColumnsGathered<8>(const AIJTCLayout &, const LayoutView &, const PetscScalar *, const ColumnsView<8> &, PetscBool *, cudaStream_t);
template PetscErrorCode AIJTCMultColumnsGathered<4>(const AIJTCLayout &, const LayoutView &, const PetscScalar *, const ColumnsView<4> &, PetscBool *, cudaStream_t);
template PetscErrorCode AIJTCMultColumnsGathered<2>(const AIJTCLayout &, const LayoutView &, const PetscScalar *, const ColumnsView<2> &, PetscBool *, cudaStream_t);
