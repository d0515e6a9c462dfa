/* Iterations of conjugate gradients in one call, the matrix on the chip or read from its layout, classic or with one reduction: chunks change no bit of any but the last, results are those of the method in long double, a
   solve stops where its test says */
#include <../src/ksp/tccg/tccgresident.h>
#include <../src/ksp/tccg/tccgsteps.h>
#include "../precision.h"
#include "resident.h"

namespace
{
struct CG {
  using Steps   = TCCGSteps;
  using Work    = TCCGWork;
  using Scalars = TCCGScalars;
  using Vectors = TCCGVectors;
  using Matrix  = HeldMatrix<CG>;

  static constexpr bool        symmetric = true;
  static constexpr PetscTCNorm norm      = PETSCTC_NORM_ZZ;
  static constexpr int         carried   = 1;
  static constexpr unsigned    scratch   = 1u << 1; /* w */
  static constexpr bool        carries   = false;   /* A p */

  static const std::vector<System> &systems() { return Systems(symmetric); }
  static std::vector<Jacobi>        sides() { return {Jacobi::None, Jacobi::Left}; }
  static PetscReal                  square(const Scalars &s) { return s.zz; }
  static KSPTCVectors               vectors(bool scaled) { return TCCGVectorsOfBlock(scaled); }
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
    if (cuda) return &TCCGSteps_CUDA;
#endif
    return &TCCGSteps_Host;
  }
  static PetscErrorCode create(PETSC_UNUSED bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGResidentCreate_CUDA(form, scaled, work, can);
#endif
    return KSPTCResidentCreate_Host(form, scaled, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const KSPTCForm *form, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGResident_CUDA(form, chunk, v, steps, work, refused, nullptr);
#endif
    return TCCGResident_Host(form, chunk, v, steps, work, refused, nullptr);
  }
  static Vector residual(const Vector &b, const Vector &, Jacobi)
  {
    return b;
  }
  /* p, w, z */
  static std::vector<Vector> work(const Vector &b, const Vector &d, Jacobi)
  {
    return {Vector(b.size(), NAN), Vector(b.size(), NAN), Product(d, b)};
  }
  static Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi)
  {
    return {x, r, work[0], d ? work[2] : r, d, d ? work[2] : work[1], PETSC_FALSE, nullptr};
  }
  static PetscErrorCode start(const Steps *steps, PetscInt n, const Vectors &v, Work *w)
  {
    return steps->project(n, v.z, v.r, w, nullptr);
  }
  template <class Mult>
  static void step(const Steps &steps, const Scalars &, PetscInt n, const Vectors &v, bool first, Work *w, Mult mult)
  {
    const PetscScalar *const old[] = {v.p};
    const PetscBool          begin = (PetscBool)first;

    w->constant = v.constant;
    if (v.s) {
      mult(v.z, v.s, false);
      ASSERT_EQ(steps.slope(n, v.z, v.s, w, nullptr), PETSC_SUCCESS);
      if (v.diagonal) {
        ASSERT_EQ(steps.advance_scaled(n, begin, v.s, v.diagonal, v.p, v.w, v.x, v.r, v.z, w, nullptr), PETSC_SUCCESS);
      } else {
        ASSERT_EQ(steps.advance(n, begin, PETSC_TRUE, nullptr, v.s, v.p, v.w, v.x, v.r, w, nullptr), PETSC_SUCCESS);
      }
      return;
    }
    ASSERT_EQ(steps.direction(n, begin, v.z, 1, old, v.p, nullptr, w, nullptr), PETSC_SUCCESS);
    mult(v.p, v.w, false);
    ASSERT_EQ(steps.curvature(n, begin, v.p, v.w, w, nullptr), PETSC_SUCCESS);
    if (v.diagonal) {
      ASSERT_EQ(steps.update_scaled(n, v.p, v.w, v.diagonal, v.x, v.r, v.z, w, nullptr), PETSC_SUCCESS);
    } else {
      ASSERT_EQ(steps.update(n, PETSC_TRUE, v.p, v.w, v.x, v.r, w, nullptr), PETSC_SUCCESS);
    }
  }
};

struct StreamedCG : CG {
  using Matrix = StreamedMatrix;

  static PetscErrorCode create(PETSC_UNUSED bool cuda, const AIJTCLayout *layout, PetscBool, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGStreamedCreate_CUDA(layout, work, can);
#endif
    return KSPTCStreamedCreate_Host(layout, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const AIJTCLayout *layout, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGStreamed_CUDA(layout, chunk, v, steps, work, refused, nullptr);
#endif
    return TCCGStreamed_Host(layout, chunk, v, steps, work, refused, nullptr);
  }
};

/* Of a method: with A p carried, for which w is a vector of its own */
template <class Method>
struct Single : Method {
  static constexpr unsigned scratch = 1u << 3; /* s */
  static constexpr bool     carries = true;

  /* p, w, z, s */
  static std::vector<Vector> work(const Vector &b, const Vector &d, Jacobi side)
  {
    std::vector<Vector> vectors = Method::work(b, d, side);

    vectors.push_back(Vector(b.size(), NAN));
    return vectors;
  }
  static typename Method::Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi side)
  {
    typename Method::Vectors v = Method::bind(x, r, d, work, side);

    v.w = work[1];
    v.s = work[3];
    return v;
  }
};

struct SingleCG : Single<CG> {
  using Matrix = HeldMatrix<CG>;

  static PetscErrorCode create(PETSC_UNUSED bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGSingleCreate_CUDA(form, scaled, work, can);
#endif
    return KSPTCResidentCreate_Host(form, scaled, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const KSPTCForm *form, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCGSingle_CUDA(form, chunk, v, steps, work, refused, nullptr);
#endif
    return TCCGResident_Host(form, chunk, v, steps, work, refused, nullptr);
  }
};
using SingleStreamedCG = Single<StreamedCG>;

/* With thin blocks, of which the host's twin knows nothing */
struct ThinCG : CG {
  using Matrix = HeldMatrix<ThinCG>;

  static KSPTCVectors vectors(bool scaled) { return TCCGThinVectorsOfBlock(scaled); }
};

inline Vector WithoutMean(Vector v)
{
  long double mean = 0.0L;

  for (PetscScalar k : v) mean += k;
  for (PetscScalar &k : v) k = (PetscScalar)(k - mean / (long double)v.size());
  return v;
}

/* Of a method: with a constant null space, for right-hand sides without mean */
template <class Method>
struct Projected : Method {
  static const std::vector<System> &systems() { return SingularSystems(); }
  static std::vector<Jacobi>        sides() { return {Jacobi::Projected}; }
  static Vector                     residual(const Vector &b, const Vector &, Jacobi) { return WithoutMean(b); }
  /* p, w, z */
  static std::vector<Vector> work(const Vector &b, const Vector &d, Jacobi side)
  {
    std::vector<Vector> vectors = Method::work(WithoutMean(b), d, side);

    vectors[2] = WithoutMean(vectors[2]);
    return vectors;
  }
  static typename Method::Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi side)
  {
    typename Method::Vectors v = Method::bind(x, r, d, work, side);

    v.constant = PETSC_TRUE;
    return v;
  }
};

struct ProjectedCG : Projected<CG> {
  using Matrix = HeldMatrix<CG>;
};
using ProjectedStreamedCG = Projected<StreamedCG>;

/* Conjugate gradients as they are in the books, in long double: a_k, z.r and r.r after iteration k + 1 */
struct Reference {
  std::vector<long double> a, zr, rr;

  Reference(const Csr &A, const Vector &b, const Vector &d, Jacobi side, int its)
  {
    std::vector<long double> r(b.begin(), b.end()), z(A.m), p(A.m), w(A.m);
    long double              old = 0.0L;

    for (int it = 0; it <= its; it++) {
      long double now = 0.0L, square = 0.0L, pw = 0.0L, mean = 0.0L;

      for (PetscInt k = 0; k < A.m; k++) {
        z[k] = side != Jacobi::None ? d[k] * r[k] : r[k];
        mean += z[k] / A.m;
      }
      for (PetscInt k = 0; k < A.m; k++) {
        if (side == Jacobi::Projected) z[k] -= mean;
        now += z[k] * r[k];
        square += r[k] * r[k];
      }
      if (it > 0) {
        zr.push_back(now);
        rr.push_back(square);
      }
      for (PetscInt k = 0; k < A.m; k++) p[k] = it ? z[k] + now / old * p[k] : z[k];
      for (PetscInt k = 0; k < A.m; k++) {
        w[k] = 0.0L;
        for (PetscInt e = A.i[k]; e < A.i[k + 1]; e++) w[k] += (long double)A.a[e] * p[A.j[e]];
        pw += w[k] * p[k];
      }
      a.push_back(now / pw);
      for (PetscInt k = 0; k < A.m; k++) r[k] -= a.back() * w[k];
      old = now;
    }
  }
};

class CGResident : public ResidentTest { };
class CGStreamed : public ResidentTest { };
class CGSingle : public ResidentTest { };
class CGSingleStreamed : public ResidentTest { };
class CGThin : public ResidentTest { };
/* For all */
#define METHOD_TEST(Suite, Method, Test) \
  TEST_P(Suite, Test) \
  { \
    Try##Test<Method>(GetParam()); \
  }
#define CG_TEST(Test) \
  template <class Method> \
  void Try##Test(Backend backend); \
  METHOD_TEST(CGSingle, SingleCG, Test) \
  METHOD_TEST(CGThin, ThinCG, Test) \
  METHOD_TEST(CGSingleStreamed, SingleStreamedCG, Test) \
  RESIDENT_TEST(CGResident, CG, CGStreamed, StreamedCG, Test)

template <class Method>
void TryPartsChangeNoBit(Backend backend)
{
  ExpectPartsChangeNoBit<Method>(backend);
}

METHOD_TEST(CGResident, CG, PartsChangeNoBit)
METHOD_TEST(CGSingle, SingleCG, PartsChangeNoBit)
METHOD_TEST(CGThin, ThinCG, PartsChangeNoBit)

CG_TEST(ChunksChangeNoBit)
{
  ExpectChunksChangeNoBit<Method>(backend);
}

CG_TEST(RunsAreAlike)
{
  ExpectRunsAlike<Method>(backend);
}

CG_TEST(GivesUp)
{
  ExpectGivesUpAtOnceAndLate<Method>(backend);
}

CG_TEST(StepsGoOn)
{
  ExpectStepsGoOn<Method>(backend);
}

TEST_P(CGStreamed, GivesUpWithVectorsInMemory)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  ExpectGivesUpWithVectorsInMemory<StreamedCG>(GetParam());
  ExpectGivesUpWithVectorsInMemory<SingleStreamedCG>(GetParam());
}

CG_TEST(StopsWhereTheTestSays)
{
  ExpectStopsWhereTheTestSays<Method>(backend, 10);
}

CG_TEST(TestsBeginLate)
{
  ExpectTestsBeginLate<Method>(backend);
}

/* The square of the norm, from the residual; d: the preconditioner's diagonal, or nothing */
PetscReal SquareOf(PetscTCNorm norm, const Vector &r, const Vector &d)
{
  long double sum = 0.0L;

  for (size_t k = 0; k < r.size(); k++) {
    const long double z = d.empty() ? r[k] : (long double)d[k] * r[k];

    sum += (norm == PETSCTC_NORM_RR ? r[k] : z) * (norm == PETSCTC_NORM_ZZ ? z : r[k]);
  }
  return (PetscReal)sum;
}

/* Every norm is that of the residual, and ends the solve in the iteration in which it is the bound for the first time, with the residual of that iteration, whether or not a warp of its own has tested it */
CG_TEST(EachNormEndsASolve)
{
  const System &system = Systems(true)[0];

  for (PetscTCNorm norm : {PETSCTC_NORM_RR, PETSCTC_NORM_ZZ, PETSCTC_NORM_BETA}) {
    for (Jacobi side : {Jacobi::None, Jacobi::Left}) {
      SCOPED_TRACE("norm " + std::to_string((int)norm) + (side == Jacobi::Left ? " with Jacobi" : ""));
      const Vector   d = side == Jacobi::Left ? Diagonal(system.A) : Vector();
      Solve<Method>  free(backend, system, side);
      PetscReal      least   = HUGE_VAL;
      PetscInt       its     = 0;
      const PetscInt last    = 10;
      const auto     norm_at = [&](const Solve<Method> &solve, PetscInt it) { return std::sqrt(std::fabs(TCCGNormSquare(solve.Record(it), norm))); };

      free.SetTest(norm, 0.0);
      ASSERT_NO_FATAL_FAILURE(free.Run(0, last));
      while (++its < last && (its < 4 || norm_at(free, its) >= least)) least = std::min(least, norm_at(free, its));
      ASSERT_LT(its, last) << "no norm less than all before";
      const PetscReal bound = norm_at(free, its);

      for (auto [cut, given] : {std::pair(last, false), std::pair(its, false), std::pair(last, true)}) {
        const PetscReal above = (1.0 + Tolerance(1e-7)) * bound;
        Solve<Method>   tested(backend, system, side);

        tested.SetTest(norm, given ? HUGE_VAL : above);
        if (given) tested.GiveBound(above);
        ASSERT_NO_FATAL_FAILURE(tested.Run(0, cut));
        for (PetscInt it = 1; it < its; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_NONE) << "iteration " << it;
        ASSERT_EQ(tested.Record(its).stop, PETSCTC_STOP_TEST);
        ASSERT_EQ(tested.Current().stop, PETSCTC_STOP_TEST);
        for (PetscInt it = its + 1; it <= cut; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_UNWRITTEN);
        ASSERT_NEAR(TCCGNormSquare(tested.Record(its), norm) / SquareOf(norm, tested.R(), d), 1.0, Tolerance(1e-9));
        ASSERT_NEAR(tested.Record(its).beta / SquareOf(PETSCTC_NORM_BETA, tested.R(), d), 1.0, Tolerance(1e-9));
        ASSERT_NEAR(tested.Record(its).betaold / tested.Record(its - 1).beta, 1.0, Tolerance(1e-9));
        ASSERT_NEAR(tested.Record(its).a / free.Record(its).a, 1.0, Tolerance(1e-6)) << "of the next iteration";
      }
    }
  }
}

/* Rounding errors grow with the iterations and with the residual's decrease: eight iterations of matrices of small condition leave all but the last digits. Where the residual is nothing but errors,
   comparison ends */
template <class Method>
void ExpectIterates(Backend backend, const System &system, Jacobi side)
{
  constexpr int its = 8;

  Solve<Method>   computed(backend, system, side);
  const Reference expected(system.A, computed.R(), Diagonal(system.A), side, its);
  const double    start = computed.Current().zz;

  ASSERT_NO_FATAL_FAILURE(computed.Run(0, its));
  for (int it = 1; it <= its; it++) {
    const TCCGScalars c = computed.Record(it);

    if (expected.rr[it - 1] < reduction * reduction * start) break;
    const double tolerance = 1000 * PETSC_MACHINE_EPSILON * std::sqrt(start / (double)expected.rr[it - 1]);

    ASSERT_EQ(c.stop, PETSCTC_STOP_NONE);
    ASSERT_NEAR(c.rr / (double)expected.rr[it - 1], 1.0, tolerance) << "iteration " << it;
    ASSERT_NEAR(c.beta / (double)expected.zr[it - 1], 1.0, tolerance) << "iteration " << it;
    ASSERT_NEAR(c.a / (double)expected.a[it - 1], 1.0, tolerance) << "iteration " << it;
  }
}

CG_TEST(IteratesAreThoseOfTheMethod)
{
  ForAll<Method>([backend](const System &system, Jacobi side) { ExpectIterates<Method>(backend, system, side); });
}

class CGProjected : public ResidentTest { };

TEST_P(CGProjected, StepsGoOn)
{
  ExpectStepsGoOn<ProjectedCG>(GetParam());
  ExpectStepsGoOn<ProjectedStreamedCG>(GetParam());
}

TEST_P(CGProjected, GivesUp)
{
  for (const System &system : {SingularSystems()[0], SingularSystems()[1]}) {
    ExpectGivesUp<ProjectedCG>(GetParam(), system, KSPTC_FAULT_LATE, 4);
    ExpectGivesUp<ProjectedStreamedCG>(GetParam(), system, KSPTC_FAULT_LATE, 4);
  }
}

TEST_P(CGProjected, ChunksChangeNoBit)
{
  ExpectChunksChangeNoBit<ProjectedCG>(GetParam());
  ExpectChunksChangeNoBit<ProjectedStreamedCG>(GetParam());
}

TEST_P(CGProjected, RunsAreAlike)
{
  ExpectRunsAlike<ProjectedCG>(GetParam());
  ExpectRunsAlike<ProjectedStreamedCG>(GetParam());
}

TEST_P(CGProjected, IteratesAreThoseOfTheMethod)
{
  ForAll<ProjectedCG>([](const System &system, Jacobi side) { ExpectIterates<ProjectedCG>(GetParam(), system, side); });
  ForAll<ProjectedStreamedCG>([](const System &system, Jacobi side) { ExpectIterates<ProjectedStreamedCG>(GetParam(), system, side); });
}

/* More rows than blocks have room for with all vectors, several batches of a thread */
TEST_P(CGThin, ManyRows)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host's twin knows nothing of thin blocks";
  if (SmallSystems()) GTEST_SKIP() << "short";
  const Csr box = Box(40, 40, 800); /* few ghosts */

  for (const System &system : std::vector<System>{
         {"constants",   box  },
         { "other values", Dominant(box, true)}
  }) {
    for (Jacobi side : ThinCG::sides()) ASSERT_NO_FATAL_FAILURE(ExpectIterates<ThinCG>(GetParam(), system, side)) << system.name;
  }
}

/* Vectors that the chip has no room for. The residual that iterations carry is that of x */
TEST_P(CGStreamed, VectorsInDeviceMemory)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  if (SmallSystems()) GTEST_SKIP() << "short";
  const std::vector<System> systems = LargeSystems();

  for (const System &system : systems) {
    for (Jacobi side : StreamedCG::sides()) {
      Solve<StreamedCG> solve(GetParam(), system, side);

      ASSERT_NO_FATAL_FAILURE(ExpectIterates<StreamedCG>(GetParam(), system, side));
      const KSPTCChip chip = StreamedCG::chip(true);
      long double     bb   = 0.0L;

      ASSERT_EQ(solve.Matrix()->params.rrows, 4);
      ASSERT_EQ(KSPTCDealSlices(solve.Matrix(), 2, 3, &chip).vectors, 2);
      ASSERT_EQ(KSPTCDealSlices(solve.Matrix(), 2, 3, &chip).slots > 0, &system == &systems[0]);

      for (PetscScalar b : solve.B()) bb += (long double)b * b;
      ASSERT_NO_FATAL_FAILURE(solve.Run(0, 5));
      ASSERT_NO_FATAL_FAILURE(solve.Run(5, 8));
      ASSERT_NEAR(RelativeResidual(system.A, solve.X(), solve.B()), std::sqrt(solve.Record(8).rr / (double)bb), 100 * PETSC_MACHINE_EPSILON) << system.name;
    }
  }
}

/* What is multiplied by comes to shared memory, with x there too or not, if all slices of a layout let it: for all others it is gathered */
template <class Method>
void ExpectWindows(Backend backend)
{
  for (const WindowedSystem &of : WindowedSystems()) {
    for (Jacobi side : Method::sides()) {
      SCOPED_TRACE(of.system.name);
      Solve<Method> whole(backend, of.system, side), parts(backend, of.system, side);
      long double   bb = 0.0L;

      ASSERT_NO_FATAL_FAILURE(ExpectIterates<Method>(backend, of.system, side));
      ASSERT_NO_FATAL_FAILURE(whole.Run(0, 9));
      ASSERT_NO_FATAL_FAILURE(parts.Run(0, 4));
      ASSERT_NO_FATAL_FAILURE(parts.Run(4, 9));
      ASSERT_EQ((bool)whole.ResidentWork().windowed, of.windowed);
      ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, parts));
      for (PetscScalar b : whole.B()) bb += (long double)b * b;
      ASSERT_NEAR(RelativeResidual(of.system.A, whole.X(), whole.B()), std::sqrt(whole.Record(9).rr / (double)bb), 100 * PETSC_MACHINE_EPSILON);
    }
  }
}

TEST_P(CGStreamed, Windows)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  ExpectWindows<StreamedCG>(GetParam());
  ExpectWindows<SingleStreamedCG>(GetParam());
}

/* Both recurrences against the host's */
void ExpectIteratesOfDiagonal(Backend backend, const System &system, const Vector &b, const Vector &d)
{
  Solve<StreamedCG>       host(Backend::Host, system, Jacobi::Left, b, d), classic(backend, system, Jacobi::Left, b, d);
  Solve<SingleStreamedCG> whole(backend, system, Jacobi::Left, b, d), parts(backend, system, Jacobi::Left, b, d);

  ASSERT_NO_FATAL_FAILURE(host.Run(0, 9));
  ASSERT_NO_FATAL_FAILURE(classic.Run(0, 9));
  ASSERT_NO_FATAL_FAILURE(whole.Run(0, 9));
  ASSERT_NO_FATAL_FAILURE(parts.Run(0, 4));
  ASSERT_NO_FATAL_FAILURE(parts.Run(4, 9));
  ASSERT_TRUE(classic.ResidentWork().windowed);
  ASSERT_TRUE(whole.ResidentWork().windowed);
  ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, parts));
  const Vector x = host.X(), r = host.R(), classic_x = classic.X(), classic_r = classic.R(), single_x = whole.X(), single_r = whole.R();
  for (PetscInt k = 0; k < system.A.m; k++) {
    ASSERT_NEAR(classic_x[k], x[k], Tolerance(1e-11)) << k;
    ASSERT_NEAR(classic_r[k], r[k], Tolerance(1e-11)) << k;
    ASSERT_NEAR(single_x[k], x[k], Tolerance(1e-11)) << k;
    ASSERT_NEAR(single_r[k], r[k], Tolerance(1e-11)) << k;
  }
}

/* A diagonal of as many values as rows, which is in shared memory in part; in some rows 0 or next to it, where z says nothing of r. Where there is no step r stays, to the bit */
TEST_P(CGStreamed, DiagonalOfManyValues)
{
  if (GetParam() == Backend::Host) GTEST_SKIP() << "the host has one memory";
  const PetscInt side   = SmallSystems() ? 32 : 101;
  const System   system = {"values of all entries", Dominant(SevenPoint(side), true)};
  const Vector   b      = RightSide(system.A);
  Vector         d(b.size());
  System         zero = system;

  for (PetscInt r = 0; r < system.A.m; r++) d[r] = 0.1 + 0.1 * (PetscScalar)(r % 10007 * 7919 % 10007) / 10007;
  ASSERT_NO_FATAL_FAILURE(ExpectIteratesOfDiagonal(GetParam(), system, b, d));
  std::fill(zero.A.a.begin(), zero.A.a.end(), 0.0);
  Solve<SingleStreamedCG> none(GetParam(), zero, Jacobi::Left, b, d);

  ASSERT_NO_FATAL_FAILURE(none.Run(0, 3));
  ASSERT_TRUE(none.ResidentWork().windowed);
  ASSERT_NE(none.Current().stop, PETSCTC_STOP_NONE);
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(none.R(), b));
  for (PetscInt r = 5000; r < 5200; r++) d[r] = 0.0;
  d[6000] = std::ldexp(1.0, -127);
  d[9000] = std::ldexp(1.0, -129);
  ASSERT_NO_FATAL_FAILURE(ExpectIteratesOfDiagonal(GetParam(), system, b, d));
}

/* p.Ap that changes its sign, as an indefinite matrix has it here in the second iteration at the latest, or is NaN: x and r are what they were after the iteration before */
CG_TEST(StopsWithin)
{
  System indefinite = Systems(true)[0], nan = Systems(true)[0];

  indefinite.A = FromColumns(5000, [](PetscInt r) { return Range(r, r + 1); });
  indefinite.A.a.resize(indefinite.A.m);
  for (PetscInt r = 0; r < indefinite.A.m; r++) indefinite.A.a[r] = r % 2 ? -1.0 : 3.0;
  nan.A.a[1000] = NAN;
  for (const System *system : {&indefinite, &nan}) {
    if (Method::carries && system == &nan) continue; /* KSPCG goes on then */
    Solve<Method> within(backend, *system, Jacobi::None), before(backend, *system, Jacobi::None);
    PetscInt      its = 0;

    ASSERT_NO_FATAL_FAILURE(within.Run(0, 10));
    while (within.Record(its + 1).stop == PETSCTC_STOP_NONE && its < 10) its++;
    ASSERT_LT(its, system == &nan ? 1 : 3);
    ASSERT_EQ(within.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
    ASSERT_EQ(within.Current().stop, system == &nan ? PETSCTC_STOP_DPI_NAN : PETSCTC_STOP_DPI_SIGN);
    if (its) { ASSERT_NO_FATAL_FAILURE(before.Run(0, its)); }
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.X(), within.X()));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.R(), within.R()));
  }
}

/* Neither breakdown nor end is possible with such numbers. The GPU looks at the upper word alone */
TEST(Passing, PlainNumbers)
{
  using Limits = std::numeric_limits<PetscReal>;

  for (PetscReal x : {Limits::min(), (PetscReal)1.0, Limits::max()}) EXPECT_TRUE(PetscTCIsPlain(x)) << x;
  for (PetscReal x : {(PetscReal)0.0, (PetscReal)-0.0, Limits::denorm_min(), -Limits::denorm_min(), std::nextafter(Limits::min(), (PetscReal)0.0), (PetscReal)-1.0, -Limits::min(), -Limits::max(), Limits::infinity(), -Limits::infinity(),
                      Limits::quiet_NaN(), -Limits::quiet_NaN()})
    EXPECT_FALSE(PetscTCIsPlain(x)) << x;
}

/* Squares that pass a test before they are there: the test itself says nothing to any of them, and there are few to which it says nothing that do not pass */
TEST(Passing, SaysWhatTheTestSays)
{
  const double infinity = HUGE_VAL, bounds[] = {-infinity, -1.0, 0.0, 1e-310, 1e-160, 1e-141, 1e-30, 1e-5, 1.0, 3.0, 1e30, 1e141, 1e160, infinity, NAN};
  int          passed = 0;

  if (sizeof(PetscReal) < sizeof(double)) GTEST_SKIP() << "the kernels that ask are of doubles";
  for (double above : bounds) {
    for (double below : bounds) {
      std::vector<double> squares = {-1.0, 0.0, 5e-324, 1e-290, 1e-281, 1e-279, 1e-10, 1.0, 1e10, 1e279, 1e281, infinity, NAN};
      const KSPTCPassing  passing = KSPTCPassingOf(above, below);

      for (double bound : {above, below}) {
        for (double factor : {0.5, 0.99, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 1.0005, 1.01, 2.0}) squares.push_back(bound * bound * factor);
      }
      for (double square : squares) {
        const TCCGJudged judged = TCCGJudge({PETSCTC_NORM_RR, (PetscReal)above, (PetscReal)below}, (PetscScalar)square);
        const bool       passes = KSPTCPasses(passing, square), certain = square > 1e-270 && square < 1e270 && !(above > 0.0 && square < 1.01 * above * above) && !(square * 1.01 > below * below || below <= 0.0);

        if (passes) { EXPECT_EQ(judged.stop, PETSCTC_STOP_NONE) << square << " between " << above << " and " << below; }
        if (certain) { EXPECT_TRUE(passes) << square << " between " << above << " and " << below; }
        passed += passes;
      }
    }
  }
  EXPECT_GT(passed, 100);
}

INSTANTIATE_TEST_SUITE_P(Backends, CGResident, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGSingle, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGSingleStreamed, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGThin, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGProjected, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGStreamed, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
} // namespace
