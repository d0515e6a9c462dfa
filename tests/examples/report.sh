#!/usr/bin/env bash
# What solve tells at its end: every field of the block, the same in the CSV file, the picture, the stages of the log, and the line of progress.
# shellcheck source=common.bash
source "$(dirname "$0")/common.bash"

matrix=$data/shallow_water1.mtx.gz
gpu() { [ "$(fact GPU)" = usable ]; }
# positive LABEL N: cell N of that row is a number above 0
positive() { awk -v v="$(cell "$1" "$2")" 'BEGIN { exit !(v ~ /^[0-9.]+(e[-+][0-9]+)?$/ && v > 0) }'; }
# near A B: equal but for the digits that a table leaves out
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 0.006 * 0.006 + 1e-5 * b * b) }'; }
# field LINE NAME: of the CSV file
field() { python3 -c 'import csv, sys; print(list(csv.DictReader(open("runs.csv", newline="")))[int(sys.argv[1])][sys.argv[2]])' "$@"; }

# One solver, one solve
run 1 -f "$matrix" -solve_csv runs.csv
check 'one solve: no second one, no values' '[ "$status" = 0 ] && has "81920 rows, 327680 nonzeros" && positive "first solve, ms" 1 && [ -z "$(cell "second solve, ms" 1)$(cell "values, ms" 1)" ]'
check 'CSV: a line of names and one of values' '[ "$(wc -l <runs.csv)" = 2 ] && [ "$(field 0 second_solve_ms)" = "" ] && [ "$(field 0 iterations)" = "$(fact iterations)" ]'

# Both, for a method and preconditioner whose bytes are known
for np in 1 2; do
  for case in 'shallow_water1 none' 'shallow_water1 jacobi' 'cage10 none' 'cage10 jacobi'; do
    run $np -f "$data/${case% *}.mtx.gz" -pc_type "${case#* }" -compare -repeat 3 -solve_csv runs.csv
    for k in 1 2; do
      what="$case, np $np, column $k"
      for label in iterations reduction 'true residual' 'set-up, ms' 'values, ms' 'first solve, ms' 'second solve, ms' 'best solve, ms' us/iteration 'matrix, MB' 'product, bytes/nonzero' 'bandwidth, GB/s'; do
        check "$what: $label ($(cell "$label" $k))" '[ "$status" = 0 ] && positive "$label" $k'
      done
      check "$what: the best solve is none of the longer ones" 'awk "BEGIN { exit !($(cell "best solve, ms" $k) <= $(cell "second solve, ms" $k)) }"'
      check "$what: an iteration's time is the best solve's / iterations" 'awk "BEGIN { t = 1000 * $(cell "best solve, ms" $k) / $(cell iterations $k) / $(cell us/iteration $k); exit !(t > 0.9 && t < 1.1) }"'
      { gpu && [ $np != 1 ]; } || check "$what: the second solve copies nothing ($(cell "bytes copied, second solve" $k) bytes)" '[ "$(cell "bytes copied, second solve" $k)" = 0 ]' # but for messages
      line=$((k - 3))
      for pair in 'iterations:iterations' 'set-up, ms:setup_ms' 'values, ms:values_ms' 'second solve, ms:second_solve_ms' 'us/iteration:us_per_iteration' 'bytes copied, first solve:first_copied_bytes' 'bytes copied, second solve:second_copied_bytes'; do
        check "$what: ${pair%:*} in the CSV file" 'near "$(cell "${pair%:*}" $k)" "$(field $line "${pair#*:}")"'
      done
      check "$what: the types in the CSV file" '[ "$(cell -mat_type $k) $(cell -ksp_type $k) $(cell -pc_type $k) $(cell reason $k)" = "$(field $line mat_type) $(field $line ksp_type) $(field $line pc_type) $(field $line reason)" ]'
    done
    check "$case, np $np: the speed-up is that of the iterations" 'awk "BEGIN { r = $(cell us/iteration 1) / $(cell us/iteration 2) / $(cell us/iteration 3); exit !(r > 0.9 && r < 1.1) }"'
  done
done
check 'CSV: one line of names, as many fields in each line' 'python3 -c "import csv; rows = list(csv.reader(open(\"runs.csv\", newline=\"\"))); assert len(rows) == 18 and len(set(map(len, rows))) == 1 and [r[0] for r in rows].count(\"matrix\") == 1"'

# Which way it ran. On the host the layout is asked for
backend=(-mat_aijtc_backend auto)
gpu || backend=(-mat_aijtc_backend host)
run 1 -f "$matrix" -ksp_tccg_resident true -repeat 2 "${backend[@]}"
check 'on the chip, or its twin' '[ "$status" = 0 ] && has "tccg with aijtc ran: up to 64 iterations in one kernel"'
run 1 -f "$matrix" -ksp_tccg_resident false
check 'by steps' '[ "$status" = 0 ] && has "tccg with aijtc ran: fused kernels on the"'
run 1 -f "$matrix" -ksp_tccg_fused false
check "PETSc's solve, and why" '[ "$status" = 0 ] && has "ran: PETSc'"'"'s own solve" && has "not faster because: fusing is switched off"'
run 2 -f "$matrix" -petsctc_summary
if has 'none usable'; then check 'several processes, by steps' '[ "$status" = 0 ] && has "tccg with aijtc ran: fused kernels on the host"'
else check 'several processes with GPUs, and why' '[ "$status" = 0 ] && has "not faster because: more than one process" && has "PETSc-TC: not faster because (last): more than one process"'
fi
run 1 -f "$matrix" -ksp_type gmres -mat_type aij
check "PETSc's alone: nothing against it" '[ "$status" = 0 ] && has "gmres with aij ran: PETSc'"'"'s gmres on the host" && ! has "not faster" && [ "$(cell "bandwidth, GB/s" 1)" = - ]'
run 1 -f "$matrix" -repeat 2 -petsctc_summary -ksp_tccg_resident true "${backend[@]}"
solves=$(sed -n 's/^PETSc-TC: solves: on the chip \([0-9]*\), from the layout \([0-9]*\), by steps 0, in blocks of columns 0, by PETSc.s own method 0; iterations \([0-9]*\)$/\1 \2 \3/p' <<<"$output")
read -r chip layout iterations <<<"$solves"
check "the summary: all three solves had many iterations in one kernel ($solves)" '[ "$status" = 0 ] && [ "$((chip + layout))" = 3 ] && [ "$iterations" = "$((3 * $(cell iterations 1)))" ]'
check 'the summary: products and layouts' 'has "PETSc-TC: products: with a layout " && has ", by the parent type 0" && has "PETSc-TC: layouts: built 1, values refreshed 1; the largest "'

# Stages of the log: the second solve is one KSPSolve(). Last in each line are, of a PETSc with a GPU, number and size of copies to it, the same from it, and a share of flops
run 1 -f "$matrix" -repeat 2 -log_view
if has KSPSolve; then # PETSc can be built without a log
  awk '/^-----/ { on = 0 } /Event Stage/ { on = / Second solve$/ } on && NF > 20' <<<"$output" >stage.txt
  check 'the second solve is a stage of the log' '[ "$status" = 0 ] && [ "$(awk "\$1 == \"KSPSolve\" { print \$2 }" stage.txt)" = 1 ]'
  ! has CpuToGpu || check 'its copies in the log are those of the block: none' '[ "$(cell "bytes copied, second solve" 1)" = 0 ] && awk "{ copies += \$(NF - 4) + \$(NF - 3) + \$(NF - 2) + \$(NF - 1) } END { exit copies != 0 }" stage.txt'
fi
# What comes before the first iteration has events of its own, which the second solve does not have again
run 1 -f "$matrix" -repeat 2 -log_view -ksp_tccg_resident true "${backend[@]}"
events() { awk -v stage="$1" '/^-----/ { on = 0 } /Event Stage/ { on = $0 ~ stage"$" } on && $1 ~ /^(MatAIJTCBuild|MatAIJTCRefresh|KSPTCForm|KSPTCLoad)$/ { printf "%s %s;", $1, $2 }' <<<"$output"; }
! has KSPSolve || check "events of the first solve ($(events "First solve")), none of the second" '[ "$status" = 0 ] && [ "$(events "First solve")" = "KSPTCForm 1;KSPTCLoad 1;" ] && [ -z "$(events "Second solve")" ]'
! gpu || check 'a GPU: what a program on the host pays for its vectors' 'positive "vectors to and fro, ms" 1'

# The picture
run 1 -f "$data/cage10.mtx.gz" -compare -repeat 1 -solve_plot plot.svg
check 'the picture: XML with two curves of iterations + 1 points each' '[ "$status" = 0 ] && python3 "$here/plot.py" plot.svg "$(cell iterations 1)" "$(cell iterations 2)"'
run 1 -f "$data/cage10.mtx.gz" -solve_plot plot.svg
check 'the picture of one solver' '[ "$status" = 0 ] && python3 "$here/plot.py" plot.svg "$(cell iterations 1)"'
run 1 -f "$data/cage10.mtx.gz" -ksp_norm_type none -ksp_max_it 3 -solve_plot plot.svg
check 'the picture of a solver without norms has no curve' '[ "$status" = 0 ] && python3 "$here/plot.py" plot.svg'

# Files that cannot be written are errors that name them, before anything is solved
for option in -solve_csv -solve_plot; do
  for np in 1 2; do
    run $np -f "$matrix" $option nowhere/file
    check "$option to a folder that does not exist, np $np" '[ "$status" -gt 0 ] && [ "$status" -lt 124 ] && has "nowhere/file: cannot be written: No such file" && has "PETSC ERROR" && ! has "Matrix "'
  done
done
echo 'name,price' >other.csv
run 1 -f "$matrix" -solve_csv other.csv
check 'a CSV file of something else is left alone' '[ "$status" -gt 0 ] && has "other.csv: its first line is not that of -solve_csv" && [ "$(cat other.csv)" = name,price ]'

# Progress: by itself on a terminal alone, and after 2 seconds
endless="-laplacian 50 -mat_type aij -ksp_type richardson -ksp_richardson_scale 0.1 -ksp_rtol 0 -ksp_max_it 900000"
progress() { tr '\r' '\n' <<<"$output" | grep -c '^richardson: iteration [0-9]*, residual norm [0-9.e+-]*, [2-9]\.[0-9] s' || true; }
# shellcheck disable=SC2086 # options
output=$(timeout 10 "$solve" $endless -solve_progress 2>&1 >/dev/null </dev/null)
check "progress is shown ($(progress) times in 8 seconds)" '[ "$(progress)" -ge 2 ] && [ "$(progress)" -le 41 ]'
# shellcheck disable=SC2086 # options
output=$(timeout 4 "$solve" $endless 2>&1 >/dev/null </dev/null)
check 'not without a terminal' '[ "$(progress)" = 0 ]'
finish
