# Shared by the consumer tests: an installation in a directory of its own, and what a program linked with it must do.
: "${PETSC_DIR:?}" "${PETSCTC_SOURCE:?set it to the top of the source tree}" "${PETSCTC_BUILD:?set it to the build folder}"
here=$PETSCTC_SOURCE/tests/consumer
work=$PETSCTC_BUILD/consumer/$(basename "$0" .sh)
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
export PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}
unset PETSC_OPTIONS

# installed: nothing is missing, and nothing private is there
installed() {
  local file
  for file in lib/libpetsctc.so include/petsctc.h lib/pkgconfig/petsctc.pc lib/cmake/petsctc/petsctcConfig.cmake lib/cmake/petsctc/petsctcConfigVersion.cmake; do
    [ -e "$prefix/$file" ] || { echo "FAILED: $file is not installed" && exit 1; }
  done
  [ ! -e "$prefix/include/petsctc" ] || { echo "FAILED: private headers are installed" && exit 1; }
  ! grep -rn '@PETSCTC' "$prefix/lib/pkgconfig" "$prefix/lib/cmake" || { echo "FAILED: a template is not filled in" && exit 1; }
}

# by_pkg_config SOURCE PROGRAM: compiled as petsctc.pc says
by_pkg_config() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig
  # shellcheck disable=SC2046 # flags
  $(pkg-config --variable=ccompiler PETSc) -Wall -Werror -o "$2" "$1" $(pkg-config --cflags --libs petsctc) -Wl,-rpath,"$(pkg-config --variable=libdir petsctc)" \
    -Wl,-rpath,"$(pkg-config --variable=libdir PETSc)"
}

# solves PROGRAM: on one process and on two, with the library of this installation
solves() {
  local np output
  [ "$(realpath "$(ldd "$1" | awk '$1 ~ /^libpetsctc/ { print $3 }')")" = "$(realpath "$prefix/lib/libpetsctc.so")" ] || { ldd "$1" && echo "FAILED: $1 does not load $prefix/lib/libpetsctc.so" && exit 1; }
  for np in 1 2; do
    # shellcheck disable=SC2086 # MPIEXEC holds options
    output=$(${MPIEXEC:-mpiexec} -n $np "$1" 2>&1) || true
    [ "$output" = solved ] || { printf '%s\nFAILED: %s on %s processes\n' "$output" "$1" $np && exit 1; }
    echo "ok: $(basename "$1") on $np processes"
  done
}
