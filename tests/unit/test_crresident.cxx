/* Iterations of conjugate residuals, a listed method, in one call with the matrix on the chip: chunks change no bit, results are those of the method in long double, a solve stops where its test says or the
   preconditioner is found to be indefinite */
#include <../src/ksp/tccr/tccrlist.h>
#include "../precision.h"
#include "resident.h"

namespace
{
inline Vector Mult(const Csr &A, const Vector &x)
{
  Vector y(A.m, 0.0);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) y[r] += A.a[k] * x[A.j[k]];
  }
  return y;
}

/* The residual of a solve is s, the preconditioned one */
struct CR {
  using Steps   = KSPTCListSteps<TCCR>;
  using Work    = KSPTCListWork<TCCR>;
  using Scalars = TCCRScalars;
  using Vectors = KSPTCListVectors<TCCR>;
  using Matrix  = HeldMatrix<CR>;

  static constexpr bool        symmetric = true;
  static constexpr PetscTCNorm norm      = PETSCTC_NORM_RR;
  static constexpr int         carried   = 3;
  static constexpr unsigned    scratch   = 1u << 3; /* q */

  static const std::vector<System>    &systems() { return Systems(symmetric); }
  static std::vector<Jacobi>           sides() { return {Jacobi::None, Jacobi::Left}; }
  static PetscReal                     square(const Scalars &s) { return s.square; }
  static KSPTCVectors                  vectors(bool scaled) { return KSPTCListVectorsOfBlock<TCCR>(scaled); }
  static const KSPTCListRunners<TCCR> &runners(PETSC_UNUSED bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCCROnDevice;
#endif
    return TCCROnHost;
  }
  static KSPTCChip chip(bool cuda)
  {
    KSPTCChip chip = {0, 0};

    EXPECT_EQ(runners(cuda).chip(&chip), PETSC_SUCCESS);
    return chip;
  }
  static const Steps *steps(bool cuda)
  {
    return &runners(cuda).steps;
  }
  static PetscErrorCode create(bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
    return runners(cuda).create(form, scaled, work, can);
  }
  static PetscErrorCode run(bool cuda, const KSPTCForm *form, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work, PetscBool *refused)
  {
    return runners(cuda).call(form, (PetscBool)(v->v[TCCR_D] != nullptr), chunk, v, steps, work, refused, nullptr);
  }
  static Vector residual(const Vector &b, const Vector &d, Jacobi side)
  {
    return side == Jacobi::None ? b : Product(d, b);
  }
  /* p = s, w = t = A s; q */
  static std::vector<Vector> work(const Csr &A, const Vector &b, const Vector &d, Jacobi side)
  {
    const Vector s = residual(b, d, side), t = Mult(A, s);

    return {s, t, t, Vector(b.size(), NAN)};
  }
  static Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi)
  {
    Vectors v = {};

    v.v[TCCR_X] = x;
    v.v[TCCR_S] = r;
    v.v[TCCR_P] = work[0];
    v.v[TCCR_W] = work[1];
    v.v[TCCR_T] = work[2];
    v.v[TCCR_Q] = d ? work[3] : nullptr;
    v.v[TCCR_D] = const_cast<PetscScalar *>(d);
    return v;
  }
  template <class Pass>
  static PetscErrorCode pass(const Steps *steps, PetscInt n, const Vectors &v, Work *w)
  {
    return steps->pass[TCCR::Passes::of<Pass>()](n, v.v, w, nullptr);
  }
  static PetscErrorCode start(const Steps *steps, PetscInt n, const Vectors &v, Work *w)
  {
    return pass<TCCRSums<false, true>>(steps, n, v, w);
  }
  template <KSPTCApply apply, class Mult>
  static void stepOf(const Steps &steps, PetscInt n, const Vectors &v, Work *w, Mult mult)
  {
    ASSERT_EQ(pass<TCCRDirect<apply>>(&steps, n, v, w), PETSC_SUCCESS);
    ASSERT_EQ((pass<TCCRUpdate<apply, false>>(&steps, n, v, w)), PETSC_SUCCESS);
    mult(v.v[TCCR_S], v.v[TCCR_T], false);
    ASSERT_EQ((pass<TCCRSums<false, false>>(&steps, n, v, w)), PETSC_SUCCESS);
  }
  template <class Mult>
  static void step(const Steps &steps, const Scalars &, PetscInt n, const Vectors &v, bool, Work *w, Mult mult)
  {
    if (v.v[TCCR_D]) stepOf<KSPTC_APPLY_SCALED>(steps, n, v, w, mult);
    else stepOf<KSPTC_APPLY_NONE>(steps, n, v, w, mult);
  }
};

/* Conjugate residuals as they are in the books, in long double: a_k and w.q of iteration k + 1, s.t and s.s after it */
struct Reference {
  std::vector<long double> a, wq, st, ss;

  Reference(const Csr &A, const Vector &b, const Vector &d, Jacobi side, int its)
  {
    std::vector<long double> s(A.m), p(A.m), t(A.m), w(A.m), q(A.m);
    long double              old  = 0.0L;
    const auto               mult = [&] {
      long double st = 0.0L;

      for (PetscInt k = 0; k < A.m; k++) {
        t[k] = 0.0L;
        for (PetscInt e = A.i[k]; e < A.i[k + 1]; e++) t[k] += (long double)A.a[e] * s[A.j[e]];
        st += s[k] * t[k];
      }
      return st;
    };

    for (PetscInt k = 0; k < A.m; k++) s[k] = side == Jacobi::None ? (long double)b[k] : (long double)d[k] * b[k];
    old = mult();
    p   = s;
    w   = t;
    for (int it = 0; it < its; it++) {
      long double curvature = 0.0L, square = 0.0L;

      for (PetscInt k = 0; k < A.m; k++) {
        q[k] = side == Jacobi::None ? w[k] : d[k] * w[k];
        curvature += w[k] * q[k];
      }
      wq.push_back(curvature);
      a.push_back(old / curvature);
      for (PetscInt k = 0; k < A.m; k++) {
        s[k] -= a.back() * q[k];
        square += s[k] * s[k];
      }
      ss.push_back(square);
      st.push_back(mult());
      for (PetscInt k = 0; k < A.m; k++) {
        p[k] = s[k] + st.back() / old * p[k];
        w[k] = t[k] + st.back() / old * w[k];
      }
      old = st.back();
    }
  }
};

class CRResident : public ResidentTest { };

TEST_P(CRResident, PartsChangeNoBit)
{
  ExpectPartsChangeNoBit<CR>(GetParam());
}

TEST_P(CRResident, ChunksChangeNoBit)
{
  ExpectChunksChangeNoBit<CR>(GetParam());
}

TEST_P(CRResident, RunsAreAlike)
{
  ExpectRunsAlike<CR>(GetParam());
}

TEST_P(CRResident, GivesUp)
{
  ExpectGivesUpAtOnceAndLate<CR>(GetParam());
}

TEST_P(CRResident, StepsGoOn)
{
  ExpectStepsGoOn<CR>(GetParam());
}

TEST_P(CRResident, StopsWhereTheTestSays)
{
  ExpectStopsWhereTheTestSays<CR>(GetParam(), 10);
}

TEST_P(CRResident, TestsBeginLate)
{
  ExpectTestsBeginLate<CR>(GetParam());
}

PetscReal Square(const TCCRScalars &s, PetscTCNorm norm)
{
  return norm == PETSCTC_NORM_BETA ? s.st : s.square;
}

/* The square of the norm, from s */
PetscReal SquareOf(PetscTCNorm norm, const Csr &A, const Vector &s)
{
  const Vector other = norm == PETSCTC_NORM_BETA ? Mult(A, s) : s;
  long double  sum   = 0.0L;

  for (size_t k = 0; k < s.size(); k++) sum += (long double)s[k] * other[k];
  return (PetscReal)sum;
}

/* Each norm is that of the vectors, and ends the solve in the iteration in which it is the bound for the first time, with the vectors and scalars of that iteration */
TEST_P(CRResident, EachNormEndsASolve)
{
  const System  &system = Systems(true)[0];
  const PetscInt last   = 10;

  for (PetscTCNorm norm : {PETSCTC_NORM_RR, PETSCTC_NORM_BETA}) {
    for (Jacobi side : CR::sides()) {
      SCOPED_TRACE("norm " + std::to_string((int)norm) + (side == Jacobi::Left ? " with Jacobi" : ""));
      Solve<CR>  free(GetParam(), system, side);
      PetscReal  least   = HUGE_VAL;
      PetscInt   its     = 0;
      const auto norm_at = [&](PetscInt it) { return std::sqrt(std::fabs(Square(free.Record(it), norm))); };

      free.SetTest(norm, 0.0);
      ASSERT_NO_FATAL_FAILURE(free.Run(0, last));
      while (++its < last && (its < 4 || norm_at(its) >= least)) least = std::min(least, norm_at(its));
      ASSERT_LT(its, last) << "no norm less than all before";

      for (auto [cut, given] : {std::pair(last, false), std::pair(its, false), std::pair(last, true)}) {
        const PetscReal above = (1.0 + Tolerance(1e-7)) * norm_at(its);
        Solve<CR>       tested(GetParam(), system, side);

        tested.SetTest(norm, given ? HUGE_VAL : above);
        if (given) tested.GiveBound(above);
        ASSERT_NO_FATAL_FAILURE(tested.Run(0, cut));
        for (PetscInt it = 1; it < its; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_NONE) << "iteration " << it;
        ASSERT_EQ(tested.Record(its).stop, PETSCTC_STOP_TEST);
        ASSERT_EQ(tested.Current().stop, PETSCTC_STOP_TEST);
        for (PetscInt it = its + 1; it <= cut; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_UNWRITTEN);
        const TCCRScalars now = tested.Record(its);

        ASSERT_NEAR(now.square / SquareOf(PETSCTC_NORM_RR, system.A, tested.R()), 1.0, Tolerance(1e-9));
        ASSERT_NEAR(now.st / SquareOf(PETSCTC_NORM_BETA, system.A, tested.R()), 1.0, Tolerance(1e-9));
        ASSERT_NEAR(now.b * tested.Record(its - 1).st / now.st, 1.0, Tolerance(1e-9));
        ASSERT_NEAR(now.a * now.wq / tested.Record(its - 1).st, 1.0, Tolerance(1e-9));
      }
    }
  }
}

/* Rounding errors grow with the iterations and with the residual's decrease: eight iterations of matrices of small condition leave all but the last digits. Where the residual is nothing but errors,
   comparison ends. The residual that iterations carry is that of x */
void ExpectIterates(Backend backend, const System &system, Jacobi side)
{
  constexpr int its = 8;

  const Vector    d = Diagonal(system.A);
  Solve<CR>       computed(backend, system, side);
  const Reference expected(system.A, computed.B(), d, side, its);
  const double    start = computed.Current().square;

  ASSERT_NO_FATAL_FAILURE(computed.Run(0, its));
  for (int it = 1; it <= its; it++) {
    const TCCRScalars c = computed.Record(it);

    if (expected.ss[it - 1] < reduction * reduction * start) break;
    const double tolerance = 1000 * PETSC_MACHINE_EPSILON * std::sqrt(start / (double)expected.ss[it - 1]);

    ASSERT_EQ(c.stop, PETSCTC_STOP_NONE);
    ASSERT_NEAR(c.wq / (double)expected.wq[it - 1], 1.0, tolerance) << "iteration " << it;
    ASSERT_NEAR(c.a / (double)expected.a[it - 1], 1.0, tolerance) << "iteration " << it;
    ASSERT_NEAR(c.square / (double)expected.ss[it - 1], 1.0, tolerance) << "iteration " << it;
    ASSERT_NEAR(c.st / (double)expected.st[it - 1], 1.0, tolerance) << "iteration " << it;
  }
  const Vector Ax = Mult(system.A, computed.X()), s = computed.R();

  for (PetscInt k = 0; k < system.A.m; k++) ASSERT_NEAR((side == Jacobi::None ? 1.0 : d[k]) * (computed.B()[k] - Ax[k]), s[k], 1000 * PETSC_MACHINE_EPSILON * std::sqrt(start)) << "row " << k;
}

TEST_P(CRResident, IteratesAreThoseOfTheMethod)
{
  ForAll<CR>([](const System &system, Jacobi side) { ExpectIterates(GetParam(), system, side); });
}

/* In iteration its + 1, and what is left then is what there was after its */
void ExpectStopsWithin(Backend backend, const System &system, Jacobi side, const Vector &d, int stop, PetscInt least, PetscInt most)
{
  const Vector b = RightSide(system.A);
  Solve<CR>    within(backend, system, side, b, d), before(backend, system, side, b, d);
  PetscInt     its = 0;

  ASSERT_NO_FATAL_FAILURE(within.Run(0, most + 3));
  while (its < most + 3 && within.Record(its + 1).stop == PETSCTC_STOP_NONE) its++;
  ASSERT_GE(its, least);
  ASSERT_LE(its, most);
  for (PetscInt it = its + 1; it <= most + 3; it++) ASSERT_EQ(within.Record(it).stop, PETSCTC_STOP_UNWRITTEN) << "iteration " << it;
  ASSERT_EQ((int)within.Current().stop, stop);
  if (its) { ASSERT_NO_FATAL_FAILURE(before.Run(0, its)); }
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.X(), within.X()));
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.R(), within.R()));
  const TCCRScalars s = within.Current();

  ASSERT_NO_FATAL_FAILURE(within.Run(most + 3, most + 6)); /* stopped: nothing happens */
  ASSERT_TRUE(SameScalars(s, within.Current()));
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.X(), within.X()));
}

/* A preconditioner that is negative, or indefinite, which is found after some iterations */
TEST_P(CRResident, StopsAtAnIndefinitePreconditioner)
{
  const System &system = Systems(true)[0];
  Vector        d      = Diagonal(system.A);

  for (PetscScalar &element : d) element = -element;
  ASSERT_NO_FATAL_FAILURE(ExpectStopsWithin(GetParam(), system, Jacobi::Left, d, TCCR_STOP_WQ_SIGN, 0, 0));
  for (size_t k = 0; k < d.size(); k++) {
    if (k % 8) d[k] = -d[k];
  }
  ASSERT_NO_FATAL_FAILURE(ExpectStopsWithin(GetParam(), system, Jacobi::Left, d, TCCR_STOP_WQ_SIGN, 1, 20));
}

/* w.q is 0: A is */
TEST_P(CRResident, StopsAtASingularMatrix)
{
  System zero = Systems(true)[0];

  std::fill(zero.A.a.begin(), zero.A.a.end(), 0.0);
  for (Jacobi side : CR::sides()) ASSERT_NO_FATAL_FAILURE(ExpectStopsWithin(GetParam(), zero, side, Vector(zero.A.m, 1.0), TCCR_STOP_WQ_SIGN, 0, 0));
}

/* w.q is NaN, or overflows */
TEST_P(CRResident, StopsAtNumbersOutOfRange)
{
  System nan = Systems(true)[0], huge = nan;

  nan.A.a[1000] = NAN;
  for (PetscScalar &element : huge.A.a) element *= std::sqrt(std::numeric_limits<PetscScalar>::max());
  for (Jacobi side : CR::sides()) {
    ASSERT_NO_FATAL_FAILURE(ExpectStopsWithin(GetParam(), nan, side, Vector(nan.A.m, 1.0), TCCR_STOP_WQ_NAN, 0, 0));
    ASSERT_NO_FATAL_FAILURE(ExpectStopsWithin(GetParam(), huge, side, Vector(huge.A.m, 1.0), TCCR_STOP_WQ_NAN, 0, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CRResident, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
} // namespace
