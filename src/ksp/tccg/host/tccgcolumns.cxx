/*
   The steps of KSPTCCG for blocks of columns on the host: tccgcolumns.h (method, memory traffic, references), fusedstep_host.h runs the steps of a column (layout, order of the sums).
*/
#include <petsctc/private/fusedstep_host.h>
#include <petsctc/private/tccgcolumnssteps.h>

namespace
{
struct Backend : PetscTCBackend_Host {
  static constexpr auto create_reduce  = PetscTCReduceWorkCreate_Host;
  static constexpr auto destroy_reduce = PetscTCReduceWorkDestroy_Host;

  template <class Step>
  static PetscErrorCode run_columns(PetscInt n, PetscInt columns, const TCCGColumnsStep<Step> &step, TCCGScalars *scalars, TCCGColumnsWork *work, PetscTCStream stream)
  {
    PetscFunctionBegin;
    for (PetscInt c = 0; c < columns; c++) PetscCall(run(n, step.of((int)c), scalars + c, work->tensor, &work->reduce, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode allocate(PetscCount count, PetscScalar **array, PetscBool *)
  {
    PetscFunctionBegin;
    PetscCall(PetscMalloc1(count, array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode free(PetscScalar **array)
  {
    PetscFunctionBegin;
    PetscCall(PetscFree(*array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode copy(PetscInt n, const PetscScalar from[], PetscScalar to[], PetscTCStream)
  {
    PetscFunctionBegin;
    PetscCall(PetscArraycpy(to, from, n));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};
} // namespace

const TCCGColumnsSteps TCCGColumnsSteps_Host = TCCGColumnsOn<Backend>::table;
