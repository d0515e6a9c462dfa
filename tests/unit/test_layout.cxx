/* The tile layout built on the host: what must hold for every pattern and every choice of thresholds, wrong input, failure of memory */
#include "patterns.h"
#include <gtest/gtest.h>
#include <numeric>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
  #define WITH_ASAN 1
#else
  #define WITH_ASAN 0
#endif

namespace
{
bool IsZero(const AIJTCLayout &L)
{
  return !L.val && !L.col && !L.perm && !L.rid && !L.piece_tile && !L.long_piece && !L.partial && !L.slice_tile && !L.ntiles && !L.nrid && !L.m && !L.n;
}

/* The matrix rows of a class in the order in which they must lie in rid: sorted by decreasing length in windows, stable */
std::vector<PetscInt> ExpectedRows(const Csr &A, const AIJTCParams &params, PetscInt low, PetscInt high)
{
  std::vector<PetscInt> order(A.m), rows;
  const PetscInt        window = params.window ? params.window : std::max(A.m, (PetscInt)1);

  std::iota(order.begin(), order.end(), 0);
  for (PetscInt b = 0; b < A.m; b += window) std::stable_sort(order.begin() + b, order.begin() + std::min(A.m, b + window), [&](PetscInt p, PetscInt q) { return A.Length(p) > A.Length(q); });
  for (PetscInt r : order)
    if (A.Length(r) >= low && A.Length(r) <= high) rows.push_back(r);
  return rows;
}

/* Checks one class in rid and appends its rows to all; the places behind the rows up to `next` must be padding, fewer than `group` */
void ExpectClass(const char *name, const AIJTCLayout &L, const std::vector<PetscInt> &expected, PetscInt count, PetscInt begin, PetscInt next, PetscInt group, std::vector<PetscInt> &all)
{
  SCOPED_TRACE(name);
  ASSERT_EQ(count, (PetscInt)expected.size());
  ASSERT_LE(begin + count, next);
  EXPECT_LT(next - begin - count, group);
  EXPECT_EQ((next - begin) % group, 0);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), L.rid + begin));
  for (PetscInt q = begin + count; q < next; q++) EXPECT_EQ(L.rid[q], -1);
  all.insert(all.end(), expected.begin(), expected.end());
}

void ExpectRows(const Csr &A, const AIJTCParams &params, const AIJTCLayout &L)
{
  std::vector<PetscInt> all;
  const PetscInt        s = params.short_max, l = params.long_min;

  ExpectClass("long", L, l < INT_MAX ? ExpectedRows(A, params, l + 1, INT_MAX) : std::vector<PetscInt>(), L.nlong, 0, L.rid_medium, 1, all);
  ExpectClass("medium", L, ExpectedRows(A, params, s + 1, l), L.nmedium, L.rid_medium, L.rid_short[0], 8, all);
  ExpectClass("short 4", L, ExpectedRows(A, params, 3, s), L.nshort[0], L.rid_short[0], L.rid_short[1], 8, all);
  ExpectClass("short 2", L, ExpectedRows(A, params, 2, std::min(s, (PetscInt)2)), L.nshort[1], L.rid_short[1], L.rid_short[2], 16, all);
  ExpectClass("short 1", L, ExpectedRows(A, params, 1, std::min(s, (PetscInt)1)), L.nshort[2], L.rid_short[2], L.rid_empty, 32, all);
  ExpectClass("empty", L, ExpectedRows(A, params, 0, 0), L.nempty, L.rid_empty, L.nrid, 1, all);
  std::sort(all.begin(), all.end());
  ASSERT_EQ((PetscInt)all.size(), A.m);
  for (PetscInt r = 0; r < A.m; r++) ASSERT_EQ(all[r], r) << "rid is not a permutation of the rows";
}

/* First slot and width of each row from the layout's definition, and the number of tiles that each class needs */
struct Place {
  PetscCount slot;
  PetscInt   width;
};

std::vector<Place> ExpectTiles(const Csr &A, const AIJTCLayout &L)
{
  std::vector<Place> places(A.m, Place{-1, 0});
  PetscCount         tile  = 0;
  PetscInt           piece = 0;

  for (PetscInt q = 0; q < L.nlong; q++) {
    PetscCount tiles = (A.Length(L.rid[q]) + 31) / 32;

    places[L.rid[q]] = {32 * tile, 32};
    EXPECT_EQ(L.long_piece[q], piece);
    for (; tiles > 0; tiles -= 32, piece++) {
      EXPECT_EQ(L.piece_tile[piece], tile);
      tile += std::min(tiles, (PetscCount)32);
    }
  }
  EXPECT_EQ(L.long_piece[L.nlong], piece);
  EXPECT_EQ(L.npieces, piece);
  EXPECT_EQ(L.piece_tile[piece], tile);
  EXPECT_EQ(L.medium_tile, tile);
  EXPECT_EQ(L.nslices, (L.nmedium + 7) / 8);
  for (PetscInt s = 0; s < L.nslices; s++) {
    PetscInt longest = 0;

    EXPECT_EQ(L.slice_tile[s], tile);
    for (PetscInt k = 0; k < 8 && 8 * s + k < L.nmedium; k++) {
      const PetscInt r = L.rid[L.rid_medium + 8 * s + k];

      longest   = std::max(longest, A.Length(r));
      places[r] = {32 * tile + 4 * k, 4};
    }
    tile += (longest + 3) / 4;
  }
  EXPECT_EQ(L.slice_tile[L.nslices], tile);
  for (int k = 0; k < 3; k++) {
    const PetscInt width = 4 >> k;

    EXPECT_EQ(L.short_tile[k], tile);
    for (PetscInt q = 0; q < L.nshort[k]; q++) places[L.rid[L.rid_short[k] + q]] = {32 * tile + (PetscCount)width * q, width};
    tile += (L.nshort[k] * width + 31) / 32;
  }
  EXPECT_EQ(L.short_tile[3], tile);
  EXPECT_EQ(L.ntiles, tile);
  return places;
}

/* Every entry lies in exactly the slot where its row's definition puts it; all other slots are marked as no entry */
void ExpectEntries(const Csr &A, const AIJTCLayout &L, const std::vector<Place> &places)
{
  PetscCount absent = 0;

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) {
      const PetscInt   k    = e - A.i[r];
      const PetscCount slot = places[r].slot + k / places[r].width * 32 + k % places[r].width;

      ASSERT_LT(slot, 32 * L.ntiles);
      ASSERT_EQ(L.perm[slot], e) << "row " << r << " entry " << k;
      ASSERT_EQ(L.col[slot], A.j[e]);
    }
  }
  for (PetscCount s = 0; s < 32 * L.ntiles; s++) {
    absent += L.perm[s] < 0;
    ASSERT_GE(L.perm[s], -1);
    ASSERT_EQ(L.col[s] < 0, L.perm[s] < 0);
    ASSERT_GE(L.col[s], -1);
  }
  EXPECT_EQ(L.nnz, (PetscCount)A.j.size());
  EXPECT_EQ(absent + L.nnz, 32 * L.ntiles); /* so each entry occurs once */
}

class Layout : public ::testing::TestWithParam<Pattern> { };

TEST_P(Layout, HoldsEveryEntryOnceInItsPlace)
{
  const Csr A = GetParam().make();

  for (const AIJTCParams &params : ParamsToTry()) {
    SCOPED_TRACE(Describe(params));
    AIJTCLayout L;

    ASSERT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &L), PETSC_SUCCESS);
    EXPECT_EQ(L.m, A.m);
    EXPECT_EQ(L.n, A.n);
    EXPECT_FALSE(L.cuda);
    ExpectRows(A, params, L);
    if (!HasFatalFailure()) ExpectEntries(A, L, ExpectTiles(A, L));
    ASSERT_EQ(AIJTCLayoutDestroy_Host(&L), PETSC_SUCCESS);
    EXPECT_TRUE(IsZero(L));
    ASSERT_EQ(AIJTCLayoutDestroy_Host(&L), PETSC_SUCCESS); /* nothing left to free */
    if (HasFailure()) break;
  }
}

TEST_P(Layout, RefreshFollowsThePermutation)
{
  const Csr         A      = GetParam().make();
  const AIJTCParams params = {256, 4, 0};
  AIJTCLayout       L;

  ASSERT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &L), PETSC_SUCCESS);
  const PetscCount pattern_bytes = AIJTCLayoutBytes(&L);

  EXPECT_EQ(L.val, nullptr);
  for (PetscScalar factor : {1.0, -3.0}) {
    std::vector<PetscScalar> a(A.a);

    for (auto &v : a) v *= factor;
    ASSERT_EQ(AIJTCLayoutRefresh_Host(&L, a.data(), nullptr), PETSC_SUCCESS);
    for (PetscCount s = 0; s < 32 * L.ntiles; s++) ASSERT_EQ(L.val[s], L.perm[s] < 0 ? 0.0 : a[L.perm[s]]);
  }
  EXPECT_EQ(AIJTCLayoutBytes(&L) - pattern_bytes, 32 * L.ntiles * (PetscCount)sizeof(PetscScalar));
  EXPECT_GE(pattern_bytes, 32 * L.ntiles * (PetscCount)(sizeof(PetscInt) + sizeof(PetscCount)) + L.nrid * (PetscCount)sizeof(PetscInt));
  ASSERT_EQ(AIJTCLayoutDestroy_Host(&L), PETSC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, Layout, ::testing::ValuesIn(Patterns()), [](const auto &info) { return info.param.name; });

/* ---- wrong input: PETSc's error, and nothing left behind */
struct WrongInput {
  std::string           name;
  PetscInt              m, n;
  std::vector<PetscInt> i, j;
  AIJTCParams           params;
  PetscErrorCode        error;
};

class LayoutRefuses : public ::testing::TestWithParam<WrongInput> { };

TEST_P(LayoutRefuses, AndLeavesNothing)
{
  const WrongInput &w = GetParam();
  AIJTCLayout       L;

  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  const PetscErrorCode ierr = AIJTCLayoutBuild_Host(w.m, w.n, w.i.data(), w.j.data(), &w.params, &L);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  EXPECT_EQ(ierr, w.error);
  EXPECT_TRUE(IsZero(L));
}

const AIJTCParams usual = {256, 4, 0};

INSTANTIATE_TEST_SUITE_P(, LayoutRefuses,
                         ::testing::Values(
                           WrongInput{
                             "short_above_four", 1, 1, {0, 1 },
                                {  0},
                                { 256, 5, 0},
                                PETSC_ERR_ARG_OUTOFRANGE
},
                           WrongInput{"short_negative", 1, 1, {0, 1}, {0}, {256, -1, 0}, PETSC_ERR_ARG_OUTOFRANGE}, WrongInput{"long_below_short", 1, 1, {0, 1}, {0}, {3, 4, 0}, PETSC_ERR_ARG_OUTOFRANGE},
                           WrongInput{"window_negative", 1, 1, {0, 1}, {0}, {256, 4, -2}, PETSC_ERR_ARG_OUTOFRANGE}, WrongInput{"size_negative", -1, 1, {0}, {}, usual, PETSC_ERR_ARG_SIZ},
                           WrongInput{"offsets_not_from_zero", 1, 3, {1, 2}, {0, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE}, WrongInput{"offsets_decrease", 2, 3, {0, 2, 1}, {0, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE},
                           WrongInput{"column_too_large", 1, 3, {0, 2}, {0, 3}, usual, PETSC_ERR_ARG_OUTOFRANGE}, WrongInput{"column_negative", 1, 3, {0, 2}, {-1, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE}),
                         [](const auto &info) { return info.param.name; });

/* One long row in each slice of eight: 240 MB of tiles from a matrix of 4 MB, more than the process may still take */
TEST(LayoutMemory, FailureLeavesNothing)
{
  if (WITH_ASAN) GTEST_SKIP() << "AddressSanitizer cannot run under a limit of address space";
  std::vector<PetscInt> lengths(80, 1);

  for (size_t r = 0; r < lengths.size(); r += 8) lengths[r] = 250000;
  const Csr         A      = FromLengths(250000, lengths);
  const AIJTCParams params = {INT_MAX, 0, 1};
  struct rlimit     before, tight;
  AIJTCLayout       L;
  long              pages = 0;

  FILE *statm = fopen("/proc/self/statm", "r");
  if (!statm) GTEST_SKIP() << "no /proc/self/statm to read the address space in use";
  ASSERT_EQ(fscanf(statm, "%ld", &pages), 1);
  fclose(statm);
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  tight          = before;
  tight.rlim_cur = (rlim_t)pages * 4096 + (100u << 20); /* columns (80 MB) fit, the permutation (160 MB) does not */
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  const PetscErrorCode ierr = AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &L);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(ierr, PETSC_ERR_MEM);
  EXPECT_TRUE(IsZero(L));
  ASSERT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), &params, &L), PETSC_SUCCESS); /* and with room it works */
  EXPECT_EQ(L.ntiles, 10 * 62500);
  ASSERT_EQ(AIJTCLayoutDestroy_Host(&L), PETSC_SUCCESS);
}
} // namespace
