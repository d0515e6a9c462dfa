/* Dot products and norms of all backends against long double */
#include <memory>
#include "backends.h"

class Reduce : public BackendTest {
protected:
  PetscTCReduceWork work = {};
  bool              made = false;

  void SetUp() override
  {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
#if PETSCTC_HAVE_CUDA
    if (cuda) { CALL(PetscTCReduceWorkCreate_CUDA(&work)); }
#endif
    if (!cuda) { CALL(PetscTCReduceWorkCreate_Host(&work)); }
    made = true;
  }
  void TearDown() override
  {
    if (!made) return;
#if PETSCTC_HAVE_CUDA
    if (cuda) { CALL(PetscTCReduceWorkDestroy_CUDA(&work)); }
#endif
    if (!cuda) { CALL(PetscTCReduceWorkDestroy_Host(&work)); }
  }

  PetscErrorCode mdot(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[])
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return PetscTCMDot_CUDA(n, x, count, y, result, tensor, &work, nullptr);
#endif
    return PetscTCMDot_Host(n, x, count, y, result, tensor, &work, nullptr);
  }
  PetscErrorCode norm(PetscInt n, const PetscScalar x[], PetscScalar result[])
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return PetscTCNorm2_CUDA(n, x, result, tensor, &work, nullptr);
#endif
    return PetscTCNorm2_Host(n, x, result, tensor, &work, nullptr);
  }

  /* x and 8 vectors y, each `offset` numbers off an aligned address */
  struct Data {
    Values                               x;
    std::vector<Values>                  y;
    std::unique_ptr<Vector>              dx;
    std::vector<std::unique_ptr<Vector>> dy;
    const PetscScalar                   *pointers[PETSCTC_MAX_DOTS];

    Data(bool cuda, PetscInt n, int offset) : x(randomValues(n, 1)), dx(new Vector(cuda, x, offset))
    {
      for (int k = 0; k < PETSCTC_MAX_DOTS; ++k) {
        y.push_back(randomValues(n, 2 + k));
        dy.emplace_back(new Vector(cuda, y[k], offset));
        pointers[k] = *dy[k];
      }
    }
  };

  /* `count` results into a vector that has room for one more, which must stay */
  Values dots(const Data &data, PetscInt count)
  {
    Vector result(cuda, Values(count, NaN));
    EXPECT_EQ(PETSC_SUCCESS, mdot((PetscInt)data.x.size(), *data.dx, count, data.pointers, result));
    return result.get();
  }
};
ALL_BACKENDS(Reduce);

TEST_P(Reduce, DotsAreWithinTheBound)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      Data data(cuda, n, offset);
      for (PetscInt count = 1; count <= PETSCTC_MAX_DOTS; ++count) {
        const Values result = dots(data, count);
        for (PetscInt k = 0; k < count; ++k) expectDot(data.x, data.y[k], result[k], "dot");
      }
    }
  }
}

/* Also on vectors where a sum in another order would differ */
TEST_P(Reduce, SameBitsOnEveryRunAnyAlignmentAnyCount)
{
  for (PetscInt n : sizes) {
    Data         data(cuda, n, 0), unaligned(cuda, n, 1);
    const Values first = dots(data, PETSCTC_MAX_DOTS);

    for (int run = 0; run < 3; ++run) ASSERT_TRUE(sameBits(first, dots(data, PETSCTC_MAX_DOTS))) << "run " << run << ", n = " << n;
    ASSERT_TRUE(sameBits(first, dots(unaligned, PETSCTC_MAX_DOTS))) << "unaligned, n = " << n;
    for (PetscInt count = 1; count < PETSCTC_MAX_DOTS; ++count) ASSERT_TRUE(sameBits(Values(first.begin(), first.begin() + count), dots(data, count))) << count << " dots, n = " << n;
  }
}

/* The aligned and the unaligned at once: pairs of one vector straddle those of the other */
TEST_P(Reduce, MixedAlignment)
{
  const PetscInt     n = 1001;
  const Values       x = randomValues(n, 1), y = randomValues(n, 2);
  Vector             dx(cuda, x, 0), dy(cuda, y, 1), result(cuda, {NaN});
  const PetscScalar *pointer = dy;

  CALL(mdot(n, dx, 1, &pointer, result));
  expectDot(x, y, result.get()[0], "dot");
}

/* Small integers: every order gives the exact sum, so a missing or doubled element shows whatever its size */
TEST_P(Reduce, EveryElementCountsOnce)
{
  const PetscInt largest[] = {PetscDefined(USE_REAL_SINGLE) ? 3 : 1021, PetscDefined(USE_REAL_SINGLE) ? 5 : 509}; /* sums below 2^24, 2^53 */

  for (PetscInt n : sizes) {
    Values x(n), y(n);
    double exact = 0.0;

    for (PetscInt i = 0; i < n; ++i) {
      x[i] = 1 + i % largest[0];
      y[i] = 1 + i % largest[1];
      exact += x[i] * y[i];
    }
    Vector             dx(cuda, x), dy(cuda, y), result(cuda, {NaN});
    const PetscScalar *pointer = dy;
    CALL(mdot(n, dx, 1, &pointer, result));
    EXPECT_EQ(exact, result.get()[0]) << "n = " << n;
  }
}

TEST_P(Reduce, Norm)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const Values    x = randomValues(n, 3);
      const Reference reference(x, x);
      Vector          dx(cuda, x, offset), result(cuda, {NaN});

      CALL(norm(n, dx, result));
      /* half the relative error of the square, and the root's own rounding */
      const double exact = (double)sqrtl(reference.value);
      EXPECT_NEAR(exact, result.get()[0], exact * (std::min<size_t>(n, 280 + n / 1024) / 2.0 + 1.0) * PETSC_MACHINE_EPSILON) << "n = " << n;
    }
  }
}

TEST_P(Reduce, NormOfOneIsExact)
{
  Vector dx(cuda, {-3.0}), result(cuda, {NaN});
  CALL(norm(1, dx, result));
  EXPECT_EQ(3.0, result.get()[0]);
}

/* The products share an MMA tile, not their numbers */
TEST_P(Reduce, InfAndNanStayInTheirDot)
{
  const PetscInt n = 1000;
  for (PetscInt where : {0, 517, 999}) {
    Data   data(cuda, n, 0);
    Values clean = dots(data, PETSCTC_MAX_DOTS);

    data.y[3][where] = NaN;
    data.y[6][where] = data.x[where] > 0 ? Inf : -Inf;
    data.dy[3]->set(data.y[3]);
    data.dy[6]->set(data.y[6]);
    const Values result = dots(data, PETSCTC_MAX_DOTS);
    for (int k = 0; k < PETSCTC_MAX_DOTS; ++k) {
      if (k == 3) {
        EXPECT_TRUE(std::isnan(result[k]));
      } else {
        EXPECT_EQ(k == 6 ? Inf : clean[k], result[k]) << k;
      }
    }
  }
}

TEST_P(Reduce, ZeroDotsAndTooMany)
{
  Data   data(cuda, 10, 0);
  Vector result(cuda, {4.0});

  CALL(mdot(10, *data.dx, 0, data.pointers, result));
  EXPECT_EQ(4.0, result.get()[0]);
  CALL(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr));
  EXPECT_EQ(PETSC_ERR_ARG_OUTOFRANGE, mdot(10, *data.dx, PETSCTC_MAX_DOTS + 1, data.pointers, result));
  EXPECT_EQ(PETSC_ERR_ARG_OUTOFRANGE, mdot(10, *data.dx, -1, data.pointers, result));
  CALL(PetscPopErrorHandler());
  EXPECT_EQ(4.0, result.get()[0]);
}
