/*
   What the kernels of conjugate gradients that multiply by way of windows share: tccgwindowed.cu, tccgwindowedsingle.cu, which say method, layout, memory traffic and references.
*/
#pragma once

#include <../src/ksp/resident/ksptcwindowed.cuh>
#include <type_traits>
#include "tccgstreamed.cuh"

namespace tccgwindowed
{
using namespace tccgstreamed;

constexpr int ROUNDS = KSPTC_WINDOWED_ROUNDS, GROUPS = KSPTC_WINDOWED_GROUPS;

/* x and, as far as there is room, the diagonal */
constexpr KSPTCWindowVectors VectorsOf(bool scaled)
{
  return {1, scaled};
}

using Windowed = KSPTCWindowedProblem<TCCGScalars, TCCGVectors>;

/* The kernel of iterations that carry A p, in the other file. scaled: with a diagonal preconditioner; valued: entries have values of their own */
const void *WindowedSingleKernel(bool scaled, bool valued);

struct Share : KSPTCWindowedShare {
  double *u;    /* what is multiplied, by place */
  bool    chip; /* is x of the rows in shared memory? */
  double *held, *device;

  __device__ __forceinline__ Share(const Windowed &P, double *memory, uint64_t *arrived) : KSPTCWindowedShare(P, memory, arrived), u(windows()), chip(holds(0)), held(vector(0)), device(Kept(P, 2)) { }
};

/* Of this thread's rows, in registers. Of numbers that are no rows all such vectors are 0 */
typedef double Rows[ROUNDS][GROUPS];

/* u <- what of() says of a row; x; and the diagonal, as far as it is in shared memory */
template <bool scaled, class Of>
__device__ __forceinline__ void LoadShared(const Windowed &P, const Share &own, Of of)
{
  own.forRows([&](int round, int, const KSPTCWindowRow &row) {
    if (!row.is) return;
    own.u[row.place]                                        = of(row.row);
    (own.chip ? own.held[row.number] : own.device[row.row]) = P.v.x[row.row];
    if (scaled && own.hasPart(round)) own.part()[row.number] = P.v.diagonal[row.row];
  });
}

__device__ __forceinline__ void StoreShared(const Windowed &P, const Share &own)
{
  own.forRows([&](int, int, const KSPTCWindowRow &row) {
    if (row.is) P.v.x[row.row] = own.chip ? own.held[row.number] : own.device[row.row];
  });
}

/* From device memory; in iterations ForRowsScaled() */
template <bool scaled>
__device__ __forceinline__ double ScaleOf(const Windowed &P, const KSPTCWindowRow &row)
{
  return scaled && row.is ? __ldg(P.v.diagonal + row.row) : 1.0;
}

/* load(round, group, row, scale) for the rows of some slices, then use(round, group, row) for them */
template <bool scaled, class Load, class Use>
__device__ __forceinline__ void ForRowsScaled(const Windowed &P, const Share &own, Load load, Use use)
{
  if constexpr (scaled) own.forRowsWithPart(P.v.diagonal, load, use);
  else own.forRows([&](int round, int g, const KSPTCWindowRow &row) { load(round, g, row, 1.0); }, use);
}

/* The sums of an iteration's second reduction */
template <bool scaled>
constexpr int TESTED = scaled ? TCCG_TESTED_SUMS : 1;

union Sums
{
  GridReduceShared<1, KSPTC_WINDOWED_THREADS>                one;
  GridReduceShared<TCCG_TESTED_SUMS, KSPTC_WINDOWED_THREADS> two;
};

__device__ __forceinline__ GridReduceShared<1, KSPTC_WINDOWED_THREADS> &SumsFor(Sums &shared, std::integral_constant<int, 1>)
{
  return shared.one;
}
__device__ __forceinline__ GridReduceShared<TCCG_TESTED_SUMS, KSPTC_WINDOWED_THREADS> &SumsFor(Sums &shared, std::integral_constant<int, TCCG_TESTED_SUMS>)
{
  return shared.two;
}

/* Adds r.r without preconditioner, else what TCCGAddTested() does */
template <bool scaled>
__device__ __forceinline__ void AddTested(const Windowed &P, double r, double z, double sum[])
{
  if constexpr (scaled) TCCGAddTested(P.chunk.test.norm, r, z, sum);
  else sum[0] = fma(r, r, sum[0]);
}

/* x <- x + a p, p(round, group, row) of this thread's rows */
template <class Direction>
__device__ __forceinline__ void Follow(const Share &own, double a, Direction p)
{
  Rows       x;
  const auto follow = [&](auto of) {
    own.forRows([&](int round, int g, const KSPTCWindowRow &row) { x[round][g] = row.is ? *of(row) : 0.0; },
                [&](int round, int g, const KSPTCWindowRow &row) {
                  if (row.is) *of(row) = fma(a, p(round, g, row), x[round][g]);
                });
  };

  if (own.chip) follow([&](const KSPTCWindowRow &row) { return own.held + row.number; });
  else follow([&](const KSPTCWindowRow &row) { return own.device + row.row; });
}

/* The second sums of an iteration; orders: memory too. Meanwhile x follows: before, in those warps whose time it takes to collect sums */
template <bool scaled, bool orders, class Derive, class X>
__device__ __forceinline__ bool SumAndFollow(const Windowed &P, Barrier &barrier, const double sum[], Sums &shared, PetscInt it, Derive derive, X follow)
{
  constexpr int K        = TESTED<scaled>;
  const bool    collects = threadIdx.x < K * KSPTC_LANES;

  if (collects) follow();
  return barrier.template sum<orders>(
    sum, SumsFor(shared, std::integral_constant<int, K>{}), (int)it,
    [&](uint64_t, int, int) {
      follow();
      return true;
    },
    derive);
}
} // namespace tccgwindowed
