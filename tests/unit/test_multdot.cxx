/*
   The product with dot products of its result, on the host, on CUDA cores and on the Tensor Core.

   The product must have the bits of the product alone. Tolerance of the sums: |computed - exact| <= (m + 3) eps sum |w| |z| for m rows, the exact value being formed in long double from the computed z:
   what m products and sums in any order can do. No sum runs through all rows, so that of a million rows all of whose terms round alike the bound is (600 + m / 1024) eps sum |w| |z|.
*/
#include "layouts.h"

namespace
{
enum class Backend {
  Host,
  Core,
  Tensor
};

/* z and the two sums */
struct Result {
  Vector z, sums;
};

/* x, z and the sums of a product that makes x of two vectors */
struct MadeVector {
  Vector x, z, sums;
};

/* The numbers that it is made with */
struct Factors {
  PetscReal over = 0.75, under = -1.7, shift = 0.0, stop = 0.0;
  bool      minus = false;
};

class ProductAndDots : public OwnedLayout {
public:
  ProductAndDots(Backend backend, const Csr &A, const AIJTCParams &params, bool common = false) : OwnedLayout(backend == Backend::Host ? Made::OnHost : Made::OnDevice, A, params), tensor_((PetscBool)(backend == Backend::Tensor))
  {
    layout.common = (PetscBool)common;
    if (!layout.cuda) { EXPECT_EQ(AIJTCDotWorkCreate_Host(&layout, &work_), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCDotWorkCreate_CUDA(&layout, &work_), PETSC_SUCCESS); }
#endif
  }
  ~ProductAndDots()
  {
    if (!layout.cuda) { EXPECT_EQ(AIJTCDotWorkDestroy_Host(&work_), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCDotWorkDestroy_CUDA(&work_), PETSC_SUCCESS); }
#endif
    EXPECT_EQ(work_.partial, nullptr);
  }

  /* z and sums start as NaN; `same`: w is the very array of x; u empty: two sums */
  Result MultDot(const Vector &x, const Vector &w, bool same = false, const Vector &u = {})
  {
    Array<PetscScalar>       dx(layout.cuda, x), dw(layout.cuda, w), du(layout.cuda, u.empty() ? Vector(1, NAN) : u), dz(layout.cuda, Vector(layout.m, NAN)), sums(layout.cuda, Vector(u.empty() ? 2 : 4, NAN));
    const PetscScalar *const pu = u.empty() ? nullptr : (PetscScalar *)du;

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutMultDot_Host(&layout, tensor_, dx, same ? dx : dw, pu, dz, sums, &work_, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutMultDot_CUDA(&layout, tensor_, dx, same ? dx : dw, pu, dz, sums, &work_, nullptr), PETSC_SUCCESS); }
#endif
    return {dz.Values(), sums.Values()};
  }

  bool MakesItsVector()
  {
    PetscBool has = PETSC_FALSE;

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutHasWAXPY_Host(&layout, &has), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutHasWAXPY_CUDA(&layout, &has), PETSC_SUCCESS); }
#endif
    return has;
  }

  /* x, z and sums start as NaN; u empty: two sums. apart: arrays begin so many numbers behind a place for bulk copies */
  MadeVector MakeAndMultDot(const Vector &base, const Vector &along, const Factors &f, const Vector &u = {}, PetscInt apart = 0)
  {
    const auto               shifted = [apart](Vector v) { return v.insert(v.begin(), apart, NAN), v; };
    Array<PetscScalar>       numbers(layout.cuda, {f.over, f.under, f.shift, f.stop}), dbase(layout.cuda, shifted(base)), dalong(layout.cuda, shifted(along)), dx(layout.cuda, shifted(Vector(layout.n, NAN)));
    Array<PetscScalar>       du(layout.cuda, u.empty() ? Vector(1, NAN) : u), dz(layout.cuda, Vector(layout.m, NAN)), sums(layout.cuda, Vector(u.empty() ? 2 : 4, NAN));
    const PetscScalar *const pu = u.empty() ? nullptr : (PetscScalar *)du;
    PetscScalar *const       at = numbers;
    const AIJTCWAXPY         of = {(PetscScalar *)dbase + apart, (PetscScalar *)dalong + apart, at, at + 1, f.shift == 0.0 ? nullptr : at + 2, at + 3, (PetscBool)f.minus};
    PetscScalar *const       px = (PetscScalar *)dx + apart;

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutWAXPYMultDot_Host(&layout, tensor_, &of, px, pu, dz, sums, &work_, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutWAXPYMultDot_CUDA(&layout, tensor_, &of, px, pu, dz, sums, &work_, nullptr), PETSC_SUCCESS); }
#endif
    Vector x = dx.Values();

    x.erase(x.begin(), x.begin() + apart);
    return {x, dz.Values(), sums.Values()};
  }

  /* CUDA: blocks that take rows */
  unsigned RowsBlocks() const
  {
    return work_.rows;
  }

  Vector Mult(const Vector &x)
  {
    Array<PetscScalar> dx(layout.cuda, x), dz(layout.cuda, Vector(layout.m, NAN));

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_Host(&layout, tensor_, dx, nullptr, dz, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutMult_CUDA(&layout, tensor_, dx, nullptr, dz, nullptr), PETSC_SUCCESS); }
#endif
    return dz.Values();
  }

private:
  PetscBool    tensor_;
  AIJTCDotWork work_ = {};
};

/* roundings: how many a sum may have one after the other */
void ExpectSum(const Vector &w, const Vector &z, PetscScalar computed, size_t roundings)
{
  long double sum = 0.0, bound = 0.0;

  for (size_t r = 0; r < z.size(); r++) {
    sum += (long double)w[r] * z[r];
    bound += std::fabs((long double)w[r] * z[r]);
  }
  ASSERT_LE(std::fabs(computed - sum), roundings * PETSC_MACHINE_EPSILON * bound) << computed << ", not " << (double)sum; /* false for NaN */
}

/* The bits of the product alone, and sums within their bounds. With a third vector the first two sums have the same bits */
void ExpectProductAndSums(ProductAndDots &product, const Csr &A, unsigned seed)
{
  const Vector u = RandomVector(A.m, seed + 2);
  const Vector x = RandomVector(A.n, seed), w = RandomVector(A.m, seed + 1);
  const Result result = product.MultDot(x, w);

  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(product.Mult(x), result.z));
  ASSERT_NO_FATAL_FAILURE(ExpectSum(w, result.z, result.sums[0], w.size() + 3));
  ASSERT_NO_FATAL_FAILURE(ExpectSum(result.z, result.z, result.sums[1], w.size() + 3));
  if (!A.m) return; /* of which no u says whether there is one */
  const Result four = product.MultDot(x, w, false, u);

  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(result.z, four.z));
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(result.sums, {four.sums[0], four.sums[1]}));
  ASSERT_NO_FATAL_FAILURE(ExpectSum(u, result.z, four.sums[2], w.size() + 3));
  ASSERT_NO_FATAL_FAILURE(ExpectSum(u, w, four.sums[3], w.size() + 3));
  if (A.m != A.n) return;
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(product.MultDot(x, x, true, u).sums, product.MultDot(x, x, false, u).sums));
}

class MultDot : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override { SkipUnlessUsable(GetParam() != Backend::Host, GetParam() == Backend::Tensor); }

  /* check(matrix, product) for every pattern, the choices of parameters taking turns, until one fails */
  template <class Check>
  void ForAllPatterns(Check check)
  {
    const std::vector<AIJTCParams> all  = ParamsToTry();
    size_t                         turn = 0;

    for (const Pattern &pattern : Patterns()) {
      Csr         A      = pattern.make();
      AIJTCParams params = WithBlockSize(all[turn++ % all.size()], A);

      params.compress = Compressions()[turn % 4];
      SCOPED_TRACE(std::string(pattern.name) + ", " + Describe(params));
      SetValues(A, ValueKind::Random);
      ProductAndDots product(GetParam(), A, params);
      check(A, product);
      if (HasFailure()) return;
    }
  }
};

TEST_P(MultDot, ProductAndSums)
{
  ForAllPatterns([](const Csr &A, ProductAndDots &product) { ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 1)); });
}

TEST_P(MultDot, WithTheVectorMultiplied)
{
  ForAllPatterns([](const Csr &A, ProductAndDots &product) {
    if (A.m != A.n) return;
    const Vector x      = RandomVector(A.n, 3);
    const Result result = product.MultDot(x, x, true);

    ASSERT_NO_FATAL_FAILURE(ExpectSum(x, result.z, result.sums[0], x.size() + 3));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(product.MultDot(x, x, false).sums, result.sums));
  });
}

/* Which also tells that the counters are back at zero */
TEST_P(MultDot, SameBitsEveryTime)
{
  ForAllPatterns([](const Csr &A, ProductAndDots &product) {
    const Vector x = RandomVector(A.n, 4), w = RandomVector(A.m, 5), first = product.MultDot(x, w).sums;

    for (int run = 0; run < 3; run++) ASSERT_NO_FATAL_FAILURE(ExpectSameBits(first, product.MultDot(x, w).sums));
  });
}

/* x of a block's list lies behind its sums, in the same memory */
TEST_P(MultDot, Gathered)
{
  std::vector<Pattern> all = MeshPatterns();

  all.push_back({"large_mesh", [] { return Renumbered(SevenPoint(43)); }});
  for (const Pattern &pattern : all) {
    Csr               A      = pattern.make();
    const AIJTCParams params = WithBlockSize({1024, 128, 8192, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 8}, A);

    SCOPED_TRACE(pattern.name);
    SetValues(A, ValueKind::Random);
    ProductAndDots product(GetParam(), A, params);

    ASSERT_GT(product.layout.nblocks, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 11));
  }
}

/* Blocks beyond one group, and groups beyond one a thread of the last block: 18,750 blocks of 4 tiles of 8 rows. Rows as those of grids, or in runs */
TEST_P(MultDot, ManyBlocks)
{
  Csr         A      = Banded(600000, 600000, {-1, 0, 1});
  AIJTCParams params = WithBlockSize(ParamsToTry().front(), A);

  SetValues(A, ValueKind::Random);
  params.long_min = 1024;
  params.rrows    = 1;
  params.compress = AIJTC_COMPRESS_PATTERN;
  for (PetscInt short_max : {0, 128}) {
    for (bool common : {false, true}) {
      params.short_max = short_max;
      ProductAndDots product(GetParam(), A, params, common);

      if (product.layout.cuda) { ASSERT_EQ(product.RowsBlocks(), short_max ? (common ? 586u : 132u) : 0u); }
      ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 6));
    }
  }
}

/* Slots known a segment ahead (mult_stored.cu), in few blocks, and in more than are added at once */
TEST_P(MultDot, StoredValuesOfLongRows)
{
  for (PetscInt rrows : {1, 4}) {
    for (PetscInt m : {2503, 70001}) {
      const Csr      A = Thinned(Banded(m, m, {-900, -31, -30, -29, -4, -3, -2, -1, 0, 1, 2, 3, 4, 29, 30, 31, 900, 901, 902}), 19);
      ProductAndDots product(GetParam(), A, {1024, 128, 8192, rrows, 1, AIJTC_COMPRESS_PATTERN, 4096, 0}, true);

      ASSERT_GE(A.j.size(), 16 * (size_t)A.m);
      ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 21));
    }
  }
}

using BlocksOfRowGroups = std::pair<PetscInt, unsigned>; /* row groups of a slice, blocks of its product */

/* 1.1 million rows */
void ExpectOfManyRows(Backend backend, bool common, const std::vector<BlocksOfRowGroups> &cases)
{
  Csr A = Banded(1100000, 1100000, {-50, 0, 3});

  SetValues(A, ValueKind::Random);
  for (auto [rrows, blocks] : cases) {
    ProductAndDots product(backend, A, {1024, 128, 8192, rrows, 1, AIJTC_COMPRESS_PATTERN, 4096, 0}, common);
    const Vector   x = RandomVector(A.n, 7), w = RandomVector(A.m, 8), first = product.MultDot(x, w).sums;

    if (product.layout.cuda) { ASSERT_EQ(product.RowsBlocks(), blocks); }
    ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 9));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(first, product.MultDot(x, w).sums));
  }
}

/* So many slices that with dot products a warp takes 8 rows of a lane one after the other, or 4 at once (mult_stored.cu) */
TEST_P(MultDot, StoredValuesOfManyRows)
{
  const std::vector<BlocksOfRowGroups> cases = {
    {1, 1075},
    {2, 1075},
    {4, 2149}
  };

  ExpectOfManyRows(GetParam(), true, cases);
}

/* More runs than multiprocessors, 4 rows a lane, and 2, which are not taken in runs */
TEST_P(MultDot, ManyRuns)
{
  const std::vector<BlocksOfRowGroups> cases = {
    {1, 264 },
    {2, 4297},
    {4, 132 }
  };

  ExpectOfManyRows(GetParam(), false, cases);
}

/* 110 planes of 157 slices, 10 blocks side by side and 22 behind each other with 5 planes each */
TEST_P(MultDot, PlanesSwept)
{
  const AIJTCParams params = {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0};

  for (PetscInt line : {128, 288, 640}) {
    const Csr      A = SweptPlanes(2200101, 2200101, line);
    ProductAndDots product(GetParam(), A, params, true);

    if (product.layout.cuda) { ASSERT_EQ(product.RowsBlocks(), 220u); }
    ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 10));
  }
}

/* x as one multiply-add an element makes it (on the host as its compiler does), the product and the sums of a product without that */
void ExpectMade(ProductAndDots &product, const Factors &f, const Vector &u, PetscInt apart = 0)
{
  const PetscInt   n    = product.layout.n;
  const Vector     base = RandomVector(n, 11), along = RandomVector(n, 12);
  const MadeVector made  = product.MakeAndMultDot(base, along, f, u, apart);
  const double     alpha = f.minus ? -(f.over / f.under) : f.over / f.under;

  for (PetscInt i = 0; i < n; i++) {
    const double x = std::fma(alpha, along[i], base[i] - f.shift), bound = product.layout.cuda ? 0.0 : 2.0 * PETSC_MACHINE_EPSILON * (std::fabs(alpha * along[i]) + std::fabs(x));

    ASSERT_LE(std::fabs(made.x[i] - x), bound) << "element " << i; /* false for NaN */
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(product.Mult(made.x), made.z));
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(product.MultDot(made.x, made.x, true, u).sums, made.sums));
}

/* Slices that are swept and others; two sums and four; a last element without the other of its pair; arrays that no bulk copy takes */
TEST_P(MultDot, MakesItsVector)
{
  const AIJTCParams params = {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0};
  Factors           shifted;

  shifted.shift = 0.3;
  shifted.minus = true;
  for (const auto &[m, line] : {
         std::pair<PetscInt, PetscInt>{2200101, 128},
          {2200102, 288},
          {1040101, 128},
          {2200101, 640}
  }) {
    ProductAndDots product(GetParam(), SweptPlanes(m, m, line), params, true);

    ASSERT_TRUE(product.MakesItsVector());
    ASSERT_NO_FATAL_FAILURE(ExpectMade(product, {}, {}));
    ASSERT_NO_FATAL_FAILURE(ExpectMade(product, shifted, RandomVector(m, 13)));
    ASSERT_NO_FATAL_FAILURE(ExpectMade(product, shifted, {}, 1));
  }
}

/* What has stopped leaves all as it is */
TEST_P(MultDot, MakesNothingOnceStopped)
{
  ProductAndDots product(GetParam(), SweptPlanes(1040101, 1040101, 128), {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, true);
  const Vector   v(product.layout.n, 1.0);
  Factors        stopped;

  stopped.stop          = 1.0;
  const MadeVector made = product.MakeAndMultDot(v, v, stopped);
  for (const Vector *of : {&made.x, &made.z, &made.sums}) {
    for (PetscScalar a : *of) ASSERT_TRUE(std::isnan(a));
  }
}

/* Matrices that are not square, and on a device all whose planes are not swept, or of more slots than there is room for */
TEST_P(MultDot, MakesNoVector)
{
  const AIJTCParams params = {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0};
  ProductAndDots    wide(GetParam(), SweptPlanes(2200101, 2190002, 288), params, true), lines(GetParam(), SweptPlanes(2200101, 2200101, 700), params, true), runs(GetParam(), SweptPlanes(2200101, 2200101, 288), params);

  Csr stencil = Banded(2200101, 2200101, {-20042, -20041, -20040, -20039, -20038, -2, -1, 0, 1, 2, 20038, 20039, 20040, 20041, 20042});
  for (PetscScalar &a : stencil.a) a = 0.5;
  ProductAndDots many(GetParam(), stencil, params, true);

  if (many.layout.cuda) { EXPECT_EQ(many.RowsBlocks(), 220u); } /* swept */
  EXPECT_EQ(many.MakesItsVector(), GetParam() == Backend::Host);
  EXPECT_FALSE(wide.MakesItsVector());
  EXPECT_EQ(lines.MakesItsVector(), GetParam() == Backend::Host);
  EXPECT_EQ(runs.MakesItsVector(), GetParam() == Backend::Host);
}

/* The least grids that are swept: 52 planes, 10 blocks side by side with 2 planes each; one of 34 would be as much in vain as not */
TEST_P(MultDot, SmallGridsSwept)
{
  const AIJTCParams params = {1024, 128, 8192, 4, 1, AIJTC_COMPRESS_BOTH, 4096, 0};
  const PetscInt    rows[] = {1040101, 680101};

  for (PetscInt m : rows) {
    const Csr      A = SweptPlanes(m, m, 128);
    ProductAndDots product(GetParam(), A, params, true);

    if (product.layout.cuda) { ASSERT_EQ(product.RowsBlocks() == 260u, m == rows[0]) << product.RowsBlocks(); }
    ASSERT_NO_FATAL_FAILURE(ExpectProductAndSums(product, A, 10));
  }
}

/* One sum through a million equal terms would be off by 1e-11 of itself */
TEST_P(MultDot, NoSumRunsThroughAllRows)
{
  constexpr PetscInt m = 1000003;
  Csr                A = Banded(m, m, {0});

  for (PetscScalar &a : A.a) a = 0.1;
  ProductAndDots product(GetParam(), A, ParamsToTry().front());
  const Vector   w(m, 0.7);
  const Result   result = product.MultDot(Vector(m, 1.0), w);

  ExpectSum(w, result.z, result.sums[0], 600 + m / 1024);
  ExpectSum(result.z, result.z, result.sums[1], 600 + m / 1024);
}

/* A value that a sum in another place would have would not show in a random vector: all of the sum in one row */
TEST_P(MultDot, OneRowAtATime)
{
  Csr         A      = FromLengths(3000, PowerLawLengths(2000, 2500, 8));
  AIJTCParams params = WithBlockSize(ParamsToTry().front(), A);

  params.long_min  = 200;
  params.short_max = 20;
  SetValues(A, ValueKind::Random);
  ProductAndDots product(GetParam(), A, params);
  const Vector   x = RandomVector(A.n, 9);

  for (PetscInt r = 0; r < A.m; r += 37) {
    Vector w(A.m, 0.0);

    w[r]                = 2.0;
    const Result result = product.MultDot(x, w);
    ASSERT_EQ(result.sums[0], 2.0 * result.z[r]) << "row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, MultDot, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), [](const auto &info) {
  return std::string(info.param == Backend::Host ? "Host" : info.param == Backend::Core ? "CUDACore" : "CUDATensor");
});
} // namespace
