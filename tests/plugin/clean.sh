#!/usr/bin/env bash
# What a user must not see: leaked objects, functions left in PETSc's lists, options called unused, or output of a library that is only loaded.
set -euo pipefail
source "$(dirname "$0")/common.bash"
tutorial ex2

for np in 1 2; do
  run $np ex2 -m 9 -n 9 -ksp_monitor
  stock=$output
  run $np ex2 -m 9 -n 9 -ksp_monitor -dll_append "$PETSCTC_LIB"
  check "loaded only, $np processes: the output is stock PETSc's" '[ $status = 0 ] && [ "$output" = "$stock" ]'
  for method in tccg tcbcgs; do
    for pc in none jacobi bjacobi gamg; do
      run $np ex2 -m 9 -n 9 -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type $method -pc_type $pc -options_left -malloc_dump -malloc_debug -checkfunctionlist -objects_dump
      check "$method, $pc, $np processes: no unused option, no leak" '[ $status = 0 ] && has "no unused options" && ! has "bytes allocated\|PETSC ERROR\|The following objects were never freed\|not used"'
    done
  done
  run $np ex2 -m 9 -n 9 -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type tccg -mat_aijtc_mma core -mat_aijtc_check -mat_aijtc_backend host -petsctc_summary -options_left
  check "the plugin's own options are used, $np processes" '[ $status = 0 ] && used && has "no unused options"'
done
finish
