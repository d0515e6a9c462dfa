#!/usr/bin/env bash
# PETSc's objects change from release to release: a PETSc of another release is refused at load, with both numbers in the message.
set -euo pipefail
source "$(dirname "$0")/common.bash"
tutorial ex2
build other_version.so "$here/wrong_version.c" -shared -fPIC
other=$(pkg-config --modversion PETSc | awk -F. '{print $1 "." $2 + 73}')
mine=$(pkg-config --modversion PETSc | cut -d. -f1,2)

run 1 ex2 -m 4 -n 4 -dll_append "$PETSCTC_LIB" -mat_type aijtc
check "the release it was built for is accepted" '[ $status = 0 ] && ! has "PETSC ERROR"'
export LD_PRELOAD=$work/other_version.so
run 1 ex2 -m 4 -n 4 -dll_append "$PETSCTC_LIB" -mat_type aij
unset LD_PRELOAD
check "another release is refused, both numbers named" '[ $status != 0 ] && has "PETSC ERROR" && has "$mine\." && has "$other\."'
finish
