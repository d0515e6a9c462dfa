#!/usr/bin/env bash
# makefile.petsc: all, check, install; then a program compiled with what pkg-config says of that installation.
set -euo pipefail
source "$(dirname "$0")/common.bash"
make="make -f $PETSCTC_SOURCE/makefile.petsc PETSC_DIR=$PETSC_DIR PETSC_ARCH=$PETSC_ARCH BUILDDIR=$work/build"
# nvcc takes half an hour for all kernels: what this build compiled with it serves, except for one file that shows the makefile's rule
compiled=$PETSCTC_BUILD/CMakeFiles/petsctc_kernels.dir
mapfile -t kernels < <(cd "$compiled" && find . -name '*.cu.o' -printf '%s %P\n' | sort -n | cut -d' ' -f2 | tail -n +2)
for kernel in "${kernels[@]}"; do install -D "$compiled/$kernel" "$work/build/obj/$kernel"; done
$make -j "${PETSCTC_JOBS:-2}" all
$make check
$make install PREFIX="$prefix"
installed
by_pkg_config "$here/solve.c" "$work/solve"
solves "$work/solve"
$make clean
[ ! -e "$work/build" ] || { echo "FAILED: make clean leaves $work/build" && exit 1; }
for broken in "PETSC_DIR=" "PETSC_DIR=/nonexistent"; do
  ! make -f "$PETSCTC_SOURCE/makefile.petsc" "$broken" PETSC_ARCH= all >"$work/log" 2>&1 || { echo "FAILED: make all $broken succeeded" && exit 1; }
done
