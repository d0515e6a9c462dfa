/* What the tests of solver steps share: work and scalars on a backend, and how iterations end */
#pragma once

#include <functional>
#include <../src/ksp/step/kspsteps.h>
#include "backends.h"

/* The scalars of solver steps are structs of real numbers */
template <class Scalars>
bool sameScalars(const Scalars &a, const Scalars &b)
{
  return !std::memcmp(&a, &b, sizeof(Scalars));
}

/* Blocks on the diagonal of n rows, of bs rows or, if that is negative, of 1 to -bs, and their product with a vector by a plain loop that rounds as the steps of a backend do: to the bit.
   All columns are aligned (offset 0), the first alone (2), or none (1) */
class Blocks {
public:
  Blocks(bool cuda, PetscInt n, PetscInt bs, int offset = 0) : rows(placed(n, bs)), stride(n + n % 2 + offset / 2), values(columns(PetscAbsInt(bs))), cuda(cuda), d(cuda, values, offset), bytes(cuda, packed())
  {
    const PetscScalar *all = bytes;

    blocks = {PetscAbsInt(bs), stride, d, bs < 0 ? reinterpret_cast<const unsigned char *>(all) : nullptr};
  }

         operator const PetscTCBlocks *() const { return &blocks; }
  Values times(const Values &y) const
  {
    Values z(rows.size());

    for (size_t row = 0; row < z.size(); ++row) {
      const size_t first = row - rows[row] % 16;

      z[row] = values[row] * y[first];
      for (int k = 1; k <= rows[row] / 16; ++k) {
        const PetscScalar entry = values[(size_t)k * stride + row];

        if (cuda) z[row] = (PetscScalar)std::fma((double)entry, (double)y[first + k], (double)z[row]);
        else z[row] += entry * y[first + k];
      }
    }
    return z;
  }
  bool together(PetscInt i, PetscInt j) const { return i - rows[i] % 16 == j - rows[j] % 16; }
  void expectUnchanged() const { EXPECT_TRUE(sameBits(values, d.get()) && sameBits(packed(), bytes.get())); }

private:
  /* A byte a row, as PetscTCBlocks has them */
  static std::vector<unsigned char> placed(PetscInt n, PetscInt bs)
  {
    std::vector<unsigned char> all;

    for (PetscInt i = 0, block = 0; i < n; ++block) {
      const PetscInt size = PetscMin(n - i, bs > 0 ? bs : 1 + (block % 100 * (block % 100) * 7 + block / 3) % -bs);

      for (PetscInt k = 0; k < size; ++k, ++i) all.push_back((unsigned char)(k + 16 * (size - 1)));
    }
    return all;
  }
  /* What a block does not have, and what lies between columns, is not to be looked at */
  Values columns(PetscInt bs) const
  {
    Values all((size_t)stride * bs, NaN);

    for (PetscInt k = 0; k < bs; ++k) {
      const Values column = randomValues(rows.size(), 10 + k);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (k <= rows[i] / 16) all[(size_t)k * stride + i] = column[i];
      }
    }
    return all;
  }
  Values packed() const
  {
    Values all((rows.size() + sizeof(PetscScalar) - 1) / sizeof(PetscScalar), 0.0);

    if (!rows.empty()) std::memcpy(all.data(), rows.data(), rows.size());
    return all;
  }

  const std::vector<unsigned char> rows;
  PetscInt                         stride;
  const Values                     values;
  bool                             cuda;
  const Vector                     d, bytes;
  PetscTCBlocks                    blocks;
};

/* Rows and rows of a block, negative for several sizes up to that: none, one block, a few; around what a thread block or the host takes at a time, odd and even; and so many that a thread block of the largest grid
   has two or three shares */
static const std::vector<std::pair<PetscInt, PetscInt>> blockedSizes = [] {
  std::vector<std::pair<PetscInt, PetscInt>> all;

  for (PetscInt bs : {1, 2, 3, 4, 5, 6, 7, 8, 11, (int)PETSCTC_MAX_BLOCK}) {
    for (PetscInt blocks : {(PetscInt)0, (PetscInt)1, (PetscInt)2, (PetscInt)3, (PetscInt)31, 512 / bs - 1, 512 / bs, 512 / bs + 1, 1024 / bs, 1024 / bs + 1, 4099 / bs}) all.push_back({bs * blocks, bs});
  }
  for (PetscInt n : {0, 1, 2, 7, 31, 495, 496, 497, 500, 511, 512, 513, 992, 1023, 1024, 1025, 1040, 4099}) {
    for (PetscInt bs : {-2, -3, -7, -(int)PETSCTC_MAX_BLOCK}) all.push_back({n, bs});
  }
  all.push_back({600001, -5});
  all.push_back({600003, 3});
  all.push_back({600000, 8});
  return all;
}();

/* Work, scalars and their exchange, for CG and BiCGSTAB alike */
template <class Steps, class Work, class Scalars>
class StepsTest : public BackendTest {
protected:
  const Steps *steps = nullptr;
  Work         work  = {};

  virtual const Steps *table(bool cuda) = 0;

  void SetUp() override
  {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    steps = table(cuda);
    CALL(steps->create(&work));
    work.tensor = tensor;
    CALL(steps->reset(&work, nullptr));
  }
  void TearDown() override
  {
    if (!steps) return;
    CALL(steps->destroy(&work));
    CALL(steps->destroy(&work)); /* twice does nothing */
  }

  Scalars get()
  {
    Scalars s;
    std::memset(&s, 0xff, sizeof(s));
    EXPECT_EQ(PETSC_SUCCESS, steps->read(&work, &s, nullptr));
    return s;
  }
  void set(const Scalars &s) { copyBytes(work.s, &s, sizeof(s), cuda); }

  /* `step` ends an iteration: the record it leaves, and whether it stops, for bounds around the norm that it leaves. The step makes its own vectors: it has the same result each time */
  void expectRecords(const std::function<PetscErrorCode()> &step, PetscTCNorm norm, const std::function<PetscReal(const Scalars &)> &square)
  {
    const PetscReal inf = std::numeric_limits<PetscReal>::infinity();

    work.record = nullptr;
    set(marked());
    CALL(step());
    const Scalars   plain = get();
    const PetscReal value = std::sqrt(square(plain));
    ASSERT_GT(value, 0.0);
    const struct {
      PetscTCTest test;
      bool        stops;
    } cases[] = {
      {{norm, value, inf},                       true },
      {{norm, std::nextafter(value, -inf), inf}, false},
      {{norm, -1.0, value},                      true },
      {{norm, -1.0, std::nextafter(value, inf)}, false},
      {{norm, -1.0, inf},                        false},
      {{PETSCTC_NORM_NONE, 2 * value, -1.0},     false}
    };
    int number = 0;
    for (const auto &c : cases) {
      Scalars expected  = plain;
      work.test         = c.test;
      work.record       = &work.records[number];
      work.record->stop = PETSCTC_STOP_UNWRITTEN;
      expected.stop     = c.stops ? PETSCTC_STOP_TEST : PETSCTC_STOP_NONE;
      set(marked());
      CALL(step());
      CALL(steps->mark(&work, number, nullptr));
      CALL(steps->await(&work, number));
      EXPECT_TRUE(sameScalars(expected, *work.record)) << "record " << number << ", stop " << work.record->stop;
      EXPECT_TRUE(sameScalars(expected, get())) << "record " << number;
      number++;
    }
    expectNoRecord(step);
    work.record = nullptr;
  }

  /* A stopped step leaves none */
  void expectNoRecord(const std::function<PetscErrorCode()> &step)
  {
    Scalars stopped = marked();

    stopped.stop      = PETSCTC_STOP_TEST;
    work.record       = &work.records[PETSCTC_RECORDS - 1];
    work.record->stop = PETSCTC_STOP_UNWRITTEN;
    set(stopped);
    CALL(step());
    CALL(steps->mark(&work, PETSCTC_RECORDS - 1, nullptr));
    CALL(steps->await(&work, PETSCTC_RECORDS - 1));
    EXPECT_EQ(PETSCTC_STOP_UNWRITTEN, work.record->stop);
    EXPECT_TRUE(sameScalars(stopped, get()));
  }

  /* The square of the norm is NaN or Inf: that ends the solve, whatever the bounds */
  void expectStopsAt(const std::function<PetscErrorCode()> &step, PetscTCNorm norm)
  {
    work.test         = {norm, -1.0, std::numeric_limits<PetscReal>::infinity()};
    work.record       = &work.records[0];
    work.record->stop = PETSCTC_STOP_UNWRITTEN;
    set(marked());
    CALL(step());
    CALL(steps->mark(&work, 0, nullptr));
    CALL(steps->await(&work, 0));
    EXPECT_EQ(PETSCTC_STOP_TEST, work.record->stop);
    work.record = nullptr;
  }

  /* Scalars that differ from each other and from what any step would leave */
  static Scalars marked()
  {
    Scalars s;
    auto    field = reinterpret_cast<PetscReal *>(&s);
    for (size_t i = 0; i < sizeof(s) / sizeof(PetscReal); ++i) field[i] = 1.5 + 0.25 * (PetscReal)i;
    s.stop = 0.0;
    return s;
  }
};
