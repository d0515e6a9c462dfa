static char help[] = "Every way to assemble a MATAIJTC: preallocated, by hash, by CSR, by blocks, by coordinates with repeated entries, from a file.\n\n";

#include "check.h"
#include <petsctc.h>

enum {
  N = 60
};

static PetscInt Width(PetscInt row, PetscInt)
{
  return 1 + (row * 3) % 9;
}

static PetscErrorCode Create(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, N, N));
  if (type) PetscCall(MatSetType(*A, type));
  else PetscCall(MatSetAskedType(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A, MatAssemblyType type)
{
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, type));
  PetscCall(MatAssemblyEnd(A, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- by rows. Every process adds to rows of all processes, in two rounds with a flush between */

static PetscErrorCode AddEverywhere(Mat A)
{
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int round = 0; round < 2; round++) {
    for (PetscInt row = rank; row < N; row += size) {
      for (PetscInt k = 0; k < Width(row, N); k++) PetscCall(MatSetValue(A, row, Column(row, k + round, N), Entry(row, k + round), ADD_VALUES));
    }
    PetscCall(Assemble(A, round ? MAT_FINAL_ASSEMBLY : MAT_FLUSH_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ByHash(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetUp(A));
  PetscCall(AddEverywhere(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocated(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(A, 12, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 12, NULL, 12, NULL));
  PetscCall(AddEverywhere(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows are moved while values are set */
static PetscErrorCode PreallocatedTooLittle(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(A, 2, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 2, NULL, 1, NULL));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(AddEverywhere(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ByCSR(Mat A)
{
  PetscInt    *i, *j, start, end, nz = 0;
  PetscScalar *v;
  PetscLayout  rows;

  PetscFunctionBeginUser;
  PetscCall(MatGetLayouts(A, &rows, NULL));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutGetRange(rows, &start, &end));
  PetscCall(PetscMalloc3(end - start + 1, &i, 9 * (end - start), &j, 9 * (end - start), &v));
  i[0] = 0;
  for (PetscInt row = start; row < end; row++) {
    for (PetscInt k = 0; k < Width(row, N); k++) j[nz++] = Column(row, k, N);
    i[row - start + 1] = nz;
    PetscCall(PetscSortInt(nz - i[row - start], j + i[row - start]));
    for (PetscInt k = i[row - start]; k < nz; k++) v[k] = Entry(row, j[k]);
  }
  PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, v));
  PetscCall(MatMPIAIJSetPreallocationCSR(A, i, j, v));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddBlocks(Mat A)
{
  PetscInt    start, end;
  PetscScalar v[9];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt b = start / 3; b < end / 3; b++) {
    for (PetscInt k = 0; k < 4; k++) {
      const PetscInt c = (b + 5 * k) % (N / 3);

      for (PetscInt e = 0; e < 9; e++) v[e] = Entry(b + e, c);
      PetscCall(MatSetValuesBlocked(A, 1, &b, 1, &c, v, ADD_VALUES));
    }
  }
  PetscCall(Assemble(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ByBlocks(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetBlockSize(A, 3));
  PetscCall(MatSetUp(A));
  PetscCall(AddBlocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*first)(Mat), (*again)(Mat);
} ways[] = {
  {"by hash",                 ByHash,                AddEverywhere},
  {"preallocated",            Preallocated,          AddEverywhere},
  {"preallocated too little", PreallocatedTooLittle, AddEverywhere},
  {"by CSR",                  ByCSR,                 ByCSR        },
  {"by blocks",               ByBlocks,              AddBlocks    }
};

static PetscErrorCode TestWay(int k)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(Create(NULL, &A));
  PetscCall(Create(MATAIJ, &R));
  PetscCall((*ways[k].first)(A));
  PetscCall((*ways[k].first)(R));
  PetscCall(CheckMult(A, R, ways[k].name));
  PetscCall(CheckValues(A, R, 0.0, ways[k].name));
  PetscCall((*ways[k].again)(A));
  PetscCall((*ways[k].again)(R));
  PetscCall(CheckMult(A, R, "again"));
  PetscCall(MatZeroEntries(A));
  PetscCall(MatZeroEntries(R));
  PetscCall((*ways[k].again)(A));
  PetscCall((*ways[k].again)(R));
  PetscCall(CheckMult(A, R, "again after zeroing"));
  PetscCall(CheckValues(A, R, 0.0, "again after zeroing"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport(ways[k].name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- by coordinates: entries of other processes' rows, repeated ones, ones to be ignored */

enum {
  NCOO = 300
};

static PetscErrorCode Coordinates(PetscInt seed, PetscInt i[], PetscInt j[])
{
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (PetscInt k = 0; k < NCOO; k++) {
    i[k] = k % 50 == 17 ? -1 : (k * 7 + seed + rank) % N;
    j[k] = k % 50 == 18 ? -1 : (k / 3 * 5 + 2 * seed) % N; /* k and k + 60 meet the same row */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetCOO(Mat A, PetscInt seed, InsertMode mode)
{
  PetscScalar v[NCOO];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < NCOO; k++) v[k] = PetscSinReal((PetscReal)(k + 17 * seed));
  PetscCall(MatSetValuesCOO(A, v, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatSetValuesCOO() means, by MatSetValue() */
static PetscErrorCode SetReference(Mat R, const PetscInt i[], const PetscInt j[], PetscInt seed, InsertMode mode)
{
  PetscFunctionBeginUser;
  if (mode == INSERT_VALUES) PetscCall(MatZeroEntries(R));
  for (PetscInt k = 0; k < NCOO; k++)
    if (i[k] >= 0 && j[k] >= 0) PetscCall(MatSetValue(R, i[k], j[k], PetscSinReal((PetscReal)(k + 17 * seed)), ADD_VALUES));
  PetscCall(Assemble(R, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetInfo(Mat A, MatAIJTCInfo *info)
{
  PetscBool ours;

  PetscFunctionBeginUser;
  PetscCall(CheckOurs(A, &ours));
  if (ours) PetscCall(MatAIJTCGetInfo(A, info));
  else {
    PetscMPIInt size;

    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    info->builds    = size > 1 ? 2 : 1;
    info->refreshes = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestCOO(void)
{
  PetscInt     i[NCOO], j[NCOO], icopy[NCOO], jcopy[NCOO];
  Mat          A, R;
  MatAIJTCInfo first, later;

  PetscFunctionBeginUser;
  PetscCall(Create(NULL, &A));
  for (PetscInt round = 0; round < 3; round++) { /* other coordinates in every round */
    PetscCall(Create(MATAIJ, &R));
    PetscCall(MatSetUp(R));
    PetscCall(Coordinates(round, i, j));
    PetscCall(PetscArraycpy(icopy, i, NCOO));
    PetscCall(PetscArraycpy(jcopy, j, NCOO));
    PetscCall(MatSetPreallocationCOO(A, NCOO, icopy, jcopy));
    PetscCall(SetCOO(A, 1, INSERT_VALUES));
    PetscCall(SetReference(R, i, j, 1, ADD_VALUES)); /* still empty */
    PetscCall(CheckMult(A, R, "coordinates"));
    PetscCall(CheckValues(A, R, 4 * PETSC_MACHINE_EPSILON, "coordinates"));
    PetscCall(GetInfo(A, &first));
    PetscCall(SetCOO(A, 2, ADD_VALUES));
    PetscCall(SetReference(R, i, j, 2, ADD_VALUES));
    PetscCall(CheckMult(A, R, "coordinates, added"));
    PetscCall(SetCOO(A, 3, INSERT_VALUES));
    PetscCall(SetReference(R, i, j, 3, INSERT_VALUES));
    PetscCall(CheckMult(A, R, "coordinates, inserted"));
    PetscCall(CheckValues(A, R, 4 * PETSC_MACHINE_EPSILON, "coordinates, inserted"));
    PetscCall(GetInfo(A, &later));
    PetscCall(Check((PetscBool)(first.builds == later.builds && first.builds > 0), "built anew for values in the same coordinates"));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(CheckReport("by coordinates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- from a file */

static PetscErrorCode TestFile(void)
{
  Mat         A, R, L;
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(Create(NULL, &A));
  PetscCall(Create(MATAIJ, &R));
  PetscCall(ByHash(A));
  PetscCall(ByHash(R));
  PetscCall(CheckMult(A, R, "before"));
  PetscCall(MatScale(A, 0.5)); /* on a GPU the newest values are there */
  PetscCall(MatScale(R, 0.5));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, "ex4.petsc", FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(A, viewer));
  PetscCall(MatView(R, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, "ex4.petsc", FILE_MODE_READ, &viewer));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &L));
    PetscCall(MatSetFromOptions(L));
    PetscCall(MatLoad(L, viewer));
    PetscCall(CheckSameType(A, L, "loaded"));
    PetscCall(CheckMult(L, R, "loaded"));
    PetscCall(CheckValues(L, R, 0.0, "loaded"));
    PetscCall(MatDestroy(&L));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, "ex4.petsc", FILE_MODE_READ, &viewer));
  PetscCall(MatZeroEntries(A));
  PetscCall(MatLoad(A, viewer)); /* into one that has a layout */
  PetscCall(CheckMult(A, R, "loaded again"));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(CheckReport("from a file"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(ways); k++) PetscCall(TestWay(k));
  PetscCall(TestCOO());
  PetscCall(TestFile());
  PetscCall(PetscFinalize());
  return AllFailures ? 1 : 0;
}

/*TEST

   testset:
      args: -dll_append ${PETSCTC_LIB} -malloc_debug -malloc_dump -checkfunctionlist
      output_file: output/ex4.out
      test:
         suffix: host
         nsize: {{1 4}}
         args: -mat_type {{aij aijtc}}
      test:
         suffix: cuda
         requires: cuda
         nsize: {{1 2 4}}
         args: -mat_type aijtc -vec_type cuda -use_gpu_aware_mpi 0

TEST*/
