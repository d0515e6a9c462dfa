#!/usr/bin/env bash
# A PETSc with 64-bit indices: the library built against it, unit tests, solvers and files.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant int64-host int64 -DPETSCTC_BENCH=OFF
run_variant_short int64
