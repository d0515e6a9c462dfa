/*
   Method
     Parameters of a layout chosen from sizes, and from what is known of the rows and their values (AIJTCTraits).
*/
#include "layoutbuild.h"
#include <algorithm>

namespace
{
/* docs/layout.md has the rule */
constexpr PetscInt   WINDOW_COMMON = 8192, WINDOW_OTHER = 1024;
constexpr PetscInt   LONG_MIN_COMMON = 256, LONG_MIN_OTHER = 128, SHORT_MAX = 128, SHORT_MAX_UNEVEN = 8, SHORT_MAX_UNEVEN_MANY = 16; /* lengths */
constexpr PetscInt   ROWS_FOR_LONGER_SHORT = 1000000;
constexpr PetscInt   ROWS_FOR_FOUR_GROUPS = 500000, ROWS_FOR_TWO_GROUPS = 100000, ROWS_FOR_TWO_SHORT = 32768;
constexpr PetscInt   LENGTH_FOR_TWO_GROUPS = 16, LENGTH_FOR_TWO_SHORT = 2, LENGTH_FOR_FOUR_GROUPS_OTHER = 6, LENGTH_FOR_NEAR = 8; /* mean, at most */
constexpr PetscInt   LENGTH_FOR_TWO_GROUPS_STORED = 6 /* at least */;
constexpr PetscCount DICT_MIN = 800000, NONZEROS_FOR_NEAR = 1000000 /* at most */;
constexpr PetscInt   GATHER = 8, GATHER_WIDE = 16, ROWS_FOR_GATHER = 32768, ROWS_FOR_GATHER_WIDE = 500000; /* slices of a block; rows of the matrix at least */

/* Where rows do not share their offsets: can slices of rows take all of them? */
bool AllMayBeShort(PetscInt longest)
{
  return longest <= SHORT_MAX;
}

PetscInt ShortMax(PetscInt m, PetscBool common, PetscInt longest)
{
  if (common || AllMayBeShort(longest)) return SHORT_MAX;
  return m >= ROWS_FOR_LONGER_SHORT ? SHORT_MAX_UNEVEN_MANY : SHORT_MAX_UNEVEN;
}

/* Does the product take two row groups of so many rows as well as four? Where values are to be stored one by one, but for the shortest rows, and for very many that store deltas too (mult_stored.cu) */
bool TwoGroupsDo(PetscInt m, PetscCount nnz, const AIJTCTraits *traits, const AIJTCParams *params)
{
  if (nnz < (PetscCount)LENGTH_FOR_TWO_GROUPS_STORED * m || (!(params->compress & AIJTC_COMPRESS_PATTERN) && m >= AIJTC_MANY_ROWS_DELTAS)) return false;
  return traits->distinct || !(params->compress & AIJTC_COMPRESS_VALUE);
}

PetscInt RowGroups(PetscInt m, PetscCount nnz, const AIJTCTraits *traits, const AIJTCParams *params)
{
  if (!traits->common) return m >= ROWS_FOR_FOUR_GROUPS && nnz <= (PetscCount)LENGTH_FOR_FOUR_GROUPS_OTHER * m && AllMayBeShort(traits->longest) ? 4 : 1;
  if (m >= ROWS_FOR_FOUR_GROUPS) return TwoGroupsDo(m, nnz, traits, params) ? 2 : 4;
  if (m >= ROWS_FOR_TWO_GROUPS && nnz <= (PetscCount)LENGTH_FOR_TWO_GROUPS * m) return 2;
  return m >= ROWS_FOR_TWO_SHORT && nnz <= (PetscCount)LENGTH_FOR_TWO_SHORT * m ? 2 : 1;
}

/* May a layout be gathered? Nonzeros enough that a column may be needed twice in a block: 4.5 a row */
bool MayGather(PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, const AIJTCParams *params)
{
  const bool compressed = params->compress & AIJTC_COMPRESS_PATTERN;
  const bool may        = m == n && traits->longest <= params->short_max && (params->rrows == PETSC_DECIDE || params->rrows == 1);

  return !traits->common && compressed && may && m >= ROWS_FOR_GATHER && 2 * nnz >= 9 * (PetscCount)m;
}

/* Few and short rows whose neighbours share sectors of x find it in L1 as they are: a list read first would be what they wait for */
void DecideGather(PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params)
{
  const bool may = MayGather(m, n, nnz, traits, params);

  params->near   = (PetscBool)(may && traits->near && nnz <= NONZEROS_FOR_NEAR && nnz <= (PetscCount)LENGTH_FOR_NEAR * m);
  params->gather = !may || params->near ? 0 : m >= ROWS_FOR_GATHER_WIDE ? GATHER_WIDE : GATHER;
}

PetscErrorCode CheckParams(const AIJTCParams *params)
{
  PetscFunctionBegin;
  PetscCheck(params->short_max >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Short rows of up to %" PetscInt_FMT " nonzeros: give 0 or more", params->short_max);
  PetscCheck(params->long_min >= params->short_max, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Long rows start above %" PetscInt_FMT " nonzeros, but short rows end at %" PetscInt_FMT ": the first must not be smaller", params->long_min,
             params->short_max);
  PetscCheck(params->window >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Sorting window of %" PetscInt_FMT " rows: give a positive number, or 0 to sort all rows together", params->window);
  PetscCheck(params->rrows == 1 || params->rrows == 2 || params->rrows == 4, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " row groups in a slice of short rows: give 1, 2 or 4", params->rrows);
  PetscCheck(params->bs >= 1 && params->bs <= AIJTC_MAX_BS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Blocks of %" PetscInt_FMT " rows: give a number from 1 to %d", params->bs, (int)AIJTC_MAX_BS);
  PetscCheck(params->compress >= AIJTC_COMPRESS_OFF && params->compress <= AIJTC_COMPRESS_BOTH, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Compression %d is none of off (0), pattern (1), value (2), both (3)", (int)params->compress);
  PetscCheck(params->gather >= 0 && params->gather <= AIJTC_GATHER_MOST, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Blocks of %" PetscInt_FMT " slices that gather x together: give 0 to %d", params->gather, (int)AIJTC_GATHER_MOST);
  PetscCheck(params->dict_min >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A dictionary from %" PetscCount_FMT " values on: give 1 or more", params->dict_min);
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCParamsResolve(PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params)
{
  const PetscBool common   = traits->common;
  const PetscInt  longest  = traits->longest;
  const PetscInt  long_min = common ? LONG_MIN_COMMON : LONG_MIN_OTHER, short_max = ShortMax(m, common, longest);

  PetscFunctionBegin;
  PetscCheck(m >= 0 && n >= 0 && nnz >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Matrix of %" PetscInt_FMT " x %" PetscInt_FMT " with %" PetscCount_FMT " nonzeros: sizes must not be negative", m, n, nnz);
  PetscCheck(m <= PETSC_INT32_MAX && n <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Matrix of %" PetscInt_FMT " x %" PetscInt_FMT " on one process: MATAIJTC counts rows and columns up to %d; use more processes", m, n,
             (int)PETSC_INT32_MAX);
  if (params->short_max == PETSC_DECIDE) params->short_max = params->long_min == PETSC_DECIDE ? short_max : std::min(short_max, params->long_min);
  if (params->long_min == PETSC_DECIDE) params->long_min = std::max(long_min, params->short_max);
  if (params->window == PETSC_DECIDE) params->window = common ? WINDOW_COMMON : WINDOW_OTHER;
  if (params->compress == AIJTC_COMPRESS_DECIDE) params->compress = AIJTC_COMPRESS_BOTH; /* before what depends on it */
  if (params->gather == PETSC_DECIDE) DecideGather(m, n, nnz, traits, params);
  if (params->rrows == PETSC_DECIDE) params->rrows = params->gather ? 1 : RowGroups(m, nnz, traits, params);
  if (params->bs == PETSC_DECIDE) params->bs = traits->bs;
  if (params->dict_min == PETSC_DECIDE) params->dict_min = DICT_MIN;
  PetscCall(CheckParams(params));
  PetscFunctionReturn(PETSC_SUCCESS);
}
