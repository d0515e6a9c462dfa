static char help[] = "PCPBJACOBI and PCVPBJACOBI as part of the steps: PETSc's numbers, their application, when blocks are taken, and when they are not part of them.\n\n";

#include <petsc/private/petscimpl.h>
#include "ab.h"

static const char in_steps[] = "the preconditioner is part of the steps";

static PetscErrorCode InSteps(KSP ksp, PetscBool *is)
{
  char buffer[4000];

  PetscFunctionBeginUser;
  PetscCall(ViewSays((PetscObject)ksp, in_steps, "ex12.txt", buffer, sizeof(buffer), is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of these sizes by turns */
static PetscErrorCode SetSizes(Mat A, PetscInt nturns, const PetscInt turns[])
{
  PetscInt n, nblocks = 0, *sizes;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n, &sizes));
  for (PetscInt row = 0; row < n; row += sizes[nblocks++]) sizes[nblocks] = PetscMin(n - row, turns[nblocks % nturns]);
  PetscCall(MatSetVariableBlockSizes(A, nblocks, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Up to 6 rows */
static PetscErrorCode SetSomeSizes(Mat A)
{
  const PetscInt turns[] = {1, 5, 6, 2, 4, 3, 6, 6, 3};

  PetscFunctionBeginUser;
  PetscCall(SetSizes(A, PETSC_STATIC_ARRAY_LENGTH(turns), turns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PETSc's solve and ours */

static PetscErrorCode Compare(const char name[], const ABCase *c, KSPType stock, KSPType fused, PetscBool expected)
{
  char text[256];

  PetscFunctionBeginUser;
  PetscCall(ABRunBoth(c, stock, fused, in_steps, expected, text, sizeof(text)));
  PetscCall(ABSay(name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sizes(KSPType stock, KSPType fused, PetscReal wind, PetscInt nnorms)
{
  const KSPNormType norms[] = {KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_UNPRECONDITIONED, KSP_NORM_NONE};
  char              name[128];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < nnorms; k++) {
    for (PetscInt bs : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17}) {
      const PetscBool expected = (PetscBool)(bs > 1 && bs < 17 && (k < 2 || wind != 0.0)); /* CG makes z in an update where it makes the norm */
      ABCase          c        = {"", NULL, NULL, NULL, NULL, PCPBJACOBI, norms[k], PC_SIDE_DEFAULT, 0, NULL, NULL};

      PetscCall(ABMatBlocks(15, 13, bs, wind == 0.0 ? 0.5 : 5.0, wind, &c.A));
      PetscCall(MatCreateVecs(c.A, NULL, &c.b));
      PetscCall(ABVecFill(c.b, 1));
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s, norm %s, blocks of %" PetscInt_FMT, fused, KSPNormTypes[norms[k]], bs));
      PetscCall(Compare(name, &c, stock, fused, expected));
      PetscCall(VecDestroy(&c.b));
      PetscCall(MatDestroy(&c.A));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Varied(KSPType stock, KSPType fused, Mat A, Vec b)
{
  const struct {
    const char *name;
    PetscBool   expected;
    PetscInt    n, turns[4];
  } all[] = {
    {"1 or 2 rows",  PETSC_TRUE,  2, {1, 2}       },
    {"3 to 16 rows", PETSC_TRUE,  4, {3, 16, 7, 5}},
    {"4 rows",       PETSC_TRUE,  1, {4}          },
    {"one row",      PETSC_FALSE, 1, {1}          },
    {"2 or 17 rows", PETSC_FALSE, 2, {2, 17}      }
  };
  char name[128];

  PetscFunctionBeginUser;
  for (const auto &sizes : all) {
    ABCase c = {"", NULL, NULL, b, NULL, PCVPBJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &c.A));
    PetscCall(MatShift(c.A, 60.0)); /* in few iterations */
    PetscCall(SetSizes(c.A, sizes.n, sizes.turns));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, blocks of %s", fused, sizes.name));
    PetscCall(Compare(name, &c, stock, fused, sizes.expected));
    PetscCall(MatDestroy(&c.A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sides(Mat A, Mat N, Vec b)
{
  ABCase c = {"", N, NULL, b, NULL, PCPBJACOBI, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 0, NULL, NULL};

  PetscFunctionBeginUser;
  PetscCall(Compare("tcbcgs, from the right", &c, KSPBCGS, "tcbcgs", PETSC_FALSE));
  c.side  = PC_LEFT;
  c.norm  = KSP_NORM_PRECONDITIONED;
  c.flags = AB_TRANSPOSE;
  PetscCall(Compare("tcbcgs, transposed", &c, KSPBCGS, "tcbcgs", PETSC_FALSE));
  c.A = A;
  PetscCall(Compare("tccg, transposed", &c, KSPCG, "tccg", PETSC_TRUE));
  c.P = N; /* whose blocks are not symmetric */
  PetscCall(Compare("tccg, transposed, of another matrix", &c, KSPCG, "tccg", PETSC_TRUE));
  c.flags = 0;
  PetscCall(Compare("tccg, of another matrix", &c, KSPCG, "tccg", PETSC_TRUE));
  c.P  = NULL;
  c.x0 = b;
  PetscCall(Compare("tccg, nonzero guess", &c, KSPCG, "tccg", PETSC_TRUE));
  c.A = N;
  PetscCall(Compare("tcbcgs, nonzero guess", &c, KSPBCGS, "tcbcgs", PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices that are of blocks themselves */
static PetscErrorCode Blocked(KSPType stock, KSPType fused, Mat A, MatType type)
{
  ABCase c = {"", NULL, NULL, NULL, NULL, PCPBJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  char   name[128];

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &c.A));
  PetscCall(MatCreateVecs(c.A, NULL, &c.b));
  PetscCall(ABVecFill(c.b, 1));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s", fused, type));
  PetscCall(Compare(name, &c, stock, fused, PETSC_TRUE));
  PetscCall(VecDestroy(&c.b));
  PetscCall(MatDestroy(&c.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NullSpace(void)
{
  ABCase       c = {"", NULL, NULL, NULL, NULL, PCPBJACOBI, KSP_NORM_PRECONDITIONED, PC_SIDE_DEFAULT, 0, NULL, NULL};
  MatNullSpace constants;

  PetscFunctionBeginUser;
  PetscCall(ABMatBlocks(9, 8, 3, 0.0, 0.0, &c.A));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, 0, NULL, &constants));
  PetscCall(MatSetNullSpace(c.A, constants));
  PetscCall(MatCreateVecs(c.A, NULL, &c.b));
  PetscCall(ABVecFill(c.b, 1));
  PetscCall(MatNullSpaceRemove(constants, c.b));
  PetscCall(Compare("tccg, null space", &c, KSPCG, "tccg", PETSC_TRUE));
  PetscCall(Compare("tcbcgs, null space", &c, KSPBCGS, "tcbcgs", PETSC_TRUE));
  PetscCall(MatNullSpaceDestroy(&constants));
  PetscCall(VecDestroy(&c.b));
  PetscCall(MatDestroy(&c.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the same application in a shell, which is none that is part of the steps: on the host the same bits */

static PetscErrorCode ShellApply(PC pc, Vec x, Vec y)
{
  PC inner;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &inner));
  PetscCall(PCApply(inner, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InShell(KSP ksp, void *ctx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSHELL));
  PetscCall(PCShellSetContext(pc, ctx));
  PetscCall(PCShellSetApply(pc, ShellApply));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bits(KSPType type, PCType pctype, Mat A, Vec b, KSPNormType norm, const char what[])
{
  ABRun     run[2];
  PC        inner;
  PetscBool device, same[2] = {PETSC_TRUE, PETSC_TRUE};
  char      text[256], name[128];

  PetscFunctionBeginUser;
  PetscCall(PCCreate(PETSC_COMM_SELF, &inner));
  PetscCall(PCSetType(inner, pctype));
  PetscCall(PCSetOperators(inner, A, A));
  for (int k = 0; k < 2; k++) {
    const ABCase c = {"", A, NULL, b, NULL, pctype, norm, PC_SIDE_DEFAULT, 0, k ? InShell : NULL, inner};
    KSP          ksp;
    PetscBool    is;

    PetscCall(ABCreate(&c, type, &ksp));
    PetscCall(ABSolve(&c, ksp, &run[k]));
    PetscCall(InSteps(ksp, &is));
    if (is == (PetscBool)(k == 1)) ABFailures++;
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(PetscObjectTypeCompare((PetscObject)b, VECSEQCUDA, &device));
  PetscCall(ABCompareRuns(&run[0], &run[1], device ? AB_END : 0, text, sizeof(text)));
  if (device) { /* cuBLAS adds up in an order of its own, which BiCGSTAB amplifies as it goes */
    for (PetscInt i = 0; i < PetscMin(10, run[0].nhist); i++) same[0] = (PetscBool)(same[0] && ABNear(run[0].hist[i], run[1].hist[i], 1e-6, 0.0));
  } else {
    PetscCall(PetscArraycmp(run[0].hist, run[1].hist, run[0].nhist, &same[0]));
    PetscCall(VecEqual(run[0].x, run[1].x, &same[1]));
  }
  if (!text[0] && (!same[0] || !same[1])) PetscCall(PetscSNPrintf(text, sizeof(text), "other bits in history %d, solution %d", !same[0], !same[1]));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, bits of %s%s", type, pctype, what));
  PetscCall(ABSay(name, text));
  for (ABRun &r : run) PetscCall(VecDestroy(&r.x));
  PetscCall(PCDestroy(&inner));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- repeated solves: when blocks are taken */

static PetscErrorCode Applications(PetscInt *count)
{
  static PetscLogEvent event = -1;
  PetscEventPerfInfo   info;

  PetscFunctionBeginUser;
  if (event < 0) PetscCall(PetscLogEventGetId("PCApply", &event));
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
  *count = info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other type has an application an iteration, and one at the beginning; ours one at the beginning, and one for each column and one more where blocks are taken */
static PetscErrorCode Count(KSP ksp, PetscBool transposed, Vec b, Vec x, PetscInt expected, const char what[])
{
  PetscInt before, after;
  char     text[128] = "";

  PetscFunctionBeginUser;
  PetscCall(Applications(&before));
  PetscCall((transposed ? KSPSolveTranspose : KSPSolve)(ksp, b, x));
  PetscCall(Applications(&after));
  if (after - before != expected) PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " applications, not %" PetscInt_FMT, after - before, expected));
  PetscCall(ABSay(what, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another matrix in the same state */
static PetscErrorCode Twin(Mat C, Mat D)
{
  PetscObjectState c, d;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectStateGet((PetscObject)C, &c));
  PetscCall(PetscObjectStateGet((PetscObject)D, &d));
  for (; d < c; d++) PetscCall(PetscObjectStateIncrease((PetscObject)D));
  PetscCheck(c == d, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The duplicate has had more states than the matrix");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solve 4 keeps the preconditioner, whose blocks are looked at again: somebody may have made them anew. n: solves; BiCGSTAB does not apply it in the steps of the transposed one */
static PetscErrorCode Repeated(KSPType type, PCType pctype, Mat A, Vec b, int n)
{
  const char *const what[] = {"first solve", "again", "other values", "again", "old blocks kept for other values", "other values, no longer kept", "other right-hand side", "another matrix", "transposed"};
  Mat               C, D;
  KSP               ksp;
  PC                pc;
  Vec               x;
  PetscInt          bs;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &D));
  PetscCall(SetSomeSizes(C));
  PetscCall(SetSomeSizes(D));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatGetBlockSize(C, &bs));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, C, C));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 8));
  for (int k = 0; k < n; k++) {
    const PetscBool takes = (PetscBool)(k == 0 || k == 2 || k == 4 || k == 5 || k >= 7);
    char            name[128];

    if (k == 2 || k == 4) PetscCall(MatShift(C, 0.25));
    if (k == 4 || k == 5) PetscCall(KSPSetReusePreconditioner(ksp, (PetscBool)(k == 4)));
    if (k == 6) PetscCall(VecScale(b, 2.0));
    if (k == 7) PetscCall(Twin(C, D));
    if (k == 7) PetscCall(KSPSetOperators(ksp, D, D));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, applications of %s, %s", type, pctype, what[k]));
    PetscCall(Count(ksp, (PetscBool)(k == 8), b, x, 1 + (takes ? bs + 1 : 0), name));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the second of two solves of 10 iterations logs */
static PetscErrorCode FlopsOf(KSPType type, Mat A, Vec b, PetscLogDouble *flops)
{
  KSP            ksp;
  PC             pc;
  Vec            x;
  PetscLogDouble before;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &x));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCPBJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, PETSC_CURRENT, 10));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscGetFlops(&before));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscGetFlops(flops));
  *flops -= before;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's on the host, but for some operations a row that begin or end a solve: on a GPU some of its operations log none, and one by cuBLAS others */
static PetscErrorCode Flops(KSPType stock, KSPType fused, Mat A, Vec b)
{
  PetscLogDouble expected, flops, more;
  PetscInt       n;
  Mat            H;
  Vec            h;
  char           text[128] = "", name[64];

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(b, &n));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &H)); /* with the block size */
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &h));
  PetscCall(VecCopy(b, h));
  PetscCall(FlopsOf(stock, H, h, &expected));
  PetscCall(FlopsOf(fused, A, b, &flops));
  PetscCall(MatDestroy(&H));
  PetscCall(VecDestroy(&h));
  more = (flops - expected) / n;
  if (PetscAbsReal((PetscReal)more) > 9.0) PetscCall(PetscSNPrintf(text, sizeof(text), "%g a row more than %s", more, stock));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, flops", fused));
  PetscCall(ABSay(name, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves of one object by both types: other values, a preconditioner of old values, a monitor that changes the matrix, its block size or the preconditioner */

static PetscErrorCode ScalingMonitor(KSP ksp, PetscInt it, PetscReal, PetscCtx)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  if (it == 3) PetscCall(MatScale(A, 1.25));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockSizeMonitor(KSP ksp, PetscInt it, PetscReal, PetscCtx)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  if (it == 2) PetscCall(MatSetBlockSize(A, 2));
  if (it == 3) PetscCall(MatShift(A, 0.5)); /* the next application is with blocks of 2 */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TypeMonitor(KSP ksp, PetscInt it, PetscReal, PetscCtx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  if (it == 3) PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt           its, nhist;
  KSPConvergedReason reason;
  PetscBool          in_steps;
} Solved;

enum {
  SERIES = 10
};

static PetscErrorCode SeriesTune(KSP ksp, Mat C, PetscInt k)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPMonitorCancel(ksp));
  PetscCall(KSPSetReusePreconditioner(ksp, (PetscBool)(k == 2)));
  if (k == 1 || k == 2) PetscCall(MatShift(C, 3.0));
  if (k == 4) PetscCall(MatSetBlockSize(C, 2)); /* the preconditioner is that of blocks of 6 still */
  if (k == 5) PetscCall(MatShift(C, 1.0));      /* now it is not */
  if (k == 6) PetscCall(MatSetBlockSize(C, 6)); /* blocks of 6 that are each three of 2 */
  if (k == 7) PetscCall(KSPMonitorSet(ksp, ScalingMonitor, NULL, NULL));
  if (k == 8) PetscCall(KSPMonitorSet(ksp, BlockSizeMonitor, NULL, NULL));
  if (k == 9) PetscCall(KSPMonitorSet(ksp, TypeMonitor, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Series(KSPType type, Mat A, Vec b, Solved s[], Vec x[])
{
  Mat       C;
  KSP       ksp;
  PC        pc;
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(type, "tc", 2, &ours));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, C, C));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCPBJACOBI));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_PRECONDITIONED));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, AB_MAX_IT));
  for (PetscInt k = 0; k < SERIES; k++) {
    PetscCall(SeriesTune(ksp, C, k));
    PetscCall(VecDuplicate(b, &x[k]));
    PetscCall(KSPSolve(ksp, b, x[k]));
    PetscCall(KSPGetIterationNumber(ksp, &s[k].its));
    PetscCall(KSPGetConvergedReason(ksp, &s[k].reason));
    s[k].in_steps = PETSC_FALSE;
    if (ours) PetscCall(InSteps(ksp, &s[k].in_steps));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same iterations, reasons and, but for rounding, solutions */
static PetscErrorCode SameSeries(KSPType stock, KSPType fused, Mat A, Vec b)
{
  const char *const what[SERIES] = {"at first",
                                    "other values",
                                    "a preconditioner of old values",
                                    "its own again",
                                    "another block size, blocks as they were",
                                    "blocks of 2",
                                    "blocks of 6 that are three of 2",
                                    "a monitor scales the matrix",
                                    "a monitor changes the block size",
                                    "a monitor changes the preconditioner"};
  Solved            s[2][SERIES];
  Vec               x[2][SERIES];

  PetscFunctionBeginUser;
  PetscCall(Series(stock, A, b, s[0], x[0]));
  PetscCall(Series(fused, A, b, s[1], x[1]));
  for (PetscInt k = 0; k < SERIES; k++) {
    const PetscBool expected = (PetscBool)(k != 4);
    PetscReal       norm, difference;
    char            text[256] = "", name[128];

    PetscCall(VecNorm(x[0][k], NORM_2, &norm));
    PetscCall(VecAXPY(x[1][k], -1.0, x[0][k]));
    PetscCall(VecNorm(x[1][k], NORM_2, &difference));
    if (s[0][k].its != s[1][k].its || s[0][k].reason != s[1][k].reason || s[0][k].its < 4)
      PetscCall(PetscSNPrintf(text, sizeof(text), "%s after %" PetscInt_FMT " iterations, not %s after %" PetscInt_FMT, KSPConvergedReasons[s[1][k].reason], s[1][k].its, KSPConvergedReasons[s[0][k].reason], s[0][k].its));
    else if (!(difference <= Tolerance(1e-6) * norm)) PetscCall(PetscSNPrintf(text, sizeof(text), "solutions differ by %g of %g", (double)difference, (double)norm));
    else if (s[1][k].in_steps != expected) PetscCall(PetscSNPrintf(text, sizeof(text), "the preconditioner is %s of the steps", s[1][k].in_steps ? "part" : "not part"));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s", fused, what[k]));
    PetscCall(ABSay(name, text));
    for (auto &v : x) PetscCall(VecDestroy(&v[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, N;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(ABMatBlocks(15, 13, 6, 0.5, 0.0, &A));
  PetscCall(ABMatBlocks(15, 13, 6, 4.0, 0.3, &N)); /* in few iterations: BiCGSTAB amplifies rounding */
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  PetscCall(Sizes(KSPCG, "tccg", 0.0, 4));
  PetscCall(Sizes(KSPBCGS, "tcbcgs", 0.3, 1));
  PetscCall(Sides(A, N, b));
  PetscCall(Blocked(KSPCG, "tccg", A, MATSEQBAIJ));
  PetscCall(Blocked(KSPBCGS, "tcbcgs", N, MATSEQBAIJ));
  PetscCall(NullSpace());
  PetscCall(SetSomeSizes(A));
  PetscCall(SetSomeSizes(N));
  PetscCall(Varied(KSPCG, "tccg", A, b));
  PetscCall(Varied(KSPBCGS, "tcbcgs", N, b));
  for (PCType pctype : {PCPBJACOBI, PCVPBJACOBI}) {
    PetscCall(Bits("tccg", pctype, A, b, KSP_NORM_PRECONDITIONED, ""));
    PetscCall(Bits("tccg", pctype, A, b, KSP_NORM_NATURAL, ", natural norm"));
    PetscCall(Bits("tcbcgs", pctype, N, b, KSP_NORM_PRECONDITIONED, ""));
    PetscCall(Repeated("tccg", pctype, A, b, 9));
    PetscCall(Repeated("tcbcgs", pctype, N, b, 8));
  }
  PetscCall(Flops(KSPCG, "tccg", A, b));
  PetscCall(Flops(KSPBCGS, "tcbcgs", N, b));
  PetscCall(SameSeries(KSPCG, "tccg", A, b));
  PetscCall(SameSeries(KSPBCGS, "tcbcgs", N, b));
  PetscCall(ABFinish());
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&N));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -ksp_tccg_ahead {{0 3}} -ksp_tcbcgs_ahead {{0 3}} -ksp_tccg_resident {{false true}}
      output_file: output/ex12.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         args: -mat_type {{aij aijtc aijcusparse}} -mat_vec_type cuda

TEST*/
