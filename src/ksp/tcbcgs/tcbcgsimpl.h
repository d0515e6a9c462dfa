/* What KSPTCBCGS carries */
#pragma once

#include <petsctc/private/kspmethod.h>
#include <petsctc/private/tcbcgsresident.h>

/* KSPBCGS's work vectors */
enum {
  BCGS_R,
  BCGS_RP,
  BCGS_V,
  BCGS_T,
  BCGS_S,
  BCGS_P
};

struct KSP_TCBCGS : KSPTCMethod<TCBCGSSteps, TCBCGSWork, TCBCGSScalars> {
  static const TCBCGSSteps *table(int backend)
  {
#if PETSCTC_HAVE_CUDA
    if (backend == KSPTC_CUDA) return &TCBCGSSteps_CUDA;
#endif
    return backend == KSPTC_HOST ? &TCBCGSSteps_Host : NULL;
  }

  PetscBool     identity; /* the operator is the matrix */
  PetscBool     single;   /* recurrences with a reduction less */
  PetscReal     dp;       /* the norm last computed */
  KSPTCDiagonal diagonal; /* of a preconditioner from the left, or of one where the solve is resident: then part of the steps */
};

/* resident.cxx */
extern const KSPTCResidentKernel TCBCGSResidentKernels[KSPTC_BACKENDS];

PETSC_INTERN PetscErrorCode TCBCGSResidentSetUp(KSP, KSP_TCBCGS *);
PETSC_INTERN PetscErrorCode TCBCGSResidentIterate(KSP, KSP_TCBCGS *, PetscInt);
