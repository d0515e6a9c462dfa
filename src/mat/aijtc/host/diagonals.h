/*
   Method
     The product of a slice of consecutive rows that share their offsets: slot t of row r is in column r + base[t], so 32 rows multiply 32 consecutive numbers of x, in vector registers. Entries of a row are added in the order of
     the matrix row, product and sum rounded apart: the bits are those of a loop over the CSR row.

   Layout
     include/petsctc/private/aijtclayout.h: ROWS slices without RID and without deltas, of block size 1. Sums of 32 rows are four vectors of eight numbers, for which the compiler takes the widest registers there are: the function is compiled
     for AVX-512, AVX2 and the baseline, and chosen once at run time; elsewhere (NEON) for the target of the build.

   Memory traffic
     A stencil of constant coefficients: 0.3 bytes a nonzero, x and z. CSR: 12 bytes a nonzero, x, z and 4 bytes a row.

   References
     Y. Saad, Iterative Methods for Sparse Linear Systems, SIAM 2003, section 3.4 (the diagonal storage scheme)
*/
#pragma once

#include "slice.h"

/* The choice is made by an indirect function of the C library, before sanitizers have started */
#if defined(__has_feature)
  #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    #define AIJTC_SANITIZED
  #endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(AIJTC_SANITIZED)
  #define AIJTC_FOR_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
  #define AIJTC_FOR_EACH_WIDTH
#endif

namespace aijtchost
{
enum {
  OCTET  = 8,
  OCTETS = AIJTC_LANES / OCTET
};

typedef PetscScalar Octet __attribute__((vector_size(OCTET * sizeof(PetscScalar))));
typedef decltype(Octet{} < Octet{}) OctetMask; /* integers of that size, all bits set or none */

struct Sums {
  Octet of[OCTETS];
};

/* By reference: a vector as an argument or a result would depend on the registers of the caller's target */
inline __attribute__((always_inline)) void Load(const PetscScalar from[], Octet &to)
{
  memcpy(&to, from, sizeof(to));
}

/* sum[l] += value[l] * x[l] of the lanes in the mask, all of which may be read */
template <bool full, class Value>
inline __attribute__((always_inline)) void AddLanes(uint32_t mask, Value value, const PetscScalar x[], Sums &sum)
{
  constexpr OctetMask bit = {1, 2, 4, 8, 16, 32, 64, 128};

  for (int k = 0; k < OCTETS; k++) {
    Octet v, c;

    Load(x + OCTET * k, v);
    value(k, c);
    if constexpr (full) sum.of[k] += c * v;
    else sum.of[k] = (bit & (OctetMask{} + (int)((mask >> (OCTET * k)) & 0xff))) != 0 ? sum.of[k] + c * v : sum.of[k];
  }
}

/* The same where x has no 32 numbers there */
inline void AddSome(uint32_t mask, const PetscScalar value[], int step, const PetscScalar x[], int64_t at, PetscScalar sum[])
{
  for (; mask; mask &= mask - 1) {
    const int l = __builtin_ctz(mask);

    sum[l] += value[step * l] * x[at + l];
  }
}

/* The values of the lanes in the mask, from place `first` of a slice on; others are 0, or what their holes store */
inline void LoadLanes(const AIJTCLayout *layout, const AIJTCSliceView *view, uint32_t mask, PetscInt first, PetscScalar to[])
{
  const uint32_t placed = view->Placed(mask);

  for (int l = 0; l < AIJTC_LANES; l++) to[l] = placed >> l & 1 ? AIJTCValueAt(layout, view, first++) : (PetscScalar)0;
}

/* Is slice s, one of rows, one for MultDiagonals()? */
inline bool IsOfDiagonals(const AIJTCLayout *layout, PetscInt s, int groups)
{
  const AIJTCSlice *slice = layout->slice + s;

  return layout->params.bs == 1 && !layout->list && !(slice->form & AIJTC_FORM_RID) && !AIJTCFormDeltaBytes(slice->form) && slice->row <= layout->m - AIJTC_LANES * groups;
}

/* z <- A x or y + A x of its rows */
AIJTC_FOR_EACH_WIDTH inline void MultDiagonals(const AIJTCLayout *layout, PetscInt s, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  AIJTCSliceView view;

  AIJTCSliceOpenStreams(layout, s, &view);
  const bool doubles = AIJTCFormValue(view.form) == AIJTC_VALUE_DOUBLE;

  for (int r = 0; r < view.groups; r++) {
    const PetscInt row = layout->slice[s].row + AIJTC_LANES * r;
    Sums           sum = {};

    for (int32_t t = 0; t < view.slots; t++) {
      const uint32_t     mask     = view.Mask(t, r);
      const int64_t      at       = (int64_t)row + view.slot[t].base;
      const bool         readable = mask == ~0u || (at >= 0 && at + AIJTC_LANES <= layout->n), constant = view.Constant(t);
      PetscScalar        loaded[AIJTC_LANES];
      const PetscScalar *given = loaded;

      if (!mask) continue;
      if (constant) loaded[0] = AIJTCValueAt(layout, &view, view.ConstantPlace(t));
      else {
        PetscInt first = view.Where(t);

        for (int g = 0; g < r; g++) first += __builtin_popcount(view.Placed(view.Mask(t, g)));
        if (doubles && view.Placed(mask) == ~0u) given = (const PetscScalar *)view.value + first;
        else LoadLanes(layout, &view, mask, first, loaded);
      }
      const auto same = [given](int, Octet &c) __attribute__((always_inline))
      {
        c = Octet{} + *given;
      };
      const auto each = [given](int k, Octet &c) __attribute__((always_inline))
      {
        Load(given + OCTET * k, c);
      };

      if (!readable) AddSome(mask, given, constant ? 0 : 1, x, at, (PetscScalar *)&sum);
      else if (constant && mask == ~0u) AddLanes<true>(mask, same, x + at, sum);
      else if (constant) AddLanes<false>(mask, same, x + at, sum);
      else if (mask == ~0u) AddLanes<true>(mask, each, x + at, sum);
      else AddLanes<false>(mask, each, x + at, sum);
    }
    for (int k = 0; k < OCTETS; k++) {
      if (y) {
        Octet v;

        Load(y + row + OCTET * k, v);
        sum.of[k] = v + sum.of[k];
      }
      memcpy(z + row + OCTET * k, sum.of + k, sizeof(Octet));
    }
  }
}
} // namespace aijtchost
