/* Iterations of BiCGSTAB in one call, the matrix on the chip or read from its layout: chunks change no bit, results are those of the method in long double, a solve stops where its test says or a sum is zero */
#include <../src/ksp/tcbcgs/tcbcgsresident.h>
#include "resident.h"

namespace
{
struct BCGS {
  using Steps   = TCBCGSSteps;
  using Work    = TCBCGSWork;
  using Scalars = TCBCGSScalars;
  using Vectors = TCBCGSVectors;
  using Matrix  = HeldMatrix<BCGS>;

  static constexpr bool        symmetric = false;
  static constexpr PetscTCNorm norm      = PETSCTC_NORM_RR;
  static constexpr int         carried   = 2;
  static constexpr unsigned    scratch   = 3u << 2; /* s, t */

  static const std::vector<System> &systems() { return Systems(symmetric); }
  static std::vector<Jacobi>        sides() { return {Jacobi::None, Jacobi::Left, Jacobi::Right}; }
  static PetscReal                  square(const Scalars &s) { return s.rr; }
  static KSPTCVectors               vectors(bool scaled) { return TCBCGSVectorsOfBlock(scaled, false, false); }
  static KSPTCChip                  chip(PETSC_UNUSED bool cuda)
  {
    KSPTCChip chip = {0, 0};

#if PETSCTC_HAVE_CUDA
    if (cuda) {
      EXPECT_EQ(KSPTCChipGet_CUDA(&chip), PETSC_SUCCESS);
      return chip;
    }
#endif
    EXPECT_EQ(KSPTCChipGet_Host(&chip), PETSC_SUCCESS);
    return chip;
  }
  static const Steps *steps(PETSC_UNUSED bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCBCGSSteps_CUDA;
#endif
    return &TCBCGSSteps_Host;
  }
  static PetscErrorCode create(PETSC_UNUSED bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSResidentCreate_CUDA(form, scaled, work, can);
#endif
    return KSPTCResidentCreate_Host(form, scaled, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const KSPTCForm *form, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSResident_CUDA(form, chunk, v, steps, work, refused, nullptr);
#endif
    return TCBCGSResident_Host(form, chunk, v, steps, work, refused, nullptr);
  }
  static Vector residual(const Vector &b, const Vector &d, Jacobi side)
  {
    return side == Jacobi::Left ? Product(d, b) : b;
  }
  /* p, v, s, t, rp */
  static std::vector<Vector> work(const Vector &b, const Vector &, Jacobi)
  {
    return std::vector<Vector>(5, Vector(b.size(), NAN));
  }
  static Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi side)
  {
    return {x, r, work[0], work[1], work[2], work[3], work[4], d, (PetscBool)(side == Jacobi::Right), PETSC_FALSE};
  }
  static PetscErrorCode start(const Steps *steps, PetscInt n, const Vectors &v, Work *w)
  {
    return steps->start(n, v.r, const_cast<PetscScalar *>(v.rp), v.p, v.v, w, nullptr);
  }
  template <class Mult>
  static void step(const Steps &steps, const Scalars &s, PetscInt n, const Vectors &v, bool, Work *w, Mult mult)
  {
    const bool               left = v.diagonal && !v.right;
    const PetscScalar *const rp   = v.single ? v.rp : nullptr;

    if (s.advanced == 0.0) { ASSERT_EQ(steps.direction(n, v.r, v.v, v.p, w, nullptr), PETSC_SUCCESS); }
    mult(v.p, left ? v.t : v.v, v.right);
    if (left) {
      ASSERT_EQ(steps.breakdown_scaled(n, v.t, v.diagonal, v.rp, v.v, w, nullptr), PETSC_SUCCESS);
    } else {
      ASSERT_EQ(steps.breakdown(n, v.v, v.rp, w, nullptr), PETSC_SUCCESS);
    }
    ASSERT_EQ(steps.half(n, v.r, v.v, v.s, w, nullptr), PETSC_SUCCESS);
    mult(v.s, left ? v.r : v.t, v.right);
    if (left) {
      ASSERT_EQ(steps.stabilize_scaled(n, v.r, v.diagonal, v.s, rp, v.t, w, nullptr), PETSC_SUCCESS);
    } else {
      ASSERT_EQ(steps.stabilize(n, v.t, v.s, rp, w, nullptr), PETSC_SUCCESS);
    }
    if (v.single) {
      ASSERT_EQ(steps.advance(n, v.s, v.t, v.v, v.x, v.r, v.p, w, nullptr), PETSC_SUCCESS);
    } else {
      ASSERT_EQ(steps.update(n, v.p, v.s, v.t, v.rp, v.x, v.r, w, nullptr), PETSC_SUCCESS);
    }
  }
};

struct StreamedBCGS : BCGS {
  using Matrix = StreamedMatrix;

  static PetscErrorCode create(PETSC_UNUSED bool cuda, const AIJTCLayout *layout, PetscBool, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSStreamedCreate_CUDA(layout, work, can);
#endif
    return KSPTCStreamedCreate_Host(layout, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const AIJTCLayout *layout, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSStreamed_CUDA(layout, chunk, v, steps, work, refused, nullptr);
#endif
    return TCBCGSStreamed_Host(layout, chunk, v, steps, work, refused, nullptr);
  }
};

/* With a reduction less. What p and v are where a solve has stopped depends on whether that was found with a call's last iteration: of those in between x tells */
template <class Classic>
struct Single : Classic {
  static constexpr int carried = 0;

  static PetscErrorCode create(PETSC_UNUSED bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSSingleCreate_CUDA(form, scaled, work, can);
#endif
    return KSPTCResidentCreate_Host(form, scaled, work, can);
  }
  static TCBCGSVectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi side)
  {
    TCBCGSVectors v = Classic::bind(x, r, d, work, side);

    v.single = PETSC_TRUE;
    return v;
  }
};

/* With thin blocks, of which the host's twin knows nothing */
struct Thin : BCGS {
  using Matrix = HeldMatrix<Thin>;

  static std::vector<Jacobi> sides() { return {Jacobi::None, Jacobi::Left}; }
  static KSPTCVectors        vectors(bool) { return TCBCGSThinVectorsOfBlock(); }
};

/* BiCGSTAB as it is in the books, in long double, of D A, A D or A: alpha_k, omega_k, r.rp and r.r after iteration k + 1, and x after the last */
struct Reference {
  using Long = std::vector<long double>;
  Long alpha, omega, rho, rr, x;

  static long double Dot(const Long &a, const Long &b)
  {
    long double sum = 0.0L;

    for (size_t k = 0; k < a.size(); k++) sum += a[k] * b[k];
    return sum;
  }
  static Long Mult(const Csr &A, const Vector &d, Jacobi side, const Long &y)
  {
    Long product(A.m);

    for (PetscInt r = 0; r < A.m; r++) {
      for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) product[r] += (long double)A.a[k] * (side == Jacobi::Right ? d[A.j[k]] : 1.0L) * y[A.j[k]];
      if (side == Jacobi::Left) product[r] *= d[r];
    }
    return product;
  }
  Reference(const Csr &A, const Vector &b, Jacobi side, int its) : x(A.m)
  {
    const Vector d = Diagonal(A);
    Long         r(A.m), p;

    for (PetscInt k = 0; k < A.m; k++) r[k] = side == Jacobi::Left ? (PetscScalar)(d[k] * b[k]) : b[k];
    const Long  rp  = r;
    long double now = Dot(r, rp);

    p = r;
    for (int it = 0; it < its; it++) {
      const Long v = Mult(A, d, side, p);

      alpha.push_back(now / Dot(v, rp));
      for (PetscInt k = 0; k < A.m; k++) r[k] -= alpha.back() * v[k];
      const Long t = Mult(A, d, side, r);

      omega.push_back(Dot(t, r) / Dot(t, t));
      for (PetscInt k = 0; k < A.m; k++) {
        x[k] += alpha.back() * p[k] + omega.back() * r[k];
        r[k] -= omega.back() * t[k];
      }
      rho.push_back(Dot(r, rp));
      rr.push_back(Dot(r, r));
      for (PetscInt k = 0; k < A.m; k++) p[k] = r[k] + rho.back() / now * (alpha.back() / omega.back()) * (p[k] - omega.back() * v[k]);
      now = rho.back();
    }
  }
};

/* | x - y | / | y | */
double Distance(const Vector &x, const std::vector<long double> &y)
{
  long double difference = 0.0L, square = 0.0L;

  for (size_t k = 0; k < y.size(); k++) {
    difference += (x[k] - y[k]) * (x[k] - y[k]);
    square += y[k] * y[k];
  }
  return (double)std::sqrt(difference / square);
}

class BCGSResident : public ResidentTest { };
class BCGSStreamed : public ResidentTest { };
class BCGSResidentSingle : public ResidentTest { };
class BCGSThin : public ResidentTest { };
#define BCGS_TEST(Test) \
  template <class Method> \
  void Try##Test(Backend backend); \
  TEST_P(BCGSResidentSingle, Test) \
  { \
    Try##Test<Single<BCGS>>(GetParam()); \
  } \
  TEST_P(BCGSThin, Test) \
  { \
    Try##Test<Thin>(GetParam()); \
  } \
  RESIDENT_TEST(BCGSResident, BCGS, BCGSStreamed, StreamedBCGS, Test)

TEST_P(BCGSResident, PartsChangeNoBit)
{
  ExpectPartsChangeNoBit<BCGS>(GetParam());
}

TEST_P(BCGSThin, PartsChangeNoBit)
{
  ExpectPartsChangeNoBit<Thin>(GetParam());
}

TEST_P(BCGSResidentSingle, PartsChangeNoBit)
{
  ExpectPartsChangeNoBit<Single<BCGS>>(GetParam());
}

BCGS_TEST(ChunksChangeNoBit)
{
  ExpectChunksChangeNoBit<Method>(backend);
}

BCGS_TEST(RunsAreAlike)
{
  ExpectRunsAlike<Method>(backend);
}

BCGS_TEST(GivesUp)
{
  ExpectGivesUpAtOnceAndLate<Method>(backend);
}

BCGS_TEST(StepsGoOn)
{
  ExpectStepsGoOn<Method>(backend);
}

TEST_P(BCGSStreamed, GivesUpWithVectorsInMemory)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  ExpectGivesUpWithVectorsInMemory<StreamedBCGS>(GetParam());
}

BCGS_TEST(StopsWhereTheTestSays)
{
  ExpectStopsWhereTheTestSays<Method>(backend, 10);
}

BCGS_TEST(TestsBeginLate)
{
  ExpectTestsBeginLate<Method>(backend);
}

/* Errors of the residual are rounding errors of its first size: relative to what it has become they grow as it decreases. Where it is nothing but errors, comparison ends */
template <class Method>
void ExpectIterates(Backend backend, const System &system, Jacobi side)
{
  constexpr int    its      = 6;
  constexpr double rounding = 1000 * PETSC_MACHINE_EPSILON;

  Solve<Method>   computed(backend, system, side);
  const Reference expected(system.A, computed.B(), side, its);
  const double    start = computed.Current().rr;
  int             it    = 0;

  while (it < its && expected.rr[it] >= reduction * reduction * start) it++;
  if (!it) return;
  ASSERT_NO_FATAL_FAILURE(computed.Run(0, it));
  for (int k = 0; k < it; k++) {
    const TCBCGSScalars c         = computed.Record(k + 1);
    const double        tolerance = rounding * std::sqrt(start / (double)expected.rr[k]);

    ASSERT_EQ(c.stop, PETSCTC_STOP_NONE);
    ASSERT_NEAR(c.alpha / (double)expected.alpha[k], 1.0, tolerance) << "iteration " << k + 1;
    ASSERT_NEAR(c.omega / (double)expected.omega[k], 1.0, tolerance) << "iteration " << k + 1;
    ASSERT_NEAR(c.rr / (double)expected.rr[k], 1.0, tolerance) << "iteration " << k + 1;
    ASSERT_NEAR((c.rhonext - (double)expected.rho[k]) / start, 0.0, rounding) << "iteration " << k + 1;
  }
  ASSERT_LE(Distance(computed.X(), Reference(system.A, computed.B(), side, it).x), rounding);
}

BCGS_TEST(IteratesAreThoseOfTheMethod)
{
  ForAll<Method>([backend](const System &system, Jacobi side) { ExpectIterates<Method>(backend, system, side); });
}

/* Vectors that the chip has no room for */
TEST_P(BCGSStreamed, VectorsInDeviceMemory)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  if (SmallSystems()) GTEST_SKIP() << "short";
  for (const System &system : LargeSystems()) {
    for (Jacobi side : StreamedBCGS::sides()) ASSERT_NO_FATAL_FAILURE(ExpectIterates<StreamedBCGS>(GetParam(), system, side)) << system.name;
  }
}

/* What is multiplied by comes to shared memory if all slices of a layout let it, and no preconditioner stands on the right: else it is gathered */
TEST_P(BCGSStreamed, Windows)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  for (const WindowedSystem &of : WindowedSystems()) {
    for (Jacobi side : StreamedBCGS::sides()) {
      SCOPED_TRACE(of.system.name);
      Solve<StreamedBCGS> whole(GetParam(), of.system, side), parts(GetParam(), of.system, side);

      ASSERT_NO_FATAL_FAILURE(ExpectIterates<StreamedBCGS>(GetParam(), of.system, side));
      ASSERT_NO_FATAL_FAILURE(whole.Run(0, 6));
      ASSERT_NO_FATAL_FAILURE(parts.Run(0, 1));
      ASSERT_NO_FATAL_FAILURE(parts.Run(1, 6));
      ASSERT_EQ((bool)whole.ResidentWork().windowed, of.windowed && side != Jacobi::Right);
      ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, parts));
    }
  }
}

/* Blocks of a small dense matrix, for the right-hand side 1 with which all numbers below are dyadic: sums have no rounding error, in whatever order */
System OfBlocks(const std::vector<Vector> &block)
{
  const PetscInt size   = (PetscInt)block.size();
  System         system = {"blocks", FromColumns(5000 * size, [size](PetscInt r) { return Range(r / size * size, r / size * size + size); })};

  for (PetscInt r = 0; r < system.A.m; r++) system.A.a.insert(system.A.a.end(), block[r % size].begin(), block[r % size].end());
  return system;
}

void ExpectRepeats(const char *name, const Vector &v, const Vector &part)
{
  for (size_t k = 0; k < v.size(); k++) ASSERT_EQ(v[k], part[k % part.size()]) << name << ", row " << k;
}

/* Stops within the first iteration: x stays, and a further call changes nothing */
template <class Method>
void ExpectStops(PetscTCStop stop, Solve<Method> &solve)
{
  ASSERT_NO_FATAL_FAILURE(solve.Run(0, 10));
  const TCBCGSScalars s = solve.Current();

  ASSERT_EQ(s.stop, stop);
  ASSERT_EQ(solve.Record(1).stop, PETSCTC_STOP_UNWRITTEN);
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("x", solve.X(), {0.0}));
  ASSERT_NO_FATAL_FAILURE(solve.Run(0, 10));
  ASSERT_TRUE(SameScalars(s, solve.Current()));
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("x", solve.X(), {0.0}));
}

BCGS_TEST(ProductIsNaN)
{
  System nan = Systems(false)[0];

  nan.A.a[1000] = NAN;
  Solve<Method> solve(backend, nan, Jacobi::None, Vector(nan.A.m, 1.0));

  ASSERT_NO_FATAL_FAILURE(ExpectStops(PETSCTC_STOP_D1_NAN, solve));
}

/* A is skew: v.rp = 0 */
BCGS_TEST(BreaksDown)
{
  const System  system = OfBlocks({
     {0.0,  1.0},
     {-1.0, 0.0}
  });
  Solve<Method> solve(backend, system, Jacobi::None, Vector(system.A.m, 1.0));

  ASSERT_NO_FATAL_FAILURE(ExpectStops(PETSCTC_STOP_D1_ZERO, solve));
  ASSERT_EQ(solve.Current().d1, 0.0);
}

/* v = (0, 2), alpha = 1, s = (1, -1), A s = 0: the host wants s and p */
BCGS_TEST(FindsNullSpace)
{
  const System  system = OfBlocks({
     {0.0, 0.0},
     {1.0, 1.0}
  });
  Solve<Method> solve(backend, system, Jacobi::None, Vector(system.A.m, 1.0));

  ASSERT_NO_FATAL_FAILURE(ExpectStops(PETSCTC_STOP_D2_ZERO, solve));
  ASSERT_EQ(solve.Current().alpha, 1.0);
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("p", solve.Other(0), {1.0}));
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("v", solve.Other(1), {0.0, 2.0}));
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("s", solve.Other(2), {1.0, -1.0}));
}

/* The identity: s = 0, and x + alpha p, which the host makes, the solution */
BCGS_TEST(FindsSolutionByHalf)
{
  const System  system = OfBlocks({{1.0}});
  Solve<Method> solve(backend, system, Jacobi::None, Vector(system.A.m, 1.0));

  ASSERT_NO_FATAL_FAILURE(ExpectStops(PETSCTC_STOP_D2_ZERO, solve));
  ASSERT_EQ(solve.Current().alpha, 1.0);
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("p", solve.Other(0), {1.0}));
  ASSERT_NO_FATAL_FAILURE(ExpectRepeats("s", solve.Other(2), {0.0}));
}

/* alpha = 1, omega = 1/2, r = (-1/2, -1/2, 1), to which rp = 1 is orthogonal: rho is 0 in the second iteration, which ends the solve at its end, however calls are cut */
BCGS_TEST(StopsForRho)
{
  const System system = OfBlocks({
    {0.0, 0.0,  1.0 },
    {1.0, 1.0,  0.0 },
    {2.0, -1.0, -1.0}
  });

  for (PetscInt cut : {10, 1, 2}) {
    Solve<Method> solve(backend, system, Jacobi::None, Vector(system.A.m, 1.0));

    ASSERT_NO_FATAL_FAILURE(solve.Run(0, cut));
    ASSERT_EQ(solve.Record(1).stop, PETSCTC_STOP_NONE);
    ASSERT_EQ(solve.Record(1).alpha, 1.0);
    ASSERT_EQ(solve.Record(1).omega, 0.5);
    ASSERT_EQ(solve.Record(1).rhonext, 0.0);
    ASSERT_EQ(solve.Record(1).rr, 0.5 * system.A.m);
    if (cut == 1) { ASSERT_NO_FATAL_FAILURE(ExpectRepeats("r", solve.R(), {-0.5, -0.5, 1.0})); }
    if (cut != 10) { ASSERT_NO_FATAL_FAILURE(solve.Run(cut, 10)); }
    ASSERT_EQ(solve.Record(2).stop, PETSCTC_STOP_RHO_ZERO);
    ASSERT_EQ(solve.Record(3).stop, PETSCTC_STOP_UNWRITTEN);
    ASSERT_EQ(solve.Current().stop, PETSCTC_STOP_RHO_ZERO);
    ASSERT_EQ(solve.Current().alpha, 0.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, BCGSThin, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, BCGSResidentSingle, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, BCGSStreamed, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, BCGSResident, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
} // namespace
