/* What KSPTCCG carries */
#pragma once

#include <petsctc/private/kspmethod.h>
#include <petsctc/private/tccgcolumns.h>
#include <petsctc/private/tccgresident.h>

typedef enum {
  TCCG_MATSOLVE_FALSE,
  TCCG_MATSOLVE_TRUE,
  TCCG_MATSOLVE_DECIDE
} TCCGMatSolveChoice;

/* The host's part of a column: what the first norm has set for the test, and where it ends */
typedef struct {
  PetscReal          ttol, rnorm0, obj;
  KSPConvergedReason reason; /* of the first test */
  PetscInt           its;    /* of which there are scalars */
  PetscBool          over;
} TCCGColumnState;

/* A column that ended after too many iterations where that may be an error */
typedef struct {
  PetscBool any;
  PetscInt  its;
  PetscReal rnorm;
} TCCGExhausted;

/* Solves with several right-hand sides (columns.cxx) */
typedef struct {
  TCCGMatSolveChoice choice; /* option */
  TCCGColumnsWork    work[KSPTC_BACKENDS];
  PetscBool          have[KSPTC_BACKENDS];
  PetscInt           nblocks, ncolumns; /* KSPMatSolve() in blocks, column by column */
  const char        *last_why;          /* why the last one that was column by column was */
  TCCGExhausted      exhausted;         /* the first of the KSPMatSolve() under way */

  /* of the block under way */
  TCCGColumnState     column[TCCG_MAX_COLUMNS];
  PetscInt            begun, max_taken;
  TCCGColumnsScalars *taken;   /* [max_taken] after each iteration, as long as a column goes on */
  PetscBool           replays; /* the loop of a solve goes through .. */
  PetscInt            which;   /* .. this column of them */
} TCCGBlocks;

struct KSP_TCCG : KSPTCMethod<TCCGSteps, TCCGWork, TCCGScalars> {
  static const TCCGSteps *table(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCCGSteps_CUDA;
#endif
    return backend == KSPTC_HOST ? &TCCGSteps_Host : NULL;
  }

  Mat           A;
  PetscBool     identity;        /* the preconditioner is none, and not applied: z is r */
  KSPTCDiagonal diagonal;        /* where z makes the norm, or the solve is resident: then part of the step that ends an iteration */
  PetscBool     known;           /* s.beta is z.r of the coming iteration: the host has read it */
  PetscInt      directions;      /* option: how many are kept: PETSC_DECIDE, 1 or PETSCTC_LATE */
  PetscInt      kept;            /* in this solve: x follows so many updates together */
  PetscInt      late;            /* so many updates begun leave x to a later direction */
  Vec           p[PETSCTC_LATE]; /* those besides KSPCG's, p[1] .. */
  Vec           carried[2];      /* A z and A p of iterations that carry A p, where KSPCG has no vectors for them */
  PetscReal     obj;             /* the objective function 1/2 x'Ax - x'b, up to KSPCG's constant */
  TCCGBlocks    blocks;

  /* what was asked of KSPCG */
  PetscBool single_reduction;
  PetscReal radius, obj_min;
  PetscErrorCode (*set_single_reduction)(KSP, PetscBool);
  PetscErrorCode (*set_radius)(KSP, PetscReal);
  PetscErrorCode (*set_obj_min)(KSP, PetscReal);
  PetscErrorCode (*get_obj)(KSP, PetscReal *);
};

/* Which sum the norm of this type is the root of */
static inline PetscTCNorm TCCGNormOfType(KSPNormType type)
{
  const PetscTCNorm norms[] = {PETSCTC_NORM_NONE, PETSCTC_NORM_ZZ, PETSCTC_NORM_RR, PETSCTC_NORM_BETA};

  return norms[type];
}

/* resident.cxx */
extern const KSPTCResidentKernel TCCGResidentKernels[KSPTC_BACKENDS];

PETSC_INTERN PetscErrorCode TCCGResidentIterate(KSP, KSP_TCCG *, PetscInt);
PETSC_INTERN PetscLogDouble TCCGRowFlops(KSP, const KSP_TCCG *, PetscInt);

/* columns.cxx */
PETSC_INTERN PetscErrorCode TCCGColumnsAttach(KSP, KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGColumnsOptions(KSP, KSP_TCCG *, PetscOptionItems);
PETSC_INTERN PetscErrorCode TCCGColumnsRelease(KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGColumnTaken(KSP, KSP_TCCG *, PetscInt);

/* tccg.cxx */
PETSC_INTERN PetscErrorCode TCCGCarriedVectors(KSP, KSP_TCCG *, Vec[2]);
PETSC_INTERN PetscErrorCode TCCGInitialResidual(KSP, KSP_TCCG *, PetscReal *);
PETSC_INTERN PetscErrorCode TCCGNorm(KSP, KSP_TCCG *, PetscInt, PetscReal *, PetscBool *);
PETSC_INTERN PetscErrorCode TCCGLoop(KSP, KSP_TCCG *);

/* Is A p carried, so that an iteration has one reduction? As KSPCG was told, or chosen for a resident solve */
static inline PetscBool TCCGCarries(const KSP_TCCG *cg)
{
  return (PetscBool)(cg->single_reduction || (cg->resident.is && cg->resident.variant == KSPTC_VARIANT_SINGLE));
}
