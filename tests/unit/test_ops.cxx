/*
   Operations besides the product, on the host and on the device: the transpose and products with it, norms and row sums, the diagonal, scaling, and products with several columns.

   Tolerance: sums of n terms, |computed - exact| <= n eps (sum of the terms' absolute values) and at most 64 eps of it for the products, whose rows are added in several parts; the exact value is
   formed in long double from the CSR arrays. Everything without a sum is exact.
*/
#include "layouts.h"
#include <petsctc/private/aijtcops.h>
#include <array>
#include <numeric>
#include <set>

#if PETSCTC_HAVE_CUDA
  #define LAUNCH(name, ...) ASSERT_EQ(PETSC_SUCCESS, cuda ? name##_CUDA(__VA_ARGS__) : name##_Host(__VA_ARGS__))
#else
  #define LAUNCH(name, ...) ASSERT_EQ(PETSC_SUCCESS, name##_Host(__VA_ARGS__))
#endif

namespace
{
using Values  = std::vector<PetscScalar>;
using Indices = std::vector<PetscInt>;

constexpr PetscScalar GUARD = -7.25e99;

PetscErrorCode ChooseParams(const void *ctx, PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params)
{
  *params = *(const AIJTCParams *)ctx;
  return AIJTCParamsResolve(m, n, nnz, traits, params);
}

constexpr AIJTCParams DECIDE = {PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, PETSC_DECIDE};

Values Random(size_t n, unsigned seed)
{
  std::mt19937 random(seed);
  Values       v(n);

  for (auto &x : v) x = std::uniform_real_distribution<double>(-1.0, 1.0)(random);
  return v;
}

/* A sum in long double, and how far one in PETSc's precision may be from it */
struct Sum {
  long double value = 0.0L, absolute = 0.0L;
  size_t      terms = 0;

  void   add(long double term) { value += term, absolute += fabsl(term), terms++; }
  double bound() const { return (double)(std::min<size_t>(terms + 1, 64) * PETSC_MACHINE_EPSILON * absolute); }
  double boundOfAny() const { return (double)((terms + 1) * PETSC_MACHINE_EPSILON * absolute); }
};

/* z[r] = sum of the entries of row r, or column r if transposed, times x */
std::vector<Sum> Product(const Csr &A, bool transposed, const PetscScalar x[])
{
  std::vector<Sum> z(transposed ? A.n : A.m);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      if (transposed) z[A.j[k]].add((long double)A.a[k] * x[r]);
      else z[r].add((long double)A.a[k] * x[A.j[k]]);
    }
  }
  return z;
}

/* Sums of |a| by row or by column */
std::vector<Sum> AbsoluteSums(const Csr &A, bool columns)
{
  std::vector<Sum> sum(columns ? A.n : A.m);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) sum[columns ? A.j[k] : r].add(fabsl((long double)A.a[k]));
  }
  return sum;
}

struct Reference {
  long double norm = 0.0L, bound = 0.0L;
};

Reference Largest(const std::vector<Sum> &sums)
{
  Reference largest;

  for (const auto &s : sums) {
    largest.norm  = std::max(largest.norm, s.value);
    largest.bound = std::max<long double>(largest.bound, s.boundOfAny());
  }
  return largest;
}

PetscInt FindDiagonal(const Csr &A, PetscInt r)
{
  for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
    if (A.j[k] == r) return k;
  }
  return -1;
}

/* PETSc's matrices have no two entries in one place; a search may find either */
bool HasDuplicates(const Csr &A)
{
  for (PetscInt r = 0; r < A.m; r++) {
    Indices columns(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1]);

    std::sort(columns.begin(), columns.end());
    if (std::adjacent_find(columns.begin(), columns.end()) != columns.end()) return true;
  }
  return false;
}

/* A CSR matrix in the memory of a backend */
struct Arrays {
  Array<PetscInt>    i, j;
  Array<PetscScalar> a;
  PetscCount         nnz;

  Arrays(bool cuda, const Csr &A) : i(cuda, A.i), j(cuda, A.j), a(cuda, A.a), nnz((PetscCount)A.a.size()) { }
};

class Operations : public ::testing::TestWithParam<std::tuple<bool, Pattern>> {
protected:
  bool cuda = false;
  Csr  A;

  void SetUp() override
  {
    cuda = std::get<0>(GetParam());
    if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
    A = std::get<1>(GetParam()).make();
  }
};

/* ---- transpose */

TEST_P(Operations, TransposeIsSortedByRow)
{
  Arrays          arrays(cuda, A);
  Array<PetscInt> ti(cuda, Indices(A.n + 1, -5)), tj(cuda, Indices(A.j.size(), -5)), perm(cuda, Indices(A.j.size(), -5));
  Indices         order(A.j.size()), row(A.j.size()), rows, counts(A.n + 1, 0);

  LAUNCH(AIJTCCsrTranspose, A.m, A.n, arrays.nnz, arrays.i, arrays.j, ti, tj, perm, nullptr);
  for (PetscInt r = 0; r < A.m; r++) std::fill(row.begin() + A.i[r], row.begin() + A.i[r + 1], r);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](PetscInt k, PetscInt l) { return A.j[k] < A.j[l]; });
  for (PetscInt k : order) rows.push_back(row[k]);
  for (PetscInt c : A.j) counts[c + 1]++;
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  EXPECT_EQ(perm.Values(), order);
  EXPECT_EQ(tj.Values(), rows);
  EXPECT_EQ(ti.Values(), counts);
}

/* A layout of the transpose, destroyed with its owner */
struct Transposed {
  bool        cuda;
  AIJTCLayout layout = {};
  PetscInt   *perm   = nullptr;

  explicit Transposed(bool on) : cuda(on) { }
  Transposed(const Transposed &) = delete;
  ~Transposed()
  {
    [this] { LAUNCH(AIJTCTransposedDestroy, &layout, &perm); }();
    EXPECT_EQ(perm, nullptr);
    EXPECT_EQ(layout.slice, nullptr);
  }

  void Check(const Csr &A, const char *what)
  {
    const Values       values = Random(A.m, 3);
    Array<PetscScalar> x(cuda, values), z(cuda, Values(A.n, GUARD));

    LAUNCH(AIJTCLayoutMult, &layout, PETSC_FALSE, x, nullptr, z, nullptr);
    const Values           computed = z.Values();
    const std::vector<Sum> exact    = Product(A, true, values.data());
    for (PetscInt c = 0; c < A.n; c++) ASSERT_NEAR((double)exact[c].value, computed[c], exact[c].bound()) << what << ", column " << c;
  }
};

TEST_P(Operations, TransposedProduct)
{
  Transposed T(cuda);
  PetscBool  fits = PETSC_FALSE;

  if (A.a.empty()) GTEST_SKIP() << "no nonzeros: no layout";
  {
    Arrays arrays(cuda, A);

    LAUNCH(AIJTCTransposedBuild, A.m, A.n, arrays.nnz, arrays.i, arrays.j, arrays.a, ChooseParams, &DECIDE, &T.layout, &T.perm, nullptr);
  }
  EXPECT_EQ(T.layout.m, A.n);
  EXPECT_EQ(T.layout.n, A.m);
  T.Check(A, "built");
  if (HasFatalFailure()) return;
  for (auto &a : A.a) a *= -1.25;
  {
    Arrays arrays(cuda, A);

    LAUNCH(AIJTCTransposedRefresh, &T.layout, T.perm, arrays.a, &fits, nullptr);
  }
  if (fits) T.Check(A, "refreshed");
}

/* ---- norms and sums */

TEST_P(Operations, RowSums)
{
  Arrays                 arrays(cuda, A);
  Array<PetscScalar>     sum(cuda, Values(A.m, GUARD)), again(cuda, Values(A.m, -GUARD));
  const std::vector<Sum> exact = AbsoluteSums(A, false);

  LAUNCH(AIJTCCsrRowSumsAbs, A.m, arrays.nnz, arrays.i, arrays.a, sum, nullptr);
  LAUNCH(AIJTCCsrRowSumsAbs, A.m, arrays.nnz, arrays.i, arrays.a, again, nullptr);
  const Values computed = sum.Values();
  EXPECT_EQ(computed, again.Values()) << "other bits the second time";
  for (PetscInt r = 0; r < A.m; r++) ASSERT_NEAR((double)exact[r].value, computed[r], exact[r].boundOfAny()) << "row " << r;
}

TEST_P(Operations, Norms)
{
  Arrays          arrays(cuda, A);
  const Reference one = Largest(AbsoluteSums(A, true)), infinity = Largest(AbsoluteSums(A, false));
  Sum             squares;
  PetscReal       norm = -1.0;

  for (PetscScalar a : A.a) squares.add((long double)a * a);
  LAUNCH(AIJTCCsrNorm1, A.m, A.n, arrays.nnz, arrays.i, arrays.j, arrays.a, &norm, nullptr);
  EXPECT_NEAR((double)one.norm, norm, (double)one.bound);
  LAUNCH(AIJTCCsrNormInfinity, A.m, arrays.nnz, arrays.i, arrays.a, &norm, nullptr);
  EXPECT_NEAR((double)infinity.norm, norm, (double)infinity.bound);
  LAUNCH(AIJTCCsrNormFrobenius, arrays.nnz, arrays.a, &norm, nullptr);
  EXPECT_NEAR((double)sqrtl(squares.value), norm, (double)((squares.terms + 2) * PETSC_MACHINE_EPSILON * sqrtl(squares.value)));
}

TEST_P(Operations, NormsPassOverNaN)
{
  PetscReal norm = -1.0;

  if (A.a.empty()) GTEST_SKIP() << "no nonzeros";
  A.a[A.a.size() / 2] = NAN;
  Csr B               = A; /* the row of the NaN does not count */
  for (PetscInt r = 0; r < A.m; r++) {
    if (A.i[r] <= (PetscInt)A.a.size() / 2 && (PetscInt)A.a.size() / 2 < A.i[r + 1]) std::fill(B.a.begin() + A.i[r], B.a.begin() + A.i[r + 1], 0.0);
  }
  Arrays          arrays(cuda, A);
  const Reference infinity = Largest(AbsoluteSums(B, false));
  LAUNCH(AIJTCCsrNormInfinity, A.m, arrays.nnz, arrays.i, arrays.a, &norm, nullptr);
  EXPECT_NEAR((double)infinity.norm, norm, (double)infinity.bound);
  LAUNCH(AIJTCCsrNormFrobenius, arrays.nnz, arrays.a, &norm, nullptr);
  EXPECT_TRUE(std::isnan(norm));
}

/* ---- diagonal */

TEST_P(Operations, Diagonal)
{
  Arrays             arrays(cuda, A);
  Values             expected(A.m, 0.0), changed = A.a, d = Random(A.m, 5);
  Array<PetscScalar> diagonal(cuda, Values(A.m, GUARD)), vector(cuda, d);
  PetscBool          full = PETSC_FALSE, all = PETSC_TRUE;

  if (HasDuplicates(A)) GTEST_SKIP() << "two entries in one place";
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt k = FindDiagonal(A, r);

    if (k < 0) all = PETSC_FALSE;
    else {
      expected[r] = A.a[k];
      changed[k]  = (A.a[k] + (d[r] + (PetscScalar)0.5)) + (PetscScalar)-3.25;
    }
  }
  LAUNCH(AIJTCCsrGetDiagonal, A.m, arrays.i, arrays.j, arrays.a, diagonal, nullptr);
  EXPECT_EQ(diagonal.Values(), expected);
  LAUNCH(AIJTCCsrHasDiagonal, A.m, arrays.i, arrays.j, &full, nullptr);
  EXPECT_EQ(full, all);
  LAUNCH(AIJTCCsrSetDiagonal, A.m, arrays.i, arrays.j, arrays.a, vector, 0.5, PETSC_TRUE, nullptr);
  LAUNCH(AIJTCCsrSetDiagonal, A.m, arrays.i, arrays.j, arrays.a, nullptr, -3.25, PETSC_TRUE, nullptr);
  EXPECT_EQ(arrays.a.Values(), changed);
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt k = FindDiagonal(A, r);

    if (k >= 0) changed[k] = d[r];
  }
  LAUNCH(AIJTCCsrSetDiagonal, A.m, arrays.i, arrays.j, arrays.a, vector, 0.0, PETSC_FALSE, nullptr);
  EXPECT_EQ(arrays.a.Values(), changed);
}

TEST_P(Operations, DiagonalScale)
{
  const Values       l = Random(A.m, 6), r = Random(A.n, 7);
  Array<PetscScalar> left(cuda, l), right(cuda, r);

  for (int sides = 0; sides < 4; sides++) {
    Arrays arrays(cuda, A);
    Values expected = A.a;

    for (PetscInt row = 0; row < A.m; row++) {
      for (PetscInt k = A.i[row]; k < A.i[row + 1]; k++) {
        if (sides & 1) expected[k] *= l[row];
        if (sides & 2) expected[k] *= r[A.j[k]];
      }
    }
    LAUNCH(AIJTCCsrDiagonalScale, A.m, arrays.nnz, arrays.i, arrays.j, arrays.a, sides & 1 ? (PetscScalar *)left : nullptr, sides & 2 ? (PetscScalar *)right : nullptr, nullptr);
    EXPECT_EQ(arrays.a.Values(), expected) << "sides " << sides;
  }
}

/* ---- several columns */

/* Columns with gaps between them that must stay as they are */
Values WithGaps(PetscInt rows, PetscCount stride, PetscInt columns, unsigned seed)
{
  Values all(stride * columns, GUARD);

  for (PetscInt c = 0; c < columns; c++) {
    const Values column = Random(rows, seed + c);

    std::copy(column.begin(), column.end(), all.begin() + c * stride);
  }
  return all;
}

/* The layout as one whose rows share their offsets or do not: X is gathered by columns or by rows */
AIJTCLayout Declared(AIJTCLayout layout, bool common)
{
  layout.common = (PetscBool)common;
  return layout;
}

void CheckColumns(const Csr &A, const AIJTCLayout &layout, bool cuda, PetscInt columns, const std::string &what)
{
  const PetscCount   xstride = A.n + 3, zstride = A.m + 5;
  const Values       x = WithGaps(A.n, xstride, columns, 11);
  Array<PetscScalar> X(cuda, x), Z(cuda, Values(zstride * columns, GUARD)), again(cuda, Values(zstride * columns, GUARD));

  LAUNCH(AIJTCLayoutMatMult, &layout, columns, X, xstride, Z, zstride, nullptr);
  LAUNCH(AIJTCLayoutMatMult, &layout, columns, X, xstride, again, zstride, nullptr);
  const Values z = Z.Values();
  ASSERT_EQ(z, again.Values()) << what << ": other bits the second time";
  for (PetscInt c = 0; c < columns; c++) {
    const std::vector<Sum> exact = Product(A, false, x.data() + c * xstride);

    for (PetscInt r = 0; r < A.m; r++) ASSERT_NEAR((double)exact[r].value, z[c * zstride + r], exact[r].bound()) << what << ", column " << c << ", row " << r;
    for (PetscCount gap = A.m; gap < zstride; gap++) ASSERT_EQ(z[c * zstride + gap], GUARD) << what << ": written outside of column " << c;
  }
}

TEST_P(Operations, ColumnsOfEveryForm)
{
  PetscInt columns = 0;

  if (A.a.empty()) GTEST_SKIP() << "no nonzeros: no layout";
  for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::ByOffset, ValueKind::AlmostByOffset}) {
    SetValues(A, kind);
    for (const AIJTCParams &params : ParamsToTry()) {
      OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, WithBlockSize(params, A));

      columns = columns % 17 + 1; /* all groups and remainders in turn */
      for (bool common : {false, true}) {
        CheckColumns(A, Declared(owned.layout, common), cuda, columns, std::string(Describe(kind)) + ", " + Describe(params) + ", " + std::to_string(columns) + (common ? " columns by columns" : " columns by rows"));
        if (HasFatalFailure()) return;
      }
    }
  }
}

/* One lane a row: each column has the bits of a product with a vector. vanishing: products are too small for a number, so that a sum is 0 with the sign of its last one */
void CheckBitsOfColumns(Csr A, bool cuda, const AIJTCParams &params, bool vanishing)
{
  constexpr PetscInt columns = 9;
  const PetscScalar  scale   = vanishing ? (sizeof(PetscScalar) == 8 ? 1e-200 : 1e-30) : 1.0;
  Values             x       = WithGaps(A.n, A.n, columns, 23);

  for (PetscScalar &a : A.a) a *= scale;
  for (PetscScalar &b : x) b *= scale;
  OwnedLayout        owned(cuda ? Made::OnDevice : Made::OnHost, A, WithBlockSize(params, A));
  Array<PetscScalar> X(cuda, x), Z(cuda, Values(A.m * columns, GUARD)), one(cuda, Values(A.m * columns, GUARD));

  for (PetscInt c = 0; c < columns; c++) LAUNCH(AIJTCLayoutMult, &owned.layout, PETSC_FALSE, X + c * A.n, nullptr, one + c * A.m, nullptr);
  for (bool common : {false, true}) {
    const AIJTCLayout layout = Declared(owned.layout, common);

    LAUNCH(AIJTCLayoutMatMult, &layout, columns, X, A.n, Z, A.m, nullptr);
    SCOPED_TRACE(std::string(vanishing ? "vanishing products, by " : "by ") + (common ? "columns" : "rows") + ", " + Describe(owned.layout.params));
    ExpectSameBits(one.Values(), Z.Values());
  }
}

TEST_P(Operations, ColumnsOfRowsHaveTheBitsOfAProduct)
{
  if (A.a.empty()) GTEST_SKIP() << "no nonzeros: no layout";
  for (bool vanishing : {false, true}) {
    CheckBitsOfColumns(A, cuda, {PETSC_INT_MAX, PETSC_INT_MAX, 0, 2, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}, vanishing);
    CheckBitsOfColumns(A, cuda, {PETSC_INT_MAX, PETSC_INT_MAX, 0, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 8}, vanishing); /* gathered where the matrix allows */
  }
}

/* A NaN at `at` in one column of X reaches the rows that have the entry, in that column of Z */
void CheckNaN(const Csr &A, const AIJTCLayout &layout, bool cuda, PetscInt at)
{
  constexpr PetscInt columns = 8, bad = 5;
  Values             x = WithGaps(A.n, A.n, columns, 31);
  std::vector<bool>  reached(A.m, false);

  x[bad * A.n + at] = NAN;
  for (PetscInt r = 0; r < A.m; r++) reached[r] = std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], at) != A.j.begin() + A.i[r + 1];
  Array<PetscScalar> X(cuda, x), Z(cuda, Values(A.m * columns, GUARD));
  LAUNCH(AIJTCLayoutMatMult, &layout, columns, X, A.n, Z, A.m, nullptr);
  const Values z = Z.Values();
  for (PetscInt c = 0; c < columns; c++) {
    for (PetscInt r = 0; r < A.m; r++) ASSERT_EQ(std::isnan(z[c * A.m + r]), c == bad && reached[r]) << "NaN at " << at << ", column " << c << ", row " << r;
  }
}

TEST_P(Operations, NotFiniteStaysInItsColumn)
{
  if (A.a.empty()) GTEST_SKIP() << "no nonzeros: no layout";
  OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, WithBlockSize({64, 4, 0, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}, A));

  for (bool common : {false, true}) CheckNaN(A, Declared(owned.layout, common), cuda, A.j[A.j.size() / 2]);
}

/* The first and the last columns of lists are where what no entry has would be looked for */
TEST_P(Operations, NotFiniteOfAListStaysInItsRows)
{
  const AIJTCParams params = WithBlockSize({PETSC_INT_MAX, PETSC_INT_MAX, 0, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 8}, A);

  if (A.a.empty()) GTEST_SKIP() << "no nonzeros: no layout";
  OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, params), twin(Made::OnHost, A, params);
  const auto &L = twin.layout;

  if (std::get<1>(GetParam()).name.rfind("mesh", 0) == 0) { ASSERT_EQ(owned.layout.params.gather, 8); }
  for (PetscInt b = 0; b < L.nblocks; b += L.nblocks / 8 + 1) {
    for (PetscInt at : {L.list_start[b], L.list_start[b + 1] - 1}) CheckNaN(A, Declared(owned.layout, false), cuda, L.list[at]);
  }
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<bool, Pattern>> &info)
{
  return (std::get<0>(info.param) ? "CUDA_" : "Host_") + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Patterns, Operations, ::testing::Combine(::testing::Values(false, true), ::testing::ValuesIn(Patterns())), CaseName);

/* New values that the forms of the transpose cannot hold are refused, not rounded */
class TransposedRefresh : public ::testing::TestWithParam<bool> { };

TEST_P(TransposedRefresh, TellsThatValuesDoNotFit)
{
  const bool cuda = GetParam();

  if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
  Csr        A = SevenPoint(12);
  Transposed T(cuda);
  PetscBool  fits = PETSC_TRUE;

  std::fill(A.a.begin(), A.a.end(), 0.25);
  {
    Arrays arrays(cuda, A);

    LAUNCH(AIJTCTransposedBuild, A.m, A.n, arrays.nnz, arrays.i, arrays.j, arrays.a, ChooseParams, &DECIDE, &T.layout, &T.perm, nullptr);
  }
  T.Check(A, "one value");
  A.a = Random(A.a.size(), 41);
  Arrays arrays(cuda, A);
  LAUNCH(AIJTCTransposedRefresh, &T.layout, T.perm, arrays.a, &fits, nullptr);
  EXPECT_FALSE(fits);
}

INSTANTIATE_TEST_SUITE_P(Backends, TransposedRefresh, ::testing::Values(false, true), [](const auto &info) { return info.param ? "CUDA" : "Host"; });

/* So many listed rows that a device stores Z row by row first (spmm.cu), of all classes, one of several pieces: short ones, tiles, and a long one */
class ScatteredColumns : public ::testing::TestWithParam<bool> { };

TEST_P(ScatteredColumns, OfAllRowClasses)
{
  constexpr PetscInt    m    = 500001;
  const bool            cuda = GetParam();
  std::vector<PetscInt> lengths(m);

  if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
  for (PetscInt r = 0; r < m; r++) lengths[r] = r % 1000 == 7 ? 40 : r % 8 ? 1 : 8; /* groups of consecutive rows are too unlike to be slices */
  lengths[m / 3] = 3000;
  const Csr   A  = FromLengths(70000, lengths);
  OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, {1000, 8, 1024, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0});

  ASSERT_TRUE(2 * owned.layout.nconsecutive < owned.layout.nslices[AIJTC_ROWS] && owned.layout.nslices[AIJTC_TILE] && owned.layout.nslices[AIJTC_LONG] > 1);
  for (PetscInt columns : {7, 9}) CheckColumns(A, Declared(owned.layout, false), cuda, columns, std::to_string(columns) + " columns");
}

TEST_P(ScatteredColumns, OfAGatheredLayout)
{
  const bool cuda   = GetParam();
  const auto params = AIJTCParams{PETSC_INT_MAX, PETSC_INT_MAX, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 16};

  if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
  const Csr   A = Renumbered(SevenPoint(80));
  OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, params);

  ASSERT_TRUE(A.m > 500000 && owned.layout.params.gather == 16 && 2 * owned.layout.nconsecutive < owned.layout.nslices[AIJTC_ROWS]);
  CheckColumns(A, Declared(owned.layout, false), cuda, 15, "15 columns");
}

INSTANTIATE_TEST_SUITE_P(Backends, ScatteredColumns, ::testing::Values(false, true), [](const auto &info) { return info.param ? "CUDA" : "Host"; });

/* Parts of these sizes that have no entries in common, up to so many nonzeros a row anywhere in its part: blocks of 16 slices have lists of nearly the whole part. Every tenth row is empty, so that a slice of each block has more holes than entries. Without values */
Csr Parts(const std::vector<PetscInt> &sizes, PetscInt nonzeros)
{
  std::mt19937 random(5);
  Csr          A;

  for (PetscInt size : sizes) {
    const PetscInt first = A.m;

    for (PetscInt r = 0; r < size; r++) {
      const PetscInt     length = r % 10 == 3 ? 0 : nonzeros - r % 3;
      std::set<PetscInt> row;

      while ((PetscInt)row.size() < length) row.insert(first + (PetscInt)(random() % size));
      A.j.insert(A.j.end(), row.begin(), row.end());
      A.i.push_back((PetscInt)A.j.size());
    }
    A.m = A.n = first + size;
  }
  return A;
}

/* Blocks of a gathered layout by the shared memory of an H200 that 8 columns of their lists take (spmm_gather.cu) */
class GatheredColumns : public ::testing::TestWithParam<bool> { };

TEST_P(GatheredColumns, OfListsOfAnyLength)
{
  const bool cuda = GetParam();
  struct Case {
    std::vector<PetscInt> parts;
    PetscInt              nonzeros;
    bool                  mean, longest, halves, all; /* has half of a multiprocessor room for the mean list, for the longest, for that with 4 columns; has all of it? */
  };
  std::vector<PetscInt> many(20, 512);

  many.push_back(4096);
  const Case cases[] = {
    {{512, 700, 600, 400},       15, true,  true,  true,  true },
    {{512, 700, 512, 700, 2400}, 15, true,  false, true,  true },
    {{2400, 2400},               15, false, false, true,  true },
    {{4096},                     28, false, false, false, false},
    {many,                       28, true,  false, false, false}  /* with 4 columns: halves */
  };
  constexpr PetscInt half = 113 * 1024 / (8 * sizeof(PetscScalar)) - 1, most = 227 * 1024 / (8 * sizeof(PetscScalar)) - 1; /* columns of a list */

  if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
  for (const Case &of : cases) {
    Csr A = Parts(of.parts, of.nonzeros);

    for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::Same}) {
      const AIJTCParams params = {PETSC_INT_MAX, PETSC_INT_MAX, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 16};

      SetValues(A, kind);
      OwnedLayout        owned(cuda ? Made::OnDevice : Made::OnHost, A, params);
      const AIJTCLayout &L = owned.layout;

      SCOPED_TRACE(std::string(Describe(kind)) + ", " + std::to_string(L.nlist) + " columns in " + std::to_string(L.nblocks) + " lists, the longest " + std::to_string(L.longest_list));
      ASSERT_EQ(L.params.gather, 16);
      if (sizeof(PetscScalar) == 8) { /* else lists are too short for some cases */
        ASSERT_EQ(L.nlist / L.nblocks <= half, of.mean);
        ASSERT_EQ(L.longest_list <= half, of.longest);
        ASSERT_EQ((L.longest_list + 1) / 2 <= half, of.halves);
        ASSERT_EQ(L.longest_list <= most, of.all);
      }
      for (PetscInt columns : {15, 10, 4}) CheckColumns(A, Declared(L, false), cuda, columns, std::to_string(columns) + " columns");
      for (bool vanishing : {false, true}) CheckBitsOfColumns(A, cuda, params, vanishing);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GatheredColumns, ::testing::Values(false, true), [](const auto &info) { return info.param ? "CUDA" : "Host"; });

/* Planes that a product sweeps where the device can (mult_sweep.cu), with columns that bulk copies can take (an even stride) and others: the bits of products with single columns, which may lie anywhere */
class SweptColumns : public ::testing::TestWithParam<bool> { };

TEST_P(SweptColumns, HaveTheBitsOfAProduct)
{
  const bool         cuda    = GetParam();
  constexpr PetscInt columns = 5, n = 1040101;

  if (cuda && !HasDevice()) GTEST_SKIP() << "no GPU";
  const Csr   A = SweptPlanes(n, n, 128);
  OwnedLayout owned(cuda ? Made::OnDevice : Made::OnHost, A, {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0});

  owned.layout.common = PETSC_TRUE;
  ASSERT_EQ(owned.layout.stride, 20040);
  for (PetscCount xstride : {n, n + 1}) {
    const PetscCount   zstride = n + 2;
    const Values       x       = WithGaps(n, xstride, columns, 51);
    Array<PetscScalar> X(cuda, x), Z(cuda, Values(zstride * columns, GUARD)), one(cuda, Values(zstride * columns, GUARD));

    for (PetscInt c = 0; c < columns; c++) LAUNCH(AIJTCLayoutMult, &owned.layout, PETSC_FALSE, X + c * xstride, nullptr, one + c * zstride, nullptr);
    LAUNCH(AIJTCLayoutMatMult, &owned.layout, columns, X, xstride, Z, zstride, nullptr);
    EXPECT_TRUE(Z.Values() == one.Values()) << "stride " << xstride;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SweptColumns, ::testing::Values(false, true), [](const auto &info) { return info.param ? "CUDA" : "Host"; });

/* Every 3000th row with an entry somewhere else, too: of slices that are not swept */
Csr WithFarEntries(const Csr &A)
{
  Csr B;

  B.m = A.m;
  B.n = A.n;
  for (PetscInt r = 0; r < A.m; r++) {
    B.j.insert(B.j.end(), A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1]);
    if (r % 3000 == 7) B.j.push_back((PetscInt)((int64_t)r * 7919 % A.n));
    std::sort(B.j.begin() + B.i[r], B.j.end());
    B.j.erase(std::unique(B.j.begin() + B.i[r], B.j.end()), B.j.end());
    B.i.push_back((PetscInt)B.j.size());
  }
  SetValues(B, ValueKind::Random);
  return B;
}

/* Does a launch sweep planes with so many columns? As a graph of the product tells; `otherwise` where there are no graphs, as in an emulation, or no bulk copies */
bool Sweeps([[maybe_unused]] const AIJTCLayout &layout, [[maybe_unused]] PetscInt columns, bool otherwise)
{
#if PETSCTC_HAVE_CUDA
  constexpr int    most    = 16;
  const PetscCount xstride = layout.n | 1; /* not all columns begin at a multiple of 16 bytes: they are not taken one by one (spmm.cu) */
  cudaGraphNode_t  node[most];
  cudaStream_t     stream;
  cudaGraph_t      graph;
  size_t           nodes = most;
  int              major;
  bool             sweeps = false;

  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major < 9 || cudaStreamCreate(&stream) != cudaSuccess) return otherwise;
  Array<PetscScalar> X(true, Values(xstride * columns)), Z(true, Values((size_t)layout.m * columns));

  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(AIJTCLayoutMatMult_CUDA(&layout, columns, X, xstride, Z, layout.m, stream), PETSC_SUCCESS);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphGetNodes(graph, node, &nodes), cudaSuccess);
  for (size_t k = 0; k < std::min<size_t>(nodes, most); k++) {
    cudaKernelNodeParams kernel = {};
    const char          *name   = "";

    EXPECT_EQ(cudaGraphKernelNodeGetParams(node[k], &kernel), cudaSuccess); /* there are no other nodes */
    EXPECT_EQ(cudaFuncGetName(&name, kernel.func), cudaSuccess);
    sweeps = sweeps || strstr(name, "ColumnSweepKernel");
  }
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  return nodes ? sweeps : otherwise;
#else
  return otherwise;
#endif
}

enum class SweptValues {
  AsTheyAre,
  Constants,
  ConstantsAndOthers, /* slices with constant slots and others */
  Floats              /* not swept */
};

void SetSweptValues(Csr &A, SweptValues kind)
{
  SetValues(A, kind == SweptValues::AsTheyAre ? ValueKind::Random : kind == SweptValues::Floats ? ValueKind::Floats : ValueKind::ByOffset);
  for (PetscInt r = 11; r < A.m && kind == SweptValues::ConstantsAndOthers; r += 5000) A.a[A.i[r]] *= 1.5;
}

/* The bits of products with single columns, from columns that bulk copies can take and others, with one, two and four groups of rows. Where systems shall be small with one of them */
void CheckSweptColumns(const char *name, Csr A, PetscInt bs, PetscInt stride)
{
  constexpr PetscInt   columns = 12; /* 8 and 4 */
  const bool           cuda    = true;
  constexpr std::array others  = {SweptValues::ConstantsAndOthers, SweptValues::Floats, SweptValues::Constants};
  static unsigned      grids   = 0;
  const unsigned       grid    = grids++;

  for (PetscInt groups : {1, 2, 4}) {
    if (SmallSystems() && groups != 1 << grid % 3) continue;
    for (SweptValues kind : {SweptValues::AsTheyAre, others[(grid + grid / 3 + groups / 2) % others.size()]}) {
      SetSweptValues(A, kind);
      OwnedLayout        owned(Made::OnDevice, A, {1024, 128, 8192, groups, bs, AIJTC_COMPRESS_BOTH, PETSC_INT_MAX, 0});
      const AIJTCLayout &L = owned.layout;

      SCOPED_TRACE(std::string(name) + ", values " + std::to_string((int)kind) + ", " + std::to_string(groups) + " groups");
      owned.layout.common = PETSC_TRUE;
      ASSERT_EQ(L.stride, stride);
      /* Five constants a slot of 32 rows are more bytes than there are entries: the product does not take such values for constants */
      const bool constants = kind != SweptValues::AsTheyAre && kind != SweptValues::Floats && !(bs == 5 && groups == 1), swept = constants || kind == SweptValues::AsTheyAre;

      ASSERT_EQ(L.nvalue < L.nnz, constants);
      for (PetscInt k : {4, 8}) ASSERT_EQ(Sweeps(L, k, swept), swept) << k << " columns";
      for (PetscCount xstride : {A.n + A.n % 2, A.n + 1 - A.n % 2}) {
        const PetscCount   zstride = A.m + 2;
        const Values       x       = WithGaps(A.n, xstride, columns, 53);
        Array<PetscScalar> X(cuda, x), Z(cuda, Values(zstride * columns, GUARD)), one(cuda, Values(zstride * columns, GUARD));

        for (PetscInt c = 0; c < columns; c++) LAUNCH(AIJTCLayoutMult, &L, PETSC_FALSE, X + c * xstride, nullptr, one + c * zstride, nullptr);
        LAUNCH(AIJTCLayoutMatMult, &L, columns, X, xstride, Z, zstride, nullptr);
        ASSERT_TRUE(Z.Values() == one.Values()) << "stride " << xstride;
      }
    }
  }
}

/* Some of the nodes one column farther before them than others: of a row that is not the first of its node that may be outside of a window */
Csr FartherBefore(Csr A, PetscInt from)
{
  for (PetscInt r = 7; r < A.m; r += 400) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) A.j[k] -= A.j[k] == r - from;
  }
  return A;
}

/* Grids large enough that a block has windows of several columns in shared memory (spmm_sweep.cu) */
TEST(SweptWindows, HaveTheBitsOfAProductCUDA)
{
  constexpr PetscInt k = 101, few = 64, nodes = 40, edge = 1292; /* planes of `edge` nodes of 5 unknowns and 4 rows more are 202 groups of 32 rows */

  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  CheckSweptColumns("7 points and far ones", WithFarEntries(SevenPoint(k)), 1, k * k);
  CheckSweptColumns("27 points", TwentySevenPoint(few), 1, few * few + few + 1);
  CheckSweptColumns("long lines, more columns than rows", Banded(500000, 500003, {-20000, -200, -199, -3, -2, -1, 0, 1, 2, 3, 199, 200, 20000}), 1, 20000);
  CheckSweptColumns("3 unknowns", Blocks(TwentySevenPoint(nodes), 3), 3, 3 * (nodes * nodes + nodes + 1) + 2);
  CheckSweptColumns("columns at the edge of windows", Blocks(FartherBefore(Banded(30 * edge, 30 * edge, {-edge, -24, -1, 0, 1, edge}), 24), 5), 5, 5 * edge + 4);
}

/* Rows that do not ascend have deltas: no group of them is swept, and X that begins between two multiples of 16 bytes is not at all */
TEST(SweptWindows, AreNotForAllCUDA)
{
  constexpr PetscInt k = 101, n = 1100001, columns = 8;
  const bool         cuda = true;

  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  const Csr   A = Banded(n, n, {0, k * k, -1, -k * k, 1, k, -k});
  OwnedLayout owned(Made::OnDevice, A, {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, PETSC_INT_MAX, 0});

  owned.layout.common = PETSC_TRUE;
  for (PetscInt before : {0, 1}) {
    const Values       x = Random(columns * n + 1, 59);
    Array<PetscScalar> X(cuda, x), Z(cuda, Values(columns * n, GUARD)), one(cuda, Values(columns * n, GUARD));

    for (PetscInt c = 0; c < columns; c++) LAUNCH(AIJTCLayoutMult, &owned.layout, PETSC_FALSE, X + before + c * n, nullptr, one + c * n, nullptr);
    LAUNCH(AIJTCLayoutMatMult, &owned.layout, columns, X + before, n, Z, n, nullptr);
    EXPECT_TRUE(Z.Values() == one.Values()) << "from number " << before;
  }
}
} // namespace
