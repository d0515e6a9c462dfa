#!/usr/bin/env bash
# scripts/setup.sh refuses what cannot work with one line that says what to do, and leaves no half-built PETSc behind.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
petsc_dir=$PETSC_DIR petsc_arch=${PETSC_ARCH:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
unset PETSC_DIR PETSC_ARCH
failures=0

# refuses WHAT PATTERN [NAME=VALUE...] -- OPTIONS: fails, with one line of error that has PATTERN
refuses() {
  local what=$1 pattern=$2 variables=() status=0
  shift 2
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  env "${variables[@]}" "$root/scripts/setup.sh" "$@" >"$work/out" 2>"$work/err" || status=$?
  if [ $status != 0 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q -- "$pattern" "$work/err"; then
    echo "ok: $what"
  else
    echo "FAILED: $what (exit status $status, expected one line with '$pattern')"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}

# A tree that says of itself what PETSc's would
fake_petsc() { # NAME MINOR CONF...
  local dir=$work/$1
  mkdir -p "$dir/include" "$dir/arch/include" "$dir/arch/lib"
  printf '#define PETSC_VERSION_MAJOR 3\n#define PETSC_VERSION_MINOR %s\n#define PETSC_VERSION_SUBMINOR 0\n' "$2" >"$dir/include/petscversion.h"
  shift 2
  printf '#define PETSC_%s 1\n' "$@" >"$dir/arch/include/petscconf.h"
  touch "$dir/arch/lib/libpetsc.so"
}
fake_petsc old 24 USE_REAL_DOUBLE USE_SHARED_LIBRARIES
fake_petsc quadruple 26 USE_REAL___FLOAT128 USE_SHARED_LIBRARIES
fake_petsc complex 26 USE_REAL_DOUBLE USE_COMPLEX USE_SHARED_LIBRARIES
fake_petsc static 26 USE_REAL_DOUBLE
fake_petsc good 26 USE_REAL_DOUBLE USE_SHARED_LIBRARIES

refuses "no PETSc there" "no PETSc in PETSC_DIR" PETSC_DIR=/nonexistent --
refuses "an old PETSc" "too old" PETSC_DIR="$work/old" PETSC_ARCH=arch --
refuses "quadruple precision" "real double" PETSC_DIR="$work/quadruple" PETSC_ARCH=arch --
refuses "complex" "real double" PETSC_DIR="$work/complex" PETSC_ARCH=arch --
refuses "a static PETSc" "with-shared-libraries" PETSC_DIR="$work/static" PETSC_ARCH=arch --
refuses "a configuration that does not exist" "not configured" PETSC_DIR="$work/good" PETSC_ARCH=other --
refuses "no network" "is there a network" PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_FIND_LINKS= PIP_NO_INDEX=0 --
echo "not a tarball" >"$work/petsc.tar.gz"
refuses "a broken tarball" "cannot unpack" -- --petsc "$work/petsc.tar.gz"
refuses "a tarball that is not there" "does not exist" -- --petsc "$work/none.tar.gz"
refuses "an unknown option" "unknown option" -- --nonsense

# A PATH without one tool at a time
all=$work/all
mkdir "$all"
IFS=: read -ra dirs <<<"$PATH"
for dir in "${dirs[@]}"; do
  for program in "$dir"/*; do
    [ ! -x "$program" ] || [ -d "$program" ] || [ -e "$all/${program##*/}" ] || ln -s "$program" "$all/${program##*/}"
  done
done
without() { # TOOL PATTERN
  local some=$work/without-$1
  cp -a "$all" "$some"
  rm -f "$some/$1"
  refuses "no $1" "$2" PATH="$some" -- --no-install
}
without mpicxx "no MPI.*libopenmpi-dev"
without mpiexec "no MPI.*openmpi-bin"
without ninja "no Ninja.*ninja-build"
without gcc "no C compiler.*gcc"

! compgen -G "$work/cache/petsctc/petsc-*" >/dev/null || { echo "FAILED: a failed set-up left sources behind" && failures=$((failures + 1)); }

# The one that works is accepted as it is
out=$(PETSC_DIR=$petsc_dir PETSC_ARCH=$petsc_arch "$root/scripts/setup.sh" --print-env 2>/dev/null)
if [ "$out" = "$(printf 'PETSC_DIR=%q\nPETSC_ARCH=%q' "$petsc_dir" "$petsc_arch")" ]; then echo "ok: a PETSc of the user's"; else
  echo "FAILED: a PETSc of the user's: $out"
  failures=$((failures + 1))
fi

# Asked for help, a script explains itself and does nothing else
for script in setup test demo bundle run-gpu-tests; do
  status=0
  out=$("$root/scripts/$script.sh" --help 2>"$work/err") || status=$?
  if [ $status = 0 ] && [[ $out == *"$script.sh "* ]] && [ ! -s "$work/err" ]; then echo "ok: $script.sh --help"; else
    echo "FAILED: $script.sh --help (exit status $status)"
    cat "$work/err"
    failures=$((failures + 1))
  fi
done
[ $failures = 0 ] || { echo "$failures failures" && exit 1; }
