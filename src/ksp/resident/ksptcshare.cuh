/*
   A block's share of a resident form in shared memory: slices, vectors of its rows and ghosts (ksptcresident.cuh says method, layout, memory traffic and references).
*/
#pragma once

#include <../src/ksp/resident/ksptcresident.h>
#include <type_traits>

constexpr int KSPTC_THREADS = 512; /* 768 and 1024 are no faster, and have to keep registers in memory */
constexpr int KSPTC_WARPS   = KSPTC_THREADS / KSPTC_LANES;
constexpr int KSPTC_BATCH   = 4; /* slots of a slice in flight */
constexpr int KSPTC_FETCH   = 4; /* ghosts of a thread in flight */
constexpr int KSPTC_STREAM  = 4; /* slots in a set, of slices that are not in shared memory .. */
constexpr int KSPTC_SETS    = 2; /* .. and sets in registers: three are slower, or spilled */

static_assert(KSPTC_WARPS <= KSPTC_LANES, "one warp folds the sums of all");

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
