/*
   Method
     CSR arrays of the transpose by a counting sort: columns are counted, counts summed, and the entries taken row by row, so that every row of the transpose ascends.

   Layout
     include/petsctc/private/aijtcops.h

   Memory traffic
     Columns twice, three arrays written in the order of the columns
*/
#include <petsctc/private/aijtcops.h>
#include <vector>

PetscErrorCode AIJTCCsrTranspose_Host(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscInt ti[], PetscInt tj[], PetscInt perm[], PetscTCStream)
{
  std::vector<PetscInt> next;

  PetscFunctionBegin;
  for (PetscInt c = 0; c <= n; c++) ti[c] = 0;
  for (PetscCount k = 0; k < nnz; k++) ti[j[k] + 1]++;
  for (PetscInt c = 0; c < n; c++) ti[c + 1] += ti[c];
  next.assign(ti, ti + n);
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const PetscInt place = next[j[k]]++;

      perm[place] = k;
      if (tj) tj[place] = r;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static std::vector<PetscScalar> Permuted(PetscCount nnz, const PetscInt perm[], const PetscScalar a[])
{
  std::vector<PetscScalar> ta(nnz);

  for (PetscCount k = 0; k < nnz; k++) ta[k] = a[perm[k]];
  return ta;
}

/* What an error leaves, the caller destroys */
static PetscErrorCode Build(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[], PetscTCStream stream)
{
  std::vector<PetscInt>    ti((size_t)n + 1), tj(nnz);
  std::vector<PetscScalar> ta;
  AIJTCParams              params;
  AIJTCTraits              traits;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nnz, perm));
  PetscCall(AIJTCCsrTranspose_Host(m, n, nnz, i, j, ti.data(), tj.data(), *perm, stream));
  ta = Permuted(nnz, *perm, a);
  PetscCall(AIJTCProbe_Host(n, ti.data(), tj.data(), ta.data(), &traits, stream));
  PetscCall((*choose)(ctx, n, m, nnz, &traits, &params));
  PetscCall(AIJTCLayoutBuild_Host(n, m, ti.data(), tj.data(), ta.data(), &params, layout, stream));
  layout->common = traits.common;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedBuild_Host(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[], PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *layout = {};
  *perm   = NULL;
  ierr    = Build(m, n, nnz, i, j, a, choose, ctx, layout, perm, stream);
  if (PetscUnlikely(ierr)) (void)AIJTCTransposedDestroy_Host(layout, perm);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedRefresh_Host(AIJTCLayout *layout, const PetscInt perm[], const PetscScalar a[], PetscBool *fits, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(AIJTCLayoutRefresh_Host(layout, Permuted(layout->nnz, perm, a).data(), fits, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCTransposedDestroy_Host(AIJTCLayout *layout, PetscInt *perm[])
{
  PetscFunctionBegin;
  PetscCall(PetscFree(*perm));
  PetscCall(AIJTCLayoutDestroy_Host(layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}
