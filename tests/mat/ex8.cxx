static char help[] = "What is taken out of a MATAIJTC: submatrices, permutations, blocks, rows, norms, diagonals; types and values.\n\n";

#include "check.h"

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 9;
}
static const Pattern pattern = {"pattern", 64, 64, Width};

static PetscErrorCode Pair(Mat *A, Mat *R)
{
  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, R));
  PetscCall(CheckMult(*A, *R, "whole"));
  PetscCall(MatScale(*A, 1.25)); /* on a GPU the newest values are there */
  PetscCall(MatScale(*R, 1.25));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every second of this process' rows, backwards if asked */
static PetscErrorCode LocalRows(Mat A, PetscBool backwards, IS *is)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - start) / 2, backwards ? end - 1 : start, backwards ? -2 : 2, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSubMatrix(void)
{
  Mat A, R, B, S;
  IS  rows, cols;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  for (int k = 0; k < 2; k++) {
    PetscCall(LocalRows(A, (PetscBool)(k == 1), &rows));
    PetscCall(LocalRows(A, PETSC_FALSE, &cols));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatCreateSubMatrix(R, rows, cols, MAT_INITIAL_MATRIX, &S));
    PetscCall(CheckSameType(A, B, "submatrix"));
    PetscCall(CheckMult(B, S, "submatrix"));
    PetscCall(CheckValues(B, S, 2 * PETSC_MACHINE_EPSILON, "submatrix"));
    for (Mat M : {A, R}) PetscCall(MatScale(M, -2.0));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &B));
    PetscCall(MatCreateSubMatrix(R, rows, cols, MAT_REUSE_MATRIX, &S));
    PetscCall(CheckMult(B, S, "submatrix reused"));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&S));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&cols));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatCreateSubMatrix"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sequential ones of overlapping index sets, as the additive Schwarz method takes them */
static PetscErrorCode TestSubMatrices(void)
{
  Mat       A, R, *B, *S;
  IS        is, copy;
  PetscInt  start, end;
  Vec       x, y, z;
  PetscBool ours, seq;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, end - start, start, 1, &is));
  PetscCall(ISDuplicate(is, &copy));
  PetscCall(MatIncreaseOverlap(A, 1, &is, 1));
  PetscCall(MatIncreaseOverlap(R, 1, &copy, 1));
  PetscCall(ISSort(is));
  PetscCall(ISSort(copy));
  PetscCall(ISEqualUnsorted(is, copy, &seq));
  PetscCall(Check(seq, "overlaps differ"));
  for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
    PetscCall(MatCreateSubMatrices(A, 1, &is, &is, reuse, &B));
    PetscCall(MatCreateSubMatrices(R, 1, &is, &is, reuse, &S));
    PetscCall(PetscObjectTypeCompare((PetscObject)B[0], "seqaijtc", &seq));
    PetscCall(CheckOurs(A, &ours));
    PetscCall(Check((PetscBool)(seq == ours), "submatrix not of the type"));
    PetscCall(MatCreateVecs(B[0], &x, &y));
    PetscCall(VecFill(x, 1));
    PetscCall(MatMult(B[0], x, y));
    PetscCall(VecDestroy(&x));
    PetscCall(MatCreateVecs(S[0], &x, &z));
    PetscCall(VecFill(x, 1));
    PetscCall(MatMult(S[0], x, z));
    PetscCall(MatNorm(S[0], NORM_FROBENIUS, &norm));
    PetscCall(CheckVec(y, z, 64 * PETSC_MACHINE_EPSILON * norm * 8, "submatrices")); /* ||x|| <= 8 */
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    for (Mat M : {A, R}) PetscCall(MatScale(M, 3.0));
  }
  PetscCall(MatDestroySubMatrices(1, &B));
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&is));
  PetscCall(ISDestroy(&copy));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatCreateSubMatrices"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPermute(void)
{
  Mat      A, R, B, S;
  IS       rows;
  PetscInt start, end, *index;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1(end - start, &index));
  for (PetscInt k = start; k < end; k++) index[k - start] = (5 * k + 3) % pattern.M;
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, end - start, index, PETSC_OWN_POINTER, &rows));
  PetscCall(ISSetPermutation(rows));
  PetscCall(MatPermute(A, rows, rows, &B));
  PetscCall(MatPermute(R, rows, rows, &S));
  PetscCall(CheckSameType(A, B, "permuted"));
  PetscCall(CheckMult(B, S, "permuted"));
  PetscCall(CheckValues(B, S, 2 * PETSC_MACHINE_EPSILON, "permuted"));
  PetscCall(CheckMult(A, R, "source of a permutation"));
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatPermute"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNest(void)
{
  Mat A, R, N, M, B;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  {
    Mat a[4] = {A, NULL, A, A}, r[4] = {R, NULL, R, R};

    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, a, &N));
    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, r, &M));
  }
  PetscCall(MatConvert(M, MATAIJ, MAT_INPLACE_MATRIX, &M));
  PetscCall(CheckMult(N, M, "nest"));
  PetscCall(MatNestGetSubMat(N, 1, 0, &B));
  PetscCall(CheckSameType(A, B, "block of a nest"));
  for (Mat X : {A, R, M}) PetscCall(MatScale(X, 0.4));
  PetscCall(CheckMult(N, M, "nest of scaled blocks"));
  PetscCall(MatConvert(N, MATAIJ, MAT_INPLACE_MATRIX, &N));
  PetscCall(CheckMult(N, M, "nest made explicit"));
  PetscCall(MatDestroy(&N));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatCreateNest"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckNear(PetscReal a, PetscReal b, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(Check((PetscBool)(PetscAbsReal(a - b) <= 64 * PETSC_MACHINE_EPSILON * PetscAbsReal(b)), "%s: %g, not %g", what, (double)a, (double)b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The local rows by MatGetRow() in both matrices and the pattern by MatGetRowIJ() of the diagonal block */
static PetscErrorCode CheckRows(Mat A, Mat R)
{
  Mat             B, S;
  PetscInt        m, n;
  const PetscInt *i, *j, *k, *l;
  PetscBool       done, done2, same = PETSC_TRUE, part;

  PetscFunctionBeginUser;
  PetscCall(CheckValues(A, R, 2 * PETSC_MACHINE_EPSILON, "rows"));
  PetscCall(MatGetDiagonalBlock(A, &B));
  PetscCall(MatGetDiagonalBlock(R, &S));
  PetscCall(MatGetRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatGetRowIJ(S, 0, PETSC_FALSE, PETSC_FALSE, &n, &k, &l, &done2));
  PetscCall(Check((PetscBool)(done && done2 && m == n), "MatGetRowIJ"));
  PetscCall(PetscArraycmp(i, k, m + 1, &same));
  PetscCall(PetscArraycmp(j, l, i[m], &part));
  PetscCall(Check((PetscBool)(same && part), "MatGetRowIJ: other pattern"));
  PetscCall(MatRestoreRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatRestoreRowIJ(S, 0, PETSC_FALSE, PETSC_FALSE, &n, &k, &l, &done2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes memory that the host's side of a matrix' vectors may get next anything but zeros. Some of it stays in use, as memory that all goes back may come anew */
static PetscErrorCode DirtyMemory(Mat A, Vec *held)
{
  Vec v[4];

  PetscFunctionBeginUser;
  for (Vec &w : v) {
    PetscScalar *a;
    PetscInt     n;

    PetscCall(MatCreateVecs(A, &w, NULL));
    PetscCall(VecGetLocalSize(w, &n));
    PetscCall(VecGetArrayWrite(w, &a));
    for (PetscInt k = 0; k < n; k++) a[k] = 1e10;
    PetscCall(VecRestoreArrayWrite(w, &a));
  }
  *held = v[0];
  for (int k = 1; k < 4; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestQueries(void)
{
  Mat       A, R, B;
  Vec       d, e, held;
  PetscReal a, r;
  PetscBool ours, seq, flag;
  MatInfo   ia, ir;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  PetscCall(DirtyMemory(A, &held));
  for (NormType type : {NORM_1, NORM_FROBENIUS, NORM_INFINITY}) {
    PetscCall(MatNorm(A, type, &a));
    PetscCall(MatNorm(R, type, &r));
    PetscCall(CheckNear(a, r, "norm"));
  }
  PetscCall(VecDestroy(&held));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &ia));
  PetscCall(MatGetInfo(R, MAT_GLOBAL_SUM, &ir));
  PetscCall(CheckNear(ia.nz_used, ir.nz_used, "nonzeros"));
  PetscCall(CheckRows(A, R));
  PetscCall(MatVecs(A, NULL, &d));
  PetscCall(MatCreateVecs(R, NULL, &e));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(MatGetDiagonal(R, e));
  PetscCall(CheckVec(d, e, 64 * PETSC_MACHINE_EPSILON, "diagonal"));
  PetscCall(MatGetRowMaxAbs(A, d, NULL));
  PetscCall(MatGetRowMaxAbs(R, e, NULL));
  PetscCall(CheckVec(d, e, 64 * PETSC_MACHINE_EPSILON, "largest of each row"));
  PetscCall(MatGetRowSum(A, d));
  PetscCall(MatGetRowSum(R, e));
  PetscCall(CheckVec(d, e, 1024 * PETSC_MACHINE_EPSILON, "row sums"));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&e));
  PetscCall(MatIsSymmetric(A, Tolerance(1e-12), &flag));
  PetscCall(Check(CheckNot(flag), "symmetric"));
  PetscCall(MatGetDiagonalBlock(A, &B));
  PetscCall(CheckOurs(A, &ours));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, "seqaijtc", &seq));
  PetscCall(Check((PetscBool)(seq == ours), "diagonal block not of the type"));
  PetscCall(CheckMult(A, R, "after all"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("norms, rows, diagonals"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestZeroRowsColumns(void)
{
  const PetscInt rows[] = {1, 30, 31, 63};
  PetscMPIInt    rank;
  Mat            A, R;
  Vec            x[2], b[2];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Pair(&A, &R));
  PetscCall(MatVecs(A, &x[0], &b[0]));
  PetscCall(MatCreateVecs(R, &x[1], &b[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecFill(x[k], 1));
    PetscCall(VecFill(b[k], 2));
    PetscCall(MatZeroRowsColumns(k ? R : A, rank ? 0 : 4, rows, 3.0, x[k], b[k]));
  }
  PetscCall(CheckVec(b[0], b[1], 1024 * PETSC_MACHINE_EPSILON, "right-hand side"));
  PetscCall(CheckMult(A, R, "rows and columns zeroed"));
  PetscCall(CheckValues(A, R, 2 * PETSC_MACHINE_EPSILON, "rows and columns zeroed"));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&b[k]));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatZeroRowsColumns"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A local view of a matrix, into which values are set */
static PetscErrorCode TestLocalSubMatrix(void)
{
  Mat                    A, R;
  ISLocalToGlobalMapping map;
  PetscInt               start, end;
  IS                     all, local;

  PetscFunctionBeginUser;
  PetscCall(Pair(&A, &R));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &all));
  PetscCall(ISLocalToGlobalMappingCreateIS(all, &map));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (end - start) / 2, 0, 2, &local));
  for (Mat M : {A, R}) {
    Mat L;

    PetscCall(MatSetLocalToGlobalMapping(M, map, map));
    PetscCall(MatGetLocalSubMatrix(M, local, local, &L));
    for (PetscInt k = 0; k < (end - start) / 2; k++) {
      const PetscScalar v = 1.0 + k;

      PetscCall(MatSetValuesLocal(L, 1, &k, 1, &k, &v, ADD_VALUES));
    }
    PetscCall(MatAssemblyBegin(L, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(L, MAT_FINAL_ASSEMBLY));
    PetscCall(MatRestoreLocalSubMatrix(M, local, local, &L));
    PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(CheckMult(A, R, "values set through a local view"));
  PetscCall(CheckValues(A, R, 2 * PETSC_MACHINE_EPSILON, "values set through a local view"));
  PetscCall(ISDestroy(&all));
  PetscCall(ISDestroy(&local));
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("MatGetLocalSubMatrix"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestSubMatrix());
  PetscCall(TestSubMatrices());
  PetscCall(TestPermute());
  PetscCall(TestNest());
  PetscCall(TestQueries());
  PetscCall(TestZeroRowsColumns());
  PetscCall(TestLocalSubMatrix());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex8.out
      test:
         suffix: host
         nsize: {{1 2 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
