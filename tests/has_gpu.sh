#!/usr/bin/env bash
# Is there a GPU that PETSc and the library, in double precision, can use? Asked of the driver, since a PETSc with CUDA says nothing about the machine.
set -euo pipefail
grep -q '^#define PETSC_HAVE_CUDA ' "$PETSC_DIR/${PETSC_ARCH:-}/include/petscconf.h"
grep -q '^#define PETSC_USE_REAL_DOUBLE ' "$PETSC_DIR/${PETSC_ARCH:-}/include/petscconf.h"
command -v nvidia-smi >/dev/null
nvidia-smi -L 2>/dev/null | grep -q '^GPU '
