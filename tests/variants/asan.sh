#!/usr/bin/env bash
# AddressSanitizer and UndefinedBehaviorSanitizer over our host code, against the debugging PETSc without CUDA: unit tests, harness, examples.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant debug asan
run_variant asan
