/*
   Patches of a grid, of which each block of a resident kernel has one (ksptcwindowed.cuh). Sizes and numbers alone: what the kernel has in shared memory, and which rows.

   Rows come plane by plane, `plane` rows each, and a row's columns are near the same place in its own plane and, `around` 1, in those before and behind: at most `halo` rows of the plane away. (On a grid of lines
   without planes all rows are one plane.) Planes are dealt to slabs of equally many, each of which is cut into patches: of all its planes the same part.

   A block's windows hold what its rows multiply by: for each plane of its slab, and the ones before and behind, its part of the plane with `halo` rows on either side. They are one array, planes `pitch` apart, so that a
   column is as far from its row in it for all rows of the block. pitch is odd where a plane is: what is a multiple of 16 bytes in device memory is one there.

   A patch's part of a plane is cut into slices of four groups of a warp's rows. First come slices whose columns are all the block's own, and which no other block multiplies by: inner ones.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>

enum {
  KSPTC_WINDOWED_LANES  = 32,
  KSPTC_WINDOWED_WARPS  = 8, /* 255 registers a thread: with twice as many warps vectors are spilled */
  KSPTC_WINDOWED_ROUNDS = 8, /* slices of a warp at most */
  KSPTC_WINDOWED_GROUPS = 4, /* row groups of a slice */
  KSPTC_WINDOWED_ROWS   = KSPTC_WINDOWED_LANES * KSPTC_WINDOWED_GROUPS,
  KSPTC_WINDOWED_SLICES = KSPTC_WINDOWED_WARPS * KSPTC_WINDOWED_ROUNDS,
  KSPTC_WINDOWED_TURN   = 4,  /* slots under way */
  KSPTC_WINDOWED_COPIES = 64, /* of a block at most */
  KSPTC_WINDOWED_BYTES  = 128 /* of shared memory, that so many slots of a slice take */
};

/* How planes are dealt, and what a block has */
typedef struct {
  int32_t    blocks, slabs, m;
  int32_t    planes, plane; /* planes of all rows, the last of which may not be whole; rows of one */
  int32_t    around, halo;  /* halo is even */
  int32_t    slices, turns; /* of a block at most; of KSPTC_WINDOWED_TURN slots, of a slice at most */
  PetscCount elements;      /* of a block's windows at most */
} KSPTCWindows;

/* Of a block: the planes first .. first + planes - 1, of each the rows begin .. begin + width - 1 */
typedef struct {
  int32_t first, planes, begin, width;
  int32_t pitch, slices;    /* slices: of a plane */
  int32_t low, span, inner; /* of a plane's slices low .. low + span - 1 are inner ones, if the plane's neighbours are in the slab; inner: of the block */
} KSPTCPatch;

/* KSPTC_WINDOWED_ROWS rows, or what a patch has left of them, or none: first place in the windows, first row, how many */
typedef struct {
  int32_t place, row, rows, unused;
} KSPTCPatchSlice;

/* Of `all`, dealt to `parts`: the first that part k has */
PETSCTC_HOST_DEVICE int32_t KSPTCFirstOf(int32_t all, int32_t parts, int32_t k)
{
  return (int32_t)((int64_t)all * k / parts);
}

/* The blocks before a plane */
PETSCTC_HOST_DEVICE int32_t KSPTCBlocksBefore(const KSPTCWindows *windows, int32_t plane)
{
  return KSPTCFirstOf(windows->blocks, windows->planes, plane);
}

PETSCTC_HOST_DEVICE KSPTCPatch KSPTCPatchOf(const KSPTCWindows *windows, int32_t block)
{
  const int32_t rows = KSPTC_WINDOWED_ROWS;
  KSPTCPatch    patch;
  int32_t       slab = 0, before, count, edge;

  while (KSPTCBlocksBefore(windows, KSPTCFirstOf(windows->planes, windows->slabs, slab + 1)) <= block) slab++;
  patch.first  = KSPTCFirstOf(windows->planes, windows->slabs, slab);
  patch.planes = KSPTCFirstOf(windows->planes, windows->slabs, slab + 1) - patch.first;
  before       = KSPTCBlocksBefore(windows, patch.first);
  count        = KSPTCBlocksBefore(windows, patch.first + patch.planes) - before;
  patch.begin  = KSPTCFirstOf(windows->plane, count, block - before);
  patch.width  = KSPTCFirstOf(windows->plane, count, block - before + 1) - patch.begin;
  patch.pitch  = patch.width + 2 * windows->halo;
  patch.pitch += (patch.pitch ^ windows->plane) & 1;
  patch.slices = (patch.width + rows - 1) / rows;
  patch.low    = (windows->halo + rows - 1) / rows;
  edge         = (patch.width - windows->halo) / rows;
  patch.span   = edge > patch.low && patch.planes > 2 * windows->around ? edge - patch.low : 0;
  patch.inner  = patch.span * (patch.planes - 2 * windows->around);
  return patch;
}

/* Of the windows, the place of row 0 of the patch in its first plane: as even as the row */
PETSCTC_HOST_DEVICE int32_t KSPTCFirstPlace(const KSPTCWindows *windows, const KSPTCPatch *patch)
{
  return windows->around * patch->pitch + windows->halo + ((patch->first * windows->plane + patch->begin + windows->around * patch->pitch) & 1);
}

/* Slice n of a block: inner ones, then the first plane and the last, then the others' ends; if there are no inner ones, plane by plane */
PETSCTC_HOST_DEVICE KSPTCPatchSlice KSPTCSliceOf(const KSPTCWindows *windows, const KSPTCPatch *patch, int32_t n)
{
  const int32_t   rows = KSPTC_WINDOWED_ROWS, caps = 2 * windows->around * patch->slices;
  KSPTCPatchSlice slice = {0, 0, 0, 0};
  int32_t         plane, of;

  if (!patch->inner || (n >= patch->inner && n < patch->inner + caps)) {
    const int32_t k = n - patch->inner;

    plane = k / patch->slices;
    of    = k % patch->slices;
    if (patch->inner && plane == 1) plane = patch->planes - 1;
  } else {
    const int32_t k = n < patch->inner ? n : n - patch->inner - caps, each = n < patch->inner ? patch->span : patch->slices - patch->span;

    plane = windows->around + k / each;
    of    = k % each;
    if (n < patch->inner) of += patch->low;
    else if (of >= patch->low) of += patch->span;
    if (plane >= patch->planes - (n < patch->inner ? 0 : windows->around)) plane = patch->planes;
  }
  slice.place = KSPTCFirstPlace(windows, patch);
  if (plane >= patch->planes) return slice;
  slice.place += plane * patch->pitch + rows * of;
  slice.row  = (patch->first + plane) * windows->plane + patch->begin + rows * of;
  slice.rows = patch->width - rows * of;
  if (slice.rows > rows) slice.rows = rows;
  if (slice.rows > windows->m - slice.row) slice.rows = windows->m > slice.row ? windows->m - slice.row : 0;
  return slice;
}

/* How far, in the windows, a column is from its row that is so far in the matrix; near: is it in the windows at all? */
PETSCTC_HOST_DEVICE int32_t KSPTCPlacesTo(const KSPTCWindows *windows, int32_t pitch, int32_t distance, bool *near)
{
  const int32_t half = windows->plane / 2, plane = !windows->around ? 0 : (distance > half ? 1 : (distance < -half ? -1 : 0)), within = distance - plane * windows->plane;

  *near = within <= windows->halo && within >= -windows->halo;
  return plane * pitch + within;
}

/* What bulk copies bring to a block's windows: copy n of KSPTCCopies() of a patch brings the rows from .. end - 1 of the matrix, of which there may be none, to `place` on */
typedef struct {
  int32_t from, end, place, unused;
} KSPTCWindowCopy;

PETSCTC_HOST_DEVICE int32_t KSPTCCopies(const KSPTCWindows *windows, const KSPTCPatch *patch)
{
  return 2 * windows->around + 2 * patch->planes;
}

/* The planes before and behind, then the two sides of each */
PETSCTC_HOST_DEVICE KSPTCWindowCopy KSPTCCopyOf(const KSPTCWindows *windows, const KSPTCPatch *patch, int32_t n)
{
  const int32_t   caps = 2 * windows->around, plane = n < caps ? (n ? patch->planes : -1) : (n - caps) / 2;
  const bool      behind = n >= caps && (n - caps) % 2;
  const int32_t   at = behind ? patch->width : -windows->halo, row = (patch->first + plane) * windows->plane + patch->begin + at;
  KSPTCWindowCopy copy;

  copy.from   = row < 0 ? 0 : (row > windows->m ? windows->m : row);
  copy.end    = row + (n < caps ? patch->width + 2 * windows->halo : windows->halo);
  copy.place  = KSPTCFirstPlace(windows, patch) + plane * patch->pitch + at + (copy.from - row);
  copy.unused = 0;
  if (copy.end > windows->m) copy.end = windows->m;
  if (copy.end < copy.from) copy.end = copy.from;
  return copy;
}

/* Windows for a layout, by what is known of it without a look at its slices, and so many blocks: halo and planes as they come from how far rows reach. False: there are none */
static inline PetscBool KSPTCWindowsOf(const AIJTCLayout *A, int blocks, KSPTCWindows *windows)
{
  const PetscCount weight_number = 4, weight_copy = 128; /* an element that is copied: 1. Measured: docs/log/2026-11.md */
  const PetscInt   mean  = (PetscInt)((A->nnz - 1) / PetscMax(A->m - A->nempty, 1)) + 1;
  PetscCount       least = PETSC_INT64_MAX;

  *windows            = {};
  const auto consider = [&](PetscInt plane, PetscInt halo, int around, int slabs) {
    KSPTCWindows with = {blocks, slabs, (int32_t)A->m, (int32_t)((A->m - 1) / plane + 1), (int32_t)plane, around, (int32_t)(halo + (halo & 1)), 0, (int32_t)((mean + 1 + KSPTC_WINDOWED_TURN - 1) / KSPTC_WINDOWED_TURN), 0};
    PetscCount   cost = 0;

    for (int slab = 0; slab < slabs; slab++) {
      const int32_t first = KSPTCFirstOf(with.planes, slabs, slab), end = KSPTCFirstOf(with.planes, slabs, slab + 1), block = KSPTCBlocksBefore(&with, first);
      const int32_t count = KSPTCBlocksBefore(&with, end) - block;
      if (!count || count > plane) return;
      const KSPTCPatch patch  = KSPTCPatchOf(&with, block + count - 1);
      const PetscCount slices = (PetscCount)patch.planes * ((plane - 1) / count / KSPTC_WINDOWED_ROWS + 1), planes = patch.planes + 2 * around, pitch = patch.pitch + 1;
      const PetscCount copied = 2 * around * pitch + 2 * patch.planes * with.halo;

      if (slices > KSPTC_WINDOWED_SLICES || KSPTCCopies(&with, &patch) > KSPTC_WINDOWED_COPIES) return;
      with.slices   = PetscMax(with.slices, (int32_t)slices);
      with.elements = PetscMax(with.elements, planes * pitch + 1 + KSPTC_WINDOWED_ROWS);
      cost          = PetscMax(cost, weight_number * slices * KSPTC_WINDOWED_ROWS + copied + weight_copy * KSPTCCopies(&with, &patch));
    }
    if (cost >= least) return;
    least = cost;
    with.elements += with.elements & 1;
    *windows = with;
  };

  if (blocks < 1 || A->nconsecutive != A->nslices[AIJTC_ROWS] || A->stride <= 0 || A->m > (PetscCount)blocks * KSPTC_WINDOWED_SLICES * KSPTC_WINDOWED_ROWS) return PETSC_FALSE;
  consider(A->m, A->stride, 0, 1);
  for (PetscBool diagonals : {PETSC_FALSE, PETSC_TRUE}) {
    PetscInt plane, halo;

    if (!AIJTCPlanes(A, diagonals, &plane, &halo)) continue;
    for (int slabs = 1; slabs <= PetscMin(blocks, (A->m - 1) / plane + 1); slabs++) consider(plane, halo, 1, slabs);
  }
  return (PetscBool)(windows->blocks > 0);
}

/* Bytes of shared memory for the slots of a block's slices, and how many these have */
static inline size_t KSPTCBytesOfSlots(const KSPTCWindows *windows)
{
  return (size_t)windows->slices * (windows->turns * (size_t)KSPTC_WINDOWED_BYTES + sizeof(int32_t));
}

/* What a block has in shared memory beside so many vectors of its rows */
static inline size_t KSPTCBytesOfWindows(const KSPTCWindows *windows, int vectors)
{
  const size_t tables = KSPTC_WINDOWED_SLICES * sizeof(KSPTCPatchSlice) + KSPTC_WINDOWED_COPIES * sizeof(KSPTCWindowCopy);

  return ((size_t)windows->elements + (size_t)vectors * windows->slices * KSPTC_WINDOWED_ROWS) * sizeof(PetscScalar) + tables + KSPTCBytesOfSlots(windows);
}
