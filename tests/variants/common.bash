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

# run_variant PRESET: what is worth repeating there; scripts that load the library into other programs are not
run_variant() {
  ctest --test-dir "$root/build-$1" --parallel 2 --output-on-failure -R '^(unit\.|harness_|examples\.)'
}

# run_variant_short PRESET: what depends on the size of numbers most, in two minutes. A process a program, not a test: starting one takes longer than most of the tests
run_variant_short() {
  local program
  for program in "$root/build-$1"/bin/unit_*; do "$program" --gtest_brief=1; done
  ctest --test-dir "$root/build-$1" --output-on-failure -R '^(harness_ksp|harness_examples|examples\.formats)$'
}
