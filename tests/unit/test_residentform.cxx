/* The resident form of a matrix: it is that of the rows, the same in both memories */
#include <algorithm>
#include <map>
#include <set>
#include <../src/ksp/resident/ksptcregions.h>
#include <../src/ksp/tccg/tccgresident.h>
#include "fulldevice.h"
#include "resident.h"

namespace
{
KSPTCChip Chip(PETSC_UNUSED bool cuda)
{
  KSPTCChip chip = {0, 0};

#if PETSCTC_HAVE_CUDA
  if (cuda) {
    EXPECT_EQ(KSPTCChipGet_CUDA(&chip), PETSC_SUCCESS);
    return chip;
  }
#endif
  EXPECT_EQ(KSPTCChipGet_Host(&chip), PETSC_SUCCESS);
  return chip;
}

template <class T>
void ExpectSame(const char *name, const OwnedForm &e, const OwnedForm &c, T *const KSPTCForm::*array, size_t length)
{
  const std::vector<T> expected = e.Get(e.form.*array, length), computed = c.Get(c.form.*array, length);

  for (size_t k = 0; k < length; k++) ASSERT_EQ(memcmp(&expected[k], &computed[k], sizeof(T)), 0) << name << "[" << k << "] of " << length << ": " << expected[k] << " and " << computed[k];
}

void ExpectSameForm(const OwnedForm &e, const OwnedForm &c)
{
  ASSERT_EQ(e.form.m, c.form.m);
  ASSERT_EQ(e.form.nnz, c.form.nnz);
  ASSERT_EQ(e.form.blocks, c.form.blocks);
  ASSERT_EQ(e.form.lanes, c.form.lanes);
  ASSERT_EQ(e.form.slices, c.form.slices);
  ASSERT_EQ(e.form.places, c.form.places);
  ASSERT_EQ(e.form.ghosts, c.form.ghosts);
  ASSERT_EQ(e.form.parts, c.form.parts);
  for (int v = 0; v <= KSPTC_VECTORS; v++) ASSERT_EQ(e.form.shared[v], c.form.shared[v]) << v << " vectors";
  for (int v = 0; v <= KSPTC_VECTORS; v++) ASSERT_EQ(e.form.least[v], c.form.least[v]) << v << " vectors";
  ASSERT_EQ(e.form.streamed, c.form.streamed);
  ASSERT_EQ(e.form.order == nullptr, c.form.order == nullptr);
  if (e.form.order) { ASSERT_NO_FATAL_FAILURE(ExpectSame("order", e, c, &KSPTCForm::order, e.form.m)); }
  ASSERT_NO_FATAL_FAILURE(ExpectSame("block_row", e, c, &KSPTCForm::block_row, e.form.blocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("block_slice", e, c, &KSPTCForm::block_slice, e.form.blocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("block_ghost", e, c, &KSPTCForm::block_ghost, e.form.blocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("ghost", e, c, &KSPTCForm::ghost, e.form.ghosts));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("start", e, c, &KSPTCForm::start, e.form.slices + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("cut", e, c, &KSPTCForm::cut, e.form.slices));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("shown", e, c, &KSPTCForm::shown, (e.form.m - 1) / 32 + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame("column", e, c, &KSPTCForm::column, e.form.places));
  ASSERT_EQ(e.form.coded, c.form.coded);
  if (e.form.coded) {
    ASSERT_NO_FATAL_FAILURE(ExpectSame("code", e, c, &KSPTCForm::code, e.form.places));
    ASSERT_NO_FATAL_FAILURE(ExpectSame("dict", e, c, &KSPTCForm::dict, KSPTC_DICT));
  } else {
    ASSERT_NO_FATAL_FAILURE(ExpectSame("value", e, c, &KSPTCForm::value, e.form.places));
  }
}

/* No two entries have the same value */
Csr Distinct(Csr A)
{
  A.a.resize(A.j.size());
  for (size_t k = 0; k < A.a.size(); k++) A.a[k] = (PetscScalar)(k + 1);
  return A;
}

/* Rows of very different lengths; those of 513, 1024 and 5121 entries, two of them in one block, come in parts, that of 512 does not */
Csr RowsInParts()
{
  const std::map<PetscInt, PetscInt> some = {
    {2048, 5121},
    {3200, 512 },
    {3232, 513 },
    {3233, 1024}
  };
  const auto length = [&](PetscInt r) { return some.count(r) ? some.at(r) : (PetscInt)(r % 32 ? 1 : (r % 1024 ? 64 : (r % 2048 ? 900 : 400))); };

  return Dominant(FromColumns(9000, [&](PetscInt r) { return Range(r, std::min(r + length(r), (PetscInt)9000)); }), false);
}

constexpr KSPTCVectors four = {4, 2}, six = {6, 4};

class ResidentForm : public ::testing::TestWithParam<Backend> {
protected:
  bool cuda = GetParam() != Backend::Host;
  void SetUp() override { SkipUnlessUsable(cuda, false); }
};

/* The rows of the matrix come back from the form, each once, its entries in order and nothing else; ghosts are other blocks' rows, ascending, each of some entry */
TEST_P(ResidentForm, HoldsTheMatrix)
{
  std::vector<System> systems = Systems(true);

  systems.push_back({"rows in parts", RowsInParts()});
  for (const System &system : systems) {
    SCOPED_TRACE(system.name);
    const Csr       &A = system.A;
    const OwnedForm  owned(cuda, A, four, Chip(cuda), system.order);
    const KSPTCForm &F = owned.form;

    ASSERT_TRUE(owned.fits);
    const auto            row = owned.Get(F.block_row, F.blocks + 1), slice = owned.Get(F.block_slice, F.blocks + 1), start = owned.Get(F.start, F.slices + 1);
    const auto            column      = owned.Get(F.column, F.places);
    const auto            block_ghost = owned.Get(F.block_ghost, F.blocks + 1), ghost = owned.Get(F.ghost, F.ghosts);
    const auto            value = owned.Get(F.value, F.places);
    const auto            cut   = owned.Get(F.cut, F.slices);
    const auto            shown = owned.Get(F.shown, (A.m - 1) / 32 + 1);
    std::vector<PetscInt> order = system.order, number(A.m);
    std::set<PetscInt>    all;

    if (order.empty()) order = Range(0, A.m);
    if (F.order) {
      const auto of_form = owned.Get(F.order, A.m);

      for (int b = 0; b < F.blocks; b++) ASSERT_TRUE(std::is_permutation(of_form.begin() + row[b], of_form.begin() + row[b + 1], order.begin() + row[b])) << "block " << b;
      order.assign(of_form.begin(), of_form.end());
    }
    for (PetscInt n = 0; n < A.m; n++) number[order[n]] = n;
    ASSERT_EQ(row[0], 0);
    ASSERT_EQ(row[F.blocks], A.m);
    ASSERT_EQ(start[F.slices], F.places);
    ASSERT_EQ(block_ghost[0], 0);
    ASSERT_EQ(block_ghost[F.blocks], F.ghosts);
    ASSERT_TRUE(F.lanes == 1 || (PetscCount)A.i[A.m] > (PetscCount)KSPTC_LANE_SHARE * F.lanes / 2 * A.m);
    for (int b = 0; b < F.blocks; b++) {
      const PetscInt     rows = row[b + 1] - row[b];
      PetscInt           s = slice[b] - 1, next = 0, first = 0, lanes = 0; /* the slice, the row behind it, its first one */
      size_t             entries = 0, filled = 0;
      std::set<PetscInt> expected;

      for (PetscInt n = row[b]; n < row[b + 1]; n++) {
        const PetscInt r = order[n];

        if (n - row[b] == next) {
          s++;
          first = next;
          lanes = KSPTCCutLanes(cut[s]);
          ASSERT_EQ(KSPTCCutRow(cut[s]), first);
          next += KSPTC_LANES / lanes;
        }
        for (PetscInt k = 0; k < A.Length(r); k++) {
          const bool part = KSPTCCutIsPart(cut[s]); /* of whose row the next slice has the next entries */

          if (part && k > 0 && k % KSPTC_PART == 0) {
            s++;
            ASSERT_EQ(cut[s], cut[s - 1]);
          }
          const PetscInt of_slice = part ? k % KSPTC_PART : k;
          const PetscInt place = start[s] + KSPTC_LANES * (of_slice / lanes) + (n - row[b] - first) * lanes + of_slice % lanes, c = number[A.j[A.i[r] + k]];

          ASSERT_LT(place, start[s + 1]) << "row " << r;
          ASSERT_EQ(column[place] < rows ? row[b] + column[place] : ghost.at(block_ghost[b] + column[place] - rows), c) << "row " << r << ", entry " << k;
          if (c < row[b] || c >= row[b + 1]) expected.insert(c);
          ASSERT_EQ(value[place], A.a[A.i[r] + k]) << "row " << r << ", entry " << k;
        }
        entries += A.Length(r);
      }
      for (PetscInt place = start[slice[b]]; place < start[slice[b + 1]]; place++) {
        if (column[place] != rows + block_ghost[b + 1] - block_ghost[b]) filled++;
        else ASSERT_EQ(value[place], 0.0);
      }
      ASSERT_EQ(s + 1, slice[b + 1]) << "block " << b;
      ASSERT_EQ(filled, entries) << "block " << b;
      all.insert(expected.begin(), expected.end());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), ghost.begin() + block_ghost[b], ghost.begin() + block_ghost[b + 1])) << "block " << b;
    }
    for (PetscInt n = 0; n < A.m; n++) ASSERT_EQ(shown[n / 32] >> n % 32 & 1, all.count(n)) << "row " << n;
  }
}

/* Where rows have very different lengths, they come by length in a block, in slices of as many lanes as they need, the longest in parts, with few places in vain */
TEST_P(ResidentForm, SortsRowsByLength)
{
  const Csr        A = RowsInParts();
  const OwnedForm  owned(cuda, A, four, Chip(cuda)), expected(false, A, four, Chip(cuda)), grid(cuda, Dominant(SevenPoint(43), true), four, Chip(cuda));
  const KSPTCForm &F = owned.form;

  ASSERT_TRUE(owned.fits);
  ASSERT_EQ(grid.form.order, nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, owned));
  ASSERT_LT(2 * F.places, 3 * F.nnz);
  const auto row = owned.Get(F.block_row, F.blocks + 1), order = owned.Get(F.order, A.m), slice = owned.Get(F.block_slice, F.blocks + 1), cut = owned.Get(F.cut, F.slices);
  int        widths = 0, most = 0, rows = 0;

  for (int b = 0; b < F.blocks; b++) {
    for (PetscInt n = row[b] + 1; n < row[b + 1]; n++) {
      ASSERT_GE(A.Length(order[n - 1]), A.Length(order[n]));
      if (A.Length(order[n - 1]) == A.Length(order[n])) { ASSERT_LT(order[n - 1], order[n]); }
    }
    int parts = 0, in_parts = 0;

    for (int s = slice[b]; s < slice[b + 1]; s++) {
      const int lanes = KSPTCCutLanes(cut[s]), longest = A.Length(order[row[b] + KSPTCCutRow(cut[s])]);

      widths |= 1 << KSPTCCutWidth(cut[s]);
      ASSERT_TRUE(lanes == KSPTC_LANES || longest <= KSPTC_SORTED_SHARE * lanes);
      ASSERT_TRUE(lanes == 1 || longest > KSPTC_SORTED_SHARE * lanes / 2);
      ASSERT_EQ(KSPTCCutIsPart(cut[s]), longest > KSPTC_PART);
      if (!KSPTCCutIsPart(cut[s])) continue;
      parts++;
      if (s == slice[b] || cut[s] != cut[s - 1]) in_parts++;
    }
    most = std::max(most, parts);
    rows = std::max(rows, in_parts);
  }
  ASSERT_EQ(F.parts, most);
  ASSERT_GE(most, 11);                         /* 5,121 entries are in the eleventh part */
  ASSERT_GE(rows, 2);                          /* of a block */
  ASSERT_EQ(widths, 1 << 0 | 1 << 3 | 1 << 5); /* lanes 32, 4, 1 */
}

/* Pencils are all rows, each once, in slabs that come one after the other; on grids they leave fewer ghosts; the form is the same in both memories */
TEST_P(ResidentForm, CutsGridsIntoPencils)
{
  struct Grid {
    const char *name;
    Csr         A;
    PetscInt    plane, line;
  };
  const Grid grids[] = {
    {"cube",  Constants(41),    41 * 41,        41       },
    {"plane", LongLines(200003, 700),           700,       1},
    {"no whole lines",       Constants(41),        1000,   37},
    {"less than planes",       Constants(20),      7999, 11}
  };

  for (const Grid &grid : grids) {
    SCOPED_TRACE(grid.name);
    const KSPTCOrder     order = {nullptr, grid.plane, grid.line};
    const OwnedForm      plain(false, grid.A, four, {132, SIZE_MAX}, {nullptr, 0, 0}), cut(false, grid.A, four, {132, SIZE_MAX}, order);
    std::vector<int32_t> row     = cut.Get(cut.form.order, grid.A.m);
    const KSPTCPencils   pencils = KSPTCPencilsOf(&cut.form, &order);

    ASSERT_EQ(pencils.slabs * pencils.pencils, cut.form.blocks);
    for (int slab = 0; slab < pencils.slabs; slab++) {
      const PetscCount from = (PetscCount)grid.A.m * slab / pencils.slabs, to = (PetscCount)grid.A.m * (slab + 1) / pencils.slabs;

      std::sort(row.begin() + from, row.begin() + to);
    }
    for (PetscInt r = 0; r < grid.A.m; r++) ASSERT_EQ(row[r], r);
    if (!strcmp(grid.name, "cube") || !strcmp(grid.name, "plane")) { ASSERT_LT(3 * cut.form.ghosts, 2 * plain.form.ghosts); }
    if (cuda) {
      const OwnedForm expected(false, grid.A, four, Chip(cuda), order), computed(cuda, grid.A, four, Chip(cuda), order);

      ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
    }
  }
}

/* A matrix and the same beside it, without an edge between them */
Csr Twice(const Csr &A)
{
  Csr B = A;

  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) {
      B.j.push_back(A.m + A.j[k]);
      B.a.push_back(A.a[k]);
    }
    B.i.push_back((PetscInt)B.j.size());
  }
  B.m = B.n = 2 * A.m;
  return B;
}

/* The same with its last rows, one of so many, without neighbours */
Csr WithIdentityRowsLast(const Csr &A, PetscInt n)
{
  const PetscInt first = A.m - A.m / n;

  return Keeping(A, [first](PetscInt r, PetscInt c, PetscInt) { return c == r || (r < first && c < first); });
}

/* So many rows, those behind A's with their diagonal entry alone */
Csr WithRowsBehind(Csr A, PetscInt m)
{
  for (; A.m < m; A.m++) {
    A.j.push_back(A.m);
    A.a.push_back(1.0);
    A.i.push_back((PetscInt)A.j.size());
  }
  A.n = m;
  return A;
}

/* Regions are all rows, each once, with no more than `fewer` of the ghosts that clusters leave; rows of one entry, without neighbours, are spread: no block has so many rows as if it
   had them alone; the form is the same in both memories */
void ExpectRegions(bool cuda, const Csr &A, double fewer)
{
  const KSPTCOrder      regions = {nullptr, 0, 0, PETSC_TRUE};
  const KSPTCChip       chip    = {33, SIZE_MAX};
  std::vector<PetscInt> clusters(A.m);

  ASSERT_EQ(AIJTCClusterRows_Host(A.m, A.i.data(), A.j.data(), clusters.data(), nullptr), PETSC_SUCCESS);
  const OwnedForm      by_region(false, A, four, chip, regions), by_cluster(false, A, four, chip, clusters);
  const double         weight = (double)KSPTCRowWeight(&by_region.form), light = (weight * A.m + A.i[A.m]) / (weight + 1); /* rows of one entry that weigh as much as all */
  std::vector<int32_t> order = by_region.Get(by_region.form.order, A.m), row = by_region.Get(by_region.form.block_row, by_region.form.blocks + 1);

  for (int b = 0; b < by_region.form.blocks; b++) ASSERT_LE((double)(row[b + 1] - row[b]) * by_region.form.blocks, 1.01 * A.m + 0.6 * (light - A.m)) << "block " << b;
  std::sort(order.begin(), order.end());
  for (PetscInt r = 0; r < A.m; r++) ASSERT_EQ(order[r], r);
  ASSERT_LE(by_region.form.ghosts, fewer * by_cluster.form.ghosts);
  if (!cuda) return;
  const OwnedForm expected(false, A, four, Chip(cuda), regions), computed(cuda, A, four, Chip(cuda), regions);

  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
}

/* Meshes whose numbers mean nothing, one way, with rows that nothing reaches, with such rows side by side, in two parts, of one cluster, without edges */
TEST_P(ResidentForm, OrdersByRegion)
{
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, Renumbered(TwentySevenPoint(40)), 0.8));
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, Renumbered(Thinned(TwentySevenPoint(34), 3)), 0.9));
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, WithIsolatedRows(Renumbered(SevenPoint(40)), 4), PetscDefined(USE_REAL_SINGLE) ? 0.91 : 0.9)); /* in single precision rows weigh less */
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, WithIdentityRowsLast(Renumbered(SevenPoint(40)), 4), 0.9));
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, Twice(Renumbered(SevenPoint(31))), 0.9));
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, Renumbered(SevenPoint(6)), 1.0));
  ASSERT_NO_FATAL_FAILURE(ExpectRegions(cuda, Banded(9000, 9000, {0}), 1.0));
}

/* Where there are more clusters than a graph is made of, rows come by cluster: these of neighbours among the first rows, whose numbers mean nothing, and else of one row */
TEST_P(ResidentForm, ManyClustersComeAsTheyAre)
{
  const Csr             mesh = Renumbered(SevenPoint(30)), A = WithRowsBehind(mesh, KSPTC_REGION_CLUSTERS * 300);
  std::vector<PetscInt> clusters(A.m);
  Array<PetscInt>       i(cuda, A.i), j(cuda, A.j), order(cuda, clusters);
  PetscBool             room = PETSC_TRUE;

  ASSERT_EQ(AIJTCClusterRows_Host(A.m, A.i.data(), A.j.data(), clusters.data(), nullptr), PETSC_SUCCESS);
  ASSERT_FALSE(std::is_sorted(clusters.begin(), clusters.end()));
#if PETSCTC_HAVE_CUDA
  if (cuda) { ASSERT_EQ(KSPTCOrderByRegion_CUDA(A.m, i, j, 4, 132, order, &room, nullptr), PETSC_SUCCESS); }
#endif
  if (!cuda) { ASSERT_EQ(KSPTCOrderByRegion_Host(A.m, i, j, 4, 132, order, &room, nullptr), PETSC_SUCCESS); }
  ASSERT_TRUE(room);
  ASSERT_EQ(order.Values(), clusters);
}

/* A chip whose blocks have room for the vectors of their rows, but not of their ghosts: that is known when there is an order */
KSPTCChip WithoutRoom(const OwnedForm &form, const KSPTCChip &chip)
{
  return {chip.blocks, 1 + KSPTCBytesOfVectors(form.form.m, 0, 0, form.form.vectors) / form.form.blocks};
}

/* A form for which blocks have no room leaves the order to the one after it, which is as if it were the first */
TEST_P(ResidentForm, OrderIsMadeOnce)
{
  const Csr             A       = Renumbered(SevenPoint(40));
  const KSPTCChip       chip    = Chip(cuda);
  const KSPTCOrder      regions = {nullptr, 0, 0, PETSC_TRUE};
  KSPTCOrder            order   = regions;
  const OwnedForm       expected(false, A, four, chip, regions), refused(cuda, A, four, WithoutRoom(expected, chip), &order);
  const PetscInt *const made = order.made;
  const OwnedForm       taken(cuda, A, four, chip, &order);

  EXPECT_FALSE(refused.fits);
  EXPECT_NE(made, nullptr);
  EXPECT_EQ(order.made, made);
  EXPECT_NO_FATAL_FAILURE(ExpectSameForm(expected, taken));
  OwnedForm::Release(cuda, &order);
  EXPECT_EQ(order.made, nullptr);
}

/* Memory comes back piece by piece: where there is too little for an order, or for a form, there is none, and nothing is left of it */
TEST(BuildMemory, WithoutRoomThereIsNoOrder)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
#if PETSCTC_HAVE_CUDA
  const Csr          A       = Renumbered(SevenPoint(SmallSystems() ? 20 : 70));
  const KSPTCOrder   regions = {nullptr, 0, 0, PETSC_TRUE};
  const KSPTCChip    chip    = Chip(true);
  const OwnedForm    expected(false, A, four, chip, regions), loads_kernels(true, A, four, chip, regions);
  const KSPTCChip    none = WithoutRoom(expected, chip);
  Array<PetscInt>    i(true, A.i), j(true, A.j);
  Array<PetscScalar> a(true, A.a);
  KSPTCForm          form    = {};
  KSPTCOrder         order   = regions;
  PetscBool          fits    = PETSC_FALSE;
  int                refused = 0;

  ASSERT_TRUE(expected.fits);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(EmptyPool(), cudaSuccess);
  for (FullDevice full; !fits;) { /* as the engine does: a form for which there is no room on the chip, and then another in the same order */
    for (const KSPTCChip &of : {none, chip}) ASSERT_EQ(KSPTCFormCreate_CUDA(A.m, A.i[A.m], i, j, a, &order, four, &of, &form, &fits, nullptr), PETSC_SUCCESS);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess) << "left behind for the next launch";
    if (fits) break;
    refused++;
    ASSERT_EQ(form.order, nullptr);
    ASSERT_EQ(form.value, nullptr);
    OwnedForm::Release(true, &order);
    ASSERT_TRUE(full.GiveBack());
  }
  EXPECT_GE(refused, 1);
  OwnedForm::Release(true, &order);
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, OwnedForm(&form)));
#endif
}

/* No block has more than its part and one row. Four vectors of 8 bytes are as large as four nonzeros of 10, six as five */
TEST_P(ResidentForm, SharesAreEven)
{
  for (const System &system : Systems(true)) {
    for (KSPTCVectors vectors : {four, six}) {
      SCOPED_TRACE(system.name);
      const Csr      &A = system.A;
      const OwnedForm owned(cuda, A, vectors, Chip(cuda), system.order);
      const double    w       = vectors.rows == 4 ? (PetscDefined(USE_REAL_SINGLE) ? 3 : 4) : (PetscDefined(USE_REAL_SINGLE) ? 4 : 5);
      const auto      row     = owned.Get(owned.form.block_row, owned.form.blocks + 1);
      PetscInt        longest = 0;
      const auto      weight  = [&](PetscInt from, PetscInt to) {
        double sum = 0.0;

        for (PetscInt n = from; n < to; n++) sum += w + (double)A.Length(system.order.empty() ? n : system.order[n]);
        return sum;
      };

      for (PetscInt r = 0; r < A.m; r++) longest = std::max(longest, A.Length(r));
      for (int k = 0; k < owned.form.blocks; k++) ASSERT_LE(weight(row[k], row[k + 1]), weight(0, A.m) / owned.form.blocks + longest + w) << "block " << k;
    }
  }
}

TEST_P(ResidentForm, SameInBothMemories)
{
  for (const System &system : Systems(true)) {
    for (KSPTCVectors vectors : {four, six}) {
      SCOPED_TRACE(system.name);
      const KSPTCChip chip = Chip(cuda);
      const OwnedForm expected(false, system.A, vectors, chip, system.order), computed(cuda, system.A, vectors, chip, system.order);

      ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
    }
  }
}

TEST_P(ResidentForm, TakesValuesAnew)
{
  for (const System &system : Systems(true)) {
    SCOPED_TRACE(system.name);
    Csr        changed = system.A;
    const auto chip    = Chip(cuda);

    SetValues(changed, ValueKind::Strange);
    const OwnedForm expected(cuda, changed, four, chip, system.order);
    OwnedForm       computed(cuda, system.A, four, chip, system.order);

    computed.Fill(changed);
    ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
  }
}

/* Few values, in blocks without room for all places: the dictionary has them, each once, as long as it has room */
TEST_P(ResidentForm, CodesFewValues)
{
  const Csr       A   = ConstantsBut(43, 20000, 20100);
  const KSPTCChip all = Chip(cuda), some = {all.blocks, KSPTCBytesOfBlock(A.i[A.m] / 3, A.m, A.m, 0, {4, 3}) / KSPTC_BLOCKS};
  OwnedForm       computed(cuda, A, four, some);
  const OwnedForm expected(false, A, four, some), whole(cuda, A, four, {all.blocks, SIZE_MAX / 2}), plain(cuda, Distinct(A), four, some);
  const auto     &F = computed.form;
  Csr             B = A;

  if (all.blocks < KSPTC_BLOCKS) GTEST_SKIP() << "the device has too few multiprocessors for the matrix";
  ASSERT_FALSE(whole.form.coded);
  ASSERT_TRUE(F.coded);
  ASSERT_FALSE(plain.form.coded);
  ASSERT_LT(2 * F.streamed, plain.form.streamed);
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(expected, computed));
  for (PetscScalar &a : B.a) a = -2.0 * a; /* other values, as many; and then too many, of which nothing comes in */
  ASSERT_TRUE(computed.Fill(B));
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(OwnedForm(false, B, four, some), computed));
  for (size_t k = 0; k < B.a.size(); k++) B.a[k] = 1.0 + (PetscScalar)(k % 255); /* as many as there is room for */
  ASSERT_TRUE(computed.Fill(B));
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(OwnedForm(false, B, four, some), computed));
  for (size_t k = 0; k < B.a.size(); k++) B.a[k] = 1.0 + (PetscScalar)(k % 256);
  const auto code = computed.Get(F.code, F.places);
  const auto dict = computed.Get(F.dict, KSPTC_DICT);
  ASSERT_FALSE(computed.Fill(B));
  ASSERT_EQ(computed.Get(F.code, F.places), code);
  ASSERT_EQ(computed.Get(F.dict, KSPTC_DICT), dict);
  ASSERT_FALSE(OwnedForm(cuda, B, four, some).form.coded);
  ASSERT_TRUE(OwnedForm(cuda, B, four, some).fits);
  B.a[77] = NAN; /* bit patterns are values */
  for (size_t k = 0; k < B.a.size(); k++) B.a[k] = k % 3 ? B.a[77] : (k % 2 ? -0.0 : 0.0);
  ASSERT_TRUE(computed.Fill(B));
  ASSERT_NO_FATAL_FAILURE(ExpectSameForm(OwnedForm(false, B, four, some), computed));
}

TEST_P(ResidentForm, SaysWhatDoesNotFit)
{
  const Csr A    = Dominant(SevenPoint(43), true); /* 0.54 million nonzeros, 79,507 rows: 10 and 32 bytes, in single precision 6 and 16 */
  KSPTCChip chip = Chip(cuda);

  chip.shared = KSPTCBytesOfVectors(A.m, 0, 0, four) / KSPTC_BLOCKS; /* too few for vectors of ghosts, too */
  ASSERT_FALSE(OwnedForm(cuda, A, four, chip).fits);
  ASSERT_TRUE(OwnedForm(cuda, A, four, Chip(cuda)).fits);
  if (!cuda) { /* 16 bits do not number the columns */
    const Csr D = Dominant(FromColumns(70001, [](PetscInt r) { return Range(r, r + 1); }), true);

    chip.blocks = 1;
    ASSERT_FALSE(OwnedForm(cuda, D, four, {1, SIZE_MAX}).fits);
    ASSERT_TRUE(OwnedForm(cuda, D, four, {2, SIZE_MAX}).fits);
  }
  chip.blocks = 0;
  ASSERT_FALSE(OwnedForm(cuda, A, four, chip).fits);
}

/* What is said of the bytes of blocks: those of the largest one, and what does not fit into them */
TEST_P(ResidentForm, SaysHowMuchIsHeld)
{
  const Csr        A   = Distinct(SevenPoint(43));
  const KSPTCChip  all = Chip(cuda), mean = {all.blocks, KSPTCBytesOfBlock(A.i[A.m], A.m, 0, 0, four) / KSPTC_BLOCKS}; /* no ghosts */
  const OwnedForm  whole(cuda, A, four, all), part(cuda, A, four, mean);
  const KSPTCForm &F   = part.form;
  const auto       row = part.Get(F.block_row, F.blocks + 1), slice = part.Get(F.block_slice, F.blocks + 1), start = part.Get(F.start, F.slices + 1), ghost = part.Get(F.block_ghost, F.blocks + 1);
  size_t           shared = 0, least = 0;
  PetscCount       streamed = 0;

  if (all.blocks < KSPTC_BLOCKS) GTEST_SKIP() << "the device has too few multiprocessors for the matrix";
  ASSERT_TRUE(part.fits);
  for (int b = 0; b < F.blocks; b++) {
    const size_t vectors = ((size_t)(row[b + 1] - row[b]) * 4 + (size_t)(ghost[b + 1] - ghost[b]) * 2 + 2) * sizeof(PetscScalar) + (size_t)(slice[b + 1] - slice[b] + 1) * 8 + (size_t)((row[b + 1] - row[b]) / 32 + 2) * 4;
    const size_t bytes   = vectors + (size_t)(start[slice[b + 1]] - start[slice[b]]) * (sizeof(PetscScalar) + 2) + (size_t)(ghost[b + 1] - ghost[b]) * 4;

    shared = std::max(shared, bytes);
    least  = std::max(least, vectors);
    if (bytes > mean.shared) streamed += (PetscCount)(bytes - mean.shared);
  }
  ASSERT_EQ(F.shared[4], shared);
  ASSERT_EQ(F.least[4], least);
  ASSERT_GT(streamed, 0);
  ASSERT_EQ(F.streamed, streamed);
  ASSERT_EQ(KSPTCSharedBytes(&F, four), mean.shared);
  ASSERT_TRUE(KSPTCHoldsPart(&F, four));
  ASSERT_EQ(whole.form.streamed, 0);
  ASSERT_EQ(KSPTCSharedBytes(&whole.form, four), shared);
  ASSERT_FALSE(KSPTCHoldsPart(&whole.form, four));
}

/* The systems have what they are there for */
TEST_P(ResidentForm, BlocksWithoutRowsAndManyGhosts)
{
  int empty = 0, most = 0;

  for (const System &system : Systems(true)) {
    const OwnedForm owned(cuda, system.A, four, Chip(cuda), system.order);
    const auto      row = owned.Get(owned.form.block_row, owned.form.blocks + 1), ghost = owned.Get(owned.form.block_ghost, owned.form.blocks + 1);

    for (int k = 0; k < owned.form.blocks; k++) {
      empty += row[k] == row[k + 1];
      most = std::max(most, ghost[k + 1] - ghost[k]);
    }
  }
  ASSERT_GE(empty, 1);
  ASSERT_GE(most, 2900);
}

TEST(ResidentWork, TellsWhoGaveUp)
{
  PetscTCLateBlock  late = {17, 4, 0};
  KSPTCResidentWork work = {};

  ASSERT_EQ(KSPTCResidentCheck(&work), PETSC_SUCCESS);
  work.late = &late;
  ASSERT_EQ(KSPTCResidentCheck(&work), PETSC_SUCCESS);
  late.late = 1;
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  ASSERT_EQ(KSPTCResidentCheck(&work), PETSC_ERR_GPU);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Backends, ResidentForm, ::testing::Values(Backend::Host, Backend::Core), Name);
} // namespace
