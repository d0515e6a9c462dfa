/*
   The resident form of a matrix, for solvers whose iterations are one kernel (ksptcresident.h): rows dealt to the blocks of the kernel, each of which holds the vectors of its own in shared memory, and of the matrix as many
   slices, from its first on, as there is room for; the others it reads from device memory in every product. Raw pointers, sizes and a stream: no PETSc object. Every launcher X_CUDA has a host twin X_Host of the same signature, and the arrays that they make have the same bytes.

   Rows and columns have numbers of the form's own where an order is given: row n of the form is row order[n] of the matrix. Regions of the graph (ksptcregions.h) leave blocks far fewer ghosts
   than numbers without meaning do; so do pencils on a grid whose rows come line by line and plane by plane (of a stencil without diagonals): slabs of equally many rows, each cut into equally many pencils of whole lines, so that a block of the form has a
   pencil and a surface of four narrow sides instead of two whole planes. Below, rows and columns are those of the form.

   Block k has the consecutive rows block_row[k] .. block_row[k + 1] - 1: as even a share of nonzeros + w rows as whole rows allow, where the solver's vectors of a row are as large as w nonzeros: that is
   what a multiprocessor must hold.

   Its rows are cut, from its first on, into slices of 32 / lanes rows; block k has the slices from block_slice[k] on. `lanes`, a power of two from 1 to 32, is the least with which nonzeros <= 8 lanes
   rows. Slice s has (start[s + 1] - start[s]) / 32 slots, ceil(longest / lanes) of its longest row. Lane l of slot t has the place start[s] + 32 t + l: entry lanes t + l % lanes, in the order of the CSR
   row, of the slice's row l / lanes. Where more than an eighth of these places would be without entry, a block's rows come by length instead, long ones first and of the same length in the order they had, and each slice has
   lanes of its own: the least with which its longest row has no more than 16 entries a lane. A row of more entries than 32 lanes take then comes in parts, slices of 512 of them each, before all others: so that no warp has many
   times the work of another; its sum is that of its parts, one after the other. cut[s] tells lanes, the slice's first row, and whether it is a part of that row.

   The columns of a block's rows that are not among these rows are its ghosts, in ascending order ghost[block_ghost[k]] .. ghost[block_ghost[k + 1] - 1]. A block numbers what it multiplies by: its n rows
   0 .. n - 1, its g ghosts from n on, and n + g is a zero. That number is `column`, of 16 bits. A place without entry has the value 0 and the column of the zero: what it adds is 0, so that no place needs a
   test, and an Inf in x stays with the rows that have the entry.

   shown has a bit for every row, set if it is some block's ghost.

   Where blocks have no room for all of the matrix and its values are few, a place has the number of its value in a dictionary instead, of 8 bits: 3 bytes instead of 10.
*/
#pragma once

#include <algorithm>
#include <petsctc/private/petsctcimpl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <vector>

enum {
  KSPTC_SLICES_LEAST  = 16,   /* slices of a block, where there are fewer than for all blocks */
  KSPTC_STATIC_SHARED = 1536, /* bytes at most that a kernel has in shared memory besides those that a launch asks for; see KSPTCPrepareKernel() */
  KSPTC_BLOCKS        = 132,  /* at most: the multiprocessors of an H100 and an H200. A constant, so that sums do not depend on a larger device */
  KSPTC_LANES         = 32,
  KSPTC_LANE_SHARE    = 8,   /* nonzeros of a row that one lane takes, in the mean at most */
  KSPTC_SORTED_SHARE  = 16,  /* the same of the longest row of a slice, where rows come by length */
  KSPTC_SORT          = 8,   /* rows come by length where so many times the places without entry are more than those with one */
  KSPTC_WIDTHS        = 6,   /* lanes of a row: 32, 16, .. 1 */
  KSPTC_PART          = 512, /* entries of a part: of KSPTC_LANES lanes, KSPTC_SORTED_SHARE each */
  KSPTC_VECTORS       = 8,   /* of a solver that a block may hold, at most */
  KSPTC_ZEROS         = 2,   /* behind vectors that are multiplied by, at most */
  KSPTC_DICT          = 256, /* numbers of a dictionary */
  KSPTC_PADDING       = 2    /* places a nonzero of a form that is not on the chip as a whole, at most: what is read in vain */
};

/* Nonzeros of a form, at most: it has no more than 32 places for each, which are counted in 32 bits */
#define KSPTC_NONZEROS (((PetscCount)1 << 26) - 1)

/* What a block holds besides the matrix: so many vectors of its rows, and of its ghosts; and of `more` vectors of its rows as much as there is room for, before the matrix */
struct KSPTCVectors {
  int rows, ghosts;
  int more = 0;
};

/* An order of the rows: those given, all of them, each once, in the memory of the CSR arrays; or regions of the graph (ksptcregions.h), which the first form that is
   made with them leaves to others of the same pattern; or, with plane > 0, pencils on a grid of planes of so many rows, of lines of so many (1: a grid of
   lines alone); or the matrix's */
struct KSPTCOrder {
  const PetscInt *rows;
  PetscInt        plane, line;
  PetscBool       regions = PETSC_FALSE;
  PetscInt       *made    = NULL; /* regions: of that form */
};

/* What a device offers to a kernel of which one block runs on each multiprocessor */
struct KSPTCChip {
  int       blocks;             /* at most KSPTC_BLOCKS; 0: it does not run such kernels */
  size_t    shared;             /* bytes of a block */
  PetscBool bulk = PETSC_FALSE; /* are there bulk copies, for windows (ksptcwindowed.cuh)? */
};

PETSC_INTERN PetscErrorCode KSPTCChipGet_Host(KSPTCChip *chip); /* that of an H200, without limit to the bytes: the form can be made where 16 bits number a block's columns. On a GPU that of the device */
#if PETSCTC_HAVE_CUDA
PETSC_INTERN PetscErrorCode KSPTCChipGet_CUDA(KSPTCChip *chip);
#endif

typedef struct {
  PetscBool    cuda; /* memory space of the arrays */
  int32_t      m;
  PetscCount   nnz;
  KSPTCVectors vectors; /* that the solver holds at least, and those beside them: decides how rows are dealt */
  int32_t      blocks, lanes, slices, places, ghosts;
  int32_t      parts;                     /* of rows, that a block has at most */
  int32_t     *order;                     /* [m] rows of the matrix, or NULL: those of the form */
  int32_t     *block_row;                 /* [blocks + 1] */
  int32_t     *block_slice;               /* [blocks + 1] */
  int32_t     *block_ghost;               /* [blocks + 1] */
  int32_t     *start;                     /* [slices + 1] */
  int32_t     *cut;                       /* [slices] first row within the block, width, and whether it is a part: KSPTCCut() */
  uint32_t    *shown;                     /* [ceil(m / 32)] bits of the rows, the lowest first */
  int32_t     *ghost;                     /* [ghosts] */
  uint16_t    *column;                    /* [places] */
  PetscBool    coded;                     /* values come from the dictionary */
  PetscScalar *value;                     /* [places] .. */
  uint8_t     *code;                      /* [places] .. or, coded, this */
  PetscScalar *dict;                      /* [KSPTC_DICT], coded: 0, the values ascending by bit pattern as unsigned, and what no place has the number of */
  int32_t      most_ghosts;               /* of a block */
  size_t       shared[KSPTC_VECTORS + 1]; /* bytes of a block that holds all, at most: matrix, so many vectors of its rows, vectors.ghosts of its ghosts */
  size_t       least[KSPTC_VECTORS + 1];  /* of one that holds the vectors alone */
  size_t       limit;                     /* of those a block gets no more, unless it needs them for the vectors */
  PetscCount   streamed;                  /* bytes of the matrix for which blocks have no room beside so many vectors; `more` take some of that */
} KSPTCForm;

/* Of a slice's place: value, as it is, and column */
#define KSPTC_PLACE_BYTES (sizeof(PetscScalar) + sizeof(uint16_t))
/* The same with the number of the value */
#define KSPTC_CODED_BYTES (sizeof(uint8_t) + sizeof(uint16_t))

PETSCTC_HOST_DEVICE size_t KSPTCPlaceBytes(const KSPTCForm *form)
{
  return form->coded ? KSPTC_CODED_BYTES : KSPTC_PLACE_BYTES;
}

PETSCTC_HOST_DEVICE size_t KSPTCDictBytes(const KSPTCForm *form)
{
  return form->coded ? KSPTC_DICT * sizeof(PetscScalar) : 0;
}

/* What every block has, whatever its rows: a dictionary, sums of parts */
PETSCTC_HOST_DEVICE size_t KSPTCFixedBytes(const KSPTCForm *form)
{
  return KSPTCDictBytes(form) + (size_t)form->parts * sizeof(PetscScalar);
}

/* Words of shown[] that have a bit of so many rows, at most */
PETSCTC_HOST_DEVICE size_t KSPTCShownWords(PetscCount rows)
{
  return (size_t)rows / 32 + 2;
}

/* Vectors with two zeros, starts and cuts of slices, and which rows are shown: up to two vectors are multiplied by */
PETSCTC_HOST_DEVICE size_t KSPTCBytesOfVectors(PetscCount rows, PetscCount ghosts, PetscCount slices, KSPTCVectors vectors)
{
  return (size_t)(rows * vectors.rows + ghosts * vectors.ghosts + KSPTC_ZEROS) * sizeof(PetscScalar) + ((size_t)(2 * slices + 2) + KSPTCShownWords(rows)) * sizeof(int32_t);
}

/* values, columns, vectors, starts and cuts of slices, shown rows, ghosts, in this order, without a dictionary and sums of parts */
static inline size_t KSPTCBytesOfBlock(PetscCount places, PetscCount rows, PetscCount ghosts, PetscCount slices, KSPTCVectors vectors)
{
  return (size_t)places * KSPTC_PLACE_BYTES + KSPTCBytesOfVectors(rows, ghosts, slices, vectors) + (size_t)ghosts * sizeof(int32_t);
}

/* Of bytes[], those of a block of so many vectors of its rows, with so many of its ghosts */
PETSCTC_HOST_DEVICE size_t KSPTCMostBytes(const KSPTCForm *form, const size_t bytes[], int rows, KSPTCVectors vectors)
{
  return bytes[rows] + (size_t)(vectors.ghosts > form->vectors.ghosts ? vectors.ghosts - form->vectors.ghosts : 0) * form->most_ghosts * sizeof(PetscScalar);
}

/* Has it been dealt to thin blocks, which have vectors of their rows as far as there is room? */
static inline PetscBool KSPTCFormIsThin(const KSPTCForm *form)
{
  return (PetscBool)(form->vectors.more > 0);
}

/* Bytes of shared memory of a block that holds all, at most */
PETSCTC_HOST_DEVICE size_t KSPTCWholeBytes(const KSPTCForm *form, KSPTCVectors vectors)
{
  return KSPTCMostBytes(form, form->shared, vectors.rows + vectors.more, vectors);
}

/* Those that a block gets: all that it has use for, but no more than the limit where its vectors can do with that. A device may not have as many */
PETSCTC_HOST_DEVICE size_t KSPTCSharedBytes(const KSPTCForm *form, KSPTCVectors vectors)
{
  const size_t all = KSPTCWholeBytes(form, vectors), least = KSPTCMostBytes(form, form->least, vectors.rows, vectors), limit = least > form->limit ? least : form->limit;

  return all < limit ? all : limit;
}

/* Has some block no room for all of its matrix, and of `more` vectors? */
static inline PetscBool KSPTCHoldsPart(const KSPTCForm *form, KSPTCVectors vectors)
{
  return (PetscBool)(KSPTCSharedBytes(form, vectors) < KSPTCWholeBytes(form, vectors));
}

/* Bytes of a matrix for which blocks have no room, at least. coded: with a dictionary */
static inline PetscCount KSPTCLeastStreamed(PetscCount m, PetscCount nnz, KSPTCVectors vectors, PetscBool coded, const KSPTCChip *chip)
{
  const size_t place = coded ? KSPTC_CODED_BYTES : KSPTC_PLACE_BYTES, bytes = (size_t)nnz * place + KSPTCBytesOfVectors(m, 0, 0, vectors);

  return bytes / PetscMax(chip->blocks, 1) > chip->shared ? (PetscCount)(bytes - chip->blocks * chip->shared) : 0;
}

/* As how many nonzeros a row counts: by the vectors that a block holds. With those of thin blocks in device memory too, solves were slower, or the same (docs/log/2026-11.md) */
static inline PetscCount KSPTCRowWeight(const KSPTCForm *form)
{
  const PetscCount nonzero = KSPTC_PLACE_BYTES, vectors = form->vectors.rows;

  return (vectors * (PetscCount)sizeof(PetscScalar) + nonzero - 1) / nonzero;
}

/* The form of a square matrix of nnz > 0 nonzeros from its CSR arrays, which live where the form will, for a solver of so many vectors. fits: these fit into chip->shared, and
   the form into device memory; otherwise, and on failure, the form holds nothing. Waits for the device. */
PETSC_INTERN PetscErrorCode KSPTCFormCreate_Host(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, KSPTCVectors vectors, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits,
                                                 PetscTCStream stream);
PETSC_INTERN PetscErrorCode KSPTCFormCreate_CUDA(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], KSPTCOrder *order, KSPTCVectors vectors, const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits,
                                                 PetscTCStream stream);
/* Values anew, from CSR arrays of the same pattern. can: not where there are more of them than a dictionary has room for, or device memory has none for a table of them; then nothing has changed, and the form has to be created anew. Waits for the device if it is coded */
PETSC_INTERN PetscErrorCode KSPTCFormFill_Host(const PetscInt i[], const PetscScalar a[], KSPTCForm *form, PetscBool *can, PetscTCStream stream);
PETSC_INTERN PetscErrorCode KSPTCFormFill_CUDA(const PetscInt i[], const PetscScalar a[], KSPTCForm *form, PetscBool *can, PetscTCStream stream);
/* Which values a matrix has, in host memory: the bits of each and the dictionary. can: there are few enough. Waits */
PETSC_INTERN PetscErrorCode KSPTCCollectValues_CUDA(PetscCount nnz, const PetscScalar a[], uint64_t bits[], PetscScalar dict[], PetscBool *can, PetscBool *room, PetscTCStream stream);
/* y <- A x; vectors of the matrix */
PETSC_INTERN void KSPTCFormMult_Host(const KSPTCForm *A, const PetscScalar x[], PetscScalar y[]);
/* Of what the creates have made */
PETSC_INTERN PetscErrorCode KSPTCOrderRelease_Host(KSPTCOrder *order);
PETSC_INTERN PetscErrorCode KSPTCOrderRelease_CUDA(KSPTCOrder *order);
/* Takes a form that is all zero, or what a failed create has left */
PETSC_INTERN PetscErrorCode KSPTCFormDestroy_Host(KSPTCForm *form);
PETSC_INTERN PetscErrorCode KSPTCFormDestroy_CUDA(KSPTCForm *form);

/* What both twins of a create agree on before they look at a row; vectors that cannot fit are found here, before anything is allocated. blocks 0: it cannot fit */
static inline void KSPTCFormShape(PetscInt m, PetscCount nnz, KSPTCVectors vectors, const KSPTCChip *chip, KSPTCForm *form)
{
  const PetscCount wanted_bytes = 65536; /* of a block, where there are more of them */
  PetscCount       bytes, warps, blocks;

  form->m       = (int32_t)m;
  form->nnz     = nnz;
  form->vectors = vectors;
  form->limit   = chip->shared;
  form->lanes   = 1;
  while (form->lanes < KSPTC_LANES && nnz > (PetscCount)KSPTC_LANE_SHARE * form->lanes * m) form->lanes *= 2;
  bytes        = (PetscCount)KSPTCBytesOfBlock(nnz, m, 0, 0, vectors);
  warps        = ((PetscCount)m * form->lanes - 1) / KSPTC_LANES + 1;
  blocks       = PetscMax((warps - 1) / KSPTC_SLICES_LEAST + 1, (bytes - 1) / wanted_bytes + 1);
  form->blocks = (int32_t)PetscMin(blocks, (PetscCount)chip->blocks);
  if (form->blocks && (KSPTCBytesOfVectors(m, 0, 0, vectors) / form->blocks > chip->shared || nnz > KSPTC_NONZEROS)) form->blocks = 0;
}

/* The bytes of the largest block, from arrays in host memory: places of the blocks are block_start[]. fits: a block's vectors into the chip's, its columns into 16 bits, and what is read is not padding for the most part */
static inline void KSPTCFormMeasure(const int32_t block_row[], const int32_t block_slice[], const int32_t block_start[], const int32_t block_ghost[], const KSPTCChip *chip, KSPTCForm *form, PetscBool *fits)
{
  *fits          = PETSC_TRUE;
  form->streamed = 0;
  for (int v = 0; v <= KSPTC_VECTORS; v++) form->shared[v] = form->least[v] = 0;
  for (int k = 0; k < form->blocks; k++) {
    const int32_t rows = block_row[k + 1] - block_row[k], ghosts = block_ghost[k + 1] - block_ghost[k], places = block_start[k + 1] - block_start[k], slices = block_slice[k + 1] - block_slice[k];
    const size_t  matrix = places * KSPTCPlaceBytes(form) + ghosts * sizeof(int32_t);

    if (rows + ghosts > UINT16_MAX) *fits = PETSC_FALSE;
    form->most_ghosts = PetscMax(form->most_ghosts, ghosts);
    for (int v = 0; v <= KSPTC_VECTORS; v++) {
      const size_t least = KSPTCBytesOfVectors(rows, ghosts, slices, {v, form->vectors.ghosts}) + KSPTCFixedBytes(form), all = least + matrix;

      if (v == form->vectors.rows && all > chip->shared) form->streamed += all - chip->shared;
      form->shared[v] = PetscMax(form->shared[v], all);
      form->least[v]  = PetscMax(form->least[v], least);
    }
  }
  if (form->least[form->vectors.rows] > chip->shared || (form->streamed && form->places > KSPTC_PADDING * form->nnz)) *fits = PETSC_FALSE;
}

/* Is it another one than the matrix's? */
static inline PetscBool KSPTCOrders(const KSPTCOrder *order)
{
  return (PetscBool)(order->rows || order->regions || order->plane > 0);
}

/* How grids are cut: so many slabs, each into so many pencils */
typedef struct {
  int32_t m, plane, line, slabs, pencils;
} KSPTCPencils;

/* As many pencils as blocks, their two sides as equal as that allows */
static inline KSPTCPencils KSPTCPencilsOf(const KSPTCForm *form, const KSPTCOrder *order)
{
  const double planes = (double)form->m / (double)order->plane, lines = (double)order->plane / (double)order->line; /* of the grid, of a plane */
  KSPTCPencils cut = {form->m, (int32_t)order->plane, (int32_t)order->line, 1, form->blocks};

  for (int slabs = 2; slabs <= form->blocks; slabs++) {
    const auto uneven = [&](int n) { return PetscAbsReal(PetscLogReal((PetscReal)(planes * form->blocks / (lines * n * n)))); };

    if (form->blocks % slabs == 0 && uneven(slabs) < uneven(cut.slabs)) cut.slabs = slabs;
  }
  cut.pencils = form->blocks / cut.slabs;
  return cut;
}

/* The number of a row in the order of pencils: in its slab, which has the rows a .. b - 1, by line in the plane first, then by plane, then along the line */
PETSCTC_HOST_DEVICE int32_t KSPTCPencilRow(const KSPTCPencils &cut, int32_t row)
{
  const int64_t m = cut.m, plane = cut.plane, line = cut.line, slab = ((int64_t)(row + 1) * cut.slabs - 1) / m;
  const int64_t a = m * slab / cut.slabs, b = m * (slab + 1) / cut.slabs, at = row % plane, own = row / plane, first = at / line * line;
  int64_t       number = a;

  for (int64_t k = a / plane; k <= b / plane; k++) { /* of plane k the rows of the slab are those from low to high */
    const int64_t low = k == a / plane ? a % plane : 0, high = k == b / plane ? b % plane : plane;
    const int64_t to = k < own ? first + line : (k == own ? at : first);

    if (high > low) number += (to < low ? low : (to > high ? high : to)) - low;
  }
  return (int32_t)number;
}

/* The row of the matrix that a row of the form is */
PETSCTC_HOST_DEVICE int32_t KSPTCMatrixRow(const int32_t order[], int32_t row)
{
  return order ? order[row] : row;
}

/* The bits of a value, of which a dictionary is in the order */
PETSCTC_HOST_DEVICE uint64_t KSPTCBitsOf(PetscScalar value)
{
  uint64_t bits = 0;

  memcpy(&bits, &value, sizeof(value));
  return bits;
}

/* No value of a dictionary: its places behind the last */
#define KSPTC_NO_VALUE (~(uint64_t)0)

/* The number of a value that is in it */
PETSCTC_HOST_DEVICE uint8_t KSPTCCodeOf(const uint64_t dict[], PetscScalar value)
{
  const uint64_t bits = KSPTCBitsOf(value);
  int            low = 1, high = KSPTC_DICT;

  if (!bits) return 0;
  while (low < high) {
    const int middle = (low + high) / 2;

    if (dict[middle] < bits) low = middle + 1;
    else high = middle;
  }
  return (uint8_t)low;
}

/* dict[], and its bits, from so many distinct bit patterns in any order, none of them zero's. can: there is room for them */
static inline void KSPTCDictFrom(std::vector<uint64_t> values, uint64_t bits[], PetscScalar dict[], PetscBool *can)
{
  *can = (PetscBool)(values.size() < KSPTC_DICT);
  if (!*can) return;
  std::sort(values.begin(), values.end());
  for (size_t k = 0; k < KSPTC_DICT; k++) {
    bits[k] = k == 0 ? 0 : (k <= values.size() ? values[k - 1] : KSPTC_NO_VALUE);
    dict[k] = 0.0;
    if (k <= values.size()) memcpy(&dict[k], &bits[k], sizeof(PetscScalar));
  }
}

/* A slice's cut: its first row within the block, its width w: it has 2^w rows of 32 / 2^w lanes, and whether it is a part of a row, of width 0: kernels see then a row that no block has */
#define KSPTC_CUT_PART (1 << 30)

PETSCTC_HOST_DEVICE int32_t KSPTCCut(int32_t row, int width, bool part)
{
  return row * 8 + width + (part ? KSPTC_CUT_PART : 0);
}

PETSCTC_HOST_DEVICE bool KSPTCCutIsPart(int32_t cut)
{
  return cut >= KSPTC_CUT_PART;
}

PETSCTC_HOST_DEVICE int32_t KSPTCCutAnyRow(int32_t cut)
{
  return cut >> 3;
}

PETSCTC_HOST_DEVICE int32_t KSPTCCutRow(int32_t cut)
{
  return KSPTCCutAnyRow(cut & ~KSPTC_CUT_PART);
}

PETSCTC_HOST_DEVICE int KSPTCCutWidth(int32_t cut)
{
  return cut & 7;
}

PETSCTC_HOST_DEVICE int KSPTCCutLanes(int32_t cut)
{
  return KSPTC_LANES >> KSPTCCutWidth(cut);
}

/* The width of slices of so many lanes a row */
PETSCTC_HOST_DEVICE int KSPTCWidthOf(int lanes)
{
  int width = 0;

  while (KSPTC_LANES >> width > lanes) width++;
  return width;
}

/* Where a block's rows come by length: whose width is no more than this, they have more entries than so many */
PETSCTC_HOST_DEVICE PetscInt KSPTCLengthBelow(int width)
{
  return width == KSPTC_WIDTHS - 1 ? -1 : KSPTC_SORTED_SHARE * (KSPTC_LANES >> width) / 2;
}

/* Of a row of so many entries: parts, if it comes in such */
PETSCTC_HOST_DEVICE int32_t KSPTCPartsOf(PetscInt entries)
{
  return (int32_t)((entries - 1) / KSPTC_PART + 1);
}

/* How a block is cut: slice[w] and row[w] are its first ones of width w, behind parts and their rows, and behind the last width what all have */
typedef struct {
  int32_t slice[KSPTC_WIDTHS + 1], row[KSPTC_WIDTHS + 1];
} KSPTCCuts;

/* Slices of ascending width, from the rows before until[w], which need a width of w or less: the last of a width may have others, too. The first rows_in_parts come in so many parts */
PETSCTC_HOST_DEVICE KSPTCCuts KSPTCCutsOf(const int32_t until[KSPTC_WIDTHS], int32_t rows_in_parts, int32_t parts)
{
  KSPTCCuts cuts;

  cuts.slice[0] = parts;
  cuts.row[0]   = rows_in_parts;
  for (int w = 0; w < KSPTC_WIDTHS; w++) {
    const int32_t rows = until[w] > cuts.row[w] ? until[w] - cuts.row[w] : 0, slices = (rows + (1 << w) - 1) >> w;

    cuts.slice[w + 1] = cuts.slice[w] + slices;
    cuts.row[w + 1]   = cuts.row[w] + (slices << w);
  }
  return cuts;
}

/* The cut of a slice of a block, whose rows are order[] of CSR's, if there is an order */
PETSCTC_HOST_DEVICE int32_t KSPTCCutAt(const KSPTCCuts &cuts, int32_t slice, const PetscInt i[], const int32_t order[])
{
  int w = 0;

  if (slice < cuts.slice[0]) {
    int32_t row = 0;

    for (; row < cuts.row[0]; row++) {
      const int32_t parts = KSPTCPartsOf(i[order[row] + 1] - i[order[row]]);

      if (slice < parts) break;
      slice -= parts;
    }
    return KSPTCCut(row, 0, true);
  }
  while (slice >= cuts.slice[w + 1]) w++;
  return KSPTCCut(cuts.row[w] + ((slice - cuts.slice[w]) << w), w, false);
}

/* begin and end of a row's entries -> those that a slice has: all, or those of a part, which begin KSPTC_PART behind the part's before it. cut[first]: of the block's first slice */
PETSCTC_HOST_DEVICE void KSPTCEntriesAt(const int32_t cut[], int32_t first, int32_t slice, PetscInt *begin, PetscInt *end)
{
  int32_t low = first, high = slice; /* cuts of parts ascend */

  if (!KSPTCCutIsPart(cut[slice])) return;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;

    if (cut[middle] < cut[slice]) low = middle + 1;
    else high = middle;
  }
  *begin += (PetscInt)(slice - low) * KSPTC_PART;
  if (*end - *begin > KSPTC_PART) *end = *begin + KSPTC_PART;
}

/* Cuts of blocks whose rows come as they are: all of the form's width */
static inline void KSPTCFormCutEvenly(const int32_t block_row[], const KSPTCForm *form, KSPTCCuts cuts[])
{
  for (int k = 0; k < form->blocks; k++) {
    int32_t until[KSPTC_WIDTHS] = {};

    for (int w = KSPTCWidthOf(form->lanes); w < KSPTC_WIDTHS; w++) until[w] = block_row[k + 1] - block_row[k];
    cuts[k] = KSPTCCutsOf(until, 0, 0);
  }
}

/* The first slices of the blocks */
static inline void KSPTCFormCountSlices(const KSPTCCuts cuts[], int32_t block_slice[], KSPTCForm *form)
{
  block_slice[0] = form->parts = 0;
  for (int k = 0; k < form->blocks; k++) {
    block_slice[k + 1] = block_slice[k] + cuts[k].slice[KSPTC_WIDTHS];
    form->parts        = PetscMax(form->parts, cuts[k].slice[0]);
  }
  form->slices = block_slice[form->blocks];
}

/* Are there so many places without entry that rows had better come by length? */
static inline PetscBool KSPTCFormSorts(const KSPTCForm *form)
{
  return (PetscBool)(KSPTC_SORT * (form->places - form->nnz) > form->nnz);
}
