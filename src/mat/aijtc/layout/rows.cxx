/*
   Method
     Groups of consecutive rows that are short and alike become slices as they stand. The other rows are sorted by decreasing length inside each window (counting sort, stable) and
     dealt into the classes in that order. Then every slice learns its first row. In a gathered layout no group is a slice, and rows are windowed in the order of the clusters.

   Memory traffic
     Reads the row offsets a few times, writes rid; O(m + nnz), since a window's histogram is no longer than its longest row.
*/
#include "layoutbuild.h"
#include <algorithm>

namespace
{
/* In the order in which they lie in rid */
enum RowClass {
  ROW_LONG,
  ROW_MEDIUM,
  ROW_SHORT,
  ROW_CLASSES
};

/* Work arrays, kept together so that they can be freed whatever happens */
struct PlanWork {
  uint8_t  *consecutive; /* by group: does it become a slice as it stands? */
  PetscInt *cluster;     /* [m] gathered layouts: the rows by cluster; else NULL */
  PetscInt *order;       /* the rows of the other groups, sorted inside windows */
  PetscInt *histogram;   /* [longest + 1], zero between windows */
  PetscInt  rows;        /* in order */
  PetscInt  count[ROW_CLASSES];
};

RowClass ClassOf(PetscInt length, const AIJTCParams *params)
{
  if (length <= params->short_max) return ROW_SHORT;
  return length > params->long_min ? ROW_LONG : ROW_MEDIUM;
}

PetscCount DivideUp(PetscCount a, PetscCount b)
{
  return (a + b - 1) / b;
}

PetscInt GroupRows(const AIJTCLayout *layout)
{
  return AIJTC_LANES * layout->params.rrows;
}

bool IsConsecutive(const AIJTCLayout *layout, PetscInt begin, PetscInt end)
{
  PetscInt longest = 0;

  if (layout->params.gather) return false;
  for (PetscInt r = begin; r < end; r++) longest = std::max(longest, layout->start[r + 1] - layout->start[r]);
  return longest <= layout->params.short_max && 2 * (PetscCount)(layout->start[end] - layout->start[begin]) >= (PetscCount)longest * (end - begin);
}

/* Finds the consecutive slices and counts rows of all kinds */
PetscErrorCode CountRows(AIJTCLayout *layout, PlanWork *work)
{
  const PetscInt size = GroupRows(layout), groups = (PetscInt)DivideUp(layout->m, size);

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(groups, &work->consecutive));
  for (PetscInt g = 0; g < groups; g++) {
    const PetscInt begin = g * size, end = (PetscInt)std::min<PetscCount>(layout->m, (PetscCount)begin + size);

    work->consecutive[g] = IsConsecutive(layout, begin, end);
    layout->nconsecutive += work->consecutive[g];
    if (!work->consecutive[g]) work->rows += end - begin;
    for (PetscInt r = begin; r < end; r++) {
      const PetscInt length = layout->start[r + 1] - layout->start[r];
      const RowClass c      = ClassOf(length, &layout->params);

      if (!work->consecutive[g]) work->count[c]++;
      if (!length) layout->nempty++;
      else ++(c == ROW_LONG ? layout->nlong : (c == ROW_MEDIUM ? layout->nmedium : layout->nshort));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills work->order. A window holds at least as many entries as its longest row, so clearing the used part of the histogram is O(nnz) in all */
PetscErrorCode SortRows(const AIJTCLayout *layout, PlanWork *work)
{
  const PetscInt  *i = layout->start, m = layout->m, size = GroupRows(layout);
  const PetscCount window  = layout->params.gather ? (PetscCount)layout->params.gather * size : (layout->params.window ? layout->params.window : m);
  PetscInt         longest = 0, position = 0;

  PetscFunctionBegin;
  if (!work->rows) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = 0; r < m; r++) longest = std::max(longest, i[r + 1] - i[r]);
  PetscCall(PetscMalloc1(work->rows, &work->order));
  PetscCall(PetscCalloc1((PetscCount)longest + 1, &work->histogram));
  for (PetscCount begin = 0; begin < m; begin += window) {
    const PetscInt end   = (PetscInt)std::min<PetscCount>(m, begin + window);
    PetscInt      *count = work->histogram, high = -1;

    for (PetscInt q = (PetscInt)begin; q < end; q++) {
      const PetscInt r = work->cluster ? work->cluster[q] : q;

      if (work->consecutive[r / size]) continue;
      count[i[r + 1] - i[r]]++;
      high = std::max(high, i[r + 1] - i[r]);
    }
    for (PetscInt length = high; length >= 0; length--) { /* counts become first positions, longest rows first */
      const PetscInt rows = count[length];

      count[length] = position;
      position += rows;
    }
    for (PetscInt q = (PetscInt)begin; q < end; q++) {
      const PetscInt r = work->cluster ? work->cluster[q] : q;

      if (!work->consecutive[r / size]) work->order[count[i[r + 1] - i[r]]++] = r;
    }
    std::fill(count, count + high + 1, 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rid: each row to the next place of its class, in sorted order */
PetscErrorCode DealRows(AIJTCLayout *layout, const PlanWork *work)
{
  const PetscCount tile = work->count[ROW_LONG], rows = tile + AIJTCRoundUp(work->count[ROW_MEDIUM], AIJTC_TILE_ROWS), all = rows + AIJTCRoundUp(work->count[ROW_SHORT], GroupRows(layout));
  PetscInt         next[ROW_CLASSES] = {0, (PetscInt)tile, (PetscInt)rows};

  PetscFunctionBegin;
  PetscCheck(all <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscCount_FMT " rows, padded to whole slices, are too many for one process: use more", all);
  layout->rid_tile = (PetscInt)tile;
  layout->rid_rows = (PetscInt)rows;
  layout->nrid     = (PetscInt)all;
  PetscCall(PetscMalloc1(layout->nrid, &layout->rid));
  std::fill(layout->rid, layout->rid + layout->nrid, -1);
  for (PetscInt q = 0; q < work->rows; q++) {
    const PetscInt r = work->order[q];

    layout->rid[next[ClassOf(layout->start[r + 1] - layout->start[r], &layout->params)]++] = r;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CountSlices(AIJTCLayout *layout)
{
  PetscCount pieces = 0, rows = 0;

  PetscFunctionBegin;
  if (layout->nlong) PetscCall(PetscMalloc1((PetscCount)layout->nlong + 1, &layout->long_piece));
  for (PetscInt q = 0; q < layout->nlong; q++) {
    const PetscInt r = layout->rid[q];

    layout->long_piece[q] = (PetscInt)pieces;
    pieces += DivideUp(layout->start[r + 1] - layout->start[r], AIJTC_PIECE * AIJTC_LANES);
  }
  if (layout->nlong) PetscCall(PetscIntCast(pieces, &layout->long_piece[layout->nlong]));
  PetscCall(PetscIntCast(pieces, &layout->nslices[AIJTC_LONG]));
  layout->nslices[AIJTC_TILE] = (layout->rid_rows - layout->rid_tile) / AIJTC_TILE_ROWS;
  layout->nslices[AIJTC_ROWS] = layout->nconsecutive + (layout->nrid - layout->rid_rows) / GroupRows(layout);
  rows                        = (PetscCount)layout->nslices[AIJTC_TILE] + layout->nslices[AIJTC_ROWS];
  PetscCheck(pieces + rows <= PETSC_INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscCount_FMT " slices are too many for one process: use more", pieces + rows);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PlaceSlices(AIJTCLayout *layout, const uint8_t consecutive[])
{
  const PetscInt size  = GroupRows(layout);
  AIJTCSlice    *slice = nullptr;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(AIJTCSlicesTotal(layout), &layout->slice));
  slice = layout->slice;
  for (PetscInt q = 0; q < layout->nlong; q++) {
    for (PetscInt p = layout->long_piece[q]; p < layout->long_piece[q + 1]; p++, slice++) {
      slice->row   = (int32_t)q;
      slice->first = (int32_t)(p - layout->long_piece[q]) * AIJTC_PIECE * AIJTC_LANES;
      slice->form  = AIJTC_FORM_RID;
    }
  }
  for (PetscInt p = layout->rid_tile; p < layout->rid_rows; p += AIJTC_TILE_ROWS, slice++) {
    slice->row  = (int32_t)p;
    slice->form = AIJTC_FORM_RID;
  }
  for (PetscCount r = 0; r < layout->m; r += size)
    if (consecutive[r / size]) (slice++)->row = (int32_t)r;
  for (PetscCount p = layout->rid_rows; p < layout->nrid; p += size, slice++) {
    slice->row  = (int32_t)p;
    slice->form = AIJTC_FORM_RID;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Plan(AIJTCLayout *layout, const PetscInt j[], PlanWork *work)
{
  PetscFunctionBegin;
  if (layout->params.gather) {
    PetscCall(PetscMalloc1(layout->m, &work->cluster));
    PetscCall(AIJTCClusterRows_Host(layout->m, layout->start, j, work->cluster, NULL));
  }
  PetscCall(CountRows(layout, work));
  PetscCall(SortRows(layout, work));
  PetscCall(DealRows(layout, work));
  PetscCall(CountSlices(layout));
  PetscCall(PlaceSlices(layout, work->consecutive));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutPlanRows_Host(AIJTCLayout *layout, const PetscInt j[])
{
  PlanWork       work = {};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = Plan(layout, j, &work);
  (void)PetscFree(work.cluster);
  (void)PetscFree(work.consecutive);
  (void)PetscFree(work.order);
  (void)PetscFree(work.histogram);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
