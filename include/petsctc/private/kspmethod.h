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

/* Iteration `it` is about to be begun, and what ends it comes next: it leaves a record if the host looks later, and tests the norm. None follows it before KSPTCIterationBegun() */
template <class M>
static inline PetscErrorCode KSPTCEndsIteration(KSP ksp, M *m, PetscInt it, PetscTCNorm norm)
{
  PetscFunctionBegin;
  if (!m->lead) PetscFunctionReturn(PETSC_SUCCESS);
  m->w->record       = &m->w->records[it % PETSCTC_RECORDS];
  m->w->record->stop = PETSCTC_STOP_UNWRITTEN;
  PetscCall(KSPTCTest(ksp, it, norm, &m->w->test));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static inline PetscErrorCode KSPTCIterationBegun(M *m, PetscInt it)
{
  PetscFunctionBegin;
  m->w->record = NULL;
  m->begun     = it;
  if (m->lead) PetscCall((*m->steps->mark)(m->w, (int)(it % PETSCTC_RECORDS), m->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration `it`, begun before, is over: its scalars */
template <class M>
static inline PetscErrorCode KSPTCAwaitIteration(M *m, PetscInt it)
{
  PetscBool written = PETSC_FALSE;

  PetscFunctionBegin;
  if (m->lead) {
    PetscCall((*m->steps->await)(m->w, (int)(it % PETSCTC_RECORDS)));
    m->s    = m->w->records[it % PETSCTC_RECORDS];
    written = (PetscBool)((PetscTCStop)m->s.stop != PETSCTC_STOP_UNWRITTEN);
  }
  if (!written) PetscCall(KSPTCReadScalars(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Did a step stop before the end of the iteration? */
template <class M>
static inline PetscBool KSPTCStoppedWithin(const M *m)
{
  const PetscTCStop stop = (PetscTCStop)m->s.stop;

  return (PetscBool)(stop != PETSCTC_STOP_NONE && stop != PETSCTC_STOP_TEST && stop != PETSCTC_STOP_RHO_ZERO);
}

/* The host has looked at an iteration and goes on: so must the steps */
template <class M>
static inline PetscErrorCode KSPTCCheckGoesOn(KSP ksp, const M *m)
{
  PetscFunctionBegin;
  PetscCheck(ksp->reason || (PetscTCStop)m->s.stop == PETSCTC_STOP_NONE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The steps stopped with code %g after iteration %" PetscInt_FMT ", where the convergence test goes on with norm %g", (double)m->s.stop,
             ksp->its, (double)ksp->rnorm);
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
  m->w->record = NULL; /* of a solve that ended with an error */
  m->begun     = 0;
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
