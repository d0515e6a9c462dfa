/* What KSPTCBCGS carries */
#pragma once

#include <../src/ksp/engine/kspcolumnsmethod.h>
#include <../src/ksp/tcbcgs/tcbcgscolumns.h>
#include <../src/ksp/tcbcgs/tcbcgsresident.h>

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

  /* columns.cxx */
  static const TCBCGSColumnsSteps *columns_table(int backend);
  static PetscErrorCode            columns_legal(KSP, KSP_TCBCGS *, const char **why);
  static PetscErrorCode            columns_residual(KSP, KSP_TCBCGS *, PetscInt c);
  static PetscErrorCode            columns_start(KSP, KSP_TCBCGS *);
  static PetscReal                 columns_square(KSP, const KSP_TCBCGS *, const TCBCGSScalars *s)
  {
    return s->rr;
  }
  static PetscErrorCode columns_begin(KSP_TCBCGS *, const AIJTCLayout *, PetscInt it);
  static PetscErrorCode columns_finish(KSP_TCBCGS *)
  {
    return PETSC_SUCCESS;
  }
  static PetscErrorCode columns_replay(KSP, KSP_TCBCGS *);
  static PetscTCNorm    columns_norm(KSPNormType type)
  {
    return type == KSP_NORM_NONE ? PETSCTC_NORM_NONE : PETSCTC_NORM_RR;
  }

  PetscBool     identity; /* the operator is the matrix */
  PetscBool     single;   /* recurrences with a reduction less */
  PetscReal     dp;       /* the norm last computed */
  KSPTCDiagonal diagonal; /* of a preconditioner from the left, or of one where the solve is resident: then part of the steps */

  KSPTCBlock<TCBCGSColumnsSteps, TCBCGSColumns, TCBCGSScalars> block;
};

/* resident.cxx */
extern const KSPTCResidentKernel TCBCGSResidentKernels[KSPTC_BACKENDS];

PETSC_INTERN PetscErrorCode TCBCGSResidentSetUp(KSP, KSP_TCBCGS *);
PETSC_INTERN PetscErrorCode TCBCGSResidentBegin(KSP, KSP_TCBCGS *);
PETSC_INTERN PetscErrorCode TCBCGSResidentIterate(KSP, KSP_TCBCGS *, PetscInt);
PETSC_INTERN PetscLogDouble TCBCGSRowFlops(KSP, const KSP_TCBCGS *);

/* columns.cxx */
PETSC_INTERN PetscErrorCode TCBCGSColumnBroken(KSP, KSP_TCBCGS *);

/* tcbcgs.cxx */
PETSC_INTERN PetscLogDouble TCBCGSStartFlops(KSP);
PETSC_INTERN PetscErrorCode TCBCGSFirstNorm(KSP, KSP_TCBCGS *, PetscBool *);
PETSC_INTERN PetscErrorCode TCBCGSLoop(KSP, KSP_TCBCGS *);
