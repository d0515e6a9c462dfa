/*
   What the parts of the device build share: memory, the steps that build.cu calls one after the other, and what they leave to each other in device memory.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <petscdevice_cuda.h>

static_assert(sizeof(PetscScalar) == 8, "the device layout compares values by their 64 bits");

namespace aijtcbuild
{
constexpr int      WARPS     = 8; /* of a block in all kernels of one warp a slice, at most */
constexpr int      THREADS   = AIJTC_LANES * WARPS;
constexpr int      ROW_LANES = 8; /* lanes that share a row where one lane would take too long */
constexpr unsigned ALL_LANES = 0xffffffffu;

static inline unsigned BlocksFor(PetscCount items, int per_block)
{
  return (unsigned)((items + per_block - 1) / per_block);
}

/* Blocks of THREADS for a kernel whose blocks take several shares of the work: no more than the device holds at once */
static inline PetscErrorCode BlocksThatFill(unsigned *blocks)
{
  constexpr int per_multiprocessor = 2048 / THREADS;
  int           device, multiprocessors;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  *blocks = (unsigned)(per_multiprocessor * multiprocessors);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cudaMalloc() or, with a stream, cudaMallocAsync(): PETSC_ERR_MEM and NULL if there is no room; NULL for no bytes */
PetscErrorCode DeviceMallocBytes(size_t bytes, void **array);
PetscErrorCode DeviceMallocBytes(size_t bytes, void **array, cudaStream_t stream);

template <class T>
PetscErrorCode DeviceMalloc(PetscCount count, T **array)
{
  void *bytes = nullptr;

  PetscFunctionBegin;
  *array = nullptr;
  PetscCall(DeviceMallocBytes((size_t)count * sizeof(T), &bytes));
  *array = static_cast<T *>(bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays one behind the other in a block of memory; without memory it counts their bytes */
struct Block {
  static constexpr size_t align = 256;

  uint8_t *memory = nullptr;
  size_t   bytes  = 0;

  template <class T>
  void Place(PetscCount n, T **array)
  {
    *array = memory && n ? reinterpret_cast<T *>(memory + bytes) : nullptr;
    bytes += ((size_t)n * sizeof(T) + align - 1) / align * align;
  }
};

/* The arrays of a layout, allocated as their sizes become known: start and misfit; slice, rid, long_piece, partial, arrived and room for dict; pattern and value; list_start and list */
PetscErrorCode AllocateStart(AIJTCLayout *layout, cudaStream_t stream);
PetscErrorCode AllocateSlices(AIJTCLayout *layout, cudaStream_t stream);
PetscErrorCode AllocateStreams(AIJTCLayout *layout, cudaStream_t stream);
PetscErrorCode AllocateLists(AIJTCLayout *layout, cudaStream_t stream);

/* Temporary device memory, freed in the order of the stream when the object goes, after errors too */
class Scratch {
public:
  explicit Scratch(cudaStream_t stream) : stream(stream) { }
  ~Scratch()
  {
    while (count) (void)cudaFreeAsync(held[--count], stream);
  }
  Scratch(const Scratch &)            = delete;
  Scratch &operator=(const Scratch &) = delete;

  template <class T>
  PetscErrorCode Get(PetscCount n, T **array)
  {
    void *bytes = nullptr;

    PetscFunctionBegin;
    *array = nullptr;
    PetscCheck(count < most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d temporary arrays: raise Scratch::most", most);
    PetscCall(DeviceMallocBytes((size_t)n * sizeof(T), &bytes, stream));
    if (bytes) held[count++] = bytes;
    *array = static_cast<T *>(bytes);
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Several arrays in one allocation: `place` puts them into a Block, and is called twice */
  template <class Placing>
  PetscErrorCode GetAll(Placing place)
  {
    Block count, block;

    PetscFunctionBegin;
    place(count);
    PetscCall(Get((PetscCount)count.bytes, &block.memory));
    place(block);
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  /* Before its time is over. What is in the stream so far may still use the arrays */
  PetscErrorCode Release()
  {
    PetscFunctionBegin;
    while (count) PetscCallCUDA(cudaFreeAsync(held[--count], stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

private:
  static constexpr int most = 64;
  cudaStream_t         stream;
  void                *held[most];
  int                  count = 0;
};

/* To be called behind the last kernel that writes a layout: products read layouts before they wait for the launch in front of them (overlap.cuh), but an
   ordinary launch, as this empty one is, begins when all before it has ended */
PetscErrorCode SettleLayout(cudaStream_t stream);

/* What the classification counts: all that the sizes of the lists of rows and slices follow from */
struct RowCounts {
  unsigned long long nnz;
  unsigned long long pieces;
  unsigned long long largest;               /* entries of the largest group that becomes a slice */
  unsigned int       consecutive;           /* groups that become slices of consecutive rows */
  unsigned int       nlong, nmedium, nrest; /* rows of the other groups; nrest: short ones and empty ones */
  unsigned int       nempty;                /* in all groups */
  unsigned int       longest;               /* nonzeros of the longest row of the other groups */
};

/* The distinct bit patterns of stored values: open addressing, a quarter full when `overflow` is set */
struct DictTable {
  static constexpr int size = 1024;
  unsigned long long   key[size]; /* complements of the bit patterns; 0: free, so that a table of zeros is an empty one */
  unsigned long long   stored;    /* values that may go into a dictionary */
  int                  count;     /* of the keys, without has_zero */
  int                  overflow;
  int                  has_zero; /* the complement 0, which no place can hold */
};

/* Places in the streams, in units of AIJTC_UNIT bytes */
struct Units {
  unsigned long long pattern, value;
};

/* What the lists of a gathered layout count */
struct ListCounts {
  unsigned long long columns; /* of all lists */
  unsigned long long room;    /* that the blocks have taken of the temporary lists */
  unsigned long long entries; /* and of the places */
  int                longest;
  int                unused; /* 0 */
};

/* What the build finds out on the device and the host must know before the streams have their memory. It follows the places of the slices in memory: the sum over all of them is the place behind
   the last */
struct StreamCounts {
  Units   total;
  int     ndict;
  int     inexact;      /* a slice has a form that does not hold any value */
  int     mixed;        /* a slice has constant slots and others */
  int32_t stride, line; /* as in AIJTCLayout */
  int     unused;       /* 0: no bytes that are copied without having been written */

  ListCounts lists; /* of gathered layouts: a copy, so that the host waits once */
};

/* What the steps count on the device; zero at the start */
struct Found {
  RowCounts  rows;
  ListCounts lists;
  DictTable  table;
};

/* A form bit of the time between analysis and sizes: every stored value is exactly a float */
constexpr uint32_t FORM_FLOATS = 1u << 31;

/* The CSR arrays that a layout is built from */
struct Csr {
  const PetscInt    *i, *j;
  const PetscScalar *a;
};

/* The entries of a row in an array of all */
struct Run {
  PetscInt begin, end;
};

/* Of a gathered layout, instead of columns: their places in the lists; and where those of each row are, place by place of rid. NULL otherwise */
struct Places {
  PetscInt *place; /* [nnz] */
  Run      *run;
};

/* Lists that are not where they belong yet, block after block of slices */
struct FoundLists {
  PetscInt *length; /* [blocks + 1] */
  PetscInt *start;  /* [blocks + 1]: the sums of the lengths */
  PetscInt *from;   /* [blocks] in list */
  PetscInt *list;
};

/* 1. Which groups are slices of consecutive rows (flag[], one a group), how many rows the classes have; the row offsets into layout->start, and no misfit. Waits for the device. */
PetscErrorCode ClassifyRows(const AIJTCLayout *layout, const PetscInt i[], uint8_t flag[], RowCounts *found, RowCounts *counts, cudaStream_t stream);
/* Of gathered layouts: the rows of a square matrix by cluster. Needs none of the counts */
PetscErrorCode ClusterRows(PetscInt m, const Csr &A, int32_t **row, Scratch &scratch, cudaStream_t stream);
/* 2. rid, long_piece, and the groups that are slices, in *group (NULL if all are). clustered: by cluster, of a gathered layout */
PetscErrorCode OrderRows(AIJTCLayout *layout, const Csr &A, const uint8_t flag[], const RowCounts &counts, const int32_t clustered[], PetscInt **group, Scratch &scratch, cudaStream_t stream);
/* Of gathered layouts, after 2.: the lists, and the places of all nonzeros in them */
PetscErrorCode FindLists(AIJTCLayout *layout, const Csr &A, const Places &places, FoundLists *found, ListCounts *counts, Scratch &scratch, cudaStream_t stream);
/* Now that their lengths are known: lists into the layout. Or params.gather becomes what to plan for instead */
PetscErrorCode StoreLists(AIJTCLayout *layout, const FoundLists &found, const ListCounts &counts, cudaStream_t stream);
/* 3. All of every slice but its places in the streams, which are in *unit; the dictionary. lists: counts on the device, of a gathered layout. Waits for the device. */
PetscErrorCode AnalyzeSlices(AIJTCLayout *layout, const Csr &A, const PetscInt *group, DictTable *table, const ListCounts *lists, Units **unit, Scratch &scratch, StreamCounts *counts, cudaStream_t stream);
/* 4. The places of the slices, and the pattern stream; the value stream too, if PatternHasValues(). mixed: of StreamCounts */
PetscErrorCode WritePattern(const AIJTCLayout *layout, const Csr &A, const Places &places, const Units unit[], bool mixed, cudaStream_t stream);
/* 5. The value stream, unless PatternHasValues(); of a refresh too (refresh.cu) */
PetscErrorCode StoreValues(const AIJTCLayout *layout, const PetscScalar a[], cudaStream_t stream);

/* A gathered layout whose values are all stored as they are */
static inline bool PatternHasValues(const AIJTCLayout *layout)
{
  return layout->params.gather && layout->exact_always;
}

static inline int BitsFor(uint64_t largest)
{
  int bits = 0;

  for (; largest; largest >>= 1) bits++;
  return bits;
}

static inline PetscInt GroupsOf(PetscInt m, const AIJTCParams &params)
{
  const PetscInt rows = AIJTC_LANES * params.rrows;

  return m / rows + (m % rows ? 1 : 0);
}
} // namespace aijtcbuild
