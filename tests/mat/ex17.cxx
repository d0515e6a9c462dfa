static char help[] = "Patterns that change in place while a matrix is in use: after each of PETSc's operations that change one, products, transposed products, products with a dense matrix and solves, by steps and resident, are\n\
those of a plain AIJ that went through the same.\n\n";

#include <petsc/private/matimpl.h>
#include "check.h"
#include "../viewtext.h"

static const PetscInt GRID = 18; /* rows of the grid, and columns */

/* ---- matrices: a 5-point grid with explicit zeros: couplings of every third row to the row after next */

static PetscErrorCode FillGrid(Mat A, PetscReal scale)
{
  PetscInt start, end, n = GRID * GRID;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    const PetscInt  i = row % GRID, j = row / GRID;
    const PetscBool has[]    = {PETSC_TRUE, (PetscBool)(i > 0), (PetscBool)(i < GRID - 1), (PetscBool)(j > 0), (PetscBool)(j < GRID - 1), (PetscBool)(row % 3 == 0 && row + 2 < n)};
    const PetscInt  to[]     = {row, row - 1, row + 1, row - GRID, row + GRID, row + 2};
    const PetscReal values[] = {6 + 0.5 * (row % 5), -1, -1, -1, -1, 0};

    for (int k = 0; k < 6; k++) {
      if (has[k]) PetscCall(MatSetValue(A, row, to[k], scale * values[k], INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* type NULL: the asked one */
static PetscErrorCode CreateEmpty(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, GRID * GRID, GRID * GRID));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateGrid(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(CreateEmpty(type, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 9, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 9, NULL, 9, NULL));
  PetscCall(FillGrid(*A, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another pattern: the diagonal and a column far away, of A's type */
static PetscErrorCode CreateOther(Mat A, Mat *B)
{
  MatType  type;
  PetscInt start, end, n = GRID * GRID;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(A, &type));
  PetscCall(MatCreate(PETSC_COMM_WORLD, B));
  PetscCall(MatSetSizes(*B, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*B, type));
  PetscCall(MatSetUp(*B));
  PetscCall(MatGetOwnershipRange(*B, &start, &end));
  for (PetscInt row = start; row < end; row++) {
    PetscCall(MatSetValue(*B, row, row, 4, INSERT_VALUES));
    PetscCall(MatSetValue(*B, row, (row + 40) % n, 0.5, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations */

static PetscErrorCode EliminateZeros(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatEliminateZeros(*A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The newest values are on the device when the pattern changes on the host */
static PetscErrorCode ScaleAndEliminate(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(*A, 3));
  PetscCall(MatEliminateZeros(*A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Filter(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatFilter(*A, 0.5, PETSC_TRUE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OwnRows(Mat A, PetscInt *n, PetscInt rows[])
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  *n = 0;
  for (PetscInt row : {0, 1, 7, 100, 101, 300}) {
    if (row >= start && row < end) rows[(*n)++] = row;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRows(Mat *A)
{
  PetscInt n, rows[6];

  PetscFunctionBeginUser;
  PetscCall(OwnRows(*A, &n, rows));
  PetscCall(MatZeroRows(*A, n, rows, 3, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKept(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(ZeroRows(A));
  PetscCall(MatEliminateZeros(*A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsColumns(Mat *A)
{
  PetscInt n, rows[6];

  PetscFunctionBeginUser;
  PetscCall(OwnRows(*A, &n, rows));
  PetscCall(MatZeroRowsColumns(*A, n, rows, 4, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewNonzeros(Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt row = start; row < end; row++) PetscCall(MatSetValue(*A, row, (row + 50) % (GRID * GRID), 0.25, ADD_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResetPreallocation(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatResetPreallocation(*A));
  PetscCall(FillGrid(*A, 2));
  PetscCall(NewNonzeros(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewPreallocation(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
  PetscCall(FillGrid(*A, 2));
  PetscCall(NewNonzeros(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ResetHash(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatResetHash(*A));
  PetscCall(FillGrid(*A, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows lose their diagonal, and get it back */
static PetscErrorCode ShiftMissing(Mat *A)
{
  PetscInt n, rows[6];

  PetscFunctionBeginUser;
  PetscCall(OwnRows(*A, &n, rows));
  for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, rows[k], rows[k], 0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatEliminateZeros(*A, PETSC_FALSE));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(*A, 5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddOther(Mat *A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(CreateOther(*A, &B));
  PetscCall(MatAXPY(*A, 2, B, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyOther(Mat *A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(CreateOther(*A, &B));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCopy(B, *A, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal of rows that have lost theirs */
static PetscErrorCode SetDiagonal(Mat *A)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(ShiftMissing(A));
  PetscCall(MatCreateVecs(*A, NULL, &d));
  PetscCall(VecSet(d, 9));
  PetscCall(MatDiagonalSet(*A, d, INSERT_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReplaceByOther(Mat *A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(CreateOther(*A, &B));
  PetscCall(MatHeaderReplace(*A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeInPlace(Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTranspose(*A, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewCOO(Mat *A)
{
  PetscInt     start, end, m, *i, *j;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  m = end - start;
  PetscCall(PetscMalloc3(2 * m, &i, 2 * m, &j, 2 * m, &v));
  for (PetscInt k = 0; k < m; k++) {
    i[2 * k] = i[2 * k + 1] = start + k;
    j[2 * k]                = start + k;
    j[2 * k + 1]            = (start + k + 9) % (GRID * GRID);
    v[2 * k]                = 5;
    v[2 * k + 1]            = -1;
  }
  PetscCall(MatSetPreallocationCOO(*A, 2 * m, i, j));
  PetscCall(MatSetValuesCOO(*A, v, INSERT_VALUES));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ThereAndBack(Mat *A)
{
  char    ours[64];
  MatType type;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(*A, &type));
  PetscCall(PetscStrncpy(ours, type, sizeof(ours))); /* the type goes with the matrix */
  PetscCall(MatConvert(*A, MATBAIJ, MAT_INPLACE_MATRIX, A));
  PetscCall(MatConvert(*A, ours, MAT_INPLACE_MATRIX, A));
  PetscCall(MatEliminateZeros(*A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadOther(Mat *A)
{
  Mat         B;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(CreateOther(*A, &B));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, "ex17.dat", FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(B, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, "ex17.dat", FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A change that nobody told: as MatEliminateZeros(), with all that tells of it undone. A plain AIJ has no cache that could mistake it */
static PetscErrorCode Untold(Mat *A)
{
  Mat       b[2];
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(*A, &ours));
  if (!ours) {
    PetscCall(MatEliminateZeros(*A, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscObjectTypeCompare((PetscObject)*A, "mpiaijtc", &ours));
  b[0] = *A;
  b[1] = NULL;
  if (ours) PetscCall(MatMPIAIJGetSeqAIJ(*A, &b[0], &b[1], NULL));
  for (Mat B : b) {
    if (!B) continue;
    const PetscObjectState state = B->nonzerostate;
#if PetscDefined(HAVE_DEVICE)
    const PetscOffloadMask mask = B->offloadmask;
#endif

    PetscCall(MatEliminateZeros(B, B == b[0] ? PETSC_TRUE : PETSC_FALSE));
    B->nonzerostate = state;
#if PetscDefined(HAVE_DEVICE)
    B->offloadmask = mask;
#endif
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*change)(Mat *);
} operations[] = {
  {"MatEliminateZeros()",                     EliminateZeros    },
  {"MatEliminateZeros() of scaled values",    ScaleAndEliminate },
  {"MatFilter()",                             Filter            },
  {"MatZeroRows()",                           ZeroRows          },
  {"MatZeroRows(), pattern kept, eliminated", ZeroRowsKept      },
  {"MatZeroRowsColumns()",                    ZeroRowsColumns   },
  {"MatSetValue() of new nonzeros",           NewNonzeros       },
  {"MatResetPreallocation()",                 ResetPreallocation},
  {"MatSeqAIJSetPreallocation() again",       NewPreallocation  },
  {"MatResetHash()",                          ResetHash         },
  {"MatShift() of missing diagonal entries",  ShiftMissing      },
  {"MatAXPY() of another pattern",            AddOther          },
  {"MatDiagonalSet()",                        SetDiagonal       },
  {"MatCopy() of another pattern",            CopyOther         },
  {"MatHeaderReplace()",                      ReplaceByOther    },
  {"MatTranspose() in place",                 TransposeInPlace  },
  {"MatSetPreallocationCOO()",                NewCOO            },
  {"MatConvert() in place, there and back",   ThereAndBack      },
  {"MatLoad()",                               LoadOther         },
  {"a change that nobody told",               Untold            },
};

/* ---- what is compared */

enum {
  STEPS,
  RESIDENT,
  SOLVERS
};
typedef struct {
  Mat A;            /* of the asked type, or the plain one */
  KSP ksp[SOLVERS]; /* the second, of ours alone: iterations in few calls where that is possible */
} Side;

static PetscErrorCode SideCreate(PetscBool ours, Side *s)
{
  const char *prefix[] = {"steps_", "resident_"};

  PetscFunctionBeginUser;
  PetscCall(CreateGrid(ours ? NULL : MATAIJ, &s->A));
  for (int k = 0; k < SOLVERS; k++) {
    PC pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &s->ksp[k]));
    PetscCall(KSPSetOptionsPrefix(s->ksp[k], ours ? prefix[k] : "stock_"));
    PetscCall(KSPSetType(s->ksp[k], ours ? "tccg" : KSPCG));
    PetscCall(KSPGetPC(s->ksp[k], &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(s->ksp[k], 1e-300, 0, 1e300, 5));
    PetscCall(KSPSetFromOptions(s->ksp[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SideDestroy(Side *s)
{
  PetscFunctionBeginUser;
  for (auto &ksp : s->ksp) PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&s->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  PRODUCT,
  TRANSPOSED,
  DENSE,
  SOLVE_STEPS,
  SOLVE_RESIDENT,
  RESULTS
} Result;
static const char *const results[] = {"product", "transposed product", "product with a dense matrix", "solve by steps", "resident solve"};

/* The last column of A D, D dense with two columns */
static PetscErrorCode DenseProduct(Mat A, Vec y)
{
  Mat      D, C;
  Vec      column;
  PetscInt n;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, PETSC_DETERMINE, 2, NULL, &D));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(MatDenseGetColumnVecWrite(D, k, &column));
    PetscCall(VecFill(column, (int)k));
    PetscCall(MatDenseRestoreColumnVecWrite(D, k, &column));
  }
  PetscCall(MatMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(MatDenseGetColumnVecRead(C, 1, &column));
  PetscCall(VecCopy(column, y));
  PetscCall(MatDenseRestoreColumnVecRead(C, 1, &column));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compute(Side *s, Result what, Vec y)
{
  Vec x;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(y, &x));
  PetscCall(VecFill(x, 2));
  PetscCall(VecSet(y, 1e300));
  switch (what) {
  case PRODUCT:
    PetscCall(MatMult(s->A, x, y));
    break;
  case TRANSPOSED:
    PetscCall(MatMultTranspose(s->A, x, y));
    break;
  case DENSE:
    PetscCall(DenseProduct(s->A, y));
    break;
  default:
    PetscCall(KSPSetOperators(s->ksp[what == SOLVE_STEPS ? STEPS : RESIDENT], s->A, s->A));
    PetscCall(KSPSolve(s->ksp[what == SOLVE_STEPS ? STEPS : RESIDENT], x, y));
  }
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Five iterations from the same right-hand side differ by rounding; products by less */
static PetscErrorCode Compare(Side side[2], const char when[])
{
  char text[128];

  PetscFunctionBeginUser;
  for (int k = 0; k < RESULTS; k++) {
    const PetscReal bound = k < SOLVE_STEPS ? 1e-13 : 1e-11;
    Vec             y[2];

    for (int t = 0; t < 2; t++) {
      PetscCall(MatVecs(side[t].A, NULL, &y[t]));
      if (t) PetscCall(VecSetType(y[t], VECSTANDARD));
      PetscCall(Compute(&side[t], (Result)k, y[t]));
    }
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s, %s", when, results[k]));
    PetscCall(CheckVec(y[0], y[1], bound * 20, text));
    for (auto &v : y) PetscCall(VecDestroy(&v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Was the last solve resident? Of several processes none is, and their views do not go into one file */
static PetscErrorCode CheckResident(KSP ksp, const char when[])
{
  char        text[8000];
  PetscBool   resident = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ViewSays((PetscObject)ksp, "  resident, ", "ex17.txt", text, sizeof(text), &resident));
  PetscCall(Check(resident, "%s: the solve was not resident", when));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Everything that a matrix keeps is made before the pattern changes, so that it would be found old */
static PetscErrorCode Test(const char name[], PetscErrorCode (*change)(Mat *))
{
  Side side[2];

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) PetscCall(SideCreate((PetscBool)!t, &side[t]));
  PetscCall(Compare(side, "before"));
  PetscCall(CheckResident(side[0].ksp[RESIDENT], "before"));
  for (auto &s : side) PetscCall((*change)(&s.A));
  PetscCall(Compare(side, "after"));
  PetscCall(CheckResident(side[0].ksp[RESIDENT], "after"));
  for (auto &s : side) PetscCall(MatScale(s.A, 2));
  PetscCall(Compare(side, "and scaled"));
  for (auto &s : side) PetscCall(SideDestroy(&s));
  PetscCall(CheckReport(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (const auto &operation : operations) PetscCall(Test(operation.name, operation.change));
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -mat_type aijtc -steps_ksp_tccg_resident false -resident_ksp_tccg_resident true
      filter: sed -e "s/[0-9]* checks/checks/"
      output_file: output/ex17.out

      test:
         suffix: 1

      test:
         suffix: 2
         nsize: 2

      test:
         suffix: cuda
         requires: cuda
         args: -vec_type cuda -use_gpu_aware_mpi 0 -mat_aijtc_keep_csr {{true false}}

      test:
         suffix: cuda_2
         nsize: 2
         requires: cuda
         args: -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
