/*
   The steps of KSPTCBCGS for blocks of columns on the host: tcbcgscolumns.h (method, memory traffic, references), fusedcolumns_host.h runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedcolumns_host.h>
#include <../src/ksp/tcbcgs/tcbcgscolumnssteps.h>

const TCBCGSColumnsSteps TCBCGSColumnsSteps_Host = TCBCGSColumnsOn<PetscTCColumnsBackend_Host>::table;
