# A virtual environment with petsc4py of PETSc's own version, built against that PETSc, kept in the user's cache: complete or absent.
# Sets $python. Needs PETSC_DIR, PETSC_ARCH (empty for an installed PETSc) and PETSCTC_LIB.
: "${PETSC_DIR:?set it to the folder of PETSc}" "${PETSCTC_LIB:?set it to the absolute path of libpetsctc.so}"
unset PETSC_OPTIONS PETSC_OPTIONS_YAML
export OPENBLAS_NUM_THREADS=1 OMPI_MCA_hwloc_base_binding_policy=none
export PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}
version=$(PKG_CONFIG_PATH=$PETSC_DIR/$PETSC_ARCH/lib/pkgconfig pkg-config --modversion PETSc)
system_python=${PYTHON:-python3}
key=$(printf '%s' "$(cd "$PETSC_DIR" && pwd -P)/$PETSC_ARCH" | cksum | cut -d' ' -f1)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/petsctc/petsc4py-$version-${PETSC_ARCH:-prefix}-$key-$("$system_python" -c 'import sys; print("py%d.%d" % sys.version_info[:2])')
python=$environment/bin/python

build_environment() {
  rm -rf "$environment"
  "$system_python" -m venv "$environment" || { echo "no virtual environment: install Python's venv (Debian: python3-venv)"; return 1; }
  mkdir "$environment/source"
  # --no-build-isolation, also for the download: its metadata step would else import the PETSc package of PyPI.
  "$python" -m pip install -q 'setuptools<81' wheel 'cython>=3' numpy || return 77
  "$python" -m pip download -q --no-deps --no-build-isolation --no-binary petsc4py -d "$environment/source" "petsc4py==$version" || return 77
  # Optimising this wrapper takes minutes and gains nothing here.
  CFLAGS="-O0 -g0" "$python" -m pip install -q --no-deps --no-build-isolation "$environment"/source/petsc4py-*.tar.gz || return 1
  "$python" -c 'import petsc4py; petsc4py.init([]); from petsc4py import PETSc; print("petsc4py for PETSc", PETSc.Sys.getVersion())' || return 1
  rm -rf "$environment/source"
  touch "$environment/complete"
}

prepare_environment() {
  local status=0
  mkdir -p "$(dirname "$environment")"
  exec 8>"$environment.lock"
  flock 8
  if [ ! -f "$environment/complete" ]; then
    echo "building petsc4py $version for $PETSC_DIR/$PETSC_ARCH (minutes, once)"
    build_environment >"$environment.log" 2>&1 || status=$?
    if [ $status != 0 ]; then
      tail -25 "$environment.log"
      rm -rf "$environment"
      [ $status != 77 ] || echo "skipped: petsc4py $version or what it needs could not be downloaded with pip"
      exit $status
    fi
  fi
  flock -u 8
}
