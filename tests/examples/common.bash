# Shared by the tests of the example program solve: runs and assertions that count failures.
# PETSCTC_BUILD is the build folder (its bin/solve is run), MPIEXEC starts several processes.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$here/../data
: "${PETSCTC_BUILD:?set it to the build folder}"
solve=$PETSCTC_BUILD/bin/solve
[ -x "$solve" ] || { echo "skipped: $solve is not built"; exit 77; }
work=$PETSCTC_BUILD/examples/test-$(basename "$0" .sh)
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export OMPI_MCA_hwloc_base_binding_policy=none OPENBLAS_NUM_THREADS=1
# PETSc's dot products are OpenBLAS's, whose order of summation is chosen for the processor: apache1's last residual, which is rounding, moves by 6 percent with it
grep -q ' avx2 ' /proc/cpuinfo && grep -q ' fma ' /proc/cpuinfo && export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-Haswell}"
unset PETSC_OPTIONS PETSC_OPTIONS_YAML
source "$here/../checks.bash"
# single, or empty: 7 digits, where double precision has 16
grep -q "^#define PETSC_USE_REAL_SINGLE " "$PETSC_DIR/${PETSC_ARCH:+$PETSC_ARCH/}include/petscconf.h" && single=1 || single=

# run NP OPTIONS...: the output goes to $output, the exit status to $status
run() {
  local np=$1
  shift
  status=0
  if [ "$np" = 1 ]; then
    output=$(timeout 120 "$solve" "$@" 2>&1 </dev/null) || status=$?
  else
    # shellcheck disable=SC2086 # MPIEXEC holds options
    output=$(timeout 120 ${MPIEXEC:-mpiexec} -n "$np" "$solve" "$@" 2>&1 </dev/null) || status=$?
  fi
}

told() { head -45 <<<"$output"; }
has() { grep -qF -- "$1" <<<"$output"; }

# fact NAME: what solve printed behind that name
fact() { sed -n "s/^  $1  *//p" <<<"$output" | head -1; }

# cell LABEL N: column N of that row of the block at the end; of one solver, its only one
cell() { awk -v label="  $1 " -v n="$2" 'index($0, label) == 1 { count = split(substr($0, length(label)), cells); if (n <= count) print cells[n]; exit }' <<<"$output"; }
