/*
   Method
     Rows by cluster, for gathered layouts: clusters grow from their seeds by breadth-first search, all at the same time, a round at a time. While few rows are in a cluster, and at the end, these offer it to their columns, and
     the least row stands; in the rounds between rows in no cluster look for one in their columns, and the first stands. The order of visits does not matter: the device finds the same clusters.

   Memory traffic
     j of the rows in a cluster for each round of offers, and once more than a row has rounds in which it looks, with a random access to a row's cluster for each nonzero; a counting sort of the rows

   References
     Aurenhammer, Voronoi diagrams, ACM Computing Surveys 23(3), 1991 (clusters are Voronoi cells in the graph's distance)
*/
#include "layoutbuild.h"
#include <algorithm>
#include <utility>

namespace
{
/* Work arrays of m, kept together so that they can be freed whatever happens */
struct ClusterWork {
  PetscInt *cluster; /* the seed; NONE: in no cluster yet */
  PetscInt *found;   /* the row whose cluster it joins in this round */
  PetscInt *row;     /* the rows that join in this round */
  PetscInt  nrow;
};

constexpr PetscInt NONE = PETSC_INT_MAX;

/* Rows in no cluster look for one in their columns */
void Look(PetscInt m, const PetscInt i[], const PetscInt j[], ClusterWork *work)
{
  for (PetscInt r = 0; r < m; r++) {
    if (work->cluster[r] != NONE) continue;

    const PetscInt *end = j + i[r + 1], *first = std::find_if(j + i[r], end, [work](PetscInt v) { return work->cluster[v] != NONE; });

    if (first == end) continue;
    work->found[r]          = *first;
    work->row[work->nrow++] = r;
  }
}

/* Rows in a cluster offer it to their columns */
void Offer(PetscInt m, const PetscInt i[], const PetscInt j[], ClusterWork *work)
{
  for (PetscInt u = 0; u < m; u++) {
    if (work->cluster[u] == NONE) continue;
    for (PetscInt k = i[u]; k < i[u + 1]; k++) {
      const PetscInt v = j[k];

      if (work->cluster[v] != NONE) continue;
      if (work->found[v] == NONE) work->row[work->nrow++] = v;
      work->found[v] = std::min(work->found[v], u);
    }
  }
}

/* A round. Does a row join? */
template <class Way>
bool Round(PetscInt m, const PetscInt i[], const PetscInt j[], Way way, ClusterWork *work)
{
  work->nrow = 0;
  way(m, i, j, work);
  for (PetscInt k = 0; k < work->nrow; k++) work->cluster[work->row[k]] = work->cluster[work->found[work->row[k]]];
  return work->nrow > 0;
}

void Grow(PetscInt m, const PetscInt i[], const PetscInt j[], ClusterWork *work)
{
  bool joined = true;

  std::fill(work->found, work->found + m, NONE);
  for (PetscInt r = 0; r < m; r++) work->cluster[r] = AIJTCIsSeed(r) ? r : NONE;
  for (int round = 1; round <= AIJTC_CLUSTER_OFFERS; round++) (void)Round(m, i, j, Offer, work);
  for (int round = AIJTC_CLUSTER_OFFERS + 1; round <= AIJTC_CLUSTER_ROUNDS && joined; round++) joined = Round(m, i, j, Look, work);
  if (std::find(work->cluster, work->cluster + m, NONE) != work->cluster + m) (void)Round(m, i, j, Offer, work);
  for (PetscInt r = 0; r < m; r++)
    if (work->cluster[r] == NONE) work->cluster[r] = r;
}

/* By (cluster, number). first[m]: work. sorted[]: the clusters in that order, unless it is NULL */
void Order(PetscInt m, const PetscInt cluster[], PetscInt first[], PetscInt order[], PetscInt sorted[])
{
  std::fill(first, first + m, 0);
  for (PetscInt r = 0; r < m; r++) first[cluster[r]]++;
  for (PetscInt c = 0, rows = 0; c < m; c++) rows += std::exchange(first[c], rows);
  for (PetscInt r = 0; r < m; r++) order[first[cluster[r]]++] = r;
  for (PetscInt p = 0; sorted && p < m; p++) sorted[p] = cluster[order[p]];
}
} // namespace

PetscErrorCode AIJTCClusterRows_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt order[], PetscInt cluster[])
{
  ClusterWork    work = {};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscMalloc3(m, &work.cluster, m, &work.found, m, &work.row);
  if (!ierr) {
    Grow(m, i, j, &work);
    Order(m, work.cluster, work.found, order, cluster);
  }
  (void)PetscFree3(work.cluster, work.found, work.row);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
