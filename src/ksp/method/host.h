/*
   A listed method (method.h) on the host: its passes, and the twin of the kernel that keeps it on the chip.

   Method   Item after item: passes by fusedstep_host.h, products by the resident form, whose rows are added in the kernel's order; sums in the order of the passes.
   Layout   ksptcform.h
   Memory traffic: the form and the vectors of the passes
   References: those of the method
*/
#pragma once

#include <../src/ksp/step/fusedstep_host.h>
#include "method.h"

template <class M>
struct KSPTCListOnHost {
  using Work  = KSPTCListWork<M>;
  using Steps = KSPTCListStepsOn<PetscTCBackend_Host, M>;

  template <class List>
  static PetscErrorCode iterate(const KSPTCForm *form, const KSPTCListVectors<M> *v, Work *w)
  {
    return List::each([=](auto item) { return run(item, form, v, w); });
  }

  template <class P>
  static PetscErrorCode run(KSPTCPassItem<P>, const KSPTCForm *form, const KSPTCListVectors<M> *v, Work *w)
  {
    return Steps::template pass<P>(form->m, v->v, w, NULL);
  }
  template <int From, int To, class P>
  static PetscErrorCode run(KSPTCProductItem<From, To, P>, const KSPTCForm *form, const KSPTCListVectors<M> *v, Work *w)
  {
    if (w->s->stop == 0.0) KSPTCFormMult_Host(form, v->v[From], v->v[To]);
    return Steps::template pass<P>(form->m, v->v, w, NULL);
  }

  static PetscErrorCode call(const KSPTCForm *form, PetscBool scaled, const KSPTCChunk<typename M::Scalars> *chunk, const KSPTCListVectors<M> *v, Work *w, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream)
  {
    PetscFunctionBegin;
    *refused = PETSC_FALSE;
    if (KSPTCGivesUp_Host(chunk->first, work)) PetscFunctionReturn(PETSC_SUCCESS);
    for (PetscInt it = chunk->first; it < chunk->last && w->s->stop == 0.0; it++) {
      w->test   = KSPTCTestAt(*chunk, it + 1);
      w->record = &chunk->records[(it + 1) % PETSCTC_RECORDS];
      if (scaled) PetscCall((iterate<typename M::template List<KSPTC_APPLY_SCALED, false>>(form, v, w)));
      else PetscCall((iterate<typename M::template List<KSPTC_APPLY_NONE, false>>(form, v, w)));
      w->record = NULL;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static KSPTCListRunners<M> runners() { return {Steps::table(), KSPTCChipGet_Host, KSPTCResidentCreate_Host, call}; }
};
