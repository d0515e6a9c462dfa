/*
   What the tests of MATAIJTC share: matrices of awkward patterns, made by a rule from row and column number so that a second, plain MATAIJ of the same entries is an independent
   reference; comparison with a stated bound; counting. A subject prints one line: its name, how many checks it made, and PASS.
*/
#pragma once

#include <petscksp.h>
#include "../precision.h"

/* ---- counting */

static PetscInt Checks = 0, Failures = 0, AllFailures = 0;

/* Collective: the check holds if it holds on every process. What failed is printed */
static PetscErrorCode Check(PetscBool ok, const char format[], ...) PETSC_ATTRIBUTE_FORMAT(2, 3);
static PetscErrorCode Check(PetscBool ok, const char format[], ...)
{
  char        text[512];
  size_t      len;
  va_list     args;
  PetscMPIInt all = ok;

  PetscFunctionBeginUser;
  va_start(args, format);
  PetscCall(PetscVSNPrintf(text, sizeof(text), format, &len, args));
  va_end(args);
  Checks++;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  if (!all) {
    Failures++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  failed: %s\n", text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckReport(const char subject[])
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %" PetscInt_FMT " checks, ", subject, Checks));
  if (Failures) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " FAILED\n", Failures));
  else PetscCall(PetscPrintf(PETSC_COMM_WORLD, "PASS\n"));
  AllFailures += Failures;
  Checks = Failures = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The call errors with this code, quietly */
#define CheckError(code, what, ...) \
  do { \
    PetscErrorCode error_; \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    error_ = __VA_ARGS__; \
    PetscCall(PetscPopErrorHandler()); \
    PetscCall(Check((PetscBool)(error_ == (code)), "%s: error code %d, not %d", what, (int)error_, (int)(code))); \
  } while (0)

static inline PetscBool CheckNot(PetscBool b)
{
  return b ? PETSC_FALSE : PETSC_TRUE;
}

/* The type of this name or one that inherits from it by name */
static inline PetscErrorCode CheckOurs(Mat A, PetscBool *ours)
{
  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, ours, "seqaijtc", "mpiaijtc", ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A made from options and C made from A by an operation: C has to be of A's type */
static inline PetscErrorCode CheckSameType(Mat A, Mat C, const char what[])
{
  MatType   a, c;
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(A, &a));
  PetscCall(MatGetType(C, &c));
  PetscCall(PetscStrcmp(a, c, &same));
  PetscCall(Check(same, "%s: type %s, not %s", what, c, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- vectors */

/* Entries between -1 and 1 by global number, the same in every run and on every number of processes */
static inline PetscErrorCode VecFill(Vec v, PetscInt seed)
{
  PetscInt     start, end;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(v, &start, &end));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt i = start; i < end; i++) a[i - start] = PetscSinReal((PetscReal)(1 + 13 * i + 7 * seed));
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors of the matrix' kind, or of -vec_type */
static inline PetscErrorCode MatVecs(Mat A, Vec *right, Vec *left)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, right, left));
  if (right) PetscCall(VecSetFromOptions(*right));
  if (left) PetscCall(VecSetFromOptions(*left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |y - ref| <= bound in every entry; where ref is Inf or NaN y has to be that too, elsewhere not. Vectors of each process may have bounds of their own */
static inline PetscErrorCode CheckVec(Vec y, Vec ref, PetscReal bound, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;
  PetscReal          worst = 0.0;
  PetscBool          ok    = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(y, &n));
  PetscCall(VecGetArrayRead(y, &a));
  PetscCall(VecGetArrayRead(ref, &b));
  for (PetscInt i = 0; i < n; i++) {
    if (PetscIsInfOrNanScalar(a[i]) != PetscIsInfOrNanScalar(b[i])) ok = PETSC_FALSE;
    if (PetscIsInfOrNanScalar(a[i]) || PetscIsInfOrNanScalar(b[i])) continue;
    worst = PetscMax(worst, PetscAbsScalar(a[i] - b[i]));
  }
  PetscCall(VecRestoreArrayRead(ref, &b));
  PetscCall(VecRestoreArrayRead(y, &a));
  if (!(worst <= bound)) ok = PETSC_FALSE;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &worst, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  PetscCall(Check(ok, "%s: off by %g, allowed %g", what, (double)worst, (double)bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices */

typedef struct {
  const char *name;
  PetscInt    M, N;
  PetscInt (*length)(PetscInt row, PetscInt N); /* nonzeros of a row; no more than N are taken */
} Pattern;

/* Lengths: no nonzeros; long, medium and short rows */
static inline PetscInt None(PetscInt, PetscInt)
{
  return 0;
}

static inline PetscInt Mixed(PetscInt row, PetscInt)
{
  return row == 7 ? 700 : row % 41 == 0 ? 150 : row % 9;
}

static inline PetscScalar Entry(PetscInt row, PetscInt col)
{
  return PetscSinReal((PetscReal)(1 + 3 * row + 11 * col)) + (row == col ? 4.0 : 0.0);
}

/* Column k of a row: the first near the diagonal, the others in steps that meet no column twice */
static inline PetscInt Column(PetscInt row, PetscInt k, PetscInt N)
{
  PetscInt step = 7;

  while (N % step == 0 && step > 1) step -= 2;
  return (PetscInt)((row + (PetscInt64)k * step) % N);
}

/* The type of -mat_type; an error if it is not that then, so that no test passes with another */
static inline PetscErrorCode MatSetAskedType(Mat A)
{
  char        asked[64] = MATAIJ, name[70];
  MatType     type;
  PetscBool   is;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", asked, sizeof(asked), NULL));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", size > 1 ? "mpi" : "seq", asked));
  PetscCall(PetscStrcmp(type, name, &is));
  PetscCheck(is, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The matrix is of type %s, asked for was %s", type, name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* type NULL: from the options. No preallocation: PETSc's hash assembly */
static inline PetscErrorCode MatFromPattern(const Pattern *p, MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, p->M, p->N));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt n = PetscMin((*p->length)(row, p->N), p->N);

    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, row, Column(row, k, p->N), Entry(row, Column(row, k, p->N)), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of a matrix of ours are ours; silent if so */
static inline PetscErrorCode CheckBlocks(Mat A, const char what[])
{
  PetscBool   ours;
  PetscMPIInt all = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "mpiaijtc", &ours));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  {
    Mat b[2];

    PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
    for (Mat B : b) {
      PetscCall(PetscObjectTypeCompare((PetscObject)B, "seqaijtc", &ours));
      if (!ours) all = 0;
    }
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  if (!all) PetscCall(Check(PETSC_FALSE, "%s: a block is not seqaijtc", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ||A x - R x|| for an x of entries up to 1, R the reference on the host; bound 64 eps ||R||_F ||x||_2 */
static inline PetscErrorCode CheckMult(Mat A, Mat R, const char what[])
{
  Vec       x, y, xr, yr;
  PetscReal anorm, xnorm;

  PetscFunctionBeginUser;
  PetscCall(CheckBlocks(A, what));
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(MatCreateVecs(R, &xr, &yr));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(xr, 1));
  PetscCall(VecSet(y, 1e300));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(R, xr, yr));
  PetscCall(MatNorm(R, NORM_FROBENIUS, &anorm));
  PetscCall(VecNorm(xr, NORM_2, &xnorm));
  PetscCall(CheckVec(y, yr, 64 * PETSC_MACHINE_EPSILON * anorm * xnorm, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every entry of C against R's, read through the public interface row by row, both ways (so no entry more, none less but zeros); |c - r| <= tol max|R| */
static inline PetscErrorCode CheckRowsIn(Mat C, Mat R, PetscReal *worst)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    PetscInt           n;
    const PetscInt    *cols;
    const PetscScalar *vals;

    PetscCall(MatGetRow(C, row, &n, &cols, &vals));
    for (PetscInt k = 0; k < n; k++) {
      PetscScalar r;

      PetscCall(MatGetValue(R, row, cols[k], &r));
      *worst = PetscMax(*worst, PetscIsInfOrNanScalar(vals[k] - r) ? PETSC_MAX_REAL : PetscAbsScalar(vals[k] - r));
    }
    PetscCall(MatRestoreRow(C, row, &n, &cols, &vals));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CheckValues(Mat C, Mat R, PetscReal tol, const char what[])
{
  PetscReal worst = 0.0, norm;
  PetscInt  m, n, mr, nr;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(C, &m, &n));
  PetscCall(MatGetSize(R, &mr, &nr));
  PetscCall(MatNorm(R, NORM_INFINITY, &norm));
  if (m == mr && n == nr) {
    PetscCall(CheckRowsIn(C, R, &worst));
    PetscCall(CheckRowsIn(R, C, &worst));
  }
  PetscCall(Check((PetscBool)(m == mr && n == nr && worst <= tol * norm), "%s: entries differ by %g, norm %g (or %" PetscInt_FMT " x %" PetscInt_FMT " is not the size)", what, (double)worst, (double)norm, m, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}
