#!/usr/bin/env bash
# From nothing to solved systems: sets up, builds, and solves three SuiteSparse matrices with PETSc's types and with ours.
#   scripts/demo.sh [options of scripts/setup.sh]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/build.bash"
show_help "$0" "$@"

set_up "$@"
build "$preset" -DBUILD_TESTING=OFF -DPETSCTC_BENCH=OFF

solve() { # solve MATRIX METHOD TCMETHOD
  echo
  echo "== $1: aij + $2 against aijtc + $3"
  "$root/build-$preset/bin/solve" -f "$root/tests/data/$1.mtx.gz" -mat_type aijtc -ksp_type "$3" -pc_type jacobi -ksp_rtol 1e-8 -ksp_max_it 10000 -compare -solve_plot "$root/build-$preset/$1.svg"
  echo "Residual against time: $root/build-$preset/$1.svg"
}
solve shallow_water1 cg tccg
solve apache1 cg tccg
solve cage10 bcgs tcbcgs
