/*
   A preconditioner that is one number: PCJACOBI with the same positive diagonal everywhere, as on a uniform grid. With z = c r the directions of conjugate gradients are c times those without preconditioner and a is
   1/c times theirs, so that x, r and the number of iterations are the same; of norms, that of z is c times that of r, the natural one sqrt(c) times. So it is with those of BiCGSTAB and its alpha and omega, whose norm
   from the left is that of c r, and from the right that of r. Such a solve runs without preconditioner, and c is a factor of the norm.
*/
#include <cmath>
#include <limits>
#include <petsc/private/pcimpl.h>
#include <petsctc/private/petsctcdevice.h>
#include <../src/ksp/engine/kspengine.h>

/* May it be one number? Then nothing of the user's may change it within the solve, and it must be that of the matrix as it is, which shows when it has changed. Those of other types and absolute values depend on more than the matrix */
static PetscErrorCode KSPTCMayBeUniform(KSP ksp, KSPTC tc, PetscBool *may)
{
  KSPTCProjection projection = KSPTC_PROJECTION_NONE;
  const char     *watched;
  PCJacobiType    type;
  PetscBool       abs, plain[2];
  Mat             A, P;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, may));
  *may = (PetscBool)(*may && tc->factors);
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCJacobiGetType(ksp->pc, &type));
  PetscCall(PCJacobiGetUseAbs(ksp->pc, &abs));
  PetscCall(KSPTCProjectionOf(ksp, &projection));
  PetscCall(KSPTCReplayLegal(ksp, tc, &watched));
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(KSPTCPlainMatrix(A, &plain[0]));
  PetscCall(KSPTCPlainMatrix(P, &plain[1]));
  if (type != PC_JACOBI_DIAGONAL || abs || !plain[0] || !plain[1] || projection != KSPTC_PROJECTION_NONE || watched || ksp->pc->reusepreconditioner || !ksp->pc->setupcalled) *may = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The least and the largest number of a diagonal, and whether all are finite. On the host in one pass, for which VecMin() and its like take ten times as long; no norm on a GPU, for which PETSc starts cuBLAS, which takes 10 ms */
static PetscErrorCode KSPTCRangeOf(Vec diagonal, PetscReal *least, PetscReal *most, PetscBool *finite)
{
  const PetscScalar *d;
  PetscScalar        sum = 0.0;
  PetscBool          device;
  PetscInt           n, differ = 0;

  PetscFunctionBegin;
  PetscCall(PetscTCVecOnDevice(diagonal, &device));
  PetscCall(VecGetLocalSize(diagonal, &n));
  if (!device) {
    PetscReal range[3] = {PETSC_MAX_REAL, PETSC_MAX_REAL, 1.0}; /* least, -most, finite: the least of all processes is wanted of each */

    PetscCall(VecGetArrayRead(diagonal, &d));
    for (PetscInt k = 0; k < n; k++) differ += d[k] != d[0];
    if (n) {
      range[0] = PetscRealPart(d[0]);
      range[1] = differ ? -PETSC_MAX_REAL : -range[0]; /* which, nobody asks */
      range[2] = PetscIsInfOrNanScalar(d[0]) ? 0.0 : 1.0;
      if (range[2] == 0.0) range[0] = range[1] = 0.0; /* NaN has no order */
    }
    PetscCall(VecRestoreArrayRead(diagonal, &d));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, range, 3, MPIU_REAL, MPIU_MIN, PetscObjectComm((PetscObject)diagonal)));
    *least  = range[0];
    *most   = -range[1];
    *finite = (PetscBool)(range[2] > 0.0);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecMin(diagonal, NULL, least));
  PetscCall(VecMax(diagonal, NULL, most));
  if (*least == *most) PetscCall(VecSum(diagonal, &sum)); /* both may overlook NaN */
  *finite = (PetscBool)!PetscIsInfOrNanScalar(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 0 where the diagonal is not the same everywhere, not positive, or far from 1: sums lack factors of it that PETSc's have, and so leave the range of numbers with other norms of b */
static PetscErrorCode KSPTCUniformNumber(KSP ksp, Vec work, PetscReal *number)
{
  const PetscReal range = PetscDefined(USE_REAL_SINGLE) ? 1e2 : 1e6;
  PetscReal       least = 0.0, most = 0.0;
  PetscBool       finite = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PCJacobiGetDiagonal(ksp->pc, work, NULL));
  PetscCall(KSPTCRangeOf(work, &least, &most, &finite));
  *number = least == most && finite && least >= (PetscReal)1.0 / range && least <= range ? least : (PetscReal)0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does a sample tell that it is not one number? On one process and the host, where that costs less than to apply it and look at all */
static PetscErrorCode KSPTCSampleDiffers(KSPTC tc, Mat P, PetscBool *differs)
{
  const PetscInt samples = 16;
  PetscInt       m, n;
  PetscScalar    first = 0.0, d;
  PetscMPIInt    size;

  PetscFunctionBegin;
  *differs = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)P), &size));
  if (size > 1 || tc->backend != KSPTC_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetSize(P, &m, &n));
  for (PetscInt k = 0; k < samples && m == n && m && !*differs; k++) {
    const PetscInt row = (PetscInt)((PetscCount)k * m / samples);

    PetscCall(MatGetValue(P, row, row, &d));
    if (k == 0) first = d;
    *differs = (PetscBool) !(d == first);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Sets tc->number to what the preconditioner is, 0 if it is not one number. It is looked at when it is seen for the first time, and when the values of its matrix have changed unless it was no such number before. What is
   known is forgotten where a solve sees another type.

   Unless it is known that it is none, or a sample tells so, it is applied, though PETSc's may end before: it takes its diagonal from the matrix when it is first applied, and one that is kept after the values have changed must have the old ones.

   applied: it has been applied in this solve; work: a vector of the solve, which is overwritten
*/
PetscErrorCode KSPTCUniformPC(KSP ksp, KSPTC tc, PetscBool applied, Vec work)
{
  const KSPTCUniform *known = &tc->uniform;
  KSPTCUniform        now   = {};
  Mat                 P;
  PetscBool           may, differs, alike, stands;

  PetscFunctionBegin;
  tc->number = 0.0;
  PetscCall(KSPTCMayBeUniform(ksp, tc, &may));
  if (!may) {
    tc->uniform = now;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  PetscCall(PetscObjectGetId((PetscObject)P, &now.id));
  PetscCall(PetscObjectGetId((PetscObject)ksp->pc, &now.pc));
  PetscCall(PetscObjectStateGet((PetscObject)P, &now.state));
  PetscCall(MatGetNonzeroState(P, &now.nonzerostate));
  alike  = (PetscBool)(known->pc == now.pc && known->id == now.id && known->nonzerostate == now.nonzerostate);
  stands = (PetscBool)(alike && (known->number == 0.0 || known->state == now.state));
  PetscCall(KSPTCAll(ksp, &stands));
  if (stands && known->number == 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  if (!alike && !applied) {
    PetscCall(KSPTCSampleDiffers(tc, P, &differs));
    if (differs) {
      tc->uniform = now;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  if (!applied) PetscCall(KSP_PCApply(ksp, ksp->vec_rhs, work));
  if (!stands) {
    PetscCall(KSPTCUniformNumber(ksp, work, &now.number));
    tc->uniform = now;
  }
  tc->number = tc->uniform.number;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest norm that, times c, is at most `bound` */
static PetscReal KSPTCMostNorm(PetscReal bound, PetscReal c)
{
  const int near = 8; /* numbers that the quotient may be off by, and more */
  PetscReal norm = bound / c;

  for (int i = 0; i < near && c * norm > bound; i++) norm = std::nextafter(norm, (PetscReal)0.0);
  for (int i = 0; i < near && c * std::nextafter(norm, std::numeric_limits<PetscReal>::infinity()) <= bound; i++) norm = std::nextafter(norm, std::numeric_limits<PetscReal>::infinity());
  return norm;
}

/* Of the norms that the steps look at */
PetscReal KSPTCNormFactor(KSP ksp, KSPTC tc)
{
  if (tc->number == 0.0) return 1.0;
  switch (ksp->normtype) {
  case KSP_NORM_PRECONDITIONED:
    return tc->number;
  case KSP_NORM_NATURAL:
    return PetscSqrtReal(tc->number);
  default:
    return 1.0;
  }
}

/* Norms come before they are multiplied by that factor: bounds with which a test of them ends where that of the products does, to the bit. A bound that is NaN, or that no norm reaches, stays */
void KSPTCScaleTest(KSP ksp, KSPTC tc, PetscTCTest *test)
{
  const PetscReal c = KSPTCNormFactor(ksp, tc), infinity = std::numeric_limits<PetscReal>::infinity();

  if (c == 1.0) return;
  if (test->above >= 0.0) test->above = KSPTCMostNorm(test->above, c);
  if (test->below < infinity) test->below = std::nextafter(KSPTCMostNorm(std::nextafter(test->below, (PetscReal)0.0), c), infinity); /* the least norm whose product is not less than the bound */
}
