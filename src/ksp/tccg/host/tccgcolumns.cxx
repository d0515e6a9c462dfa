/*
   The steps of KSPTCCG for blocks of columns on the host: tccgcolumns.h (method, memory traffic, references), fusedcolumns_host.h runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedcolumns_host.h>
#include <../src/ksp/tccg/tccgcolumnssteps.h>

const TCCGColumnsSteps TCCGColumnsSteps_Host = TCCGColumnsOn<PetscTCColumnsBackend_Host>::table;
