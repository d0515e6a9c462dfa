#!/usr/bin/env bash
# Sets up, builds and runs every test. The last lines are ctest's summary; tests that need a GPU are reported as skipped where there is none.
#   scripts/test.sh [options of scripts/setup.sh] [-- options of ctest]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/build.bash"
show_help "$0" "$@"

setup_options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  setup_options+=("$1")
  shift
done
[ $# -eq 0 ] || shift

own_petsc=${PETSC_DIR:+1} # a PETSc of the user's: no second one is built for the tests
set_up "${setup_options[@]}"
build "$preset" -DBUILD_TESTING=ON -DPETSCTC_BENCH=ON -DPETSCTC_OTHER_PETSCS="$([ -n "$own_petsc" ] && echo OFF || echo ON)"
exec ctest --test-dir "$root/build-$preset" --parallel 2 --output-on-failure "$@"
