/* What the files of the host build share */
#pragma once

#include "../host/slice.h"

/* Fills the row side of a layout from its sizes, params, start and, where the layout may be gathered, j: counts of rows and slices, rid, long_piece, and of slice[] the members row and first, and form as far
   as AIJTC_FORM_RID */
PETSC_INTERN PetscErrorCode AIJTCLayoutPlanRows_Host(AIJTCLayout *layout, const PetscInt j[]);

/* The lists of a planned layout and, for each nonzero, the place of its column in the list of its block (to be freed by PetscFree()). If it is not to be gathered so: NULL, no lists, and params.gather is what to
   plan for instead */
PETSC_INTERN PetscErrorCode AIJTCLayoutGather_Host(AIJTCLayout *layout, const PetscInt j[], PetscInt *places[]);

/* One slice on the way into its form. Arrays by entry list them row by row as the places go, each row in CSR order. */
typedef struct {
  /* Of the slice */
  AIJTCKind  kind;
  int        groups, shift, places, period;
  PetscInt   ref[AIJTC_MAX_PLACES];
  int        remainder[AIJTC_MAX_PLACES];
  PetscCount begin[AIJTC_MAX_PLACES];  /* place of the first entry in j and a */
  PetscInt   length[AIJTC_MAX_PLACES]; /* entries, 0 where there is no row */
  PetscInt   longest;
  PetscBool  ascending; /* all rows, strictly */

  /* By entry */
  int32_t *offset; /* column - ref */
  int32_t *slot;

  /* By slot */
  int32_t  *base, *other; /* other: work of the search for the bases */
  uint32_t *mask;         /* [slots][groups] */
  int32_t  *where;        /* [slots + 1] entries before, then places */
  int32_t  *next;
  uint64_t *constant; /* [slots][period] the first value of each remainder, as bits */
  uint8_t  *seen;     /* remainders that have an entry, as bits */
  uint8_t  *uniform;  /* then: stored as a constant */
} AIJTCSliceWork;

/* Room for every slice of a planned layout */
PETSC_INTERN PetscErrorCode AIJTCSliceWorkCreate(const AIJTCLayout *layout, AIJTCSliceWork *work);
PETSC_INTERN PetscErrorCode AIJTCSliceWorkDestroy(AIJTCSliceWork *work);

/* The values that may go into a dictionary */
typedef struct {
  AIJTCBitsTable different;
  PetscCount     number; /* of all */
  PetscBool      many;   /* different ones: the table is full */
} AIJTCDictValues;

/* The form of slice s, with AIJTC_VALUE_FLOAT where floats would do: slots, entries, values and form are set. stored gets the values of a slice that is not FORM_CONST. */
PETSC_INTERN PetscErrorCode AIJTCSliceChoose(AIJTCLayout *layout, PetscInt s, const PetscInt j[], const PetscScalar a[], AIJTCSliceWork *work, AIJTCDictValues *stored);
/* After AIJTCSliceChoose: writes the slice into the pattern stream, which holds zeros */
PETSC_INTERN PetscErrorCode AIJTCSliceWritePattern(AIJTCLayout *layout, PetscInt s, AIJTCSliceWork *work);
