/* The steps of KSPTCBCGS for blocks of columns on all backends */
#include <../src/ksp/tcbcgs/tcbcgscolumns.h>
#include "columns.h"

struct BCGS {
  using Steps   = TCBCGSSteps;
  using Work    = TCBCGSWork;
  using Scalars = TCBCGSScalars;
  using Table   = TCBCGSColumnsSteps;
  using Columns = TCBCGSColumns;

  static const Steps *steps(bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCBCGSSteps_CUDA;
#endif
    (void)cuda;
    return &TCBCGSSteps_Host;
  }
  static const Table *table(bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCBCGSColumnsSteps_CUDA;
#endif
    (void)cuda;
    return &TCBCGSColumnsSteps_Host;
  }
  static std::vector<PetscScalar *> vectors(const Columns &v)
  {
    return {v.r, v.rp, v.p, v.v, v.s, v.t};
  }
  static void scalars(int c, Scalars &s)
  {
    s.rho += 0.125 * c;
    s.alpha -= 0.0625 * c;
    s.omega += 0.25 * c;
    s.advanced = 0.0;
    s.vmean = s.tmean = 0.0;
  }
};

using BCGSColumns = ColumnsTest<BCGS>;
COLUMNS_TESTS(BCGSColumns)

/* Of a column, behind its vectors */
enum {
  R,
  RP,
  P,
  V,
  S,
  T,
  X
};

#define MANY(step) [&](const TCBCGSColumns &v) { return block->step(&v, &bwork, nullptr); }

TEST_P(BCGSColumns, Start)
{
  compareAll(
    false, nullptr, MANY(start), SINGLE { return steps->start(n, x[R], x[RP], x[P], x[V], &work, nullptr); });
}

TEST_P(BCGSColumns, Direction)
{
  compareAll(
    false, nullptr, MANY(direction), SINGLE { return steps->direction(n, x[R], x[V], x[P], &work, nullptr); });
}

/* With a diagonal the product is in t. No rows: a stop */
TEST_P(BCGSColumns, Breakdown)
{
  const Vector d(cuda, randomValues(100003, 99), 1); /* not on 16 bytes */

  compareAll(
    false, nullptr, MANY(breakdown), SINGLE { return steps->breakdown(n, x[V], x[RP], &work, nullptr); });
  compareAll(
    false, d, MANY(breakdown), SINGLE { return steps->breakdown_scaled(n, x[T], d, x[RP], x[V], &work, nullptr); });
}

TEST_P(BCGSColumns, Half)
{
  compareAll(
    false, nullptr, MANY(half), SINGLE { return steps->half(n, x[R], x[V], x[S], &work, nullptr); });
}

/* With a diagonal the product is in r */
TEST_P(BCGSColumns, Stabilize)
{
  const Vector d(cuda, randomValues(100003, 99));

  compareAll(
    false, nullptr, MANY(stabilize), SINGLE { return steps->stabilize(n, x[T], x[S], nullptr, &work, nullptr); });
  compareAll(
    false, d, MANY(stabilize), SINGLE { return steps->stabilize_scaled(n, x[R], d, x[S], nullptr, x[T], &work, nullptr); });
}

TEST_P(BCGSColumns, Update)
{
  for (bool record : {false, true})
    compareAll(
      record, nullptr, MANY(update), SINGLE { return steps->update(n, x[P], x[S], x[T], x[RP], x[X], x[R], &work, nullptr); });
}

/* Whole solves of columns that end at different iterations, begun ahead of what anybody looks at: solutions of each, and no column changed after its end */
TEST_P(BCGSColumns, SolvesColumns)
{
  const PetscInt n = 301, columns = 7, iterations = 100;
  const double   lower = -1.5, diagonal = 4.0, upper = -0.5, tolerance = 1000 * PETSC_MACHINE_EPSILON;

  for (bool scaled : {false, true}) {
    Vector        d(cuda, Values(n, 0.25)), x(cuda, Values(columns * n, 0.0));
    const double  scale = scaled ? 0.25 : 1.0; /* of all residuals */
    TCBCGSColumns v     = filled(n, columns, x, n, scaled ? (PetscScalar *)d : nullptr);

    const auto multiply = [&](int from, int to) {
      for (int c = 0; c < columns; ++c) put(column(v, c)[to], tridiagonal(lower, diagonal, upper, at(column(v, c)[from], n)));
    };

    x.set(Values(columns * n, 0.0));
    CALL(block->reset(&bwork, nullptr));
    for (int c = 0; c < columns; ++c) {
      Values r = randomValues(n, c);
      for (auto &value : r) value *= scale;
      put(column(v, c)[R], r);
      bwork.test[c] = {PETSCTC_NORM_RR, (PetscReal)(std::pow(10.0, -0.5 * c) * 0.1 * norm2(r)), std::numeric_limits<PetscReal>::infinity()};
    }
    CALL(block->start(&v, &bwork, nullptr));
    for (int i = 0; i < iterations; ++i) {
      bwork.record = &bwork.records[i % PETSCTC_RECORDS];
      CALL(block->direction(&v, &bwork, nullptr));
      multiply(P, scaled ? T : V);
      CALL(block->breakdown(&v, &bwork, nullptr));
      CALL(block->half(&v, &bwork, nullptr));
      multiply(S, scaled ? R : T);
      CALL(block->stabilize(&v, &bwork, nullptr));
      CALL(block->update(&v, &bwork, nullptr));
      bwork.record = nullptr;
    }
    const TCBCGSColumnsScalars s   = getAll();
    const Values               all = x.get();
    for (int c = 0; c < columns; ++c) {
      const Values b = randomValues(n, c);

      EXPECT_EQ(PETSCTC_STOP_TEST, s.of[c].stop) << c;
      EXPECT_LE(std::sqrt(s.of[c].rr), bwork.test[c].above) << c;
      EXPECT_LE(scale * relativeResidual(lower, diagonal, upper, Values(all.begin() + c * n, all.begin() + (c + 1) * n), b) * norm2(b), 1.01 * bwork.test[c].above + tolerance * norm2(b)) << c;
      EXPECT_GT(std::sqrt(s.of[c].rr), 1e-4 * bwork.test[c].above) << "column " << c << " went on";
    }
  }
}
