#!/usr/bin/env bash
# PETSc's own tests with -mat_type aijtc against -mat_type aij; solvers are the tests' own.
set -euo pipefail
source "$(dirname "$0")/common.bash"
build_group matrix
ab --title "matrix" --work "$work/matrix" --scripts "$work/scripts-matrix.txt" --require mult --exceptions "$here/exceptions-matrix.txt" \
  --stock "-mat_type aij -use_gpu_aware_mpi 0" --plugin "-mat_type aijtc -use_gpu_aware_mpi 0 $plugin_options $by_layout"
