/*
   Who multiplies on the host: the parent, whose product of a general matrix nothing of ours is faster than, or the layout, which a matrix that compresses well (a stencil with few values) has after a while.

   A layout takes the time of 8 to 20 of PETSc's products to build, and of 3 to 5 to refresh, and its products a fifth to a third of theirs. So it is built behind as many products as make sure that what it costs is a part of what has
   been spent, and for most who multiply so often is earned back in as many more. Sums of rows are added in PETSc's order, product and sum rounded apart: where PETSc was compiled so too (x86-64, without -march) nobody can tell by the numbers who
   multiplied, rows of PETSc's inodes apart, which no such matrix has. MatMultAdd(), which PETSc begins with y, stays the parent's.
*/
#include <petsctc/private/aijtcimpl.h>

enum {
  BUILD_AFTER   = 64, /* products of a pattern */
  REFRESH_AFTER = 8   /* and of its newest values */
};

/* Bytes a nonzero that a product of a layout may read: a third of CSR's */
static constexpr PetscReal MOST_BYTES = 4.0;

/* Do most of some rows have the offsets and values of the row before? Rows here and there: at equal distances they would all begin a line of a grid */
static PetscErrorCode MatAIJTCCompresses(Mat A, PetscBool *compresses)
{
  const PetscInt     samples = 64;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m = 0, alike = 0;
  PetscBool          done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  for (PetscInt s = 0; s < samples && done && i && m > samples; s++) {
    const PetscInt r = 1 + (PetscInt)((uint64_t)(s + 1) * 2654435761u % (uint64_t)(m - 1)), length = i[r + 1] - i[r];
    bool           same = length > 0 && length == i[r] - i[r - 1];

    for (PetscInt e = i[r]; e < i[r + 1] && same; e++) same = j[e] == j[e - length] + 1 && a[e] == a[e - length];
    alike += same;
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  *compresses = (PetscBool)(2 * alike >= samples);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds or refreshes it. A layout that is no faster is given up, until the pattern changes */
static PetscErrorCode MatAIJTCTryLayout(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc, PetscBool *pays)
{
  const AIJTCLayout *l = &tc->layout;

  PetscFunctionBegin;
  if (!tc->host.built) PetscCall(MatAIJTCCompresses(A, pays));
  if (*pays) {
    PetscCall(MatAIJTCUpdateLayout(A, c, tc));
    *pays = (PetscBool)(!tc->values_vary && (PetscReal)AIJTCLayoutBytes(l) <= MOST_BYTES * (PetscReal)l->nnz && l->nconsecutive == AIJTCSlicesTotal(l));
  }
  if (!*pays) PetscCall(MatAIJTCDestroyLayout(tc));
  tc->host.built   = *pays;
  tc->host.refused = (PetscBool) !*pays;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the layout multiply this time? Called at each product on the host, unless the choice is the user's */
PetscErrorCode MatAIJTCHostPays(Mat A, const MatAIJTCClass *c, Mat_AIJTC *tc, PetscBool *pays)
{
  PetscBool large, same;

  PetscFunctionBegin;
  *pays = PETSC_FALSE;
  if (tc->valid && tc->host.built) {
    PetscCall(MatAIJTCSamePattern(A, &tc->key, &same));
    *pays = (PetscBool)(same && tc->key.state == ((PetscObject)A)->state);
    if (*pays) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tc->host.nonzerostate != A->nonzerostate || tc->host.id != ((PetscObject)A)->id) tc->host = {((PetscObject)A)->id, A->nonzerostate, 0, 0, 0, PETSC_FALSE, PETSC_FALSE};
  if (tc->host.refused) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->host.state != ((PetscObject)A)->state) tc->host.of_values = 0;
  tc->host.state = ((PetscObject)A)->state;
  tc->host.products++;
  tc->host.of_values++;
  if (tc->host.products <= BUILD_AFTER || tc->host.of_values <= REFRESH_AFTER) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAIJTCTooLarge(A, &large));
  *pays = (PetscBool)(!large && !A->structure_only && A->rmap->n);
  if (!*pays) tc->host.refused = PETSC_TRUE;
  else PetscCall(MatAIJTCTryLayout(A, c, tc, pays));
  PetscFunctionReturn(PETSC_SUCCESS);
}
