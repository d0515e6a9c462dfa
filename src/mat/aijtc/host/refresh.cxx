/*
   Method
     Slices are read as in a product; the entry of a row that a lane meets next is the row's next value. Each is stored in the form that its slice has. What can fail: a constant with
     two values, a value outside of the dictionary, one that is no float. Holes keep the zeros that the build left there.

   Memory traffic
     Pattern stream and a read, value stream written: 8 bytes a nonzero read at least
*/
#include "slice.h"
#include <algorithm>

namespace
{
/* Stores one value at `place` of a slice; false if the form cannot hold it */
bool Store(PetscScalar value, uint32_t form, const AIJTCBitsTable *dict, PetscInt place, uint8_t stream[])
{
  switch (AIJTCFormValue(form)) {
  case AIJTC_VALUE_DICT: {
    const int32_t number = dict->Find(AIJTCBits(value));

    stream[place] = (uint8_t)number;
    return number >= 0;
  }
  case AIJTC_VALUE_FLOAT:
    ((float *)stream)[place] = (float)value;
    return value == (PetscScalar)(float)value;
  default:
    ((PetscScalar *)stream)[place] = value;
    return true;
  }
}

/* Remainders without an entry keep the 0 that the build stored */
struct Constants {
  uint32_t seen;
  uint64_t bits[AIJTC_MAX_BS];

  /* Is it the first value of this remainder? */
  bool First(int remainder, uint64_t value)
  {
    if (seen >> remainder & 1) return false;
    seen |= 1u << remainder;
    bits[remainder] = value;
    return true;
  }
};

bool RefreshSlice(const AIJTCLayout *layout, PetscInt s, const PetscScalar a[], const AIJTCBitsTable *dict)
{
  uint8_t       *stream = layout->value + (PetscCount)AIJTC_UNIT * layout->slice[s].value;
  PetscCount     next[AIJTC_MAX_PLACES]; /* place in a of each row's next entry */
  bool           fits = true;
  AIJTCSliceView view;

  AIJTCSliceOpen(layout, s, &view);
  for (int q = 0; q < view.places; q++) next[q] = view.row[q] < 0 ? 0 : (PetscCount)layout->start[view.row[q]] + view.first;
  for (int32_t t = 0; t < view.slots; t++) {
    const bool     constant = view.Constant(t);
    const PetscInt place    = view.ConstantPlace(t);
    PetscInt       first    = view.Where(t);
    Constants      slot     = {};

    for (int r = 0; r < view.groups; r++) {
      const uint32_t lanes = view.Mask(t, r), placed = view.Placed(lanes);

      for (uint32_t mask = lanes; mask; mask &= mask - 1) {
        const int         lane  = __builtin_ctz(mask);
        const int         q     = (AIJTC_LANES * r + lane) >> view.shift;
        const PetscScalar value = a[next[q]++];

        if (!constant) fits &= Store(value, view.form, dict, first + __builtin_popcount(placed & ((1u << lane) - 1)), stream);
        else if (slot.First(view.remainder[q], AIJTCBits(value))) fits &= Store(value, view.form, dict, place + view.remainder[q], stream);
        else fits &= slot.bits[view.remainder[q]] == AIJTCBits(value);
      }
      first += __builtin_popcount(placed);
    }
  }
  return fits;
}
} // namespace

PetscErrorCode AIJTCLayoutRefresh_Host(AIJTCLayout *layout, const PetscScalar a[], PetscBool *fits, PETSC_UNUSED PetscTCStream stream)
{
  AIJTCBitsTable dict;

  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutRefresh_CUDA()");
  PetscCheck(a || !layout->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The matrix has %" PetscCount_FMT " nonzeros, but no values were given", layout->nnz);
  *fits = PETSC_TRUE;
  dict.Clear();
  for (PetscInt k = 0; k < layout->ndict; k++) (void)dict.Insert(AIJTCBits(layout->dict[k])); /* in order, so that numbers are indices */
  for (PetscInt s = 0; s < AIJTCSlicesTotal(layout) && *fits; s++)
    if (layout->slice[s].entries) *fits = (PetscBool)RefreshSlice(layout, s, a, &dict);
  PetscFunctionReturn(PETSC_SUCCESS);
}
