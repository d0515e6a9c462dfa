static char help[] = "MATAIJTC where AIJCUSPARSE is wrong: changes made while bound to the CPU, vectors of the other kind, the diagonal of a matrix with mostly empty rows,\n\
retrieved values, the first triple product after values that only the device has. The reference is a MATAIJ on the host.\n\n";

#include "check.h"

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 13;
}
static PetscInt MostlyEmpty(PetscInt row, PetscInt)
{
  return row % 10 == 3 ? 4 : 0;
}
static PetscInt Few(PetscInt row, PetscInt)
{
  return 1 + row % 2;
}
static const Pattern square = {"square", 70, 70, Width}, empty = {"mostly empty", 90, 90, MostlyEmpty}, prolong = {"P", 70, 30, Few}, restrict = {"R", 30, 70, Few};

static PetscErrorCode Pair(const Pattern *p, Mat *A, Mat *R)
{
  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(p, NULL, A));
  PetscCall(MatFromPattern(p, MATAIJ, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(Mat *A, Mat *B, Mat *C, Mat *D)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(A));
  PetscCall(MatDestroy(B));
  if (C) PetscCall(MatDestroy(C));
  if (D) PetscCall(MatDestroy(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- bound to the CPU and back, changed in each state */

static PetscErrorCode SetDiagonal(Mat A, PetscScalar v)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) PetscCall(MatSetValue(A, row, row, v + row, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Change(Mat A, int how)
{
  PetscFunctionBeginUser;
  switch (how) {
  case 0:
    break;
  case 1:
    PetscCall(MatScale(A, -2.0));
    break;
  case 2:
    PetscCall(SetDiagonal(A, 9.0));
    break;
  case 3:
    PetscCall(MatShift(A, 0.5));
    break;
  default: {
    Mat B;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatAXPY(A, 0.5, B, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
  }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestBind(void)
{
  Mat A, R, B;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  for (int how = 0; how < 5; how++) {
    for (int product = 0; product < 2; product++) { /* with and without a product between change and unbinding */
      PetscCall(CheckMult(A, R, "not bound"));
      PetscCall(MatBindToCPU(A, PETSC_TRUE));
      PetscCall(Change(A, how));
      PetscCall(Change(R, how));
      if (product) PetscCall(CheckMult(A, R, "changed while bound"));
      PetscCall(MatBindToCPU(A, PETSC_FALSE));
      PetscCall(CheckMult(A, R, "bound no more"));
      PetscCall(Change(A, how));
      PetscCall(MatBindToCPU(A, PETSC_TRUE)); /* changed on the device, then bound */
      PetscCall(MatBindToCPU(A, PETSC_TRUE));
      PetscCall(Change(R, how));
      PetscCall(CheckMult(A, R, "bound after a change"));
      PetscCall(MatBindToCPU(A, PETSC_FALSE));
    }
  }
  PetscCall(MatSetBindingPropagates(A, PETSC_TRUE));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(CheckSameType(A, B, "duplicate of a bound one"));
  PetscCall(CheckMult(B, R, "duplicate of a bound one"));
  PetscCall(MatBindToCPU(B, PETSC_FALSE));
  PetscCall(CheckMult(B, R, "duplicate bound no more"));
  PetscCall(MatDestroy(&B));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(CheckValues(A, R, 8 * PETSC_MACHINE_EPSILON, "values after all"));
  PetscCall(Free(&A, &R, NULL, NULL));
  PetscCall(CheckReport("bound to the CPU"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- vectors of the matrix' kind, of the standard kind, and both in one product */

static PetscErrorCode StandardVec(Vec like, Vec *v)
{
  PetscInt n, N;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(like, &n));
  PetscCall(VecGetSize(like, &N));
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, n, N));
  PetscCall(VecSetType(*v, VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestVectors(void)
{
  Mat       A, R;
  Vec       x[2], y[2], z[2], xr, yr, zr;
  PetscReal anorm, bound;
  char      what[64];

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  PetscCall(MatNorm(R, NORM_FROBENIUS, &anorm));
  bound = 64 * PETSC_MACHINE_EPSILON * anorm * PetscSqrtReal((PetscReal)square.N);
  PetscCall(MatVecs(A, &x[0], &y[0]));
  PetscCall(VecDuplicate(y[0], &z[0]));
  PetscCall(StandardVec(x[0], &x[1]));
  PetscCall(StandardVec(y[0], &y[1]));
  PetscCall(StandardVec(z[0], &z[1]));
  PetscCall(MatCreateVecs(R, &xr, &yr));
  PetscCall(VecDuplicate(yr, &zr));
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < 8; k++) {
      Vec xk = x[k & 1], yk = y[k >> 1 & 1], zk = z[k >> 2];

      PetscCall(PetscSNPrintf(what, sizeof(what), "vectors %d%d%d", k & 1, k >> 1 & 1, k >> 2));
      PetscCall(VecFill(xk, k));
      PetscCall(VecFill(xr, k));
      PetscCall(VecFill(yk, 2 * k));
      PetscCall(VecFill(yr, 2 * k));
      PetscCall(VecSet(zk, 1e300));
      PetscCall(MatMult(A, xk, zk));
      PetscCall(MatMult(R, xr, zr));
      PetscCall(CheckVec(zk, zr, bound, what));
      PetscCall(MatMultAdd(A, xk, yk, zk));
      PetscCall(MatMultAdd(R, xr, yr, zr));
      PetscCall(CheckVec(zk, zr, bound, what));
      PetscCall(MatMultTranspose(A, yk, xk));
      PetscCall(MatMultTranspose(R, yr, xr));
      PetscCall(CheckVec(xk, xr, bound, what));
      PetscCall(VecFill(xr, 1));
      PetscCall(VecFill(xk, 1));
      PetscCall(MatMultTransposeAdd(A, yk, xk, xk));
      PetscCall(MatMultTransposeAdd(R, yr, xr, xr));
      PetscCall(CheckVec(xk, xr, bound, what));
      PetscCall(VecFill(xr, 1));
      PetscCall(VecFill(xk, 1));
      PetscCall(MatMultAdd(A, xk, zk, zk));
      PetscCall(MatMultAdd(R, xr, zr, zr));
      PetscCall(CheckVec(zk, zr, 2 * bound, what));
    }
    PetscCall(MatScale(A, 0.7)); /* once more with values that only the device has */
    PetscCall(MatScale(R, 0.7));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
    PetscCall(VecDestroy(&z[k]));
  }
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscCall(VecDestroy(&zr));
  PetscCall(Free(&A, &R, NULL, NULL));
  PetscCall(CheckReport("vectors of both kinds"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- diagonal */

static PetscErrorCode CheckDiagonal(Mat A, Mat R, const char what[])
{
  Vec       d, dr, s;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, NULL, &d));
  PetscCall(MatCreateVecs(R, NULL, &dr));
  PetscCall(VecSet(d, 77.0));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(MatGetDiagonal(R, dr));
  PetscCall(VecNorm(dr, NORM_INFINITY, &norm));
  PetscCall(CheckVec(d, dr, 2 * PETSC_MACHINE_EPSILON * norm, what));
  PetscCall(StandardVec(d, &s));
  PetscCall(MatGetDiagonal(A, s));
  PetscCall(CheckVec(s, dr, 2 * PETSC_MACHINE_EPSILON * norm, what));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&s));
  PetscCall(VecDestroy(&dr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDiagonal(const Pattern *p)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(Pair(p, &A, &R));
  PetscCall(CheckDiagonal(A, R, "fresh"));
  PetscCall(CheckMult(A, R, "fresh"));
  PetscCall(CheckDiagonal(A, R, "after a product"));
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatScale(R, 3.0));
  PetscCall(CheckDiagonal(A, R, "scaled"));
  PetscCall(CheckMult(A, R, "scaled"));
  PetscCall(Free(&A, &R, NULL, NULL));
  PetscCall(CheckReport(p == &empty ? "diagonal, mostly empty rows" : "diagonal"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- stored and retrieved values: stored when only the device has them, retrieved when it has others */

static PetscErrorCode TestRetrieve(void)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(CheckMult(A, R, "fresh"));
  PetscCall(MatScale(A, 5.0));
  PetscCall(MatScale(R, 5.0));
  PetscCall(MatStoreValues(A));
  for (int round = 0; round < 2; round++) {
    PetscCall(MatZeroEntries(A));
    if (round) { /* the zeros get to the device */
      Mat Z;

      PetscCall(MatDuplicate(R, MAT_DO_NOT_COPY_VALUES, &Z));
      PetscCall(CheckMult(A, Z, "zeroed"));
      PetscCall(MatDestroy(&Z));
    }
    PetscCall(MatRetrieveValues(A));
    PetscCall(CheckMult(A, R, "retrieved"));
    PetscCall(CheckValues(A, R, 2 * PETSC_MACHINE_EPSILON, "retrieved"));
  }
  PetscCall(Free(&A, &R, NULL, NULL));
  PetscCall(CheckReport("stored and retrieved values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the first triple product */

static PetscErrorCode TestTriple(PetscBool rart)
{
  Mat         A, R, P, Q, C, D;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Pair(&square, &A, &R));
  PetscCall(Pair(rart ? &restrict : &prolong, &P, &Q));
  PetscCall(CheckMult(A, R, "operand"));
  for (Mat M : {A, R, P, Q}) PetscCall(MatScale(M, 2.0));
  PetscCall((rart ? MatRARt : MatPtAP)(A, P, MAT_INITIAL_MATRIX, 2.0, &C));
  PetscCall((rart ? MatRARt : MatPtAP)(R, Q, MAT_INITIAL_MATRIX, 2.0, &D));
  PetscCall(CheckSameType(A, C, "triple product"));
  PetscCall(CheckValues(C, D, 256 * PETSC_MACHINE_EPSILON, "first"));
  PetscCall(CheckMult(C, D, "first"));
  for (Mat M : {A, R, P, Q}) PetscCall(MatScale(M, 0.3));
  PetscCall((rart ? MatRARt : MatPtAP)(A, P, MAT_REUSE_MATRIX, 2.0, &C));
  PetscCall((rart ? MatRARt : MatPtAP)(R, Q, MAT_REUSE_MATRIX, 2.0, &D));
  PetscCall(CheckValues(C, D, 256 * PETSC_MACHINE_EPSILON, "reused"));
  PetscCall(CheckMult(C, D, "reused"));
  PetscCall(Free(&A, &R, &C, &D));
  PetscCall(Free(&P, &Q, NULL, NULL));
  PetscCall(CheckReport(rart ? "R A R^T" : "P^T A P"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestBind());
  PetscCall(TestVectors());
  PetscCall(TestDiagonal(&square));
  PetscCall(TestDiagonal(&empty));
  PetscCall(TestRetrieve());
  PetscCall(TestTriple(PETSC_FALSE));
  PetscCall(TestTriple(PETSC_TRUE));
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex5.out
      test:
         suffix: host
         nsize: {{1 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type {{cuda standard}} -use_gpu_aware_mpi 0
      test:
         suffix: cuda_bind_below
         requires: cuda
         args: -mat_type aijtc -mat_bind_below {{50 80}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_backend_host
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_backend host -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
