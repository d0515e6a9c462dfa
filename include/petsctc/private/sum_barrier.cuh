/*
   SumBarrier: a barrier of all blocks of a cooperative grid with K sums over all its threads, of which all blocks get the same bits.

   Method   No counter and no fence. Every block leaves a record for each of its sums: the sum and the tag of this barrier, 16 bytes in one store. Warp k of every block reads the records of sum k of all blocks again
            and again until they have the tag, lane l those of blocks l, l + 32, ..; adds its own in this order, then the lanes' as any warp's are folded. So a sum that all blocks need costs the block's own
            reduction, one store and, once the last block has stored, one load. The other warps have something else to do meanwhile.
            Lanes look together: a lane that left the loop by itself would leave the others to look one after the other, which took 2,500 cycles instead of 1,300.
   Tags     grow by one with every barrier, also from one kernel to the next: nothing is ever cleared.
   Two arrays of records are enough, taken by turns. A block stores its record of barrier b + 2 where that of barrier b was. It has then left barrier b + 1, so it has read there a record of every other
            block, which that block has stored when it had left barrier b, behind its last look at the records of b. And who waits for tag b finds tag b - 2, or b; b + 2 not before all have left b.
   Numbers  between blocks travel the same way, each in one access with the tag of the barrier that follows it: PetscTCPublish() by the block that has one, in the phase that ends with the barrier;
            PetscTCFetch...() by those that need it, while they wait for the sums. They need no fence: a tag is there with its number or not at all. Where one number is, the next may be stored
            as soon as a barrier behind the fetches is over.
   Order    Of other memory nothing is said but this: what is written after the barrier is computed from the sums, and so comes after what they were computed from was read: a value that decides a branch, or
            that shared memory holds, has been read. The memory model would ask for a release and an acquire; the machine has the value before it goes on.
            order() is the barrier for all memory: a fence behind the block's writes and one before its reads.
   Errors   Who waits longer than the bound says so and gives up: an error for the host, not a GPU that hangs. The others then give up too, for want of the block's next record.
   Layout   record[((tag % 2) * K + k) * B + block], K the most sums of a barrier, B the most blocks, rounded up to whole warps: addresses of a lane's records differ by constants
   Memory   16 K bytes a block written, by each block read, in L2: 132 blocks, K = 3: 6 kB written, 836 kB read in a look of all blocks
   References
            PTX ISA 8.3: st and ld of .b128, one access; memory consistency model: a relaxed store of the scope of the device is seen at last by every relaxed load of it
*/
#pragma once

#include <petsctc/private/grid_reduce.cuh>
#include <petsctc/private/ksptcresident.h>
#include <petsctc/private/lateblock.h>

__device__ __forceinline__ void PetscTCPublish(PetscTCTagged *to, double number, uint64_t tag)
{
  asm volatile("{\n\t.reg .b128 r;\n\tmov.b128 r, {%1, %2};\n\tst.relaxed.gpu.global.b128 [%0], r;\n\t}" ::"l"(__cvta_generic_to_global(to)), "l"(__double_as_longlong(number)), "l"(tag) : "memory");
}

__device__ __forceinline__ PetscTCTagged PetscTCFetch(const PetscTCTagged *from)
{
  PetscTCTagged tagged;
  long long     bits;

  asm volatile("{\n\t.reg .b128 r;\n\tld.relaxed.gpu.global.b128 r, [%2];\n\tmov.b128 {%0, %1}, r;\n\t}" : "=l"(bits), "=l"(tagged.tag) : "l"(__cvta_generic_to_global(from)) : "memory");
  tagged.number = __longlong_as_double(bits);
  return tagged;
}

/* How long to wait */
class PetscTCPatience {
public:
  __device__ PetscTCPatience(volatile PetscTCLateBlock *late, unsigned long long bound) : late_(late), bound_(bound) { }

  /* By a warp. look: how many times one has looked. True: give up; then it has been told */
  __device__ bool over(unsigned look, unsigned long long &since, int iteration) const
  {
    if (look % looks) return false;
    const unsigned long long time = __shfl_sync(0xffffffffu, now(), 0);

    if (!since) since = time;
    else if (time - since > bound_) {
      if (threadIdx.x % 32 == 0) tell(iteration);
      return true;
    }
    return false;
  }

private:
  static constexpr unsigned looks = 1024; /* between two at the clock */

  __device__ static unsigned long long now()
  {
    unsigned long long ns;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
  }
  __device__ void tell(int iteration) const
  {
    late_->block     = (int)blockIdx.x;
    late_->iteration = iteration;
    __threadfence_system();
    late_->late = 1;
  }

  volatile PetscTCLateBlock *late_;
  unsigned long long         bound_; /* ns */
};

/* By a warp, N numbers to a thread that all have to have the tag: number[n] from from[at(n)]; 0 where at(n) < 0. False: given up */
template <int N, class At>
__device__ __forceinline__ bool PetscTCFetchAll(const PetscTCTagged *from, At at, double number[], uint64_t tag, const PetscTCPatience &patience, int iteration)
{
  unsigned long long since = 0;
  PetscTCTagged      tagged[N];

#pragma unroll
  for (int n = 0; n < N; ++n) tagged[n] = {0.0, at(n) >= 0 ? tag - 1 : tag};
  for (unsigned look = 1;; ++look) {
    bool there = true;

    /* All loads before the first is waited for */
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (tagged[n].tag != tag) tagged[n] = PetscTCFetch(from + at(n));
    }
#pragma unroll
    for (int n = 0; n < N; ++n) there = there && tagged[n].tag == tag;
    if (__all_sync(0xffffffffu, there)) break;
    if (patience.over(look, since, iteration)) return false;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) number[n] = tagged[n].number;
  return true;
}

/* MostBlocks of a grid, MostSums of a barrier */
template <int MostBlocks, int MostSums>
class SumBarrier {
public:
  static constexpr int turns   = (MostBlocks + 31) / 32;
  static constexpr int records = 2 * MostSums * 32 * turns; /* their number, all zero before the first barrier ever */

  /* tag: the last one given. By all threads; nobody may change *tag before all have come to the first barrier */
  __device__ SumBarrier(PetscTCTagged *record, const uint64_t *tag, const PetscTCPatience &patience) : record_(record), tag_(*tag), patience_(patience) { }

  /* The tag of the next barrier */
  __device__ uint64_t               next() const { return tag_ + 1; }
  __device__ const PetscTCPatience &patience() const { return patience_; }

  /* By all threads of all blocks. derive(total), in all threads of warp 0 of each, gets the sums over the grid of sum[k]; meanwhile(tag, thread, threads), in the threads of the other warps, of which this is
     one, is done while they come in and says whether it could. What both leave in shared memory is there for all after. orders: memory too, as order() does. False: given up, leave the kernel */
  template <class Reduce, int K, bool orders = false, class Meanwhile, class Derive>
  __device__ __forceinline__ bool sum(const double sum[], typename Reduce::Shared &shared, int iteration, Meanwhile meanwhile, Derive derive)
  {
    const int warp = threadIdx.x / 32;
    double    total[K];
    bool      well;

    ++tag_;
    Reduce::fold(sum, shared, total);
    if (warp == 0) {
      if constexpr (orders) release(); /* fold() has had a barrier of the block */
      leave<K>(total);
    }
    if (warp < K) {
      well = collect<Reduce>(warp, total[0], iteration);
      if (orders && warp == 0) __threadfence();
      if (K > 1 && threadIdx.x % 32 == 0) shared.total[warp] = total[0];
    } else {
      well = meanwhile(tag_, (int)threadIdx.x - 32 * K, Reduce::threads - 32 * K);
    }
    if constexpr (K > 1) { /* warp 0 has one sum */
      well = __syncthreads_and(well);
#pragma unroll
      for (int k = 0; k < K; ++k) total[k] = shared.total[k];
    }
    if (warp == 0 && well) derive(total);
    return __syncthreads_and(well);
  }

  /* The barrier without sums. What any thread has written before it, to whatever memory, is there for all threads behind it. False: as above */
  __device__ __forceinline__ bool order(int iteration)
  {
    bool well = true;

    ++tag_;
    __syncthreads();
    if (threadIdx.x < 32) {
      const double none[1] = {0.0};
      double       number[turns];

      release();
      leave<1>(none);
      well = fetch(0, number, iteration);
      __threadfence(); /* and empties L1 */
    }
    return __syncthreads_and(well);
  }

private:
  /* By warp 0: behind what the block's threads have written, by way of their barrier */
  __device__ __forceinline__ static void release()
  {
    if (threadIdx.x == 0) __threadfence();
    __syncwarp();
  }

  __device__ PetscTCTagged *at(int k) const
  {
    return record_ + (tag_ % 2) * (records / 2) + k * 32 * turns;
  }

  /* By a warp, one lane a sum */
  template <int K>
  __device__ __forceinline__ void leave(const double total[]) const
  {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (threadIdx.x == k) PetscTCPublish(at(k) + blockIdx.x, total[k], tag_);
    }
  }

  /* By a warp: sum k of the blocks lane, lane + 32, .. */
  __device__ __forceinline__ bool fetch(int k, double sum[], int iteration) const
  {
    const int lane = threadIdx.x % 32;

    return PetscTCFetchAll<turns>(
      at(k), [&](int n) { return lane + 32 * n < (int)gridDim.x ? lane + 32 * n : -1; }, sum, tag_, patience_, iteration);
  }

  /* By a warp: sum k over the blocks, in all lanes */
  template <class Reduce>
  __device__ __forceinline__ bool collect(int k, double &total, int iteration) const
  {
    double sum[turns];

    if (!fetch(k, sum, iteration)) return false;
    total = sum[0];
#pragma unroll
    for (int n = 1; n < turns; ++n) total += sum[n];
    Reduce::template foldWarp<32, 1>(&total);
    return true;
  }

  PetscTCTagged  *record_;
  uint64_t        tag_;
  PetscTCPatience patience_;
};
