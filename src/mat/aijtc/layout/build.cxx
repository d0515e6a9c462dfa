/*
   Method
     Rows are sorted by decreasing length inside each window (counting sort, stable), counted per class, and dealt into the classes in that order; then every
     row puts its entries into its slots. All classes place a row the same way: `width` entries side by side, the next `width` one tile further
     (long 32, medium 4, short their own width), only the first slot differs.

   Layout
     include/petsctc/private/aijtclayout.h; drawn in docs/layout.md

   Memory traffic
     Reads i and j twice; writes 12 bytes a slot (column and permutation) twice, once for "no entry" and once for the entry. O(nnz + m): a window's histogram
     is no longer than its longest row. A 7-point matrix of 16.7 million rows: 134 million slots, 3.2 GB written.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include <petsctc/private/aijtclayout.h>
#include <algorithm>

namespace
{
/* In the order in which they lie in rid */
enum RowClass {
  ROW_LONG,
  ROW_MEDIUM,
  ROW_SHORT4,
  ROW_SHORT2,
  ROW_SHORT1,
  ROW_EMPTY,
  ROW_CLASSES
};

RowClass ClassOf(PetscInt length, const AIJTCParams *params)
{
  if (length == 0) return ROW_EMPTY;
  if (length > params->long_min) return ROW_LONG;
  if (length > params->short_max) return ROW_MEDIUM;
  return length == 1 ? ROW_SHORT1 : (length == 2 ? ROW_SHORT2 : ROW_SHORT4);
}

PetscCount DivideUp(PetscCount a, PetscCount b)
{
  return (a + b - 1) / b;
}

/* Work arrays, kept together so that they can be freed whatever happens */
struct BuildWork {
  PetscInt *order;     /* [m] rows, sorted inside windows */
  PetscInt *histogram; /* [longest + 1], zero between windows */
};

PetscErrorCode CheckInput(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const AIJTCParams *params)
{
  PetscInt wrong = 0;

  PetscFunctionBegin;
  PetscCheck(params->short_max >= 0 && params->short_max <= AIJTC_TILE_COLS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Short rows of up to %" PetscInt_FMT " nonzeros do not fit a tile: choose a value from 0 to %d", params->short_max,
             (int)AIJTC_TILE_COLS);
  PetscCheck(params->long_min >= params->short_max, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Long rows start above %" PetscInt_FMT " nonzeros, but short rows end at %" PetscInt_FMT ": the first must not be smaller", params->long_min,
             params->short_max);
  PetscCheck(params->window >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Sorting window of %" PetscInt_FMT " rows: give a positive number, or 0 to sort all rows together", params->window);
  PetscCheck(m >= 0 && n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Matrix of %" PetscInt_FMT " x %" PetscInt_FMT ": sizes must not be negative", m, n);
  if (m == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(i[0] == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row offsets start at %" PetscInt_FMT ", must start at 0", i[0]);
  for (PetscInt r = 0; r < m; r++) PetscCheck(i[r + 1] >= i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " ends before it starts: row offsets must not decrease (do they overflow?)", r);
  for (PetscInt e = 0; e < i[m]; e++) wrong += (j[e] < 0 || j[e] >= n);
  PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " column indices lie outside 0..%" PetscInt_FMT, wrong, n - 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills work->order. A window holds at least as many entries as its longest row, so clearing the used part of the histogram is O(nnz) in all */
PetscErrorCode SortRows(PetscInt m, const PetscInt i[], PetscInt window, BuildWork *work)
{
  PetscCount longest = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) longest = std::max<PetscCount>(longest, i[r + 1] - i[r]);
  PetscCall(PetscMalloc1(m, &work->order));
  PetscCall(PetscCalloc1(longest + 1, &work->histogram));
  for (PetscCount begin = 0; begin < m; begin += window) {
    const PetscInt end   = (PetscInt)std::min<PetscCount>(m, begin + window);
    PetscInt      *count = work->histogram, position = (PetscInt)begin, high = 0;

    for (PetscInt r = position; r < end; r++) {
      const PetscInt length = i[r + 1] - i[r];

      count[length]++;
      high = std::max(high, length);
    }
    for (PetscInt length = high; length >= 0; length--) { /* counts become first positions, longest rows first */
      const PetscInt rows = count[length];

      count[length] = position;
      position += rows;
    }
    for (PetscInt r = (PetscInt)begin; r < end; r++) work->order[count[i[r + 1] - i[r]]++] = r;
    std::fill(count, count + high + 1, 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts the rows of each class and from them the places in rid and the number of pieces and slices */
PetscErrorCode CountClasses(const PetscInt i[], const AIJTCParams *params, AIJTCLayout *layout)
{
  PetscCount count[ROW_CLASSES] = {0}, start[ROW_CLASSES + 1] = {0}, pieces = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < layout->m; r++) {
    const PetscInt length = i[r + 1] - i[r];
    const RowClass c      = ClassOf(length, params);

    count[c]++;
    if (c == ROW_LONG) pieces += DivideUp(length, AIJTC_PIECE_TILES * AIJTC_TILE);
  }
  for (int c = 0; c < ROW_CLASSES; c++) {
    PetscCount rows = count[c];

    if (c == ROW_MEDIUM) rows = DivideUp(rows, AIJTC_TILE_ROWS) * AIJTC_TILE_ROWS;
    if (c >= ROW_SHORT4 && c <= ROW_SHORT1) {
      const int rows_per_tile = AIJTC_TILE_ROWS << (c - ROW_SHORT4);

      rows = DivideUp(rows, rows_per_tile) * rows_per_tile;
    }
    start[c + 1] = start[c] + rows;
  }
  layout->nlong   = (PetscInt)count[ROW_LONG];
  layout->nmedium = (PetscInt)count[ROW_MEDIUM];
  layout->nempty  = (PetscInt)count[ROW_EMPTY];
  for (int k = 0; k < 3; k++) layout->nshort[k] = (PetscInt)count[ROW_SHORT4 + k];
  layout->nslices = (PetscInt)DivideUp(count[ROW_MEDIUM], AIJTC_TILE_ROWS);
  PetscCall(PetscIntCast(pieces, &layout->npieces));
  PetscCall(PetscIntCast(start[ROW_CLASSES], &layout->nrid)); /* padding can carry a matrix of nearly 2^31 rows over the edge */
  layout->rid_medium = (PetscInt)start[ROW_MEDIUM];
  for (int k = 0; k < 3; k++) layout->rid_short[k] = (PetscInt)start[ROW_SHORT4 + k];
  layout->rid_empty = (PetscInt)start[ROW_EMPTY];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rid: each row to the next place of its class, in sorted order */
PetscErrorCode DealRows(const PetscInt i[], const PetscInt order[], const AIJTCParams *params, AIJTCLayout *layout)
{
  PetscInt next[ROW_CLASSES] = {0, layout->rid_medium, layout->rid_short[0], layout->rid_short[1], layout->rid_short[2], layout->rid_empty};

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(layout->nrid, &layout->rid));
  std::fill(layout->rid, layout->rid + layout->nrid, -1);
  for (PetscInt q = 0; q < layout->m; q++) {
    const PetscInt r = order[q];

    layout->rid[next[ClassOf(i[r + 1] - i[r], params)]++] = r;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* First tiles of pieces, slices and short widths */
PetscErrorCode CountTiles(const PetscInt i[], AIJTCLayout *layout)
{
  PetscCount tile  = 0;
  PetscInt   piece = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(layout->nlong + 1, &layout->long_piece));
  PetscCall(PetscMalloc1(layout->npieces + 1, &layout->piece_tile));
  PetscCall(PetscMalloc1(layout->nslices + 1, &layout->slice_tile));
  for (PetscInt q = 0; q < layout->nlong; q++) {
    const PetscInt   r   = layout->rid[q];
    const PetscCount end = tile + DivideUp(i[r + 1] - i[r], AIJTC_TILE);

    layout->long_piece[q] = piece;
    for (; tile < end; tile = std::min<PetscCount>(tile + AIJTC_PIECE_TILES, end)) layout->piece_tile[piece++] = tile;
  }
  layout->long_piece[layout->nlong]   = piece;
  layout->piece_tile[layout->npieces] = tile;

  layout->medium_tile = tile;
  for (PetscInt s = 0; s < layout->nslices; s++) {
    PetscInt longest = 0;

    for (int k = 0; k < AIJTC_TILE_ROWS; k++) {
      const PetscInt r = layout->rid[layout->rid_medium + AIJTC_TILE_ROWS * s + k];

      if (r >= 0) longest = std::max(longest, i[r + 1] - i[r]);
    }
    layout->slice_tile[s] = tile;
    tile += DivideUp(longest, AIJTC_TILE_COLS);
  }
  layout->slice_tile[layout->nslices] = tile;

  for (int k = 0; k < 3; k++) {
    layout->short_tile[k] = tile;
    tile += DivideUp(layout->nshort[k], AIJTC_TILE_ROWS << k);
  }
  layout->short_tile[3] = layout->ntiles = tile;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r: `width` of them side by side from slot `slot` on, the next `width` one tile further */
void PlaceRow(PetscInt r, PetscCount slot, PetscInt width, const PetscInt i[], const PetscInt j[], AIJTCLayout *layout)
{
  for (PetscInt e = i[r]; e < i[r + 1]; slot += AIJTC_TILE) {
    const PetscInt here = std::min(width, i[r + 1] - e);

    for (PetscInt k = 0; k < here; k++, e++) {
      layout->col[slot + k]  = j[e];
      layout->perm[slot + k] = e;
    }
  }
}

PetscErrorCode PlaceEntries(const PetscInt i[], const PetscInt j[], AIJTCLayout *layout)
{
  const PetscInt  *rid   = layout->rid;
  const PetscCount slots = layout->ntiles * AIJTC_TILE;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(slots, &layout->col));
  PetscCall(PetscMalloc1(slots, &layout->perm));
  std::fill(layout->col, layout->col + slots, -1);
  std::fill(layout->perm, layout->perm + slots, -1);
  for (PetscInt q = 0; q < layout->nlong; q++) PlaceRow(rid[q], AIJTC_TILE * layout->piece_tile[layout->long_piece[q]], AIJTC_TILE, i, j, layout);
  for (PetscInt q = 0; q < layout->nmedium; q++) {
    const PetscInt s = q / AIJTC_TILE_ROWS, k = q % AIJTC_TILE_ROWS;

    PlaceRow(rid[layout->rid_medium + q], AIJTC_TILE * layout->slice_tile[s] + AIJTC_TILE_COLS * k, AIJTC_TILE_COLS, i, j, layout);
  }
  for (int k = 0; k < 3; k++) {
    const PetscInt width = AIJTC_TILE_COLS >> k;

    for (PetscInt q = 0; q < layout->nshort[k]; q++) PlaceRow(rid[layout->rid_short[k] + q], AIJTC_TILE * layout->short_tile[k] + (PetscCount)width * q, width, i, j, layout);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Build(const PetscInt i[], const PetscInt j[], const AIJTCParams *params, AIJTCLayout *layout, BuildWork *work)
{
  const PetscInt m = layout->m;

  PetscFunctionBegin;
  PetscCall(CheckInput(m, layout->n, i, j, params));
  layout->nnz = m ? i[m] : 0;
  PetscCall(SortRows(m, i, params->window ? params->window : std::max(m, (PetscInt)1), work));
  PetscCall(CountClasses(i, params, layout));
  PetscCall(DealRows(i, work->order, params, layout));
  PetscCall(CountTiles(i, layout));
  PetscCall(PlaceEntries(i, j, layout));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutBuild_Host(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const AIJTCParams *params, AIJTCLayout *layout)
{
  BuildWork      work = {nullptr, nullptr};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *layout   = AIJTCLayout{};
  layout->m = m;
  layout->n = n;
  ierr      = Build(i, j, params, layout, &work);
  if (PetscUnlikely(ierr)) (void)AIJTCLayoutDestroy_Host(layout);
  (void)PetscFree(work.order);
  (void)PetscFree(work.histogram);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutDestroy_Host(AIJTCLayout *layout)
{
  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutDestroy_CUDA()");
  PetscCall(PetscFree(layout->val));
  PetscCall(PetscFree(layout->col));
  PetscCall(PetscFree(layout->perm));
  PetscCall(PetscFree(layout->rid));
  PetscCall(PetscFree(layout->piece_tile));
  PetscCall(PetscFree(layout->long_piece));
  PetscCall(PetscFree(layout->partial));
  PetscCall(PetscFree(layout->slice_tile));
  *layout = AIJTCLayout{};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscCount AIJTCLayoutBytes(const AIJTCLayout *layout)
{
  const PetscCount slots = layout->ntiles * AIJTC_TILE;
  PetscCount       bytes = 0;

  if (layout->val) bytes += slots * (PetscCount)sizeof(*layout->val);
  if (layout->col) bytes += slots * (PetscCount)sizeof(*layout->col);
  if (layout->perm) bytes += slots * (PetscCount)sizeof(*layout->perm);
  if (layout->rid) bytes += layout->nrid * (PetscCount)sizeof(*layout->rid);
  if (layout->piece_tile) bytes += (layout->npieces + 1) * (PetscCount)sizeof(*layout->piece_tile);
  if (layout->long_piece) bytes += (layout->nlong + 1) * (PetscCount)sizeof(*layout->long_piece);
  if (layout->partial) bytes += layout->npieces * (PetscCount)sizeof(*layout->partial);
  if (layout->slice_tile) bytes += (layout->nslices + 1) * (PetscCount)sizeof(*layout->slice_tile);
  return bytes;
}
