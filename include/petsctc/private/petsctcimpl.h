/* What every part of the library shares. Kernels (host/ and cuda/ folders) include this too: no PETSc object appears here. */
#pragma once

#include <petscsys.h>
#include <petsctc/private/petsctccompat.h>

/* The library computes with PetscScalar = double. Other builds of PETSc are refused at configure time and here. */
#if !PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_COMPLEX)
  #error "PETSc-TC needs a PETSc with real double precision scalars (configure PETSc with --with-scalar-type=real --with-precision=double)"
#endif

/* A cudaStream_t, spelled so that host code needs no CUDA header. Host twins ignore it. */
typedef struct CUstream_st *PetscTCStream;
