#!/usr/bin/env bash
# The comparison itself: each verdict of ab.py must be reached by outputs made for it, so that a green A/B means something.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
# A program that prints what its option says: "plugin" is given on the plugin's side only.
cat >"$work/tree/print" <<'P'
#!/bin/bash
case "$*" in *"side plugin"*) side=plugin ;; *"side twin"*) side=twin ;; *"side vary"*) side=vary ;; *) side=stock ;; esac
reason=CONVERGED_RTOL its=12 norm=3.25e-3 tail=1.0e-14 type=seqaij status=0 count=5
case "$1/$side" in
  type/plugin) type=seqaijtc ;;
  rounding/plugin) norm=3.2500001e-3 tail=1.7e-14 ;;
  number/plugin) norm=3.2503e-3 ;;
  rounds/plugin) norm=3.252e-3 ;;
  rounds/vary) norm=3.2503e-3 ;;
  rounds1/plugin) norm=3.256e-3 ;;
  rounds1/vary) norm=3.2503e-3 ;;
  lastdigit/plugin) norm=3.251e-3 ;;
  fewdigits/plugin) norm=3.26e-3 ;;
  small/plugin) tail=1.0e-9 ;;
  iterations/plugin) its=13 ;;
  reason/plugin) reason=CONVERGED_ATOL ;;
  longer/plugin) tail="1.0e-14"$'\n'"one more line" ;;
  fails/plugin) status=1 ;;
  unused/plugin) count=0 ;;
  stockfails/stock) status=1 ;;
  nan/plugin) norm=nan ;;
  astwin/plugin | astwin/twin | nottwin/plugin) its=14 ;;
  twinerror/plugin | twinerror/twin) echo "PETSC ERROR: not of type seqaij$([ $side = twin ] && echo perm || echo tc)" && exit 1 ;;
  twinmixed/plugin) echo "[1]PETSC ERROR: [0]PETSC ERROR: ----- Error Message -----"$'\n'"[0]PETSC ERROR: not of type seqaijtc" && exit 1 ;; # two processes in one line
  twinmixed/twin) echo "[0]PETSC ERROR: ----- Error Message -----"$'\n'"[0]PETSC ERROR: not of type seqaijperm" && exit 1 ;;
  stockvaries/stock | pluginvaries/plugin) # every second time another number
    echo >>"$COUNTER"
    norm=3.2$(($(wc -l <"$COUNTER") % 2))e-3
    ;;
  stockvaries/plugin | pluginvaries/stock) norm=3.20e-3 ;;
esac
printf '%s\n' "Mat type: $type" "0 KSP Residual norm 1.00" "1 KSP Residual norm $norm" "2 KSP Residual norm $tail" "$reason iterations $its"
[ $side != plugin ] || echo "PETSc-TC: mult $count builds 1 refreshes 0 fused 0 fallback 0"
exit $status
P
cat >"$work/mpiexec" <<'P'
#!/bin/bash
shift 2
exec "$@"
P
chmod +x "$work/tree/print" "$work/mpiexec"

export COUNTER=$work/counter
bad=0
expect() { # case verdict [exception [option]]
  echo "$1 | 1 | print | $1 | | -side plugin" >"$work/list"
  echo "${3:-}" >"$work/exceptions"
  local output status=0 want=1
  rm -f "$COUNTER"
  output=$(python3 "$here/ab.py" --title test --tree "$work/tree" --work "$work/out" --petsc /nowhere --commands "$work/list" --mpiexec "$work/mpiexec" \
    --require mult ${4:+"$4"} --exceptions "$work/exceptions" --jobs 1) || status=$?
  case $2 in identical | *stated | *twin | *rounding | "not used" | "stock fails") want=0 ;; esac
  if [[ $output == *"1 $2"* && $status = "$want" ]]; then
    echo "ok: $1 is $2"
  else
    echo "FAILED: $1 should be '$2' with exit status $want, got $status:"
    echo "$output"
    bad=1
  fi
}
expect type identical
expect rounding identical
expect number "numbers differ (FAILURE)"
expect lastdigit "identical"
expect fewdigits "numbers differ (FAILURE)"
expect small "numbers differ (FAILURE)"
expect nan "different (FAILURE)"
expect iterations "different (FAILURE)"
expect iterations "different as stated" "iterations different because"
expect number "numbers differ as stated" "number numbers-differ because"
expect iterations "different (FAILURE)" "iterations numbers-differ because"
expect reason "different (FAILURE)"
expect longer "different (FAILURE)"
expect fails "different (FAILURE)"
expect stockvaries identical
expect pluginvaries "numbers differ (FAILURE)"
expect unused "unused (FAILURE)"
expect stockfails "stock fails (FAILURE)"
expect stockfails "stock fails as stated" "stockfails stock-fails because"
expect astwin "as a twin" "" "--twin=-side twin"
expect twinerror "as a twin" "" "--twin=-side twin"
expect twinmixed "as a twin" "" "--twin=-side twin"
expect nottwin "different (FAILURE)" "" "--twin=-side twin"
expect rounds "within rounding" "" "--vary=-side vary"
expect rounds1 "numbers differ (FAILURE)" "" "--vary=-side vary"
expect unused "not used" "" "--used=mult"
expect stockfails "stock fails" "" "--tally"
mv "$work/mpiexec" "$work/gone"
expect type "stock fails (FAILURE)"
exit $bad
