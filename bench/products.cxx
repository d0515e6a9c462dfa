/*
   Products of matrix types: aijtc with its settings, PETSc's aij and aijcusparse.

   Variants of aijtc are FORM[-COMPRESS]. FORM: auto (the type's own choice), tensor and core (all rows in tiles, multiplied by Tensor Cores or CUDA cores), row (a lane a row).
   COMPRESS: auto, off, pattern, value. They are set as options of the matrix, as any program would.
*/
#include "bench.h"

#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease() */
#include <petsctime.h>

#include <algorithm>
#include <new>

static const char prefix[] = "bench_aijtc_";

/* What PETSc noted of the error last raised */
std::string ErrorText(PetscErrorCode code)
{
  const char *text = nullptr, *specific = nullptr;
  std::string result;

  (void)PetscErrorMessage(code, &text, &specific);
  if (specific && *specific) result = specific;
  else result = text ? text : "error " + std::to_string((int)code);
  while (!result.empty() && (result.back() == '\n' || result.back() == ' ')) result.pop_back();
  return result;
}

static bool IsFormVariant(const std::string &variant, std::string *form, std::string *compress)
{
  const size_t dash = variant.find('-');

  *form     = variant.substr(0, dash);
  *compress = dash == std::string::npos ? "auto" : variant.substr(dash + 1);
  return (*form == "auto" || *form == "tensor" || *form == "core" || *form == "row") && (*compress == "auto" || *compress == "off" || *compress == "pattern" || *compress == "value");
}

/* standard and all stand for lists; off, pattern and value for auto-off and so on. What needs a GPU is left out where there is none. */
std::vector<std::string> VariantsExpand(const Machine *machine, const std::vector<std::string> &variants)
{
  static const std::vector<std::string> standard = {"auto", "auto-pattern", "auto-off", "tensor", "core", "row", "cusparse-default", "cusparse-alg1", "cusparse-alg2", "aijcusparse"};
  std::vector<std::string>              names;
  const auto                            add = [&](const std::string &name) {
    const bool device = name.compare(0, 8, "cusparse") == 0 || name == "aijcusparse";

    if ((machine->gpu || !device) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };

  for (const std::string &variant : variants) {
    if (variant == "standard") {
      for (const std::string &name : standard) add(name);
      if (!machine->gpu) add("aij");
    } else if (variant == "all") {
      for (const char *form : {"auto", "tensor", "core", "row"}) {
        for (const char *compress : {"", "-pattern", "-value", "-off"}) add(std::string(form) + compress);
      }
      for (size_t k = 6; k < standard.size(); k++) add(standard[k]);
      add("aij");
    } else if (variant == "off" || variant == "pattern" || variant == "value") add("auto-" + variant);
    else add(variant);
  }
  return names;
}

/* The type uses the arrays of A in place */
PetscErrorCode MatCreateFromCsr(Csr *A, const char type[], const char options[], Mat *M)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, A->m, A->n, A->i.data(), A->j.data(), A->a.data(), M));
  PetscCall(MatSetOptionsPrefix(*M, options));
  if (A->symmetric) PetscCall(MatSetOption(*M, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatConvert(*M, type, MAT_INPLACE_MATRIX, M));
  PetscCall(MatSetFromOptions(*M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

namespace
{

/* What a case owns, whatever happens to it */
struct Case {
  Mat                                              A = nullptr;
  Vec                                              x = nullptr, y = nullptr;
  std::vector<std::pair<std::string, std::string>> options;

  ~Case()
  {
    (void)MatDestroy(&A);
    (void)VecDestroy(&x);
    (void)VecDestroy(&y);
    for (const auto &option : options) (void)PetscOptionsClearValue(nullptr, option.first.c_str());
  }
};

PetscErrorCode SetOption(Case *c, const std::string &name, const std::string &value)
{
  PetscFunctionBegin;
  c->options.push_back({std::string("-") + prefix + name, value});
  PetscCall(PetscOptionsSetValue(nullptr, c->options.back().first.c_str(), value.c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Besides what the options set */
PetscErrorCode SetForm(Mat A, const std::string &form)
{
  const char *params;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetParams(A, &params));
  PetscCall(MatAIJTCSetParams(A, (params + std::string(*params ? ",form=" : "form=") + form).c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateAIJTC(const Machine *machine, const std::string &variant, Csr *A, Case *c)
{
  std::string form, compress;

  PetscFunctionBegin;
  PetscCheck(IsFormVariant(variant, &form, &compress), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
             "No variant '%s'; there are FORM[-COMPRESS] with FORM auto, tensor, core or row and COMPRESS auto, pattern, value or off, cusparse-default, -alg1, -alg2, aijcusparse, aij", variant.c_str());
  if (form == "tensor" || form == "core") PetscCall(SetOption(c, "mat_aijtc_mma", form));
  if (compress != "auto") PetscCall(SetOption(c, "mat_aijtc_compress", compress));
  PetscCall(SetOption(c, "mat_aijtc_backend", machine->gpu ? "cuda" : "host")); /* the layout's product, faster or not */
  PetscCall(MatCreateFromCsr(A, MATSEQAIJTC, prefix, &c->A));
  if (form != "auto") PetscCall(SetForm(c->A, form == "row" ? "row" : "tile"));
  for (const auto &option : c->options) {
    PetscBool used;

    PetscCall(PetscOptionsUsed(nullptr, option.first.c_str() + 1, &used));
    PetscCheck(used, PETSC_COMM_SELF, PETSC_ERR_SUP, "The type knows no option -%s", option.first.c_str() + sizeof(prefix));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateCase(const Machine *machine, Csr *A, const Reference *reference, const std::string &variant, Case *c)
{
  PetscScalar *x;

  PetscFunctionBegin;
  if (variant == "aij") PetscCall(MatCreateFromCsr(A, MATSEQAIJ, "bench_aij_", &c->A));
  else if (variant == "aijcusparse") PetscCall(MatCreateFromCsr(A, MATSEQAIJCUSPARSE, "bench_aijcusparse_", &c->A));
  else PetscCall(CreateAIJTC(machine, variant, A, c));
  PetscCall(MatCreateVecs(c->A, &c->x, &c->y));
  PetscCall(VecGetArrayWrite(c->x, &x));
  std::copy(reference->x.begin(), reference->x.end(), x);
  PetscCall(VecRestoreArrayWrite(c->x, &x));
  PetscCall(VecSet(c->y, -7.25e300)); /* a row left out shows */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckProduct(const Reference *reference, Vec y, double *worst)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(y, &a));
  const PetscErrorCode ierr = ReferenceCheck(reference, a, worst);
  if (!ierr) PetscCall(VecRestoreArrayRead(y, &a));
  PetscFunctionReturn(ierr);
}

/* Layouts built anew from rows that are where the product needs them: by another window, and then as it was. Less a product. */
PetscErrorCode TimeBuild(const Machine *machine, const Case *c, const ProductResult *product, double *build)
{
  const char         *set;
  MatAIJTCInfo        before, after;
  std::vector<double> times;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetParams(c->A, &set));
  const std::string params = set, other = params == "window=1" ? "window=2" : "window=1";
  for (int k = 0; k < 3; k++) {
    PetscLogDouble start, stop;

    PetscCall(MatAIJTCSetParams(c->A, other.c_str()));
    PetscCall(MatMult(c->A, c->x, c->y));
    PetscCall(MatAIJTCSetParams(c->A, params.c_str()));
    PetscCall(MatAIJTCGetInfo(c->A, &before));
    PetscCall(MachineSynchronize(machine, &start));
    PetscCall(MatMult(c->A, c->x, c->y));
    PetscCall(MachineSynchronize(machine, &stop));
    PetscCall(MatAIJTCGetInfo(c->A, &after));
    PetscCheck(after.builds == before.builds + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The layout was not built anew");
    times.push_back(stop - start);
  }
  std::sort(times.begin(), times.end());
  *build = PetscMax(times[1] - product->seconds(), 0.0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that count as new are stored again in the next product. Less a product. */
PetscErrorCode TimeRefresh(const Machine *machine, const Settings *settings, const Case *c, const ProductResult *product, double *refresh)
{
  Spread       spread;
  MatAIJTCInfo before, after;

  PetscFunctionBegin;
  PetscCall(MatAIJTCGetInfo(c->A, &before));
  PetscCall(TimeProducts(
    machine, settings, false,
    [c]() -> PetscErrorCode {
      PetscFunctionBegin;
      PetscCall(PetscObjectStateIncrease((PetscObject)c->A));
      PetscCall(MatMult(c->A, c->x, c->y));
      PetscFunctionReturn(PETSC_SUCCESS);
    },
    &spread));
  PetscCall(MatAIJTCGetInfo(c->A, &after));
  PetscCheck(after.refreshes >= before.refreshes + spread.batches * spread.products && after.builds == before.builds, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The values were not stored again");
  *refresh = PetscMax(spread.median - product->call.median, 0.0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product, w.y and y.y: in one pass, and by PETSc's functions. What Krylov methods do */
PetscErrorCode TimeDots(const Machine *machine, const Settings *settings, const Case *c, ProductResult *result)
{
  Vec         w;
  PetscScalar wy;
  PetscReal   yy;
  Spread      spread;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(c->y, &w));
  PetscCall(VecSet(w, 0.5));
  PetscCall(TimeProducts(
    machine, settings, false, [&]() -> PetscErrorCode { return MatAIJTCMultDot(c->A, c->x, w, c->y, &wy, &yy); }, &spread));
  result->dot = spread.median;
  PetscCall(TimeProducts(
    machine, settings, false,
    [&]() -> PetscErrorCode {
      PetscFunctionBegin;
      PetscCall(MatMult(c->A, c->x, c->y));
      PetscCall(VecDotNorm2(w, c->y, &wy, &yy));
      PetscFunctionReturn(PETSC_SUCCESS);
    },
    &spread));
  result->dot_two = spread.median;
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TimeColumns(const Machine *machine, const Settings *settings, const Case *c, ProductResult *result)
{
  Mat      B, C;
  VecType  type;
  PetscInt m, n;
  Spread   spread;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(c->A, &m, &n));
  PetscCall(VecGetType(c->x, &type));
  PetscCall(MatCreateDenseFromVecType(PETSC_COMM_SELF, type, n, PETSC_DECIDE, n, 8, PETSC_DECIDE, nullptr, &B));
  PetscCall(MatSetRandom(B, nullptr));
  PetscCall(MatMatMult(c->A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &C));
  PetscCall(TimeProducts(
    machine, settings, false, [&]() -> PetscErrorCode { return MatMatMult(c->A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &C); }, &spread));
  result->columns = spread.median;
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MeasureCase(const Machine *machine, const Settings *settings, Csr *A, const Reference *reference, const std::string &variant, Case *c, ProductResult *result)
{
  const bool ours    = variant.compare(0, 3, "aij") != 0;
  const auto product = [c]() -> PetscErrorCode { return MatMult(c->A, c->x, c->y); };

  PetscFunctionBegin;
  PetscCall(CreateCase(machine, A, reference, variant, c));
  PetscCall(MatMult(c->A, c->x, c->y));
  PetscCall(CheckProduct(reference, c->y, &result->worst));
  PetscCall(TimeProducts(machine, settings, false, product, &result->call));
  if (machine->gpu && variant != "aij") PetscCall(TimeProducts(machine, settings, true, product, &result->device));
  result->matrix_bytes = (sizeof(PetscInt) + sizeof(PetscScalar)) * A->nnz() + sizeof(PetscInt) * ((double)A->m + 1.0);
  if (ours) {
    PetscCall(MatAIJTCGetInfo(c->A, &result->info));
    result->has_info     = true;
    result->matrix_bytes = (double)result->info.bytes_read;
    if (settings->setup && A->nnz() > 0) {
      PetscCall(TimeRefresh(machine, settings, c, result, &result->refresh));
      PetscCall(TimeBuild(machine, c, result, &result->build));
    }
  }
  if (settings->operations) {
    PetscCall(TimeDots(machine, settings, c, result));
    PetscCall(TimeColumns(machine, settings, c, result));
  }
  PetscCall(CheckProduct(reference, c->y, &result->worst)); /* the last of all */
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

void ProductRun(const Machine *machine, const Settings *settings, Csr *A, const Reference *reference, const std::string &variant, ProductResult *result)
{
  PetscErrorCode ierr;
  Case           c;

  result->variant = variant;
  try {
    if (variant.compare(0, 8, "cusparse") == 0) ierr = CusparseRun(machine, settings, A, reference, variant, result);
    else ierr = MeasureCase(machine, settings, A, reference, variant, &c, result);
    if (ierr) result->error = ErrorText(ierr);
  } catch (const std::bad_alloc &) {
    result->error = "out of host memory";
  }
  result->bytes = result->matrix_bytes + sizeof(PetscScalar) * ((double)A->m + (double)A->n);
}
