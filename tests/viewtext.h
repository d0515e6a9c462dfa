/* What the view of an object says */
#pragma once

#include <petscsys.h>
#include <petscviewer.h>

/* Writes the view in this format to file `name` of this folder and reads it: text[] gets what fits */
static PETSC_UNUSED PetscErrorCode ViewText(PetscObject object, PetscViewerFormat format, const char name[], char text[], size_t size)
{
  PetscViewer viewer;
  FILE       *f;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_SELF, name, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, format));
  PetscCall(PetscObjectView(object, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  f = fopen(name, "r");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
  text[fread(text, 1, size - 1, f)] = 0;
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}
