/* The steps of KSPTCCG on all backends: every field and vector after every step, every stop, the frozen state, and two solves made of steps alone */
#include "steps.h"

class CGSteps : public StepsTest<TCCGSteps, TCCGWork, TCCGScalars> {
protected:
  const TCCGSteps *table(bool cuda) override
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCCGSteps_CUDA;
#endif
    (void)cuda;
    return &TCCGSteps_Host;
  }

  /* Nothing is left to x */
  static TCCGScalars marked()
  {
    TCCGScalars s = StepsTest::marked();

    s.late = 0.0;
    return s;
  }

  /* With one direction kept */
  PetscErrorCode direct(PetscInt n, PetscBool first, const PetscScalar z[], PetscScalar p[], PetscScalar x[])
  {
    const PetscScalar *const old[] = {p};

    return steps->direction(n, first, z, 1, old, p, x, &work, nullptr);
  }
  PetscErrorCode settle(PetscInt n, const PetscScalar p[], PetscScalar x[])
  {
    const PetscScalar *const all[] = {p};

    return steps->settle(n, 1, all, x, &work, nullptr);
  }

  /* Without a projection */
  TCCGScalars unshifted()
  {
    TCCGScalars s = marked();

    s.shift = 0.0;
    return s;
  }

  /* curvature of vectors with p.w = pw after an iteration with dpi */
  TCCGScalars curvature(PetscReal dpi, PetscReal pw, bool first)
  {
    TCCGScalars s = marked();
    Vector      p(cuda, {0.0, 1.0, 0.0}), w(cuda, {5.0, pw, 7.0});

    s.dpi = dpi;
    set(s);
    EXPECT_EQ(PETSC_SUCCESS, steps->curvature(3, first ? PETSC_TRUE : PETSC_FALSE, p, w, &work, nullptr));
    return get();
  }

  /* direction with these scalars; the vectors must stay when it stops */
  TCCGScalars direction(PetscReal beta, PetscReal betaold, bool first)
  {
    const Values z = randomValues(5, 1), p = randomValues(5, 2), x = randomValues(5, 3);
    Vector       dz(cuda, z), dp(cuda, p), dx(cuda, x);
    TCCGScalars  s = marked(), after;

    s.beta    = beta;
    s.betaold = betaold;
    set(s);
    EXPECT_EQ(PETSC_SUCCESS, direct(5, first ? PETSC_TRUE : PETSC_FALSE, dz, dp, first ? nullptr : (PetscScalar *)dx));
    after = get();
    if (after.stop != PETSCTC_STOP_NONE) {
      EXPECT_TRUE(sameBits(p, dp.get()) && sameBits(x, dx.get()));
      s.stop = after.stop;
      EXPECT_TRUE(sameScalars(s, after));
    }
    return after;
  }

  /* A x = b by the steps and a product on the host; z = r / d unless d is 0. Returns the iterations, 0 if the solve did not end */
  int solve(double lower, double diagonal, double upper, double d, const Values &b, Values &solution)
  {
    const PetscInt  n        = (PetscInt)b.size();
    const PetscBool identity = d == 0.0 ? PETSC_TRUE : PETSC_FALSE;
    Vector          x(cuda, Values(n, 0.0)), r(cuda, b), z(cuda, Values(n, NaN)), p(cuda, Values(n, NaN)), w(cuda, Values(n, NaN));
    const double    tolerance = 450 * PETSC_MACHINE_EPSILON * norm2(b);

    for (int i = 0; i < 3 * n; ++i) {
      const PetscBool first = i ? PETSC_FALSE : PETSC_TRUE;
      if (!identity) {
        Values scaled = r.get();
        for (auto &v : scaled) v /= d;
        z.set(scaled);
      }
      if (!identity || first) { EXPECT_EQ(PETSC_SUCCESS, steps->project(n, identity ? r : z, r, &work, nullptr)); }
      EXPECT_EQ(PETSC_SUCCESS, direct(n, first, identity ? r : z, p, nullptr));
      w.set(tridiagonal(lower, diagonal, upper, p.get()));
      EXPECT_EQ(PETSC_SUCCESS, steps->curvature(n, first, p, w, &work, nullptr));
      EXPECT_EQ(PETSC_SUCCESS, steps->update(n, identity, p, w, x, r, &work, nullptr));
      const TCCGScalars s = get();
      EXPECT_EQ(PETSCTC_STOP_NONE, s.stop);
      if (std::sqrt(s.rr) <= tolerance) {
        solution = x.get();
        return i + 1;
      }
    }
    return 0;
  }
};
ALL_BACKENDS(CGSteps);

TEST_P(CGSteps, ResetZeroes)
{
  set(marked());
  CALL(steps->reset(&work, nullptr));
  EXPECT_TRUE(sameScalars(TCCGScalars{}, get()));
  TCCGScalars s = marked();
  s.stop        = PETSCTC_STOP_DPI_NAN;
  set(s);
  CALL(steps->reset(&work, nullptr));
  EXPECT_TRUE(sameScalars(TCCGScalars{}, get()));
}

TEST_P(CGSteps, Residual)
{
  for (PetscInt n : sizes) {
    const Values r = randomValues(n, 1);
    Vector       dr(cuda, r, n % 2);
    TCCGScalars  expected = marked();

    set(expected);
    CALL(steps->residual(n, dr, &work, nullptr));
    expected.rr = get().rr;
    expectDot(r, r, expected.rr, "r.r");
    EXPECT_TRUE(sameScalars(expected, get()));
    EXPECT_TRUE(sameBits(r, dr.get()));
  }
}

TEST_P(CGSteps, Project)
{
  for (PetscInt n : sizes) {
    const Values      z = randomValues(n, 1), r = randomValues(n, 2);
    Vector            dz(cuda, z), dr(cuda, r, n % 2);
    const TCCGScalars before   = marked();
    TCCGScalars       expected = before;

    set(before);
    CALL(steps->project(n, dz, dr, &work, nullptr));
    const TCCGScalars s = get();
    expectDot(z, r, s.beta, "z.r");
    expectDot(z, z, s.zz, "z.z");
    expected.betaold = before.beta;
    expected.beta    = s.beta;
    expected.zz      = s.zz;
    expected.shift   = 0.0;
    EXPECT_TRUE(sameScalars(expected, s));

    CALL(steps->project(n, dr, dr, &work, nullptr)); /* z may be r */
    expectDot(r, r, get().beta, "r.r");
    EXPECT_EQ(get().beta, get().zz);
    EXPECT_EQ(s.beta, get().betaold);
  }
}

TEST_P(CGSteps, Direction)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const Values z = randomValues(n, 1), p = randomValues(n, 2);
      Vector       dz(cuda, z, offset), dp(cuda, p, offset), fresh(cuda, Values(n, NaN), offset);
      TCCGScalars  expected = unshifted();

      set(expected);
      CALL(direct(n, PETSC_FALSE, dz, dp, nullptr));
      expected.b = expected.beta / expected.betaold;
      EXPECT_TRUE(sameScalars(expected, get()));
      expectCombination(
        {
          {1.0,        &z},
          {expected.b, &p}
      },
        dp.get(), "z + b p");

      CALL(direct(n, PETSC_TRUE, dz, fresh, nullptr)); /* the NaN in p must not be read */
      expected.b = 0.0;
      EXPECT_TRUE(sameScalars(expected, get()));
      EXPECT_TRUE(sameBits(z, fresh.get()));
      EXPECT_TRUE(sameBits(z, dz.get()));
    }
  }
}

TEST_P(CGSteps, Curvature)
{
  for (PetscInt n : sizes) {
    if (!n) continue; /* p.w is 0: a stop */
    const Values      p = randomValues(n, 1), w = randomValues(n, 2);
    Vector            dp(cuda, p), dw(cuda, w, n % 2);
    const TCCGScalars before   = marked();
    TCCGScalars       expected = before;

    set(before);
    CALL(steps->curvature(n, PETSC_TRUE, dp, dw, &work, nullptr));
    const TCCGScalars s = get();
    expectDot(p, w, s.dpi, "p.w");
    expected.dpiold = before.dpi;
    expected.dpi    = s.dpi;
    expected.a      = before.beta / s.dpi;
    EXPECT_TRUE(sameScalars(expected, s));
  }
}

/* An update that finds p.w done by the product is curvature and update: all bits, stops too */
TEST_P(CGSteps, UpdateAfterAProductWithSums)
{
  const PetscReal dpi[] = {0.75, -0.75, 0.0, NaN};

  for (PetscInt n : {(PetscInt)1, (PetscInt)5, (PetscInt)4099}) {
    for (PetscReal pw : dpi) {
      for (int which = 0; which < 8; ++which) { /* update with z = r or not, update_scaled; the first iteration; the two without x; update_blocks, without x and with */
        const bool   scaled = which == 2 || which == 5, first = which == 3, late = which >= 4 && which < 7;
        Values       unit(n, 0.0), all(n, 0.0), vectors[2][3];
        TCCGScalars  s[2];
        const Values p = randomValues(n, 1), w = randomValues(n, 2), d = randomValues(n, 5);
        unit[0] = 1.0;
        all[0]  = pw;
        for (int sums = 0; sums < 2; ++sums) {
          Vector product(cuda, {pw}), dunit(cuda, unit), dall(cuda, all);
          Vector dp(cuda, p), dw(cuda, w), dd(cuda, d), x(cuda, randomValues(n, 3)), r(cuda, randomValues(n, 4)), z(cuda, randomValues(n, 6));

          set(marked());
          work.sums  = sums ? (const PetscScalar *)product : nullptr;
          work.first = first ? PETSC_TRUE : PETSC_FALSE;
          if (!sums) { CALL(steps->curvature(n, work.first, dunit, dall, &work, nullptr)); }
          PetscScalar *const now = late ? nullptr : (PetscScalar *)x;
          if (which >= 6) CALL(steps->update_blocks(n, Blocks(cuda, n, n % 5 ? 1 : 5), dp, dw, now, r, z, &work, nullptr));
          else CALL(scaled ? steps->update_scaled(n, dp, dw, dd, now, r, z, &work, nullptr) : steps->update(n, which ? PETSC_TRUE : PETSC_FALSE, dp, dw, now, r, &work, nullptr));
          s[sums]          = get();
          vectors[sums][0] = x.get();
          vectors[sums][1] = r.get();
          vectors[sums][2] = z.get();
        }
        work.sums = nullptr;
        EXPECT_EQ(s[0].stop, s[1].stop) << "p.w " << pw << ", case " << which;
        EXPECT_TRUE(pw != pw || sameScalars(s[0], s[1])) << "p.w " << pw << ", case " << which; /* not the bits of a NaN */
        for (int k = 0; k < 3; ++k) EXPECT_TRUE(sameBits(vectors[0][k], vectors[1][k])) << "p.w " << pw << ", case " << which << ", vector " << k;
        EXPECT_EQ(pw == 0.75 || (first && pw < 0.0), s[1].stop == PETSCTC_STOP_NONE);
      }
    }
  }
}

TEST_P(CGSteps, Update)
{
  for (PetscInt n : sizes) {
    for (int identity = 0; identity < 2; ++identity) {
      const Values      p = randomValues(n, 1), w = randomValues(n, 2), x = randomValues(n, 3), r = randomValues(n, 4);
      Vector            dp(cuda, p, identity), dw(cuda, w, identity), dx(cuda, x, identity), dr(cuda, r, identity);
      const TCCGScalars before   = marked();
      TCCGScalars       expected = before;

      set(before);
      CALL(steps->update(n, identity ? PETSC_TRUE : PETSC_FALSE, dp, dw, dx, dr, &work, nullptr));
      const TCCGScalars s = get();
      expectCombination(
        {
          {1.0,      &x},
          {before.a, &p}
      },
        dx.get(), "x + a p");
      expectCombination(
        {
          {1.0,       &r},
          {-before.a, &w}
      },
        dr.get(), "r - a w");
      expectDot(dr.get(), dr.get(), s.rr, "r.r"); /* of r as it was stored */
      expected.rr   = s.rr;
      expected.late = 0.0;
      if (identity) {
        expected.betaold = before.beta;
        expected.beta    = s.rr;
        expected.zz      = s.rr;
      }
      EXPECT_TRUE(sameScalars(expected, s));
      EXPECT_TRUE(sameBits(p, dp.get()));
      EXPECT_TRUE(sameBits(w, dw.get()));
    }
  }
}

/* update, z = d r, project: the same numbers, to the bits of vectors and sums. z in the place of w */
TEST_P(CGSteps, UpdateScaled)
{
  for (PetscInt n : sizes) {
    const Values p = randomValues(n, 1), w = randomValues(n, 2), x = randomValues(n, 3), r = randomValues(n, 4), d = randomValues(n, 5);
    Vector       dp(cuda, p), dw(cuda, w), dd(cuda, d), dx(cuda, x), dr(cuda, r), ex(cuda, x), er(cuda, r), original(cuda, w);

    set(unshifted());
    CALL(steps->update_scaled(n, dp, dw, dd, dx, dr, dw, &work, nullptr));
    const TCCGScalars s = get();
    set(unshifted());
    CALL(steps->update(n, PETSC_FALSE, dp, original, ex, er, &work, nullptr));
    Values z = er.get();
    for (PetscInt i = 0; i < n; i++) z[i] *= d[i];
    Vector ez(cuda, z);
    CALL(steps->project(n, ez, er, &work, nullptr));
    EXPECT_TRUE(sameScalars(get(), s)) << n;
    EXPECT_TRUE(sameBits(ex.get(), dx.get())) << n;
    EXPECT_TRUE(sameBits(er.get(), dr.get())) << n;
    EXPECT_TRUE(sameBits(z, dw.get())) << n;
    EXPECT_TRUE(sameBits(d, dd.get()) && sameBits(p, dp.get())) << n;
  }
}

TEST_P(CGSteps, Slope)
{
  for (PetscInt n : sizes) {
    const Values z = randomValues(n, 1), s = randomValues(n, 2);
    Vector       dz(cuda, z), ds(cuda, s, n % 2);
    TCCGScalars  expected = marked();

    set(expected);
    CALL(steps->slope(n, dz, ds, &work, nullptr));
    expected.zs = get().zs;
    expectDot(z, s, expected.zs, "z.s");
    EXPECT_TRUE(sameScalars(expected, get()));
  }
}

/* Which of the three: z is r, a vector of its own, or d r */
enum class Source {
  R,
  Apart,
  Scaled
};

/* direction of p and of w, and update: the same numbers, to the bits of vectors and sums, with p.Ap from z.s. By a sum of the product's or one of slope's */
TEST_P(CGSteps, Advance)
{
  for (PetscInt n : sizes) {
    for (Source source : {Source::R, Source::Apart, Source::Scaled}) {
      for (int which = 0; which < 4; ++which) {
        const PetscBool first = which % 2 ? PETSC_TRUE : PETSC_FALSE, identity = source == Source::R ? PETSC_TRUE : PETSC_FALSE;
        const Values    r = randomValues(n, 1), s = randomValues(n, 2), x = randomValues(n, 3), p = randomValues(n, 4), w = randomValues(n, 5), d = randomValues(n, 6);
        Values          z = source == Source::R ? r : randomValues(n, 7);
        Vector          dr(cuda, r), ds(cuda, s, which / 2), dx(cuda, x), dp(cuda, first ? Values(n, NaN) : p), dw(cuda, first ? Values(n, NaN) : w), dd(cuda, d), dz(cuda, z), sum(cuda, {marked().zs});
        TCCGScalars     before = unshifted();

        if (source == Source::Scaled) {
          for (PetscInt k = 0; k < n; k++) z[k] = r[k] * d[k];
        }
        work.sums = which / 2 ? (const PetscScalar *)sum : nullptr;
        if (work.sums) before.zs = NaN;
        set(before);
        CALL(source == Source::Scaled ? steps->advance_scaled(n, first, ds, dd, dp, dw, dx, dr, dz, &work, nullptr) : steps->advance(n, first, identity, source == Source::R ? nullptr : (const PetscScalar *)dz, ds, dp, dw, dx, dr, &work, nullptr));
        work.sums             = nullptr;
        const TCCGScalars now = get();

        Vector      ez(cuda, z), ep(cuda, p), es(cuda, s), ew(cuda, w), ex(cuda, x), er(cuda, r);
        TCCGScalars expected = unshifted();
        set(expected);
        CALL(direct(n, first, ez, ep, nullptr));
        CALL(direct(n, first, es, ew, nullptr));
        expected.b      = first ? 0.0 : expected.beta / expected.betaold;
        expected.dpiold = expected.dpi;
        expected.dpi    = now.dpi;
        expected.a      = expected.beta / expected.dpi;
        EXPECT_NEAR(now.dpi, first ? expected.zs : expected.zs - expected.b * expected.b * expected.dpiold, 10 * PETSC_MACHINE_EPSILON * expected.zs);
        set(expected);
        if (source == Source::Scaled) {
          CALL(steps->update_scaled(n, ep, ew, dd, ex, er, ez, &work, nullptr));
        } else {
          CALL(steps->update(n, identity, ep, ew, ex, er, &work, nullptr));
        }
        expected      = get();
        expected.late = now.late; /* which is no matter of such iterations */
        EXPECT_TRUE(sameScalars(expected, now)) << n << ", case " << which;
        EXPECT_TRUE(sameBits(ep.get(), dp.get()) && sameBits(ew.get(), dw.get()) && sameBits(ex.get(), dx.get()) && sameBits(er.get(), dr.get())) << n << ", case " << which;
        if (source == Source::Scaled) { EXPECT_TRUE(sameBits(ez.get(), dz.get())) << n << ", case " << which; }
        EXPECT_TRUE(sameBits(s, ds.get()) && sameBits(d, dd.get()));
      }
    }
  }
}

/* advance stops where KSPCG does, which is not at NaN, and vectors stay */
TEST_P(CGSteps, AdvanceStops)
{
  const struct {
    double      beta, betaold, dpi, zs;
    bool        first;
    PetscTCStop stop;
  } cases[] = {
    {NaN,  1.0, 1.0,  2.0,  false, PETSCTC_STOP_BETA_NAN },
    {Inf,  1.0, 1.0,  2.0,  true,  PETSCTC_STOP_BETA_NAN },
    {0.0,  1.0, 1.0,  2.0,  false, PETSCTC_STOP_BETA_ZERO},
    {-1.0, 1.0, 1.0,  2.0,  false, PETSCTC_STOP_BETA_SIGN},
    {-1.0, 1.0, 1.0,  2.0,  true,  PETSCTC_STOP_NONE     },
    {1.0,  1.0, 1.0,  NaN,  false, PETSCTC_STOP_NONE     },
    {1.0,  1.0, 1.0,  Inf,  true,  PETSCTC_STOP_NONE     },
    {1.0,  1.0, 1.0,  1.0,  false, PETSCTC_STOP_DPI_SIGN },
    {1.0,  1.0, 1.0,  0.5,  false, PETSCTC_STOP_DPI_SIGN },
    {1.0,  1.0, 1.0,  0.5,  true,  PETSCTC_STOP_NONE     },
    {1.0,  1.0, 1.0,  0.0,  true,  PETSCTC_STOP_DPI_SIGN },
    {1.0,  2.0, 8.0,  2.25, false, PETSCTC_STOP_NONE     },
    {1.0,  1.0, -1.0, -2.0, false, PETSCTC_STOP_NONE     }
  };
  const PetscInt n    = 4099;
  const Values   v[5] = {randomValues(n, 1), randomValues(n, 2), randomValues(n, 3), randomValues(n, 4), randomValues(n, 5)};

  for (const auto &c : cases) {
    Vector      s(cuda, v[0]), p(cuda, v[1]), w(cuda, v[2]), x(cuda, v[3]), r(cuda, v[4]);
    TCCGScalars before = unshifted();

    before.beta    = c.beta;
    before.betaold = c.betaold;
    before.dpi     = c.dpi;
    before.zs      = c.zs;
    set(before);
    CALL(steps->advance(n, c.first ? PETSC_TRUE : PETSC_FALSE, PETSC_TRUE, nullptr, s, p, w, x, r, &work, nullptr));
    const TCCGScalars now = get();
    EXPECT_EQ(c.stop, now.stop) << "beta " << c.beta << ", z.s " << c.zs;
    EXPECT_EQ(c.stop != PETSCTC_STOP_NONE, sameBits(v[1], p.get()) && sameBits(v[2], w.get()) && sameBits(v[3], x.get()) && sameBits(v[4], r.get())) << "beta " << c.beta << ", z.s " << c.zs;
    if (now.stop != PETSCTC_STOP_NONE) { EXPECT_EQ(before.rr, now.rr); }
  }
}

/* update and z = D r: the same numbers, to the bits of vectors; on the host sums too are those of update and project. z in the place of w, or not */
TEST_P(CGSteps, UpdateBlocks)
{
  for (const auto &size : blockedSizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const PetscInt n = size.first;
      const Values   p = randomValues(n, 1), w = randomValues(n, 2), x = randomValues(n, 3), r = randomValues(n, 4);
      const Blocks   blocks(cuda, n, size.second, offset);
      Vector         dp(cuda, p, offset), dw(cuda, w), dx(cuda, x), dr(cuda, r, offset), dz(cuda, Values(n, NaN)), ex(cuda, x), er(cuda, r);
      const Vector  &z = offset ? dz : dw;

      set(unshifted());
      CALL(steps->update(n, PETSC_FALSE, dp, dw, ex, er, &work, nullptr));
      const Values product = blocks.times(er.get());
      const Vector ez(cuda, product);
      CALL(steps->project(n, ez, er, &work, nullptr));
      TCCGScalars expected = get();

      set(unshifted());
      CALL(steps->update_blocks(n, blocks, dp, dw, dx, dr, z, &work, nullptr));
      const TCCGScalars s = get();
      if (cuda) {
        expectDot(er.get(), er.get(), s.rr, "r.r");
        expectDot(product, er.get(), s.beta, "z.r");
        expectDot(product, product, s.zz, "z.z");
        expected.rr   = s.rr;
        expected.beta = s.beta;
        expected.zz   = s.zz;
      }
      EXPECT_TRUE(sameScalars(expected, s)) << n << " in blocks of " << size.second;
      EXPECT_TRUE(sameBits(ex.get(), dx.get())) << n << " in blocks of " << size.second;
      EXPECT_TRUE(sameBits(er.get(), dr.get())) << n << " in blocks of " << size.second;
      EXPECT_TRUE(sameBits(product, z.get())) << n << " in blocks of " << size.second;
      EXPECT_TRUE(sameBits(p, dp.get()) && (!offset || sameBits(w, dw.get())));
      blocks.expectUnchanged();
    }
  }
}

/* Without x, which follows; and again with all of it: the same bits, whatever is aligned */
TEST_P(CGSteps, UpdateBlocksWithoutX)
{
  for (const auto &size : blockedSizes) {
    const PetscInt n = size.first;
    Values         vectors[4][3];
    TCCGScalars    s[4];

    for (int run = 0; run < 4; ++run) {
      const int    offset = run == 2;
      const Blocks blocks(cuda, n, size.second, PetscMax(run - 1, 0));
      Vector       p(cuda, randomValues(n, 1), offset), w(cuda, randomValues(n, 2)), x(cuda, randomValues(n, 3)), r(cuda, randomValues(n, 4), offset);

      TCCGScalars before = unshifted();
      before.late        = 0.0;
      before.past[0]     = before.a;
      set(before);
      CALL(steps->update_blocks(n, blocks, p, w, run == 1 ? nullptr : (PetscScalar *)x, r, w, &work, nullptr));
      EXPECT_EQ(run == 1 ? 1.0 : 0.0, get().late);
      const PetscScalar *const all[] = {p};
      CALL(steps->settle(n, 1, all, x, &work, nullptr));
      s[run]          = get();
      vectors[run][0] = x.get();
      vectors[run][1] = r.get();
      vectors[run][2] = w.get();
    }
    for (int run = 1; run < 4; ++run) {
      EXPECT_TRUE(sameScalars(s[0], s[run])) << n << " in blocks of " << size.second << ", " << run;
      for (int k = 0; k < 3; ++k) EXPECT_TRUE(sameBits(vectors[0][k], vectors[run][k])) << n << " in blocks of " << size.second << ", " << run << ", vector " << k;
    }
  }
}

/* A block that is not a number spoils its own rows alone */
TEST_P(CGSteps, BlocksKeepToThemselves)
{
  const PetscInt n = 1200;
  for (PetscInt bad : {0, 1, 2, 494, 495, 496, 509, 510, 511, 512, 1023, 1024, 1199, -1199, -1024, -511, -496, -495, -2}) {
    const Blocks blocks(cuda, n, bad < 0 ? -6 : 3);
    Values       r = randomValues(n, 4);
    Vector       p(cuda, randomValues(n, 1)), w(cuda, randomValues(n, 2)), x(cuda, randomValues(n, 3)), z(cuda, Values(n, Inf));

    r[PetscAbsInt(bad)] = NaN;
    Vector dr(cuda, r);
    set(unshifted());
    CALL(steps->update_blocks(n, blocks, p, w, x, dr, z, &work, nullptr));
    const Values after = z.get();
    for (PetscInt i = 0; i < n; ++i) ASSERT_EQ(blocks.together(i, PetscAbsInt(bad)), std::isnan(after[i])) << i << ", bad " << bad;
  }
}

/* With a projection: z - shift is the projection of d r, whatever mean was before; beta and zz are its products; the next direction is made of it */
TEST_P(CGSteps, UpdateProjected)
{
  for (PetscInt n : sizes) {
    for (int which = 0; which < 4 && n; ++which) { /* with x and without, by a diagonal and by blocks */
      const Values p = randomValues(n, 1), w = randomValues(n, 2), d = randomValues(n, 5);
      const Blocks blocks(cuda, n, n % 3 ? 1 : 3);
      Vector       dp(cuda, p), dw(cuda, w), dd(cuda, d), x(cuda, randomValues(n, 3)), r(cuda, randomValues(n, 4));
      TCCGScalars  before = marked();
      PetscScalar *now    = which % 2 ? nullptr : (PetscScalar *)x;

      before.mean = 0.25;
      set(before);
      work.constant = PETSC_TRUE;
      CALL(which < 2 ? steps->update_scaled(n, dp, dw, dd, now, r, dw, &work, nullptr) : steps->update_blocks(n, blocks, dp, dw, now, r, dw, &work, nullptr));
      work.constant           = PETSC_FALSE;
      const TCCGScalars s     = get();
      const Values      after = r.get(), stored = dw.get();
      Values            z   = which < 2 ? after : blocks.times(after);
      long double       sum = 0.0L;

      for (PetscInt k = 0; k < n && which < 2; k++) z[k] *= d[k];
      for (PetscInt k = 0; k < n; k++) sum += z[k];
      for (PetscInt k = 0; k < n; k++) z[k] = (double)((long double)z[k] - sum / n);
      const double scale = 100 * PETSC_MACHINE_EPSILON * (1.0 + std::sqrt((double)n));
      EXPECT_NEAR(s.mean, (double)(sum / n), scale) << n;
      EXPECT_EQ(s.mean, before.mean + s.shift) << n;
      for (PetscInt k = 0; k < n; k++) ASSERT_NEAR(stored[k] - s.shift, z[k], scale) << n << ", " << k;
      expectDot(after, after, s.rr, "r.r");
      long double zr = 0.0L, zz = 0.0L;
      for (PetscInt k = 0; k < n; k++) {
        zr += (long double)z[k] * after[k];
        zz += (long double)z[k] * z[k];
      }
      EXPECT_NEAR(s.beta, (double)zr, n * scale) << n;
      EXPECT_NEAR(s.zz, (double)zz, n * scale) << n;
      EXPECT_GE(s.zz, 0.0);
      EXPECT_EQ(s.betaold, before.beta);

      TCCGScalars next = s;
      Vector      direction(cuda, Values(n, NaN));
      next.beta = 2.0;
      set(next);
      CALL(direct(n, PETSC_TRUE, dw, direction, nullptr));
      const Values first = direction.get();
      for (PetscInt k = 0; k < n; k++) ASSERT_EQ(first[k], stored[k] - s.shift) << n << ", " << k;
    }
  }
}

/* x may follow with the next direction, or at the end: all bits are those of an update with x */
TEST_P(CGSteps, XFollowsLater)
{
  for (PetscInt n : sizes) {
    for (int scaled = 0; scaled < 2; ++scaled) {
      const Values p = randomValues(n, 1), w = randomValues(n, 2), d = randomValues(n, 5);
      Values       vectors[2][4], settled[2];
      TCCGScalars  s[2];

      for (int late = 0; late < 2; ++late) {
        Vector       dp(cuda, p, scaled), dw(cuda, w, scaled), dd(cuda, d, scaled), x(cuda, randomValues(n, 3), scaled), r(cuda, randomValues(n, 4), scaled), z(cuda, randomValues(n, 6), scaled);
        PetscScalar *now = late ? nullptr : (PetscScalar *)x, *then = late ? (PetscScalar *)x : nullptr;
        TCCGScalars  after = marked();

        set(after);
        CALL(scaled ? steps->update_scaled(n, dp, dw, dd, now, r, z, &work, nullptr) : steps->update(n, PETSC_FALSE, dp, dw, now, r, &work, nullptr));
        after = get();
        EXPECT_EQ((double)late, after.late);
        for (int stopped = 0; stopped < 2; ++stopped) { /* to settle twice is to settle once */
          Vector      copy(cuda, x.get());
          TCCGScalars expected = after;
          expected.stop        = stopped ? PETSCTC_STOP_TEST : PETSCTC_STOP_NONE;
          set(expected);
          CALL(settle(n, dp, copy));
          CALL(settle(n, dp, copy));
          expected.late = 0.0;
          EXPECT_TRUE(sameScalars(expected, get()));
          settled[late] = copy.get();
          EXPECT_TRUE(sameBits(settled[0], settled[late])) << n;
        }
        after.beta = 2.0; /* whatever the sums were: no stop */
        set(after);
        CALL(direct(n, PETSC_FALSE, z, dp, then));
        s[late]          = get();
        vectors[late][0] = x.get();
        vectors[late][1] = r.get();
        vectors[late][2] = z.get();
        vectors[late][3] = dp.get();
      }
      EXPECT_EQ(PETSCTC_STOP_NONE, s[1].stop);
      EXPECT_EQ(marked().a, s[1].past[0]);
      s[0].past[0] = s[1].past[0];
      EXPECT_TRUE(sameScalars(s[0], s[1])) << n;
      EXPECT_TRUE(sameBits(settled[0], vectors[0][0])) << n;
      for (int k = 0; k < 4; ++k) EXPECT_TRUE(sameBits(vectors[0][k], vectors[1][k])) << n << ", vector " << k;
    }
  }
}

/* After one update, two, .. as many as there may be: settled, and with the direction that follows the last one, x has the bits of updates with x */
TEST_P(CGSteps, XFollowsTogether)
{
  for (PetscInt n : sizes) {
    const Values                         x = randomValues(n, 20), z = randomValues(n, 21), w = randomValues(n, 22);
    Values                               p[PETSCTC_LATE];
    Vector                               dz(cuda, z), dw(cuda, w), now(cuda, x), r(cuda, randomValues(n, 23)), then(cuda, x);
    std::vector<std::unique_ptr<Vector>> kept;
    const PetscScalar                   *old[PETSCTC_LATE];
    TCCGScalars                          s = marked();

    for (int k = 0; k < PETSCTC_LATE; ++k) {
      p[k] = randomValues(n, k + 1);
      kept.emplace_back(new Vector(cuda, p[k], k % 2));
      old[k] = *kept[k];
    }
    for (int k = 0; k < PETSCTC_LATE; ++k) {
      s.a = 0.5 + k;
      set(s);
      CALL(steps->update(n, PETSC_FALSE, old[k], dw, nullptr, r, &work, nullptr));
      const TCCGScalars after = s = get();
      ASSERT_EQ(k + 1.0, s.late);
      ASSERT_EQ(s.a, s.past[k]);
      s.late = 0.0;
      set(s);
      CALL(steps->update(n, PETSC_FALSE, old[k], dw, now, r, &work, nullptr));
      Vector settled(cuda, x);
      s      = after;
      s.stop = k % 2 ? PETSCTC_STOP_TEST : PETSCTC_STOP_NONE;
      set(s);
      CALL(steps->settle(n, PETSCTC_LATE, old, settled, &work, nullptr));
      EXPECT_TRUE(sameBits(now.get(), settled.get())) << n << ", " << k + 1 << " updates";
      EXPECT_EQ(0.0, get().late);
      s = after;
    }
    s.beta  = 2.0;
    s.shift = 0.0;
    set(s);
    CALL(steps->direction(n, PETSC_FALSE, dz, PETSCTC_LATE, old, *kept[0], then, &work, nullptr));
    EXPECT_EQ(PETSCTC_STOP_NONE, get().stop);
    EXPECT_EQ(0.0, get().late);
    EXPECT_TRUE(sameBits(now.get(), then.get())) << n;
    expectCombination(
      {
        {1.0,     &z                  },
        {get().b, &p[PETSCTC_LATE - 1]}
    },
      kept[0]->get(), "z + b p");
    for (int k = 1; k < PETSCTC_LATE; ++k) EXPECT_TRUE(sameBits(p[k], kept[k]->get()));
  }
}

/* With nothing to make up for p is not looked at: it may hold anything */
TEST_P(CGSteps, SettleOfNothing)
{
  const Values x = randomValues(5, 1);
  Vector       dx(cuda, x), p(cuda, Values(5, NaN));
  TCCGScalars  s = marked();

  s.late = 0.0;
  set(s);
  CALL(settle(5, p, dx));
  EXPECT_TRUE(sameScalars(s, get()));
  EXPECT_TRUE(sameBits(x, dx.get()));
}

/* An iteration ends with update, or with project where z is made for its norm, or with the step that does both */
TEST_P(CGSteps, EndsIterations)
{
  const PetscInt n      = 4099;
  const auto     update = [this](PetscBool identity, double last) {
    Values r = randomValues(n, 4);
    r.back() = last;
    Vector p(cuda, randomValues(n, 1)), w(cuda, randomValues(n, 2)), x(cuda, randomValues(n, 3)), dr(cuda, r);
    return steps->update(n, identity, p, w, x, dr, &work, nullptr);
  };
  const auto project = [this](double last) {
    Values r = randomValues(n, 2);
    r.back() = last;
    Values z = randomValues(n, 1);
    z.back() = last > 100.0 ? -1.0 : 1.0;
    Vector dz(cuda, z), dr(cuda, r);
    return steps->project(n, dz, dr, &work, nullptr);
  };

  const auto scaled = [this](double last) {
    Values r = randomValues(n, 4);
    r.back() = last;
    Values d = randomValues(n, 5);
    d.back() = last > 100.0 ? -1.0 : 1.0;
    Vector p(cuda, randomValues(n, 1)), w(cuda, randomValues(n, 2)), x(cuda, randomValues(n, 3)), dr(cuda, r), dd(cuda, d);
    return steps->update_scaled(n, p, w, dd, x, dr, w, &work, nullptr);
  };

  const auto advance = [this](bool apart, double last) {
    Values r = randomValues(n, 4);
    r.back() = last;
    Vector s(cuda, randomValues(n, 1)), p(cuda, randomValues(n, 2)), w(cuda, randomValues(n, 3)), x(cuda, randomValues(n, 5)), d(cuda, randomValues(n, 6)), z(cuda, randomValues(n, 7)), dr(cuda, r);
    return apart ? steps->advance_scaled(n, PETSC_FALSE, s, d, p, w, x, dr, z, &work, nullptr) : steps->advance(n, PETSC_FALSE, PETSC_TRUE, nullptr, s, p, w, x, dr, &work, nullptr);
  };

  expectRecords([&] { return advance(true, 1.0); }, PETSCTC_NORM_ZZ, [](const TCCGScalars &s) { return s.zz; });
  expectRecords([&] { return advance(true, 1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  expectRecords([&] { return advance(false, 1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  const auto blocked = [this](double last) {
    Values r = randomValues(n - 1, 4);
    r.back() = last;
    Vector p(cuda, randomValues(n - 1, 1)), w(cuda, randomValues(n - 1, 2)), x(cuda, randomValues(n - 1, 3)), dr(cuda, r);
    return steps->update_blocks(n - 1, Blocks(cuda, n - 1, 6), p, w, x, dr, w, &work, nullptr);
  };

  expectRecords([&] { return blocked(1.0); }, PETSCTC_NORM_ZZ, [](const TCCGScalars &s) { return s.zz; });
  expectRecords([&] { return blocked(1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  expectRecords([&] { return scaled(1.0); }, PETSCTC_NORM_ZZ, [](const TCCGScalars &s) { return s.zz; });
  expectRecords([&] { return scaled(1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  expectRecords([&] { return scaled(1e4); }, PETSCTC_NORM_BETA, [](const TCCGScalars &s) { return -s.beta; });
  expectRecords([&] { return update(PETSC_FALSE, 1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  expectRecords([&] { return update(PETSC_TRUE, 1.0); }, PETSCTC_NORM_RR, [](const TCCGScalars &s) { return s.rr; });
  expectRecords([&] { return update(PETSC_TRUE, 1.0); }, PETSCTC_NORM_ZZ, [](const TCCGScalars &s) { return s.zz; });
  expectRecords([&] { return update(PETSC_TRUE, 1.0); }, PETSCTC_NORM_BETA, [](const TCCGScalars &s) { return s.beta; });
  expectRecords([&] { return project(1.0); }, PETSCTC_NORM_ZZ, [](const TCCGScalars &s) { return s.zz; });
  expectRecords([&] { return project(1.0); }, PETSCTC_NORM_BETA, [](const TCCGScalars &s) { return s.beta; });
  expectRecords([&] { return project(1e4); }, PETSCTC_NORM_BETA, [](const TCCGScalars &s) { return -s.beta; }); /* z.r < 0 */
  for (double last : {NaN, Inf, -Inf}) {
    expectStopsAt([&] { return update(PETSC_FALSE, last); }, PETSCTC_NORM_RR);
    expectStopsAt([&] { return project(last); }, PETSCTC_NORM_BETA);
    expectStopsAt([&] { return scaled(last); }, PETSCTC_NORM_ZZ);
    expectStopsAt([&] { return blocked(last); }, PETSCTC_NORM_ZZ);
  }
}

TEST_P(CGSteps, DirectionStops)
{
  for (bool first : {true, false}) {
    EXPECT_EQ(PETSCTC_STOP_BETA_NAN, direction(NaN, 1.0, first).stop);
    EXPECT_EQ(PETSCTC_STOP_BETA_NAN, direction(Inf, 1.0, first).stop);
    EXPECT_EQ(PETSCTC_STOP_BETA_NAN, direction(-Inf, 1.0, first).stop);
    EXPECT_EQ(PETSCTC_STOP_BETA_ZERO, direction(0.0, 1.0, first).stop);
    EXPECT_EQ(PETSCTC_STOP_BETA_ZERO, direction(-0.0, 1.0, first).stop);
    EXPECT_EQ(PETSCTC_STOP_NONE, direction(tiny, 1.0, first).stop);
  }
  EXPECT_EQ(PETSCTC_STOP_BETA_SIGN, direction(-1.0, 2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_BETA_SIGN, direction(1.0, -2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_NONE, direction(-1.0, -2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_NONE, direction(-1.0, 2.0, true).stop) << "the first iteration has no sign to compare with";
  EXPECT_EQ(PETSCTC_STOP_NONE, direction(-1.0, NaN, true).stop);
}

TEST_P(CGSteps, CurvatureStops)
{
  const double a = marked().a; /* stays when the step stops */

  for (bool first : {true, false}) {
    EXPECT_EQ(PETSCTC_STOP_DPI_NAN, curvature(1.0, NaN, first).stop);
    EXPECT_EQ(PETSCTC_STOP_DPI_NAN, curvature(1.0, Inf, first).stop);
    EXPECT_EQ(PETSCTC_STOP_DPI_NAN, curvature(1.0, -Inf, first).stop);
    EXPECT_EQ(PETSCTC_STOP_DPI_SIGN, curvature(1.0, 0.0, first).stop);
    EXPECT_EQ(a, curvature(1.0, 0.0, first).a);
    EXPECT_EQ(0.0, curvature(1.0, 0.0, first).dpi);
    EXPECT_EQ(1.0, curvature(1.0, 0.0, first).dpiold);
  }
  EXPECT_EQ(PETSCTC_STOP_DPI_SIGN, curvature(1.0, -2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_DPI_SIGN, curvature(-1.0, 2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_DPI_SIGN, curvature(tiny, -tiny, false).stop) << "signs are multiplied, not the numbers";
  EXPECT_EQ(a, curvature(1.0, -2.0, false).a);
  EXPECT_EQ(PETSCTC_STOP_NONE, curvature(-1.0, -2.0, false).stop);
  EXPECT_EQ(PETSCTC_STOP_NONE, curvature(1.0, -2.0, true).stop) << "the first iteration has no sign to compare with";
  EXPECT_EQ(marked().beta / -2.0, curvature(1.0, -2.0, true).a);
}

TEST_P(CGSteps, FrozenOnceStopped)
{
  for (PetscInt n : {(PetscInt)0, (PetscInt)5, (PetscInt)4099}) {
    const Values v[5] = {randomValues(n, 1), randomValues(n, 2), randomValues(n, 3), randomValues(n, 4), randomValues(n, 5)};
    Vector       z(cuda, v[0]), p(cuda, v[1]), w(cuda, v[2]), x(cuda, v[3]), r(cuda, v[4]);

    const Blocks blocks(cuda, n, n % 5 ? 1 : 5);

    for (int stop : {PETSCTC_STOP_BETA_ZERO, PETSCTC_STOP_BETA_SIGN, PETSCTC_STOP_BETA_NAN, PETSCTC_STOP_DPI_NAN, PETSCTC_STOP_DPI_SIGN, PETSCTC_STOP_TEST}) {
      TCCGScalars s = marked();
      s.stop        = stop;
      s.dpi         = NaN; /* its bits too */
      set(s);
      const std::vector<std::function<PetscErrorCode()>> all = {
        [&] { return steps->residual(n, r, &work, nullptr); },
        [&] { return steps->project(n, z, r, &work, nullptr); },
        [&] { return direct(n, PETSC_TRUE, z, p, nullptr); },
        [&] { return direct(n, PETSC_FALSE, z, p, nullptr); },
        [&] { return direct(n, PETSC_FALSE, z, p, x); },
        [&] { return steps->curvature(n, PETSC_TRUE, p, w, &work, nullptr); },
        [&] { return steps->curvature(n, PETSC_FALSE, p, w, &work, nullptr); },
        [&] { return steps->update(n, PETSC_TRUE, p, w, x, r, &work, nullptr); },
        [&] { return steps->update(n, PETSC_FALSE, p, w, x, r, &work, nullptr); },
        [&] { return steps->update(n, PETSC_TRUE, p, w, nullptr, r, &work, nullptr); },
        [&] { return steps->update_scaled(n, p, w, z, x, r, w, &work, nullptr); },
        [&] { return steps->update_scaled(n, p, w, z, nullptr, r, w, &work, nullptr); },
        [&] { return steps->update_blocks(n, blocks, p, w, x, r, w, &work, nullptr); },
        [&] { return steps->update_blocks(n, blocks, p, w, nullptr, r, z, &work, nullptr); },
        [&] { return steps->slope(n, p, w, &work, nullptr); },
        [&] { return steps->advance(n, PETSC_FALSE, PETSC_TRUE, nullptr, z, p, w, x, r, &work, nullptr); },
        [&] { return steps->advance_scaled(n, PETSC_TRUE, z, z, p, w, x, r, p, &work, nullptr); },
      };
      for (size_t k = 0; k < all.size(); ++k) {
        CALL(all[k]());
        EXPECT_TRUE(sameScalars(s, get())) << "step " << k << ", stop " << stop;
      }
      EXPECT_TRUE(sameBits(v[0], z.get()) && sameBits(v[1], p.get()) && sameBits(v[2], w.get()) && sameBits(v[3], x.get()) && sameBits(v[4], r.get())) << "stop " << stop;
    }
    CALL(steps->reset(&work, nullptr)); /* and runs again after a reset */
    CALL(steps->residual(n, r, &work, nullptr));
    expectDot(v[4], v[4], get().rr, "r.r");
  }
}

TEST_P(CGSteps, SameBitsOnEveryRunAndAlignment)
{
  const PetscInt n = 100003;
  const Values   p = randomValues(n, 1), w = randomValues(n, 2), x = randomValues(n, 3), r = randomValues(n, 4);
  TCCGScalars    s[3];
  Values         result[3];

  for (int run = 0; run < 3; ++run) {
    const int offset = run == 2;
    Vector    dp(cuda, p, offset), dw(cuda, w, offset), dx(cuda, x, offset), dr(cuda, r, offset);
    set(marked());
    CALL(steps->update(n, PETSC_TRUE, dp, dw, dx, dr, &work, nullptr));
    CALL(steps->curvature(n, PETSC_TRUE, dr, dw, &work, nullptr));
    s[run]      = get();
    result[run] = dr.get();
  }
  for (int run = 1; run < 3; ++run) {
    EXPECT_TRUE(sameScalars(s[0], s[run])) << run;
    EXPECT_TRUE(sameBits(result[0], result[run])) << run;
  }
}

/* The Laplacian's CG ends in at most n iterations, give or take rounding; the residual of the returned x, not the recursive one, is what counts */
TEST_P(CGSteps, SolvesALaplacian)
{
  for (PetscInt n : {(PetscInt)1, (PetscInt)2, (PetscInt)35, (PetscInt)200}) {
    Values    x;
    const int iterations = solve(-1.0, 2.0, -1.0, 0.0, randomValues(n, 1), x);

    EXPECT_GT(iterations, 0) << n;
    EXPECT_LE(iterations, n + n / 4) << n;
    EXPECT_LE(relativeResidual(-1.0, 2.0, -1.0, x, randomValues(n, 1)), 45000 * PETSC_MACHINE_EPSILON) << n;
  }
}

/* With z = r / 4: the preconditioned path. Scaling by a power of two changes no iterate */
TEST_P(CGSteps, SolvesWithAPreconditioner)
{
  const Values b = randomValues(300, 7);
  Values       x, plain;
  const int    iterations = solve(-1.0, 3.0, -1.0, 4.0, b, x);

  EXPECT_LE(relativeResidual(-1.0, 3.0, -1.0, x, b), 4500 * PETSC_MACHINE_EPSILON);
  CALL(steps->reset(&work, nullptr));
  EXPECT_EQ(iterations, solve(-1.0, 3.0, -1.0, 0.0, b, plain));
  EXPECT_TRUE(sameBits(plain, x));
}
