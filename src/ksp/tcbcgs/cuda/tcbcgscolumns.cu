/*
   The steps of KSPTCBCGS for blocks of columns on the GPU, one kernel launch each: tcbcgscolumns.h (method, memory traffic, references), fusedcolumns_cuda.cuh runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedcolumns_cuda.cuh>
#include <../src/ksp/tcbcgs/tcbcgscolumnssteps.h>

const TCBCGSColumnsSteps TCBCGSColumnsSteps_CUDA = TCBCGSColumnsOn<PetscTCColumnsBackend_CUDA>::table;
