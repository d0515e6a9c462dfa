#!/usr/bin/env bash
# PETSc's own harness (gmakefile.test) over the TEST blocks of one folder of this source tree.
#   harness.sh FOLDER [host|cuda]     tests/mat, tests/ksp, examples/tutorials; tests whose suffix starts with cuda need a GPU and are run apart
# Needs PETSC_DIR, PETSC_ARCH, PETSCTC_LIB (absolute path of libpetsctc.so, for `args: -dll_append ${PETSCTC_LIB}`), PETSCTC_BUILD (where to work).
# PETSCTC_TEST_FLAGS: compiler and linker flags for the test programs, e.g. those of a sanitizer.
set -euo pipefail
folder=$1
part=${2:-host}
root=$(cd "$(dirname "$0")/.." && pwd)
lib_dir=$(dirname "$PETSCTC_LIB")
petsc_lib=$PETSC_DIR/${PETSC_ARCH:-}/lib
work=$PETSCTC_BUILD/harness/${folder//\//_}_$part
prefix=${folder//\//_}- # PETSc's names: tests_mat-ex1_suffix
export PYTHONDONTWRITEBYTECODE=1
unset PETSC_OPTIONS
if grep -q '^#define PETSC_HAVE_CUDA ' "$PETSC_DIR/${PETSC_ARCH:-}/include/petscconf.h"; then # without CUDA these options are unknown to PETSc
  export PETSC_OPTIONS="-use_gpu_aware_mpi 0" # on a machine with a GPU PETSc refuses to start otherwise
  [ "$part" = cuda ] || PETSC_OPTIONS+=" -device_enable none"
fi
# On the host the tests are about the layout, which a user has there only where it is faster
[ "$part" = cuda ] || export PETSC_OPTIONS="${PETSC_OPTIONS:-} -mat_aijtc_backend host -options_left no"

harness=$PETSC_DIR/gmakefile.test
[ -f "$harness" ] || harness=$PETSC_DIR/share/petsc/examples/gmakefile.test
[ -f "$harness" ] || { echo "skipped: no gmakefile.test in $PETSC_DIR" && exit 77; }
if [ "$part" = cuda ] && ! "$root/tests/has_gpu.sh"; then
  echo "skipped: no usable GPU"
  exit 77
fi

flags=${PETSCTC_TEST_FLAGS:-}
run_make() {
  make -f "$harness" PETSC_DIR="$PETSC_DIR" PETSC_ARCH="${PETSC_ARCH:-}" TESTSRCDIR="$root" pkgs="tests examples" TESTDIR="$work" NO_RM=1 TIMEOUT="${PETSCTC_TEST_TIMEOUT:-300}" \
    CPPFLAGS="-I$root/include" CXXPPFLAGS="-I$root/include" CFLAGS="$flags" CXXFLAGS="$flags" \
    PETSC_TEST_LIB="-Wl,--as-needed -Wl,-rpath,$lib_dir -L$lib_dir -lpetsctc -Wl,-rpath,$petsc_lib -L$petsc_lib -lpetsc -lm -lz" "$@"
}
mkdir -p "$work"
names=$(run_make print-test gmakesearch="$prefix%" 2>"$work/generate.log") || { cat "$work/generate.log" && exit 1; }
names=$(tr ' ' '\n' <<<"$names" | grep "^$prefix" || true)
if [ "$part" = cuda ]; then names=$(grep '_cuda' <<<"$names" || true); else names=$(grep -v '_cuda' <<<"$names" || true); fi
if [ -z "$names" ]; then
  echo "skipped: no such tests in $folder"
  exit 77
fi

log=$work/output.log
status=0
run_make -j "${PETSCTC_JOBS:-2}" gmakesearch="${names//$'\n'/ }" test >"$log" 2>&1 || status=$?
tap=$(echo "$work"/test_*_tap.log)
# Each test is a command and the comparison of its output, named diff-TEST
passed=$(grep -E '^ *ok ' "$tap" | grep -v '# SKIP' | grep -cv ' diff-' || true)
skipped=$(grep -E '^ *ok .*# SKIP' "$tap" | grep -cv ' diff-' || true)
failed=$(grep -cE '^ *not ok ' "$tap" || true)
if [ "$status" != 0 ] || [ "$failed" != 0 ] || [ $((passed + skipped)) = 0 ]; then
  cat "$log"
  echo "log: $log"
  echo "$folder: $failed failed, $passed passed, $skipped skipped (make: $status)"
  exit 1
fi
grep -E '^ *ok ' "$tap" | grep -v ' diff-'
echo "$folder: $passed passed, $skipped skipped"
[ "$passed" != 0 ] || exit 77
