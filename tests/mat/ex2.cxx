static char help[] = "The layout of MATAIJTC is rebuilt, or its values gathered again, exactly when the matrix changed, whatever changed it.\n\n";

#include "check.h"
#include <petsctc.h>

typedef enum {
  NOTHING, /* the layout still holds */
  VALUES,  /* the values have to be gathered again */
  PATTERN, /* the layout has to be built again */
  REPLACED /* so, and whatever the matrix carries is another's, counts too */
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
static const Pattern base = {"base", 60, 60, Width}, subset = {"subset", 60, 60, Narrow}, other = {"other", 60, 60, Other};

/* ---- what may happen to a matrix: applied to the one under test and to the reference. Column(row, 0) is the diagonal */

static PetscErrorCode DoNothing(Mat *)
{
  PetscFunctionBeginUser;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoScale(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(*A, -3.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoShift(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatShift(*A, 2.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoDiagonalScale(Mat *A)
{
  Vec l, r;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(*A, &r, &l));
  PetscCall(VecFill(l, 5));
  PetscCall(VecFill(r, 6));
  PetscCall(MatDiagonalScale(*A, l, r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoZeroEntries(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroEntries(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOnePerRow(Mat A, PetscInt shift, InsertMode mode)
{
  PetscInt start, end, N;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) PetscCall(MatSetValue(A, row, (row + shift) % N, 1.0 + row, mode));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoSetValues(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetOnePerRow(*A, 0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAddValues(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(SetOnePerRow(*A, 0, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoNewNonzeros(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(SetOnePerRow(*A, 3, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoGetArray(Mat *A)
{
  Mat          B = *A;
  PetscBool    mpi;
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectHasFunction((PetscObject)*A, "MatMPIAIJSetPreallocation_C", &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(*A, &B, NULL, NULL));
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(B, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = a[k] * (1 + k % 3);
  PetscCall(MatSeqAIJRestoreArray(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY(Mat Y, const Pattern *p, MatStructure structure)
{
  Mat     X;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(Y, &type));
  PetscCall(MatFromPattern(p, type, &X));
  PetscCall(MatScale(X, 0.5));
  PetscCall(MatAXPY(Y, 3.0, X, structure));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAXPYSame(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(AXPY(*A, &base, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAXPYSubset(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(AXPY(*A, &subset, SUBSET_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoAXPYDifferent(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(AXPY(*A, &other, DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoTranspose(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTranspose(*A, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoZeroRows(Mat *A)
{
  const PetscInt rows[] = {3, 17, 44};
  PetscMPIInt    rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatZeroRows(*A, rank ? 0 : 3, rows, 7.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoZeroRowsKeep(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(DoZeroRows(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyFrom(Mat A, const Pattern *p, MatStructure structure)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(A, &type));
  PetscCall(MatFromPattern(p, type, &B));
  PetscCall(MatScale(B, 0.25));
  PetscCall(MatCopy(B, A, structure));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCopy(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(CopyFrom(*A, &base, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoCopySubset(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(CopyFrom(*A, &subset, SUBSET_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoStoreRetrieve(Mat *A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatScale(*A, 4.0));
  PetscCall(MatStoreValues(*A));
  PetscCall(MatScale(*A, 9.0));
  PetscCall(MatVecs(*A, &x, &y));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(*A, x, y)); /* the scaled values get into the layout */
  PetscCall(MatRetrieveValues(*A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoHeaderReplace(Mat *A)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(MatFromPattern(&other, type, &B));
  PetscCall(MatHeaderReplace(*A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoHeaderMerge(Mat *A)
{
  Mat     B;
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(MatFromPattern(&other, type, &B));
  PetscCall(MatHeaderMerge(*A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoPreallocate(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(*A, 2, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 2, NULL, 2, NULL));
  PetscCall(SetOnePerRow(*A, 0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatResetPreallocation() restores is what was preallocated */
static PetscErrorCode DoReset(Mat *A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(DoPreallocate(A));
  PetscCall(MatVecs(*A, &x, &y));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(*A, x, y));
  PetscCall(MatResetPreallocation(*A));
  PetscCall(SetOnePerRow(*A, 3, INSERT_VALUES));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoParams(Mat *A)
{
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(*A, &ours));
  if (ours) PetscCall(MatAIJTCSetParams(*A, "short=2,long=6,window=8"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoOtherSettings(Mat *A)
{
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(*A, &ours));
  if (ours) PetscCall(MatAIJTCSetMMA(*A, MAT_AIJTC_MMA_CORE));
  if (ours) PetscCall(MatAIJTCSetCheck(*A, PETSC_TRUE, PETSC_DEFAULT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*apply)(Mat *);
  Effect effect;
} changes[] = {
  {"nothing",                           DoNothing,       NOTHING },
  {"MatScale",                          DoScale,         VALUES  },
  {"MatShift",                          DoShift,         VALUES  },
  {"MatDiagonalScale",                  DoDiagonalScale, VALUES  },
  {"MatZeroEntries",                    DoZeroEntries,   VALUES  },
  {"values inserted in the pattern",    DoSetValues,     VALUES  },
  {"values added in the pattern",       DoAddValues,     VALUES  },
  {"values inserted out of it",         DoNewNonzeros,   PATTERN },
  {"MatSeqAIJGetArray",                 DoGetArray,      VALUES  },
  {"MatAXPY, same pattern",             DoAXPYSame,      VALUES  },
  {"MatAXPY, subset",                   DoAXPYSubset,    VALUES  },
  {"MatAXPY, different pattern",        DoAXPYDifferent, PATTERN },
  {"MatTranspose in place",             DoTranspose,     PATTERN },
  {"MatZeroRows",                       DoZeroRows,      PATTERN },
  {"MatZeroRows, keeping the pattern",  DoZeroRowsKeep,  VALUES  },
  {"MatCopy, same pattern",             DoCopy,          VALUES  },
  {"MatCopy, subset",                   DoCopySubset,    VALUES  },
  {"MatStoreValues, MatRetrieveValues", DoStoreRetrieve, VALUES  },
  {"MatHeaderReplace",                  DoHeaderReplace, REPLACED},
  {"MatHeaderMerge",                    DoHeaderMerge,   PATTERN },
  {"preallocated again",                DoPreallocate,   PATTERN },
  {"MatResetPreallocation",             DoReset,         PATTERN },
  {"MatAIJTCSetParams",                 DoParams,        PATTERN },
  {"MatAIJTCSetMMA, MatAIJTCSetCheck",  DoOtherSettings, NOTHING }
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

/* An MPI matrix has two blocks with a layout each; not both need be hit, and new ones count from 0 */
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
  if (effect == NOTHING) ok = (PetscBool)(builds == 0 && refreshes == 0);
  else if (effect == VALUES) ok = (PetscBool)(builds == 0 && refreshes >= 1 && refreshes <= blocks);
  else if (effect == PATTERN && blocks == 1) ok = (PetscBool)(builds == 1 && refreshes == 0);
  else ok = (PetscBool)(after.builds >= blocks && builds <= blocks && refreshes <= 1);
  PetscCall(Check((PetscBool)(ok || !ours), "%s: %" PetscInt_FMT " builds, %" PetscInt_FMT " refreshes", what, builds, refreshes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestChange(int k)
{
  const char        *name = changes[k].name;
  Mat                A, R;
  MatAIJTCInfo       info;
  const MatAIJTCInfo none = {};
  PetscMPIInt        size;
  PetscBool          ours;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatFromPattern(&base, NULL, &A));
  PetscCall(MatFromPattern(&base, MATAIJ, &R));
  PetscCall(CheckOurs(A, &ours));
  PetscCall(CheckEffect(A, NOTHING, &none, name)); /* no product, no layout */
  PetscCall(Product(A, R, name));
  PetscCall(Product(A, R, name));
  PetscCall(GetInfo(A, &info));
  PetscCall(Check((PetscBool)(!ours || (info.builds == (size > 1 ? 2 : 1) && info.refreshes == 0)), "%s: built %" PetscInt_FMT " times before", name, info.builds));
  PetscCall((*changes[k].apply)(&A));
  if (changes[k].apply == DoStoreRetrieve || changes[k].apply == DoReset) PetscCall(GetInfo(A, &info)); /* they have a product of their own */
  PetscCall((*changes[k].apply)(&R));
  PetscCall(Product(A, R, name));
  PetscCall(CheckEffect(A, changes[k].effect, &info, name));
  PetscCall(GetInfo(A, &info));
  PetscCall(Product(A, R, name));
  PetscCall(CheckEffect(A, NOTHING, &info, name));
  PetscCall(CheckOurs(A, &ours));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows as long as the base's, their entries `shift` columns further */
static PetscErrorCode Shifted(MatType type, PetscInt shift, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, base.M, base.N));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < Width(row, base.N); k++) PetscCall(MatSetValue(*A, row, Column(row + shift, k, base.N), Entry(row, k + shift), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Merged again and again, several times between two products, with matrices of equal size: memory that was freed comes back at the same address with another matrix in it */
static PetscErrorCode TestMerges(void)
{
  Mat      A, R;
  PetscInt shift = 0;

  PetscFunctionBeginUser;
  PetscCall(Shifted(MATAIJ, 0, &R));
  PetscCall(MatFromPattern(&base, NULL, &A));
  for (PetscInt t = 0; t < 24; t++) {
    for (PetscInt k = 0; k <= t % 4; k++) {
      shift++;
      for (Mat M : {A, R}) {
        Mat     B;
        MatType type;

        PetscCall(MatGetType(M, &type));
        PetscCall(Shifted(type, shift, &B));
        if (t % 6 == 5) PetscCall(MatHeaderReplace(M, &B));
        else PetscCall(MatHeaderMerge(M, &B));
      }
    }
    PetscCall(Product(A, R, "merged"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("merged many times"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A duplicate has a layout of its own: the two change apart from each other. Another matrix may get the address of a destroyed one */
static PetscErrorCode TestDuplicate(void)
{
  Mat A, R, B, S;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&base, NULL, &A));
  PetscCall(MatFromPattern(&base, MATAIJ, &R));
  PetscCall(Product(A, R, "first"));
  for (PetscInt t = 0; t < 6; t++) {
    PetscCall(MatDuplicate(A, t % 2 ? MAT_SHARE_NONZERO_PATTERN : MAT_COPY_VALUES, &B));
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
    if (t % 2) PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
    PetscCall(CheckSameType(A, B, "duplicate"));
    PetscCall(Product(B, S, "duplicate"));
    PetscCall(MatScale(B, 2.0));
    PetscCall(MatScale(S, 2.0));
    PetscCall(Product(A, R, "original"));
    PetscCall(Product(B, S, "scaled duplicate"));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&S));
    PetscCall(MatScale(A, -0.5));
    PetscCall(MatScale(R, -0.5));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("duplicates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(changes); k++) PetscCall(TestChange(k));
  PetscCall(TestMerges());
  PetscCall(TestDuplicate());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex2.out
      test:
         suffix: host
         nsize: {{1 2 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
