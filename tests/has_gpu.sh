#!/usr/bin/env bash
# Is there a GPU that PETSc can use? Asked of the driver, since a PETSc with CUDA says nothing about the machine.
set -euo pipefail
grep -q '^#define PETSC_HAVE_CUDA ' "$PETSC_DIR/${PETSC_ARCH:-}/include/petscconf.h"
command -v nvidia-smi >/dev/null
nvidia-smi -L 2>/dev/null | grep -q '^GPU '
