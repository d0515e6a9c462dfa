static char help[] = "MATAIJTC where a product or a solve with AIJCUSPARSE crashes, errors or goes on with old values: A B^T, P^T A P with MAIJ, products of bound matrices, A^T D in\n\
parallel, transposed solves with a factor that was made again. The reference is a MATAIJ on the host.\n\n";

#include "check.h"

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 9;
}
static PetscInt Few(PetscInt row, PetscInt)
{
  return 1 + row % 3;
}
static const Pattern square = {"square", 72, 72, Width}, tall = {"tall", 72, 24, Few}, wide = {"wide", 30, 72, Few}, half = {"half", 36, 12, Few}, third = {"third", 24, 12, Few};

static PetscErrorCode Pair(const Pattern *p, Mat *A, Mat *R)
{
  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(p, NULL, A));
  PetscCall(MatFromPattern(p, MATAIJ, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scale(Mat A, Mat R, PetscScalar a)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, a));
  PetscCall(MatScale(R, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Free(Mat *A, Mat *R)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(A));
  PetscCall(MatDestroy(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries off by no more than 256 eps times the norm, products with a vector as CheckMult() says */
static PetscErrorCode Compare(Mat C, Mat D, const char what[])
{
  PetscFunctionBeginUser;
  PetscCall(CheckValues(C, D, 256 * PETSC_MACHINE_EPSILON, what));
  PetscCall(CheckMult(C, D, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(MatProductType type, MatProductAlgorithm algorithm, Mat A, Mat B, Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(A, B, NULL, C));
  PetscCall(MatProductSetType(*C, type));
  PetscCall(MatProductSetAlgorithm(*C, algorithm));
  PetscCall(MatProductSetFill(*C, 2.0));
  PetscCall(MatProductSetFromOptions(*C));
  PetscCall(MatProductSymbolic(*C));
  PetscCall(MatProductNumeric(*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- sequential: A B^T, also with B = A, reused after either operand changed, on the device or on the host */

static PetscErrorCode TestABt(const Pattern *p, PetscBool self)
{
  Mat A, R, B, S, C, D;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  if (self) {
    B = A;
    S = R;
    PetscCall(PetscObjectReference((PetscObject)A));
    PetscCall(PetscObjectReference((PetscObject)R));
  } else PetscCall(Pair(p, &B, &S));
  PetscCall(CheckMult(A, R, "operand"));
  PetscCall(Scale(A, R, -1.5)); /* values that only the device has */
  PetscCall(MatMatTransposeMult(A, B, MAT_INITIAL_MATRIX, 2.0, &C));
  PetscCall(MatMatTransposeMult(R, S, MAT_INITIAL_MATRIX, 2.0, &D));
  PetscCall(CheckSameType(A, C, "A B^T"));
  PetscCall(Compare(C, D, "A B^T"));
  for (int round = 0; round < 4; round++) {
    if (round % 2) PetscCall(Scale(B, S, 0.7));
    else {
      PetscCall(MatSetValue(A, 0, 0, 3.0 + round, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatSetValue(R, 0, 0, 3.0 + round, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(R, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(R, MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatMatTransposeMult(A, B, MAT_REUSE_MATRIX, 2.0, &C));
    PetscCall(MatMatTransposeMult(R, S, MAT_REUSE_MATRIX, 2.0, &D));
    PetscCall(Compare(C, D, "A B^T reused"));
    PetscCall(CheckMult(B, S, "B after it"));
  }
  PetscCall(Free(&A, &R));
  PetscCall(Free(&B, &S));
  PetscCall(Free(&C, &D));
  PetscCall(CheckReport(self ? "A A^T" : "A B^T"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The old values of AIJCUSPARSE's factor stay in its transposed solves: |x - ref| <= 1e-10 max|ref| */
static PetscErrorCode TestTransposedSolve(PCType pctype)
{
  Mat A, R;
  KSP ksp[2];
  Vec x, y, b, c;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  PetscCall(MatShift(A, 20.0));
  PetscCall(MatShift(R, 20.0));
  PetscCall(MatVecs(A, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &c));
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
    PetscCall(KSPSetOperators(ksp[k], k ? R : A, k ? R : A));
    PetscCall(KSPSetType(ksp[k], KSPPREONLY));
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCSetType(pc, pctype));
  }
  for (int round = 0; round < 5; round++) {
    PetscReal norm;

    for (int transpose = 0; transpose < 2; transpose++) {
      if (round == 3 && transpose) continue; /* also factored twice between two transposed solves */
      PetscCall(VecFill(b, round));
      PetscCall(VecFill(c, round));
      PetscCall((transpose ? KSPSolveTranspose : KSPSolve)(ksp[0], b, x));
      PetscCall((transpose ? KSPSolveTranspose : KSPSolve)(ksp[1], c, y));
      PetscCall(VecNorm(y, NORM_INFINITY, &norm));
      PetscCall(CheckVec(x, y, Tolerance(1e-10) * norm, transpose ? "transposed" : "solved"));
    }
    PetscCall(Scale(A, R, 1.0 + 0.1 * round));
    PetscCall(MatShift(A, 1.0 + round));
    PetscCall(MatShift(R, 1.0 + round));
  }
  for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ksp[k]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&c));
  PetscCall(CheckMult(A, R, "after it"));
  PetscCall(Free(&A, &R));
  PetscCall(CheckReport(pctype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- P^T A P with MAIJ: two and three components, in parallel by every algorithm that PETSc has for it */

static PetscErrorCode TestMAIJ(PetscInt dof, MatProductAlgorithm algorithm)
{
  Mat A, R, P, Q, PM, QM, C, D;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  PetscCall(Pair(dof == 2 ? &half : &third, &P, &Q));
  PetscCall(CheckMult(P, Q, "P"));
  PetscCall(Scale(P, Q, 2.0));
  PetscCall(Scale(A, R, 2.0));
  PetscCall(MatCreateMAIJ(P, dof, &PM));
  PetscCall(MatCreateMAIJ(Q, dof, &QM));
  PetscCall(Multiply(MATPRODUCT_PtAP, algorithm, A, PM, &C));
  PetscCall(Multiply(MATPRODUCT_PtAP, algorithm, R, QM, &D));
  PetscCall(CheckSameType(A, C, algorithm));
  PetscCall(Compare(C, D, algorithm));
  for (int round = 0; round < 2; round++) {
    PetscCall(Scale(A, R, 3.0));
    PetscCall(MatProductNumeric(C));
    PetscCall(MatProductNumeric(D));
    PetscCall(Compare(C, D, algorithm));
  }
  PetscCall(Free(&C, &D));
  PetscCall(Scale(P, Q, 0.3)); /* PETSc's MPI product may have put the values of P into the MAIJ: make that anew */
  PetscCall(Free(&PM, &QM));
  PetscCall(MatCreateMAIJ(P, dof, &PM));
  PetscCall(MatCreateMAIJ(Q, dof, &QM));
  PetscCall(MatPtAP(A, PM, MAT_INITIAL_MATRIX, 2.0, &C));
  PetscCall(MatPtAP(R, QM, MAT_INITIAL_MATRIX, 2.0, &D));
  PetscCall(Compare(C, D, algorithm));
  PetscCall(Free(&C, &D));
  PetscCall(Free(&PM, &QM));
  PetscCall(Free(&P, &Q));
  PetscCall(Free(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products on the host of matrices that are bound to the CPU, or were while they were made */

static PetscErrorCode TestBound(MatProductType type, PetscBool unbind)
{
  Mat A, R, B, S, C, D;

  PetscFunctionBeginUser;
  PetscCall(Pair(&square, &A, &R));
  PetscCall(Pair(type == MATPRODUCT_RARt ? &wide : &tall, &B, &S));
  PetscCall(CheckMult(A, R, "A"));
  for (Mat M : {A, B}) PetscCall(MatBindToCPU(M, PETSC_TRUE));
  PetscCall(Multiply(type, "default", A, B, &C));
  PetscCall(Multiply(type, "default", R, S, &D));
  PetscCall(CheckSameType(A, C, MatProductTypes[type]));
  PetscCall(Compare(C, D, MatProductTypes[type]));
  for (int round = 0; round < 3; round++) {
    if (unbind && round == 1) {
      for (Mat M : {A, B, C}) PetscCall(MatBindToCPU(M, PETSC_FALSE));
    }
    PetscCall(Scale(B, S, -0.5));
    if (round != 1) PetscCall(Scale(A, R, 3.0));
    PetscCall(MatProductNumeric(C));
    PetscCall(MatProductNumeric(D));
    PetscCall(Compare(C, D, "reused"));
  }
  PetscCall(Free(&C, &D));
  PetscCall(Free(&A, &R));
  PetscCall(Free(&B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- A^T D, reused after A, D or both changed; as many columns as one, and more. -dense_type: of D */

static PetscErrorCode TestAtD(PetscInt columns)
{
  Mat     A, R, D, E, C, F;
  char    type[64] = MATDENSE;
  Pattern dense    = {"dense", square.M, columns, Width};

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dense_type", type, sizeof(type), NULL));
  PetscCall(Pair(&square, &A, &R));
  PetscCall(MatFromPattern(&dense, MATAIJ, &D));
  PetscCall(MatConvert(D, MATDENSE, MAT_INITIAL_MATRIX, &E));
  PetscCall(MatConvert(E, type, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatDestroy(&D));
  D = C;
  PetscCall(CheckMult(A, R, "A"));
  PetscCall(Scale(A, R, 2.0));
  PetscCall(MatTransposeMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatTransposeMatMult(R, E, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &F));
  PetscCall(Compare(C, F, "A^T D"));
  for (int round = 0; round < 4; round++) {
    if (round != 1) PetscCall(Scale(A, R, -0.6));
    if (round == 3) PetscCall(MatShift(A, 2.0));
    if (round == 3) PetscCall(MatShift(R, 2.0));
    if (round) PetscCall(Scale(D, E, 1.4));
    PetscCall(MatTransposeMatMult(A, D, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C));
    PetscCall(MatTransposeMatMult(R, E, MAT_REUSE_MATRIX, PETSC_DETERMINE, &F));
    PetscCall(Compare(C, F, "A^T D reused"));
  }
  PetscCall(Free(&C, &F));
  PetscCall(Free(&D, &E));
  PetscCall(Free(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const MatProductType types[]    = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP, MATPRODUCT_RARt};
  PetscBool            sequential = PETSC_FALSE;
  PetscMPIInt          size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sequential", &sequential, NULL));
  if (sequential) {
    PetscCall(TestABt(&wide, PETSC_FALSE));
    PetscCall(TestABt(&square, PETSC_TRUE));
    PetscCall(TestTransposedSolve(PCLU));
    PetscCall(TestTransposedSolve(PCILU));
  } else {
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    for (PetscInt dof = 2; dof <= 3; dof++) {
      for (MatProductAlgorithm algorithm : {"default", "allatonce", "allatonce_merged", "scalable"}) PetscCall(TestMAIJ(dof, size > 1 ? algorithm : "default"));
      PetscCall(CheckReport("P^T A P with MAIJ"));
    }
    for (MatProductType type : types) {
      PetscCall(TestBound(type, PETSC_FALSE));
      PetscCall(TestBound(type, PETSC_TRUE));
      PetscCall(CheckReport(MatProductTypes[type]));
    }
    for (PetscInt columns : {1, 5}) PetscCall(TestAtD(columns));
    PetscCall(CheckReport("A^T D"));
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -sequential
      output_file: output/ex14_sequential.out
      test:
         suffix: sequential
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda_sequential
         requires: cuda
         args: -mat_type aijtc -vec_type cuda

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex14.out
      test:
         suffix: host
         nsize: {{1 2}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -vec_type cuda -dense_type {{dense densecuda}} -use_gpu_aware_mpi 0
      test:
         suffix: cuda_cpu_products
         requires: cuda
         nsize: 2
         args: -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0 -mat_product_algorithm_backend_cpu -mattransposematmult_backend_cpu -matptap_backend_cpu
      test:
         suffix: cuda_bind_below
         requires: cuda
         nsize: 2
         args: -mat_type aijtc -mat_bind_below 100 -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
