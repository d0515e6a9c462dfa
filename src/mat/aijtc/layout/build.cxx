/*
   Method
     Rows are dealt into slices (rows.cxx; gathered ones by cluster, cluster.cxx, with lists of columns, gather.cxx), every slice chooses its form (forms.cxx) and is written into the pattern; the size of the stream of values follows,
     which is written by the same code that refreshes it.

   Layout
     include/petsctc/private/aijtclayout.h; drawn in docs/layout.md

   Memory traffic
     Reads j once and a twice, writes the streams once; O(nnz + m)

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "layoutbuild.h"
#include <algorithm>
#include <cstdlib>

namespace
{
PetscErrorCode CheckInput(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[])
{
  PetscInt wrong = 0;

  PetscFunctionBegin;
  PetscCheck(m >= 0 && n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Matrix of %" PetscInt_FMT " x %" PetscInt_FMT ": sizes must not be negative", m, n);
  if (m == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(i[0] == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row offsets start at %" PetscInt_FMT ", must start at 0", i[0]);
  for (PetscInt r = 0; r < m; r++) {
    PetscCheck(i[r + 1] >= i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " ends before it starts: row offsets must not decrease (do they overflow?)", r);
    PetscCheck(i[r + 1] - i[r] <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " has %" PetscInt_FMT " nonzeros, more than %d", r, i[r + 1] - i[r], (int)PETSC_INT32_MAX);
  }
  for (PetscInt e = 0; e < i[m]; e++) wrong += (j[e] < 0 || j[e] >= n);
  PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " column indices lie outside 0..%" PetscInt_FMT, wrong, n - 1);
  PetscCheck(a || !i[m], PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The matrix has %" PetscInt_FMT " nonzeros, but no values were given", i[m]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can slices start so many bytes behind the begin of a stream? */
PetscErrorCode CheckAddress(PetscCount bytes)
{
  const PetscCount most = (PetscCount)AIJTC_UNIT * UINT32_MAX;

  PetscFunctionBegin;
  PetscCheck(bytes <= most, PETSC_COMM_SELF, PETSC_ERR_SUP, "MATAIJTC addresses %" PetscCount_FMT " bytes of pattern and as many of values on one process, and this matrix needs more: use more processes", most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SetDictionary(const AIJTCBitsTable *stored, AIJTCLayout *layout)
{
  uint64_t bits[AIJTC_MAX_DICT];

  PetscFunctionBegin;
  for (uint32_t h = 0; h < AIJTCBitsTable::SIZE; h++)
    if (stored->number[h] >= 0) bits[stored->number[h]] = stored->bits[h];
  std::sort(bits, bits + stored->count);
  PetscCall(PetscCalloc1(AIJTC_MAX_DICT, &layout->dict));
  for (int32_t k = 0; k < stored->count; k++) layout->dict[k] = AIJTCFromBits(bits[k]);
  layout->ndict = stored->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for so many bytes of pattern, twice as much each time */
PetscErrorCode ReservePattern(PetscCount bytes, PetscCount written, PetscCount *room, uint8_t **pattern)
{
  uint8_t *larger;

  PetscFunctionBegin;
  if (bytes <= *room) PetscFunctionReturn(PETSC_SUCCESS);
  *room = std::max(2 * *room, std::max(bytes, (PetscCount)65536));
  PetscCall(PetscMalloc1(*room, &larger));
  if (written) std::copy(*pattern, *pattern + written, larger);
  PetscCall(PetscFree(*pattern));
  *pattern = larger;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All forms, and the pattern stream */
PetscErrorCode WritePattern(const PetscInt j[], const PetscScalar a[], AIJTCLayout *layout, AIJTCSliceWork *work)
{
  const PetscInt  slices = AIJTCSlicesTotal(layout);
  PetscCount      room   = 0;
  AIJTCDictValues stored;

  PetscFunctionBegin;
  stored.different.Clear();
  stored.number = 0;
  stored.many   = (PetscBool)(layout->nnz < layout->params.dict_min); /* too few for a dictionary, whatever they are: none is looked for */
  for (PetscInt s = 0; s < slices; s++) {
    AIJTCSlice      *slice  = layout->slice + s;
    const PetscCount before = layout->npattern;

    PetscCall(AIJTCSliceChoose(layout, s, j, a, work, &stored));
    slice->pattern = (uint32_t)(before / AIJTC_UNIT);
    layout->npattern += AIJTCSlicePatternBytes(slice, AIJTCKindGroups(AIJTCSliceKind(layout, s), &layout->params));
    PetscCall(CheckAddress(layout->npattern));
    PetscCall(ReservePattern(layout->npattern, before, &room, &layout->pattern));
    PetscCall(PetscArrayzero(layout->pattern + before, layout->npattern - before));
    PetscCall(AIJTCSliceWritePattern(layout, s, work));
  }
  if (layout->npattern) PetscCall(PetscRealloc(layout->npattern, &layout->pattern));
  if (layout->params.compress & AIJTC_COMPRESS_VALUE && !stored.many && stored.number >= layout->params.dict_min) PetscCall(SetDictionary(&stored.different, layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}

uint32_t WithDictionary(uint32_t form)
{
  return (form & ~(3u << AIJTC_FORM_VALUE)) | (uint32_t)AIJTC_VALUE_DICT << AIJTC_FORM_VALUE;
}

/* Where the slices start in the stream of values, and that stream */
PetscErrorCode AllocateValues(AIJTCLayout *layout)
{
  const PetscInt slices = AIJTCSlicesTotal(layout);

  PetscFunctionBegin;
  for (PetscInt s = 0; s < slices; s++) {
    AIJTCSlice *slice = layout->slice + s;

    if (layout->ndict && slice->entries && !(slice->form & AIJTC_FORM_CONST)) slice->form = WithDictionary(slice->form);
    slice->value = (uint32_t)(layout->nvalue / AIJTC_UNIT);
    layout->nvalue += AIJTCSliceValueBytes(slice);
    PetscCall(CheckAddress(layout->nvalue));
  }
  PetscCall(PetscCalloc1(layout->nvalue, &layout->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJTCLayout.stride and line */
void SetReach(const PetscInt i[], const PetscInt j[], AIJTCLayout *layout)
{
  const PetscInt rows = AIJTC_LANES * layout->params.rrows;

  layout->stride = layout->line = 0;
  if (!layout->nconsecutive || !(layout->params.compress & AIJTC_COMPRESS_PATTERN)) return;
  const AIJTCSlice *slice = layout->slice + layout->nslices[AIJTC_LONG] + layout->nslices[AIJTC_TILE] + layout->nconsecutive / 2;
  const auto        visit = [&](auto visitor) {
    for (PetscInt r = slice->row; r < std::min(slice->row + rows, layout->m); r++) {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) visitor(std::abs(j[k] - (r - r % layout->params.bs)));
    }
  };

  visit([&](PetscInt far) { layout->stride = std::max(layout->stride, far); });
  visit([&](PetscInt far) { layout->line = std::max(layout->line, std::min(far, layout->stride - far)); });
}

/* All forms, the pattern, and room for the values. j: columns, or their places in the lists */
PetscErrorCode Fill(const PetscInt j[], const PetscScalar a[], AIJTCLayout *layout)
{
  AIJTCSliceWork work = {};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = AIJTCSliceWorkCreate(layout, &work);
  if (!ierr) ierr = WritePattern(j, a, layout, &work);
  (void)AIJTCSliceWorkDestroy(&work);
  PetscCall(ierr);
  PetscCall(AllocateValues(layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PlanRows has made */
PetscErrorCode ForgetRows(AIJTCLayout *layout)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(layout->slice));
  PetscCall(PetscFree(layout->rid));
  PetscCall(PetscFree(layout->long_piece));
  layout->nlong = layout->nmedium = layout->nshort = layout->nempty = layout->nconsecutive = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* places: NULL unless the layout is gathered */
PetscErrorCode PlanRows(const PetscInt j[], AIJTCLayout *layout, PetscInt *places[])
{
  PetscFunctionBegin;
  *places = nullptr;
  if (layout->m != layout->n || layout->params.rrows > 1 || !layout->nnz) layout->params.gather = 0;
  for (PetscInt tried = -1; tried != layout->params.gather;) {
    if (tried >= 0) PetscCall(ForgetRows(layout));
    tried = layout->params.gather;
    PetscCall(AIJTCLayoutPlanRows_Host(layout, j));
    if (tried) PetscCall(AIJTCLayoutGather_Host(layout, j, places));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Build(const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCLayout *layout)
{
  const PetscInt m = layout->m;
  PetscInt      *places;
  PetscBool      fits = PETSC_TRUE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(CheckInput(m, layout->n, i, j, a));
  layout->nnz = m ? i[m] : 0;
  PetscCall(AIJTCParamsResolve(m, layout->n, layout->nnz, &AIJTC_TRAITS_EMPTY, &layout->params)); /* checks them */
  PetscCall(PetscCalloc1((PetscCount)m + 1, &layout->start));
  if (m) std::copy(i, i + m + 1, layout->start);
  PetscCall(PlanRows(j, layout, &places));
  ierr = Fill(places ? places : j, a, layout);
  (void)PetscFree(places);
  PetscCall(ierr);
  SetReach(i, j, layout);
  PetscCall(AIJTCLayoutRefresh_Host(layout, a, &fits, nullptr));
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Values do not fit the forms just chosen for them");
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutBuild_Host(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const AIJTCParams *params, AIJTCLayout *layout, PETSC_UNUSED PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *layout        = AIJTCLayout{};
  layout->m      = m;
  layout->n      = n;
  layout->params = *params;
  ierr           = Build(i, j, a, layout);
  if (PetscUnlikely(ierr)) (void)AIJTCLayoutDestroy_Host(layout);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutDestroy_Host(AIJTCLayout *layout)
{
  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutDestroy_CUDA()");
  PetscCall(PetscFree(layout->slice));
  PetscCall(PetscFree(layout->pattern));
  PetscCall(PetscFree(layout->value));
  PetscCall(PetscFree(layout->dict));
  PetscCall(PetscFree(layout->rid));
  PetscCall(PetscFree(layout->long_piece));
  PetscCall(PetscFree(layout->partial));
  PetscCall(PetscFree(layout->list_start));
  PetscCall(PetscFree(layout->list));
  PetscCall(PetscFree(layout->start));
  *layout = AIJTCLayout{};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscCount AIJTCLayoutBytes(const AIJTCLayout *layout)
{
  PetscCount bytes = layout->npattern + layout->nvalue;

  if (layout->slice) bytes += AIJTCSlicesTotal(layout) * (PetscCount)sizeof(*layout->slice);
  if (layout->dict) bytes += AIJTC_MAX_DICT * (PetscCount)sizeof(*layout->dict);
  if (layout->rid) bytes += layout->nrid * (PetscCount)sizeof(*layout->rid);
  if (layout->long_piece) bytes += ((PetscCount)layout->nlong + 1) * (PetscCount)sizeof(*layout->long_piece);
  if (layout->partial) bytes += layout->nslices[AIJTC_LONG] * (PetscCount)sizeof(*layout->partial);
  if (layout->arrived) bytes += layout->nlong * (PetscCount)sizeof(*layout->arrived);
  if (layout->list) bytes += ((PetscCount)layout->nblocks + 1 + layout->nlist) * (PetscCount)sizeof(*layout->list);
  if (layout->start) bytes += ((PetscCount)layout->m + 1) * (PetscCount)sizeof(*layout->start);
  return bytes;
}
