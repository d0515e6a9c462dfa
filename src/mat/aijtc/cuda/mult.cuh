/*
   The kernels of the product: every warp of the grid finds its class by its block number. See mult.cu.
*/
#pragma once

#include "mult_long.cuh"
#include "mult_medium.cuh"
#include "mult_short.cuh"

constexpr int AIJTC_WARPS  = 4; /* of a block */
constexpr int AIJTC_BLOCKS = 9; /* of a multiprocessor at least. 56 registers delay some loads of a batch; measured, the warps gained outweigh them (docs/performance.md) */

/* Where the blocks of each part of the product end in the grid, in this order */
enum {
  PART_LONG,
  PART_MEDIUM,
  PART_SHORT4,
  PART_SHORT2,
  PART_SHORT1,
  PART_EMPTY,
  PARTS
};

struct PartBlocks {
  unsigned end[PARTS];
};

template <class Sums, int S>
__global__ void __launch_bounds__(32 * AIJTC_WARPS, AIJTC_BLOCKS) MultKernel(const __grid_constant__ AIJTCLayout A, const __grid_constant__ PartBlocks blocks, const PetscScalar *__restrict__ x, const PetscScalar *y, PetscScalar *z)
{
  const int lane = threadIdx.x % 32;
  int       part = 0;

  while (blockIdx.x >= blocks.end[part]) part++;
  const PetscInt warp = (PetscInt)(AIJTC_WARPS * (blockIdx.x - (part ? blocks.end[part - 1] : 0)) + threadIdx.x / 32); /* within the part */
  switch (part) {
  case PART_LONG:
    if (warp < A.npieces) LongPiece<Sums>(A, warp, lane, x, y, z);
    break;
  case PART_MEDIUM:
    if (warp < (A.nslices + S - 1) / S) MediumSlices<Sums, S>(A, S * warp, lane, x, y, z);
    break;
  case PART_SHORT4:
    if ((PetscCount)AIJTC_SHORT_TILES * warp < A.short_tile[1] - A.short_tile[0]) ShortTiles<Sums, 4>(A, warp, lane, x, y, z);
    break;
  case PART_SHORT2:
    if ((PetscCount)AIJTC_SHORT_TILES * warp < A.short_tile[2] - A.short_tile[1]) ShortTiles<Sums, 2>(A, warp, lane, x, y, z);
    break;
  case PART_SHORT1:
    if ((PetscCount)AIJTC_SHORT_TILES * warp < A.short_tile[3] - A.short_tile[2]) ShortTiles<Sums, 1>(A, warp, lane, x, y, z);
    break;
  default:
    if (32 * (PetscCount)warp + lane < A.nempty) {
      const PetscInt row = __ldg(A.rid + A.rid_empty + 32 * (PetscCount)warp + lane);

      z[row] = y ? y[row] : 0.0;
    }
  }
}

__global__ void __launch_bounds__(32 * AIJTC_WARPS) LongSumsKernel(const __grid_constant__ AIJTCLayout A, const PetscScalar *y, PetscScalar *z)
{
  const PetscInt q = (PetscInt)(AIJTC_WARPS * blockIdx.x + threadIdx.x / 32);

  if (q < A.nlong) LongSums(A, q, threadIdx.x % 32, y, z);
}
