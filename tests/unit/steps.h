/* What the tests of solver steps share: work and scalars on a backend, and how iterations end */
#pragma once

#include <functional>
#include <petsctc/private/kspsteps.h>
#include "backends.h"

/* The scalars of solver steps are structs of real numbers */
template <class Scalars>
bool sameScalars(const Scalars &a, const Scalars &b)
{
  return !std::memcmp(&a, &b, sizeof(Scalars));
}

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
