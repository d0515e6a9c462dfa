static char help[] = "A resident kernel of which a block gives up waiting for the others: the steps go on with the solve from where the call began, as KSPCG, KSPBCGS and KSPCR would.\n\n";

#include "ab.h"
#include <../src/ksp/engine/kspengine.h>

typedef struct {
  KSPType     parent, type;
  const char *resident, *variant; /* options; NULL: the method has no variants */
  PetscReal   wind;
} Method;

static const Method methods[] = {
  {KSPCG,   "tccg",   "form",   "classic", 0.0},
  {KSPCG,   "tccg",   "form",   "single",  0.0},
  {KSPCG,   "tccg",   "form",   "auto",    0.0}, /* single, and then classic */
  {KSPCG,   "tccg",   "layout", "classic", 0.0},
  {KSPCG,   "tccg",   "layout", "single",  0.0},
  {KSPCG,   "tccg",   "layout", "auto",    0.0},
  {KSPBCGS, "tcbcgs", "form",   "classic", 0.4}, /* without wind rounding decides about some ten iterations */
  {KSPBCGS, "tcbcgs", "form",   "single",  0.4},
  {KSPBCGS, "tcbcgs", "layout", "classic", 0.4},
  {KSPCR,   "tccr",   "form",   NULL,      0.0}
};

/* A preconditioner, its side, and the norm */
typedef struct {
  PCType      pc;
  PCSide      side;
  KSPNormType norm;
} Side;

static const PetscReal patience = 0.01;

/* The options of a method, set anew */
static PetscErrorCode SetOptions(const Method *method, KSP ksp)
{
  char resident[32], variant[32];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(resident, sizeof(resident), "-ksp_%s_resident", method->type));
  PetscCall(PetscSNPrintf(variant, sizeof(variant), "-ksp_%s_variant", method->type));
  PetscCall(PetscOptionsSetValue(NULL, resident, method->resident));
  if (method->variant) PetscCall(PetscOptionsSetValue(NULL, variant, method->variant));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClearValue(NULL, resident));
  PetscCall(PetscOptionsClearValue(NULL, variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const Method *method, PetscBool ours, Mat A, const Side *side, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, ours ? method->type : method->parent));
  if (ours) PetscCall(SetOptions(method, *ksp));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, side->pc));
  PetscCall(KSPSetNormType(*ksp, side->norm));
  PetscCall(KSPSetPCSide(*ksp, side->side));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_CURRENT, PETSC_CURRENT, 1000));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Call `call` of the next solve goes wrong. There must have been a resident solve, which has made the work */
static PetscErrorCode Spoil(KSP ksp, KSPTCFault fault, PetscInt call)
{
  PetscObject container;
  void       *tc;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectQuery((PetscObject)ksp, "__KSPTC", &container));
  PetscCall(PetscContainerGetPointer((PetscContainer)container, &tc));
  KSPTCResidentWork *const work = &((KSPTC)tc)->resident.work;

  work->fault    = fault;
  work->fault_in = call;
  work->patience = patience;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rounding decides about the last iterations of a long solve. The first `calls` ones of ours are those of a solve in which nothing goes wrong, to the bit, and nothing is told twice */
static PetscErrorCode Compare(const ABRun *theirs, const ABRun *ours, const ABRun *whole, PetscInt calls, char text[], size_t len)
{
  PetscReal distance, norm;
  Vec       d;

  PetscFunctionBeginUser;
  text[0] = 0;
  PetscCall(VecDuplicate(ours->x, &d));
  PetscCall(VecWAXPY(d, -1.0, theirs->x, ours->x));
  PetscCall(VecNorm(d, NORM_2, &distance));
  PetscCall(VecNorm(theirs->x, NORM_2, &norm));
  PetscCall(VecDestroy(&d));
  if (ours->error) PetscCall(PetscSNPrintf(text, len, "error %d", (int)ours->error));
  else if (ours->reason != theirs->reason) PetscCall(PetscSNPrintf(text, len, "%s, not %s", KSPConvergedReasons[ours->reason], KSPConvergedReasons[theirs->reason]));
  else if (PetscAbsInt(ours->its - theirs->its) > 2) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " iterations, not %" PetscInt_FMT, ours->its, theirs->its));
  else if (ours->nhist != ours->its + 1) PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT " norms of %" PetscInt_FMT " iterations", ours->nhist, ours->its));
  else if (!(distance <= 1e-5 * norm)) PetscCall(PetscSNPrintf(text, len, "solutions differ by %g of %g", (double)distance, (double)norm));
  for (PetscInt i = 0; i < PetscMin(ours->nhist, theirs->nhist) && !text[0]; i++) {
    if (i <= calls && ours->hist[i] != whole->hist[i]) PetscCall(PetscSNPrintf(text, len, "norm %" PetscInt_FMT " is not that of a resident solve", i));
    else if (!ABNear(ours->hist[i], theirs->hist[i], i < 10 ? 1e-6 : 5e-2, 0.0)) PetscCall(PetscSNPrintf(text, len, "norm %" PetscInt_FMT " is %g, not %g", i, (double)ours->hist[i], (double)theirs->hist[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve whose call `call` goes wrong. Its work comes of a solve before it, with which ksp tries again */
static PetscErrorCode SolveSpoilt(const Method *method, KSP ksp, Vec b, KSPTCFault fault, PetscInt call, const ABRun *theirs, PetscBool *ok)
{
  ABRun     whole, run;
  PetscBool resident, says[2];
  char      text[256];

  PetscFunctionBeginUser;
  PetscCall(SetOptions(method, ksp));
  PetscCall(ABSolvePlain(ksp, b, &whole));
  PetscCall(ABViews(ksp, "resident, 64 iterations in a call", &resident));
  PetscCall(Spoil(ksp, fault, call));
  PetscCall(ABSolvePlain(ksp, b, &run));
  PetscCall(ABViews(ksp, "not resident (last: a block of the resident kernel waited 0.01 s for the others at iteration ", &says[0]));
  PetscCall(ABViews(ksp, "; the solve went on by steps)", &says[1]));
  PetscCall(Compare(theirs, &run, &whole, 64 * (call - 1), text, sizeof(text)));
  if (!text[0] && !(resident && says[0] && says[1])) PetscCall(PetscSNPrintf(text, sizeof(text), "the view says something else"));
  if (text[0]) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  call %" PetscInt_FMT ", fault %d: %s\n", call, (int)fault, text));
    *ok = PETSC_FALSE;
  }
  PetscCall(VecDestroy(&whole.x));
  PetscCall(VecDestroy(&run.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In each of its calls */
static PetscErrorCode Spoilt(const Method *method, Mat A, Vec b, const Side *side)
{
  KSP          stock, ksp;
  ABRun        theirs;
  MatNullSpace constants;
  PetscBool    ok = PETSC_TRUE;
  char         what[128];

  PetscFunctionBeginUser;
  PetscCall(Create(method, PETSC_FALSE, A, side, &stock));
  PetscCall(Create(method, PETSC_TRUE, A, side, &ksp));
  PetscCall(ABSolvePlain(stock, b, &theirs));
  for (PetscInt call = 1; 64 * (call - 1) < theirs.its - 2; call++) {
    for (KSPTCFault fault : {KSPTC_FAULT_ABSENT, KSPTC_FAULT_LATE}) PetscCall(SolveSpoilt(method, ksp, b, fault, call, &theirs, &ok));
  }
  if (theirs.its <= 66) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  only %" PetscInt_FMT " iterations: one call\n", theirs.its));
  PetscCall(MatGetNullSpace(A, &constants));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s%s%s, pc %s, side %s, norm %s%s", method->type, method->resident, method->variant ? ", " : "", method->variant ? method->variant : "", side->pc, PCSides[side->side], KSPNormTypes[side->norm],
                          constants ? ", singular" : ""));
  PetscCall(ABSay(what, ok));
  PetscCall(VecDestroy(&theirs.x));
  PetscCall(KSPDestroy(&stock));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves with that pattern stay with the steps until the option is set anew; those of another matrix do not */
static PetscErrorCode StaysAway(const Method *method, Mat A, Vec b)
{
  const Side        side = {PCNONE, PC_LEFT, KSP_NORM_PRECONDITIONED};
  const char *const late = "not resident (last: a block of the resident kernel waited too long for the others in an earlier solve; -ksp_", *const resident = "resident, 64 iterations in a call";
  ABRun     run;
  KSP       ksp;
  Mat       B;
  PetscBool ok = PETSC_TRUE, found;
  char      what[64];

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(Create(method, PETSC_TRUE, A, &side, &ksp));
  for (int k = 0; k < 6; k++) { /* well, given up, away, away with other values, another matrix, set anew */
    if (k == 1) PetscCall(Spoil(ksp, KSPTC_FAULT_LATE, 2));
    if (k == 3) PetscCall(MatShift(A, 0.125));
    if (k == 4) PetscCall(KSPSetOperators(ksp, B, B));
    if (k == 5) {
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(SetOptions(method, ksp));
    }
    PetscCall(ABSolvePlain(ksp, b, &run));
    PetscCall(ABViews(ksp, k == 1 ? "the solve went on by steps" : (k == 2 || k == 3 ? late : resident), &found));
    ok = (PetscBool)(ok && found && run.reason > 0);
    PetscCall(VecDestroy(&run.x));
  }
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s, stays with the steps", method->type, method->resident));
  PetscCall(ABSay(what, ok));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All(const Method *method)
{
  const bool cg = !strcmp(method->parent, KSPCG), cr = !strcmp(method->parent, KSPCR);
  const Side other   = cr ? Side{PCJACOBI, PC_LEFT, KSP_NORM_NATURAL} : Side{PCJACOBI, cg ? PC_LEFT : PC_RIGHT, KSP_NORM_UNPRECONDITIONED};
  const Side sides[] = {
    {PCNONE,   PC_LEFT, KSP_NORM_PRECONDITIONED},
    {PCJACOBI, PC_LEFT, KSP_NORM_PRECONDITIONED},
    other
  };
  const bool   projects = cg && !strcmp(method->variant, "classic");
  Mat          A, N;
  MatNullSpace constants;
  Vec          b;

  PetscFunctionBeginUser;
  PetscCall(ABMatGrid(73, 71, method->wind, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  for (const Side &side : sides) PetscCall(Spoilt(method, A, b, &side));
  PetscCall(StaysAway(method, A, b));
  PetscCall(MatDestroy(&A));
  if (projects) {
    PetscCall(ABMatSingularGrid(73, 71, 0.0, &N));
    PetscCall(MatGetNullSpace(N, &constants));
    PetscCall(MatNullSpaceRemove(constants, b));
    for (const Side &side : sides) PetscCall(Spoilt(method, N, b, &side));
    PetscCall(MatDestroy(&N));
  }
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (const Method &method : methods) PetscCall(All(&method));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc
      output_file: output/ex19.out
      requires: double # in single precision rounding decides after few iterations
      test:
         suffix: host
      test:
         suffix: host_ahead
         args: -ksp_tccg_ahead 3 -ksp_tcbcgs_ahead 3 -ksp_tccr_ahead 3 -ksp_tccg_directions 4
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
