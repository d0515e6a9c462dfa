/*
   Method
     The product z = A x or z = y + A x, slice after slice, slot after slot: the oracle of the CUDA kernels, and the product of machines without a GPU.

     Entries of a row are added one by one in the order of the matrix row, beginning with 0; y comes last. A long row adds the sums of its pieces in their order. The bits do not depend
     on the forms of slices. The CUDA kernels add short rows in the same order (fused multiply-add apart) and others in another, equally fixed one.

     An entry that does not exist is never multiplied: an Inf or NaN in x stays with the rows that have the entry.

   Layout
     include/petsctc/private/aijtclayout.h

   Memory traffic
     The streams, 32 bytes a slice, the gathered x, z (and y). A 7-point matrix of 256^3 rows, values 8 bytes: 1.0 GB (938 MB of values, 25 MB of pattern), with x and z 1.25 GB.

   References
     Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
/* The bits are the same whether or not a CPU has fused multiply-adds */
#if defined(__clang__)
  #pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
  #pragma GCC optimize("fp-contract=off")
#endif
#include "diagonals.h"
#include <algorithm>
#include <../src/vec/vecreduce.h>

namespace
{
/* The n values from place `first` of a slice on */
void LoadValues(const AIJTCLayout *layout, const AIJTCSliceView *view, PetscInt first, int n, PetscScalar value[])
{
  for (int e = 0; e < n; e++) value[e] = AIJTCValueAt(layout, view, first + e);
}

/* Lanes that have an entry; returns how many */
int Lanes(uint32_t mask, int lane[])
{
  int n = 0;

  for (; mask; mask &= mask - 1) lane[n++] = __builtin_ctz(mask);
  return n;
}

/* Adds the entries of group r in slot t, whose values and deltas start at place `first` */
void AddEntries(const AIJTCLayout *layout, const AIJTCSliceView *view, int32_t t, int r, uint32_t mask, PetscInt first, const PetscScalar x[], PetscScalar sum[])
{
  const bool    constant = view->Constant(t);
  const bool    spread   = view->form & AIJTC_FORM_SPREAD;
  const int32_t base     = view->slot[t].base;
  PetscScalar   value[AIJTC_LANES], remainder[AIJTC_MAX_BS];
  int           lane[AIJTC_LANES];
  const int     n = Lanes(mask, lane);

  if (constant) LoadValues(layout, view, view->ConstantPlace(t), view->period, remainder);
  else LoadValues(layout, view, first, spread ? AIJTC_LANES : n, value);
  for (int e = 0; e < n; e++) {
    const int      q = (AIJTC_LANES * r + lane[e]) >> view->shift, at = spread ? lane[e] : e;
    const PetscInt ref = view->kind == AIJTC_LONG ? lane[e] : view->ref[q];

    sum[q] += (constant ? remainder[view->remainder[q]] : value[at]) * x[view->Column(ref + base + (int64_t)view->Delta(first + at))];
  }
}

/* The sums of the rows of slice s */
void MultSlice(const AIJTCLayout *layout, PetscInt s, const PetscScalar x[], AIJTCSliceView *view, PetscScalar sum[])
{
  AIJTCSliceOpen(layout, s, view);
  std::fill(sum, sum + view->places, (PetscScalar)0);
  for (int32_t t = 0; t < view->slots; t++) {
    PetscInt first = view->Where(t);

    for (int r = 0; r < view->groups; r++) {
      const uint32_t mask = view->Mask(t, r);

      AddEntries(layout, view, t, r, mask, first, x, sum);
      first += __builtin_popcount(view->Placed(mask));
    }
  }
}

void LongRows(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  AIJTCSliceView view;

  for (PetscInt q = 0; q < layout->nlong; q++) {
    const PetscInt r   = layout->rid[q];
    PetscScalar    sum = 0, piece;

    for (PetscInt p = layout->long_piece[q]; p < layout->long_piece[q + 1]; p++) {
      MultSlice(layout, p, x, &view, &piece);
      sum += piece;
    }
    z[r] = y ? y[r] + sum : sum;
  }
}

void OtherRows(const AIJTCLayout *layout, const PetscScalar x[], const PetscScalar y[], PetscScalar z[])
{
  const PetscInt of_rows = layout->nslices[AIJTC_LONG] + layout->nslices[AIJTC_TILE];
  const int      groups  = AIJTCKindGroups(AIJTC_ROWS, &layout->params);
  AIJTCSliceView view;
  PetscScalar    sum[AIJTC_MAX_PLACES];

  for (PetscInt s = layout->nslices[AIJTC_LONG]; s < AIJTCSlicesTotal(layout); s++) {
    if (s >= of_rows && aijtchost::IsOfDiagonals(layout, s, groups)) {
      aijtchost::MultDiagonals(layout, s, x, y, z);
      continue;
    }
    MultSlice(layout, s, x, &view, sum);
    for (int q = 0; q < view.places; q++) {
      const PetscInt r = view.row[q];

      if (r >= 0) z[r] = y ? y[r] + sum[q] : sum[q];
    }
  }
}
} // namespace

PetscErrorCode AIJTCLayoutMult_Host(const AIJTCLayout *layout, PETSC_UNUSED PetscBool tensor, const PetscScalar x[], const PetscScalar y[], PetscScalar z[], PETSC_UNUSED PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCheck(!layout->cuda, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The layout lives in device memory: use AIJTCLayoutMult_CUDA()");
  LongRows(layout, x, y, z);
  OtherRows(layout, x, y, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host needs no work space: a sum never leaves the thread that adds it */
PetscErrorCode AIJTCDotWorkCreate_Host(PETSC_UNUSED const AIJTCLayout *layout, AIJTCDotWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCDotWorkDestroy_Host(AIJTCDotWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutMultDot_Host(const AIJTCLayout *layout, PetscBool tensor, const PetscScalar x[], const PetscScalar w[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], PETSC_UNUSED AIJTCDotWork *work, PetscTCStream stream)
{
  const PetscScalar *const with[] = {w, z, u};

  PetscFunctionBegin;
  PetscCall(AIJTCLayoutMult_Host(layout, tensor, x, NULL, z, stream));
  PetscCall(PetscTCMDot_Host(layout->m, z, u ? 3 : 2, with, result)); /* summed as every dot product is: a plain loop has a larger error */
  if (u) PetscCall(PetscTCMDot_Host(layout->m, u, 1, with, result + 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutHasWAXPY_Host(const AIJTCLayout *layout, PetscBool *has)
{
  PetscFunctionBegin;
  *has = (PetscBool)(layout->m == layout->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJTCLayoutWAXPYMultDot_Host(const AIJTCLayout *layout, PetscBool tensor, const AIJTCWAXPY *of, PetscScalar x[], const PetscScalar u[], PetscScalar z[], PetscScalar result[], AIJTCDotWork *work, PetscTCStream stream)
{
  PetscScalar alpha;

  PetscFunctionBegin;
  PetscCheck(layout->m == layout->n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "A matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns multiplies no vector that is made of such of its rows", layout->m, layout->n);
  PetscCheck(x != of->base && x != of->along && z != of->base && z != of->along && z != x && z != u, PETSC_COMM_SELF, PETSC_ERR_ARG_IDN, "Neither the vector made nor the product may be another of the vectors");
  if (*of->stop != 0.0) PetscFunctionReturn(PETSC_SUCCESS);
  alpha = of->minus ? -(*of->over / *of->under) : *of->over / *of->under;

  const PetscReal shift = of->shift ? *of->shift : (PetscReal)0.0;

  for (PetscInt i = 0; i < layout->m; i++) x[i] = of->base[i] - shift + alpha * of->along[i];
  PetscCall(AIJTCLayoutMultDot_Host(layout, tensor, x, x, u, z, result, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
