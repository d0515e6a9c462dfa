/*
   Dot products and norm on the host.

   Method, Layout  fusedstep_host.h
   Memory traffic  8 n (count + 1) bytes for a multiple dot product, 8 n for a norm
*/
#include <petsctc/private/fusedstep_host.h>
#include <petsctc/private/vecdots.h>

/* The host needs no work space: a sum never leaves the thread that adds it */
PetscErrorCode PetscTCReduceWorkCreate_Host(PetscTCReduceWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCReduceWorkDestroy_Host(PetscTCReduceWork *work)
{
  PetscFunctionBegin;
  *work = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCMDot_Host(PetscInt n, const PetscScalar x[], PetscInt count, const PetscScalar *const y[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(PetscTCVecDots<PetscTCBackend_Host>::mdot(n, x, count, y, result, tensor, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCNorm2_Host(PetscInt n, const PetscScalar x[], PetscScalar result[], PetscBool tensor, PetscTCReduceWork *work, PetscTCStream stream)
{
  PetscFunctionBegin;
  PetscCall(PetscTCVecDots<PetscTCBackend_Host>::norm2(n, x, result, tensor, work, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
