/*
   The steps of KSPTCCG for several systems with one matrix (kspcolumns.h).

   Method         That of tccgsteps.h for each column. x is updated late, with the next direction (kspsteps.h): nobody looks at it before the solve ends.
   Layout         r, p and w by columns; w is z too where the preconditioner is a diagonal
   Memory traffic bytes of an iteration of 8 columns of n rows: direction 320 n, curvature 128 n, update 192 n (with a diagonal 256 n, and 64 n if that does not stay in L2), in all 640 n (704 n); and the product,
                  values + 128 n (and 128 n where X is copied by rows first, spmm.cuh). At 4.3 TB/s, without preconditioner:
                    7-point 43^3, n = 79,507, constant values      51 + 10 MB    14 us (in L2 altogether)
                    a million tetrahedra nodes, 15 million values  640 + 433 MB  250 us
   References     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
                  D. P. O'Leary, The block conjugate gradient algorithm and related methods, Linear Algebra Appl. 29, 1980 (which couples the columns: not done here)
*/
#pragma once

#include <../src/ksp/step/kspcolumns.h>

using TCCGColumnsScalars = PetscTCColumnsScalars<TCCGScalars>;
using TCCGColumnsWork    = PetscTCColumnsWork<TCCGScalars>;

/* z is w if there is a diagonal, else r */
struct TCCGColumns : PetscTCColumns {
  PetscScalar *r, *p, *w;
};

/* TCCGSteps of the same names, for all columns: z and its sums as v->d says; identity is its absence, and x always late */
struct TCCGColumnsSteps : PetscTCColumnsTable<TCCGScalars, TCCGColumns> {
  PetscErrorCode (*residual)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*project)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*direction)(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*curvature)(const TCCGColumns *v, PetscBool first, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*update)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*settle)(const TCCGColumns *v, TCCGColumnsWork *work, PetscTCStream stream);
};

PETSC_INTERN const TCCGColumnsSteps TCCGColumnsSteps_Host;
#if PETSCTC_HAVE_CUDA
PETSC_INTERN const TCCGColumnsSteps TCCGColumnsSteps_CUDA;
#endif
