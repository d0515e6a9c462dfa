/*
   Method
     The lists of a gathered layout: the distinct columns of each block of slices, ascending, and for each nonzero the place of its column in the list of its block.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     j twice, the places and the lists once; a sort of each list
*/
#include "layoutbuild.h"
#include <algorithm>

namespace
{
/* Work arrays, kept together so that they can be freed whatever happens */
struct ListWork {
  PetscInt *list;   /* [nnz] */
  PetscInt *place;  /* [n] of a column in the list of the block; -1: not in it */
  PetscInt *places; /* [nnz] */
};

/* visit(row) for the rows of a block */
template <class Visit>
void ForRows(const AIJTCLayout *layout, PetscInt block, Visit visit)
{
  const PetscCount rows = AIJTC_LANES * (PetscCount)layout->params.gather, first = layout->rid_rows + block * rows, last = std::min<PetscCount>(layout->nrid, first + rows);

  for (PetscCount p = first; p < last; p++)
    if (layout->rid[p] >= 0) visit(layout->rid[p]);
}

/* Appends the columns of a block to the `begin` ones of the blocks before it, and sets their places; returns the end */
PetscCount AddColumns(const AIJTCLayout *layout, PetscInt block, const PetscInt j[], PetscCount begin, ListWork *work)
{
  const PetscInt *i   = layout->start;
  PetscCount      end = begin;

  ForRows(layout, block, [&](PetscInt r) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      if (work->place[j[k]] >= 0) continue;
      work->place[j[k]] = 0;
      work->list[end++] = j[k];
    }
  });
  std::sort(work->list + begin, work->list + end);
  for (PetscCount k = begin; k < end; k++) work->place[work->list[k]] = (PetscInt)(k - begin);
  return end;
}

/* Returns params.gather, or what it should be instead */
PetscInt MakeLists(AIJTCLayout *layout, const PetscInt j[], ListWork *work)
{
  const PetscInt *i   = layout->start;
  PetscCount      end = 0;

  std::fill(work->place, work->place + layout->n, -1);
  for (PetscInt b = 0; b < layout->nblocks; b++) {
    const PetscCount begin = end;

    layout->list_start[b] = (PetscInt)begin;
    end                   = AddColumns(layout, b, j, begin, work);
    if (end - begin > AIJTC_GATHER_LIST) return AIJTCGatherLess(layout->params.gather);
    if (2 * end > layout->nnz) return 0;
    ForRows(layout, b, [&](PetscInt r) {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) work->places[k] = work->place[j[k]];
    });
    for (PetscCount k = begin; k < end; k++) work->place[work->list[k]] = -1;
    layout->longest_list = std::max(layout->longest_list, (PetscInt)(end - begin));
  }
  layout->list_start[layout->nblocks] = layout->nlist = (PetscInt)end;
  return layout->params.gather;
}

PetscErrorCode GatherColumns(AIJTCLayout *layout, const PetscInt j[], ListWork *work)
{
  PetscInt gather;

  PetscFunctionBegin;
  layout->nblocks = (layout->nslices[AIJTC_ROWS] - 1) / layout->params.gather + 1; /* there is a slice, since there are nonzeros */
  PetscCall(PetscMalloc1((PetscCount)layout->nblocks + 1, &layout->list_start));
  PetscCall(PetscMalloc1(layout->nnz, &work->list));
  PetscCall(PetscMalloc1(layout->n, &work->place));
  PetscCall(PetscMalloc1(layout->nnz, &work->places));
  gather = MakeLists(layout, j, work);
  if (gather != layout->params.gather) {
    PetscCall(PetscFree(work->places));
    PetscCall(PetscFree(layout->list_start));
    layout->nblocks = layout->longest_list = 0;
    layout->params.gather                  = gather;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1(layout->nlist, &layout->list));
  std::copy(work->list, work->list + layout->nlist, layout->list);
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutGather_Host(AIJTCLayout *layout, const PetscInt j[], PetscInt *places[])
{
  ListWork       work = {};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (AIJTCSlicesTotal(layout) > layout->nslices[AIJTC_ROWS]) layout->params.gather = 0;
  else ierr = GatherColumns(layout, j, &work);
  if (ierr) (void)PetscFree(work.places);
  (void)PetscFree(work.list);
  (void)PetscFree(work.place);
  *places = work.places;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
