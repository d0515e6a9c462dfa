/*
   Graphs without regularity: tetrahedral meshes whose rows share no offsets, other finite element patterns, road networks. Made as a list of edges, then numbered.

   tet:N[:ORDER]                    a cube of about N nodes cut into tetrahedra (six to a cell: 14 neighbours), three in ten edges moved to a node near by
   mesh:N:NNZ[:ORDER[:ROWS]]        N nodes with NNZ nonzeros, made the same way; ROWS > N: with empty rows spread among them
   roadnet:N:NNZ                    chains with crossings, degrees 1 to 4, most neighbours near, no diagonal
   ORDER  natural: of the cube; random; rcm: reverse Cuthill-McKee; blocks: pieces of 64 nodes in random order
*/
#include "bench.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <stdexcept>

namespace
{

/* Both ends in one number, the smaller one first: sorts as the pair */
using Edge = uint64_t;

Edge MakeEdge(PetscInt u, PetscInt v)
{
  return (uint64_t)PetscMin(u, v) << 32 | (uint64_t)PetscMax(u, v);
}
PetscInt First(Edge e)
{
  return (PetscInt)(e >> 32);
}
PetscInt Second(Edge e)
{
  return (PetscInt)(e & 0xffffffffu);
}

void SortUnique(std::vector<Edge> &edges)
{
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
}

/* Removes edges chosen by hash until `count` are left */
void Thin(std::vector<Edge> &edges, size_t count)
{
  if (edges.size() <= count) return;
  const auto before = [](Edge a, Edge b) { return Hash(a) < Hash(b); };
  std::nth_element(edges.begin(), edges.begin() + count, edges.end(), before);
  edges.resize(count);
  std::sort(edges.begin(), edges.end());
}

constexpr int REACH = 2;

/* The node whose place in the cube is up to `reach` from that of u in each direction, chosen by hash */
PetscInt NodeNear(PetscInt u, PetscInt side, uint64_t hash, int reach)
{
  const int64_t place[3] = {u % side, u / side % side, u / side / side}, choices = 2 * reach + 1;
  int64_t       v = 0;

  for (int d = 2; d >= 0; d--) v = side * v + PetscMin(PetscMax(place[d] + (int64_t)(hash >> (16 * d) & 0xffff) % choices - reach, 0), (int64_t)side - 1);
  return (PetscInt)v;
}

/* Edges of a cube of `side`^3 nodes, the first n of them; about `count` */
std::vector<Edge> MeshEdges(PetscInt n, PetscInt side, size_t count)
{
  /* One direction of each edge of the tetrahedra; then what a denser pattern needs */
  static const int step[][3] = {
    {1,  0,  0 },
    {0,  1,  0 },
    {0,  0,  1 },
    {1,  1,  0 },
    {1,  0,  1 },
    {0,  1,  1 },
    {1,  1,  1 },
    {1,  -1, 0 },
    {1,  0,  -1},
    {0,  1,  -1},
    {1,  1,  -1},
    {1,  -1, 1 },
    {-1, 1,  1 },
    {2,  0,  0 },
    {0,  2,  0 },
    {0,  0,  2 }
  };
  const int         steps = (int)PetscMin(std::size(step), 1 + (count + n / 2) / n);
  std::vector<Edge> edges;

  edges.reserve((size_t)n * steps);
  for (PetscInt u = 0; u < n; u++) {
    for (int s = 0; s < steps; s++) {
      const uint64_t h     = Hash((uint64_t)u * 32 + s);
      const bool     move  = h % 10 < 3;
      int64_t        at[3] = {u % side, u / side % side, u / side / side}, v;

      for (int d = 0; d < 3; d++) {
        const int64_t far = step[s][d] + (move ? (int64_t)(h >> (8 + 8 * d)) % 3 - 1 : 0);

        at[d] = PetscMin(PetscMax(at[d] + PetscMin(PetscMax(far, -REACH), REACH), 0), side - 1);
      }
      v = at[0] + side * (at[1] + side * at[2]);
      if (v < n && v != u) edges.push_back(MakeEdge(u, (PetscInt)v));
    }
  }
  SortUnique(edges);
  Thin(edges, count);
  /* Moved edges may coincide with others. Then pairs of nodes at most REACH apart in each direction, as long as edges are missing: a mesh has no long edges */
  for (int round = 0; edges.size() < count && round < 50; round++) {
    for (size_t k = 0, missing = count - edges.size(); k < missing; k++) {
      const uint64_t h = Hash((uint64_t)(round + 1) << 40 | k);
      const PetscInt u = (PetscInt)(h % (uint64_t)n), v = NodeNear(u, side, Hash(h), REACH);

      if (v < n && u != v) edges.push_back(MakeEdge(u, v));
    }
    SortUnique(edges);
  }
  return edges;
}

std::vector<Edge> RoadEdges(PetscInt n, size_t count)
{
  std::vector<Edge>    edges;
  std::vector<uint8_t> degree((size_t)n, 0);
  const auto           join = [&](PetscInt u, PetscInt v) {
    if (u == v || degree[u] >= 4 || degree[v] >= 4) return;
    edges.push_back(MakeEdge(u, v));
    degree[u]++, degree[v]++;
  };

  for (PetscInt u = 0; u + 1 < n; u++) {
    if (Hash((uint64_t)u) % 100 < 93) join(u, u + 1);
  }
  for (uint64_t k = 0; edges.size() < count + count / 64 && k < 20 * (uint64_t)n; k++) {
    const uint64_t h = Hash(k + 77), near = Hash(h) % 1000 + 2;
    const PetscInt u = (PetscInt)(h % (uint64_t)n);

    join(u, (PetscInt)((h >> 32) % 10 ? ((uint64_t)u + near) % (uint64_t)n : Hash(h + 1) % (uint64_t)n));
  }
  SortUnique(edges); /* some are there twice: hence more than needed */
  Thin(edges, count);
  return edges;
}

/* Neighbours of each node, ascending */
struct Graph {
  std::vector<PetscInt> start, node;
};
Graph MakeGraph(PetscInt n, const std::vector<Edge> &edges)
{
  Graph g;

  g.start.assign((size_t)n + 1, 0);
  for (Edge e : edges) g.start[First(e) + 1]++, g.start[Second(e) + 1]++;
  std::partial_sum(g.start.begin(), g.start.end(), g.start.begin());
  g.node.resize(2 * edges.size());
  std::vector<PetscInt> at(g.start.begin(), g.start.end() - 1);
  for (Edge e : edges) g.node[at[Second(e)]++] = First(e); /* edges ascend, so that first come all smaller neighbours */
  for (Edge e : edges) g.node[at[First(e)]++] = Second(e);
  return g;
}

/* Breadth first from the node, neighbours by ascending degree; appends to order */
void VisitFrom(const Graph &g, PetscInt node, std::vector<uint8_t> &seen, std::vector<PetscInt> &order)
{
  const auto by_degree = [&g](PetscInt a, PetscInt b) { return g.start[a + 1] - g.start[a] < g.start[b + 1] - g.start[b]; };

  seen[node] = 1;
  order.push_back(node);
  for (size_t head = order.size() - 1; head < order.size(); head++) {
    const size_t   first = order.size();
    const PetscInt u     = order[head];

    for (PetscInt k = g.start[u]; k < g.start[u + 1]; k++) {
      if (!seen[g.node[k]]) seen[g.node[k]] = 1, order.push_back(g.node[k]);
    }
    std::stable_sort(order.begin() + first, order.end(), by_degree);
  }
}

/* Each part from the node that a first visit ends at */
std::vector<PetscInt> ReverseCuthillMcKee(PetscInt n, const Graph &g)
{
  std::vector<uint8_t>  probe((size_t)n, 0), seen((size_t)n, 0);
  std::vector<PetscInt> order, trial;

  for (PetscInt u = 0; u < n; u++) {
    if (seen[u]) continue;
    trial.clear();
    VisitFrom(g, u, probe, trial);
    VisitFrom(g, trial.back(), seen, order);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

/* order[k]: the node that becomes row k. Rows beyond the n nodes are empty: there order holds -1. */
std::vector<PetscInt> MakeOrder(const std::string &name, PetscInt n, PetscInt rows, const std::vector<Edge> &edges)
{
  const PetscInt        piece = name == "blocks" ? 64 : 1, pieces = (rows + piece - 1) / piece;
  std::vector<PetscInt> order((size_t)rows, -1), mixed((size_t)pieces);

  if (name == "rcm") order = ReverseCuthillMcKee(n, MakeGraph(n, edges));
  else if (name != "natural" && name != "random" && name != "blocks") throw std::invalid_argument("no order '" + name + "': natural, random, rcm or blocks");
  if (name == "rcm") order.resize((size_t)rows, -1);
  else std::iota(order.begin(), order.begin() + n, 0);
  if (name == "natural" || name == "rcm") return order;
  std::iota(mixed.begin(), mixed.end(), 0);
  std::sort(mixed.begin(), mixed.end(), [](PetscInt a, PetscInt b) { return Hash((uint64_t)a) < Hash((uint64_t)b); });
  std::vector<PetscInt> result;
  for (PetscInt p : mixed) result.insert(result.end(), order.begin() + p * piece, order.begin() + PetscMin((p + 1) * piece, rows));
  return result;
}

/* Weights as of a finite element Laplacian, all different, and a diagonal that makes it positive definite; without diagonal: ones */
void Assemble(PetscInt n, const std::vector<Edge> &edges, const std::vector<PetscInt> &order, bool diagonal, Csr *A)
{
  const Graph                                   g = MakeGraph(n, edges);
  std::vector<PetscInt>                         row((size_t)n);
  std::vector<std::pair<PetscInt, PetscScalar>> entries;

  for (size_t k = 0; k < order.size(); k++) {
    if (order[k] >= 0) row[order[k]] = (PetscInt)k;
  }
  A->m = A->n  = (PetscInt)order.size();
  A->symmetric = true;
  A->i.assign(1, 0);
  A->j.reserve(2 * edges.size() + (size_t)n);
  A->a.reserve(2 * edges.size() + (size_t)n);
  for (PetscInt u : order) {
    PetscScalar sum = 0.1;

    entries.clear();
    for (PetscInt k = u < 0 ? 0 : g.start[u]; u >= 0 && k < g.start[u + 1]; k++) {
      const PetscScalar weight = diagonal ? -(0.1 + HashToUnit(MakeEdge(u, g.node[k]))) : 1.0;

      sum -= weight;
      entries.push_back({row[g.node[k]], weight});
    }
    if (diagonal && u >= 0) entries.push_back({row[u], sum});
    std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    for (const auto &entry : entries) A->j.push_back(entry.first), A->a.push_back(entry.second);
    A->i.push_back((PetscInt)A->j.size());
  }
}

PetscInt Number(const std::vector<std::string> &words, size_t k)
{
  const double value = k < words.size() ? std::atof(words[k].c_str()) : 0.0;

  if (value < 1 || value > 2147483647.0) throw std::invalid_argument("'" + words[0] + "' needs a size of 1 to 2147483647 as parameter " + std::to_string(k));
  return (PetscInt)value;
}

} // namespace

void CsrFromMesh(const std::vector<std::string> &words, Csr *A)
{
  const bool     tet = words[0] == "tet", road = words[0] == "roadnet";
  const PetscInt given = Number(words, 1), side = (PetscInt)std::ceil(std::cbrt((double)given) - 1e-9), n = tet ? side * side * side : given;
  const size_t   place = tet ? 2 : 3;

  if (n < 8) throw std::invalid_argument("'" + words[0] + "' needs 8 nodes");
  const size_t            count = tet ? 7 * (size_t)n : (size_t)PetscMax(0, Number(words, 2) - (road ? 0 : n)) / 2;
  const std::vector<Edge> edges = road ? RoadEdges(n, count) : MeshEdges(n, side, count);
  const PetscInt          rows  = words.size() > place + 1 ? PetscMax(n, Number(words, place + 1)) : n;
  Assemble(n, edges, MakeOrder(words.size() > place ? words[place] : "natural", n, rows, edges), !road, A);
}
