/*
   The steps of KSPTCCG on the GPU, one kernel launch each: tccgsteps.h writes them (method, memory traffic, references), fusedstep_cuda.cuh runs them (layout, order of the sums).
*/
#include <petsctc/private/fusedstep_cuda.cuh>
#include <petsctc/private/tccgsteps.h>

const TCCGSteps TCCGSteps_CUDA = TCCGStepsOn<PetscTCBackend_CUDA>::table;
