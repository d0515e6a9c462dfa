/* The norm as a fused step without outputs, and its launcher on any backend */
#pragma once

#include <../src/ksp/step/fusedstep.h>

/* The scalars of a step that only tells sums */
template <int K>
struct PetscTCDots {
  PetscScalar value[K];
};

struct PetscTCNorm2Step : PetscTCStep<PetscTCDots<1>, 1, 0, 1> {
  static constexpr bool reads_scalars = false;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const PetscTCDots<1> &, const T in[], T[], T sum[]) const
  {
    PetscTCAddProduct(sum[0], in[0], in[0]);
  }
  PETSCTC_HOST_DEVICE void end(PetscTCDots<1> &s, const PetscScalar sum[]) const { s.value[0] = sqrt(sum[0]); }
};

template <class Backend>
PetscErrorCode PetscTCVecNorm2(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
{
  PetscTCNorm2Step step = {};

  PetscFunctionBegin;
  step.in[0] = x;
  PetscCall(Backend::run(n, step, reinterpret_cast<PetscTCDots<1> *>(result), tensor, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
