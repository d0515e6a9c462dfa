/* What the view of an object says */
#pragma once

#include <petscsys.h>
#include <petscviewer.h>

/* Writes the view in this format to file `name` of this folder and reads it: text[] gets what fits, on all processes of the object */
static PETSC_UNUSED PetscErrorCode ViewText(PetscObject object, PetscViewerFormat format, const char name[], char text[], size_t size)
{
  PetscViewer viewer;
  PetscMPIInt rank;
  FILE       *f;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpen(PetscObjectComm(object), name, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, format));
  PetscCall(PetscObjectView(object, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm(object), &rank));
  if (rank == 0) {
    f = fopen(name, "r");
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
  }
  PetscCallMPI(MPI_Bcast(text, (PetscMPIInt)size, MPI_CHAR, 0, PetscObjectComm(object)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the plain view, which goes the same way to text[], contain this part? */
static PETSC_UNUSED PetscErrorCode ViewSays(PetscObject object, const char part[], const char name[], char text[], size_t size, PetscBool *says)
{
  char *at;

  PetscFunctionBeginUser;
  PetscCall(ViewText(object, PETSC_VIEWER_DEFAULT, name, text, size));
  PetscCall(PetscStrstr(text, part, &at));
  *says = at ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
