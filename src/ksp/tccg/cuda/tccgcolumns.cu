/*
   The steps of KSPTCCG for blocks of columns on the GPU: tccgcolumns.h (memory traffic, references), fusedstep_cuda.cuh runs the steps of a column.

   Method   One launch for all columns: the second dimension of the grid. The blocks of a column are those of a step of one vector, with sums, counter and scalars of their own, so they find the same bits. The
            first column's blocks come first onto the device, which keeps a diagonal that all columns read in L2. Blocks of a column that has stopped end at once.
   Layout   column c begins c strides behind the first. When all of them lie on 16 bytes a pair is one access, else two
*/
#include <petsctc/private/fusedstep_cuda.cuh>
#include <petsctc/private/tccgcolumnssteps.h>

namespace
{
/* Where the columns' sums meet */
struct Meetings {
  double   *partial[TCCG_MAX_COLUMNS];
  unsigned *arrived[TCCG_MAX_COLUMNS];
};

template <bool tensor, class Step>
__global__ void __launch_bounds__(256, PETSCTC_STEP_BLOCKS<Step>) ColumnsStepKernel(PetscInt n, const __grid_constant__ TCCGColumnsStep<Step> steps, TCCGScalars *scalars, const __grid_constant__ Meetings meetings, bool wide)
{
  const int c = (int)blockIdx.y;

  PetscTCStepByBlocks<tensor>(n, steps.of(c), scalars + c, meetings.partial[c], meetings.arrived[c], wide);
}

struct Backend : PetscTCBackend_CUDA {
  static constexpr auto create_reduce  = PetscTCReduceWorkCreate_CUDA;
  static constexpr auto destroy_reduce = PetscTCReduceWorkDestroy_CUDA;

  /* Does the vector begin on 16 bytes in every column? */
  static bool all_aligned(const void *first, PetscCount stride, PetscInt columns) { return aligned(first) && (columns == 1 || stride % 2 == 0); }

  template <class Step>
  static PetscErrorCode run_columns(PetscInt n, PetscInt columns, const TCCGColumnsStep<Step> &steps, TCCGScalars *scalars, TCCGColumnsWork *work, PetscTCStream stream)
  {
    const auto kernel   = Step::sums > 0 && work->tensor ? ColumnsStepKernel<(Step::sums > 0), Step> : ColumnsStepKernel<false, Step>;
    Meetings   meetings = {};
    bool       wide     = true;

    PetscFunctionBegin;
    for (int k = 0; k < Step::inputs; ++k) wide = wide && all_aligned(steps.step.in[k], steps.in[k], columns);
    for (int k = 0; k < Step::outputs; ++k) wide = wide && all_aligned(steps.step.out[k], steps.out[k], columns);
    for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) {
      const PetscTCReduceWork &reduce = c ? work->others[c - 1] : work->reduce;

      meetings.partial[c] = reduce.partial;
      meetings.arrived[c] = reduce.arrived;
    }
    PetscCall(LaunchOverlapping(kernel, dim3(blocks(n), (unsigned)columns), 256, 0, stream, n, steps, scalars, meetings, wide));
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
} // namespace

const TCCGColumnsSteps TCCGColumnsSteps_CUDA = TCCGColumnsOn<Backend>::table;
