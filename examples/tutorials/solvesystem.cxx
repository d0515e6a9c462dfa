/* The system of the program solve: its matrix, from a file or made, and its right-hand side. */
#include "solve.h"

/* By its first bytes; whatever is no PETSc binary file, the Matrix Market reader takes or refuses */
static PetscErrorCode IsPetscBinary(const char file[], PetscInt class_id, PetscBool *binary)
{
  unsigned char bytes[sizeof(PetscInt)] = {0}; /* PETSc's files have integers of its size, the highest byte first */
  uint64_t      found                   = 0;
  PetscMPIInt   rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    FILE *stream = fopen(file, "rb");

    if (stream) {
      if (fread(bytes, 1, sizeof(bytes), stream) != sizeof(bytes)) bytes[0] = 255;
      fclose(stream);
    }
  }
  PetscCallMPI(MPI_Bcast(bytes, sizeof(bytes), MPI_UNSIGNED_CHAR, 0, PETSC_COMM_WORLD));
  for (unsigned char byte : bytes) found = found << 8 | byte;
  *binary = found == (uint64_t)class_id ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -1 for each of the six neighbours in the grid, 6 for the point */
PetscErrorCode CreateLaplacian(PetscInt n, System *system)
{
  const PetscInt stride[] = {1, n, n * n};
  PetscInt       first, last;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&system->info, sizeof(system->info)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &system->A));
  PetscCall(MatSetSizes(system->A, PETSC_DECIDE, PETSC_DECIDE, n * n * n, n * n * n));
  PetscCall(MatSetType(system->A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(system->A, 7, nullptr));
  PetscCall(MatMPIAIJSetPreallocation(system->A, 7, nullptr, 6, nullptr));
  PetscCall(MatGetOwnershipRange(system->A, &first, &last));
  for (PetscInt row = first; row < last; row++) {
    PetscInt    cols[7], k = 0;
    PetscScalar values[7];

    for (PetscInt d : stride) {
      const PetscInt at = row / d % n;

      if (at > 0) cols[k] = row - d, values[k++] = -1.0;
      if (at < n - 1) cols[k] = row + d, values[k++] = -1.0;
    }
    cols[k] = row, values[k++] = 6.0;
    PetscCall(MatSetValues(system->A, 1, &row, k, cols, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(system->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(system->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(system->A, MAT_SYMMETRIC, PETSC_TRUE));
  system->symmetric = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode LoadMatrix(const char file[], System *system)
{
  PetscBool binary;
  PetscInt  m, n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&system->info, sizeof(system->info)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &system->A));
  PetscCall(MatSetType(system->A, MATAIJ));
  PetscCall(IsPetscBinary(file, MAT_FILE_CLASSID, &binary));
  if (binary) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(system->A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  } else PetscCall(MatLoadMatrixMarket(system->A, file, &system->info));
  PetscCall(MatGetSize(system->A, &m, &n));
  PetscCheck(m == n, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "%s, line %" PetscInt64_FMT ": the matrix has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns; only a square one can be solved with", file, system->info.size_line, m, n);
  PetscCheck(m > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "%s, line %" PetscInt64_FMT ": the matrix has no rows", file, system->info.size_line);
  if (binary) PetscCall(MatIsSymmetric(system->A, 0.0, &system->symmetric));
  else system->symmetric = system->info.symmetry == MATRIXMARKET_SYMMETRIC ? PETSC_TRUE : PETSC_FALSE;
  if (system->symmetric) PetscCall(MatSetOption(system->A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode LoadRightHandSide(const Settings *s, System *system)
{
  PetscBool binary;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(system->A, nullptr, &system->b));
  if (!s->have_rhs) {
    Vec ones;

    PetscCall(MatCreateVecs(system->A, &ones, nullptr));
    PetscCall(VecSet(ones, 1.0));
    PetscCall(MatMult(system->A, ones, system->b));
    PetscCall(VecDestroy(&ones));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(IsPetscBinary(s->rhs, VEC_FILE_CLASSID, &binary));
  if (binary) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, s->rhs, FILE_MODE_READ, &viewer));
    PetscCall(VecLoad(system->b, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  } else {
    MatrixMarketInfo info;

    PetscCall(VecLoadMatrixMarket(system->b, s->rhs, &info));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PrintFacts(const Settings *s, System *system)
{
  const char *symmetry;
  PetscInt    m, n, begin, end, length, longest = 0;
  PetscReal   norm;
  MatInfo     info;

  PetscFunctionBegin;
  PetscCall(MatGetSize(system->A, &m, &n));
  PetscCall(MatGetInfo(system->A, MAT_GLOBAL_SUM, &info));
  system->rows     = m;
  system->nonzeros = (PetscCount)info.nz_used;
  PetscCall(MatGetOwnershipRange(system->A, &begin, &end));
  for (PetscInt row = begin; row < end; ++row) {
    PetscCall(MatGetRow(system->A, row, &length, nullptr, nullptr));
    longest = PetscMax(longest, length);
    PetscCall(MatRestoreRow(system->A, row, &length, nullptr, nullptr));
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &longest, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCall(MatNorm(system->A, NORM_FROBENIUS, &norm));
  PetscCheck(!PetscIsInfOrNanReal(norm), PETSC_COMM_WORLD, PETSC_ERR_FP, "%s: a value is NaN or infinite, or the values are too large", s->file);
  if (system->info.size_line == 0) symmetry = system->symmetric ? "symmetric (tested)" : "general (tested)";
  else symmetry = system->symmetric ? "symmetric (header)" : system->info.symmetry == MATRIXMARKET_SKEW_SYMMETRIC ? "skew-symmetric (header)" : "general (header)";
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Matrix           %s\n  rows           %" PetscInt_FMT "\n  columns        %" PetscInt_FMT "\n  nonzeros       %.0f\n", BaseName(s->file).c_str(), m, n, (double)info.nz_used));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  longest row    %" PetscInt_FMT "\n  symmetry       %s\n  Frobenius norm %.10g\n", longest, symmetry, (double)norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
