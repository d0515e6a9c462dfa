/*
   A fused method and its table of steps: what KSPTCCG and KSPTCBCGS do alike. A method M derives from KSPTCMethod<Steps, Work, Scalars> and has

     table(b)   its steps for KSPTCBackend b, NULL where PETSc lacks that
*/
#pragma once

#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctccounts.h>

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
  if (m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpuScalar(sizeof(m->s)));
  PetscCheck((PetscTCStop)m->s.stop != PETSCTC_STOP_MISSING, PETSC_COMM_SELF, PETSC_ERR_LIB, "Iteration %" PetscInt_FMT " has waited 60 seconds for sums of process %d, which has failed or is late. If it is to be so late: -petsctc_comm mpi", m->begun,
             (int)PetscTCCommMissing(&m->comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The step that makes the first norm comes next. It leaves a record, number 0, and if tc->early the bounds of the test too. None follows it before KSPTCFirstNormBegun() */
template <class M>
static inline PetscErrorCode KSPTCMakesFirstNorm(KSP ksp, M *m, PetscTCNorm norm)
{
  const PetscBool compared = (PetscBool)(m->early && ksp->converged == KSPConvergedDefault && ksp->chknorm < 0 && ksp->min_it <= 0);

  PetscFunctionBegin;
  m->unsettled       = PETSC_TRUE;
  m->unlooked        = m->early;
  m->w->record       = m->w->records;
  m->w->record->stop = PETSCTC_STOP_UNWRITTEN;
  m->w->test         = {m->early ? norm : PETSCTC_NORM_NONE, -1.0, (PetscReal)HUGE_VAL, compared};
  m->w->bounds       = {m->early, ksp->rtol, ksp->abstol, ksp->divtol};
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static inline PetscErrorCode KSPTCFirstNormBegun(M *m)
{
  PetscFunctionBegin;
  m->w->record      = NULL;
  m->w->bounds.sets = PETSC_FALSE;
  PetscCall((*m->steps->mark)(m->w, 0, m->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The scalars with the first norm */
template <class M>
static inline PetscErrorCode KSPTCAwaitFirstNorm(M *m)
{
  PetscFunctionBegin;
  PetscCall((*m->steps->await)(m->w, 0));
  m->s        = m->w->records[0];
  m->unlooked = PETSC_FALSE;
  if (!m->begun) m->unsettled = PETSC_FALSE;
  PetscCheck((PetscTCStop)m->s.stop != PETSCTC_STOP_UNWRITTEN, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The step that makes the first norm has left no record");
  if (m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpuScalar(sizeof(m->s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration `it` is about to be begun, and what ends it comes next: it leaves a record if the host looks later, and tests the norm. None follows it before KSPTCIterationBegun() */
template <class M>
static inline PetscErrorCode KSPTCEndsIteration(KSP ksp, M *m, PetscInt it, PetscTCNorm norm)
{
  PetscFunctionBegin;
  if (!m->lead) PetscFunctionReturn(PETSC_SUCCESS);
  m->unsettled       = PETSC_TRUE;
  m->w->record       = &m->w->records[it % PETSCTC_RECORDS];
  m->w->record->stop = PETSCTC_STOP_UNWRITTEN;
  PetscCall(KSPTCTest(ksp, it, norm, &m->w->test));
  KSPTCScaleTest(ksp, m, &m->w->test);
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

/* Iteration `it`, begun before, is over when what was begun up to `marked` is: its scalars */
template <class M>
static inline PetscErrorCode KSPTCAwaitMark(M *m, PetscInt it, PetscInt marked)
{
  PetscBool written = PETSC_FALSE;

  PetscFunctionBegin;
  if (m->lead) {
    if (marked > m->awaited) PetscCall((*m->steps->await)(m->w, (int)(marked % PETSCTC_RECORDS)));
    m->awaited = PetscMax(m->awaited, marked);
    if (m->awaited == m->begun) m->unsettled = PETSC_FALSE;
    m->s    = m->w->records[it % PETSCTC_RECORDS];
    written = (PetscBool)((PetscTCStop)m->s.stop != PETSCTC_STOP_UNWRITTEN);
    if (written && m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpuScalar(sizeof(m->s)));
  }
  if (!written) PetscCall(KSPTCReadScalars(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static inline PetscErrorCode KSPTCAwaitIteration(M *m, PetscInt it)
{
  PetscFunctionBegin;
  PetscCall(KSPTCAwaitMark(m, it, it));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next call of the resident solver: iterations m->begun + 1 .. last. Their records' places are free. None follows it before KSPTCResidentBegun() */
template <class M, class Scalars>
static inline PetscErrorCode KSPTCResidentChunk(KSP ksp, M *m, PetscTCNorm norm, KSPTCChunk<Scalars> *chunk)
{
  const PetscBool compared = (PetscBool)(ksp->converged == KSPConvergedDefault);

  PetscFunctionBegin;
  m->unsettled         = PETSC_TRUE;
  m->w->record         = m->w->records; /* some of them: should an error cut the call off */
  chunk->first         = m->begun;
  chunk->last          = PetscMax(m->begun + 1, PetscMin(m->begun + PETSCTC_MAX_CALL, ksp->max_it));
  chunk->computed_from = ksp->chknorm;
  chunk->compared_from = compared ? PetscMax(ksp->chknorm + 1, ksp->min_it) : PETSC_INT_MAX;
  chunk->test          = {norm, ksp->ttol, ksp->divtol * ksp->rnorm0, m->unlooked};
  KSPTCScaleTest(ksp, m, &chunk->test);
  chunk->records = m->w->records;
  for (PetscInt it = chunk->first + 1; it <= chunk->last; it++) m->w->records[it % PETSCTC_RECORDS].stop = PETSCTC_STOP_UNWRITTEN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The steps do iterations i + 1, .. : those before are over, and calls behind them, if there are any, do nothing. why: NULL, since the device has refused a call */
template <class M>
static inline PetscErrorCode KSPTCStepsGoOn(M *m, PetscInt i, const char *why)
{
  PetscFunctionBegin;
  if (i) PetscCall(KSPTCReadScalars(m)); /* what a call leaves may be more than its last record says */
  m->begun = m->awaited = i;
  m->unsettled          = PETSC_FALSE;
  PetscCall(KSPTCResidentLeave(m, i, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The call of iterations m->begun + 1 .. last is under way, or refused, with which nothing has changed */
template <class M>
static inline PetscErrorCode KSPTCResidentBegun(M *m, PetscInt last, PetscBool refused)
{
  PetscFunctionBegin;
  m->resident.refused = refused;
  if (!refused) PetscCall(KSPTCIterationBegun(m, last));
  else m->w->record = NULL;
  if (refused && !m->begun) PetscCall(KSPTCStepsGoOn(m, 0, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Should another call be begun before the host looks at iteration i + 1? */
template <class M>
static inline PetscBool KSPTCCallsMore(KSP ksp, const M *m, PetscInt i)
{
  return (PetscBool)(m->resident.is && !m->resident.refused && (m->begun <= i || (m->begun < ksp->max_it && m->begun - i <= PETSCTC_MAX_CALL)));
}

/* Has the call of iteration `it` done nothing, since a block has given up? It is over, and m->s has been read. An iteration that stops within leaves no record either, but a stop */
template <class M>
static inline PetscBool KSPTCCallGaveUp(const M *m, PetscInt it)
{
  return (PetscBool)((PetscTCStop)m->w->records[it % PETSCTC_RECORDS].stop == PETSCTC_STOP_UNWRITTEN && (PetscTCStop)m->s.stop == PETSCTC_STOP_NONE);
}

/* An iteration that was one of many in a call or a block: logged as it would have been, were no row empty, with `products` of the matrix and flops a row besides */
template <class M>
static inline PetscErrorCode KSPTCLogIteration(M *m, int products, PetscLogDouble flops)
{
  PetscFunctionBegin;
  PetscCall(KSPTCLogFlops(m, flops * m->n + products * (2.0 * (PetscLogDouble)m->resident.nnz - m->n)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1 is over: m->s are its scalars; unless the device has refused its call, or a block of that has given up, so that the solve is not resident any more. begin() begins the next call. The host looks at the iteration, so it is
   logged as it would have been, were no row empty: `products` of the matrix, and flops a row besides. Calls are all of the same length but for the last one: hence in which an iteration is */
template <class M>
static inline PetscErrorCode KSPTCResidentIterate(KSP ksp, M *m, PetscInt i, PetscErrorCode (*begin)(KSP, M *), int products, PetscLogDouble flops)
{
  const PetscInt marked = PetscMax(i + 1, PetscMin((i / PETSCTC_MAX_CALL + 1) * PETSCTC_MAX_CALL, ksp->max_it));

  PetscFunctionBegin;
  while (KSPTCCallsMore(ksp, m, i)) PetscCall((*begin)(ksp, m));
  if (m->resident.is && m->begun <= i) PetscCall(KSPTCStepsGoOn(m, i, NULL));
  if (!m->resident.is) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCAwaitMark(m, i + 1, marked));
  if (KSPTCCallGaveUp(m, i + 1)) {
    const char *why;

    PetscCall(KSPTCResidentGaveUp(ksp, m, &why));
    PetscCall(KSPTCStepsGoOn(m, i, why));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  petsctc_counts.mult += products;
  PetscCall(KSPTCLogIteration(m, products, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Did a step stop before the end of the iteration? */
template <class M>
static inline PetscBool KSPTCStoppedWithin(const M *m)
{
  const PetscTCStop stop = (PetscTCStop)m->s.stop;

  return (PetscBool)(stop != PETSCTC_STOP_NONE && stop != PETSCTC_STOP_TEST && stop != PETSCTC_STOP_RHO_ZERO);
}

/* Are products and preconditioners of this iteration in vain, since a step has stopped? Then they are left out, as in PETSc's loop. On a GPU the host does not know */
template <class M>
static inline PetscBool KSPTCInVain(const M *m)
{
  return (PetscBool)(m->backend == KSPTC_HOST && (PetscTCStop)m->w->s->stop != PETSCTC_STOP_NONE);
}

/* Should another iteration be begun before the host looks at iteration `it`? That one must */
template <class M>
static inline PetscBool KSPTCBeginsMore(KSP ksp, const M *m, PetscInt it)
{
  return (PetscBool)(m->begun < PetscMax(it, PetscMin(it + m->lead, ksp->max_it)));
}

/* Iteration i+1, in a call (resident) or by the steps that begin() begins, and its scalars. take_diagonal(): the preconditioner's for steps that go on where calls have ended */
template <class M>
static inline PetscErrorCode KSPTCRun(KSP ksp, M *m, PetscInt i, PetscErrorCode (*resident)(KSP, M *, PetscInt), PetscErrorCode (*take_diagonal)(KSP, M *), PetscErrorCode (*begin)(KSP, M *, PetscInt))
{
  PetscFunctionBegin;
  if (m->resident.is) {
    PetscCall((*resident)(ksp, m, i));
    if (m->resident.is) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall((*take_diagonal)(ksp, m));
  }
  while (KSPTCBeginsMore(ksp, m, i + 1)) PetscCall((*begin)(ksp, m, m->begun));
  PetscCall(KSPTCAwaitIteration(m, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host has looked at iteration `it`. If it goes on, so must the steps; if it ends the solve and others have been begun, the steps must have stopped before them */
template <class M>
static inline PetscErrorCode KSPTCCheckAgrees(KSP ksp, const M *m, PetscInt it)
{
  const PetscBool stopped = (PetscBool)((PetscTCStop)m->s.stop != PETSCTC_STOP_NONE);

  PetscFunctionBegin;
  PetscCheck(stopped ? ksp->reason != KSP_CONVERGED_ITERATING : (!ksp->reason || m->begun <= it), PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "After iteration %" PetscInt_FMT ", norm %g, the convergence test says %s and the steps %s (code %g): run with -ksp_%s_%s", it, (double)ksp->rnorm, KSPConvergedReasons[ksp->reason], stopped ? "have stopped" : "go on", (double)m->s.stop,
             m->name, m->last_call ? "resident false" : "ahead 0");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which sum the norm of this type is the root of, of methods that have all of them */
static inline PetscTCNorm KSPTCNormOfType(KSPNormType type)
{
  const PetscTCNorm norms[] = {PETSCTC_NORM_NONE, PETSCTC_NORM_ZZ, PETSCTC_NORM_RR, PETSCTC_NORM_BETA};

  return norms[type];
}

/* PETSc's loop. iterate(ksp, m, i, failed) does iteration i+1: afterwards go on, or the reason is set; failed: and leave at once, with the reason that is set */
template <class M>
static inline PetscErrorCode KSPTCLoop(KSP ksp, M *m, PetscErrorCode (*iterate)(KSP, M *, PetscInt, PetscBool *), PetscBool *failed)
{
  PetscInt i = 0;

  PetscFunctionBegin;
  *failed = PETSC_FALSE;
  do {
    PetscCall((*iterate)(ksp, m, i, failed));
    if (*failed) PetscFunctionReturn(PETSC_SUCCESS);
    if (ksp->reason) break;
    i++;
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The work of a table, unless it is there */
template <class Steps, class Work>
static inline PetscErrorCode KSPTCCreateWork(const Steps *steps, Work *work, PetscBool *have)
{
  PetscFunctionBegin;
  if (*have) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*steps->destroy)(work)); /* what a create that failed has left */
  PetscCall((*steps->create)(work));
  *have = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* That of all backends, of table(b). Work that is not complete goes too: destroy of one that is all zero does nothing */
template <class Steps, class Work>
static inline PetscErrorCode KSPTCDestroyWork(const Steps *(*table)(int), Work work[KSPTC_BACKENDS], PetscBool have[KSPTC_BACKENDS])
{
  PetscFunctionBegin;
  for (int b = 0; b < KSPTC_BACKENDS; b++) {
    have[b] = PETSC_FALSE;
    if ((*table)(b)) PetscCall((*(*table)(b)->destroy)(&work[b]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Table, work and scalars of the solve that begins */
template <class M>
static inline PetscErrorCode KSPTCSetUpSteps(KSP ksp, M *m)
{
  const KSPTCBackend b   = m->backend;
  const PetscBool    cut = (PetscBool)(m->unsettled && m->w->record); /* an error has cut iterations off before their mark */

  PetscFunctionBegin;
  if (m->unsettled) PetscCall((*m->steps->await)(m->w, (int)(m->begun % PETSCTC_RECORDS))); /* iterations in vain must not take the scalars of this solve for theirs */
  if (cut) PetscCall((*m->steps->read)(m->w, &m->s, m->stream));                            /* waits: what was cut off must not leave a record later */
  m->steps = M::table(b);
  m->w     = &m->work[b];
  PetscCall(KSPTCCreateWork(m->steps, m->w, &m->have[b]));
  PetscCall(KSPTCUsesTensor(m, &m->w->tensor));
  PetscCall(VecGetLocalSize(ksp->vec_sol, &m->n));
  PetscCall(KSPTCSetAcross(ksp, m, &m->w->reduce.across));
  m->w->record = NULL; /* of a solve that ended with an error */
  m->w->sums   = NULL; /* of the last one: a resident solver on the host takes its own */
  m->w->made   = {};
  m->w->bounds = {};
  m->begun = m->awaited = 0;
  m->unlooked           = PETSC_FALSE;
  m->resident.refused   = PETSC_FALSE;
  m->resident.its       = 0;
  PetscCall(KSPTCResetScalars(m));
  m->unsettled = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The method's `release` */
template <class M>
static PetscErrorCode KSPTCReleaseSteps(KSPTC tc)
{
  M *m = static_cast<M *>(tc);

  PetscFunctionBegin;
  PetscCall(KSPTCDestroyWork(M::table, m->work, m->have));
  m->unsettled = PETSC_FALSE; /* freeing device memory waits for it */
  PetscFunctionReturn(PETSC_SUCCESS);
}
