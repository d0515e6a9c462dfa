/* The resident form of a matrix, and iterations of conjugate gradients in one call: the form is that of the rows, the same in both memories; chunks change no bit, results are those of the steps with a
   plain product, a solve stops where its test says */
#include <petsctc/private/tccgresident.h>
#include "layouts.h"

namespace
{
/* Reductions of norms that leave some digits to compare */
constexpr double reduction = PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-6;

enum class Backend {
  Host,
  Core,
  Tensor
};

struct System {
  const char *name;
  Csr         A;
};

/* Symmetric and diagonally dominant on the pattern of A made symmetric by hand: every pattern below is */
Csr Definite(Csr A)
{
  A.a.resize(A.j.size());
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      const PetscInt low = std::min(r, A.j[k]), high = std::max(r, A.j[k]);

      A.a[k] = r == A.j[k] ? 1.5 + (PetscScalar)A.Length(r) : -0.5 - 0.03 * (PetscScalar)((7 * low + 3 * high) % 16);
    }
  }
  return A;
}

/* The columns of each row */
template <class Columns>
Csr FromColumns(PetscInt n, Columns columns)
{
  Csr A;

  A.m = A.n = n;
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt c : columns(r)) A.j.push_back(c);
    A.i.push_back((PetscInt)A.j.size());
  }
  return Definite(A);
}

std::vector<PetscInt> Range(PetscInt from, PetscInt to)
{
  std::vector<PetscInt> range;

  for (PetscInt c = from; c < to; c++) range.push_back(c);
  return range;
}

/* Few blocks and all of them; a lane for each row up to a warp; more slots than are fetched at once; rows of very different length; rows without entries; the least matrix */
std::vector<System> MakeSystems()
{
  std::vector<System> all;
  const auto          add = [&](const char *name, const Csr &A) { all.push_back({name, A}); };

  add("7-point", Definite(SevenPoint(12)));
  add("7-point, all blocks", Definite(SevenPoint(43)));
  add("27-point", Definite(TwentySevenPoint(9)));
  add("diagonal, all blocks", FromColumns(70001, [](PetscInt r) { return Range(r, r + 1); }));
  add("dense 100", FromColumns(100, [](PetscInt) { return Range(0, 100); }));
  add("dense 530", FromColumns(530, [](PetscInt) { return Range(0, 530); }));
  add("arrow", FromColumns(300, [](PetscInt r) { return r == 3 ? Range(0, 300) : std::vector<PetscInt>{std::min(r, (PetscInt)3), std::max(r, (PetscInt)3)}; }));
  add("empty rows", FromColumns(9000, [](PetscInt r) { return Range(r, r + 1 - r / 1000 % 2); }));
  add("one row", FromColumns(1, [](PetscInt) { return Range(0, 1); }));
  return all;
}

const std::vector<System> &Systems()
{
  static const std::vector<System> all = MakeSystems();

  return all;
}

TCCGChip Chip(PETSC_UNUSED bool cuda)
{
  TCCGChip chip = {0, 0};

#if PETSCTC_HAVE_CUDA
  if (cuda) {
    EXPECT_EQ(TCCGChipGet_CUDA(&chip), PETSC_SUCCESS);
    return chip;
  }
#endif
  EXPECT_EQ(TCCGChipGet_Host(&chip), PETSC_SUCCESS);
  return chip;
}

/* A form, destroyed with its owner */
class OwnedForm {
public:
  OwnedForm(PETSC_UNUSED bool cuda, const Csr &A, const TCCGChip &chip) : i_(cuda, A.i), j_(cuda, A.j), a_(cuda, A.a)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) {
      EXPECT_EQ(TCCGFormCreate_CUDA(A.m, A.i[A.m], i_, j_, a_, &chip, &form, &fits, nullptr), PETSC_SUCCESS);
      return;
    }
#endif
    EXPECT_EQ(TCCGFormCreate_Host(A.m, A.i[A.m], i_, j_, a_, &chip, &form, &fits, nullptr), PETSC_SUCCESS);
  }
  OwnedForm(const OwnedForm &) = delete;
  ~OwnedForm()
  {
#if PETSCTC_HAVE_CUDA
    if (form.cuda) { EXPECT_EQ(TCCGFormDestroy_CUDA(&form), PETSC_SUCCESS); }
#endif
    if (!form.cuda) { EXPECT_EQ(TCCGFormDestroy_Host(&form), PETSC_SUCCESS); }
    EXPECT_EQ(form.value, nullptr);
  }
  void Fill(const Csr &A)
  {
    Array<PetscScalar> a(form.cuda, A.a);

#if PETSCTC_HAVE_CUDA
    if (form.cuda) {
      EXPECT_EQ(TCCGFormFill_CUDA(i_, j_, a, &form, nullptr), PETSC_SUCCESS);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      return;
    }
#endif
    EXPECT_EQ(TCCGFormFill_Host(i_, j_, a, &form, nullptr), PETSC_SUCCESS);
  }
  template <class T>
  std::vector<T> Get(const T *array, size_t length) const
  {
    std::vector<T> values(length);

#if PETSCTC_HAVE_CUDA
    if (form.cuda) {
      EXPECT_EQ(cudaMemcpy(values.data(), array, length * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
      return values;
    }
#endif
    memcpy(values.data(), array, length * sizeof(T));
    return values;
  }

  TCCGForm  form = {};
  PetscBool fits = PETSC_FALSE;

private:
  Array<PetscInt>    i_, j_;
  Array<PetscScalar> a_;
};

template <class T>
void ExpectSame(const char *name, const OwnedForm &e, const OwnedForm &c, T *const TCCGForm::*array, size_t length)
{
  const std::vector<T> expected = e.Get(e.form.*array, length), computed = c.Get(c.form.*array, length);

  for (size_t k = 0; k < length; k++) ASSERT_EQ(memcmp(&expected[k], &computed[k], sizeof(T)), 0) << name << "[" << k << "] of " << length << ": " << expected[k] << " and " << computed[k];
}

void ExpectSameForm(const OwnedForm &e, const OwnedForm &c)
{
  ASSERT_EQ(e.form.m, c.form.m);
  ASSERT_EQ(e.form.nnz, c.form.nnz);
  ASSERT_EQ(e.form.blocks, c.form.blocks);
  ASSERT_EQ(e.form.lanes, c.form.lanes);
  ASSERT_EQ(e.form.slices, c.form.slices);
  ASSERT_EQ(e.form.places, c.form.places);
  for (int scaled : {0, 1}) ASSERT_EQ(e.form.shared[scaled], c.form.shared[scaled]);
  ASSERT_NO_FATAL_FAILURE(ExpectSame("block_row", e, c, &TCCGForm::block_row, e.form.blocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("block_slice", e, c, &TCCGForm::block_slice, e.form.blocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("start", e, c, &TCCGForm::start, e.form.slices + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("column", e, c, &TCCGForm::column, e.form.places));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("value", e, c, &TCCGForm::value, e.form.places));
}

class ResidentForm : public ::testing::TestWithParam<Backend> {
protected:
  bool cuda = GetParam() != Backend::Host;
  void SetUp() override { SkipUnlessUsable(cuda, false); }
};

/* The rows of the matrix come back from the form, each once, its entries in order and nothing else */
TEST_P(ResidentForm, HoldsTheMatrix)
{
  for (const System &system : Systems()) {
    SCOPED_TRACE(system.name);
    const Csr      &A = system.A;
    const OwnedForm owned(cuda, A, Chip(cuda));
    const TCCGForm &F = owned.form;

    ASSERT_TRUE(owned.fits);
    const auto row = owned.Get(F.block_row, F.blocks + 1), slice = owned.Get(F.block_slice, F.blocks + 1), start = owned.Get(F.start, F.slices + 1), column = owned.Get(F.column, F.places);
    const auto value = owned.Get(F.value, F.places);

    ASSERT_EQ(row[0], 0);
    ASSERT_EQ(row[F.blocks], A.m);
    ASSERT_EQ(start[F.slices], F.places);
    ASSERT_TRUE(F.lanes == 1 || (PetscCount)A.i[A.m] > (PetscCount)TCCG_LANE_SHARE * F.lanes / 2 * A.m);
    for (int b = 0; b < F.blocks; b++) {
      const PetscInt rows_of_slice = TCCG_LANES / F.lanes, rows = row[b + 1] - row[b];
      size_t         entries = 0, filled = 0;

      ASSERT_EQ(slice[b + 1] - slice[b], (rows + rows_of_slice - 1) / rows_of_slice);
      for (PetscInt r = row[b]; r < row[b + 1]; r++) {
        const PetscInt s = slice[b] + (r - row[b]) / rows_of_slice, lane = (r - row[b]) % rows_of_slice * F.lanes;

        for (PetscInt k = 0; k < A.Length(r); k++) {
          const PetscInt place = start[s] + TCCG_LANES * (k / F.lanes) + lane + k % F.lanes;

          ASSERT_LT(place, start[s + 1]) << "row " << r;
          ASSERT_EQ(column[place], A.j[A.i[r] + k]) << "row " << r << ", entry " << k;
          ASSERT_EQ(value[place], A.a[A.i[r] + k]) << "row " << r << ", entry " << k;
        }
        entries += A.Length(r);
      }
      for (PetscInt place = start[slice[b]]; place < start[slice[b + 1]]; place++) {
        if (column[place] >= 0) filled++;
        else ASSERT_EQ(value[place], 0.0);
      }
      ASSERT_EQ(filled, entries) << "block " << b;
    }
  }
}

/* No block has more than its part and one row */
TEST_P(ResidentForm, SharesAreEven)
{
  for (const System &system : Systems()) {
    SCOPED_TRACE(system.name);
    const Csr      &A = system.A;
    const OwnedForm owned(cuda, A, Chip(cuda));
    const auto      row     = owned.Get(owned.form.block_row, owned.form.blocks + 1);
    const auto      weight  = [&](PetscInt r) { return (double)A.i[r] + (double)TCCG_ROW_WEIGHT * r; };
    PetscInt        longest = 0;

    for (PetscInt r = 0; r < A.m; r++) longest = std::max(longest, A.Length(r));
    for (int b = 0; b < owned.form.blocks; b++) ASSERT_LE(weight(row[b + 1]) - weight(row[b]), weight(A.m) / owned.form.blocks + longest + TCCG_ROW_WEIGHT) << "block " << b;
  }
}

TEST_P(ResidentForm, SameInBothMemories)
{
  for (const System &system : Systems()) {
    SCOPED_TRACE(system.name);
    const TCCGChip  chip = Chip(cuda);
    const OwnedForm expected(false, system.A, chip), computed(cuda, system.A, chip);

    ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
  }
}

TEST_P(ResidentForm, TakesValuesAnew)
{
  for (const System &system : Systems()) {
    SCOPED_TRACE(system.name);
    Csr        changed = system.A;
    const auto chip    = Chip(cuda);

    SetValues(changed, ValueKind::Strange);
    const OwnedForm expected(cuda, changed, chip);
    OwnedForm       computed(cuda, system.A, chip);

    computed.Fill(changed);
    ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
  }
}

TEST_P(ResidentForm, SaysWhatDoesNotFit)
{
  const Csr   &A    = Systems()[1].A; /* 0.54 million nonzeros, 79,507 rows: 12 and 32 bytes, in single precision 8 and 16 */
  TCCGChip     chip = Chip(cuda);
  const size_t mean = TCCGBytesOfBlock(A.i[A.m], A.m, 0, PETSC_FALSE) / TCCG_BLOCKS;

  chip.shared = 40000; /* of each: too few for the mean block */
  ASSERT_FALSE(OwnedForm(cuda, A, chip).fits);
  chip.shared = mean; /* the mean block, but not the largest: slices have places without entries */
  if (chip.blocks == TCCG_BLOCKS) { ASSERT_FALSE(OwnedForm(cuda, A, chip).fits); }
  ASSERT_TRUE(OwnedForm(cuda, A, Chip(cuda)).fits);
  chip.blocks = 0;
  ASSERT_FALSE(OwnedForm(cuda, A, chip).fits);
}

/* ---- iterations */

/* A solve's vectors, scalars and records */
class Solve {
public:
  Solve(Backend backend, const System &system, bool preconditioned) :
    cuda_(backend != Backend::Host),
    form_(cuda_, system.A, Chip(cuda_)),
    n_(system.A.m),
    b_(RightSide(system.A)),
    diagonal_(cuda_, Diagonal(system.A)),
    x_(cuda_, Vector(n_, 0.0)),
    r_(cuda_, b_),
    z_(cuda_, preconditioned ? Product(Diagonal(system.A), b_) : b_),
    p_(cuda_, Vector(n_, NAN)),
    w_(cuda_, Vector(n_, NAN))
  {
    const PetscBool scaled = (PetscBool)preconditioned;
    PetscBool       can    = PETSC_FALSE;

    EXPECT_TRUE(form_.fits);
    EXPECT_EQ(steps()->create(&work_), PETSC_SUCCESS);
    work_.tensor = (PetscBool)(backend == Backend::Tensor);
    EXPECT_EQ(steps()->reset(&work_, nullptr), PETSC_SUCCESS);
    vectors_ = {x_, r_, p_, preconditioned ? (PetscScalar *)z_ : (PetscScalar *)r_, preconditioned ? (const PetscScalar *)diagonal_ : nullptr, preconditioned ? (PetscScalar *)z_ : (PetscScalar *)w_};
    EXPECT_EQ(steps()->project(n_, vectors_.z, vectors_.r, &work_, nullptr), PETSC_SUCCESS);
#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(TCCGResidentCreate_CUDA(&form_.form, scaled, &resident_, &can), PETSC_SUCCESS); }
#endif
    if (!cuda_) { EXPECT_EQ(TCCGResidentCreate_Host(&form_.form, scaled, &resident_, &can), PETSC_SUCCESS); }
    EXPECT_TRUE(can);
    chunk_.test    = {PETSCTC_NORM_RR, 0.0, std::numeric_limits<PetscReal>::infinity()};
    chunk_.records = work_.records;
  }
  ~Solve()
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(TCCGResidentDestroy_CUDA(&resident_), PETSC_SUCCESS); }
#endif
    if (!cuda_) { EXPECT_EQ(TCCGResidentDestroy_Host(&resident_), PETSC_SUCCESS); }
    EXPECT_EQ(steps()->destroy(&work_), PETSC_SUCCESS);
  }

  void Run(PetscInt first, PetscInt last)
  {
    PetscBool refused = PETSC_FALSE;

    chunk_.first = first;
    chunk_.last  = last;
    for (PetscInt it = first + 1; it <= last; it++) work_.records[it % PETSCTC_RECORDS].stop = PETSCTC_STOP_UNWRITTEN;
#if PETSCTC_HAVE_CUDA
    if (cuda_) { ASSERT_EQ(TCCGResident_CUDA(&form_.form, &chunk_, &vectors_, &work_, &resident_, &refused, nullptr), PETSC_SUCCESS); }
#endif
    if (!cuda_) { ASSERT_EQ(TCCGResident_Host(&form_.form, &chunk_, &vectors_, &work_, &resident_, &refused, nullptr), PETSC_SUCCESS); }
    ASSERT_FALSE(refused);
    (void)Scalars(); /* waits */
    ASSERT_EQ(TCCGResidentCheck(&resident_), PETSC_SUCCESS);
  }

  TCCGScalars Scalars()
  {
    TCCGScalars s;

    EXPECT_EQ(steps()->read(&work_, &s, nullptr), PETSC_SUCCESS);
    return s;
  }
  TCCGScalars Record(PetscInt it) const
  {
    return work_.records[it % PETSCTC_RECORDS];
  }
  void SetTest(PetscTCNorm norm, PetscReal above)
  {
    chunk_.test.norm  = norm;
    chunk_.test.above = above;
  }
  void SetFrom(PetscInt computed, PetscInt compared)
  {
    chunk_.computed_from = computed;
    chunk_.compared_from = compared;
  }
  Vector X() const
  {
    return x_.Values();
  }
  Vector R() const
  {
    return r_.Values();
  }
  Vector P() const
  {
    return p_.Values();
  }
  const Vector &B() const
  {
    return b_;
  }
  static Vector Diagonal(const Csr &A)
  {
    Vector d(A.m, 1.0);

    for (PetscInt r = 0; r < A.m; r++) {
      for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
        if (A.j[k] == r) d[r] = 1.0 / A.a[k];
      }
    }
    return d;
  }

private:
  /* Zero in rows without entries: the system has a solution */
  static Vector RightSide(const Csr &A)
  {
    Vector b = RandomVector(A.m, 5);

    for (PetscInt r = 0; r < A.m; r++) {
      if (!A.Length(r)) b[r] = 0.0;
    }
    return b;
  }
  static Vector Product(Vector a, const Vector &b)
  {
    for (size_t i = 0; i < a.size(); i++) a[i] *= b[i];
    return a;
  }
  const TCCGSteps *steps() const
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) return &TCCGSteps_CUDA;
#endif
    return &TCCGSteps_Host;
  }

  bool               cuda_;
  OwnedForm          form_;
  PetscInt           n_;
  Vector             b_;
  Array<PetscScalar> diagonal_, x_, r_, z_, p_, w_;
  TCCGWork           work_     = {};
  TCCGResidentWork   resident_ = {};
  TCCGVectors        vectors_  = {};
  TCCGChunk          chunk_    = {};
};

/* Conjugate gradients as they are in the books, in long double: a_k, z.r and r.r after iteration k + 1 */
struct Reference {
  std::vector<long double> a, zr, rr;

  Reference(const Csr &A, const Vector &b, const Vector &d, bool preconditioned, int its)
  {
    std::vector<long double> r(b.begin(), b.end()), z(A.m), p(A.m), w(A.m);
    long double              old = 0.0L;

    for (int it = 0; it <= its; it++) {
      long double now = 0.0L, square = 0.0L, pw = 0.0L;

      for (PetscInt k = 0; k < A.m; k++) {
        z[k] = preconditioned ? d[k] * r[k] : r[k];
        now += z[k] * r[k];
        square += r[k] * r[k];
      }
      if (it > 0) {
        zr.push_back(now);
        rr.push_back(square);
      }
      for (PetscInt k = 0; k < A.m; k++) p[k] = it ? z[k] + now / old * p[k] : z[k];
      for (PetscInt k = 0; k < A.m; k++) {
        w[k] = 0.0L;
        for (PetscInt e = A.i[k]; e < A.i[k + 1]; e++) w[k] += (long double)A.a[e] * p[A.j[e]];
        pw += w[k] * p[k];
      }
      a.push_back(now / pw);
      for (PetscInt k = 0; k < A.m; k++) r[k] -= a.back() * w[k];
      old = now;
    }
  }
};

bool SameScalars(const TCCGScalars &a, const TCCGScalars &b)
{
  return !memcmp(&a, &b, sizeof(a));
}

/* | b - A x | / | b | */
double RelativeResidual(const Csr &A, const Vector &x, const Vector &b)
{
  long double rr = 0.0, bb = 0.0;

  for (PetscInt r = 0; r < A.m; r++) {
    long double e = b[r];

    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) e -= (long double)A.a[k] * x[A.j[k]];
    rr += e * e;
    bb += (long double)b[r] * b[r];
  }
  return (double)std::sqrt(rr / bb);
}

class CGResident : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override { SkipUnlessUsable(GetParam() != Backend::Host, GetParam() == Backend::Tensor); }
};

TEST_P(CGResident, ChunksChangeNoBit)
{
  for (const System &system : Systems()) {
    for (bool preconditioned : {false, true}) {
      SCOPED_TRACE(std::string(system.name) + (preconditioned ? ", jacobi" : ""));
      const PetscInt cuts[] = {0, 1, 3, 4, 8, 16};
      Solve          whole(GetParam(), system, preconditioned), parts(GetParam(), system, preconditioned);

      ASSERT_NO_FATAL_FAILURE(whole.Run(0, 16));
      for (int k = 0; k < 5; k++) ASSERT_NO_FATAL_FAILURE(parts.Run(cuts[k], cuts[k + 1]));
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.X(), parts.X()));
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.R(), parts.R()));
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.P(), parts.P()));
      ASSERT_TRUE(SameScalars(whole.Scalars(), parts.Scalars()));
      for (PetscInt it = 1; it <= 16; it++) {
        if (whole.Record(it).stop == PETSCTC_STOP_UNWRITTEN) ASSERT_EQ(parts.Record(it).stop, PETSCTC_STOP_UNWRITTEN);
        else ASSERT_TRUE(SameScalars(whole.Record(it), parts.Record(it))) << "iteration " << it;
      }
    }
  }
}

TEST_P(CGResident, RunsAreAlike)
{
  for (const System &system : Systems()) {
    SCOPED_TRACE(system.name);
    Solve one(GetParam(), system, true), other(GetParam(), system, true);

    ASSERT_NO_FATAL_FAILURE(one.Run(0, PETSCTC_MAX_CALL));
    ASSERT_NO_FATAL_FAILURE(other.Run(0, PETSCTC_MAX_CALL));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(one.X(), other.X()));
    ASSERT_TRUE(SameScalars(one.Scalars(), other.Scalars()));
  }
}

/* Rounding errors grow with the iterations and with the residual's decrease: eight iterations of matrices of small condition leave all but the last digits. Where the residual is nothing but errors,
   comparison ends */
TEST_P(CGResident, IteratesAreThoseOfTheMethod)
{
  constexpr int its = 8;

  for (const System &system : Systems()) {
    for (bool preconditioned : {false, true}) {
      SCOPED_TRACE(std::string(system.name) + (preconditioned ? ", jacobi" : ""));
      Solve           computed(GetParam(), system, preconditioned);
      const Reference expected(system.A, computed.B(), Solve::Diagonal(system.A), preconditioned, its);
      const double    start = computed.Scalars().zz;

      ASSERT_NO_FATAL_FAILURE(computed.Run(0, its));
      for (int it = 1; it <= its; it++) {
        const TCCGScalars c = computed.Record(it);

        if (expected.rr[it - 1] < reduction * reduction * start) break;
        ASSERT_EQ(c.stop, PETSCTC_STOP_NONE);
        ASSERT_NEAR(c.rr / (double)expected.rr[it - 1], 1.0, 1e6 * PETSC_MACHINE_EPSILON) << "iteration " << it;
        ASSERT_NEAR(c.beta / (double)expected.zr[it - 1], 1.0, 1e6 * PETSC_MACHINE_EPSILON) << "iteration " << it;
        ASSERT_NEAR(c.a / (double)expected.a[it - 1], 1.0, 1e6 * PETSC_MACHINE_EPSILON) << "iteration " << it;
      }
    }
  }
}

TEST_P(CGResident, StopsWhereTheTestSays)
{
  int stopped = 0;

  for (const System &system : Systems()) {
    for (bool preconditioned : {false, true}) {
      SCOPED_TRACE(std::string(system.name) + (preconditioned ? ", jacobi" : ""));
      Solve           free(GetParam(), system, preconditioned), tested(GetParam(), system, preconditioned);
      const PetscReal norm = reduction * std::sqrt(free.Scalars().zz);
      PetscInt        its  = 0;

      tested.SetTest(PETSCTC_NORM_ZZ, norm);
      ASSERT_NO_FATAL_FAILURE(tested.Run(0, PETSCTC_MAX_CALL));
      while (++its < PETSCTC_MAX_CALL && tested.Record(its).stop == PETSCTC_STOP_NONE) ASSERT_GT(std::sqrt(tested.Record(its).zz), norm);
      if (its == PETSCTC_MAX_CALL) continue;
      ASSERT_EQ(tested.Record(its).stop, PETSCTC_STOP_TEST);
      ASSERT_LE(std::sqrt(tested.Record(its).zz), norm);
      ASSERT_EQ(tested.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
      ASSERT_NO_FATAL_FAILURE(free.Run(0, its));
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(free.X(), tested.X()));
      ASSERT_LE(RelativeResidual(system.A, tested.X(), tested.B()), 100 * reduction);
      ASSERT_NO_FATAL_FAILURE(tested.Run(its, its + 3)); /* stopped: nothing happens */
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(free.X(), tested.X()));
      ASSERT_EQ(tested.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
      stopped++;
    }
  }
  ASSERT_GE(stopped, 10) << "most of these systems take few iterations";
}

/* A test that is not yet made ends nothing */
TEST_P(CGResident, TestsBeginLate)
{
  Solve tested(GetParam(), Systems()[0], false);

  tested.SetTest(PETSCTC_NORM_RR, std::numeric_limits<PetscReal>::max());
  tested.SetFrom(3, 5);
  ASSERT_NO_FATAL_FAILURE(tested.Run(0, 8));
  for (PetscInt it = 1; it <= 4; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_NONE) << "iteration " << it;
  ASSERT_EQ(tested.Record(5).stop, PETSCTC_STOP_TEST);
  ASSERT_EQ(tested.Record(6).stop, PETSCTC_STOP_UNWRITTEN);
}

/* p.Ap that changes its sign, as an indefinite matrix has it here in the second iteration at the latest, or is NaN: x and r are what they were after the iteration before */
TEST_P(CGResident, StopsWithin)
{
  System indefinite = Systems()[0], nan = Systems()[0];

  indefinite.A = FromColumns(5000, [](PetscInt r) { return Range(r, r + 1); });
  for (PetscInt r = 0; r < indefinite.A.m; r++) indefinite.A.a[r] = r % 2 ? -1.0 : 3.0;
  nan.A.a[1000] = NAN;
  for (const System *system : {&indefinite, &nan}) {
    Solve    within(GetParam(), *system, false), before(GetParam(), *system, false);
    PetscInt its = 0;

    ASSERT_NO_FATAL_FAILURE(within.Run(0, 10));
    while (within.Record(its + 1).stop == PETSCTC_STOP_NONE && its < 10) its++;
    ASSERT_LT(its, system == &nan ? 1 : 3);
    ASSERT_EQ(within.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
    ASSERT_EQ(within.Scalars().stop, system == &nan ? PETSCTC_STOP_DPI_NAN : PETSCTC_STOP_DPI_SIGN);
    if (its) { ASSERT_NO_FATAL_FAILURE(before.Run(0, its)); }
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.X(), within.X()));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(before.R(), within.R()));
  }
}

std::string Name(const ::testing::TestParamInfo<Backend> &info)
{
  return info.param == Backend::Host ? "Host" : info.param == Backend::Core ? "Core" : "Tensor";
}
INSTANTIATE_TEST_SUITE_P(Backends, ResidentForm, ::testing::Values(Backend::Host, Backend::Core), Name);
INSTANTIATE_TEST_SUITE_P(Backends, CGResident, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
} // namespace
