/*
   Method
     The block size is found by comparing the rows of would-be nodes. A block size that fails is given up as soon as too many groups differ, so that a matrix without blocks costs a few rows for
     each candidate, and one with blocks one pass over the row ends.
     Whether rows share their offsets is told by a sample: the distinct offsets of a group are counted by sorting them. The longest row is looked for among all.
*/
#include <petsctc/private/aijtclayout.h>
#include <algorithm>
#include <vector>

namespace
{
/* Do rows r .. r + b - 1 look like those of one node? */
bool IsNode(const PetscInt i[], const PetscInt j[], PetscInt r, PetscInt b)
{
  const PetscInt length = i[r + 1] - i[r];

  for (PetscInt k = r + 1; k < r + b; k++) {
    if (i[k + 1] - i[k] != length) return false;
    if (length && (j[i[k]] != j[i[r]] || j[i[k + 1] - 1] != j[i[r + 1] - 1])) return false;
  }
  return true;
}

bool HasBlocks(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt b)
{
  const PetscCount groups  = m / b;
  PetscCount       counted = 0, bad = 0;

  for (PetscCount g = 0; g < groups; g++) {
    const PetscInt r = (PetscInt)(g * b);

    if (i[r] == i[r + b]) continue;
    counted++;
    if (!IsNode(i, j, r, b) && 16 * ++bad > groups) return false;
  }
  return counted >= 4 && 16 * bad <= counted;
}

enum class Offsets {
  None, /* no nonzeros */
  Common,
  Other
};

/* Of rows begin .. end - 1 */
Offsets OffsetsOf(PetscInt begin, PetscInt end, const PetscInt i[], const PetscInt j[], PetscInt bs)
{
  std::vector<PetscInt> offset;
  PetscInt              longest = 0;

  for (PetscInt r = begin; r < end; r++) longest = std::max(longest, i[r + 1] - i[r]);
  if (!longest) return Offsets::None;
  if (longest > AIJTC_PROBE_ROW) return Offsets::Other;
  for (PetscInt r = begin; r < end; r++) {
    for (PetscInt e = i[r]; e < i[r + 1]; e++) {
      if (e > i[r] && j[e] <= j[e - 1]) return Offsets::Other;
      offset.push_back(j[e] - (r - r % bs));
    }
  }
  std::sort(offset.begin(), offset.end());
  return std::unique(offset.begin(), offset.end()) - offset.begin() <= 2 * longest ? Offsets::Common : Offsets::Other;
}

bool HasCommonOffsets(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt bs)
{
  const PetscInt whole = m / AIJTC_LANES, groups = whole ? std::min(whole, (PetscInt)AIJTC_PROBE) : 1;
  PetscInt       sampled = 0, common = 0;

  for (PetscInt g = 0; g < groups; g++) {
    const PetscInt row   = (PetscInt)((PetscCount)g * whole / groups) * AIJTC_LANES;
    const Offsets  found = OffsetsOf(row, std::min(m, row + AIJTC_LANES), i, j, bs);

    sampled += found != Offsets::None;
    common += found == Offsets::Common;
  }
  return 4 * common >= 3 * sampled;
}
} // namespace

PetscErrorCode AIJTCProbe_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt *bs, PetscBool *common, PetscInt *longest, PETSC_UNUSED PetscTCStream stream)
{
  PetscFunctionBegin;
  *bs = AIJTC_MAX_BS;
  while (*bs > 1 && !HasBlocks(m, i, j, *bs)) --*bs;
  *common  = (PetscBool)HasCommonOffsets(m, i, j, *bs);
  *longest = 0;
  for (PetscInt r = 0; r < m; r++) *longest = std::max(*longest, i[r + 1] - i[r]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
