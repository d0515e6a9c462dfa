/* What KSPTCCG carries */
#pragma once

#include <../src/ksp/engine/kspcolumnsmethod.h>
#include <../src/ksp/tccg/tccgcolumns.h>
#include <../src/ksp/tccg/tccgresident.h>

struct KSP_TCCG : KSPTCMethod<TCCGSteps, TCCGWork, TCCGScalars> {
  static const TCCGSteps *table(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCCGSteps_CUDA;
#endif
    return backend == KSPTC_HOST ? &TCCGSteps_Host : NULL;
  }

  /* columns.cxx */
  static const TCCGColumnsSteps *columns_table(int backend);
  static PetscErrorCode          columns_legal(KSP, KSP_TCCG *, const char **why);
  static PetscErrorCode          columns_residual(KSP, KSP_TCCG *, PetscInt c);
  static PetscErrorCode          columns_start(KSP, KSP_TCCG *);
  static PetscReal               columns_square(KSP, const KSP_TCCG *, const TCCGScalars *);
  static PetscErrorCode          columns_begin(KSP_TCCG *, const AIJTCLayout *, PetscInt it);
  static PetscErrorCode          columns_finish(KSP_TCCG *);
  static PetscErrorCode          columns_replay(KSP, KSP_TCCG *);
  static PetscTCNorm             columns_norm(KSPNormType type)
  {
    return KSPTCNormOfType(type);
  }

  Mat           A;
  PetscBool     identity;                       /* the preconditioner is none, and not applied: z is r */
  KSPTCDiagonal diagonal;                       /* where z makes the norm, or the solve is resident: then part of the step that ends an iteration */
  PetscBool     known;                          /* s.beta is z.r of the coming iteration: the host has read it */
  PetscInt      directions;                     /* option: how many are kept: PETSC_DECIDE, 1 or PETSCTC_LATE */
  PetscInt      kept;                           /* in this solve: x follows so many updates together */
  PetscInt      late;                           /* so many updates begun leave x to a later direction */
  Vec           p[PETSCTC_LATE];                /* those besides KSPCG's, p[1] .. */
  Vec           carried[2];                     /* A z and A p of iterations that carry A p, where KSPCG has no vectors for them */
  PetscReal     obj;                            /* the objective function 1/2 x'Ax - x'b, up to KSPCG's constant */
  PetscReal     first_obj[PETSCTC_MAX_COLUMNS]; /* the same, of the columns of a block at their beginning */

  KSPTCBlock<TCCGColumnsSteps, TCCGColumns, TCCGScalars> block;

  char watched[192]; /* why the last solve was not fused, if something of the user's was the reason */

  /* what was asked of KSPCG */
  PetscBool single_reduction;
  PetscReal radius, obj_min;
  PetscErrorCode (*set_single_reduction)(KSP, PetscBool);
  PetscErrorCode (*set_radius)(KSP, PetscReal);
  PetscErrorCode (*set_obj_min)(KSP, PetscReal);
  PetscErrorCode (*get_obj)(KSP, PetscReal *);
};

/* resident.cxx */
extern const KSPTCResidentKernel TCCGResidentKernels[KSPTC_BACKENDS];

PETSC_INTERN PetscErrorCode TCCGResidentBegin(KSP, KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGResidentIterate(KSP, KSP_TCCG *, PetscInt);
PETSC_INTERN PetscLogDouble TCCGRowFlops(KSP, const KSP_TCCG *, PetscInt);

/* launches.cxx */
PETSC_INTERN PetscErrorCode TCCGResidual(KSP_TCCG *, Vec);
PETSC_INTERN PetscErrorCode TCCGPrecondition(KSP, KSP_TCCG *);
PETSC_INTERN PetscBool      TCCGLeavesX(const KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGDirection(KSP, KSP_TCCG *, PetscInt i, PetscBool z_is_r);
PETSC_INTERN PetscErrorCode TCCGSettle(KSP, KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGAnother(KSP, Vec *);
PETSC_INTERN PetscErrorCode TCCGMultiply(KSP, KSP_TCCG *, PetscInt i, PetscBool z_is_r);
PETSC_INTERN PetscErrorCode TCCGMakeAndMultiply(KSP, KSP_TCCG *, PetscInt i, PetscBool z_is_r);
PETSC_INTERN PetscErrorCode TCCGUpdate(KSP, KSP_TCCG *, PetscInt i);
PETSC_INTERN PetscErrorCode TCCGUpdateScaled(KSP, KSP_TCCG *, PetscInt i);
PETSC_INTERN PetscErrorCode TCCGAdvance(KSP, KSP_TCCG *, PetscBool first, PetscBool z_is_r, Vec d);
PETSC_INTERN PetscErrorCode TCCGCarriedVectors(KSP, KSP_TCCG *, Vec[2]);

/* tccg.cxx */
PETSC_INTERN PetscErrorCode TCCGInitialResidual(KSP, KSP_TCCG *, PetscReal *);
PETSC_INTERN PetscErrorCode TCCGNorm(KSP, KSP_TCCG *, PetscInt, PetscReal *, PetscBool *);
PETSC_INTERN PetscErrorCode TCCGLoop(KSP, KSP_TCCG *);

/* Is A p carried, so that an iteration has one reduction? As KSPCG was told, or chosen for a resident solve */
static inline PetscBool TCCGCarries(const KSP_TCCG *cg)
{
  return (PetscBool)(cg->single_reduction || (cg->resident.is && cg->resident.variant == KSPTC_VARIANT_SINGLE));
}
