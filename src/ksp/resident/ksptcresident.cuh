/*
   The parts of a resident kernel: a cooperative kernel, one block a multiprocessor, that does iterations of a Krylov method. Device code, and the host's side of a launch.

   Method   A block has the vectors of its rows of the resident form (ksptcform.h) in shared memory for the whole call, beside them what it needs of its ghosts, the other blocks' rows that its own have columns of, and as many
            slices of the matrix as fit. A product reads the other slices from device memory, which is L2 for the most part, the next slots while those before them are added: sums are the same wherever a slice is. To every row that may be a ghost belongs one number an iteration, or two, that its block publishes; the others fetch it while they
            wait for the sums of the next barrier (sum_barrier.cuh), and then do with the ghosts' vectors what the ghosts' block does with them, with the same bits.
            Warp 0 of every block derives the scalars from sums of the same bits, by the functions of the steps, and has them in its registers; where these are few, its first thread alone, and has them in shared memory. What the other
            threads need of them is in KSPTCTold. All wait for that, so block 0 only leaves an iteration's record in shared memory, and another warp stores it (KSPTCRecordLeft). All blocks leave the loop together.
            Parts of a row are slices of other warps; when the block has added all slices, a thread adds the row's.
   Layout   shared memory of a block: values, or their numbers in a dictionary, columns, vectors of the rows and of the ghosts, zeros, of a vector that need not be there as a whole what has room, dictionary, sums of parts, starts and cuts of slices, shown rows, ghosts; ksptcform.h. Where there is room for the vectors alone, ghosts are read from device memory, too. A vector's element is that of the row, or ghost, by its number within the
            block. A vector that is to be multiplied by has those of rows, of ghosts, and the zero. published: PetscTCTagged [m] each, by rows of the form
   Memory   16 bytes a row and number published, 16 a ghost fetched: 7-point 43^3, 1300 ghosts a block, 1.3 and 2.7 MB, in L2. A product: 18 bytes a nonzero in shared memory, 10 of
            which, or 3 with a dictionary, come from L2 for slices that are not held: 2.9 million places, 29 MB, 5.5 us at the 5.3 TB/s of L2
   References
            CUDA C++ Programming Guide, cooperative groups (grids whose blocks all run at once)
*/
#pragma once

#include <petscdevice_cuda.h>
#include <../src/ksp/resident/ksptcresident.h>
#include <../src/ksp/resident/sum_barrier.cuh>
#include <type_traits>

constexpr int KSPTC_THREADS = 512; /* 768 and 1024 are no faster, and have to keep registers in memory */
constexpr int KSPTC_WARPS   = KSPTC_THREADS / KSPTC_LANES;
constexpr int KSPTC_BATCH   = 4; /* slots of a slice in flight */
constexpr int KSPTC_FETCH   = 4; /* ghosts of a thread in flight */
constexpr int KSPTC_STREAM  = 4; /* slots in a set, of slices that are not in shared memory .. */
constexpr int KSPTC_SETS    = 2; /* .. and sets in registers: three are slower, or spilled */

static_assert(KSPTC_WARPS <= KSPTC_LANES, "one warp folds the sums of all");

/* What a kernel is told, but for the matrix */
template <class Scalars, class Vectors>
struct KSPTCCall {
  Vectors             v;
  Scalars            *scalars;
  KSPTCChunk<Scalars> chunk;
  PetscTCTagged      *published;
  double             *kept;    /* vectors of the method in device memory, if it has such: what iterations write there is here, not in v, which is written at the end of a call */
  Scalars            *records; /* in device memory, until the call ends: a store to the host's memory would take its time in every iteration */
  PetscTCPair        *sums;
  uint64_t           *tag;
  PetscTCLateBlock   *late;
  unsigned           *verdict, *before; /* how this call ends, and how the one before has ended: there the next one's will be */
  unsigned            bound;            /* of a wait */
  KSPTCFault          fault;
  bool                tensor; /* sums fold on the Tensor Core */

  __device__ __forceinline__ PetscTCPatience patience() const { return PetscTCPatience(late, verdict, bound); }
  /* A barrier of the block, before all others of the grid: has it nothing to do, since an earlier call has given up, or because it is to be absent? */
  __device__ __forceinline__ bool isOut() const
  {
    bool out = false;

    if (threadIdx.x == 0) {
      out = *before == PETSCTC_GIVEN_UP || *verdict == PETSCTC_GIVEN_UP || (fault == KSPTC_FAULT_ABSENT && blockIdx.x == gridDim.x - 1);
      if (!out && blockIdx.x == 0) *before = PETSCTC_OPEN;
    }
    return __syncthreads_or(out);
  }
};

/* The end of a call whose barriers are over, by all threads; well: as far as this block knows. Leaves the tag to the next call. False: nobody writes anything */
template <class Call, class Barrier>
__device__ __forceinline__ bool KSPTCSettles(const Call &P, const Barrier &barrier, PetscInt it, bool well)
{
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) *P.tag = barrier.last();
    if (well && P.fault == KSPTC_FAULT_LATE) (void)P.patience().givesUp((int)it);
    well = well && P.patience().settles();
  }
  return __syncthreads_and(well);
}

template <class Scalars, class Vectors>
struct KSPTCProblem : KSPTCCall<Scalars, Vectors> {
  KSPTCForm A;
};

/* A block's share of the matrix, and room for vectors of its rows and ghosts, in shared memory */
struct KSPTCShare {
  int            first, rows, ghosts;   /* first: row of the form */
  int            slices, held;          /* all, and those in shared memory */
  int            place, places;         /* the first one, and how many these have */
  double        *value, *vector, *dict; /* dict: of a form with a dictionary, and then in place of value */
  uint8_t       *code;                  /* this */
  double        *more;                  /* of `more` vectors so many numbers */
  int            mores;
  double        *part_sum; /* sums of parts of rows, which are the first slices */
  int2          *slice;    /* x: first place within the block, y: cut. Behind the last one x is what all have */
  int32_t       *ghost;    /* rows of the form */
  uint16_t      *column;
  uint32_t      *shown;  /* from the word on that has the bit of the first row */
  const int32_t *listed; /* ghost[] in device memory, if it is not in shared memory */

  __device__ __forceinline__ KSPTCShare(const KSPTCForm &A, KSPTCVectors vectors, double *memory)
  {
    const int b = (int)blockIdx.x, first_slice = __ldg(A.block_slice + b), before = __ldg(A.block_ghost + b);

    first    = __ldg(A.block_row + b);
    rows     = __ldg(A.block_row + b + 1) - first;
    ghosts   = __ldg(A.block_ghost + b + 1) - before;
    slices   = __ldg(A.block_slice + b + 1) - first_slice;
    listed   = hold(A.start + first_slice, KSPTCPlaceBytes(&A), KSPTCSharedBytes(&A, vectors) - KSPTCFixedBytes(&A) - KSPTCBytesOfVectors(rows, ghosts, slices, vectors), vectors.more * rows) ? nullptr : A.ghost + before;
    value    = memory;
    code     = (uint8_t *)memory;
    column   = A.coded ? (uint16_t *)(code + places) : (uint16_t *)(value + places);
    vector   = (double *)(column + places);
    more     = vector + vectors.rows * rows + vectors.ghosts * ghosts + KSPTC_ZEROS;
    dict     = more + mores;
    part_sum = dict + (A.coded ? KSPTC_DICT : 0);
    slice    = (int2 *)(part_sum + A.parts);
    shown    = (uint32_t *)(slice + slices + 1);
    ghost    = (int32_t *)(shown + KSPTCShownWords(rows));
  }
  /* Is the row some block's ghost? */
  __device__ __forceinline__ bool isShown(int k) const
  {
    const int bit = first % 32 + k;

    return shown[bit / 32] >> bit % 32 & 1;
  }
  __device__ __forceinline__ int32_t ghostAt(int g) const { return listed ? __ldg(listed + g) : ghost[g]; }
  /* Calls at(number) for the block's rows, and for its ghosts. Loops are not unrolled: few threads go round twice, and an iteration's code should stay in the instruction cache */
  template <class At>
  __device__ __forceinline__ void forRows(At at) const
  {
#pragma unroll 1
    for (int k = threadIdx.x; k < rows; k += KSPTC_THREADS) at(k);
  }
  template <class At>
  __device__ __forceinline__ void forGhosts(At at) const
  {
#pragma unroll 1
    for (int g = threadIdx.x; g < ghosts; g += KSPTC_THREADS) at(g);
  }
  /* For vectors that are not in shared memory: load(n, number) for up to N of the thread's rows, and then use(n, number), so that what is loaded is under way all at once */
  template <int N, class Load, class Use>
  __device__ __forceinline__ void forRowBatches(Load load, Use use) const
  {
#pragma unroll 1
    for (int k = threadIdx.x; k < rows; k += N * KSPTC_THREADS) {
#pragma unroll
      for (int n = 0; n < N; n++) {
        if (k + n * KSPTC_THREADS < rows) load(n, k + n * KSPTC_THREADS);
      }
#pragma unroll
      for (int n = 0; n < N; n++) {
        if (k + n * KSPTC_THREADS < rows) use(n, k + n * KSPTC_THREADS);
      }
    }
  }
  /* forRows() and forGhosts() with at(number, row of the matrix) */
  template <class At>
  __device__ __forceinline__ void forMatrixRows(const KSPTCForm &A, At at) const
  {
    forRows([&](int k) { at(k, KSPTCMatrixRow(A.order, first + k)); });
  }
  template <class At>
  __device__ __forceinline__ void forMatrixGhosts(const KSPTCForm &A, At at) const
  {
    forGhosts([&](int g) { at(g, KSPTCMatrixRow(A.order, ghostAt(g))); });
  }

private:
  /* What so many bytes hold: ghost[], if that fits at all (does it?), then as many of `wanted` numbers as do, then slices, whose first places are starts[], of so many bytes a place */
  __device__ __forceinline__ bool hold(const int32_t *starts, size_t place_bytes, size_t bytes, int wanted)
  {
    const bool   list = bytes >= ghosts * sizeof(int32_t);
    const size_t left = bytes - (list ? ghosts * sizeof(int32_t) : 0);

    mores             = (int)min((size_t)wanted, left / sizeof(double));
    const size_t room = (left - mores * sizeof(double)) / place_bytes;
    int          high = slices;

    place = __ldg(starts);
    held  = (size_t)(__ldg(starts + slices) - place) <= room ? slices : 0;
    while (held < high) {
      const int middle = (held + high + 1) / 2;

      if ((size_t)(__ldg(starts + middle) - place) <= room) held = middle;
      else high = middle - 1;
    }
    places = __ldg(starts + held) - place;
    return list;
  }
};

/* to[] <- from[], N times 16 bytes of a thread in flight. Both begin and end on 16 bytes: places come in warps, and before the vectors */
template <class T>
__device__ __forceinline__ void KSPTCCopyPlaces(T *to, const T *from, int places)
{
  constexpr int N    = 4;
  const int     quad = places / (int)(sizeof(int4) / sizeof(T));

  for (int k = threadIdx.x; k < quad; k += N * KSPTC_THREADS) {
    int4 part[N];

#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * KSPTC_THREADS < quad) part[n] = __ldg((const int4 *)from + k + n * KSPTC_THREADS);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
      if (k + n * KSPTC_THREADS < quad) ((int4 *)to)[k + n * KSPTC_THREADS] = part[n];
    }
  }
}

/* Behind it, a thread has the ghosts that it takes in forGhosts() */
__device__ __forceinline__ void KSPTCLoadMatrix(const KSPTCForm &A, const KSPTCShare &own)
{
  const int first_slice = __ldg(A.block_slice + blockIdx.x);

  for (int s = threadIdx.x; s <= own.slices; s += KSPTC_THREADS) own.slice[s] = make_int2(__ldg(A.start + first_slice + s) - own.place, s < own.slices ? __ldg(A.cut + first_slice + s) : 0);
  for (int w = own.first / 32 + threadIdx.x; w <= (own.first + own.rows - 1) / 32; w += KSPTC_THREADS) own.shown[w - own.first / 32] = __ldg(A.shown + w);
  for (int g = threadIdx.x; !own.listed && g < own.ghosts; g += KSPTC_THREADS) own.ghost[g] = __ldg(A.ghost + __ldg(A.block_ghost + blockIdx.x) + g);
  if (A.coded) {
    for (int k = threadIdx.x; k < KSPTC_DICT; k += KSPTC_THREADS) own.dict[k] = __ldg(A.dict + k);
    KSPTCCopyPlaces(own.code, A.code + own.place, own.places);
  } else {
    KSPTCCopyPlaces(own.value, A.value + own.place, own.places);
  }
  KSPTCCopyPlaces(own.column, A.column + own.place, own.places);
}

/* y + c z */
__device__ __forceinline__ double KSPTCCombine(double y, double z, double c)
{
  return fma(c, z, y);
}

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

/* to[g] <- what has been published of the block's ghost g for this tag, by `threads` threads of whole warps, of which this is one; to[] is there after the barrier. False: given up */
__device__ __forceinline__ bool KSPTCFetchGhosts(const PetscTCTagged *published, const KSPTCShare &own, double *to, uint64_t tag, int thread, int threads, const PetscTCPatience &patience, PetscInt it)
{
  const int lane = threadIdx.x % KSPTC_LANES;

#pragma unroll 1
  for (int of_warp = thread - lane; of_warp < own.ghosts; of_warp += KSPTC_FETCH * threads) {
    const int     g = of_warp + lane;
    PetscTCTagged tagged[KSPTC_FETCH];
    int           row[KSPTC_FETCH];

#pragma unroll
    for (int n = 0; n < KSPTC_FETCH; n++) row[n] = g + n * threads < own.ghosts ? own.ghostAt(g + n * threads) : -1;
    if (!PetscTCAwait<KSPTC_FETCH>([&](int n) { return row[n] >= 0; }, [&](int n) { return published + max(row[n], 0); }, tagged, tag, patience, (int)it)) return false;
#pragma unroll
    for (int n = 0; n < KSPTC_FETCH; n++) {
      if (row[n] >= 0) to[g + n * threads] = tagged[n].number;
    }
  }
  return true;
}

/* What all threads need of the scalars: whether the solve has stopped, and up to three factors */
struct KSPTCTold {
  double stop, one, other, third;

  /* By warp 0 */
  __device__ __forceinline__ void tell(double stopped, double first, double second = 0.0, double last = 0.0)
  {
    if (threadIdx.x % KSPTC_LANES) return;
    stop  = stopped;
    one   = first;
    other = second;
    third = last;
  }
};

/* The record of iteration `it`, by warp 0 */
template <class Problem, class Scalars>
__device__ __forceinline__ void KSPTCRecord(const Problem &P, PetscInt it, const Scalars &s)
{
  if (blockIdx.x == 0 && threadIdx.x == 0) P.records[it % PETSCTC_RECORDS] = s;
}

/* Scalars that change within a call, which does not leave x to a later one: those of CG, */
__device__ __forceinline__ void KSPTCMove(const TCCGScalars &from, TCCGScalars &to)
{
  to.beta    = from.beta;
  to.betaold = from.betaold;
  to.dpi     = from.dpi;
  to.dpiold  = from.dpiold;
  to.a       = from.a;
  to.b       = from.b;
  to.rr      = from.rr;
  to.zz      = from.zz;
  to.mean    = from.mean;
  to.shift   = from.shift;
  to.zs      = from.zs;
  to.stop    = from.stop;
  static_assert(sizeof(TCCGScalars) == 19 * sizeof(PetscReal), "late, past, above and below stay: is another one of those that change?");
}

/* those of other methods: all but the bounds */
template <class Scalars>
__device__ __forceinline__ void KSPTCMove(const Scalars &from, Scalars &to)
{
  const PetscReal above = to.above, below = to.below;

  to       = from;
  to.above = above;
  to.below = below;
}

/* The record of an iteration in two parts. In shared memory, on its way to device memory: warp 0, for which all wait, only leaves it. Block 0 has it */
template <class Scalars>
struct KSPTCRecordLeft {
  alignas(16) Scalars scalars;
  PetscInt it; /* its iteration */

  /* By all threads, before the first barrier: there is none yet, but what the kernel does not change is there */
  __device__ __forceinline__ void begin(const Scalars &s)
  {
    if (threadIdx.x) return;
    scalars = s;
    it      = -1;
  }
  /* By warp 0, or its first thread, before a barrier of the block .. */
  __device__ __forceinline__ void leave(PetscInt iteration, const Scalars &s)
  {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    KSPTCMove(s, scalars);
    it = iteration;
  }
  /* .. and by all threads behind that, before the next one: if it is that of this iteration the last warp, which has fewer rows than others, stores it; complete(record), by one thread, adds what has not been known */
  template <class Problem, class Complete>
  __device__ __forceinline__ void store(const Problem &P, PetscInt iteration, Complete complete)
  {
    constexpr int numbers = sizeof(Scalars) / sizeof(PetscReal);
    const int     lane    = threadIdx.x % KSPTC_LANES;
    Scalars      *to      = P.records + iteration % PETSCTC_RECORDS;

    static_assert(numbers <= KSPTC_LANES, "a lane for each number");
    if (blockIdx.x != 0 || threadIdx.x < KSPTC_THREADS - KSPTC_LANES || it != iteration) return;
    if (lane < numbers) reinterpret_cast<PetscReal *>(to)[lane] = reinterpret_cast<const PetscReal *>(&scalars)[lane];
    __syncwarp();
    if (lane == 0) complete(*to);
  }
  template <class Problem>
  __device__ __forceinline__ void store(const Problem &P, PetscInt iteration)
  {
    store(P, iteration, [](Scalars &) {});
  }
};

/* The records of iterations first + 1 .. it, by one block */
template <class Problem>
__device__ __forceinline__ void KSPTCStoreRecords(const Problem &P, PetscInt it)
{
  for (PetscInt k = P.chunk.first + 1 + threadIdx.x; k <= it; k += blockDim.x) P.chunk.records[k % PETSCTC_RECORDS] = P.records[k % PETSCTC_RECORDS];
}

/* The end of a call whose vectors are stored: records, and the scalars that its first thread has, but for those that no kernel changes (KSPTCMove()), by one block */
template <class Problem, class Scalars>
__device__ __forceinline__ void KSPTCLeave(const Problem &P, PetscInt it, const Scalars &s)
{
  if (blockIdx.x != 0) return;
  __syncthreads(); /* the last record may have been stored behind the last barrier */
  KSPTCStoreRecords(P, it);
  if (threadIdx.x == 0) KSPTCMove(s, *P.scalars);
}

/* ---- the host's side. kernels[]: all those of a method that may be launched with some form, or work */

/* The least that the device offers to one of them */
PETSC_INTERN PetscErrorCode KSPTCChipOfKernels(const void *const kernels[], int count, KSPTCChip *chip);
/* A cooperative launch: bytes of a block */
typedef struct {
  unsigned blocks, threads;
  size_t   shared;
} KSPTCGrid;

static inline KSPTCGrid KSPTCGridOf(const KSPTCForm *form, KSPTCVectors vectors)
{
  return {(unsigned)form->blocks, KSPTC_THREADS, KSPTCSharedBytes(form, vectors)};
}

/* Of a method's two kernels, the second for forms of which blocks have no room for all, or that have rows in parts: the one for such vectors */
static inline int KSPTCKernelAt(const KSPTCForm *form, KSPTCVectors vectors)
{
  return KSPTCHoldsPart(form, vectors) || form->parts ? 1 : 0;
}

/* Asks for all the shared memory that a block can have: others may use the kernel with another grid. can: so many blocks run at once with so many bytes */
PETSC_INTERN PetscErrorCode KSPTCPrepareKernel(const void *kernel, const KSPTCGrid *grid, PetscBool *can);
/* numbers: published by all rows; record: its bytes; sums: records of the barrier. can: also false where device memory has no room */
PETSC_INTERN PetscErrorCode KSPTCResidentWorkCreate(const void *const kernels[], int count, const KSPTCGrid *grid, PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* The same for a form, in blocks of so many vectors */
PETSC_INTERN PetscErrorCode KSPTCFormWorkCreate(const void *const kernels[], int count, const KSPTCForm *form, KSPTCVectors vectors, PetscCount numbers, size_t record, int sums, KSPTCResidentWork *work, PetscBool *can);
/* work->vectors: so many numbers. can: not where device memory has no room; then `work` holds nothing */
PETSC_INTERN PetscErrorCode KSPTCWorkVectorsCreate(PetscCount numbers, KSPTCResidentWork *work, PetscBool *can);
/* problem: a KSPTCCall, filled, and more. refused: the device did not launch the kernel, and nothing has changed */
PETSC_INTERN PetscErrorCode KSPTCResidentLaunch(const void *kernel, const KSPTCGrid *grid, void *problem, KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream);

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCFillCall(const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, KSPTCResidentWork *work, KSPTCCall<Scalars, Vectors> *call)
{
  PetscFunctionBegin;
  PetscCheck(work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space must be that of the device");
  PetscCheck(chunk->last - chunk->first <= PETSCTC_RECORDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " iterations in a call, of which only %d can leave records", chunk->last - chunk->first, (int)PETSCTC_RECORDS);
  call->v         = *v;
  call->scalars   = steps->s;
  call->chunk     = *chunk;
  call->published = work->published;
  call->kept      = work->vectors;
  call->records   = (Scalars *)work->records;
  call->sums      = work->sums;
  call->tag       = work->tag;
  call->late      = work->late;
  call->verdict   = work->verdict + work->calls % 2;
  call->before    = work->verdict + (work->calls + 1) % 2;
  call->bound     = PetscTCPatienceBound(work->patience);
  call->fault     = KSPTCNextFault(work);
  call->tensor    = steps->tensor == PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class Scalars, class Vectors, class Steps>
static inline PetscErrorCode KSPTCResidentRun(const void *kernel, const KSPTCForm *form, KSPTCVectors of_block, const KSPTCChunk<Scalars> *chunk, const Vectors *v, const Steps *steps, KSPTCResidentWork *work, PetscBool *refused, cudaStream_t stream)
{
  const KSPTCGrid                grid    = KSPTCGridOf(form, of_block);
  KSPTCProblem<Scalars, Vectors> problem = {};

  PetscFunctionBegin;
  PetscCheck(form->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The form must be that of the device");
  PetscCall((KSPTCFillCall<Scalars, Vectors>(chunk, v, steps, work, &problem)));
  problem.A = *form;
  PetscCall(KSPTCResidentLaunch(kernel, &grid, &problem, work, refused, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
