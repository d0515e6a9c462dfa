/*
   The steps of KSPTCCG on the GPU, one kernel launch each: tccgsteps.h writes them (method, memory traffic, references), fusedstep_cuda.cuh runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedstep_cuda.cuh>
#include <../src/ksp/tccg/tccgsteps.h>

const TCCGSteps TCCGSteps_CUDA = TCCGStepsOn<PetscTCBackend_CUDA>::table;
