/*
   Runs fused steps (fusedstep.h) on the GPU, one kernel launch each, which may start while the kernel before it ends (overlap.cuh).

   Method   A grid of at most 528 blocks goes over pairs of elements with a stride of the grid; a thread loads 4 pairs of every vector (2 or 1 when there are more
            than two inputs or seven vectors) before it computes, updates them, and adds to its private sums. Steps that descend begin with the last pairs: what the kernel
            before them had last is still in L2. GridReduce folds the sums; the one thread that has the complete sums finishes the scalars. Blocks read the scalars when they
            start and that thread writes them when all have arrived, so no block sees a mixture.
            The size of the grid, and with it the order of all sums, depends on n alone: not on the device, nor on the alignment of the vectors, nor on how many pairs are loaded at once.
   Layout   plain vectors. When all of them lie on 16 bytes a pair is one access, else two
   Memory   as stated with the steps; the scalars and the blocks' sums stay in L2
   References
            Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <cstdint>
#include <petscdevice_cuda.h>
#include <petsctc/private/fusedstep.h>
#include <petsctc/private/grid_reduce.cuh>
#include <petsctc/private/overlap.cuh>

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

/* Registers: 4 blocks to a multiprocessor, so that all 528 run at once; the wide dot products need more */
template <bool tensor, class Step>
__global__ void __launch_bounds__(256, Step::inputs <= 5 ? 4 : 2) PetscTCStepKernel(PetscInt n, Step step, typename Step::Scalars *scalars, double *partial, unsigned *arrived, bool wide)
{
  using Reduce = GridReduce<Step::sums, tensor>;
  __shared__ typename Reduce::Shared shared;
  double                             sum[Reduce::rows] = {};
  typename Step::Scalars             s;

  LetNextLaunchStart();
  WaitForLaunchBefore();
  if (!PetscTCStepBegin(step, scalars, s)) return;
  if (!PetscTCStepStopped<Step>(s)) {
    if (wide) PetscTCStepElements<true>(n, step, s, sum);
    else PetscTCStepElements<false>(n, step, s, sum);
  }
  if (Reduce::grid(sum, partial, arrived, shared)) {
    /* From memory again, rather than in registers all the way: nobody has written them yet */
    (void)PetscTCStepBegin(step, scalars, s);
    if (!PetscTCStepStopped<Step>(s)) step.end(s, shared.total);
    *scalars = s;
  }
}

struct PetscTCBackend_CUDA {
  /* About 4 elements for a thread, until the grid is full */
  static unsigned blocks(PetscInt n)
  {
    const PetscCount wanted = ((PetscCount)n + 1023) / 1024;

    return (unsigned)PetscMax((PetscCount)1, PetscMin(wanted, (PetscCount)PETSCTC_MAX_BLOCKS));
  }

  static bool aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % sizeof(double2) == 0; }

  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, typename Step::Scalars *scalars, PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
  {
    bool wide = true;

    PetscFunctionBegin;
    for (int k = 0; k < Step::inputs; ++k) wide = wide && aligned(step.in[k]);
    for (int k = 0; k < Step::outputs; ++k) wide = wide && aligned(step.out[k]);
    /* A step without sums has nothing to fold: one kernel serves both */
    const auto kernel = Step::sums > 0 && tensor ? PetscTCStepKernel<(Step::sums > 0), Step> : PetscTCStepKernel<false, Step>;

    PetscCall(LaunchOverlapping(kernel, blocks(n), 256, 0, stream, n, step, scalars, work->partial, work->arrived, wide));
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
