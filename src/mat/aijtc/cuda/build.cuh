/*
   What the parts of the device build share: memory, the steps that build.cu calls one after the other, and what they leave to each other in device memory.
*/
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <petscdevice_cuda.h>

static_assert(sizeof(PetscScalar) == 8, "the device layout compares values by their 64 bits");

namespace aijtcbuild
{
constexpr int      WARPS     = 8; /* of a block in all kernels of one warp a slice */
constexpr int      THREADS   = AIJTC_LANES * WARPS;
constexpr unsigned ALL_LANES = 0xffffffffu;

static inline unsigned BlocksFor(PetscCount items, int per_block)
{
  return (unsigned)((items + per_block - 1) / per_block);
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

private:
  static constexpr int most = 24;
  cudaStream_t         stream;
  void                *held[most];
  int                  count = 0;
};

/* To be called behind the last kernel that writes a layout: products may start before the launch in front of them has ended (mult.cuh), but not before the one in front of that, and this puts an empty
   launch in between */
PetscErrorCode SettleLayout(cudaStream_t stream);

/* What the classification counts: all that the sizes of the lists of rows and slices follow from */
struct RowCounts {
  unsigned long long nnz;
  unsigned long long pieces;
  unsigned int       consecutive;           /* groups that become slices of consecutive rows */
  unsigned int       nlong, nmedium, nrest; /* rows of the other groups; nrest: short ones and empty ones */
  unsigned int       nempty;                /* in all groups */
  unsigned int       longest;               /* nonzeros of the longest row of the other groups */
};

/* The distinct bit patterns of stored values: open addressing, a quarter full when `overflow` is set */
struct DictTable {
  static constexpr int                size  = 1024;
  static constexpr unsigned long long empty = 0xffffffffffffffffull; /* as a key of its own: has_empty */
  unsigned long long                  key[size];
  int                                 count; /* of the keys, without has_empty */
  int                                 overflow;
  int                                 has_empty;
};

/* Places in the streams, in units of AIJTC_UNIT bytes */
struct Units {
  unsigned long long pattern, value;
};

constexpr unsigned long long DICT_MIN_VALUES = 4096;

/* What the build finds out on the device and the host must know before the streams have their memory */
struct StreamCounts {
  Units              total;
  unsigned long long stored; /* values that may go into a dictionary */
  int                ndict;
  int                inexact; /* a slice has a form that does not hold any value */
};

/* A form bit of the time between analysis and sizes: every stored value is exactly a float */
constexpr uint32_t FORM_FLOATS = 1u << 31;

/* The CSR arrays that a layout is built from */
struct Csr {
  const PetscInt    *i, *j;
  const PetscScalar *a;
};

/* 1. Which groups are slices of consecutive rows (flag[], one a group), how many rows the classes have. Waits for the device. */
PetscErrorCode ClassifyRows(PetscInt m, const PetscInt i[], const AIJTCParams &params, uint8_t flag[], Scratch &scratch, RowCounts *counts, cudaStream_t stream);
/* 2. rid, long_piece, and the groups that are slices, in *group (NULL if all are) */
PetscErrorCode OrderRows(AIJTCLayout *layout, const PetscInt i[], const uint8_t flag[], const RowCounts &counts, PetscInt **group, Scratch &scratch, cudaStream_t stream);
/* 3. All of every slice but its places in the streams; the dictionary in dict[AIJTC_MAX_DICT]; the places in unit[slices + 1]. Waits for the device. */
PetscErrorCode AnalyzeSlices(AIJTCLayout *layout, const Csr &A, const PetscInt *group, PetscScalar dict[], Units unit[], Scratch &scratch, StreamCounts *counts, cudaStream_t stream);
/* 4. The streams */
PetscErrorCode WriteSlices(const AIJTCLayout *layout, const Csr &A, const Units unit[], cudaStream_t stream);

static inline PetscInt GroupsOf(PetscInt m, const AIJTCParams &params)
{
  const PetscInt rows = AIJTC_LANES * params.rrows;

  return m / rows + (m % rows ? 1 : 0);
}
} // namespace aijtcbuild
