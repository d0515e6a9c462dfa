/* Patches of a grid: every row is one block's, and the windows have what its rows multiply by */
#include <gtest/gtest.h>
#include <../src/ksp/resident/ksptcwindowed.h>
#include <vector>

namespace
{
/* Rows whose columns are so far away: `stride` at most, `line` at most from the nearer of 0 and stride */
struct Grid {
  const char           *name;
  PetscInt              m;
  std::vector<PetscInt> distances;
  PetscInt              stride, line;
};

Grid Stencil(const char *name, PetscInt m, PetscInt plane, PetscInt line, bool diagonals)
{
  Grid grid = {name, m, {}, 0, 0};

  for (PetscInt z = -1; z <= 1; z++) {
    for (PetscInt y = -1; y <= 1; y++) {
      for (PetscInt x = -1; x <= 1; x++) {
        if (diagonals || PetscAbs(z) + PetscAbs(y) + PetscAbs(x) <= 1) grid.distances.push_back(z * plane + y * line + x);
      }
    }
  }
  for (PetscInt d : grid.distances) grid.stride = PetscMax(grid.stride, d);
  for (PetscInt d : grid.distances) grid.line = PetscMax(grid.line, PetscMin(PetscAbs(d), grid.stride - PetscAbs(d)));
  return grid;
}

/* What a layout of it says of itself */
AIJTCLayout LayoutOf(const Grid &grid)
{
  AIJTCLayout layout = {};

  layout.m                   = grid.m;
  layout.nnz                 = grid.m * (PetscCount)grid.distances.size();
  layout.stride              = grid.stride;
  layout.line                = grid.line;
  layout.nconsecutive        = (grid.m - 1) / KSPTC_WINDOWED_ROWS + 1;
  layout.nslices[AIJTC_ROWS] = layout.nconsecutive;
  return layout;
}

constexpr int32_t NOBODY = -1, OTHERS = -2; /* what a place has: neither of them, or a row that its block does not write to device memory */

/* The slices of a block */
std::vector<KSPTCPatchSlice> SlicesOf(const KSPTCWindows &windows, const KSPTCPatch &patch)
{
  std::vector<KSPTCPatchSlice> slices;

  for (int32_t n = 0; n < windows.slices; n++) slices.push_back(KSPTCSliceOf(&windows, &patch, n));
  return slices;
}

void Deal(const KSPTCWindows &windows, std::vector<int32_t> &shown)
{
  for (int32_t block = 0; block < windows.blocks; block++) {
    const KSPTCPatch patch  = KSPTCPatchOf(&windows, block);
    const auto       slices = SlicesOf(windows, patch);

    ASSERT_LE(patch.inner, (int32_t)slices.size());
    for (int32_t n = 0; n < (int32_t)slices.size(); n++) {
      for (int32_t k = 0; k < slices[n].rows; k++) {
        ASSERT_EQ(shown.at(slices[n].row + k), NOBODY) << "row " << slices[n].row + k << ", block " << block;
        shown[slices[n].row + k] = n >= patch.inner ? 1 : 0;
      }
    }
  }
  for (size_t row = 0; row < shown.size(); row++) ASSERT_NE(shown[row], NOBODY) << "row " << row;
}

/* What a block's windows have of its own rows, and of others' */
void Fill(const KSPTCWindows &windows, const KSPTCPatch &patch, const std::vector<int32_t> &shown, std::vector<int32_t> &own, std::vector<int32_t> &all)
{
  own.assign(windows.elements, NOBODY);
  for (const KSPTCPatchSlice &slice : SlicesOf(windows, patch)) {
    for (int32_t k = 0; k < slice.rows; k++) own.at(slice.place + k) = slice.row + k;
  }
  all = own;
  for (int32_t n = 0; n < KSPTCCopies(&windows, &patch); n++) {
    const KSPTCWindowCopy copy = KSPTCCopyOf(&windows, &patch, n);

    ASSERT_EQ((copy.place - copy.from) % 2, 0) << "bulk copies need the same multiples of 16 bytes";
    ASSERT_GE(copy.from, 0);
    ASSERT_LE(copy.end, windows.m);
    for (int32_t k = 0; k < copy.end - copy.from; k++) {
      const int32_t row = copy.from + k;

      ASSERT_EQ(own.at(copy.place + k), NOBODY) << "what a block keeps itself is not copied";
      all[copy.place + k] = shown[row] ? row : OTHERS;
    }
  }
}

void ExpectWindows(const Grid &grid, int blocks, bool planes)
{
  const AIJTCLayout    layout = LayoutOf(grid);
  KSPTCWindows         windows;
  std::vector<int32_t> shown(grid.m, NOBODY), own, all;
  PetscCount           inner = 0;

  SCOPED_TRACE(grid.name);
  ASSERT_TRUE(KSPTCWindowsOf(&layout, blocks, &windows));
  ASSERT_EQ((bool)windows.around, planes);
  ASSERT_LE(windows.slices, KSPTC_WINDOWED_SLICES);
  ASSERT_LE(windows.blocks, blocks);
  ASSERT_EQ(windows.elements % 2, 0);
  ASSERT_NO_FATAL_FAILURE(Deal(windows, shown));
  for (int32_t block = 0; block < windows.blocks; block++) {
    const KSPTCPatch patch  = KSPTCPatchOf(&windows, block);
    const auto       slices = SlicesOf(windows, patch);

    ASSERT_NO_FATAL_FAILURE(Fill(windows, patch, shown, own, all));
    inner += patch.inner;
    for (int32_t n = 0; n < (int32_t)slices.size(); n++) {
      const std::vector<int32_t> &window = n < patch.inner ? own : all;

      for (PetscInt distance : grid.distances) {
        bool          near;
        const int32_t to = KSPTCPlacesTo(&windows, patch.pitch, (int32_t)distance, &near);

        ASSERT_TRUE(near);
        ASSERT_GE(slices[n].place + to, 0);
        ASSERT_LE(slices[n].place + to + KSPTC_WINDOWED_ROWS, windows.elements) << "lanes without a row read too";
        for (int32_t k = 0; k < slices[n].rows; k++) {
          const PetscInt column = slices[n].row + k + distance;

          if (column < 0 || column >= grid.m) continue;
          ASSERT_EQ(window[slices[n].place + k + to], column) << "row " << slices[n].row + k << ", block " << block;
        }
      }
    }
  }
  if (grid.m / blocks > 4096) { EXPECT_GT(inner, 0) << "blocks of so many rows have something to do while copies are under way"; }
}

TEST(Windows, HaveWhatRowsMultiplyBy)
{
  ExpectWindows(Stencil("7-point 101^3", 101 * 101 * 101, 101 * 101, 101, false), 132, true);
  ExpectWindows(Stencil("7-point 60 x 50 x 70", 60 * 50 * 70, 60 * 50, 60, false), 132, true);
  ExpectWindows(Stencil("7-point 60 x 50 x 70, fewer blocks, whose rows are two planes", 60 * 50 * 70, 60 * 50, 60, false), 31, false);
  ExpectWindows(Stencil("7-point 400 x 40 x 50", 400 * 40 * 50, 400 * 40, 400, false), 132, true);
  ExpectWindows(Stencil("7-point 32^3", 32 * 32 * 32, 32 * 32, 32, false), 132, true);
  ExpectWindows(Stencil("27-point 100^3", 100 * 100 * 100, 100 * 100, 100, true), 132, true);
  ExpectWindows(Stencil("27-point 41 x 43 x 47", 41 * 43 * 47, 41 * 43, 41, true), 132, true);
  ExpectWindows(Stencil("7-point, as many rows as planes of a stencil with diagonals", 7488, 315, 7, false), 82, true);
  ExpectWindows(Stencil("5-point, 1000 a line", 1000 * 1000, 1000, 1, false), 132, false);
  ExpectWindows(
    {
      "a plane that is not whole", 200003, {-700, -1, 0, 1, 700},
        700, 1
  },
    132, false);
  ExpectWindows(
    {
      "planes, the last of which is not whole", 200003, {-4000, -50, -1, 0, 1, 50, 4000},
        4000, 50
  },
    132, true);
  ExpectWindows(
    {
      "three rows", 3, {-1, 0, 1},
        1, 0
  },
    1, false);
}

TEST(Windows, AreRefused)
{
  const auto   grid   = [](PetscInt n) { return Stencil("", n * n * n, n * n, n, false); };
  AIJTCLayout  layout = LayoutOf(grid(120));
  KSPTCWindows windows;

  EXPECT_FALSE(KSPTCWindowsOf(&layout, 132, &windows)) << "more rows than registers have room for";
  layout = LayoutOf(grid(101));
  EXPECT_FALSE(KSPTCWindowsOf(&layout, 100, &windows));
  EXPECT_FALSE(KSPTCWindowsOf(&layout, 0, &windows)) << "a device without such kernels";
  layout.nconsecutive--;
  EXPECT_FALSE(KSPTCWindowsOf(&layout, 132, &windows)) << "rows in an order of the layout's";
  layout.nconsecutive++;
  layout.stride = 0;
  EXPECT_FALSE(KSPTCWindowsOf(&layout, 132, &windows)) << "rows that do not share their offsets";
}

/* Columns that are farther away than windows reach */
TEST(Windows, KnowWhatIsFar)
{
  const AIJTCLayout layout = LayoutOf(Stencil("", 40 * 40 * 40, 40 * 40, 40, false));
  KSPTCWindows      windows;
  bool              near;

  ASSERT_TRUE(KSPTCWindowsOf(&layout, 132, &windows));
  for (PetscInt distance : {41, -41, 800, 1600 + 41, -1600 - 41, 3200}) {
    (void)KSPTCPlacesTo(&windows, 200, (int32_t)distance, &near);
    EXPECT_FALSE(near) << distance;
  }
  EXPECT_EQ(KSPTCPlacesTo(&windows, 200, 1600 - 40, &near), 160);
  EXPECT_TRUE(near);
}
} // namespace
