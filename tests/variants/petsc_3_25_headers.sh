#!/usr/bin/env bash
# PETSc's previous release, configured and not built: glue and host kernels must compile against its headers.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
set_up --release 3.25 --variant headers
grep -q '^#define PETSC_VERSION_MINOR *25' "$PETSC_DIR/include/petscversion.h" || { echo "not PETSc 3.25: $PETSC_DIR" && exit 1; }
mapfile -t sources < <(find "$root/src" -name '*.cxx' | sort)
[ ${#sources[@]} -gt 0 ] || { echo "no sources in $root/src" && exit 1; }
compile() {
  mpicxx -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$root/include" -isystem "$PETSC_DIR/$PETSC_ARCH/include" -isystem "$PETSC_DIR/include" "$1" || {
    echo "$1 does not compile against PETSc 3.25"
    return 1
  }
}
export -f compile
export root
printf '%s\0' "${sources[@]}" | xargs -0 -P 2 -I{} bash -c 'compile "$1"' bash {}
echo "${#sources[@]} files compile against PETSc 3.25"
