/*
   How values go into the value stream, of a build and of a refresh.

   Method
     A constant slot stores the first entry of each row remainder, zero where there is none; others store every entry at its place, a count of lanes that have one, and zeros in holes. An index into
     the dictionary is found by bisection of the dictionary's copy in shared memory.

   Memory traffic
     1, 4 or 8 bytes a value written, neighbouring lanes to neighbouring places
*/
#pragma once

#include "build_stage.cuh"

namespace aijtcbuild
{
/* The dictionary, in shared memory */
struct DictCopy {
  unsigned long long key[AIJTC_MAX_DICT];
  int                n;

  /* By all threads of a block */
  __device__ __forceinline__ void Load(const PetscScalar *__restrict__ dict, int ndict)
  {
    for (int k = (int)threadIdx.x; k < ndict; k += (int)blockDim.x) key[k] = BitsOf(dict, k);
    if (threadIdx.x == 0) n = ndict;
    __syncthreads();
  }

  /* The last index whose key is not above `bits`, or 0 */
  __device__ __forceinline__ int Find(uint64_t bits) const
  {
    int low = 0, above = n;

    while (above - low > 1) {
      const int middle = (low + above) / 2;

      if (key[middle] <= bits) low = middle;
      else above = middle;
    }
    return low;
  }
};

/* The lanes of a group that have a place in the slice, of which `mask` have an entry */
__device__ __forceinline__ unsigned PlacedLanes(const AIJTCSlice &slice, unsigned mask)
{
  return slice.form & AIJTC_FORM_SPREAD ? ALL_LANES : mask;
}

/* Bytes of a stored value */
__device__ __forceinline__ int ValueWidth(const AIJTCSlice &slice)
{
  const int form = (int)(slice.form >> AIJTC_FORM_VALUE & 3);

  return form == AIJTC_VALUE_DOUBLE ? 8 : form == AIJTC_VALUE_FLOAT ? 4 : 1;
}

/* Where the values of one slice go, and in what form; does the form hold them? */
struct ValueStore {
  uint8_t        *value;
  int             form;        /* AIJTC_VALUE_* */
  const DictCopy *dict;        /* of slices that use it */
  bool            fits = true; /* of what this lane stored */

  __device__ __forceinline__ ValueStore(uint8_t *stream, const AIJTCSlice &slice, const DictCopy *dict) : value(stream + (size_t)AIJTC_UNIT * slice.value), form((int)(slice.form >> AIJTC_FORM_VALUE & 3)), dict(dict) { }

  __device__ __forceinline__ void Put(int32_t at, uint64_t bits)
  {
    if (form == AIJTC_VALUE_DOUBLE) {
      reinterpret_cast<uint64_t *>(value)[at] = bits;
    } else if (form == AIJTC_VALUE_FLOAT) {
      reinterpret_cast<float *>(value)[at] = (float)__longlong_as_double((long long)bits);
      fits                                 = fits && IsFloat(bits);
    } else {
      const int k = dict->Find(bits);

      value[at] = (uint8_t)k;
      fits      = fits && dict->key[k] == bits;
    }
  }

  __device__ __forceinline__ void PutHole(int32_t at)
  {
    if (form == AIJTC_VALUE_DOUBLE) reinterpret_cast<uint64_t *>(value)[at] = 0;
    else if (form == AIJTC_VALUE_FLOAT) reinterpret_cast<uint32_t *>(value)[at] = 0;
    else value[at] = 0;
  }

  template <int R>
  __device__ __forceinline__ void PutConstant(const Slot<R> &slot, const int32_t rem[R], int period, int32_t at, int lane)
  {
    uint64_t mine = 0;

    for (int p = 0; p < period; p++) {
      uint64_t of = 0;

      (void)slot.First(rem, p, &of);
      if (lane == p) mine = of;
#pragma unroll
      for (int r = 0; r < R; r++) fits = fits && (!slot.has[r] || rem[r] != p || slot.bits[r] == of);
    }
    if (lane < period) Put(at + lane, mine);
  }

  /* placed: lanes that have a place; before: of the slice's places (or values) */
  template <int R>
  __device__ __forceinline__ void PutEntries(const Slot<R> &slot, const unsigned placed[R], int32_t before, int lane)
  {
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int32_t at = before + __popc(placed[r] & ((1u << lane) - 1));

      if (slot.has[r]) Put(at, slot.bits[r]);
      else if (placed[r] >> lane & 1) PutHole(at);
      before += __popc(placed[r]);
    }
  }
};
} // namespace aijtcbuild
