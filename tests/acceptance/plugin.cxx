/*
   The test plug-in of folders.sh, loaded behind the library: -dll_append LIB,THIS

   It counts how often the library's types were made, and prints that in the form of the library's summary: a program into which -mat_seqaij_type never let them shows nothing of them.
   With -acceptance_mpiaij it registers a creator under PETSc's name "mpiaij" that makes MATMPIAIJTC, because PETSc has no option like -mat_seqaij_type for parallel matrices.
*/
#include <petscmat.h>
#include <petscviewer.h>

static PetscErrorCode (*convert_seq)(Mat, MatType, MatReuse, Mat *); /* what the library registered for -mat_seqaij_type */
static PetscErrorCode (*create_seq)(Mat), (*create_mpi)(Mat), (*create_parent)(Mat);
static PetscInt64 matrices[2]; /* sequential, parallel */
static int        inside = 0;

static PetscErrorCode Count(Mat A)
{
  PetscBool seq, mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "seqaijtc", &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "mpiaijtc", &mpi));
  matrices[0] += seq;
  matrices[1] += mpi;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountedConvertSeq(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscFunctionBegin;
  PetscCall((*convert_seq)(A, type, reuse, B));
  PetscCall(Count(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountedCreateSeq(Mat A)
{
  PetscFunctionBegin;
  PetscCall((*create_seq)(A));
  PetscCall(Count(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountedCreateMPI(Mat A)
{
  PetscFunctionBegin;
  PetscCall((*create_mpi)(A));
  PetscCall(Count(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* While the parent's code works for the library it must make plain parents. The library then leaves a SeqAIJ that PETSc makes what it is: that tells */
static PetscErrorCode PlainWanted(Mat A, PetscBool *plain)
{
  const char   *prefix;
  MatFactorType factor;
  Mat           P;
  PetscBool     same;

  PetscFunctionBegin;
  *plain = PETSC_TRUE;
  PetscCall(MatGetFactorType(A, &factor));
  if (inside || factor != MAT_FACTOR_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOptionsPrefix(A, &prefix));
  PetscCall(PetscStrcmp(prefix, "petsctc_parent_", &same)); /* what the library captures its parent's operations from */
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &P));
  PetscCall(MatSetOptionsPrefix(P, "petsctc_parent_"));
  PetscCall(MatSetType(P, MATSEQAIJ));
  PetscCall((*convert_seq)(P, "seqaijtc", MAT_INPLACE_MATRIX, &P));
  PetscCall(PetscObjectTypeCompare((PetscObject)P, MATSEQAIJ, plain));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateParallel(Mat A)
{
  PetscBool      plain;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PlainWanted(A, &plain));
  if (plain) {
    PetscCall((*create_parent)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  inside++;
  ierr = (*create_mpi)(A); /* asks for an mpiaij, which must be PETSc's */
  inside--;
  PetscCall(ierr);
  PetscCall(Count(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Summary(void)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "PETSc-TC: matrices %" PetscInt64_FMT " parallel %" PetscInt64_FMT "\n", matrices[0], matrices[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Found by name by PETSc's -dll_append in libpetsctctests.so */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petsctctests(void);
PetscErrorCode              PetscDLLibraryRegister_petsctctests(void)
{
  PetscBool mpiaij = PETSC_FALSE;

  PetscFunctionBegin;
  matrices[0] = matrices[1] = 0;
  PetscCall(PetscFunctionListFind(MatSeqAIJList, "seqaijtc", &convert_seq));
  PetscCall(PetscFunctionListFind(MatList, "seqaijtc", &create_seq));
  PetscCall(PetscFunctionListFind(MatList, "mpiaijtc", &create_mpi));
  PetscCall(PetscFunctionListFind(MatList, MATMPIAIJ, &create_parent));
  PetscCheck(convert_seq && create_seq && create_mpi && create_parent, PETSC_COMM_SELF, PETSC_ERR_LIB, "The library must be loaded before this: -dll_append LIB,THIS");
  PetscCall(MatSeqAIJRegister("seqaijtc", CountedConvertSeq));
  PetscCall(MatRegister("seqaijtc", CountedCreateSeq));
  PetscCall(MatRegister("mpiaijtc", CountedCreateMPI));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-acceptance_mpiaij", &mpiaij, NULL));
  if (mpiaij) PetscCall(MatRegister(MATMPIAIJ, CreateParallel));
  PetscCall(PetscRegisterFinalize(Summary));
  PetscFunctionReturn(PETSC_SUCCESS);
}
