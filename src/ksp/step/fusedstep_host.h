/*
   Runs fused steps (fusedstep.h) on the host.

   Method   Packs of 2 elements go through the step at once: loaded from all inputs, computed, stored to all outputs, so that any C++ compiler emits vector
            instructions without being allowed to reorder sums. A sum has 2 packs of accumulators, used in turn, which are folded at the end of every block of
            1024 elements; the blocks' sums are added in order. The order depends on n alone.
            Blocks: 1024 elements at a time. The first half of a step goes on to the end of the last block that these are in, and leaves y in a buffer; then come the product and the second half. The sums are those of the
            same elements in the same order as in a step without blocks.
   Layout   none: plain arrays of any alignment
   Error    of a dot product: |computed - exact| <= (256 + 2 + n/1024 + 4) u sum |x_i y_i| to first order (u = 2^-53), below the n u of a plain loop for n > 262
*/
#pragma once

#include <cstring>
#include <../src/ksp/step/fusedstep.h>

/* The halves of a step with blocks as steps, of some rows */
template <class Step>
struct PetscTCFirstHalf_Host : PetscTCStep<typename Step::Scalars, Step::inputs, Step::outputs + 1, 0> {
  const Step &step;

  /* y[]: of these rows */
  PetscTCFirstHalf_Host(const Step &step, PetscInt row, PetscScalar y[]) : step(step)
  {
    for (int k = 0; k < Step::inputs; ++k) this->in[k] = step.in[k] + row;
    for (int k = 0; k < Step::outputs; ++k) this->out[k] = step.out[k] + row;
    this->out[Step::outputs] = y;
  }
  template <class T>
  inline void element(const typename Step::Scalars &s, const T in[], T out[], T[]) const
  {
    out[Step::outputs] = step.first(s, in, out);
  }
};

template <class Step>
struct PetscTCSecondHalf_Host : PetscTCStep<typename Step::Scalars, Step::withs + 2, 1, Step::sums> {
  const Step &step;

  PetscTCSecondHalf_Host(const Step &step, PetscInt row, const PetscScalar y[], const PetscScalar z[]) : step(step)
  {
    this->in[0] = y;
    this->in[1] = z;
    for (int k = 0; k < Step::withs; ++k) this->in[k + 2] = step.with[k] + row;
    this->out[0] = step.z + row;
  }
  template <class T>
  inline void element(const typename Step::Scalars &s, const T in[], T out[], T sum[]) const
  {
    out[0] = step.second(s, in[0], in[1], in + 2, sum);
  }
};

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

  /* z[] <- the product of rows begin .. end-1. y[] begins with row `first` */
  static inline void multiply(const PetscTCBlocks &blocks, PetscInt begin, PetscInt end, PetscInt first, const PetscScalar y[], PetscScalar z[])
  {
    for (PetscInt row = begin; row < end;) {
      const PetscTCBlock       block = PetscTCBlockOf(blocks, row);
      const PetscInt           stop  = PetscMin(end, block.first + block.size);
      const PetscScalar *const yb    = y + (block.first - first);

      for (; row < stop; ++row, ++z) {
        *z = blocks.d[row] * yb[0];
        for (PetscInt k = 1; k < block.size; ++k) PetscTCAddProduct(*z, blocks.d[k * (PetscCount)blocks.stride + row], yb[k]);
      }
    }
  }

  template <class Step>
  static inline void block_elements(PetscInt n, const Step &step, const typename Step::Scalars &s, PetscScalar total[])
  {
    PetscInt    from = 0, made = 0; /* rows of y in the buffer: from .. made-1 */
    PetscScalar y[BLOCK + 2 * PETSCTC_MAX_BLOCK], z[BLOCK];

    for (PetscInt begin = 0; begin < n; begin += PetscMin(n - begin, (PetscInt)BLOCK)) {
      const PetscInt     end = begin + PetscMin(n - begin, (PetscInt)BLOCK), first = PetscTCBlockOf(step.blocks, begin).first;
      const PetscTCBlock last = PetscTCBlockOf(step.blocks, end - 1);

      std::memmove(y, y + (first - from), (made - first) * sizeof(*y)); /* of a block that lies in both: a few */
      from = first;
      elements(last.first + last.size - made, PetscTCFirstHalf_Host<Step>(step, made, y + (made - from)), s, NULL);
      made = last.first + last.size;
      multiply(step.blocks, begin, end, from, y, z);
      elements(end - begin, PetscTCSecondHalf_Host<Step>(step, begin, y + (begin - from), z), s, total);
    }
  }

  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, typename Step::Scalars *scalars, PetscBool, PetscTCReduceWork *work, PetscTCStream stream)
  {
    typename Step::Scalars s                     = {};
    PetscScalar            total[Step::sum_size] = {};

    PetscFunctionBegin;
    if constexpr (Step::reads_scalars) s = *scalars;
    if (PetscTCStepStopped<Step>(s)) PetscFunctionReturn(PETSC_SUCCESS);
    step.begin(s);
    if (!PetscTCStepStopped<Step>(s)) {
      if constexpr (Step::blocked) block_elements(n, step, s, total);
      else elements(n, step, s, total);
      if (Step::sums > 0 && work && work->across.add) PetscCall((*work->across.add)(work->across.ctx, Step::sums, total, stream));
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
