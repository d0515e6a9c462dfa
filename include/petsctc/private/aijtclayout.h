/*
   The layout of MATAIJTC and the launchers that build, refresh and multiply it. Raw pointers, sizes and a stream: no PETSc object.
   Every launcher X_CUDA has a host twin X_Host of the same signature, data layout and, for builds, the same bytes.

   Slices and slots
   ----------------
   The matrix is cut into slices, each multiplied by one warp. A slice is a run of slots; a slot holds at most one matrix entry a lane (R entries a lane in a slice of R row
   groups). What the lanes of a slot stand for is the slice's kind:

     AIJTC_LONG  a piece of one long row      R = 1       slot t, lane l: entry first + 32 t + l of the row
     AIJTC_TILE  8 rows, medium               R = 1       slot t, lane l: entry 4 t + l % 4 of row l / 4; a tile of 8 x 4, the operand layout of mma.m8n8k4
     AIJTC_ROWS  32 R rows, short             R = rrows   group r, lane l: row 32 r + l; slot t holds entry t of each row, or, in a pattern of offsets, the entry of each row
                                                          whose column lies base[t] from the row

   Entries are stored slot by slot, group by group, lane by lane; mask (t, r) tells which lanes have one. A slice is stored in one of three ways:
     FULL    every lane of every slot has an entry; no masks
     SPREAD  every lane of every slot has a place, lane l of group r in slot t the place 32 (R t + r) + l; where there is no entry ("hole") delta and value have all bits zero
     packed  only entries that exist have places: the place of lane l's entry is a count of mask bits
   A slice with entries that is not FULL is SPREAD if it stores something for each entry (deltas, or values and not FORM_CONST) and there are few holes: 14 places <= 15 entries, places = 32 R slots, or in a
   gathered layout 3 places <= 4 entries. Lanes then read whole 32-byte sectors. Holes have no say in anything else: forms, constants and the dictionary are chosen as if they were not there.
   No x is read for an entry that does not exist: an Inf or NaN in x stays with the rows that have the entry. Kernels may multiply the zero of a hole by -0.0.

   Pattern. Entry (t, r, l) has column  ref(r, l) + base[t] + delta,  where ref is the lane for a LONG slice and, for the others, the matrix row rounded down to a multiple of bs
   (the rows of a node of a vector-valued problem share their columns). A slice stores delta in 0, 1, 2 or 4 bytes; 0 bytes: delta is 0 for all.
   ROWS slices with 0-byte deltas have one slot for each distinct column - ref, ascending; all others take entries in the order of the CSR row. In a row of ascending columns the
   two orders are the same, and only such slices may use the former: a row's entries are always added in CSR order.

   Values. A slot of a ROWS slice may hold one value for each remainder of the row by bs, a slot of other slices one value, instead of one an entry ("constant"). Stored values
   have sizeof(PetscScalar) bytes, 4 (every value of the slice is exactly a float; only where PetscScalar is double), or 1 (an index into dict). All forms are exact.
   A value v is exactly a float if v == (double)(float)v: a NaN never, -0.0 always. Everywhere else values are compared by their bits.

   slice[] lists LONG pieces, then TILE slices, then ROWS slices (first those of consecutive rows, then those listed in rid).

   Rows
   ----
   Group g is the 32 rrows consecutive rows from 32 rrows g. It becomes a ROWS slice of consecutive rows if none of its rows has more than short_max nonzeros and
   2 (its nonzeros) >= (its longest row) * (its rows); the last group may have fewer rows, and a group of empty rows is such a slice. All other rows are sorted by
   (class, window, decreasing length, number), the window of row r being r / window:
     long    more than long_min nonzeros     cut into pieces of at most AIJTC_PIECE slots; pieces leave partial sums, added in fixed order
     medium  more than short_max             TILE slices of 8 rows
     short   the rest, empty rows too        ROWS slices of 32 rrows rows
   In a gathered layout (next paragraph) no group is a slice, and rows are sorted by (window, decreasing length, place) instead, place being the place in the order of the clusters and the window 32 gather places.
   rid (the paper's org_rid) lists them in that order: long rows from 0, medium from rid_tile, short from rid_rows, the last two padded with -1 to whole slices.
   All pieces of long rows, TILE slices and ROWS slices that are not of consecutive rows have AIJTC_FORM_RID; the pieces of a long row have the same place in rid, ascending `first`.
   A place without row (-1, or beyond the last matrix row) has no entries, so its slice is never FULL unless empty.

   Gathered layouts
   ----------------
   Where rows do not share their offsets, but neighbours in the graph of the matrix share columns, each block of `gather` slices of rows has a list of its columns: list[list_start[b] ..
   list_start[b + 1]), ascending, for the slices gather b, gather b + 1, .. A product reads the x of the list once, into shared memory, and an entry's column is a place in the list: everywhere in this
   file read "place in the list" for "column", and 0 for ref. Slices with entries have deltas of 2 bytes, whatever `compress` says, and base[t] = 0. Everything else is as in other layouts.

   So that a block has few columns, rows come in clusters, known by their seeds. Row r is a seed if AIJTCIsSeed(r), and of its own cluster. In rounds 1 .. AIJTC_CLUSTER_OFFERS rows that are in a cluster before the round offer it to their columns:
   each row that is in none, and whose number is a column of such rows, joins the cluster of the least of them. In rounds up to AIJTC_CLUSTER_ROUNDS rows that are in none look: each joins the cluster of the first of its columns which was in one before
   the round; behind one in which no row joins there is no other. Then rows offer once more. A row that nothing reaches is alone. Rows are ordered by (cluster, number).

   A layout is gathered if params.gather > 0, m = n, rrows = 1, there are nonzeros, all rows are short, no list has more than AIJTC_GATHER_LIST columns, and all lists together have at most nnz / 2.
   Where a list is too long the build tries AIJTCGatherLess(params.gather), half of it; in all other cases it sets params.gather to 0. list_start and list are NULL then.

   References: Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026;
               Lu, Liu, DASP: specific dense matrix multiply-accumulate units accelerated general sparse matrix-vector multiplication, SC'23.
*/
#pragma once

#include <petsctc/private/petsctcimpl.h>
#include <stdint.h>

enum {
  AIJTC_LANES          = 32,
  AIJTC_TILE_ROWS      = 8,
  AIJTC_TILE_COLS      = 4,
  AIJTC_PIECE          = 32, /* slots of a piece of a long row: at most 1024 nonzeros */
  AIJTC_UNIT           = 32, /* bytes: where slices may start in the streams. A sector, the least that a GPU reads from memory */
  AIJTC_DELTA_ALIGN    = 32, /* bytes: where deltas may start, from the slice's start */
  AIJTC_MAX_BS         = 8,
  AIJTC_MAX_DICT       = 256,
  AIJTC_PROBE          = 64,   /* groups of 32 rows that AIJTCProbe looks into */
  AIJTC_PROBE_CHUNK    = 840,  /* rows in which it compares neighbours, a multiple of all block sizes up to AIJTC_MAX_BS */
  AIJTC_PROBE_CHUNKS   = 256,  /* of these at most */
  AIJTC_PROBE_ROW      = 256,  /* nonzeros: no group with a longer row has common offsets, or is near */
  AIJTC_GATHER_LIST    = 4096, /* columns of a block of a gathered layout at most: 32 KB of x */
  AIJTC_GATHER_LEAST   = 8,    /* slices of a block that is tried after a larger one */
  AIJTC_GATHER_MOST    = 64,   /* slices of a block */
  AIJTC_CLUSTER        = 256,  /* rows of a cluster in the mean */
  AIJTC_CLUSTER_OFFERS = 2,    /* rounds in which few rows are in a cluster, and these offer it to their columns */
  AIJTC_CLUSTER_ROUNDS = 31
};

typedef enum {
  AIJTC_LONG,
  AIJTC_TILE,
  AIJTC_ROWS,
  AIJTC_KINDS
} AIJTCKind;

/* AIJTCSlice.form */
enum {
  AIJTC_FORM_RID     = 1u << 0, /* rows are rid[row ..], else row, row + 1, .. */
  AIJTC_FORM_FULL    = 1u << 1, /* every lane of every slot has an entry: no masks are stored */
  AIJTC_FORM_CONST   = 1u << 2, /* every slot is constant; slot t's values start at t * period; values have 8 bytes */
  AIJTC_FORM_SPREAD  = 1u << 3, /* every lane of every slot has a place in the streams, zero where it has no entry; not with AIJTC_FORM_FULL */
  AIJTC_FORM_DELTA   = 4,       /* 2 bits at 4: log2 of the bytes of a delta, plus 1; 0: none */
  AIJTC_FORM_VALUE   = 6,       /* 2 bits at 6: AIJTC_VALUE_* */
  AIJTC_VALUE_DOUBLE = 0,
  AIJTC_VALUE_FLOAT  = 1,
  AIJTC_VALUE_DICT   = 2
};

/* Of one slot, in the pattern stream. where: number of the places in the slots before, 32 R t if SPREAD, else entries (of AIJTC_FORM_CONST slices too). In a ROWS slice without deltas that is
   not AIJTC_FORM_CONST: number of the values stored before, and AIJTC_SLOT_CONST if this slot is constant */
typedef struct {
  int32_t  base;
  uint32_t where;
} AIJTCSlot;
#define AIJTC_SLOT_CONST 0x80000000u

/* A slice in the pattern stream, from byte AIJTC_UNIT * pattern on: AIJTCSlot[slots]; unless FULL, uint32_t mask[slots][R]; if it has deltas, zeros up to a multiple of AIJTC_DELTA_ALIGN and
   the deltas of all places; zeros up to AIJTC_UNIT. In the value stream, from byte AIJTC_UNIT * value on: values; zeros up to AIJTC_UNIT. */
typedef struct {
  uint32_t pattern, value;
  int32_t  row;   /* first matrix row, or, with AIJTC_FORM_RID, first place in rid */
  int32_t  first; /* LONG: the first entry of the piece in its row; else 0 */
  int32_t  slots;
  int32_t  entries; /* matrix entries of the slice */
  int32_t  values;  /* values stored, holes too */
  uint32_t form;
} AIJTCSlice;

typedef enum {
  AIJTC_COMPRESS_DECIDE  = PETSC_DECIDE,
  AIJTC_COMPRESS_OFF     = 0, /* 4-byte deltas, 8-byte values */
  AIJTC_COMPRESS_PATTERN = 1,
  AIJTC_COMPRESS_VALUE   = 2,
  AIJTC_COMPRESS_BOTH    = 3
} AIJTCCompress;

/* PETSC_DECIDE (AIJTC_COMPRESS_DECIDE) in a member: chosen by AIJTCParamsResolve() */
struct AIJTCParams {
  PetscInt      long_min;  /* a row with more nonzeros is long */
  PetscInt      short_max; /* a row with at most so many is short: 0 puts every row into tiles, PETSC_INT_MAX none. long_min >= short_max */
  PetscInt      window;    /* rows sorted together; 0: all */
  PetscInt      rrows;     /* 1, 2 or 4 */
  PetscInt      bs;        /* 1..AIJTC_MAX_BS */
  AIJTCCompress compress;
  PetscCount    dict_min;           /* the least number of stored values that a dictionary is made for, 1 or more. It costs a load that waits for another: below some 10^6 values that is more than it saves */
  PetscInt      gather;             /* slices of a block of rows that gathers its x together; 0: no such blocks */
  PetscBool     near = PETSC_FALSE; /* gather is 0 because neighbours share sectors of x as they are (AIJTCTraits), and all slices of rows have deltas. Decided where gather is, else kept */
};

/* One layout in one memory space (host or device). Arrays of no length are NULL. Host: every array is an allocation of its own. Device: memory[] is owned, the arrays lie in it. nrid and the
   places of a slice are less than 2^31. */
typedef struct {
  PetscInt    m, n; /* rows, columns of the matrix */
  PetscBool   cuda; /* memory space of the arrays */
  PetscCount  nnz;
  AIJTCParams params; /* resolved */

  PetscInt     nslices[AIJTC_KINDS];
  PetscInt     nconsecutive;     /* of the ROWS slices, those of consecutive rows */
  PetscBool    common;           /* set by whoever has asked AIJTCProbe(), behind the build: rows share their offsets, which decides the order in which products take slices. Before the work of products with dot products is created */
  PetscCount   build;            /* likewise: no other build of this process has this number, 0: nobody has set it */
  PetscInt     stride;           /* the largest |column - ref| of the ROWS slice nconsecutive / 2, if that is one of consecutive rows and the pattern is compressed, else 0: how far rows reach */
  PetscInt     line;             /* of the same slice, the largest distance of |column - ref| from the nearer of 0 and stride: on a grid whose planes are stride rows apart no less than a line */
  AIJTCSlice  *slice;            /* [sum of nslices] */
  PetscCount   npattern, nvalue; /* bytes of the streams */
  uint8_t     *pattern, *value;
  PetscInt     ndict;
  PetscScalar *dict; /* [AIJTC_MAX_DICT] the first ndict set, ascending by bit pattern as unsigned, then zeros; NULL if ndict is 0 */

  PetscInt  nlong, nmedium, nshort, nempty; /* rows of these classes; nshort counts rows of consecutive slices with nonzeros too, nempty every empty row */
  PetscInt  nrid, rid_tile, rid_rows;
  PetscInt *rid;

  PetscInt    *long_piece; /* [nlong + 1] first LONG slice of each long row; NULL if nlong is 0 */
  PetscScalar *partial;    /* [nslices[AIJTC_LONG]] work of the CUDA product; NULL on the host */
  unsigned    *arrived;    /* [nlong] likewise; zero between products */

  PetscInt  nblocks, nlist, longest_list; /* gathered: blocks, columns of all lists, of the longest; else 0 */
  PetscInt *list_start;                   /* [nblocks + 1] */
  PetscInt *list;                         /* [nlist] */

  PetscInt *start; /* [m + 1] the CSR row offsets: a refresh finds the values of a row by them */

  /* Device layouts; NULL and 0 on the host */
  void     *memory[4];    /* start and misfit; what follows from the rows: slice, rid, long_piece, partial, arrived, dict; the streams; list_start and list */
  int      *misfit;       /* work of the refresh: zero between refreshes */
  PetscInt  largest;      /* entries of the largest slice of consecutive rows */
  PetscBool exact_always; /* every slice stores 8 bytes a place, so that a refresh fits whatever the values are */
} AIJTCLayout;

/* By stride and line: how far apart the planes of a grid are, and how far a row reaches within one or beside the next. A stencil without diagonals reaches one plane; one with, a line and a row farther, or as much less. False:
   it is no such grid */
static inline PetscBool AIJTCPlanes(const AIJTCLayout *layout, PetscBool diagonals, PetscInt *plane, PetscInt *reach)
{
  *reach = diagonals ? layout->line / 2 : layout->line;
  *plane = diagonals ? layout->stride - *reach : layout->stride;
  if (*reach <= 0 || 2 * *reach >= *plane) return PETSC_FALSE;
  return (PetscBool)(!diagonals || (layout->line % 2 == 0 && layout->m % layout->stride && layout->m % *plane == 0));
}

static inline PetscInt AIJTCSlicesTotal(const AIJTCLayout *layout)
{
  return layout->nslices[AIJTC_LONG] + layout->nslices[AIJTC_TILE] + layout->nslices[AIJTC_ROWS];
}

#if defined(__CUDACC__)
  #define AIJTC_HOST_DEVICE __host__ __device__
#else
  #define AIJTC_HOST_DEVICE
#endif

/* Are so few places without entries that all are to be stored? */
AIJTC_HOST_DEVICE static inline bool AIJTCFewHoles(bool gathered, int64_t places, int64_t entries)
{
  return gathered ? 3 * places <= 4 * entries : 14 * places <= 15 * entries;
}

/* The slices of a block to try after `gather`, which had too long a list; 0: none */
static inline PetscInt AIJTCGatherLess(PetscInt gather)
{
  return gather % 2 == 0 && gather / 2 >= AIJTC_GATHER_LEAST ? gather / 2 : 0;
}

/* Chunks of AIJTC_PROBE_CHUNK rows that AIJTCProbe looks into, and the row that chunk q begins with: all, or, of more than AIJTC_PROBE_CHUNKS, so many whole ones spread evenly */
static inline PetscInt AIJTCProbeChunks(PetscInt m)
{
  return PetscMin(m / AIJTC_PROBE_CHUNK + (m % AIJTC_PROBE_CHUNK ? 1 : 0), (PetscInt)AIJTC_PROBE_CHUNKS);
}
AIJTC_HOST_DEVICE static inline PetscInt AIJTCProbeRow(PetscInt m, PetscInt q)
{
  const PetscInt whole = m / AIJTC_PROBE_CHUNK;

  return (whole > AIJTC_PROBE_CHUNKS ? (PetscInt)((PetscCount)q * whole / AIJTC_PROBE_CHUNKS) : q) * AIJTC_PROBE_CHUNK;
}

/* Does row r begin a cluster? One row of AIJTC_CLUSTER does, by a hash of 32 bits (the finisher of MurmurHash3) */
AIJTC_HOST_DEVICE static inline bool AIJTCIsSeed(PetscInt r)
{
  uint32_t h = (uint32_t)r;

  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return (h ^ h >> 16) % AIJTC_CLUSTER == 0;
}

/* The rows of a square matrix by cluster, and of one cluster ascending. On the host order[m] and, unless it is NULL, cluster[m], the seeds of these rows, or the row where none has reached it; on a device both are parts of work[],
   as is all else that it takes: work NULL: tells the bytes, and does nothing */
PETSC_INTERN PetscErrorCode AIJTCClusterRows_Host(PetscInt m, const PetscInt i[], const PetscInt j[], PetscInt order[], PetscInt cluster[]);
PETSC_INTERN PetscErrorCode AIJTCClusterRows_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], void *work, size_t *bytes, int32_t **order, uint32_t **cluster, PetscTCStream stream);

/* What the choice of parameters must know of the rows, and of their values.

   bs: the largest b from 2 to AIJTC_MAX_BS such that at least 4 groups of b consecutive rows (of the chunks looked into; groups of b empty rows and a last incomplete group not counted) count and in at least
   15/16 of those all rows have the same number of nonzeros, the same first and the same last column, as they are stored; 1 if there is none.

   common: do rows share their offsets from the diagonal, as those of a stencil on a grid do? Looked at are G = min(AIJTC_PROBE, m / 32) groups of 32 consecutive rows, group g from row
   32 floor(g (m / 32) / G) on, or all rows if they are fewer than 32. A group with nonzeros has common offsets if its rows ascend strictly, its longest row has L <= AIJTC_PROBE_ROW entries, and
   there are at most 2 L distinct column - ref, ref being the row rounded down to a multiple of bs. True if at least 3/4 of the groups with nonzeros do, so without such groups too.

   distinct: are values likely to be stored one by one, whatever is compressed? A group with common offsets has distinct values if at least half of its entries are no floats (as in AIJTC_VALUE_FLOAT), and of those pairs of entries with equal
   offsets in rows bs apart, of which there must be one, at least half differ in their bits. True if there are groups with nonzeros, and at least 3/4 of them have.

   near: do 32 consecutive rows share sectors of x, where they do not share their offsets? A group with nonzeros without common offsets, whose longest row has at most AIJTC_PROBE_ROW entries, is near if AIJTCSectorsAreFew(). True if at least 3/4 of
   the groups with nonzeros are, of which there must be one.

   longest: nonzeros of the longest row of all; 0 if there are no rows. */
struct AIJTCTraits {
  PetscInt  bs, longest;
  PetscBool common, distinct, near = PETSC_FALSE;
};

static constexpr uint32_t AIJTC_PROBE_SECTORS = 16384, AIJTC_SECTOR = 32 / sizeof(PetscScalar); /* sectors of x that the probe tells apart; columns of a sector of 32 bytes */

/* The sector of a column */
AIJTC_HOST_DEVICE static inline uint32_t AIJTCProbeSector(PetscInt column)
{
  return (uint32_t)column / AIJTC_SECTOR % AIJTC_PROBE_SECTORS;
}

/* Of so many different ones, for so many entries: 3 for 5 entries at most. Rows numbered at random have 4 or more, in an order of neighbours 1.5 to 2 */
AIJTC_HOST_DEVICE static inline bool AIJTCSectorsAreFew(PetscCount sectors, PetscCount entries)
{
  return 5 * sectors <= 3 * entries;
}

/* Of a matrix without nonzeros */
static constexpr AIJTCTraits AIJTC_TRAITS_EMPTY = {1, 0, PETSC_TRUE, PETSC_FALSE};

/* Layouts of that many rows whose entries all have deltas are multiplied by mult_rows.cu instead of mult_stored.cu (7-point 256^3: 411 us instead of 420), and have the row groups that suit it (params.cxx) */
static constexpr PetscInt AIJTC_MANY_ROWS_DELTAS = 8000000;

/* Arrays live on host / device */
PETSC_INTERN PetscErrorCode AIJTCProbe_Host(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCTraits *traits, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCProbe_CUDA(PetscInt m, const PetscInt i[], const PetscInt j[], const PetscScalar a[], AIJTCTraits *traits, PetscTCStream stream);

/* Replaces every PETSC_DECIDE in params, and with that of gather sets near. docs/layout.md has the rule. */
PETSC_INTERN PetscErrorCode AIJTCParamsResolve(PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits *traits, AIJTCParams *params);

/* Builds a layout from CSR arrays in its own memory space (i[m + 1], i[0] = 0, j and a of i[m]; j need not be sorted). params resolved. On failure `layout` holds nothing.

   Forms, for a slice of E entries, longest row L (entries a slot for LONG), in compress bits:
     PATTERN  deltas: the least width w in {1, 2, 4} that holds every col - ref - base[t], base[t] being the least col - ref of slot t. ROWS slices whose rows ascend strictly and which have
              D <= 2 L distinct col - ref take no deltas, unless the layout is near, if D h <= L h + w E, with h = 8, or 8 + 4 R where masks are stored (of each form for itself). LONG slices whose deltas are all 0, and TILE slices likewise, store none.
              Without the bit: w = 4 and base[t] as above, in every slice with entries.
     VALUE    (without the bit: nothing is constant, values are as they are.) A slot is uniform if entries of equal row remainder by the period (bs in ROWS, 1 else) have the same bits. A slice of uniform slots with slots * period < E is FORM_CONST.
              Otherwise uniform slots of more than `period` entries of ROWS slices without deltas are constant. Remainders without an entry store 0. Slices that are not FORM_CONST use
              the dictionary, if all their stored values (constants too, holes not) of the whole layout have at most AIJTC_MAX_DICT distinct bit patterns and number at least dict_min; else 4-byte values where all values of the slice are exactly floats.
              FORM_CONST slices have AIJTC_VALUE_DOUBLE, their values do not count for the dictionary. A NaN is no float (the stored values decide, constants' zeros too).
     Then the slice is SPREAD or packed, as above. A hole in a slice that uses the dictionary is index 0, whatever value that is.
   An empty slice (no entries) has slots = 0 and form FULL (and FORM_RID where it is one), no deltas, AIJTC_VALUE_DOUBLE, nothing stored; pattern and value are the places reached. */
PETSC_INTERN PetscErrorCode AIJTCLayoutBuild_Host(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const AIJTCParams *params, AIJTCLayout *layout, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutBuild_CUDA(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], const PetscScalar a[], const AIJTCParams *params, AIJTCLayout *layout, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutDestroy_Host(AIJTCLayout *layout);
PETSC_INTERN PetscErrorCode AIJTCLayoutDestroy_CUDA(AIJTCLayout *layout);
/* Bytes of all arrays */
PETSC_INTERN PetscCount AIJTCLayoutBytes(const AIJTCLayout *layout);

/* Stores the values of new CSR values a, of the pattern that the layout was built from, in the forms that the slices have. fits: they could hold them all exactly; if not, the
   layout's values are undefined and it must be built anew. Waits for the device only if a slice has a form that can fail. */
PETSC_INTERN PetscErrorCode AIJTCLayoutRefresh_Host(AIJTCLayout *layout, const PetscScalar a[], PetscBool *fits, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutRefresh_CUDA(AIJTCLayout *layout, const PetscScalar a[], PetscBool *fits, PetscTCStream stream);

/* z <- A x (y NULL), z <- y + A x. z may be y, never x. tensor: rows of tiles and long rows are summed by MMA, else by CUDA cores (the host twin adds in CSR order for both). */
PETSC_INTERN PetscErrorCode AIJTCLayoutMult_Host(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMult_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream);

/* Work of products with dot products of one layout. Host: none */
typedef struct {
  PetscBool    cuda;
  unsigned     tiles, rows, sums; /* CUDA: blocks of the launches, in their order: tiles and pieces, rows, sums of pieces */
  PetscScalar *partial;           /* CUDA */
  unsigned    *arrived;           /* CUDA: zero between products */
} AIJTCDotWork;

/* What a failed create leaves goes with a destroy */
PETSC_INTERN PetscErrorCode AIJTCDotWorkCreate_Host(const AIJTCLayout *layout, AIJTCDotWork *work);
PETSC_INTERN PetscErrorCode AIJTCDotWorkCreate_CUDA(const AIJTCLayout *layout, AIJTCDotWork *work);
PETSC_INTERN PetscErrorCode AIJTCDotWorkDestroy_Host(AIJTCDotWork *work);
PETSC_INTERN PetscErrorCode AIJTCDotWorkDestroy_CUDA(AIJTCDotWork *work);

/* z <- A x, result[0] <- w . z, result[1] <- z . z in the same pass; unless u is NULL result[2] <- u . z, result[3] <- u . w; w, u have the rows of z, w may be x. result is in the memory of the vectors. The bits of z are those of AIJTCLayoutMult, those of
   the sums depend on nothing but layout and numbers. */
PETSC_INTERN PetscErrorCode AIJTCLayoutMultDot_Host(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar w[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutMultDot_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar w[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream);

/* A vector made of two others: base - shift + alpha along, alpha = over / under, or minus that. base and along have the rows of the matrix */
typedef struct {
  const PetscScalar *base, *along;
  const PetscReal   *over, *under, *shift; /* in the memory of the vectors; shift NULL: 0 */
  const PetscReal   *stop;                 /* the same: unless it is 0 nothing is done, and nothing is written */
  PetscBool          minus;
} AIJTCWAXPY;

/* Has the layout a product that makes its vector in its pass? Of a square matrix, on a device where planes are swept, of slices of up to 12 slots. On the host it is one with a pass more */
PETSC_INTERN PetscErrorCode AIJTCLayoutHasWAXPY_Host(const AIJTCLayout *layout, PetscBool *has);
PETSC_INTERN PetscErrorCode AIJTCLayoutHasWAXPY_CUDA(const AIJTCLayout *layout, PetscBool *has);

/* x <- base - shift + alpha along, and then AIJTCLayoutMultDot() with w = x. x and z are vectors of their own, u may be base, along or x. The bits of x are those of fma(alpha, along[i], base[i] - shift) on a device, but for those of the host's compiler */
PETSC_INTERN PetscErrorCode AIJTCLayoutWAXPYMultDot_Host(const AIJTCLayout *layout, PetscBool tensor, const AIJTCWAXPY *of, PetscScalar x[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream);
PETSC_INTERN PetscErrorCode AIJTCLayoutWAXPYMultDot_CUDA(const AIJTCLayout *layout, PetscBool tensor, const AIJTCWAXPY *of, PetscScalar x[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream);
