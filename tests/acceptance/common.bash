# Shared by the acceptance scripts: where things are, and the programs of PETSc's own tests.
# Needs PETSC_DIR, PETSC_ARCH (empty for an installed PETSc) and PETSCTC_LIB; PETSCTC_BUILD is where to work.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${PETSC_DIR:?set it to the folder of PETSc}" "${PETSCTC_LIB:?set it to the absolute path of libpetsctc.so}"
work=${PETSCTC_BUILD:-$PWD/build}/acceptance
tree=$work/tests
export MPIEXEC=${MPIEXEC:-mpiexec} PYTHONDONTWRITEBYTECODE=1 PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}
unset PETSC_OPTIONS PETSC_OPTIONS_YAML DATAFILESPATH

if [ -f "$PETSC_DIR/gmakefile.test" ]; then
  petsc_root=$PETSC_DIR
elif [ -f "$PETSC_DIR/share/petsc/examples/gmakefile.test" ]; then
  petsc_root=$PETSC_DIR/share/petsc/examples
else
  echo "skipped: this PETSc has no test sources ($PETSC_DIR/gmakefile.test): use one built from its source package"
  exit 77
fi

petsc_make() { # goals
  make -k -f "$petsc_root/gmakefile.test" PETSC_DIR="$PETSC_DIR" PETSC_ARCH="$PETSC_ARCH" TESTSRCDIR="$petsc_root/src" \
    pkgs="vec mat dm ksp snes ts tao ml" TESTDIR="$tree" NO_RM=1 "$@"
}

# Generates the run scripts of all of PETSc's tests (seconds; nothing is compiled).
generate_scripts() {
  mkdir -p "$tree"
  [ -d "$tree/tao" ] || rm -f "$tree/testfiles" # generated for fewer folders once
  petsc_make print-test gmakesearch=none >"$work/generate.log" 2>&1 || { tail -20 "$work/generate.log"; exit 1; }
}

# script_of NAME: the run script, without .sh, of a test by the name that PETSc's harness gives it.
script_of() {
  local folder=${1%%-*}
  folder=${folder//_//}
  local script=$folder/run${1#*-}
  [ -f "$tree/$script.sh" ] || { echo "PETSc has no test $1 (looked for $tree/$script.sh)" >&2; return 1; }
  echo "$script"
}

# build_programs PROGRAM...: paths below the tree, e.g. ksp/ksp/tutorials/ex2
build_programs() {
  local status=0
  petsc_make -j "$(env -u OMP_NUM_THREADS nproc)" "${@/#/$tree/}" >"$work/build.log" 2>&1 || status=$?
  [ $status = 0 ] || { grep -B2 -A5 -i 'error' "$work/build.log" | tail -40; echo "PETSc's test programs did not build, see $work/build.log"; }
  return $status
}

# programs_of LIST: the programs that the run scripts named in a file start
programs_of() {
  local script
  while read -r script; do
    sed -n "s#^executable='\.\./\(.*\)'#$(dirname "$script")/\1#p" "$tree/$script.sh"
  done <"$1" | sort -u
}

# One A/B at a time in a tree: the groups share it, and ctest may start them together.
exec 9>"$(mkdir -p "$work" && echo "$work/lock")"

# build_group NAME: writes the list of run scripts and builds their programs
build_group() {
  local name
  flock 9
  generate_scripts
  while read -r name; do script_of "$name"; done <"$here/names-$1.txt" >"$work/scripts-$1.txt"
  # shellcheck disable=SC2046 # one word each
  build_programs $(programs_of "$work/scripts-$1.txt")
  flock -u 9
}

jobs=${PETSCTC_JOBS:-$(env -u OMP_NUM_THREADS nproc)}
ab() { python3 "$here/ab.py" --petsc "$PETSC_DIR" --tree "$tree" --jobs "$jobs" "$@"; }
plugin_options="-dll_append $PETSCTC_LIB -petsctc_summary"
# Where there is no GPU the groups are about the layout, which a user has on the host only where it is faster. The folders run as a user's programs
by_layout=
"$here/../has_gpu.sh" || by_layout="-mat_aijtc_backend host"
