/*
   Solves with several right-hand sides of a fused method, in blocks of columns (kspcolumns.h).

   Method: each column has its own recurrences and ends by itself. The steps test each column's norm and leave records of each, iterations are begun ahead of what the host has looked at, and what it takes from the records it
   keeps until all columns are over. Then it goes through the loop of a solve column by column: histories, monitors, counts, reasons and errors are those of columns solved one after the other.

   A method M (kspmethod.h) that has blocks has in `block` a KSPTCBlock<Table, Columns, Scalars>, `identity` and `diagonal` as KSPTCIdentityPC() and KSPTCDiagonalTake() leave them, and

     columns_table(b)                   its steps of blocks for KSPTCBackend b, NULL where PETSc lacks that
     columns_legal(ksp, m, why)         what of a solve, and of a preconditioner that is none or a diagonal, the steps do not know
     columns_residual(ksp, m, c)        column c, whose vectors are the solver's: the first residual, by PETSc's operations, into the block by KSPTCColumnLoad(). It applies the preconditioner, if there is one
     columns_start(ksp, m)              all columns, behind reset: what a solve begins with, and the sums of the first norm
     columns_square(ksp, m, s)          the square of that
     columns_begin(m, layout, it)       the steps of iteration `it`; the last has the tests, and leaves the records
     columns_finish(m)                  behind all iterations
     columns_replay(ksp, m)             the solve of the column m->columns.which, from its first norm on; m->s are the first scalars, and the first test has been made. KSPTCColumnTaken() brings the scalars of iterations, KSPTCLogIteration() logs them
     columns_norm(normtype)             the sum that the norm is the root of
*/
#pragma once

#include <petsc/private/matimpl.h>
#include <petsctc/private/aijtcimpl.h>
#include <petsctc/private/aijtcops.h>
#include <../src/ksp/engine/kspmethod.h>

/* What a method keeps for blocks, and the one under way from the host */
template <class Table, class Columns, class Scalars>
struct KSPTCBlock {
  using All = PetscTCColumnsScalars<Scalars>;

  PetscTCColumnsWork<Scalars> work[KSPTC_BACKENDS];
  PetscBool                   have[KSPTC_BACKENDS]; /* work is complete */
  PetscInt                    max_taken;
  All                        *taken; /* [max_taken] after each iteration, as long as a column goes on */

  const Table                 *steps;
  PetscTCColumnsWork<Scalars> *w;
  Columns                      v;
  Mat                          B, X;
  PetscInt                     first; /* column of B and X */
};

/* ---- the steps */

/* Room for the scalars after iteration `it` */
template <class M>
static PetscErrorCode KSPTCColumnsReserve(M *m, PetscInt it)
{
  auto *block = &m->block;

  PetscFunctionBegin;
  if (it < block->max_taken) PetscFunctionReturn(PETSC_SUCCESS);
  block->max_taken = PetscMax(128, 2 * it);
  PetscCall(PetscRealloc(block->max_taken * sizeof(*block->taken), &block->taken));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The scalars as they are now, all that has been begun being over */
template <class M, class All>
static PetscErrorCode KSPTCColumnsRead(M *m, All *s)
{
  PetscFunctionBegin;
  PetscCall((*m->block.steps->read)(m->block.w, s, m->stream));
  if (m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpuScalar(sizeof(*s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of the solver's into a column of the block, and back */
template <class M>
static PetscErrorCode KSPTCColumnLoad(M *m, Vec from, PetscScalar to[])
{
  PetscScalar *a[1];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(m, 1, 0, &from, a));
  PetscCall((*m->block.steps->copy)(m->block.v.n, a[0], to, m->stream));
  PetscCall(KSPTCStepEnd(m, 1, 0, &from, a, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static PetscErrorCode KSPTCColumnStore(M *m, const PetscScalar from[], Vec to)
{
  PetscScalar *a[1];

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(m, 0, 1, &to, a));
  PetscCall((*m->block.steps->copy)(m->block.v.n, from, a[0], m->stream));
  PetscCall(KSPTCStepEnd(m, 0, 1, &to, a, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first residuals of all columns */
template <class M>
static PetscErrorCode KSPTCColumnsResiduals(KSP ksp, M *m)
{
  const auto *block = &m->block;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < block->v.columns; c++) {
    PetscCall(KSPTCColumnTake(ksp, block->B, block->X, block->first + c));
    PetscCall(M::columns_residual(ksp, m, c));
    PetscCall(KSPTCColumnGive(ksp, block->B, block->X, block->first + c));
  }
  if (!m->identity) PetscCall(KSPTCDiagonalTake(ksp, ksp->work[0], &m->diagonal));
  PetscCheck(m->identity || m->diagonal.d, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The preconditioner that was a diagonal is none: run with -ksp_%s_matsolve false", m->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first norms and tests: what KSPConvergedDefault() makes of them. NaN is left to the replay. A column that is over is frozen; `live`: the others */
template <class M>
static PetscErrorCode KSPTCColumnsTests(KSP ksp, M *m, PetscInt *live)
{
  const auto *block = &m->block;

  PetscFunctionBegin;
  *live = 0;
  for (PetscInt c = 0; c < block->v.columns; c++) {
    KSPTCColumn    *column = &m->columns.column[c];
    const PetscReal norm   = ksp->normtype == KSP_NORM_NONE ? 0.0 : PetscSqrtReal(PetscAbsReal(M::columns_square(ksp, m, &block->taken[0].of[c])));

    column->its    = 0;
    column->reason = KSP_CONVERGED_ITERATING;
    column->over   = (PetscBool)PetscIsInfOrNanReal(norm);
    if (!column->over) {
      PetscCall(KSPTCColumnTake(ksp, block->B, block->X, block->first + c));
      PetscCall((*ksp->converged)(ksp, 0, norm, &column->reason, ksp->cnvP));
      PetscCall(KSPTCColumnGive(ksp, block->B, block->X, block->first + c));
      column->over = (PetscBool)(column->reason != KSP_CONVERGED_ITERATING);
    }
    column->ttol   = ksp->ttol;
    column->rnorm0 = ksp->rnorm0;
    if (column->over) PetscCall((*block->steps->freeze)(c, block->w, m->stream));
    else ++*live;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static PetscErrorCode KSPTCColumnsStart(KSP ksp, M *m, PetscInt *live)
{
  const PetscInt scaled = m->identity ? 0 : 1;
  auto          *block  = &m->block;
  PetscScalar   *d[1]   = {NULL};

  PetscFunctionBegin;
  PetscCall(KSPTCColumnsResiduals(ksp, m));
  PetscCall(KSPTCStepBegin(m, scaled, 0, &m->diagonal.d, d));
  block->v.d = d[0];
  PetscCall((*block->steps->reset)(block->w, m->stream));
  PetscCall(M::columns_start(ksp, m));
  PetscCall(KSPTCStepEnd(m, scaled, 0, &m->diagonal.d, d, 0.0)); /* the diagonal stays where it is */
  PetscCall(KSPTCColumnsReserve(m, 0));
  PetscCall(KSPTCColumnsRead(m, &block->taken[0]));
  PetscCall(KSPTCColumnsTests(ksp, m, live));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to <- A from. On the host, where a block has a product for each column, of those that go on: vectors of others may never have been written */
template <class M>
static inline PetscErrorCode KSPTCColumnsMultiply(M *m, const AIJTCLayout *layout, const PetscScalar from[], PetscScalar to[])
{
  const auto *v = &m->block.v;

  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (m->backend == KSPTC_CUDA) PetscCall(AIJTCLayoutMatMult_CUDA(layout, v->columns, from, v->stride, to, v->stride, m->stream));
#endif
  for (PetscInt c = 0; c < v->columns && m->backend == KSPTC_HOST; c++) {
    if ((PetscTCStop)m->block.w->s->of[c].stop == PETSCTC_STOP_NONE) PetscCall(AIJTCLayoutMatMult_Host(layout, 1, from + c * v->stride, v->stride, to + c * v->stride, v->stride, m->stream));
  }
  petsctc_counts.mult++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iteration `it` of all columns */
template <class M>
static PetscErrorCode KSPTCColumnsBeginIteration(KSP ksp, M *m, const AIJTCLayout *layout, PetscInt it)
{
  const PetscInt number = it % PETSCTC_RECORDS;
  const auto    *block  = &m->block;

  PetscFunctionBegin;
  PetscCall(KSPTCStepBegin(m, 0, 0, NULL, NULL));
  block->w->record = &block->w->records[number];
  for (PetscInt c = 0; c < block->v.columns; c++) {
    ksp->ttol                    = m->columns.column[c].ttol;
    ksp->rnorm0                  = m->columns.column[c].rnorm0;
    block->w->record->of[c].stop = PETSCTC_STOP_UNWRITTEN;
    PetscCall(KSPTCTest(ksp, it, M::columns_norm(ksp->normtype), &block->w->test[c]));
  }
  PetscCall(M::columns_begin(m, layout, it));
  block->w->record = NULL;
  PetscCall((*block->steps->mark)(block->w, (int)number, m->stream));
  PetscCall(KSPTCStepEnd(m, 0, 0, NULL, NULL, 0.0));
  m->columns.begun = it;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What iteration `it` has left. A column without a record has stopped within it, and its scalars are as they are now */
template <class M>
static PetscErrorCode KSPTCColumnsAwait(M *m, PetscInt it, PetscInt *live)
{
  using All       = typename decltype(M::block)::All;
  auto     *block = &m->block;
  PetscBool cut   = PETSC_FALSE;
  All       now   = {}, *s;

  PetscFunctionBegin;
  PetscCall((*block->steps->await)(block->w, (int)(it % PETSCTC_RECORDS)));
  PetscCall(KSPTCColumnsReserve(m, it));
  s  = &block->taken[it];
  *s = block->w->records[it % PETSCTC_RECORDS];
  for (PetscInt c = 0; c < block->v.columns; c++) cut = (PetscBool)(cut || (!m->columns.column[c].over && (PetscTCStop)s->of[c].stop == PETSCTC_STOP_UNWRITTEN));
  if (m->backend == KSPTC_CUDA) PetscCall(PetscLogGpuToCpuScalar(sizeof(*s)));
  if (cut) PetscCall(KSPTCColumnsRead(m, &now));
  for (PetscInt c = 0; c < block->v.columns; c++) {
    KSPTCColumn *column = &m->columns.column[c];

    if (column->over) continue;
    if ((PetscTCStop)s->of[c].stop == PETSCTC_STOP_UNWRITTEN) s->of[c] = now.of[c];
    column->its  = it;
    column->over = (PetscBool)((PetscTCStop)s->of[c].stop != PETSCTC_STOP_NONE);
    if (column->over) --*live;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations until all columns are over. On a GPU some are begun before the host has looked at those before them: a column that is over stays as it is */
template <class M>
static PetscErrorCode KSPTCColumnsIterate(KSP ksp, M *m, PetscInt live)
{
  const PetscInt     max_it = PetscMax(ksp->max_it, 1);
  auto              *block  = &m->block;
  const AIJTCLayout *layout;
  PetscScalar       *x;
  PetscInt           ld;
  Mat                A;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatAIJTCGetLayout(A, &layout));
  PetscCall(MatDenseGetLDA(block->X, &ld));
  PetscCall(MatDenseGetArrayAndMemType(block->X, &x, NULL));
  block->v.x       = x + (PetscCount)block->first * ld;
  block->v.xstride = ld;
  m->columns.begun = 0;
  for (PetscInt it = 1; live && it <= max_it; it++) {
    while (m->columns.begun < PetscMin(it + m->lead, max_it)) PetscCall(KSPTCColumnsBeginIteration(ksp, m, layout, m->columns.begun + 1));
    PetscCall(KSPTCColumnsAwait(m, it, &live));
  }
  PetscCall(KSPTCStepBegin(m, 0, 0, NULL, NULL));
  PetscCall(M::columns_finish(m));
  PetscCall(KSPTCStepEnd(m, 0, 0, NULL, NULL, 0.0));
  PetscCall(MatDenseRestoreArrayAndMemType(block->X, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what the user sees */

/* Iteration i+1 of the column that is replayed: its scalars */
template <class M>
static inline PetscErrorCode KSPTCColumnTaken(M *m, PetscInt i)
{
  const KSPTCColumn *column = &m->columns.column[m->columns.which];

  PetscFunctionBegin;
  PetscCheck(i < column->its, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The steps have ended column %" PetscInt_FMT " of a block after %" PetscInt_FMT " iterations, the convergence test has not: run with -ksp_%s_matsolve false", m->columns.which,
             column->its, m->name);
  m->s = m->block.taken[i + 1].of[m->columns.which];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solve of a column, of which all is known */
template <class M>
static PetscErrorCode KSPTCColumnReplay(KSP ksp, M *m)
{
  const KSPTCColumn *column = &m->columns.column[m->columns.which];

  PetscFunctionBegin;
  if (ksp->res_hist_reset) ksp->res_hist_len = 0;
  if (ksp->err_hist_reset) ksp->err_hist_len = 0;
  ksp->reason = KSP_CONVERGED_ITERATING;
  ksp->ttol   = column->ttol;
  ksp->rnorm0 = column->rnorm0;
  m->s        = m->block.taken[0].of[m->columns.which];
  m->begun    = column->its;
  PetscCall(M::columns_replay(ksp, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static PetscErrorCode KSPTCColumnsReplay(KSP ksp, M *m)
{
  const PetscInt begun = m->begun; /* of a solve before, for which the next one may have to wait */
  const auto    *block = &m->block;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < block->v.columns; c++) {
    PetscCall(KSPTCCountFused(m));
    m->last_pc_in_steps   = (PetscBool)(m->diagonal.d != NULL);
    m->last_why_not_ahead = NULL;
    m->columns.which      = c;
    PetscCall(KSPTCColumnTake(ksp, block->B, block->X, block->first + c));
    m->columns.replays  = PETSC_TRUE;
    PetscErrorCode ierr = KSPTCColumnReplay(ksp, m);

    m->columns.replays = PETSC_FALSE;
    m->begun           = begun;
    petsctc_counts.columns++;
    petsctc_counts.iterations += ksp->its;
    if (!ierr) ierr = KSPTCColumnOver(ksp, m, (PetscBool)(block->first + c == block->X->cmap->n - 1));
    PetscCall(KSPTCColumnGive(ksp, block->B, block->X, block->first + c));
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the operation */

/* Table, work and memory of a block; `room`: is there any? */
template <class M>
static PetscErrorCode KSPTCColumnsSetUp(KSP ksp, M *m, PetscInt columns, PetscBool *room)
{
  const KSPTCBackend b     = m->backend;
  auto              *block = &m->block;

  PetscFunctionBegin;
  block->steps = M::columns_table(b);
  block->w     = &block->work[b];
  PetscCall(KSPTCCreateWork(block->steps, block->w, &block->have[b]));
  PetscCall(KSPTCUsesTensor(m, &block->w->tensor));
  PetscCall(VecGetLocalSize(ksp->work[0], &m->n));
  block->w->record = NULL; /* of a block that ended with an error */
  m->lead          = m->ahead == PETSC_DECIDE ? (b == KSPTC_CUDA ? 2 : 0) : m->ahead;
  ksp->reason      = KSP_CONVERGED_ITERATING; /* what a batch before has left */
  m->resident.is   = PETSC_FALSE;
  PetscCall((*block->steps->place)(block->w, m->n, columns, &block->v, room));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static PetscErrorCode KSPTCColumnsSolve(KSP ksp, M *m, Mat B, Mat X, PetscInt first, PetscBool *room)
{
  PetscInt live = 0;

  PetscFunctionBegin;
  m->block.B     = B;
  m->block.X     = X;
  m->block.first = first;
  m->block.v     = {};
  PetscCall(KSPTCColumnsSetUp(ksp, m, PetscMin(X->cmap->n - first, (PetscInt)PETSCTC_MAX_COLUMNS), room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCColumnsStart(ksp, m, &live));
  if (live) PetscCall(KSPTCColumnsIterate(ksp, m, live));
  PetscCall(KSPTCColumnsReplay(ksp, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The preconditioner is none, or the diagonal that is taken when it has been applied */
template <class M>
static PetscErrorCode KSPTCColumnsPCLegal(KSP ksp, M *m, const char **why)
{
  PetscFunctionBegin;
  m->number = 0.0; /* they apply what they have */
  PetscCall(KSPTCIdentityPC(ksp, &m->identity));
  PetscCall(KSPTCDiagonalMark(ksp, &m->diagonal));
  if (m->identity) PetscCall(VecDestroy(&m->diagonal.d));
  else if (!m->diagonal.jacobi) *why = "the preconditioner is neither none nor jacobi";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `why` where columns are solved one by one */
template <class M>
static PetscErrorCode KSPTCColumnsChoose(KSP ksp, M *m, Mat B, Mat X, const char **why)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  *why = NULL;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) *why = "more than one process";
  else if (X->rmap->n != B->rmap->n || !X->cmap->n) *why = "the matrices differ in size, or have no columns";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCColumnTake(ksp, B, X, 0));
  PetscCall(KSPTCColumnsLegal(ksp, m, X, why));
  if (!*why) PetscCall(KSPTCColumnsPCLegal(ksp, m, why));
  if (!*why) PetscCall(M::columns_legal(ksp, m, why));
  PetscCall(KSPTCColumnGive(ksp, B, X, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* m->columns.solve of a method */
template <class M>
static PetscErrorCode KSPTCMatSolve(KSP ksp, Mat B, Mat X)
{
  PetscBool   room  = PETSC_TRUE;
  PetscInt    first = 0;
  const char *why   = NULL;
  KSPTC       tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  M *const m = static_cast<M *>(tc);

  PetscCall(KSPTCColumnsBegin(ksp, m));
  PetscCall(KSPTCColumnsChoose(ksp, m, B, X, &why));
  for (; !why && first < X->cmap->n; first += PETSCTC_MAX_COLUMNS) {
    PetscCall(KSPTCColumnsSolve(ksp, m, B, X, first, &room));
    if (!room) why = "there is no room for a block in device memory";
    if (!room) break;
  }
  if (why) PetscCall(KSPTCColumnsByOne(ksp, m, B, X, first, why));
  else {
    m->columns.nblocks++;
    PetscCall(PetscInfo(ksp, "Solved %" PetscInt_FMT " columns in blocks of up to %d\n", X->cmap->n, (int)PETSCTC_MAX_COLUMNS));
  }
  PetscCall(KSPTCColumnsEnd(ksp, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static PetscErrorCode KSPTCColumnsRelease(M *m)
{
  auto *block = &m->block;

  PetscFunctionBegin;
  PetscCall(KSPTCDestroyWork(M::columns_table, block->work, block->have));
  PetscCall(PetscFree(block->taken));
  block->max_taken = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
