static char help[] = "KSPTCCG, KSPTCBCGS and KSPTCCR where something is wrong or changes under way: sizes, assembly, products, preconditioners, monitors, NaN. What KSPCG, KSPBCGS and KSPCR do.\n\n";

#include "ab.h"

typedef struct {
  KSPNormType norm;
  PCSide      side;
} Norm;

typedef struct {
  KSPType     types[2]; /* PETSc's and ours */
  const char *mma;
  PetscReal   wind;
  int         nnorms;
  Norm        norms[4];
} Method;

static const Method cg = {
  {KSPCG,                        "tccg"                  },
  "-ksp_tccg_mma", 0.0, 4, { {KSP_NORM_PRECONDITIONED, PC_LEFT}, {KSP_NORM_UNPRECONDITIONED, PC_LEFT}, {KSP_NORM_NATURAL, PC_LEFT}, {KSP_NORM_NONE, PC_LEFT}}
};
static const Method bcgs = {
  {KSPBCGS,                                "tcbcgs"                },
  "-ksp_tcbcgs_mma", 0.4, 3, { {KSP_NORM_PRECONDITIONED, PC_LEFT}, {KSP_NORM_UNPRECONDITIONED, PC_RIGHT}, {KSP_NORM_NONE, PC_LEFT}}
};
static const Method cr = {
  {KSPCR,                        "tccr"                  },
  "-ksp_tccr_mma", 0.0, 3, { {KSP_NORM_PRECONDITIONED, PC_LEFT}, {KSP_NORM_NATURAL, PC_LEFT}, {KSP_NORM_NONE, PC_LEFT}}
};

enum {
  EACH_CALL  = -1, /* every number until no call of PETSc's has it */
  MUST_ERROR = 1,  /* PETSc's solve ends with an error, or the case tests nothing */
  MUST_STOP  = 2,  /* so it does where it is to stop at errors, and else not */
  MUST_FUSE  = 4   /* ours is fused, or KSPTCCG for late norms with the natural norm not */
};

typedef struct _Case Case;

/* A case is solved by both types for each of its preconditioners, each norm, and each of these numbers from 0 on, whose meaning is the case's */
typedef struct {
  const Case   *what;
  const Method *method;
  PCType        pc;
  Norm          norm;
  PetscInt      at;
  int           end;
  PetscBool     error; /* PETSc is to stop at errors: KSPSetErrorIfNotConverged() */
} Setting;

typedef struct {
  ABRun    ab;
  PetscInt products, applications;
} Run;

struct _Case {
  const char *name;
  PetscErrorCode (*solve)(const Setting *, KSPType, Run *);
  int      how, expect;
  PCType   pcs[2];
  PetscInt nat;
  int      nends, nerrors;
};

/* ---- both types, compared */

/* A debugging PETSc looks at what goes into the preconditioner, and finds NaN there if the first norm does not need it before */
static PetscBool StopsAsItMust(const Setting *s, PetscErrorCode error)
{
  if (s->error && PetscDefined(USE_DEBUG) && s->norm.norm == KSP_NORM_PRECONDITIONED) return error == PETSC_ERR_FP ? PETSC_TRUE : PETSC_FALSE;
  return !error == !s->error ? PETSC_TRUE : PETSC_FALSE;
}

static PetscErrorCode Compare(const Setting *s, const Run run[2], char text[], size_t len)
{
  const int            expect = s->what->expect;
  const PetscErrorCode error  = run[0].ab.error;

  PetscFunctionBeginUser;
  PetscCall(ABCompareRuns(&run[0].ab, &run[1].ab, 0, text, len));
  if (text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (run[0].products != run[1].products) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " products, not %" PetscInt_FMT, run[1].products, run[0].products));
  else if (run[0].applications != run[1].applications) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " applications, not %" PetscInt_FMT, run[1].applications, run[0].applications));
  else if (expect & MUST_ERROR && !error) PetscCall(PetscSNPrintf(text, len, "PETSc's own solve ends without error: this tests nothing"));
  else if (expect & MUST_STOP && !StopsAsItMust(s, error)) PetscCall(PetscSNPrintf(text, len, "PETSc's own solve ends with error code %d", (int)error));
  else if (expect & MUST_FUSE && !run[1].ab.fused != (s->method == &cg && s->end && s->norm.norm == KSP_NORM_NATURAL)) PetscCall(PetscSNPrintf(text, len, "%s", run[1].ab.fused ? "fused, must not be" : "not fused, must be"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `calls`: how many of one kind PETSc has made */
static PetscErrorCode Both(const Setting *s, PetscInt *calls, PetscBool *same)
{
  Run  run[2];
  char text[256];

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    run[t].products = run[t].applications = 0;
    PetscCall((*s->what->solve)(s, s->method->types[t], &run[t]));
  }
  *calls = PetscMax(run[0].products, run[0].applications);
  PetscCall(Compare(s, run, text, sizeof(text)));
  for (int t = 0; t < 2; t++) PetscCall(VecDestroy(&run[t].ab.x));
  if (!text[0]) PetscFunctionReturn(PETSC_SUCCESS);
  *same = PETSC_FALSE;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "  norm %s, side %s, pc %s, at %" PetscInt_FMT ", end %d, errors %d: %s\n", KSPNormTypes[s->norm.norm], PCSides[s->norm.side], s->pc, s->at, s->end, (int)s->error, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numbers(const Case *c, const Method *m, PCType pc, Norm norm, PetscBool *same)
{
  PetscFunctionBeginUser;
  for (int end = 0; end < c->nends; end++) {
    for (int error = 0; error < c->nerrors; error++) {
      PetscInt calls = 0;

      for (PetscInt at = 0; at < (c->nat == EACH_CALL ? calls + 2 : c->nat); at++) {
        const Setting s = {c, m, pc, norm, at, end, error ? PETSC_TRUE : PETSC_FALSE};

        PetscCall(Both(&s, &calls, same));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const Method *m, const Case *c)
{
  PetscBool same = PETSC_TRUE;

  PetscFunctionBeginUser;
  for (int k = 0; k < m->nnorms; k++) {
    for (PCType pc : c->pcs) {
      if (pc) PetscCall(Numbers(c, m, pc, m->norms[k], &same));
    }
  }
  if (!same) ABFailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: %s\n", m->types[1], c->name, same ? "PASS" : "FAIL"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- parts of the cases */

static ABCase System(const Setting *s, Mat A, Vec b)
{
  return {s->what->name, A, NULL, b, NULL, s->pc, s->norm.norm, s->norm.side, 0, NULL, NULL};
}

static PetscErrorCode Grid(const Setting *s, Mat *A, Vec *b)
{
  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(9, 8, s->method->wind, PETSC_FALSE, A));
  PetscCall(MatCreateVecs(*A, NULL, b));
  PetscCall(ABVecFill(*b, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector like v, `more` entries longer */
static PetscErrorCode Longer(Vec v, PetscInt more, Vec *w)
{
  PetscInt n;
  VecType  type;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(v, &n));
  PetscCall(VecGetType(v, &type));
  PetscCall(VecCreate(PETSC_COMM_SELF, w));
  PetscCall(VecSetSizes(*w, n + more, n + more));
  PetscCall(VecSetType(*w, type));
  PetscCall(ABVecFill(*w, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MaxIt(KSP ksp, PetscInt max_it)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, PetscMin(max_it, AB_MAX_IT)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- sizes */

enum {
  NSIZES = 5
};

static const PetscInt more[NSIZES] = {-40, -1, 1, 40, 100000};

static PetscErrorCode SolveBothOff(const Setting *s, KSPType type, Run *run)
{
  Mat A;
  Vec b, other;
  KSP ksp;

  PetscFunctionBeginUser;
  PetscCall(Grid(s, &A, &b));
  PetscCall(Longer(b, more[s->at], &other));
  const ABCase c = System(s, A, other);
  PetscCall(ABCreate(&c, type, &ksp));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&other));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The second solve of an object, x or, where `how` is 1, b alone of another size */
static PetscErrorCode SolveOneOff(const Setting *s, KSPType type, Run *run)
{
  Mat A;
  Vec b, other;
  KSP ksp;

  PetscFunctionBeginUser;
  PetscCall(Grid(s, &A, &b));
  PetscCall(Longer(b, more[s->at], &other));
  const ABCase c = System(s, A, b);
  PetscCall(ABCreate(&c, type, &ksp));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  PetscCheck(!run->ab.error && run->ab.its > 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The first solve fails");
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  run->ab.error = s->what->how ? KSPSolve(ksp, other, run->ab.x) : KSPSolve(ksp, b, other);
  PetscCall(PetscPopErrorHandler());
  PetscCall(KSPGetConvergedReason(ksp, &run->ab.reason));
  PetscCall(KSPGetIterationNumber(ksp, &run->ab.its));
  PetscCall(KSPGetResidualNorm(ksp, &run->ab.rnorm));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&other));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- assembly. Without PCJACOBI, which PETSc cannot destroy after an error in its setup */

enum {
  NEW_VALUE,
  NEW_NONZEROS,
  NEVER_ASSEMBLED
};

static PetscErrorCode SolveUnassembled(const Setting *s, KSPType type, Run *run)
{
  Mat      A, B = NULL;
  Vec      b;
  KSP      ksp;
  PetscInt n;

  PetscFunctionBeginUser;
  PetscCall(Grid(s, &A, &b));
  PetscCall(VecGetSize(b, &n));
  PetscCall(ABMatCreate(n, 5, &B));
  const ABCase c = System(s, s->what->how == NEVER_ASSEMBLED ? B : A, b);
  PetscCall(ABCreate(&c, type, &ksp));
  if (s->what->how != NEVER_ASSEMBLED) {
    PetscCall(ABSolve(&c, ksp, &run->ab));
    PetscCheck(!run->ab.error && run->ab.its > 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve before fails");
    PetscCall(VecDestroy(&run->ab.x));
  }
  for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(c.A, i, s->what->how == NEW_NONZEROS ? (i * 7 + 3) % n : i, 9.0, INSERT_VALUES));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- monitors that interfere, in the first solve of two */

enum {
  CHANGE_MATRIX,
  CHANGE_JACOBI,
  SET_JACOBI,
  SET_NONE,
  SET_OPTIONS,
  PROJECTED, /* from here on the matrix has a null space of the constants */
  SET_UP_JACOBI = PROJECTED,
  SET_UP_NONE,
  DROP_NULL_SPACE,
  LARGER_NULL_SPACE
};

enum {
  LATE_NORMS = 3
};

typedef struct {
  const Setting *setting;
  PetscInt       done;
} Interference;

static PetscErrorCode ScaleMatrix(Mat A)
{
  Vec          d;
  PetscInt     n;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecGetLocalSize(d, &n));
  PetscCall(VecGetArrayWrite(d, &a));
  for (PetscInt i = 0; i < n; i++) a[i] = 1.0 + 0.1 * (i % 4);
  PetscCall(VecRestoreArrayWrite(d, &a));
  PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The units that fold sums, of `at` even and odd: changed one way and the other */
static PetscErrorCode SetUnits(const Setting *s, PetscBool first)
{
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, s->method->mma, (s->at % 2 == 0) == (bool)first ? "tensor" : "core"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The constants and, `larger`, another vector; none of A: nothing */
static PetscErrorCode SetNullSpace(Mat A, PetscBool constants, PetscBool larger)
{
  MatNullSpace space = NULL;
  Vec          v     = NULL;

  PetscFunctionBeginUser;
  if (larger) {
    PetscCall(MatCreateVecs(A, &v, NULL));
    PetscCall(VecSetValue(v, 0, PetscSqrtReal(0.5), INSERT_VALUES));
    PetscCall(VecSetValue(v, 1, -PetscSqrtReal(0.5), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v));
    PetscCall(VecAssemblyEnd(v));
  }
  if (constants) PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, larger ? 1 : 0, &v, &space));
  PetscCall(MatSetNullSpace(A, space));
  PetscCall(MatNullSpaceDestroy(&space));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Interfere(KSP ksp, PetscInt it, PetscReal, void *ctx)
{
  Interference  *in = (Interference *)ctx;
  const Setting *s  = in->setting;
  Mat            A;
  PC             pc;

  PetscFunctionBeginUser;
  if (it != s->at || in->done++) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  switch (s->what->how) {
  case CHANGE_MATRIX:
    PetscCall(ScaleMatrix(A));
    break;
  case CHANGE_JACOBI:
    PetscCall(PCJacobiSetType(pc, PC_JACOBI_ROWL1));
    break;
  case SET_JACOBI:
    PetscCall(PCSetType(pc, PCJACOBI));
    break;
  case SET_NONE:
    PetscCall(PCSetType(pc, PCNONE));
    break;
  case SET_UP_JACOBI:
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(PCSetUp(pc));
    break;
  case SET_UP_NONE:
    PetscCall(PCSetType(pc, PCNONE));
    PetscCall(PCSetUp(pc));
    break;
  case DROP_NULL_SPACE:
    PetscCall(SetNullSpace(A, PETSC_FALSE, PETSC_FALSE));
    break;
  case LARGER_NULL_SPACE:
    PetscCall(SetNullSpace(A, PETSC_TRUE, PETSC_TRUE));
    break;
  default:
    PetscCall(SetUnits(s, PETSC_FALSE));
    PetscCall(KSPSetFromOptions(ksp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `at` is the iteration whose monitor interferes; `end` 1: norms are made from iteration LATE_NORMS on. What is compared is the solve in which it does or, where `second`, the one after it */
static PetscErrorCode SolveWatched(const Setting *s, KSPType type, PetscBool second, Run *run)
{
  Interference in = {s, 0};
  Mat          A;
  Vec          b;
  KSP          ksp;

  PetscFunctionBeginUser;
  PetscCall(Grid(s, &A, &b));
  if (s->what->how >= PROJECTED) PetscCall(SetNullSpace(A, PETSC_TRUE, PETSC_FALSE));
  const ABCase c = System(s, A, b);
  if (s->what->how == SET_OPTIONS) PetscCall(SetUnits(s, PETSC_TRUE));
  PetscCall(ABCreate(&c, type, &ksp));
  PetscCall(MaxIt(ksp, 10)); /* a method whose operators change need not converge */
  if (s->end) PetscCall(KSPSetCheckNormIteration(ksp, LATE_NORMS));
  PetscCall(KSPMonitorSet(ksp, Interfere, &in, NULL));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  PetscCheck(in.done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve ends before iteration %" PetscInt_FMT, s->at);
  if (second) {
    PetscCall(VecDestroy(&run->ab.x));
    PetscCall(ABSolve(&c, ksp, &run->ab));
  }
  PetscCall(PetscOptionsClearValue(NULL, s->method->mma));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveInterfered(const Setting *s, KSPType type, Run *run)
{
  return SolveWatched(s, type, PETSC_FALSE, run);
}

static PetscErrorCode SolveAfterwards(const Setting *s, KSPType type, Run *run)
{
  return SolveWatched(s, type, PETSC_TRUE, run);
}

/* ---- NaN in the system */

enum {
  NAN_IN_B,
  NAN_IN_A
};

static PetscErrorCode SolveNan(const Setting *s, KSPType type, Run *run)
{
  Mat A;
  Vec b;
  KSP ksp;

  PetscFunctionBeginUser;
  PetscCall(Grid(s, &A, &b));
  if (s->what->how == NAN_IN_B) {
    PetscCall(VecSetValue(b, 5, NAN, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
  } else {
    PetscCall(MatSetValue(A, 3, 3, NAN, INSERT_VALUES));
    PetscCall(ABMatAssemble(A));
  }
  const ABCase c = System(s, A, b);
  PetscCall(ABCreate(&c, type, &ksp));
  PetscCall(KSPSetErrorIfNotConverged(ksp, s->error));
  PetscCall(MaxIt(ksp, 10));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices and preconditioners of the user's that count their calls. The one with number `at` goes wrong, as the case says; there is none with number 0 */

enum {
  MATRIX_NAN,
  MATRIX_ERROR,
  PC_NAN,
  PC_FAILS,
  PC_ERROR,
  MATRIX_NAN_THEN_PC_FAILS /* and at each application after it */
};

typedef struct {
  int      how;
  PetscInt at, products, applications;
  Mat      A;
} Faulty;

static PetscErrorCode FaultyMult(Mat S, Vec x, Vec y)
{
  Faulty *f;

  PetscFunctionBeginUser;
  PetscCall(MatShellGetContext(S, &f));
  PetscCheck(++f->products != f->at || f->how != MATRIX_ERROR, PETSC_COMM_SELF, PETSC_ERR_USER, "Product %" PetscInt_FMT, f->at);
  PetscCall(MatMult(f->A, x, y));
  if (f->products == f->at && (f->how == MATRIX_NAN || f->how == MATRIX_NAN_THEN_PC_FAILS)) PetscCall(VecSet(y, NAN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultyApply(PC pc, Vec x, Vec y)
{
  Faulty   *f;
  PetscBool fails;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &f));
  PetscCheck(++f->applications != f->at || f->how != PC_ERROR, PETSC_COMM_SELF, PETSC_ERR_USER, "Application %" PetscInt_FMT, f->at);
  PetscCall(VecCopy(x, y));
  PetscCall(VecScale(y, 0.5));
  if (f->applications == f->at && (f->how == PC_NAN || f->how == PC_FAILS)) PetscCall(VecSet(y, NAN));
  fails = (PetscBool)((f->how == PC_FAILS && f->applications == f->at) || (f->how == MATRIX_NAN_THEN_PC_FAILS && f->at && f->products >= f->at));
  PetscCall(PCSetFailedReason(pc, fails ? PC_SUBPC_ERROR : PC_NOERROR));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuneFaulty(KSP ksp, void *ctx)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCShellSetContext(pc, ctx));
  PetscCall(PCShellSetApply(pc, FaultyApply));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How a solve ends when nothing goes wrong: by the test after three iterations, by their number, and within an iteration */
enum {
  END_TEST,
  END_NUMBER,
  END_SIGN,      /* p.Ap, or rp.v, has another sign than before. KSPCR looks at w.q alone */
  END_CURVATURE, /* that is what KSPCG was to look for */
  END_ZERO,      /* p.Ap, or rp.v, is 0 */
  END_SINGULAR,  /* t of BiCGSTAB is 0 */
  ENDS
};

static PetscErrorCode MatOfEnd(const Setting *s, Mat *A)
{
  const PetscInt n   = 6;
  const int      end = s->end;

  PetscFunctionBeginUser;
  if (end == END_NUMBER) {
    PetscCall(ABMatGrid(9, 8, s->method->wind, PETSC_FALSE, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ABMatCreate(n, 2, A));
  for (PetscInt i = 0; i < n; i++) {
    const PetscInt other = i % 2 ? i - 1 : i + 1;
    PetscScalar    d = 1.0 + i % 3, off = 0.0;

    if (end == END_ZERO) d = i % 2 ? 1.0 : -1.0;
    else if (end == END_SINGULAR) d = off = i % 2 ? 0.0 : 1.0;
    else if (end != END_TEST && i == 5) d = -3.0;
    PetscCall(MatSetValue(*A, i, i, d, INSERT_VALUES));
    PetscCall(MatSetValue(*A, i, other, off, INSERT_VALUES));
  }
  PetscCall(ABMatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveFaulty(const Setting *s, KSPType type, Run *run)
{
  Faulty   f = {s->what->how, s->at, 0, 0, NULL};
  Mat      S;
  Vec      b;
  KSP      ksp;
  PetscInt n;

  PetscFunctionBeginUser;
  PetscCall(MatOfEnd(s, &f.A));
  PetscCall(MatCreateVecs(f.A, NULL, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecGetSize(b, &n));
  PetscCall(MatCreateShell(PETSC_COMM_SELF, n, n, n, n, &f, &S));
  PetscCall(MatShellSetOperation(S, MATOP_MULT, (PetscErrorCodeFn *)FaultyMult));
  ABCase c = System(s, S, b);
  c.tune   = TuneFaulty;
  c.ctx    = &f;
  PetscCall(ABCreate(&c, type, &ksp));
  PetscCall(MaxIt(ksp, s->norm.norm == KSP_NORM_NONE ? 2 : s->end == END_NUMBER ? 4 : 10));
  PetscCall(KSPSetConvergedNegativeCurvature(ksp, s->end == END_CURVATURE ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(KSPSetErrorIfNotConverged(ksp, s->error));
  PetscCall(ABSolve(&c, ksp, &run->ab));
  run->products     = f.products;
  run->applications = f.applications;
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&f.A));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- */

static const Case cases[] = {
  {"b and x of another size",                                      SolveBothOff,     0,                 MUST_ERROR, {PCNONE, PCJACOBI}, NSIZES, 1, 1},
  {"x of another size in the second solve",                        SolveOneOff,      0,                 MUST_ERROR, {PCNONE, PCJACOBI}, NSIZES, 1, 1},
  {"b of another size in the second solve",                        SolveOneOff,      1,                 MUST_ERROR, {PCNONE, PCJACOBI}, NSIZES, 1, 1},
  {"new values, not assembled",                                    SolveUnassembled, NEW_VALUE,         MUST_ERROR, {PCNONE, PCSOR},    1,      1, 1},
  {"new nonzeros, not assembled",                                  SolveUnassembled, NEW_NONZEROS,      MUST_ERROR, {PCNONE, PCSOR},    1,      1, 1},
  {"never assembled",                                              SolveUnassembled, NEVER_ASSEMBLED,   MUST_ERROR, {PCNONE, PCSOR},    1,      1, 1},
  {"a monitor changes the matrix",                                 SolveInterfered,  CHANGE_MATRIX,     MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor has changed the matrix in the solve before",         SolveAfterwards,  CHANGE_MATRIX,     MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor changes the type of Jacobi",                         SolveInterfered,  CHANGE_JACOBI,     MUST_FUSE,  {PCJACOBI, NULL},   4,      2, 1},
  {"a monitor has changed the type of Jacobi in the solve before", SolveAfterwards,  CHANGE_JACOBI,     MUST_FUSE,  {PCJACOBI, NULL},   4,      2, 1},
  {"a monitor sets Jacobi",                                        SolveInterfered,  SET_JACOBI,        MUST_FUSE,  {PCNONE, NULL},     4,      2, 1},
  {"a monitor has set Jacobi in the solve before",                 SolveAfterwards,  SET_JACOBI,        MUST_FUSE,  {PCNONE, NULL},     4,      2, 1},
  {"a monitor drops Jacobi",                                       SolveInterfered,  SET_NONE,          MUST_FUSE,  {PCJACOBI, NULL},   4,      2, 1},
  {"a monitor has dropped Jacobi in the solve before",             SolveAfterwards,  SET_NONE,          MUST_FUSE,  {PCJACOBI, NULL},   4,      2, 1},
  {"a monitor sets options",                                       SolveInterfered,  SET_OPTIONS,       MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor has set options in the solve before",                SolveAfterwards,  SET_OPTIONS,       MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor sets up Jacobi, constants projected out",            SolveInterfered,  SET_UP_JACOBI,     MUST_FUSE,  {PCNONE, NULL},     4,      2, 1},
  {"a monitor drops Jacobi, constants projected out",              SolveInterfered,  SET_UP_NONE,       MUST_FUSE,  {PCJACOBI, NULL},   4,      2, 1},
  {"a monitor drops the null space",                               SolveInterfered,  DROP_NULL_SPACE,   MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor has dropped the null space in the solve before",     SolveAfterwards,  DROP_NULL_SPACE,   MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor sets a larger null space",                           SolveInterfered,  LARGER_NULL_SPACE, MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"a monitor has set a larger null space in the solve before",    SolveAfterwards,  LARGER_NULL_SPACE, MUST_FUSE,  {PCNONE, PCJACOBI}, 4,      2, 1},
  {"NaN in b",                                                     SolveNan,         NAN_IN_B,          MUST_STOP,  {PCNONE, PCJACOBI}, 1,      1, 2},
  {"NaN in A",                                                     SolveNan,         NAN_IN_A,          MUST_STOP,  {PCNONE, PCJACOBI}, 1,      1, 2}
};

/* Matrices and preconditioners of the user's are never resident, nor applied ahead. On a GPU products and applications in vain are made: this holds on the host alone */
static const Case counts[] = {
  {"counts, a product gives NaN",                                SolveFaulty, MATRIX_NAN,               0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2},
  {"counts, a product errors",                                   SolveFaulty, MATRIX_ERROR,             0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2},
  {"counts, the preconditioner gives NaN",                       SolveFaulty, PC_NAN,                   0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2},
  {"counts, the preconditioner fails",                           SolveFaulty, PC_FAILS,                 0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2},
  {"counts, the preconditioner errors",                          SolveFaulty, PC_ERROR,                 0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2},
  {"counts, a product gives NaN, then the preconditioner fails", SolveFaulty, MATRIX_NAN_THEN_PC_FAILS, 0, {PCSHELL, NULL}, EACH_CALL, ENDS, 2}
};

int main(int argc, char **argv)
{
  const Method *methods[] = {&cg, &bcgs, &cr};
  PetscBool     count     = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-counts", &count, NULL));
  for (const Method *m : methods) {
    for (const Case &c : cases) PetscCall(Report(m, &c));
    for (const Case &c : counts) {
      if (count) PetscCall(Report(m, &c));
    }
  }
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return ABFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}}
      output_file: output/ex9.out
      test:
         suffix: host

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type {{aij aijtc}}
      output_file: output/ex9_uncounted.out
      test:
         suffix: ahead
         args: -ksp_tccg_ahead 3 -ksp_tccg_directions {{1 4}} -ksp_tcbcgs_ahead 3 -ksp_tccr_ahead 3 -counts false
      test:
         suffix: made
         args: -ksp_tccg_ahead 3 -ksp_tccg_directions 4 -ksp_tccg_product_vector true -ksp_tcbcgs_ahead 3 -ksp_tcbcgs_product_vector true -counts false
      test:
         suffix: resident
         args: -ksp_tccg_resident true -ksp_tcbcgs_resident true -ksp_tccr_resident true -counts false
      test:
         suffix: single
         args: -ksp_tcbcgs_variant single -ksp_tcbcgs_resident {{false true}} -ksp_tcbcgs_ahead {{0 3}} -counts false
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda -ksp_tccg_resident {{false true}} -ksp_tcbcgs_resident {{false true}} -ksp_tccr_resident false -counts false
      test:
         suffix: cuda_single
         requires: cuda
         args: -mat_vec_type cuda -ksp_tccg_resident true -ksp_tcbcgs_variant single -ksp_tcbcgs_resident {{false true}} -ksp_tccr_resident true -counts false

TEST*/
