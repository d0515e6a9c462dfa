/* The one place for differences between PETSc versions. 3.26 is built and tested, 3.25 must compile. */
#pragma once

#include <petscversion.h>

#if PETSC_VERSION_LT(3, 25, 0)
  #error "PETSc-TC needs PETSc 3.25 or newer"
#endif

/* The state of the matrix that a PC was last set up for. With petsc/private/pcimpl.h */
#if PETSC_VERSION_LT(3, 26, 0)
  #define PetscTCPCState(pc) ((pc)->matstate)
#else
  #define PetscTCPCState(pc) ((pc)->matstate.state)
#endif

/* A solve with several right-hand sides, ksp of the type struct _p_KSP *. Was it KSPMatSolveTranspose()? The block that KSPConvergedDefault() would take the norm of, in place of the column's: there is none. Is more done before and
   after each column than its solve? */
#if PETSC_VERSION_LT(3, 26, 0)
  #define PETSCTC_KSP_TRANSPOSED(ksp)   ((ksp)->transpose_solve)
  #define PETSCTC_KSP_FORGET_BLOCK(ksp) ((void)0)
  #define PETSCTC_KSP_HAS_HOOKS(ksp)    ((ksp)->presolve || (ksp)->postsolve || (ksp)->dscale)
#else
  #define PETSCTC_KSP_TRANSPOSED(ksp)   ((ksp)->transpose.solve_requested)
  #define PETSCTC_KSP_FORGET_BLOCK(ksp) ((void)((ksp)->mat_rhs = NULL))
  #define PETSCTC_KSP_HAS_HOOKS(ksp)    ((ksp)->presolve || (ksp)->postsolve || (ksp)->presolve_ew || (ksp)->postsolve_ew)
#endif
