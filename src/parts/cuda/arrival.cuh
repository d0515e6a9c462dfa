/*
   The last block to arrive.

   Method   A block's thread leaves what it has for the others in device memory, then counts itself in with a release: what it has read and written before is done. Only the block that finds itself
            the last acquires. A fence on both sides, __threadfence(), would empty the L1 of the multiprocessor for every block that ends, while its neighbours still work with what is in it.
            The counter wraps to zero by itself.
   Layout   *arrived in device memory, zero before the first block comes
   Memory   one atomic on L2 a block
   References
            PTX ISA, memory consistency model, release and acquire patterns
*/
#pragma once

/* By one thread of each of `members` blocks, behind a __syncthreads() if other threads of the block have read or written what matters; another must follow before they look at what the blocks have
   left, past L1 (__ldcg()) where L1 may hold older numbers. Is it the last? */
__device__ __forceinline__ bool PetscTCArriveLast(unsigned *arrived, unsigned members)
{
  unsigned before;

  asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(__cvta_generic_to_global(arrived)), "r"(members - 1) : "memory");
  if (before != members - 1) return false;
  __threadfence();
  return true;
}
