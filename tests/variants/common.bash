# Shared by the tests that build the library another time, with another PETSc or other flags.
root=$PETSCTC_SOURCE
unset PETSC_DIR PETSC_ARCH PETSCTC_LIB PETSCTC_BUILD
source "$root/scripts/build.bash"
export PETSCTC_TEST_TIMEOUT=600 # unoptimised, and several processes to a core
export PETSCTC_TEST_SHORT=1     # fewer parameters of layouts in unit tests, for the same reason

# build_variant VARIANT PRESET [options of CMake]: VARIANT of setup.sh, PRESET of CMake
build_variant() {
  local variant=$1 preset=$2
  shift 2
  set_up --variant "$variant"
  quietly "$root/build-$preset/build.log" build "$preset" -DPETSCTC_OTHER_PETSCS=OFF "$@"
}

# run_unit PROGRAM: a line of result; where it fails, all that it said but the skipped tests
run_unit() {
  local status=0
  "$1" --gtest_brief=1 >"$1.log" 2>&1 || status=$?
  echo "$(basename "$1"): exit $status, $(grep -c ': Skipped$' "$1.log") skipped, $(grep -m 1 ' ran\. (' "$1.log" || echo 'and no summary')"
  [ $status -ne 77 ] || status=0 # all skipped, as without CUDA
  [ $status -eq 0 ] || sed '/: Skipped$/{N;d}' "$1.log"
  return $status
}
export -f run_unit

# run_units PRESET: two programs at a time. A process a program, not a test: starting one takes longer than most of the tests
run_units() {
  find "$root/build-$1/bin" -name 'unit_*' ! -name '*.log' | sort | xargs -P 2 -I {} bash -c 'run_unit "$1"' run {}
}

# run_variant PRESET TESTS: the unit tests, and those of ctest that the expression names: what is worth repeating there and does not take long
run_variant() {
  run_units "$1"
  ctest --test-dir "$root/build-$1" --parallel 2 --output-on-failure -R "$2"
}
