/* Rows by cluster, in both memories: clusters are those that aijtclayout.h defines */
#include "clusters.h"
#include "layouts.h"

namespace
{
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

  void Expect(const Csr &A, const ExpectedClusters &expected) const
  {
    const Clusters found = Found(cuda, A);

    for (PetscInt p = 0; p < A.m; p++) {
      ASSERT_TRUE(found.order[p] >= 0 && found.order[p] < A.m) << found.order[p];
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
    const Csr              A = FromLengths(m, std::vector<PetscInt>(m, 0));
    const ExpectedClusters expected(A);

    ASSERT_EQ(expected.early + expected.looked + expected.late, 0);
    ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
  }
}

TEST_P(Clustered, Meshes)
{
  for (const Pattern &pattern : MeshPatterns()) {
    SCOPED_TRACE(pattern.name);
    const Csr              A = pattern.make();
    const ExpectedClusters expected(A);

    ASSERT_GT(expected.early, A.m / 20);
    ASSERT_GT(expected.looked, A.m / 10);
    ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
  }
}

/* Rows that only the last round reaches, from rows of which 32 have more columns than a warp has flags for at a time */
TEST_P(Clustered, LastRoundOffersLongRowsColumns)
{
  const Csr              A = OneWay(6000, 83, [](PetscInt r) { return r % 2 == 0; });
  const ExpectedClusters expected(A);

  ASSERT_GT(A.i[64] - A.i[32], 1024);
  ASSERT_GT(expected.late, A.m / 4);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* Rows that only offers reach, some of them only the last: between them no row finds a cluster by looking */
TEST_P(Clustered, NoRowIsReachedByLooking)
{
  const Csr              A = Keeping(Banded(6000, 6000, {0, 1}), [](PetscInt r, PetscInt c, PetscInt) { return c == r || !AIJTCIsSeed(c); });
  const ExpectedClusters expected(A);

  ASSERT_GT(expected.early, 20);
  ASSERT_EQ(expected.looked, 0);
  ASSERT_GT(expected.late, 10);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More steps than rounds: the rows of a path that are too far from a seed are alone, but for the one that the last round reaches */
TEST_P(Clustered, PathsLongerThanRounds)
{
  const Csr              A = Banded(20000, 20000, {-1, 0, 1});
  const ExpectedClusters expected(A);

  ASSERT_GT(expected.looked, A.m / 20);
  ASSERT_GT(expected.late, 0);
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
  const ExpectedClusters expected(A);

  ASSERT_EQ(A.Length(row), 3000);
  ASSERT_EQ(expected.cluster[row], seed);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More rows than a GPU's warps take in one turn */
TEST_P(Clustered, SeveralTurns)
{
  const PetscInt         k = SmallSystems() ? 54 : 60;
  const Csr              A = Renumbered(SevenPoint(k));
  const ExpectedClusters expected(A);

  ASSERT_GT(expected.looked, A.m / 10 * 8);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

/* More rows than shared memory has bits, most of them without entries */
TEST_P(Clustered, MoreRowsThanBitsInSharedMemory)
{
  const Csr              A = Spread(Renumbered(SevenPoint(32)), 60);
  const ExpectedClusters expected(A);

  ASSERT_GT(A.m, 8 * 227 * 1024);
  ASSERT_GT(expected.looked, A.m / 60 / 2);
  ASSERT_NO_FATAL_FAILURE(Expect(A, expected));
}

INSTANTIATE_TEST_SUITE_P(, Clustered, ::testing::Bool(), [](const auto &info) { return info.param ? "CUDA" : "Host"; });
