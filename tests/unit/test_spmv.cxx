/*
   The product with a layout, on the host, on CUDA cores and on the Tensor Core, with layouts built where they are, for all patterns and parameters; and the refresh of values.

   Tolerance: |computed - exact| <= (l + 3) eps (|y| + sum |a| |x|) in a row of l entries, the exact value being formed in long double from the CSR arrays: what l products and sums in any
   order can do. Sums of small integers are exact in any order and must agree to the last bit.
*/
#include "layouts.h"
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace
{
enum class Backend {
  Host,
  Core,
  Tensor
};

Made MadeBy(Backend backend)
{
  return backend == Backend::Host ? Made::OnHost : Made::OnDevice;
}

class Product : public OwnedLayout {
public:
  Product(Backend backend, const Csr &A, const AIJTCParams &params) : OwnedLayout(MadeBy(backend), A, params), tensor_((PetscBool)(backend == Backend::Tensor)) { }

  /* z <- A x or y + A x; in_place: z is y. z starts as NaN */
  Vector Mult(const Vector &x, const Vector *y = nullptr, bool in_place = false)
  {
    PetscScalar *px = Load(x_, x), *py = y ? Load(y_, *y) : nullptr, *pz = in_place ? py : Load(z_, Vector(layout.m, NAN));

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_Host(&layout, tensor_, px, py, pz, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_CUDA(&layout, tensor_, px, py, pz, nullptr), PETSC_SUCCESS); }
#endif
    return in_place ? y_->Values() : z_->Values();
  }

  /* x on 8 bytes, not on 16 */
  Vector MultMisaligned(const Vector &x)
  {
    Vector behind(1, NAN);

    behind.insert(behind.end(), x.begin(), x.end());
    Array<PetscScalar> from(layout.cuda, behind), z(layout.cuda, Vector(layout.m, NAN));

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_Host(&layout, tensor_, from + 1, nullptr, z, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_CUDA(&layout, tensor_, from + 1, nullptr, z, nullptr), PETSC_SUCCESS); }
#endif
    return z.Values();
  }

  /* `length` products, all asked for before the first is waited for; length is even */
  Vector Chain(const Vector &x, int length)
  {
    Array<PetscScalar> x0(layout.cuda, x), x1(layout.cuda, Vector(layout.m, NAN));
    PetscScalar       *from = x0, *to = x1;

    for (int k = 0; k < length; k++, std::swap(from, to)) {
      if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_Host(&layout, tensor_, from, nullptr, to, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
      if (layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_CUDA(&layout, tensor_, from, nullptr, to, nullptr), PETSC_SUCCESS); }
#endif
    }
    return x0.Values();
  }

private:
  using Place = std::unique_ptr<Array<PetscScalar>>;

  /* An array with these values, allocated once: an allocation on a device costs more than a product */
  PetscScalar *Load(Place &place, const Vector &values) const
  {
    if (!place) place.reset(new Array<PetscScalar>(layout.cuda, values));
    else if (!values.empty()) {
      const size_t bytes = values.size() * sizeof(PetscScalar);

#if PETSCTC_HAVE_CUDA
      if (layout.cuda) { EXPECT_EQ(cudaMemcpy(*place, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess); }
#endif
      if (!layout.cuda) memcpy(*place, values.data(), bytes);
    }
    return *place;
  }

  PetscBool tensor_;
  Place     x_, y_, z_;
};

void ExpectRow(const Csr &A, const Vector &x, const Vector *y, const Vector &z, PetscInt r)
{
  long double sum = y ? (*y)[r] : 0.0, bound = std::fabs(sum);

  for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) {
    sum += (long double)A.a[e] * x[A.j[e]];
    bound += std::fabs((long double)A.a[e] * x[A.j[e]]);
  }
  ASSERT_LE(std::fabs(z[r] - sum), (A.Length(r) + 3) * PETSC_MACHINE_EPSILON * bound) << "row " << r << " of length " << A.Length(r) << " is " << z[r] << ", not " << (double)sum; /* false for NaN */
}

void ExpectProduct(const Csr &A, const Vector &x, const Vector *y, const Vector &z)
{
  ASSERT_EQ((PetscInt)z.size(), A.m);
  for (PetscInt r = 0; r < A.m && !::testing::Test::HasFatalFailure(); r++) ExpectRow(A, x, y, z, r);
}

void SkipUnlessUsable(Backend backend)
{
  ::SkipUnlessUsable(backend != Backend::Host, backend == Backend::Tensor);
}

class Spmv : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override { SkipUnlessUsable(GetParam()); }
};

/* All matrices and parameters, dealt to parts of equal work, so that processes can share them. No common divisor with the numbers of compressions and kinds of values: every part has all of them */
constexpr int Parts = 3;

class SpmvAll : public ::testing::TestWithParam<std::tuple<Backend, int>> {
protected:
  void SetUp() override { SkipUnlessUsable(backend); }

  /* Runs check(matrix, parameters) for the part's share of every pattern and choice of parameters, the compressions and kinds of values taking turns, until one fails */
  template <class Check>
  void ForAllMatrices(Check check)
  {
    const std::vector<ValueKind> kinds = {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::ByOffset, ValueKind::AlmostByOffset};
    size_t                       turn  = 0;

    for (const Pattern &pattern : Patterns()) {
      SCOPED_TRACE(pattern.name);
      const Csr made = pattern.make();

      values_.clear();
      for (AIJTCParams params : ParamsToTry()) {
        const ValueKind kind = kinds[turn % kinds.size()];
        const bool      mine = (int)(turn % Parts) == part;

        params.compress = Compressions()[turn++ % 4];
        if (!mine) continue;
        SCOPED_TRACE(Describe(params) + ", " + Describe(kind));
        check(WithValues(made, kind), WithBlockSize(params, made));
        if (HasFailure()) return;
      }
    }
  }
  template <class Check>
  void ForAllLayouts(Check check)
  {
    ForAllMatrices([&](const Csr &A, const AIJTCParams &params) {
      Product product(backend, A, params);

      check(A, product);
    });
  }

  /* The matrix with values of another kind; made once for all parameters */
  const Csr &WithValues(const Csr &A, ValueKind kind)
  {
    const auto [it, missing] = values_.try_emplace(kind, A);

    if (missing) SetValues(it->second, kind);
    return it->second;
  }

  const Backend backend = std::get<0>(GetParam());
  const int     part    = std::get<1>(GetParam());

private:
  std::map<ValueKind, Csr> values_; /* of the pattern whose turn it is */
};

TEST_P(SpmvAll, Product)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x = RandomVector(A.n, 1);

    ExpectProduct(A, x, nullptr, product.Mult(x));
  });
}

TEST_P(SpmvAll, ProductAddedToAVector)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x = RandomVector(A.n, 1), y = RandomVector(A.m, 2);
    const Vector z = product.Mult(x, &y);

    ExpectProduct(A, x, &y, z);
    ExpectSameBits(z, product.Mult(x, &y, true));
  });
}

/* The forms are lossless and keep the order of summation */
TEST_P(SpmvAll, SameBitsForEveryCompression)
{
  ForAllMatrices([this](const Csr &A, AIJTCParams params) {
    const Vector x = RandomVector(A.n, 6), y = RandomVector(A.m, 7);
    Vector       expected;

    for (AIJTCCompress compress : Compressions()) {
      SCOPED_TRACE((int)compress);
      params.compress = compress;
      Product      product(backend, A, params);
      const Vector z = product.Mult(x, &y);

      if (compress == AIJTC_COMPRESS_OFF) expected = z;
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(expected, z));
    }
  });
}

/* Values and vectors of small integers: every order of summation is exact */
TEST_P(SpmvAll, IntegersAreExact)
{
  ForAllMatrices([this](const Csr &A, const AIJTCParams &params) {
    Csr    B = A;
    Vector x(A.n), y(A.m), expected;

    for (size_t e = 0; e < B.a.size(); e++) B.a[e] = (double)(e % 19) - 9.0;
    for (PetscInt c = 0; c < A.n; c++) x[c] = (double)(c % 23) - 11.0;
    for (PetscInt r = 0; r < A.m; r++) y[r] = (double)(r % 29) - 14.0;
    expected = y;
    for (PetscInt r = 0; r < A.m; r++)
      for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) expected[r] += B.a[e] * x[A.j[e]];
    EXPECT_EQ(Product(backend, B, params).Mult(x, &y), expected);
  });
}

TEST_P(SpmvAll, InfAndNanInXReachOnlyRowsWithTheEntry)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    if (A.n == 0) return;
    const PetscInt    c = A.j.empty() ? A.n - 1 : A.j[A.j.size() / 2];
    std::vector<bool> has(A.m, false);

    for (PetscInt r = 0; r < A.m; r++) has[r] = std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], c) != A.j.begin() + A.i[r + 1];
    for (PetscScalar poison : {(PetscScalar)INFINITY, (PetscScalar)NAN}) {
      Vector x = RandomVector(A.n, 3);

      x[c]           = poison;
      const Vector z = product.Mult(x);
      for (PetscInt r = 0; r < A.m; r++) {
        if (has[r]) ASSERT_FALSE(std::isfinite(z[r])) << "row " << r;
        else ASSERT_NO_FATAL_FAILURE(ExpectRow(A, x, nullptr, z, r));
      }
    }
  });
}

/* Lanes of spread slices without an entry have a place, but what x holds where it points does not matter */
TEST_P(Spmv, HolesReadNothing)
{
  const std::vector<ValueKind> kinds = {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::AlmostByOffset, ValueKind::Same};

  for (const Pattern &pattern : NearlyFullPatterns()) {
    SCOPED_TRACE(pattern.name);
    Csr    A    = pattern.make();
    size_t turn = 0;

    for (AIJTCParams params : ParamsToTry()) {
      params          = WithBlockSize(params, A);
      params.compress = Compressions()[turn % 4];
      SetValues(A, kinds[turn++ % kinds.size()]);
      SCOPED_TRACE(Describe(params));
      Product      product(GetParam(), A, params);
      const Vector x     = RandomVector(A.n, 9);
      const Vector clean = product.Mult(x);

      for (PetscInt c = (PetscInt)turn; c < A.n; c += A.n / 5 + 1) {
        Vector infected = x;

        infected[c]    = turn % 2 ? (PetscScalar)INFINITY : (PetscScalar)NAN;
        const Vector z = product.Mult(infected);
        for (PetscInt r = 0; r < A.m; r++) {
          const bool has = std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], c) != A.j.begin() + A.i[r + 1];

          if (has) ASSERT_FALSE(std::isfinite(z[r])) << "row " << r << ", column " << c;
          else ASSERT_EQ(z[r], clean[r]) << "row " << r << ", column " << c;
        }
      }
    }
  }
}

/* The last slice of a grid whose rows are a multiple of 32 has places for its few holes. Its last slot is constant and stores one number, behind which there is none: it is read alone, as a sanitizer sees */
TEST_P(Spmv, ConstantsOfSpreadSlicesAreOneNumber)
{
  Csr          A = SevenPoint(32);
  const Vector x = RandomVector(A.n, 9);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) A.a[e] = A.j[e] == r ? (PetscScalar)(6 + r % 5) : (PetscScalar)-1;
  }
  for (PetscCount dict_min : {(PetscCount)1, PETSC_COUNT_MAX}) { /* numbers of a dictionary, floats */
    Product product(GetParam(), A, WithBlockSize({PETSC_INT_MAX, PETSC_INT_MAX, 8192, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, dict_min, 0}, A));

    ASSERT_NO_FATAL_FAILURE(ExpectProduct(A, x, nullptr, product.Mult(x)));
  }
}

/* A x for integers, exact in any order, x[c] = c % 23 - 11 */
Vector ExactProduct(const Csr &A, Vector *x)
{
  Vector z(A.m, 0.0);

  x->resize(A.n);
  for (PetscInt c = 0; c < A.n; c++) (*x)[c] = (double)(c % 23) - 11.0;
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) z[r] += A.a[e] * (*x)[A.j[e]];
  }
  return z;
}

/* Rows short enough for a lane, in blocks of `gather` slices */
AIJTCParams GatheredBy(PetscInt gather, const Csr &A, AIJTCCompress compress)
{
  return WithBlockSize({PETSC_INT_MAX, PETSC_INT_MAX, 8192, 1, PETSC_DECIDE, compress, 4096, gather}, A);
}

/* A lane adds the entries of its row in the order of the matrix, wherever x comes from */
TEST_P(Spmv, GatheredHasTheBitsOfOtherLayouts)
{
  int gathered = 0;

  for (const Pattern &pattern : Patterns()) {
    SCOPED_TRACE(pattern.name);
    Csr          A = pattern.make();
    const Vector x = RandomVector(A.n, 10), y = RandomVector(A.m, 11);

    for (AIJTCCompress compress : Compressions()) {
      Product plain(GetParam(), A, GatheredBy(0, A, compress));

      ASSERT_EQ(plain.layout.params.gather, 0);
      for (PetscInt gather : {1, 2, 8}) {
        SCOPED_TRACE(gather);
        Product product(GetParam(), A, GatheredBy(gather, A, compress));

        gathered += product.layout.params.gather > 0;
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(plain.Mult(x), product.Mult(x)));
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(plain.Mult(x, &y), product.Mult(x, &y)));
      }
    }
  }
  EXPECT_GE(gathered, 60);
}

/* Of every mesh, by itself: what is in a list, but not in a row of the block, must not reach it */
TEST_P(Spmv, GatheredInfAndNanStayWithRowsThatHaveTheEntry)
{
  for (const Pattern &pattern : MeshPatterns()) {
    SCOPED_TRACE(pattern.name);
    const Csr    A = pattern.make();
    const Vector x = RandomVector(A.n, 12);
    Product      product(GetParam(), A, GatheredBy(8, A, AIJTC_COMPRESS_BOTH));
    const Vector clean = product.Mult(x);

    ASSERT_EQ(product.layout.params.gather, 8);
    ASSERT_NO_FATAL_FAILURE(ExpectProduct(A, x, nullptr, clean));
    for (PetscInt c = 3; c < A.n; c += A.n / 7) {
      Vector infected = x;

      infected[c]    = c % 2 ? (PetscScalar)INFINITY : (PetscScalar)NAN;
      const Vector z = product.Mult(infected);
      for (PetscInt r = 0; r < A.m; r++) {
        const bool has = std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], c) != A.j.begin() + A.i[r + 1];

        if (has) ASSERT_FALSE(std::isfinite(z[r])) << "row " << r << ", column " << c;
        else ASSERT_EQ(z[r], clean[r]) << "row " << r << ", column " << c;
      }
    }
  }
}

/* So many blocks that all of a device is busy, x on 8 bytes and on 16, lists up to the longest; integers, exact in any order */
TEST_P(Spmv, GatheredMeshesAreExact)
{
  for (const Csr &mesh : {Renumbered(SevenPoint(40)), Renumbered(TwentySevenPoint(24)), Combs(AIJTC_GATHER_LIST, 24)}) {
    for (PetscInt gather : {2, 4, 8, 16, 64}) {
      Csr    A = mesh;
      Vector x, sum;

      for (size_t e = 0; e < A.a.size(); e++) A.a[e] = (double)(e % 19) - 9.0;
      const Vector expected = ExactProduct(A, &x);
      Product      product(GetParam(), A, GatheredBy(gather, A, AIJTC_COMPRESS_BOTH));

      SCOPED_TRACE(std::to_string(A.m) + " rows, asked for blocks of " + std::to_string(gather) + ", has " + std::to_string(product.layout.params.gather) + ", longest list " + std::to_string(product.layout.longest_list));
      if (gather == 8) { ASSERT_EQ(product.layout.params.gather, 8); }
      if (A.m == AIJTC_GATHER_LIST && gather > 8) { ASSERT_EQ(product.layout.longest_list, AIJTC_GATHER_LIST); }
      EXPECT_EQ(product.Mult(x), expected);
      EXPECT_EQ(product.MultMisaligned(x), expected);
      for (PetscScalar z : expected) sum.push_back(2.0 * z);
      EXPECT_EQ(product.Mult(x, &expected), sum);
      EXPECT_EQ(product.Mult(x, &expected, true), sum);
    }
  }
}

TEST_P(SpmvAll, InfInTheMatrixReachesOnlyItsRow)
{
  ForAllMatrices([this](const Csr &A, const AIJTCParams &params) {
    if (A.j.empty()) return;
    const Vector x        = RandomVector(A.n, 4);
    const size_t e        = A.j.size() / 2;
    const auto   infected = (PetscInt)(std::upper_bound(A.i.begin(), A.i.end(), (PetscInt)e) - A.i.begin()) - 1;
    Csr          B        = A;

    B.a[e]         = INFINITY;
    const Vector z = Product(backend, B, params).Mult(x);
    for (PetscInt r = 0; r < A.m; r++) {
      if (r == infected) ASSERT_FALSE(std::isfinite(z[r]));
      else ASSERT_NO_FATAL_FAILURE(ExpectRow(B, x, nullptr, z, r));
    }
  });
}

/* Products behind one another, each of the vector that the one before it makes: launches that overlap must not see what a vector was before. What grows beyond the range of numbers is Inf or NaN in both */
TEST_P(SpmvAll, ChainsGiveTheBitsOfSingleProducts)
{
  ForAllMatrices([this](const Csr &A, const AIJTCParams &params) {
    if (A.m != A.n) return;
    Product product(backend, A, params);
    Vector  x = RandomVector(A.n, 8);

    const Vector chained = product.Chain(x, 24);
    for (int k = 0; k < 24; k++) x = product.Mult(x);
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(x, chained));
  });
}

/* value(row, column): integers, so that sums are exact in any order */
template <class Value>
void SetExact(Csr &A, Value value)
{
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) A.a[e] = value(r, A.j[e]);
  }
}

PetscScalar SmallInteger(PetscInt row, PetscInt column)
{
  return (PetscScalar)((3 * row + column) % 17 - 8);
}

/* Rows of `offsets` and integers, plane by plane, the last planes incomplete, or in runs. value(row, column) */
template <class Value>
void ExpectExact(Backend backend, PetscInt n, const std::vector<PetscInt> &offsets, bool common, AIJTCCompress compress, Value value)
{
  Csr         A      = Banded(n, n, offsets);
  AIJTCParams params = {1024, 128, 8192, 1, 1, compress, 4096, 0};
  Vector      x;

  SetExact(A, value);
  const Vector expected = ExactProduct(A, &x);
  Product      product(backend, A, params);

  product.layout.common = (PetscBool)common;
  ASSERT_EQ(product.layout.stride, 20000);
  ASSERT_EQ(product.layout.nvalue < product.layout.nnz, common);
  EXPECT_EQ(product.Mult(x), expected);
}

TEST_P(Spmv, PlanesOneAfterTheOther)
{
  ExpectExact(GetParam(), 600100, {-20000, 0, 20000}, true, AIJTC_COMPRESS_BOTH, [](PetscInt r, PetscInt c) { return r == c ? 3.0 : -1.0; });
}

/* Slices that are swept and others: not constant, or with a slot in no window. An odd number of columns, and fewer than rows; x on 8 bytes only; added to a vector */
TEST_P(Spmv, PlanesSwept)
{
  for (const auto &[m, n, line] : {
         std::tuple<PetscInt, PetscInt, PetscInt>{2200101, 2200101, 288},
           {2200101, 2190002, 288},
           {2200101, 2190003, 640},
           {1040101, 1040101, 128}
  }) {
    const Csr    A = SweptPlanes(m, n, line);
    Vector       x, sum;
    const Vector expected = ExactProduct(A, &x);
    Product      product(GetParam(), A, {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0});

    product.layout.common = PETSC_TRUE;
    ASSERT_EQ(product.layout.stride, 20040);
    ASSERT_EQ(product.layout.line, line);
    EXPECT_EQ(product.Mult(x), expected);
    EXPECT_EQ(product.MultMisaligned(x), expected);
    for (PetscScalar z : expected) sum.push_back(3.0 * z);
    Vector twice(expected);
    for (PetscScalar &z : twice) z *= 2.0;
    EXPECT_EQ(product.Mult(x, &twice), sum);
  }
}

/* So many rows, and so few nonzeros in each, as the kernel for stored values still takes (mult_stored.cu); with nothing compressed it does not */
TEST_P(Spmv, StoredValuesOfManyRows)
{
  Csr    A = Banded(8000100, 8000103, {0, 3});
  Vector x;

  for (size_t e = 0; e < A.a.size(); e++) A.a[e] = (PetscScalar)(int)(e % 17) - 8;
  const Vector expected = ExactProduct(A, &x);

  for (AIJTCCompress compress : {AIJTC_COMPRESS_OFF, AIJTC_COMPRESS_PATTERN}) {
    Product product(GetParam(), A, {1024, 128, 8192, 2, 1, compress, 4096, 0});

    product.layout.common = PETSC_TRUE;
    ASSERT_GE(product.layout.nvalue, (PetscCount)sizeof(PetscScalar) * product.layout.nnz);
    EXPECT_EQ(product.Mult(x), expected);
  }
}

/* A square matrix whose values are to be set. row(r, add): add(column) each column of row r, in any order */
template <class Row>
Csr FromRows(PetscInt m, Row row)
{
  Csr A;

  A.m = A.n = m;
  for (PetscInt r = 0; r < m; r++) {
    const auto first = (std::ptrdiff_t)A.j.size();

    row(r, [&](PetscInt column) { A.j.push_back(column); });
    std::sort(A.j.begin() + first, A.j.end());
    A.i.push_back((PetscInt)A.j.size());
  }
  A.a.resize(A.j.size());
  return A;
}

/* The k-th column of row r where its columns are anywhere; all different as long as 97 k < m */
PetscInt Anywhere(PetscInt r, PetscInt k, PetscInt m)
{
  return (PetscInt)((31 * (int64_t)r + 97 * k) % m);
}

/* Rows with 43 offsets, so that a slice has several segments of slots; some without every fifth of them, some with columns anywhere, and those at either end of the matrix without the far ones */
Csr LongRowsOfManyKinds(PetscInt m)
{
  return FromRows(m, [m](PetscInt r, auto add) {
    for (PetscInt k = -21; k <= 21; k++) {
      const PetscInt column = k == -21 ? r - 700 : (k == 21 ? r + 700 : r + k);
      const bool     thin   = r >= 900 && r < 1500 && (r + k + 21) % 5 == 0;

      if (r >= 1800 && r < 1990) add(Anywhere(r, k + 21, m));
      else if (!thin && column >= 0 && column < m) add(column);
    }
  });
}

/* Slots known a segment ahead (mult_stored.cu): one, two and four rows a lane, with and without deltas, several unknowns; added to a vector; an Inf stays with the rows that have its column */
TEST_P(Spmv, StoredValuesOfLongRows)
{
  for (PetscInt bs : {1, 3}) {
    Csr A = bs == 1 ? LongRowsOfManyKinds(2503) : Blocks(LongRowsOfManyKinds(2503), bs);

    SetExact(A, SmallInteger);
    Vector       x, sum;
    const Vector expected = ExactProduct(A, &x);

    for (PetscScalar z : expected) sum.push_back(2.0 * z);
    for (PetscInt rrows : {1, 2, 4}) {
      for (AIJTCCompress compress : {AIJTC_COMPRESS_OFF, AIJTC_COMPRESS_PATTERN}) {
        Product product(GetParam(), A, {1024, 512, 8192, rrows, bs, compress, 4096, 0});

        product.layout.common = PETSC_TRUE;
        ASSERT_EQ(product.layout.exact_always, product.layout.cuda); /* told of layouts on a GPU alone */
        ASSERT_EQ(product.layout.nconsecutive, AIJTCSlicesTotal(&product.layout));
        EXPECT_EQ(product.Mult(x), expected);
        EXPECT_EQ(product.Mult(x, &expected), sum);

        Vector infinite = x;

        infinite[1205] = std::numeric_limits<PetscScalar>::infinity();
        const Vector z = product.Mult(infinite);
        for (PetscInt r = 0; r < A.m; r++) {
          if (!std::count(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], 1205)) { ASSERT_EQ(z[r], expected[r]) << "row " << r; }
        }
      }
    }
  }
}

/* Rows of up to five offsets, every third one without its diagonal; some with columns anywhere, and some with 37 offsets, so that slices are more than the one batch that those of most rows are */
Csr ShortRowsOfManyKinds(PetscInt m)
{
  return FromRows(m, [m](PetscInt r, auto add) {
    const PetscInt reach = r >= 896 && r < 1024 ? 18 : 2, far = reach == 2 ? 499 : 1;

    for (PetscInt k = -reach; k <= reach; k++) {
      const PetscInt column = r + k * (k == -2 || k == 2 ? far : 1);

      if (r >= 1300 && r < 1500) add(Anywhere(r, k + reach, m));
      else if ((k || r % 3) && column >= 0 && column < m) add(column);
    }
  });
}

/* Batches of five slots, of the kernel for stored values, and of that for all forms, where rows do not share their offsets or few values are distinct;
   and a little more than 7 blocks of 4 warps for each of the 132 multiprocessors that the kernels are made for, where those with room for 8 are taken */
TEST_P(Spmv, BatchesOfShortRows)
{
  const struct {
    PetscInt m, bs, rrows;
  } cases[] = {
    {12800,  1, 2},
    {240000, 1, 2},
    {12800,  1, 4},
    {480000, 1, 4},
    {12800,  3, 1},
    {40000,  3, 1}
  };

  const struct {
    AIJTCCompress compress;
    PetscBool     common;
  } ways[] = {
    {AIJTC_COMPRESS_OFF,     PETSC_TRUE },
    {AIJTC_COMPRESS_PATTERN, PETSC_TRUE },
    {AIJTC_COMPRESS_PATTERN, PETSC_FALSE},
    {AIJTC_COMPRESS_BOTH,    PETSC_TRUE }
  };

  for (const auto &c : cases) {
    SCOPED_TRACE(std::to_string(c.m) + " nodes of " + std::to_string(c.bs) + " rows, " + std::to_string(c.rrows) + " rows a lane");
    Csr A = c.bs == 1 ? ShortRowsOfManyKinds(c.m) : Blocks(ShortRowsOfManyKinds(c.m), c.bs);

    ASSERT_TRUE(A.j.size() > 4 * (size_t)c.bs * A.m && A.j.size() <= 5 * (size_t)c.bs * A.m);
    SetExact(A, SmallInteger);
    Vector       x;
    const Vector expected = ExactProduct(A, &x);

    for (const auto &way : ways) {
      Product product(GetParam(), A, {1024, 512, 8192, c.rrows, c.bs, way.compress, 4096, 0});

      product.layout.common = way.common;
      ASSERT_EQ(product.layout.nconsecutive, AIJTCSlicesTotal(&product.layout));
      ASSERT_EQ(product.layout.exact_always, (PetscBool)(product.layout.cuda && way.compress != AIJTC_COMPRESS_BOTH)); /* told of layouts on a GPU alone */
      EXPECT_EQ(product.Mult(x), expected);
    }
  }
}

TEST_P(Spmv, SlicesInRuns)
{
  ExpectExact(GetParam(), 600100, {-20000, -7, 0, 11, 20000}, false, AIJTC_COMPRESS_PATTERN, SmallInteger);
}

TEST_P(SpmvAll, SameBitsEveryTime)
{
  ForAllLayouts([](const Csr &A, Product &product) {
    const Vector x     = RandomVector(A.n, 6);
    const Vector first = product.Mult(x);

    for (int run = 0; run < 3; run++) ASSERT_NO_FATAL_FAILURE(ExpectSameBits(first, product.Mult(x)));
  });
}

/* A layout in host memory, where it can be looked at */
class Copy {
public:
  explicit Copy(const OwnedLayout &from)
  {
    if (from.layout.cuda) owned_.reset(new OwnedLayout(from.layout));
    layout = from.layout.cuda ? &owned_->layout : &from.layout;
  }
  /* The forms and places of all slices; refreshed values stay in them */
  std::vector<std::vector<int64_t>> Forms() const
  {
    std::vector<std::vector<int64_t>> forms;

    for (PetscInt s = 0; s < AIJTCSlicesTotal(layout); s++) forms.push_back({layout->slice[s].form, layout->slice[s].pattern, layout->slice[s].value, layout->slice[s].values});
    return forms;
  }
  std::set<int> ValueForms() const
  {
    std::set<int> forms;

    for (PetscInt s = 0; s < AIJTCSlicesTotal(layout); s++)
      if (layout->slice[s].entries) forms.insert(layout->slice[s].form & AIJTC_FORM_CONST ? -1 : (int)(layout->slice[s].form >> AIJTC_FORM_VALUE & 3));
    return forms;
  }
  std::vector<uint8_t> Pattern() const { return std::vector<uint8_t>(layout->pattern, layout->pattern + layout->npattern); }

  const AIJTCLayout *layout;

private:
  std::unique_ptr<OwnedLayout> owned_;
};

/* Whatever the new values are: a refresh that fits gives the new product and, if a fresh build chooses the same forms, its bytes; one that does not fit could not have been right */
TEST_P(SpmvAll, RefreshGivesTheFreshLayoutOrDoesNotFit)
{
  ForAllMatrices([this](const Csr &A, const AIJTCParams &params) {
    const Vector x = RandomVector(A.n, 5);

    std::unique_ptr<Product> product;

    for (ValueKind kind : {ValueKind::Random, ValueKind::Floats, ValueKind::ByOffset, ValueKind::Same}) {
      SCOPED_TRACE(std::string("refreshed with ") + Describe(kind));
      const Csr &B = WithValues(A, kind);

      if (!product) product.reset(new Product(backend, A, params));
      if (!product->Refresh(B)) {
        ASSERT_TRUE(params.compress & AIJTC_COMPRESS_VALUE);
        product.reset(); /* its values are undefined now */
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(ExpectProduct(B, x, nullptr, product->Mult(x)));
      const Product fresh(backend, B, params);
      if (product->layout.ndict || fresh.layout.ndict) continue;
      const Copy one(*product), other(fresh);
      if (one.Forms() == other.Forms() && one.Pattern() == other.Pattern()) ExpectSameLayout(*other.layout, *one.layout);
    }
  });
}

TEST_P(SpmvAll, RefreshWithItsOwnValuesFits)
{
  ForAllMatrices([this](const Csr &A, const AIJTCParams &params) {
    Product       product(backend, A, params);
    const Product fresh(backend, A, params);

    ASSERT_TRUE(product.Refresh(A));
    const Copy one(product), other(fresh);
    ExpectSameLayout(*other.layout, *one.layout);
  });
}

/* A matrix whose slices have the form to break, and a value that breaks it at each of some entries */
struct Breaking {
  const char *name;
  Csr         A;
  int         form; /* -1: constant */
  PetscScalar value;
};

std::vector<Breaking> BreakingCases()
{
  const Csr rows = FromLengths(3000, RandomLengths(3000, 10, 16, 9)), tiles = FromLengths(3000, RandomLengths(512, 200, 300, 15)), pieces = FromLengths(5000, RandomLengths(70, 2000, 3000, 16));

  /* clang-format off */
  std::vector<Breaking> cases = {
    {"constants", SevenPoint(20), -1, 0.1},
    {"constants, zero", SevenPoint(20), -1, -0.0},
    {"constants of blocks", Blocks(TwentySevenPoint(8), 3), -1, 0.1},
    {"constants of tiles", tiles, -1, 0.1},
    {"constants of long rows", pieces, -1, 0.1},
    {"floats", rows, AIJTC_VALUE_FLOAT, 0.1},
    {"floats, NaN", rows, AIJTC_VALUE_FLOAT, NaNWithPayload(1)},
    {"floats of tiles", tiles, AIJTC_VALUE_FLOAT, 0.1},
    {"floats of long rows", pieces, AIJTC_VALUE_FLOAT, Huge},
    {"dictionary", rows, AIJTC_VALUE_DICT, 0.1},
    {"dictionary, zero", rows, AIJTC_VALUE_DICT, -0.0},
    {"dictionary of tiles", tiles, AIJTC_VALUE_DICT, 0.1},
    {"dictionary of long rows", pieces, AIJTC_VALUE_DICT, NaNWithPayload(2)},
  };
  /* clang-format on */

  if (sizeof(PetscScalar) == sizeof(float)) cases.erase(std::remove_if(cases.begin(), cases.end(), [](const Breaking &c) { return c.form == AIJTC_VALUE_FLOAT; }), cases.end());
  for (Breaking &c : cases) {
    if (c.form == AIJTC_VALUE_FLOAT) SetValues(c.A, ValueKind::Floats);
    else if (c.form == AIJTC_VALUE_DICT) SetValues(c.A, ValueKind::Few);
    else if (c.A.m == c.A.n) SetValues(c.A, ValueKind::ByOffset);
    else SetValues(c.A, ValueKind::Same);
    if (std::string(c.name).find("zero") != std::string::npos) /* 0.0 is there, -0.0 is not */
      for (PetscInt r = 0; r < c.A.m; r++)
        for (PetscInt e = c.A.i[r]; e < c.A.i[r + 1]; e++)
          if (c.form == -1 || r % 2) c.A.a[e] = 0.0;
  }
  return cases;
}

TEST_P(Spmv, RefreshThatBreaksAFormDoesNotFit)
{
  for (const Breaking &c : BreakingCases()) {
    SCOPED_TRACE(c.name);
    const AIJTCParams params = WithBlockSize({1024, 128, 8192, 2, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}, c.A);
    Product           product(GetParam(), c.A, params);
    const Vector      x     = RandomVector(c.A.n, 8);
    const Vector      z     = product.Mult(x);
    const size_t      count = c.A.a.size();

    ASSERT_EQ(Copy(product).ValueForms(), std::set<int>{c.form});
    for (size_t e : {(size_t)0, count / 3, count / 2, count - 1}) {
      Csr B = c.A;

      B.a[e] = c.value;
      ASSERT_FALSE(product.Refresh(B)) << "entry " << e;
    }
    ASSERT_TRUE(product.Refresh(c.A)); /* and back */
    ExpectSameBits(z, product.Mult(x));
  }
}

/* New values of a gathered layout: those of a fresh build, and none that its forms cannot hold */
TEST_P(Spmv, RefreshOfGatheredLayouts)
{
  for (const Pattern &pattern : MeshPatterns()) {
    for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::Same}) {
      SCOPED_TRACE(pattern.name + ", " + Describe(kind));
      Csr A = pattern.make();

      SetValues(A, kind);
      const AIJTCParams params = GatheredBy(8, A, AIJTC_COMPRESS_BOTH);
      Product           product(GetParam(), A, params);
      const Vector      x      = RandomVector(A.n, 13);
      const bool        closed = kind == ValueKind::Same || (kind == ValueKind::Few && product.layout.ndict); /* its forms hold no other value */
      const bool        narrow = kind == ValueKind::Floats && sizeof(PetscScalar) > sizeof(float);
      Csr               B      = A;

      ASSERT_EQ(product.layout.params.gather, 8);
      for (PetscScalar &a : B.a) a *= -2.0;
      ASSERT_EQ(product.Refresh(B), kind == ValueKind::Same || !closed); /* constants take any one value, a dictionary none but its own */
      if (!closed || kind == ValueKind::Same) {
        ExpectProduct(B, x, nullptr, product.Mult(x));
        const Product fresh(GetParam(), B, params);
        const Copy    one(product), other(fresh);
        ASSERT_NO_FATAL_FAILURE(ExpectSameLayout(*other.layout, *one.layout));
      }
      B.a[B.a.size() / 2] = 0.1;
      ASSERT_EQ(product.Refresh(B), !closed && !narrow);
      ASSERT_TRUE(product.Refresh(A));
      ExpectProduct(A, x, nullptr, product.Mult(x));
    }
  }
}

/* A single changed value that the form can hold arrives */
TEST_P(Spmv, RefreshChangesOneValue)
{
  for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Floats}) {
    SCOPED_TRACE(Describe(kind));
    Csr A = FromLengths(3000, RandomLengths(400, 0, 1500, 17));

    SetValues(A, kind);
    Product      product(GetParam(), A, {1024, 128, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0});
    const Vector x = RandomVector(A.n, 8);

    for (size_t e : {(size_t)0, A.a.size() / 3, A.a.size() - 1}) {
      A.a[e] = A.a[e] == A.a[7] ? A.a[8] : A.a[7];
      ASSERT_TRUE(product.Refresh(A));
      ExpectProduct(A, x, nullptr, product.Mult(x));
    }
  }
}

std::string NameOf(Backend backend)
{
  static const char *const name[] = {"host", "core", "tensor"};

  return name[(int)backend];
}

const auto Backends = ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor);

INSTANTIATE_TEST_SUITE_P(, Spmv, Backends, [](const auto &info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(, SpmvAll, ::testing::Combine(Backends, ::testing::Range(0, Parts)), [](const auto &info) { return NameOf(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param)); });
} // namespace
