/* -mat_aijtc_check: every product of the layout is compared with the parent's. */
#include <petsctc/private/aijtcimpl.h>

/* ||x||_2 of the finite entries of the local part: a block of an MPI matrix is multiplied with the parallel vector itself, and an Inf concerns the rows that have its column alone */
static PetscErrorCode VecNormFinite(Vec x, PetscReal *norm)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBegin;
  *norm = 0.0;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  for (PetscInt k = 0; k < n; k++)
    if (!PetscIsInfOrNanScalar(a[k])) *norm += a[k] * a[k];
  *norm = PetscSqrtReal(*norm);
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   |z - zref| <= rtol (||A||_F ||x||_2 + |y|) in every entry, Inf and NaN in the same places; a matrix with Inf or NaN has no norm, and its other rows are not compared. A sum of n products is off by at most n eps |a|.|x| whatever
   the order of its terms, and |a|.|x| <= ||A||_F ||x||_2, so the default rtol of 1e-12 allows rows of about 5000 nonzeros.
*/
typedef struct {
  PetscInt  row; /* that differs, -1 if none does */
  PetscReal value, parent, bound;
} MatAIJTCDifference;

static PetscErrorCode MatAIJTCCompare(Mat A, Mat_AIJTC *tc, Vec x, Vec y, Vec z, Vec ref, MatAIJTCDifference *d)
{
  const PetscScalar *za, *ra, *ya = NULL;
  PetscReal          anorm, xnorm;
  PetscInt           m;

  PetscFunctionBegin;
  d->row = -1;
  PetscCall(MatNorm(A, NORM_FROBENIUS, &anorm));
  PetscCall(VecNormFinite(x, &xnorm));
  PetscCall(VecGetLocalSize(z, &m));
  PetscCall(VecGetArrayRead(z, &za));
  PetscCall(VecGetArrayRead(ref, &ra));
  if (y) PetscCall(VecGetArrayRead(y, &ya));
  for (PetscInt k = 0; k < m && d->row < 0; k++) {
    const PetscReal bound = tc->settings.check_rtol * (anorm * xnorm + (ya ? PetscAbsScalar(ya[k]) : 0.0));
    const bool      lost = PetscIsInfOrNanScalar(ra[k]), close = lost || PetscAbsScalar(za[k] - ra[k]) <= bound || PetscIsInfOrNanReal(bound);
    const bool      same = lost == (bool)PetscIsInfOrNanScalar(za[k]) && close;

    if (!same) *d = {k, PetscRealPart(za[k]), PetscRealPart(ra[k]), bound};
  }
  if (y) PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(ref, &ra));
  PetscCall(VecRestoreArrayRead(z, &za));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJTCMultAndCheck(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc, Vec x, Vec y, Vec z, MatAIJTCLayoutProduct mult, MatAIJTCParentProduct parentmult)
{
  Vec                yold = y, ref;
  MatAIJTCDifference d;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(z, &ref));
  if (y && y == z) {
    PetscCall(VecDuplicate(y, &yold));
    PetscCall(VecCopy(y, yold));
  }
  PetscCall((*mult)(tc, x, y, z));
  PetscCall((*parentmult)(A, c, AIJTC_WITH_PARENT, x, yold, ref));
  PetscCall(MatAIJTCCompare(A, tc, x, yold, z, ref, &d));
  if (yold != y) PetscCall(VecDestroy(&yold));
  PetscCall(VecDestroy(&ref));
  PetscCheck(d.row < 0, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "Product of the layout differs in row %" PetscInt_FMT ": %.17g, by the parent type %.17g, allowed difference %g. Run without this type (-mat_type aij) and report the matrix, or loosen -mat_aijtc_check_rtol %g", d.row, (double)d.value,
             (double)d.parent, (double)d.bound, (double)tc->settings.check_rtol);
  PetscFunctionReturn(PETSC_SUCCESS);
}
