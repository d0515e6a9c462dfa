/*
   The steps of KSPTCBCGS on the host: tcbcgssteps.h writes them (method, memory traffic, references), fusedstep_host.h runs them (layout, order of the sums).
*/
#include <petsctc/private/fusedstep_host.h>
#include <petsctc/private/tcbcgssteps.h>

const TCBCGSSteps TCBCGSSteps_Host = TCBCGSStepsOn<PetscTCBackend_Host>::table;
