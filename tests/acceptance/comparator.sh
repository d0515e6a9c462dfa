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
case "$*" in *"side plugin"*) side=plugin ;; *) side=stock ;; esac
reason=CONVERGED_RTOL its=12 norm=3.25e-3 tail=1.0e-14 type=seqaij status=0 count=5
case "$1/$side" in
  type/plugin) type=seqaijtc ;;
  rounding/plugin) norm=3.2500001e-3 tail=1.7e-14 ;;
  number/plugin) norm=3.2503e-3 ;;
  small/plugin) tail=1.0e-9 ;;
  iterations/plugin) its=13 ;;
  reason/plugin) reason=CONVERGED_ATOL ;;
  longer/plugin) tail="1.0e-14"$'\n'"one more line" ;;
  fails/plugin) status=1 ;;
  unused/plugin) count=0 ;;
  stockfails/stock) status=1 ;;
  nan/plugin) norm=nan ;;
  stockvaries/stock | pluginvaries/plugin) # every second time another number
    echo >>"$COUNTER"
    norm=3.2$(($(wc -l <"$COUNTER") % 2))e-3
    ;;
  stockvaries/plugin | pluginvaries/stock) norm=3.20e-3 ;;
esac
printf '%s\n' "Mat type: $type" "0 KSP Residual norm 1.00" "1 KSP Residual norm $norm" "2 KSP Residual norm $tail" "$reason iterations $its"
[ $side = stock ] || echo "PETSc-TC: mult $count builds 1 refreshes 0 fused 0 fallback 0"
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
expect() { # case verdict [exception]
  echo "$1 | 1 | print | $1 | | -side plugin" >"$work/list"
  echo "${3:-}" >"$work/exceptions"
  local output status=0 want=1
  rm -f "$COUNTER"
  output=$(python3 "$here/ab.py" --title test --tree "$work/tree" --work "$work/out" --petsc /nowhere --commands "$work/list" --mpiexec "$work/mpiexec" \
    --require mult --exceptions "$work/exceptions" --jobs 1) || status=$?
  case $2 in identical | *stated) want=0 ;; esac
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
expect number "different (FAILURE)"
expect small "different (FAILURE)"
expect nan "different (FAILURE)"
expect iterations "different (FAILURE)"
expect iterations "different as stated" "iterations different because"
expect reason "different (FAILURE)"
expect longer "different (FAILURE)"
expect fails "different (FAILURE)"
expect stockvaries identical
expect pluginvaries "different (FAILURE)"
expect unused "unused (FAILURE)"
expect stockfails "stock fails (FAILURE)"
expect stockfails "stock fails as stated" "stockfails stock-fails because"
mv "$work/mpiexec" "$work/gone"
expect type "stock fails (FAILURE)"
exit $bad
