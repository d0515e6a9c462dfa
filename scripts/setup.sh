#!/usr/bin/env bash
# Puts in place what PETSc-TC is built with: compilers, MPI, BLAS, build tools and a PETSc. Run it as often as you like.
#
#   scripts/setup.sh [options]
#     --petsc FILE|DIR     PETSc's sources: a tarball or an unpacked tree (default: the newest PETSc of the release from PyPI)
#     --release X.Y        PETSc's release, default 3.26
#     --variant release    optimised, with CUDA where nvcc is found (default)
#     --variant debug      PETSc's debugging checks on, host only
#     --variant debug-cuda PETSc's debugging checks on, with CUDA (GPU architecture 90 unless --cuda-arch says another)
#     --variant int64-host PETSc's debugging checks on, host only, PetscInt of 64 bits
#     --variant single-host PETSc's debugging checks on, host only, PetscScalar in single precision
#     --variant headers    configured but not built, host only: enough to compile against
#     --cuda-arch LIST     GPU architectures, default 80,90
#     --without-cuda       host only though nvcc is there
#     --no-install         say which packages are missing, install none
#     --print-env          PETSC_DIR and PETSC_ARCH as shell assignments on standard output, all else on standard error
#
# PETSc is kept in ${XDG_CACHE_HOME:-$HOME/.cache}/petsctc, one directory per version and configuration; a build counts only once it is complete.
# With PETSC_DIR (and PETSC_ARCH) set, that PETSc is checked and used, and nothing is installed; the other variants still go to the cache.
set -euo pipefail

release=3.26
variant=release
cuda_arch=
want_cuda=1
may_install=1
print_env=0
petsc_source=

die() { # one line that says what is wrong and what to do
  echo "setup.sh: $*" >&2
  exit 1
}
step() { echo "==> $*" >&3; }

while [ $# -gt 0 ]; do
  case $1 in
    --petsc | --release | --variant | --cuda-arch) [ $# -ge 2 ] || die "$1 needs a value, see scripts/setup.sh --help" ;;&
    --petsc) petsc_source=$2 && shift ;;
    --release) release=$2 && shift ;;
    --variant) variant=$2 && shift ;;
    --cuda-arch) cuda_arch=$2 && shift ;;
    --without-cuda) want_cuda=0 ;;
    --no-install) may_install=0 ;;
    --print-env) print_env=1 ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&$((1 + print_env)) && exit 0 ;;
    *) die "unknown option $1, see scripts/setup.sh --help" ;;
  esac
  shift
done
case $variant in release | debug | debug-cuda | int64-host | single-host | headers) ;; *) die "unknown variant '$variant': release, debug, debug-cuda, int64-host, single-host or headers" ;; esac
if [ $print_env = 1 ]; then exec 3>&2; else exec 3>&1; fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/petsctc
logs=$cache/log
jobs=$(env -u OMP_NUM_THREADS nproc) # which heeds that variable, set where many processes run at once

# ---- what is needed and the Debian package that has it
missing_tools=()
missing_packages=()
need() { # need WHAT PACKAGE TEST...
  local what=$1 package=$2
  shift 2
  "$@" >/dev/null 2>&1 && return 0
  missing_tools+=("$what")
  missing_packages+=("$package")
}
# Asked only once there is a compiler: else each missing compiler would make a missing library of all
has_header() { ! command -v g++ || echo "#include <$1>" | g++ -E -x c++ - -o /dev/null; }
has_blas() { ! command -v gcc || echo 'int main(void){return 0;}' | gcc -x c - -o /dev/null -lopenblas; }
has_cmake() { local v && v=$(cmake --version | sed -n 's/^cmake version //p') && [ "$(printf '3.25\n%s\n' "$v" | sort -V | head -n 1)" = 3.25 ]; }
probe() {
  missing_tools=()
  missing_packages=()
  need "no C compiler (gcc)" gcc command -v gcc
  need "no C++ compiler (g++)" g++ command -v g++
  need "no make" make command -v make
  need "no MPI (mpicc, mpicxx)" libopenmpi-dev command -v mpicxx
  need "no MPI (mpiexec)" openmpi-bin command -v mpiexec
  need "no BLAS (libopenblas)" libopenblas-dev has_blas
  need "no Python 3" python3 command -v python3
  need "no pip" python3-pip python3 -m pip --version
  need "no Python virtual environments" python3-venv python3 -c 'import ensurepip'
  need "no Python headers" python3-dev python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
  need "no CMake 3.25 or newer" cmake has_cmake
  need "no Ninja" ninja-build command -v ninja
  need "no pkg-config" pkg-config command -v pkg-config
  need "no zlib" zlib1g-dev has_header zlib.h
  need "no GoogleTest" libgtest-dev has_header gtest/gtest.h
  need "no nlohmann JSON" nlohmann-json3-dev has_header nlohmann/json.hpp
  need "no diff" diffutils command -v diff
  need "no xz" xz-utils command -v xz
}
packages() {
  step "[1/4] Tools and libraries"
  probe
  if [ ${#missing_packages[@]} -eq 0 ]; then
    echo "    all present" >&3
    return
  fi
  local i
  for i in "${missing_tools[@]}"; do echo "    $i" >&3; done
  if [ $may_install = 0 ] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    for i in "${!missing_tools[@]}"; do echo "setup.sh: ${missing_tools[$i]}: install it, on Debian: sudo apt-get install ${missing_packages[$i]}" >&2; done
    exit 1
  fi
  mkdir -p "$logs"
  echo "    installing ${missing_packages[*]}" >&3
  (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing_packages[@]}") >"$logs/apt.log" 2>&1 ||
    die "could not install ${missing_packages[*]}: is there a network? Details in $logs/apt.log"
  probe
  [ ${#missing_tools[@]} -eq 0 ] || die "installed ${missing_packages[*]}, and still: ${missing_tools[*]}"
}

# ---- PETSc's own statements about itself
petsc_version() { # petsc_version DIR
  sed -n 's/^#define PETSC_VERSION_\(MAJOR\|MINOR\|SUBMINOR\) *\([0-9]*\).*/\2/p' "$1/include/petscversion.h" 2>/dev/null | paste -sd. || true
}
older_than() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
check_petsc() { # check_petsc DIR ARCH
  local conf=$1/$2/include/petscconf.h where="PETSC_DIR=$1 PETSC_ARCH=$2" version
  version=$(petsc_version "$1")
  [ -n "$version" ] || die "no PETSc in PETSC_DIR=$1: name one, or unset PETSC_DIR to have one built"
  older_than "$version" 3.25 && die "PETSc $version in PETSC_DIR=$1 is too old: PETSc-TC needs 3.25 or newer; unset PETSC_DIR to have one built"
  [ -f "$conf" ] || die "PETSc in $where is not configured ($conf is missing): set PETSC_ARCH, or unset PETSC_DIR to have one built"
  grep -q '^#define PETSC_USE_REAL_\(DOUBLE\|SINGLE\) ' "$conf" && ! grep -q '^#define PETSC_USE_COMPLEX ' "$conf" ||
    die "PETSc in $where computes neither in real double nor in real single precision: configure one with --with-scalar-type=real --with-precision=double"
  grep -q '^#define PETSC_USE_SHARED_LIBRARIES ' "$conf" || die "PETSc in $where is a static library: configure it with --with-shared-libraries=1"
  ls "$1/$2/lib/"libpetsc.* >/dev/null 2>&1 || die "PETSc in $where is not built: run make there, or unset PETSC_DIR to have one built"
}

# ---- the sources: an unpacked tree appears in the cache by one rename, so it is whole or not there
unpack() { # unpack TARBALL -> $source_dir
  local new=$cache/unpack.$$ top
  rm -rf "$cache"/unpack.*
  mkdir -p "$new"
  tar --no-same-owner -xf "$1" -C "$new" 2>/dev/null || die "cannot unpack $1: fetch it again"
  top=$(echo "$new"/*)
  [ -f "$top/include/petscversion.h" ] || die "$1 does not hold PETSc's sources: name a tarball of PETSc"
  source_dir=$cache/petsc-$(petsc_version "$top")
  if [ -d "$source_dir" ]; then
    echo "    this version is unpacked already: $source_dir (remove it to have it unpacked again)" >&3
  else
    mv "$top" "$source_dir"
  fi
  rm -rf "$new"
}
sources() { # -> $source_dir
  step "[2/4] Sources of PETSc"
  if [ -n "$petsc_source" ] && [ -d "$petsc_source" ]; then
    source_dir=$(cd "$petsc_source" && pwd)
    [ -f "$source_dir/configure" ] && [ -f "$source_dir/include/petscversion.h" ] || die "$petsc_source does not hold PETSc's sources"
  elif [ -n "$petsc_source" ]; then
    [ -f "$petsc_source" ] || die "$petsc_source does not exist: name a tarball of PETSc or an unpacked tree"
    unpack "$petsc_source"
  else
    source_dir=$(printf '%s\n' "$cache/petsc-$release".* | sort -V | tail -n 1)
    if [ ! -f "$source_dir/include/petscversion.h" ]; then
      local got=$cache/download.$$
      rm -rf "$cache"/download.*
      mkdir -p "$got" "$logs"
      echo "    downloading petsc $release from PyPI" >&3
      python3 -m pip download --disable-pip-version-check --retries 2 --no-deps --no-binary petsc -d "$got" "petsc==$release.*" >"$logs/download.log" 2>&1 || {
        rm -rf "$got"
        die "could not download petsc $release from PyPI: is there a network? Else fetch petsc-$release.x.tar.gz elsewhere and run scripts/setup.sh --petsc FILE. Details in $logs/download.log"
      }
      unpack "$(echo "$got"/petsc-*)"
      rm -rf "$got"
    fi
  fi
  local version
  version=$(petsc_version "$source_dir")
  older_than "$version" 3.25 && die "PETSc $version in $source_dir is too old: PETSc-TC needs 3.25 or newer"
  echo "    PETSc $version in $source_dir" >&3
}

# ---- configure and build: the stamp is written last, a directory without it is thrown away
configuration() { # -> $arch, $options
  options=(--with-fc=0 --with-shared-libraries=1 --with-x=0 --with-cc=mpicc --with-cxx=mpicxx --with-blaslapack-lib=-lopenblas)
  if mpiexec --version 2>/dev/null | grep -qi 'open'; then
    options+=(--with-mpiexec="mpiexec --allow-run-as-root --oversubscribe")
  fi
  arch=
  case $variant in # with PETSc's checks: these are there to test with
    debug) arch=debug-host ;;
    int64-host) arch=int64-host && options+=(--with-64-bit-indices=1) ;;
    single-host) arch=single-host && options+=(--with-precision=single) ;;
  esac
  if [ -n "$arch" ]; then
    options+=(--with-debugging=1 --with-cuda=0 COPTFLAGS="-g1 -O0" CXXOPTFLAGS="-g1 -O0") # PETSc's -g3 takes as long again
    return
  fi
  local kind=opt nvcc=
  if [ $variant = debug-cuda ]; then # optimised all the same: the checks are wanted, and libraries small enough to take along
    kind=debug
    options+=(--with-debugging=1)
  else
    options+=(--with-debugging=0)
  fi
  options+=(COPTFLAGS=-O2 CXXOPTFLAGS=-O2)
  if [ $want_cuda = 1 ] && [ $variant != headers ]; then
    local dir
    for dir in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
      if [ -z "$nvcc" ] && [ -n "$dir" ] && [ -x "$dir/bin/nvcc" ]; then nvcc=$dir/bin/nvcc; fi
    done
    [ -n "$nvcc" ] || nvcc=$(command -v nvcc || true)
  fi
  if [ -n "$nvcc" ]; then
    export PATH=${nvcc%/*}:$PATH
    if [ -z "$cuda_arch" ]; then
      [ $variant = debug-cuda ] && cuda_arch=90 || cuda_arch=80,90
    fi
    arch=$kind-cuda-${cuda_arch//,/-}
    options+=(--with-cuda=1 --with-cuda-arch="$cuda_arch" CUDAOPTFLAGS=-O2)
  else
    [ $variant != debug-cuda ] || die "variant debug-cuda needs nvcc: set CUDA_HOME, or take --variant debug"
    arch=opt-host
    [ $variant = headers ] && arch=headers-host
    options+=(--with-cuda=0)
  fi
}
progress() { # every hundredth file that is compiled
  awk '/^ +(CC|CXX|CUDAC|CU) / { if (++n % 100 == 0) { printf "    %d files compiled\n", n; fflush() } }' >&3
}
build_petsc() {
  local dir=$source_dir/$arch log=$logs/${source_dir##*/}-$arch.log
  if [ -f "$dir/.petsctc-complete" ]; then
    step "[3/4] Configuration $arch: present"
    step "[4/4] PETSc: present"
    return
  fi
  mkdir -p "$logs"
  if [ -e "$dir" ] && [ "${source_dir#"$cache"/}" = "$source_dir" ]; then
    die "$dir exists and scripts/setup.sh did not complete it: use it by PETSC_DIR=$source_dir PETSC_ARCH=$arch, or remove it"
  fi
  rm -rf "$dir"
  step "[3/4] Configuration $arch (half a minute; log in $log)"
  local start=$SECONDS
  (cd "$source_dir" && env -u PETSC_DIR -u PETSC_ARCH -u MAKEFLAGS -u MAKELEVEL ./configure PETSC_ARCH="$arch" "${options[@]}") >"$log" 2>&1 || {
    rm -rf "$dir"
    die "PETSc's configure failed: its last lines in $log say why"
  }
  echo "    done in $((SECONDS - start)) s" >&3
  if [ $variant = headers ]; then
    step "[4/4] PETSc: headers only, nothing to build"
  else
    step "[4/4] PETSc: about 1000 files, 5 to 15 minutes on two cores"
    start=$SECONDS
    # MAKE_LOAD: by itself PETSc starts no second process at a load of as many as there are cores, and that load is its own
    (cd "$source_dir" && env -u MAKEFLAGS -u MAKELEVEL make PETSC_DIR="$source_dir" PETSC_ARCH="$arch" MAKE_NP="$jobs" MAKE_LOAD=$((2 * jobs)) all 2>&1) | tee -a "$log" | progress ||
      die "PETSc's build failed: $log says where; run scripts/setup.sh again once that is mended"
    ls "$dir/lib/"libpetsc.* >/dev/null 2>&1 || die "PETSc's build left no library: see $log"
    echo "    done in $((SECONDS - start)) s" >&3
  fi
  touch "$dir/.petsctc-complete"
}
finish() { # finish DIR ARCH
  if [ $print_env = 1 ]; then
    printf 'PETSC_DIR=%q\nPETSC_ARCH=%q\n' "$1" "$2"
  else
    echo
    echo "export PETSC_DIR=$1"
    echo "export PETSC_ARCH=$2"
  fi
}

if [ -n "${PETSC_DIR:-}" ] && [ $variant = release ]; then
  check_petsc "$PETSC_DIR" "${PETSC_ARCH:-}"
  may_install=0
  step "PETSc $(petsc_version "$PETSC_DIR") of PETSC_DIR=$PETSC_DIR PETSC_ARCH=${PETSC_ARCH:-}: yours is used, nothing is installed"
  finish "$PETSC_DIR" "${PETSC_ARCH:-}"
  exit 0
fi

mkdir -p "$cache" || die "cannot write $cache: set XDG_CACHE_HOME to a directory you own"
exec 9>"$cache/lock"
if ! flock -n 9; then
  step "another set-up is running on $cache, waiting for it"
  flock 9
fi
packages
configuration
sources
build_petsc
if [ $variant = release ]; then
  printf 'PETSC_DIR=%s\nPETSC_ARCH=%s\n' "$source_dir" "$arch" >"$cache/default.env.$$"
  mv "$cache/default.env.$$" "$cache/default.env"
fi
finish "$source_dir" "$arch"
