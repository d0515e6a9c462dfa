/* What every part of the library shares. Kernels (host/ and cuda/ folders) include this too: no PETSc object appears here. */
#pragma once

#include <petscsys.h>
#include <petsctc/private/petsctccompat.h>

/* The library computes with real scalars of 8 or 4 bytes. Other builds of PETSc are refused at configure time and here. */
#if !(PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_REAL_SINGLE)) || PetscDefined(USE_COMPLEX)
  #error "PETSc-TC needs a PETSc with real scalars in double or single precision (configure PETSc with --with-scalar-type=real --with-precision=double)"
#endif

/* The kernels of cuda/ are there: they compute in double precision only, and a library in single precision works on the host whatever PETSc has */
#define PETSCTC_HAVE_CUDA (PetscDefined(HAVE_CUDA) && PetscDefined(USE_REAL_DOUBLE))

/* Of functions that kernels and their host twins share */
#if defined(__CUDACC__)
  #define PETSCTC_HOST_DEVICE __host__ __device__ __forceinline__
#else
  #define PETSCTC_HOST_DEVICE inline
#endif

/* A cudaStream_t, spelled so that host code needs no CUDA header. Host twins ignore it. */
typedef struct CUstream_st *PetscTCStream;
typedef struct CUevent_st  *PetscTCEvent;
