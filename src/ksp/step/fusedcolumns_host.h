/* Runs fused steps of blocks of columns (fusedcolumns.h) on the host: one column after the other, by fusedstep_host.h (layout, order of the sums) */
#pragma once

#include <../src/ksp/step/fusedcolumns.h>
#include <../src/ksp/step/fusedstep_host.h>

struct PetscTCColumnsBackend_Host : PetscTCBackend_Host {
  static constexpr auto create_reduce  = PetscTCReduceWorkCreate_Host;
  static constexpr auto destroy_reduce = PetscTCReduceWorkDestroy_Host;

  template <class Step>
  static PetscErrorCode run_columns(PetscInt n, PetscInt columns, const PetscTCColumnsStep<Step> &step, typename Step::Scalars *scalars, PetscTCColumnsWork<typename Step::Scalars> *work, PetscTCStream stream)
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
