#!/usr/bin/env bash
# A PETSc with single precision: the library built against it, unit tests, solvers and files.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant single-host single -DPETSCTC_BENCH=OFF
run_variant single '^(harness_ksp|harness_examples|examples\.formats)$' # what depends on the size of numbers most
