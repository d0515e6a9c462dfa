#!/usr/bin/env bash
# solve -compare on the real matrices: our types take as many iterations as PETSc's, for the same reason, to the same residual.
# shellcheck source=common.bash
source "$(dirname "$0")/common.bash"

percent=${single:+50} percent=${percent:-05} # 300 iterations leave no more of 7 digits
# column NAME N: field N of the line of the table that begins with NAME
column() { awk -v name="$1" -v n="$2" '$1 == name { print $n }' <<<"$output"; }
# within A B FACTOR: neither is FACTOR times the other
within() { awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a > 0 && b > 0 && a <= f * b && b <= f * a) }'; }

# compare NP MATRIX STOCK OURS OPTIONS...
compare() {
  local np=$1 matrix=$2 stock=$3 ours=$4
  shift 4
  run "$np" -f "$data/$matrix.mtx.gz" -compare -repeat 1 "$@"
  local what="$matrix, np $np, $stock and $ours $*"
  check "$what: runs" '[ "$status" = 0 ]'
  check "$what: the types" '[[ $(column PETSc 2) = aij* && $(column PETSc 3) = $stock && $(column PETSc-TC 2) = aijtc && $(column PETSc-TC 3) = $ours ]]'
  check "$what: equal iterations ($(column PETSc 5) and $(column PETSc-TC 5))" '[ "$(column PETSc 5)" -gt 0 ] && [ "$(column PETSc 5)" = "$(column PETSc-TC 5)" ]'
  check "$what: equal reason ($(column PETSc 6))" '[ -n "$(column PETSc 6)" ] && [ "$(column PETSc 6)" = "$(column PETSc-TC 6)" ]'
  check "$what: residuals within $percent percent ($(column PETSc 7) and $(column PETSc-TC 7))" 'within "$(column PETSc 7)" "$(column PETSc-TC 7)" 1.$percent'
  check "$what: both took time" 'awk "BEGIN { exit !($(column PETSc 8) > 0 && $(column PETSc-TC 8) > 0 && $(column PETSc-TC 9) > 0) }"'
}

for np in 1 2; do
  compare $np shallow_water1 cg tccg
  compare $np shallow_water1 cg tccg -pc_type jacobi -ksp_rtol 1e-10
  compare $np apache1 cg tccg -pc_type jacobi -ksp_rtol 1e-6 -ksp_max_it 300
  compare $np apache1 cg tccg -ksp_max_it 100
  compare $np cage10 bcgs tcbcgs
  compare $np cage10 bcgs tcbcgs -pc_type jacobi -ksp_rtol 1e-10
done

rtol=${single:+1e-5} rtol=${rtol:-1e-8}
# Converged means converged: by the residual that the program computes itself
run 1 -f "$data/shallow_water1.mtx.gz" -ksp_rtol $rtol
check "shallow_water1 to $rtol by the defaults" '[ "$status" = 0 ] && [ "$(fact reason)" = CONVERGED_RTOL ] && has "-mat_type aijtc -ksp_type tccg -pc_type none" && awk "BEGIN { exit !($(fact "true residual") < 10 * $rtol) }"'
run 1 -f "$data/cage10.mtx.gz" -ksp_rtol $rtol
check "cage10 to $rtol by the defaults" '[ "$status" = 0 ] && [ "$(fact reason)" = CONVERGED_RTOL ] && has "-mat_type aijtc -ksp_type tcbcgs -pc_type none" && awk "BEGIN { exit !($(fact "true residual") < 10 * $rtol) }"'

# The options choose both lines
run 1 -f "$data/cage10.mtx.gz" -compare -repeat 2 -compare_mat_type aij -compare_ksp_type gmres -mat_type aij -ksp_type bcgs
check 'types by option' '[ "$status" = 0 ] && [ "$(column PETSc 3)" = gmres ] && [ "$(column PETSc-TC 2)" = aij ] && [ "$(column PETSc-TC 3)" = bcgs ] && ! has "unused"'
run 1 -help
check '-help alone explains and ends' '[ "$status" = 0 ] && has "-f <file>" && has "-ksp_type tccg" && ! has "PETSC ERROR"'

finish
