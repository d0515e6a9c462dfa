static char help[] = "Products of matrices of which one or both are wrapped: transposes, normal equations, diagonals, shells, AIJ of PETSc's beside ours. What PETSc multiplies with plain AIJ inside, it multiplies with ours:\n\
the same values, first, again, and after both have changed, and no more references to the operands afterwards.\n\n";

#include <initializer_list>
#include "check.h"

static const PetscInt GRID = 5; /* rows of the grid, and columns */

/* A nonsymmetric 5-point grid; wide: a tridiagonal matrix of the same size. type NULL: the asked one */
static PetscErrorCode CreateGrid(MatType type, PetscBool wide, Mat *A)
{
  const PetscInt n = GRID * GRID, far = wide ? 2 : GRID;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    PetscCall(MatSetValue(*A, row, row, 4 + 0.1 * row, INSERT_VALUES));
    if (row >= far) PetscCall(MatSetValue(*A, row, row - far, -1 + 0.01 * row, INSERT_VALUES));
    if (row + far < n) PetscCall(MatSetValue(*A, row, row + far, -2, INSERT_VALUES));
    if (row % GRID) PetscCall(MatSetValue(*A, row, row - 1, 0.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what may be around a matrix */

static PetscErrorCode Plain(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(PetscObjectReference((PetscObject)A));
  *W = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeTwice(Mat A, Mat *W)
{
  Mat T;

  PetscFunctionBeginUser;
  PetscCall(MatCreateTranspose(A, &T));
  PetscCall(MatCreateTranspose(T, W));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factor of its own, which PETSc applies behind the product */
static PetscErrorCode TransposeScaled(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreateTranspose(A, W));
  PetscCall(MatScale(*W, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Mat A, Mat *W)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(VecFill(d, 3));
  PetscCall(MatCreateDiagonal(d, W));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConstantDiagonal(Mat A, Mat *W)
{
  PetscInt m, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatCreateConstantDiagonal(PETSC_COMM_WORLD, m, n, PETSC_DETERMINE, PETSC_DETERMINE, 2.5, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatShellGetContext(S, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shell(Mat A, Mat *W)
{
  PetscInt m, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatCreateShell(PETSC_COMM_WORLD, m, n, PETSC_DETERMINE, PETSC_DETERMINE, A, W));
  PetscCall(MatShellSetOperation(*W, MATOP_MULT, (PetscErrorCodeFn *)ShellMult));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's shell around a matrix, which knows its products */
static PetscErrorCode ConvertedShell(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATSHELL, MAT_INITIAL_MATRIX, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StockAIJ(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Dense(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Composite(Mat A, Mat *W)
{
  Mat two[] = {A, A};

  PetscFunctionBeginUser;
  PetscCall(MatCreateComposite(PETSC_COMM_WORLD, 2, two, W));
  PetscCall(MatAssemblyBegin(*W, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*W, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nest(Mat A, Mat *W)
{
  Mat one[] = {A};

  PetscFunctionBeginUser;
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 1, NULL, 1, NULL, one, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VirtualSubmatrix(Mat A, Mat *W)
{
  IS       is;
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &is));
  PetscCall(MatCreateSubMatrixVirtual(A, is, is, W));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every entry of the vector goes to itself */
static PetscErrorCode Scatter(Mat A, Mat *W)
{
  Vec        x;
  IS         own;
  PetscInt   start, end;
  VecScatter scatter;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecGetOwnershipRange(x, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &own));
  PetscCall(VecScatterCreate(x, own, x, own, &scatter));
  PetscCall(ISDestroy(&own));
  PetscCall(MatCreateScatter(PETSC_COMM_WORLD, scatter, W));
  PetscCall(VecScatterDestroy(&scatter));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UnassembledIS(Mat A, Mat *W)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATIS, MAT_INITIAL_MATRIX, W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*wrap)(Mat, Mat *);
} kinds[] = {
  {"plain",             Plain                      },
  {"transpose",         MatCreateTranspose         },
  {"hermitian",         MatCreateHermitianTranspose},
  {"transpose twice",   TransposeTwice             },
  {"scaled transpose",  TransposeScaled            },
  {"normal",            MatCreateNormal            },
  {"diagonal",          Diagonal                   },
  {"constant diagonal", ConstantDiagonal           },
  {"shell",             Shell                      },
  {"converted shell",   ConvertedShell             },
  {"stock",             StockAIJ                   },
  {"dense",             Dense                      },
  {"composite",         Composite                  },
  {"nest",              Nest                       },
  {"submatrix",         VirtualSubmatrix           },
  {"scatter",           Scatter                    },
  {"is",                UnassembledIS              },
};

/* ---- products */

static PetscErrorCode Multiply(MatProductType type, Mat X, Mat Y, MatReuse reuse, Mat *C)
{
  PetscFunctionBeginUser;
  switch (type) {
  case MATPRODUCT_AB:
    PetscCall(MatMatMult(X, Y, reuse, PETSC_DETERMINE, C));
    break;
  case MATPRODUCT_AtB:
    PetscCall(MatTransposeMatMult(X, Y, reuse, PETSC_DETERMINE, C));
    break;
  case MATPRODUCT_ABt:
    PetscCall(MatMatTransposeMult(X, Y, reuse, PETSC_DETERMINE, C));
    break;
  case MATPRODUCT_PtAP:
    PetscCall(MatPtAP(X, Y, reuse, PETSC_DETERMINE, C));
    break;
  case MATPRODUCT_RARt:
    PetscCall(MatRARt(X, Y, reuse, PETSC_DETERMINE, C));
    break;
  default:
    PetscCall(MatMatMatMult(Y, X, Y, reuse, PETSC_DETERMINE, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat A, B, X, Y, C; /* matrices, what is around them, and the product */
} Side;

/* An error is returned, not raised: PETSc may have no such product */
static PetscErrorCode Quietly(MatProductType type, Side *s, MatReuse reuse)
{
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = Multiply(type, s->X, s->Y, reuse, &s->C);
  PetscCall(PetscPopErrorHandler());
  PetscFunctionReturn(ierr);
}

static PetscErrorCode SideCreate(PetscBool ours, int x, int y, Side *s)
{
  PetscFunctionBeginUser;
  s->C = NULL;
  PetscCall(CreateGrid(ours ? NULL : MATAIJ, PETSC_FALSE, &s->A));
  PetscCall(CreateGrid(ours ? NULL : MATAIJ, PETSC_TRUE, &s->B));
  PetscCall((*kinds[x].wrap)(s->A, &s->X));
  PetscCall((*kinds[y].wrap)(s->B, &s->Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* references: what A and B are left with */
static PetscErrorCode SideDestroy(Side *s, PetscInt references[2])
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&s->C));
  PetscCall(MatDestroy(&s->X));
  PetscCall(MatDestroy(&s->Y));
  PetscCall(PetscObjectGetReference((PetscObject)s->A, &references[0]));
  PetscCall(PetscObjectGetReference((PetscObject)s->B, &references[1]));
  PetscCall(MatDestroy(&s->A));
  PetscCall(MatDestroy(&s->B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C x is R x */
static PetscErrorCode CheckProduct(Mat C, Mat R, const char what[])
{
  Vec       x, y, xr, yr;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(C, &x, &y));
  PetscCall(MatCreateVecs(R, &xr, &yr));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(xr, 1));
  PetscCall(MatMult(C, x, y));
  PetscCall(MatMult(R, xr, yr));
  PetscCall(VecNorm(yr, NORM_INFINITY, &norm));
  PetscCall(CheckVec(y, yr, 1e-12 * norm, what));
  for (Vec *v : {&x, &y, &xr, &yr}) PetscCall(VecDestroy(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Change(Side *s)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(s->A, 2));
  PetscCall(MatScale(s->B, 0.5));
  for (Mat W : {s->X, s->Y}) {
    PetscCall(MatAssemblyBegin(W, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(W, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* side[0] is ours, side[1] PETSc's, which has the product. anew: PETSc forgets to transpose when it computes A B^T of several processes again, so ours is compared with one that is made anew */
static PetscErrorCode Again(MatProductType type, PetscBool anew, Side side[2], const char name[])
{
  char text[160];

  PetscFunctionBeginUser;
  for (int changed = 0; changed < 2; changed++) {
    PetscErrorCode stock;

    if (changed) {
      for (int t = 0; t < 2; t++) PetscCall(Change(&side[t]));
    }
    if (anew) PetscCall(MatDestroy(&side[1].C));
    stock = Quietly(type, &side[1], anew ? MAT_INITIAL_MATRIX : MAT_REUSE_MATRIX);
    if (stock) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s, %s", name, changed ? "changed" : "again"));
    CheckError(PETSC_SUCCESS, text, Multiply(type, side[0].X, side[0].Y, MAT_REUSE_MATRIX, &side[0].C));
    PetscCall(CheckProduct(side[0].C, side[1].C, text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(MatProductType type, int x, int y, PetscInt *supported)
{
  Side        side[2];
  PetscMPIInt size;
  PetscInt    references[2][2] = {
       {0, 0},
       {0, 0}
  };
  char           name[128];
  PetscErrorCode stock, ours;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s of %s and %s", MatProductTypes[type], kinds[x].name, kinds[y].name));
  PetscCall(SideCreate(PETSC_FALSE, x, y, &side[1]));
  stock = Quietly(type, &side[1], MAT_INITIAL_MATRIX);
  if (stock) PetscFunctionReturn(PETSC_SUCCESS); /* what an error has left is of no known state, and stays */
  (*supported)++;
  PetscCall(SideCreate(PETSC_TRUE, x, y, &side[0]));
  ours = Quietly(type, &side[0], MAT_INITIAL_MATRIX);
  PetscCall(Check((PetscBool)!ours, "%s: error code %d", name, (int)ours));
  if (ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CheckProduct(side[0].C, side[1].C, name));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Again(type, (PetscBool)(size > 1 && type == MATPRODUCT_ABt && (kinds[y].wrap == Plain || kinds[y].wrap == StockAIJ)), side, name));
  for (int t = 0; t < 2; t++) PetscCall(SideDestroy(&side[t], references[t]));
  PetscCall(Check((PetscBool)(references[0][0] <= references[1][0] && references[0][1] <= references[1][1]), "%s: operands are left with %" PetscInt_FMT " and %" PetscInt_FMT " references, those of PETSc with %" PetscInt_FMT " and %" PetscInt_FMT,
                  name, references[0][0], references[0][1], references[1][0], references[1][1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are matrices of the asked type on a device? */
static PetscErrorCode OursIsOnDevice(PetscBool *device)
{
  Mat     A;
  VecType type;

  PetscFunctionBeginUser;
  PetscCall(CreateGrid(NULL, PETSC_FALSE, &A));
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscStrcmpAny(type, device, VECCUDA, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool IsOneOf(int kind, std::initializer_list<PetscErrorCode (*)(Mat, Mat *)> wraps)
{
  for (auto wrap : wraps) {
    if (kinds[kind].wrap == wrap) return true;
  }
  return false;
}

/* Products in which PETSc 3.26.1 itself crashes or is wrong: it calls itself without end (ABC), or reads what is gone (several processes). On a device AIJCUSPARSE lacks some that AIJ has, and crashes in others, of a host matrix above all */
static PetscBool StockFails(MatProductType type, int x, int y, PetscMPIInt size, PetscBool device)
{
  const bool xdiagonal = IsOneOf(x, {Diagonal, ConstantDiagonal}), transposes = IsOneOf(y, {MatCreateTranspose, MatCreateHermitianTranspose, TransposeScaled});

  if (device && (IsOneOf(x, {StockAIJ, Dense, UnassembledIS}) || IsOneOf(y, {StockAIJ}))) return PETSC_TRUE;
  if (type == MATPRODUCT_ABC) return (PetscBool)(IsOneOf(y, {Diagonal, ConstantDiagonal}) || (device && (xdiagonal || IsOneOf(x, {ConvertedShell}))));
  if (size == 1 && !device) return PETSC_FALSE;
  if (type == MATPRODUCT_PtAP) return (PetscBool)(IsOneOf(y, {TransposeScaled}) || (xdiagonal && transposes));
  return (PetscBool)(type == MATPRODUCT_RARt && xdiagonal);
}

int main(int argc, char **argv)
{
  const int   n         = PETSC_STATIC_ARRAY_LENGTH(kinds);
  PetscInt    supported = 0, which = -1, pair[2] = {-1, -1}, two = 2;
  PetscBool   device;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(OursIsOnDevice(&device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-product", &which, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-kinds", pair, &two, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (MatProductType type : {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC}) {
    if (which >= 0 && which != (PetscInt)type) continue;
    for (int x = 0; x < n; x++) {
      for (int y = 0; y < n; y++) {
        if ((pair[0] >= 0 && pair[0] != x) || (pair[1] >= 0 && pair[1] != y)) continue;
        if (x > 1 && y > 1 && (size > 1 || (x > 4 && y > 4))) continue; /* one of them is a matrix or its transpose */
        if (StockFails(type, x, y, size, device)) continue;
        PetscCall(Test(type, x, y, &supported));
      }
    }
    PetscCall(Check((PetscBool)(supported > 0), "PETSc has no product at all"));
    PetscCall(CheckReport(MatProductTypes[type]));
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -mat_type aijtc
      filter: grep -e checks -e failed | sed -e "s/[0-9]* checks/checks/"
      output_file: output/ex18.out

      test:
         suffix: 1

      test:
         suffix: 2
         nsize: {{2 3}}

      test:
         suffix: cuda
         requires: cuda
         args: -vec_type cuda -use_gpu_aware_mpi 0

      test:
         suffix: cuda_2
         nsize: {{2 3}}
         requires: cuda
         args: -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
