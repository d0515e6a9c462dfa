static char help[] = "Recurrences of KSPTCCG other than KSPCG's: single are those that KSPCG has for it. Those of KSPTCBCGS other than KSPBCGS's.\n\n";

#include "ab.h"

/* A solver with options that end before it is returned; its tolerance and number of iterations are to be set */
static PetscErrorCode Create(KSPType type, const char variant[], const char resident[], PetscBool single, Mat A, PCType pctype, KSP *ksp)
{
  PC   pc;
  char options[2][32];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(options[0], sizeof(options[0]), "-ksp_%s_variant", type));
  PetscCall(PetscSNPrintf(options[1], sizeof(options[1]), "-ksp_%s_resident", type));
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  if (variant) PetscCall(PetscOptionsSetValue(NULL, options[0], variant));
  if (resident) PetscCall(PetscOptionsSetValue(NULL, options[1], resident));
  PetscCall(KSPSetFromOptions(*ksp));
  for (const char *option : options) PetscCall(PetscOptionsClearValue(NULL, option));
  if (single) PetscCall(KSPCGUseSingleReduction(*ksp, PETSC_TRUE));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, PetscReal rtol, PetscInt max_it, ABRun *run)
{
  const ABCase c = {"", NULL, NULL, b, NULL, NULL, KSP_NORM_DEFAULT, PC_SIDE_DEFAULT, 0, NULL, NULL};

  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(ksp, rtol, PETSC_CURRENT, PETSC_CURRENT, max_it));
  PetscCall(ABSolve(&c, ksp, run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One reduction, over several calls: KSPCG's with that, as far as rounding allows. The variant and PETSc's function are one thing; an object goes back to classic recurrences */
static PetscErrorCode Single(Mat A, Vec b, PCType pctype, const char resident[], const char says[])
{
  const PetscReal rtol = 1e-8;
  KSP             theirs, ours[2];
  ABRun           run[3], again;
  PetscBool       same, carried, found, ok;
  PetscReal       residual[2];
  char            what[64];

  PetscFunctionBeginUser;
  PetscCall(Create(KSPCG, NULL, NULL, PETSC_TRUE, A, pctype, &theirs));
  PetscCall(Create("tccg", "single", resident, PETSC_FALSE, A, pctype, &ours[0]));
  PetscCall(Create("tccg", "single", resident, PETSC_TRUE, A, pctype, &ours[1]));
  PetscCall(Solve(theirs, b, rtol, 1000, &run[0]));
  for (int k = 0; k < 2; k++) PetscCall(Solve(ours[k], b, rtol, 1000, &run[1 + k]));
  for (int k = 0; k < 2; k++) PetscCall(ABResidualNorm(A, b, run[k].x, &residual[k]));
  PetscCall(VecEqual(run[1].x, run[2].x, &same));
  PetscCall(ABViews(ours[0], "recurrences with a reduction less", &carried));
  PetscCall(ABViews(ours[0], says, &found));
  ok = (PetscBool)(same && carried && found && run[1].fused == 1 && run[0].reason > 0 && run[1].reason == run[0].reason && run[0].its > 64 && PetscAbsInt(run[1].its - run[0].its) <= 2 && residual[1] <= 1.1 * residual[0]);
  for (PetscInt i = 0; i < 10; i++) ok = (PetscBool)(ok && ABNear(run[0].hist[i], run[1].hist[i], Tolerance(1e-6), 0.0));
  if (!ok)
    PetscCall(
      PetscPrintf(PETSC_COMM_SELF, "  %s after %" PetscInt_FMT ", %g; not %s after %" PetscInt_FMT ", %g\n", KSPConvergedReasons[run[1].reason], run[1].its, (double)residual[1], KSPConvergedReasons[run[0].reason], run[0].its, (double)residual[0]));
  PetscCall(PetscSNPrintf(what, sizeof(what), "single, pc %s, %s", pctype, resident));
  PetscCall(ABSay(what, ok));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", "classic"));
  PetscCall(KSPSetFromOptions(ours[0]));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
  PetscCall(Solve(ours[0], b, rtol, 1000, &again));
  PetscCall(ABViews(ours[0], "recurrences with a reduction less", &carried));
  PetscCall(ABSay("classic again", (PetscBool)(again.fused == 2 && !carried && again.reason == run[0].reason)));
  PetscCall(VecDestroy(&again.x));
  PetscCall(KSPCGUseSingleReduction(ours[1], PETSC_FALSE));
  PetscCall(Solve(ours[1], b, rtol, 1000, &again));
  PetscCall(ABViews(ours[1], "recurrences with a reduction less", &carried));
  PetscCall(ABSay("classic by PETSc's function", (PetscBool)(again.fused == 2 && !carried && again.reason == run[0].reason)));
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&run[k].x));
  for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ours[k]));
  PetscCall(VecDestroy(&again.x));
  PetscCall(KSPDestroy(&theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Left open, a solve that is not resident is classic: that of one that was not asked for others, to the bit */
static PetscErrorCode StaysClassic(Mat A, Vec b)
{
  KSP       classic, ours;
  ABRun     run[2];
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(Create("tccg", "classic", "false", PETSC_FALSE, A, PCJACOBI, &classic));
  PetscCall(Create("tccg", "auto", "false", PETSC_FALSE, A, PCJACOBI, &ours));
  PetscCall(Solve(classic, b, Tolerance(1e-8), 300, &run[0]));
  PetscCall(Solve(ours, b, Tolerance(1e-8), 300, &run[1]));
  PetscCall(VecEqual(run[0].x, run[1].x, &same));
  PetscCall(ABSay("auto, but not resident", (PetscBool)(same && run[0].reason > 0)));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  PetscCall(KSPDestroy(&classic));
  PetscCall(KSPDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One object whose recurrences and matrix change gives the bits of one made for each solve; auto takes those with one reduction */
static PetscErrorCode Switches(Mat A, Vec b)
{
  const char *const variants[] = {"classic", "auto", "classic", "single", "auto"};
  PetscBool         ok         = PETSC_TRUE, same, carried;
  Mat               M;
  KSP               one, fresh;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &M));
  PetscCall(Create("tccg", NULL, "form", PETSC_FALSE, M, PCJACOBI, &one));
  for (const char *variant : variants) {
    ABRun run[2];

    PetscCall(MatShift(M, 0.01));
    PetscCall(Create("tccg", variant, "form", PETSC_FALSE, M, PCJACOBI, &fresh));
    PetscCall(PetscOptionsSetValue(NULL, "-ksp_tccg_variant", variant));
    PetscCall(KSPSetFromOptions(one));
    PetscCall(PetscOptionsClearValue(NULL, "-ksp_tccg_variant"));
    PetscCall(Solve(one, b, Tolerance(1e-8), 300, &run[0]));
    PetscCall(Solve(fresh, b, Tolerance(1e-8), 300, &run[1]));
    PetscCall(ABViews(one, "recurrences with a reduction less", &carried));
    PetscCall(VecEqual(run[0].x, run[1].x, &same));
    ok = (PetscBool)(ok && same && carried == (PetscBool)(variant[0] != 'c') && run[0].its == run[1].its && run[0].reason > 0);
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
    PetscCall(KSPDestroy(&fresh));
  }
  PetscCall(ABSay("recurrences and matrices that change", ok));
  PetscCall(KSPDestroy(&one));
  PetscCall(MatDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A right-hand side that does not live where the solution does, and changes */
static PetscErrorCode OtherMemory(Mat A, Vec x)
{
  PetscBool ok = PETSC_TRUE;
  PetscReal residual, norm;
  PetscInt  n;
  Vec       b, copy;
  KSP       ksp;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &copy));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &b));
  PetscCall(Create("tccg", "single", "form", PETSC_FALSE, A, PCJACOBI, &ksp));
  PetscCall(KSPSetTolerances(ksp, Tolerance(1e-8), PETSC_CURRENT, PETSC_CURRENT, 300));
  for (int k = 1; k < 4; k++) {
    PetscCall(ABVecFill(b, k));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecCopy(b, copy));
    PetscCall(ABResidualNorm(A, copy, x, &residual));
    PetscCall(VecNorm(b, NORM_2, &norm));
    ok = (PetscBool)(ok && residual <= Tolerance(1e-6) * norm);
  }
  PetscCall(ABSay("right-hand sides on the host", ok));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* BiCGSTAB with a reduction less, over several calls: nearly as many iterations, and a true residual that is what the test saw. By how much a last iteration passes the test rounding decides */
static PetscErrorCode BCGSSingle(Mat A, Vec b, PCType pctype, PCSide side, const char resident[], const char variant[], const char says[])
{
  const PetscReal rtol = 1e-10;
  KSP             theirs, ours;
  ABRun           run[2];
  PetscReal       residual[2], norm;
  PetscBool       found, ok;
  char            what[64];

  PetscFunctionBeginUser;
  PetscCall(Create(KSPBCGS, NULL, NULL, PETSC_FALSE, A, pctype, &theirs));
  PetscCall(Create("tcbcgs", variant, resident, PETSC_FALSE, A, pctype, &ours));
  PetscCall(KSPSetPCSide(theirs, side));
  PetscCall(KSPSetPCSide(ours, side));
  PetscCall(Solve(theirs, b, rtol, 1000, &run[0]));
  PetscCall(Solve(ours, b, rtol, 1000, &run[1]));
  PetscCall(ABViews(ours, says, &found));
  PetscCall(VecNorm(b, NORM_2, &norm));
  for (int k = 0; k < 2; k++) PetscCall(ABResidualNorm(A, b, run[k].x, &residual[k]));
  ok = (PetscBool)(found && run[1].fused == 1 && run[0].reason > 0 && run[0].its > (strcmp(pctype, PCSOR) ? 64 : 40) && run[1].reason == run[0].reason && residual[1] <= 4.0 * PetscMax(residual[0], rtol * norm) && run[1].its <= 1.25 * run[0].its);
  if (!ok)
    PetscCall(
      PetscPrintf(PETSC_COMM_SELF, "  %s after %" PetscInt_FMT ", %g; not %s after %" PetscInt_FMT ", %g\n", KSPConvergedReasons[run[1].reason], run[1].its, (double)residual[1], KSPConvergedReasons[run[0].reason], run[0].its, (double)residual[0]));
  PetscCall(PetscSNPrintf(what, sizeof(what), "bcgs %s, pc %s %s, %s", variant, pctype, PCSides[side], resident));
  PetscCall(ABSay(what, ok));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&run[k].x));
  PetscCall(KSPDestroy(&theirs));
  PetscCall(KSPDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The view is of the last solve, were it over before its first iteration */
static PetscErrorCode BCGSForgets(Mat A, Vec b)
{
  KSP       ksp;
  Vec       x, zero;
  PetscBool before, after;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &zero));
  PetscCall(Create("tcbcgs", "single", "false", PETSC_FALSE, A, PCJACOBI, &ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(ABViews(ksp, "recurrences with a reduction less", &before));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_tcbcgs_variant", "classic"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_tcbcgs_variant"));
  PetscCall(KSPSolve(ksp, zero, x));
  PetscCall(ABViews(ksp, "recurrences with a reduction less", &after));
  PetscCall(ABSay("bcgs classic again", (PetscBool)(before && !after)));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&zero));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(ABMatGrid(93, 101, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(ABVecFill(b, 1));
  for (PCType pctype : {PCNONE, PCJACOBI}) {
    PetscCall(Single(A, b, pctype, "false", "recurrences with a reduction less"));
    PetscCall(Single(A, b, pctype, "form", "resident, 64 iterations in a call\n"));
    PetscCall(Single(A, b, pctype, "layout", "resident, 64 iterations in a call, the matrix read from its layout\n"));
  }
  PetscCall(Single(A, b, PCSOR, "true", "not resident (last: the preconditioner is neither none nor jacobi)"));
  PetscCall(StaysClassic(A, b));
  PetscCall(Switches(A, b));
  PetscCall(OtherMemory(A, b));
  PetscCall(MatDestroy(&A));
  PetscCall(ABMatGrid(93, 101, 0.5, PETSC_FALSE, &A));
  for (const char *resident : {"false", "form"}) {
    for (PCType pctype : {PCNONE, PCJACOBI, PCSOR}) {
      for (PCSide side : {PC_LEFT, PC_RIGHT}) PetscCall(BCGSSingle(A, b, pctype, side, resident, "single", "recurrences with a reduction less"));
    }
  }
  PetscCall(BCGSSingle(A, b, PCJACOBI, PC_LEFT, "form", "auto", "recurrences with a reduction less"));
  PetscCall(BCGSSingle(A, b, PCJACOBI, PC_LEFT, "layout", "single", "not resident (last: the matrix is not on the chip, and read from its layout recurrences are classic)"));
  PetscCall(BCGSSingle(A, b, PCJACOBI, PC_LEFT, "layout", "auto", "resident, 64 iterations in a call, the matrix read from its layout"));
  PetscCall(BCGSForgets(A, b));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(ABFinish());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -use_gpu_aware_mpi 0 -mat_type aijtc
      output_file: output/ex10.out
      requires: double # in single precision no solve of more than 128 iterations is to be compared
      test:
         suffix: host
      test:
         suffix: cuda
         requires: cuda
         args: -mat_vec_type cuda

TEST*/
