/* Registration: what PETSc's dynamic loader calls, and what a program that links the library calls. */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/
#include <../src/ksp/engine/kspengine.h>

PetscTCCounts petsctc_counts;

static PetscBool initialized = PETSC_FALSE, summary = PETSC_FALSE;
static PetscBool registered = PETSC_FALSE; /* since PetscInitialize(): the types live until PetscFinalize(), whoever finalizes this library before */

/*
   The library reads PETSc's private structures, so it works only with the PETSc that it was compiled for. The version and the sizes of the library in this process are asked by
   function call; the macros are those of compile time.
*/
static PetscErrorCode PetscTCCheckPETSc(void)
{
  PetscInt      major, minor, subminor;
  PetscDataType scalar, integer;
  PetscBool     foundscalar, foundinteger;
  size_t        intsize = 0;

  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  PetscCheck(major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_SELF, PETSC_ERR_LIB,
             "libpetsctc was built for PETSc %d.%d but this program runs PETSc %" PetscInt_FMT ".%" PetscInt_FMT ".%" PetscInt_FMT ". Build libpetsctc against this PETSc (set PETSC_DIR and PETSC_ARCH)", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR,
             major, minor, subminor);
  PetscCall(PetscDataTypeFromString("scalar", &scalar, &foundscalar));
  PetscCheck(foundscalar && scalar == PETSC_SCALAR, PETSC_COMM_SELF, PETSC_ERR_LIB, "libpetsctc was built for scalars of type %s but this PETSc has %s. Build libpetsctc against this PETSc (set PETSC_DIR and PETSC_ARCH)", PetscDataTypes[PETSC_SCALAR],
             foundscalar ? PetscDataTypes[scalar] : "unknown");
  PetscCall(PetscDataTypeFromString("int", &integer, &foundinteger));
  if (foundinteger) PetscCall(PetscDataTypeGetSize(integer, &intsize));
  PetscCheck(intsize == sizeof(PetscInt), PETSC_COMM_SELF, PETSC_ERR_LIB, "libpetsctc was built for indices of %d bits but this PETSc has %d. Build libpetsctc against this PETSc (set PETSC_DIR and PETSC_ARCH)", (int)(8 * sizeof(PetscInt)),
             (int)(8 * intsize));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PetscFinalize() calls: PETSc's lists are gone, and the next PetscInitialize() may find other parents */
static PetscErrorCode PetscTCFinalizeSession(void)
{
  PetscFunctionBegin;
  PetscCall(PetscTCFinalize());
  PetscCall(MatAIJTCReset_Private());
  registered = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscTCRegister(void)
{
  PetscFunctionBegin;
  if (registered) PetscFunctionReturn(PETSC_SUCCESS);
  registered = PETSC_TRUE;
  PetscCall(MatRegister(MATSEQAIJTC, MatCreate_SeqAIJTC));
  PetscCall(MatRegister(MATMPIAIJTC, MatCreate_MPIAIJTC));
  PetscCall(MatRegisterRootName(MATAIJTC, MATSEQAIJTC, MATMPIAIJTC));
  PetscCall(MatSeqAIJRegister(MATSEQAIJTC, MatConvert_SeqAIJ_SeqAIJTC));
  PetscCall(MatAIJTCRegisterFactors());
  PetscCall(KSPRegister(KSPTCCG, KSPCreate_TCCG));
  PetscCall(KSPRegister(KSPTCBCGS, KSPCreate_TCBCGS));
  PetscCall(KSPRegister(KSPTCCR, KSPCreate_TCCR));
  PetscCall(PetscLogEventRegister("MatAIJTCBuild", MAT_CLASSID, &MAT_AIJTCBuild));
  PetscCall(PetscLogEventRegister("MatAIJTCRefresh", MAT_CLASSID, &MAT_AIJTCRefresh));
  PetscCall(PetscLogEventRegister("KSPTCForm", KSP_CLASSID, &KSP_TCForm));
  PetscCall(PetscLogEventRegister("KSPTCLoad", KSP_CLASSID, &KSP_TCLoad));
  PetscCall(PetscRegisterFinalize(PetscTCFinalizeSession));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PetscTCInitialize - Makes the types `MATAIJTC`, `KSPTCCG`, `KSPTCBCGS` and `KSPTCCR` known to PETSc

  Not Collective

  Options Database Key:
. -petsctc_summary - print at the end what the library did: products, layouts, Krylov solves and how they ran, and what stood against a faster way

  Level: beginner

  Notes:
  Call it after `PetscInitialize()`. A program started with `-dll_append /abs/path/libpetsctc.so` needs no call. Calling it again does nothing; `PetscFinalize()` undoes it.

  Errors if the library was built for another version, scalar type or index size of PETSc than the one in this process.

.seealso: `PetscTCFinalize()`, `PetscTCInitialized()`, `MATAIJTC`, `KSPTCCG`, `KSPTCBCGS`, `KSPTCCR`
@*/
PetscErrorCode PetscTCInitialize(void)
{
  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTCCheckPETSc());
  initialized = PETSC_TRUE;
  summary     = PETSC_FALSE;
  PetscCall(PetscMemzero(&petsctc_counts, sizeof(petsctc_counts)));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-petsctc_summary", &summary, NULL));
  PetscCall(PetscTCRegister());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first line is for scripts, the others say the same and more in words. Counts are those of the first process */
static PetscErrorCode PetscTCPrintSummary(void)
{
  const PetscTCCounts *n = &petsctc_counts;
  const MPI_Comm       c = PETSC_COMM_WORLD;

  PetscFunctionBegin;
  PetscCall(PetscPrintf(c, "PETSc-TC: mult %" PetscInt64_FMT " mult_parent %" PetscInt64_FMT " builds %" PetscInt64_FMT " refreshes %" PetscInt64_FMT " fused %" PetscInt64_FMT " fallback %" PetscInt64_FMT "\n", n->mult, n->mult_parent, n->builds,
                        n->refreshes, n->fused, n->fallback));
  if (n->mult + n->mult_parent) PetscCall(PetscPrintf(c, "PETSc-TC: products: with a layout %" PetscInt64_FMT ", by the parent type %" PetscInt64_FMT "\n", n->mult, n->mult_parent));
  if (n->builds) PetscCall(PetscPrintf(c, "PETSc-TC: layouts: built %" PetscInt64_FMT ", values refreshed %" PetscInt64_FMT "; the largest %.2f MB, on the %s\n", n->builds, n->refreshes, 1e-6 * (double)n->bytes, n->cuda ? "GPU" : "host"));
  if (n->fused + n->fallback)
    PetscCall(PetscPrintf(c,
                          "PETSc-TC: solves: on the chip %" PetscInt64_FMT ", from the layout %" PetscInt64_FMT ", by steps %" PetscInt64_FMT ", in blocks of columns %" PetscInt64_FMT ", by PETSc's own method %" PetscInt64_FMT
                          "; iterations %" PetscInt64_FMT "\n",
                          n->chip, n->streamed, n->fused - n->chip - n->streamed - n->columns, n->columns, n->fallback, n->iterations));
  if (n->why[0]) PetscCall(PetscPrintf(c, "PETSc-TC: not faster because (last): %s\n", n->why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PetscTCFinalize - Ends the use of the library and prints the summary if it was asked for; called by `PetscFinalize()`

  Not Collective

  Level: developer

  Note:
  The types stay registered, and matrices and solvers of them stay usable, until `PetscFinalize()`. Calling it again does nothing.

.seealso: `PetscTCInitialize()`
@*/
PetscErrorCode PetscTCFinalize(void)
{
  PetscFunctionBegin;
  if (!initialized) PetscFunctionReturn(PETSC_SUCCESS);
  if (summary) PetscCall(PetscTCPrintSummary());
  initialized = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PetscTCInitialized - Tells whether `PetscTCInitialize()` was called since `PetscInitialize()`

  Not Collective

  Output Parameter:
. flg - `PETSC_TRUE` if so

  Level: intermediate

.seealso: `PetscTCInitialize()`
@*/
PetscErrorCode PetscTCInitialized(PetscBool *flg)
{
  PetscFunctionBegin;
  PetscAssertPointer(flg, 1);
  *flg = initialized;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Found by name by PETSc's -dll_append (and -dll_prepend) in libpetsctc.so. Runs before PetscInitialize() is over: it may register, no more. */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petsctc(void);
PetscErrorCode              PetscDLLibraryRegister_petsctc(void)
{
  PetscFunctionBegin;
  PetscCall(PetscTCInitialize());
  PetscFunctionReturn(PETSC_SUCCESS);
}
