#!/usr/bin/env bash
# PETSc's own test of BCGS with -mat_type aijtc and tcbcgs against aij and bcgs; the sweep in sweep.sh covers the rest.
set -euo pipefail
source "$(dirname "$0")/common.bash"
build_group bcgs
ab --title "bcgs" --work "$work/bcgs" --scripts "$work/scripts-bcgs.txt" --require mult fused \
  --stock "-mat_type aij -s2_ksp_type bcgs -use_gpu_aware_mpi 0" --plugin "-mat_type aijtc -s2_ksp_type tcbcgs -use_gpu_aware_mpi 0 $plugin_options $by_layout"
