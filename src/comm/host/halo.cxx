/*
   The plan of a halo: each process knows which elements it needs, and asks their owners for them.

   Method          Counts, then numbers, by MPI_Alltoall() and MPI_Alltoallv(); once for a pattern.
   Layout          halo.h
   Memory traffic  none to speak of
   References      MPI: A Message-Passing Interface Standard, version 4.1, 2023, 6.8
*/
#include <../src/comm/halo.h>

PetscErrorCode PetscTCHaloPlanCreate(MPI_Comm comm, PetscInt nghosts, const PetscInt ghost[], const PetscInt ranges[], PetscTCHaloPlan *plan)
{
  PetscMPIInt from[PETSCTC_MAX_PEERS] = {}, to[PETSCTC_MAX_PEERS], wanted[PETSCTC_MAX_PEERS], sent[PETSCTC_MAX_PEERS];
  PetscInt    mine[PETSCTC_MAX_PEERS], g = 0;

  PetscFunctionBegin;
  *plan = {};
  PetscCallMPI(MPI_Comm_size(comm, &plan->size));
  PetscCallMPI(MPI_Comm_rank(comm, &plan->rank));
  PetscCheck(plan->size <= PETSCTC_MAX_PEERS, comm, PETSC_ERR_PLIB, "A halo of %d processes, room is for %d", (int)plan->size, (int)PETSCTC_MAX_PEERS);
  PetscCheck(nghosts < PETSC_MPI_INT_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "%" PetscInt_FMT " elements of other processes, MPI counts up to %d", nghosts, PETSC_MPI_INT_MAX);
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    wanted[rank] = (PetscMPIInt)g;
    mine[rank]   = g;
    while (g < nghosts && ghost[g] < ranges[rank + 1]) g++;
    from[rank] = (PetscMPIInt)(g - mine[rank]);
  }
  PetscCheck(g == nghosts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Ghost %" PetscInt_FMT " is of no process", ghost[g]);
  PetscCallMPI(MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm));
  PetscCallMPI(MPI_Alltoall(mine, 1, MPIU_INT, plan->place, 1, MPIU_INT, comm));
  PetscCallMPI(MPI_Allgather(&nghosts, 1, MPIU_INT, plan->nghosts, 1, MPIU_INT, comm));
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    plan->begin[rank]    = plan->nsend;
    sent[rank]           = (PetscMPIInt)plan->nsend;
    plan->neighbor[rank] = (PetscBool)(to[rank] || from[rank]);
    plan->nsend += to[rank];
  }
  PetscCall(PetscMalloc1(plan->nsend, &plan->rows));
  PetscCallMPI(MPI_Alltoallv(ghost, from, wanted, MPIU_INT, plan->rows, to, sent, MPIU_INT, comm));
  for (PetscInt k = 0; k < plan->nsend; k++) plan->rows[k] -= ranges[plan->rank];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloPlanDestroy(PetscTCHaloPlan *plan)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(plan->rows));
  *plan = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}
