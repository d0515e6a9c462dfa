# Shared by the tests that build the library another time, with another PETSc or other flags.
root=$PETSCTC_SOURCE
unset PETSC_DIR PETSC_ARCH PETSCTC_LIB PETSCTC_BUILD
source "$root/scripts/build.bash"
export PETSCTC_TEST_TIMEOUT=600 # unoptimised, and several processes to a core
export PETSCTC_TEST_SHORT=1     # fewer parameters of layouts in unit tests, for the same reason

# build_variant VARIANT PRESET: VARIANT of setup.sh, PRESET of CMake
build_variant() {
  set_up --variant "$1"
  build "$2" -DPETSCTC_OTHER_PETSCS=OFF
}

# run_variant PRESET: what is worth repeating there; scripts that load the library into other programs are not
run_variant() {
  ctest --test-dir "$root/build-$1" --parallel 2 --output-on-failure -R '^(unit\.|harness_|examples\.)'
}
