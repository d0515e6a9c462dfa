/* The steps of KSPTCCG for blocks of columns on all backends: each column has the bits of the steps of one vector, in vectors, scalars and records; columns that have stopped stay as they are */
#include <petsctc/private/tccgcolumns.h>
#include "steps.h"

class CGColumns : public StepsTest<TCCGSteps, TCCGWork, TCCGScalars> {
protected:
  const TCCGColumnsSteps *block = nullptr;
  TCCGColumnsWork         bwork = {};

  const TCCGSteps *table(bool cuda) override
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCCGSteps_CUDA;
#endif
    (void)cuda;
    return &TCCGSteps_Host;
  }

  void SetUp() override
  {
    StepsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    block = &TCCGColumnsSteps_Host;
#if PETSCTC_HAVE_CUDA
    if (cuda) block = &TCCGColumnsSteps_CUDA;
#endif
    CALL(block->create(&bwork));
    bwork.tensor = tensor;
    CALL(block->reset(&bwork, nullptr));
  }
  void TearDown() override
  {
    if (block) {
      CALL(block->destroy(&bwork));
      CALL(block->destroy(&bwork)); /* twice does nothing */
    }
    StepsTest::TearDown();
  }

  TCCGColumnsScalars getAll()
  {
    TCCGColumnsScalars s;
    std::memset(&s, 0xff, sizeof(s));
    EXPECT_EQ(PETSC_SUCCESS, block->read(&bwork, &s, nullptr));
    return s;
  }
  void setAll(const TCCGColumnsScalars &s)
  {
    copyBytes(bwork.s, &s, sizeof(s), cuda);
  }

  /* Different in every column; without a projection */
  static TCCGScalars scalarsOf(int c)
  {
    TCCGScalars s = marked();

    s.beta += 0.125 * c;
    s.a -= 0.0625 * c;
    s.late  = 1.0;
    s.shift = 0.0;
    s.mean  = 0.0;
    return s;
  }
  static TCCGColumnsScalars scalars()
  {
    TCCGColumnsScalars all;

    for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) all.of[c] = scalarsOf(c);
    return all;
  }

  void put(PetscScalar *at, const Values &values)
  {
    copyBytes(at, values.data(), values.size() * sizeof(PetscScalar), cuda);
  }
  Values at(const PetscScalar *from, PetscInt n)
  {
    Values values(n);

    copyBytes(values.data(), from, n * sizeof(PetscScalar), cuda);
    return values;
  }

  /* What a column is made of */
  enum {
    R,
    P,
    W,
    X,
    VECTORS
  };
  static Values valuesOf(PetscInt n, int c, int which)
  {
    return randomValues(n, 10 * (unsigned)c + which);
  }

  PetscScalar *column(const TCCGColumns &v, int c, int which)
  {
    PetscScalar *const first[] = {v.r, v.p, v.w, v.x};

    return first[which] + c * (which == X ? v.xstride : v.stride);
  }
  void fill(const TCCGColumns &v)
  {
    for (int c = 0; c < v.columns; ++c) {
      for (int k = 0; k < VECTORS; ++k) put(column(v, c, k), valuesOf(v.n, c, k));
    }
  }

  using BlockStep  = std::function<PetscErrorCode(const TCCGColumns &)>;
  using SingleStep = std::function<PetscErrorCode(PetscInt n, PetscScalar *r, PetscScalar *p, PetscScalar *w, PetscScalar *x)>;

  /* The step of a block, and of each column by itself. Columns of `stopped` (bits) are to be left as they are; `record`: the step ends an iteration */
  void compare(PetscInt n, PetscInt columns, int offset, const PetscScalar *d, unsigned stopped, bool record, const BlockStep &many, const SingleStep &one)
  {
    const PetscReal    inf     = std::numeric_limits<PetscReal>::infinity();
    const PetscCount   xstride = n + 3 + offset;
    Vector             x(cuda, Values(columns * xstride, 0.5), offset);
    TCCGColumns        v      = {};
    TCCGColumnsScalars before = scalars();
    PetscBool          room   = PETSC_FALSE;

    CALL(block->place(&bwork, n, columns, &v, &room));
    ASSERT_TRUE(room && v.n == n && v.columns == columns && v.stride >= n && v.stride % 2 == 0);
    v.x       = x;
    v.xstride = xstride;
    v.d       = d;
    fill(v);
    for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) {
      before.of[c].stop = stopped >> c & 1 ? PETSCTC_STOP_DPI_SIGN : PETSCTC_STOP_NONE;
      bwork.test[c]     = {PETSCTC_NORM_RR, -1.0, c % 3 == 2 ? (PetscReal)0.0 : inf}; /* every third ends the solve */
    }
    setAll(before);
    bwork.record = record ? &bwork.records[5] : nullptr;
    for (TCCGScalars &s : bwork.records[5].of) s.stop = PETSCTC_STOP_UNWRITTEN;
    CALL(many(v));
    CALL(block->mark(&bwork, 5, nullptr));
    CALL(block->await(&bwork, 5));
    const TCCGColumnsScalars after = getAll();

    for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) {
      if (c >= columns) {
        EXPECT_TRUE(sameScalars(before.of[c], after.of[c])) << c;
        EXPECT_EQ(PETSCTC_STOP_UNWRITTEN, bwork.records[5].of[c].stop);
        continue;
      }
      const Values r = valuesOf(n, c, R), p = valuesOf(n, c, P), w = valuesOf(n, c, W), xc = valuesOf(n, c, X);
      Vector       sr(cuda, r), sp(cuda, p), sw(cuda, w), sx(cuda, xc);

      set(before.of[c]);
      work.test          = bwork.test[c];
      work.record        = record ? &work.records[0] : nullptr;
      work.records->stop = PETSCTC_STOP_UNWRITTEN;
      CALL(one(n, sr, sp, sw, sx));
      CALL(steps->mark(&work, 0, nullptr));
      CALL(steps->await(&work, 0));
      EXPECT_TRUE(sameScalars(get(), after.of[c])) << "n " << n << ", column " << c << " of " << columns;
      if (record) {
        EXPECT_EQ(work.records->stop, bwork.records[5].of[c].stop) << "column " << c;
        EXPECT_TRUE((stopped >> c & 1) || sameScalars(*work.records, bwork.records[5].of[c])) << "column " << c;
      }
      const Values expected[] = {sr.get(), sp.get(), sw.get(), sx.get()};
      for (int k = 0; k < VECTORS; ++k) EXPECT_TRUE(sameBits(expected[k], at(column(v, c, k), n))) << "n " << n << ", column " << c << " of " << columns << ", vector " << k;
    }
    work.record  = nullptr;
    bwork.record = nullptr;
    (void)x.get(); /* its guards */
  }

  /* All widths and sizes; none, some and all columns stopped */
  void compareAll(bool record, const PetscScalar *d, const BlockStep &many, const SingleStep &one)
  {
    for (PetscInt n : {(PetscInt)0, (PetscInt)1, (PetscInt)2, (PetscInt)33, (PetscInt)1025, (PetscInt)100003}) {
      for (PetscInt columns = 1; columns <= TCCG_MAX_COLUMNS; ++columns) {
        if (n > 2000 && columns != 1 && columns != 5 && columns != 8) continue;
        compare(n, columns, (int)(columns % 2), d, 0, record, many, one);
        compare(n, columns, 0, d, 0x5a, record, many, one);
        compare(n, columns, 0, d, 0xff, record, many, one);
      }
    }
  }
};
ALL_BACKENDS(CGColumns);

TEST_P(CGColumns, ResetZeroes)
{
  setAll(scalars());
  CALL(block->reset(&bwork, nullptr));
  const TCCGColumnsScalars after = getAll();
  for (const TCCGScalars &s : after.of) EXPECT_TRUE(sameScalars(TCCGScalars{}, s));
}

TEST_P(CGColumns, FreezeStopsOneColumn)
{
  TCCGColumnsScalars expected = scalars();

  setAll(expected);
  CALL(block->freeze(3, &bwork, nullptr));
  expected.of[3].stop            = PETSCTC_STOP_TEST;
  const TCCGColumnsScalars after = getAll();
  for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) EXPECT_TRUE(sameScalars(expected.of[c], after.of[c])) << c;
}

TEST_P(CGColumns, PlaceKeepsMemory)
{
  TCCGColumns v = {}, w = {};
  PetscBool   room;

  CALL(block->place(&bwork, 101, 8, &v, &room));
  EXPECT_TRUE(v.p >= v.r + 8 * v.stride && v.w >= v.p + 8 * v.stride);
  CALL(block->place(&bwork, 101, 3, &w, &room));
  EXPECT_EQ(v.r, w.r);
  CALL(block->place(&bwork, 101, 8, &w, &room));
  EXPECT_EQ(v.r, w.r);
  EXPECT_EQ(102, w.stride);
}

TEST_P(CGColumns, Copy)
{
  const Values values = randomValues(1001, 1);
  Vector       from(cuda, values), to(cuda, Values(1001, NaN), 1);

  CALL(block->copy(1001, from, to, nullptr));
  CALL(block->read(&bwork, &bwork.records[0], nullptr)); /* waits */
  EXPECT_TRUE(sameBits(values, to.get()));
}

#define SINGLE [&](PetscInt n, PetscScalar * r, PetscScalar * p, PetscScalar * w, PetscScalar * x) -> PetscErrorCode
#define MANY   [&](const TCCGColumns &v) -> PetscErrorCode

TEST_P(CGColumns, Residual)
{
  compareAll(
    false, nullptr, MANY { return block->residual(&v, &bwork, nullptr); },
    SINGLE {
      (void)p, (void)w, (void)x;
      return steps->residual(n, r, &work, nullptr);
    });
}

TEST_P(CGColumns, Project)
{
  const Vector d(cuda, randomValues(100003, 99));

  for (bool scaled : {false, true})
    compareAll(
      true, scaled ? (PetscScalar *)d : nullptr, MANY { return block->project(&v, &bwork, nullptr); },
      SINGLE {
        (void)p, (void)x;
        return steps->project(n, scaled ? w : r, r, &work, nullptr);
      });
}

TEST_P(CGColumns, Direction)
{
  const Vector d(cuda, randomValues(100003, 99));

  for (bool scaled : {false, true}) {
    for (PetscBool first : {PETSC_TRUE, PETSC_FALSE})
      compareAll(
        false, scaled ? (PetscScalar *)d : nullptr, MANY { return block->direction(&v, first, &bwork, nullptr); },
        SINGLE {
          const PetscScalar *const old[] = {p};
          return steps->direction(n, first, scaled ? w : r, 1, old, p, first ? nullptr : x, &work, nullptr);
        });
  }
}

/* Random p and w: some columns stop at a negative p.w */
TEST_P(CGColumns, Curvature)
{
  for (PetscBool first : {PETSC_TRUE, PETSC_FALSE})
    compareAll(
      false, nullptr, MANY { return block->curvature(&v, first, &bwork, nullptr); },
      SINGLE {
        (void)r, (void)x;
        return steps->curvature(n, first, p, w, &work, nullptr);
      });
}

TEST_P(CGColumns, Update)
{
  const Vector d(cuda, randomValues(100003, 99), 1); /* not on 16 bytes */

  for (bool record : {false, true}) {
    compareAll(
      record, nullptr, MANY { return block->update(&v, &bwork, nullptr); },
      SINGLE {
        (void)x;
        return steps->update(n, PETSC_TRUE, p, w, nullptr, r, &work, nullptr);
      });
    compareAll(
      record, d, MANY { return block->update(&v, &bwork, nullptr); },
      SINGLE {
        (void)x;
        return steps->update_scaled(n, p, w, d, nullptr, r, w, &work, nullptr);
      });
  }
}

TEST_P(CGColumns, Settle)
{
  compareAll(
    false, nullptr, MANY { return block->settle(&v, &bwork, nullptr); },
    SINGLE {
      (void)r, (void)w;
      const PetscScalar *const all[] = {p};
      return steps->settle(n, 1, all, x, &work, nullptr);
    });
}

/* Whole solves of columns that end at different iterations, begun ahead of what anybody looks at: solutions of each, and no column changed after its end */
TEST_P(CGColumns, SolvesColumns)
{
  const PetscInt n = 301, columns = 7, iterations = 200;
  const double   tolerance = 1000 * PETSC_MACHINE_EPSILON;

  for (bool scaled : {false, true}) {
    Vector      d(cuda, Values(n, 0.25)), x(cuda, Values(columns * n, 0.0));
    TCCGColumns v = {};
    PetscBool   room;

    CALL(block->reset(&bwork, nullptr));
    CALL(block->place(&bwork, n, columns, &v, &room));
    v.x       = x;
    v.xstride = n;
    v.d       = scaled ? (PetscScalar *)d : nullptr;
    for (int c = 0; c < columns; ++c) {
      Values b = randomValues(n, c), z = b;
      for (auto &value : z) value *= 0.25;
      put(column(v, c, R), b);
      put(column(v, c, W), z);
      bwork.test[c] = {PETSCTC_NORM_RR, (PetscReal)(std::pow(10.0, -0.5 * c) * 0.1 * norm2(b)), std::numeric_limits<PetscReal>::infinity()};
    }
    CALL(block->project(&v, &bwork, nullptr));
    for (int i = 0; i < iterations; ++i) {
      CALL(block->direction(&v, i ? PETSC_FALSE : PETSC_TRUE, &bwork, nullptr));
      for (int c = 0; c < columns; ++c) put(column(v, c, W), tridiagonal(-1.0, 4.0, -1.0, at(column(v, c, P), n)));
      CALL(block->curvature(&v, i ? PETSC_FALSE : PETSC_TRUE, &bwork, nullptr));
      bwork.record = &bwork.records[i % PETSCTC_RECORDS];
      CALL(block->update(&v, &bwork, nullptr));
      bwork.record = nullptr;
    }
    CALL(block->settle(&v, &bwork, nullptr));
    const TCCGColumnsScalars s   = getAll();
    const Values             all = x.get();
    for (int c = 0; c < columns; ++c) {
      const Values b = randomValues(n, c);

      EXPECT_EQ(PETSCTC_STOP_TEST, s.of[c].stop) << c;
      EXPECT_LE(std::sqrt(s.of[c].rr), bwork.test[c].above) << c;
      EXPECT_LE(relativeResidual(-1.0, 4.0, -1.0, Values(all.begin() + c * n, all.begin() + (c + 1) * n), b) * norm2(b), 1.01 * bwork.test[c].above + tolerance * norm2(b)) << c;
      EXPECT_GT(std::sqrt(s.of[c].rr), 1e-3 * bwork.test[c].above) << "column " << c << " went on";
    }
  }
}
