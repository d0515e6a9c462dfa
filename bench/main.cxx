static char help[] = "Measures products, set-up and solver iterations of MATAIJTC beside cuSPARSE and PETSc's types, each product verified.\n\n\
  -bench_matrices <list>         files (Matrix Market .mtx, .mtx.gz, or PETSc binary) and generators, as 7pt:101,tet:1000000:rcm,a.mtx.gz; paper18 and test stand for lists\n\
  -bench_folder <folder>         where files of matrices lie (the paper's too: those that are there replace their generators)\n\
  -bench_values <own|random>     values of the matrix, or distinct ones of full precision on its pattern (default own)\n\
  -bench_shuffle <seed>          square matrices numbered at random, otherwise for each seed (default 0: as they are)\n\
  -bench_products <list>         variants: standard (default), all, FORM[-COMPRESS] (auto, tensor, core, row; auto, pattern, value, off), cusparse-default, -alg1, -alg2, aijcusparse, aij\n\
  -bench_setup <bool>            building and refreshing layouts too (default true)\n\
  -bench_operations <bool>       products with dot products, and with 8 dense columns, too (default false)\n\
  -bench_ksp <bool>              solver iterations too (default false)\n\
  -bench_ksp_pcs <list>          with these preconditioners (default none)\n\
  -bench_ksp_iterations <n>      so many iterations (default 100)\n\
  -bench_ksp_method cg|bcgs|cr   PETSc's method and ours (default: cg or bcgs, by the matrix)\n\
  -bench_ksp_columns <n>         of so many systems by KSPMatSolve(); the time is that of an iteration and column (default 1: KSPSolve())\n\
  -bench_host <bool>             on a GPU, PETSc's aij on the host too (default false)\n\
  -bench_repeat <n>              batches of a measurement (default 10)\n\
  -bench_batch <n>               products of a batch (default 20)\n\
  -bench_limit <seconds>         fewer of slow products, so that a measurement takes about so long (default 0.3)\n\
  -bench_copy_bytes <bytes>      size of the copy whose bandwidth is measured (default 2e9 on a GPU, 256 MB on the host)\n\
  -bench_json <file>             all numbers\n\n\
What the columns mean: docs/benchmark.md. Exits with 1 if a case failed.\n\n";

#include "bench.h"

#include <algorithm>
#include <new>
#include <sstream>

static std::vector<std::string> ToList(const std::string &text)
{
  std::vector<std::string> list;
  std::string              item;
  std::istringstream       stream(text);

  while (std::getline(stream, item, ',')) {
    if (!item.empty()) list.push_back(item);
  }
  return list;
}

static PetscErrorCode StringOption(const char name[], std::string *value)
{
  char      text[16384];
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(nullptr, nullptr, name, text, sizeof(text), &set));
  if (set) *value = text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadSettings(int argc, char **argv, Settings *s)
{
  std::string matrices = "7pt:43,5pt:387x388,diag:15439", variants = "standard", pcs = "none";

  PetscFunctionBegin;
  for (int k = 0; k < argc; k++) s->command += (k ? " " : "") + std::string(argv[k]);
  s->values = "own";
  PetscCall(StringOption("-bench_matrices", &matrices));
  PetscCall(StringOption("-bench_products", &variants));
  PetscCall(StringOption("-bench_ksp_pcs", &pcs));
  PetscCall(StringOption("-bench_ksp_method", &s->method));
  PetscCall(StringOption("-bench_folder", &s->folder));
  PetscCall(StringOption("-bench_values", &s->values));
  PetscCall(StringOption("-bench_json", &s->json));
  PetscCall(PetscOptionsGetBool(nullptr, nullptr, "-bench_setup", &s->setup, nullptr));
  PetscCall(PetscOptionsGetBool(nullptr, nullptr, "-bench_operations", &s->operations, nullptr));
  PetscCall(PetscOptionsGetBool(nullptr, nullptr, "-bench_ksp", &s->ksp, nullptr));
  PetscCall(PetscOptionsGetBool(nullptr, nullptr, "-bench_host", &s->host, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-bench_ksp_iterations", &s->iterations, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-bench_ksp_columns", &s->columns, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-bench_shuffle", &s->shuffle, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-bench_repeat", &s->batches, nullptr));
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-bench_batch", &s->products, nullptr));
  PetscCall(PetscOptionsGetReal(nullptr, nullptr, "-bench_limit", &s->limit, nullptr));
  PetscCall(PetscOptionsGetReal(nullptr, nullptr, "-bench_copy_bytes", &s->copy_bytes, nullptr));
  PetscCheck(s->values == "own" || s->values == "random", PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-bench_values %s: own or random", s->values.c_str());
  PetscCheck(s->shuffle >= 0, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-bench_shuffle %" PetscInt_FMT ": 0 or the number of a numbering", s->shuffle);
  PetscCheck(s->batches > 0 && s->products > 0 && s->iterations > 0 && s->columns > 0 && s->limit > 0.0, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
             "-bench_repeat, -bench_batch, -bench_ksp_iterations, -bench_ksp_columns and -bench_limit must be positive");
  PetscCheck(s->method.empty() || s->method == KSPCG || s->method == KSPBCGS || s->method == KSPCR, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-bench_ksp_method %s: cg, bcgs or cr", s->method.c_str());
  if (s->host) variants += ",aij";
  s->matrices        = CsrExpandNames(ToList(matrices));
  s->variants        = ToList(variants);
  s->preconditioners = ToList(pcs);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Describe(const Csr *A, MatrixResult *result)
{
  result->origin    = A->origin;
  result->m         = A->m;
  result->n         = A->n;
  result->nnz       = A->nnz();
  result->symmetric = A->symmetric;
  result->seconds   = A->seconds;
  result->csr_bytes = (sizeof(PetscInt) + sizeof(PetscScalar)) * A->nnz() + sizeof(PetscInt) * ((double)A->m + 1.0) + sizeof(PetscScalar) * ((double)A->m + (double)A->n);
  for (PetscInt r = 0; r < A->m; r++) result->longest = PetscMax(result->longest, A->i[r + 1] - A->i[r]);
}

/* A matrix that cannot be had is a row with its error; so is a variant that fails */
static PetscErrorCode MeasureMatrix(const Machine *machine, const Settings *settings, const std::string &spec, MatrixResult *result)
{
  Csr       A;
  Reference reference;

  PetscFunctionBegin;
  result->name        = spec.substr(spec.find_last_of('/') == std::string::npos ? 0 : spec.find_last_of('/') + 1);
  PetscErrorCode ierr = CsrCreate(settings, spec, &A);
  if (ierr) {
    result->error = ErrorText(ierr);
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s FAILED: %.300s\n", result->name.c_str(), result->error.c_str()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  Describe(&A, result);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%s (%s): %" PetscInt_FMT " x %" PetscInt_FMT ", %.0f nonzeros, longest row %" PetscInt_FMT ", %s, made in %.1f s\n", result->name.c_str(), result->origin.c_str(), A.m, A.n, A.nnz(), result->longest,
                        A.symmetric ? "symmetric" : "not symmetric", A.seconds));
  ReferenceCompute(&A, &reference);
  PetscCall(ReportProgress(machine, result, nullptr));
  for (const std::string &variant : settings->variants) {
    result->products.emplace_back();
    ProductRun(machine, settings, &A, &reference, variant, &result->products.back());
    PetscCall(ReportProgress(machine, result, &result->products.back()));
  }
  if (settings->ksp) SolvesRun(machine, settings, &A, &result->solves);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(Settings *settings, PetscInt *failures)
{
  Machine                   machine;
  std::vector<MatrixResult> results;

  PetscFunctionBegin;
  PetscCall(MachineDescribe(settings, &machine));
  settings->variants = VariantsExpand(&machine, settings->variants);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: copies %.1f GB/s, last cache %.0f MB\n", machine.gpu ? machine.device.c_str() : "No GPU: everything on the host", 1e-9 * machine.copy_bandwidth, 1e-6 * machine.cache));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr));
  for (const std::string &spec : settings->matrices) {
    results.emplace_back();
    try {
      PetscCall(MeasureMatrix(&machine, settings, spec, &results.back()));
    } catch (const std::bad_alloc &) {
      results.back().error = "out of host memory";
    }
    PetscCall(ReportJSON(&machine, settings, results)); /* after each matrix: what was measured stays when a run is ended */
  }
  PetscCall(PetscPopErrorHandler());
  PetscCall(ReportTable(&machine, results));
  *failures = ReportFailures(results);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d matrices, %" PetscInt_FMT " failures\n", (int)results.size(), *failures));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Settings    settings;
  PetscInt    failures = 0;
  PetscMPIInt size;
  PetscBool   only_help;

  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_WRONG_MPI_SIZE, "Runs on one process");
  PetscCall(PetscTCInitialize());
  PetscCall(PetscOptionsHasHelp(nullptr, &only_help));
  if (!only_help) {
    PetscCall(ReadSettings(argc, argv, &settings));
    PetscCall(Measure(&settings, &failures));
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
