/*
   A listed method M (method.h) from PETSc's side. A method's object L derives from KSPTCListMethod<L, M> and has besides

     runners(b)                  of KSPTCBackend b, NULL where PETSc lacks that
     vec(ksp, m, v)              the Vec of a vector by its number
     flops<P>(ksp, m, begins)    of a row in a pass, PETSc's. begins: in the first iteration
     normOf(ksp, m, &dp, &fail)  the norm that PETSc would have, from the scalars m->s. fail: leave at once, the reason is set
     stopped(ksp, m, &fail)      a pass has stopped within an iteration: sets the reason

   Its solve calls, in this order, KSPTCListSetUp(), its own beginning with the first norm and its test, and KSPTCListLoop().
*/
#pragma once

#include <../src/ksp/engine/kspmethod.h>
#include "method.h"

template <class L, class M>
struct KSPTCListMethod : KSPTCMethod<KSPTCListSteps<M>, KSPTCListWork<M>, typename M::Scalars> {
  using Method = M;

  static const KSPTCListSteps<M> *table(int backend)
  {
    const KSPTCListRunners<M> *runners = L::runners(backend);

    return runners ? &runners->steps : NULL;
  }

  Mat           A;
  KSPTCApply    apply;    /* of the iteration that begins */
  bool          extra;    /* of the solve: with what the method needs for some norms only */
  PetscTCNorm   norm;     /* the same: which sum the norm is the root of */
  KSPTCDiagonal diagonal; /* of the preconditioner, where that is part of the passes */
};

/* The arrays of the vectors in `reads` and `writes`, by their numbers, between the two calls */
template <class M>
struct KSPTCListArrays {
  KSPTCListVectors<M> vectors;
  Vec                 vec[M::VECTORS]; /* those that are read first */
  PetscScalar        *array[M::VECTORS];
  PetscInt            nread, nwrite;
};

template <class L, class M = typename L::Method>
static inline PetscErrorCode KSPTCListBegin(KSP ksp, L *m, unsigned reads, unsigned writes, KSPTCListArrays<M> *of)
{
  PetscInt at[M::VECTORS] = {};

  PetscFunctionBegin;
  *of = {};
  for (unsigned set : {reads & ~writes, writes}) {
    for (int v = 0; v < M::VECTORS; v++) {
      if (!KSPTCHas(set, v)) continue;
      at[v]          = of->nread + of->nwrite;
      of->vec[at[v]] = L::vec(ksp, m, v);
      (set == writes ? of->nwrite : of->nread)++;
    }
  }
  PetscCall(KSPTCStepBegin(m, of->nread, of->nwrite, of->vec, of->array));
  for (int v = 0; v < M::VECTORS; v++) {
    if (KSPTCHas(reads | writes, v)) of->vectors.v[v] = of->array[at[v]];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class L, class M>
static inline PetscErrorCode KSPTCListEnd(L *m, KSPTCListArrays<M> *of, PetscLogDouble flops)
{
  PetscFunctionBegin;
  PetscCall(KSPTCStepEnd(m, of->nread, of->nwrite, of->vec, of->array, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class P>
constexpr unsigned KSPTCReads()
{
  unsigned set = 0;

  for (int k = 0; k < P::inputs; k++) set |= 1u << P::from[k];
  return set;
}

template <class P>
constexpr unsigned KSPTCWrites()
{
  unsigned set = 0;

  for (int k = 0; k < P::outputs; k++) set |= 1u << P::to[k];
  return set;
}

template <class P, class L, class M = typename L::Method>
static inline PetscErrorCode KSPTCListPass(KSP ksp, L *m)
{
  KSPTCListArrays<M> of;

  PetscFunctionBegin;
  PetscCall(KSPTCListBegin(ksp, m, KSPTCReads<P>(), KSPTCWrites<P>(), &of));
  PetscCall((*m->steps->pass[M::Passes::template of<P>()])(m->n, of.vectors.v, m->w, m->stream));
  PetscCall(KSPTCListEnd(m, &of, L::template flops<P>(ksp, m, m->begun == 0) * m->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the items of iteration `it` by launches */

template <class P, class L>
static inline PetscErrorCode KSPTCListItem(KSPTCPassItem<P>, KSP ksp, L *m, PetscInt it)
{
  PetscFunctionBegin;
  if (P::ends) PetscCall(KSPTCEndsIteration(ksp, m, it, m->norm));
  PetscCall(KSPTCListPass<P>(ksp, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int From, int To, class P, class L>
static inline PetscErrorCode KSPTCListItem(KSPTCProductItem<From, To, P>, KSP ksp, L *m, PetscInt it)
{
  PetscFunctionBegin;
  if (!KSPTCInVain(m)) PetscCall(KSP_MatMult(ksp, m->A, L::vec(ksp, m, From), L::vec(ksp, m, To)));
  PetscCall(KSPTCListItem(KSPTCPassItem<P>{}, ksp, m, it));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int From, int To, class L>
static inline PetscErrorCode KSPTCListItem(KSPTCPCItem<From, To>, KSP ksp, L *m, PetscInt)
{
  PetscFunctionBegin;
  if (!KSPTCInVain(m)) PetscCall(KSP_PCApply(ksp, L::vec(ksp, m, From), L::vec(ksp, m, To)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f(list) with the list of the iteration that begins */
template <class L, class F>
static inline PetscErrorCode KSPTCListOf(const L *m, F f)
{
  using M = typename L::Method;

  if (m->apply == KSPTC_APPLY_NONE) return m->extra ? f(typename M::template List<KSPTC_APPLY_NONE, true>{}) : f(typename M::template List<KSPTC_APPLY_NONE, false>{});
  if (m->apply == KSPTC_APPLY_SCALED) return m->extra ? f(typename M::template List<KSPTC_APPLY_SCALED, true>{}) : f(typename M::template List<KSPTC_APPLY_SCALED, false>{});
  return m->extra ? f(typename M::template List<KSPTC_APPLY_APART, true>{}) : f(typename M::template List<KSPTC_APPLY_APART, false>{});
}

/* ---- the preconditioner */

/* At the beginning of a solve */
template <class L>
static inline PetscErrorCode KSPTCListMark(KSP ksp, L *m)
{
  PetscBool identity;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &m->A, NULL));
  PetscCall(KSPTCIdentityPC(ksp, &identity));
  m->apply             = identity ? KSPTC_APPLY_NONE : KSPTC_APPLY_APART;
  m->diagonal.projects = PETSC_FALSE;
  PetscCall(KSPTCDiagonalMark(ksp, &m->diagonal));
  m->resident.is     = PETSC_FALSE;
  m->resident.wanted = KSPTC_VARIANT_CLASSIC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* It has been applied once: is it a diagonal that passes can apply? */
template <class L>
static inline PetscErrorCode KSPTCListTake(KSP ksp, L *m)
{
  PetscFunctionBegin;
  if (m->apply == KSPTC_APPLY_APART && m->diagonal.bs <= 1) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[0], &m->diagonal));
  else PetscCall(VecDestroy(&m->diagonal.d));
  if (m->apply != KSPTC_APPLY_NONE) m->apply = m->diagonal.d ? KSPTC_APPLY_SCALED : KSPTC_APPLY_APART;
  m->last_pc_in_steps = (PetscBool)(m->diagonal.d != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before an iteration: a monitor may have changed it */
template <class L>
static inline PetscErrorCode KSPTCListKeep(KSP ksp, L *m)
{
  PetscBool identity = (PetscBool)(m->apply == KSPTC_APPLY_NONE);

  PetscFunctionBegin;
  PetscCall(KSPTCIdentityKeep(ksp, m, &identity));
  PetscCall(KSPTCDiagonalKeep(ksp, &m->diagonal));
  m->apply = identity ? KSPTC_APPLY_NONE : (m->diagonal.d ? KSPTC_APPLY_SCALED : KSPTC_APPLY_APART);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- an iteration */

template <class L>
static inline PetscErrorCode KSPTCListLaunch(KSP ksp, L *m, PetscInt i)
{
  PetscFunctionBegin;
  PetscCall(KSPTCListKeep(ksp, m));
  PetscCall(KSPTCListOf(m, [=](auto list) { return decltype(list)::each([=](auto item) { return KSPTCListItem(item, ksp, m, i + 1); }); }));
  PetscCall(KSPTCIterationBegun(m, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next call of the kernel */
template <class L>
static inline PetscErrorCode KSPTCListCall(KSP ksp, L *m)
{
  using M = typename L::Method;

  const unsigned                  all     = M::rows(m->apply);
  PetscBool                       refused = PETSC_FALSE;
  KSPTCListArrays<M>              of;
  KSPTCChunk<typename M::Scalars> chunk;

  PetscFunctionBegin;
  PetscCall(KSPTCResidentChunk(ksp, m, m->norm, &chunk));
  PetscCall(KSPTCListBegin(ksp, m, all & M::INPUTS, all & ~M::INPUTS, &of));
  PetscCall((*L::runners(m->backend)->call)(&m->resident.form, (PetscBool)(m->apply == KSPTC_APPLY_SCALED), &chunk, &of.vectors, m->w, &m->resident.work, &refused, m->stream));
  PetscCall(KSPTCListEnd(m, &of, 0.0));
  PetscCall(KSPTCResidentBegun(m, chunk.last, refused));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class P, class L>
static inline PetscLogDouble KSPTCListFlops(KSPTCPassItem<P>, KSP ksp, const L *m, bool begins)
{
  return L::template flops<P>(ksp, m, begins);
}
template <int From, int To, class L>
static inline PetscLogDouble KSPTCListFlops(KSPTCPCItem<From, To>, KSP, const L *, bool)
{
  return 0.0;
}

/* Iteration i+1 in a call: a list with one product */
template <class L>
static inline PetscErrorCode KSPTCListOnChip(KSP ksp, L *m, PetscInt i)
{
  PetscLogDouble flops = 0.0;
  const auto     add   = [&](auto item) {
    flops += KSPTCListFlops(item, ksp, m, i == 0);
    return PETSC_SUCCESS;
  };

  PetscFunctionBegin;
  PetscCall(KSPTCListOf(m, [&](auto list) { return decltype(list)::each(add); }));
  PetscCall(KSPTCResidentIterate(ksp, m, i, KSPTCListCall<L>, 1, flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration i+1. Afterwards: go on, or the reason is set; fail: and leave at once */
template <class L>
static inline PetscErrorCode KSPTCListIterate(KSP ksp, L *m, PetscInt i, PetscBool *fail)
{
  PetscReal dp = 0.0;

  PetscFunctionBegin;
  PetscCall(KSPTCRun(ksp, m, i, KSPTCListOnChip<L>, KSPTCListTake<L>, KSPTCListLaunch<L>));
  if (KSPTCStoppedWithin(m)) {
    PetscCall(L::stopped(ksp, m, fail));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(L::normOf(ksp, m, &dp, fail));
  if (*fail) PetscFunctionReturn(PETSC_SUCCESS);
  ksp->its   = i + 1;
  ksp->rnorm = dp;
  PetscCall(KSPLogResidualHistory(ksp, dp));
  PetscCall(KSPTCMonitor(ksp, m, i + 1, dp));
  PetscCall((*ksp->converged)(ksp, i + 1, dp, &ksp->reason, ksp->cnvP));
  PetscCall(KSPTCCheckAgrees(ksp, m, i + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a solve */

/* Before all; extra and norm are to be set behind it */
template <class L>
static inline PetscErrorCode KSPTCListSetUp(KSP ksp, L *m)
{
  PetscFunctionBegin;
  PetscCall(KSPTCSetUpSteps(ksp, m));
  PetscCall(KSPTCListMark(ksp, m));
  m->extra = false;
  m->norm  = KSPTCNormOfType(ksp->normtype);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The iterations. v[]: three vectors of the solve; why: nothing is resident, NULL: it may be */
template <class L>
static inline PetscErrorCode KSPTCListLoop(KSP ksp, L *m, const Vec v[3], const char *why)
{
  PetscBool fail;

  PetscFunctionBegin;
  if (!why) PetscCall(KSPTCResidentSetUp(ksp, m, m->A, v, (PetscBool)(m->apply == KSPTC_APPLY_NONE), NULL, &m->diagonal));
  else if (m->resident.choice != KSPTC_RESIDENT_FALSE) m->last_why_not_call = why;
  PetscCall(KSPTCListTake(ksp, m));
  PetscCall(KSPTCLoop(ksp, m, KSPTCListIterate<L>, &fail));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type */

template <class L>
static inline PetscErrorCode KSPTCListRelease(KSPTC tc)
{
  L *m = static_cast<L *>(tc);

  PetscFunctionBegin;
  PetscCall(KSPTCDiagonalRelease(&m->diagonal));
  PetscCall(KSPTCResidentRelease(tc));
  PetscCall(KSPTCReleaseSteps<L>(tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nothing but what KSPTCLegal() looks at */
static inline PetscErrorCode KSPTCListPrepare(KSP, KSPTC, const char **)
{
  return PETSC_SUCCESS;
}

template <class L>
static inline const KSPTCResidentKernel *KSPTCListKernels()
{
  static KSPTCResidentKernel kernels[KSPTC_BACKENDS];

  for (int b = 0; b < KSPTC_BACKENDS; b++) {
    const auto *runners = L::runners(b);

    if (runners) kernels[b] = {runners->chip, {runners->create}, NULL};
  }
  return kernels;
}

/* Makes `ksp` one of this method, and of PETSc's type `parent` */
template <class L>
static inline PetscErrorCode KSPTCListCreate(KSP ksp, const char name[], const char page[], KSPType parent, PetscErrorCode (*solve)(KSP, KSPTC))
{
  L *m;

  PetscFunctionBegin;
  PetscCall(PetscNew(&m));
  m->name             = name;
  m->page             = page;
  m->prepare          = KSPTCListPrepare;
  m->solve            = solve;
  m->release          = KSPTCListRelease<L>;
  m->resident.kernel  = KSPTCListKernels<L>();
  m->resident.vectors = KSPTCListVectorsOfBlock<typename L::Method>(false);
  PetscCall(KSPTCAttach(ksp, parent, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}
