/*
   Runs fused steps (fusedstep.h) on the GPU, one kernel launch each, which may start while the kernel before it ends (overlap.cuh).

   Method   A grid of at most 528 blocks goes over pairs of elements with a stride of the grid; a thread loads 4 pairs of every vector (2 or 1 when there are more
            than two inputs or seven vectors) before it computes, updates them, and adds to its private sums. Steps that descend begin with the last pairs: what the kernel
            before them had last is still in L2. GridReduce folds the sums; the one thread that has the complete sums finishes the scalars. Blocks read the scalars when they
            start and that thread writes them when all have arrived, so no block sees a mixture.
            The size of the grid, and with it the order of all sums, depends on n alone: not on the device, nor on the alignment of the vectors, nor on how many pairs are loaded at once.
            Blocks: a grid of at most 528 blocks of threads goes over chunks of the whole blocks that go into 512 rows (of several sizes: that begin in 496), a thread with one pair of each. It loads what both halves
            read and the first four columns of D, leaves y in shared memory and, when all have, adds up its pair of z from there. Two buffers by turns: one barrier a chunk. Here the order of sums depends on n and the blocks,
            and of blocks of several sizes pairs of a chunk that begins or ends with an odd row are read one by one.
   Layout   plain vectors. When all of them lie on 16 bytes a pair is one access, else two
   Memory   as stated with the steps; the scalars and the blocks' sums stay in L2
   References
            Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <cstdint>
#include <petscdevice_cuda.h>
#include <../src/comm/cuda/peers.cuh>
#include <../src/ksp/step/fusedstep.h>
#include <../src/parts/cuda/grid_reduce.cuh>
#include <../src/parts/cuda/overlap.cuh>

/* Elements 2 i and 2 i + 1 of a vector */
template <bool wide>
__device__ __forceinline__ double2 PetscTCLoadPair(const double *x, PetscCount i)
{
  if constexpr (wide) return reinterpret_cast<const double2 *>(x)[i];
  else return make_double2(x[2 * i], x[2 * i + 1]);
}

template <bool wide>
__device__ __forceinline__ void PetscTCStorePair(double *x, PetscCount i, double2 value)
{
  if constexpr (wide) reinterpret_cast<double2 *>(x)[i] = value;
  else {
    x[2 * i]     = value.x;
    x[2 * i + 1] = value.y;
  }
}

/* This thread's share of the elements */
template <bool wide, class Step>
__device__ __forceinline__ void PetscTCStepElements(PetscInt n, const Step &step, const typename Step::Scalars &s, double sum[])
{
  constexpr int    ahead = Step::inputs <= 2 ? 4 : (Step::inputs + Step::outputs <= 7 ? 2 : 1);
  const PetscInt   pairs = n / 2, stride = (PetscInt)(gridDim.x * blockDim.x), thread = (PetscInt)(blockIdx.x * blockDim.x + threadIdx.x);
  const PetscInt   mine  = pairs > thread ? (pairs - thread - 1) / stride + 1 : 0;
  const PetscCount first = thread + (Step::descends ? (PetscCount)(mine - 1) * stride : 0), step_by = Step::descends ? -(PetscCount)stride : (PetscCount)stride;

  for (PetscInt k0 = 0; k0 < mine; k0 += ahead) {
    const PetscCount i = first + k0 * step_by;
    double2          v[ahead][Step::in_size];

#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      for (int k = 0; k < Step::inputs && k0 + a < mine; ++k) v[a][k] = PetscTCLoadPair<wide>(step.in[k], i + a * step_by);
    }
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      if (k0 + a >= mine) break;
      double in0[Step::in_size], in1[Step::in_size], out0[Step::out_size], out1[Step::out_size];

      for (int k = 0; k < Step::inputs; ++k) {
        in0[k] = v[a][k].x;
        in1[k] = v[a][k].y;
      }
      step.element(s, in0, out0, sum);
      step.element(s, in1, out1, sum);
      for (int k = 0; k < Step::outputs; ++k) PetscTCStorePair<wide>(step.out[k], i + a * step_by, make_double2(out0[k], out1[k]));
    }
  }
  if (thread == 0 && n % 2) { /* the odd one */
    double in[Step::in_size], out[Step::out_size];

    for (int k = 0; k < Step::inputs; ++k) in[k] = step.in[k][n - 1];
    step.element(s, in, out, sum);
    for (int k = 0; k < Step::outputs; ++k) step.out[k][n - 1] = out[k];
  }
}

enum {
  PETSCTC_CHUNK = 512 /* rows of a chunk, at most */
};

/* The rows from one chunk to the next. Blocks of one size: whole blocks and whole pairs. Of several: a chunk has the blocks that begin in its rows, and so up to 15 rows more */
__host__ __device__ __forceinline__ int PetscTCChunkRows(const PetscTCBlocks &blocks)
{
  const int unit = (int)(blocks.size % 2 ? 2 * blocks.size : blocks.size);

  return blocks.rows ? (int)PETSCTC_CHUNK - (int)PETSCTC_MAX_BLOCK : (int)PETSCTC_CHUNK / unit * unit;
}

/* From this row on, the first that a block begins with; or n */
__device__ __forceinline__ PetscCount PetscTCBlockFrom(const PetscTCBlocks &blocks, PetscInt n, PetscCount row)
{
  if (row >= n) return n;
  const PetscTCBlock block = PetscTCBlockOf(blocks, (PetscInt)row);

  return block.first == row ? row : (PetscCount)block.first + block.size;
}

/* Elements `row` and, if `two`, row + 1 of a vector; the row is even */
template <bool wide>
__device__ __forceinline__ double2 PetscTCLoadRows(const double *x, PetscCount row, bool two)
{
  if constexpr (wide) return PetscTCLoadPair<true>(x, row / 2);
  else return make_double2(x[row], two ? x[row + 1] : 0.0);
}

template <bool wide>
__device__ __forceinline__ void PetscTCStoreRows(double *x, PetscCount row, bool two, double2 value)
{
  if constexpr (wide) PetscTCStorePair<true>(x, row / 2, value);
  else {
    x[row] = value.x;
    if (two) x[row + 1] = value.y;
  }
}

/* This thread's pair of a chunk */
struct PetscTCRows {
  PetscCount row;            /* the first of the pair */
  int        at;             /* the same in the chunk */
  int        first0, first1; /* in the chunk, the first rows of the blocks that the pair is in */
  int        size0, size1;   /* the rows of these */
  bool       one, two;       /* the chunk has the pair's first row, and the second */
};

/* Columns k .. k+3 of D, as far as there are any, in the rows of the pair */
template <bool wide>
__device__ __forceinline__ void PetscTCLoadColumns(const PetscTCBlocks &blocks, int k, const PetscTCRows &mine, double2 d[4])
{
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    if (k + c < blocks.size) d[c] = PetscTCLoadRows<wide>(blocks.d + (k + c) * (PetscCount)blocks.stride, mine.row, mine.two);
  }
}

/* The first half of the pair: y goes to y[], with[] and the first columns of D are loaded for the second */
template <bool wide, class Step>
__device__ __forceinline__ void PetscTCFirstHalf(const PetscTCRows &mine, const Step &step, const typename Step::Scalars &s, double2 with[], double2 d[4], double y[])
{
  double in0[Step::in_size], in1[Step::in_size], out0[Step::out_size], out1[Step::out_size];

#pragma unroll
  for (int k = 0; k < Step::inputs; ++k) {
    const double2 v = PetscTCLoadRows<wide>(step.in[k], mine.row, mine.two);

    in0[k] = v.x;
    in1[k] = v.y;
  }
#pragma unroll
  for (int k = 0; k < Step::withs; ++k) with[k] = PetscTCLoadRows<wide>(step.with[k], mine.row, mine.two);
  PetscTCLoadColumns<wide>(step.blocks, 0, mine, d);
  const double y0 = step.first(s, in0, out0), y1 = step.first(s, in1, out1);

  reinterpret_cast<double2 *>(y)[mine.at / 2] = make_double2(y0, y1);
#pragma unroll
  for (int k = 0; k < Step::outputs; ++k) PetscTCStoreRows<wide>(step.out[k], mine.row, mine.two, make_double2(out0[k], out1[k]));
}

/* The product and the second half; d[]: the first columns of D */
template <bool wide, class Step>
__device__ __forceinline__ void PetscTCSecondHalf(const PetscTCRows &mine, const Step &step, const typename Step::Scalars &s, const double2 with[], double2 d[4], const double y[], double sum[])
{
  double2 z = make_double2(0.0, 0.0);
  double  with0[Step::with_size], with1[Step::with_size];

  for (int k = 0; k < step.blocks.size; k += 4) {
    if (k > 0) PetscTCLoadColumns<wide>(step.blocks, k, mine, d);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (k + c < mine.size0) PetscTCAddProduct(z.x, d[c].x, y[mine.first0 + k + c]);
      if (k + c < mine.size1) PetscTCAddProduct(z.y, d[c].y, y[mine.first1 + k + c]);
    }
  }
#pragma unroll
  for (int k = 0; k < Step::withs; ++k) {
    with0[k] = with[k].x;
    with1[k] = with[k].y;
  }
  z.x = step.second(s, y[mine.at], z.x, with0, sum);
  if (mine.two) z.y = step.second(s, y[mine.at + 1], z.y, with1, sum);
  PetscTCStoreRows<wide>(step.z, mine.row, mine.two, z);
}

/* All threads of the block come here, with the same chunk. wide: its rows are even in number */
template <bool wide, class Step>
__device__ __forceinline__ void PetscTCStepChunk(const PetscTCRows &mine, const Step &step, const typename Step::Scalars &s, double y[], double sum[])
{
  double2 with[Step::with_size], d[4];

  if (mine.one) PetscTCFirstHalf<wide>(mine, step, s, with, d, y);
  __syncthreads();
  if (mine.one) PetscTCSecondHalf<wide>(mine, step, s, with, d, y, sum);
}

/* The blocks that the pair is in, of several sizes or as they are in any chunk */
__device__ __forceinline__ void PetscTCFindBlocks(const PetscTCBlocks &blocks, PetscTCRows &mine)
{
  const PetscCount   begin = blocks.rows ? mine.row - mine.at : 0;
  const PetscTCBlock none = {}, block0 = mine.one || !blocks.rows ? PetscTCBlockOf(blocks, (PetscInt)(begin + mine.at)) : none, block1 = mine.two || !blocks.rows ? PetscTCBlockOf(blocks, (PetscInt)(begin + mine.at + 1)) : none;

  mine.first0 = (int)(block0.first - begin);
  mine.first1 = (int)(block1.first - begin);
  mine.size0  = (int)block0.size;
  mine.size1  = (int)block1.size;
}

/* This block's share of the chunks. Who writes y of a chunk has passed the barrier of the chunk before: all have done with y of the one before that, which had the same buffer */
template <class Step>
__device__ __forceinline__ void PetscTCStepChunks(PetscInt n, const Step &step, const typename Step::Scalars &s, bool wide, double y[2 * PETSCTC_CHUNK], double sum[])
{
  const PetscTCBlocks &blocks = step.blocks;
  const int            chunk  = PetscTCChunkRows(blocks);
  const PetscInt       chunks = (PetscInt)(((PetscCount)n + chunk - 1) / chunk), first = (PetscInt)blockIdx.x, stride = (PetscInt)gridDim.x, share = chunks > first ? (chunks - first - 1) / stride + 1 : 0;
  PetscTCRows          mine = {};

  mine.at = 2 * (int)threadIdx.x;
  if (!blocks.rows) PetscTCFindBlocks(blocks, mine);
  for (PetscInt k = 0; k < share; ++k) {
    PetscCount    begin = (PetscCount)(first + (Step::descends ? share - 1 - k : k) * stride) * chunk, end = begin + chunk < n ? begin + chunk : n;
    double *const buffer = y + (k % 2 ? PETSCTC_CHUNK : 0);

    if (blocks.rows) {
      begin = PetscTCBlockFrom(blocks, n, begin);
      end   = PetscTCBlockFrom(blocks, n, end);
    }
    mine.row = begin + mine.at;
    mine.one = mine.row < end;
    mine.two = mine.row + 1 < end;
    if (blocks.rows) PetscTCFindBlocks(blocks, mine);
    if (wide && begin % 2 == 0 && end % 2 == 0) PetscTCStepChunk<true>(mine, step, s, buffer, sum);
    else PetscTCStepChunk<false>(mine, step, s, buffer, sum);
  }
}

/* The scalars as the step's begin() leaves them; false: they were stopped before it */
template <class Step>
__device__ __forceinline__ bool PetscTCStepBegin(const Step &step, const typename Step::Scalars *scalars, typename Step::Scalars &s)
{
  s = {};
  if constexpr (Step::reads_scalars) s = *scalars;
  if (PetscTCStepStopped<Step>(s)) return false;
  step.begin(s);
  return true;
}

/* The scalars from the complete sums, by one thread. From memory again, rather than in registers all the way: nobody has written them yet. complete: not, some sums have not come from other processes */
template <class Step>
__device__ __forceinline__ void PetscTCStepEnd(const Step &step, typename Step::Scalars *scalars, const double sum[], bool complete = true)
{
  typename Step::Scalars s;

  if (!PetscTCStepBegin(step, scalars, s)) return;
  if constexpr (Step::reads_scalars) {
    if (!complete) s.stop = PETSCTC_STOP_MISSING;
  }
  if (!PetscTCStepStopped<Step>(s)) step.end(s, sum);
  *scalars = s;
}

/* What a kernel knows of the other processes. All zero: there are none */
struct PetscTCStepAcross {
  double             *sum; /* where its sums go, if others are to be added to them by somebody else */
  const PetscTCPeers *peers;
  unsigned            tag;
};

/* A step on one system's vectors, by the blocks of the grid's first dimension */
template <class Step>
__device__ __forceinline__ void PetscTCStepByBlocks(PetscInt n, const Step &step, typename Step::Scalars *scalars, double *partial, unsigned *arrived, bool tensor, bool wide, const PetscTCStepAcross &across = {})
{
  __shared__ GridReduceShared<Step::sums, 256> shared;
  double                                       sum[Step::sum_size] = {};
  typename Step::Scalars                       s;

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (!PetscTCStepBegin(step, scalars, s)) {
    if constexpr (Step::sums > 0) { /* the others are told that it has come so far */
      if (across.peers && blockIdx.x == 0 && threadIdx.x < 32) {
        if (threadIdx.x < Step::sums) shared.total[threadIdx.x] = 0.0;
        __syncwarp();
        (void)PetscTCAddOfPeers(across.peers, across.tag, Step::sums, shared.total);
      }
    }
    return;
  }
  if (!PetscTCStepStopped<Step>(s)) {
    if constexpr (Step::blocked) {
      __shared__ __align__(16) double y[2 * PETSCTC_CHUNK];

      PetscTCStepChunks(n, step, s, wide, y, sum);
    } else if (wide) PetscTCStepElements<true>(n, step, s, sum);
    else PetscTCStepElements<false>(n, step, s, sum);
  }
  const bool last = GridReduceBy<Step::sums>(tensor, sum, partial, arrived, shared);

  if constexpr (Step::sums > 0) {
    if (across.peers) { /* the first warp of the last block */
      if (threadIdx.x >= 32 || !(gridDim.x == 1 || shared.last)) return;
      const bool complete = PetscTCAddOfPeers(across.peers, across.tag, Step::sums, shared.total);

      if (last) PetscTCStepEnd(step, scalars, shared.total, complete);
      return;
    }
  }
  if (!last) return;
  if (across.sum) {
    for (int k = 0; k < Step::sums; ++k) across.sum[k] = shared.total[k];
  } else PetscTCStepEnd(step, scalars, shared.total);
}

/* Registers: 4 blocks to a multiprocessor, so that all 528 run at once; the wide dot products need more */
template <class Step>
constexpr int PETSCTC_STEP_BLOCKS = Step::inputs <= 5 ? 4 : 2;

template <class Step>
__global__ void __launch_bounds__(256, PETSCTC_STEP_BLOCKS<Step>) PetscTCStepKernel(PetscInt n, Step step, typename Step::Scalars *scalars, double *partial, unsigned *arrived, bool tensor, bool wide, PetscTCStepAcross across)
{
  PetscTCStepByBlocks(n, step, scalars, partial, arrived, tensor, wide, across);
}

/* What is left of a step whose sums have been added up elsewhere */
template <class Step>
__global__ void PetscTCStepEndKernel(Step step, typename Step::Scalars *scalars, const double *sum)
{
  PetscTCStepEnd(step, scalars, sum);
}

struct PetscTCBackend_CUDA {
  /* About 4 elements for a thread, until the grid is full */
  static unsigned blocks(PetscInt n)
  {
    const PetscCount wanted = ((PetscCount)n + 1023) / 1024;

    return (unsigned)PetscMax((PetscCount)1, PetscMin(wanted, (PetscCount)PETSCTC_MAX_BLOCKS));
  }

  /* A chunk for a thread block, until the grid is full */
  static unsigned chunks(PetscInt n, const PetscTCBlocks &blocks)
  {
    const PetscCount rows = PetscTCChunkRows(blocks), wanted = ((PetscCount)n + rows - 1) / rows;

    return (unsigned)PetscMax((PetscCount)1, PetscMin(wanted, (PetscCount)PETSCTC_MAX_BLOCKS));
  }

  static bool aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % sizeof(double2) == 0; }

  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, typename Step::Scalars *scalars, PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
  {
    bool     wide = true;
    unsigned grid = blocks(n);

    PetscFunctionBegin;
    for (int k = 0; k < Step::inputs; ++k) wide = wide && aligned(step.in[k]);
    for (int k = 0; k < Step::outputs; ++k) wide = wide && aligned(step.out[k]);
    if constexpr (Step::blocked) {
      for (int k = 0; k < Step::withs; ++k) wide = wide && aligned(step.with[k]);
      wide = wide && aligned(step.z) && aligned(step.blocks.d) && step.blocks.stride % 2 == 0;
      grid = chunks(n, step.blocks);
    }
    PetscTCStepAcross across = {};

    if constexpr (Step::sums > 0) {
      across.peers = work->across.peers;
      if (across.peers) across.tag = ++*work->across.tag;
      else if (work->across.add) across.sum = work->across.sum;
    }
    PetscCall(LaunchOverlapping(PetscTCStepKernel<Step>, grid, 256, 0, stream, n, step, scalars, work->partial, work->arrived, (bool)tensor, wide, across));
    if constexpr (Step::sums > 0) {
      if (!across.sum) PetscFunctionReturn(PETSC_SUCCESS);
      PetscCall((*work->across.add)(work->across.ctx, Step::sums, work->across.sum, stream));
      PetscTCStepEndKernel<<<1, 1, 0, stream>>>(step, scalars, work->across.sum);
      PetscCallCUDA(cudaGetLastError());
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Work is a TCCGWork or a TCBCGSWork */
  template <class Work>
  static PetscErrorCode create(Work *work)
  {
    PetscFunctionBegin;
    work->s       = nullptr;
    work->records = nullptr;
    work->events  = nullptr;
    PetscCall(PetscTCReduceWorkCreate_CUDA(&work->reduce));
    PetscCallCUDA(cudaMalloc(reinterpret_cast<void **>(&work->s), sizeof(*work->s)));
    PetscCallCUDA(cudaMallocHost(reinterpret_cast<void **>(&work->records), (PETSCTC_RECORDS + 1) * sizeof(*work->records)));
    PetscCall(PetscCalloc1(PETSCTC_RECORDS, &work->events));
    for (int i = 0; i < PETSCTC_RECORDS; i++) PetscCallCUDA(cudaEventCreateWithFlags(&work->events[i], cudaEventDisableTiming));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  template <class Work>
  static PetscErrorCode destroy(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(PetscTCReduceWorkDestroy_CUDA(&work->reduce));
    if (work->s) PetscCallCUDA(cudaFree(work->s));
    if (work->records) PetscCallCUDA(cudaFreeHost(work->records));
    for (int i = 0; work->events && i < PETSCTC_RECORDS; i++) {
      if (work->events[i]) PetscCallCUDA(cudaEventDestroy(work->events[i]));
    }
    PetscCall(PetscFree(work->events));
    work->s       = nullptr;
    work->records = nullptr;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  template <class Work, class Scalars>
  static PetscErrorCode read(const Work *work, Scalars *host, PetscTCStream stream)
  {
    Scalars *pinned = &work->records[PETSCTC_RECORDS];

    PetscFunctionBegin;
    PetscCallCUDA(cudaMemcpyAsync(pinned, work->s, sizeof(*host), cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
    *host = *pinned;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Page-locked host memory has one address for host and device: a record is written by the step itself, and there when its kernel is over */
  template <class Work>
  static PetscErrorCode mark(const Work *work, int number, PetscTCStream stream)
  {
    PetscFunctionBegin;
    PetscCallCUDA(cudaEventRecord(work->events[number], stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  template <class Work>
  static PetscErrorCode await(const Work *work, int number)
  {
    PetscFunctionBegin;
    PetscCallCUDA(cudaEventSynchronize(work->events[number]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};
