static char help[] = "More that may happen to a MATAIJTC between two products: coordinates, random values, device arrays, binding, other matrices made or filled from it.\n\n";

#include "check.h"
#include <petsctc.h>

typedef enum {
  NOTHING, /* the layout still holds */
  VALUES,  /* the values have to be gathered again */
  PATTERN, /* the layout has to be built again */
  MOVED,   /* NOTHING on the host; on a GPU the layout was given up meanwhile, which is PATTERN */
  CHANGED  /* PETSc may do it either way, or the values may no longer fit a compressed form: gathered again or built again */
} Effect;

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 11;
}
static PetscInt Narrow(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 11 / 2;
}
static PetscInt Other(PetscInt row, PetscInt)
{
  return 3 + (row * 5) % 17;
}
static PetscInt Three(PetscInt, PetscInt)
{
  return 3;
}
static const Pattern base = {"base", 60, 60, Width}, subset = {"subset", 60, 60, Narrow}, other = {"other", 60, 60, Other}, band = {"band", 600, 600, Three};

/* ---- matrices */

static PetscErrorCode MakeBase(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&base, type, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same three values in every row: what a compressed form holds in little */
static PetscErrorCode MakeConstant(MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&band, type, A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < 3; k++) PetscCall(MatSetValue(*A, row, Column(row, k, band.N), 1.0 + k, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates of a pattern's local rows, every third entry given twice, last row first; rows of other processes too */
static PetscErrorCode SetCoordinates(Mat A, const Pattern *p)
{
  PetscInt   start, end, *i, *j;
  PetscCount n = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc2(2 * (end - start) * p->N, &i, 2 * (end - start) * p->N, &j));
  for (PetscInt row = end - 1; row >= start; row--) {
    const PetscInt to = (row + 2) % p->M; /* so that some rows are of the next process */

    for (PetscInt k = 0; k < PetscMin((*p->length)(to, p->N), p->N); k++) {
      for (PetscInt twice = 0; twice <= (k % 3 == 0); twice++) {
        i[n]   = to;
        j[n++] = Column(to, k, p->N);
      }
    }
  }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountCoordinates(Mat A, const Pattern *p, PetscInt *n)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  *n = 0;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt length = PetscMin((*p->length)((row + 2) % p->M, p->N), p->N);

    *n += length + (length + 2) / 3;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* device: from the memory of a vector that with -vec_type cuda is the device's; a MATAIJ, the reference, takes values of the host only */
static PetscErrorCode SetCoordinateValues(Mat A, const Pattern *p, PetscBool device, PetscInt seed, InsertMode mode)
{
  Vec                v;
  PetscInt           n;
  const PetscScalar *a;
  PetscMemType       memtype;
  PetscBool          plain;

  PetscFunctionBeginUser;
  PetscCall(CountCoordinates(A, p, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, &v));
  PetscCall(VecSetSizes(v, n, n));
  PetscCall(VecSetType(v, VECSEQ));
  if (device) PetscCall(VecSetFromOptions(v));
  PetscCall(VecFill(v, seed));
  if (device) PetscCall(VecScale(v, 2.0)); /* computed there, if it is the device */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &plain, MATSEQAIJ, MATMPIAIJ, ""));
  if (plain) PetscCall(VecGetArrayRead(v, &a));
  else PetscCall(VecGetArrayReadAndMemType(v, &a, &memtype));
  PetscCall(MatSetValuesCOO(A, a, mode));
  if (plain) PetscCall(VecRestoreArrayRead(v, &a));
  else PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeCoordinates(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, base.M, base.N));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(SetCoordinates(*A, &base));
  PetscCall(SetCoordinateValues(*A, &base, PETSC_FALSE, 1, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what may happen to a matrix: applied to the one under test and to the reference */

/* A product, so that the layout holds what the matrix is now */
static PetscErrorCode Multiply(Mat A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCOOInsert(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetCoordinateValues(*A, &base, PETSC_FALSE, 2, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCOOAdd(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetCoordinateValues(*A, &base, PETSC_FALSE, 3, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCOODeviceInsert(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetCoordinateValues(*A, &base, PETSC_TRUE, 4, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCOODeviceAdd(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetCoordinateValues(*A, &base, PETSC_TRUE, 5, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCOOAgain(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetCoordinates(*A, &other));
  PetscCall(SetCoordinateValues(*A, &other, PETSC_FALSE, 6, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoRandom(Mat *A)
{
  PetscRandom r;

  PetscFunctionBeginUser;
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &r));
  PetscCall(PetscRandomSetSeed(r, 12345));
  PetscCall(PetscRandomSeed(r));
  PetscCall(MatSetRandom(*A, r));
  PetscCall(PetscRandomDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalSet(Mat A, InsertMode mode)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, NULL, &d));
  PetscCall(VecFill(d, 8));
  PetscCall(MatDiagonalSet(A, d, mode));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoDiagonalInsert(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(DiagonalSet(*A, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoDiagonalAdd(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(DiagonalSet(*A, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The usual step of a simulation: zeroed, then all values set again */
static PetscErrorCode DoReassemble(Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatZeroEntries(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < Width(row, base.N); k++) PetscCall(MatSetValue(*A, row, Column(row, k, base.N), 0.1 * row - k, ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of an MPI matrix, or the matrix itself: n of them */
static PetscErrorCode Blocks(Mat A, Mat b[2], PetscInt *n)
{
  PetscBool mpi;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectHasFunction((PetscObject)A, "MatMPIAIJSetPreallocation_C", &mpi));
  *n   = mpi ? 2 : 1;
  b[0] = A;
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nonzeros(Mat B, PetscInt *nz)
{
  MatInfo info;

  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  *nz = (PetscInt)info.nz_used;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoGetArrayWrite(Mat *A)
{
  Mat      b[2];
  PetscInt n, nz;

  PetscFunctionBeginUser;
  PetscCall(Blocks(*A, b, &n));
  for (PetscInt k = 0; k < n; k++) {
    PetscScalar *a;

    PetscCall(Nonzeros(b[k], &nz));
    PetscCall(MatSeqAIJGetArrayWrite(b[k], &a));
    for (PetscInt l = 0; l < nz; l++) a[l] = PetscCosReal((PetscReal)l);
    PetscCall(MatSeqAIJRestoreArrayWrite(b[k], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device's array, or, where there is none, the host's: every value times 3, computed where it lies. In a debug PETSc the device's functions take the exact parent only */
static PetscErrorCode DoDeviceArray(Mat *A)
{
  Mat      b[2];
  PetscInt n, nz;

  PetscFunctionBeginUser;
  PetscCall(Blocks(*A, b, &n));
  for (PetscInt k = 0; k < n; k++) {
    Vec          v;
    PetscScalar *a;
    PetscBool    device = PETSC_FALSE;

    PetscCall(Nonzeros(b[k], &nz));
#if PetscDefined(HAVE_CUDA)
    {
      PetscBool ours;
      VecType   type;

      PetscCall(MatGetVecType(b[k], &type));
      PetscCall(PetscStrcmp(type, VECCUDA, &device));
      PetscCall(CheckOurs(b[k], &ours));
      if (ours && PetscDefined(USE_DEBUG)) device = PETSC_FALSE;
    }
    if (device) {
      PetscCall(MatSeqAIJCUSPARSEGetArray(b[k], &a));
      PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, nz, a, &v));
      PetscCall(VecScale(v, 3.0));
      PetscCall(VecDestroy(&v));
      PetscCall(MatSeqAIJCUSPARSERestoreArray(b[k], &a));
    }
#endif
    if (!device) {
      PetscCall(MatSeqAIJGetArray(b[k], &a));
      PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, nz, a, &v));
      PetscCall(VecScale(v, 3.0));
      PetscCall(VecDestroy(&v));
      PetscCall(MatSeqAIJRestoreArray(b[k], &a));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoBindAndBack(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatBindToCPU(*A, PETSC_TRUE));
  PetscCall(MatBindToCPU(*A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoScaleBound(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatBindToCPU(*A, PETSC_TRUE));
  PetscCall(MatScale(*A, -2.0));
  PetscCall(Multiply(*A));
  PetscCall(MatBindToCPU(*A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoDuplicate(Mat *A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(*A, MAT_COPY_VALUES, &B));
  PetscCall(MatScale(B, 2.0));
  PetscCall(Multiply(B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAXPYUnknown(Mat *A)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(MatFromPattern(&subset, type, &B));
  PetscCall(MatAXPY(*A, -1.5, B, UNKNOWN_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAYPX(Mat *A)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(MatFromPattern(&base, type, &B));
  PetscCall(MatAYPX(*A, -1.5, B, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoZeroRowsColumns(Mat *A)
{
  const PetscInt rows[] = {3, 17, 44};
  PetscMPIInt    rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatZeroRowsColumns(*A, rank ? 0 : 3, rows, 7.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is filled from another matrix by an operation that reuses it */
static PetscErrorCode DoTransposeInto(Mat *A)
{
  Mat T;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(*A, MAT_INITIAL_MATRIX, &T));
  PetscCall(Multiply(T));
  PetscCall(MatScale(*A, 5.0));
  PetscCall(MatTranspose(*A, MAT_REUSE_MATRIX, &T));
  PetscCall(MatDestroy(A));
  *A = T;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoSubMatrixInto(Mat *A)
{
  Mat      B;
  IS       all;
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &all));
  PetscCall(MatCreateSubMatrix(*A, all, all, MAT_INITIAL_MATRIX, &B));
  PetscCall(Multiply(B));
  PetscCall(MatScale(*A, 0.2));
  PetscCall(MatCreateSubMatrix(*A, all, all, MAT_REUSE_MATRIX, &B));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscCall(ISDestroy(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoProductInto(Mat *A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatMatMult(*A, *A, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &B));
  PetscCall(Multiply(B));
  PetscCall(MatScale(*A, 0.5));
  PetscCall(MatMatMult(*A, *A, MAT_REUSE_MATRIX, PETSC_DETERMINE, &B));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCopyDifferent(Mat *A)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(MatFromPattern(&other, type, &B));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCopy(B, *A, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoOptions(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_FALSE));
  PetscCall(MatSetFromOptions(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that were alike become different, and alike again */
static PetscErrorCode DoUnlike(Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) PetscCall(MatSetValue(*A, row, row, PetscSinReal((PetscReal)row), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoOneUnlike(Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  if (start <= 300 && 300 < end) PetscCall(MatSetValue(*A, 300, 300, 1.0 / 3.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoUnlikeAndBack(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(DoUnlike(A));
  PetscCall(Multiply(*A));
  PetscCall(MatScale(*A, 0.0));
  PetscCall(MatShift(*A, 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoScale(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(*A, 0.1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*make)(MatType, Mat *);
  PetscErrorCode (*apply)(Mat *);
  Effect    effect;
  PetscBool multiplies; /* counted from before its own products */
  PetscBool stock;      /* AIJCUSPARSE gets it right */
} changes[] = {
  {"coordinates, values inserted",              MakeCoordinates, DoCOOInsert,       VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"coordinates, values added",                 MakeCoordinates, DoCOOAdd,          VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"coordinates, device values inserted",       MakeCoordinates, DoCOODeviceInsert, VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"coordinates, device values added",          MakeCoordinates, DoCOODeviceAdd,    VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"other coordinates",                         MakeCoordinates, DoCOOAgain,        PATTERN, PETSC_FALSE, PETSC_TRUE },
  {"coordinates, then scaled",                  MakeCoordinates, DoScale,           VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatSetRandom",                              MakeBase,        DoRandom,          VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatDiagonalSet, inserted",                  MakeBase,        DoDiagonalInsert,  VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatDiagonalSet, added",                     MakeBase,        DoDiagonalAdd,     VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"assembled again",                           MakeBase,        DoReassemble,      VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatSeqAIJGetArrayWrite",                    MakeBase,        DoGetArrayWrite,   VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatSeqAIJCUSPARSEGetArray",                 MakeBase,        DoDeviceArray,     VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatBindToCPU and back",                     MakeBase,        DoBindAndBack,     MOVED,   PETSC_FALSE, PETSC_TRUE },
  {"scaled while bound to the CPU",             MakeBase,        DoScaleBound,      MOVED,   PETSC_TRUE,  PETSC_FALSE},
  {"MatDuplicate, the duplicate scaled",        MakeBase,        DoDuplicate,       NOTHING, PETSC_FALSE, PETSC_TRUE },
  {"MatAXPY, unknown pattern",                  MakeBase,        DoAXPYUnknown,     CHANGED, PETSC_FALSE, PETSC_TRUE },
  {"MatAYPX",                                   MakeBase,        DoAYPX,            VALUES,  PETSC_FALSE, PETSC_TRUE },
  {"MatZeroRowsColumns",                        MakeBase,        DoZeroRowsColumns, CHANGED, PETSC_FALSE, PETSC_TRUE },
  {"MatTranspose into it",                      MakeBase,        DoTransposeInto,   VALUES,  PETSC_TRUE,  PETSC_FALSE},
  {"MatCreateSubMatrix into it",                MakeBase,        DoSubMatrixInto,   VALUES,  PETSC_TRUE,  PETSC_FALSE},
  {"MatMatMult into it",                        MakeBase,        DoProductInto,     VALUES,  PETSC_TRUE,  PETSC_TRUE },
  {"MatCopy, different pattern",                MakeBase,        DoCopyDifferent,   PATTERN, PETSC_FALSE, PETSC_TRUE },
  {"MatSetOption, MatSetFromOptions",           MakeBase,        DoOptions,         NOTHING, PETSC_FALSE, PETSC_TRUE },
  {"equal values, scaled",                      MakeConstant,    DoScale,           CHANGED, PETSC_FALSE, PETSC_TRUE },
  {"equal values become different",             MakeConstant,    DoUnlike,          CHANGED, PETSC_FALSE, PETSC_TRUE },
  {"equal values but for one",                  MakeConstant,    DoOneUnlike,       CHANGED, PETSC_FALSE, PETSC_TRUE },
  {"equal values become different and go back", MakeConstant,    DoUnlikeAndBack,   CHANGED, PETSC_TRUE,  PETSC_TRUE }
};

/* ---- counts */

static PetscErrorCode GetInfo(Mat A, MatAIJTCInfo *info)
{
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(info, sizeof(*info)));
  PetscCall(CheckOurs(A, &ours));
  if (ours) PetscCall(MatAIJTCGetInfo(A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An MPI matrix has two blocks with a layout each, and not both need be hit. A layout that is made anew because its matrix was counts from 0 */
static PetscErrorCode CheckEffect(Mat A, Effect effect, const MatAIJTCInfo *before, const char what[])
{
  PetscInt     builds, refreshes, blocks;
  PetscMPIInt  size;
  PetscBool    ours, ok;
  MatAIJTCInfo after;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  blocks = size > 1 ? 2 : 1;
  PetscCall(CheckOurs(A, &ours));
  PetscCall(GetInfo(A, &after));
  builds    = after.builds - before->builds;
  refreshes = after.refreshes - before->refreshes;
  if (effect == MOVED) effect = after.cuda ? PATTERN : NOTHING;
  switch (effect) {
  case NOTHING:
    ok = (PetscBool)(builds == 0 && refreshes == 0);
    break;
  case VALUES:
    ok = (PetscBool)(builds == 0 && refreshes >= 1 && refreshes <= blocks);
    break;
  case PATTERN:
    ok = blocks == 1 ? (PetscBool)(builds == 1 && refreshes == 0) : (PetscBool)(after.builds >= blocks && builds <= blocks && refreshes <= 1);
    break;
  default:
    ok = (PetscBool)(after.builds >= blocks && builds + refreshes <= 2 * blocks && builds <= blocks && (builds + refreshes >= 1 || blocks > 1));
    break;
  }
  PetscCall(Check((PetscBool)(ok || !ours), "%s: %" PetscInt_FMT " builds, %" PetscInt_FMT " refreshes", what, builds, refreshes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product agrees with the reference and leaves the matrix' state as it is */
static PetscErrorCode Product(Mat A, Mat R, const char what[])
{
  MatState  before, after;
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(MatGetState(A, &before));
  PetscCall(CheckMult(A, R, what));
  PetscCall(MatGetState(A, &after));
  PetscCall(MatStateCompare(before, after, &same));
  PetscCall(Check(same, "%s: the product changed the state of the matrix", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestChange(int k)
{
  const char        *name = changes[k].name;
  Mat                A, R;
  MatAIJTCInfo       info;
  const MatAIJTCInfo none = {};
  PetscBool          right;

  PetscFunctionBeginUser;
  PetscCall((*changes[k].make)(NULL, &A));
  PetscCall((*changes[k].make)(MATAIJ, &R));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &right, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  right = (PetscBool)(!right || changes[k].stock);
  PetscCall(CheckEffect(A, NOTHING, &none, name)); /* no product, no layout */
  PetscCall(Product(A, R, name));
  PetscCall(GetInfo(A, &info));
  PetscCall((*changes[k].apply)(&A));
  PetscCall((*changes[k].apply)(&R));
  if (changes[k].multiplies) PetscCall(GetInfo(A, &info));
  PetscCall(Product(right ? A : R, R, name));
  PetscCall(CheckEffect(A, changes[k].effect, &info, name));
  PetscCall(GetInfo(A, &info));
  PetscCall(Product(right ? A : R, R, name));
  PetscCall(CheckEffect(A, NOTHING, &info, name));
  PetscCall(CheckValues(right ? A : R, R, 8 * PETSC_MACHINE_EPSILON, name)); /* the device's coordinates may be added in another order */
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(changes); k++) PetscCall(TestChange(k));
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex12.out
      test:
         suffix: host
         nsize: {{1 2}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: forms
         args: -mat_type aijtc -mat_aijtc_compress {{off pattern value}}
      test:
         suffix: cuda_stock
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_forms
         requires: cuda
         args: -mat_type aijtc -mat_aijtc_compress {{off pattern value}} -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
