/* Dot products and the norm as fused steps without outputs, and their launchers on any backend */
#pragma once

#include <petsctc/private/fusedstep.h>

template <int K>
struct PetscTCDots {
  PetscScalar value[K];
};

/* in: x, y[0], ..., y[K-1] */
template <int K>
struct PetscTCDotStep : PetscTCStep<PetscTCDots<K>, K + 1, 0, K> {
  static constexpr bool reads_scalars = false;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const PetscTCDots<K> &, const T in[], T[], T sum[]) const
  {
    for (int k = 0; k < K; ++k) PetscTCAddProduct(sum[k], in[0], in[1 + k]);
  }
  PETSCTC_HOST_DEVICE void end(PetscTCDots<K> &s, const PetscScalar sum[]) const
  {
    for (int k = 0; k < K; ++k) s.value[k] = sum[k];
  }
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
struct PetscTCVecDots {
  /* `count` is known at run time, a step's number of sums at compile time */
  template <int K = PETSCTC_MAX_DOTS>
  static PetscErrorCode mdot(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
  {
    PetscFunctionBegin;
    PetscCheck(count >= 0 && count <= K, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " dot products at once, 0 to %d are possible: call several times", count, (int)PETSCTC_MAX_DOTS);
    if constexpr (K > 0) {
      if (count == K) {
        PetscTCDotStep<K> step = {};

        step.in[0] = x;
        for (int k = 0; k < K; ++k) step.in[1 + k] = y[k];
        PetscCall(Backend::run(n, step, reinterpret_cast<PetscTCDots<K> *>(result), tensor, work, stream));
      } else PetscCall(mdot<K - 1>(n, x, count, y, result, tensor, work, stream));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode norm2(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
  {
    PetscFunctionBegin;
    PetscCall(Backend::run(n,
                           PetscTCNorm2Step{
                             {{x}, {}}
    },
                           reinterpret_cast<PetscTCDots<1> *>(result), tensor, work, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};
