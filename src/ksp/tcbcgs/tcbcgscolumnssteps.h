/* The steps of KSPTCBCGS for blocks of columns (tcbcgscolumns.h: method, layout, memory traffic, references), once for all backends */
#pragma once

#include <../src/ksp/step/fusedcolumns.h>
#include <../src/ksp/tcbcgs/tcbcgscolumns.h>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

/* The table's functions on a backend */
template <class Backend>
struct TCBCGSColumnsOn : PetscTCColumnsOn<Backend, TCBCGSScalars> {
  using All  = PetscTCColumnsOn<Backend, TCBCGSScalars>;
  using Work = TCBCGSColumnsWork;
  using All::of;
  using All::run;

  static PetscErrorCode place(Work *work, PetscInt n, PetscInt columns, TCBCGSColumns *v, PetscBool *room)
  {
    PetscScalar **const vectors[] = {&v->r, &v->rp, &v->p, &v->v, &v->s, &v->t};
    PetscCount          at        = 0;

    PetscFunctionBegin;
    PetscCall(All::place(PETSC_STATIC_ARRAY_LENGTH(vectors), work, n, columns, v, room));
    if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
    for (PetscScalar **vector : vectors) {
      *vector = work->memory + at;
      at += v->stride * columns;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode reset(Work *work, PetscTCStream stream) { return run(0, PETSCTC_MAX_COLUMNS, TCBCGSReset{}, {}, {}, work, stream); }
  static PetscErrorCode start(const TCBCGSColumns *v, Work *work, PetscTCStream stream) { return run(v->n, v->columns, TCBCGSStart{}, {of(v, v->r)}, {of(v, v->rp), of(v, v->p), of(v, v->v)}, work, stream); }
  static PetscErrorCode direction(const TCBCGSColumns *v, Work *work, PetscTCStream stream) { return run(v->n, v->columns, TCBCGSDirection{}, {of(v, v->r), of(v, v->v), of(v, v->p)}, {of(v, v->p)}, work, stream); }
  static PetscErrorCode breakdown(const TCBCGSColumns *v, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn d = {v->d, 0};

    if (v->d) return run(v->n, v->columns, TCBCGSBreakdownScaled<false>{}, {of(v, v->t), d, of(v, v->rp)}, {of(v, v->v)}, work, stream);
    return run(v->n, v->columns, TCBCGSBreakdown{}, {of(v, v->v), of(v, v->rp)}, {}, work, stream);
  }
  static PetscErrorCode half(const TCBCGSColumns *v, Work *work, PetscTCStream stream) { return run(v->n, v->columns, TCBCGSHalf{}, {of(v, v->r), of(v, v->v)}, {of(v, v->s)}, work, stream); }
  static PetscErrorCode stabilize(const TCBCGSColumns *v, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn d = {v->d, 0};

    if (v->d) return run(v->n, v->columns, TCBCGSStabilizeScaled<false, false>{}, {of(v, v->r), d, of(v, v->s)}, {of(v, v->t)}, work, stream);
    return run(v->n, v->columns, TCBCGSStabilize<false>{}, {of(v, v->t), of(v, v->s)}, {}, work, stream);
  }
  static PetscErrorCode update(const TCBCGSColumns *v, Work *work, PetscTCStream stream)
  {
    const PetscTCColumn x = {v->x, v->xstride};

    return run(v->n, v->columns, TCBCGSUpdate{}, {of(v, v->p), of(v, v->s), of(v, v->t), of(v, v->rp), x}, {x, of(v, v->r)}, work, stream);
  }

  static constexpr TCBCGSColumnsSteps table = {All::template common<TCBCGSColumns>(place, reset), start, direction, breakdown, half, stabilize, update};
};
