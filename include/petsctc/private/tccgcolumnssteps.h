/* The steps of blocks (tccgcolumns.h: method, layout, memory traffic, references), once for all backends: steps of one vector (tccgsteps.h) and where their vectors are in each column */
#pragma once

#include <initializer_list>
#include <type_traits>
#include <petsctc/private/tccgcolumns.h>
#include <petsctc/private/tccgsteps.h>

/* The first column of a block's vectors, and from there to the next */
struct TCCGColumn {
  const PetscScalar *first;
  PetscCount         stride;
};

/* Does the step end an iteration, with a test and a record? */
template <class Step, class = void>
struct TCCGEndsIteration : std::false_type {
};
template <class Step>
struct TCCGEndsIteration<Step, std::void_t<decltype(Step::record)>> : std::true_type {
};

/* A step of the first column and how those of the others differ from it */
template <class Step>
struct TCCGColumnsStep {
  Step        step;
  PetscCount  in[Step::in_size], out[Step::out_size];
  PetscTCTest test[TCCG_MAX_COLUMNS];

  PETSCTC_HOST_DEVICE Step of(int c) const
  {
    Step s = step;

    for (int k = 0; k < Step::inputs; ++k) s.in[k] += c * in[k];
    for (int k = 0; k < Step::outputs; ++k) s.out[k] += c * out[k];
    if constexpr (TCCGEndsIteration<Step>::value) {
      s.test = test[c];
      if (s.record) s.record += c;
    }
    return s;
  }
};

struct TCCGFreeze : PetscTCStep<TCCGScalars, 0, 0, 0> {
  static constexpr bool heeds_stop = false;

  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const { s.stop = PETSCTC_STOP_TEST; }
};

/* The table's functions on a backend, which besides its own (fusedstep.h) has

     run_columns(n, columns, step, scalars, tensor, work, stream)   a TCCGColumnsStep, of the columns whose scalars begin there
     create_reduce, destroy_reduce                                  of PetscTCReduceWork
     allocate(count, &array, &room), free(&array), copy             */
template <class Backend>
struct TCCGColumnsOn {
  using Vectors = std::initializer_list<TCCGColumn>;

  template <class Step>
  static PetscErrorCode run(PetscInt n, PetscInt columns, const Step &step, Vectors in, Vectors out, TCCGColumnsWork *work, PetscTCStream stream)
  {
    TCCGColumnsStep<Step> all = {};
    int                   k   = 0;

    all.step = step;
    if constexpr (TCCGEndsIteration<Step>::value) {
      all.step.record = work->record ? work->record->of : nullptr;
      for (int c = 0; c < TCCG_MAX_COLUMNS; ++c) all.test[c] = work->test[c];
    }
    for (const TCCGColumn &v : in) {
      all.step.in[k] = v.first;
      all.in[k++]    = v.stride;
    }
    k = 0;
    for (const TCCGColumn &v : out) {
      all.step.out[k] = const_cast<PetscScalar *>(v.first);
      all.out[k++]    = v.stride;
    }
    return Backend::run_columns(n, columns, all, work->s->of, work, stream);
  }

  static PetscErrorCode create(TCCGColumnsWork *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::create(work));
    for (PetscTCReduceWork &reduce : work->others) PetscCall(Backend::create_reduce(&reduce));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode release(TCCGColumnsWork *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::free(&work->memory));
    work->n = work->columns = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode destroy(TCCGColumnsWork *work)
  {
    PetscFunctionBegin;
    PetscCall(Backend::destroy(work));
    for (PetscTCReduceWork &reduce : work->others) PetscCall(Backend::destroy_reduce(&reduce));
    PetscCall(release(work));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  static PetscErrorCode place(TCCGColumnsWork *work, PetscInt n, PetscInt columns, TCCGColumns *v, PetscBool *room)
  {
    const PetscCount stride = (PetscCount)n + n % 2, block = stride * columns;

    PetscFunctionBegin;
    *room = PETSC_TRUE;
    if (work->n != n || work->columns < columns) {
      PetscCall(release(work));
      PetscCall(Backend::allocate(PetscMax(3 * block, (PetscCount)1), &work->memory, room));
      if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
      work->n       = n;
      work->columns = columns;
    }
    v->n       = n;
    v->columns = columns;
    v->stride  = stride;
    v->r       = work->memory;
    v->p       = v->r + block;
    v->w       = v->p + block;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode reset(TCCGColumnsWork *work, PetscTCStream stream) { return run(0, TCCG_MAX_COLUMNS, TCCGReset{}, {}, {}, work, stream); }
  static PetscErrorCode residual(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream)
  {
    return run(v->n, v->columns,
               TCCGResidual{
    },
               {{v->r, v->stride}}, {}, work, stream);
  }
  static TCCGColumn     z(const TCCGColumns *v) { return {v->d ? v->w : v->r, v->stride}; }
  static PetscErrorCode project(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream)
  {
    return run(v->n, v->columns,
               TCCGProject{
    },
               {z(v), {v->r, v->stride}}, {}, work, stream);
  }
  static PetscErrorCode direction(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream)
  {
    const TCCGColumn p = {v->p, v->stride}, x = {v->x, v->xstride};

    if (first) return run(v->n, v->columns, TCCGDirection<true, 0>{}, {z(v)}, {p}, work, stream);
    return run(v->n, v->columns, TCCGDirection<false, 1>{}, {z(v), p, x}, {p, x}, work, stream);
  }
  static PetscErrorCode curvature(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream)
  {
    TCCGCurvature step = {};

    step.first = first == PETSC_TRUE;
    return run(v->n, v->columns, step,
               {
                 {v->p, v->stride},
                 {v->w, v->stride}
    },
               {}, work, stream);
  }
  static PetscErrorCode update(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream)
  {
    const TCCGColumn w = {v->w, v->stride}, r = {v->r, v->stride}, d = {v->d, 0};
    TCCGUpdate<true> step = {};

    step.identity = true;
    return v->d ? run(v->n, v->columns, TCCGUpdateScaled<true>{}, {w, r, d}, {r, w}, work, stream) : run(v->n, v->columns, step, {w, r}, {r}, work, stream);
  }
  static PetscErrorCode settle(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream)
  {
    const TCCGColumn p = {v->p, v->stride}, x = {v->x, v->xstride};

    return run(v->n, v->columns, TCCGSettle<1>{}, {p, x}, {x}, work, stream);
  }
  static PetscErrorCode freeze(PetscInt c, TCCGColumnsWork *work, PetscTCStream stream) { return Backend::run_columns(0, 1, TCCGColumnsStep<TCCGFreeze>{}, work->s->of + c, work, stream); }

  static constexpr TCCGColumnsSteps table = {create,
                                             destroy,
                                             place,
                                             Backend::copy,
                                             reset,
                                             residual,
                                             project,
                                             direction,
                                             curvature,
                                             update,
                                             settle,
                                             freeze,
                                             Backend::template read<TCCGColumnsWork, TCCGColumnsScalars>,
                                             Backend::template mark<TCCGColumnsWork>,
                                             Backend::template await<TCCGColumnsWork>};
};
