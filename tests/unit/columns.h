/* What the tests of steps for blocks of columns share: each column has the bits of the steps of one vector, in vectors, scalars and records; columns that have stopped stay as they are */
#pragma once

#include <deque>
#include <../src/ksp/step/kspcolumns.h>
#include "steps.h"

/*
   A method M has the types Steps, Work, Scalars (of one vector) and Table, Columns (of blocks), and

     steps(cuda), table(cuda)    its tables
     vectors(v)                  where its vectors begin in a block
     scalars(c, s)               makes of distinct numbers what column c has between two steps
*/
template <class M>
class ColumnsTest : public StepsTest<typename M::Steps, typename M::Work, typename M::Scalars> {
protected:
  using Base    = StepsTest<typename M::Steps, typename M::Work, typename M::Scalars>;
  using Scalars = typename M::Scalars;
  using All     = PetscTCColumnsScalars<Scalars>;
  using Columns = typename M::Columns;
  using Base::cuda;

  const typename M::Table    *block = nullptr;
  PetscTCColumnsWork<Scalars> bwork = {};

  const typename M::Steps *table(bool cuda) override { return M::steps(cuda); }

  void SetUp() override
  {
    Base::SetUp();
    if (Base::IsSkipped() || Base::HasFatalFailure()) return;
    block = M::table(cuda);
    CALL(block->create(&bwork));
    bwork.tensor = Base::tensor;
    CALL(block->reset(&bwork, nullptr));
  }
  void TearDown() override
  {
    if (block) {
      CALL(block->destroy(&bwork));
      CALL(block->destroy(&bwork)); /* twice does nothing */
    }
    Base::TearDown();
  }

  All getAll()
  {
    All s;
    std::memset(&s, 0xff, sizeof(s));
    EXPECT_EQ(PETSC_SUCCESS, block->read(&bwork, &s, nullptr));
    return s;
  }
  void setAll(const All &s) { copyBytes(bwork.s, &s, sizeof(s), cuda); }

  /* Different in every column */
  static All scalars()
  {
    All all;

    for (int c = 0; c < PETSCTC_MAX_COLUMNS; ++c) {
      all.of[c] = Base::marked();
      M::scalars(c, all.of[c]);
    }
    return all;
  }

  void   put(PetscScalar *at, const Values &values) { copyBytes(at, values.data(), values.size() * sizeof(PetscScalar), cuda); }
  Values at(const PetscScalar *from, PetscInt n)
  {
    Values values(n);

    copyBytes(values.data(), from, n * sizeof(PetscScalar), cuda);
    return values;
  }

  /* The vectors of a column, x the last */
  static std::vector<PetscScalar *> column(const Columns &v, int c)
  {
    std::vector<PetscScalar *> all = M::vectors(v);

    for (PetscScalar *&vector : all) vector += c * v.stride;
    all.push_back(v.x + c * v.xstride);
    return all;
  }
  static Values valuesOf(PetscInt n, int c, size_t which) { return randomValues(n, 10 * (unsigned)c + (unsigned)which); }

  using BlockStep  = std::function<PetscErrorCode(const Columns &)>;
  using SingleStep = std::function<PetscErrorCode(PetscInt n, const std::vector<PetscScalar *> &)>;

  /* A block with numbers in it, x not in the block's memory */
  Columns filled(PetscInt n, PetscInt columns, PetscScalar *x, PetscCount xstride, const PetscScalar *d)
  {
    Columns   v    = {};
    PetscBool room = PETSC_FALSE;

    EXPECT_EQ(PETSC_SUCCESS, block->place(&bwork, n, columns, &v, &room));
    EXPECT_TRUE(room && v.n == n && v.columns == columns && v.stride >= n && v.stride % 2 == 0);
    v.x       = x;
    v.xstride = xstride;
    v.d       = d;
    for (int c = 0; c < columns; ++c) {
      const std::vector<PetscScalar *> vectors = column(v, c);
      for (size_t k = 0; k < vectors.size(); ++k) put(vectors[k], valuesOf(n, c, k));
    }
    return v;
  }

  /* The step of a column by itself has left the same as that of the block */
  void compareColumn(const Columns &v, int c, const Scalars &before, const Scalars &after, bool record, const SingleStep &one)
  {
    const std::vector<PetscScalar *> places = column(v, c);
    std::deque<Vector>               vectors;
    std::vector<PetscScalar *>       pointers;
    auto                            &work = this->work;

    for (size_t k = 0; k < places.size(); ++k) vectors.emplace_back(cuda, valuesOf(v.n, c, k));
    for (const Vector &vector : vectors) pointers.push_back(vector);
    this->set(before);
    work.test          = bwork.test[c];
    work.record        = record ? &work.records[0] : nullptr;
    work.records->stop = PETSCTC_STOP_UNWRITTEN;
    CALL(one(v.n, pointers));
    CALL(this->steps->mark(&work, 0, nullptr));
    CALL(this->steps->await(&work, 0));
    work.record = nullptr;
    EXPECT_TRUE(sameScalars(this->get(), after)) << "n " << v.n << ", column " << c << " of " << v.columns;
    if (record) {
      EXPECT_EQ(work.records->stop, bwork.records[5].of[c].stop) << "column " << c;
      EXPECT_TRUE(before.stop != PETSCTC_STOP_NONE || sameScalars(*work.records, bwork.records[5].of[c])) << "column " << c;
    }
    for (size_t k = 0; k < places.size(); ++k) EXPECT_TRUE(sameBits(vectors[k].get(), at(places[k], v.n))) << "n " << v.n << ", column " << c << " of " << v.columns << ", vector " << k;
  }

  /* The step of a block, and of each column by itself. Columns of `stopped` (bits) are to be left as they are; `record`: the step ends an iteration */
  void compare(PetscInt n, PetscInt columns, int offset, const PetscScalar *d, unsigned stopped, bool record, const BlockStep &many, const SingleStep &one)
  {
    const PetscReal  inf     = std::numeric_limits<PetscReal>::infinity();
    const PetscCount xstride = n + 3 + offset;
    Vector           x(cuda, Values(columns * xstride, 0.5), offset);
    const Columns    v      = filled(n, columns, x, xstride, d);
    All              before = scalars();

    for (int c = 0; c < PETSCTC_MAX_COLUMNS; ++c) {
      before.of[c].stop = stopped >> c & 1 ? PETSCTC_STOP_DPI_SIGN : PETSCTC_STOP_NONE;
      bwork.test[c]     = {PETSCTC_NORM_RR, -1.0, c % 3 == 2 ? (PetscReal)0.0 : inf}; /* every third ends the solve */
    }
    setAll(before);
    bwork.record = record ? &bwork.records[5] : nullptr;
    for (Scalars &s : bwork.records[5].of) s.stop = PETSCTC_STOP_UNWRITTEN;
    CALL(many(v));
    CALL(block->mark(&bwork, 5, nullptr));
    CALL(block->await(&bwork, 5));
    bwork.record    = nullptr;
    const All after = getAll();

    for (int c = 0; c < columns; ++c) compareColumn(v, c, before.of[c], after.of[c], record, one);
    for (int c = (int)columns; c < PETSCTC_MAX_COLUMNS; ++c) {
      EXPECT_TRUE(sameScalars(before.of[c], after.of[c])) << c;
      EXPECT_EQ(PETSCTC_STOP_UNWRITTEN, bwork.records[5].of[c].stop);
    }
    (void)x.get(); /* its guards */
  }

  /* All widths and sizes; none, some and all columns stopped */
  void compareAll(bool record, const PetscScalar *d, const BlockStep &many, const SingleStep &one)
  {
    for (PetscInt n : {(PetscInt)0, (PetscInt)1, (PetscInt)2, (PetscInt)33, (PetscInt)1025, (PetscInt)100003}) {
      for (PetscInt columns = 1; columns <= PETSCTC_MAX_COLUMNS; ++columns) {
        if (n > 2000 && columns != 1 && columns != 5 && columns != 8) continue;
        compare(n, columns, (int)(columns % 2), d, 0, record, many, one);
        compare(n, columns, 0, d, 0x5a, record, many, one);
        compare(n, columns, 0, d, 0xff, record, many, one);
      }
    }
  }

  /* ---- tests of what the tables of all methods have */

  void testReset()
  {
    setAll(scalars());
    CALL(block->reset(&bwork, nullptr));
    const All after = getAll();
    CALL(this->steps->reset(&this->work, nullptr));
    for (const Scalars &s : after.of) EXPECT_TRUE(sameScalars(this->get(), s));
  }

  void testFreeze()
  {
    All expected = scalars();

    setAll(expected);
    CALL(block->freeze(3, &bwork, nullptr));
    expected.of[3].stop = PETSCTC_STOP_TEST;
    const All after     = getAll();
    for (int c = 0; c < PETSCTC_MAX_COLUMNS; ++c) EXPECT_TRUE(sameScalars(expected.of[c], after.of[c])) << c;
  }

  /* Memory is kept for blocks as large, and vectors do not overlap */
  void testPlace()
  {
    Columns   v = {}, w = {};
    PetscBool room;

    CALL(block->place(&bwork, 101, 8, &v, &room));
    const std::vector<PetscScalar *> vectors = M::vectors(v);
    for (size_t k = 1; k < vectors.size(); ++k) EXPECT_GE(vectors[k], vectors[k - 1] + 8 * v.stride);
    for (PetscInt columns : {3, 8}) {
      CALL(block->place(&bwork, 101, columns, &w, &room));
      EXPECT_EQ(M::vectors(v)[0], M::vectors(w)[0]);
    }
    EXPECT_EQ(102, w.stride);
  }

  void testCopy()
  {
    const Values values = randomValues(1001, 1);
    Vector       from(cuda, values), to(cuda, Values(1001, NaN), 1);

    CALL(block->copy(1001, from, to, nullptr));
    CALL(block->read(&bwork, &bwork.records[0], nullptr)); /* waits */
    EXPECT_TRUE(sameBits(values, to.get()));
  }
};

/* In each method's file */
#define COLUMNS_TESTS(Suite) \
  ALL_BACKENDS(Suite); \
  TEST_P(Suite, Reset) \
  { \
    testReset(); \
  } \
  TEST_P(Suite, FreezeStopsOneColumn) \
  { \
    testFreeze(); \
  } \
  TEST_P(Suite, PlaceKeepsMemory) \
  { \
    testPlace(); \
  } \
  TEST_P(Suite, Copy) \
  { \
    testCopy(); \
  }

#define SINGLE [&](PetscInt n, const std::vector<PetscScalar *> &x) -> PetscErrorCode
