#!/usr/bin/env bash
# Packs PETSc, the plugin, its tests, PETSc's own GPU tests, the example and matrices into one folder that runs anywhere: for a GPU node without internet.
#   scripts/bundle.sh [--archive] [--with-mpi] [FOLDER]      FOLDER: default ./petsctc-bundle
#     --archive      also FOLDER.tar.xz, about a third of the size
#     --with-mpi     this machine's Open MPI and OpenBLAS too (8 MB), used by run-gpu-tests.sh where the node has none
# With PETSCTC_BUILD (and PETSC_DIR, PETSC_ARCH) set, that build is packed; otherwise build-release is made first. The node needs Open MPI, OpenBLAS,
# CUDA's libraries, bash and Python 3. There: FOLDER/run-gpu-tests.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/build.bash"
show_help "$0" "$@"

archive=0 with_mpi=0 folder=$PWD/petsctc-bundle
for argument in "$@"; do
  case $argument in
    --archive) archive=1 ;;
    --with-mpi) with_mpi=1 ;;
    -*) echo "bundle.sh: unknown option $argument, see scripts/bundle.sh --help" >&2 && exit 2 ;;
    *) folder=$(realpath -m "$argument") ;;
  esac
done
if [ -z "${PETSCTC_BUILD:-}" ]; then
  set_up
  CUDAARCHS=${CUDAARCHS-80-real;90} build release -DBUILD_TESTING=ON -DPETSCTC_BENCH=ON
  export PETSCTC_BUILD=$root/build-release
fi
export PETSCTC_LIB=$PETSCTC_BUILD/lib/libpetsctc.so PYTHONDONTWRITEBYTECODE=1
prefix=$PETSC_DIR/${PETSC_ARCH:-}
[ -f "$PETSC_DIR/gmakefile.test" ] || { echo "bundle.sh: PETSC_DIR=$PETSC_DIR has no test sources; use a PETSc built from its source package" >&2 && exit 1; }
[ ! -e "$folder" ] || [ -f "$folder/run-gpu-tests.sh" ] || { echo "bundle.sh: $folder exists and is no bundle; name another folder" >&2 && exit 1; }
rm -rf "$folder"
mkdir -p "$folder"/{lib,bin,petsc,harness,acceptance,matrices}

stripped() { # FILE TARGET
  strip --strip-unneeded -o "$2" "$1"
}

echo "==> Libraries, example and unit tests"
for library in "$prefix"/lib/libpetsc.so "$PETSCTC_LIB"; do
  name=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\].*/\1/p')
  stripped "$library" "$folder/lib/$name"
done
ln -sf "$name" "$folder/lib/libpetsctc.so"
for program in solve ex1 ex2 ex3 petsctc-bench; do
  stripped "$PETSCTC_BUILD/bin/$program" "$folder/bin/$program"
done
cp "$root/bench/compare.py" "$folder/bin/"
# Each unit test holds all kernels: together they compress to the size of one.
mkdir -p "$folder/unit"
for program in "$PETSCTC_BUILD"/bin/unit_*; do
  stripped "$program" "$folder/unit/${program##*/}"
done
tar -C "$folder" -cf - unit | xz -9 >"$folder/unit.tar.xz"
rm -r "$folder/unit"
cp "$root"/tests/data/*.mtx.gz "$folder/matrices/"

echo "==> PETSc's harness"
for file in config/petsc_harness.sh lib/petsc/bin/petscdiff; do
  install -D "$PETSC_DIR/$file" "$folder/petsc/$file"
done
mkdir -p "$folder/petsc/share/petsc/datafiles"
cp -r "$PETSC_DIR/share/petsc/datafiles/matrices" "$folder/petsc/share/petsc/datafiles/"
find "$folder/petsc/share" -size +400k -delete

echo "==> The plugin's own tests"
tests=$PETSCTC_BUILD/bundle-tests
run_make() {
  make -f "$PETSC_DIR/gmakefile.test" PETSC_DIR="$PETSC_DIR" PETSC_ARCH="${PETSC_ARCH:-}" TESTSRCDIR="$root" pkgs="tests examples" TESTDIR="$tests" NO_RM=1 \
    CPPFLAGS="-I$root/include" CXXPPFLAGS="-I$root/include" PETSC_TEST_LIB="-Wl,--as-needed -L$(dirname "$PETSCTC_LIB") -lpetsctc \$(PETSC_LIB) -lz" "$@"
}
rm -rf "$tests" # a test that is no more would leave its script
mkdir -p "$tests"
run_make print-test gmakesearch=none >/dev/null
(cd "$tests" && grep -l "^executable='../ex" tests/{mat,ksp}/run*.sh examples/tutorials/run*.sh | sort) >"$tests/scripts.txt"
programs=$(while read -r script; do sed -n "s#^executable='../\(.*\)'#$(dirname "$script")/\1#p" "$tests/$script"; done <"$tests/scripts.txt" | sort -u)
# shellcheck disable=SC2046,SC2086 # one word each
run_make -k -j "$(env -u OMP_NUM_THREADS nproc)" $(printf "$tests/%s " $programs) >"$tests/build.log" 2>&1 || { grep -A5 error "$tests/build.log" && exit 1; }
for program in $programs; do
  mkdir -p "$folder/harness/$(dirname "$program")"
  stripped "$tests/$program" "$folder/harness/$program"
done
# Paths of this machine become names that run-gpu-tests.sh replaces. The longest first: one may hold another.
while read -r script; do
  sed -e "s#$tests#@TESTS@#g" -e "s#$PETSC_DIR#@PETSC@#g" -e "s#$root#@SOURCE@#g" "$tests/$script" >"$folder/harness/$script"
done <"$tests/scripts.txt"
cp "$tests/scripts.txt" "$folder/harness/"
for output in tests/mat/output tests/ksp/output examples/tutorials/output; do
  mkdir -p "$folder/harness/source/$output"
  cp "$root/$output"/* "$folder/harness/source/$output/"
done

echo "==> PETSc's own GPU tests"
"$root/tests/acceptance/gpu.sh" --prepare
stripped "${PETSCTC_LIB%/*}/libpetsctctests.so" "$folder/lib/libpetsctctests.so"
accept=$PETSCTC_BUILD/acceptance
cp "$root"/tests/acceptance/{ab.py,mpiexec_record,gpu_ab.bash,gpu-scripts.txt,folders-gpu.txt,exceptions-gpu.txt,exceptions-folders.txt} "$accept/sweep-gpu.txt" "$folder/acceptance/"
while read -r script; do
  install -D "$accept/tests/$script.sh" "$folder/acceptance/tests/$script.sh"
  sed -n "s#^executable='../\(.*\)'#$(dirname "$script")/\1#p" "$accept/tests/$script.sh"
done < <(cat "$root"/tests/acceptance/{gpu-scripts,folders-gpu}.txt) >"$accept/programs-gpu.txt"
cut -d'|' -f3 "$accept/sweep-gpu.txt" | tr -d ' ' >>"$accept/programs-gpu.txt"
sort -u "$accept/programs-gpu.txt" | while read -r program; do
  mkdir -p "$folder/acceptance/tests/$(dirname "$program")"
  stripped "$accept/tests/$program" "$folder/acceptance/tests/$program"
done

# Open MPI with the components that one node needs, and OpenBLAS, with what they need beyond a C++ run time
pack_mpi() {
  local pack=$PETSCTC_BUILD/bundle-mpi components
  rm -rf "$pack"
  mkdir -p "$pack/bin"
  # ompi_info tells where components and texts are, below a prefix that OPAL_PREFIX moves
  components=$(ompi_info --path pkglibdir | sed 's/.*: *//')
  mkdir -p "$pack/${components#/usr/}" "$pack/share"
  cp "$components"/mca_*.so "$pack/${components#/usr/}/"
  (cd "$pack/${components#/usr/}" && rm -f ./*_{ucx,ofi,openib,psm,psm2,slurm,usnic,portals4,gridengine,monitoring,romio321,flux}.so ./mca_memheap_* ./mca_scoll_* ./mca_spml_* ./mca_sshmem_*)
  cp -r "$(ompi_info --path pkgdatadir | sed 's/.*: *//')" "$pack/share/"
  cp -L "$(command -v orterun)" "$pack/bin/mpiexec"
  cp -L "$(command -v orted)" "$pack/bin/orted"
  mkdir -p "$pack/lib/needed"
  ldd "$folder"/lib/libpetsc.so.* "$pack/bin/mpiexec" "$pack/${components#/usr/}"/*.so | awk '/=> \// {print $3}' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux[^/]*|libstdc\+\+|libgcc_s)\.so|/cuda|libpetsc' | while read -r library; do
    cp -L "$library" "$pack/lib/needed/"
  done
  strip --strip-unneeded "$pack"/lib/needed/* "$pack/${components#/usr/}"/*.so "$pack"/bin/*
  tar -C "$pack" -cf - . | xz -9 >"$folder/mpi.tar.xz"
}
if [ $with_mpi = 1 ] && command -v ompi_info >/dev/null; then
  echo "==> Open MPI and OpenBLAS, in case the node has none"
  pack_mpi
fi

cp "$root/scripts/run-gpu-tests.sh" "$folder/"
{
  echo "PETSc-TC $(git -C "$root" describe --always --dirty 2>/dev/null || echo 'without version control'), packed $(date -u +%F)"
  echo "PETSc $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --modversion PETSc)"
} >"$folder/VERSION"
echo "$folder: $(du -sm "$folder" | cut -f1) MB"
if [ $archive = 1 ]; then
  tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | xz -9 -T0 >"$folder.tar.xz"
  size=$(du -m "$folder.tar.xz" | cut -f1)
  echo "$folder.tar.xz: $size MB"
  [ "$size" -lt 64 ] || { echo "bundle.sh: too large" >&2 && exit 1; }
fi
