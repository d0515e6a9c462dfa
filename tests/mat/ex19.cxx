static char help[] = "Who multiplies on the host: the parent, or for stencils with few values, behind enough products, the layout. The products are those of MATAIJ, to the bit.\n\n";

#include <petsctc.h>
#include "check.h"

static PetscInt  SIDE   = 12, ROWS;    /* of the grid; -side 16 has lines that samples at equal distances would all begin with */
static PetscBool forced = PETSC_FALSE; /* the layout is asked for */
enum {
  BUILD_AFTER   = 64, /* src/mat/aijtc/hostchoice.cxx */
  REFRESH_AFTER = 8
};

/* A 7-point matrix; scatter: each entry times another number, so that no two are alike */
static PetscErrorCode Stencil(MatType type, PetscBool scatter, Mat *A)
{
  const PetscInt far[] = {-SIDE * SIDE, -SIDE, -1, 0, 1, SIDE, SIDE * SIDE};

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, ROWS, ROWS, ROWS, ROWS));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 8, NULL));
  for (PetscInt r = 0; r < ROWS; r++) {
    const PetscInt at[] = {r % SIDE, r / SIDE % SIDE, r / (SIDE * SIDE)};

    for (PetscInt f : far) {
      const PetscInt step = PetscAbsInt(f), along = step == SIDE * SIDE ? 2 : step == SIDE ? 1 : 0, to = at[along] + (f > 0) - (f < 0);

      if (f && (to < 0 || to >= SIDE)) continue;
      PetscCall(MatSetValue(*A, r, r + f, (f ? -1.0 - along : 12.5) * (scatter ? 1.0 + PetscSinReal((PetscReal)(r + 3 * f)) / 8 : 1.0), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat A, R; /* ours, and MATAIJ */
  Vec x, y, s, t;
} Pair;

static PetscErrorCode PairBegin(PetscBool scatter, Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(Stencil(MATSEQAIJTC, scatter, &p->A));
  PetscCall(Stencil(MATSEQAIJ, scatter, &p->R));
  PetscCall(MatCreateVecs(p->A, &p->x, &p->y));
  PetscCall(VecDuplicate(p->y, &p->s));
  PetscCall(VecDuplicate(p->y, &p->t));
  PetscCall(VecFill(p->x, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PairEnd(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&p->A));
  PetscCall(MatDestroy(&p->R));
  PetscCall(VecDestroy(&p->x));
  PetscCall(VecDestroy(&p->y));
  PetscCall(VecDestroy(&p->s));
  PetscCall(VecDestroy(&p->t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products, each that of MATAIJ; then so many layouts have been built, and refreshed */
static PetscErrorCode Products(Pair *p, PetscInt n, PetscInt builds, PetscInt refreshes, const char what[])
{
  MatAIJTCInfo info;
  PetscReal    difference, norm;
  PetscBool    same, inplace;

  PetscFunctionBeginUser;
  PetscCall(MatMult(p->R, p->x, p->s));
  PetscCall(VecNorm(p->s, NORM_INFINITY, &norm));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(VecSet(p->y, PETSC_MAX_REAL));
    PetscCall(MatMult(p->A, p->x, p->y));
    PetscCall(VecAXPY(p->y, -1.0, p->s));
    PetscCall(VecNorm(p->y, NORM_INFINITY, &difference));
    PetscCall(Check((PetscBool)(difference <= PETSC_MACHINE_EPSILON * norm), "%s: product %" PetscInt_FMT " differs by %g of %g", what, k, (double)difference, (double)norm)); /* 0 unless PETSc fuses multiplications and additions */
  }
  for (Vec y : {p->x, p->s}) { /* unless the layout is asked for, the parent's, and y and z may be one */
    PetscCall(MatMultAdd(p->A, p->x, y, p->y));
    PetscCall(MatMultAdd(p->R, p->x, y, p->t));
    PetscCall(VecEqual(p->y, p->t, &same));
    PetscCall(VecCopy(y, p->y));
    PetscCall(MatMultAdd(p->A, p->x, p->y, p->y));
    PetscCall(VecEqual(p->y, p->t, &inplace));
    PetscCall(Check((PetscBool)(forced || (same && inplace)), "%s: y + A x differs", what));
  }
  PetscCall(MatAIJTCGetInfo(p->A, &info));
  PetscCall(
    Check((PetscBool)(info.builds == builds && info.refreshes == refreshes), "%s: %" PetscInt_FMT " builds and %" PetscInt_FMT " refreshes, expected %" PetscInt_FMT " and %" PetscInt_FMT, what, info.builds, info.refreshes, builds, refreshes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Behind new values as many products wait for them to stay */
static PetscErrorCode NewValues(Pair *p)
{
  PetscFunctionBeginUser;
  for (Mat M : {p->A, p->R}) PetscCall(MatScale(M, 2.0));
  PetscCall(Products(p, REFRESH_AFTER, 1, 0, "new values"));
  PetscCall(Products(p, 1, 1, 1, "new values, behind enough products"));
  for (PetscInt step = 0; step < 20; step++) { /* of an iteration that changes them all the time */
    for (Mat M : {p->A, p->R}) PetscCall(MatScale(M, 1.5));
    PetscCall(Products(p, REFRESH_AFTER, 1, 1, "values that change often"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that do not compress: the parent multiplies from then on */
static PetscErrorCode OtherValues(Pair *p)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(p->x, &d));
  PetscCall(VecFill(d, 2));
  for (Mat M : {p->A, p->R}) PetscCall(MatDiagonalScale(M, d, NULL));
  PetscCall(Products(p, REFRESH_AFTER, 1, 1, "scattered values"));
  PetscCall(Products(p, 2 * BUILD_AFTER, 2, 1, "scattered values, behind enough products")); /* tried, and given up */
  for (Mat M : {p->A, p->R}) PetscCall(MatScale(M, 0.5));
  PetscCall(Products(p, 2 * BUILD_AFTER, 2, 1, "scattered values, again new"));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new nonzero: counted from the beginning */
static PetscErrorCode NewPattern(Pair *p)
{
  PetscFunctionBeginUser;
  for (Mat M : {p->A, p->R}) {
    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValue(M, 0, ROWS - 1, 3.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(Products(p, BUILD_AFTER, 1, 0, "new pattern"));
  PetscCall(Products(p, 1, 2, 0, "new pattern, behind enough products"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AutoTests(void)
{
  Pair p;

  PetscFunctionBeginUser;
  PetscCall(PairBegin(PETSC_FALSE, &p));
  PetscCall(Products(&p, BUILD_AFTER, 0, 0, "a stencil"));
  PetscCall(Products(&p, 1, 1, 0, "a stencil, behind enough products"));
  PetscCall(Products(&p, BUILD_AFTER, 1, 0, "a stencil, by its layout"));
  PetscCall(NewValues(&p));
  PetscCall(OtherValues(&p));
  PetscCall(PairEnd(&p));
  PetscCall(CheckReport("a stencil with few values"));

  PetscCall(PairBegin(PETSC_FALSE, &p));
  PetscCall(Products(&p, BUILD_AFTER + 1, 1, 0, "a stencil"));
  PetscCall(NewPattern(&p));
  PetscCall(PairEnd(&p));
  PetscCall(CheckReport("its pattern changes"));

  PetscCall(PairBegin(PETSC_TRUE, &p));
  PetscCall(Products(&p, 3 * BUILD_AFTER, 0, 0, "a stencil with scattered values"));
  PetscCall(PairEnd(&p));
  PetscCall(CheckReport("a stencil with scattered values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The layout is asked for */
static PetscErrorCode ForcedTests(void)
{
  Pair p;

  PetscFunctionBeginUser;
  PetscCall(PairBegin(PETSC_TRUE, &p));
  PetscCall(Products(&p, 1, 1, 0, "asked for"));
  for (Mat M : {p.A, p.R}) PetscCall(MatScale(M, 2.0));
  PetscCall(Products(&p, 1, 1, 1, "asked for, new values"));
  PetscCall(PairEnd(&p));
  PetscCall(CheckReport("the layout is asked for"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTCInitialize());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-forced", &forced, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &SIDE, NULL));
  ROWS = SIDE * SIDE * SIDE;
  PetscCall(forced ? ForcedTests() : AutoTests());
  PetscCall(PetscFinalize());
  return AllFailures > 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -device_enable none -malloc_debug -malloc_dump
      test:
         suffix: auto
         args: -mat_aijtc_backend auto -side {{12 16}}
      test:
         suffix: forced
         args: -forced -mat_aijtc_backend host
      test:
         suffix: checked
         args: -forced -mat_aijtc_backend auto -mat_aijtc_check
         output_file: output/ex19_forced.out

TEST*/
