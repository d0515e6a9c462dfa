/*
   Words between GPUs, and sums of all processes by one warp. Device code, shared by steps and by products on a border.

   Method   A number travels in two accesses of 8 bytes, each half of it with the tag of what it belongs to: who waits looks until both tags are right, and needs no fence. Tags are never cleared.
            Sums: lane k r stores sum k to process r, into the place that is kept there for this process; then lane k reads sum k of each process in the order of the ranks and adds them up. So all have the same bits.
            Places are taken by turns, by the lowest bit of the tag. A process stores the sums of tag t + 2 when it has those of all for t + 1; so each has read those of t before it left its own for t + 1. For that no tag is left
            out: a step that has stopped before leaves zeros.
   Layout   record[tag % 2][rank][k], k < PETSCTC_MAX_DOTS
   Memory traffic  16 bytes a sum and process over NVLink; 2 GPUs: one way takes about 0.8 us
   References
            NCCL, protocol LL (8 bytes with a flag of 4); PTX ISA, memory consistency model: relaxed accesses of the scope of the system are seen at last
*/
#pragma once

#include <../src/comm/peers.h>
#include <../src/parts/cuda/patience.cuh>

__device__ __forceinline__ void PetscTCStoreHalf(uint64_t *to, uint64_t half)
{
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(half) : "memory");
}

__device__ __forceinline__ uint64_t PetscTCLoadHalf(const uint64_t *from)
{
  uint64_t half;

  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(half) : "l"(__cvta_generic_to_global(from)) : "memory");
  return half;
}

__device__ __forceinline__ void PetscTCSend(PetscTCWord *to, double number, unsigned tag)
{
  const uint64_t bits = (uint64_t)__double_as_longlong(number), above = (uint64_t)tag << 32;

  PetscTCStoreHalf(&to->half[0], above | (bits & 0xffffffffu));
  PetscTCStoreHalf(&to->half[1], above | bits >> 32);
}

/* Is the number of this tag there? */
__device__ __forceinline__ bool PetscTCReceived(const PetscTCWord *from, unsigned tag, double &number)
{
  const uint64_t low = PetscTCLoadHalf(&from->half[0]), high = PetscTCLoadHalf(&from->half[1]);

  number = __longlong_as_double((long long)((low & 0xffffffffu) | high << 32));
  return (unsigned)(low >> 32) == tag && (unsigned)(high >> 32) == tag;
}

/* By a thread: false if the number has not come in the patience of the kernel, and the first to give up tells the host for whom it has waited. Where one has, others do after 1024 looks */
__device__ __forceinline__ bool PetscTCReceive(const PetscTCWord *from, unsigned tag, double &number, int rank, unsigned patience, PetscTCMissing *missing)
{
  constexpr unsigned looks = 1024;
  unsigned           begin = 0;
  bool               begun = false;

  for (unsigned look = 1; !PetscTCReceived(from, tag, number); ++look) {
    if (look % looks) continue;
    const unsigned now  = PetscTCNow();
    const bool     late = *(volatile int *)&missing->late != 0;

    if (!begun) begin = now;
    begun = true;
    if (now - begin <= patience && !late) continue;
    if (!late) {
      missing->rank = rank;
      __threadfence_system();
      *(volatile int *)&missing->late = 1;
    }
    return false;
  }
  return true;
}

/* By a warp. total[k], in memory that the warp shares: this process's sums <- those of all. False: some have not come, and the host has been told */
static __device__ __noinline__ bool PetscTCAddOfPeers(const PetscTCPeers *peers, unsigned tag, int count, double total[])
{
  const int ranks = peers->ranks, mine = peers->rank, turn = (int)(tag % 2) * PETSCTC_MAX_PEERS, lane = threadIdx.x % 32;
  bool      all = true;
  double    sum = 0.0;

  for (int i = lane; i < ranks * count; i += 32) {
    const int to = i / count, k = i % count;

    if (to != mine) PetscTCSend(peers->record[to] + (turn + mine) * PETSCTC_MAX_DOTS + k, total[k], tag);
  }
  __syncwarp();
  if (lane < count) {
    for (int rank = 0; rank < ranks; ++rank) {
      double number = total[lane];

      if (rank != mine) all = PetscTCReceive(peers->record[mine] + (turn + rank) * PETSCTC_MAX_DOTS + lane, tag, number, rank, peers->patience, peers->missing) && all;
      sum = rank ? sum + number : number;
    }
    total[lane] = sum;
  }
  __syncwarp();
  return __all_sync(0xffffffffu, all);
}
