#!/usr/bin/env bash
# An unmodified PETSc program on options alone: same iterations and the same error as stock PETSc, for both solvers, 1 to 4 processes.
set -euo pipefail
source "$(dirname "$0")/common.bash"
tutorial ex2

for method in cg bcgs; do
  for np in 1 2 4; do
    for pc in jacobi bjacobi; do
      options="-m 13 -n 11 -ksp_rtol 1e-6 -pc_type $pc -ksp_converged_reason"
      run $np ex2 $options -mat_type aij -ksp_type $method
      stock=$(iterations) reason=$(grep 'Linear solve' <<<"$output" || true)
      check "stock $method, $pc, $np processes: $stock iterations" '[ $status = 0 ] && [ -n "$reason" ] && [ "$stock" -gt 5 ]'
      run $np ex2 $options -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type tc$method -petsctc_summary
      check "tc$method, $pc, $np processes: $(iterations) iterations" '[ $status = 0 ] && used && [ "$(iterations)" = "$stock" ] && has "$reason"'
    done
  done
done
finish
