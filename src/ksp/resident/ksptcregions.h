/*
   An order of the rows of a square matrix without long edges in its graph, for the resident form (ksptcform.h): so that consecutive rows, dealt to blocks, are regions of the graph with few neighbours, of
   which each is a ghost. Raw pointers, sizes and a stream: no PETSc object.

   Rows come in clusters of some 256, as in gathered layouts (aijtclayout.h), and clusters in the order of regions, as many as there will be blocks. Two clusters are neighbours if a row of one has a column
   that is a row of the other. All clusters together are halved by a breadth-first search from one that is as far from another as such a search finds, then the halves, by the weight that rows have in a block, until there are as
   many parts as regions; of an odd number of regions one half has one more. Rows of a cluster ascend. Rows that no search from a seed has reached, as those without nonzeros,
   are spread: each belongs to the cluster with the seed before it, and comes behind that one's others. Clusters without neighbours, as of rows that have their diagonal entry alone, are spread over the others:
   side by side they would be a few blocks' with more rows than there is room for. Where there is one cluster, or more than KSPTC_REGION_CLUSTERS, all rows come by cluster, as in a layout.

     clusters, by seeds         halves                    regions
     7 2 5 . 0 4 1 6 3          7 2 | 5 0 4               A A B B
     ..                         6 3 | 1 ..                C C D D
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>
#include <stdint.h>
#include <vector>

enum {
  KSPTC_REGION_CLUSTERS = 16384 /* the graph of clusters is a table of bits, 32 MB then */
};

/* Are so many clusters put into the order of regions? */
static inline bool KSPTCMakesRegions(PetscCount clusters)
{
  return clusters > 1 && clusters <= KSPTC_REGION_CLUSTERS;
}

/* order[m], in the memory of the CSR arrays; weight: of a row beside its nonzeros. room: becomes false, and order[] is nothing, where device memory has none for the work. Waits for the device where there are regions */
PETSC_INTERN PetscErrorCode KSPTCOrderByRegion_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt weight, int regions, PetscInt order[], PetscBool *room, PetscTCStream stream);
PETSC_INTERN PetscErrorCode KSPTCOrderByRegion_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt weight, int regions, PetscInt order[], PetscBool *room, PetscTCStream stream);

/* The graph of clusters: bit v % 32 of bits[u * words() + v / 32] if u and v are neighbours, and v and u too */
struct KSPTCClusterGraph {
  int32_t               clusters = 0;
  std::vector<uint32_t> bits;
  std::vector<int64_t>  weight; /* of the rows of a cluster */

  size_t words() const { return ((size_t)clusters + 31) / 32; }
};

/* sequence[]: the clusters by region */
PETSC_INTERN void KSPTCSequenceByRegion(const KSPTCClusterGraph &graph, int regions, std::vector<int32_t> &sequence);
