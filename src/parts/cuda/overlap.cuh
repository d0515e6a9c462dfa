/*
   Kernels that may start while the one before them in the stream ends.

   Method   Programmatic dependent launch, compute capability 9.0 and newer: a kernel that is launched by LaunchOverlapping() gets its blocks onto the device as soon as all blocks of the kernel before it have
            called LetNextLaunchStart() or are over, and waits in WaitForLaunchBefore() until that kernel is over and what it wrote is there. This hides the launch, 2 to 3 us. Elsewhere it is an
            ordinary launch and both functions do nothing.
   Rules    Before WaitForLaunchBefore() a kernel reads nothing that a kernel in the stream may have written, and writes nothing. What it reads later must not go through the non-coherent path.
            Layouts are the exception: products read them before, past any coherence; whatever writes one ends with an ordinary launch or a wait (SettleLayout()).
            Every kernel launched so waits, in at least one thread: the one behind it relies on all those before it being over. Any other operation in the stream, a copy or an event, waits for the whole kernel.
   Memory   none
   References
            CUDA C++ Programming Guide, programmatic dependent launch; PTX ISA, griddepcontrol
*/
#pragma once

#include <petscdevice_cuda.h>

__device__ __forceinline__ void WaitForLaunchBefore()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void LetNextLaunchStart()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* shared: bytes of dynamic shared memory of a block */
template <class... Parameters, class... Arguments>
PetscErrorCode LaunchOverlapping(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, size_t shared, cudaStream_t stream, Arguments... arguments)
{
  static int          major  = -1;
  cudaLaunchConfig_t  config = {};
  cudaLaunchAttribute attribute;

  PetscFunctionBegin;
  if (major < 0) {
    int device;

    PetscCallCUDA(cudaGetDevice(&device));
    PetscCallCUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  }
  attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim                                       = blocks;
  config.blockDim                                      = threads;
  config.dynamicSmemBytes                              = shared;
  config.stream                                        = stream;
  config.attrs                                         = &attribute;
  config.numAttrs                                      = major >= 9 ? 1 : 0;
  PetscCallCUDA(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
  PetscFunctionReturn(PETSC_SUCCESS);
}
