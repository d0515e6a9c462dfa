/*
   Which way processes with vectors on GPUs tell each other numbers: found out once for a communicator, by all its processes together, and kept with it.
*/
#include <../src/comm/peers.h>

const char *const PetscTCLayers[] = {"auto", "peer", "mpi", "PetscTCLayer", "PETSCTC_LAYER_", NULL};

typedef struct {
  PetscTCLayer layer;
  const char  *why;
} PetscTCChoice;

static PetscMPIInt MPIAPI PetscTCChoiceFree(MPI_Comm, PetscMPIInt, void *choice, void *)
{
  (void)PetscFree(choice);
  return MPI_SUCCESS;
}

/* The attribute's key, made again with each MPI_Init(): nothing but the finalization of PETSc ends its use */
static PetscMPIInt keyval = MPI_KEYVAL_INVALID;

static PetscErrorCode PetscTCChoiceFinalize(void)
{
  PetscFunctionBegin;
  if (keyval != MPI_KEYVAL_INVALID) PetscCallMPI(MPI_Comm_free_keyval(&keyval));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscTCChoose(MPI_Comm comm, PetscTCChoice *choice)
{
  PetscTCLayer asked = PETSCTC_LAYER_AUTO;
  PetscInt64   v, least, most;
  PetscTCComm  all = {};

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-petsctc_comm", PetscTCLayers, (PetscEnum *)&asked, NULL));
  all.comm = comm;
  PetscCallMPI(MPI_Comm_size(comm, &all.size));
  v = asked;
  PetscCall(PetscTCCommRange(&all, 1, &v, &least, &most));
  PetscCheck(least == most, comm, PETSC_ERR_ARG_INCOMP, "-petsctc_comm is %s on one process and %s on another: set it to the same everywhere", PetscTCLayers[least], PetscTCLayers[most]);
  *choice = {PETSCTC_LAYER_MPI, "-petsctc_comm mpi"};
  if (asked == PETSCTC_LAYER_MPI || all.size == 1) PetscFunctionReturn(PETSC_SUCCESS);
#if PETSCTC_HAVE_CUDA
  PetscCall(PetscTCPeersTry_CUDA(comm, &choice->why));
#else
  choice->why = "no GPUs";
#endif
  PetscCheck(!choice->why || asked != PETSCTC_LAYER_PEER, comm, PETSC_ERR_SUP, "-petsctc_comm peer, but %s: use -petsctc_comm auto", choice->why);
  if (!choice->why) choice->layer = PETSCTC_LAYER_PEER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscTCLayerOf(MPI_Comm comm, PetscTCLayer *layer, const char **why)
{
  PetscTCChoice *choice;
  PetscMPIInt    found;

  PetscFunctionBegin;
  if (keyval == MPI_KEYVAL_INVALID) {
    PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, PetscTCChoiceFree, &keyval, NULL));
    PetscCall(PetscRegisterFinalize(PetscTCChoiceFinalize));
  }
  PetscCallMPI(MPI_Comm_get_attr(comm, keyval, &choice, &found));
  if (!found) {
    PetscCall(PetscNew(&choice));
    PetscCall(PetscTCChoose(comm, choice));
    PetscCallMPI(MPI_Comm_set_attr(comm, keyval, choice));
  }
  *layer = choice->layer;
  *why   = choice->why;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscMPIInt PetscTCMissingRank(const PetscTCMissing *missing)
{
  const volatile PetscTCMissing *left = missing;

  return left && left->late ? (PetscMPIInt)left->rank : -1;
}

PetscMPIInt PetscTCCommMissing(const PetscTCComm *of)
{
  return PetscTCMissingRank(of->missing);
}
