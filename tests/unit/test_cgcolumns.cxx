/* The steps of KSPTCCG for blocks of columns on all backends */
#include <../src/ksp/tccg/tccgcolumns.h>
#include "columns.h"

struct CG {
  using Steps   = TCCGSteps;
  using Work    = TCCGWork;
  using Scalars = TCCGScalars;
  using Table   = TCCGColumnsSteps;
  using Columns = TCCGColumns;

  static const Steps *steps(bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCCGSteps_CUDA;
#endif
    (void)cuda;
    return &TCCGSteps_Host;
  }
  static const Table *table(bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCCGColumnsSteps_CUDA;
#endif
    (void)cuda;
    return &TCCGColumnsSteps_Host;
  }
  static std::vector<PetscScalar *> vectors(const Columns &v)
  {
    return {v.r, v.p, v.w};
  }
  /* Without a projection */
  static void scalars(int c, Scalars &s)
  {
    s.beta += 0.125 * c;
    s.a -= 0.0625 * c;
    s.late  = 1.0;
    s.shift = 0.0;
    s.mean  = 0.0;
  }
};

using CGColumns = ColumnsTest<CG>;
COLUMNS_TESTS(CGColumns)

/* Of a column, behind its vectors */
enum {
  R,
  P,
  W,
  X
};

#define MANY [&](const TCCGColumns &v)

TEST_P(CGColumns, Residual)
{
  compareAll(
    false, nullptr, MANY { return block->residual(&v, &bwork, nullptr); }, SINGLE { return steps->residual(n, x[R], &work, nullptr); });
}

TEST_P(CGColumns, Project)
{
  const Vector d(cuda, randomValues(100003, 99));

  for (bool scaled : {false, true})
    compareAll(
      true, scaled ? (PetscScalar *)d : nullptr, MANY { return block->project(&v, &bwork, nullptr); }, SINGLE { return steps->project(n, scaled ? x[W] : x[R], x[R], &work, nullptr); });
}

TEST_P(CGColumns, Direction)
{
  const Vector d(cuda, randomValues(100003, 99));

  for (bool scaled : {false, true}) {
    for (PetscBool first : {PETSC_TRUE, PETSC_FALSE})
      compareAll(
        false, scaled ? (PetscScalar *)d : nullptr, MANY { return block->direction(&v, first, &bwork, nullptr); },
        SINGLE {
          const PetscScalar *const old[] = {x[P]};
          return steps->direction(n, first, scaled ? x[W] : x[R], 1, old, x[P], first ? nullptr : x[X], &work, nullptr);
        });
  }
}

/* Random p and w: some columns stop at a negative p.w */
TEST_P(CGColumns, Curvature)
{
  for (PetscBool first : {PETSC_TRUE, PETSC_FALSE})
    compareAll(
      false, nullptr, MANY { return block->curvature(&v, first, &bwork, nullptr); }, SINGLE { return steps->curvature(n, first, x[P], x[W], &work, nullptr); });
}

TEST_P(CGColumns, Update)
{
  const Vector d(cuda, randomValues(100003, 99), 1); /* not on 16 bytes */
  const auto   many = MANY
  {
    return block->update(&v, &bwork, nullptr);
  };

  for (bool record : {false, true}) {
    compareAll(
      record, nullptr, many, SINGLE { return steps->update(n, PETSC_TRUE, x[P], x[W], nullptr, x[R], &work, nullptr); });
    compareAll(
      record, d, many, SINGLE { return steps->update_scaled(n, x[P], x[W], d, nullptr, x[R], x[W], &work, nullptr); });
  }
}

TEST_P(CGColumns, Settle)
{
  compareAll(
    false, nullptr, MANY { return block->settle(&v, &bwork, nullptr); },
    SINGLE {
      const PetscScalar *const all[] = {x[P]};
      return steps->settle(n, 1, all, x[X], &work, nullptr);
    });
}

/* Whole solves of columns that end at different iterations, begun ahead of what anybody looks at: solutions of each, and no column changed after its end */
TEST_P(CGColumns, SolvesColumns)
{
  const PetscInt n = 301, columns = 7, iterations = 200;
  const double   tolerance = 1000 * PETSC_MACHINE_EPSILON;

  for (bool scaled : {false, true}) {
    Vector            d(cuda, Values(n, 0.25)), x(cuda, Values(columns * n, 0.0));
    const TCCGColumns v = filled(n, columns, x, n, scaled ? (PetscScalar *)d : nullptr);

    x.set(Values(columns * n, 0.0));
    CALL(block->reset(&bwork, nullptr));
    for (int c = 0; c < columns; ++c) {
      Values b = randomValues(n, c), z = b;
      for (auto &value : z) value *= 0.25;
      put(column(v, c)[R], b);
      put(column(v, c)[W], z);
      bwork.test[c] = {PETSCTC_NORM_RR, (PetscReal)(std::pow(10.0, -0.5 * c) * 0.1 * norm2(b)), std::numeric_limits<PetscReal>::infinity()};
    }
    CALL(block->project(&v, &bwork, nullptr));
    for (int i = 0; i < iterations; ++i) {
      CALL(block->direction(&v, i ? PETSC_FALSE : PETSC_TRUE, &bwork, nullptr));
      for (int c = 0; c < columns; ++c) put(column(v, c)[W], tridiagonal(-1.0, 4.0, -1.0, at(column(v, c)[P], n)));
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
