/*
   Method
     Which values a matrix has, for the dictionary of its resident form (ksptcform.cu): their bit patterns in a hash table of device memory, until there are more than a dictionary has room for. Few are looked at
     first, by one block: mostly they tell that there are many.

   Layout
     4 KSPTC_DICT patterns, one behind the other, and two counts

   Memory traffic
     8 bytes a nonzero where values are few

   References
     CUDA C++ Programming Guide, atomic functions
*/
#include <cstddef>
#include <petscdevice_cuda.h>
#include <../src/parts/devicescratch.h>
#include <../src/ksp/resident/ksptcform.h>
#include <vector>

namespace
{
constexpr int THREADS = 256;

/* A hash table of bit patterns, and whether there are more than a dictionary has room for */
constexpr int PATTERNS = 4 * KSPTC_DICT;

struct PatternTable {
  unsigned long long pattern[PATTERNS]; /* KSPTC_NO_VALUE: nothing */
  int                count, many;
};

__device__ __forceinline__ bool AreMany(const PatternTable *table)
{
  return *(const volatile int *)&table->many;
}

/* Puts a pattern in, unless it is there. False: there are too many. Once others have found that, nobody goes on: all threads that look through a full table keep a few banks of L2 busy for milliseconds */
__device__ __forceinline__ bool InsertPattern(PatternTable *table, unsigned long long bits)
{
  unsigned at = (unsigned)((bits * 0x9e3779b97f4a7c15ull) >> 40);

  for (int probe = 0; probe < PATTERNS; probe++, at++) {
    unsigned long long *const place = table->pattern + at % PATTERNS;
    unsigned long long        found = *(volatile unsigned long long *)place;

    if (found == KSPTC_NO_VALUE) {
      found = atomicCAS(place, (unsigned long long)KSPTC_NO_VALUE, bits);
      if (found == KSPTC_NO_VALUE) return atomicAdd(&table->count, 1) + 1 < KSPTC_DICT;
    }
    if (found == bits) return true;
    if (AreMany(table)) return false;
  }
  return false;
}

/* So many values, `apart` from each other, but zeros, until there are too many */
__global__ void __launch_bounds__(THREADS) CollectKernel(PetscCount values, PetscCount apart, const PetscScalar *__restrict__ a, PatternTable *table)
{
  unsigned long long last = 0;

  for (PetscCount k = (PetscCount)blockIdx.x * THREADS + threadIdx.x; k < values; k += (PetscCount)gridDim.x * THREADS) {
    const unsigned long long bits = KSPTCBitsOf(__ldg(a + k * apart));

    if (!bits || bits == last) continue;
    last = bits;
    if (AreMany(table)) return;
    if (bits == KSPTC_NO_VALUE || !InsertPattern(table, bits)) {
      *(volatile int *)&table->many = 1;
      return;
    }
  }
}
} // namespace

PetscErrorCode KSPTCCollectValues_CUDA(PetscCount nnz, const PetscScalar a[], uint64_t bits[], PetscScalar dict[], PetscBool *can, PetscBool *room, PetscTCStream stream)
{
  const unsigned        blocks = (unsigned)PetscMin((nnz - 1) / THREADS + 1, (PetscCount)8 * KSPTC_BLOCKS);
  const PetscCount      few    = PetscMin(nnz, 8 * THREADS);
  Scratch<PatternTable> table;
  PatternTable          found;
  std::vector<uint64_t> values;

  PetscFunctionBegin;
  *can = PETSC_FALSE;
  PetscCall(table.allocate(1, stream, room));
  if (!*room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaMemsetAsync((PatternTable *)table, 0xff, sizeof(found.pattern), stream));
  PetscCallCUDA(cudaMemsetAsync(&((PatternTable *)table)->count, 0, sizeof(found) - offsetof(PatternTable, count), stream));
  CollectKernel<<<1, THREADS, 0, stream>>>(few, nnz / few, a, table);
  PetscCallCUDA(cudaGetLastError());
  CollectKernel<<<blocks, THREADS, 0, stream>>>(nnz, 1, a, table);
  PetscCallCUDA(cudaGetLastError());
  PetscCallCUDA(cudaMemcpyAsync(&found, (PatternTable *)table, sizeof(found), cudaMemcpyDeviceToHost, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  if (found.many) PetscFunctionReturn(PETSC_SUCCESS);
  for (unsigned long long pattern : found.pattern) {
    if (pattern != KSPTC_NO_VALUE) values.push_back(pattern);
  }
  KSPTCDictFrom(values, bits, dict, can);
  PetscFunctionReturn(PETSC_SUCCESS);
}
