/*
   KSPTCCR on the host: ../tccrlist.h writes it (method, memory traffic, references), ../../method/host.h runs it (layout, order of the sums).
*/
#include "../../method/host.h"
#include "../tccrlist.h"

const KSPTCListRunners<TCCR> TCCROnHost = KSPTCListOnHost<TCCR>::runners();
