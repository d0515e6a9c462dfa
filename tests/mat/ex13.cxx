static char help[] = "Every operation of a MATAIJTC against a MATAIJ on the host, for random matrices: rows of 0 to 1e5 entries, unsorted, entries given several times and by\n\
other processes. -rounds: how many of each kind; what fails prints the seed of its matrix, with which -seed starts.\n\n";

#include "check.h"
#include <cstdint>
#include <vector>

/* ---- random matrices: the same numbers on every process and in every run */

typedef struct {
  uint64_t state;
} Random;

static uint64_t Next(Random *r) /* splitmix64 */
{
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static PetscReal Uniform(Random *r) /* [0, 1) */
{
  return (PetscReal)(Next(r) >> 11) / 9007199254740992.0;
}

static PetscInt Below(Random *r, PetscInt n)
{
  return n > 0 ? (PetscInt)(Next(r) % (uint64_t)n) : 0;
}

typedef enum {
  NO_ENTRIES,
  SCATTERED, /* row lengths from 0 to `longest`, as many of each order of magnitude */
  DENSE_ROW, /* short rows, and one that is full */
  BAND,      /* some of a few offsets in every row */
  NODES      /* three rows with the same columns */
} Kind;

typedef enum {
  ANY,
  FEW,  /* eighths: sums of them have few distinct values */
  FLOAT /* exactly floats, sums nearly always too */
} Values;

typedef struct {
  const char *name;
  PetscInt    M, N;
  Kind        kind;
  PetscInt    longest;
  Values      values;
  PetscBool   small; /* factored, multiplied with itself, compared entry by entry */
} Shape;

static const Shape shapes[] = {
  {"one entry",     1,    1,      DENSE_ROW,  1,      ANY,   PETSC_TRUE },
  {"no entries",    40,   40,     NO_ENTRIES, 0,      ANY,   PETSC_TRUE },
  {"short rows",    300,  300,    SCATTERED,  6,      ANY,   PETSC_TRUE },
  {"short, alike",  300,  300,    SCATTERED,  6,      FEW,   PETSC_TRUE },
  {"rows of 0-250", 257,  257,    SCATTERED,  250,    FLOAT, PETSC_TRUE },
  {"band",          333,  333,    BAND,       9,      FEW,   PETSC_TRUE },
  {"nodes",         240,  240,    NODES,      12,     ANY,   PETSC_TRUE },
  {"one full row",  1500, 1500,   DENSE_ROW,  4,      ANY,   PETSC_FALSE},
  {"tall",          2500, 30,     SCATTERED,  20,     FLOAT, PETSC_FALSE},
  {"rows of 0-1e5", 40,   120000, SCATTERED,  100000, ANY,   PETSC_FALSE}
};

static PetscInt RowLength(const Shape *s, PetscInt row, Random *r)
{
  switch (s->kind) {
  case NO_ENTRIES:
    return 0;
  case DENSE_ROW:
    return row == s->M / 2 ? s->N : Below(r, s->longest + 1);
  case BAND:
    return s->longest;
  default:
    return PetscMin((PetscInt)PetscExpReal(Uniform(r) * PetscLogReal((PetscReal)(s->longest + 1))) - (row % 2), s->longest);
  }
}

static PetscScalar Value(const Shape *s, Random *r)
{
  const PetscReal u = 2.0 * Uniform(r) - 1.0;

  if (s->values == FEW) return PetscFloorReal(8.0 * u) / 8.0;
  return s->values == FLOAT ? (PetscScalar)(float)u : u;
}

/* The columns of a row in no order. NODES: the generator starts anew for the rows of a node */
static void RowColumns(const Shape *s, PetscInt row, PetscInt n, Random *r, std::vector<PetscInt> &cols)
{
  static const PetscInt offsets[] = {0, 1, -1, 17, -17, 60, -60, 61, 5};

  cols.clear();
  for (PetscInt k = 0; k < n; k++) {
    if (s->kind == DENSE_ROW && n == s->N) cols.push_back((7 * k + 3) % s->N);
    else if (s->kind == BAND) {
      const PetscInt col = row + offsets[k % 9];

      if (col >= 0 && col < s->N && Below(r, 8)) cols.push_back(col);
    } else cols.push_back(Below(r, s->N));
  }
}

/* Process p sets the entries whose turn it is, a quarter of them a second time: some are of other processes' rows. Type NULL: from the options */
static PetscErrorCode MakeRandom(const Shape *s, PetscInt seed, MatType type, Mat *A)
{
  Random                   r = {(uint64_t)seed * 1000003u + (uint64_t)s->M};
  std::vector<PetscInt>    cols, mine;
  std::vector<PetscScalar> vals;
  PetscMPIInt              rank, size;
  PetscInt                 turn = 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, s->M, s->N));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(MatSetUp(*A));
  for (PetscInt row = s->M - 1; row >= 0; row--) {
    Random node = {(uint64_t)seed * 7919u + (uint64_t)(row / 3)};

    RowColumns(s, row, s->kind == NODES ? 1 + Below(&node, s->longest) : RowLength(s, row, &r), s->kind == NODES ? &node : &r, cols);
    mine.clear();
    vals.clear();
    for (PetscInt col : cols) {
      for (PetscInt times = Below(&r, 4) ? 1 : 2; times > 0; times--) {
        const PetscScalar v = Value(s, &r);

        if (turn++ % size != rank) continue;
        mine.push_back(col);
        vals.push_back(v);
      }
    }
    if (!mine.empty()) PetscCall(MatSetValues(*A, 1, &row, (PetscInt)mine.size(), mine.data(), vals.data(), ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what every operation is given, and comparisons */

typedef struct {
  const Shape *shape;
  Mat          A, R;  /* under test, reference */
  const char  *what;  /* operation, shape, seed */
  PetscReal    bound; /* of a product with a vector of entries up to 1, or of a sum of entries: 64 eps ||R||_F sqrt(the larger dimension) */
} Case;

static PetscErrorCode CaseVecs(const Case *c, Vec right[2], Vec left[2])
{
  PetscFunctionBeginUser;
  PetscCall(MatVecs(c->A, &right[0], &left[0]));
  PetscCall(MatCreateVecs(c->R, &right[1], &left[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecFill(right[k], 1));
    PetscCall(VecFill(left[k], 2));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeVecs(Vec right[2], Vec left[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&right[k]));
    PetscCall(VecDestroy(&left[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckReals(const PetscReal a[], const PetscReal b[], PetscInt n, PetscReal bound, const char what[])
{
  PetscReal worst = 0.0;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) worst = PetscIsInfOrNanReal(a[k]) ? PETSC_MAX_REAL : PetscMax(worst, PetscAbsReal(a[k] - b[k]));
  PetscCall(Check((PetscBool)(worst <= bound), "%s: off by %g, allowed %g", what, (double)worst, (double)bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products agree, and of small matrices the entries to 64 eps of the norm */
static PetscErrorCode CheckMats(const Case *c, Mat A, Mat R)
{
  PetscFunctionBeginUser;
  PetscCall(CheckMult(A, R, c->what));
  if (c->shape->small) PetscCall(CheckValues(A, R, 64 * PETSC_MACHINE_EPSILON, c->what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products with vectors: z <- A x, z <- y + A x, z <- z + A x, and transposed */

typedef PetscErrorCode (*MultFn)(Mat, Vec, Vec);
typedef PetscErrorCode (*MultAddFn)(Mat, Vec, Vec, Vec);

static PetscErrorCode Products(const Case *c, PetscBool transpose, MultFn mult, MultAddFn multadd)
{
  const Mat m[2] = {c->A, c->R};
  Vec       right[2], left[2], z[2];

  PetscFunctionBeginUser;
  PetscCall(CaseVecs(c, right, left));
  for (int form = 0; form < 3; form++) {
    for (int k = 0; k < 2; k++) {
      Vec x = transpose ? left[k] : right[k], y = transpose ? right[k] : left[k];

      PetscCall(VecDuplicate(y, &z[k]));
      PetscCall(VecSet(z[k], form == 0 ? 1e300 : 0.5));
      if (form == 0) PetscCall((*mult)(m[k], x, z[k]));
      else PetscCall((*multadd)(m[k], x, form == 1 ? y : z[k], z[k]));
    }
    PetscCall(CheckVec(z[0], z[1], c->bound + 4 * PETSC_MACHINE_EPSILON, c->what));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&z[k]));
  }
  PetscCall(FreeVecs(right, left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpMult(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Products(c, PETSC_FALSE, MatMult, MatMultAdd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpMultTranspose(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Products(c, PETSC_TRUE, MatMultTranspose, MatMultTransposeAdd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpMultHermitianTranspose(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Products(c, PETSC_TRUE, MatMultHermitianTranspose, MatMultHermitianTransposeAdd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what is read from a matrix */

static PetscErrorCode LeftVector(const Case *c, PetscErrorCode (*get)(Mat, Vec), PetscReal bound)
{
  Vec v, w;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(c->A, NULL, &v));
  PetscCall(MatCreateVecs(c->R, NULL, &w));
  PetscCall(VecSet(v, 1e300));
  PetscCall((*get)(c->A, v));
  PetscCall((*get)(c->R, w));
  PetscCall(CheckVec(v, w, bound, c->what));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpGetDiagonal(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(LeftVector(c, MatGetDiagonal, 8 * PETSC_MACHINE_EPSILON * 4)); /* sums of a few values up to 1, in another order from other processes */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpGetRowSum(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(LeftVector(c, MatGetRowSum, c->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpGetRowSumAbs(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(LeftVector(c, MatGetRowSumAbs, c->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpNorm(const Case *c)
{
  PetscFunctionBeginUser;
  for (NormType type : {NORM_1, NORM_FROBENIUS, NORM_INFINITY}) {
    PetscReal a, r;

    PetscCall(MatNorm(c->A, type, &a));
    PetscCall(MatNorm(c->R, type, &r));
    PetscCall(CheckReals(&a, &r, 1, Tolerance(1e-12) * r, c->what));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpColumns(const Case *c)
{
  std::vector<PetscReal>   a(c->shape->N), r(c->shape->N);
  std::vector<PetscScalar> s(c->shape->N), t(c->shape->N);

  PetscFunctionBeginUser;
  for (NormType type : {NORM_1, NORM_2, NORM_INFINITY}) {
    PetscCall(MatGetColumnNorms(c->A, type, a.data()));
    PetscCall(MatGetColumnNorms(c->R, type, r.data()));
    PetscCall(CheckReals(a.data(), r.data(), c->shape->N, c->bound, c->what));
  }
  PetscCall(MatGetColumnSums(c->A, s.data()));
  PetscCall(MatGetColumnSums(c->R, t.data()));
  for (PetscInt k = 0; k < c->shape->N; k++) {
    a[k] = PetscRealPart(s[k]);
    r[k] = PetscRealPart(t[k]);
  }
  PetscCall(CheckReals(a.data(), r.data(), c->shape->N, c->bound, c->what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what changes a matrix: done to duplicates that were multiplied with, so that a layout is there */

static PetscErrorCode Changed(const Case *c, PetscErrorCode (*change)(Mat, int), int variants)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < variants; k++) {
    Mat A, R;

    PetscCall(MatDuplicate(c->A, MAT_COPY_VALUES, &A));
    PetscCall(MatDuplicate(c->R, MAT_COPY_VALUES, &R));
    PetscCall(CheckMult(A, R, c->what));
    PetscCall((*change)(A, k));
    PetscCall((*change)(R, k));
    PetscCall(CheckMats(c, A, R));
    PetscCall((*change)(A, k)); /* and once more, with values that only the device has */
    PetscCall((*change)(R, k));
    PetscCall(CheckMats(c, A, R));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoScale(Mat A, int k)
{
  const PetscScalar factors[] = {-1.7, 2.0, 0.0};

  PetscFunctionBeginUser;
  PetscCall(MatScale(A, factors[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoDiagonalScale(Mat A, int k)
{
  Vec l, r;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, &r, &l));
  PetscCall(VecFill(l, 5));
  PetscCall(VecFill(r, 6));
  PetscCall(MatDiagonalScale(A, k == 1 ? NULL : l, k == 2 ? NULL : r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoShift(Mat A, int)
{
  PetscFunctionBeginUser;
  PetscCall(MatShift(A, 0.75));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoZeroEntries(Mat A, int)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroEntries(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpScale(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Changed(c, DoScale, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpDiagonalScale(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Changed(c, DoDiagonalScale, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpShift(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Changed(c, DoShift, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpZeroEntries(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(Changed(c, DoZeroEntries, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products with dense matrices, of the host and of -dense_type: ||C - F||_F <= 64 eps ||R||_F ||E||_F */

static PetscErrorCode MakeDense(Mat like, PetscBool rows, PetscInt columns, MatType type, Mat *D)
{
  PetscInt     m, n, M, N, lda;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(like, &m, &n));
  PetscCall(MatGetSize(like, &M, &N));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, rows ? m : n, PETSC_DECIDE, rows ? M : N, columns, NULL, D));
  PetscCall(MatGetOwnershipRange(*D, &N, NULL));
  PetscCall(MatDenseGetLDA(*D, &lda));
  PetscCall(MatDenseGetArrayWrite(*D, &a));
  for (PetscInt col = 0; col < columns; col++) {
    for (PetscInt row = 0; row < (rows ? m : n); row++) a[row + col * lda] = PetscSinReal((PetscReal)(1 + 13 * (N + row) + 5 * col));
  }
  PetscCall(MatDenseRestoreArrayWrite(*D, &a));
  PetscCall(MatAssemblyBegin(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatConvert(*D, type, MAT_INPLACE_MATRIX, D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckDense(const Case *c, Mat C, Mat F, Mat E)
{
  Mat       H;
  PetscReal rnorm, enorm, difference;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(c->R, NORM_FROBENIUS, &rnorm));
  PetscCall(MatNorm(E, NORM_FROBENIUS, &enorm));
  PetscCall(MatConvert(C, MATDENSE, MAT_INITIAL_MATRIX, &H));
  PetscCall(MatAXPY(H, -1.0, F, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(H, NORM_FROBENIUS, &difference));
  PetscCall(MatDestroy(&H));
  PetscCall(Check((PetscBool)(difference <= 64 * PETSC_MACHINE_EPSILON * rnorm * enorm), "%s: off by %g", c->what, (double)difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseProduct(const Case *c, PetscErrorCode (*multiply)(Mat, Mat, MatReuse, PetscReal, Mat *), PetscBool transpose, MatType type, PetscInt columns)
{
  Mat D, E, C, F;

  PetscFunctionBeginUser;
  PetscCall(MakeDense(c->A, transpose, columns, type, &D));
  PetscCall(MakeDense(c->R, transpose, columns, MATDENSE, &E));
  for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
    if (reuse == MAT_REUSE_MATRIX) {
      for (Mat M : {c->A, c->R}) PetscCall(MatScale(M, -1.0));
      PetscCall(MatScale(D, 0.5));
      PetscCall(MatScale(E, 0.5));
    }
    PetscCall((*multiply)(c->A, D, reuse, PETSC_DETERMINE, &C));
    PetscCall((*multiply)(c->R, E, reuse, PETSC_DETERMINE, &F));
    PetscCall(CheckDense(c, C, F, E));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseProducts(const Case *c, PetscErrorCode (*multiply)(Mat, Mat, MatReuse, PetscReal, Mat *), PetscBool transpose)
{
  char type[64] = MATDENSE;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dense_type", type, sizeof(type), NULL));
  for (PetscInt columns : {1, 3, 8, 17}) {
    PetscCall(DenseProduct(c, multiply, transpose, MATDENSE, columns));
    PetscCall(DenseProduct(c, multiply, transpose, type, columns));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpMatMatMult(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(DenseProducts(c, MatMatMult, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpMatTransposeMatMult(const Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(DenseProducts(c, MatTransposeMatMult, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products with sparse matrices, what is cut out and put together */

static PetscErrorCode OpPtAP(const Case *c)
{
  const Shape s = {"P", c->shape->M, 1 + c->shape->M / 3, SCATTERED, 3, ANY, PETSC_TRUE};
  Mat         P, Q, C, D;

  PetscFunctionBeginUser;
  PetscCall(MakeRandom(&s, 17, NULL, &P));
  PetscCall(MakeRandom(&s, 17, MATAIJ, &Q));
  for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
    PetscCall(MatPtAP(c->A, P, reuse, PETSC_DETERMINE, &C));
    PetscCall(MatPtAP(c->R, Q, reuse, PETSC_DETERMINE, &D));
    PetscCall(CheckSameType(c->A, C, c->what));
    PetscCall(CheckValues(C, D, 1024 * PETSC_MACHINE_EPSILON, c->what));
    for (Mat M : {P, Q, c->A, c->R}) PetscCall(MatScale(M, -0.5));
  }
  for (Mat M : {c->A, c->R}) PetscCall(MatScale(M, 4.0));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&Q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpCreateSubMatrix(const Case *c)
{
  Mat      B, S;
  IS       rows, cols;
  PetscInt start, end, cstart, cend;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(c->A, &start, &end));
  PetscCall(MatGetOwnershipRangeColumn(c->A, &cstart, &cend));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - start + 1) / 2, start, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (cend - cstart + 2) / 3, cstart, 3, &cols));
  for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
    PetscCall(MatCreateSubMatrix(c->A, rows, cols, reuse, &B));
    PetscCall(MatCreateSubMatrix(c->R, rows, cols, reuse, &S));
    PetscCall(CheckSameType(c->A, B, c->what));
    PetscCall(CheckMats(c, B, S));
    for (Mat M : {c->A, c->R}) PetscCall(MatScale(M, -1.0));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpPermute(const Case *c)
{
  Mat            B, S;
  IS             rows;
  PetscInt       start, end, *index;
  const PetscInt M = c->shape->M;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(c->A, &start, &end));
  PetscCall(PetscMalloc1(end - start, &index));
  for (PetscInt k = start; k < end; k++) index[k - start] = M - 1 - k;
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, end - start, index, PETSC_OWN_POINTER, &rows));
  PetscCall(ISSetPermutation(rows));
  PetscCall(MatPermute(c->A, rows, rows, &B));
  PetscCall(MatPermute(c->R, rows, rows, &S));
  PetscCall(CheckSameType(c->A, B, c->what));
  PetscCall(CheckMats(c, B, S));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpNest(const Case *c)
{
  Mat a[4] = {c->A, NULL, c->A, c->A}, r[4] = {c->R, NULL, c->R, c->R}, N, M;

  PetscFunctionBeginUser;
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, a, &N));
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, r, &M));
  PetscCall(MatConvert(M, MATAIJ, MAT_INPLACE_MATRIX, &M));
  PetscCall(CheckMult(N, M, c->what));
  PetscCall(MatConvert(N, MATAIJ, MAT_INPLACE_MATRIX, &N));
  PetscCall(CheckMult(N, M, c->what));
  PetscCall(MatDestroy(&N));
  PetscCall(MatDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves with A + A^T + s I, s so that it is positive definite */

static PetscErrorCode Definite(Mat A, Mat *S)
{
  Mat       T;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, S));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatAXPY(*S, 1.0, T, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&T));
  PetscCall(MatNorm(*S, NORM_INFINITY, &norm));
  PetscCall(MatShift(*S, 0.5 + norm));
  PetscCall(MatSetOption(*S, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat A, KSPType type, PCType pctype, PetscInt *its, Vec *x)
{
  KSP ksp;
  PC  pc;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-10), PETSC_CURRENT, PETSC_CURRENT, 100));
  PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_TRUE));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(KSPSolve(ksp, b, *x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |x - y| <= tol max|y|, and not more than one iteration apart */
static PetscErrorCode CheckSolves(const Case *c, Mat A, Mat R, KSPType type, PCType pctype, PetscReal tol)
{
  Vec       x, y;
  PetscInt  its, ref;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(Solve(A, type, pctype, &its, &x));
  PetscCall(Solve(R, type, pctype, &ref, &y));
  PetscCall(VecNorm(y, NORM_INFINITY, &norm));
  PetscCall(CheckVec(x, y, tol * norm, c->what));
  PetscCall(Check((PetscBool)(PetscAbsInt(its - ref) <= 1), "%s: %" PetscInt_FMT " iterations, not %" PetscInt_FMT, c->what, its, ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of the diagonal blocks, each process its own */
static PetscErrorCode OpFactor(const Case *c)
{
  Mat A, R, B, S;

  PetscFunctionBeginUser;
  PetscCall(Definite(c->A, &A));
  PetscCall(Definite(c->R, &R));
  PetscCall(MatGetDiagonalBlock(A, &B));
  PetscCall(MatGetDiagonalBlock(R, &S));
  for (PCType type : {PCLU, PCCHOLESKY, PCILU, PCICC}) PetscCall(CheckSolves(c, B, S, KSPPREONLY, type, Tolerance(1e-11)));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpGAMG(const Case *c)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(Definite(c->A, &A));
  PetscCall(Definite(c->R, &R));
  PetscCall(CheckSolves(c, A, R, KSPCG, PCGAMG, Tolerance(1e-8)));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the table */

static const struct {
  const char *name;
  PetscErrorCode (*run)(const Case *);
  PetscBool square, small;
} operations[] = {
  {"MatMult",                    OpMult,                   PETSC_FALSE, PETSC_FALSE},
  {"MatMultTranspose",           OpMultTranspose,          PETSC_FALSE, PETSC_FALSE},
  {"MatMultHermitianTranspose",  OpMultHermitianTranspose, PETSC_FALSE, PETSC_FALSE},
  {"MatGetDiagonal",             OpGetDiagonal,            PETSC_TRUE,  PETSC_FALSE},
  {"MatGetRowSum",               OpGetRowSum,              PETSC_FALSE, PETSC_FALSE},
  {"MatGetRowSumAbs",            OpGetRowSumAbs,           PETSC_FALSE, PETSC_FALSE},
  {"MatNorm",                    OpNorm,                   PETSC_FALSE, PETSC_FALSE},
  {"MatGetColumnNorms, Sums",    OpColumns,                PETSC_FALSE, PETSC_FALSE},
  {"MatScale",                   OpScale,                  PETSC_FALSE, PETSC_FALSE},
  {"MatDiagonalScale",           OpDiagonalScale,          PETSC_FALSE, PETSC_FALSE},
  {"MatShift",                   OpShift,                  PETSC_TRUE,  PETSC_FALSE},
  {"MatZeroEntries",             OpZeroEntries,            PETSC_FALSE, PETSC_FALSE},
  {"MatMatMult, dense",          OpMatMatMult,             PETSC_FALSE, PETSC_FALSE},
  {"MatTransposeMatMult, dense", OpMatTransposeMatMult,    PETSC_FALSE, PETSC_FALSE},
  {"MatPtAP",                    OpPtAP,                   PETSC_TRUE,  PETSC_TRUE },
  {"MatCreateSubMatrix",         OpCreateSubMatrix,        PETSC_FALSE, PETSC_FALSE},
  {"MatPermute",                 OpPermute,                PETSC_TRUE,  PETSC_TRUE },
  {"MatCreateNest",              OpNest,                   PETSC_FALSE, PETSC_FALSE},
  {"LU, Cholesky, ILU, ICC",     OpFactor,                 PETSC_TRUE,  PETSC_TRUE },
  {"GAMG",                       OpGAMG,                   PETSC_TRUE,  PETSC_TRUE }
};

static PetscErrorCode TestShape(const Shape *s, PetscInt seed)
{
  Case      c;
  char      what[160];
  PetscReal norm;

  PetscFunctionBeginUser;
  c.shape = s;
  c.what  = what;
  PetscCall(MakeRandom(s, seed, NULL, &c.A));
  PetscCall(MakeRandom(s, seed, MATAIJ, &c.R));
  PetscCall(MatNorm(c.R, NORM_FROBENIUS, &norm));
  c.bound = 64 * PETSC_MACHINE_EPSILON * norm * PetscSqrtReal((PetscReal)PetscMax(s->M, s->N));
  for (const auto &op : operations) {
    if ((op.square && s->M != s->N) || (op.small && !s->small)) continue;
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s, seed %" PetscInt_FMT, op.name, s->name, seed));
    PetscCall((*op.run)(&c));
  }
  PetscCall(PetscSNPrintf(what, sizeof(what), "after all, %s, seed %" PetscInt_FMT, s->name, seed));
  PetscCall(CheckMats(&c, c.A, c.R));
  PetscCall(MatDestroy(&c.A));
  PetscCall(MatDestroy(&c.R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt rounds = 1, seed = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  for (const Shape &s : shapes) {
    for (PetscInt k = 0; k < rounds; k++) PetscCall(TestShape(&s, seed + k));
    PetscCall(CheckReport(s.name));
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex13.out
      test:
         suffix: host
         nsize: {{1 2}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: forms
         args: -mat_type aijtc -seed 5 -mat_aijtc_compress {{off auto}} -mat_aijtc_params {{form=tile form=row}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type cuda -dense_type densecuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_freed
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -seed 7 -mat_aijtc_keep_csr false -vec_type cuda -dense_type densecuda -use_gpu_aware_mpi 0

   testset:
      requires: cuda
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist -mat_type aijtc -seed 5 -vec_type cuda -dense_type densecuda -use_gpu_aware_mpi 0
      output_file: output/ex13.out
      test:
         suffix: cuda_tiles
         args: -mat_aijtc_params form=tile -mat_aijtc_compress {{off pattern}}
      test:
         suffix: cuda_tiles_values
         args: -mat_aijtc_params form=tile -mat_aijtc_compress {{value auto}}
      test:
         suffix: cuda_rows
         args: -mat_aijtc_params form=row -mat_aijtc_compress {{off pattern}}
      test:
         suffix: cuda_rows_values
         args: -mat_aijtc_params form=row -mat_aijtc_compress {{value auto}}

TEST*/
