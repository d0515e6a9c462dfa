/*
   The MPI type: PETSc's MPIAIJ (or MPIAIJCUSPARSE) whose two blocks are SeqAIJTC. MatMult_MPIAIJ calls the blocks' own mult and multadd between the two halves of its scatter, so
   branding the blocks is all that a product needs; on GPUs border.cxx has one of its own. Blocks are made, and made again, by preallocation, hash assembly and COO assembly: they are branded after each.
*/
#include <petsctc/private/aijtcimpl.h>

static PetscErrorCode MatAssemblyEnd_MPIAIJTC(Mat A, MatAssemblyType type)
{
  MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.assemblyend)(A, type));
  PetscCall(MatAIJTCBrand(A, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent makes a plain MPIAIJ, whatever the type */
static PetscErrorCode MatPermute_MPIAIJTC(Mat A, IS rows, IS cols, Mat *B)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.permute)(A, rows, cols, B));
  PetscCall(MatConvert(*B, c->parenttype, MAT_INPLACE_MATRIX, B));
  PetscCall(MatAIJTCBrandResult(*B, c->cuda));
  PetscCall(MatAIJTCSettingsCopy(A, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSCTC_HAVE_CUDA
/* The parent calls the sequential function on the host arrays of its blocks: see MatEliminateZeros_SeqAIJTC() */
static PetscErrorCode MatEliminateZeros_MPIAIJTC(Mat A, PetscBool keep)
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);
  Mat                  b[2];

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetBlocks(A, b));
  for (Mat B : b) PetscCall(MatAIJTCSyncHost(B));
  PetscCall((*c->parent.eliminatezeros)(A, keep));
  for (Mat B : b) PetscCall(MatAIJTCHostIsNewest(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reused submatrices get their new values in the host arrays, whatever the device holds of them */
static PetscErrorCode MatCreateSubMatrices_MPIAIJTC(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *B[])
{
  const MatAIJTCClass *c = MatAIJTCClassOf(A);

  PetscFunctionBegin;
  PetscCall((*c->parent.createsubmatrices)(A, n, rows, cols, reuse, B));
  for (PetscInt k = 0; reuse == MAT_REUSE_MATRIX && k < n; k++) PetscCall(MatAIJTCHostIsNewest((*B)[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJGetLocalMatMerge_MPIAIJTC(Mat A, MatReuse reuse, IS *glob, Mat *L)
{
  const PetscBool cuda   = MatAIJTCClassOf(A)->cuda;
  const auto      theirs = (PetscErrorCode(*)(Mat, MatReuse, IS *, Mat *))MatAIJTCTheirs(A, "MatMPIAIJGetLocalMatMerge_C");

  PetscFunctionBegin;
  MatAIJTCCallParent(A, reuse == MAT_REUSE_MATRIX ? *L : NULL, (*theirs)(A, reuse, glob, L));
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatAIJTCBrandResult(*L, cuda));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode MatAIJTCSetOps_MPI(MatAIJTCClass *c)
{
  PetscFunctionBegin;
  c->mine.assemblyend = MatAssemblyEnd_MPIAIJTC;
  c->mine.permute     = MatPermute_MPIAIJTC;
#if PETSCTC_HAVE_CUDA
  if (c->cuda) {
    c->mine.mult = MatMult_MPIAIJTC;
    PetscCall(MatAIJTCSetOps_Reductions(c));
    PetscCall(MatAIJTCSetOps_Diagonal(c));
    c->mine.createsubmatrices = MatCreateSubMatrices_MPIAIJTC;
    if (c->parent.eliminatezeros) c->mine.eliminatezeros = MatEliminateZeros_MPIAIJTC;
    c->composed[2] = {"MatMPIAIJGetLocalMatMerge_C", (MatAIJTCFn)MatMPIAIJGetLocalMatMerge_MPIAIJTC, NULL};
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
