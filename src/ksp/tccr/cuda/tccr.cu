/*
   KSPTCCR on a GPU: ../tccrlist.h writes it (method, memory traffic, references), ../../method/chip.cuh and fusedstep_cuda.cuh run it (layout, order of the sums).
*/
#include "../../method/chip.cuh"
#include "../tccrlist.h"

const KSPTCListRunners<TCCR> TCCROnDevice = KSPTCListOnDevice<TCCR>::runners();
