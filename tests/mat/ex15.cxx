static char help[] = "MatAIJTCMultDot(): product and dot products in one call, against MatMult() and VecDot() of the same matrix; new values, other vectors, wrong arguments.\n\n";

#include "check.h"
#include <petsctc.h>

static const Pattern patterns[] = {
  {"square",    900, 900, Mixed},
  {"wide",      800, 990, Mixed},
  {"tall",      990, 800, Mixed},
  {"zero",      50,  50,  None },
  {"one entry", 1,   1,   Mixed}
};

/* |a - b| within what a sum of the n products of the two vectors can round */
static PetscErrorCode CheckDot(Vec w, Vec y, PetscScalar dot, const char what[])
{
  PetscReal   wnorm, ynorm;
  PetscScalar ref;
  PetscInt    n;

  PetscFunctionBeginUser;
  PetscCall(VecDot(y, w, &ref));
  PetscCall(VecNorm(w, NORM_2, &wnorm));
  PetscCall(VecNorm(y, NORM_2, &ynorm));
  PetscCall(VecGetSize(y, &n));
  PetscCall(Check((PetscBool)(PetscAbsScalar(dot - ref) <= 2 * (n + 3) * PETSC_MACHINE_EPSILON * wnorm * ynorm), "%s: %g, not %g", what, (double)PetscRealPart(dot), (double)PetscRealPart(ref)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y of MatMult(); with our types bit for bit, and two calls give the same bits, which those of cuSPARSE need not */
static PetscErrorCode CheckMultDot(Mat A, Vec x, Vec w, const char what[])
{
  Vec         y, ref;
  PetscScalar wy, again;
  PetscReal   yy, yyagain, norm;
  PetscBool   ours, same;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(A, &ours));
  PetscCall(MatVecs(A, NULL, &y));
  PetscCall(VecDuplicate(y, &ref));
  PetscCall(VecSet(y, 1e300));
  PetscCall(MatAIJTCMultDot(A, x, w, y, &wy, &yy));
  PetscCall(MatMult(A, x, ref));
  PetscCall(VecEqual(y, ref, &same));
  PetscCall(VecNorm(ref, NORM_2, &norm));
  if (ours) PetscCall(Check(same, "%s: the product is not that of MatMult()", what));
  else PetscCall(CheckVec(y, ref, Tolerance(1e-12) * norm, what));
  PetscCall(CheckDot(w, y, wy, what));
  PetscCall(CheckDot(y, y, yy, what));
  PetscCall(MatAIJTCMultDot(A, x, w, y, &again, &yyagain));
  if (ours) PetscCall(Check((PetscBool)(again == wy && yyagain == yy), "%s: other sums the second time", what));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&ref));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPattern(const Pattern *p)
{
  Mat       A;
  Vec       x, w;
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(p, NULL, &A));
  PetscCall(MatVecs(A, &x, &w));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(w, 2));
  PetscCall(CheckMultDot(A, x, w, p->name));
  if (p->M == p->N) PetscCall(CheckMultDot(A, x, x, "with the vector itself"));
  PetscCall(MatScale(A, -0.3));
  PetscCall(CheckMultDot(A, x, w, "new values"));
  PetscCall(CheckOurs(A, &ours));
  if (ours) {
    PetscCall(MatAIJTCSetParams(A, "short=4,long=100")); /* another layout, another number of blocks */
    PetscCall(CheckMultDot(A, x, w, "other classes"));
    PetscCall(MatAIJTCSetCheck(A, PETSC_TRUE, PETSC_DEFAULT));
    PetscCall(CheckMultDot(A, x, w, "checked"));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&w));
  PetscCall(CheckReport(p->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckRefused(Mat A, Vec x, Vec w, Vec y, PetscErrorCode code, const char what[])
{
  PetscScalar wy;
  PetscReal   yy;

  PetscFunctionBeginUser;
  CheckError(code, what, MatAIJTCMultDot(A, x, w, y, &wy, &yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestRefused(void)
{
  Mat A;
  Vec x, w;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(&patterns[1], NULL, &A));
  PetscCall(MatVecs(A, &x, &w));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(w, 2));
  PetscCall(CheckRefused(A, x, w, w, PETSC_ERR_ARG_IDN, "result in w"));
  PetscCall(CheckRefused(A, x, x, w, PETSC_ERR_ARG_SIZ, "w of the columns"));
  PetscCall(CheckRefused(A, w, w, x, PETSC_ERR_ARG_SIZ, "x of the rows"));
  PetscCall(CheckMultDot(A, x, w, "after errors"));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&w));
  PetscCall(CheckReport("refused"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (const Pattern &p : patterns) PetscCall(TestPattern(&p));
  PetscCall(TestRefused());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      filter: sed -e "s/[0-9]* checks/checks/"
      output_file: output/ex15.out
      test:
         suffix: host
         nsize: {{1 2}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda_stock
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2}}
         args: -mat_type aijtc -mat_aijtc_mma {{tensor core}} -vec_type cuda -use_gpu_aware_mpi 0
      test:
         suffix: cuda_bound
         requires: cuda
         args: -mat_type aijtc -vec_type standard -use_gpu_aware_mpi 0

TEST*/
