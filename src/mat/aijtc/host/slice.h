/* One slice of a layout in host memory, opened for reading: what the host twins of product and refresh share with the build */
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <string.h>

enum {
  AIJTC_MAX_GROUPS = 4,
  AIJTC_MAX_PLACES = AIJTC_LANES * AIJTC_MAX_GROUPS
};

/* Row groups of a slice */
static inline int AIJTCKindGroups(AIJTCKind kind, const AIJTCParams *params)
{
  return kind == AIJTC_ROWS ? (int)params->rrows : 1;
}

/* log2 of the entries of one row in a slot: 32, 4 or 1. Lane l of group r works for the row in place (32 r + l) >> shift */
static inline int AIJTCKindShift(AIJTCKind kind)
{
  return kind == AIJTC_LONG ? 5 : (kind == AIJTC_TILE ? 2 : 0);
}

static inline int AIJTCKindPlaces(AIJTCKind kind, const AIJTCParams *params)
{
  return (AIJTC_LANES * AIJTCKindGroups(kind, params)) >> AIJTCKindShift(kind);
}

/* A constant slot has one value for each remainder of the row by the period */
static inline int AIJTCKindPeriod(AIJTCKind kind, const AIJTCParams *params)
{
  return kind == AIJTC_ROWS ? (int)params->bs : 1;
}

static inline AIJTCKind AIJTCSliceKind(const AIJTCLayout *layout, PetscInt s)
{
  if (s < layout->nslices[AIJTC_LONG]) return AIJTC_LONG;
  return s - layout->nslices[AIJTC_LONG] < layout->nslices[AIJTC_TILE] ? AIJTC_TILE : AIJTC_ROWS;
}

static inline int AIJTCFormDeltaBytes(uint32_t form)
{
  const int field = (int)(form >> AIJTC_FORM_DELTA) & 3;

  return field ? 1 << (field - 1) : 0;
}

static inline uint32_t AIJTCFormValue(uint32_t form)
{
  return (form >> AIJTC_FORM_VALUE) & 3;
}

static inline int AIJTCFormValueBytes(uint32_t form)
{
  const uint32_t value = AIJTCFormValue(form);

  return value == AIJTC_VALUE_DICT ? 1 : (value == AIJTC_VALUE_FLOAT ? (int)sizeof(float) : (int)sizeof(PetscScalar));
}

static inline PetscCount AIJTCRoundUp(PetscCount bytes, PetscCount unit)
{
  return (bytes + unit - 1) / unit * unit;
}

/* Entries that a slice has room for */
static inline PetscCount AIJTCSlicePlaces(const AIJTCSlice *slice, int groups)
{
  return slice->form & AIJTC_FORM_SPREAD ? (PetscCount)slice->slots * AIJTC_LANES * groups : slice->entries;
}

/* Bytes of a slice in the pattern stream before its deltas, and with them */
static inline PetscCount AIJTCSliceHeadBytes(const AIJTCSlice *slice, int groups)
{
  const PetscCount slot = (PetscCount)sizeof(AIJTCSlot) + (slice->form & AIJTC_FORM_FULL ? 0 : groups * (PetscCount)sizeof(uint32_t)), bytes = slice->slots * slot;

  return AIJTCFormDeltaBytes(slice->form) ? AIJTCRoundUp(bytes, AIJTC_DELTA_ALIGN) : bytes;
}

static inline PetscCount AIJTCSlicePatternBytes(const AIJTCSlice *slice, int groups)
{
  return AIJTCRoundUp(AIJTCSliceHeadBytes(slice, groups) + AIJTCSlicePlaces(slice, groups) * AIJTCFormDeltaBytes(slice->form), AIJTC_UNIT);
}

static inline PetscCount AIJTCSliceValueBytes(const AIJTCSlice *slice)
{
  return AIJTCRoundUp((PetscCount)slice->values * AIJTCFormValueBytes(slice->form), AIJTC_UNIT);
}

/* The bits of a value, so that -0.0 and the payload of a NaN count */
static inline uint64_t AIJTCBits(PetscScalar value)
{
  static_assert(sizeof(PetscScalar) == 4 || sizeof(PetscScalar) == 8, "real single or double precision");
  if constexpr (sizeof(PetscScalar) == 4) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
  } else {
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
}

static inline PetscScalar AIJTCFromBits(uint64_t bits)
{
  PetscScalar value;

  if constexpr (sizeof(PetscScalar) == 4) {
    const uint32_t low = (uint32_t)bits;

    memcpy(&value, &low, sizeof(value));
  } else memcpy(&value, &bits, sizeof(value));
  return value;
}

/* Up to AIJTC_MAX_DICT different bit patterns, each with a number: a table of four times the size, searched from a hash on */
struct AIJTCBitsTable {
  static constexpr uint32_t SIZE = 4 * AIJTC_MAX_DICT, NONE = SIZE;
  uint64_t                  bits[SIZE];
  int32_t                   number[SIZE]; /* -1: free */
  int32_t                   count;

  void Clear()
  {
    count = 0;
    for (uint32_t h = 0; h < SIZE; h++) number[h] = -1;
  }
  uint32_t Place(uint64_t b) const
  {
    uint32_t h = (uint32_t)((b * 0x9e3779b97f4a7c15ull) >> 54);

    while (number[h] >= 0 && bits[h] != b) h = (h + 1) % SIZE;
    return h;
  }
  int32_t Find(uint64_t b) const { return number[Place(b)]; }
  /* False if there is no room for another pattern */
  bool Insert(uint64_t b)
  {
    const uint32_t h = Place(b);

    if (number[h] >= 0) return true;
    if (count == AIJTC_MAX_DICT) return false;
    bits[h]   = b;
    number[h] = count++;
    return true;
  }
};

struct AIJTCSliceView {
  AIJTCKind        kind;
  uint32_t         form;
  int              groups, shift, places, period, width; /* width: bytes of a delta */
  int32_t          slots;
  PetscInt         first; /* LONG: entries of the row in the pieces before */
  const AIJTCSlot *slot;
  const uint32_t  *mask; /* NULL if FULL */
  const uint8_t   *delta, *value;
  const PetscInt  *list;                        /* of the slice's block in a gathered layout, else NULL */
  PetscInt         row[AIJTC_MAX_PLACES];       /* matrix row, -1: none */
  PetscInt         ref[AIJTC_MAX_PLACES];       /* of the row; LONG slices count from the lane */
  int              remainder[AIJTC_MAX_PLACES]; /* of the row by the period */

  bool     Constant(int32_t t) const { return form & AIJTC_FORM_CONST || (kind == AIJTC_ROWS && !width && slot[t].where & AIJTC_SLOT_CONST); }
  PetscInt Where(int32_t t) const { return (PetscInt)(slot[t].where & ~AIJTC_SLOT_CONST); }
  /* First of the period's values of a constant slot */
  PetscInt ConstantPlace(int32_t t) const { return form & AIJTC_FORM_CONST ? (PetscInt)t * period : Where(t); }
  uint32_t Mask(int32_t t, int r) const { return mask ? mask[(size_t)t * groups + r] : ~0u; }
  /* Of what the pattern tells, ref + base + delta */
  PetscInt Column(int64_t place) const { return list ? list[place] : (PetscInt)place; }
  /* Lanes that have a place, of those in the mask */
  uint32_t Placed(uint32_t lanes) const { return form & AIJTC_FORM_SPREAD ? ~0u : lanes; }
  uint32_t Delta(PetscInt e) const
  {
    switch (width) {
    case 1:
      return delta[e];
    case 2:
      return ((const uint16_t *)delta)[e];
    case 4:
      return ((const uint32_t *)delta)[e];
    default:
      return 0;
    }
  }
};

/* The value in a place of a slice */
static inline PetscScalar AIJTCValueAt(const AIJTCLayout *layout, const AIJTCSliceView *view, PetscInt place)
{
  switch (AIJTCFormValue(view->form)) {
  case AIJTC_VALUE_DICT:
    return layout->dict[view->value[place]];
  case AIJTC_VALUE_FLOAT:
    return (PetscScalar)((const float *)view->value)[place];
  default:
    return ((const PetscScalar *)view->value)[place];
  }
}

/* All but row, ref and remainder */
static inline void AIJTCSliceOpenStreams(const AIJTCLayout *layout, PetscInt s, AIJTCSliceView *view)
{
  const AIJTCSlice *slice = layout->slice + s;
  const uint8_t    *bytes = layout->pattern ? layout->pattern + (PetscCount)AIJTC_UNIT * slice->pattern : nullptr;

  view->kind   = AIJTCSliceKind(layout, s);
  view->form   = slice->form;
  view->groups = AIJTCKindGroups(view->kind, &layout->params);
  view->shift  = AIJTCKindShift(view->kind);
  view->places = AIJTCKindPlaces(view->kind, &layout->params);
  view->period = AIJTCKindPeriod(view->kind, &layout->params);
  view->width  = AIJTCFormDeltaBytes(slice->form);
  view->slots  = slice->slots;
  view->first  = slice->first;
  view->slot   = (const AIJTCSlot *)bytes;
  view->mask   = slice->form & AIJTC_FORM_FULL ? nullptr : (const uint32_t *)(bytes + slice->slots * sizeof(AIJTCSlot));
  view->delta  = bytes ? bytes + AIJTCSliceHeadBytes(slice, view->groups) : nullptr;
  view->list   = layout->list ? layout->list + layout->list_start[s / layout->params.gather] : nullptr;
  view->value  = layout->value ? layout->value + (PetscCount)AIJTC_UNIT * slice->value : nullptr;
}

static inline void AIJTCSliceOpen(const AIJTCLayout *layout, PetscInt s, AIJTCSliceView *view)
{
  const AIJTCSlice *slice = layout->slice + s;
  const PetscInt    bs    = layout->params.bs;

  AIJTCSliceOpenStreams(layout, s, view);
  for (int q = 0; q < view->places; q++) {
    const PetscInt next = slice->row + (PetscInt)q, r = slice->form & AIJTC_FORM_RID ? layout->rid[next] : (next < layout->m ? next : -1);

    view->row[q]       = r;
    view->ref[q]       = view->kind == AIJTC_LONG || view->list || r < 0 ? 0 : r - r % bs;
    view->remainder[q] = r < 0 ? 0 : (int)(r % view->period);
  }
}
