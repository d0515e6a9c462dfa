/*
   Copies in bulk from device to shared memory, whose bytes an mbarrier waits for. Compute capability 9.0 and newer.

   Method   One thread sends for the bytes; what they are for waits for a phase of the barrier, of which each copy is one. Copies are another proxy than loads and stores: fences stand between what threads do to
            memory and what copies do to it.
   Layout   addresses and lengths are multiples of 16 bytes
   Memory   each byte once from L2, past L1
   References
            PTX ISA: mbarrier, cp.async.bulk, fence.proxy
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned SharedAddress(const void *of)
{
  return (unsigned)__cvta_generic_to_shared(of);
}

/* For so many threads to arrive at */
__device__ __forceinline__ void InitializeBarrier(uint64_t *barrier, unsigned threads = 1)
{
  asm("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(threads) : "memory");
}

__device__ __forceinline__ void Arrive(uint64_t *barrier)
{
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
}

__device__ __forceinline__ void AwaitPhase(uint64_t *barrier, unsigned parity)
{
  unsigned over;

  do {
    asm volatile("{\n .reg .pred over;\n mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n selp.b32 %0, 1, 0, over;\n}" : "=r"(over) : "r"(SharedAddress(barrier)), "r"(parity) : "memory");
  } while (!over);
}

/* What the counter was. All that threads have done which have counted before is done */
__device__ __forceinline__ int CountOne(int *counter)
{
  int before;

  asm volatile("atom.acq_rel.cta.shared::cta.add.s32 %0, [%1], 1;" : "=r"(before) : "r"(SharedAddress(counter)) : "memory");
  return before;
}

/* Behind all reads of what is in shared memory, before copies replace it */
__device__ __forceinline__ void FenceWindows()
{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Sends for so many bytes, a multiple of 16. Some thread arrives for them, before or after */
__device__ __forceinline__ void SendBulk(PetscScalar *to, const PetscScalar *from, unsigned bytes, uint64_t *barrier)
{
  if (bytes) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(SharedAddress(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier)) : "memory");
}

/* With so many bytes that are sent for, or will be. What the thread has written to shared memory is there with them */
__device__ __forceinline__ void ArriveWith(uint64_t *barrier, unsigned bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes) : "memory");
}

/* By one thread. What it has written to shared memory is there with the bytes; 0 bytes: that alone. Multiples of 16 */
__device__ __forceinline__ void CopyBulk(PetscScalar *to, const PetscScalar *from, unsigned bytes, uint64_t *barrier)
{
  FenceWindows();
  ArriveWith(barrier, bytes);
  SendBulk(to, from, bytes, barrier);
}

/* By who is to copy what others have written to device memory, behind a barrier of the grid that orders memory */
__device__ __forceinline__ void FenceCopies()
{
  asm volatile("fence.proxy.async;" ::: "memory");
}
#else /* never launched: hosts ask PetscTCCopiesInBulk() */
__device__ __forceinline__ void InitializeBarrier(uint64_t *, unsigned = 1) { }
__device__ __forceinline__ void Arrive(uint64_t *) { }
__device__ __forceinline__ void AwaitPhase(uint64_t *, unsigned) { }
__device__ __forceinline__ int  CountOne(int *)
{
  return 0;
}
__device__ __forceinline__ void FenceWindows() { }
__device__ __forceinline__ void SendBulk(PetscScalar *, const PetscScalar *, unsigned, uint64_t *) { }
__device__ __forceinline__ void ArriveWith(uint64_t *, unsigned) { }
__device__ __forceinline__ void CopyBulk(PetscScalar *, const PetscScalar *, unsigned, uint64_t *) { }
__device__ __forceinline__ void FenceCopies() { }
#endif

/* Has the kernel been built for them? */
static inline bool PetscTCCopiesInBulk(const void *kernel)
{
  cudaFuncAttributes attributes;

  if (!cudaFuncGetAttributes(&attributes, kernel)) return attributes.ptxVersion >= 90;
  (void)cudaGetLastError();
  return false;
}
