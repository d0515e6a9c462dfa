/*
   The steps of KSPTCCG for blocks of columns on the GPU, one kernel launch each: tccgcolumns.h (method, memory traffic, references), fusedcolumns_cuda.cuh runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedcolumns_cuda.cuh>
#include <../src/ksp/tccg/tccgcolumnssteps.h>

const TCCGColumnsSteps TCCGColumnsSteps_CUDA = TCCGColumnsOn<PetscTCColumnsBackend_CUDA>::table;
