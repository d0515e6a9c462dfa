# What the scripts share. To be sourced; needs $root, the top of the source tree.

# Open MPI refuses root and more processes than cores unless told otherwise: containers and test machines are both; processes that wait let others run
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# One thread each: with more, small products of a threaded BLAS fight for the cores of the other processes
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}

# On a machine with a GPU PETSc refuses to start with an MPI that is not GPU-aware, as Debian's is, unless told that this is known
export PETSC_OPTIONS=${PETSC_OPTIONS--use_gpu_aware_mpi 0}

# show_help SCRIPT ARGUMENTS...: where they ask for help, the comment that SCRIPT begins with, and the end
show_help() {
  local script=$1 argument
  shift
  for argument in "$@"; do
    case $argument in
      --) return 0 ;;
      -h | --help) sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$script" && exit 0 ;;
    esac
  done
}

# set_up [options of setup.sh]: exports PETSC_DIR and PETSC_ARCH
set_up() {
  local petsc
  petsc=$("$root/scripts/setup.sh" --print-env "$@")
  eval "$petsc"
  export PETSC_DIR PETSC_ARCH
}

# quietly LOG COMMAND...: what COMMAND prints goes to LOG, in a folder made for it; where it fails it is shown, without the lines of ninja's progress
quietly() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || status=$?
  [ $status -eq 0 ] || grep -v '^\[[0-9]*/[0-9]*\] ' "$log" >&2 || true
  return $status
}

# With ccache, files are compiled once for all checkouts: names inside of the source tree are relative to it
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
fi

# Where no GPU runs the kernels they are compiled quickly
preset=$(if nvidia-smi -L >/dev/null 2>&1; then echo release; else echo quick; fi)

# build PRESET [cmake options]: configures and builds in build-PRESET
build() {
  local preset=$1 build=$root/build-$1
  shift
  echo "==> Configuring in $build"
  quietly "$build/configure.log" env -C "$root" cmake --preset "$preset" -DPETSC_DIR="$PETSC_DIR" -DPETSC_ARCH="$PETSC_ARCH" "$@" || return
  echo "==> Building"
  cmake --build "$build"
}
