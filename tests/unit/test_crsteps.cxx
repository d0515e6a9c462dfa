/* The passes of KSPTCCR on all backends: every field and vector after every pass, every stop, the frozen state, and solves made of passes alone */
#include <../src/ksp/tccr/tccrlist.h>
#include "steps.h"

class CRSteps : public StepsTest<KSPTCListSteps<TCCR>, KSPTCListWork<TCCR>, TCCRScalars> {
protected:
  const KSPTCListSteps<TCCR> *table(bool cuda) override
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCCROnDevice.steps;
#endif
    (void)cuda;
    return &TCCROnHost.steps;
  }

  /* All vectors of the method, by their numbers */
  struct Vectors {
    std::vector<std::unique_ptr<Vector>> of;
    PetscScalar                         *v[TCCR_VECTORS];

    Vectors(bool cuda, const std::vector<Values> &values, int offset = 0)
    {
      for (int k = 0; k < TCCR_VECTORS; ++k) {
        of.emplace_back(new Vector(cuda, values[k], offset && k % 2));
        v[k] = *of[k];
      }
    }
    Values get(int k) const { return of[k]->get(); }
  };

  /* d is positive */
  static std::vector<Values> some(PetscInt n)
  {
    std::vector<Values> values;

    for (int k = 0; k < TCCR_VECTORS; ++k) values.push_back(randomValues(n, k + 1));
    for (PetscScalar &d : values[TCCR_D]) d = 0.25 + std::fabs(d);
    return values;
  }

  template <class P>
  PetscErrorCode pass(PetscInt n, PetscScalar *const v[])
  {
    return steps->pass[TCCR::Passes::of<P>()](n, v, &work, nullptr);
  }

  /* What no pass of this set writes has the bits it had */
  static void expectUnchanged(const std::vector<Values> &before, const Vectors &after, unsigned written)
  {
    for (int k = 0; k < TCCR_VECTORS; ++k) {
      if (!KSPTCHas(written, k)) { EXPECT_TRUE(sameBits(before[k], after.get(k))) << "vector " << k << ", n = " << before[k].size(); }
    }
  }

  template <KSPTCApply apply>
  void expectDirect();
  template <KSPTCApply apply, bool residual>
  void expectUpdate();
  template <bool residual, bool first>
  void expectSums();

  /* The stop that w.q = value leaves */
  int slopeStops(PetscScalar value)
  {
    std::vector<Values> values(TCCR_VECTORS, {0.0, 0.0, 0.0});
    TCCRScalars         expected = marked();

    values[TCCR_W][1] = 1.0;
    values[TCCR_Q][1] = value;
    Vectors v(cuda, values);
    set(expected);
    EXPECT_EQ(PETSC_SUCCESS, pass<TCCRSlope>(3, v.v));
    const TCCRScalars s = get();
    expected.wq         = s.wq;
    expected.stop       = s.stop;
    if (s.stop == 0.0) expected.a = expected.st / value;
    EXPECT_TRUE(value != value ? s.wq != s.wq : s.wq == value) << value;
    EXPECT_TRUE(sameScalars(expected, s)) << value;
    return (int)s.stop;
  }

  /* A x = b by the passes and a product on the host, with d as the diagonal of the preconditioner. Returns the iterations, 0 if the solve did not end */
  template <KSPTCApply apply, bool residual>
  int solve(double lower, double diagonal, double upper, double d, const Values &b, Values &solution)
  {
    constexpr KSPTCApply updates = apply == KSPTC_APPLY_NONE ? KSPTC_APPLY_NONE : KSPTC_APPLY_SCALED;
    const PetscInt       n       = (PetscInt)b.size();
    const auto           times   = [](double factor, Values v) {
      for (auto &element : v) element *= factor;
      return v;
    };
    const Values        s = times(d, b), t = tridiagonal(lower, diagonal, upper, s);
    std::vector<Values> values(TCCR_VECTORS, Values(n, NaN));
    const double        tolerance = 450 * PETSC_MACHINE_EPSILON * norm2(residual ? b : s);

    values[TCCR_X] = Values(n, 0.0);
    values[TCCR_R] = b;
    values[TCCR_S] = values[TCCR_P] = s;
    values[TCCR_T] = values[TCCR_W] = t;
    values[TCCR_D]                  = Values(n, d);
    Vectors v(cuda, values);

    EXPECT_EQ(PETSC_SUCCESS, steps->reset(&work, nullptr));
    EXPECT_EQ(PETSC_SUCCESS, (pass<TCCRSums<residual, true>>(n, v.v)));
    for (int i = 0; i < 3 * n; ++i) {
      EXPECT_EQ(PETSC_SUCCESS, pass<TCCRDirect<apply>>(n, v.v));
      if (apply == KSPTC_APPLY_APART) {
        v.of[TCCR_Q]->set(times(d, v.get(TCCR_W)));
        EXPECT_EQ(PETSC_SUCCESS, pass<TCCRSlope>(n, v.v));
      }
      EXPECT_EQ(PETSC_SUCCESS, (pass<TCCRUpdate<updates, residual>>(n, v.v)));
      v.of[TCCR_T]->set(tridiagonal(lower, diagonal, upper, v.get(TCCR_S)));
      EXPECT_EQ(PETSC_SUCCESS, (pass<TCCRSums<residual, false>>(n, v.v)));
      EXPECT_EQ(PETSCTC_STOP_NONE, get().stop);
      if (std::sqrt(get().square) <= tolerance) {
        solution = v.get(TCCR_X);
        return i + 1;
      }
    }
    return 0;
  }
};
ALL_BACKENDS(CRSteps);

TEST_P(CRSteps, ResetZeroes)
{
  TCCRScalars s = marked();

  s.stop = TCCR_STOP_WQ_NAN;
  set(s);
  CALL(steps->reset(&work, nullptr));
  EXPECT_TRUE(sameScalars(TCCRScalars{}, get()));
}

template <KSPTCApply apply>
void CRSteps::expectDirect()
{
  constexpr bool scaled = apply == KSPTC_APPLY_SCALED;

  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const std::vector<Values> values = some(n);
      Vectors                   v(cuda, values, offset);
      TCCRScalars               expected = marked();

      set(expected);
      CALL(pass<TCCRDirect<apply>>(n, v.v));
      const Values w = v.get(TCCR_W);
      Values       q = apply == KSPTC_APPLY_NONE ? w : values[TCCR_Q];

      expectCombination(
        {
          {1.0,        &values[TCCR_S]},
          {expected.b, &values[TCCR_P]}
      },
        v.get(TCCR_P), "s + b p");
      expectCombination(
        {
          {1.0,        &values[TCCR_T]},
          {expected.b, &values[TCCR_W]}
      },
        w, "t + b w");
      for (PetscInt k = 0; k < n && scaled; k++) q[k] = values[TCCR_D][k] * w[k];
      if (scaled) { EXPECT_TRUE(sameBits(q, v.get(TCCR_Q))) << n; }
      expectUnchanged(values, v, TCCRSet(TCCR_P) | TCCRSet(TCCR_W) | (scaled ? TCCRSet(TCCR_Q) : 0));
      if (apply != KSPTC_APPLY_APART) {
        expected.wq = get().wq;
        expectDot(w, q, expected.wq, "w.q");
        if (n) expected.a = expected.st / expected.wq;
        else expected.stop = TCCR_STOP_WQ_SIGN;
      }
      EXPECT_TRUE(sameScalars(expected, get())) << n;
    }
  }
}

TEST_P(CRSteps, Direct)
{
  expectDirect<KSPTC_APPLY_NONE>();
}
TEST_P(CRSteps, DirectScaled)
{
  expectDirect<KSPTC_APPLY_SCALED>();
}
TEST_P(CRSteps, DirectApart)
{
  expectDirect<KSPTC_APPLY_APART>();
}

TEST_P(CRSteps, Slope)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* w.q is 0: a stop */
    std::vector<Values> values   = some(n);
    TCCRScalars         expected = marked();

    for (PetscInt k = 0; k < n; k++) values[TCCR_Q][k] = values[TCCR_D][k] * values[TCCR_W][k];
    Vectors v(cuda, values, n % 2);
    set(expected);
    CALL(pass<TCCRSlope>(n, v.v));
    expected.wq = get().wq;
    expected.a  = expected.st / expected.wq;
    expectDot(values[TCCR_W], values[TCCR_Q], expected.wq, "w.q");
    EXPECT_TRUE(sameScalars(expected, get())) << n;
    expectUnchanged(values, v, 0);
  }
}

/* No stop but those of KSPCR: w.q is Inf, NaN, or not positive */
TEST_P(CRSteps, SlopeStops)
{
  for (double value : {NaN, Inf, -Inf}) EXPECT_EQ(TCCR_STOP_WQ_NAN, slopeStops(value)) << value;
  for (double value : {0.0, -0.0, -1.0, -(double)tiny}) EXPECT_EQ(TCCR_STOP_WQ_SIGN, slopeStops(value)) << value;
  for (double value : {1.0, (double)tiny}) EXPECT_EQ(PETSCTC_STOP_NONE, slopeStops(value)) << value;
}

/* The same of Direct, which has made its vectors then */
TEST_P(CRSteps, DirectStops)
{
  const PetscInt n = 1000;

  for (double value : {NaN, Inf, 0.0, -1.0, 1.0}) {
    std::vector<Values> values = some(n);

    values[TCCR_T] = values[TCCR_W] = Values(n, 0.0);
    values[TCCR_T][500] = values[TCCR_D][500] = 1.0;
    if (value == value && value <= 1.0) values[TCCR_D][500] = value;
    else values[TCCR_T][500] = value;
    const int stop = PetscTCIsInfOrNan((PetscReal)value) ? TCCR_STOP_WQ_NAN : value > 0.0 ? (int)PETSCTC_STOP_NONE : (int)TCCR_STOP_WQ_SIGN;
    Vectors   v(cuda, values);

    set(marked());
    CALL(pass<TCCRDirect<KSPTC_APPLY_SCALED>>(n, v.v));
    EXPECT_EQ(stop, (int)get().stop) << value;
    EXPECT_EQ(stop ? marked().a : marked().st / value, get().a) << value;
    if (value == value) { EXPECT_TRUE(sameBits(values[TCCR_T], v.get(TCCR_W))) << value; }
    if (value < 0.0) continue; /* w.w is not */
    Vectors u(cuda, values);
    if (value == 0.0) u.of[TCCR_T]->set(Values(n, 0.0));
    set(marked());
    CALL(pass<TCCRDirect<KSPTC_APPLY_NONE>>(n, u.v));
    EXPECT_EQ(stop, (int)get().stop) << value;
  }
}

template <KSPTCApply apply, bool residual>
void CRSteps::expectUpdate()
{
  for (PetscInt n : sizes) {
    const std::vector<Values> values = some(n);
    Vectors                   v(cuda, values, n % 2);
    const TCCRScalars         s = marked();

    set(s);
    CALL(pass<TCCRUpdate<apply, residual>>(n, v.v));
    EXPECT_TRUE(sameScalars(s, get()));
    expectCombination(
      {
        {1.0, &values[TCCR_X]},
        {s.a, &values[TCCR_P]}
    },
      v.get(TCCR_X), "x + a p");
    expectCombination(
      {
        {1.0,  &values[TCCR_S]                                     },
        {-s.a, &values[apply == KSPTC_APPLY_NONE ? TCCR_W : TCCR_Q]}
    },
      v.get(TCCR_S), "s - a q");
    if (residual)
      expectCombination(
        {
          {1.0,  &values[TCCR_R]},
          {-s.a, &values[TCCR_W]}
      },
        v.get(TCCR_R), "r - a w");
    expectUnchanged(values, v, TCCRSet(TCCR_X) | TCCRSet(TCCR_S) | (residual ? TCCRSet(TCCR_R) : 0));
  }
}

TEST_P(CRSteps, Update)
{
  expectUpdate<KSPTC_APPLY_NONE, false>();
}
TEST_P(CRSteps, UpdateScaled)
{
  expectUpdate<KSPTC_APPLY_SCALED, false>();
}
TEST_P(CRSteps, UpdateWithResidual)
{
  expectUpdate<KSPTC_APPLY_SCALED, true>();
}

template <bool residual, bool first>
void CRSteps::expectSums()
{
  for (PetscInt n : sizes) {
    const std::vector<Values> values = some(n);
    const Values             &of     = values[residual ? TCCR_R : TCCR_S];
    Vectors                   v(cuda, values, n % 2);
    const TCCRScalars         before   = marked();
    TCCRScalars               expected = before;

    set(before);
    CALL((pass<TCCRSums<residual, first>>(n, v.v)));
    const TCCRScalars s = get();

    expectDot(values[TCCR_S], values[TCCR_T], s.st, "s.t");
    expectDot(of, of, s.square, residual ? "r.r" : "s.s");
    expected.st     = s.st;
    expected.square = s.square;
    expected.b      = first ? 0.0 : s.st / before.st;
    EXPECT_TRUE(sameScalars(expected, s)) << n;
    expectUnchanged(values, v, 0);
  }
}

TEST_P(CRSteps, Sums)
{
  expectSums<false, false>();
}
TEST_P(CRSteps, SumsAtFirst)
{
  expectSums<false, true>();
}
TEST_P(CRSteps, SumsWithResidual)
{
  expectSums<true, false>();
}
TEST_P(CRSteps, SumsWithResidualAtFirst)
{
  expectSums<true, true>();
}

/* An iteration ends with the sums, by whichever norm. last: of s and r; s.t is negative if it is large */
TEST_P(CRSteps, EndsIterations)
{
  const PetscInt n    = 4099;
  const auto     sums = [this](auto which, double last) {
    std::vector<Values> values = some(n);

    values[TCCR_S].back() = values[TCCR_R].back() = last;
    values[TCCR_T].back()                         = last > 100.0 ? -1.0 : 1.0;
    if (last <= 100.0) values[TCCR_T] = values[TCCR_S];
    Vectors v(cuda, values);
    return pass<decltype(which)>(n, v.v);
  };
  const auto expectAll = [&](auto which) {
    expectRecords([&] { return sums(which, 1.0); }, PETSCTC_NORM_RR, [](const TCCRScalars &s) { return s.square; });
    expectRecords([&] { return sums(which, 1.0); }, PETSCTC_NORM_ZZ, [](const TCCRScalars &s) { return s.square; });
    expectRecords([&] { return sums(which, 1.0); }, PETSCTC_NORM_BETA, [](const TCCRScalars &s) { return s.st; });
    expectRecords([&] { return sums(which, 1e4); }, PETSCTC_NORM_BETA, [](const TCCRScalars &s) { return -s.st; });
    for (double last : {NaN, Inf, -Inf}) {
      expectStopsAt([&] { return sums(which, last); }, PETSCTC_NORM_RR);
      expectStopsAt([&] { return sums(which, last); }, PETSCTC_NORM_BETA);
    }
  };

  expectAll(TCCRSums<false, false>{});
  expectAll(TCCRSums<true, false>{});
  expectAll(TCCRSums<false, true>{});
  expectAll(TCCRSums<true, true>{});
}

/* Every pass of the table */
TEST_P(CRSteps, FrozenOnceStopped)
{
  for (PetscInt n : {(PetscInt)0, (PetscInt)5, (PetscInt)4099}) {
    const std::vector<Values> values = some(n);
    Vectors                   v(cuda, values);

    for (int stop : {(int)PETSCTC_STOP_TEST, (int)TCCR_STOP_WQ_NAN, (int)TCCR_STOP_WQ_SIGN}) {
      TCCRScalars s = marked();

      s.stop = stop;
      s.wq   = NaN; /* its bits too */
      set(s);
      for (int k = 0; k < TCCR::Passes::count; ++k) {
        CALL((*steps->pass[k])(n, v.v, &work, nullptr));
        EXPECT_TRUE(sameScalars(s, get())) << "pass " << k << ", stop " << stop;
      }
      expectUnchanged(values, v, 0);
    }
    CALL(steps->reset(&work, nullptr)); /* and they run again after a reset */
    CALL((pass<TCCRSums<false, true>>(n, v.v)));
    expectDot(values[TCCR_S], values[TCCR_T], get().st, "s.t");
  }
}

TEST_P(CRSteps, SameBitsOnEveryRunAndAlignment)
{
  const PetscInt            n      = 100003;
  const std::vector<Values> values = some(n);
  TCCRScalars               s[3];
  Values                    result[3][TCCR_VECTORS];

  for (int run = 0; run < 3; ++run) {
    Vectors v(cuda, values, run == 2);

    set(marked());
    CALL(pass<TCCRDirect<KSPTC_APPLY_SCALED>>(n, v.v));
    CALL((pass<TCCRUpdate<KSPTC_APPLY_SCALED, true>>(n, v.v)));
    CALL((pass<TCCRSums<true, false>>(n, v.v)));
    s[run] = get();
    for (int k = 0; k < TCCR_VECTORS; ++k) result[run][k] = v.get(k);
  }
  EXPECT_EQ(PETSCTC_STOP_NONE, s[0].stop);
  for (int run = 1; run < 3; ++run) {
    EXPECT_TRUE(sameScalars(s[0], s[run])) << run;
    for (int k = 0; k < TCCR_VECTORS; ++k) EXPECT_TRUE(sameBits(result[0][k], result[run][k])) << run << ", vector " << k;
  }
}

/* The residual of the returned x, not the recursive one, is what counts */
TEST_P(CRSteps, SolvesALaplacian)
{
  for (PetscInt n : {(PetscInt)1, (PetscInt)2, (PetscInt)35, (PetscInt)200}) {
    const Values b = randomValues(n, 1);
    Values       x;
    const int    iterations = solve<KSPTC_APPLY_NONE, false>(-1.0, 2.0, -1.0, 1.0, b, x);

    EXPECT_GT(iterations, 0) << n;
    EXPECT_LE(iterations, n + n / 4) << n;
    EXPECT_LE(relativeResidual(-1.0, 2.0, -1.0, x, b), 45000 * PETSC_MACHINE_EPSILON) << n;
  }
}

/* With the diagonal 1/4 by each way to apply it. Scaling by a power of two changes no iterate */
TEST_P(CRSteps, SolvesWithAPreconditioner)
{
  const Values b = randomValues(300, 7);
  Values       plain, x;
  const int    iterations = solve<KSPTC_APPLY_NONE, false>(-1.0, 3.0, -1.0, 1.0, b, plain);

  EXPECT_GT(iterations, 0);
  EXPECT_EQ(iterations, (solve<KSPTC_APPLY_SCALED, false>(-1.0, 3.0, -1.0, 0.25, b, x)));
  EXPECT_TRUE(sameBits(plain, x));
  EXPECT_EQ(iterations, (solve<KSPTC_APPLY_SCALED, true>(-1.0, 3.0, -1.0, 0.25, b, x)));
  EXPECT_TRUE(sameBits(plain, x));
  for (int residual = 0; residual < 2; ++residual) {
    EXPECT_EQ(iterations, residual ? (solve<KSPTC_APPLY_APART, true>(-1.0, 3.0, -1.0, 0.25, b, x)) : (solve<KSPTC_APPLY_APART, false>(-1.0, 3.0, -1.0, 0.25, b, x)));
    EXPECT_LE(relativeResidual(-1.0, 3.0, -1.0, x, b), 4500 * PETSC_MACHINE_EPSILON);
  }
}
