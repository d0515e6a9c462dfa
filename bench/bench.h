/*
   petsctc-bench: products, set-up and solver iterations of MATAIJTC beside those of cuSPARSE and PETSc, in one run.

   A result is what was measured of one variant (a type with its settings, or a routine of cuSPARSE) for one matrix; a variant that failed has its error instead.
   Times are seconds, of one product, unless a name says otherwise; a time that was not measured is negative.
*/
#pragma once

#include <petsctc.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#if PetscDefined(HAVE_CUDA)
  #include <cuda_runtime.h>
#endif

/* A matrix in compressed rows. MATAIJ and all types derived from it use these arrays in place. */
struct Csr {
  std::string              name, origin, method; /* as asked for; what it was made from; cg or bcgs, empty: by its symmetry and diagonal */
  PetscInt                 m = 0, n = 0;
  std::vector<PetscInt>    i, j;
  std::vector<PetscScalar> a;
  bool                     symmetric = false;
  PetscLogDouble           seconds   = 0.0; /* to generate or read */

  double nnz() const { return (double)j.size(); }
};

struct Settings {
  std::vector<std::string> matrices, variants, preconditioners;
  std::string              method; /* of the iterations; empty: by the matrix */
  std::string              values, folder, json, command;
  PetscBool                setup = PETSC_TRUE, operations = PETSC_FALSE, ksp = PETSC_FALSE, host = PETSC_FALSE;
  PetscInt                 batches = 10, products = 20, iterations = 100, columns = 1, shuffle = 0;
  PetscReal                limit      = 0.3; /* seconds that the batches of a measurement may take together */
  PetscReal                copy_bytes = 0.0; /* of the copy that bandwidth is measured with; 0: by the machine */
};

struct Machine {
  bool        gpu = false;
  std::string cpu, device, petsc, cuda, driver;
  int         multiprocessors = 0;
  double      cache           = 0.0;                  /* bytes of the last cache before memory */
  double      copy_bytes = 0.0, copy_bandwidth = 0.0; /* bytes a second, read + written */
#if PetscDefined(HAVE_CUDA)
  cudaStream_t stream = nullptr; /* PETSc's */
#endif
};

struct Spread {
  double   median = -1.0, least = -1.0, most = -1.0;
  PetscInt batches = 0, products = 0; /* measured: so many batches of so many products */
};

struct ProductResult {
  std::string  variant, error;
  double       matrix_bytes = 0.0; /* that the variant keeps for its products */
  double       bytes        = 0.0; /* with both vectors */
  Spread       device;             /* products queued before the first one starts: the device's time alone */
  Spread       call;               /* products asked for one after the other: launching included */
  double       build    = -1.0;    /* of the layout from assembled compressed rows, on the GPU from those there */
  double       refresh  = -1.0;    /* of its values */
  double       dot      = -1.0;    /* product with two dot products in one pass, both on the host afterwards */
  double       dot_two  = -1.0;    /* the same by MatMult() and VecDotNorm2() */
  double       columns  = -1.0;    /* product with a dense matrix of 8 columns */
  double       worst    = -1.0;    /* largest error, relative to its bound */
  bool         has_info = false;
  MatAIJTCInfo info     = {};

  double seconds() const { return device.median > 0.0 ? device.median : call.median; }
};

struct SolveResult {
  std::string mat_type, ksp_type, pc_type, reason, error;
  PetscInt    iterations = 0;
  double      iteration  = -1.0; /* seconds */
};

struct MatrixResult {
  std::string                name, origin, error;
  PetscInt                   m = 0, n = 0, longest = 0;
  double                     nnz = 0.0, csr_bytes = 0.0, seconds = 0.0;
  bool                       symmetric = false;
  std::vector<ProductResult> products;
  std::vector<SolveResult>   solves;
};

/* generators.cxx, meshes.cxx */
PetscErrorCode           CsrCreate(const Settings *settings, const std::string &spec, Csr *A);
std::vector<std::string> CsrExpandNames(const std::vector<std::string> &specs);
void                     CsrFromMesh(const std::vector<std::string> &words, Csr *A); /* tet, mesh, roadnet */
uint64_t                 Hash(uint64_t);
double                   HashToUnit(uint64_t); /* in [0, 1), all 53 bits */

/* timing.cxx */
PetscErrorCode MachineDescribe(const Settings *settings, Machine *machine);
PetscErrorCode MachineSynchronize(const Machine *machine, PetscLogDouble *seconds);
PetscErrorCode TimeProducts(const Machine *machine, const Settings *settings, bool queued, const std::function<PetscErrorCode()> &product, Spread *spread);

/* The product of the host in plain loops, by which all others are judged: |y - reference| <= bound in each row */
struct Reference {
  std::vector<PetscScalar> x, y;
  std::vector<PetscReal>   bound;
};
void ReferenceCompute(const Csr *A, Reference *reference);
/* worst: largest |y - reference| / bound. An error if it is above 1 or y is not finite. */
PetscErrorCode ReferenceCheck(const Reference *reference, const PetscScalar y[], double *worst);

/* products.cxx, cusparse.cxx, solvers.cxx: an error code means that the result holds no measurement; its error text is set then */
std::vector<std::string> VariantsExpand(const Machine *machine, const std::vector<std::string> &variants);
void                     ProductRun(const Machine *machine, const Settings *settings, Csr *A, const Reference *reference, const std::string &variant, ProductResult *result);
PetscErrorCode           CusparseRun(const Machine *machine, const Settings *settings, const Csr *A, const Reference *reference, const std::string &variant, ProductResult *result);
PetscErrorCode           MatCreateFromCsr(Csr *A, const char type[], const char prefix[], Mat *M);
void                     SolvesRun(const Machine *machine, const Settings *settings, Csr *A, std::vector<SolveResult> *results);
std::string              ErrorText(PetscErrorCode code);

/* report.cxx */
PetscErrorCode ReportProgress(const Machine *machine, const MatrixResult *matrix, const ProductResult *product);
PetscErrorCode ReportTable(const Machine *machine, const std::vector<MatrixResult> &results);
PetscErrorCode ReportJSON(const Machine *machine, const Settings *settings, const std::vector<MatrixResult> &results);
PetscInt       ReportFailures(const std::vector<MatrixResult> &results);
