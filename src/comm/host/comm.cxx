/*
   Sums and agreements by MPI.

   Method          Sums are gathered, not reduced: each process gets those of all and adds them in the order of the ranks. So all have the same bits and take the same decisions, and two runs with as many processes give the same bits,
                   whatever algorithm the MPI library takes. Least and greatest come from one reduction: the least of v and of -1 - v, which no integer overflows.
   Layout          sums[rank][k], k < count
   Memory traffic  8 count bytes a process
   References      MPI: A Message-Passing Interface Standard, version 4.1, 2023, 6.7 (gather) and 6.9 (reduction: the order is only recommended)
*/
#include <../src/comm/peers.h>

PetscErrorCode PetscTCCommCreate(MPI_Comm comm, PetscTCComm *of)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (of->comm != comm || of->size != size) PetscCall(PetscTCCommDestroy(of));
  if (size > 1 && !of->sums) PetscCall(PetscMalloc1((size_t)size * PETSCTC_MAX_DOTS, &of->sums));
  of->comm = comm;
  of->size = size;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommDestroy(PetscTCComm *of)
{
  PetscFunctionBegin;
#if PETSCTC_HAVE_CUDA
  if (of->cuda) PetscCall(PetscTCCommDestroy_CUDA(of));
#endif
  PetscCall(PetscFree(of->sums));
  *of = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommAdd_Host(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream)
{
  const PetscTCComm *const of = static_cast<const PetscTCComm *>(ctx);

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allgather(sum, (PetscMPIInt)count, MPIU_SCALAR, of->sums, (PetscMPIInt)count, MPIU_SCALAR, of->comm));
  for (PetscInt k = 0; k < count; k++) {
    sum[k] = of->sums[k];
    for (PetscMPIInt rank = 1; rank < of->size; rank++) sum[k] += of->sums[rank * count + k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommRange(const PetscTCComm *of, PetscInt n, const PetscInt64 v[], PetscInt64 least[], PetscInt64 most[])
{
  constexpr PetscInt most_values = 16;
  PetscInt64         both[2 * most_values];

  PetscFunctionBegin;
  PetscCheck(n >= 0 && n <= most_values, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " values to agree on, room is for %" PetscInt_FMT, n, most_values);
  for (PetscInt k = 0; k < n; k++) {
    both[k]     = v[k];
    both[n + k] = -1 - v[k];
  }
  if (of->size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, both, (PetscMPIInt)(2 * n), MPIU_INT64, MPI_MIN, of->comm));
  for (PetscInt k = 0; k < n; k++) {
    least[k] = both[k];
    most[k]  = -1 - both[n + k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCCommAll(const PetscTCComm *of, PetscBool mine, PetscBool *all)
{
  const PetscInt64 v = mine;
  PetscInt64       least, most;

  PetscFunctionBegin;
  PetscCall(PetscTCCommRange(of, 1, &v, &least, &most));
  *all = (PetscBool)least;
  PetscFunctionReturn(PETSC_SUCCESS);
}
