#!/usr/bin/env bash
# -help lists the types beside PETSc's own, and their options.
set -euo pipefail
source "$(dirname "$0")/common.bash"
tutorial ex2

run 1 ex2 -m 4 -n 4 -dll_append "$PETSCTC_LIB" -help
check "-help ends without error" '[ $status = 0 ]'
matrix=$(grep -A1 -- '-mat_type' <<<"$output" || true) solver=$(grep -A1 -- '-ksp_type' <<<"$output" || true)
check "-mat_type lists seqaijtc and mpiaijtc" '[[ $matrix == *seqaijtc* && $matrix == *mpiaijtc* ]]'
check "-ksp_type lists tccg, tcbcgs and tccr" '[[ $solver == *tccg* && $solver == *tcbcgs* && $solver == *tccr* ]]'
for method in tccg tcbcgs tccr; do
  run 1 ex2 -m 4 -n 4 -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type $method -help
  check "-help with the types chosen shows the matrix type's options" '[ $status = 0 ] && has "-mat_aijtc_mma" && has "-mat_aijtc_check"'
  for option in fused mma resident; do
    check "-help with $method shows -ksp_${method}_$option" 'has "-ksp_${method}_$option"'
  done
  for option in variant matsolve; do
    case $method in
    tccr) check "-help with $method shows no -ksp_${method}_$option" '! has "-ksp_${method}_$option"' ;;
    *) check "-help with $method shows -ksp_${method}_$option" 'has "-ksp_${method}_$option"' ;;
    esac
  done
done
run 1 ex2 -m 4 -n 4 -help
check "stock PETSc lists none of them" '[ $status = 0 ] && ! has aijtc && ! has tccg && ! has tcbcgs && ! has tccr'
finish
