/* Time in kernels that wait: units of 1.024 us, in 32 bits, of which differences count */
#pragma once

#include <petscdevice_cuda.h>

__device__ __forceinline__ unsigned PetscTCNow()
{
  unsigned long long ns;

  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return (unsigned)(ns >> 10);
}

/* So many seconds in these units */
static inline unsigned PetscTCPatienceBound(double seconds)
{
  return (unsigned)(1e9 / 1024.0 * seconds);
}
