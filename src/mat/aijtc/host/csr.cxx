/*
   Method
     Host twins of cuda/csr.cu: the same operations one entry after the other. The host's matrices keep PETSc's own operations, which do the same; these are what tests compare with.

   Layout
     CSR

   Memory traffic
     Each array once; NORM_1 adds into one number a column
*/
#include <petsctc/private/aijtcops.h>
#include <vector>

PetscErrorCode AIJTCCsrRowSumsAbs_Host(PetscInt m, PetscCount, const PetscInt i[], const PetscScalar a[], PetscScalar sum[], PetscTCStream)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    sum[r] = 0.0;
    for (PetscInt k = i[r]; k < i[r + 1]; k++) sum[r] += PetscAbsScalar(a[k]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscReal Largest(const std::vector<PetscScalar> &sums)
{
  PetscReal largest = 0.0;

  for (const PetscScalar s : sums) {
    if (s > largest) largest = s;
  }
  return largest;
}

PetscErrorCode AIJTCCsrNorm1_Host(PetscInt, PetscInt n, PetscCount nnz, const PetscInt[], const PetscInt j[], const PetscScalar a[], PetscReal *norm, PetscTCStream)
{
  std::vector<PetscScalar> sum(n, 0.0);

  PetscFunctionBegin;
  for (PetscCount k = 0; k < nnz; k++) sum[j[k]] += PetscAbsScalar(a[k]);
  *norm = Largest(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrNormInfinity_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream)
{
  std::vector<PetscScalar> sum(m, 0.0);

  PetscFunctionBegin;
  PetscCall(AIJTCCsrRowSumsAbs_Host(m, nnz, i, a, sum.data(), stream));
  *norm = Largest(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrNormFrobenius_Host(PetscCount nnz, const PetscScalar a[], PetscReal *norm, PetscTCStream)
{
  PetscFunctionBegin;
  *norm = 0.0;
  for (PetscCount k = 0; k < nnz; k++) *norm += a[k] * a[k];
  *norm = PetscSqrtReal(*norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place of the diagonal entry of a row, or its end */
static PetscInt FindDiagonal(const PetscInt i[], const PetscInt j[], PetscInt row)
{
  PetscInt k = i[row];

  while (k < i[row + 1] && j[k] != row) k++;
  return k;
}

PetscErrorCode AIJTCCsrGetDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscScalar d[], PetscTCStream)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt k = FindDiagonal(i, j, r);

    d[r] = k < i[r + 1] ? a[k] : 0.0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrHasDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscBool *full, PetscTCStream)
{
  PetscFunctionBegin;
  *full = PETSC_TRUE;
  for (PetscInt r = 0; r < m && *full; r++) *full = (PetscBool)(FindDiagonal(i, j, r) < i[r + 1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrSetDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar d[], PetscScalar shift, PetscBool add, PetscTCStream)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt    k     = FindDiagonal(i, j, r);
    const PetscScalar value = (d ? d[r] : (PetscScalar)0.0) + shift;

    if (k < i[r + 1]) a[k] = add ? a[k] + value : value;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCCsrDiagonalScale_Host(PetscInt m, PetscCount, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar left[], const PetscScalar right[], PetscTCStream)
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      if (left) a[k] *= left[r];
      if (right) a[k] *= right[j[k]];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
