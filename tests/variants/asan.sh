#!/usr/bin/env bash
# AddressSanitizer and UndefinedBehaviorSanitizer over our host code, against the debugging PETSc without CUDA: unit tests, harness, examples.
set -euo pipefail
# With addresses randomised by 32 bits, as some kernels do, GCC's AddressSanitizer (before 14) finds its shadow taken now and then
if [ -z "${PETSCTC_FIXED_ADDRESSES:-}" ] && setarch "$(uname -m)" -R true 2>/dev/null; then
  PETSCTC_FIXED_ADDRESSES=1 exec setarch "$(uname -m)" -R bash "$0"
fi
source "$PETSCTC_SOURCE/tests/variants/common.bash"
build_variant debug asan
run_variant asan
