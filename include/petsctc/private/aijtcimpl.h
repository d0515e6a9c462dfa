/*
   MATAIJTC's PETSc side: the classes (parent x seq/mpi), what each matrix carries, the parent scope. Kernels do not include this.

   A matrix of ours *is* its parent (MATSEQAIJCUSPARSE, MATSEQAIJ or the MPI types): `data` and `spptr` are the parent's, most operations are the parent's, and what
   we add lives in one container composed on the matrix. See docs/mat-inheritance.md for the rules behind this header.
*/
#pragma once

#include <petsc/private/matimpl.h>
#include <petsctc.h>
#include <petsctc/private/aijtclayout.h>
#include <petsctc/private/petsctccounts.h>
#include <../src/vec/vecreduce.h>

PETSC_INTERN PetscLogEvent MAT_AIJTCBuild, MAT_AIJTCRefresh;

/* ---- classes: one for each parent, sequential or MPI */
typedef void (*MatAIJTCFn)(void); /* void (*)(void) casts to and from every function type */

typedef struct {
  const char *name;         /* a composed function that PETSc itself composes, and removes, on the parent */
  MatAIJTCFn  mine, theirs; /* theirs: captured from a pristine parent */
} MatAIJTCComposed;

enum {
  AIJTC_MAX_COMPOSED = 6
};

typedef struct {
  const char      *type, *parenttype;
  PetscBool        cuda, mpi;
  PetscBool        set;          /* captured since PetscTCInitialize() */
  struct _MatOps   parent, mine; /* parent: the pristine parent's table; mine: only the slots that we take, the rest NULL */
  MatAIJTCComposed composed[AIJTC_MAX_COMPOSED];
} MatAIJTCClass;

enum {
  AIJTC_SEQ_HOST = 0,
  AIJTC_MPI_HOST,
  AIJTC_SEQ_CUDA,
  AIJTC_MPI_CUDA,
  AIJTC_NCLASSES
};

/* ---- what each matrix carries */
enum { /* MatAIJTCSettings.form */
  MAT_AIJTC_FORM_AUTO,
  MAT_AIJTC_FORM_TILE,
  MAT_AIJTC_FORM_ROW,
  MAT_AIJTC_FORMS
};
PETSC_INTERN const char *const MatAIJTCForms[];

typedef struct {
  MatAIJTCMMAType      mma;
  MatAIJTCCompressType compress;
  PetscBool            keep_csr;
  PetscBool            layout; /* also on the host products are the layout's, whether or not it is faster: -mat_aijtc_backend host */
  PetscBool            check;  /* compare every product with the parent's */
  PetscReal            check_rtol;
  PetscInt             short_row, long_row, window, rows_per_lane, gather, form; /* MatAIJTCSetParams(). PETSC_DECIDE, of form MAT_AIJTC_FORM_AUTO: chosen when the layout is built */
} MatAIJTCSettings;

enum {
  AIJTC_PARAMS_LENGTH = 256 /* room for the text of all of them */
};

enum {
  AIJTC_MAT_DOTS = 4 /* of a product */
};

typedef struct { /* of which matrix, pattern and values something was made (pattern.cxx) */
  Mat              address;
  PetscObjectId    id;
  PetscObjectState nonzerostate, state;
  PetscInt         n; /* columns, and nonzeros */
  PetscCount       nnz;
} MatAIJTCKey;

typedef struct {
  MatAIJTCSettings settings;
  char             params[AIJTC_PARAMS_LENGTH]; /* what MatAIJTCGetParams() told last */
  char            *held;                        /* the type name while the matrix is in parent scope: callers keep pointers to it, from MatGetType() */
  PetscBool        valid;                       /* the layout below stands for the matrix with this key */
  MatAIJTCKey      key;
  MatAIJTCKey      device;      /* for which pattern PETSc's arrays on the device were last found to be right */
  PetscBool        values_vary; /* new values did not fit the compressed ones: built without compressed values until the pattern changes */
  AIJTCLayout      layout;      /* of a matrix without nonzeros: sizes alone */
  PetscInt         builds, refreshes;

  struct { /* what hostchoice.cxx counts */
    PetscObjectId    id;
    PetscObjectState nonzerostate, state; /* of the products below */
    PetscInt64       products, of_values; /* by the parent, of this pattern; since its values have changed */
    PetscBool        built, refused;      /* a layout of this pattern: it is faster, or would not be */
  } host;
  PetscInt released; /* builds + refreshes when MatAIJTCReleaseCSR() last did its work */

  AIJTCDotWork dots;                         /* what MatAIJTCMultDot() works with on a device; it goes with the layout */
  PetscScalar *dot;                          /* [2 AIJTC_MAT_DOTS] in device memory, allocated last: NULL unless dots is complete */
  PetscScalar  host_dot[2 * AIJTC_MAT_DOTS]; /* the sums of the host */
  PetscBool    turn;                         /* which half of them the last product has */

  struct _n_MatAIJTCBorder *border; /* of the MPI type, NULL: not yet looked at */
} Mat_AIJTC;

/* parent.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCSetParentType(Mat, MatType);
PETSC_INTERN PetscErrorCode MatAIJTCGetClass(PetscInt, MatAIJTCClass **);
PETSC_INTERN MatAIJTCClass *MatAIJTCClassOf(Mat);
PETSC_INTERN PetscErrorCode MatAIJTCGetData(Mat, Mat_AIJTC **);
PETSC_INTERN PetscErrorCode MatAIJTCGetBlocks(Mat, Mat[2]);
PETSC_INTERN PetscErrorCode MatAIJTCGetBlocksOrSelf(Mat, Mat[2]);
PETSC_INTERN PetscErrorCode MatAIJTCBrand(Mat, MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCBrandResult(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatAIJTCStrip(Mat);
PETSC_INTERN MatAIJTCFn     MatAIJTCTheirs(Mat, const char[]);
PETSC_INTERN PetscErrorCode MatAIJTCForget(Mat);
PETSC_INTERN PetscErrorCode MatAIJTCReset_Private(void);
PETSC_INTERN PetscErrorCode MatDestroy_AIJTC(Mat);

enum {
  AIJTC_SCOPE_MAX = 4
};
typedef struct {
  Mat            A[AIJTC_SCOPE_MAX];
  MatAIJTCClass *c[AIJTC_SCOPE_MAX];
} MatAIJTCScope;
PETSC_INTERN PetscErrorCode MatAIJTCScopeBegin(MatAIJTCScope *, Mat, Mat, Mat, Mat);
PETSC_INTERN PetscErrorCode MatAIJTCScopeEnd(MatAIJTCScope *);
PETSC_INTERN PetscBool      MatAIJTCInScope(void);

/* Runs a parent's operation while A (and B) are plain parents. The scope is closed on an error too: a failed operation must not leave a matrix without its type */
#define MatAIJTCCallParent(A, B, ...) \
  do { \
    MatAIJTCScope  scope_; \
    PetscErrorCode ierr_parent_; \
    PetscCall(MatAIJTCScopeBegin(&scope_, A, B, NULL, NULL)); \
    ierr_parent_ = __VA_ARGS__; \
    PetscCall(MatAIJTCScopeEnd(&scope_)); \
    PetscCall(ierr_parent_); \
  } while (0)

/* seqaijtc.cxx, seqaijtcops.cxx, mpiaijtc.cxx, lifecycle.cxx: fill a class' table */
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_Seq(MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_SeqOther(MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_SeqTranspose(MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_MPI(MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_Common(MatAIJTCClass *, PetscInt);

/* pattern.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCSamePattern(Mat, const MatAIJTCKey *, PetscBool *);
PETSC_INTERN PetscErrorCode MatAIJTCSetKey(Mat, MatAIJTCKey *);
#if PETSCTC_HAVE_CUDA
PETSC_INTERN PetscErrorCode MatAIJTCGetDevicePattern(Mat, PetscCount, const PetscInt **, const PetscInt **);
#endif

/* layoutlife.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCDestroyLayout(Mat_AIJTC *);
PETSC_INTERN PetscErrorCode MatAIJTCUpdateLayout(Mat, const MatAIJTCClass *, Mat_AIJTC *);
PETSC_INTERN PetscErrorCode MatAIJTCGetLayout(Mat, const AIJTCLayout **);
PETSC_INTERN PetscErrorCode MatAIJTCTooLarge(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatAIJTCGetNonzeros(Mat, PetscCount *);
PETSC_INTERN PetscErrorCode MatAIJTCResolveParams(const Mat_AIJTC *, PetscInt, PetscInt, PetscCount, const AIJTCTraits *, AIJTCParams *);

/* multdot.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCDestroyDots(Mat_AIJTC *);
PETSC_INTERN PetscErrorCode MatAIJTCMultIsPlain(Mat, Vec, Vec, Vec, PetscBool *);
typedef struct { /* a vector that a product makes of two others. scalars has no vectors */
  Vec        base, along;
  AIJTCWAXPY scalars;
} MatAIJTCWAXPY;
PETSC_INTERN PetscErrorCode MatAIJTCMultSums(Mat, PetscBool, const PetscTCAcross *, const MatAIJTCWAXPY *, Vec, Vec, Vec, Vec, const PetscScalar **);

/* border.cxx */
#if PETSCTC_HAVE_CUDA
PETSC_INTERN PetscErrorCode MatAIJTCDestroyBorder(Mat_AIJTC *);
PETSC_INTERN PetscErrorCode MatMult_MPIAIJTC(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatAIJTCMakesVector(Mat, Vec, Vec, PetscBool *); /* multdot.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCMultSums_MPI(Mat, const PetscTCAcross *, const MatAIJTCWAXPY *, Vec, Vec, Vec, Vec, const PetscScalar **);
#endif

/* hostchoice.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCHostPays(Mat, const MatAIJTCClass *, Mat_AIJTC *, PetscBool *);

/* csr.cxx */
typedef PetscErrorCode (*MatAIJTCUseCSR)(PetscInt m, PetscCount nnz, const PetscInt i[], const PetscInt j[], const PetscScalar a[], void *ctx);
PETSC_INTERN PetscErrorCode MatAIJTCWithCSR(Mat, MatAIJTCUseCSR, void *ctx);
PETSC_INTERN PetscErrorCode MatAIJTCWithCSR_Host(Mat, MatAIJTCUseCSR, void *ctx);

/* seqaijtc.cxx, check.cxx */
typedef enum {
  AIJTC_WITH_LAYOUT, /* our kernels */
  AIJTC_WITH_PARENT, /* the parent's kernels, on the parent's device */
  AIJTC_WITH_HOST    /* the host parent's kernels: AIJCUSPARSE writes the device copy of a host vector, which nobody reads */
} MatAIJTCPath;
PETSC_INTERN PetscErrorCode MatAIJTCParentMult(Mat, const MatAIJTCClass *, MatAIJTCPath, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatAIJTCChoosePath(Mat, const MatAIJTCClass *, Vec, Vec, Vec, MatAIJTCPath *);
PETSC_INTERN PetscErrorCode MatAIJTCParentOps(Mat, const MatAIJTCClass *, MatAIJTCPath, const struct _MatOps **);
typedef PetscErrorCode (*MatAIJTCLayoutProduct)(Mat_AIJTC *, Vec, Vec, Vec);
typedef PetscErrorCode (*MatAIJTCParentProduct)(Mat, const MatAIJTCClass *, MatAIJTCPath, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatAIJTCMultAndCheck(Mat, const MatAIJTCClass *, Mat_AIJTC *, Vec, Vec, Vec, MatAIJTCLayoutProduct, MatAIJTCParentProduct);
#define AIJTC_CHECK_RTOL (PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-12)

#if PETSCTC_HAVE_CUDA
PETSC_INTERN PetscErrorCode MatAIJTCSyncHost(Mat); /* seqaijtcops.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCHostIsNewest(Mat);
PETSC_INTERN PetscErrorCode MatAIJTCSettleBinding(Mat);
PETSC_INTERN PetscErrorCode MatAIJTCReleaseCSR(Mat, const MatAIJTCClass *, Mat_AIJTC *); /* release.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCGetDeviceValues(Mat, const PetscScalar **);          /* layoutlife.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCLayoutMult_Device(Mat_AIJTC *, Vec, Vec, Vec);       /* seqaijtc.cxx */
#endif

/* transpose.cxx, reductions.cxx, diagonal.cxx, dense.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCDestroyTransposed(Mat);
#if PETSCTC_HAVE_CUDA
PETSC_INTERN PetscErrorCode MatAIJTCGetTransposeOrSelf(Mat, const MatAIJTCClass *, Mat_AIJTC **);
typedef struct { /* PETSc's device CSR arrays, in parent scope */
  PetscCount      nnz;
  const PetscInt *i, *j;
  PetscScalar    *a;
} MatAIJTCDeviceCSR;
PETSC_INTERN PetscErrorCode MatAIJTCIsOnDevice(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatAIJTCGetDeviceCSR(Mat, PetscBool, MatAIJTCDeviceCSR *);
PETSC_INTERN PetscErrorCode MatAIJTCRestoreDeviceCSR(Mat, PetscBool, MatAIJTCDeviceCSR *);
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_Reductions(MatAIJTCClass *);
#endif
PETSC_INTERN PetscErrorCode MatAIJTCSetOps_Diagonal(MatAIJTCClass *);
PETSC_INTERN PetscErrorCode MatAIJTCMultDense(Mat, PetscBool, PetscBool *);

/* products.cxx, factors.cxx */
#define AIJTC_PRODUCT_HOOK "MatProductSetFromOptions_anytype_C"
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_AIJTC(Mat);
PETSC_INTERN PetscErrorCode MatAIJTCRegisterFactors(void);

/* lifecycle.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCAskedBackend(Mat, MatAIJTCBackendType *);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJTC(Mat, MatType, MatReuse, Mat *);

/* aijtc.cxx, tuning.cxx, info.cxx */
PETSC_INTERN PetscErrorCode MatAIJTCCheckType(Mat, Mat_AIJTC **);
PETSC_INTERN PetscErrorCode MatAIJTCSetSettings(Mat, const MatAIJTCSettings *);
PETSC_INTERN PetscErrorCode MatAIJTCSettingsParse(MPI_Comm, const char[], MatAIJTCSettings *);
PETSC_INTERN PetscErrorCode MatAIJTCSettingsFormat(const MatAIJTCSettings *, char[AIJTC_PARAMS_LENGTH]);
PETSC_INTERN PetscErrorCode MatAIJTCSettingsDefault(MatAIJTCSettings *);
PETSC_INTERN PetscErrorCode MatAIJTCSettingsCopy(Mat, Mat);
PETSC_INTERN PetscErrorCode MatSetFromOptions_AIJTC(Mat, PetscOptionItems);
PETSC_INTERN PetscErrorCode MatView_AIJTC(Mat, PetscViewer);
