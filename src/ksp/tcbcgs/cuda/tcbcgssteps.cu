/*
   The steps of KSPTCBCGS on the GPU, one kernel launch each: tcbcgssteps.h writes them (method, memory traffic, references), fusedstep_cuda.cuh runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedstep_cuda.cuh>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

const TCBCGSSteps TCBCGSSteps_CUDA = TCBCGSStepsOn<PetscTCBackend_CUDA>::table;
