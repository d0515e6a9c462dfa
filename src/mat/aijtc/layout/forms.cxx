/*
   Method
     The form of one slice. Pattern: the distinct offsets (column - ref) of the rows are merged into one ascending list until it is longer than twice the longest row; the list becomes
     the slots if it costs less than the smallest deltas. Values: every slot remembers the first value of each remainder and whether another one differed. Last, a slice with few holes is spread.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     j and a once a call; the work of a slice stays in cache unless its rows are thousands long. 117 million nonzeros of a 7-point matrix of 256^3 rows: 1.4 GB a call.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "layoutbuild.h"
#include <algorithm>

namespace
{
/* Rows, lengths and offsets of a slice */
PetscCount Gather(const AIJTCLayout *layout, PetscInt s, const PetscInt j[], AIJTCSliceWork *work)
{
  const AIJTCSlice *slice   = layout->slice + s;
  PetscCount        entries = 0;

  work->kind      = AIJTCSliceKind(layout, s);
  work->groups    = AIJTCKindGroups(work->kind, &layout->params);
  work->shift     = AIJTCKindShift(work->kind);
  work->places    = AIJTCKindPlaces(work->kind, &layout->params);
  work->period    = AIJTCKindPeriod(work->kind, &layout->params);
  work->longest   = 0;
  work->ascending = PETSC_TRUE;
  for (int q = 0; q < work->places; q++) {
    const PetscInt next = slice->row + (PetscInt)q, r = slice->form & AIJTC_FORM_RID ? layout->rid[next] : (next < layout->m ? next : -1);

    work->length[q] = 0;
    if (r < 0) continue;
    work->begin[q]  = (PetscCount)layout->start[r] + slice->first;
    work->length[q] = (PetscInt)(layout->start[r + 1] - work->begin[q]);
    if (work->kind == AIJTC_LONG) work->length[q] = std::min(work->length[q], (PetscInt)(AIJTC_PIECE * AIJTC_LANES));
    work->ref[q]       = layout->params.gather ? 0 : r - r % layout->params.bs;
    work->remainder[q] = (int)(r % work->period);
    work->longest      = std::max(work->longest, work->length[q]);
    if (j) {
      const PetscInt *column = j + work->begin[q];
      int32_t        *offset = work->offset + entries;

      if (work->kind == AIJTC_LONG)
        for (PetscInt k = 0; k < work->length[q]; k++) offset[k] = (int32_t)(column[k] - k % AIJTC_LANES);
      else
        for (PetscInt k = 0; k < work->length[q]; k++) offset[k] = (int32_t)(column[k] - work->ref[q]);
      for (PetscInt k = 1; k < work->length[q]; k++)
        if (column[k] <= column[k - 1]) work->ascending = PETSC_FALSE;
    }
    entries += work->length[q];
  }
  return entries;
}

/* Where `offset` stands in the ascending list, or where it would; most often right at `from` */
inline int32_t Locate(const int32_t list[], int32_t from, int32_t count, int32_t offset)
{
  if (from < count && list[from] == offset) return from;
  return (int32_t)(std::lower_bound(list + from, list + count, offset) - list);
}

/* The distinct offsets, ascending, into base; returns their number, or -1 if there are more than `most` */
int32_t DistinctOffsets(AIJTCSliceWork *work, int32_t most)
{
  const int32_t *row   = work->offset;
  int32_t        count = 0;

  for (int q = 0; q < work->places; row += work->length[q], q++) {
    int32_t at = 0, missing = 0;

    for (PetscInt k = 0; k < work->length[q]; k++) {
      at = Locate(work->base, at, count, row[k]);
      if (at < count && work->base[at] == row[k]) at++;
      else missing++;
    }
    if (!missing) continue;
    if (count + missing > most) return -1;
    std::set_union(work->base, work->base + count, row, row + work->length[q], work->other);
    std::swap(work->base, work->other);
    count += missing;
  }
  return count;
}

/* Slots in the order of the rows: their number; bases into `other`; returns the bytes of the smallest delta, 0 if all are 0 */
int LeastDeltas(AIJTCSliceWork *work, int32_t slots)
{
  int32_t       *low = work->other, *high = work->next;
  const int32_t *row    = work->offset;
  uint32_t       spread = 0;

  std::fill(low, low + slots, PETSC_INT32_MAX);
  std::fill(high, high + slots, PETSC_INT32_MIN);
  for (int q = 0; q < work->places; row += work->length[q], q++) {
    for (PetscInt k = 0; k < work->length[q]; k++) {
      const PetscInt t = k >> work->shift;

      low[t]  = std::min(low[t], row[k]);
      high[t] = std::max(high[t], row[k]);
    }
  }
  for (int32_t t = 0; t < slots; t++) spread = std::max(spread, (uint32_t)high[t] - (uint32_t)low[t]);
  return spread == 0 ? 0 : (spread <= UINT8_MAX ? 1 : (spread <= UINT16_MAX ? 2 : 4));
}

bool IsFull(PetscCount entries, PetscCount slots, int groups)
{
  return entries == slots * AIJTC_LANES * groups;
}

PetscCount SlotBytes(PetscCount entries, PetscCount slots, int groups)
{
  return slots * ((PetscCount)sizeof(AIJTCSlot) + (IsFull(entries, slots, groups) ? 0 : groups * (PetscCount)sizeof(uint32_t)));
}

/* Slots, bases and width of the deltas */
void ChoosePattern(AIJTCSlice *slice, const AIJTCParams *params, AIJTCSliceWork *work)
{
  const bool       compress = params->compress & AIJTC_COMPRESS_PATTERN, gathered = params->gather > 0, merges = compress && !gathered && !params->near;
  const int32_t    ordered = (int32_t)((work->longest + (1 << work->shift) - 1) >> work->shift); /* slots in the order of the rows */
  const PetscCount entries = slice->entries, cost = SlotBytes(entries, ordered, work->groups);
  const int32_t    distinct = merges && work->kind == AIJTC_ROWS && work->ascending ? DistinctOffsets(work, (int32_t)std::min<PetscCount>(2 * (PetscCount)ordered, PETSC_INT32_MAX)) : -1;
  int              width    = 0;
  bool             take     = distinct >= 0 && SlotBytes(entries, distinct, work->groups) <= cost + entries; /* whatever the width of the deltas */

  if (!take) {
    width = LeastDeltas(work, ordered);
    if (gathered) {
      std::fill(work->other, work->other + ordered, 0);
      width = 2;
    } else if (!compress) width = 4;
    else if (work->kind == AIJTC_ROWS) width = std::max(width, 1);
    take = distinct >= 0 && SlotBytes(entries, distinct, work->groups) <= cost + width * entries;
  }
  slice->slots = take ? distinct : ordered;
  if (!take) std::swap(work->base, work->other);
  else width = 0;
  if (IsFull(entries, slice->slots, work->groups)) slice->form |= AIJTC_FORM_FULL;
  slice->form |= (uint32_t)(width == 4 ? 3 : width) << AIJTC_FORM_DELTA;
}

/* Slot of each entry, entries of each slot */
void PlaceEntries(const AIJTCSlice *slice, AIJTCSliceWork *work)
{
  const bool     by_offset = work->kind == AIJTC_ROWS && !AIJTCFormDeltaBytes(slice->form);
  const int32_t *row       = work->offset;
  int32_t       *slot      = work->slot;

  std::fill(work->where, work->where + slice->slots + 1, 0);
  std::fill(work->mask, work->mask + (size_t)slice->slots * work->groups, 0u);
  for (int q = 0; q < work->places; row += work->length[q], slot += work->length[q], q++) {
    int32_t at = 0;

    for (PetscInt k = 0; k < work->length[q]; k++) {
      const int lane = (q << work->shift) + (int)(k & ((1 << work->shift) - 1));

      if (by_offset) {
        at      = Locate(work->base, at, slice->slots, row[k]);
        slot[k] = at++;
      } else slot[k] = (int32_t)(k >> work->shift);
      work->where[slot[k] + 1]++;
      work->mask[(size_t)slot[k] * work->groups + lane / AIJTC_LANES] |= 1u << lane % AIJTC_LANES;
    }
  }
  for (int32_t t = 0; t < slice->slots; t++) work->where[t + 1] += work->where[t];
}

/* Which slots are uniform, with which values; are all values floats? */
bool CompareValues(const AIJTCSlice *slice, const PetscScalar a[], AIJTCSliceWork *work)
{
  const int32_t *slot  = work->slot;
  bool           exact = sizeof(PetscScalar) > sizeof(float);

  std::fill(work->seen, work->seen + slice->slots, (uint8_t)0);
  std::fill(work->uniform, work->uniform + slice->slots, (uint8_t)1);
  std::fill(work->constant, work->constant + (size_t)slice->slots * work->period, (uint64_t)0);
  for (int q = 0; q < work->places; slot += work->length[q], q++) {
    const int     k   = work->remainder[q];
    const uint8_t bit = (uint8_t)(1u << k);

    for (PetscInt e = 0; e < work->length[q]; e++) {
      const PetscScalar value = a[work->begin[q] + e];
      const uint64_t    bits  = AIJTCBits(value);
      uint64_t         *first = work->constant + (size_t)slot[e] * work->period + k;

      if (!(work->seen[slot[e]] & bit)) {
        work->seen[slot[e]] |= bit;
        *first = bits;
      } else if (*first != bits) work->uniform[slot[e]] = 0;
      if (!(value == (PetscScalar)(float)value)) exact = false;
    }
  }
  return exact;
}

/* The values stored: those of constant slots, and one a place of the others */
int32_t CountValues(const AIJTCSlice *slice, const AIJTCSliceWork *work)
{
  int32_t values = 0;

  for (int32_t t = 0; t < slice->slots; t++) values += work->uniform[t] ? work->period : work->where[t + 1] - work->where[t];
  return values;
}

/* Constants and the number of values */
void ChooseValues(AIJTCSlice *slice, const PetscScalar a[], AIJTCSliceWork *work)
{
  const bool floats    = CompareValues(slice, a, work);
  const bool by_offset = work->kind == AIJTC_ROWS && !AIJTCFormDeltaBytes(slice->form);
  const bool all       = std::all_of(work->uniform, work->uniform + slice->slots, [](uint8_t u) { return u != 0; });

  if (all && (PetscCount)slice->slots * work->period < slice->entries) {
    slice->values = slice->slots * work->period;
    slice->form |= AIJTC_FORM_CONST;
    return;
  }
  for (int32_t t = 0; t < slice->slots; t++) work->uniform[t] = by_offset && work->uniform[t] && work->where[t + 1] - work->where[t] > work->period;
  slice->values = CountValues(slice, work);
  if (floats) slice->form |= (uint32_t)AIJTC_VALUE_FLOAT << AIJTC_FORM_VALUE;
}

/* Gives every lane a place if something is stored for each entry and there are few holes */
void ChoosePlaces(bool gathered, AIJTCSlice *slice, AIJTCSliceWork *work)
{
  const PetscCount slot = (PetscCount)AIJTC_LANES * work->groups, places = slot * slice->slots;
  const bool       constant = slice->form & AIJTC_FORM_CONST;

  if (slice->form & AIJTC_FORM_FULL || (constant && !AIJTCFormDeltaBytes(slice->form))) return;
  if (!AIJTCFewHoles(gathered, places, slice->entries) || places > PETSC_INT32_MAX) return;
  slice->form |= AIJTC_FORM_SPREAD;
  for (int32_t t = 0; t <= slice->slots; t++) work->where[t] = (int32_t)(t * slot);
  if (!constant) slice->values = CountValues(slice, work);
}

/* The values that a slice without FORM_CONST stores; false if they do not fit */
bool CollectValues(const AIJTCSlice *slice, const PetscScalar a[], const AIJTCSliceWork *work, AIJTCBitsTable *stored)
{
  const int32_t *slot = work->slot;
  uint64_t       last = 0;
  bool           any  = false;

  for (int32_t t = 0; t < slice->slots; t++)
    for (int k = 0; k < work->period && work->uniform[t]; k++)
      if (!stored->Insert(work->constant[(size_t)t * work->period + k])) return false;
  for (int q = 0; q < work->places; slot += work->length[q], q++) {
    for (PetscInt e = 0; e < work->length[q]; e++) {
      const uint64_t bits = AIJTCBits(a[work->begin[q] + e]);

      if (work->uniform[slot[e]] || (any && bits == last)) continue;
      if (!stored->Insert(bits)) return false;
      last = bits;
      any  = true;
    }
  }
  return true;
}

template <class Delta>
void WriteDeltas(const AIJTCSliceWork *work, bool spread, int32_t next[], Delta delta[])
{
  const int32_t *row = work->offset, *slot = work->slot;

  for (int q = 0; q < work->places; row += work->length[q], slot += work->length[q], q++) {
    for (PetscInt k = 0; k < work->length[q]; k++) {
      const int32_t lane  = (q << work->shift) + (int32_t)(k & ((1 << work->shift) - 1)); /* of all groups */
      const int32_t place = spread ? work->where[slot[k]] + lane : next[slot[k]]++;

      delta[place] = (Delta)((uint32_t)row[k] - (uint32_t)work->base[slot[k]]);
    }
  }
}
} // namespace

PetscErrorCode AIJTCSliceWorkCreate(const AIJTCLayout *layout, AIJTCSliceWork *work)
{
  PetscCount entries = 0, slots = 0, groups = layout->params.rrows;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < AIJTCSlicesTotal(layout); s++) {
    entries = std::max(entries, Gather(layout, s, nullptr, work));
    slots   = std::max(slots, work->kind == AIJTC_ROWS ? 2 * (PetscCount)work->longest : ((PetscCount)work->longest >> work->shift) + 1);
  }
  PetscCheck(entries <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscCount_FMT " nonzeros in a slice of rows: let long rows start at fewer nonzeros", entries);
  PetscCall(PetscMalloc1(entries, &work->offset));
  PetscCall(PetscMalloc1(entries, &work->slot));
  PetscCall(PetscMalloc1(slots, &work->base));
  PetscCall(PetscMalloc1(slots, &work->other));
  PetscCall(PetscMalloc1(slots * groups, &work->mask));
  PetscCall(PetscMalloc1(slots + 1, &work->where));
  PetscCall(PetscMalloc1(slots, &work->next));
  PetscCall(PetscMalloc1(slots * layout->params.bs, &work->constant));
  PetscCall(PetscMalloc1(slots, &work->seen));
  PetscCall(PetscMalloc1(slots, &work->uniform));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCSliceWorkDestroy(AIJTCSliceWork *work)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(work->offset));
  PetscCall(PetscFree(work->slot));
  PetscCall(PetscFree(work->base));
  PetscCall(PetscFree(work->other));
  PetscCall(PetscFree(work->mask));
  PetscCall(PetscFree(work->where));
  PetscCall(PetscFree(work->next));
  PetscCall(PetscFree(work->constant));
  PetscCall(PetscFree(work->seen));
  PetscCall(PetscFree(work->uniform));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCSliceChoose(AIJTCLayout *layout, PetscInt s, const PetscInt j[], const PetscScalar a[], AIJTCSliceWork *work, AIJTCDictValues *stored)
{
  AIJTCSlice      *slice   = layout->slice + s;
  const PetscCount entries = Gather(layout, s, j, work);

  PetscFunctionBegin;
  slice->form &= AIJTC_FORM_RID;
  slice->entries = slice->values = (int32_t)entries;
  slice->slots                   = 0;
  if (!entries) slice->form |= AIJTC_FORM_FULL;
  if (!entries) PetscFunctionReturn(PETSC_SUCCESS);
  ChoosePattern(slice, &layout->params, work);
  PlaceEntries(slice, work);
  if (layout->params.compress & AIJTC_COMPRESS_VALUE) {
    ChooseValues(slice, a, work);
    if (!(slice->form & AIJTC_FORM_CONST)) {
      stored->number += slice->values;
      if (!stored->many) stored->many = (PetscBool)!CollectValues(slice, a, work, &stored->different);
    }
  } else std::fill(work->uniform, work->uniform + slice->slots, (uint8_t)0);
  ChoosePlaces(layout->params.gather > 0, slice, work);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCSliceWritePattern(AIJTCLayout *layout, PetscInt s, AIJTCSliceWork *work)
{
  const AIJTCSlice *slice = layout->slice + s;
  const bool        flags = work->kind == AIJTC_ROWS && !AIJTCFormDeltaBytes(slice->form) && !(slice->form & AIJTC_FORM_CONST), spread = slice->form & AIJTC_FORM_SPREAD;
  uint8_t          *bytes = layout->pattern + (PetscCount)AIJTC_UNIT * slice->pattern, *deltas;
  AIJTCSlot        *slot  = (AIJTCSlot *)bytes;
  uint32_t          where = 0;

  PetscFunctionBegin;
  if (!slice->slots) PetscFunctionReturn(PETSC_SUCCESS);
  for (int32_t t = 0; t < slice->slots; t++) {
    const bool constant = flags && work->uniform[t];

    slot[t].base  = work->base[t];
    slot[t].where = where | (constant ? AIJTC_SLOT_CONST : 0);
    where += (uint32_t)(constant ? work->period : work->where[t + 1] - work->where[t]);
    work->next[t] = work->where[t];
  }
  if (!(slice->form & AIJTC_FORM_FULL)) std::copy(work->mask, work->mask + (size_t)slice->slots * work->groups, (uint32_t *)(slot + slice->slots));
  deltas = bytes + AIJTCSliceHeadBytes(slice, work->groups);
  switch (AIJTCFormDeltaBytes(slice->form)) {
  case 1:
    WriteDeltas(work, spread, work->next, deltas);
    break;
  case 2:
    WriteDeltas(work, spread, work->next, (uint16_t *)deltas);
    break;
  case 4:
    WriteDeltas(work, spread, work->next, (uint32_t *)deltas);
    break;
  default:
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
