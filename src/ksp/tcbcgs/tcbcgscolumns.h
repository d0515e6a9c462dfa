/*
   The steps of KSPTCBCGS for several systems with one matrix (kspcolumns.h).

   Method         That of tcbcgssteps.h for each column, with a diagonal preconditioner from the left or none
   Layout         r, rp, p, v, s and t by columns; between two steps t and r hold the product where that is scaled to v and t
   Memory traffic bytes of an iteration of 8 columns of n rows: direction 256 n, breakdown 128 n, half 192 n, stabilize 128 n, update 448 n, in all 1152 n (with a diagonal 1280 n, and 128 n if that does not stay in L2); and two products
                  of values + 128 n each (and 128 n where X is copied by rows first, spmm.cuh). At 4.3 TB/s, without preconditioner:
                    7-point 43^3, n = 79,507, constant values      92 + 20 MB    26 us (in L2 altogether)
                    a million tetrahedra nodes, 15 million values  1152 + 866 MB 470 us
   References     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat. Comput. 13(2), 1992
*/
#pragma once

#include <../src/ksp/step/kspcolumns.h>

using TCBCGSColumnsScalars = PetscTCColumnsScalars<TCBCGSScalars>;
using TCBCGSColumnsWork    = PetscTCColumnsWork<TCBCGSScalars>;

struct TCBCGSColumns : PetscTCColumns {
  PetscScalar *r, *rp, *p, *v, *s, *t;
};

/* TCBCGSSteps of the same names, for all columns. With a diagonal breakdown takes t for A p and makes v of it, stabilize r for A s and makes t of it; else they take v and t */
struct TCBCGSColumnsSteps : PetscTCColumnsTable<TCBCGSScalars, TCBCGSColumns> {
  PetscErrorCode (*start)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*direction)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*breakdown)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*half)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*stabilize)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
  PetscErrorCode (*update)(const TCBCGSColumns *v, TCBCGSColumnsWork *work, PetscTCStream stream);
};

PETSC_INTERN const TCBCGSColumnsSteps TCBCGSColumnsSteps_Host;
#if PETSCTC_HAVE_CUDA
PETSC_INTERN const TCBCGSColumnsSteps TCBCGSColumnsSteps_CUDA;
#endif
