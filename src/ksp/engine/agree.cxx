/*
   Solvers of several processes: before a solve all find out together whether each is about to do the same. Where one cannot fuse the solve none does, and all say its reason. What PETSc asks to be the same everywhere, and is not, is an
   error on all; otherwise one would wait for sums that another never makes.
*/
#include <cstring>
#include <../src/comm/peers.h>
#include <../src/ksp/engine/kspengine.h>

/* What must be the same on all processes */
typedef struct {
  const char *name; /* for the user */
  PetscInt64  value;
  PetscReal   shown; /* in a message */
} KSPTCAgreed;

static KSPTCAgreed KSPTCAgreedInt(const char name[], PetscInt value)
{
  return {name, (PetscInt64)value, (PetscReal)value};
}

/* Its bits: two that differ in the last one end solves in different iterations */
static KSPTCAgreed KSPTCAgreedReal(const char name[], PetscReal value)
{
  PetscInt64 bits = 0;

  static_assert(sizeof(value) <= sizeof(bits), "a real number has more bits than an integer to compare them");
  std::memcpy(&bits, &value, sizeof(value));
  return {name, bits, value};
}

/* The reason of process `rank`, on all */
static PetscErrorCode KSPTCReasonOf(KSPTC tc, PetscMPIInt rank, const char **why)
{
  PetscFunctionBegin;
  if (*why) PetscCall(PetscStrncpy(tc->theirs, *why, sizeof(tc->theirs)));
  PetscCallMPI(MPI_Bcast(tc->theirs, (PetscMPIInt)sizeof(tc->theirs), MPI_CHAR, rank, tc->comm.comm));
  *why = tc->theirs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* why: this process's reason not to fuse the solve, or NULL. Afterwards that of all. Collective, unless there is one process */
PetscErrorCode KSPTCAgree(KSP ksp, KSPTC tc, const char **why)
{
  const PetscBool default_test = (PetscBool)(ksp->converged == KSPConvergedDefault);
  const char     *watched      = NULL;
  PetscReal       mine, other;
  PetscMPIInt     rank;

  PetscFunctionBegin;
  if (tc->comm.size <= 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(tc->comm.comm, &rank));
  PetscCall(KSPTCReplayLegal(ksp, tc, &watched));
  const KSPTCAgreed  agreed[] = {KSPTCAgreedReal("the relative tolerance", ksp->rtol),
                                 KSPTCAgreedReal("the absolute tolerance", ksp->abstol),
                                 KSPTCAgreedReal("the divergence tolerance", ksp->divtol),
                                 KSPTCAgreedInt("the most iterations", ksp->max_it),
                                 KSPTCAgreedInt("the least iterations", ksp->min_it),
                                 KSPTCAgreedInt("the first iteration whose norm is computed", ksp->chknorm),
                                 KSPTCAgreedInt("the norm type", ksp->normtype),
                                 KSPTCAgreedInt("the side of the preconditioner", ksp->pc_side),
                                 KSPTCAgreedInt("whether the guess is zero", ksp->guess_zero),
                                 KSPTCAgreedInt("whether the convergence test is PETSc's", default_test),
                                 KSPTCAgreedInt("whether something looks on at each iteration", watched != NULL),
                                 KSPTCAgreedInt("the variant of the recurrences", tc->variant),
                                 KSPTCAgreedInt("how many iterations begin ahead", tc->ahead),
                                 KSPTCAgreedInt("whether a preconditioner may be one number", tc->factors)};
  constexpr PetscInt n        = PETSC_STATIC_ARRAY_LENGTH(agreed);
  PetscInt64         v[n + 1], least[n + 1], most[n + 1]; /* the last: the first process that has a reason */

  for (PetscInt k = 0; k < n; k++) v[k] = agreed[k].value;
  v[n] = *why ? rank : tc->comm.size;
  PetscCall(PetscTCCommRange(&tc->comm, n + 1, v, least, most));
  if (least[n] < tc->comm.size) {
    PetscCall(KSPTCReasonOf(tc, (PetscMPIInt)least[n], why));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 0; k < n; k++) {
    if (least[k] == most[k]) continue;
    mine = agreed[k].shown;
    PetscCallMPI(MPI_Allreduce(&mine, &other, 1, MPIU_REAL, MPIU_MAX, tc->comm.comm));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPIU_REAL, MPIU_MIN, tc->comm.comm));
    SETERRQ(tc->comm.comm, PETSC_ERR_ARG_INCOMP, "Before a solve on %d processes %s differs between them, from %g to %g: set it to the same everywhere", (int)tc->comm.size, agreed[k].name, (double)mine, (double)other);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it true on all processes of a solve under way? Collective */
PetscErrorCode KSPTCAll(KSP ksp, PetscBool *all)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  PetscCall(PetscTCCommAll(&tc->comm, *all, all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The seam of the steps of a solve */
PetscErrorCode KSPTCSetAcross(KSP ksp, KSPTC tc, PetscTCAcross *across)
{
  PetscInt rows;

  PetscFunctionBegin;
  *across = tc->across = {};
  if (tc->comm.size <= 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetSize(ksp->vec_sol, &rows));
  across->add  = PetscTCCommAdd_Host;
  across->ctx  = &tc->comm;
  across->rows = (PetscReal)rows;
#if PETSCTC_HAVE_CUDA
  if (tc->backend == KSPTC_CUDA) {
    PetscCall(PetscTCLayerOf(tc->comm.comm, &tc->comm.layer, &tc->comm.why));
    PetscCall(PetscTCCommCreate_CUDA(&tc->comm));
    across->add   = PetscTCCommAdd_CUDA;
    across->sum   = tc->comm.staged_device;
    across->peers = tc->comm.peers;
    across->tag   = &tc->comm.tag;
  }
#endif
  tc->across = *across;
  PetscFunctionReturn(PETSC_SUCCESS);
}
