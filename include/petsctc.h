/*
   PETSc-TC: Tensor Core Krylov solvers for PETSc. The only public header.

   A program that only wants to use the types needs none of this: `-dll_append /abs/path/libpetsctc.so -mat_type aijtc -ksp_type tccg`.
*/
#pragma once

#include <petscksp.h>

/* MANSEC = Sys */

#define PETSCTC_VERSION_MAJOR 0
#define PETSCTC_VERSION_MINOR 1
#define PETSCTC_VERSION_PATCH 0

/* Manual pages: MATAIJTC in src/mat/aijtc/aijtc.cxx, KSPTCCG in src/ksp/tccg/tccg.cxx, KSPTCBCGS in src/ksp/tcbcgs/tcbcgs.cxx */
#define MATAIJTC    "aijtc"
#define MATSEQAIJTC "seqaijtc"
#define MATMPIAIJTC "mpiaijtc"
#define KSPTCCG     "tccg"
#define KSPTCBCGS   "tcbcgs"

/*E
   MatAIJTCMMAType - the arithmetic units that multiply the tiles of a `MATAIJTC`

   Values:
+  `MAT_AIJTC_MMA_TENSOR` - FP64 Tensor Cores (`mma.m8n8k4`), the default where the device has them
-  `MAT_AIJTC_MMA_CORE`   - CUDA cores, the same tiles

   Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCSetMMA()`
E*/
typedef enum {
  MAT_AIJTC_MMA_TENSOR,
  MAT_AIJTC_MMA_CORE
} MatAIJTCMMAType;
PETSC_EXTERN const char *const MatAIJTCMMATypes[];

/*E
   MatAIJTCBackendType - where a `MATAIJTC` keeps its layout and computes

   Values:
+  `MAT_AIJTC_BACKEND_AUTO` - on the GPU when PETSc has CUDA and a device is usable on every process of the matrix, else on the host
.  `MAT_AIJTC_BACKEND_CUDA` - on the GPU; an error where there is none
-  `MAT_AIJTC_BACKEND_HOST` - on the host

   Level: intermediate

.seealso: `MATAIJTC`
E*/
typedef enum {
  MAT_AIJTC_BACKEND_AUTO,
  MAT_AIJTC_BACKEND_CUDA,
  MAT_AIJTC_BACKEND_HOST
} MatAIJTCBackendType;
PETSC_EXTERN const char *const MatAIJTCBackendTypes[];

/*S
   MatAIJTCInfo - what the layout of a sequential `MATAIJTC` holds, see `MatAIJTCGetInfo()`

   Level: advanced

.seealso: `MATAIJTC`, `MatAIJTCGetInfo()`
S*/
typedef struct {
  PetscInt   rows_long, rows_medium, rows_short, rows_empty; /* rows in each class */
  PetscCount slots;                                          /* values stored, padding included */
  PetscCount padding;                                        /* of them, those that stand for no matrix entry */
  PetscCount bytes;                                          /* memory of the layout: values, columns, row map, pointers, permutation */
  PetscInt   builds;                                         /* how often the layout was built from a pattern */
  PetscInt   refreshes;                                      /* how often only its values were gathered again */
  PetscBool  cuda;                                           /* it lives on the GPU */
} MatAIJTCInfo;

PETSC_EXTERN PetscErrorCode PetscTCInitialize(void);
PETSC_EXTERN PetscErrorCode PetscTCFinalize(void);
PETSC_EXTERN PetscErrorCode PetscTCInitialized(PetscBool *);
PETSC_EXTERN PetscErrorCode PetscTCDeviceUsable(MPI_Comm, PetscBool *);

PETSC_EXTERN PetscErrorCode MatCreate_SeqAIJTC(Mat);
PETSC_EXTERN PetscErrorCode MatCreate_MPIAIJTC(Mat);
PETSC_EXTERN PetscErrorCode MatAIJTCSetMMA(Mat, MatAIJTCMMAType);
PETSC_EXTERN PetscErrorCode MatAIJTCGetMMA(Mat, MatAIJTCMMAType *);
PETSC_EXTERN PetscErrorCode MatAIJTCSetRowClasses(Mat, PetscInt, PetscInt, PetscInt);
PETSC_EXTERN PetscErrorCode MatAIJTCGetRowClasses(Mat, PetscInt *, PetscInt *, PetscInt *);
PETSC_EXTERN PetscErrorCode MatAIJTCSetCheck(Mat, PetscBool, PetscReal);
PETSC_EXTERN PetscErrorCode MatAIJTCGetInfo(Mat, MatAIJTCInfo *);

PETSC_EXTERN PetscErrorCode KSPCreate_TCCG(KSP);
PETSC_EXTERN PetscErrorCode KSPCreate_TCBCGS(KSP);
PETSC_EXTERN PetscErrorCode KSPTCGetSolveCounts(KSP, PetscInt *, PetscInt *);
