/* What KSPTCCG carries */
#pragma once

#include <petsctc/private/kspmethod.h>
#include <petsctc/private/tccgresident.h>

/* What resident.cxx keeps from one solve to the next: the resident form of a matrix as it was in some state, and the work for it */
typedef struct {
  KSPTCBackend      backend;
  Mat               address; /* of what the form was made. Never looked into, NULL: there is none */
  PetscObjectId     id;
  PetscObjectState  nonzerostate, state;
  PetscBool         fits;
  KSPTCForm         form; /* nothing unless it fits */
  PetscBool         made; /* the work has been made, for .. */
  PetscBool         scaled;
  PetscBool         can;
  KSPTCResidentWork work; /* nothing unless the device can */
} TCCGResidentState;

typedef enum {
  TCCG_RESIDENT_FALSE,
  TCCG_RESIDENT_TRUE,
  TCCG_RESIDENT_DECIDE
} TCCGResidentChoice;

struct KSP_TCCG : KSPTCMethod<TCCGSteps, TCCGWork, TCCGScalars> {
  static const TCCGSteps *table(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCCGSteps_CUDA;
#endif
    return backend == KSPTC_HOST ? &TCCGSteps_Host : NULL;
  }

  Mat           A;
  PetscBool     identity; /* z is r */
  KSPTCDiagonal diagonal; /* where z makes the norm, or the solve is resident: then part of the step that ends an iteration */
  PetscBool     known;    /* s.beta is z.r of the coming iteration: the host has read it */
  PetscReal     obj;      /* the objective function 1/2 x'Ax - x'b, up to KSPCG's constant */

  TCCGResidentChoice resident_choice; /* option */
  PetscBool          is_resident;     /* of the solve under way, from its first iteration on */
  TCCGResidentState  resident;

  /* what was asked of KSPCG */
  PetscBool single_reduction;
  PetscReal radius, obj_min;
  PetscErrorCode (*set_single_reduction)(KSP, PetscBool);
  PetscErrorCode (*set_radius)(KSP, PetscReal);
  PetscErrorCode (*set_obj_min)(KSP, PetscReal);
  PetscErrorCode (*get_obj)(KSP, PetscReal *);
};

/* resident.cxx */
PETSC_INTERN PetscErrorCode TCCGResidentSetUp(KSP, KSP_TCCG *);
PETSC_INTERN PetscErrorCode TCCGResidentIterate(KSP, KSP_TCCG *, PetscInt);
PETSC_INTERN PetscErrorCode TCCGResidentRelease(KSP_TCCG *);
