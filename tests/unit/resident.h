/* What the tests of resident solvers share: systems, forms, solves, and what must hold for every method */
#pragma once

#include <algorithm>
#include <memory>
#include <../src/ksp/resident/ksptcstreamed.h>
#include "../precision.h"
#include "layouts.h"

/* Reductions of norms that leave some digits to compare */
constexpr double reduction = PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-6;

enum class Backend {
  Host,
  Core,
  Tensor
};

inline std::string Name(const ::testing::TestParamInfo<Backend> &info)
{
  return info.param == Backend::Host ? "Host" : info.param == Backend::Core ? "Core" : "Tensor";
}

/* Where the diagonal preconditioner stands */
enum class Jacobi {
  None,
  Left,
  Right,
  Projected /* left, and behind it the projection against the constants */
};

struct System {
  const char           *name;
  Csr                   A;
  std::vector<PetscInt> order = {}; /* of the form's rows, if they have one of their own */
};

/* Numbers that are far from each other where rows are not */
inline std::vector<PetscInt> Shuffled(PetscInt m)
{
  std::vector<PetscInt> order(m);

  for (PetscInt r = 0; r < m; r++) order[r] = r;
  for (PetscInt r = 1; r < m; r++) std::swap(order[r], order[(PetscInt)((size_t)r * 2654435761u % (size_t)(r + 1))]);
  return order;
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
  return A;
}

inline std::vector<PetscInt> Range(PetscInt from, PetscInt to)
{
  std::vector<PetscInt> range;

  for (PetscInt c = from; c < to; c++) range.push_back(c);
  return range;
}

/* Diagonally dominant; symmetric if the pattern is, which every one below is */
inline Csr Dominant(Csr A, bool symmetric)
{
  A.a.resize(A.j.size());
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      const PetscInt low = symmetric ? std::min(r, A.j[k]) : r, high = symmetric ? std::max(r, A.j[k]) : A.j[k];

      A.a[k] = r == A.j[k] ? 1.5 + (PetscScalar)A.Length(r) : -0.5 - 0.03 * (PetscScalar)((7 * low + 3 * high) % 16);
    }
  }
  return A;
}

/* A row and a column of small numbers across a band: the row is as much as several blocks have */
inline Csr BandAndDenseRow(bool symmetric)
{
  static constexpr PetscInt n = 3000, row = 36, band = 33;
  Csr                       A = Dominant(FromColumns(n,
                                                     [](PetscInt r) {
                                 std::vector<PetscInt> columns = r == row ? Range(0, n) : Range(std::max(r - band, (PetscInt)0), std::min(r + band + 1, n));

                                 if (r > row + band) columns.insert(columns.begin(), row);
                                 if (r < row - band) columns.push_back(row);
                                 return columns;
                               }),
                                         symmetric);

  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      if (r == row && A.j[k] == row) A.a[k] = 70.0;
      else if (r == row || A.j[k] == row) A.a[k] /= 64.0;
    }
  }
  return A;
}

/* Slots of a layout are constants */
inline Csr WithConstants(Csr A, PetscScalar diagonal)
{
  A.a.resize(A.j.size());
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) A.a[k] = A.j[k] == r ? diagonal : -1.0;
  }
  return A;
}

/* 7-point */
inline Csr Constants(PetscInt n)
{
  return WithConstants(SevenPoint(n), 7.0);
}

/* 7-point, so many lines of a plane, so long */
inline Csr Box(PetscInt length, PetscInt lines, PetscInt planes)
{
  const PetscInt plane = length * lines, m = plane * planes;

  return WithConstants(FromColumns(m,
                                   [=](PetscInt r) {
                                     const PetscInt        x = r % length, y = r % plane / length;
                                     std::vector<PetscInt> columns;

                                     if (r >= plane) columns.push_back(r - plane);
                                     if (y > 0) columns.push_back(r - length);
                                     if (x > 0) columns.push_back(r - 1);
                                     columns.push_back(r);
                                     if (x < length - 1) columns.push_back(r + 1);
                                     if (y < lines - 1) columns.push_back(r + length);
                                     if (r < m - plane) columns.push_back(r + plane);
                                     return columns;
                                   }),
                       7.0);
}

/* The same with other values in the rows from..to - 1, symmetric if it is that there */
inline Csr ConstantsBut(PetscInt n, PetscInt from, PetscInt to)
{
  Csr       A = Constants(n);
  const Csr D = Dominant(Constants(n), true);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      if ((r >= from && r < to) || (A.j[k] >= from && A.j[k] < to)) A.a[k] = A.j[k] == r ? 9.0 : D.a[k];
    }
  }
  return A;
}

/* Two entries far from all others, in rows and columns that are each other's */
inline Csr WithFarPair(Csr A)
{
  const PetscInt low = 5, high = A.m - 3;
  Csr            B;

  B.m = A.m;
  B.n = A.n;
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      if (r == high && k == A.i[r]) {
        B.j.push_back(low);
        B.a.push_back(-0.5);
      }
      B.j.push_back(A.j[k]);
      B.a.push_back(A.a[k]);
    }
    if (r == low) {
      B.j.push_back(high);
      B.a.push_back(-0.5);
    }
    B.i.push_back((PetscInt)B.j.size());
  }
  return B;
}

/* 7-point, constants of two materials that meet in the middle of each line */
inline Csr Materials(PetscInt n)
{
  Csr A = SevenPoint(n);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      const bool one = r % n < n / 2, both = one != (A.j[k] % n < n / 2);

      A.a[k] = A.j[k] == r ? (one ? 7.0 : 15.0) : (both ? -1.5 : (one ? -1.0 : -2.0));
    }
  }
  return A;
}

/* 5-point with lines that are so long */
inline Csr LongLines(PetscInt m, PetscInt line)
{
  Csr A = FromColumns(m, [m, line](PetscInt r) {
    std::vector<PetscInt> columns;

    for (PetscInt c : {r - line, r - 1, r, r + 1, r + line}) {
      if (c >= 0 && c < m) columns.push_back(c);
    }
    return columns;
  });

  A.a.resize(A.j.size());
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) A.a[k] = A.j[k] == r ? 5.0 : -1.0;
  }
  return A;
}

/* Grids for windows: of one plane, of planes, whose layouts have slices of two and four row groups, with slices whose columns are all a block's own, with diagonals, without room for x; of two materials, with values that are no constants of slots, with a last slice of one row; and then those that are none, for a few values and for two columns */
struct WindowedSystem {
  System system;
  bool   windowed;
};

inline std::vector<WindowedSystem> WindowedSystems()
{
  if (SmallSystems())
    return {
      {{"one plane", LongLines(20003, 200)},                          true },
      {{"planes", Constants(32)},                                     true },
      {{"two materials", Materials(32)},                              true },
      {{"values of all entries", Dominant(SevenPoint(32), true)},     true },
      {{"two columns that are far away", WithFarPair(Constants(32))}, false}
    };
  return {
    {{"one plane", LongLines(200003, 700)},                          true },
    {{"planes", Constants(47)},                                      true },
    {{"planes, inner slices", Constants(80)},                        true },
    {{"diagonals", WithConstants(TwentySevenPoint(43), 27.0)},       true },
    {{"long lines, x in device memory", Box(700, 14, 100)},          true },
    {{"two materials", Materials(47)},                               true },
    {{"other values in a few rows", ConstantsBut(47, 20000, 20003)}, false},
    {{"values of all entries", Dominant(SevenPoint(80), true)},      true },
    {{"the last slice has one row", Constants(65)},                  true },
    {{"two columns that are far away", WithFarPair(Constants(80))},  false}
  };
}

/* Few blocks and all of them; rows in an order of their own; a lane for each row up to a warp; more slots than are fetched at once; rows of very different length; blocks without rows and
   more ghosts than are fetched at once; rows without entries; the least matrix */
inline std::vector<System> MakeSystems(bool symmetric)
{
  const bool          small = SmallSystems();
  std::vector<System> all;
  const auto          add = [&](const char *name, const Csr &A) { all.push_back({name, Dominant(A, symmetric)}); };

  add("7-point", SevenPoint(12));
  add(small ? "7-point of odd size" : "7-point, all blocks", SevenPoint(small ? 13 : 43));
  add("27-point", TwentySevenPoint(small ? 5 : 9));
  if (!small) add("diagonal, all blocks", FromColumns(70001, [](PetscInt r) { return Range(r, r + 1); }));
  add("dense 100", FromColumns(100, [](PetscInt) { return Range(0, 100); }));
  if (!small) add("dense 530", FromColumns(530, [](PetscInt) { return Range(0, 530); }));
  add("arrow", FromColumns(300, [](PetscInt r) { return r == 3 ? Range(0, 300) : std::vector<PetscInt>{std::min(r, (PetscInt)3), std::max(r, (PetscInt)3)}; }));
  all.push_back({"constants", Constants(14)});
  all.push_back({"constants but for a few rows", ConstantsBut(20, 5001, 5003)});
  all.push_back({"constants in one half", ConstantsBut(20, 3900, 8000)});
  all.push_back({"band and a dense row", BandAndDenseRow(symmetric)});
  add("empty rows", FromColumns(9000, [](PetscInt r) { return Range(r, r + 1 - r / 1000 % 2); }));
  add("one row", FromColumns(1, [](PetscInt) { return Range(0, 1); }));
  for (const System &system : {all[0], all[2], all[all.size() - 2]}) all.push_back({"rows in another order", system.A, Shuffled(system.A.m)});
  return all;
}

inline const std::vector<System> &Systems(bool symmetric)
{
  static const std::vector<System> all[] = {MakeSystems(false), MakeSystems(true)};

  return all[symmetric ? 1 : 0];
}

/* A form, destroyed with its owner */
class OwnedForm {
public:
  OwnedForm(bool cuda, const Csr &A, KSPTCVectors vectors, const KSPTCChip &chip, const std::vector<PetscInt> &order = {}) : OwnedForm(cuda, A, vectors, chip, KSPTCOrder{nullptr, 0, 0}, order) { }
  /* grid: unless there is an order */
  OwnedForm(bool cuda, const Csr &A, KSPTCVectors vectors, const KSPTCChip &chip, KSPTCOrder grid, const std::vector<PetscInt> &order = {}) : i_(cuda, A.i), j_(cuda, A.j), a_(cuda, A.a), order_(cuda, order)
  {
    if (!order.empty()) grid.rows = order_;
    Create(cuda, A, vectors, chip, &grid);
    Release(cuda, &grid);
  }
  /* The order stays, for another form, until it is released */
  OwnedForm(bool cuda, const Csr &A, KSPTCVectors vectors, const KSPTCChip &chip, KSPTCOrder *order) : i_(cuda, A.i), j_(cuda, A.j), a_(cuda, A.a), order_(cuda, {}) { Create(cuda, A, vectors, chip, order); }
  /* Takes one that is there */
  explicit OwnedForm(const KSPTCForm *made) : form(*made), fits(PETSC_TRUE), i_(made->cuda, {}), j_(made->cuda, {}), a_(made->cuda, {}), order_(made->cuda, {}) { }
  static void Release(PETSC_UNUSED bool cuda, KSPTCOrder *order)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) {
      EXPECT_EQ(KSPTCOrderRelease_CUDA(order), PETSC_SUCCESS);
      return;
    }
#endif
    EXPECT_EQ(KSPTCOrderRelease_Host(order), PETSC_SUCCESS);
  }
  OwnedForm(const OwnedForm &) = delete;
  ~OwnedForm()
  {
#if PETSCTC_HAVE_CUDA
    if (form.cuda) { EXPECT_EQ(KSPTCFormDestroy_CUDA(&form), PETSC_SUCCESS); }
#endif
    if (!form.cuda) { EXPECT_EQ(KSPTCFormDestroy_Host(&form), PETSC_SUCCESS); }
    EXPECT_EQ(form.value, nullptr);
  }
  bool Fill(const Csr &A)
  {
    Array<PetscScalar> a(form.cuda, A.a);
    PetscBool          can = PETSC_FALSE;

#if PETSCTC_HAVE_CUDA
    if (form.cuda) {
      EXPECT_EQ(KSPTCFormFill_CUDA(i_, a, &form, &can, nullptr), PETSC_SUCCESS);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      return can;
    }
#endif
    EXPECT_EQ(KSPTCFormFill_Host(i_, a, &form, &can, nullptr), PETSC_SUCCESS);
    return can;
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
    std::copy(array, array + length, values.begin()); /* a form without ghosts has no array of them */
    return values;
  }

  KSPTCForm form = {};
  PetscBool fits = PETSC_FALSE;

private:
  void Create(PETSC_UNUSED bool cuda, const Csr &A, KSPTCVectors vectors, const KSPTCChip &chip, KSPTCOrder *order)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) {
      EXPECT_EQ(KSPTCFormCreate_CUDA(A.m, A.i[A.m], i_, j_, a_, order, vectors, &chip, &form, &fits, nullptr), PETSC_SUCCESS);
      return;
    }
#endif
    EXPECT_EQ(KSPTCFormCreate_Host(A.m, A.i[A.m], i_, j_, a_, order, vectors, &chip, &form, &fits, nullptr), PETSC_SUCCESS);
  }

  Array<PetscInt>    i_, j_;
  Array<PetscScalar> a_;
  Array<PetscInt>    order_;
};

/* The diagonal that makes rows add up to 0 */
inline Csr Singular(Csr A)
{
  for (PetscInt r = 0; r < A.m; r++) {
    PetscScalar others = 0.0;

    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) others += A.j[k] == r ? 0.0 : A.a[k];
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) A.a[k] = A.j[k] == r ? -others : A.a[k];
  }
  return A;
}

inline std::vector<System> MakeSingularSystems()
{
  const bool          small = SmallSystems();
  std::vector<System> all;
  const auto          add = [&](const char *name, const Csr &A) { all.push_back({name, Singular(Dominant(A, true))}); };

  add("7-point", SevenPoint(12));
  add(small ? "7-point of odd size" : "7-point, all blocks", SevenPoint(small ? 13 : 43));
  add("27-point", TwentySevenPoint(small ? 5 : 9));
  add("dense 100", FromColumns(100, [](PetscInt) { return Range(0, 100); }));
  return all;
}

/* Symmetric, with the constants for a null space */
inline const std::vector<System> &SingularSystems()
{
  static const std::vector<System> all = MakeSingularSystems();

  return all;
}

/* The inverse diagonal, 1 where there is none */
inline Vector Diagonal(const Csr &A)
{
  Vector d(A.m, 1.0);

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      if (A.j[k] == r) d[r] = 1.0 / A.a[k];
    }
  }
  return d;
}

/* Zero in rows without entries: the system has a solution */
inline Vector RightSide(const Csr &A)
{
  Vector b = RandomVector(A.m, 5);

  for (PetscInt r = 0; r < A.m; r++) {
    if (!A.Length(r)) b[r] = 0.0;
  }
  return b;
}

inline Vector Product(Vector a, const Vector &b)
{
  for (size_t i = 0; i < a.size(); i++) a[i] *= b[i];
  return a;
}

/* The matrix of a solve: its resident form */
template <class Method>
class HeldMatrix {
public:
  HeldMatrix(bool cuda, const System &system) : HeldMatrix(cuda, system, Method::chip(cuda)) { }
  HeldMatrix(bool cuda, const System &system, const KSPTCChip &chip) : form_(cuda, system.A, Method::vectors(false), chip, system.order) { EXPECT_TRUE(form_.fits); }
  const KSPTCForm *get() const { return &form_.form; }

protected:
  OwnedForm form_;
};

/* The same in blocks that have room for so many percent of it, or for the vectors alone */
template <class Method, int percent>
class PartlyHeldMatrix : public HeldMatrix<Method> {
public:
  PartlyHeldMatrix(bool cuda, const System &system) : HeldMatrix<Method>(cuda, system)
  {
    KSPTCForm &form = this->form_.form;

    form.limit = form.shared[form.vectors.rows] * percent / 100;
  }
};

/* The same of a form for blocks that have no room for more, which has a dictionary where values are few */
template <class Method>
class CodedMatrix : public HeldMatrix<Method> {
public:
  CodedMatrix(bool cuda, const System &system) : HeldMatrix<Method>(cuda, system, Chip(cuda, system)) { }

private:
  static KSPTCChip Chip(bool cuda, const System &system)
  {
    const HeldMatrix<Method> whole(cuda, system);
    const KSPTCForm         &form  = *whole.get();
    const size_t             least = form.least[form.vectors.rows], all = form.shared[form.vectors.rows];

    if (form.places > KSPTC_PADDING * form.nnz) return Method::chip(cuda); /* it would be refused */
    return {Method::chip(cuda).blocks, least + KSPTC_DICT * sizeof(PetscScalar) + (all - least) / 4};
  }
};

template <class Method>
struct Coded : Method {
  using Matrix = CodedMatrix<Method>;
};

template <class Method, int percent>
struct InPart : Method {
  using Matrix = PartlyHeldMatrix<Method, percent>;
};

/* Its layout, with one, two or four rows to a lane: the last for constants */
class StreamedMatrix {
public:
  StreamedMatrix(bool cuda, const System &system) : layout_(cuda ? Made::OnDevice : Made::OnHost, system.A, {PETSC_INT_MAX, PETSC_INT_MAX, 1024, 1 << system.A.m % 3, 1, AIJTC_COMPRESS_BOTH, 64, 0}) { EXPECT_TRUE(KSPTCStreams(&layout_.layout)); }
  const AIJTCLayout *get() const { return &layout_.layout; }

private:
  OwnedLayout layout_;
};

/* What the other vectors of a solve are at first */
template <class Method>
auto WorkOf(const Csr &, const Vector &b, const Vector &d, Jacobi side) -> decltype(Method::work(b, d, side))
{
  return Method::work(b, d, side);
}
template <class Method>
auto WorkOf(const Csr &A, const Vector &b, const Vector &d, Jacobi side) -> decltype(Method::work(A, b, d, side))
{
  return Method::work(A, b, d, side);
}

/* A solve's vectors, scalars and records. A method has

     Steps, Work, Scalars, Vectors                  its types
     Matrix                                         HeldMatrix, with the method's vectors(scaled) of a block and chip() of a backend, or StreamedMatrix
     create(), run(), steps()                       of a backend
     residual(b, d, side)                           the first one
     work(b, d, side)                               what the other vectors are at first; or work(A, b, d, side) where products are among them
     bind(x, r, d, work, side)                      the vectors of a call
     start(steps, n, v, w)                          sums of the first residual
     step(steps, s, n, v, first, w, mult)           an iteration by the steps; mult(x, y, scaled): y <- A x, or A D x
*/
template <class Method>
class Solve {
public:
  using Scalars = typename Method::Scalars;

  Solve(Backend backend, const System &system, Jacobi side) : Solve(backend, system, side, RightSide(system.A)) { }
  Solve(Backend backend, const System &system, Jacobi side, const Vector &b) : Solve(backend, system, side, b, Diagonal(system.A)) { }
  Solve(Backend backend, const System &system, Jacobi side, const Vector &b, const Vector &d) :
    cuda_(backend != Backend::Host), scaled_(side != Jacobi::None), matrix_(cuda_, system), n_(system.A.m), b_(b), diagonal_(cuda_, d), x_(cuda_, Vector(n_, 0.0)), r_(cuda_, Method::residual(b_, d, side))
  {
    std::vector<PetscScalar *> work;

    for (const Vector &v : WorkOf<Method>(system.A, b_, d, side)) {
      others_.emplace_back(new Array<PetscScalar>(cuda_, v));
      work.push_back(*others_.back());
    }
    vectors_ = Method::bind(x_, r_, scaled_ ? (const PetscScalar *)diagonal_ : nullptr, work, side);
    EXPECT_EQ(steps()->create(&work_), PETSC_SUCCESS);
    work_.tensor = (PetscBool)(backend == Backend::Tensor);
    EXPECT_EQ(steps()->reset(&work_, nullptr), PETSC_SUCCESS);
    EXPECT_EQ(Method::start(steps(), n_, vectors_, &work_), PETSC_SUCCESS);
    CreateWork();
    chunk_.test    = {PETSCTC_NORM_RR, 0.0, std::numeric_limits<PetscReal>::infinity()};
    chunk_.records = work_.records;
  }
  ~Solve()
  {
    DestroyWork();
    EXPECT_EQ(steps()->destroy(&work_), PETSC_SUCCESS);
  }

  void Run(PetscInt first, PetscInt last)
  {
    ASSERT_NO_FATAL_FAILURE(Call(first, last));
    ASSERT_EQ(KSPTCResidentCheck(&resident_), PETSC_SUCCESS);
  }
  /* A call that goes wrong, and one behind it. The work is a new one then */
  void RunInVain(KSPTCFault fault, PetscInt first, PetscInt last)
  {
    resident_.fault    = fault;
    resident_.fault_in = 1;
    resident_.patience = 2e-3;
    ASSERT_NO_FATAL_FAILURE(Call(first, last));
    ASSERT_TRUE(KSPTCHasGivenUp(&resident_));
    ASSERT_GE(resident_.late->iteration, first);
    ASSERT_LE(resident_.late->iteration, last);
    ASSERT_NO_FATAL_FAILURE(Call(last, last + 3));
    for (PetscInt it = first + 1; it <= last + 3; it++) ASSERT_EQ(Record(it).stop, PETSCTC_STOP_UNWRITTEN) << "iteration " << it;
    DestroyWork();
    CreateWork();
  }

  /* By the steps, which go on from what a call has left */
  void RunSteps(const Csr &A, PetscInt first, PetscInt last)
  {
    const Vector d    = diagonal_.Values();
    const auto   mult = [&](const PetscScalar *from, PetscScalar *to, bool scaled) {
      Vector x(n_), y(n_, 0.0);

      Copy(x.data(), from);
      if (scaled) x = Product(x, d);
      for (PetscInt r = 0; r < n_; r++) {
        for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) y[r] += A.a[k] * x[A.j[k]];
      }
      Copy(to, y.data());
    };

    for (PetscInt it = first; it < last; it++) ASSERT_NO_FATAL_FAILURE(Method::step(*steps(), Current(), n_, vectors_, it == 0, &work_, mult));
  }

  /* The scalars */
  Scalars Current()
  {
    Scalars s;

    EXPECT_EQ(steps()->read(&work_, &s, nullptr), PETSC_SUCCESS);
    return s;
  }
  void SetScalars(const Scalars &s)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) {
      EXPECT_EQ(cudaMemcpy(work_.s, &s, sizeof(s), cudaMemcpyHostToDevice), cudaSuccess);
      return;
    }
#endif
    *work_.s = s;
  }
  Scalars Record(PetscInt it) const
  {
    return work_.records[it % PETSCTC_RECORDS];
  }
  void SetTest(PetscTCNorm norm, PetscReal above)
  {
    chunk_.test.norm  = norm;
    chunk_.test.above = above;
  }
  /* By the scalars, whatever the test says */
  void GiveBound(PetscReal above)
  {
    Scalars s = Current();

    chunk_.test.given = PETSC_TRUE;
    s.above           = above;
    s.below           = HUGE_VAL;
    SetScalars(s);
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
  const auto *Matrix() const
  {
    return matrix_.get();
  }
  /* Of those that work() has made */
  Vector Other(int k) const
  {
    return others_[k]->Values();
  }
  int Others() const
  {
    return (int)others_.size();
  }
  const Vector &B() const
  {
    return b_;
  }
  const KSPTCResidentWork &ResidentWork() const
  {
    return resident_;
  }

private:
  const typename Method::Steps *steps() const
  {
    return Method::steps(cuda_);
  }
  void CreateWork()
  {
    PetscBool can = PETSC_FALSE;

    EXPECT_EQ(Method::create(cuda_, matrix_.get(), (PetscBool)scaled_, &resident_, &can), PETSC_SUCCESS);
    EXPECT_TRUE(can);
  }
  void DestroyWork()
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(KSPTCResidentDestroy_CUDA(&resident_), PETSC_SUCCESS); }
#endif
    if (!cuda_) { EXPECT_EQ(KSPTCResidentDestroy_Host(&resident_), PETSC_SUCCESS); }
  }
  /* In either direction */
  void Copy(PetscScalar *to, const PetscScalar *from) const
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) { ASSERT_EQ(cudaMemcpy(to, from, n_ * sizeof(*to), cudaMemcpyDefault), cudaSuccess); }
#endif
    if (!cuda_) std::copy_n(from, n_, to);
  }
  void Call(PetscInt first, PetscInt last)
  {
    PetscBool refused = PETSC_FALSE;

    chunk_.first = first;
    chunk_.last  = last;
    for (PetscInt it = first + 1; it <= last; it++) work_.records[it % PETSCTC_RECORDS].stop = PETSCTC_STOP_UNWRITTEN;
    ASSERT_EQ(Method::run(cuda_, matrix_.get(), &chunk_, &vectors_, &work_, &resident_, &refused), PETSC_SUCCESS);
    ASSERT_FALSE(refused);
    (void)Current(); /* waits */
  }

  bool                                             cuda_, scaled_; /* with a diagonal preconditioner */
  typename Method::Matrix                          matrix_;
  PetscInt                                         n_;
  Vector                                           b_;
  Array<PetscScalar>                               diagonal_, x_, r_;
  std::vector<std::unique_ptr<Array<PetscScalar>>> others_;
  typename Method::Work                            work_     = {};
  KSPTCResidentWork                                resident_ = {};
  typename Method::Vectors                         vectors_  = {};
  KSPTCChunk<Scalars>                              chunk_    = {};
};

template <class Scalars>
bool SameScalars(const Scalars &a, const Scalars &b)
{
  return !memcmp(&a, &b, sizeof(a));
}

/* | b - A x | / | b | */
inline double RelativeResidual(const Csr &A, const Vector &x, const Vector &b)
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

/* ---- what holds for every method; it also has

     systems()            of equations; symmetric: are they?
     sides()              of its preconditioner
     norm, square(s)      of its test, and which scalar that is the root of
     carried              so many of the vectors that work() makes are carried from one call to the next: the first ones
     scratch              a bit for each of those that say nothing between two iterations
*/

/* check(system, side) */
template <class Method, class Check>
void ForAll(Check check)
{
  for (const System &system : Method::systems()) {
    for (Jacobi side : Method::sides()) {
      SCOPED_TRACE(std::string(system.name) + (side == Jacobi::None ? "" : side == Jacobi::Left ? ", jacobi" : side == Jacobi::Right ? ", jacobi from the right" : ", jacobi and a projection"));
      ASSERT_NO_FATAL_FAILURE(check(system, side));
    }
  }
}

template <class Method, class Other>
void ExpectSameSolve(Solve<Method> &a, Solve<Other> &b)
{
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(a.X(), b.X()));
  ASSERT_NO_FATAL_FAILURE(ExpectSameBits(a.R(), b.R()));
  for (int k = 0; k < Method::carried; k++) ASSERT_NO_FATAL_FAILURE(ExpectSameBits(a.Other(k), b.Other(k)));
  ASSERT_TRUE(SameScalars(a.Current(), b.Current()));
}

template <class Method>
void ExpectChunksChangeNoBit(Backend backend)
{
  ForAll<Method>([backend](const System &system, Jacobi side) {
    const PetscInt cuts[] = {0, 1, 3, 4, 8, 16};
    Solve<Method>  whole(backend, system, side), parts(backend, system, side);

    ASSERT_NO_FATAL_FAILURE(whole.Run(0, 16));
    for (int k = 0; k < 5; k++) ASSERT_NO_FATAL_FAILURE(parts.Run(cuts[k], cuts[k + 1]));
    ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, parts));
    for (PetscInt it = 1; it <= 16; it++) {
      if (whole.Record(it).stop == PETSCTC_STOP_UNWRITTEN) ASSERT_EQ(parts.Record(it).stop, PETSCTC_STOP_UNWRITTEN);
      else ASSERT_TRUE(SameScalars(whole.Record(it), parts.Record(it))) << "iteration " << it;
    }
  });
}

template <class Method>
void ExpectRunsAlike(Backend backend)
{
  ForAll<Method>([backend](const System &system, Jacobi side) {
    Solve<Method> one(backend, system, side), other(backend, system, side);

    ASSERT_NO_FATAL_FAILURE(one.Run(0, PETSCTC_MAX_CALL));
    ASSERT_NO_FATAL_FAILURE(other.Run(0, PETSCTC_MAX_CALL));
    ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(one, other));
  });
}

/* Where a slice of the matrix is changes no bit. parts: of the solves, so many have a block without room for all */
template <class Method, int percent>
void ExpectSameInPart(Backend backend, int &parts)
{
  ForAll<Method>([backend, &parts](const System &system, Jacobi side) {
    Solve<Method>                  whole(backend, system, side);
    Solve<InPart<Method, percent>> part(backend, system, side);

    ASSERT_FALSE(whole.ResidentWork().in_part);
    if (percent == 0) { ASSERT_TRUE(part.ResidentWork().in_part); }
    if (percent > 0 && part.ResidentWork().in_part) parts++;
    ASSERT_NO_FATAL_FAILURE(whole.Run(0, 12));
    ASSERT_NO_FATAL_FAILURE(part.Run(0, 12));
    ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, part));
  });
}

/* Nor does a dictionary */
template <class Method>
void ExpectDictionariesChangeNoBit(Backend backend)
{
  int coded = 0;

  ForAll<Method>([backend, &coded](const System &system, Jacobi side) {
    Solve<Method>        values(backend, system, side);
    Solve<Coded<Method>> numbers(backend, system, side);

    ASSERT_FALSE(values.Matrix()->coded);
    if (numbers.Matrix()->coded) coded++;
    ASSERT_NO_FATAL_FAILURE(values.Run(0, 12));
    ASSERT_NO_FATAL_FAILURE(numbers.Run(0, 12));
    ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(values, numbers));
  });
  ASSERT_GE(coded, 3);
}

template <class Method>
void ExpectPartsChangeNoBit(Backend backend)
{
  int parts = 0;

  ASSERT_NO_FATAL_FAILURE(ExpectDictionariesChangeNoBit<Method>(backend));
  if (backend == Backend::Host) return; /* one memory */
  ASSERT_NO_FATAL_FAILURE((ExpectSameInPart<Method, 0>(backend, parts)));
  ASSERT_NO_FATAL_FAILURE((ExpectSameInPart<Method, 60>(backend, parts)));
  ASSERT_NO_FATAL_FAILURE((ExpectSameInPart<Method, 90>(backend, parts)));
  ASSERT_GE(parts, 10);
}

/* least: of the solves, so many end by the test */
template <class Method>
void ExpectStopsWhereTheTestSays(Backend backend, int least)
{
  int stopped = 0;

  ForAll<Method>([backend, &stopped](const System &system, Jacobi side) {
    const auto      norm_of = [](const typename Method::Scalars &s) { return std::sqrt(std::fabs(Method::square(s))); };
    Solve<Method>   free(backend, system, side), tested(backend, system, side);
    const PetscReal norm = reduction * norm_of(free.Current());
    PetscInt        its  = 0;

    tested.SetTest(Method::norm, norm);
    ASSERT_NO_FATAL_FAILURE(tested.Run(0, PETSCTC_MAX_CALL));
    while (++its < PETSCTC_MAX_CALL && tested.Record(its).stop == PETSCTC_STOP_NONE) ASSERT_GT(norm_of(tested.Record(its)), norm);
    if (tested.Record(its).stop != PETSCTC_STOP_TEST) return; /* too few iterations, or an exact solution within one */
    ASSERT_LE(norm_of(tested.Record(its)), norm);
    ASSERT_EQ(tested.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
    ASSERT_NO_FATAL_FAILURE(free.Run(0, its));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(free.X(), tested.X()));
    ASSERT_LE(RelativeResidual(system.A, side == Jacobi::Right ? Product(tested.X(), Diagonal(system.A)) : tested.X(), tested.B()), 100 * reduction);
    ASSERT_NO_FATAL_FAILURE(tested.Run(its, its + 3)); /* stopped: nothing happens */
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(free.X(), tested.X()));
    ASSERT_EQ(tested.Record(its + 1).stop, PETSCTC_STOP_UNWRITTEN);
    stopped++;
  });
  ASSERT_GE(stopped, least);
}

/* A test that is not yet made ends nothing */
template <class Method>
void ExpectTestsBeginLate(Backend backend)
{
  for (Jacobi side : Method::sides()) {
    SCOPED_TRACE("preconditioner " + std::to_string((int)side));
    Solve<Method> tested(backend, Systems(Method::symmetric)[0], side);

    tested.SetTest(PETSCTC_NORM_RR, std::numeric_limits<PetscReal>::max());
    tested.SetFrom(3, 5);
    ASSERT_NO_FATAL_FAILURE(tested.Run(0, 8));
    for (PetscInt it = 1; it <= 4; it++) ASSERT_EQ(tested.Record(it).stop, PETSCTC_STOP_NONE) << "iteration " << it;
    ASSERT_EQ(tested.Record(5).stop, PETSCTC_STOP_TEST);
    ASSERT_EQ(tested.Record(6).stop, PETSCTC_STOP_UNWRITTEN);
  }
}

/* More rows than the chip has room for with all vectors of a solver: constants, of which blocks keep the slots, and other values */
inline std::vector<System> LargeSystems()
{
  return {
    {"large, constants",        Constants(110)},
    { "large, other values", Dominant(SevenPoint(110),          true)}
  };
}

/* A call in which a block gives up, and the one behind it, leave everything as it was, to the bit */
template <class Method>
void ExpectGivesUp(Backend backend, const System &system, KSPTCFault fault, PetscInt first)
{
  const PetscInt last = first + 5;

  for (Jacobi side : Method::sides()) {
    SCOPED_TRACE(std::string(system.name) + (fault == KSPTC_FAULT_ABSENT ? ", absent" : ", late") + ", preconditioner " + std::to_string((int)side));
    Solve<Method> whole(backend, system, side), late(backend, system, side);

    if (first) {
      ASSERT_NO_FATAL_FAILURE(whole.Run(0, first));
      ASSERT_NO_FATAL_FAILURE(late.Run(0, first));
    }
    ASSERT_NO_FATAL_FAILURE(late.RunInVain(fault, first, last));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.X(), late.X()));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.R(), late.R()));
    for (int k = 0; k < whole.Others(); k++) {
      if (Method::scratch >> k & 1) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(whole.Other(k), late.Other(k))) << "vector " << k;
    }
    ASSERT_TRUE(SameScalars(whole.Current(), late.Current()));
    ASSERT_NO_FATAL_FAILURE(whole.Run(first, last));
    ASSERT_NO_FATAL_FAILURE(late.Run(first, last));
    ASSERT_NO_FATAL_FAILURE(ExpectSameSolve(whole, late));
  }
}

template <class Method>
void ExpectGivesUpAtOnceAndLate(Backend backend)
{
  for (int k = 0; k < 2; k++) { /* of several blocks */
    for (KSPTCFault fault : {KSPTC_FAULT_ABSENT, KSPTC_FAULT_LATE}) {
      for (PetscInt first : {0, 4}) ASSERT_NO_FATAL_FAILURE(ExpectGivesUp<Method>(backend, Systems(Method::symmetric)[k], fault, first));
    }
  }
}

/* | x - y | / | y | */
inline double RelativeDistance(const Vector &x, const Vector &y)
{
  long double difference = 0.0L, square = 0.0L;

  for (size_t k = 0; k < y.size(); k++) {
    difference += ((long double)x[k] - y[k]) * ((long double)x[k] - y[k]);
    square += (long double)y[k] * y[k];
  }
  return (double)std::sqrt(difference / square);
}

/* What a call leaves is what the steps would have left, up to rounding: they go on from there */
template <class Method>
void ExpectStepsGoOn(Backend backend)
{
  for (int k = 0; k < 2; k++) {
    const System &system = Method::systems()[k];

    for (Jacobi side : Method::sides()) {
      SCOPED_TRACE(std::string(system.name) + ", preconditioner " + std::to_string((int)side));
      Solve<Method> whole(backend, system, side), both(backend, system, side);

      ASSERT_NO_FATAL_FAILURE(whole.Run(0, 8));
      ASSERT_NO_FATAL_FAILURE(both.Run(0, 4));
      ASSERT_NO_FATAL_FAILURE(both.RunSteps(system.A, 4, 8));
      ASSERT_LE(RelativeDistance(both.X(), whole.X()), Tolerance(1e-11));
      if (PetscDefined(USE_REAL_DOUBLE)) { ASSERT_LE(RelativeDistance(both.R(), whole.R()), 1e-7); } /* in single precision r may be nothing but rounding by then */
    }
  }
}

/* Where iterations write device memory, of vectors for which the chip has no room, too */
template <class Method>
void ExpectGivesUpWithVectorsInMemory(Backend backend)
{
  std::vector<System> systems = SmallSystems() ? std::vector<System>{{"vectors in device memory", Constants(36)}} : LargeSystems();

  for (const WindowedSystem &of : WindowedSystems()) systems.push_back(of.system);
  for (const System &system : systems) ASSERT_NO_FATAL_FAILURE(ExpectGivesUp<Method>(backend, system, KSPTC_FAULT_LATE, 4));
}

/* A test of a method twice, with the matrix on the chip and read from its layout: the body is that of a template of Method, with the backend */
#define RESIDENT_TEST(Held, HeldMethod, Streamed, StreamedMethod, Test) \
  template <class Method> \
  void Try##Test(Backend backend); \
  TEST_P(Held, Test) \
  { \
    Try##Test<HeldMethod>(GetParam()); \
  } \
  TEST_P(Streamed, Test) \
  { \
    Try##Test<StreamedMethod>(GetParam()); \
  } \
  template <class Method> \
  void Try##Test(Backend backend)

class ResidentTest : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override { SkipUnlessUsable(GetParam() != Backend::Host, GetParam() == Backend::Tensor); }
};
