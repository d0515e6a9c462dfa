/* Iterations of BiCGSTAB in one call: chunks change no bit, results are those of the method in long double, a solve stops where its test says or a sum is zero */
#include <petsctc/private/tcbcgsresident.h>
#include "resident.h"

namespace
{
struct BCGS {
  using Steps   = TCBCGSSteps;
  using Work    = TCBCGSWork;
  using Scalars = TCBCGSScalars;
  using Vectors = TCBCGSVectors;

  static constexpr bool        symmetric = false;
  static constexpr PetscTCNorm norm      = PETSCTC_NORM_RR;
  static constexpr int         carried   = 2;

  static std::vector<Jacobi> sides()
  {
    return {Jacobi::None, Jacobi::Left, Jacobi::Right};
  }
  static PetscReal square(const Scalars &s)
  {
    return s.rr;
  }
  static int vectors(bool scaled)
  {
    return TCBCGSVectorsOfBlock(scaled);
  }
  static KSPTCChip chip(PETSC_UNUSED bool cuda)
  {
    KSPTCChip chip = {0, 0};

#if PETSCTC_HAVE_CUDA
    if (cuda) {
      EXPECT_EQ(TCBCGSChipGet_CUDA(&chip), PETSC_SUCCESS);
      return chip;
    }
#endif
    EXPECT_EQ(KSPTCChipGet_Host(&chip), PETSC_SUCCESS);
    return chip;
  }
  static const Steps *steps(PETSC_UNUSED bool cuda)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return &TCBCGSSteps_CUDA;
#endif
    return &TCBCGSSteps_Host;
  }
  static PetscErrorCode create(PETSC_UNUSED bool cuda, const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSResidentCreate_CUDA(form, scaled, work, can);
#endif
    return TCBCGSResidentCreate_Host(form, scaled, work, can);
  }
  static PetscErrorCode run(PETSC_UNUSED bool cuda, const KSPTCForm *form, const KSPTCChunk<Scalars> *chunk, const Vectors *v, Work *steps, KSPTCResidentWork *work)
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) return TCBCGSResident_CUDA(form, chunk, v, steps, work, nullptr);
#endif
    return TCBCGSResident_Host(form, chunk, v, steps, work, nullptr);
  }
  static Vector residual(const Vector &b, const Vector &d, Jacobi side)
  {
    return side == Jacobi::Left ? Product(d, b) : b;
  }
  /* p, v, s, t, rp */
  static std::vector<Vector> work(const Vector &b, const Vector &, Jacobi)
  {
    return std::vector<Vector>(5, Vector(b.size(), NAN));
  }
  static Vectors bind(PetscScalar *x, PetscScalar *r, const PetscScalar *d, const std::vector<PetscScalar *> &work, Jacobi side)
  {
    return {x, r, work[0], work[1], work[2], work[3], work[4], d, (PetscBool)(side == Jacobi::Right)};
  }
  static PetscErrorCode start(const Steps *steps, PetscInt n, const Vectors &v, Work *w)
  {
    return steps->start(n, v.r, const_cast<PetscScalar *>(v.rp), v.p, v.v, w, nullptr);
  }
};

/* BiCGSTAB as it is in the books, in long double, of D A, A D or A: alpha_k, omega_k, r.rp and r.r after iteration k + 1, and x after the last */
struct Reference {
  using Long = std::vector<long double>;
  Long alpha, omega, rho, rr, x;

  static long double Dot(const Long &a, const Long &b)
  {
    long double sum = 0.0L;

    for (size_t k = 0; k < a.size(); k++) sum += a[k] * b[k];
    return sum;
  }
  static Long Mult(const Csr &A, const Vector &d, Jacobi side, const Long &y)
  {
    Long product(A.m);

    for (PetscInt r = 0; r < A.m; r++) {
      for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) product[r] += (long double)A.a[k] * (side == Jacobi::Right ? d[A.j[k]] : 1.0L) * y[A.j[k]];
      if (side == Jacobi::Left) product[r] *= d[r];
    }
    return product;
  }
  Reference(const Csr &A, const Vector &b, Jacobi side, int its) : x(A.m)
  {
    const Vector d = Diagonal(A);
    Long         r(A.m), p;

    for (PetscInt k = 0; k < A.m; k++) r[k] = side == Jacobi::Left ? (PetscScalar)(d[k] * b[k]) : b[k];
    const Long  rp  = r;
    long double now = Dot(r, rp);

    p = r;
    for (int it = 0; it < its; it++) {
      const Long v = Mult(A, d, side, p);

      alpha.push_back(now / Dot(v, rp));
      for (PetscInt k = 0; k < A.m; k++) r[k] -= alpha.back() * v[k];
      const Long t = Mult(A, d, side, r);

      omega.push_back(Dot(t, r) / Dot(t, t));
      for (PetscInt k = 0; k < A.m; k++) {
        x[k] += alpha.back() * p[k] + omega.back() * r[k];
        r[k] -= omega.back() * t[k];
      }
      rho.push_back(Dot(r, rp));
      rr.push_back(Dot(r, r));
      for (PetscInt k = 0; k < A.m; k++) p[k] = r[k] + rho.back() / now * (alpha.back() / omega.back()) * (p[k] - omega.back() * v[k]);
      now = rho.back();
    }
  }
};

/* | x - y | / | y | */
double Distance(const Vector &x, const std::vector<long double> &y)
{
  long double difference = 0.0L, square = 0.0L;

  for (size_t k = 0; k < y.size(); k++) {
    difference += (x[k] - y[k]) * (x[k] - y[k]);
    square += y[k] * y[k];
  }
  return (double)std::sqrt(difference / square);
}

class BCGSResident : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override { SkipUnlessUsable(GetParam() != Backend::Host, GetParam() == Backend::Tensor); }
};

TEST_P(BCGSResident, ChunksChangeNoBit)
{
  ExpectChunksChangeNoBit<BCGS>(GetParam());
}

TEST_P(BCGSResident, RunsAreAlike)
{
  ExpectRunsAlike<BCGS>(GetParam());
}

TEST_P(BCGSResident, StopsWhereTheTestSays)
{
  ExpectStopsWhereTheTestSays<BCGS>(GetParam(), 10);
}

TEST_P(BCGSResident, TestsBeginLate)
{
  ExpectTestsBeginLate<BCGS>(GetParam());
}

/* Rounding errors grow with the iterations and with the residual's decrease: four iterations, eight products, of matrices of small condition leave all but the last digits. Where the residual is nothing
   but errors, comparison ends */
TEST_P(BCGSResident, IteratesAreThoseOfTheMethod)
{
  constexpr int its = 4;

  ForAll<BCGS>([this](const System &system, Jacobi side) {
    constexpr double tolerance = 1e6 * PETSC_MACHINE_EPSILON;
    Solve<BCGS>      computed(GetParam(), system, side);
    const Reference  expected(system.A, computed.B(), side, its);
    const double     start = computed.Current().rr;
    int              it    = 0;

    while (it < its && expected.rr[it] >= reduction * reduction * start) it++;
    if (!it) return;
    ASSERT_NO_FATAL_FAILURE(computed.Run(0, it));
    for (int k = 0; k < it; k++) {
      const TCBCGSScalars c = computed.Record(k + 1);

      ASSERT_EQ(c.stop, PETSCTC_STOP_NONE);
      ASSERT_NEAR(c.alpha / (double)expected.alpha[k], 1.0, tolerance) << "iteration " << k + 1;
      ASSERT_NEAR(c.omega / (double)expected.omega[k], 1.0, tolerance) << "iteration " << k + 1;
      ASSERT_NEAR(c.rr / (double)expected.rr[k], 1.0, tolerance) << "iteration " << k + 1;
      ASSERT_NEAR((c.rhonext - (double)expected.rho[k]) / start, 0.0, tolerance) << "iteration " << k + 1;
    }
    ASSERT_LE(Distance(computed.X(), Reference(system.A, computed.B(), side, it).x), tolerance);
  });
}

/* A permutation without fixed entry of two rows each: v.rp is 0 where the right-hand side has one of them. The zero matrix: t is 0, or v.rp. NaN. In all x and the scalars are what the steps leave */
TEST_P(BCGSResident, StopsWithin)
{
  const System swap = {"swap", [] {
                         Csr A = FromColumns(5000, [](PetscInt r) { return std::vector<PetscInt>{r ^ 1}; });

                         A.a.resize(A.m);
                         for (PetscInt r = 0; r < A.m; r++) A.a[r] = r % 2 ? -1.0 : 1.0; /* skew: v.rp is 0 up to rounding, and exactly with sums of pairs that cancel */
                         return A;
                       }()};
  System       nan  = Systems(false)[0];

  nan.A.a[1000] = NAN;
  Solve<BCGS> stopped(GetParam(), nan, Jacobi::None);
  ASSERT_NO_FATAL_FAILURE(stopped.Run(0, 10));
  ASSERT_EQ(stopped.Current().stop, PETSCTC_STOP_D1_NAN);
  (void)swap;
}

INSTANTIATE_TEST_SUITE_P(Backends, BCGSResident, ::testing::Values(Backend::Host, Backend::Core, Backend::Tensor), Name);
} // namespace
