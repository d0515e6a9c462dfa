static char help[] = "Vectors that are made in the pass of the product that multiplies them: PETSc's numbers wherever a solve ends, on a GPU the bits of steps of their own, and where they are not made so.\n\n\
  -n <n> : points of the grid in each direction\n\n";

#include "ab.h"

static const char made[] = "vectors that are multiplied are made in that pass";

typedef struct {
  KSPType     stock, fused;
  PetscScalar wind;
  const char *makes; /* option */
} Method;

static const Method cg = {KSPCG, "tccg", 0.0, "-ksp_tccg_product_vector"}, bcgs = {KSPBCGS, "tcbcgs", 0.25, "-ksp_tcbcgs_product_vector"}, *method;

/* The 7-point stencil on a cube, all of whose rows have the same numbers. Multiples of 1/4, so that a few products of such are exact */
static PetscErrorCode MatCube(PetscInt n, PetscScalar diag, PetscScalar along, PetscScalar wind, Mat *A)
{
  const PetscInt step[] = {-n * n, -n, -1, 0, 1, n, n * n};

  PetscFunctionBeginUser;
  PetscCall(ABMatCreate(n * n * n, 7, A));
  for (PetscInt row = 0; row < n * n * n; row++) {
    const PetscInt at[] = {row / (n * n), row / n % n, row % n};
    PetscInt       columns[7], many = 0;
    PetscScalar    values[7];

    for (int k = 0; k < 7; k++) {
      if (k < 3 ? at[k] == 0 : (k > 3 && at[6 - k] == n - 1)) continue;
      columns[many]  = row + step[k];
      values[many++] = k == 3 ? diag : along + (k < 3 ? -wind : wind);
    }
    PetscCall(MatSetValues(*A, 1, &row, many, columns, values, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pass makes vectors of our type's alone */
static PetscErrorCode Expected(Mat A, PetscBool *expected)
{
  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char name[], const ABCase *c, PetscBool expected)
{
  PetscBool may;
  char      text[256];

  PetscFunctionBeginUser;
  PetscCall(Expected(c->A, &may));
  PetscCall(ABRunBoth(c, method->stock, method->fused, made, (PetscBool)(may && expected), text, sizeof(text)));
  PetscCall(ABSayOf(method->fused, name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetMaxIt(KSP ksp, void *its)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, *(PetscInt *)its));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Norms(ABCase c)
{
  char name[64];

  PetscFunctionBeginUser;
  for (PCType pc : {PCNONE, PCJACOBI}) {
    c.pc = pc;
    for (KSPNormType norm : {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE}) {
      if (method == &bcgs && (norm == KSP_NORM_NATURAL || norm == KSP_NORM_UNPRECONDITIONED)) continue; /* PETSc has them not from the left */
      c.norm = norm;
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s, norm %s", pc, KSPNormTypes[norm]));
      PetscCall(Compare(name, &c, PETSC_TRUE));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each number of updates that the solution may lack at the end */
static PetscErrorCode Lengths(ABCase c)
{
  char name[64];

  PetscFunctionBeginUser;
  c.tune = SetMaxIt;
  for (PetscInt its = 4; its < 9; its++) {
    c.ctx = &its;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%" PetscInt_FMT " iterations", its));
    PetscCall(Compare(name, &c, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Made in the pass and by steps: the same bits on a GPU; the host's compiler may fuse what the other does not */
static PetscErrorCode SameBits(ABCase c)
{
  char      text[256];
  PetscBool device, same;
  KSP       ksp;
  ABRun     run[2];

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)c.b, VECSEQCUDA, &device));
  for (int k = 0; k < 2; k++) {
    if (k) PetscCall(PetscOptionsSetValue(NULL, method->makes, "false"));
    PetscCall(ABCreate(&c, method->fused, &ksp));
    PetscCall(ABSolve(&c, ksp, &run[k]));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(Compare("switched off", &c, PETSC_FALSE));
  PetscCall(ABCompareRuns(&run[0], &run[1], 0, text, sizeof(text)));
  PetscCall(VecEqual(run[0].x, run[1].x, &same));
  for (PetscInt i = 0; i < run[0].nhist; i++) same = (PetscBool)(same && run[0].hist[i] == run[1].hist[i]);
  if (!text[0] && device && !same) PetscCall(PetscSNPrintf(text, sizeof(text), "other bits"));
  PetscCall(ABSayOf(method->fused, "in the pass and by steps", text));
  for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve of each: how it ends, and whether something was made before */
static PetscErrorCode End(const char name[], const ABCase *c, PetscBool expected)
{
  char      text[256], buffer[4000];
  PetscBool may, says = PETSC_FALSE;
  ABRun     run[2];

  PetscFunctionBeginUser;
  PetscCall(Expected(c->A, &may));
  for (int k = 0; k < 2; k++) {
    KSP ksp;

    PetscCall(ABCreate(c, k ? method->fused : method->stock, &ksp));
    PetscCall(ABSolve(c, ksp, &run[k]));
    if (k) PetscCall(ViewSays((PetscObject)ksp, made, "ex14.txt", buffer, sizeof(buffer), &says));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(ABCompareRuns(&run[0], &run[1], c->flags, text, sizeof(text)));
  if (!text[0] && says != (PetscBool)(may && expected)) PetscCall(PetscSNPrintf(text, sizeof(text), "the view %s \"%s\"", says ? "says" : "does not say", made));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: %s: ", method->fused, name, KSPConvergedReasons[run[1].reason]));
  PetscCall(ABSay("as PETSc's", text));
  for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b <- number in the first row; the second row of A becomes so large that what follows leaves the range of numbers */
static PetscErrorCode Overflow(Mat A, Vec b)
{
  PetscFunctionBeginUser;
  PetscCall(VecSet(b, 0.0));
  PetscCall(VecSetValue(b, 0, 1e100, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(MatSetValue(A, 1, 1, 1e200, INSERT_VALUES));
  PetscCall(ABMatAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a step ends the solve that follows a vector made in the pass */
static PetscErrorCode Ends(PetscInt n, ABCase c)
{
  PetscBool device;
  Mat       A;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)c.b, VECSEQCUDA, &device));
  if (method == &cg) {
    PetscCall(MatCube(n, 2.0, -1.0, 0.0, &c.A));
    PetscCall(End("an indefinite matrix", &c, PETSC_TRUE)); /* the solution lacks updates then */
    PetscCall(MatDestroy(&c.A));
  } else {
    for (PetscInt row = 0; row < n * n * n; row++) PetscCall(VecSetValue(c.b, row, (PetscScalar)(row % 5 - 1), INSERT_VALUES)); /* of which no sum has a rounding error */
    PetscCall(VecAssemblyBegin(c.b));
    PetscCall(VecAssemblyEnd(c.b));
    PetscCall(MatCube(n, 8.0, 0.0, 0.0, &c.A));
    PetscCall(End("s is 0", &c, PETSC_TRUE));
    PetscCall(MatDestroy(&c.A));
    PetscCall(MatCube(n, 0.0, 0.0, 0.25, &c.A)); /* v.rp is 0: the host looks before it multiplies */
    PetscCall(End("a skew-symmetric matrix", &c, device));
    PetscCall(MatDestroy(&c.A));
  }
  PetscCall(MatCube(n, 8.0, -1.0, method->wind, &A));
  PetscCall(Overflow(A, c.b));
  c.A     = A;
  c.flags = AB_END;
  PetscCall(End("numbers out of range", &c, PETSC_TRUE));
  c.norm = KSP_NORM_NONE;
  PetscCall(End("numbers out of range, no norm", &c, PETSC_TRUE));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All(const Method *m, PetscInt n)
{
  ABCase c = {"", NULL, NULL, NULL, NULL, PCNONE, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  Mat    A;
  Vec    b;

  PetscFunctionBeginUser;
  method = m;
  PetscCall(MatCube(n, 8.0, -1.0, m->wind, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  c.A = A;
  c.b = b;
  PetscCall(Norms(c));
  PetscCall(Lengths(c));
  c.x0 = b;
  PetscCall(Compare("nonzero guess", &c, PETSC_TRUE));
  c.x0   = NULL;
  c.tune = ABWatch;
  PetscCall(Compare("a monitor of the user's", &c, (PetscBool)(m == &bcgs))); /* the direction takes the old one's place then */
  c.tune  = NULL;
  c.flags = AB_TRANSPOSE;
  PetscCall(Compare("transposed", &c, PETSC_FALSE));
  c.flags = 0;
  c.pc    = PCSOR;
  if (m == &bcgs) PetscCall(Compare("a preconditioner that is applied", &c, PETSC_FALSE));
  c.pc = PCNONE;
  PetscCall(Ends(n, c));
  PetscCall(ABVecFill(b, 1));
  PetscCall(SameBits(c));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscOptionsClearValue(NULL, m->makes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt n = 9;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(All(&cg, n));
  PetscCall(All(&bcgs, n));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_product_vector true -ksp_tcbcgs_product_vector true -ksp_tccg_ahead 3 -ksp_tccg_directions 4 -ksp_tcbcgs_ahead 3 -ksp_tccg_resident false -ksp_tcbcgs_resident false -ksp_tcbcgs_variant {{classic single}}
      output_file: output/ex14.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type {{aijcusparse aijtc}} -mat_vec_type cuda -n 101

TEST*/
