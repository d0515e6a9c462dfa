/*
   Method
     tccgresident.cuh without a preconditioner, for blocks of so many rows that not all vectors of theirs fit into shared memory: x and r, of which each thread needs its own elements alone, are in registers: 256 threads
     of 255, since 512 of 128 spill them. z is published of those rows alone that are ghosts, which here are less than half.

   Layout
     Vectors of a block in shared memory: of its rows w, p, and behind p that of the ghosts; z of the ghosts. A thread has the elements of rows thread + 256 j in x[j] and r[j], j < TCCG_REGISTER_ROWS

   Memory traffic
     Of a call and of the vectors as there. What the chip has no room for of the matrix is read in every iteration: 7-point 101^3, 72 MB of 10 bytes a place, 17 us at 4.3 TB/s

   References
     As there
*/
#include "tccgresident.cuh"
#include "tccgregister.cuh"

using namespace tccgresident;

namespace
{
constexpr int ROWS  = TCCG_REGISTER_ROWS;
constexpr int BATCH = 4; /* slots of slices in device memory in a set .. */
constexpr int DEPTH = 4; /* .. and sets in registers: with 8 warps as much is under way as memory needs */

struct RegisterShare : KSPTCShare<TCCG_REGISTER_THREADS> {
  using Kept = KSPTCKept<TCCGScalars>;

  double  *w, *p, *y;
  double   x[ROWS], r[ROWS];
  uint64_t shown; /* bit j: is the row in x[j] some block's ghost? */

  __device__ __forceinline__ RegisterShare(const KSPTCForm &A, double *memory) : KSPTCShare(A, TCCGTightVectorsOfBlock(), memory)
  {
    w = vector;
    p = w + rows;
    y = p + rows + ghosts + 1;
  }
  /* Calls at(j, number) for the rows of this thread */
  template <class At>
  __device__ __forceinline__ void forOwn(At at) const
  {
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      const int k = (int)threadIdx.x + j * threads;

      if (k < rows) at(j, k);
    }
  }
};

template <bool scaled>
__device__ __forceinline__ void Load(const Problem &P, RegisterShare &own)
{
  const bool first = P.chunk.first == 0;

  own.shown = 0;
  KSPTCLoadMatrix(P.A, own);
  own.forOwn([&](int j, int k) {
    const int row = KSPTCMatrixRow(P.A.order, own.first + k);

    own.x[j] = P.v.x[row];
    own.r[j] = P.v.r[row];
    own.p[k] = first ? 0.0 : P.v.p[row];
    own.shown |= (uint64_t)(__ldg(P.A.shown + (own.first + k) / 32) >> (own.first + k) % 32 & 1) << j;
  });
  if (threadIdx.x == 0) own.p[own.rows + own.ghosts] = 0.0;
  own.forMatrixGhosts(P.A, [&](int g, int row) {
    own.p[own.rows + g] = first ? 0.0 : P.v.p[row];
    own.y[g]            = P.v.z[row];
  });
}

template <bool scaled>
__device__ __forceinline__ void Store(const Problem &P, const RegisterShare &own)
{
  own.forOwn([&](int j, int k) {
    const int row = KSPTCMatrixRow(P.A.order, own.first + k);

    P.v.x[row] = own.x[j];
    P.v.r[row] = own.r[j];
    P.v.p[row] = own.p[k];
  });
}

__device__ __forceinline__ void Direct(const RegisterShare &own, double b, double)
{
  own.forOwn([&](int j, int k) { own.p[k] = KSPTCCombine(own.r[j], own.p[k], b); });
  own.forGhosts([&](int g) { own.p[own.rows + g] = KSPTCCombine(own.y[g], own.p[own.rows + g], b); });
}

__device__ __forceinline__ double Multiply(const Problem &P, const RegisterShare &own)
{
  double pw = 0.0;

  KSPTCMult<false, BATCH, DEPTH>(P.A, own, own.p, [&](int k, double w) {
    own.w[k] = w;
    pw       = fma(own.p[k], w, pw);
  });
  return pw;
}

template <Kind kind>
__device__ __forceinline__ void Update(const Problem &P, RegisterShare &own, double a, double, uint64_t tag, double sum[])
{
  own.forOwn([&](int j, int k) {
    own.x[j] = fma(a, own.p[k], own.x[j]);
    own.r[j] = fma(-a, own.w[k], own.r[j]);
    sum[0]   = fma(own.r[j], own.r[j], sum[0]);
    if (own.shown >> j & 1) PetscTCPublish(P.published + own.first + k, own.r[j], tag);
  });
}

template <bool tensor>
__global__ void __launch_bounds__(TCCG_REGISTER_THREADS, 1) RegisterKernel(const __grid_constant__ Problem P)
{
  extern __shared__ __align__(16) double memory[];
  RegisterShare                          own(P.A, memory);

  Iterate<tensor, PLAIN>(P, own);
}
} // namespace

const void *const TCCGRegisterKernels[2] = {(const void *)RegisterKernel<false>, (const void *)RegisterKernel<true>};
