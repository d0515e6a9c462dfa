/*
   The long / medium / short-row tile layout of MATAIJTC and the launchers of its products. Raw pointers, sizes and a stream: no PETSc object.
   Every launcher X_CUDA has a host twin X_Host of the same signature and data layout.

   Layout
   ------
   A tile holds 8 x 4 = 32 slots (a value and its column each), slot 4*i + k being row i, nonzero k of the tile: lane l of a warp owns slot l, which is
   exactly the operand layout of mma.m8n8k4 (lane l holds A[l/4][l%4] and B[l%4][l/4]). The product of a tile's values with the gathered x leaves the row
   sums on the diagonal of the accumulator. A slot that stands for no matrix entry has column -1, value 0 and permutation -1: x is never read for it, so an
   Inf or NaN in x does not leak into rows that do not have the entry.

   Rows are sorted by decreasing length inside windows of `window` consecutive rows (stable), then dealt into classes:
     long    more than long_min nonzeros: each row is cut into pieces of at most AIJTC_PIECE_TILES tiles; 32 consecutive nonzeros of the row fill a tile. Every
             piece leaves a partial sum, partial sums of a row are added in a fixed order
     medium  short_max < nonzeros <= long_min: slices of 8 rows; a slice has ceil(longest/4) tiles, tile t holding nonzeros 4t..4t+3 of its 8 rows
     short   1 <= nonzeros <= short_max (short_max <= 4): grouped by width 1, 2 or 4 (3 is padded to 4). A tile row is shared by 4/width matrix rows, so a tile holds 32/width
             rows: slot s holds entry s % width of the tile's row s / width
     empty   no nonzero: only the row number is kept
   rid (the paper's org_rid) maps packed rows to matrix rows, long rows first, then medium (8 per slice, -1 for a missing row), short of width 4, 2, 1 (padded
   with -1 to whole tiles), then empty.

   References: Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
               Lu, Liu, DASP: specific dense matrix multiply-accumulate units accelerated general sparse matrix-vector multiplication, SC'23.
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>

enum {
  AIJTC_TILE_ROWS   = 8,
  AIJTC_TILE_COLS   = 4,
  AIJTC_TILE        = AIJTC_TILE_ROWS * AIJTC_TILE_COLS,
  AIJTC_PIECE_TILES = 32 /* a piece of a long row: at most 1024 nonzeros */
};

typedef struct {
  PetscInt long_min;  /* a row with more nonzeros is long */
  PetscInt short_max; /* a row with at most so many is short; 0..4 */
  PetscInt window;    /* rows sorted together; 0: all */
} AIJTCParams;

/* One layout in one memory space (host or device). All pointers are owned. */
typedef struct {
  PetscInt  m, n; /* rows, columns of the matrix */
  PetscBool cuda; /* memory space of the arrays */

  /* tiles: long pieces, then medium slices, then short of width 4, 2, 1 */
  PetscCount   ntiles; /* slots = 32 * ntiles */
  PetscScalar *val;    /* [32 ntiles] */
  PetscInt    *col;    /* [32 ntiles], -1: no entry */
  PetscCount  *perm;   /* [32 ntiles], index of the entry in the CSR value array, -1: no entry */
  PetscCount   nnz;    /* entries */

  /* rows */
  PetscInt  nlong, nmedium, nempty; /* rows of these classes */
  PetscInt  nshort[3];              /* rows of width 4, 2, 1 */
  PetscInt  nrid;                   /* length of rid */
  PetscInt *rid;
  PetscInt  rid_medium, rid_short[3], rid_empty; /* where the classes start in rid; long rows start at 0 */

  /* long */
  PetscInt     npieces;
  PetscCount  *piece_tile; /* [npieces + 1] first tile of each piece */
  PetscInt    *long_piece; /* [nlong + 1] first piece of each long row */
  PetscScalar *partial;    /* [npieces] work of the CUDA product: the pieces' sums; NULL on the host */

  /* medium */
  PetscInt    nslices;
  PetscCount  medium_tile; /* first tile of the first slice: the long rows' tiles end here */
  PetscCount *slice_tile;  /* [nslices + 1] first tile of each slice (absolute tile numbers) */

  /* short: tiles short_tile[k] .. short_tile[k+1]-1 have width 4, 2, 1 for k = 0, 1, 2 */
  PetscCount short_tile[4];
} AIJTCLayout;

/* Builds pattern, row map and permutation in host memory from CSR arrays (i[m+1], j[i[m]]; j need not be sorted; i[0] = 0). Values are left for a refresh. */
PETSC_INTERN PetscErrorCode AIJTCLayoutBuild_Host(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const AIJTCParams *params, AIJTCLayout *layout);
/* Copies a host layout (its pattern; values too if they are set) into device memory. On failure `device` holds nothing. */
PETSC_INTERN PetscErrorCode AIJTCLayoutUpload_CUDA(const AIJTCLayout *host, AIJTCLayout *device, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutDestroy_Host(AIJTCLayout *layout);
PETSC_INTERN PetscErrorCode AIJTCLayoutDestroy_CUDA(AIJTCLayout *layout);
/* Bytes of all arrays */
PETSC_INTERN PetscCount AIJTCLayoutBytes(const AIJTCLayout *layout);

/* val[s] <- a[perm[s]], 0 where perm[s] is -1; a lives where the layout lives */
PETSC_INTERN PetscErrorCode AIJTCLayoutRefresh_Host(AIJTCLayout *layout, const PetscScalar a[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutRefresh_CUDA(AIJTCLayout *layout, const PetscScalar a[], PetscTCStream stream);

/* z <- A x (y NULL), z <- y + A x. z may be y, never x. tensor: MMA, else CUDA cores on the same tiles (the host twin adds in one order, that of the matrix row, for both). */
PETSC_INTERN PetscErrorCode AIJTCLayoutMult_Host(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMult_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream);

/* Does the current device have FP64 mma.m8n8k4 (compute capability 8.0 or newer)? */
PETSC_INTERN PetscErrorCode PetscTCDeviceHasMMA_CUDA(PetscBool *has);
