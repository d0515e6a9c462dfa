/*
   One solver of the program solve: set-up, solves, what they took and where.

   Copies are PETSc's own counters, which its logging adds to whether or not somebody asks for -log_view. The residuals come from the history that KSP keeps in an array of ours. So nothing of the program's is called in
   an iteration, and a solver takes the path that it takes in any other program.
*/
#include "solve.h"
#include "solveprogress.h"

#include <petscdevice.h>
#include <petsctime.h>

#include <algorithm>

/* The time when all processes, and the GPU if there is one, have done what they were asked before */
static PetscErrorCode ReadClock(PetscBool gpu, double *seconds)
{
  PetscLogDouble now;

  PetscFunctionBegin;
  if (gpu) {
    PetscDeviceContext context;

    PetscCall(PetscDeviceContextGetCurrentContext(&context));
    PetscCall(PetscDeviceContextSynchronize(context));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&now));
  *seconds = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of this process, since it began */
static Copies CopiesSoFar()
{
#if PetscDefined(HAVE_DEVICE) && PetscDefined(USE_LOG)
  return {petsc_ctog_ct, petsc_gtoc_ct, petsc_ctog_sz, petsc_gtoc_sz};
#else
  return {};
#endif
}

/* Of all processes, from one time to another */
static PetscErrorCode CopiesBetween(const Copies &from, const Copies &to, Copies *copies)
{
  PetscLogDouble n[] = {to.number_up - from.number_up, to.number_down - from.number_down, to.bytes_up - from.bytes_up, to.bytes_down - from.bytes_down};

  PetscFunctionBegin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, n, 4, MPIU_PETSCLOGDOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  *copies = {n[0], n[1], n[2], n[3]};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Handles of the GPU's libraries, which a process makes once, are not to be in the times of the first solver */
PetscErrorCode WarmUp(PetscBool gpu)
{
  Mat       A;
  Vec       x, y;
  PetscInt  row;
  PetscReal norm;

  PetscFunctionBegin;
  if (!gpu) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 1, 1, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATAIJCUSPARSE));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &row, nullptr));
  PetscCall(MatSetValue(A, row, row, 1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes a second that VecCopy() reads and writes where the vectors of this type live. On a GPU that is a copy of the device's; in either place the vectors are larger than caches, but for those of huge processors.
   Measured once for each place */
static PetscErrorCode CopyBandwidth(VecType type, PetscBool gpu, double *bandwidth)
{
  static double  known[2];
  const double   bytes  = (gpu ? 4 : 1) * 134217728.0;
  const int      copies = gpu ? 10 : 1;
  double         best   = PETSC_MAX_REAL;
  PetscMPIInt    size;
  Vec            from, to;
  const PetscInt n = (PetscInt)(bytes / sizeof(PetscScalar));

  PetscFunctionBegin;
  *bandwidth = known[gpu];
  if (*bandwidth > 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &from));
  PetscCall(VecSetSizes(from, n / size, PETSC_DETERMINE));
  PetscCall(VecSetType(from, type));
  PetscCall(VecDuplicate(from, &to));
  PetscCall(VecSet(from, 1.0));
  PetscCall(VecSet(to, 2.0));
  for (int k = 0; k < 3; k++) {
    double start, stop;

    PetscCall(ReadClock(gpu, &start));
    for (int c = 0; c < copies; c++) PetscCall(VecCopy(from, to));
    PetscCall(ReadClock(gpu, &stop));
    best = PetscMin(best, (stop - start) / copies);
  }
  PetscCall(VecDestroy(&from));
  PetscCall(VecDestroy(&to));
  *bandwidth = known[gpu] = 2.0 * (n / size) * size * (double)sizeof(PetscScalar) / best;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the host's matrix and vectors, so that no type is judged by itself. Absolute when b = 0. */
static PetscErrorCode TrueResidual(const System *system, Vec x, PetscReal *residual)
{
  Vec       host, r;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(system->A, &host, &r));
  PetscCall(VecCopy(x, host));
  PetscCall(MatMult(system->A, host, r));
  PetscCall(VecAYPX(r, -1.0, system->b));
  PetscCall(VecNorm(r, NORM_2, residual));
  PetscCall(VecNorm(system->b, NORM_2, &norm));
  if (norm > 0.0) *residual /= norm;
  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything of one solver. Types are set as options so that MatSetFromOptions() and KSPSetFromOptions() do what they do in any program. */
typedef struct {
  Mat A;
  Vec x, b;
  KSP ksp;
} Solver;

static PetscErrorCode SetUpSolver(const System *system, const char mat_type[], PetscBool gpu, Solver *S, double *seconds)
{
  double start, stop;
  PC     pc;

  PetscFunctionBegin;
  PetscCall(ReadClock(gpu, &start));
  PetscCall(MatConvert(system->A, mat_type, MAT_INITIAL_MATRIX, &S->A));
  PetscCall(MatSetFromOptions(S->A));
  PetscCall(MatCreateVecs(S->A, &S->x, &S->b));
  PetscCall(VecCopy(system->b, S->b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &S->ksp));
  PetscCall(KSPSetOperators(S->ksp, S->A, S->A));
  PetscCall(KSPGetPC(S->ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetFromOptions(S->ksp));
  PetscCall(KSPSetUp(S->ksp));
  PetscCall(MatMult(S->A, S->b, S->x));
  PetscCall(ReadClock(gpu, &stop));
  *seconds = stop - start;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeSolve(const Settings *s, const Solver *S, PetscBool gpu, Outcome *o, double *seconds, Copies *copies)
{
  double start, stop;
  Copies before, after;

  PetscFunctionBegin;
  PetscCall(VecSet(S->x, 0.0));
  std::fill(o->history.begin(), o->history.end(), NOT_YET);
  {
    Progress progress(s->progress, o->ksp_type, o->history.data(), o->history.size()); /* its thread begins and ends outside of the clock */

    PetscCall(ReadClock(gpu, &start));
    before = CopiesSoFar();
    PetscCall(KSPSolve(S->ksp, S->b, S->x));
    after = CopiesSoFar();
    PetscCall(ReadClock(gpu, &stop));
  }
  *seconds = stop - start;
  if (copies) PetscCall(CopiesBetween(before, after, copies));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve, or one and then the best of `repeat` others */
static PetscErrorCode TimeSolves(const Settings *s, const Solver *S, PetscBool gpu, Outcome *o)
{
  PetscLogStage stages[2];

  PetscFunctionBegin;
  PetscCall(PetscLogStageGetId("First solve", &stages[0]));
  if (stages[0] < 0) PetscCall(PetscLogStageRegister("First solve", &stages[0]));
  PetscCall(PetscLogStageGetId("Second solve", &stages[1]));
  if (stages[1] < 0) PetscCall(PetscLogStageRegister("Second solve", &stages[1]));
  PetscCall(PetscLogStagePush(stages[0]));
  PetscCall(TimeSolve(s, S, gpu, o, &o->first, &o->copies[0]));
  PetscCall(PetscLogStagePop());
  o->best = o->first;
  for (PetscInt k = 0; s->repeat > 1 && k < s->repeat; k++) {
    double seconds;

    if (k == 0) PetscCall(PetscLogStagePush(stages[1]));
    PetscCall(TimeSolve(s, S, gpu, o, &seconds, k == 0 ? &o->copies[1] : nullptr));
    if (k == 0) PetscCall(PetscLogStagePop());
    if (k == 0) o->second = o->best = seconds;
    o->best = PetscMin(o->best, seconds);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values, which are the old ones: the sign is turned twice, which is exact, and nobody looks at the matrix in between */
static PetscErrorCode TimeValues(const Solver *S, PetscBool gpu, double *seconds)
{
  PetscBool can;
  double    start, stop;

  PetscFunctionBegin;
  PetscCall(MatHasOperation(S->A, MATOP_SCALE, &can));
  if (!can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatScale(S->A, -1.0));
  PetscCall(ReadClock(gpu, &start));
  PetscCall(MatScale(S->A, -1.0));
  PetscCall(KSPSetUp(S->ksp));
  PetscCall(MatMult(S->A, S->b, S->x));
  PetscCall(ReadClock(gpu, &stop));
  *seconds = stop - start;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b to the GPU, x back */
static PetscErrorCode TimeTransfer(const System *system, const Solver *S, double *seconds)
{
  const PetscScalar *a;
  double             start, stop;

  PetscFunctionBegin;
  PetscCall(ReadClock(PETSC_TRUE, &start));
  PetscCall(VecCopy(system->b, S->b));
  PetscCall(VecGetArrayReadAndMemType(S->b, &a, nullptr));
  PetscCall(VecRestoreArrayReadAndMemType(S->b, &a));
  PetscCall(VecGetArrayRead(S->x, &a));
  PetscCall(VecRestoreArrayRead(S->x, &a));
  PetscCall(ReadClock(PETSC_TRUE, &stop));
  *seconds = stop - start;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where to the history goes: as much of it as there may be, up to 8 MB */
static PetscErrorCode KeepHistory(KSP ksp, Outcome *o)
{
  PetscInt max_it;

  PetscFunctionBegin;
  PetscCall(KSPGetTolerances(ksp, nullptr, nullptr, nullptr, &max_it));
  o->history.resize((size_t)PetscMax(0, PetscMin(max_it, 1000000)) + 1);
  PetscCall(KSPSetResidualHistory(ksp, o->history.data(), (PetscCount)o->history.size(), PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Describe(const System *system, const Solver *S, Outcome *o)
{
  const PetscScalar *a;
  PetscMemType       place;
  PetscInt           norms;
  KSPType            ksp_type;
  PCType             pc_type;
  PC                 pc;

  PetscFunctionBegin;
  PetscCall(KSPGetConvergedReason(S->ksp, &o->reason));
  PetscCall(KSPGetIterationNumber(S->ksp, &o->iterations));
  PetscCall(KSPGetResidualHistory(S->ksp, nullptr, &norms));
  o->history.resize((size_t)norms);
  PetscCall(VecGetArrayReadAndMemType(S->x, &a, &place));
  PetscCall(VecRestoreArrayReadAndMemType(S->x, &a));
  o->gpu = PetscMemTypeDevice(place) ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(TrueResidual(system, S->x, &o->true_residual));
  PetscCall(KSPGetType(S->ksp, &ksp_type));
  PetscCall(KSPGetPC(S->ksp, &pc));
  PetscCall(PCGetType(pc, &pc_type));
  o->ksp_type = ksp_type;
  o->pc_type  = pc_type;
  PetscCall(DescribeRun(S->ksp, S->A, system, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Solve(const Settings *s, const System *system, const char mat_type[], const char ksp_type[], PetscBool gpu, Outcome *o)
{
  Solver  S;
  VecType type;
  char    vec_type[64];

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(nullptr, "-mat_type", mat_type));
  PetscCall(PetscOptionsSetValue(nullptr, "-ksp_type", ksp_type));
  o->mat_type = mat_type;
  o->ksp_type = ksp_type;
  o->values = o->second = o->transfer = -1.0;
  PetscCall(SetUpSolver(system, mat_type, gpu, &S, &o->setup));
  PetscCall(KeepHistory(S.ksp, o));
  PetscCall(TimeSolves(s, &S, gpu, o));
  PetscCall(Describe(system, &S, o));
  if (s->repeat > 1) PetscCall(TimeValues(&S, gpu, &o->values));
  if (o->gpu) PetscCall(TimeTransfer(system, &S, &o->transfer));
  PetscCall(VecGetType(S.x, &type));
  PetscCall(PetscStrncpy(vec_type, type, sizeof(vec_type)));
  PetscCall(KSPDestroy(&S.ksp));
  PetscCall(VecDestroy(&S.x));
  PetscCall(VecDestroy(&S.b));
  PetscCall(MatDestroy(&S.A));
  PetscCall(CopyBandwidth(vec_type, o->gpu, &o->copy_bandwidth)); /* with all memory free again */
  PetscFunctionReturn(PETSC_SUCCESS);
}
