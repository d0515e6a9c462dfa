/* The meshes of the benchmark program are what docs/benchmark.md says */
#include "bench.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

namespace
{
constexpr PetscInt SIDE = 20, NODES = SIDE * SIDE * SIDE;
constexpr int      REACH = 2;

Csr Make(const std::vector<std::string> &words)
{
  Csr A;

  CsrFromMesh(words, &A);
  return A;
}

Csr Mesh(const std::string &nonzeros)
{
  return Make({"mesh", std::to_string(NODES), nonzeros, "natural"});
}

/* From node u of the cube to node v */
std::array<PetscInt, 3> Step(PetscInt u, PetscInt v)
{
  return {v % SIDE - u % SIDE, v / SIDE % SIDE - u / SIDE % SIDE, v / SIDE / SIDE - u / SIDE / SIDE};
}

/* The cube's cells have six tetrahedra around the same diagonal: edges of these go up or down in all directions in which they go at all */
bool IsOfTetrahedra(const std::array<PetscInt, 3> &step)
{
  return std::all_of(step.begin(), step.end(), [](PetscInt s) { return s == 0 || s == 1; }) || std::all_of(step.begin(), step.end(), [](PetscInt s) { return s == 0 || s == -1; });
}

template <class At>
void ForEdges(const Csr &A, At at)
{
  for (PetscInt u = 0; u < A.m; u++) {
    for (PetscInt k = A.i[u]; k < A.i[u + 1]; k++)
      if (A.j[k] != u) at(u, A.j[k]);
  }
}

void ExpectShort(const Csr &A)
{
  ForEdges(A, [](PetscInt u, PetscInt v) {
    for (PetscInt s : Step(u, v)) ASSERT_LE(std::abs(s), REACH) << u << " " << v;
  });
}

/* Seven in ten edges are those of tetrahedra: of seven directions, and of one more to make up for edges that coincide, of which three in ten are moved, some to where another edge of tetrahedra is */
TEST(Meshes, AreOfTetrahedra)
{
  const Csr A     = Make({"tet", std::to_string(NODES), "natural"});
  double    edges = 0.0, tetrahedra = 0.0;

  ASSERT_EQ(A.m, NODES);
  ASSERT_EQ(A.j.size(), (size_t)15 * NODES);
  ASSERT_NO_FATAL_FAILURE(ExpectShort(A));
  ForEdges(A, [&](PetscInt u, PetscInt v) {
    edges += 1.0;
    tetrahedra += IsOfTetrahedra(Step(u, v));
  });
  EXPECT_NEAR(tetrahedra / edges, 0.70, 0.03);
}

/* Denser patterns have more directions, and longer edges, but none beyond the reach */
TEST(Meshes, HaveNoLongEdges)
{
  for (const char *nonzeros : {"24000", "56000", "124000", "210000"}) {
    const Csr A = Mesh(nonzeros);

    ASSERT_EQ(A.j.size(), (size_t)std::atoi(nonzeros));
    ASSERT_NO_FATAL_FAILURE(ExpectShort(A)) << nonzeros;
  }
}

/* Hardly any two rows have the same offsets */
TEST(Meshes, AreUnstructured)
{
  const Csr                                 A = Make({"tet", std::to_string(NODES), "natural"});
  std::map<std::vector<PetscInt>, PetscInt> rows;
  PetscInt                                  most = 0;

  for (PetscInt u = 0; u < A.m; u++) {
    std::vector<PetscInt> offsets;

    for (PetscInt k = A.i[u]; k < A.i[u + 1]; k++) offsets.push_back(A.j[k] - u);
    most = std::max(most, ++rows[offsets]);
  }
  EXPECT_GE((double)rows.size(), 0.99 * A.m);
  EXPECT_LE(most, NODES / 200);
}

/* Symmetric, and the diagonal outweighs the rest */
TEST(Meshes, ArePositiveDefinite)
{
  const Csr                                            A = Make({"tet", std::to_string(NODES), "random"});
  std::map<std::pair<PetscInt, PetscInt>, PetscScalar> entry;

  for (PetscInt u = 0; u < A.m; u++) {
    PetscScalar others = 0.0, diagonal = 0.0;

    for (PetscInt k = A.i[u]; k < A.i[u + 1]; k++) {
      entry[{u, A.j[k]}] = A.a[k];
      if (A.j[k] == u) diagonal = A.a[k];
      else others += PetscAbsScalar(A.a[k]);
    }
    ASSERT_GT(PetscRealPart(diagonal), PetscRealPart(others)) << u;
  }
  for (const auto &e : entry) {
    const auto other = entry.find({e.first.second, e.first.first});

    ASSERT_NE(other, entry.end());
    ASSERT_EQ(other->second, e.second);
  }
}
} // namespace
