#!/usr/bin/env bash
# PETSc's previous release, configured and not built: glue and host kernels must compile against its headers, in double and in single precision.
set -euo pipefail
source "$PETSCTC_SOURCE/tests/variants/common.bash"
set_up --release 3.25 --variant headers
grep -q '^#define PETSC_VERSION_MINOR *25' "$PETSC_DIR/include/petscversion.h" || { echo "not PETSc 3.25: $PETSC_DIR" && exit 1; }
mapfile -t sources < <(find "$root/src" -name '*.cxx' | sort)
[ ${#sources[@]} -gt 0 ] || { echo "no sources in $root/src" && exit 1; }
compile() { # compile FOLDER SOURCE: with the petscconf.h of that folder
  mpicxx -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$root/include" -isystem "$1" -isystem "$PETSC_DIR/$PETSC_ARCH/include" -isystem "$PETSC_DIR/include" "$2" || {
    echo "$2 does not compile against PETSc 3.25, with $(grep PETSC_USE_REAL_ "$1/petscconf.h")"
    return 1
  }
}
export -f compile
export root
# What single precision changes in the headers is this one line
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for precision in DOUBLE SINGLE; do
  folder=$work/$precision
  mkdir "$folder"
  sed "s/^#define PETSC_USE_REAL_DOUBLE /#define PETSC_USE_REAL_$precision /" "$PETSC_DIR/$PETSC_ARCH/include/petscconf.h" >"$folder/petscconf.h"
  grep -q "^#define PETSC_USE_REAL_$precision " "$folder/petscconf.h" || { echo "no line of the precision in $PETSC_ARCH's petscconf.h" && exit 1; }
  printf '%s\0' "${sources[@]}" | xargs -0 -P 2 -I{} bash -c 'compile "$1" "$2"' bash "$folder" {}
done
echo "${#sources[@]} files compile against PETSc 3.25, in double and in single precision"
