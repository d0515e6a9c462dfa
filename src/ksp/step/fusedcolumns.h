/* Fused steps (fusedstep.h) of blocks of columns (kspcolumns.h), once for all backends and methods: steps of one vector and where their vectors are in each column */
#pragma once

#include <initializer_list>
#include <type_traits>
#include <../src/ksp/step/fusedstep.h>
#include <../src/ksp/step/kspcolumns.h>

/* The first column of a block's vectors, and from there to the next */
struct PetscTCColumn {
  const PetscScalar *first;
  PetscCount         stride;
};

/* Does the step end an iteration, with a test and a record? */
template <class Step, class = void>
struct PetscTCEndsIteration : std::false_type {
};
template <class Step>
struct PetscTCEndsIteration<Step, std::void_t<decltype(Step::record)>> : std::true_type {
};

/* A step of the first column and how those of the others differ from it */
template <class Step>
struct PetscTCColumnsStep {
  Step        step;
  PetscCount  in[Step::in_size], out[Step::out_size];
  PetscTCTest test[PETSCTC_MAX_COLUMNS];

  PETSCTC_HOST_DEVICE Step of(int c) const
  {
    Step s = step;

    for (int k = 0; k < Step::inputs; ++k) s.in[k] += c * in[k];
    for (int k = 0; k < Step::outputs; ++k) s.out[k] += c * out[k];
    if constexpr (PetscTCEndsIteration<Step>::value) {
      s.test = test[c];
      if (s.record) s.record += c;
    }
    return s;
  }
};

template <class Scalars>
struct PetscTCFreeze : PetscTCStep<Scalars, 0, 0, 0> {
  static constexpr bool heeds_stop = false;

  PETSCTC_HOST_DEVICE void end(Scalars &s, const PetscScalar[]) const { s.stop = PETSCTC_STOP_TEST; }
};

/* What the tables of all methods have, on a backend, which besides its own (fusedstep.h) has

     run_columns(n, columns, step, scalars, work, stream)    a PetscTCColumnsStep, of the columns whose scalars begin there
     create_reduce, destroy_reduce                           of PetscTCReduceWork
     allocate(count, &array, &room), free(&array), copy     */
template <class Backend, class Scalars>
struct PetscTCColumnsOn {
  using Vectors = std::initializer_list<PetscTCColumn>;
  using Work    = PetscTCColumnsWork<Scalars>;

  template <class Step>
  static PetscErrorCode run(PetscInt n, PetscInt columns, const Step &step, Vectors in, Vectors out, Work *work, PetscTCStream stream)
  {
    PetscTCColumnsStep<Step> all = {};
    int                      k   = 0;

    all.step = step;
    if constexpr (PetscTCEndsIteration<Step>::value) {
      all.step.record = work->record ? work->record->of : nullptr;
      for (int c = 0; c < PETSCTC_MAX_COLUMNS; ++c) all.test[c] = work->test[c];
    }
    for (const PetscTCColumn &v : in) {
      all.step.in[k] = v.first;
      all.in[k++]    = v.stride;
    }
    k = 0;
    for (const PetscTCColumn &v : out) {
      all.step.out[k] = const_cast<PetscScalar *>(v.first);
      all.out[k++]    = v.stride;
    }
    return Backend::run_columns(n, columns, all, work->s->of, work, stream);
  }

  static PetscErrorCode create(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::create(work));
    for (PetscTCReduceWork &reduce : work->others) PetscCall(Backend::create_reduce(&reduce));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode release(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::free(&work->memory));
    work->n = work->columns = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode destroy(Work *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::destroy(work));
    for (PetscTCReduceWork &reduce : work->others) PetscCall(Backend::destroy_reduce(&reduce));
    PetscCall(release(work));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Room for `vectors` of a block, the first of which begins where work->memory does, each at v.stride * columns elements from the one before */
  static PetscErrorCode place(PetscInt vectors, Work *work, PetscInt n, PetscInt columns, PetscTCColumns *v, PetscBool *room)
  {
    const PetscCount stride = (PetscCount)n + n % 2;

    PetscFunctionBegin;
    *room = PETSC_TRUE;
    if (work->n != n || work->columns < columns) {
      PetscCall(release(work));
      PetscCall(Backend::allocate(PetscMax(vectors * columns * stride, (PetscCount)1), &work->memory, room));
      if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
      work->n       = n;
      work->columns = columns;
    }
    v->n       = n;
    v->columns = columns;
    v->stride  = stride;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* One of the block's vectors */
  static PetscTCColumn  of(const PetscTCColumns *v, const PetscScalar *vector) { return {vector, v->stride}; }
  static PetscErrorCode freeze(PetscInt c, Work *work, PetscTCStream stream) { return Backend::run_columns(0, 1, PetscTCColumnsStep<PetscTCFreeze<Scalars>>{}, work->s->of + c, work, stream); }

  /* place, reset: the method's */
  template <class Columns>
  static constexpr PetscTCColumnsTable<Scalars, Columns> common(PetscErrorCode (*place)(Work *, PetscInt, PetscInt, Columns *, PetscBool *), PetscErrorCode (*reset)(Work *, PetscTCStream))
  {
    return {create, destroy, place, Backend::copy, reset, freeze, Backend::template read<Work, PetscTCColumnsScalars<Scalars>>, Backend::template mark<Work>, Backend::template await<Work>};
  }
};
