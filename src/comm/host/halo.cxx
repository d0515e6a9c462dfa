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
  PetscInt *mine, g = 0;

  PetscFunctionBegin;
  *plan = {};
  PetscCallMPI(MPI_Comm_size(comm, &plan->size));
  PetscCallMPI(MPI_Comm_rank(comm, &plan->rank));
  PetscCall(PetscMPIIntCast(nghosts, &plan->nghosts));
  PetscCall(PetscCalloc4(plan->size, &plan->to, plan->size, &plan->begin, plan->size, &plan->from, plan->size, &plan->first));
  PetscCall(PetscCalloc2(plan->size, &plan->place, plan->size, &plan->all));
  PetscCall(PetscMalloc1(plan->size, &mine));
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    mine[rank]        = g;
    plan->first[rank] = (PetscMPIInt)g;
    while (g < nghosts && ghost[g] < ranges[rank + 1]) g++;
    plan->from[rank] = (PetscMPIInt)(g - mine[rank]);
  }
  PetscCheck(g == nghosts, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Ghost %" PetscInt_FMT " is of no process", ghost[g]);
  PetscCallMPI(MPI_Alltoall(plan->from, 1, MPI_INT, plan->to, 1, MPI_INT, comm));
  PetscCallMPI(MPI_Alltoall(mine, 1, MPIU_INT, plan->place, 1, MPIU_INT, comm));
  PetscCallMPI(MPI_Allgather(&nghosts, 1, MPIU_INT, plan->all, 1, MPIU_INT, comm));
  PetscCall(PetscFree(mine));
  for (PetscMPIInt rank = 0; rank < plan->size; rank++) {
    PetscCall(PetscMPIIntCast(plan->nsend, &plan->begin[rank]));
    plan->nsend += plan->to[rank];
  }
  PetscCall(PetscMalloc1(plan->nsend, &plan->rows));
  PetscCallMPI(MPI_Alltoallv(ghost, plan->from, plan->first, MPIU_INT, plan->rows, plan->to, plan->begin, MPIU_INT, comm));
  for (PetscInt k = 0; k < plan->nsend; k++) plan->rows[k] -= ranges[plan->rank];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCHaloPlanDestroy(PetscTCHaloPlan *plan)
{
  PetscFunctionBegin;
  PetscCall(PetscFree4(plan->to, plan->begin, plan->from, plan->first));
  PetscCall(PetscFree2(plan->place, plan->all));
  PetscCall(PetscFree(plan->rows));
  *plan = {};
  PetscFunctionReturn(PETSC_SUCCESS);
}
