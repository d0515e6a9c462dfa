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
  build "$preset" -DPETSCTC_OTHER_PETSCS=OFF "$@"
}

# run_units PRESET: two programs at a time. A process a program, not a test: starting one takes longer than most of the tests
run_units() {
  find "$root/build-$1/bin" -name 'unit_*' ! -name '*.log' | sort | xargs -P 2 -I {} bash -c '"$1" --gtest_brief=1 >"$1.log" 2>&1; status=$?; cat "$1.log"; exit $status' run {}
}

# run_variant PRESET: what is worth repeating there; scripts that load the library into other programs are not
run_variant() {
  run_units "$1"
  ctest --test-dir "$root/build-$1" --parallel 2 --output-on-failure -R '^(harness_|examples\.)'
}

# run_variant_short PRESET: what depends on the size of numbers most, in two minutes
run_variant_short() {
  run_units "$1"
  ctest --test-dir "$root/build-$1" --output-on-failure -R '^(harness_ksp|harness_examples|examples\.formats)$'
}
