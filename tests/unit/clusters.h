/* The clusters that aijtclayout.h defines, found from the rows that have a column as well as from the columns of a row */
#pragma once

#include "patterns.h"
#include <algorithm>
#include <set>
#include <vector>

class ExpectedClusters {
public:
  std::vector<PetscInt> cluster;                                    /* of a row, known by its seed */
  PetscInt              early = 0, looked = 0, late = 0, alone = 0; /* rows that first offers, looks and the last offers have brought into one */

  explicit ExpectedClusters(const Csr &A) : having(A.m)
  {
    PetscInt joined = 1;

    for (PetscInt r = 0; r < A.m; r++) {
      cluster.push_back(AIJTCIsSeed(r) ? r : NONE);
      if (!AIJTCIsSeed(r)) free.insert(r);
      for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) having[A.j[e]].push_back(r);
    }
    for (int round = 0; round < AIJTC_CLUSTER_OFFERS; round++) early += Join([&](PetscInt r) { return FirstIn(having[r].begin(), having[r].end()); });
    for (int round = AIJTC_CLUSTER_OFFERS; round < AIJTC_CLUSTER_ROUNDS && joined; round++) looked += joined = Join([&](PetscInt r) { return FirstIn(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1]); });
    late  = Join([&](PetscInt r) { return FirstIn(having[r].begin(), having[r].end()); });
    alone = (PetscInt)free.size();
    for (PetscInt r : free) cluster[r] = r;
  }

private:
  static constexpr PetscInt          NONE = PETSC_INT_MAX;
  std::vector<std::vector<PetscInt>> having; /* the rows that have a column, ascending */
  std::set<PetscInt>                 free;

  template <class Iterator>
  PetscInt FirstIn(Iterator begin, Iterator end) const
  {
    const Iterator first = std::find_if(begin, end, [&](PetscInt r) { return cluster[r] != NONE; });

    return first == end ? NONE : *first;
  }

  /* The rows that are in no cluster join one in a round, all at once: that of row leader(r), if it is not NONE. How many do? */
  template <class Leader>
  PetscInt Join(Leader leader)
  {
    std::vector<std::pair<PetscInt, PetscInt>> joining;

    for (PetscInt r : free)
      if (leader(r) != NONE) joining.push_back({r, cluster[leader(r)]});
    for (const auto &[r, c] : joining) {
      cluster[r] = c;
      free.erase(r);
    }
    return (PetscInt)joining.size();
  }
};
