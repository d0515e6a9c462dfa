#!/usr/bin/env bash
# A PETSc with its debugging checks on (exact type names, stack, memory) and no CUDA: the library built against it, unit tests and harness.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant debug debug
run_variant debug
