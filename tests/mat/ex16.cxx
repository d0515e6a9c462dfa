static char help[] = "Products of MATAIJTC captured in a CUDA graph, on a stream of the user's: replayed, they take what x, y and the values are by then.\n\n";

#include "check.h"
#include <petsctc.h>

#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>

static PetscInt Short(PetscInt row, PetscInt)
{
  return 3 + row % 5;
}
static const Pattern patterns[] = {
  {"long, medium and short rows", 900,  900,  Mixed},
  {"short rows",                  3000, 3000, Short}
};

/* y <- A x; z <- A x + y */
static PetscErrorCode Products(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBeginUser;
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultAdd(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whatever would wait, or ask for memory, in any thread is an error meanwhile */
static PetscErrorCode Capture(cudaStream_t stream, Mat A, Vec x, Vec y, Vec z, cudaGraphExec_t *exec)
{
  cudaGraph_t graph;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  PetscCall(Products(A, x, y, z));
  PetscCallCUDA(cudaStreamEndCapture(stream, &graph));
  PetscCallCUDA(cudaGraphInstantiate(exec, graph, 0));
  PetscCallCUDA(cudaGraphDestroy(graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the graph leaves has the bits of the products that are asked for */
static PetscErrorCode CheckReplay(cudaStream_t stream, cudaGraphExec_t exec, Mat A, Vec x, Vec y, Vec z, const char what[])
{
  Vec       ref, refadd;
  PetscBool same, sameadd;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(y, &ref));
  PetscCall(VecDuplicate(z, &refadd));
  PetscCall(Products(A, x, ref, refadd)); /* brings x and the values to the device: a graph does not */
  PetscCall(VecSet(y, 1e300));
  PetscCall(VecSet(z, 1e300));
  PetscCallCUDA(cudaGraphLaunch(exec, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(VecEqual(y, ref, &same));
  PetscCall(VecEqual(z, refadd, &sameadd));
  PetscCall(Check(same, "%s: the product is another one", what));
  PetscCall(Check(sameadd, "%s: the product with a sum is another one", what));
  PetscCall(VecDestroy(&ref));
  PetscCall(VecDestroy(&refadd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPattern(const Pattern *p, cudaStream_t stream)
{
  Mat             A;
  Vec             x, y, z;
  MatAIJTCInfo    captured, replayed;
  cudaGraphExec_t exec;

  PetscFunctionBeginUser;
  PetscCall(MatFromPattern(p, NULL, &A));
  PetscCall(MatVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(VecSet(y, 1.0));
  PetscCall(VecSet(z, 1.0));
  PetscCall(Products(A, x, y, z)); /* makes the layout, and memory for y and z */
  PetscCall(MatAIJTCGetInfo(A, &captured));
  PetscCall(Capture(stream, A, x, y, z, &exec));
  PetscCall(CheckReplay(stream, exec, A, x, y, z, "the same x"));
  PetscCall(VecFill(x, 2));
  PetscCall(CheckReplay(stream, exec, A, x, y, z, "another x"));
  PetscCall(MatScale(A, 0.3)); /* stored where the old values were */
  PetscCall(CheckReplay(stream, exec, A, x, y, z, "other values"));
  PetscCall(MatAIJTCGetInfo(A, &replayed));
  PetscCall(Check((PetscBool)(replayed.builds == captured.builds && replayed.refreshes == captured.refreshes + 1), "the layout was built %" PetscInt_FMT " times and refreshed %" PetscInt_FMT " times", replayed.builds, replayed.refreshes));
  PetscCallCUDA(cudaGraphExecDestroy(exec));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(CheckReport(p->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(void)
{
  PetscDeviceContext context, before;
  void              *stream;

  PetscFunctionBeginUser;
  PetscCall(PetscDeviceContextGetCurrentContext(&before));
  PetscCall(PetscDeviceContextCreate(&context));
  PetscCall(PetscDeviceContextSetStreamType(context, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(context));
  PetscCall(PetscDeviceContextSetCurrentContext(context));
  PetscCall(PetscDeviceContextGetStreamHandle(context, &stream));
  for (const Pattern &p : patterns) PetscCall(TestPattern(&p, *(cudaStream_t *)stream));
  PetscCall(PetscDeviceContextSetCurrentContext(before));
  PetscCall(PetscDeviceContextDestroy(&context));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
static PetscErrorCode Test(void)
{
  PetscFunctionBeginUser;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(Test());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   test:
      suffix: cuda
      requires: cuda
      args: -dll_append ${PETSCTC_LIB} -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0 -mat_aijtc_compress {{auto off}} -mat_aijtc_params {{gather=0 gather=8}}
      filter: sed -e "s/[0-9]* checks/checks/"
      output_file: output/ex16.out

TEST*/
