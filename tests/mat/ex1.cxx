static char help[] = "Products of MATAIJTC with a vector on awkward patterns: every kind, added or not, in place or not, transposed, with Inf and NaN.\n\n";

#include "check.h"
#include <cmath>

static PetscInt One(PetscInt, PetscInt)
{
  return 1;
}
static PetscInt Upto4(PetscInt row, PetscInt)
{
  return row % 5;
}
static PetscInt Medium(PetscInt row, PetscInt)
{
  return 5 + (row * row) % 29;
}
static PetscInt Long(PetscInt row, PetscInt)
{
  return 257 + 5 * row;
}
static PetscInt OneDense(PetscInt row, PetscInt N)
{
  return row == 41 ? N : 1 + row % 3;
}
static PetscInt Gaps(PetscInt row, PetscInt)
{
  return row % 4 ? 0 : 6 + row % 7;
}
static PetscInt Random(PetscInt row, PetscInt)
{
  return (PetscInt)(((PetscInt64)row * 2654435761) % 601);
}

static const Pattern patterns[] = {
  {"1 x 1",                          1,   1,   One     },
  {"1 x 1 without entry",            1,   1,   None    },
  {"two rows, fewer than processes", 2,   2,   Upto4   },
  {"no rows",                        0,   5,   None    },
  {"no columns",                     5,   0,   None    },
  {"no nonzeros",                    37,  29,  None    },
  {"short rows",                     203, 203, Upto4   },
  {"short rows, wide",               61,  300, Upto4   },
  {"short rows, tall",               300, 61,  Upto4   },
  {"medium rows",                    131, 131, Medium  },
  {"medium rows, tall",              203, 35,  Medium  },
  {"medium rows, wide",              45,  400, Medium  },
  {"all rows long",                  23,  700, Long    },
  {"a dense row among short ones",   150, 900, OneDense},
  {"mostly empty rows",              210, 90,  Gaps    },
  {"one row",                        1,   77,  Medium  },
  {"one column",                     77,  1,   One     },
  {"lengths 0 to 600",               120, 650, Random  }
};

/* z <- op(A) x or y + op(A) x, y apart from z or z itself, by A and by the reference */
static PetscErrorCode Products(Mat A, Mat R, PetscReal anorm, PetscBool transpose, const char name[])
{
  Vec       x, y, z, xr, yr, zr, first;
  PetscReal xnorm, bound;
  PetscBool same, stock;
  char      what[128];

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &stock, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  if (transpose) {
    PetscCall(MatVecs(A, &y, &x));
    PetscCall(MatCreateVecs(R, &yr, &xr));
  } else {
    PetscCall(MatVecs(A, &x, &y));
    PetscCall(MatCreateVecs(R, &xr, &yr));
  }
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &first));
  PetscCall(VecDuplicate(yr, &zr));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(xr, 1));
  PetscCall(VecNorm(xr, NORM_2, &xnorm));
  bound = 64 * PETSC_MACHINE_EPSILON * (anorm * xnorm + 1.0); /* the entries added to are at most 1 */

  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s", name, transpose ? ", transposed" : ""));
  PetscCall(VecSet(z, 1e300)); /* what was there must not matter */
  PetscCall((transpose ? MatMultTranspose : MatMult)(A, x, z));
  PetscCall((transpose ? MatMultTranspose : MatMult)(R, xr, zr));
  PetscCall(CheckVec(z, zr, bound, what));

  PetscCall(VecCopy(z, first));
  PetscCall(VecSet(z, -1e300));
  PetscCall((transpose ? MatMultTranspose : MatMult)(A, x, z));
  if (!transpose) {
    PetscCall(VecEqual(z, first, &same));
    PetscCall(Check((PetscBool)(same || stock), "%s: other bits the second time", what)); /* cuSPARSE promises none */
  }

  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s, added", name, transpose ? ", transposed" : ""));
  PetscCall(VecFill(y, 2));
  PetscCall(VecFill(yr, 2));
  PetscCall(VecSet(z, stock && transpose ? 0.0 : 1e300)); /* AIJCUSPARSE's transposed product adds what was there */
  PetscCall((transpose ? MatMultTransposeAdd : MatMultAdd)(A, x, y, z));
  PetscCall((transpose ? MatMultTransposeAdd : MatMultAdd)(R, xr, yr, zr));
  PetscCall(CheckVec(z, zr, bound, what));

  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s, added in place", name, transpose ? ", transposed" : ""));
  PetscCall((transpose ? MatMultTransposeAdd : MatMultAdd)(A, x, y, y));
  PetscCall(CheckVec(y, zr, bound, what));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&first));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscCall(VecDestroy(&zr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An Inf or NaN in x reaches the rows that have the entry and no other: padding must not read it */
static PetscErrorCode NotFinite(Mat A, Mat R, PetscReal anorm, PetscInt N, PetscScalar bad, const char name[])
{
  const PetscInt at[] = {0, N / 2, N - 1};
  Vec            x, y, xr, yr;

  PetscFunctionBeginUser;
  if (!N) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(MatCreateVecs(R, &xr, &yr));
  for (PetscInt j : at) {
    for (Vec v : {x, xr}) {
      PetscInt     start, end;
      PetscScalar *a;

      PetscCall(VecFill(v, 3));
      PetscCall(VecGetOwnershipRange(v, &start, &end));
      PetscCall(VecGetArray(v, &a));
      if (j >= start && j < end) a[j - start] = bad;
      PetscCall(VecRestoreArray(v, &a));
    }
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMult(R, xr, yr));
    PetscCall(CheckVec(y, yr, 64 * PETSC_MACHINE_EPSILON * anorm * PetscSqrtReal((PetscReal)N), name));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&xr));
  PetscCall(VecDestroy(&yr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (const Pattern &p : patterns) {
    Mat       A, R;
    PetscReal anorm;

    PetscCall(MatFromPattern(&p, NULL, &A));
    PetscCall(MatFromPattern(&p, MATAIJ, &R));
    PetscCall(MatNorm(R, NORM_FROBENIUS, &anorm));
    PetscCall(Products(A, R, anorm, PETSC_FALSE, p.name));
    PetscCall(Products(A, R, anorm, PETSC_TRUE, p.name));
    PetscCall(NotFinite(A, R, anorm, p.N, INFINITY, p.name));
    PetscCall(NotFinite(A, R, anorm, p.N, NAN, p.name));
    PetscCall(CheckReport(p.name));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex1.out
      test:
         suffix: host
         nsize: {{1 2 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: classes
         args: -mat_type aijtc -mat_aijtc_params {{long=4,short=0,window=0 long=4,short=1,window=16 long=4,short=4,window=0 long=32,short=0,window=16 long=32,short=1,window=0 long=32,short=4,window=16}}
      test:
         suffix: classes_mpi
         nsize: 3
         args: -mat_type aijtc -mat_aijtc_params {{long=16,short=0,window=0 long=16,short=0,window=7 long=16,short=2,window=0 long=16,short=2,window=7}}
      test:
         suffix: form
         args: -mat_type aijtc -mat_aijtc_params {{form=auto form=tile form=row}} -mat_aijtc_compress {{auto off pattern value}}
      test:
         suffix: groups
         nsize: {{1 3}}
         args: -mat_type aijtc -mat_aijtc_params {{short=6,rows=1 short=6,rows=2 short=6,rows=4}}
      test:
         suffix: check
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_check
      test:
         suffix: cuda_stock
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2 4}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_classes
         requires: cuda
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -mat_aijtc_params {{long=4,short=0,window=0 long=4,short=1,window=16 long=4,short=4,window=0 long=32,short=0,window=16 long=32,short=1,window=0 long=32,short=4,window=16}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_form
         requires: cuda
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -mat_aijtc_params {{form=auto form=tile form=row}} -mat_aijtc_compress {{auto off pattern value}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_groups
         requires: cuda
         nsize: {{1 3}}
         args: -mat_type aijtc -mat_aijtc_params {{short=6,rows=1 short=6,rows=2 short=6,rows=4}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_check
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_check -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
