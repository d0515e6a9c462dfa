/*
   Method
     z = A x or z = y + A x: one launch for TILE and LONG slices, one for ROWS slices, or one for all where there are both and a lane has one row (rrows = 1); with dot products then a tiny one that
     adds the pieces of long rows if one has more than one. A kind that the matrix does not have is not launched. Nothing waits for the device, and each launch may start while the one before it ends (overlap.cuh).

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     aijtcslots.cuh, mult_rows.cuh, mult_tiles.cuh

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#include "build.cuh"
#include "mult.cuh"

namespace
{
unsigned RowsBlocks(const AIJTCLayout &A)
{
  return AIJTCIsMixed(A) ? AIJTCBlocksOf(A.nslices[AIJTC_ROWS], AIJTC_MIXED_WARPS) : AIJTCRowsBlocks(A);
}

unsigned TilesBlocks(const AIJTCLayout &A)
{
  const int warps = AIJTCIsMixed(A) ? AIJTC_MIXED_WARPS : AIJTC_WARPS;

  return AIJTCBlocksOf(A.nslices[AIJTC_LONG], warps) + AIJTCBlocksOf(A.nslices[AIJTC_TILE], warps);
}

PetscErrorCode Launch(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], DotView dots, const AIJTCDotWork *work, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in host memory: use AIJTCLayoutMult_Host()");
  if (AIJTCIsMixed(*layout)) PetscCall(AIJTCLayoutMultMixed_CUDA(layout, tensor, x, y, z, dots, stream));
  else {
    PetscCall(AIJTCLayoutMultTiles_CUDA(layout, tensor, x, y, z, dots, stream));
    if (work) dots.first = work->tiles;
    PetscCall(AIJTCLayoutMultRows_CUDA(layout, x, y, z, dots, stream));
  }
  if (work) dots.first = work->tiles + work->rows;
  PetscCall(AIJTCLayoutSumPieces_CUDA(layout, y, z, dots, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode AIJTCLayoutMult_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(Launch(layout, tensor, x, y, z, DotView{}, NULL, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutMultDot_CUDA(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar w[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream)
{
  const DotView dots = {w, u, work->partial, work->arrived, result, 0, work->tiles + work->sums + work->rows};

  PetscFunctionBegin;
  PetscCheck(work->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space is not of AIJTCDotWorkCreate_CUDA()");
  PetscCheck(work->rows == RowsBlocks(*layout), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The work space is for %u blocks of rows, the layout has %u: create it once the layout is complete", work->rows, RowsBlocks(*layout));
  if (!dots.blocks) PetscCallCUDA(cudaMemsetAsync(result, 0, dots.count() * sizeof(*result), stream));
  PetscCall(Launch(layout, tensor, x, NULL, z, dots, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCDotWorkCreate_CUDA(const AIJTCLayout *layout, AIJTCDotWork *work)
{
  unsigned blocks, groups;

  PetscFunctionBegin;
  *work       = {};
  work->cuda  = PETSC_TRUE;
  work->tiles = TilesBlocks(*layout);
  work->sums  = AIJTCHasPieces(*layout) ? AIJTCBlocksOf(layout->nlong) : 0;
  work->rows  = RowsBlocks(*layout);
  blocks      = work->tiles + work->sums + work->rows;
  groups      = blocks / AIJTC_DOT_GROUP + 1;
  PetscCall(aijtcbuild::DeviceMalloc(AIJTC_DOTS * ((PetscCount)blocks + groups), &work->partial));
  PetscCall(aijtcbuild::DeviceMalloc(1 + (PetscCount)groups, &work->arrived));
  PetscCallCUDA(cudaMemset(work->arrived, 0, (1 + (size_t)groups) * sizeof(*work->arrived)));
  PetscCallCUDA(cudaStreamSynchronize(nullptr)); /* the work may be used on a stream that does not wait for the default one */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCDotWorkDestroy_CUDA(AIJTCDotWork *work)
{
  PetscFunctionBegin;
  if (work->partial) PetscCallCUDA(cudaFree(work->partial));
  if (work->arrived) PetscCallCUDA(cudaFree(work->arrived));
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}
