# Shared by the loading tests: programs built against PETSc alone, runs, and assertions that count failures.
# Needs PETSC_DIR, PETSC_ARCH (empty for an installed PETSc) and PETSCTC_LIB; PETSCTC_BUILD is where to work.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${PETSC_DIR:?set it to the folder of PETSc}" "${PETSCTC_LIB:?set it to the absolute path of libpetsctc.so}"
work=${PETSCTC_BUILD:-$PWD/build}/plugin/$(basename "$0" .sh)
mkdir -p "$work"
export PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-} PKG_CONFIG_PATH=$PETSC_DIR/${PETSC_ARCH:-}/lib/pkgconfig:${PKG_CONFIG_PATH:-}
export OMPI_MCA_hwloc_base_binding_policy=none OPENBLAS_NUM_THREADS=1
unset PETSC_OPTIONS PETSC_OPTIONS_YAML
source "$here/../checks.bash"

# build PROGRAM SOURCE [FLAGS]: C program linked with PETSc
build() {
  local program=$work/$1 source=$2
  shift 2
  # shellcheck disable=SC2046 # flags
  $(pkg-config --variable=ccompiler PETSc) -o "$program" "$source" $(pkg-config --cflags PETSc) "$@" $(pkg-config --libs PETSc) \
    -Wl,-rpath,"$(pkg-config --variable=libdir PETSc)"
}

# tutorial NAME: builds one of PETSc's own KSP tutorials, unmodified
tutorial() {
  local source=$PETSC_DIR/src/ksp/ksp/tutorials/$1.c
  [ -f "$source" ] || source=$PETSC_DIR/share/petsc/examples/src/ksp/ksp/tutorials/$1.c
  [ -f "$source" ] || { echo "skipped: this PETSc has no tutorial sources"; exit 77; }
  build "$1" "$source"
}

# run NP PROGRAM OPTIONS...: the output goes to $output, the exit status to $status
run() {
  local np=$1 program=$2
  shift 2
  status=0
  # shellcheck disable=SC2086 # MPIEXEC holds options
  output=$(cd "$work" && ${MPIEXEC:-mpiexec} -n "$np" "$work/$program" "$@" 2>&1) || status=$?
}

told() { tail -25 <<<"$output"; }
has() { grep -q -- "$1" <<<"$output"; }

# counter NAME: the value that -petsctc_summary printed
counter() { sed -n "s/^PETSc-TC: \(.* \)\?$1 \([0-9]*\).*/\2/p" <<<"$output" | head -1; }
# used [NAME]: was something counted? By default products, by a layout or the parent's: of a matrix of our type
used() {
  if [ $# = 0 ]; then used mult || used mult_parent; else [ "$(counter "$1")" -gt 0 ] 2>/dev/null; fi
}

# iterations: what ksp tutorial ex2 printed
iterations() { sed -n 's/^Norm of error .* iterations \([0-9]*\)$/\1/p' <<<"$output"; }
