/* The seam between a step's sums and its scalars (vecreduce.h: PetscTCAcross). A vector is cut in two, each part has the steps of a process of its own, and their sums are added up between pass and end: scalars are those of
   the whole vector up to the order of sums, to the bit the same on both parts, and the vectors are those of the whole */
#include <functional>
#include <../src/ksp/step/kspsteps.h>
#include "backends.h"

namespace
{
constexpr PetscInt  whole = 20011, cut = 7003;
constexpr PetscReal tolerance = 1e3 * PETSC_MACHINE_EPSILON; /* of sums of some 20,000 products of order one, that may cancel */

/* What the other part has left, or what this part leaves for it */
struct Box {
  bool        cuda, leaves;
  int         calls = 0;
  PetscScalar sum[PETSCTC_MAX_DOTS];
};

/* Waits: a test may */
PetscErrorCode Add(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream)
{
  Box        *box = static_cast<Box *>(ctx);
  PetscScalar mine[PETSCTC_MAX_DOTS];

  PetscFunctionBeginUser;
#if PETSCTC_HAVE_CUDA
  if (box->cuda) PetscCheck(cudaDeviceSynchronize() == cudaSuccess, PETSC_COMM_SELF, PETSC_ERR_GPU, "The device has failed");
#endif
  copyBytes(mine, sum, count * sizeof(*sum), box->cuda);
  for (PetscInt k = 0; k < count; k++) {
    if (box->leaves) box->sum[k] = mine[k];
    else mine[k] += box->sum[k];
  }
  copyBytes(sum, mine, count * sizeof(*sum), box->cuda);
  box->calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The steps of a method on the whole vector and on its two parts */
template <class Steps, class Work, class Scalars>
struct Parts {
  static constexpr int reals = sizeof(Scalars) / sizeof(PetscReal);

  const Steps *steps;
  bool         cuda;
  Work         work[3] = {}; /* whole, and the parts */
  Box          box;
  PetscScalar *sum = nullptr;

  Parts(const Steps *of, Backend backend) : steps(of), cuda(backend != Backend::Host), box({cuda, false, 0, {}})
  {
#if PETSCTC_HAVE_CUDA
    if (cuda) { EXPECT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void **>(&sum), PETSCTC_MAX_DOTS * sizeof(*sum))); }
#endif
    for (Work &w : work) {
      EXPECT_EQ(PETSC_SUCCESS, steps->create(&w));
      w.tensor = (PetscBool)(backend == Backend::CUDATensor);
      EXPECT_EQ(PETSC_SUCCESS, steps->reset(&w, nullptr));
    }
    for (int k = 1; k < 3; k++) work[k].reduce.across = {Add, &box, sum, (PetscReal)whole, NULL, NULL};
  }
  ~Parts()
  {
    for (Work &w : work) EXPECT_EQ(PETSC_SUCCESS, steps->destroy(&w));
#if PETSCTC_HAVE_CUDA
    if (cuda) { EXPECT_EQ(cudaSuccess, cudaFree(sum)); }
#endif
  }

  Scalars get(int k)
  {
    Scalars s;

    EXPECT_EQ(PETSC_SUCCESS, steps->read(&work[k], &s, nullptr));
    return s;
  }

  /* run(work, first row, rows) on the whole and on the parts. sums: does the step have any? The second part leaves its sums; what its end makes of these alone is not looked at, but replaced */
  void run(const char *name, bool sums, const std::function<PetscErrorCode(Work *, PetscInt, PetscInt)> &run)
  {
    const Scalars before = get(2);

    SCOPED_TRACE(name);
    box.calls = 0;
    CALL(run(&work[0], 0, whole));
    box.leaves = true;
    CALL(run(&work[2], cut, whole - cut));
    if (sums) {
      const Scalars alone = get(2);

      EXPECT_TRUE(std::memcmp(&alone, &before, sizeof(before))) << "the part's scalars do not depend on its sums";
    }
    box.leaves = false;
    CALL(run(&work[1], 0, cut));
    EXPECT_EQ(box.calls, sums ? 2 : 0);

    const Scalars of_whole = get(0), of_part = get(1);

    copyBytes(work[2].s, &of_part, sizeof(of_part), cuda);
    for (int k = 0; k < reals; k++) {
      const PetscReal a = reinterpret_cast<const PetscReal *>(&of_whole)[k], b = reinterpret_cast<const PetscReal *>(&of_part)[k];

      EXPECT_NEAR(a, b, tolerance * PetscMax(PetscAbsReal(a), 1.0)) << "scalar " << k;
    }
  }
};

const TCCGSteps *CGStepsOf([[maybe_unused]] bool cuda)
{
#if PETSCTC_HAVE_CUDA
  if (cuda) return &TCCGSteps_CUDA;
#endif
  return &TCCGSteps_Host;
}

const TCBCGSSteps *BCGSStepsOf([[maybe_unused]] bool cuda)
{
#if PETSCTC_HAVE_CUDA
  if (cuda) return &TCBCGSSteps_CUDA;
#endif
  return &TCBCGSSteps_Host;
}

class Seam : public BackendTest { };

TEST_P(Seam, IsBetweenTheSumsAndTheScalarsOfCG)
{
  const TCCGSteps                        *steps = CGStepsOf(cuda);
  Parts<TCCGSteps, TCCGWork, TCCGScalars> parts(steps, GetParam());
  Vector                                  r(cuda, randomValues(whole, 1)), z(cuda, randomValues(whole, 2)), p(cuda, Values(whole, 0.0)), x(cuda, randomValues(whole, 4)), d(cuda, Values(whole, 0.5));
  Values                                  like = randomValues(whole, 2);

  for (PetscScalar &v : like) v *= 2.0;
  Vector     w(cuda, like); /* A = 2 I: p.w is positive */
  Vector     rs(cuda, r.get()), zs(cuda, z.get()), ps(cuda, p.get()), xs(cuda, x.get()), ws(cuda, w.get());
  const auto at = [&](TCCGWork *work, Vector &mine, Vector &parts_own, PetscInt first) { return work == &parts.work[0] ? (PetscScalar *)mine : (PetscScalar *)parts_own + first; };

  parts.run("residual", true, [&](TCCGWork *work, PetscInt i, PetscInt n) { return steps->residual(n, at(work, r, rs, i), work, nullptr); });
  parts.run("project", true, [&](TCCGWork *work, PetscInt i, PetscInt n) { return steps->project(n, at(work, z, zs, i), at(work, z, zs, i), work, nullptr); });
  parts.run("direction", false, [&](TCCGWork *work, PetscInt i, PetscInt n) { return steps->direction(n, PETSC_TRUE, at(work, z, zs, i), 1, NULL, at(work, p, ps, i), NULL, work, nullptr); });
  parts.run("curvature", true, [&](TCCGWork *work, PetscInt i, PetscInt n) { return steps->curvature(n, PETSC_TRUE, at(work, p, ps, i), at(work, w, ws, i), work, nullptr); });
  parts.run("update_scaled", true,
            [&](TCCGWork *work, PetscInt i, PetscInt n) { return steps->update_scaled(n, at(work, p, ps, i), at(work, w, ws, i), (PetscScalar *)d + i, at(work, x, xs, i), at(work, r, rs, i), at(work, z, zs, i), work, nullptr); });
  for (auto [mine, others] : {std::pair(&x, &xs), std::pair(&r, &rs), std::pair(&z, &zs), std::pair(&p, &ps)}) {
    const Values a = mine->get(), b = others->get();

    for (PetscInt k = 0; k < whole; k++) ASSERT_NEAR(a[k], b[k], tolerance * PetscMax(PetscAbsScalar(a[k]), 1.0)) << "row " << k;
  }
}

TEST_P(Seam, IsBetweenTheSumsAndTheScalarsOfBCGS)
{
  const TCBCGSSteps                            *steps = BCGSStepsOf(cuda);
  Parts<TCBCGSSteps, TCBCGSWork, TCBCGSScalars> parts(steps, GetParam());
  Vector                                        r(cuda, randomValues(whole, 1)), rp(cuda, Values(whole, 0.0)), p(cuda, Values(whole, 0.0)), v(cuda, Values(whole, 0.0));

  parts.run("start", true, [&](TCBCGSWork *work, PetscInt i, PetscInt n) { return steps->start(n, (PetscScalar *)r + i, (PetscScalar *)rp + i, (PetscScalar *)p + i, (PetscScalar *)v + i, work, nullptr); });
  parts.run("breakdown", true, [&](TCBCGSWork *work, PetscInt i, PetscInt n) { return steps->breakdown(n, (PetscScalar *)r + i, (PetscScalar *)rp + i, work, nullptr); });
}

/* A step that has stopped adds up nothing that matters, on either side */
TEST_P(Seam, IsNoPlaceToWakeUp)
{
  const TCCGSteps                        *steps = CGStepsOf(cuda);
  Parts<TCCGSteps, TCCGWork, TCCGScalars> parts(steps, GetParam());
  Vector                                  r(cuda, randomValues(cut, 1));
  TCCGScalars                             s = {}, after;

  s.stop = PETSCTC_STOP_DPI_SIGN;
  s.beta = 3.0;
  copyBytes(parts.work[1].s, &s, sizeof(s), cuda);
  parts.box.leaves = true;
  CALL(steps->project(cut, r, r, &parts.work[1], nullptr));
  after = parts.get(1);
  EXPECT_FALSE(std::memcmp(&after, &s, sizeof(s)));
}

INSTANTIATE_TEST_SUITE_P(Backends, Seam, ::testing::Values(Backend::Host, Backend::CUDATensor, Backend::CUDACore), backendName);
} // namespace
