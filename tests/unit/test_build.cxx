/* Builds and refreshes on the device of matrices that keep all of it busy, and builds without memory. Small patterns in all forms: test_layout.cxx */
#include "fulldevice.h"
#include "layouts.h"

namespace
{
AIJTCParams Resolved(const Csr &A, AIJTCCompress compress)
{
  AIJTCParams params = {PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, compress, 4096, PETSC_DECIDE};
  AIJTCTraits traits;

  EXPECT_EQ(AIJTCProbe_Host(A.m, A.i.data(), A.j.data(), A.a.data(), &traits, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(AIJTCParamsResolve(A.m, A.n, A.i[A.m], &traits, &params), PETSC_SUCCESS);
  return params;
}

void ExpectSameOnDevice(const OwnedLayout &expected, const AIJTCLayout &device)
{
  const OwnedLayout copy(device);

  ExpectSameLayout(expected.layout, copy.layout);
}

/* Its values changed in a way that keeps every form: constants stay constant, floats floats */
Csr Doubled(Csr A)
{
  for (auto &a : A.a) a *= 2.0;
  return A;
}

const std::vector<Pattern> large = {
  {"seven_point",        [] { return SevenPoint(64); }                                             },
  {"twenty_seven_point", [] { return TwentySevenPoint(40); }                                       },
  {"three_dof",          [] { return Blocks(TwentySevenPoint(16), 3); }                            },
  {"four_dof",           [] { return Blocks(SevenPoint(24), 4); }                                  },
  {"unstructured",       [] { return FromLengths(200000, RandomLengths(200000, 2, 20, 31)); }      },
  {"unsorted",           [] { return FromLengths(200000, RandomLengths(100000, 0, 30, 32), true); }},
  {"power_law",          [] { return FromLengths(100000, PowerLawLengths(200000, 100000, 33)); }   },
  {"all_medium",         [] { return FromLengths(40000, RandomLengths(10000, 150, 250, 34)); }     },
  {"mesh",               [] { return Renumbered(SevenPoint(40)); }                                 },
  {"mesh_one_way",       [] { return Renumbered(Thinned(TwentySevenPoint(34), 3)); }               },
  {"mesh_isolated_rows", [] { return WithIsolatedRows(Renumbered(SevenPoint(36), true), 7); }      },
  {"nearby",             [] { return Renumbered(SevenPoint(40), false, 64); }                      },
  {"some_groups_listed",
   [] {
     std::vector<PetscInt> lengths(150000, 5);

     for (size_t r = 0; r < lengths.size(); r += 1777) lengths[r] = (PetscInt)(r % 3000);
     return FromLengths(150000, lengths);
   }                                                                                               },
};

/* What the tests below rely on where there is a device: that the rule takes these for meshes, gives up where columns lie anywhere, and does not begin where neighbours share x */
TEST(BuildGathers, MeshesAndNotColumnsAnywhere)
{
  for (const Pattern &pattern : large) {
    const Csr         A      = pattern.make();
    const AIJTCParams params = Resolved(A, AIJTC_COMPRESS_BOTH);
    const bool        mesh   = pattern.name.rfind("mesh", 0) == 0;
    const OwnedLayout host(Made::OnHost, A, params);

    if (mesh) { EXPECT_GT(params.gather, 0) << pattern.name; }
    if (pattern.name == "unstructured") { EXPECT_GT(params.gather, 0); }
    EXPECT_EQ((bool)params.near, pattern.name == "nearby") << pattern.name;
    EXPECT_EQ(host.layout.params.gather, mesh ? params.gather : 0) << pattern.name;
  }
}

/* More columns than the device looks at at once (build_gather.cu), which all blocks have */
TEST(BuildGathers, ColumnsOfSeveralWindows)
{
  const Csr         A      = Spread(Renumbered(SevenPoint(24)), 640);
  const AIJTCParams params = {128, 128, 8192, 1, 1, AIJTC_COMPRESS_PATTERN, 4096, 16};
  const OwnedLayout host(Made::OnHost, A, params);

  ASSERT_GT(A.n, 2 * (1 << 22));
  ASSERT_EQ(host.layout.params.gather, 16);
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  const OwnedLayout device(Made::OnDevice, A, params);
  ExpectSameOnDevice(host, device.layout);
}

class Build : public ::testing::TestWithParam<Pattern> {
protected:
  void SetUp() override
  {
    if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  }
};
} // namespace

TEST_P(Build, HasTheBytesOfTheHostBuild)
{
  Csr    A = GetParam().make();
  size_t k = 0;

  for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::AlmostByOffset}) {
    SetValues(A, kind);
    for (AIJTCCompress compress : Compressions()) {
      const AIJTCParams params = Resolved(A, compress);
      SCOPED_TRACE(std::string(Describe(kind)) + ", " + Describe(params));
      const OwnedLayout host(Made::OnHost, A, params), device(Made::OnDevice, A, params);

      ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(host, device.layout));
    }
  }
  for (AIJTCParams params : ParamsToTry()) {
    const ValueKind kind = ValueKinds()[k % ValueKinds().size()];

    SetValues(A, kind);
    params.compress = Compressions()[k % 3 ? 3 : k % 4];
    params          = WithBlockSize(params, A);
    k++;
    SCOPED_TRACE(std::string(Describe(kind)) + ", " + Describe(params));
    const OwnedLayout host(Made::OnHost, A, params), device(Made::OnDevice, A, params);

    ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(host, device.layout));
  }
}

TEST_P(Build, ProbeIsTheHosts)
{
#if PETSCTC_HAVE_CUDA
  Csr             A = GetParam().make();
  Array<PetscInt> i(true, A.i), j(true, A.j);

  for (ValueKind kind : ValueKinds()) {
    SetValues(A, kind);
    Array<PetscScalar> a(true, A.a);
    AIJTCTraits        host = {0, -1, PETSC_FALSE, PETSC_TRUE, PETSC_FALSE}, device = {0, -2, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE};

    ASSERT_EQ(AIJTCProbe_Host(A.m, A.i.data(), A.j.data(), A.a.data(), &host, nullptr), PETSC_SUCCESS);
    ASSERT_EQ(AIJTCProbe_CUDA(A.m, i, j, a, &device, nullptr), PETSC_SUCCESS);
    EXPECT_EQ(device.bs, host.bs);
    EXPECT_EQ(device.longest, host.longest);
    EXPECT_EQ(device.common, host.common);
    EXPECT_EQ(device.near, host.near);
    EXPECT_EQ(device.distinct, host.distinct) << Describe(kind);
  }
#endif
}

TEST_P(Build, RefreshLeavesWhatABuildWould)
{
  Csr A = GetParam().make();

  for (ValueKind kind : {ValueKind::Random, ValueKind::Floats, ValueKind::ByOffset, ValueKind::AlmostByOffset}) {
    SetValues(A, kind);
    for (AIJTCCompress compress : Compressions()) {
      const AIJTCParams params = Resolved(A, compress);
      const Csr         B      = Doubled(A);
      SCOPED_TRACE(std::string(Describe(kind)) + ", " + Describe(params));
      OwnedLayout refreshed(Made::OnDevice, A, params);
      const bool  closed = refreshed.layout.ndict > 0; /* twice the dictionary's largest value is not in it */

      ASSERT_EQ(refreshed.Refresh(B), !closed);
      if (closed) { ASSERT_TRUE(refreshed.Refresh(A)); }
      ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(OwnedLayout(Made::OnHost, closed ? A : B, params), refreshed.layout));
    }
  }
}

/* The same few values in other places: deltas, so that no slot is constant and the dictionary has room for all of them */
TEST_P(Build, RefreshFindsValuesInTheDictionary)
{
  Csr A = GetParam().make();

  SetValues(A, ValueKind::Few);

  const AIJTCParams params = Resolved(A, AIJTC_COMPRESS_VALUE);
  OwnedLayout       device(Made::OnDevice, A, params), host(Made::OnHost, A, params);

  EXPECT_EQ(device.layout.ndict, 7);
  std::reverse(A.a.begin(), A.a.end());

  const bool fits = host.Refresh(A);

  ASSERT_EQ(device.Refresh(A), fits);
  if (fits) { ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(host, device.layout)); }
}

TEST_P(Build, RefreshTellsWhenOneValueDoesNotFit)
{
  Csr A = GetParam().make();

  for (ValueKind kind : {ValueKind::Few, ValueKind::Floats, ValueKind::ByOffset, ValueKind::Random}) {
    SetValues(A, kind);

    const AIJTCParams params = Resolved(A, AIJTC_COMPRESS_BOTH);
    SCOPED_TRACE(std::string(Describe(kind)) + ", " + Describe(params));
    OwnedLayout device(Made::OnDevice, A, params), host(Made::OnHost, A, params);
    Csr         B = A;

    for (size_t e : {(size_t)0, B.a.size() / 2, B.a.size() - 1}) {
      B.a    = A.a;
      B.a[e] = 1.0 / 3.0 + 1e-9;
      EXPECT_EQ(device.Refresh(B), host.Refresh(B)) << "entry " << e;
    }
    ASSERT_TRUE(device.Refresh(A));
    ASSERT_TRUE(host.Refresh(A));
    ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(host, device.layout));
  }
}

INSTANTIATE_TEST_SUITE_P(, Build, ::testing::ValuesIn(large), [](const auto &info) { return info.param.name; });

/* Memory comes back piece by piece, so that builds fail at their first allocation, later ones, and at last not any more */
TEST(BuildMemory, FailureIsAMemoryErrorAndLeavesNothing)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
#if PETSCTC_HAVE_CUDA
  const Csr          A      = FromLengths(200000, PowerLawLengths(300000, 100000, 35));
  const AIJTCParams  params = Resolved(A, AIJTC_COMPRESS_BOTH);
  const OwnedLayout  host(Made::OnHost, A, params);
  Array<PetscInt>    i(true, A.i), j(true, A.j);
  Array<PetscScalar> a(true, A.a);
  AIJTCLayout        layout;
  int                failures = 0;

  /* Once with room, which loads the kernels */
  ASSERT_EQ(AIJTCLayoutBuild_CUDA(A.m, A.n, i, j, a, &params, &layout, nullptr), PETSC_SUCCESS);
  ASSERT_EQ(AIJTCLayoutDestroy_CUDA(&layout), PETSC_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(EmptyPool(), cudaSuccess);
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  {
    FullDevice     full;
    PetscErrorCode ierr;

    while ((ierr = AIJTCLayoutBuild_CUDA(A.m, A.n, i, j, a, &params, &layout, nullptr)) != PETSC_SUCCESS) {
      EXPECT_EQ(ierr, PETSC_ERR_MEM);
      EXPECT_EQ(layout.start, nullptr);
      EXPECT_EQ(layout.slice, nullptr);
      EXPECT_EQ(layout.pattern, nullptr);
      EXPECT_EQ(layout.value, nullptr);
      EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "left behind for the next launch";
      failures++;
      if (!full.GiveBack()) break;
    }
    EXPECT_EQ(ierr, PETSC_SUCCESS);
    EXPECT_GE(failures, 1);
  }
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(ExpectSameOnDevice(host, layout));
  EXPECT_EQ(AIJTCLayoutDestroy_CUDA(&layout), PETSC_SUCCESS);
#endif
}
