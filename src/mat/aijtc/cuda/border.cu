/*
   What columns of other processes add to a product, and to its sums.

   Method          A row of the border has one thread, or as many as it has entries up to a warp. By peers each looks at the words of its ghosts (peers.cuh) until they are there: nothing is unpacked. With d what the ghosts add to an element of y,
                   w.y grows by w d, y.y by d (2 y + d), and u.y by u d; these terms are folded over the grid, the last block adds the sums that the product of this process's columns has left, and with peers those of all processes.
                   The order of all sums depends on the matrix alone.
   Layout          compressed rows, those without entries left out; i[], j[], a[] in the order of the rows
   Memory traffic  12 bytes an entry and 16 a ghost, 20 to 36 a row; 7-point 101^3 on two GPUs: 10,201 rows of one entry, 0.5 MB, 0.1 us: the launch and the ghosts' way decide
   References      see peers.cuh and grid_reduce.cuh
*/
#include <vector>
#include <../src/comm/cuda/peers.cuh>
#include <../src/mat/aijtc/border.h>
#include <../src/parts/cuda/grid_reduce.cuh>
#include <../src/parts/cuda/overlap.cuh>

/* K: sums, 0, 2 or 4 */
template <int K>
static __global__ void __launch_bounds__(256) BorderKernel(AIJTCBorder B, PetscTCGhosts ghosts, bool tensor, double *y, AIJTCBorderSums sums)
{
  __shared__ GridReduceShared<K, 256> shared;
  double                              sum[K > 0 ? K : 1] = {};
  const int                           lanes = (int)B.lanes, lane = (int)threadIdx.x % lanes, step = (int)gridDim.x * (256 / lanes);

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (blockIdx.x == 0 && threadIdx.x < PETSCTC_MAX_PEERS && ghosts.neighbors >> threadIdx.x & 1) {
    double nothing;

    (void)PetscTCReceive(ghosts.word + ghosts.nghosts + threadIdx.x, ghosts.tag, nothing, (int)threadIdx.x, ghosts.patience, ghosts.missing);
  }
  for (PetscInt first = (PetscInt)blockIdx.x * (256 / lanes); first < B.m; first += step) { /* all lanes of a warp go as often */
    const PetscInt at  = first + (PetscInt)threadIdx.x / lanes;
    const bool     has = at < B.m;
    double         d   = 0.0;

    if (has) {
      for (PetscInt e = B.i[at] + lane; e < B.i[at + 1]; e += lanes) {
        double ghost;

        if (!ghosts.word) ghost = ghosts.number[B.j[e]];
        else if (!PetscTCReceive(ghosts.word + B.j[e], ghosts.tag, ghost, PETSCTC_MAX_PEERS, ghosts.patience, ghosts.missing)) ghost = nan("");
        d = fma(B.a[e], ghost, d);
      }
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) d += __shfl_xor_sync(0xffffffffu, d, distance);
    if (has && lane == 0) {
      const PetscInt row = B.row[at];
      const double   own = y[row];

      y[row] = own + d;
      if constexpr (K > 0) {
        sum[0] = fma(sums.w[row], d, sum[0]);
        sum[1] = fma(d, own + (own + d), sum[1]);
      }
      if constexpr (K > 2) sum[2] = fma(sums.u[row], d, sum[2]);
    }
  }
  if constexpr (K > 0) {
    const bool last = GridReduceBy<K>(tensor, sum, B.work.partial, B.work.arrived, shared);

    if (last && sums.from) {
      for (int k = 0; k < K; ++k) shared.total[k] += sums.from[k];
    }
    if (threadIdx.x >= 32 || !(gridDim.x == 1 || shared.last)) return;
    __syncwarp();
    const bool complete = !sums.peers || PetscTCAddOfPeers(sums.peers, sums.tag, K, shared.total);

    if (last) {
      for (int k = 0; k < K; ++k) sums.to[k] = complete ? shared.total[k] : nan("");
    }
  }
}

/* Device memory with the same content */
template <class T>
static PetscErrorCode CopyOf(const T from[], PetscCount n, T **to)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(to), (size_t)PetscMax(n, (PetscCount)1) * sizeof(T)));
  PetscCallCUDA(cudaMemcpy(*to, from, (size_t)n * sizeof(T), cudaMemcpyHostToDevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCBorderCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCBorder *border)
{
  std::vector<PetscInt> row, begin;

  PetscFunctionBegin;
  *border = {};
  for (PetscInt r = 0; r < m; r++) {
    if (i[r] == i[r + 1]) continue;
    row.push_back(r);
    begin.push_back(i[r]);
  }
  begin.push_back((PetscInt)nnz);
  border->m   = (PetscInt)row.size();
  border->nnz = nnz;
  for (border->lanes = 1; border->lanes < 32 && border->lanes * (PetscCount)border->m < nnz;) border->lanes *= 2;
  PetscCall(PetscTCReduceWorkCreate_CUDA(&border->work));
  PetscCall(CopyOf(row.data(), border->m, &border->row));
  PetscCall(CopyOf(begin.data(), border->m + 1, &border->i));
  PetscCall(CopyOf(j, nnz, &border->j));
  PetscCall(CopyOf(a, nnz, &border->a));
  PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&border->sum), 2 * AIJTC_BORDER_SUMS * sizeof(*border->sum)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCBorderDestroy_CUDA(AIJTCBorder *border)
{
  void *arrays[] = {border->row, border->i, border->j, border->a, border->sum};

  PetscFunctionBegin;
  for (void *array : arrays) {
    if (array) PetscCallCUDA(cudaFree(array));
  }
  if (border->work.cuda) PetscCall(PetscTCReduceWorkDestroy_CUDA(&border->work));
  *border = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCBorderRefresh_CUDA(AIJTCBorder *border, const PetscScalar a[], PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaMemcpyAsync(border->a, a, (size_t)border->nnz * sizeof(*a), cudaMemcpyDeviceToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCBorderMultAdd_CUDA(const AIJTCBorder *border, const PetscTCGhosts *ghosts, PetscBool tensor, PetscScalar y[], const AIJTCBorderSums *sums, PetscTCStream stream)
{
  const PetscCount wanted = ((PetscCount)border->m * border->lanes + 255) / 256;
  const unsigned   blocks = (unsigned)PetscMax((PetscCount)1, PetscMin(wanted, (PetscCount)PETSCTC_MAX_BLOCKS));
  const auto       kernel = sums->nsums > 2 ? BorderKernel<4> : (sums->nsums > 0 ? BorderKernel<2> : BorderKernel<0>);

  PetscFunctionBegin;
  PetscCall(LaunchOverlapping(kernel, blocks, 256, 0, stream, *border, *ghosts, (bool)tensor, y, *sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}
