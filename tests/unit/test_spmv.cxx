/*
   The product with the tile layout, on the host, on CUDA cores and on the Tensor Core, for all patterns and thresholds.

   Tolerance: |computed - exact| <= 16 eps (|y| + sum |a| |x|) in each row, the exact value being formed in long double from the CSR arrays. Sums of small integers
   are exact in any order and must agree to the last bit.
*/
#include "patterns.h"
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <limits>
#if PetscDefined(HAVE_CUDA)
  #include <cuda_runtime.h>
#endif

namespace
{
enum class Backend {
  Host,
  Core,
  Tensor
};

void PrintTo(Backend backend, std::ostream *out)
{
  *out << (backend == Backend::Host ? "host" : backend == Backend::Core ? "CUDA cores" : "Tensor Core");
}

/* An array where the layout lives */
template <class T>
class Array {
public:
  Array(bool cuda, const std::vector<T> &values) : size_(values.size()), cuda_(cuda)
  {
    const size_t bytes = std::max<size_t>(size_, 1) * sizeof(T);

#if PetscDefined(HAVE_CUDA)
    if (cuda_) { EXPECT_EQ(cudaMalloc((void **)&p_, bytes), cudaSuccess); }
#endif
    if (!cuda_) p_ = (T *)malloc(bytes);
    Copy(p_, values.data(), true);
  }
  Array(const Array &) = delete;
  ~Array()
  {
#if PetscDefined(HAVE_CUDA)
    if (cuda_) { EXPECT_EQ(cudaFree(p_), cudaSuccess); }
#endif
    if (!cuda_) free(p_);
  }
  operator T *()
  {
    return p_;
  }

  std::vector<T> Values() const
  {
    std::vector<T> values(size_);

    Copy(values.data(), p_, false);
    return values;
  }

private:
  void Copy(T *to, const T *from, PETSC_UNUSED bool up) const
  {
    if (!size_) return;
#if PetscDefined(HAVE_CUDA)
    if (cuda_) { EXPECT_EQ(cudaMemcpy(to, from, size_ * sizeof(T), up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost), cudaSuccess); }
#endif
    if (!cuda_) memcpy(to, from, size_ * sizeof(T));
  }

  T     *p_ = nullptr;
  size_t size_;
  bool   cuda_;
};

using Vector = std::vector<PetscScalar>;

/* The layout of a matrix on one backend */
class Product {
public:
  Product(Backend backend, const Csr &A, const AIJTCParams &params) : backend_(backend)
  {
    EXPECT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &layout_), PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
    if (OnDevice()) {
      AIJTCLayout host = layout_;

      EXPECT_EQ(AIJTCLayoutUpload_CUDA(&host, &layout_, nullptr), PETSC_SUCCESS);
      EXPECT_EQ(AIJTCLayoutBytes(&layout_), AIJTCLayoutBytes(&host) + (32 * host.ntiles + host.npieces) * (PetscCount)sizeof(PetscScalar));
      EXPECT_EQ(AIJTCLayoutDestroy_Host(&host), PETSC_SUCCESS);
    }
#endif
    Refresh(A);
  }
  ~Product()
  {
    if (!OnDevice()) { EXPECT_EQ(AIJTCLayoutDestroy_Host(&layout_), PETSC_SUCCESS); }
#if PetscDefined(HAVE_CUDA)
    if (OnDevice()) { EXPECT_EQ(AIJTCLayoutDestroy_CUDA(&layout_), PETSC_SUCCESS); }
#endif
    EXPECT_EQ(layout_.col, nullptr);
  }

  bool OnDevice() const
  {
    return backend_ != Backend::Host;
  }

  void Refresh(const Csr &A)
  {
    Array<PetscScalar> a(OnDevice(), A.a);

    if (!OnDevice()) { EXPECT_EQ(AIJTCLayoutRefresh_Host(&layout_, a, nullptr), PETSC_SUCCESS); }
#if PetscDefined(HAVE_CUDA)
    if (OnDevice()) { EXPECT_EQ(AIJTCLayoutRefresh_CUDA(&layout_, a, nullptr), PETSC_SUCCESS); }
#endif
  }

  /* z <- A x or y + A x; in_place: z is y. z starts as NaN */
  Vector Mult(const Vector &x, const Vector *y = nullptr, bool in_place = false)
  {
    Array<PetscScalar> dx(OnDevice(), x), dy(OnDevice(), y ? *y : Vector()), dz(OnDevice(), Vector(layout_.m, NAN));
    PetscScalar       *py = y ? (PetscScalar *)dy : nullptr, *pz = in_place ? (PetscScalar *)dy : (PetscScalar *)dz;

    if (!OnDevice()) { EXPECT_EQ(AIJTCLayoutMult_Host(&layout_, PETSC_FALSE, dx, py, pz, nullptr), PETSC_SUCCESS); }
#if PetscDefined(HAVE_CUDA)
    if (OnDevice()) { EXPECT_EQ(AIJTCLayoutMult_CUDA(&layout_, (PetscBool)(backend_ == Backend::Tensor), dx, py, pz, nullptr), PETSC_SUCCESS); }
#endif
    EXPECT_EQ(dx.Values().size(), x.size());
    return in_place ? dy.Values() : dz.Values();
  }

private:
  Backend     backend_;
  AIJTCLayout layout_;
};

Vector RandomVector(PetscInt n, unsigned seed)
{
  std::mt19937                           random(seed);
  std::uniform_real_distribution<double> values(-2.0, 2.0);
  Vector                                 v(n);

  for (auto &e : v) e = values(random);
  return v;
}

bool HasColumn(const Csr &A, PetscInt r, PetscInt c)
{
  return std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], c) != A.j.begin() + A.i[r + 1];
}

void ExpectRow(const Csr &A, const Vector &x, const Vector *y, const Vector &z, PetscInt r)
{
  long double sum = y ? (*y)[r] : 0.0, bound = std::fabs(sum);

  for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) {
    sum += (long double)A.a[e] * x[A.j[e]];
    bound += std::fabs((long double)A.a[e] * x[A.j[e]]);
  }
  ASSERT_LE(std::fabs(z[r] - sum), 16 * std::numeric_limits<double>::epsilon() * bound) << "row " << r << " of length " << A.Length(r) << " is " << z[r] << ", not " << (double)sum; /* false for NaN */
}

void ExpectProduct(const Csr &A, const Vector &x, const Vector *y, const Vector &z)
{
  ASSERT_EQ((PetscInt)z.size(), A.m);
  for (PetscInt r = 0; r < A.m && !::testing::Test::HasFatalFailure(); r++) ExpectRow(A, x, y, z, r);
}

class Spmv : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override
  {
    if (GetParam() == Backend::Host) return;
#if PetscDefined(HAVE_CUDA)
    int       devices = 0;
    PetscBool has_mma = PETSC_FALSE;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    ASSERT_EQ(PetscTCDeviceHasMMA_CUDA(&has_mma), PETSC_SUCCESS);
    if (GetParam() == Backend::Tensor && !has_mma) GTEST_SKIP() << "the device has no FP64 mma.m8n8k4";
#else
    GTEST_SKIP() << "PETSc was built without CUDA";
#endif
  }

  /* Runs check(matrix, its layout on this backend) for every pattern and choice of thresholds, until one fails */
  template <class Check>
  void ForAllLayouts(Check check)
  {
    for (const Pattern &pattern : Patterns()) {
      SCOPED_TRACE(pattern.name);
      const Csr A = pattern.make();

      for (const AIJTCParams &params : ParamsToTry()) {
        SCOPED_TRACE(Describe(params));
        Product product(GetParam(), A, params);

        check(A, product);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(Spmv, Product)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x = RandomVector(A.n, 1);

    ExpectProduct(A, x, nullptr, product.Mult(x));
  });
}

TEST_P(Spmv, ProductAddedToAVector)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x = RandomVector(A.n, 1), y = RandomVector(A.m, 2);
    const Vector z = product.Mult(x, &y), in_place = product.Mult(x, &y, true);

    ExpectProduct(A, x, &y, z);
    EXPECT_EQ(in_place, z);
  });
}

/* Values and vectors of small integers: every order of summation is exact */
TEST_P(Spmv, IntegersAreExact)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    Csr    B = A;
    Vector x(A.n), y(A.m), expected;

    for (size_t e = 0; e < B.a.size(); e++) B.a[e] = (double)(e % 19) - 9.0;
    for (PetscInt c = 0; c < A.n; c++) x[c] = (double)(c % 23) - 11.0;
    for (PetscInt r = 0; r < A.m; r++) y[r] = (double)(r % 29) - 14.0;
    expected = y;
    for (PetscInt r = 0; r < A.m; r++)
      for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) expected[r] += B.a[e] * x[A.j[e]];
    product.Refresh(B);
    EXPECT_EQ(product.Mult(x, &y), expected);
  });
}

TEST_P(Spmv, InfAndNanInXReachOnlyRowsWithTheEntry)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    if (A.n == 0) return;
    const PetscInt c = A.j.empty() ? A.n - 1 : A.j[A.j.size() / 2];

    for (PetscScalar poison : {(PetscScalar)INFINITY, (PetscScalar)NAN}) {
      Vector x = RandomVector(A.n, 3);

      x[c]           = poison;
      const Vector z = product.Mult(x);
      for (PetscInt r = 0; r < A.m; r++) {
        if (HasColumn(A, r, c)) ASSERT_FALSE(std::isfinite(z[r])) << "row " << r;
        else ASSERT_NO_FATAL_FAILURE(ExpectRow(A, x, nullptr, z, r));
      }
    }
  });
}

TEST_P(Spmv, InfInTheMatrixReachesOnlyItsRow)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    if (A.j.empty()) return;
    const Vector x        = RandomVector(A.n, 4);
    const size_t e        = A.j.size() / 2;
    const auto   infected = (PetscInt)(std::upper_bound(A.i.begin(), A.i.end(), (PetscInt)e) - A.i.begin()) - 1;
    Csr          B        = A;

    B.a[e] = INFINITY;
    product.Refresh(B);
    const Vector z = product.Mult(x);
    for (PetscInt r = 0; r < A.m; r++) {
      if (r == infected) ASSERT_FALSE(std::isfinite(z[r]));
      else ASSERT_NO_FATAL_FAILURE(ExpectRow(B, x, nullptr, z, r));
    }
  });
}

TEST_P(Spmv, FollowsChangedValues)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x = RandomVector(A.n, 5);
    Csr          B = A;

    (void)product.Mult(x);
    std::reverse(B.a.begin(), B.a.end());
    product.Refresh(B);
    ExpectProduct(B, x, nullptr, product.Mult(x));
  });
}

TEST_P(Spmv, SameBitsEveryTime)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x     = RandomVector(A.n, 6);
    const Vector first = product.Mult(x);

    for (int run = 0; run < 3; run++) {
      const Vector again = product.Mult(x);

      ASSERT_TRUE(A.m == 0 || memcmp(first.data(), again.data(), A.m * sizeof(PetscScalar)) == 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Spmv, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), [](const auto &info) { return std::string(info.param == Backend::Host ? "host" : info.param == Backend::Core ? "core" : "tensor"); });

TEST(SpmvRefuses, AProductWithoutValues)
{
  const Csr         A      = FromLengths(5, {1, 2, 5});
  const AIJTCParams params = {256, 4, 0};
  Vector            x(5, 1.0), z(3);
  AIJTCLayout       layout;

  ASSERT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &layout), PETSC_SUCCESS);
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(AIJTCLayoutMult_Host(&layout, PETSC_FALSE, x.data(), nullptr, z.data(), nullptr), PETSC_ERR_ORDER);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  ASSERT_EQ(AIJTCLayoutDestroy_Host(&layout), PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* More tiles than any device holds: PETSc's memory error, nothing allocated, and the device works on */
TEST(SpmvRefuses, AnUploadThatDoesNotFit)
{
  const AIJTCParams params  = {256, 4, 0};
  int               devices = 0;
  AIJTCLayout       host, device;

  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  const Csr A = FromLengths(50, RandomLengths(1000, 0, 9, 8));
  ASSERT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &host), PETSC_SUCCESS);
  AIJTCLayout too_large = host;

  too_large.ntiles = (PetscCount)1 << 40; /* 140 TB of columns; the arrays of rows come before them */
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(AIJTCLayoutUpload_CUDA(&too_large, &device, nullptr), PETSC_ERR_MEM);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  EXPECT_EQ(device.col, nullptr);
  EXPECT_EQ(device.rid, nullptr);
  EXPECT_EQ(device.m, 0);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_EQ(AIJTCLayoutUpload_CUDA(&host, &device, nullptr), PETSC_SUCCESS);
  ASSERT_EQ(AIJTCLayoutDestroy_CUDA(&device), PETSC_SUCCESS);
  ASSERT_EQ(AIJTCLayoutDestroy_Host(&host), PETSC_SUCCESS);
}
#endif
} // namespace
