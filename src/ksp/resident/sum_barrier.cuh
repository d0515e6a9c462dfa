/*
   SumBarrier: a barrier of all blocks of a cooperative grid with K sums over all its threads, of which all blocks get the same bits.

   Method   No counter and no fence. Every block leaves a record of two sums, 16 bytes in one store: the lowest bits of the two numbers are not theirs, but tell for which barrier they are. Warp 0 of every block reads the
            records of all blocks again and again until they are those of this barrier, lane l those of blocks l, l + 32, ..; adds its own in this order, then the lanes' as any warp's are folded. So one sum or two
            that all blocks need cost the block's own reduction, one store and, once the last block has stored, one load, and nobody but warp 0 has to do with them. Of three sums or four there are two records, for
            two warps, and then the block's threads come together once more, unless each warp makes do with its own. Sums that few barriers have get a record of their own, the number and the tag of this barrier.
            A block's part of a sum that shares a record loses its lowest bit, always: which barrier it is for changes no bit of what is read.
            The other warps have something else to do meanwhile.
            Lanes look together: a lane that left the loop by itself would leave the others to look one after the other, which took 2,500 cycles instead of 1,300. They look again only for the records of those
            32 blocks of which one is missing, and each record has a sector of memory for itself: all blocks look at the same few lines, and who looks is in the way of who stores.
   Copies   of the records, which lanes of a warp store at once and of which each block looks at one: fewer blocks look at the same lines. Iterations of classic conjugate gradients are up to 7 % faster with four; others are
            not, or slower (docs/log/2026-11.md).
   Tags     grow by one with every barrier, also from one kernel to the next: nothing is ever cleared, and a kernel leaves the tag of its last barrier to the next. Two bits tell four barriers apart, so a record of two
            sums is stored at every barrier, whether it has such sums or not.
   Two arrays of records are enough, taken by turns. A block stores its record of barrier b + 2 where that of barrier b was. It has then left barrier b + 1, so it has read there a record of every other
            block, which that block has stored when it had left barrier b, behind its last look at the records of b. And who waits for tag b finds tag b - 2, or b; b + 2 not before all have left b.
   Numbers  between blocks travel the same way, each in one access with the tag of the barrier that follows it: PetscTCPublish() by the block that has one, in the phase that ends with the barrier;
            PetscTCAwait() by those that need it, while they wait for the sums. They need no fence: a tag is there with its number or not at all. Where one number is, the next may be stored
            as soon as a barrier behind the fetches is over.
   Order    Of other memory nothing is said but this: what is written after the barrier is computed from the sums, and so comes after what they were computed from was read: a value that decides a branch, or
            that shared memory holds, has been read. The memory model would ask for a release and an acquire; the machine has the value before it goes on.
            order() is the barrier for all memory: a fence behind the block's writes and one before its reads.
   Errors   Who waits longer than the bound gives up, and says so to the host, so that the GPU does not hang. The others then give up too, for want of the block's next record.
            Time is what the kernel itself has had: between two looks at the clock no more counts than a warp can need from one to the other. So a kernel loses no patience while another process has the GPU.
   Verdict  A block may leave the last barrier while another one, behind its own record, loses patience there. What the kernel has computed must be kept by all blocks or by none. So one word in device memory decides
            how the kernel ends, and whoever comes first writes it: a block that has left the last barrier, or one that gives up. Later ones do as it says. Who finds that the others have settled goes on waiting: all
            records are there then, or on their way.
   Layout   record[2 ((((tag % 2) * K + k) * C + copy) * B + block)], K the records of a block in a barrier of the most sums, C the copies, B the most blocks, rounded up to whole warps: addresses of a lane's records differ by constants
   Memory   16 K C bytes a block written, by each block a sector of 32 read for each block and record, in L2: 132 blocks, two sums: 2 kB written, 560 kB read in a look of all blocks
   References
            PTX ISA 8.3: st and ld of .b128, one access; memory consistency model: a relaxed store of the scope of the device is seen at last by every relaxed load of it
*/
#pragma once

#include <../src/parts/cuda/grid_reduce.cuh>
#include <../src/parts/cuda/patience.cuh>
#include <../src/ksp/resident/ksptcresident.h>
#include <../src/ksp/resident/lateblock.h>

/* One access, seen by all blocks */
__device__ __forceinline__ void PetscTCStore16(void *to, uint64_t low, uint64_t high)
{
  asm volatile("{\n\t.reg .b128 r;\n\tmov.b128 r, {%1, %2};\n\tst.relaxed.gpu.global.b128 [%0], r;\n\t}" ::"l"(__cvta_generic_to_global(to)), "l"(low), "l"(high) : "memory");
}

__device__ __forceinline__ void PetscTCLoad16(const void *from, uint64_t &low, uint64_t &high)
{
  asm volatile("{\n\t.reg .b128 r;\n\tld.relaxed.gpu.global.b128 r, [%2];\n\tmov.b128 {%0, %1}, r;\n\t}" : "=l"(low), "=l"(high) : "l"(__cvta_generic_to_global(from)) : "memory");
}

/* Records that blocks wait for: is one not that of a tag? 0: it is */
__device__ __forceinline__ unsigned PetscTCIsOther(const PetscTCTagged &tagged, uint64_t tag)
{
  return tagged.tag != tag;
}

/* The bits of the barrier with this tag in the two numbers of a pair: records that are all zero are none's */
__device__ __forceinline__ unsigned PetscTCLowBit(uint64_t tag)
{
  return ((unsigned)tag + 1) / 2 % 2;
}

__device__ __forceinline__ unsigned PetscTCHighBit(uint64_t tag)
{
  return ((unsigned)tag + 1) / 4 % 2;
}

__device__ __forceinline__ unsigned PetscTCIsOther(const PetscTCPair &pair, uint64_t tag)
{
  return (((unsigned)pair.low ^ PetscTCLowBit(tag)) | ((unsigned)pair.high ^ PetscTCHighBit(tag))) & 1;
}

__device__ __forceinline__ void PetscTCLoad(const PetscTCTagged *from, PetscTCTagged &tagged)
{
  uint64_t bits;

  PetscTCLoad16(from, bits, tagged.tag);
  tagged.number = __longlong_as_double((long long)bits);
}

__device__ __forceinline__ void PetscTCLoad(const PetscTCPair *from, PetscTCPair &pair)
{
  PetscTCLoad16(from, pair.low, pair.high);
}

__device__ __forceinline__ void PetscTCPublish(PetscTCTagged *to, double number, uint64_t tag)
{
  PetscTCStore16(to, (uint64_t)__double_as_longlong(number), tag);
}

__device__ __forceinline__ PetscTCTagged PetscTCFetch(const PetscTCTagged *from)
{
  PetscTCTagged tagged;

  PetscTCLoad(from, tagged);
  return tagged;
}

/* The number in one half of a pair. 0, Inf and NaN are themselves */
__device__ __forceinline__ double PetscTCNumberOf(uint64_t half)
{
  return __longlong_as_double((long long)(half & ~(uint64_t)1));
}

__device__ __forceinline__ uint64_t PetscTCHalf(double number, unsigned bit)
{
  return ((uint64_t)__double_as_longlong(number) & ~(uint64_t)1) | bit;
}

/* How long a warp has waited, in units of PetscTCNow(): the time of its last look at the clock, and what counts */
struct PetscTCWait {
  unsigned last = 0, spent = 0;
};

/* How a kernel ends */
enum {
  PETSCTC_OPEN, /* not yet known: before it begins */
  PETSCTC_SETTLED,
  PETSCTC_GIVEN_UP
};

/* How long to wait, and the verdict */
class PetscTCPatience {
public:
  __device__ PetscTCPatience(volatile PetscTCLateBlock *late, unsigned *verdict, unsigned bound) : late_(late), verdict_(verdict), bound_(bound) { }

  /* By a warp. look: how many times it has looked. True: give up; then the host has been told */
  __device__ bool over(unsigned look, PetscTCWait &wait, int iteration) const
  {
    if (look % looks) return false;
    const unsigned time = __shfl_sync(0xffffffffu, PetscTCNow(), 0);

    if (wait.last) wait.spent += min(time - wait.last, most);
    wait.last = time;
    if (wait.spent <= bound_) return false;
    return __any_sync(0xffffffffu, threadIdx.x % 32 == 0 && givesUp(iteration));
  }

  /* By a thread behind what may be the last barrier. Do all blocks keep what they have computed? Else none does */
  __device__ bool settles() const { return atomicCAS(verdict_, PETSCTC_OPEN, PETSCTC_SETTLED) != PETSCTC_GIVEN_UP; }

  /* By a thread. False: the others have settled */
  __device__ bool givesUp(int iteration) const
  {
    const unsigned found = atomicCAS(verdict_, PETSCTC_OPEN, PETSCTC_GIVEN_UP);

    if (found == PETSCTC_OPEN) tell(iteration);
    return found != PETSCTC_SETTLED;
  }

private:
  static constexpr unsigned looks = 1024; /* between two at the clock: 0.4 to 2 ms */
  static constexpr unsigned most  = 4000; /* units: 4 ms */

  __device__ void tell(int iteration) const
  {
    late_->block     = (int)blockIdx.x;
    late_->iteration = iteration;
    __threadfence_system();
    late_->late = 1;
  }

  volatile PetscTCLateBlock *late_;
  unsigned                  *verdict_;
  unsigned                   bound_; /* units */
};

/* By a warp, up to N records to a thread that all have to be those of the tag: record[n] from *from(n) where has(n); else of zeros, but *from(n) is read too. False: given up.
   All loads of a look are under way before the first is waited for: what decides which there are is one word of the warp, not a predicate of each lane and record, of which there are too few */
template <int N, class Record, class Has, class From>
__device__ __forceinline__ bool PetscTCAwait(Has has, From from, Record record[], uint64_t tag, const PetscTCPatience &patience, int iteration)
{
  PetscTCWait wait;
  unsigned    missing = (1u << N) - 1; /* a bit for each n, the same in all lanes */
  unsigned    mine    = 0;             /* likewise: which has(n) */

#pragma unroll
  for (int n = 0; n < N; ++n) mine |= (has(n) ? 1u : 0u) << n;
  for (unsigned look = 1;; ++look) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (missing >> n & 1) PetscTCLoad(from(n), record[n]);
    }
    unsigned other = 0;

#pragma unroll
    for (int n = 0; n < N; ++n) other |= PetscTCIsOther(record[n], tag) << n;
    missing = __reduce_or_sync(0xffffffffu, other & mine);
    if (!missing) break;
    if (patience.over(look, wait, iteration)) return false;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (!has(n)) record[n] = {};
  }
  return true;
}

/* The same with a condition for each record: for threads that have no registers for all at once. Numbers: number[n] from from[at(n)]; 0 where at(n) < 0 */
template <int N, class At>
__device__ __forceinline__ bool PetscTCFetchAll(const PetscTCTagged *from, At at, double number[], uint64_t tag, const PetscTCPatience &patience, int iteration)
{
  PetscTCWait   wait;
  PetscTCTagged tagged[N];

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
    if (patience.over(look, wait, iteration)) return false;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) number[n] = tagged[n].number;
  return true;
}

/* MostBlocks of a grid, MostSums of a barrier, of which the first 2 Pairs share records: as many as most barriers have; none where a thread has 64 registers, of which a look at five such records takes too many.
   Copies of the records that a warp stores at once, up to 32 / MostSums */
template <int MostBlocks, int MostSums, int Pairs, int Copies = 1>
class SumBarrier {
public:
  static_assert(Copies >= 1 && Copies * (MostSums > Pairs ? MostSums : Pairs) <= 32, "a lane for each record and copy");
  static constexpr int turns   = (MostBlocks + 31) / 32;
  static constexpr int pairs   = Pairs;
  static constexpr int each    = pairs + (MostSums > 2 * pairs ? MostSums - 2 * pairs : 0); /* records of a block */
  static constexpr int apart   = Pairs > 0 ? 2 : 1;                                         /* a record has a sector, the least that is read from L2, for itself */
  static constexpr int records = apart * 2 * each * Copies * 32 * turns;                    /* room for them, all zero before the first barrier ever */

  /* tag: the last one given. tensor: sums fold on the Tensor Core. By all threads; nobody may change *tag before all have come to the first barrier */
  __device__ SumBarrier(PetscTCPair *record, const uint64_t *tag, bool tensor, const PetscTCPatience &patience) : record_(record), tag_(*tag), tensor_(tensor), patience_(patience) { }

  /* The tags of the last barrier, to be left to the next kernel, and of the next */
  __device__ uint64_t               last() const { return tag_; }
  __device__ uint64_t               next() const { return tag_ + 1; }
  __device__ const PetscTCPatience &patience() const { return patience_; }

  /* By all threads of all blocks. derive(total), in all threads of warp 0 of each, gets the sums over the grid of sum[k]; meanwhile(tag, thread, threads), in the threads of the other warps, of which this is
     one, is done while they come in and says whether it could. What both leave in shared memory is there for all after. orders: memory too, as order() does. False: given up, leave the kernel */
  template <bool orders = false, int K, int Threads, class Meanwhile, class Derive>
  __device__ __forceinline__ bool sum(const double sum[], GridReduceShared<K, Threads> &shared, int iteration, Meanwhile meanwhile, Derive derive)
  {
    return tensor_ ? sumBy<true, orders>(sum, shared, iteration, meanwhile, derive) : sumBy<false, orders>(sum, shared, iteration, meanwhile, derive);
  }
  template <bool tensor, bool orders, int K, int Threads, class Meanwhile, class Derive>
  __device__ __forceinline__ bool sumBy(const double sum[], GridReduceShared<K, Threads> &shared, int iteration, Meanwhile meanwhile, Derive derive)
  {
    static_assert(!orders || Copies == 1, "one lane has a fence before what it stores");
    constexpr int two        = K < 2 * pairs ? (K + 1) / 2 : pairs;       /* warps that collect two sums, or one if that is all .. */
    constexpr int collectors = two + (K > 2 * pairs ? K - 2 * pairs : 0); /* .. and those and others that collect one */
    const int     warp       = threadIdx.x / 32;
    double        total[K];
    bool          well;

    ++tag_;
    fold<tensor>(sum, shared, total);
    if (warp == 0) {
      if constexpr (orders) release(); /* fold() has had a barrier of the block */
      leave<K>(total);
    }
    if (warp < collectors) {
      if constexpr (two == collectors) well = collectTwo<tensor, (K > 1 ? 2 : 1)>(warp, total, iteration);
      else if (warp < two) well = collectTwo<tensor, 2>(warp, total, iteration);
      else well = collectOne<tensor>(warp, total[0], iteration);
      if (orders && warp == 0) __threadfence();
      if (collectors > 1 && threadIdx.x % 32 == 0) {
        const int first = warp < two ? 2 * warp : warp + two;

        shared.total[first] = total[0];
        if (warp < two && first + 1 < K) shared.total[first + 1] = total[1];
      }
    } else {
      well = meanwhile(tag_, (int)threadIdx.x - 32 * collectors, Threads - 32 * collectors);
    }
    if constexpr (collectors > 1) { /* else warp 0 has them */
      well = __syncthreads_and(well);
#pragma unroll
      for (int k = 0; k < K; ++k) total[k] = shared.total[k];
    }
    if (warp == 0 && well) derive(total);
    return __syncthreads_and(well);
  }

  /* The same with nothing to do meanwhile */
  template <bool orders = false, int K, int Threads, class Derive>
  __device__ __forceinline__ bool sum(const double sum[], GridReduceShared<K, Threads> &shared, int iteration, Derive derive)
  {
    return this->template sum<orders>(
      sum, shared, iteration, [](uint64_t, int, int) { return true; }, derive);
  }

  /* sum() of K sums, three or four, of which derive(total), in warp 0, gets the first two, and judge(total), in all threads of warp 1, the others: neither waits for the other's, and the block's threads come together once less.
     Both do their part at the same time, and what they leave for each other is there behind the barrier */
  template <int K, int Threads, class Meanwhile, class Derive, class Judge>
  __device__ __forceinline__ bool sumApart(const double sum[], GridReduceShared<K, Threads> &shared, int iteration, Meanwhile meanwhile, Derive derive, Judge judge)
  {
    return tensor_ ? sumApartBy<true>(sum, shared, iteration, meanwhile, derive, judge) : sumApartBy<false>(sum, shared, iteration, meanwhile, derive, judge);
  }
  template <bool tensor, int K, int Threads, class Meanwhile, class Derive, class Judge>
  __device__ __forceinline__ bool sumApartBy(const double sum[], GridReduceShared<K, Threads> &shared, int iteration, Meanwhile meanwhile, Derive derive, Judge judge)
  {
    static_assert(pairs == 2 && K > 2 && K <= 4, "a record of two sums for each of two warps");
    const int warp = threadIdx.x / 32;
    double    total[K];
    bool      well;

    ++tag_;
    fold<tensor>(sum, shared, total);
    if (warp == 0) leave<K>(total);
    if (warp < 2) {
      well = collectTwo<tensor, 2>(warp, total, iteration);
      if (well && warp == 0) derive(total);
      if (well && warp == 1) judge(total);
    } else {
      well = meanwhile(tag_, (int)threadIdx.x - 64, Threads - 64);
    }
    return __syncthreads_and(well);
  }

  /* The barrier without sums. What any thread has written before it, to whatever memory, is there for all threads behind it. False: as above */
  __device__ __forceinline__ bool order(int iteration)
  {
    static_assert(Copies == 1, "likewise");
    bool well = true;

    ++tag_;
    __syncthreads();
    if (threadIdx.x < 32) {
      const double none[1] = {0.0};

      release();
      leave<1>(none);
      if constexpr (pairs > 0) {
        PetscTCPair pair[turns];

        well = fetch(0, pair, iteration);
      } else {
        double number[turns];

        well = fetchOne(0, number, iteration);
      }
      __threadfence(); /* and empties L1 */
    }
    return __syncthreads_and(well);
  }

private:
  /* The block's sums, in all lanes of warp 0 that leave() has records for */
  template <bool tensor, int K, int Threads>
  __device__ __forceinline__ void fold(const double sum[], GridReduceShared<K, Threads> &shared, double total[]) const
  {
    constexpr int left = Copies * (K > pairs ? K : pairs);

    GridReduce<K, tensor, Threads>::fold(sum, shared, total);
    if constexpr (!tensor && left > Threads / 32) { /* on CUDA cores as many lanes have them as there are warps */
      if (threadIdx.x >= 32) return;
#pragma unroll
      for (int k = 0; k < K; ++k) total[k] = __shfl_sync(0xffffffffu, total[k], 0);
    }
  }

  /* By warp 0: behind what the block's threads have written, by way of their barrier */
  __device__ __forceinline__ static void release()
  {
    if (threadIdx.x == 0) __threadfence();
    __syncwarp();
  }

  /* Records of this barrier, that of block 0 of one kind: k < pairs, of sums 2 k and 2 k + 1; else of sum k + pairs */
  __device__ PetscTCPair *at(int kind, int copy) const
  {
    return record_ + (tag_ % 2) * (records / 2) + (kind * Copies + copy) * (apart * 32 * turns);
  }
  __device__ PetscTCTagged *single(int kind, int copy) const
  {
    return reinterpret_cast<PetscTCTagged *>(at(kind, copy));
  }
  /* That which this block looks at */
  __device__ int copy() const
  {
    return (int)blockIdx.x % Copies;
  }

  /* By a warp, one lane a record and copy */
  template <int K>
  __device__ __forceinline__ void leave(const double total[]) const
  {
    const int place = (int)threadIdx.x / Copies, copy = (int)threadIdx.x % Copies;

#pragma unroll
    for (int k = 0; k < pairs; ++k) {
      if (place == k) PetscTCStore16(at(k, copy) + apart * blockIdx.x, PetscTCHalf(2 * k < K ? total[2 * k] : 0.0, PetscTCLowBit(tag_)), PetscTCHalf(2 * k + 1 < K ? total[2 * k + 1] : 0.0, PetscTCHighBit(tag_)));
    }
#pragma unroll
    for (int k = 2 * pairs; k < K; ++k) {
      if (place == k) PetscTCPublish(single(k - pairs, copy) + apart * blockIdx.x, total[k], tag_);
    }
  }

  /* By a warp: these records of the blocks lane, lane + 32, .. */
  __device__ __forceinline__ bool fetch(int kind, PetscTCPair pair[], int iteration) const
  {
    const int                lane = threadIdx.x % 32;
    const PetscTCPair *const mine = at(kind, copy()) + apart * lane;

    return PetscTCAwait<turns>([&](int n) { return lane + 32 * n < (int)gridDim.x; }, [&](int n) { return mine + apart * 32 * n; }, pair, tag_, patience_, iteration);
  }
  __device__ __forceinline__ bool fetchOne(int kind, double number[], int iteration) const
  {
    const int lane = threadIdx.x % 32;

    return PetscTCFetchAll<turns>(
      single(kind, copy()), [&](int n) { return lane + 32 * n < (int)gridDim.x ? apart * (lane + 32 * n) : -1; }, number, tag_, patience_, iteration);
  }

  /* By a warp: the first of the two sums of a pair over the blocks, or both, in all lanes */
  template <bool tensor, int Sums>
  __device__ __forceinline__ bool collectTwo(int kind, double total[], int iteration) const
  {
    PetscTCPair pair[turns];

    if (!fetch(kind, pair, iteration)) return false;
    total[0] = PetscTCNumberOf(pair[0].low);
    if (Sums > 1) total[1] = PetscTCNumberOf(pair[0].high);
#pragma unroll
    for (int n = 1; n < turns; ++n) {
      total[0] += PetscTCNumberOf(pair[n].low);
      if (Sums > 1) total[1] += PetscTCNumberOf(pair[n].high);
    }
    GridReduce<Sums, tensor>::template foldWarp<32>(total);
    return true;
  }

  /* The same of another one */
  template <bool tensor>
  __device__ __forceinline__ bool collectOne(int kind, double &total, int iteration) const
  {
    double number[turns];

    if (!fetchOne(kind, number, iteration)) return false;
    total = number[0];
#pragma unroll
    for (int n = 1; n < turns; ++n) total += number[n];
    GridReduce<1, tensor>::template foldWarp<32>(&total);
    return true;
  }

  PetscTCPair    *record_;
  uint64_t        tag_;
  bool            tensor_;
  PetscTCPatience patience_;
};
