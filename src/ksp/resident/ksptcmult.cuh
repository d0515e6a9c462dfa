/*
   The product of a block's rows of the resident form, for kernels that have its vectors in shared memory (ksptcresident.cuh, which says method, layout, memory traffic and references).
*/
#pragma once

#include <../src/ksp/resident/ksptcshare.cuh>

/* The row of a slice of this cut whose sum the thread gets, or one behind all */
__device__ __forceinline__ int KSPTCRowOfLane(const KSPTCShare &own, int cut)
{
  const int lane = threadIdx.x % KSPTC_LANES, row = KSPTCCutAnyRow(cut) + (lane << KSPTCCutWidth(cut)) / KSPTC_LANES;

  return (lane & (KSPTCCutLanes(cut) - 1)) == 0 ? row : own.rows;
}

/* What is ready for the thread's row of slice s, if it has one */
template <class Ready>
__device__ __forceinline__ auto KSPTCReadySlice(const KSPTCShare &own, int s, int slices, Ready ready)
{
  const int row = s < slices ? KSPTCRowOfLane(own, own.slice[s].y) : own.rows;

  return row < own.rows ? ready(row) : decltype(ready(row)){};
}

/* The sums of the lanes of slice s are there, and its cut. parts: it may be a part of a row */
template <bool parts, class Ahead, class Finish>
__device__ __forceinline__ void KSPTCFinishSlice(const KSPTCShare &own, int s, int cut, double sum, const Ahead &ahead, Finish finish)
{
  const int row = KSPTCRowOfLane(own, cut);

  for (int distance = 1; distance < KSPTCCutLanes(cut); distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (row < own.rows) finish(row, sum, ahead);
  else if (parts && KSPTCCutIsPart(cut) && threadIdx.x % KSPTC_LANES == 0) own.part_sum[s] = sum;
}

/* The sums of rows from those of their parts, by a thread each */
template <class Ready, class Finish>
__device__ __forceinline__ void KSPTCFinishParts(const KSPTCShare &own, int parts, Ready ready, Finish finish)
{
  __syncthreads();
  for (int s = threadIdx.x; s < min(parts, own.slices); s += KSPTC_THREADS) {
    const int cut = own.slice[s].y, row = KSPTCCutRow(cut);

    if (!KSPTCCutIsPart(cut) || (s > 0 && own.slice[s - 1].y == cut)) continue;
    double sum = own.part_sum[s];

    for (int next = s + 1; next < own.slices && own.slice[next].y == cut; next++) sum += own.part_sum[next];
    finish(row, sum, ready(row));
  }
  __syncthreads(); /* the next product has sums of its own */
}

/* A block's slices in device memory: the places of a lane */
template <bool coded>
struct KSPTCStream {
  using Number = std::conditional_t<coded, uint8_t, double>;

  const Number   *number; /* values, or their numbers in the dictionary */
  const uint16_t *column;

  __device__ __forceinline__ KSPTCStream(const KSPTCForm &A, const KSPTCShare &own, int lane) : column(A.column + own.place + lane)
  {
    if constexpr (coded) number = A.code + own.place + lane;
    else number = A.value + own.place + lane;
    asm("" : "+l"(number), "+l"(column)); /* else the compiler computes them anew, from the kernel's parameters, for each slot: that took more instructions than the product */
  }
};

/* N slots of a lane, from a slice that is not in shared memory. Of places from `end` on: nothing */
template <int N, bool coded>
struct KSPTCSlots {
  std::conditional_t<coded, int, double> number[N];
  int                                    place[N];

  /* at, end: of lane 0 */
  __device__ __forceinline__ void load(const KSPTCStream<coded> &from, int at, int end, int zero)
  {
    const auto     *numbers = from.number + at;
    const uint16_t *columns = from.column + at;
    const int       left    = end - at;

    asm("" : "+l"(numbers), "+l"(columns)); /* once, not for each slot */

#pragma unroll
    for (int k = 0; k < N; k++) {
      const bool is = KSPTC_LANES * k < left;

      place[k] = is ? __ldg(columns + KSPTC_LANES * k) : zero;
      if constexpr (coded) number[k] = is ? __ldg(numbers + KSPTC_LANES * k) : 0;
      else number[k] = is ? __ldg(numbers + KSPTC_LANES * k) : 0.0;
    }
  }
  __device__ __forceinline__ double value(int k, const double *dict) const
  {
    if constexpr (coded) return dict[number[k]];
    else return number[k];
  }
};

/* KSPTCMult() of the slices that are not in shared memory, in the warps that would take them there: sets of slots, of one slice or of two, are in registers or on their way there */
template <bool coded, class Ready, class Finish>
__device__ __forceinline__ void KSPTCMultStreamed(const KSPTCForm &A, const KSPTCShare &own, const double *u, Ready ready, Finish finish)
{
  constexpr int step = KSPTC_LANES * KSPTC_STREAM;
  const int     warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES, zero = own.rows + own.ghosts;
  int           s = own.held + (unsigned)(warp - own.held) % KSPTC_WARPS; /* the warp's first one, as if all were held: the slice that is asked for next .. */

  if (s >= own.slices) return;
  const KSPTCStream<coded>        from(A, own, lane);
  KSPTCSlots<KSPTC_STREAM, coded> slots[KSPTC_SETS];
  bool                            over[KSPTC_SETS]; /* are they the last ones of their slice? */
  int                             now = s, place = own.slice[s].x, end = own.slice[s + 1].x;
  auto                            ahead = KSPTCReadySlice(own, s, own.slices, ready);
  double                          sum   = 0.0;
  const auto                      ask   = [&](KSPTCSlots<KSPTC_STREAM, coded> &set, bool &last) {
    set.load(from, place, end, zero);
    place += step;
    last = place >= end;
    if (!last) return;
    s += KSPTC_WARPS;
    place = s < own.slices ? own.slice[s].x : 0;
    end   = s < own.slices ? own.slice[s + 1].x : 0;
  };

#pragma unroll
  for (int d = 0; d < KSPTC_SETS; d++) ask(slots[d], over[d]);
#pragma unroll 1
  for (;;) {
#pragma unroll
    for (int d = 0; d < KSPTC_SETS; d++) {
#pragma unroll
      for (int k = 0; k < KSPTC_STREAM; k++) sum = fma(slots[d].value(k, own.dict), u[slots[d].place[k]], sum);
      const bool last = over[d];

      ask(slots[d], over[d]);
      if (!last) continue;
      KSPTCFinishSlice<true>(own, now, own.slice[now].y, sum, ahead, finish);
      sum = 0.0;
      now += KSPTC_WARPS; /* .. and the one that is added */
      if (now >= own.slices) return;
      ahead = KSPTCReadySlice(own, now, own.slices, ready);
    }
  }
}

/* The others */
template <bool parts, bool coded, class Ready, class Finish>
__device__ __forceinline__ void KSPTCMultHeld(const KSPTCShare &own, const double *u, Ready ready, Finish finish)
{
  const int warp = threadIdx.x / KSPTC_LANES, lane = threadIdx.x % KSPTC_LANES, zero = own.rows + own.ghosts;
  auto      next = KSPTCReadySlice(own, warp, own.held, ready);

#pragma unroll 1
  for (int s = warp; s < own.held; s += KSPTC_WARPS) {
    const int  end   = own.slice[s + 1].x;
    const int2 slice = own.slice[s];
    const auto ahead = next;
    double     sum   = 0.0;

    next = KSPTCReadySlice(own, s + KSPTC_WARPS, own.held, ready);
#pragma unroll 1
    for (int place = slice.x + lane; place < end; place += KSPTC_LANES * KSPTC_BATCH) {
      int    column[KSPTC_BATCH];
      double value[KSPTC_BATCH];

#pragma unroll
      for (int k = 0; k < KSPTC_BATCH; k++) {
        const bool is = place + KSPTC_LANES * k < end;

        column[k] = is ? own.column[place + KSPTC_LANES * k] : zero;
        if constexpr (coded) value[k] = own.dict[is ? own.code[place + KSPTC_LANES * k] : 0];
        else value[k] = is ? own.value[place + KSPTC_LANES * k] : 0.0;
      }
#pragma unroll
      for (int k = 0; k < KSPTC_BATCH; k++) sum = fma(value[k], u[column[k]], sum);
    }
    KSPTCFinishSlice<parts>(own, s, slice.y, sum, ahead, finish);
  }
}

/* Calls finish(row, sum, what ready(row) has returned before: a slice ahead, or, of slices that are not in shared memory, when the slots of its own are to be added) for every row of the block, in the thread that has the row's sum; u: of rows and ghosts, and the zero. in_part: there may be slices that blocks
   have no room for, and parts of rows; kernels for others have no code for these, and its registers for the rest */
template <bool in_part, class Ready, class Finish>
__device__ __forceinline__ void KSPTCMultReady(const KSPTCForm &A, const KSPTCShare &own, const double *u, Ready ready, Finish finish)
{
  if (A.coded) KSPTCMultHeld<in_part, true>(own, u, ready, finish);
  else KSPTCMultHeld<in_part, false>(own, u, ready, finish);
  if constexpr (in_part) {
    if (own.held < own.slices) {
      if (A.coded) KSPTCMultStreamed<true>(A, own, u, ready, finish);
      else KSPTCMultStreamed<false>(A, own, u, ready, finish);
    }
    if (A.parts) KSPTCFinishParts(own, A.parts, ready, finish);
  }
}

/* The same with finish(row, sum) alone */
template <bool in_part, class Finish>
__device__ __forceinline__ void KSPTCMult(const KSPTCForm &A, const KSPTCShare &own, const double *u, Finish finish)
{
  KSPTCMultReady<in_part>(
    A, own, u, [](int) { return 0; }, [&](int row, double sum, int) { finish(row, sum); });
}
