/*
   Method
     Rows by region (ksptcregions.h):
       cluster  as for gathered layouts (src/mat/aijtc/cuda/build_cluster.cu)
       count    a scan over the rows in that order: how many clusters have begun
       number   one thread a row: its cluster's number, and where a cluster begins
       link     eight lanes a row: the bits of the clusters of its columns, both ways; its weight, a sum of integers, which are the same in any order
       halve    on the host (host/ksptcregions.cxx)
       order    one thread a row
     The host waits twice: for the number of clusters, and for their graph.

   Layout
     src/ksp/resident/ksptcregions.h

   Memory traffic
     The search as in build_cluster.cu; j once, and 4 bytes at random for each nonzero, for the graph; 30 bytes a row; the graph, 2 MB for a million rows, to the host. A million rows of 15: 90 MB and the 137 of the search, 53 us; the search alone takes 157 (tetrahedra in RCM numbering)

   References
     CUDA Core Compute Libraries (CUB), DeviceScan
*/
#include <cub/device/device_scan.cuh>
#include <petscdevice_cuda.h>
#include <petsctc/private/aijtclayout.h>
#include <../src/parts/devicescratch.h>
#include <../src/ksp/resident/ksptcregions.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace
{
constexpr int THREADS   = 256;
constexpr int ROW_LANES = 8; /* that share a row */

/* Does a cluster begin at this place of the order of clusters? Behind the last none does */
struct BeginsAt {
  int32_t         m;
  const uint32_t *cluster;

  __host__ __device__ int32_t operator()(int32_t p) const { return p < m && AIJTCIsSeed((PetscInt)cluster[p]) && (p == 0 || cluster[p - 1] != cluster[p]); }
};

/* Arrays in device memory. By place in the order of clusters: row, cluster, count, of the clusters that have begun before it; by row: node, its cluster's number; by cluster: begin, its first place; and the graph */
struct Clusters {
  PetscInt            m;
  const int32_t      *row;
  const uint32_t     *cluster;
  const int32_t      *count;
  int32_t            *node;
  int32_t            *begin;
  int32_t             words;
  uint32_t           *bits;
  unsigned long long *weight;
};

unsigned BlocksFor(PetscCount items)
{
  return (unsigned)((items + THREADS - 1) / THREADS);
}

/* Row 0 is a seed: the first place begins a cluster */
__global__ void __launch_bounds__(THREADS) NumberKernel(const __grid_constant__ Clusters C)
{
  const PetscInt p = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (p >= C.m) return;
  const int32_t before = C.count[p], now = C.count[p + 1];

  C.node[C.row[p]] = now - 1;
  if (now > before) C.begin[before] = p;
}

__device__ __forceinline__ void Link(const Clusters &C, int32_t u, int32_t v)
{
  uint32_t *const word = C.bits + (size_t)u * C.words + v / 32;
  const uint32_t  bit  = 1u << v % 32;

  if (!(__ldcg(word) & bit)) (void)atomicOr(word, bit);
}

__global__ void __launch_bounds__(THREADS) LinkKernel(const __grid_constant__ Clusters C, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt weight)
{
  const PetscCount thread = (PetscCount)blockIdx.x * THREADS + threadIdx.x, r = thread / ROW_LANES;
  const int        lane = (int)(thread % ROW_LANES);

  if (r >= C.m) return;
  const int32_t  u     = C.node[r];
  const PetscInt begin = i[r], end = i[r + 1];

  if (lane == 0) (void)atomicAdd(C.weight + u, (unsigned long long)(weight + end - begin));
  for (PetscInt k = begin + lane; k < end; k += ROW_LANES) {
    const int32_t v = C.node[j[k]];

    if (v == u) continue;
    Link(C, u, v);
    Link(C, v, u);
  }
}

/* first[]: the first place of a cluster's rows in the order of regions */
__global__ void __launch_bounds__(THREADS) OrderKernel(const __grid_constant__ Clusters C, const int32_t *__restrict__ first, PetscInt *__restrict__ order)
{
  const PetscInt p = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (p >= C.m) return;
  const int32_t row = C.row[p], u = C.node[row];

  order[first[u] + p - C.begin[u]] = row;
}

/* By cluster, where there are too many for a graph */
__global__ void __launch_bounds__(THREADS) TakeKernel(PetscInt m, const int32_t *__restrict__ row, PetscInt *__restrict__ order)
{
  const PetscInt p = (PetscInt)(blockIdx.x * THREADS + threadIdx.x);

  if (p < m) order[p] = row[p];
}

/* C.row, C.cluster, C.count, and on the host the last count. Waits */
PetscErrorCode CountClusters(const PetscInt i[], const PetscInt j[], Scratch<char> &rows, Scratch<int32_t> &counts, Clusters *C, int32_t *last, PetscBool *room, cudaStream_t stream)
{
  const auto    from  = [C](const uint32_t *of) { return thrust::make_transform_iterator(thrust::make_counting_iterator(0), BeginsAt{(int32_t)C->m, of}); };
  size_t        bytes = 0, temporary = 0;
  int32_t      *row;
  uint32_t     *cluster;
  Scratch<char> work;

  PetscFunctionBegin;
  PetscCall(AIJTCClusterRows_CUDA(C->m, i, j, nullptr, &bytes, &row, &cluster, stream));
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum(nullptr, temporary, from(nullptr), (int32_t *)nullptr, (PetscCount)C->m + 1, stream));
  PetscCall(rows.allocate(bytes, stream, room));
  PetscCall(counts.allocate((size_t)C->m + 1, stream, room));
  PetscCall(work.allocate(temporary, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(AIJTCClusterRows_CUDA(C->m, i, j, (void *)(char *)rows, &bytes, &row, &cluster, stream));
  C->row     = row;
  C->cluster = cluster;
  C->count   = counts;
  PetscCallCUDA(cub::DeviceScan::ExclusiveSum((void *)(char *)work, temporary, from(cluster), (int32_t *)counts, (PetscCount)C->m + 1, stream));
  PetscCallCUDA(cudaMemcpyAsync(last, C->count + C->m, sizeof(*last), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph, and where clusters begin, on the host. Waits */
PetscErrorCode LinkClusters(const PetscInt i[], const PetscInt j[], PetscInt weight, const Clusters &C, KSPTCClusterGraph *graph, std::vector<int32_t> *begin, cudaStream_t stream)
{
  const size_t clusters = (size_t)graph->clusters, words = clusters * C.words;

  PetscFunctionBegin;
  graph->bits.resize(words);
  graph->weight.resize(clusters);
  begin->resize(clusters);
  PetscCallCUDA(cudaMemsetAsync(C.bits, 0, words * sizeof(*C.bits), stream));
  PetscCallCUDA(cudaMemsetAsync(C.weight, 0, clusters * sizeof(*C.weight), stream));
  LinkKernel<<<BlocksFor((PetscCount)C.m * ROW_LANES), THREADS, 0, stream>>>(C, i, j, weight);
  PetscCallCUDA(cudaGetLastError());
  static_assert(sizeof(*C.weight) == sizeof(int64_t), "weights are copied");
  PetscCallCUDA(cudaMemcpyAsync(graph->bits.data(), C.bits, words * sizeof(*C.bits), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaMemcpyAsync(graph->weight.data(), C.weight, clusters * sizeof(*C.weight), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaMemcpyAsync(begin->data(), C.begin, clusters * sizeof(*C.begin), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first places of the clusters in this sequence */
std::vector<int32_t> FirstPlaces(const std::vector<int32_t> &sequence, const std::vector<int32_t> &begin, int32_t m)
{
  std::vector<int32_t> first(begin.size());
  int32_t              place = 0;

  for (int32_t u : sequence) {
    first[u] = place;
    place += ((size_t)u + 1 < begin.size() ? begin[u + 1] : m) - begin[u];
  }
  return first;
}

/* order[] of so many clusters. Waits */
PetscErrorCode OrderRows(const PetscInt i[], const PetscInt j[], PetscInt weight, int regions, int32_t clusters, Clusters *C, PetscInt order[], PetscBool *room, cudaStream_t stream)
{
  KSPTCClusterGraph           graph;
  std::vector<int32_t>        begin, sequence, first;
  Scratch<int32_t>            node, begins, firsts;
  Scratch<uint32_t>           bits;
  Scratch<unsigned long long> weights;

  PetscFunctionBegin;
  graph.clusters = clusters;
  C->words       = (int32_t)graph.words();
  PetscCall(node.allocate(C->m, stream, room));
  PetscCall(begins.allocate(graph.clusters, stream, room));
  PetscCall(firsts.allocate(graph.clusters, stream, room));
  PetscCall(bits.allocate((size_t)graph.clusters * C->words, stream, room));
  PetscCall(weights.allocate(graph.clusters, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  C->node   = node;
  C->begin  = begins;
  C->bits   = bits;
  C->weight = weights;
  NumberKernel<<<BlocksFor(C->m), THREADS, 0, stream>>>(*C);
  PetscCallCUDA(cudaGetLastError());
  PetscCall(LinkClusters(i, j, weight, *C, &graph, &begin, stream));
  KSPTCSequenceByRegion(graph, regions, sequence);
  first = FirstPlaces(sequence, begin, C->m);
  PetscCallCUDA(cudaMemcpyAsync(firsts, first.data(), first.size() * sizeof(first[0]), cudaMemcpyHostToDevice, stream));
  OrderKernel<<<BlocksFor(C->m), THREADS, 0, stream>>>(*C, firsts, order);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* first[] goes */
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode KSPTCOrderByRegion_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt weight, int regions, PetscInt order[], PetscBool *room, PetscTCStream stream)
{
  Clusters         C = {};
  int32_t          clusters;
  Scratch<char>    rows;
  Scratch<int32_t> counts;

  PetscFunctionBegin;
  C.m = m;
  PetscCall(CountClusters(i, j, rows, counts, &C, &clusters, room, stream));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  if (KSPTCMakesRegions(clusters)) PetscCall(OrderRows(i, j, weight, regions, clusters, &C, order, room, stream));
  else {
    TakeKernel<<<BlocksFor(m), THREADS, 0, stream>>>(m, C.row, order);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
