/*
   SumBarrier: a barrier of all blocks of a cooperative grid with K sums over all its threads, of which all blocks get the same bits.

   Method   No counter. Every block leaves a record for each of its sums: the number and the tag of this barrier, 16 bytes in one store. Warp k of every block reads the records of sum k of all blocks again
            and again until they have the tag, lane l those of blocks l, l + 32, ..; adds its own in this order, then the lanes' by shuffles. So a sum that all blocks need costs the block's own
            reduction, one store and, once the last block has stored, one load.
   Tags     grow by one with every barrier, also from one kernel to the next: nothing is ever cleared.
   Two arrays of records are enough, taken by turns. A block stores its record of barrier b + 2 where that of barrier b was. It has then left barrier b + 1, so it has read there a record of every other
            block, which that block has stored when it had left barrier b, behind its last look at the records of b. And who waits for tag b finds tag b - 2, or b; b + 2 not before all have left b.
   Order    With `publish` what any thread of the grid has written before is there for every thread after: the block's __syncthreads(), a fence by those who store (a release, which covers what
            they know of), the records, a fence by those who have read them (an acquire, which empties the L1 of the multiprocessor), __syncthreads(). Without it nothing is said about other memory
            but this: what is written after the barrier is computed from the sums, and so comes after what they were computed from was read.
   Errors   A block that waits longer than the bound says so and gives up: an error for the host, not a GPU that hangs. The others then give up too, for want of its next record.
   Layout   record[((tag % 2) * K + k) * B + block], K the most sums of a barrier, B the most blocks, rounded up to whole warps: addresses of a lane's records differ by constants
   Memory   16 K bytes a block written, by each block read, in L2: 132 blocks, K = 3: 6 kB written, 836 kB read in a look of all blocks
   References
            PTX ISA 8.3: st and ld of .b128, one access; memory consistency model: release and acquire patterns
*/
#pragma once

#include <petsctc/private/grid_reduce.cuh>
#include <petsctc/private/ksptcresident.h>
#include <petsctc/private/lateblock.h>

/* MostBlocks of a grid, MostSums of a barrier */
template <int MostBlocks, int MostSums>
class SumBarrier {
public:
  static constexpr int turns   = (MostBlocks + 31) / 32;
  static constexpr int records = 2 * MostSums * 32 * turns; /* their number, all zero before the first barrier ever */

  /* tag: the last one given. By all threads; nobody may change *tag before all have come to the first barrier */
  __device__ SumBarrier(PetscTCSumRecord *record, const uint64_t *tag, volatile PetscTCLateBlock *late, unsigned long long bound) : record_(record), tag_(*tag), late_(late), bound_(bound) { }

  /* By all threads of all blocks, which gather first and then call derive(total) in thread 0 of each, the sums over the grid of sum[k]; what it leaves in shared memory is there for all after. False:
     given up, leave the kernel */
  template <class Reduce, int K, bool publish, class Derive>
  __device__ __forceinline__ bool sum(const double sum[], typename Reduce::Shared &shared, int iteration, Derive derive)
  {
    __shared__ double totals[K];
    __shared__ bool   came[K];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    ++tag_;
    Reduce::fold(sum, shared);
    if (warp == 0) {
      if constexpr (publish) fence();
      if (lane < K) store(lane, shared.total[lane]);
    }
    if (warp < K) {
      double     total = 0.0;
      const bool all   = collect(warp, total, iteration);

      if constexpr (publish) fence();
      if (lane == 0) {
        totals[warp] = total;
        came[warp]   = all;
        if (K == 1 && all) derive(totals);
      }
    }
    if constexpr (K > 1) { /* a barrier of K warps would do, but racecheck does not follow those */
      bool all = true;

      __syncthreads();
      for (int k = 0; k < K; ++k) all = all && came[k];
      if (threadIdx.x == 0 && all) derive(totals);
      __syncthreads();
      return all;
    } else {
      __syncthreads();
      return came[0];
    }
  }

private:
  static constexpr int looks = 1024; /* between two looks at the clock */

  __device__ static unsigned long long now()
  {
    unsigned long long ns;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
  }
  __device__ static void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

  __device__ PetscTCSumRecord *at(int k, unsigned block) const { return record_ + (tag_ % 2) * (records / 2) + k * 32 * turns + block; }

  __device__ void store(int k, double sum) const
  {
    asm volatile("{\n\t.reg .b128 r;\n\tmov.b128 r, {%1, %2};\n\tst.relaxed.gpu.global.b128 [%0], r;\n\t}" ::"l"(__cvta_generic_to_global(at(k, blockIdx.x))), "l"(__double_as_longlong(sum)), "l"(tag_) : "memory");
  }
  __device__ static void load(const PetscTCSumRecord *record, double &sum, uint64_t &tag)
  {
    long long bits;

    asm volatile("{\n\t.reg .b128 r;\n\tld.relaxed.gpu.global.b128 r, [%2];\n\tmov.b128 {%0, %1}, r;\n\t}" : "=l"(bits), "=l"(tag) : "l"(__cvta_generic_to_global(record)) : "memory");
    sum = __longlong_as_double(bits);
  }

  /* By a warp: sum k over the blocks, in all lanes */
  __device__ __forceinline__ bool collect(int k, double &total, int iteration) const
  {
    const unsigned          lane  = threadIdx.x % 32;
    const PetscTCSumRecord *mine  = at(k, lane);
    unsigned long long      since = 0;
    double                  sum[turns];
    uint64_t                tag[turns];

#pragma unroll
    for (int n = 0; n < turns; ++n) {
      sum[n] = 0.0;
      tag[n] = lane + 32 * n < gridDim.x ? tag_ - 1 : tag_;
    }
    for (unsigned look = 1;; ++look) {
      bool missing = false;

      /* All loads before the first is waited for */
#pragma unroll
      for (int n = 0; n < turns; ++n) {
        if (tag[n] != tag_) load(mine + 32 * n, sum[n], tag[n]);
      }
#pragma unroll
      for (int n = 0; n < turns; ++n) missing = missing || tag[n] != tag_;
      if (!__any_sync(0xffffffffu, missing)) break;
      if (look % looks) continue;
      const unsigned long long time = __shfl_sync(0xffffffffu, now(), 0);

      if (!since) since = time;
      else if (time - since > bound_) {
        if (lane == 0) report(iteration);
        return false;
      }
    }
    total = sum[0];
#pragma unroll
    for (int n = 1; n < turns; ++n) total += sum[n];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(0xffffffffu, total, distance);
    return true;
  }

  __device__ void report(int iteration) const
  {
    late_->block     = (int)blockIdx.x;
    late_->iteration = iteration;
    __threadfence_system();
    late_->late = 1;
  }

  PetscTCSumRecord          *record_;
  uint64_t                   tag_;
  volatile PetscTCLateBlock *late_;
  unsigned long long         bound_; /* ns */
};
