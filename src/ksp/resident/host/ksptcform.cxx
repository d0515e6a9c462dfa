/*
   Method
     The resident form of a matrix (ksptcform.h) on the host: the twin of cuda/ksptcform.cu, and the oracle of its tests. A row of the product is added in the resident kernels' order, each lane's entries
     and then the lanes by halves.

   Layout
     src/ksp/resident/ksptcform.h

   Memory traffic
     CSR once, the form once
*/
#include <algorithm>
#include <../src/ksp/resident/ksptcform.h>
#include <../src/ksp/resident/ksptcregions.h>
#include <vector>

PetscErrorCode KSPTCChipGet_Host(KSPTCChip *chip)
{
  PetscFunctionBegin;
  chip->blocks = KSPTC_BLOCKS;
  chip->shared = SIZE_MAX;
  chip->bulk   = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCOrderRelease_Host(KSPTCOrder *order)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(order->made));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormDestroy_Host(KSPTCForm *form)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(form->order));
  PetscCall(PetscFree(form->block_row));
  PetscCall(PetscFree(form->block_slice));
  PetscCall(PetscFree(form->block_ghost));
  PetscCall(PetscFree(form->start));
  PetscCall(PetscFree(form->cut));
  PetscCall(PetscFree(form->shown));
  PetscCall(PetscFree(form->ghost));
  PetscCall(PetscFree(form->column));
  PetscCall(PetscFree(form->value));
  PetscCall(PetscFree(form->code));
  PetscCall(PetscFree(form->dict));
  *form = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row's first entry in CSR, its row that of the form */
static PetscInt FirstEntry(const KSPTCForm *form, const PetscInt i[], int32_t row)
{
  return i[KSPTCMatrixRow(form->order, row)];
}

static PetscInt BehindEntries(const KSPTCForm *form, const PetscInt i[], int32_t row)
{
  return i[KSPTCMatrixRow(form->order, row) + 1];
}

/* block_row[k] is the first row before which lie k parts of the weight, of `blocks` */
static void DealRows(const PetscInt i[], KSPTCForm *form)
{
  const PetscCount weight = KSPTCRowWeight(form), all = form->nnz + weight * form->m;
  PetscCount       before = 0;
  int32_t          row    = 0;

  for (int k = 0; k <= form->blocks; k++) {
    for (; row < form->m && before * form->blocks < all * k; row++) before += weight + BehindEntries(form, i, row) - FirstEntry(form, i, row);
    form->block_row[k] = row;
  }
}

static PetscInt LengthOf(const KSPTCForm *form, const PetscInt i[], int32_t row)
{
  return BehindEntries(form, i, row) - FirstEntry(form, i, row);
}

/* The entries of a row in a slice of block k: all, or a part */
static void EntriesIn(const KSPTCForm *form, const PetscInt i[], int k, int32_t slice, int32_t row, PetscInt *begin, PetscInt *end)
{
  *begin = FirstEntry(form, i, row);
  *end   = BehindEntries(form, i, row);
  KSPTCEntriesAt(form->cut, form->block_slice[k], slice, begin, end);
}

/* The rows of a slice of block k: calls at(row, lane) for each, lane its first one */
template <class At>
static void ForRows(const KSPTCForm *form, int k, int32_t slice, At at)
{
  const int32_t lanes = KSPTCCutLanes(form->cut[slice]), first = form->block_row[k] + KSPTCCutRow(form->cut[slice]);

  for (int32_t row = first; row < PetscMin(first + KSPTC_LANES / lanes, form->block_row[k + 1]); row++) at(row, (row - first) * lanes);
}

/* slices, block_slice[], cut[], start[], and the first places of the blocks */
static PetscErrorCode CutSlices(const PetscInt i[], const KSPTCCuts cuts[], KSPTCForm *form, int32_t block_start[])
{
  PetscCount places = 0;

  PetscFunctionBegin;
  PetscCall(PetscFree(form->start)); /* of rows as they were */
  PetscCall(PetscFree(form->cut));
  KSPTCFormCountSlices(cuts, form->block_slice, form);
  PetscCall(PetscMalloc1(form->slices + 1, &form->start));
  PetscCall(PetscMalloc1(form->slices, &form->cut));
  for (int k = 0; k < form->blocks; k++) {
    block_start[k] = (int32_t)places;
    for (int32_t s = form->block_slice[k]; s < form->block_slice[k + 1]; s++) {
      PetscInt longest = 0;

      form->cut[s]   = KSPTCCutAt(cuts[k], s - form->block_slice[k], i, form->order ? form->order + form->block_row[k] : NULL);
      form->start[s] = (int32_t)places;
      ForRows(form, k, s, [&](int32_t row, int32_t) {
        PetscInt begin, end;

        EntriesIn(form, i, k, s, row, &begin, &end);
        longest = PetscMax(longest, end - begin);
      });
      places += ((PetscCount)longest + KSPTCCutLanes(form->cut[s]) - 1) / KSPTCCutLanes(form->cut[s]) * KSPTC_LANES;
      PetscCheck(places <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The resident form would have more than 2^31 places: switch the resident solver off");
    }
  }
  block_start[form->blocks] = form->start[form->slices] = form->places = (int32_t)places;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of a block by length, those of the same length in the order they had: order[], number[], and how the blocks are to be cut */
static PetscErrorCode SortRows(const PetscInt i[], std::vector<int32_t> &number, KSPTCForm *form, KSPTCCuts cuts[])
{
  PetscFunctionBegin;
  if (!form->order) {
    PetscCall(PetscMalloc1(form->m, &form->order));
    for (int32_t row = 0; row < form->m; row++) form->order[row] = row;
  }
  for (int k = 0; k < form->blocks; k++) {
    int32_t until[KSPTC_WIDTHS], rows = 0, parts = 0;

    std::stable_sort(form->order + form->block_row[k], form->order + form->block_row[k + 1], [i](int32_t a, int32_t b) { return i[a + 1] - i[a] > i[b + 1] - i[b]; });
    for (int w = 0; w < KSPTC_WIDTHS; w++) {
      until[w] = 0;
      while (form->block_row[k] + until[w] < form->block_row[k + 1] && LengthOf(form, i, form->block_row[k] + until[w]) > KSPTCLengthBelow(w)) until[w]++;
    }
    for (; form->block_row[k] + rows < form->block_row[k + 1] && LengthOf(form, i, form->block_row[k] + rows) > KSPTC_PART; rows++) parts += KSPTCPartsOf(LengthOf(form, i, form->block_row[k] + rows));
    cuts[k] = KSPTCCutsOf(until, rows, parts);
  }
  for (int32_t row = 0; row < form->m; row++) number[form->order[row]] = row;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls at(block, place, entry) for every place of the form; entry -1: none */
template <class At>
static void ForAllPlaces(const KSPTCForm *form, const PetscInt i[], At at)
{
  for (int k = 0; k < form->blocks; k++) {
    for (int32_t s = form->block_slice[k]; s < form->block_slice[k + 1]; s++) {
      const int32_t lanes = KSPTCCutLanes(form->cut[s]), first = form->block_row[k] + KSPTCCutRow(form->cut[s]);

      for (int32_t place = form->start[s]; place < form->start[s + 1]; place++) {
        const int32_t lane = (place - form->start[s]) % KSPTC_LANES, slot = (place - form->start[s]) / KSPTC_LANES, row = first + lane / lanes;
        PetscInt      begin = 0, end = 0;

        if (row < form->block_row[k + 1]) EntriesIn(form, i, k, s, row, &begin, &end);
        begin += (PetscInt)lanes * slot + lane % lanes;
        at(k, place, begin < end ? begin : -1);
      }
    }
  }
}

/* block_ghost[], ghost[], shown[]. number[]: rows of the form */
static PetscErrorCode FindGhosts(const PetscInt i[], const PetscInt j[], const std::vector<int32_t> &number, KSPTCForm *form)
{
  std::vector<int32_t> ghosts;

  PetscFunctionBegin;
  form->block_ghost[0] = 0;
  for (int k = 0; k < form->blocks; k++) {
    const int32_t first = form->block_row[k], end = form->block_row[k + 1];

    for (int32_t row = first; row < end; row++) {
      for (PetscInt entry = FirstEntry(form, i, row); entry < BehindEntries(form, i, row); entry++) {
        const int32_t column = number[j[entry]];

        if (column < first || column >= end) ghosts.push_back(column);
      }
    }
    std::sort(ghosts.begin() + form->block_ghost[k], ghosts.end());
    ghosts.erase(std::unique(ghosts.begin() + form->block_ghost[k], ghosts.end()), ghosts.end());
    form->block_ghost[k + 1] = (int32_t)ghosts.size();
  }
  form->ghosts = (int32_t)ghosts.size();
  PetscCall(PetscMalloc1(form->ghosts, &form->ghost));
  std::copy(ghosts.begin(), ghosts.end(), form->ghost);
  PetscCall(PetscCalloc1((form->m - 1) / 32 + 1, &form->shown));
  for (int32_t ghost : ghosts) form->shown[ghost / 32] |= (uint32_t)1 << ghost % 32;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void NumberColumns(const PetscInt i[], const PetscInt j[], const std::vector<int32_t> &number, KSPTCForm *form)
{
  ForAllPlaces(form, i, [&](int k, int32_t place, PetscInt entry) {
    const int32_t first = form->block_row[k], end = form->block_row[k + 1], *ghosts = form->ghost + form->block_ghost[k], *behind = form->ghost + form->block_ghost[k + 1];

    const int32_t column = entry < 0 ? 0 : number[j[entry]];

    if (entry < 0) form->column[place] = (uint16_t)(end - first + (behind - ghosts));
    else if (column >= first && column < end) form->column[place] = (uint16_t)(column - first);
    else form->column[place] = (uint16_t)(end - first + (std::lower_bound(ghosts, behind, column) - ghosts));
  });
}

/* can: there are few enough of them */
static void CollectValues(PetscCount nnz, const PetscScalar a[], uint64_t bits[], PetscScalar dict[], PetscBool *can)
{
  std::vector<uint64_t> values;
  uint64_t              last = 0;

  *can = PETSC_TRUE;
  for (PetscCount k = 0; k < nnz; k++) {
    const uint64_t value = KSPTCBitsOf(a[k]);

    if (!value || value == last) continue;
    last = value;
    if (std::find(values.begin(), values.end(), value) != values.end()) continue;
    values.push_back(value);
    *can = (PetscBool)(value != KSPTC_NO_VALUE && values.size() < KSPTC_DICT);
    if (!*can) return;
  }
  KSPTCDictFrom(values, bits, dict, can);
}

PetscErrorCode KSPTCFormFill_Host(const PetscInt i[], const PetscScalar a[], KSPTCForm *form, PetscBool *can, PETSC_UNUSED PetscTCStream stream)
{
  uint64_t    bits[KSPTC_DICT];
  PetscScalar dict[KSPTC_DICT];

  PetscFunctionBegin;
  *can = PETSC_TRUE;
  if (!form->coded) {
    ForAllPlaces(form, i, [&](int, int32_t place, PetscInt entry) { form->value[place] = entry < 0 ? (PetscScalar)0.0 : a[entry]; });
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  CollectValues(form->nnz, a, bits, dict, can);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  std::copy(dict, dict + KSPTC_DICT, form->dict);
  ForAllPlaces(form, i, [&](int, int32_t place, PetscInt entry) { form->code[place] = entry < 0 ? 0 : KSPTCCodeOf(bits, a[entry]); });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values from a dictionary, where blocks have no room for all of them and that helps */
static void TryDictionary(const PetscScalar a[], const int32_t block_start[], const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits)
{
  uint64_t    bits[KSPTC_DICT];
  PetscScalar dict[KSPTC_DICT];

  if (!*fits || !form->streamed) return;
  CollectValues(form->nnz, a, bits, dict, &form->coded);
  if (!form->coded) return;
  KSPTCFormMeasure(form->block_row, form->block_slice, block_start, form->block_ghost, chip, form, fits);
  if (*fits) return;
  form->coded = PETSC_FALSE;
  KSPTCFormMeasure(form->block_row, form->block_slice, block_start, form->block_ghost, chip, form, fits);
}

/* order->made, where there is none yet */
static PetscErrorCode MakeRegions(const PetscInt i[], const PetscInt j[], KSPTCOrder *order, const KSPTCForm *form)
{
  PetscInt      *made = NULL;
  PetscBool      room = PETSC_TRUE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!order->regions || order->made) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(form->m, &made));
  ierr = KSPTCOrderByRegion_Host(form->m, i, j, (PetscInt)KSPTCRowWeight(form), form->blocks, made, &room, NULL);
  if (ierr) (void)PetscFree(made);
  PetscCall(ierr);
  order->made = made;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* order[], and number[] of each row of the matrix in the form */
static PetscErrorCode TakeOrder(const PetscInt i[], const PetscInt j[], KSPTCOrder *order, std::vector<int32_t> &number, KSPTCForm *form)
{
  const PetscInt *rows;

  PetscFunctionBegin;
  for (int32_t row = 0; row < form->m; row++) number[row] = row;
  if (!KSPTCOrders(order)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(form->m, &form->order));
  PetscCall(MakeRegions(i, j, order, form));
  rows = order->regions ? order->made : order->rows;
  if (rows) {
    for (int32_t row = 0; row < form->m; row++) number[rows[row]] = row;
  } else {
    const KSPTCPencils cut = KSPTCPencilsOf(form, order);

    for (int32_t row = 0; row < form->m; row++) number[row] = KSPTCPencilRow(cut, row);
  }
  for (int32_t row = 0; row < form->m; row++) form->order[number[row]] = row;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits)
{
  std::vector<int32_t>   number(form->m);
  std::vector<KSPTCCuts> cuts(form->blocks);
  int32_t                block_start[KSPTC_BLOCKS + 1];

  PetscFunctionBegin;
  PetscCall(TakeOrder(i, j, order, number, form));
  PetscCall(PetscMalloc1(form->blocks + 1, &form->block_row));
  PetscCall(PetscMalloc1(form->blocks + 1, &form->block_slice));
  PetscCall(PetscMalloc1(form->blocks + 1, &form->block_ghost));
  DealRows(i, form);
  KSPTCFormCutEvenly(form->block_row, form, cuts.data());
  PetscCall(CutSlices(i, cuts.data(), form, block_start));
  if (KSPTCFormSorts(form)) {
    PetscCall(SortRows(i, number, form, cuts.data()));
    PetscCall(CutSlices(i, cuts.data(), form, block_start));
  }
  PetscCall(FindGhosts(i, j, number, form));
  KSPTCFormMeasure(form->block_row, form->block_slice, block_start, form->block_ghost, chip, form, fits);
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  TryDictionary(a, block_start, chip, form, fits);
  PetscCall(PetscMalloc1(form->places, &form->column));
  if (form->coded) {
    PetscCall(PetscMalloc1(form->places, &form->code));
    PetscCall(PetscMalloc1(KSPTC_DICT, &form->dict));
  } else {
    PetscCall(PetscMalloc1(form->places, &form->value));
  }
  NumberColumns(i, j, number, form);
  PetscCall(KSPTCFormFill_Host(i, a, form, fits, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPTCFormCreate_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, KSPTCVectors vectors, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits,
                                    PETSC_UNUSED PetscTCStream stream)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *form = {};
  *fits = PETSC_FALSE;
  KSPTCFormShape(m, nnz, vectors, chip, form);
  ierr = form->blocks ? Create(i, j, a, order, chip, form, fits) : PETSC_SUCCESS;
  if (ierr || !*fits) PetscCall(KSPTCFormDestroy_Host(form));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of the rows of a slice of block k */
static void MultSlice(const KSPTCForm *A, int k, int32_t slice, const PetscScalar x[], PetscScalar y[])
{
  const int32_t  lanes = KSPTCCutLanes(A->cut[slice]), own = A->block_row[k + 1] - A->block_row[k];
  const int32_t *ghost            = A->ghost + A->block_ghost[k];
  PetscScalar    sum[KSPTC_LANES] = {};

  for (int32_t place = A->start[slice]; place < A->start[slice + 1]; place++) {
    const int32_t column = A->column[place];

    if (column < own + A->block_ghost[k + 1] - A->block_ghost[k])
      sum[(place - A->start[slice]) % KSPTC_LANES] += (A->coded ? A->dict[A->code[place]] : A->value[place]) * x[KSPTCMatrixRow(A->order, column < own ? A->block_row[k] + column : ghost[column - own])];
  }
  for (int32_t distance = 1; distance < lanes; distance *= 2) {
    for (int32_t l = 0; l < KSPTC_LANES; l += 2 * distance) sum[l] += sum[l + distance];
  }
  ForRows(A, k, slice, [&](int32_t row, int32_t lane) {
    PetscScalar &of_row = y[KSPTCMatrixRow(A->order, row)];

    of_row = KSPTCCutIsPart(A->cut[slice]) && slice > A->block_slice[k] && A->cut[slice - 1] == A->cut[slice] ? of_row + sum[lane] : sum[lane];
  });
}

void KSPTCFormMult_Host(const KSPTCForm *A, const PetscScalar x[], PetscScalar y[])
{
  for (int k = 0; k < A->blocks; k++) {
    for (int32_t s = A->block_slice[k]; s < A->block_slice[k + 1]; s++) MultSlice(A, k, s, x, y);
  }
}
