/*
   Method
     The block size is found by comparing the rows of would-be nodes, in chunks of consecutive rows, of all or of many spread over the matrix. A block size that fails is given up as soon as too many groups differ, so that a matrix without
     blocks costs a few rows for each candidate.
     Whether rows share their offsets is told by a sample: the distinct offsets of a group are counted by sorting them. Whether their values are distinct, by the same sample: each row of a group is merged with the one of the
     same unknown before it. Sectors of x are counted in a set of bits. The longest row is looked for among all.
*/
#include <petsctc/private/aijtclayout.h>
#include <algorithm>
#include <bitset>
#include <cstring>
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
  const PetscInt   chunks  = AIJTCProbeChunks(m);
  const PetscCount groups  = std::min((PetscCount)m, (PetscCount)chunks * AIJTC_PROBE_CHUNK) / b;
  PetscCount       counted = 0, bad = 0;

  for (PetscInt q = 0; q < chunks; q++) {
    const PetscInt first = AIJTCProbeRow(m, q), nodes = std::min(m - first, (PetscInt)AIJTC_PROBE_CHUNK) / b;

    for (PetscInt r = first; r < first + nodes * b; r += b) {
      if (i[r] == i[r + b]) continue;
      counted++;
      if (!IsNode(i, j, r, b) && 16 * ++bad > groups) return false;
    }
  }
  return counted >= 4 && 16 * bad <= counted;
}

enum class Offsets {
  None, /* no nonzeros */
  Common,
  Other,
  Long /* not looked at: a row is too long */
};

/* Of rows begin .. end - 1 */
Offsets OffsetsOf(PetscInt begin, PetscInt end, const PetscInt i[], const PetscInt j[], PetscInt bs)
{
  std::vector<PetscInt> offset;
  PetscInt              longest = 0;

  for (PetscInt r = begin; r < end; r++) longest = std::max(longest, i[r + 1] - i[r]);
  if (!longest) return Offsets::None;
  if (longest > AIJTC_PROBE_ROW) return Offsets::Long;
  for (PetscInt r = begin; r < end; r++) {
    for (PetscInt e = i[r]; e < i[r + 1]; e++) {
      if (e > i[r] && j[e] <= j[e - 1]) return Offsets::Other;
      offset.push_back(j[e] - (r - r % bs));
    }
  }
  std::sort(offset.begin(), offset.end());
  return std::unique(offset.begin(), offset.end()) - offset.begin() <= 2 * longest ? Offsets::Common : Offsets::Other;
}

/* Rows f and e of the same unknown, bs apart: entries with equal offsets, and those of them with equal bits */
void ComparePairs(PetscInt f, PetscInt e, PetscInt bs, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscInt *pairs, PetscInt *equal)
{
  PetscInt k = i[f], l = i[e];

  while (k < i[f + 1] && l < i[e + 1]) {
    const PetscInt before = j[k], here = j[l] - bs;

    if (before == here) {
      ++*pairs;
      *equal += !std::memcmp(a + k, a + l, sizeof(*a));
    }
    k += before <= here;
    l += here <= before;
  }
}

/* Of rows begin .. end - 1, which ascend */
bool ValuesAreDistinct(PetscInt begin, PetscInt end, const PetscInt i[], const PetscInt j[], const PetscScalar a[], PetscInt bs)
{
  const auto floats = std::count_if(a + i[begin], a + i[end], [](PetscScalar v) { return v == (PetscScalar)(float)v; });
  PetscInt   pairs = 0, equal = 0;

  for (PetscInt r = begin + bs; r < end; r++) ComparePairs(r - bs, r, bs, i, j, a, &pairs, &equal);
  return 2 * floats <= i[end] - i[begin] && pairs && 2 * equal <= pairs;
}

/* Do rows begin .. end - 1, none of them longer than AIJTC_PROBE_ROW, share sectors of x? */
bool RowsAreNear(PetscInt begin, PetscInt end, const PetscInt i[], const PetscInt j[])
{
  std::bitset<AIJTC_PROBE_SECTORS> sectors;

  for (PetscInt e = i[begin]; e < i[end]; e++) sectors.set(AIJTCProbeSector(j[e]));
  return AIJTCSectorsAreFew((PetscCount)sectors.count(), i[end] - i[begin]);
}

/* traits->bs is known */
void LookIntoGroups(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCTraits *traits)
{
  const PetscInt whole = m / AIJTC_LANES, groups = whole ? std::min(whole, (PetscInt)AIJTC_PROBE) : 1;
  PetscInt       sampled = 0, common = 0, distinct = 0, near = 0;

  for (PetscInt g = 0; g < groups; g++) {
    const PetscInt row = (PetscInt)((PetscCount)g * whole / groups) * AIJTC_LANES, end = std::min(m, row + AIJTC_LANES);
    const Offsets  found = OffsetsOf(row, end, i, j, traits->bs);

    sampled += found != Offsets::None;
    common += found == Offsets::Common;
    distinct += found == Offsets::Common && ValuesAreDistinct(row, end, i, j, a, traits->bs);
    near += found == Offsets::Other && RowsAreNear(row, end, i, j);
  }
  traits->common   = (PetscBool)(4 * common >= 3 * sampled);
  traits->distinct = (PetscBool)(sampled && 4 * distinct >= 3 * sampled);
  traits->near     = (PetscBool)(sampled && 4 * near >= 3 * sampled);
}
} // namespace

PetscErrorCode AIJTCProbe_Host(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCTraits *traits, PETSC_UNUSED PetscTCStream stream)
{
  PetscFunctionBegin;
  *traits = {AIJTC_MAX_BS, 0, PETSC_TRUE, PETSC_FALSE};
  while (traits->bs > 1 && !HasBlocks(m, i, j, traits->bs)) traits->bs--;
  LookIntoGroups(m, i, j, a, traits);
  for (PetscInt r = 0; r < m; r++) traits->longest = std::max(traits->longest, i[r + 1] - i[r]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
