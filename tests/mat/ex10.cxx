static char help[] = "-mat_aijtc_check raises an error when a product differs from the parent's, and only then; the matrix works afterwards.\n\n";

#include "check.h"
#include <cmath>
#include <petsctc.h>

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1100 + 20 * row;
}
static const Pattern pattern = {"pattern", 60, 2400, Width}; /* rows of several pieces: only they are summed in another order on the host */

/* z <- A x in vectors of its own, since an error leaves them in use; the error code is returned quietly */
static PetscErrorCode Multiply(Mat A, PetscScalar first, PetscBool add, PetscErrorCode *error)
{
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(VecSetValue(x, 0, first, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscCall(VecFill(y, 2));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  *error = add ? MatMultAdd(A, x, y, z) : MatMult(A, x, z);
  PetscCall(PetscPopErrorHandler());
  if (!*error) {
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckCode(Mat A, PetscScalar first, PetscErrorCode expected, const char what[])
{
  PetscErrorCode error = PETSC_SUCCESS;

  PetscFunctionBeginUser;
  for (int add = 0; add < 2; add++) {
    PetscCall(Multiply(A, first, (PetscBool)add, &error));
    PetscCall(Check((PetscBool)(error == expected), "%s%s: error code %d, not %d", what, add ? ", added" : "", (int)error, (int)expected));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums in another order differ by rounding: allowed by the default tolerance, not by 0 */
static PetscErrorCode TestRounding(void)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
  PetscCall(CheckCode(A, 1.0, PETSC_SUCCESS, "default tolerance"));
  PetscCall(CheckCode(A, INFINITY, PETSC_SUCCESS, "Inf in x"));
  PetscCall(CheckCode(A, NAN, PETSC_SUCCESS, "NaN in x"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, 0.0));
  PetscCall(CheckCode(A, 1.0, PETSC_ERR_PLIB, "tolerance 0"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_FALSE, PETSC_DEFAULT));
  PetscCall(CheckMult(A, R, "not checked"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
  PetscCall(CheckMult(A, R, "checked again"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(CheckMult(A, R, "checked, other values"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("rounding"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values changed behind PETSc's back, so that the layout keeps the old ones: found by the check alone. On a GPU the parent's product would not see them either */
static PetscErrorCode TestStale(void)
{
  Mat                A, R;
  const PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&pattern, NULL, &A));
  PetscCall(MatFromPattern(&pattern, MATAIJ, &R));
  PetscCall(CheckMult(A, R, "before"));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  const_cast<PetscScalar *>(a)[1234] += PetscDefined(USE_REAL_SINGLE) ? 64.0 : 1e-6; /* 1e-4 and 1e-12 of ||A||_F ||x||_2 = 8e3 are allowed by default */
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(CheckMult(A, R, "not checked"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
  PetscCall(CheckCode(A, 1.0, PETSC_ERR_PLIB, "stale layout"));
  PetscCall(CheckCode(A, INFINITY, PETSC_ERR_PLIB, "stale layout, Inf in x"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PetscDefined(USE_REAL_SINGLE) ? 0.1 : 1e-3));
  PetscCall(CheckCode(A, 1.0, PETSC_SUCCESS, "stale layout, large tolerance"));
  PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY)); /* now PETSc knows */
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(CheckCode(A, 1.0, PETSC_SUCCESS, "layout refreshed"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("stale layout"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool stale = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-stale", &stale, NULL));
  if (stale) PetscCall(TestStale());
  else PetscCall(TestRounding());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_dump false -mat_type aijtc # PETSc itself leaks when it errors
      test:
         suffix: rounding
         output_file: output/ex10.out
      test:
         suffix: stale
         args: -stale -mat_aijtc_backend host
         output_file: output/ex10_stale.out
      test:
         suffix: cuda
         requires: cuda
         args: -vec_type cuda -mat_aijtc_mma {{tensor core}}
         output_file: output/ex10.out

TEST*/
