/* What KSPTCCG carries */
#pragma once

#include <petsctc/private/kspmethod.h>
#include <petsctc/private/tccgresident.h>

struct KSP_TCCG : KSPTCMethod<TCCGSteps, TCCGWork, TCCGScalars> {
  static const TCCGSteps *table(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCCGSteps_CUDA;
#endif
    return backend == KSPTC_HOST ? &TCCGSteps_Host : NULL;
  }

  Mat           A;
  PetscBool     identity; /* the preconditioner is none, and not applied: z is r */
  KSPTCDiagonal diagonal; /* where z makes the norm, or the solve is resident: then part of the step that ends an iteration */
  PetscBool     known;    /* s.beta is z.r of the coming iteration: the host has read it */
  PetscBool     late;     /* x lacks what the last update begun leaves to the next direction */
  PetscReal     obj;      /* the objective function 1/2 x'Ax - x'b, up to KSPCG's constant */

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

/* tccg.cxx */
PETSC_INTERN PetscLogDouble TCCGScaleFlops(const KSP_TCCG *);
