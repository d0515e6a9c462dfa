/*
   What the fused Krylov methods share on PETSc's side. A fused method is a type of PETSc (KSPCG, KSPBCGS) whose solve is replaced: setup, options, view, residual and
   solution builders stay PETSc's, and PETSc's own solve stays at hand for whatever is not fused.
*/
#pragma once

#include <petsc/private/kspimpl.h>
#include <petsctc.h>
#include <petsctc/private/aijtcimpl.h>
#include <../src/comm/comm.h>
#include <../src/ksp/step/kspcolumns.h>
#include <../src/ksp/step/kspsteps.h>
#include <../src/ksp/resident/ksptcstreamed.h>

PETSC_INTERN PetscLogEvent KSP_TCForm, KSP_TCLoad; /* a resident form of a matrix is made; memory for its solves, and their kernels loaded */

/* Where the vectors of a solve live, hence which table of steps computes it */
typedef enum {
  KSPTC_HOST,
  KSPTC_CUDA,
  KSPTC_BACKENDS
} KSPTCBackend;

typedef struct _n_KSPTC *KSPTC;

typedef enum {
  KSPTC_RESIDENT_FALSE,
  KSPTC_RESIDENT_TRUE,
  KSPTC_RESIDENT_DECIDE,
  KSPTC_RESIDENT_FORM,  /* the matrix on the chip, or not at all */
  KSPTC_RESIDENT_LAYOUT /* read from its layout, or not at all */
} KSPTCResidentChoice;

/* Recurrences of a method */
typedef enum {
  KSPTC_VARIANT_CLASSIC,
  KSPTC_VARIANT_SINGLE, /* fewer reductions. CG: one; BiCGSTAB: two */
  KSPTC_VARIANT_AUTO    /* the one that is fastest */
} KSPTCVariant;

/* What a method's resident solver is on a backend */
typedef struct {
  PetscErrorCode (*chip)(KSPTCChip *);
  PetscErrorCode (*create[KSPTC_VARIANT_AUTO])(const KSPTCForm *, PetscBool scaled, KSPTCResidentWork *, PetscBool *can); /* for the form, NULL: the method has no such recurrences */
  PetscErrorCode (*create_streamed)(const AIJTCLayout *, KSPTCResidentWork *, PetscBool *can);                            /* of all recurrences */
} KSPTCResidentKernel;

/* The resident solver, and what it keeps from one solve to the next: the resident form of a matrix as it was in some state, and the work for it or for a layout */
typedef struct {
  const KSPTCResidentKernel *kernel;          /* [KSPTC_BACKENDS] */
  KSPTCVectors               vectors;         /* of a block, at least */
  KSPTCVectors               thin;            /* of one that has others in device memory, with classic recurrences; no rows: its method has no such blocks */
  PetscBool                  thin_first;      /* of its method: are they faster than what reads the matrix from its layout? Measured: docs/log/2026-11.md */
  KSPTCVariant               wanted;          /* of the solve under way */
  KSPTCVariant               variant;         /* the same, resident: its recurrences */
  PetscBool                  may_stream;      /* of its method: may the matrix be read from its layout? */
  PetscBool                  may_thin;        /* of the solve under way: thin blocks have no preconditioner from the right and no projection */
  PetscBool                  may_window;      /* likewise windows */
  PetscCount                 windows_from[2]; /* of its method: nonzeros of a grid from which on windows are faster than a form, with classic recurrences and with others. Measured: docs/log/2026-11.md */
  PetscBool                  may_project;     /* of its method: may the preconditioner end with a projection? */
  KSPTCResidentChoice        choice;          /* option */
  PetscBool                  is;              /* of the solve under way, from its first iteration on */
  PetscBool                  refused;         /* the same: the device has refused a call, and gets no other */
  PetscInt                   its;             /* the same: iterations that calls have done, where the steps have gone on */
  PetscInt                   steps_lead;      /* what `lead` was for the steps */
  KSPTCBackend               backend;         /* of form and work */
  Mat                        address;         /* of what the form was made. Never looked into, NULL: there is none */
  PetscObjectId              id;
  PetscObjectState           nonzerostate, state;
  PetscObjectId              streamed_id; /* of the matrix whose layout the work is for, its pattern and values */
  PetscObjectState           streamed_pattern;
  PetscObjectState           streamed_state;
  PetscObjectId              windowless; /* a matrix that has turned out to have no windows, with this pattern */
  PetscObjectState           windowless_state;
  KSPTCResidentChoice        made_by;      /* the option then */
  PetscBool                  made_beside;  /* might the matrix be read from its layout then? */
  PetscBool                  made_thin;    /* might blocks be thin? */
  PetscCount                 made_until;   /* how many nonzeros might a form have, beside windows? */
  PetscBool                  thin_pays;    /* of that matrix: nothing that is faster than thin blocks reads its layout */
  PetscBool                  scaled_thin;  /* of that matrix: with a preconditioner blocks have to be thin .. */
  PetscBool                  scaled_never; /* .. or even these have no room */
  PetscBool                  only_thin;    /* is that what the form was made for? */
  PetscBool                  fits;
  PetscBool                  pays;      /* not: so much of the matrix would be read from device memory that a form is not worth it */
  KSPTCForm                  form;      /* nothing unless it fits */
  PetscBool                  by_region; /* its rows are dealt by region of the graph */
  const AIJTCLayout         *layout;    /* of the solve under way, NULL if the matrix is in the form */
  PetscCount                 nnz;       /* of the matrix */
  PetscBool                  made;      /* the work has been made, for .. */
  PetscBool                  scaled;
  PetscInt                   streamed[2]; /* .. slices of a layout, and rows of a lane, or 0 */
  KSPTCVariant               made_for;    /* .. the form, with these recurrences */
  PetscBool                  can;
  PetscBool                  cannot_hold[KSPTC_VARIANT_AUTO][2]; /* there was no work for the form, with a preconditioner or without: not to be tried again beside a layout */
  KSPTCResidentWork          work;                               /* nothing unless the device can */
  PetscObjectId              late_id;                            /* of the matrix with which a block has given up waiting, and its pattern: not to be tried again. 0: none has */
  PetscObjectState           late_pattern;
  char                       late_text[160]; /* about that, for a view */
} KSPTCResident;

/* Is the matrix in a form of thin blocks? */
static inline PetscBool KSPTCIsThin(const KSPTCResident *state)
{
  return (PetscBool)(state->fits && KSPTCFormIsThin(&state->form));
}

/* Of an option that may be left open */
typedef enum {
  KSPTC_CHOICE_FALSE,
  KSPTC_CHOICE_TRUE,
  KSPTC_CHOICE_DECIDE
} KSPTCChoice;

/* The host's part of a column: what the first norm has set for the test, and where it ends */
typedef struct {
  PetscReal          ttol, rnorm0;
  KSPConvergedReason reason; /* of the first test */
  PetscInt           its;    /* of which there are scalars */
  PetscBool          over;
} KSPTCColumn;

/* Solves with several right-hand sides, of methods that have such (kspcolumnsmethod.h) */
typedef struct {
  PetscErrorCode (*solve)(KSP, Mat, Mat); /* of the method, NULL: it has none */
  PetscReal   least;                      /* of the method: bytes of a layout a row from which on blocks pay without preconditioner */
  KSPTCChoice choice;                     /* option */
  PetscInt    nblocks, nones;             /* KSPMatSolve() in blocks, column by column */
  const char *last_why;                   /* why the last one that was column by column was */
  struct {                                /* of the KSPMatSolve() under way: the first column that ended after too many iterations where that may be an error */
    PetscBool any;
    PetscInt  its;
    PetscReal rnorm;
  } exhausted;

  /* of the block under way */
  KSPTCColumn column[PETSCTC_MAX_COLUMNS];
  PetscInt    begun;
  PetscBool   replays; /* the loop of a solve goes through .. */
  PetscInt    which;   /* .. this column of them */
} KSPTCColumns;

/* What is known of a PCJACOBI: the number that it multiplies with everywhere, or 0, and of which matrix */
typedef struct {
  PetscObjectId    pc, id;
  PetscObjectState nonzerostate, state;
  PetscReal        number;
} KSPTCUniform;

/* The first member of what a method carries */
struct _n_KSPTC {
  const char    *name;   /* type name, part of the option names */
  const char    *page;   /* of the manual */
  struct _KSPOps parent; /* operations of PETSc's type; `solve` follows what PETSc installs later */

  /* before every solve: `why` is set when the method cannot fuse it */
  PetscErrorCode (*prepare)(KSP, KSPTC, const char **why);
  /* the fused solve */
  PetscErrorCode (*solve)(KSP, KSPTC);
  /* tc->variant has been set. NULL: the solve sees to it */
  PetscErrorCode (*choose)(KSP, KSPTC);
  /* developer options of its own, NULL: none */
  PetscErrorCode (*options)(KSP, KSPTC);
  /* frees what the steps work with */
  PetscErrorCode (*release)(KSPTC);

  PetscBool    fused;     /* option: fuse where legal */
  PetscBool    tensor;    /* option: reductions fold on the Tensor Core */
  PetscBool    sums;      /* option: dot products with a product of the matrix in its pass, where it can */
  KSPTCChoice  makes;     /* option: and with them the vector that it multiplies */
  PetscBool    factors;   /* option: take a preconditioner that is one number for a factor of norms */
  KSPTCVariant variant;   /* option */
  PetscBool    norm_only; /* option: monitors read the norm alone */
  PetscInt     ahead;     /* option: iterations begun before the host has looked at the one before them, or PETSC_DECIDE */
  PetscInt     nfused, nparent;
  PetscBool    last_fused;
  PetscBool    last_pc_in_steps;   /* of the last fused solve */
  PetscBool    last_sums;          /* the same: did a product bring its dot products? */
  PetscBool    last_made;          /* the same: and make its vector? */
  PetscBool    last_single;        /* the same: had it fewer reductions? */
  PetscInt     last_directions;    /* the same: its solution followed so many iterations together, if more than one */
  const char  *last_why;           /* why the last solve that was not fused was not */
  char         theirs[192];        /* the same, where another process had the reason */
  const char  *last_why_not_ahead; /* why the last fused solve began no iteration ahead, NULL if it did */
  PetscInt     last_call;          /* iterations of a call of a resident kernel, 0 if the last fused solve was none of its */
  const char  *last_why_not_call;  /* why not, NULL if nobody asked */

  KSPTCResident resident;
  KSPTCColumns  columns;
  KSPTCUniform  uniform;
  PetscTCComm   comm;   /* of the solver's processes */
  PetscTCAcross across; /* of the solve under way: who adds up sums of products over them */

  /* of the solve under way */
  PetscReal     number;     /* that the preconditioner is, if it is one and not applied, else 0 */
  PetscBool     only_norms; /* monitors read the norm alone, as the option said when it began */
  KSPTCBackend  backend;
  PetscTCStream stream;
  PetscInt      n;
  PetscInt      lead;      /* iterations that may begin ahead: 0 where that is not legal */
  PetscInt      begun;     /* iterations */
  PetscInt      awaited;   /* of these, so many are known to be over */
  PetscBool     early;     /* a call of a resident kernel may begin before the host has looked at the first norm .. */
  PetscBool     unlooked;  /* .. which it has not yet */
  PetscBool     unsettled; /* a solve that began iterations ahead has not been waited for */
};

/* What KSP_PCApply() does behind the preconditioner */
typedef enum {
  KSPTC_PROJECTION_NONE,
  KSPTC_PROJECTION_CONSTANT, /* against a null space of the constants alone */
  KSPTC_PROJECTION_OTHER
} KSPTCProjection;

/* What the inverses of blocks depend on; of size 0: of nothing */
typedef struct {
  PetscObjectId    pc, P;
  PetscObjectState state, made_for; /* of P, and of P when the preconditioner was set up */
  PetscInt         bs, nblocks;     /* nblocks: of several sizes, else 0 */
  PetscBool        transposed;
} KSPTCBlocksKey;

/* What says how large the blocks of a preconditioner are: one size, of PCPBJACOBI, or those of the matrix, of PCVPBJACOBI; nothing for others */
typedef struct {
  PetscInt        size, nblocks;
  const PetscInt *sizes;
} KSPTCBlocksShape;

/* A preconditioner that is part of the steps: its diagonal, or the columns of its blocks, NULL if it is neither, and of what it was that when the solve began */
typedef struct {
  PetscBool        projects; /* may a projection be part of the steps? Of the method */
  KSPTCProjection  projection;
  Vec              d;
  PC               pc;
  Mat              P;
  PetscObjectState state;
  PetscBool        jacobi; /* or none, which is a diagonal of ones where there is a projection */
  PCJacobiType     type;
  KSPTCBlocksShape shape;
  PetscInt         bs;     /* rows of the largest block, 1 if steps cannot apply them */
  PetscBool        varied; /* are there smaller ones? */
  KSPTCBlocksKey   key;    /* of the blocks in d, or of the preconditioner that was not these blocks .. */
  PetscInt        *sizes;  /* .. of these sizes, if they vary .. */
  PetscBool        blocks; /* .. or was it? */
} KSPTCDiagonal;

/* From one column of blocks to the next: pairs of elements of each lie on 16 bytes */
static inline PetscCount KSPTCBlockStride(PetscInt n)
{
  return (PetscCount)n + n % 2;
}

/* For steps. d: the array of D->d */
static inline PetscTCBlocks KSPTCBlocksOf(const KSPTCDiagonal *D, PetscInt n, const PetscScalar d[])
{
  return {D->bs, (PetscInt)KSPTCBlockStride(n), d, D->varied ? (const unsigned char *)(d + D->bs * KSPTCBlockStride(n)) : NULL};
}

/* Flops of a row, as PETSc counts them on the host: none of PCVPBJACOBI, and those of MatNullSpaceRemove() */
static inline PetscLogDouble KSPTCDiagonalFlops(const KSPTCDiagonal *D)
{
  const PetscLogDouble projection = D->projection == KSPTC_PROJECTION_CONSTANT ? 1.0 : 0.0;

  return projection + (D->jacobi ? 1.0 : (D->shape.size > 1 ? 2.0 * D->shape.size - 1.0 : 0.0));
}

/* attach.cxx */
PETSC_INTERN PetscErrorCode KSPTCAttach(KSP, KSPType, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCGet(KSP, KSPTC *);
PETSC_INTERN PetscErrorCode KSPTCTakeSolve(KSP, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCChoiceFromOptions(KSPTC, const char[], const char[], KSPTCChoice *, PetscBool *, PetscOptionItems);
PETSC_INTERN PetscErrorCode KSPTCCountFused(KSPTC);

/* legal.cxx */
PETSC_INTERN PetscErrorCode KSPTCLegal(KSP, KSPTC, const char **);
PETSC_INTERN PetscBool      KSPTCChecksResults(KSP);
PETSC_INTERN PetscErrorCode KSPTCProjectionOf(KSP, KSPTCProjection *);
PETSC_INTERN PetscErrorCode KSPTCIdentityPC(KSP, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCIdentityKeep(KSP, KSPTC, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCDiagonalMark(KSP, KSPTCDiagonal *);
PETSC_INTERN PetscErrorCode KSPTCDiagonalTake(KSP, Vec, KSPTCDiagonal *);
PETSC_INTERN PetscErrorCode KSPTCDiagonalKeep(KSP, KSPTCDiagonal *);
PETSC_INTERN PetscErrorCode KSPTCDiagonalRelease(KSPTCDiagonal *);

/* agree.cxx */
PETSC_INTERN PetscErrorCode KSPTCAgree(KSP, KSPTC, const char **);
PETSC_INTERN PetscErrorCode KSPTCAll(KSP, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCSetAcross(KSP, KSPTC, PetscTCAcross *);

/* blocks.cxx */
PETSC_INTERN PetscErrorCode KSPTCBlocksMark(KSP, KSPTCDiagonal *);
PETSC_INTERN PetscErrorCode KSPTCBlocksStand(KSP, const KSPTCDiagonal *, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCBlocksTake(KSP, Vec, KSPTCDiagonal *);

/* ahead.cxx */
PETSC_INTERN PetscErrorCode KSPTCPlainMatrix(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCReplayLegal(KSP, KSPTC, const char **);
PETSC_INTERN PetscErrorCode KSPTCSetLead(KSP, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCTest(KSP, PetscInt, PetscTCNorm, PetscTCTest *);

/* monitors.cxx */
PETSC_INTERN PetscErrorCode KSPTCWatched(KSP, KSPTC, const char **);
PETSC_INTERN PetscErrorCode KSPTCMonitor(KSP, KSPTC, PetscInt, PetscReal);
PETSC_INTERN PetscErrorCode KSPTCMonitorsAttach(KSP, PetscBool);
PETSC_INTERN PetscErrorCode KSPTCMonitorsSetFromOptions(KSPTC, PetscOptionItems);

/* uniform.cxx */
PETSC_INTERN PetscErrorCode KSPTCUniformPC(KSP, KSPTC, PetscBool, Vec);
PETSC_INTERN PetscReal      KSPTCNormFactor(KSP, KSPTC);
PETSC_INTERN void           KSPTCScaleTest(KSP, KSPTC, PetscTCTest *);

/* resident.cxx */
PETSC_INTERN PetscErrorCode KSPTCMayBeginEarly(KSP, KSPTC, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCFormLikely(KSP, KSPTC, Mat, const AIJTCLayout *, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCResidentSetUp(KSP, KSPTC, Mat, const Vec[], PetscBool, Vec, KSPTCDiagonal *);
PETSC_INTERN PetscErrorCode KSPTCResidentLeave(KSPTC, PetscInt, const char *);
PETSC_INTERN PetscErrorCode KSPTCResidentGaveUp(KSP, KSPTC, const char **);
PETSC_INTERN PetscErrorCode KSPTCResidentRelease(KSPTC);
PETSC_INTERN PetscErrorCode KSPTCResidentSetFromOptions(KSPTC, PetscOptionItems);

/* columns.cxx */
PETSC_INTERN PetscErrorCode KSPTCColumnsAttach(KSP, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCColumnsSetOp(KSP, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCColumnsSetFromOptions(KSP, KSPTC, PetscOptionItems);
PETSC_INTERN PetscErrorCode KSPTCColumnsView(KSPTC, PetscViewer);
PETSC_INTERN PetscErrorCode KSPTCColumnsLegal(KSP, KSPTC, Mat, const char **);
PETSC_INTERN PetscErrorCode KSPTCColumnTake(KSP, Mat, Mat, PetscInt);
PETSC_INTERN PetscErrorCode KSPTCColumnGive(KSP, Mat, Mat, PetscInt);
PETSC_INTERN PetscErrorCode KSPTCColumnOver(KSP, KSPTC, PetscBool);
PETSC_INTERN PetscErrorCode KSPTCColumnsBegin(KSP, KSPTC);
PETSC_INTERN PetscErrorCode KSPTCColumnsByOne(KSP, KSPTC, Mat, Mat, PetscInt, const char *);
PETSC_INTERN PetscErrorCode KSPTCColumnsEnd(KSP, KSPTC);

/* step.cxx */
PETSC_INTERN PetscErrorCode KSPTCLogFlops(KSPTC, PetscLogDouble);
PETSC_INTERN PetscErrorCode KSPTCStepBegin(KSPTC, PetscInt, PetscInt, const Vec[], PetscScalar *[]);
PETSC_INTERN PetscErrorCode KSPTCStepEnd(KSPTC, PetscInt, PetscInt, const Vec[], PetscScalar *[], PetscLogDouble);
PETSC_INTERN PetscErrorCode KSPTCUsesTensor(KSPTC, PetscBool *);
PETSC_INTERN PetscErrorCode KSPTCMultSums(KSP, KSPTC, Mat, Vec, Vec, Vec, Vec, const PetscScalar **);
PETSC_INTERN PetscErrorCode KSPTCWAXPYMultSums(KSP, KSPTC, Mat, const MatAIJTCWAXPY *, Vec, Vec, Vec, const PetscScalar **);

/* KSPCheckDot() and KSPCheckNorm() return from the function that uses them: `failed` says whether they did. The reason is set then, and the caller must return too */
static inline PetscErrorCode KSPTCCheckDot(KSP ksp, PetscReal dot, PetscBool *failed)
{
  PetscFunctionBegin;
  *failed = PETSC_TRUE;
  KSPCheckDot(ksp, dot);
  *failed = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode KSPTCCheckNorm(KSP ksp, PetscReal norm, PetscBool *failed)
{
  PetscFunctionBegin;
  *failed = PETSC_TRUE;
  KSPCheckNorm(ksp, norm);
  *failed = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
