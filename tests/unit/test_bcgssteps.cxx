/* The steps of KSPTCBCGS on all backends: every field and vector after every step, every stop, the frozen state, and a solve made of steps alone */
#include "steps.h"

class BCGSSteps : public StepsTest<TCBCGSSteps, TCBCGSWork, TCBCGSScalars> {
protected:
  const TCBCGSSteps *table(bool cuda) override
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCBCGSSteps_CUDA;
#endif
    (void)cuda;
    return &TCBCGSSteps_Host;
  }

  /* Between two iterations, none of whose steps is advance */
  TCBCGSScalars marked()
  {
    TCBCGSScalars s = StepsTest::marked();

    s.advanced = 0.0;
    return s;
  }

  /* rhonext is s.rp - omega t.rp, up to the rounding of the sums */
  void expectRhoNext(const Values &t, const Values &s, const Values &rp)
  {
    const TCBCGSScalars now = get();
    const Reference     sr(s, rp), tr(t, rp);

    EXPECT_NEAR((double)(sr.value - (long double)now.omega * tr.value), now.rhonext, sr.bound() + std::fabs(now.omega) * tr.bound() + 2 * PETSC_MACHINE_EPSILON * (std::fabs((double)sr.value) + std::fabs((double)(now.omega * tr.value)))) << s.size();
  }

  /* breakdown of vectors with v.rp = d1 */
  TCBCGSScalars breakdown(PetscReal d1)
  {
    Vector v(cuda, {d1, 3.0}), rp(cuda, {1.0, 0.0});

    set(marked());
    EXPECT_EQ(PETSC_SUCCESS, steps->breakdown(2, v, rp, &work, nullptr));
    return get();
  }
};
ALL_BACKENDS(BCGSSteps);

TEST_P(BCGSSteps, Reset)
{
  TCBCGSScalars s = marked(), expected = {};

  s.stop = PETSCTC_STOP_D1_ZERO;
  set(s);
  CALL(steps->reset(&work, nullptr));
  expected.rho = expected.alpha = expected.omega = 1.0;
  EXPECT_TRUE(sameScalars(expected, get()));
}

TEST_P(BCGSSteps, Start)
{
  for (PetscInt n : sizes) {
    const Values  r = randomValues(n, 1);
    Vector        dr(cuda, r), rp(cuda, Values(n, NaN)), p(cuda, Values(n, NaN)), v(cuda, Values(n, NaN), n % 2);
    TCBCGSScalars expected = marked();

    set(expected);
    CALL(steps->start(n, dr, rp, p, v, &work, nullptr));
    expected.rr = expected.rhonext = get().rr;
    expectDot(r, r, expected.rr, "r.r");
    EXPECT_TRUE(sameScalars(expected, get()));
    EXPECT_TRUE(sameBits(r, rp.get()) && sameBits(r, dr.get()));
    EXPECT_TRUE(sameBits(Values(n, 0.0), p.get()) && sameBits(Values(n, 0.0), v.get()));
  }
}

TEST_P(BCGSSteps, Direction)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const Values        r = randomValues(n, 1), v = randomValues(n, 2), p = randomValues(n, 3);
      Vector              dr(cuda, r, offset), dv(cuda, v, offset), dp(cuda, p, offset);
      const TCBCGSScalars before   = marked();
      TCBCGSScalars       expected = before;

      set(before);
      CALL(steps->direction(n, dr, dv, dp, &work, nullptr));
      expected.rhoold   = before.rho;
      expected.rho      = before.rhonext;
      expected.omegaold = before.omega;
      expected.beta     = (expected.rho / expected.rhoold) * (before.alpha / expected.omegaold);
      EXPECT_TRUE(sameScalars(expected, get()));
      const Values ones(n, 1.0);
      expectCombination(
        {
          {1.0,                                              &r   },
          {-expected.omegaold * expected.beta,               &v   },
          {expected.omegaold * expected.beta * before.vmean, &ones},
          {expected.beta,                                    &p   }
      },
        dp.get(), "r - omega beta (v - vmean) + beta p");
      EXPECT_TRUE(sameBits(r, dr.get()) && sameBits(v, dv.get()));
    }
  }
}

/* After reset and start: beta is r.r, p is r whatever was there */
TEST_P(BCGSSteps, FirstDirection)
{
  const PetscInt n = 1000;
  const Values   r = randomValues(n, 1);
  Vector         dr(cuda, r), rp(cuda, Values(n, NaN)), p(cuda, Values(n, NaN)), v(cuda, Values(n, NaN));

  CALL(steps->start(n, dr, rp, p, v, &work, nullptr));
  CALL(steps->direction(n, dr, v, p, &work, nullptr));
  const TCBCGSScalars s = get();
  EXPECT_EQ(1.0, s.rhoold);
  EXPECT_EQ(1.0, s.omegaold);
  EXPECT_EQ(s.rr, s.rho);
  EXPECT_EQ(s.rr, s.beta);
  EXPECT_EQ(r, p.get());
}

TEST_P(BCGSSteps, Breakdown)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* v.rp is 0: a stop */
    const Values        v = randomValues(n, 1), rp = randomValues(n, 2);
    Vector              dv(cuda, v), drp(cuda, rp, n % 2);
    const TCBCGSScalars before   = marked();
    TCBCGSScalars       expected = before;

    set(before);
    CALL(steps->breakdown(n, dv, drp, &work, nullptr));
    expected.d1 = get().d1;
    expectDot(v, rp, expected.d1, "v.rp");
    expected.alpha = before.rho / expected.d1;
    expected.vmean = 0.0;
    EXPECT_TRUE(sameScalars(expected, get()));
  }
}

TEST_P(BCGSSteps, Half)
{
  for (PetscInt n : sizes) {
    const Values        r = randomValues(n, 1), v = randomValues(n, 2), ones(n, 1.0);
    Vector              dr(cuda, r), dv(cuda, v), ds(cuda, Values(n, NaN), n % 2);
    const TCBCGSScalars before = marked();

    set(before);
    CALL(steps->half(n, dr, dv, ds, &work, nullptr));
    EXPECT_TRUE(sameScalars(before, get()));
    expectCombination(
      {
        {1.0,                         &r   },
        {-before.alpha,               &v   },
        {before.alpha * before.vmean, &ones}
    },
      ds.get(), "r - alpha (v - vmean)");
    EXPECT_TRUE(sameBits(r, dr.get()) && sameBits(v, dv.get()));
    CALL(steps->half(n, dr, dv, dr, &work, nullptr)); /* s may be r */
    EXPECT_TRUE(sameBits(ds.get(), dr.get()));
  }
}

TEST_P(BCGSSteps, Stabilize)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* t.t is 0: a stop */
    const Values        t = randomValues(n, 1), s = randomValues(n, 2);
    Vector              dt(cuda, t), ds(cuda, s, n % 2);
    const TCBCGSScalars before   = marked();
    TCBCGSScalars       expected = before;

    set(before);
    CALL(steps->stabilize(n, dt, ds, nullptr, &work, nullptr));
    expected.ts = get().ts;
    expected.tt = get().tt;
    expectDot(t, s, expected.ts, "t.s");
    expectDot(t, t, expected.tt, "t.t");
    expected.omega = expected.ts / expected.tt;
    expected.tmean = 0.0;
    EXPECT_TRUE(sameScalars(expected, get()));
  }
}

TEST_P(BCGSSteps, Update)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const Values        p = randomValues(n, 1), s = randomValues(n, 2), t = randomValues(n, 3), rp = randomValues(n, 4), x = randomValues(n, 5), ones(n, 1.0);
      Vector              dp(cuda, p, offset), ds(cuda, s, offset), dt(cuda, t, offset), drp(cuda, rp, offset), dx(cuda, x, offset), dr(cuda, Values(n, NaN), offset);
      const TCBCGSScalars before   = marked();
      TCBCGSScalars       expected = before;

      set(before);
      CALL(steps->update(n, dp, ds, dt, drp, dx, dr, &work, nullptr));
      const Values r = dr.get();
      expectCombination(
        {
          {1.0,          &x},
          {before.alpha, &p},
          {before.omega, &s}
      },
        dx.get(), "x + alpha p + omega s");
      expectCombination(
        {
          {1.0,                         &s   },
          {-before.omega,               &t   },
          {before.omega * before.tmean, &ones}
      },
        r, "s - omega (t - tmean)");
      expected.rr      = get().rr;
      expected.rhonext = get().rhonext;
      expectDot(r, r, expected.rr, "r.r");
      expectDot(r, rp, expected.rhonext, "r.rp");
      EXPECT_TRUE(sameScalars(expected, get()));
      EXPECT_TRUE(sameBits(p, dp.get()) && sameBits(s, ds.get()) && sameBits(t, dt.get()) && sameBits(rp, drp.get()));
    }
  }
}

/* With rp: what advance needs, and the sums of stabilize to the bit */
TEST_P(BCGSSteps, StabilizeForAdvance)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* t.t is 0: a stop */
    const Values        t = randomValues(n, 1), s = randomValues(n, 2), rp = randomValues(n, 3);
    Vector              dt(cuda, t), ds(cuda, s, n % 2), drp(cuda, rp);
    const TCBCGSScalars before = marked();

    set(before);
    CALL(steps->stabilize(n, dt, ds, nullptr, &work, nullptr));
    TCBCGSScalars expected = get();

    set(before);
    CALL(steps->stabilize(n, dt, ds, drp, &work, nullptr));
    expectRhoNext(t, s, rp);
    expected.rhonext = get().rhonext;
    EXPECT_TRUE(sameScalars(expected, get()));
  }
}

/* Advance is update and the direction behind it, whose scalars come with the next breakdown. x and r have the bits of update, p those of direction */
TEST_P(BCGSSteps, Advance)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* v.1 is 0: a stop */
    for (int offset = 0; offset < 2; ++offset) {
      const Values        p = randomValues(n, 1), s = randomValues(n, 2), t = randomValues(n, 3), v = randomValues(n, 4), x = randomValues(n, 5), product(n, 1.0);
      Vector              dp(cuda, p, offset), ds(cuda, s, offset), dt(cuda, t, offset), dv(cuda, v, offset), dx(cuda, x, offset), dr(cuda, Values(n, NaN), offset), done(cuda, product, offset);
      const TCBCGSScalars before = marked();
      TCBCGSScalars       expected;

      set(before);
      CALL(steps->update(n, dp, ds, dt, dv, dx, dr, &work, nullptr));
      const Values rx = dx.get(), rr = dr.get();

      expected         = get();
      expected.rhonext = before.rhonext; /* advance leaves it as it was, update has made r.v of it */
      set(expected);
      CALL(steps->direction(n, dr, dv, dp, &work, nullptr));
      CALL(steps->breakdown(n, dv, done, &work, nullptr));
      expected        = get();
      const Values rp = dp.get();

      Vector ep(cuda, p, offset), ex(cuda, x, offset), er(cuda, Values(n, NaN), offset);
      set(before);
      CALL(steps->advance(n, ds, dt, dv, ex, er, ep, &work, nullptr));
      EXPECT_EQ(1.0, get().advanced);
      EXPECT_EQ(before.rho, get().rho);
      CALL(steps->breakdown(n, dv, done, &work, nullptr));
      EXPECT_TRUE(sameScalars(expected, get())) << n;
      EXPECT_TRUE(sameBits(rx, ex.get())) << n;
      EXPECT_TRUE(sameBits(rr, er.get())) << n;
      expectCombination(
        {
          {1.0,                                         &rr     },
          {-before.omega * expected.beta,               &v      },
          {before.omega * expected.beta * before.vmean, &product},
          {expected.beta,                               &p      }
      },
        ep.get(), "r - omega beta (v - vmean) + beta p");
      EXPECT_TRUE(sameBits(rp, ep.get())) << n;
      EXPECT_TRUE(sameBits(s, ds.get()) && sameBits(t, dt.get()) && sameBits(v, dv.get()));
    }
  }
}

TEST_P(BCGSSteps, BreakdownStops)
{
  EXPECT_EQ(PETSCTC_STOP_D1_NAN, breakdown(NaN).stop);
  EXPECT_EQ(PETSCTC_STOP_D1_NAN, breakdown(Inf).stop);
  EXPECT_EQ(PETSCTC_STOP_D1_NAN, breakdown(-Inf).stop);
  EXPECT_EQ(PETSCTC_STOP_D1_ZERO, breakdown(0.0).stop);
  EXPECT_EQ(marked().alpha, breakdown(0.0).alpha) << "alpha stays when the step stops";
  EXPECT_EQ(PETSCTC_STOP_NONE, breakdown(-tiny).stop);
  EXPECT_EQ(marked().rho / -tiny, breakdown(-tiny).alpha);
}

TEST_P(BCGSSteps, StabilizeStops)
{
  const PetscInt n = 9;
  Vector         zero(cuda, Values(n, 0.0)), s(cuda, randomValues(n, 1));
  TCBCGSScalars  expected = marked();

  set(expected);
  CALL(steps->stabilize(n, zero, s, nullptr, &work, nullptr));
  expected.stop = PETSCTC_STOP_D2_ZERO;
  expected.ts = expected.tt = expected.tmean = 0.0;
  EXPECT_TRUE(sameScalars(expected, get())) << "omega stays when the step stops";
}

/* KSPBCGS tests neither t.s nor t.t for NaN: the residual's norm shows it */
TEST_P(BCGSSteps, StabilizeLetsNanPass)
{
  Vector t(cuda, {NaN, 1.0}), s(cuda, {1.0, 1.0});

  set(marked());
  CALL(steps->stabilize(2, t, s, nullptr, &work, nullptr));
  EXPECT_EQ(PETSCTC_STOP_NONE, get().stop);
  EXPECT_TRUE(std::isnan(get().omega));
}

/* The sums of a step share an MMA tile, not their numbers */
TEST_P(BCGSSteps, InfAndNanStayInTheirSum)
{
  const PetscInt n = 1000;
  const Values   t = randomValues(n, 1);
  Values         s = randomValues(n, 2);
  Vector         dt(cuda, t), ds(cuda, s);

  set(marked());
  CALL(steps->stabilize(n, dt, ds, nullptr, &work, nullptr));
  const PetscReal tt = get().tt;
  for (PetscInt where : {0, 517, 999}) {
    s        = randomValues(n, 2);
    s[where] = where ? NaN : Inf;
    ds.set(s);
    set(marked());
    CALL(steps->stabilize(n, dt, ds, nullptr, &work, nullptr));
    EXPECT_FALSE(std::isfinite(get().ts)) << where;
    EXPECT_EQ(tt, get().tt) << where;
  }
}

TEST_P(BCGSSteps, EndsIterations)
{
  const PetscInt n      = 4099;
  const auto     update = [this](double last) {
    Values t = randomValues(n, 3);
    t.back() = last;
    Vector p(cuda, randomValues(n, 1)), s(cuda, randomValues(n, 2)), dt(cuda, t), rp(cuda, randomValues(n, 4)), x(cuda, randomValues(n, 5)), r(cuda, Values(n, NaN));
    return steps->update(n, p, s, dt, rp, x, r, &work, nullptr);
  };

  expectRecords([&] { return update(1.0); }, PETSCTC_NORM_RR, [](const TCBCGSScalars &s) { return s.rr; });
  for (double last : {NaN, Inf}) expectStopsAt([&] { return update(last); }, PETSCTC_NORM_RR);

  /* rho = 0: KSPBCGS breaks down, after its convergence test */
  for (bool recorded : {true, false}) {
    TCBCGSScalars s = marked();

    s.rho       = 0.0;
    work.test   = {PETSCTC_NORM_NONE, 0.0, 0.0};
    work.record = recorded ? &work.records[0] : nullptr;
    set(s);
    CALL(update(1.0));
    EXPECT_EQ(recorded ? PETSCTC_STOP_RHO_ZERO : PETSCTC_STOP_NONE, get().stop);
  }
  work.record = nullptr;
}

/* v = u d, breakdown; t = u d, stabilize: the same numbers, to the bits of vectors and sums */
TEST_P(BCGSSteps, Scaled)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* sums of nothing stop */
    const Values u = randomValues(n, 1), d = randomValues(n, 2), q = randomValues(n, 3);
    Values       product(n);
    Vector       du(cuda, u), dd(cuda, d, n % 2), dq(cuda, q), v(cuda, Values(n, NaN)), t(cuda, Values(n, NaN));

    for (PetscInt i = 0; i < n; i++) product[i] = u[i] * d[i];
    Vector expected(cuda, product);
    for (int which = 0; which < 2; which++) {
      set(marked());
      if (which) CALL(steps->stabilize_scaled(n, du, dd, dq, nullptr, t, &work, nullptr));
      else CALL(steps->breakdown_scaled(n, du, dd, dq, v, &work, nullptr));
      const TCBCGSScalars s = get();
      set(marked());
      if (which) CALL(steps->stabilize(n, expected, dq, nullptr, &work, nullptr));
      else CALL(steps->breakdown(n, expected, dq, &work, nullptr));
      EXPECT_TRUE(sameScalars(get(), s)) << n;
      EXPECT_TRUE(sameBits(product, (which ? t : v).get())) << n;
    }
    EXPECT_TRUE(sameBits(u, du.get()) && sameBits(d, dd.get()) && sameBits(q, dq.get()));
  }
}

/* The vector without its mean, and the mean */
static Values projected(const Values &v, double &mean)
{
  Values      result(v.size());
  long double sum = 0.0L;

  for (PetscScalar element : v) sum += element;
  mean = (double)(sum / (long double)v.size());
  for (size_t k = 0; k < v.size(); ++k) result[k] = (PetscScalar)((long double)v[k] - sum / (long double)v.size());
  return result;
}

/* With a projection, by a diagonal and by blocks: v and t are stored as the preconditioner leaves them, means and scalars are those of their projections, whatever the means of u, s and rp are, which are not projected here */
TEST_P(BCGSSteps, Projected)
{
  for (PetscInt n : sizes) {
    if (n < 2) continue; /* nothing is left: a stop */
    const Values u = randomValues(n, 1), d = randomValues(n, 2), q = randomValues(n, 3), h = randomValues(n, 4);
    const Blocks blocks(cuda, n, n % 3 ? -2 : 3);
    for (int which = 0; which < 6; which++) {
      const int    what    = which % 3;
      const bool   blocked = which >= 3;
      Values       product = blocked ? blocks.times(u) : u;
      Vector       du(cuda, u), dd(cuda, d), dq(cuda, q), dh(cuda, h), z(cuda, Values(n, NaN), n % 2);
      PetscScalar *rp = what == 2 ? (PetscScalar *)dh : nullptr;
      double       mean;

      for (PetscInt k = 0; k < n && !blocked; k++) product[k] *= d[k];
      set(marked());
      work.constant = PETSC_TRUE;
      if (what) CALL(blocked ? steps->stabilize_blocks(n, blocks, du, dq, rp, z, &work, nullptr) : steps->stabilize_scaled(n, du, dd, dq, rp, z, &work, nullptr));
      else CALL(blocked ? steps->breakdown_blocks(n, blocks, du, dq, z, &work, nullptr) : steps->breakdown_scaled(n, du, dd, dq, z, &work, nullptr));
      work.constant            = PETSC_FALSE;
      const TCBCGSScalars s    = get();
      const Values        p    = projected(product, mean);
      const double        near = 100 * PETSC_MACHINE_EPSILON * (double)n;

      EXPECT_TRUE(sameBits(product, z.get())) << n << ", case " << which;
      EXPECT_NEAR(mean, what ? s.tmean : s.vmean, near / n) << n << ", case " << which;
      EXPECT_EQ(PETSCTC_STOP_NONE, s.stop);
      if (what) {
        EXPECT_NEAR((double)Reference(p, q).value, s.ts, near) << n << ", case " << which;
        EXPECT_NEAR((double)Reference(p, p).value, s.tt, near) << n << ", case " << which;
        EXPECT_EQ(s.ts / s.tt, s.omega);
        EXPECT_EQ(marked().vmean, s.vmean);
      } else {
        EXPECT_NEAR((double)Reference(p, q).value, s.d1, near) << n << ", case " << which;
        EXPECT_EQ(marked().rho / s.d1, s.alpha);
        EXPECT_EQ(marked().tmean, s.tmean);
      }
      if (what == 2) { EXPECT_NEAR((double)(Reference(q, h).value - s.omega * Reference(p, h).value), s.rhonext, near * (1.0 + std::fabs(s.omega))) << n << ", case " << which; }
      if (what == 1) { EXPECT_EQ(marked().rhonext, s.rhonext); }
    }
  }
}

/* However large the mean is, the sums are those of what is left */
TEST_P(BCGSSteps, ProjectsALargeMean)
{
  const PetscInt n = 1000;
  const Values   q = randomValues(n, 3), h = randomValues(n, 4);
  const Blocks   blocks(cuda, n, 4);
  Values         u = randomValues(n, 1);
  Vector         ones(cuda, Values(n, 1.0)), dq(cuda, q), dh(cuda, h), z(cuda, Values(n, NaN));

  for (PetscScalar &element : u) element += 0.01 / std::sqrt(PETSC_MACHINE_EPSILON);
  Vector du(cuda, u);
  for (bool blocked : {false, true}) {
    double       mean;
    const Values p    = projected(blocked ? blocks.times(u) : u, mean);
    const double near = 100 * PETSC_MACHINE_EPSILON * n, pp = (double)Reference(p, p).value;

    work.constant = PETSC_TRUE;
    set(marked());
    CALL(blocked ? steps->breakdown_blocks(n, blocks, du, dq, z, &work, nullptr) : steps->breakdown_scaled(n, du, ones, dq, z, &work, nullptr));
    EXPECT_NEAR((double)Reference(p, q).value, get().d1, near * std::sqrt(pp * n));
    set(marked());
    CALL(blocked ? steps->stabilize_blocks(n, blocks, du, dq, dh, z, &work, nullptr) : steps->stabilize_scaled(n, du, ones, dq, dh, z, &work, nullptr));
    work.constant = PETSC_FALSE;
    EXPECT_NEAR(pp, get().tt, near * pp);
    EXPECT_NEAR((double)Reference(p, q).value, get().ts, near * std::sqrt(pp * n));
    EXPECT_NEAR((double)(Reference(q, h).value - get().omega * Reference(p, h).value), get().rhonext, near * (n + std::fabs(get().omega) * std::sqrt(pp * n)));
  }
}

/* Of a vector that is constant nothing is left: t.t is 0, and not a little less */
TEST_P(BCGSSteps, ProjectsConstantsToNothing)
{
  const PetscInt n = 1000;
  Vector         u(cuda, Values(n, 0.1)), ones(cuda, Values(n, 1.0)), s(cuda, randomValues(n, 1)), t(cuda, Values(n, NaN));

  set(marked());
  work.constant = PETSC_TRUE;
  CALL(steps->stabilize_scaled(n, u, ones, s, nullptr, t, &work, nullptr));
  work.constant = PETSC_FALSE;
  EXPECT_GE(get().tt, 0.0);
  EXPECT_LE(get().tt, 10 * n * PETSC_MACHINE_EPSILON * 0.01);
}

/* v = D u, breakdown; t = D u, stabilize, for advance too: the same numbers, to the bits of vectors; on the host of sums too. Aligned or not */
TEST_P(BCGSSteps, Blocked)
{
  for (const auto &size : blockedSizes) {
    const PetscInt n = size.first;
    if (!n) continue; /* sums of nothing stop */
    const Values u = randomValues(n, 1), q = randomValues(n, 3), h = randomValues(n, 4);
    for (int which = 0; which < 6; which++) {
      const int     offset = which / 3, what = which % 3;
      const Blocks  blocks(cuda, n, size.second, offset);
      const Values  product = blocks.times(u);
      Vector        du(cuda, u, offset), dq(cuda, q, offset), dh(cuda, h), expected(cuda, product), z(cuda, Values(n, NaN), offset);
      PetscScalar  *rp = what == 2 ? (PetscScalar *)dh : nullptr;
      TCBCGSScalars s, plain;

      set(marked());
      CALL(what ? steps->stabilize_blocks(n, blocks, du, dq, rp, z, &work, nullptr) : steps->breakdown_blocks(n, blocks, du, dq, z, &work, nullptr));
      s = get();
      set(marked());
      CALL(what ? steps->stabilize(n, expected, dq, rp, &work, nullptr) : steps->breakdown(n, expected, dq, &work, nullptr));
      plain = get();
      if (!cuda) { EXPECT_TRUE(sameScalars(plain, s)) << n << " in blocks of " << size.second << ", case " << which; }
      expectDot(product, q, what ? s.ts : s.d1, "z.q");
      if (what) expectDot(product, product, s.tt, "z.z");
      if (what == 2) expectRhoNext(product, q, h);
      if (what) EXPECT_EQ(s.ts / s.tt, s.omega);
      else EXPECT_EQ(marked().rho / s.d1, s.alpha);
      EXPECT_EQ(plain.stop, s.stop);
      EXPECT_TRUE(sameBits(product, z.get())) << n << " in blocks of " << size.second << ", case " << which;
      EXPECT_TRUE(sameBits(u, du.get()) && sameBits(q, dq.get()) && sameBits(h, dh.get()));
      blocks.expectUnchanged();
    }
  }
}

/* Half, update and advance that find their sums done by the product are breakdown and half, stabilize and update or advance: all bits, stops too */
TEST_P(BCGSSteps, AfterAProductWithSums)
{
  for (PetscInt n : {(PetscInt)2, (PetscInt)5, (PetscInt)4099}) {
    for (PetscReal value : {0.75, 0.0, (double)NaN}) {
      for (int update = 0; update < 3; ++update) {
        Values        one(n, 0.0), other(n, 0.0), vectors[2][4];
        TCBCGSScalars scalars[2];
        one[0]   = value; /* v and t: sums value; value, value^2 */
        other[0] = 1.0;
        for (int sums = 0; sums < 2; ++sums) {
          Vector product(cuda, {value, value * value, value, 1.0}), done(cuda, one), dother(cuda, other);
          Vector v(cuda, randomValues(n, 1)), r(cuda, randomValues(n, 2)), s(cuda, randomValues(n, 3)), p(cuda, randomValues(n, 4)), rp(cuda, randomValues(n, 5)), x(cuda, randomValues(n, 6));

          set(marked());
          work.sums = sums ? (const PetscScalar *)product : nullptr;
          if (!sums) { CALL(update ? steps->stabilize(n, done, dother, update == 2 ? (const PetscScalar *)dother : nullptr, &work, nullptr) : steps->breakdown(n, done, dother, &work, nullptr)); }
          if (update == 2) CALL(steps->advance(n, s, v, rp, x, r, p, &work, nullptr));
          else CALL(update ? steps->update(n, p, s, v, rp, x, r, &work, nullptr) : steps->half(n, r, v, s, &work, nullptr));
          scalars[sums]    = get();
          vectors[sums][0] = x.get();
          vectors[sums][1] = r.get();
          vectors[sums][2] = s.get();
          vectors[sums][3] = p.get();
        }
        work.sums = nullptr;
        EXPECT_EQ(scalars[0].stop, scalars[1].stop) << "sum " << value << ", update " << update;
        if (value != value) continue; /* not the bits of a NaN */
        EXPECT_TRUE(sameScalars(scalars[0], scalars[1])) << "sum " << value << ", update " << update;
        for (int k = 0; k < 4; ++k) EXPECT_TRUE(sameBits(vectors[0][k], vectors[1][k])) << "sum " << value << ", update " << update << ", vector " << k;
        EXPECT_EQ(value != 0.0 ? PETSCTC_STOP_NONE : (update ? PETSCTC_STOP_D2_ZERO : PETSCTC_STOP_D1_ZERO), scalars[1].stop);
      }
    }
  }
}

TEST_P(BCGSSteps, FrozenOnceStopped)
{
  for (PetscInt n : {(PetscInt)0, (PetscInt)5, (PetscInt)4099}) {
    std::vector<Values> v;
    for (unsigned k = 0; k < 7; ++k) v.push_back(randomValues(n, k));
    Vector       r(cuda, v[0]), rp(cuda, v[1]), p(cuda, v[2]), q(cuda, v[3]), s(cuda, v[4]), t(cuda, v[5]), x(cuda, v[6]);
    const Blocks blocks(cuda, n, n % 5 ? 1 : 5);

    for (int stop : {PETSCTC_STOP_D1_NAN, PETSCTC_STOP_D1_ZERO, PETSCTC_STOP_D2_ZERO, PETSCTC_STOP_RHO_ZERO, PETSCTC_STOP_TEST}) {
      TCBCGSScalars frozen = marked();
      frozen.stop          = stop;
      frozen.d1            = NaN; /* its bits too */
      set(frozen);
      const std::vector<std::function<PetscErrorCode()>> all = {
        [&] { return steps->start(n, r, rp, p, q, &work, nullptr); },
        [&] { return steps->direction(n, r, q, p, &work, nullptr); },
        [&] { return steps->breakdown(n, q, rp, &work, nullptr); },
        [&] { return steps->half(n, r, q, s, &work, nullptr); },
        [&] { return steps->stabilize(n, t, s, nullptr, &work, nullptr); },
        [&] { return steps->stabilize(n, t, s, rp, &work, nullptr); },
        [&] { return steps->update(n, p, s, t, rp, x, r, &work, nullptr); },
        [&] { return steps->advance(n, s, t, q, x, r, p, &work, nullptr); },
        [&] { return steps->stabilize_scaled(n, r, x, s, rp, t, &work, nullptr); },
        [&] { return steps->breakdown_scaled(n, r, x, rp, q, &work, nullptr); },
        [&] { return steps->stabilize_scaled(n, r, x, s, nullptr, t, &work, nullptr); },
        [&] { return steps->breakdown_blocks(n, blocks, r, rp, q, &work, nullptr); },
        [&] { return steps->stabilize_blocks(n, blocks, r, s, rp, t, &work, nullptr); },
        [&] { return steps->stabilize_blocks(n, blocks, r, s, nullptr, t, &work, nullptr); },
      };
      for (size_t k = 0; k < all.size(); ++k) {
        CALL(all[k]());
        EXPECT_TRUE(sameScalars(frozen, get())) << "step " << k << ", stop " << stop;
      }
      const Vector *vectors[] = {&r, &rp, &p, &q, &s, &t, &x};
      for (unsigned k = 0; k < 7; ++k) EXPECT_TRUE(sameBits(v[k], vectors[k]->get())) << "vector " << k << ", stop " << stop;
    }
    CALL(steps->reset(&work, nullptr)); /* and runs again after a reset */
    CALL(steps->start(n, r, rp, p, q, &work, nullptr));
    expectDot(v[0], v[0], get().rr, "r.r");
  }
}

TEST_P(BCGSSteps, SameBitsOnEveryRunAndAlignment)
{
  const PetscInt n = 100003;
  TCBCGSScalars  s[3];
  Values         result[3];

  for (int run = 0; run < 3; ++run) {
    const int offset = run == 2;
    Vector    p(cuda, randomValues(n, 1), offset), h(cuda, randomValues(n, 2), offset), t(cuda, randomValues(n, 3), offset), rp(cuda, randomValues(n, 4), offset), x(cuda, randomValues(n, 5), offset), r(cuda, Values(n, NaN), offset);
    set(marked());
    CALL(steps->stabilize(n, t, h, nullptr, &work, nullptr));
    CALL(steps->update(n, p, h, t, rp, x, r, &work, nullptr));
    CALL(steps->direction(n, r, t, p, &work, nullptr));
    s[run]      = get();
    result[run] = p.get();
  }
  for (int run = 1; run < 3; ++run) {
    EXPECT_TRUE(sameScalars(s[0], s[run])) << run;
    EXPECT_TRUE(sameBits(result[0], result[run])) << run;
  }
}

/* Convection and diffusion: nonsymmetric, diagonally dominant */
TEST_P(BCGSSteps, SolvesANonsymmetricSystem)
{
  const double lower = -1.5, diagonal = 3.0, upper = -0.5;
  for (PetscInt n : {(PetscInt)2, (PetscInt)33, (PetscInt)500}) {
    const Values b = randomValues(n, 1);
    Vector       r(cuda, b), rp(cuda, Values(n, NaN)), p(cuda, Values(n, NaN)), v(cuda, Values(n, NaN)), s(cuda, Values(n, NaN)), t(cuda, Values(n, NaN)), x(cuda, Values(n, 0.0));
    int          iterations = 0;

    CALL(steps->reset(&work, nullptr));
    CALL(steps->start(n, r, rp, p, v, &work, nullptr));
    while (iterations < 100 && get().stop == PETSCTC_STOP_NONE && std::sqrt(get().rr) > 450 * PETSC_MACHINE_EPSILON * norm2(b)) {
      CALL(steps->direction(n, r, v, p, &work, nullptr));
      v.set(tridiagonal(lower, diagonal, upper, p.get()));
      CALL(steps->breakdown(n, v, rp, &work, nullptr));
      CALL(steps->half(n, r, v, s, &work, nullptr));
      t.set(tridiagonal(lower, diagonal, upper, s.get()));
      CALL(steps->stabilize(n, t, s, nullptr, &work, nullptr));
      CALL(steps->update(n, p, s, t, rp, x, r, &work, nullptr));
      ++iterations;
    }
    EXPECT_LT(iterations, 100) << n;
    EXPECT_GT(iterations, 0) << n;
    EXPECT_LE(relativeResidual(lower, diagonal, upper, x.get(), b), 45000 * PETSC_MACHINE_EPSILON) << n;
  }
}
