/*
   Time of an iteration of PETSc's solvers on PETSc's type beside ours on ours: cg for a symmetric matrix with a positive diagonal, else bcgs (the paper's
   matrices: what the paper says), or what -bench_ksp_method says. b = A 1, or random columns, a zero guess, all iterations forced
   by tolerances that nothing reaches; the best of three solves after one that is not timed.
*/
#include "bench.h"

#include <algorithm>

namespace
{

struct System {
  Mat A = nullptr, B = nullptr, X = nullptr; /* B and X: several columns */
  Vec b = nullptr, x = nullptr;
  KSP ksp = nullptr;

  ~System()
  {
    (void)KSPDestroy(&ksp);
    (void)VecDestroy(&x);
    (void)VecDestroy(&b);
    (void)MatDestroy(&X);
    (void)MatDestroy(&B);
    (void)MatDestroy(&A);
  }
};

PetscErrorCode CreateColumns(const Settings *settings, System *s)
{
  const PetscInt columns = settings->columns;
  PetscInt       n;
  VecType        type;

  PetscFunctionBegin;
  if (columns < 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetLocalSize(s->A, &n, nullptr));
  PetscCall(MatGetVecType(s->A, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, n, columns, n, columns, -1, nullptr, &s->B));
  PetscCall(MatSetRandom(s->B, nullptr));
  PetscCall(MatDuplicate(s->B, MAT_DO_NOT_COPY_VALUES, &s->X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Solve(const Machine *machine, const Settings *settings, Csr *A, System *s, SolveResult *result)
{
  PetscLogDouble     start, stop;
  KSPConvergedReason reason;
  PC                 pc;

  PetscFunctionBegin;
  PetscCall(MatCreateFromCsr(A, result->mat_type.c_str(), "bench_ksp_", &s->A));
  PetscCall(MatCreateVecs(s->A, &s->x, &s->b));
  PetscCall(VecSet(s->x, 1.0));
  PetscCall(MatMult(s->A, s->x, s->b));
  PetscCall(CreateColumns(settings, s));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &s->ksp));
  PetscCall(KSPSetOptionsPrefix(s->ksp, "bench_ksp_"));
  PetscCall(KSPSetOperators(s->ksp, s->A, s->A));
  PetscCall(KSPSetType(s->ksp, result->ksp_type.c_str()));
  PetscCall(KSPGetPC(s->ksp, &pc));
  PetscCall(PCSetType(pc, result->pc_type.c_str()));
  PetscCall(KSPSetTolerances(s->ksp, 1e-200, 1e-300, 1e300, settings->iterations));
  PetscCall(KSPSetFromOptions(s->ksp));
  for (int k = 0; k < 4; k++) {
    PetscCall(VecSet(s->x, 0.0));
    PetscCall(MachineSynchronize(machine, &start));
    PetscCall(s->B ? KSPMatSolve(s->ksp, s->B, s->X) : KSPSolve(s->ksp, s->b, s->x));
    PetscCall(MachineSynchronize(machine, &stop));
    PetscCall(KSPGetIterationNumber(s->ksp, &result->iterations));
    const double iterations = (double)result->iterations * (double)settings->columns, iteration = (stop - start) / iterations;

    if (k && iterations > 0.0 && (result->iteration < 0.0 || iteration < result->iteration)) result->iteration = iteration;
  }
  PetscCall(KSPGetConvergedReason(s->ksp, &reason));
  result->reason = KSPConvergedReasons[reason];
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool HasPositiveDiagonal(const Csr *A)
{
  for (PetscInt r = 0; r < A->m; r++) {
    bool positive = false;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) positive = positive || (A->j[k] == r && A->a[k] > 0.0);
    if (!positive) return false;
  }
  return true;
}

} // namespace

void SolvesRun(const Machine *machine, const Settings *settings, Csr *A, std::vector<SolveResult> *results)
{
  const std::string method = !settings->method.empty() ? settings->method : !A->method.empty() ? A->method : A->symmetric && HasPositiveDiagonal(A) ? "cg" : "bcgs";

  if (A->m != A->n) return;
  for (const std::string &pc : settings->preconditioners) {
    for (const bool ours : {false, true}) {
      SolveResult result;
      System      system;

      result.mat_type           = ours ? MATSEQAIJTC : machine->gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ;
      result.ksp_type           = (ours ? "tc" : "") + method;
      result.pc_type            = pc;
      const PetscErrorCode ierr = Solve(machine, settings, A, &system, &result);
      if (ierr) result.error = ErrorText(ierr);
      results->push_back(result);
    }
  }
}
