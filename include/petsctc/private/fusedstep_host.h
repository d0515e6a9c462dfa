/*
   Runs fused steps (fusedstep.h) on the host.

   Method   Packs of 2 elements go through the step at once: loaded from all inputs, computed, stored to all outputs, so that any C++ compiler emits vector
            instructions without being allowed to reorder sums. A sum has 2 packs of accumulators, used in turn, which are folded at the end of every block of
            1024 elements; the blocks' sums are added in order. The order depends on n alone.
   Layout   none: plain arrays of any alignment
   Error    of a dot product: |computed - exact| <= (256 + 2 + n/1024 + 4) u sum |x_i y_i| to first order (u = 2^-53), below the n u of a plain loop for n > 262
*/
#pragma once

#include <cstring>
#include <petsctc/private/fusedstep.h>

struct PetscTCBackend_Host {
  enum {
    PACK  = 2, /* what every 64-bit processor has as one register */
    TURNS = 2, /* so that one addition need not wait for the one before */
    TRIP  = PACK * TURNS,
    BLOCK = 1024
  };
  typedef PetscScalar Pack __attribute__((vector_size(PACK * sizeof(PetscScalar))));

  /* One T (a number or a pack) of every vector, starting at element i */
  template <class T, class Step>
  static inline void apply(PetscInt i, const Step &step, const typename Step::Scalars &s, T sum[])
  {
    T in[Step::in_size], out[Step::out_size];

    for (int k = 0; k < Step::inputs; ++k) std::memcpy(&in[k], step.in[k] + i, sizeof(T));
    step.element(s, in, out, sum);
    for (int k = 0; k < Step::outputs; ++k) std::memcpy(step.out[k] + i, &out[k], sizeof(T));
  }

  template <class Step>
  static inline void elements(PetscInt n, const Step &step, const typename Step::Scalars &s, PetscScalar total[])
  {
    PetscInt i = 0;

    while (n - i >= TRIP) {
      const PetscInt end                        = i + PetscMin(n - i, (PetscInt)BLOCK) / TRIP * TRIP;
      Pack           sum[TURNS][Step::sum_size] = {};

      for (; i < end; i += TRIP) {
        for (int t = 0; t < TURNS; ++t) apply(i + t * PACK, step, s, sum[t]);
      }
      for (int k = 0; k < Step::sums; ++k) {
        const Pack turns = sum[0][k] + sum[1][k];
        total[k] += turns[0] + turns[1];
      }
    }
    for (; i < n; ++i) apply(i, step, s, total);
  }

  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, typename Step::Scalars *scalars, PetscBool, PetscTCReduceWork *, PetscTCStream)
  {
    typename Step::Scalars s                     = {};
    PetscScalar            total[Step::sum_size] = {};

    PetscFunctionBegin;
    if constexpr (Step::reads_scalars) s = *scalars;
    if (PetscTCStepStopped<Step>(s)) PetscFunctionReturn(PETSC_SUCCESS);
    step.begin(s);
    if (!PetscTCStepStopped<Step>(s)) {
      elements(n, step, s, total);
      step.end(s, total);
    }
    *scalars = s;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Work is a TCCGWork or a TCBCGSWork */
  template <class Work>
  static PetscErrorCode create(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(PetscTCReduceWorkCreate_Host(&work->reduce));
    PetscCall(PetscCalloc1(1, &work->s));
    PetscCall(PetscCalloc1(PETSCTC_RECORDS + 1, &work->records));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  template <class Work>
  static PetscErrorCode destroy(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(PetscTCReduceWorkDestroy_Host(&work->reduce));
    PetscCall(PetscFree(work->s));
    PetscCall(PetscFree(work->records));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  template <class Work, class Scalars>
  static PetscErrorCode read(const Work *work, Scalars *host, PetscTCStream)
  {
    PetscFunctionBegin;
    *host = *work->s;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* A step is done when its function returns */
  template <class Work>
  static PetscErrorCode mark(const Work *, int, PetscTCStream)
  {
    return PETSC_SUCCESS;
  }
  template <class Work>
  static PetscErrorCode await(const Work *, int)
  {
    return PETSC_SUCCESS;
  }
};
