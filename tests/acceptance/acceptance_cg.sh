#!/usr/bin/env bash
# PETSc's own tests of CG with -mat_type aijtc -ksp_type tccg against aij and cg. The environment reaches the harness' loops over a type.
set -euo pipefail
source "$(dirname "$0")/common.bash"
build_group cg
ab --title "cg" --work "$work/cg" --scripts "$work/scripts-cg.txt" --require mult group:fused group:fallback \
  --stock "-mat_type aij -ksp_type cg -use_gpu_aware_mpi 0" --stock-env mat_type=aij ksp_type=cg \
  --plugin "-mat_type aijtc -ksp_type tccg -use_gpu_aware_mpi 0 $plugin_options $by_layout" --plugin-env mat_type=aijtc ksp_type=tccg
