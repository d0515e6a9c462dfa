#!/usr/bin/env bash
# Two PetscInitialize() in one process: the types are there in both rounds.
set -euo pipefail
source "$(dirname "$0")/common.bash"
build two_rounds "$here/two_rounds.c"

rounds() { grep '^round' <<<"$output" || true; }
for np in 1 2; do
  run $np two_rounds -mat_type aij -ksp_type cg -pc_type jacobi
  stock=$(rounds)
  check "stock PETSc, $np processes" '[ $status = 0 ] && [ "$(wc -l <<<"$stock")" = 2 ]'
  run $np two_rounds -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type tccg -pc_type jacobi -petsctc_summary -malloc_dump -checkfunctionlist
  check "appended, $np processes: same iterations, both rounds use the plugin, nothing left" \
    '[ $status = 0 ] && [ "$(rounds)" = "$stock" ] && [ "$(grep -c "^PETSc-TC: mult.* mult_parent [1-9]" <<<"$output")" = 2 ] && ! has "bytes allocated\|PETSC ERROR\|WARNING"'
done
finish
