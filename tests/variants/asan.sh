#!/usr/bin/env bash
# AddressSanitizer and UndefinedBehaviorSanitizer over our host code, against a PETSc with its debugging checks on (exact type names, stack, memory), 64-bit indices and no CUDA: unit tests, examples, files. The harness of tests/mat
# and tests/ksp takes far longer than all of these, and is for hand (docs/libraries.md).
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant int64-host asan -DPETSCTC_BENCH=OFF
run_variant asan '^(harness_examples|examples\.)'
