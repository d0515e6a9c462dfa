/*
   The steps of KSPTCCG for blocks of columns on the host: tccgcolumns.h (method, memory traffic, references), fusedcolumns_host.h runs them (layout, order of the sums).
*/
#include <petsctc/private/fusedcolumns_host.h>
#include <petsctc/private/tccgcolumnssteps.h>

const TCCGColumnsSteps TCCGColumnsSteps_Host = TCCGColumnsOn<PetscTCColumnsBackend_Host>::table;
