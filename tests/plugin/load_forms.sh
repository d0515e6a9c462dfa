#!/usr/bin/env bash
# Every way in which a user can name the library gives the types, with no change to the program: PETSc's ksp tutorial ex2.
set -euo pipefail
source "$(dirname "$0")/common.bash"
tutorial ex2

solve="-m 20 -n 20 -pc_type jacobi"
types="-mat_type aijtc -ksp_type tccg -petsctc_summary"
run 1 ex2 $solve -mat_type aij -ksp_type cg
expected=$(iterations)
check "stock PETSc solves in $expected iterations" '[ $status = 0 ] && [ "$expected" -gt 5 ]'

loaded() { # what
  check "$1" '[ $status = 0 ] && used && [ "$(iterations)" = "$expected" ] && ! has WARNING'
}
folder=$work/a\ folder
mkdir -p "$folder"
cp "$PETSCTC_LIB" "$folder/libpetsctc.so"
cp "$PETSCTC_LIB" "$work/libpetsctc.so"
cp "$PETSCTC_LIB" "$work/libpetsctc.so.0.1"
link=$work/link && rm -f "$link" && ln -s "$folder" "$link"

run 1 ex2 $solve $types -dll_append "$PETSCTC_LIB"
loaded "absolute path"
run 1 ex2 $solve $types -dll_append "${PETSCTC_LIB%.so}"
loaded "absolute path without .so"
run 1 ex2 $solve $types -dll_append "$link"
loaded "a folder"
run 1 ex2 $solve $types -dll_append "$folder/libpetsctc.so"
loaded "a path with a space"
run 1 ex2 $solve $types -dll_append ./libpetsctc.so
loaded "relative path with ./"
run 1 ex2 $solve $types -dll_append "$work/libpetsctc.so.0.1"
loaded "a library name with a version"
export PETSCTC_TEST_FOLDER=$link
run 1 ex2 $solve $types -dll_append '${PETSCTC_TEST_FOLDER}/libpetsctc.so'
loaded "an environment variable in the path"
run 1 ex2 $solve $types -dll_prepend "$PETSCTC_LIB"
loaded "-dll_prepend"
run 1 ex2 $solve $types -dll_append "$PETSCTC_LIB,$work/libpetsctc.so"
loaded "the library named twice, two files"

export PETSC_OPTIONS="-dll_append $PETSCTC_LIB $types"
run 1 ex2 $solve
loaded "PETSC_OPTIONS"
unset PETSC_OPTIONS
printf '%s\n' "# comment" "-dll_append $PETSCTC_LIB" "-mat_type aijtc" "-ksp_type tccg" "-petsctc_summary" >"$work/options"
run 1 ex2 $solve -options_file "$work/options"
loaded "an options file"
cp "$work/options" "$work/.petscrc"
run 1 ex2 $solve
loaded ".petscrc"
rm "$work/.petscrc"
run 2 ex2 $solve $types -dll_append "$PETSCTC_LIB"
check "two processes" '[ $status = 0 ] && used && ! has WARNING'

run 1 ex2 $solve $types -dll_append "$work/nowhere/libpetsctc.so"
check "a path that does not exist is an error that names it" '[ $status != 0 ] && has "Unable to locate dynamic library" && has nowhere/libpetsctc.so'
run 1 ex2 $solve -mat_type aijtc
check "without the library the type is unknown" '[ $status != 0 ] && has "aijtc"'
finish
