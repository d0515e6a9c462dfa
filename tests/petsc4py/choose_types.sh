#!/usr/bin/env bash
# petsc4py of PETSc's version chooses both types from Python; the library is loaded by petsc4py.init(["-dll_append", ...]).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/environment.bash"
prepare_environment
for np in 1 2; do
  echo "== $np processes"
  status=0
  output=$(${MPIEXEC:-mpiexec} -n $np "$python" "$here/choose_types.py" -dll_append "$PETSCTC_LIB" -petsctc_summary 2>&1) || status=$?
  echo "$output"
  [ $status = 0 ] || { echo "FAILED: exit status $status"; exit 1; }
  grep -q '^PETSc-TC: mult\( [1-9]\|.* mult_parent [1-9]\)' <<<"$output" || { echo "FAILED: the plugin's product was never used"; exit 1; }
done
