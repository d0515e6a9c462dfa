/*
   A fused method and its table of steps: what KSPTCCG and KSPTCBCGS do alike. A method M derives from KSPTCMethod<Steps, Work, Scalars> and has

     table(b)   its steps for KSPTCBackend b, NULL where PETSc lacks that
*/
#pragma once

#include <petsctc/private/kspengine.h>

/* Made by PetscNew(), which is why all of it is 0 at first */
template <class Steps, class Work, class Scalars>
struct KSPTCMethod : _n_KSPTC {
  Work         work[KSPTC_BACKENDS];
  PetscBool    have[KSPTC_BACKENDS]; /* work is complete */
  const Steps *steps;                /* table and work of the backend of this solve */
  Work        *w;
  Scalars      s; /* as last read */
};

/* All scalars as a solve finds them first */
template <class M>
static inline PetscErrorCode KSPTCResetScalars(M *m)
{
  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(m, 0, 0, NULL, NULL));
  PetscCall((*m->steps->reset)(m->w, m->stream));
  PetscCall(KSPTCStepEnd(m, 0, 0, NULL, NULL, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static inline PetscErrorCode KSPTCReadScalars(M *m)
{
  PetscFunctionBegin;
  PetscCall((*m->steps->read)(m->w, &m->s, m->stream));
  if (m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpu(sizeof(m->s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Table, work and scalars of the solve that begins */
template <class M>
static inline PetscErrorCode KSPTCSetUpSteps(KSP ksp, M *m)
{
  const KSPTCBackend b = m->backend;

  PetscFunctionBegin;
  m->steps = M::table(b);
  m->w     = &m->work[b];
  if (!m->have[b]) {
    PetscCall((*m->steps->destroy)(m->w)); /* what a create that failed has left */
    PetscCall((*m->steps->create)(m->w));
    PetscCall(KSPTCUsesTensor(m, &m->w->tensor));
    m->have[b] = PETSC_TRUE;
  }
  PetscCall(VecGetLocalSize(ksp->vec_sol, &m->n));
  PetscCall(KSPTCResetScalars(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The method's `release`. Work that is not complete goes too: destroy of one that is all zero does nothing */
template <class M>
static PetscErrorCode KSPTCReleaseSteps(KSPTC tc)
{
  M *m = static_cast<M *>(tc);

  PetscFunctionBegin;
  for (int b = 0; b < KSPTC_BACKENDS; b++) {
    m->have[b] = PETSC_FALSE;
    if (M::table(b)) PetscCall((*M::table(b)->destroy)(&m->work[b]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
