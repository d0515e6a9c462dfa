/*
   The steps of KSPTCBCGS on the host: tcbcgssteps.h writes them (method, memory traffic, references), fusedstep_host.h runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedstep_host.h>
#include <../src/ksp/tcbcgs/tcbcgssteps.h>

const TCBCGSSteps TCBCGSSteps_Host = TCBCGSStepsOn<PetscTCBackend_Host>::table;
