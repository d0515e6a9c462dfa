/* Norms of all backends and dot products of the host, which are the solvers' sums without their steps, against long double */
#include <memory>
#include "backends.h"

class Norm : public BackendTest {
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

  PetscErrorCode norm(PetscInt n, const PetscScalar x[], PetscScalar result[])
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return PetscTCNorm2_CUDA(n, x, result, tensor, &work, nullptr);
#endif
    return PetscTCNorm2_Host(n, x, result, tensor, &work, nullptr);
  }
  /* Of a vector `offset` numbers off an aligned address */
  Values norm(const Values &x, int offset = 0)
  {
    Vector dx(cuda, x, offset), result(cuda, {NaN});

    EXPECT_EQ(PETSC_SUCCESS, norm((PetscInt)x.size(), dx, result));
    return result.get();
  }
};
ALL_BACKENDS(Norm);

TEST_P(Norm, IsWithinTheBound)
{
  for (PetscInt n : sizes) {
    const Values    x = randomValues(n, 3);
    const Reference reference(x, x);
    /* half the relative error of the square, and the root's own rounding */
    const double exact = (double)sqrtl(reference.value);

    for (int offset = 0; offset < 2; ++offset) EXPECT_NEAR(exact, norm(x, offset)[0], exact * (std::min<size_t>(n, 280 + n / 1024) / 2.0 + 1.0) * PETSC_MACHINE_EPSILON) << "n = " << n;
  }
}

/* Also on vectors where a sum in another order would differ */
TEST_P(Norm, HasTheSameBitsOnEveryRunAndAnyAlignment)
{
  for (PetscInt n : sizes) {
    const Values x = randomValues(n, 1), first = norm(x);

    for (int run = 0; run < 3; ++run) ASSERT_TRUE(sameBits(first, norm(x))) << "run " << run << ", n = " << n;
    ASSERT_TRUE(sameBits(first, norm(x, 1))) << "unaligned, n = " << n;
  }
}

/* Squares of small integers: every order gives the exact sum, so a missing or doubled element shows whatever its size */
TEST_P(Norm, CountsEveryElementOnce)
{
  const PetscInt largest = PetscDefined(USE_REAL_SINGLE) ? 3 : 1021; /* sums below 2^24, 2^53 */

  for (PetscInt n : sizes) {
    Values      x(n);
    PetscScalar exact = 0.0;

    for (PetscInt i = 0; i < n; ++i) {
      x[i] = 1 + i % largest;
      exact += x[i] * x[i];
    }
    EXPECT_EQ(std::sqrt(exact), norm(x)[0]) << "n = " << n;
  }
}

TEST_P(Norm, OfOneIsExact)
{
  EXPECT_EQ(3.0, norm({-3.0})[0]);
}

/* x and 8 vectors y, each `offset` numbers off an aligned address */
struct Data {
  Values                               x;
  std::vector<Values>                  y;
  std::unique_ptr<Vector>              dx;
  std::vector<std::unique_ptr<Vector>> dy;
  const PetscScalar                   *pointers[PETSCTC_MAX_DOTS];

  Data(PetscInt n, int offset) : x(randomValues(n, 1)), dx(new Vector(false, x, offset))
  {
    for (int k = 0; k < PETSCTC_MAX_DOTS; ++k) {
      y.push_back(randomValues(n, 2 + k));
      dy.emplace_back(new Vector(false, y[k], offset));
      pointers[k] = *dy[k];
    }
  }

  /* `count` results into a vector that has room for one more, which must stay */
  Values dots(PetscInt count) const
  {
    Vector result(false, Values(count, NaN));
    EXPECT_EQ(PETSC_SUCCESS, PetscTCMDot_Host((PetscInt)x.size(), *dx, count, pointers, result));
    return result.get();
  }
};

TEST(Dots, AreWithinTheBound)
{
  for (PetscInt n : sizes) {
    for (int offset = 0; offset < 2; ++offset) {
      const Data data(n, offset);
      for (PetscInt count = 1; count <= PETSCTC_MAX_DOTS; ++count) {
        const Values result = data.dots(count);
        for (PetscInt k = 0; k < count; ++k) expectDot(data.x, data.y[k], result[k], "dot");
      }
    }
  }
}

TEST(Dots, HaveTheSameBitsWhateverTheAlignmentAndTheCount)
{
  for (PetscInt n : sizes) {
    const Data   data(n, 0), unaligned(n, 1);
    const Values first = data.dots(PETSCTC_MAX_DOTS);

    ASSERT_TRUE(sameBits(first, unaligned.dots(PETSCTC_MAX_DOTS))) << "unaligned, n = " << n;
    for (PetscInt count = 1; count < PETSCTC_MAX_DOTS; ++count) ASSERT_TRUE(sameBits(Values(first.begin(), first.begin() + count), data.dots(count))) << count << " dots, n = " << n;
  }
}

TEST(Dots, InfAndNanStayInTheirs)
{
  const PetscInt n = 1000;
  for (PetscInt where : {0, 517, 999}) {
    Data         data(n, 0);
    const Values clean = data.dots(PETSCTC_MAX_DOTS);

    data.y[3][where] = NaN;
    data.y[6][where] = data.x[where] > 0 ? Inf : -Inf;
    data.dy[3]->set(data.y[3]);
    data.dy[6]->set(data.y[6]);
    const Values result = data.dots(PETSCTC_MAX_DOTS);
    for (int k = 0; k < PETSCTC_MAX_DOTS; ++k) {
      if (k == 3) {
        EXPECT_TRUE(std::isnan(result[k]));
      } else {
        EXPECT_EQ(k == 6 ? Inf : clean[k], result[k]) << k;
      }
    }
  }
}

TEST(Dots, NoneAndTooMany)
{
  const Data data(10, 0);
  Vector     result(false, {4.0});

  CALL(PetscTCMDot_Host(10, *data.dx, 0, data.pointers, result));
  EXPECT_EQ(4.0, result.get()[0]);
  CALL(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr));
  EXPECT_EQ(PETSC_ERR_ARG_OUTOFRANGE, PetscTCMDot_Host(10, *data.dx, PETSCTC_MAX_DOTS + 1, data.pointers, result));
  EXPECT_EQ(PETSC_ERR_ARG_OUTOFRANGE, PetscTCMDot_Host(10, *data.dx, -1, data.pointers, result));
  CALL(PetscPopErrorHandler());
  EXPECT_EQ(4.0, result.get()[0]);
}
