/*
   Dot products and norm on the host.

   Method, Layout  fusedstep_host.h
   Memory traffic  8 n (count + 1) bytes for a multiple dot product, 8 n for a norm
*/
#include <../src/ksp/step/fusedstep_host.h>
#include <../src/vec/vecnorm.h>

namespace
{
/* in: x, y[0], ..., y[K-1] */
template <int K>
struct DotStep : PetscTCStep<PetscTCDots<K>, K + 1, 0, K> {
  static constexpr bool reads_scalars = false;

  template <class T>
  void element(const PetscTCDots<K> &, const T in[], T[], T sum[]) const
  {
    for (int k = 0; k < K; ++k) PetscTCAddProduct(sum[k], in[0], in[1 + k]);
  }
  void end(PetscTCDots<K> &s, const PetscScalar sum[]) const
  {
    for (int k = 0; k < K; ++k) s.value[k] = sum[k];
  }
};

/* `count` is known at run time, a step's number of sums at compile time */
template <int K = PETSCTC_MAX_DOTS>
PetscErrorCode MDot(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[])
{
  PetscFunctionBegin;
  PetscCheck(count >= 0 && count <= K, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " dot products at once, 0 to %d are possible: call several times", count, (int)PETSCTC_MAX_DOTS);
  if constexpr (K > 0) {
    if (count == K) {
      DotStep<K> step = {};

      step.in[0] = x;
      for (int k = 0; k < K; ++k) step.in[1 + k] = y[k];
      PetscCall(PetscTCBackend_Host::run(n, step, reinterpret_cast<PetscTCDots<K> *>(result), PETSC_FALSE, nullptr, nullptr));
    } else PetscCall(MDot<K - 1>(n, x, count, y, result));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

/* The host needs no work space: a sum never leaves the thread that adds it */
PetscErrorCode PetscTCReduceWorkCreate_Host(PetscTCReduceWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCReduceWorkDestroy_Host(PetscTCReduceWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCMDot_Host(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[])
{
  PetscFunctionBegin;
  PetscCall(MDot(n, x, count, y, result));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCNorm2_Host(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(PetscTCVecNorm2<PetscTCBackend_Host>(n, x, result, tensor, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
