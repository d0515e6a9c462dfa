/* cuSPARSE's product of compressed rows, called directly: what a program without PETSc gets. Buffer and preprocessing are made before the products that are timed. */
#include "bench.h"

#if !PetscDefined(HAVE_CUDA)
PetscErrorCode CusparseRun(const Machine *, const Settings *, const Csr *, const Reference *, const std::string &variant, ProductResult *)
{
  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP, "%s: this PETSc has no CUDA", variant.c_str());
}
#else

  #include <petscdevice_cuda.h>
  #include <cusparse.h>

namespace
{

struct DeviceArrays {
  cusparseHandle_t     handle = nullptr;
  cusparseSpMatDescr_t A      = nullptr;
  cusparseDnVecDescr_t x = nullptr, y = nullptr;
  std::vector<void *>  memory;

  ~DeviceArrays()
  {
    (void)cudaDeviceSynchronize();
    if (A) (void)cusparseDestroySpMat(A);
    if (x) (void)cusparseDestroyDnVec(x);
    if (y) (void)cusparseDestroyDnVec(y);
    if (handle) (void)cusparseDestroy(handle);
    for (void *p : memory) (void)cudaFree(p);
  }
};

PetscErrorCode Allocate(DeviceArrays *d, size_t bytes, void **p)
{
  PetscFunctionBegin;
  const cudaError_t status = cudaMalloc(p, bytes ? bytes : 1);
  if (status == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  PetscCheck(status != cudaErrorMemoryAllocation, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of device memory, %.3g GB asked for", 1e-9 * (double)bytes);
  PetscCallCUDA(status);
  d->memory.push_back(*p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename T>
PetscErrorCode Upload(DeviceArrays *d, const std::vector<T> &from, void **p)
{
  PetscFunctionBegin;
  PetscCall(Allocate(d, from.size() * sizeof(T), p));
  PetscCallCUDA(cudaMemcpy(*p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Describe(const Machine *machine, const Csr *A, const Reference *reference, DeviceArrays *d, void **result)
{
  const cusparseIndexType_t index = sizeof(PetscInt) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
  void                     *i, *j, *a, *x;

  PetscFunctionBegin;
  PetscCallCUSPARSE(cusparseCreate(&d->handle));
  PetscCallCUSPARSE(cusparseSetStream(d->handle, machine->stream));
  PetscCall(Upload(d, A->i, &i));
  PetscCall(Upload(d, A->j, &j));
  PetscCall(Upload(d, A->a, &a));
  PetscCall(Upload(d, reference->x, &x));
  PetscCall(Allocate(d, reference->y.size() * sizeof(PetscScalar), result));
  PetscCallCUDA(cudaMemset(*result, 0xff, reference->y.size() * sizeof(PetscScalar))); /* NaN: a row left out shows */
  PetscCallCUSPARSE(cusparseCreateCsr(&d->A, A->m, A->n, (int64_t)A->j.size(), i, j, a, index, index, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  PetscCallCUSPARSE(cusparseCreateDnVec(&d->x, A->n, x, CUDA_R_64F));
  PetscCallCUSPARSE(cusparseCreateDnVec(&d->y, A->m, *result, CUDA_R_64F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode CusparseRun(const Machine *machine, const Settings *settings, const Csr *A, const Reference *reference, const std::string &variant, ProductResult *result)
{
  const PetscScalar        one = 1.0, zero = 0.0;
  const cusparseSpMVAlg_t  algorithm = variant == "cusparse-alg1" ? CUSPARSE_SPMV_CSR_ALG1 : variant == "cusparse-alg2" ? CUSPARSE_SPMV_CSR_ALG2 : CUSPARSE_SPMV_ALG_DEFAULT;
  DeviceArrays             d;
  void                    *y, *buffer;
  size_t                   bytes;
  std::vector<PetscScalar> host(reference->y.size());

  PetscFunctionBegin;
  PetscCheck(variant == "cusparse-default" || variant == "cusparse-alg1" || variant == "cusparse-alg2", PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "No variant '%s'; of cuSPARSE there are cusparse-default, cusparse-alg1 and cusparse-alg2",
             variant.c_str());
  PetscCall(Describe(machine, A, reference, &d, &y));
  PetscCallCUSPARSE(cusparseSpMV_bufferSize(d.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.A, d.x, &zero, d.y, CUDA_R_64F, algorithm, &bytes));
  PetscCall(Allocate(&d, bytes, &buffer));
  #if CUSPARSE_VERSION >= 12400
  PetscCallCUSPARSE(cusparseSpMV_preprocess(d.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.A, d.x, &zero, d.y, CUDA_R_64F, algorithm, buffer));
  #endif
  const auto product = [&]() -> PetscErrorCode {
    PetscFunctionBegin;
    PetscCallCUSPARSE(cusparseSpMV(d.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, d.A, d.x, &zero, d.y, CUDA_R_64F, algorithm, buffer));
    PetscFunctionReturn(PETSC_SUCCESS);
  };
  PetscCall(TimeProducts(machine, settings, false, product, &result->call));
  PetscCall(TimeProducts(machine, settings, true, product, &result->device));
  PetscCallCUDA(cudaMemcpy(host.data(), y, host.size() * sizeof(PetscScalar), cudaMemcpyDeviceToHost));
  PetscCall(ReferenceCheck(reference, host.data(), &result->worst));
  result->matrix_bytes = (sizeof(PetscInt) + sizeof(PetscScalar)) * A->nnz() + sizeof(PetscInt) * ((double)A->m + 1.0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
