/* The steps of KSPTCCG for blocks of columns (tccgcolumns.h: method, layout, memory traffic, references), once for all backends */
#pragma once

#include <../src/ksp/step/fusedcolumns.h>
#include <../src/ksp/tccg/tccgcolumns.h>
#include <../src/ksp/tccg/tccgsteps.h>

/* The table's functions on a backend */
template <class Backend>
struct TCCGColumnsOn : PetscTCColumnsOn<Backend, TCCGScalars> {
  using All  = PetscTCColumnsOn<Backend, TCCGScalars>;
  using Work = TCCGColumnsWork;
  using All::of;
  using All::run;

  static PetscErrorCode place(Work *work, PetscInt n, PetscInt columns, TCCGColumns *v, PetscBool *room)
  {
    PetscFunctionBegin;
    PetscCall(All::place(3, work, n, columns, v, room));
    if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
    v->r = work->memory;
    v->p = v->r + v->stride * columns;
    v->w = v->p + v->stride * columns;
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode reset(Work *work, PetscTCStream stream) { return run(0, PETSCTC_MAX_COLUMNS, PetscTCResetStep<TCCGScalars>{}, {}, {}, work, stream); }
  static PetscErrorCode residual(const TCCGColumns *v, Work *work, PetscTCStream stream) { return run(v->n, v->columns, TCCGResidual{}, {of(v, v->r)}, {}, work, stream); }
  static PetscTCColumn  z(const TCCGColumns *v) { return of(v, v->d ? v->w : v->r); }
  static PetscErrorCode project(const TCCGColumns *v, Work *work, PetscTCStream stream) { return run(v->n, v->columns, TCCGProject{}, {z(v), of(v, v->r)}, {}, work, stream); }
  static PetscErrorCode direction(const TCCGColumns *v, PetscBool first, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn p = of(v, v->p), x = {v->x, v->xstride};

    if (first) return run(v->n, v->columns, TCCGDirection<true, 0>{}, {z(v)}, {p}, work, stream);
    return run(v->n, v->columns, TCCGDirection<false, 1>{}, {z(v), p, x}, {p, x}, work, stream);
  }
  static PetscErrorCode curvature(const TCCGColumns *v, PetscBool first, Work *work, PetscTCStream stream)
  {
    TCCGCurvature step = {};

    step.first = first == PETSC_TRUE;
    return run(v->n, v->columns, step, {of(v, v->p), of(v, v->w)}, {}, work, stream);
  }
  static PetscErrorCode update(const TCCGColumns *v, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn w = of(v, v->w), r = of(v, v->r), d = {v->d, 0};
    TCCGUpdate<true>    step = {};

    step.identity = true;
    return v->d ? run(v->n, v->columns, TCCGUpdateScaled<true>{}, {w, r, d}, {r, w}, work, stream) : run(v->n, v->columns, step, {w, r}, {r}, work, stream);
  }
  static PetscErrorCode settle(const TCCGColumns *v, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn p = of(v, v->p), x = {v->x, v->xstride};

    return run(v->n, v->columns, TCCGSettle<1>{}, {p, x}, {x}, work, stream);
  }

  static constexpr TCCGColumnsSteps table = {All::template common<TCCGColumns>(place, reset), residual, project, direction, curvature, update, settle};
};
