#!/usr/bin/env bash
# Linked and appended at once, also from a second copy of the file: registered once, no error, nothing left.
set -euo pipefail
source "$(dirname "$0")/common.bash"
folder=$(dirname "$PETSCTC_LIB")
build linked "$here/linked_and_appended.c" -I"$here/../../include" -L"$folder" -lpetsctc -Wl,-rpath,"$folder"
cp "$PETSCTC_LIB" "$work/libpetsctc.so"

for np in 1 2; do
  name=$([ $np = 1 ] && echo seqaijtc || echo mpiaijtc)
  good() { [ $status = 0 ] && has "matrix $name" && has "solver tccg" && has "solver tcbcgs" && ! has "PETSC ERROR\|WARNING\|bytes allocated"; }
  run $np linked -malloc_dump -checkfunctionlist
  check "linked, $np processes" 'good && has "before the call: FALSE"'
  run $np linked -malloc_dump -checkfunctionlist -dll_append "$PETSCTC_LIB"
  check "linked and appended, $np processes" 'good && has "before the call: TRUE"'
  run $np linked -malloc_dump -checkfunctionlist -dll_append "$work/libpetsctc.so"
  check "linked and another copy appended, $np processes" 'good'
done
finish
