/*
   Method
     Rows by cluster, for gathered layouts: clusters grow from their seeds by breadth-first search, all at the same time, a round at a time. A row that several clusters reach in the same round joins the
     one with the least seed, so that the order of visits does not matter: the device finds the same clusters.

   Memory traffic
     j once, with a random access to a row's cluster for each nonzero; a counting sort of the rows

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
  PetscInt *cluster;       /* the seed; NONE: in no cluster yet */
  PetscInt *reached;       /* the least seed that reached the row in this round */
  PetscInt *front, *next;  /* rows that joined in the round before, in this one */
  PetscInt  nfront, nnext; /* their numbers */
};

constexpr PetscInt NONE = PETSC_INT_MAX;

/* The rows that the front reaches, each once */
void Reach(const PetscInt i[], const PetscInt j[], ClusterWork *work)
{
  work->nnext = 0;
  for (PetscInt f = 0; f < work->nfront; f++) {
    const PetscInt u = work->front[f];

    for (PetscInt k = i[u]; k < i[u + 1]; k++) {
      const PetscInt v = j[k];

      if (work->cluster[v] != NONE) continue;
      if (work->reached[v] == NONE) work->next[work->nnext++] = v;
      work->reached[v] = std::min(work->reached[v], work->cluster[u]);
    }
  }
}

void Grow(PetscInt m, const PetscInt i[], const PetscInt j[], ClusterWork *work)
{
  std::fill(work->cluster, work->cluster + m, NONE);
  std::fill(work->reached, work->reached + m, NONE);
  for (PetscInt r = 0; r < m; r++) {
    if (!AIJTCIsSeed(r)) continue;
    work->cluster[r]            = r;
    work->front[work->nfront++] = r;
  }
  for (int round = 0; round < AIJTC_CLUSTER_ROUNDS && work->nfront; round++) {
    Reach(i, j, work);
    for (PetscInt k = 0; k < work->nnext; k++) work->cluster[work->next[k]] = work->reached[work->next[k]];
    std::swap(work->front, work->next);
    work->nfront = work->nnext;
  }
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
  ierr = PetscMalloc4(m, &work.cluster, m, &work.reached, m, &work.front, m, &work.next);
  if (!ierr) {
    Grow(m, i, j, &work);
    Order(m, work.cluster, work.reached, order, cluster);
  }
  (void)PetscFree4(work.cluster, work.reached, work.front, work.next);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
