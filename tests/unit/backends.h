/* What the tests of reductions and solver steps share: the three ways to compute, vectors in the memory of each, and references with error bounds */
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>
#include <gtest/gtest.h>
#include <petsctc/private/aijtclayout.h>
#include <../src/vec/vecreduce.h>
#if PETSCTC_HAVE_CUDA
  #include <cuda_runtime.h>
#endif

#define CALL(...) ASSERT_EQ(PETSC_SUCCESS, (__VA_ARGS__))

enum class Backend {
  Host,
  CUDATensor,
  CUDACore
};

inline std::string backendName(const ::testing::TestParamInfo<Backend> &info)
{
  return info.param == Backend::Host ? "Host" : info.param == Backend::CUDATensor ? "CUDATensor" : "CUDACore";
}

using Values = std::vector<PetscScalar>;

/* Copies in either direction, for host memory too */
inline void copyBytes(void *to, const void *from, size_t bytes, bool cuda)
{
  if (!bytes) return;
#if PETSCTC_HAVE_CUDA
  if (cuda) {
    ASSERT_EQ(cudaSuccess, cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    return;
  }
#endif
  (void)cuda;
  std::memcpy(to, from, bytes);
}

/* A vector in a backend's memory, `offset` numbers after an aligned address, between guards that get() checks */
class Vector {
public:
  Vector(bool cuda, const Values &values, int offset = 0) : cuda(cuda), n(values.size()), before(16 + offset), total(n + before + 16)
  {
    Values all(total, guard);
    std::copy(values.begin(), values.end(), all.begin() + before);
#if PETSCTC_HAVE_CUDA
    if (cuda) { EXPECT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void **>(&base), total * sizeof(PetscScalar))); }
#endif
    if (!cuda) { EXPECT_EQ(PETSC_SUCCESS, PetscMalloc1(total, &base)); }
    copyBytes(base, all.data(), total * sizeof(PetscScalar), cuda);
  }
  ~Vector()
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) { EXPECT_EQ(cudaSuccess, cudaFree(base)); }
#endif
    if (!cuda) { EXPECT_EQ(PETSC_SUCCESS, PetscFree(base)); }
  }
  Vector(const Vector &)            = delete;
  Vector &operator=(const Vector &) = delete;

  operator PetscScalar *() const
  {
    return base + before;
  }
  void set(const Values &values)
  {
    copyBytes(base + before, values.data(), n * sizeof(PetscScalar), cuda);
  }
  Values get() const
  {
    Values all(total);
    copyBytes(all.data(), base, total * sizeof(PetscScalar), cuda);
    for (size_t i = 0; i < total; ++i) {
      if (i < before || i >= before + n) { EXPECT_EQ(guard, all[i]) << "written outside of the vector"; }
    }
    return Values(all.begin() + before, all.begin() + before + n);
  }

private:
  static constexpr PetscScalar guard = PetscDefined(USE_REAL_SINGLE) ? -7.25e33 : -7.25e99;
  bool                         cuda;
  size_t                       n, before, total;
  PetscScalar                 *base = nullptr;
};

/* A test that runs on every backend; those of CUDA are skipped without a GPU */
class BackendTest : public ::testing::TestWithParam<Backend> {
protected:
  bool      cuda   = false;
  PetscBool tensor = PETSC_FALSE;

  void SetUp() override
  {
    cuda   = GetParam() != Backend::Host;
    tensor = GetParam() == Backend::CUDATensor ? PETSC_TRUE : PETSC_FALSE;
    if (!cuda) return;
#if PETSCTC_HAVE_CUDA
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
      (void)cudaGetLastError();
      GTEST_SKIP() << "no GPU";
    }
    PetscBool has = PETSC_FALSE;
    CALL(PetscTCDeviceHasMMA_CUDA(&has));
    if (tensor && !has) GTEST_SKIP() << "the GPU has no FP64 Tensor Core";
#else
    GTEST_SKIP() << "PETSc without CUDA";
#endif
  }
};

#define ALL_BACKENDS(Suite) INSTANTIATE_TEST_SUITE_P(Backends, Suite, ::testing::Values(Backend::Host, Backend::CUDATensor, Backend::CUDACore), backendName)

/* Numbers in (-1, 1), the same in every run */
inline Values randomValues(size_t n, unsigned seed)
{
  Values   v(n);
  uint64_t state = 0x9e3779b97f4a7c15ull * (seed + 1);

  for (auto &x : v) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x     = (PetscScalar)((int64_t)state >> 11) * 0x1p-52;
  }
  return v;
}

/* A dot product in long double, and how far a sum in PETSc's precision may be from it. Every backend adds at most 280 + n/1024 times in a row to one number (and never
   more than n times), so first-order error analysis gives this many roundings of the sum of absolute values. */
struct Reference {
  long double value = 0.0L, absolute = 0.0L;
  size_t      n;

  Reference(const Values &x, const Values &y) : n(x.size())
  {
    for (size_t i = 0; i < n; ++i) {
      value += (long double)x[i] * y[i];
      absolute += fabsl((long double)x[i] * y[i]);
    }
  }
  double bound() const { return (double)(std::min(n, 280 + n / 1024) * PETSC_MACHINE_EPSILON * absolute); }
};

inline void expectDot(const Values &x, const Values &y, double computed, const char *what)
{
  const Reference reference(x, y);
  EXPECT_NEAR((double)reference.value, computed, reference.bound()) << what << ", n = " << x.size();
}

/* computed[i] against sum_k c_k v_k[i]: one rounding for each product and each sum, of terms no larger than their absolute values */
inline void expectCombination(const std::vector<std::pair<double, const Values *>> &terms, const Values &computed, const char *what)
{
  for (size_t i = 0; i < computed.size(); ++i) {
    long double value = 0.0L, absolute = 0.0L;
    for (const auto &term : terms) {
      value += (long double)term.first * (*term.second)[i];
      absolute += fabsl((long double)term.first * (*term.second)[i]);
    }
    ASSERT_NEAR((double)value, computed[i], (double)(2 * terms.size() * PETSC_MACHINE_EPSILON * absolute)) << what << "[" << i << "], n = " << computed.size();
  }
}

/* Bits, so that NaN equals NaN and 0 is not -0 */
inline bool sameBits(const Values &a, const Values &b)
{
  return a.size() == b.size() && (a.empty() || !std::memcmp(a.data(), b.data(), a.size() * sizeof(PetscScalar)));
}

static const double NaN = std::numeric_limits<double>::quiet_NaN(), Inf = std::numeric_limits<double>::infinity();

/* Whose square is no normal number, and whose inverse is no infinity */
static const PetscReal tiny = PetscDefined(USE_REAL_SINGLE) ? 1e-37 : 1e-300;

/* Empty, tiny, around a pack, a warp, a block, a pair; several blocks; more than the largest grid holds at once */
static const std::vector<PetscInt> sizes = {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1000, 1024, 1025, 4099, 100003, 1200001};

/* y <- A x for the matrix with the bands lower, diagonal, upper */
inline Values tridiagonal(double lower, double diagonal, double upper, const Values &x)
{
  Values y(x.size());

  for (size_t i = 0; i < x.size(); ++i) y[i] = diagonal * x[i] + (i ? lower * x[i - 1] : 0.0) + (i + 1 < x.size() ? upper * x[i + 1] : 0.0);
  return y;
}

inline double norm2(const Values &x)
{
  return std::sqrt((double)Reference(x, x).value);
}

/* | b - A x | / | b | */
inline double relativeResidual(double lower, double diagonal, double upper, const Values &x, const Values &b)
{
  Values r = tridiagonal(lower, diagonal, upper, x);

  for (size_t i = 0; i < r.size(); ++i) r[i] = b[i] - r[i];
  return norm2(r) / norm2(b);
}
