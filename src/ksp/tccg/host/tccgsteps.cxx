/*
   The steps of KSPTCCG on the host: tccgsteps.h writes them (method, memory traffic, references), fusedstep_host.h runs them (layout, order of the sums).
*/
#include <../src/ksp/step/fusedstep_host.h>
#include <../src/ksp/tccg/tccgsteps.h>

const TCCGSteps TCCGSteps_Host = TCCGStepsOn<PetscTCBackend_Host>::table;
