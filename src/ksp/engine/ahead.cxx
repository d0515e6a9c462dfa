/*
   Iterations begun before the host has looked at the one before them (kspsteps.h: records). When that is legal, and what test goes with an iteration.

   Legal is it where nobody can tell but by the clock and the log: the steps know the convergence test, monitors read the norm and nothing else, and matrix and preconditioner are operations that run
   no code of the user's and keep no state from one application to the next, so that those which come after the last iteration do no harm.
*/
#include <limits>
#include <petsc/private/matimpl.h>
#include <../src/ksp/engine/kspengine.h>

/* Does the null space have a function of the user's? */
static PetscErrorCode KSPTCNullSpaceCalls(Mat A, PetscBool *calls)
{
  MatNullSpace nullsp, transposed;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &nullsp));
  PetscCall(MatGetTransposeNullSpace(A, &transposed));
  *calls = (PetscBool)((nullsp && nullsp->remove) || (transposed && transposed->remove));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of PETSc's whose products are no function of the user's, and whose state changes with its values? */
PetscErrorCode KSPTCPlainMatrix(Mat A, PetscBool *plain)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, plain, "seqaijtc", "mpiaijtc", MATSEQAIJ, MATMPIAIJ, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, MATSEQBAIJ, MATMPIBAIJ, MATSEQSBAIJ, MATMPISBAIJ, MATSEQDENSE, MATMPIDENSE, MATSEQDENSECUDA,
                                      MATMPIDENSECUDA, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCPlainOperators(KSP ksp, PetscBool *matrix, PetscBool *pc)
{
  Mat       A;
  PetscBool calls = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, pc, PCNONE, PCJACOBI, PCPBJACOBI, PCVPBJACOBI, PCILU, PCICC, PCLU, PCCHOLESKY, PCSOR, ""));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(KSPTCPlainMatrix(A, matrix));
  PetscCall(KSPTCNullSpaceCalls(A, &calls));
  if (calls) *matrix = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Where the user leaves it open. Looking at every iteration costs the host 10 to 20 us; an iteration begun in vain costs its product, as the steps do nothing. On an H200, 2 ahead: 38 us an iteration
   become 18 for 80,000 rows, 50 become 37 for a million; 4 and 8 gain nothing more, nor does a second one for 16 million, where one makes 408 of 421 and pays from the tenth iteration on
*/
static PetscErrorCode KSPTCChooseAhead(KSP ksp, KSPTC tc, PetscInt *ahead)
{
  constexpr PetscInt large = 1500000;
  PetscInt           rows;
  PetscBool          cheap;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(ksp->vec_sol, &rows));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &cheap, PCNONE, PCJACOBI, PCPBJACOBI, PCVPBJACOBI, ""));
  if (tc->backend != KSPTC_CUDA || !cheap) *ahead = 0;
  else *ahead = rows <= large ? 2 : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `why` where the host must look at every iteration before the next begins, whatever the operators are */
PetscErrorCode KSPTCReplayLegal(KSP ksp, KSPTC tc, const char **why)
{
  PetscFunctionBegin;
  PetscCall(KSPTCWatched(ksp, tc, why));
  if (!*why && KSPTCChecksResults(ksp)) *why = "each result is checked";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for iterations begun ahead */
static PetscErrorCode KSPTCAheadLegal(KSP ksp, KSPTC tc, const char **why)
{
  PetscBool matrix, pc;

  PetscFunctionBegin;
  PetscCall(KSPTCReplayLegal(ksp, tc, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCPlainOperators(ksp, &matrix, &pc));
  if (!matrix) *why = "the matrix may count its products";
  else if (!pc) *why = "the preconditioner may count its applications";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets tc->lead for the solve that begins */
PetscErrorCode KSPTCSetLead(KSP ksp, KSPTC tc)
{
  PetscFunctionBegin;
  tc->lead               = tc->ahead;
  tc->last_why_not_ahead = NULL;
  if (tc->ahead == PETSC_DECIDE) PetscCall(KSPTCChooseAhead(ksp, tc, &tc->lead));
  if (!tc->lead) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCAheadLegal(ksp, tc, &tc->last_why_not_ahead));
  if (tc->last_why_not_ahead) tc->lead = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The test of KSPConvergedDefault() after iteration `it` > 0, whose first norm has set ksp->ttol and rnorm0. A norm that the host computes but does not compare ends the solve only if it is Inf or NaN */
PetscErrorCode KSPTCTest(KSP ksp, PetscInt it, PetscTCNorm norm, PetscTCTest *test)
{
  const PetscBool compared = (PetscBool)(it > ksp->chknorm && it >= ksp->min_it && ksp->converged == KSPConvergedDefault);

  PetscFunctionBegin;
  test->norm  = it < ksp->chknorm ? PETSCTC_NORM_NONE : norm;
  test->above = compared ? ksp->ttol : (PetscReal)-1.0;
  test->below = compared ? ksp->divtol * ksp->rnorm0 : std::numeric_limits<PetscReal>::infinity();
  test->given = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
