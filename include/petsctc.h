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

/* Manual pages: MATAIJTC in src/mat/aijtc/aijtc.cxx, KSPTCCG in src/ksp/tccg/tccg.cxx, KSPTCBCGS in src/ksp/tcbcgs/tcbcgs.cxx, KSPTCCR in src/ksp/tccr/tccr.cxx */
#define MATAIJTC    "aijtc"
#define MATSEQAIJTC "seqaijtc"
#define MATMPIAIJTC "mpiaijtc"
#define KSPTCCG     "tccg"
#define KSPTCCR     "tccr"
#define KSPTCBCGS   "tcbcgs"

/*E
   MatAIJTCMMAType - the arithmetic units that multiply the tiles and the long rows of a `MATAIJTC`

   Values:
+  `MAT_AIJTC_MMA_TENSOR` - FP64 Tensor Cores (`mma.m8n8k4`), the default where the device has them
-  `MAT_AIJTC_MMA_CORE`   - CUDA cores, the same layout

   Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCSetMMA()`
E*/
typedef enum {
  MAT_AIJTC_MMA_TENSOR,
  MAT_AIJTC_MMA_CORE
} MatAIJTCMMAType;
PETSC_EXTERN const char *const MatAIJTCMMATypes[];

/*E
   MatAIJTCCompressType - what the layout of a `MATAIJTC` compresses, without loss

   Values:
+  `MAT_AIJTC_COMPRESS_AUTO`    - pattern and values
.  `MAT_AIJTC_COMPRESS_OFF`     - nothing: columns of 4 bytes, values of 8
.  `MAT_AIJTC_COMPRESS_PATTERN` - the pattern; values are stored as they are
-  `MAT_AIJTC_COMPRESS_VALUE`   - the values; columns take 4 bytes

   Level: intermediate

.seealso: `MATAIJTC`, `MatAIJTCSetCompress()`
E*/
typedef enum {
  MAT_AIJTC_COMPRESS_AUTO,
  MAT_AIJTC_COMPRESS_OFF,
  MAT_AIJTC_COMPRESS_PATTERN,
  MAT_AIJTC_COMPRESS_VALUE
} MatAIJTCCompressType;
PETSC_EXTERN const char *const MatAIJTCCompressTypes[];

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
   MatAIJTCInfo - what the layout of a `MATAIJTC` holds, see `MatAIJTCGetInfo()`

   Level: advanced

   Notes:
   The matrix is cut into slices, each multiplied by one warp. A slice stores its columns as offsets of 0 (none), 1, 2 or 4 bytes, and its values as constants of whole slots, as
   indices into a dictionary, as floats or as doubles, whichever holds them exactly; slices without nonzeros are in no form's count.

   An entry that does not exist is never multiplied by a number of the vector. Slices that are nearly full, and those of gathered layouts that are mostly so, store zeros for the entries that rows lack: `padding`.

.seealso: `MATAIJTC`, `MatAIJTCGetInfo()`
S*/
typedef struct {
  PetscCount rows_long, rows_medium, rows_short, rows_empty;                  /* rows in each class */
  PetscCount slices_long, slices_tile, slices_row;                            /* pieces of long rows; of tiles; of a row (or several) a lane */
  PetscCount slices_consecutive;                                              /* of slices_row, those of consecutive rows */
  PetscCount offsets_none, offsets_1, offsets_2, offsets_4;                   /* slices by the bytes of a column offset */
  PetscCount values_constant, values_dictionary, values_float, values_double; /* slices by the form of their values */
  PetscCount entries;                                                         /* nonzeros of the matrix */
  PetscCount padding;                                                         /* values stored for entries that do not exist */
  PetscCount bytes, bytes_pattern, bytes_values;                              /* memory of the layout; of it columns and masks; values */
  PetscCount bytes_read;                                                      /* of bytes, what a product reads: all but the row offsets kept for new values */
  PetscReal  bytes_per_nonzero;                                               /* bytes_read / entries */
  PetscInt   long_row, short_row, sort_window, rows_per_lane, block_size;     /* what was set or chosen; MPI type: for the first block that has nonzeros, the diagonal one */
  PetscInt   gather_slices;                                                   /* slices of a block whose entries of x are gathered together, 0: none */
  PetscCount gathered_columns;                                                /* of all blocks together: what a product reads of x */
  PetscBool  common_offsets;                                                  /* do rows share their offsets, as on grids? By that what is not set was chosen; MPI type: likewise */
  PetscBool  near_columns;                                                    /* do neighbouring rows share parts of x, so that nothing is gathered? MPI type: likewise */
  PetscInt   builds;                                                          /* how often the layout was built */
  PetscInt   refreshes;                                                       /* how often only its values were stored again */
  PetscBool  values_vary;                                                     /* new values did not fit the compressed ones: values are stored as they are since */
  PetscBool  cuda;                                                            /* it lives on the GPU */
} MatAIJTCInfo;

PETSC_EXTERN PetscErrorCode PetscTCInitialize(void);
PETSC_EXTERN PetscErrorCode PetscTCFinalize(void);
PETSC_EXTERN PetscErrorCode PetscTCInitialized(PetscBool *);
PETSC_EXTERN PetscErrorCode PetscTCDeviceUsable(MPI_Comm, PetscBool *);

PETSC_EXTERN PetscErrorCode MatCreate_SeqAIJTC(Mat);
PETSC_EXTERN PetscErrorCode MatCreate_MPIAIJTC(Mat);
PETSC_EXTERN PetscErrorCode MatAIJTCSetMMA(Mat, MatAIJTCMMAType);
PETSC_EXTERN PetscErrorCode MatAIJTCGetMMA(Mat, MatAIJTCMMAType *);
PETSC_EXTERN PetscErrorCode MatAIJTCSetCompress(Mat, MatAIJTCCompressType);
PETSC_EXTERN PetscErrorCode MatAIJTCGetCompress(Mat, MatAIJTCCompressType *);
PETSC_EXTERN PetscErrorCode MatAIJTCSetKeepCSR(Mat, PetscBool);
PETSC_EXTERN PetscErrorCode MatAIJTCGetKeepCSR(Mat, PetscBool *);
PETSC_EXTERN PetscErrorCode MatAIJTCSetParams(Mat, const char[]);
PETSC_EXTERN PetscErrorCode MatAIJTCGetParams(Mat, const char *[]);
PETSC_EXTERN PetscErrorCode MatAIJTCSetCheck(Mat, PetscBool, PetscReal);
PETSC_EXTERN PetscErrorCode MatAIJTCMultDot(Mat, Vec, Vec, Vec, PetscScalar *, PetscReal *);
PETSC_EXTERN PetscErrorCode MatAIJTCGetInfo(Mat, MatAIJTCInfo *);

PETSC_EXTERN PetscErrorCode KSPCreate_TCCG(KSP);
PETSC_EXTERN PetscErrorCode KSPCreate_TCCR(KSP);
PETSC_EXTERN PetscErrorCode KSPCreate_TCBCGS(KSP);
PETSC_EXTERN PetscErrorCode KSPTCGetSolveCounts(KSP, PetscInt *, PetscInt *);
PETSC_EXTERN PetscErrorCode KSPTCSetMonitorsNormOnly(KSP, PetscBool);
PETSC_EXTERN PetscErrorCode KSPTCGetMonitorsNormOnly(KSP, PetscBool *);
