/*
   Operations of MATAIJTC besides its product: on the CSR arrays that the parent keeps, on a layout of the transpose, and products of a layout with several columns. Raw pointers, sizes and a
   stream: no PETSc object. Every launcher X_CUDA has a host twin X_Host of the same signature.

   CSR arrays are i[m + 1] (i[0] = 0), j and a of nnz = i[m]. Array arguments live in the memory space of the launcher; results passed by address (norms, flags) on the host, for which the CUDA
   launcher waits. All sums have a fixed order.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>

/* ---- norms and sums */

/* sum[r] <- sum of |a| over row r */
PETSC_INTERN PetscErrorCode AIJTCCsrRowSumsAbs_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscScalar sum[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrRowSumsAbs_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscScalar sum[], PetscTCStream stream);

/* The largest sum of |a| in a column, in a row, passing over NaNs as PETSc does; the square root of the sum of a^2 */
PETSC_INTERN PetscErrorCode AIJTCCsrNorm1_Host(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrNorm1_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrNormInfinity_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrNormInfinity_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscScalar a[], PetscReal *norm, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrNormFrobenius_Host(PetscCount nnz, const PetscScalar a[], PetscReal *norm, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrNormFrobenius_CUDA(PetscCount nnz, const PetscScalar a[], PetscReal *norm, PetscTCStream stream);

/* ---- diagonal and scaling */

/* d[r] <- the entry (r, r), 0 if there is none */
PETSC_INTERN PetscErrorCode AIJTCCsrGetDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscScalar d[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrGetDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscScalar d[], PetscTCStream stream);

/* full: every row has its diagonal entry */
PETSC_INTERN PetscErrorCode AIJTCCsrHasDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscBool *full, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrHasDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscBool *full, PetscTCStream stream);

/* Entry (r, r), where there is one, <- d[r] + shift, to which it is added if `add`. d may be NULL: zeros */
PETSC_INTERN PetscErrorCode AIJTCCsrSetDiagonal_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar d[], PetscScalar shift, PetscBool add, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrSetDiagonal_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar d[], PetscScalar shift, PetscBool add, PetscTCStream stream);

/* Entry (r, c) <- (entry * left[r]) * right[c]. left or right may be NULL: ones */
PETSC_INTERN PetscErrorCode AIJTCCsrDiagonalScale_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar left[], const PetscScalar right[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrDiagonalScale_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscScalar a[], const PetscScalar left[], const PetscScalar right[], PetscTCStream stream);

/* ---- transpose */

/* CSR arrays of the n x m transpose: ti[n + 1], tj[nnz], both by row, and perm[nnz], the entry of the matrix that each of its entries is. Rows of the transpose ascend. tj may be NULL */
PETSC_INTERN PetscErrorCode AIJTCCsrTranspose_Host(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscInt ti[], PetscInt tj[], PetscInt perm[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCCsrTranspose_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], PetscInt ti[], PetscInt tj[], PetscInt perm[], PetscTCStream stream);

/* How to slice an m x n matrix of nnz nonzeros with these traits (aijtclayout.h) */
typedef PetscErrorCode (*AIJTCChooseParams)(const void *ctx, PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params);

/* The layout of the n x m transpose, and perm[nnz] as above, in its memory space and to be freed by AIJTCTransposedDestroy. On failure both hold nothing */
PETSC_INTERN PetscErrorCode AIJTCTransposedBuild_Host(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[],
                                                      PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCTransposedBuild_CUDA(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCChooseParams choose, const void *ctx, AIJTCLayout *layout, PetscInt *perm[],
                                                      PetscTCStream stream);
/* a: new values of the matrix (not the transpose). fits: as AIJTCLayoutRefresh */
PETSC_INTERN PetscErrorCode AIJTCTransposedRefresh_Host(AIJTCLayout *layout, const PetscInt perm[], const PetscScalar a[], PetscBool *fits, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCTransposedRefresh_CUDA(AIJTCLayout *layout, const PetscInt perm[], const PetscScalar a[], PetscBool *fits, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCTransposedDestroy_Host(AIJTCLayout *layout, PetscInt *perm[]);
PETSC_INTERN PetscErrorCode AIJTCTransposedDestroy_CUDA(AIJTCLayout *layout, PetscInt *perm[]);

/* ---- products with several columns */

/* Z <- A X for `columns` columns, column c of X from x + c xstride and of Z from z + c zstride. Z and X apart */
PETSC_INTERN PetscErrorCode AIJTCLayoutMatMult_Host(const AIJTCLayout *layout, PetscInt columns, const PetscScalar x[], PetscCount xstride, PetscScalar z[], PetscCount zstride, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMatMult_CUDA(const AIJTCLayout *layout, PetscInt columns, const PetscScalar x[], PetscCount xstride, PetscScalar z[], PetscCount zstride, PetscTCStream stream);
