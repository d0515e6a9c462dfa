/*
   Method
     Long rows: one warp a piece of up to 32 tiles (1024 nonzeros). Where every long row is one piece the warp stores the row's result; otherwise it leaves the piece's
     sum in A.partial and LongSumsKernel, launched behind it, adds the pieces of each row: lane l those of number l, l + 32, ..., then the lanes. No atomics.

   Memory traffic
     12 bytes a slot and the gathered x; padding is less than 32 slots a row
*/
#pragma once

#include "tilesums.cuh"

template <class Sums>
__device__ __forceinline__ void LongPiece(const AIJTCLayout &A, PetscInt piece, int lane, const PetscScalar *__restrict__ x, const PetscScalar *y, PetscScalar *z)
{
  const PetscCount first = __ldg(A.piece_tile + piece);
  Sums             sums;

  ForTiles(A, first, (int)(__ldg(A.piece_tile + piece + 1) - first), lane, x, [&](int, PetscScalar a, PetscScalar b) { sums.add(a, b); });

  const PetscScalar total = sums.total(lane);
  if (lane) return;
  if (A.npieces == A.nlong) {
    const PetscInt row = __ldg(A.rid + piece);

    z[row] = y ? y[row] + total : total;
  } else A.partial[piece] = total;
}

__device__ __forceinline__ void LongSums(const AIJTCLayout &A, PetscInt q, int lane, const PetscScalar *y, PetscScalar *z)
{
  const PetscInt end   = __ldg(A.long_piece + q + 1);
  PetscScalar    total = 0.0;

  for (PetscInt piece = __ldg(A.long_piece + q) + lane; piece < end; piece += AIJTC_TILE) total += A.partial[piece];
#pragma unroll
  for (int lanes = 1; lanes < AIJTC_TILE; lanes *= 2) total += __shfl_xor_sync(AIJTC_ALL_LANES, total, lanes);
  if (!lane) {
    const PetscInt row = __ldg(A.rid + q);

    z[row] = y ? y[row] + total : total;
  }
}
