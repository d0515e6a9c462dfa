/*
   Runs fused steps of blocks of columns (fusedcolumns.h) on the GPU, one kernel launch each.

   Method   One launch for all columns: the second dimension of the grid. The blocks of a column are those of a step of one vector (fusedstep_cuda.cuh), with sums, counter and scalars of their own, so they find the same bits. The
            first column's blocks come first onto the device, which keeps a diagonal that all columns read in L2. Blocks of a column that has stopped end at once.
   Layout   column c begins c strides behind the first. When all of them lie on 16 bytes a pair is one access, else two
   Memory   as stated with the steps of one vector, for each column
   References
            Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/ksp/step/fusedcolumns.h>
#include <../src/ksp/step/fusedstep_cuda.cuh>

/* Where the columns' sums meet */
struct PetscTCMeetings {
  double   *partial[PETSCTC_MAX_COLUMNS];
  unsigned *arrived[PETSCTC_MAX_COLUMNS];
};

template <class Step>
__global__ void __launch_bounds__(256, PETSCTC_STEP_BLOCKS<Step>)
  PetscTCColumnsStepKernel(PetscInt n, const __grid_constant__ PetscTCColumnsStep<Step> steps, typename Step::Scalars *scalars, const __grid_constant__ PetscTCMeetings meetings, bool tensor, bool wide)
{
  const int c = (int)blockIdx.y;

  PetscTCStepByBlocks(n, steps.of(c), scalars + c, meetings.partial[c], meetings.arrived[c], tensor, wide);
}

struct PetscTCColumnsBackend_CUDA : PetscTCBackend_CUDA {
  static constexpr auto create_reduce  = PetscTCReduceWorkCreate_CUDA;
  static constexpr auto destroy_reduce = PetscTCReduceWorkDestroy_CUDA;

  /* Does the vector begin on 16 bytes in every column? */
  static bool all_aligned(const void *first, PetscCount stride, PetscInt columns) { return aligned(first) && (columns == 1 || stride % 2 == 0); }

  template <class Step>
  static PetscErrorCode run_columns(PetscInt n, PetscInt columns, const PetscTCColumnsStep<Step> &steps, typename Step::Scalars *scalars, PetscTCColumnsWork<typename Step::Scalars> *work, PetscTCStream stream)
  {
    PetscTCMeetings meetings = {};
    bool            wide     = true;

    PetscFunctionBegin;
    for (int k = 0; k < Step::inputs; ++k) wide = wide && all_aligned(steps.step.in[k], steps.in[k], columns);
    for (int k = 0; k < Step::outputs; ++k) wide = wide && all_aligned(steps.step.out[k], steps.out[k], columns);
    for (int c = 0; c < PETSCTC_MAX_COLUMNS; ++c) {
      const PetscTCReduceWork &reduce = c ? work->others[c - 1] : work->reduce;

      meetings.partial[c] = reduce.partial;
      meetings.arrived[c] = reduce.arrived;
    }
    PetscCall(LaunchOverlapping(PetscTCColumnsStepKernel<Step>, dim3(blocks(n), (unsigned)columns), 256, 0, stream, n, steps, scalars, meetings, (bool)work->tensor, wide));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode allocate(PetscCount count, PetscScalar **array, PetscBool *room)
  {
    const cudaError_t cerr = cudaMalloc(reinterpret_cast<void **>(array), count * sizeof(**array));

    PetscFunctionBegin;
    if (cerr == cudaErrorMemoryAllocation) {
      *array = nullptr;
      *room  = PETSC_FALSE;
      (void)cudaGetLastError(); /* it is told here; it must not appear again after the next launch */
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCallCUDA(cerr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode free(PetscScalar **array)
  {
    PetscFunctionBegin;
    if (*array) PetscCallCUDA(cudaFree(*array));
    *array = nullptr;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode copy(PetscInt n, const PetscScalar from[], PetscScalar to[], PetscTCStream stream)
  {
    PetscFunctionBegin;
    if (n) PetscCallCUDA(cudaMemcpyAsync(to, from, n * sizeof(*to), cudaMemcpyDeviceToDevice, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};
