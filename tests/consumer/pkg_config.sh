#!/usr/bin/env bash
# cmake --install, then a program compiled with what pkg-config says of petsctc.
set -euo pipefail
source "$(dirname "$0")/common.bash"
cmake --install "$PETSCTC_BUILD" --prefix "$prefix" >"$work/install.log"
installed
by_pkg_config "$here/solve.c" "$work/solve"
solves "$work/solve"
