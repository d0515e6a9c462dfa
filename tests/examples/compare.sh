#!/usr/bin/env bash
# solve -compare on the real matrices: our types take as many iterations as PETSc's, for the same reason, to the same residual.
# shellcheck source=common.bash
source "$(dirname "$0")/common.bash"

percent=${single:+50} percent=${percent:-05} # 300 iterations leave no more of 7 digits
# within A B FACTOR: neither is FACTOR times the other
within() { awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a > 0 && b > 0 && a <= f * b && b <= f * a) }'; }

# compare NP MATRIX STOCK OURS OPTIONS...
compare() {
  local np=$1 matrix=$2 stock=$3 ours=$4
  shift 4
  run "$np" -f "$data/$matrix.mtx.gz" -compare -repeat 1 "$@"
  local what="$matrix, np $np, $stock and $ours $*"
  check "$what: runs" '[ "$status" = 0 ]'
  check "$what: the types" '[[ $(cell -mat_type 1) = aij* && $(cell -ksp_type 1) = $stock && $(cell -mat_type 2) = aijtc && $(cell -ksp_type 2) = $ours ]]'
  check "$what: equal iterations ($(cell iterations 1) and $(cell iterations 2))" '[ "$(cell iterations 1)" -gt 0 ] && [ "$(cell iterations 1)" = "$(cell iterations 2)" ]'
  check "$what: equal reason ($(cell reason 1))" '[ -n "$(cell reason 1)" ] && [ "$(cell reason 1)" = "$(cell reason 2)" ]'
  check "$what: residuals within $percent percent ($(cell "true residual" 1) and $(cell "true residual" 2))" 'within "$(cell "true residual" 1)" "$(cell "true residual" 2)" 1.$percent'
  check "$what: both took time" 'awk "BEGIN { exit !($(cell us/iteration 1) > 0 && $(cell us/iteration 2) > 0 && $(cell us/iteration 3) > 0) }"'
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
check "shallow_water1 to $rtol by the defaults" '[ "$status" = 0 ] && [ "$(fact reason)" = CONVERGED_RTOL ] && [ "$(cell -mat_type 1) $(cell -ksp_type 1) $(cell -pc_type 1)" = "aijtc tccg none" ] && awk "BEGIN { exit !($(fact "true residual") < 10 * $rtol) }"'
run 1 -f "$data/cage10.mtx.gz" -ksp_rtol $rtol
check "cage10 to $rtol by the defaults" '[ "$status" = 0 ] && [ "$(fact reason)" = CONVERGED_RTOL ] && [ "$(cell -mat_type 1) $(cell -ksp_type 1) $(cell -pc_type 1)" = "aijtc tcbcgs none" ] && awk "BEGIN { exit !($(fact "true residual") < 10 * $rtol) }"'

# The options choose both lines
run 1 -f "$data/cage10.mtx.gz" -compare -repeat 2 -compare_mat_type aij -compare_ksp_type gmres -mat_type aij -ksp_type bcgs
check 'types by option' '[ "$status" = 0 ] && [ "$(cell -ksp_type 1)" = gmres ] && [ "$(cell -mat_type 2)" = aij ] && [ "$(cell -ksp_type 2)" = bcgs ] && ! has "unused"'
run 1 -help
check '-help alone explains and ends' '[ "$status" = 0 ] && has "-f <file>" && has "-ksp_type tccg" && ! has "PETSC ERROR"'

finish
