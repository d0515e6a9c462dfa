/*
   The inverses of the blocks of PCPBJACOBI and PCVPBJACOBI, for steps that apply them in their pass. They are private to the preconditioner, but it shows them: applied to the vector with 1 in component k of every block and 0 elsewhere it
   gives column k of all of them, to the bit, whatever made them and wherever. That takes an application a column, when blocks are needed for the first time and whenever the preconditioner may have changed. One more shows whether these are
   all that it is: the block sizes of the matrix may have been changed after the preconditioner was set up.

   D->d holds the columns, one behind the other, and behind them, of blocks of several sizes, which row of which block each row is (PetscTCBlocks), a byte a row.
*/
#include <petsc/private/pcimpl.h>
#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctccompat.h>

/* ---- which blocks */

static PetscErrorCode KSPTCBlocksShapeOf(KSP ksp, KSPTCBlocksShape *shape)
{
  PetscBool point, variable;
  Mat       P;

  PetscFunctionBegin;
  *shape = {0, 0, NULL};
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCPBJACOBI, &point));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCVPBJACOBI, &variable));
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  if (point) PetscCall(MatGetBlockSize(P, &shape->size));
  if (variable) PetscCall(MatGetVariableBlockSizes(P, &shape->nblocks, &shape->sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Places in D->d for n rows */
static PetscCount KSPTCBlocksEntries(const KSPTCDiagonal *D, PetscInt n)
{
  const PetscCount bytes = D->varied ? n : 0;

  return D->bs * KSPTCBlockStride(n) + (bytes + (PetscCount)sizeof(PetscScalar) - 1) / (PetscCount)sizeof(PetscScalar);
}

/* Do steps apply them? They count their rows, and the places in D->d of all processes have numbers */
static PetscErrorCode KSPTCBlocksFit(KSP ksp, const KSPTCDiagonal *D, PetscInt n, PetscBool *fit)
{
  PetscInt64 entries = KSPTCBlocksEntries(D, n);

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)ksp)));
  *fit = (PetscBool)(entries <= (PetscInt64)PETSC_INT_MAX);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At the beginning of a solve: the blocks that the preconditioner should have. D->bs, the same on all processes, is 1 where it has none that steps can apply */
PetscErrorCode KSPTCBlocksMark(KSP ksp, KSPTCDiagonal *D)
{
  PetscInt  n, least = PETSC_INT_MAX;
  PetscBool blocks;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &blocks, PCPBJACOBI, PCVPBJACOBI, ""));
  PetscCall(KSPTCBlocksShapeOf(ksp, &D->shape));
  D->bs     = 1;
  D->varied = PETSC_FALSE;
  if (!blocks) PetscFunctionReturn(PETSC_SUCCESS);
  D->bs = PetscMax(D->shape.size, 1);
  for (PetscInt i = 0; i < D->shape.nblocks; i++) {
    D->bs = PetscMax(D->bs, D->shape.sizes[i]);
    least = PetscMin(least, D->shape.sizes[i]);
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &D->bs, 1, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)ksp)));
  D->varied = (PetscBool)(least < D->bs);
  PetscCall(MatGetLocalSize(D->P, &n, NULL));
  blocks = (PetscBool)(D->bs > 1 && D->bs <= PETSCTC_MAX_BLOCK);
  if (blocks) PetscCall(KSPTCBlocksFit(ksp, D, n, &blocks));
  if (!blocks) {
    D->bs     = 1;
    D->varied = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is what says how large blocks are what it was then? */
PetscErrorCode KSPTCBlocksStand(KSP ksp, const KSPTCDiagonal *D, PetscBool *stand)
{
  KSPTCBlocksShape now;

  PetscFunctionBegin;
  PetscCall(KSPTCBlocksShapeOf(ksp, &now));
  *stand = (PetscBool)(now.size == D->shape.size && now.nblocks == D->shape.nblocks && now.sizes == D->shape.sizes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- taking them */

/* a[i] <- value(block, component, rows of the block), of all rows */
template <class T, class Value>
static void KSPTCBlocksEach(const KSPTCDiagonal *D, PetscInt n, T a[], Value value)
{
  for (PetscInt i = 0, block = 0; i < n; block++) {
    const PetscInt size = D->varied ? D->shape.sizes[block] : D->bs;

    for (PetscInt k = 0; k < size; k++) a[i++] = (T)value(block, k, size);
  }
}

template <class Value>
static PetscErrorCode KSPTCBlocksSet(const KSPTCDiagonal *D, Vec v, Value value)
{
  PetscInt     n;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayWrite(v, &a));
  KSPTCBlocksEach(D, n, a, value);
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D->d, where v is, with the rows' bytes if sizes vary */
static PetscErrorCode KSPTCBlocksCreate(KSPTCDiagonal *D, Vec v)
{
  PetscInt     n;
  PetscBool    bound;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&D->d));
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), &D->d));
  PetscCall(VecSetSizes(D->d, (PetscInt)KSPTCBlocksEntries(D, n), PETSC_DETERMINE));
  PetscCall(VecSetType(D->d, ((PetscObject)v)->type_name));
  PetscCall(VecBoundToCPU(v, &bound));
  if (bound) PetscCall(VecBindToCPU(D->d, PETSC_TRUE));
  PetscCall(VecSet(D->d, 0.0)); /* what lies between two columns, too */
  if (!D->varied) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArray(D->d, &a));
  KSPTCBlocksEach(D, n, (unsigned char *)(a + D->bs * KSPTCBlockStride(n)), [](PetscInt, PetscInt k, PetscInt size) { return k + 16 * (size - 1); });
  PetscCall(VecRestoreArray(D->d, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCBlocksApply(KSP ksp, Vec x, Vec y)
{
  PetscFunctionBegin;
  if (ksp->transpose_solve) PetscCall(PCApplyTranspose(ksp->pc, x, y));
  else PetscCall(PCApply(ksp->pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D->d <- the columns; sum <- their sum, and size <- the sum of their norms. e: work */
static PetscErrorCode KSPTCBlocksFill(KSP ksp, const KSPTCDiagonal *D, Vec e, Vec sum, PetscReal *size)
{
  PetscInt  n, first;
  PetscReal norm;
  Vec       column;
  IS        rows;

  PetscFunctionBegin;
  *size = 0.0;
  PetscCall(VecGetOwnershipRange(D->d, &first, NULL));
  PetscCall(VecGetLocalSize(e, &n));
  PetscCall(VecSet(sum, 0.0));
  for (PetscInt k = 0; k < D->bs; k++) {
    PetscCall(KSPTCBlocksSet(D, e, [k](PetscInt, PetscInt component, PetscInt) { return component == k ? 1.0 : 0.0; }));
    PetscCall(ISCreateStride(PetscObjectComm((PetscObject)D->d), n, (PetscInt)(first + k * KSPTCBlockStride(n)), 1, &rows));
    PetscCall(VecGetSubVector(D->d, rows, &column));
    PetscCall(KSPTCBlocksApply(ksp, e, column));
    PetscCall(VecAXPY(sum, 1.0, column));
    PetscCall(VecNorm(column, NORM_2, &norm));
    PetscCall(VecRestoreSubVector(D->d, rows, &column));
    PetscCall(ISDestroy(&rows));
    *size += norm;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the preconditioner the blocks of which this is the sum of the columns? Then it takes a multiple of the ones in each block to the same multiple of that. Not if there is NaN */
static PetscErrorCode KSPTCBlocksAreAll(KSP ksp, const KSPTCDiagonal *D, Vec e, Vec sum, PetscReal size, PetscBool *all)
{
  Vec       y;
  PetscReal difference;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(e, &y));
  PetscCall(KSPTCBlocksSet(D, e, [](PetscInt block, PetscInt, PetscInt) { return 1.0 + block % 7; }));
  PetscCall(KSPTCBlocksApply(ksp, e, y));
  PetscCall(VecPointwiseMult(sum, sum, e));
  PetscCall(VecAXPY(y, -1.0, sum));
  PetscCall(VecNorm(y, NORM_2, &difference));
  PetscCall(VecDestroy(&y));
  *all = (PetscBool)(difference <= 7 * 10 * PETSC_MACHINE_EPSILON * D->bs * size);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- when */

/* What the columns in D->d depend on */
static PetscErrorCode KSPTCBlocksKeyOf(KSP ksp, const KSPTCDiagonal *D, KSPTCBlocksKey *key)
{
  PetscFunctionBegin;
  key->bs         = D->bs;
  key->nblocks    = D->varied ? D->shape.nblocks : 0;
  key->pc         = ((PetscObject)D->pc)->id;
  key->P          = ((PetscObject)D->P)->id;
  key->transposed = ksp->transpose_solve;
  key->made_for   = PetscTCPCState(D->pc);
  PetscCall(PetscObjectStateGet((PetscObject)D->P, &key->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is D->d, or that the preconditioner is not these blocks, what it would be now, for vectors like v? */
static PetscErrorCode KSPTCBlocksKnown(const KSPTCDiagonal *D, const KSPTCBlocksKey *a, Vec v, PetscBool *known)
{
  const KSPTCBlocksKey *b = &D->key;

  PetscFunctionBegin;
  *known = (PetscBool)(a->bs == b->bs && a->nblocks == b->nblocks && a->pc == b->pc && a->P == b->P && a->transposed == b->transposed && a->made_for == b->made_for && a->state == b->state);
  if (*known && a->nblocks) PetscCall(PetscArraycmp(D->sizes, D->shape.sizes, a->nblocks, known));
  if (*known && D->blocks && D->d) PetscCall(PetscObjectTypeCompare((PetscObject)D->d, ((PetscObject)v)->type_name, known));
  else if (D->blocks) *known = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCBlocksRemember(KSPTCDiagonal *D, const KSPTCBlocksKey *key)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(D->sizes));
  PetscCall(PetscMalloc1(key->nblocks, &D->sizes));
  PetscCall(PetscArraycpy(D->sizes, D->shape.sizes, key->nblocks));
  D->key = *key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D->d <- the columns of the blocks, one behind the other, unless they are there; NULL if they are not all of the preconditioner, which has been set up. v: a vector of the solve */
PetscErrorCode KSPTCBlocksTake(KSP ksp, Vec v, KSPTCDiagonal *D)
{
  KSPTCBlocksKey key;
  PetscReal      size;
  PetscBool      known;
  Vec            e, sum;

  PetscFunctionBegin;
  PetscCall(KSPTCBlocksKeyOf(ksp, D, &key));
  PetscCall(KSPTCBlocksKnown(D, &key, v, &known));
  PetscCall(KSPTCAll(ksp, &known));
  if (known) PetscFunctionReturn(PETSC_SUCCESS);
  D->key.bs = 0; /* should anything fail */
  PetscCall(KSPTCBlocksCreate(D, v));
  PetscCall(VecDuplicate(v, &e));
  PetscCall(VecDuplicate(v, &sum));
  PetscCall(KSPTCBlocksFill(ksp, D, e, sum, &size));
  PetscCall(KSPTCBlocksAreAll(ksp, D, e, sum, size, &D->blocks));
  PetscCall(VecDestroy(&e));
  PetscCall(VecDestroy(&sum));
  if (!D->blocks) PetscCall(VecDestroy(&D->d));
  PetscCall(KSPTCBlocksRemember(D, &key));
  PetscCall(PetscInfo(ksp, "Blocks of up to %" PetscInt_FMT " rows taken by %" PetscInt_FMT " applications of the preconditioner, %s\n", D->bs, D->bs + 1, D->blocks ? "which is part of the steps" : "which is more than these"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
