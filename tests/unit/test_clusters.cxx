/* Rows by cluster, in both memories: clusters are those that aijtclayout.h defines, found here by distance from the seeds instead of round by round */
#include <queue>
#include "layouts.h"

namespace
{
constexpr PetscInt FAR = PETSC_INT_MAX;

/* In so many rounds a row reaches a seed by looking from column to column; FAR: in none */
std::vector<PetscInt> DistancesFromSeeds(const Csr &A)
{
  std::vector<std::vector<PetscInt>> lookers(A.m); /* rows that have a column */
  std::vector<PetscInt>              distance(A.m, FAR);
  std::queue<PetscInt>               reached;

  for (PetscInt r = 0; r < A.m; r++)
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) lookers[A.j[e]].push_back(r);
  for (PetscInt r = 0; r < A.m; r++)
    if (AIJTCIsSeed(r)) {
      distance[r] = 0;
      reached.push(r);
    }
  for (; !reached.empty(); reached.pop())
    for (PetscInt r : lookers[reached.front()])
      if (distance[r] == FAR && distance[reached.front()] < AIJTC_CLUSTER_ROUNDS) {
        distance[r] = distance[reached.front()] + 1;
        reached.push(r);
      }
  return distance;
}

/* What the patterns below are made for */
struct Expected {
  std::vector<PetscInt> cluster; /* of a row */
  PetscInt              looked = 0, offered = 0, alone = 0;
};

Expected ExpectedClusters(const Csr &A)
{
  const std::vector<PetscInt> distance = DistancesFromSeeds(A);
  std::vector<PetscInt>       nearest(A.m);
  Expected                    expected;

  expected.cluster.assign(A.m, FAR);
  std::iota(nearest.begin(), nearest.end(), 0);
  std::stable_sort(nearest.begin(), nearest.end(), [&](PetscInt r, PetscInt s) { return distance[r] < distance[s]; });
  for (PetscInt r : nearest) {
    if (distance[r] == FAR) break;
    if (distance[r] == 0) expected.cluster[r] = r;
    for (PetscInt e = A.i[r]; expected.cluster[r] == FAR && e < A.i[r + 1]; e++)
      if (distance[A.j[e]] < distance[r]) expected.cluster[r] = expected.cluster[A.j[e]];
    expected.looked += distance[r] > 0;
  }
  for (PetscInt r = 0; r < A.m; r++)
    for (PetscInt e = A.i[r]; distance[r] != FAR && e < A.i[r + 1]; e++)
      if (distance[A.j[e]] == FAR) expected.cluster[A.j[e]] = std::min(expected.cluster[A.j[e]], expected.cluster[r]);
  for (PetscInt r = 0; r < A.m; r++) {
    expected.offered += distance[r] == FAR && expected.cluster[r] != FAR;
    expected.alone += expected.cluster[r] == FAR;
    if (expected.cluster[r] == FAR) expected.cluster[r] = r;
  }
  return expected;
}

struct Clusters {
  std::vector<PetscInt> order, seed; /* seed of the row at this place in the order */
};

Clusters Found(bool cuda, const Csr &A)
{
  Clusters found;

  found.order.resize(A.m);
  found.seed.resize(A.m);
  if (!cuda) {
    EXPECT_EQ(AIJTCClusterRows_Host(A.m, A.i.data(), A.j.data(), found.order.data(), found.seed.data()), PETSC_SUCCESS);
    return found;
  }
#if PETSCTC_HAVE_CUDA
  Array<PetscInt>       i(true, A.i), j(true, A.j);
  size_t                bytes = 0;
  int32_t              *order;
  uint32_t             *seed;
  std::vector<int32_t>  found_order(A.m);
  std::vector<uint32_t> found_seed(A.m);

  EXPECT_EQ(AIJTCClusterRows_CUDA(A.m, i, j, nullptr, &bytes, &order, &seed, nullptr), PETSC_SUCCESS);
  Array<char> work(true, std::vector<char>(bytes, 0x5a)); /* as memory that was used before */
  EXPECT_EQ(AIJTCClusterRows_CUDA(A.m, i, j, (char *)work, &bytes, &order, &seed, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(cudaMemcpy(found_order.data(), order, A.m * sizeof(int32_t), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(found_seed.data(), seed, A.m * sizeof(uint32_t), cudaMemcpyDeviceToHost), cudaSuccess);
  std::copy(found_order.begin(), found_order.end(), found.order.begin());
  std::copy(found_seed.begin(), found_seed.end(), found.seed.begin());
#endif
  return found;
}

class Clustered : public ::testing::TestWithParam<bool> {
protected:
  bool cuda = false;

  void SetUp() override
  {
    cuda = GetParam();
    SkipUnlessUsable(cuda, false);
  }

  void Expect(const Csr &A, const Expected &expected) const
  {
    const Clusters found = Found(cuda, A);

    for (PetscInt p = 0; p < A.m; p++) {
      ASSERT_EQ(found.seed[p], expected.cluster[found.order[p]]) << "row " << found.order[p];
      if (p) { ASSERT_LT(std::make_pair(found.seed[p - 1], found.order[p - 1]), std::make_pair(found.seed[p], found.order[p])) << "place " << p; } /* hence each row once */
    }
  }
};

/* The first row from `from` on that is a seed, or is none */
PetscInt NextRow(PetscInt from, bool seed)
{
  while (AIJTCIsSeed(from) != seed) from++;
  return from;
}

/* Row r has the columns r .. r + width - 1 where keep(r), and r alone elsewhere */
template <class Keep>
Csr OneWay(PetscInt m, PetscInt width, Keep keep)
{
  std::vector<PetscInt> offsets(width);

  std::iota(offsets.begin(), offsets.end(), 0);
  return Keeping(Banded(m, m, offsets), [&](PetscInt r, PetscInt c, PetscInt) { return c == r || keep(r); });
}
} // namespace

TEST_P(Clustered, OneRow)
{
  for (bool entry : {false, true}) {
    const Csr A = FromLengths(1, {entry ? 1 : 0});

    ASSERT_NO_FATAL_FAILURE(Expect(A, ExpectedClusters(A)));
  }
}

TEST_P(Clustered, RowsWithoutEntries)
{
  for (PetscInt m : {1, 31, 32, 33, 137, 4097}) {
    const Csr      A        = FromLengths(m, std::vector<PetscInt>(m, 0));
    const Expected expected = ExpectedClusters(A);

    ASSERT_EQ(expected.looked + expected.offered, 0);
    ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
  }
}

TEST_P(Clustered, Meshes)
{
  for (const Pattern &pattern : MeshPatterns()) {
    SCOPED_TRACE(pattern.name);
    const Csr      A        = pattern.make();
    const Expected expected = ExpectedClusters(A);

    ASSERT_GT(expected.looked, A.m / 2);
    ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
  }
}

/* Rows that only the last round reaches, from rows of which 32 have more columns than a warp has flags for at a time */
TEST_P(Clustered, LastRoundOffersLongRowsColumns)
{
  const Csr      A        = OneWay(6000, 83, [](PetscInt r) { return r % 2 == 0; });
  const Expected expected = ExpectedClusters(A);

  ASSERT_GT(16 * 83, 1024);
  ASSERT_GT(expected.offered, A.m / 4);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More steps than rounds: the rows of a path that are too far from a seed are alone, but for the one that the last round reaches */
TEST_P(Clustered, PathsLongerThanRounds)
{
  const Csr      A        = Banded(20000, 20000, {-1, 0, 1});
  const Expected expected = ExpectedClusters(A);

  ASSERT_GT(expected.looked, A.m / 20);
  ASSERT_GT(expected.offered, 0);
  ASSERT_GT(expected.alone, A.m / 2);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* A row whose first column in a cluster is the 2501st of 3000, far behind those that a warp has flags for at a time */
TEST_P(Clustered, FirstColumnInAClusterIsFar)
{
  const PetscInt seed = NextRow(3000, true), row = NextRow(0, false);
  Csr            A;

  A.m = A.n = 9000;
  for (PetscInt r = 0; r < A.m; r++) {
    if (r == row) {
      for (PetscInt k = 0, c = 0; k < 2500; k++, c++) A.j.push_back(c = NextRow(c, false));
      for (PetscInt k = 0; k < 500; k++) A.j.push_back(seed + k);
    } else A.j.push_back(r);
    A.i.push_back((PetscInt)A.j.size());
  }
  const Expected expected = ExpectedClusters(A);

  ASSERT_EQ(A.Length(row), 3000);
  ASSERT_EQ(expected.cluster[row], seed);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More rows than a GPU's warps take in one turn */
TEST_P(Clustered, SeveralTurns)
{
  const PetscInt k        = SmallSystems() ? 54 : 60;
  const Csr      A        = Renumbered(SevenPoint(k));
  const Expected expected = ExpectedClusters(A);

  ASSERT_GT(expected.looked, A.m / 10 * 9);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More rows than shared memory has bits, most of them without entries */
TEST_P(Clustered, MoreRowsThanBitsInSharedMemory)
{
  const Csr      A        = Spread(Renumbered(SevenPoint(32)), 60);
  const Expected expected = ExpectedClusters(A);

  ASSERT_GT(A.m, 8 * 227 * 1024);
  ASSERT_GT(expected.looked, A.m / 60 / 2);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

INSTANTIATE_TEST_SUITE_P(, Clustered, ::testing::Bool(), [](const auto &info) { return info.param ? "CUDA" : "Host"; });
