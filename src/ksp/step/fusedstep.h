/*
   A fused step: one pass over a few vectors that updates some of them, adds up to 8 sums on the way, and ends with a little scalar arithmetic on the result.
   A step is written once, as a struct, and run by PetscTCBackend_Host (fusedstep_host.h) and PetscTCBackend_CUDA (fusedstep_cuda.cuh).

   A step S derives from PetscTCStep<Scalars, inputs, outputs, sums> and has

     in[], out[]                        its vectors; an output may be one of the inputs, as the very same pointer
     begin(Scalars &s)                  what the elements need of the scalars. Every thread of a GPU runs it on its own copy
     element(s, in[], out[], sum[])     one element of every vector: out[] from in[], sum[] added to. T is a double, or on the host a pack of them
     end(Scalars &s, const sum[])       the rest of the scalars, from the complete sums; run once
     descends                           last elements first, on a GPU

   A step whose pass has a product with blocks on the diagonal (PetscTCBlocks) derives from PetscTCBlockStep<Scalars, inputs, outputs, sums, withs> and has instead of element() two halves. Between them the
   elements of each block come together:

     first(s, in[], out[])              one element: out[] from in[], and returns that of y, which the blocks multiply
     second(s, y, z, with[], sum[])     one element of z, the product: sum[] added to; returns what is stored in z[]. with[]: further vectors, which no output is
     z[]                                where the product goes; may be one of in[]

   Scalars have a field `stop`: a step that finds it set leaves everything as it is, and a step whose begin() sets it leaves the vectors. A step with
   reads_scalars false runs whatever the scalars hold, one with heeds_stop false though they have stopped.
*/
#pragma once

#include <limits>
#include <../src/ksp/step/kspsteps.h>

template <class S, int Inputs, int Outputs, int Sums>
struct PetscTCStep {
  static_assert(Sums <= PETSCTC_MAX_DOTS, "more sums than a reduction has");
  using Scalars                       = S;
  static constexpr int  inputs        = Inputs;
  static constexpr int  outputs       = Outputs;
  static constexpr int  sums          = Sums;
  static constexpr bool reads_scalars = true;
  static constexpr bool heeds_stop    = true;
  static constexpr bool descends      = false;
  static constexpr bool blocked       = false;
  /* Sizes of arrays: one of no elements is not C++ */
  static constexpr int in_size  = Inputs > 0 ? Inputs : 1;
  static constexpr int out_size = Outputs > 0 ? Outputs : 1;
  static constexpr int sum_size = Sums > 0 ? Sums : 1;

  const PetscScalar *in[in_size];
  PetscScalar       *out[out_size];

  PETSCTC_HOST_DEVICE void begin(Scalars &) const { }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const Scalars &, const T[], T[], T[]) const
  {
  }
  PETSCTC_HOST_DEVICE void end(Scalars &, const PetscScalar[]) const { }
};

/* All scalars 0, whatever they are */
template <class S>
struct PetscTCResetStep : PetscTCStep<S, 0, 0, 0> {
  static constexpr bool reads_scalars = false;
};

template <class S, int Inputs, int Outputs, int Sums, int Withs>
struct PetscTCBlockStep : PetscTCStep<S, Inputs, Outputs, Sums> {
  static constexpr bool blocked   = true;
  static constexpr int  withs     = Withs;
  static constexpr int  with_size = Withs > 0 ? Withs : 1;

  const PetscScalar *with[with_size];
  PetscScalar       *z;
  PetscTCBlocks      blocks;
};

/* The block that a row is in */
struct PetscTCBlock {
  PetscInt first, size; /* rows */
};

PETSCTC_HOST_DEVICE PetscTCBlock PetscTCBlockOf(const PetscTCBlocks &blocks, PetscInt row)
{
  if (blocks.rows) return {row - blocks.rows[row] % 16, blocks.rows[row] / 16 + 1};
  return {row - row % blocks.size, blocks.size};
}

/* sum <- sum + x y. Fused on the GPU by name, not at the compiler's choice: then a sum has the same bits whatever else its step does */
template <class T, class X>
PETSCTC_HOST_DEVICE void PetscTCAddProduct(T &sum, const X &x, const T &y)
{
#if defined(__CUDA_ARCH__)
  sum = fma(x, y, sum);
#else
  sum += x * y;
#endif
}

/* x - x is 0 for every finite x and NaN for the others */
PETSCTC_HOST_DEVICE bool PetscTCIsInfOrNan(PetscReal x)
{
  return !(x - x == 0.0);
}

PETSCTC_HOST_DEVICE int PetscTCSign(PetscReal x)
{
  return PetscSign(x);
}

/* Was the step stopped, before it or by its begin()? */
template <class Step>
PETSCTC_HOST_DEVICE bool PetscTCStepStopped(const typename Step::Scalars &s)
{
  if constexpr (Step::reads_scalars && Step::heeds_stop) return s.stop != 0.0;
  else return (void)s, false;
}

/* Rows of which a step with n of them takes the mean */
static inline PetscReal PetscTCRowsAcross(PetscInt n, const PetscTCReduceWork *work)
{
  return work->across.rows > 0.0 ? work->across.rows : (PetscReal)n;
}

/* The bounds of the test, by the first norm's square */
template <class Scalars>
PETSCTC_HOST_DEVICE void PetscTCSetBounds(Scalars &s, PetscReal square, const PetscTCBounds &bounds)
{
  const PetscReal norm = PetscSqrtReal(PetscAbsReal(square));

  if (!bounds.sets) return;
  s.above = PetscMax(bounds.rtol * norm, bounds.atol);
  s.below = bounds.divtol * norm;
}

/* Positive, finite, and not denormal. On the GPU by the upper word alone: where all threads wait for scalars, a comparison of numbers takes as long as five of integers */
PETSCTC_HOST_DEVICE bool PetscTCIsPlain(PetscReal x)
{
#if defined(__CUDA_ARCH__)
  return (unsigned)__double2hiint(x) - 0x00100000u < 0x7fe00000u;
#else
  return x >= std::numeric_limits<PetscReal>::min() && x <= std::numeric_limits<PetscReal>::max();
#endif
}

/* The test with bounds that are not in the scalars any more */
template <class Scalars>
PETSCTC_HOST_DEVICE PetscTCTest PetscTCTestOf(const PetscTCTest &test, const Scalars &s)
{
  PetscTCTest now = test;

  if (test.given) {
    now.above = s.above;
    now.below = s.below;
    now.given = PETSC_FALSE;
  }
  return now;
}

/* The end of an iteration that the host looks at later. The comparisons are those of KSPConvergedDefault(): a bound that is NaN ends nothing */
template <class Scalars>
PETSCTC_HOST_DEVICE void PetscTCEndIteration(Scalars &s, PetscReal square, const PetscTCTest &test, Scalars *record)
{
  if (!record) return;
  if (test.norm != PETSCTC_NORM_NONE) {
    const PetscReal norm = PetscSqrtReal(PetscAbsReal(square));

    if (PetscTCIsInfOrNan(norm) || norm <= (test.given ? s.above : test.above) || norm >= (test.given ? s.below : test.below)) s.stop = PETSCTC_STOP_TEST;
  }
  *record = s;
}
