/*
   Method
     Rows by region (ksptcregions.h) on the host: the twin of cuda/ksptcregions.cu, and the halves, which both take from here: the graph of clusters has some thousand nodes, and a search in it steps that wait for each other, too few
     for a device.

   Layout
     src/ksp/resident/ksptcregions.h

   Memory traffic
     CSR twice, the table of bits once; the graph of clusters twice for each doubling of the number of regions: 4,000 clusters with 30 neighbours in 132 regions, 14 searches, 7 MB in the processor's cache

   References
     A. George, J. W. H. Liu, Computer solution of large sparse positive definite systems, Prentice-Hall 1981 (pseudo-peripheral nodes, level structures); H. D. Simon, Partitioning of unstructured problems for parallel
     processing, Computing Systems in Engineering 2, 1991 (recursive graph bisection)
*/
#include <petsctc/private/aijtclayout.h>
#include <../src/ksp/resident/ksptcregions.h>
#include <algorithm>
#include <numeric>

namespace
{
/* Halves, and halves of these, of a sequence of clusters in place */
class Halver {
public:
  explicit Halver(const KSPTCClusterGraph &graph) : graph_(graph), start_((size_t)graph.clusters + 1), part_((size_t)graph.clusters, 0)
  {
    neighbour_.reserve(32 * (size_t)graph.clusters);
    for (int32_t u = 0; u < graph.clusters; u++) {
      for (size_t w = 0; w < graph.words(); w++) {
        for (uint32_t bits = graph.bits[u * graph.words() + w]; bits; bits &= bits - 1) neighbour_.push_back((int32_t)(32 * w) + __builtin_ctz(bits));
      }
      start_[(size_t)u + 1] = neighbour_.size();
    }
  }
  bool isAlone(int32_t u) const { return start_[u] == start_[(size_t)u + 1]; }
  void halve(int32_t *begin, int32_t *end, int regions)
  {
    if (end - begin < 2) return;
    search(begin, end, *begin);
    search(begin, end, end[-1]);
    if (regions < 2) return;
    int32_t *const middle = split(begin, end, (double)(regions / 2) / regions);

    halve(begin, middle, regions / 2);
    halve(middle, end, regions - regions / 2);
  }

private:
  /* The clusters in the order of a breadth-first search among them from one of them, and from the first one left where it reaches no more */
  void search(int32_t *begin, int32_t *end, int32_t from)
  {
    const int32_t  inside = ++parts_, found = ++parts_;
    const int32_t *rest = begin;

    for (const int32_t *u = begin; u < end; u++) part_[*u] = inside;
    order_.clear();
    for (size_t next = 0; order_.size() < (size_t)(end - begin);) {
      part_[from] = found;
      order_.push_back(from);
      for (; next < order_.size(); next++) {
        for (size_t k = start_[order_[next]]; k < start_[(size_t)order_[next] + 1]; k++) {
          const int32_t v = neighbour_[k];

          if (part_[v] != inside) continue;
          part_[v] = found;
          order_.push_back(v);
        }
      }
      while (rest < end && part_[*rest] == found) rest++;
      if (rest < end) from = *rest;
    }
    std::copy(order_.begin(), order_.end(), begin);
  }

  /* Behind the first ones that have about this share of the weight */
  int32_t *split(int32_t *begin, int32_t *end, double share) const
  {
    const int64_t all    = std::accumulate(begin, end, (int64_t)0, [&](int64_t sum, int32_t u) { return sum + graph_.weight[u]; });
    int64_t       before = 0;
    int32_t      *u      = begin;

    for (; u < end && (double)before + 0.5 * (double)graph_.weight[*u] <= share * (double)all; u++) before += graph_.weight[*u];
    return u;
  }

  const KSPTCClusterGraph &graph_;
  std::vector<size_t>      start_; /* of the neighbours of a cluster */
  std::vector<int32_t>     neighbour_, part_, order_;
  int32_t                  parts_ = 0;
};

/* The clusters of rows in the order of clusters: node[row], and where each begins. Row 0 is a seed: the first row begins a cluster */
void NumberClusters(PetscInt m, const PetscInt row[], const PetscInt cluster[], std::vector<int32_t> &node, std::vector<PetscInt> &begin)
{
  for (PetscInt p = 0; p < m; p++) {
    if (AIJTCIsSeed(cluster[p]) && (p == 0 || cluster[p] != cluster[p - 1])) begin.push_back(p);
    node[row[p]] = (int32_t)begin.size() - 1;
  }
}

void LinkClusters(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt weight, const std::vector<int32_t> &node, KSPTCClusterGraph *graph)
{
  const auto link = [graph](int32_t u, int32_t v) { graph->bits[u * graph->words() + v / 32] |= (uint32_t)1 << v % 32; };

  graph->bits.resize(graph->clusters * graph->words());
  graph->weight.resize(graph->clusters);
  for (PetscInt r = 0; r < m; r++) {
    const int32_t u = node[r];

    graph->weight[u] += weight + i[r + 1] - i[r];
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const int32_t v = node[j[k]];

      if (v == u) continue;
      link(u, v);
      link(v, u);
    }
  }
}
} // namespace

void KSPTCSequenceByRegion(const KSPTCClusterGraph &graph, int regions, std::vector<int32_t> &sequence)
{
  const auto           weigh = [&graph](const std::vector<int32_t> &of) { return std::accumulate(of.begin(), of.end(), 0.0, [&](double sum, int32_t u) { return sum + (double)graph.weight[u]; }); };
  Halver               halver(graph);
  std::vector<int32_t> linked, alone;

  for (int32_t u = 0; u < graph.clusters; u++) (halver.isAlone(u) ? alone : linked).push_back(u);
  halver.halve(linked.data(), linked.data() + linked.size(), regions);

  /* As much of the weight of those alone as of the others' */
  const double of_linked = weigh(linked), of_alone = weigh(alone);
  double       before = 0.0, alone_before = 0.0;
  auto         next = alone.begin();

  sequence.clear();
  for (int32_t u : linked) {
    sequence.push_back(u);
    before += (double)graph.weight[u];
    for (; next < alone.end() && alone_before * of_linked < before * of_alone; next++) {
      sequence.push_back(*next);
      alone_before += (double)graph.weight[*next];
    }
  }
  sequence.insert(sequence.end(), next, alone.end());
}

PetscErrorCode KSPTCOrderByRegion_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt weight, int regions, PetscInt order[], PetscBool *, PetscTCStream)
{
  std::vector<PetscInt> row(m), cluster(m), begin;
  std::vector<int32_t>  node(m), sequence;
  KSPTCClusterGraph     graph;
  PetscInt              n = 0;

  PetscFunctionBegin;
  PetscCall(AIJTCClusterRows_Host(m, i, j, row.data(), cluster.data()));
  NumberClusters(m, row.data(), cluster.data(), node, begin);
  if (!KSPTCMakesRegions((PetscCount)begin.size())) {
    std::copy(row.begin(), row.end(), order);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  graph.clusters = (int32_t)begin.size();
  LinkClusters(m, i, j, weight, node, &graph);
  KSPTCSequenceByRegion(graph, regions, sequence);
  begin.push_back(m);
  for (int32_t u : sequence) {
    for (PetscInt p = begin[u]; p < begin[u + 1]; p++) order[n++] = row[p];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
