#!/usr/bin/env bash
# scripts/setup.sh's cache: complete or absent, built once, one set-up at a time. With a stand-in for PETSc that configures and builds in no time.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
cache=$XDG_CACHE_HOME/petsctc
unset PETSC_DIR PETSC_ARCH
source "$root/tests/checks.bash"
told() { cat "$work/out" "$work/err"; }
status=0
set_up() {
  status=0
  "$root/scripts/setup.sh" "$@" >"$work/out" 2>"$work/err" || status=$?
}

# The stand-in: its configure and its makefile note that they ran, and fail while a file of that name exists
tree=$work/petsc-3.26.7
mkdir -p "$tree/include"
printf '#define PETSC_VERSION_MAJOR 3\n#define PETSC_VERSION_MINOR 26\n#define PETSC_VERSION_SUBMINOR 7\n' >"$tree/include/petscversion.h"
cat >"$tree/configure" <<END
#!/usr/bin/env bash
echo "configure \$*" >>"$work/ran"
[ ! -e "$work/configure-fails" ] || exit 1
for option in "\$@"; do case \$option in PETSC_ARCH=*) arch=\${option#*=} ;; esac; done
mkdir -p "\$arch/lib"
END
chmod +x "$tree/configure"
printf 'all:\n\techo make >>%s/ran\n\ttest ! -e %s/make-fails\n\tsleep $$(cat %s/delay 2>/dev/null || echo 0)\n\ttouch %s\n' "$work" "$work" "$work" '$(PETSC_ARCH)/lib/libpetsc.so' >"$tree/makefile"
tar -C "$work" -czf "$work/petsc.tar.gz" petsc-3.26.7
ran() { grep -c "^$1" "$work/ran" 2>/dev/null || true; }
arch_dir=$cache/petsc-3.26.7/opt-host

touch "$work/configure-fails"
set_up --without-cuda --petsc "$work/petsc.tar.gz"
check "a failed configure is reported and leaves no configuration" '[ $status != 0 ] && grep -q "configure failed" "$work/err" && [ ! -e "$arch_dir" ]'
rm "$work/configure-fails"

touch "$work/make-fails"
set_up --without-cuda --petsc "$work/petsc.tar.gz"
check "a failed build is reported, and does not count" '[ $status != 0 ] && grep -q "build failed" "$work/err" && [ ! -e "$arch_dir/.petsctc-complete" ] && [ ! -e "$cache/default.env" ]'
rm "$work/make-fails"

echo left >"$arch_dir/left-over"
set_up --without-cuda
check "an incomplete build is thrown away and made again" '[ $status = 0 ] && [ -e "$arch_dir/lib/libpetsc.so" ] && [ ! -e "$arch_dir/left-over" ] && [ "$(ran make)" = 2 ]'
check "PETSC_DIR and PETSC_ARCH are printed" 'grep -qx "export PETSC_DIR=$cache/petsc-3.26.7" "$work/out" && grep -qx "export PETSC_ARCH=opt-host" "$work/out"'
check "the build finds them" 'grep -qx "PETSC_DIR=$cache/petsc-3.26.7" "$cache/default.env"'

set_up --without-cuda
check "a second run builds nothing" '[ $status = 0 ] && [ "$(ran make)" = 2 ] && [ "$(ran configure)" = 3 ]'

set_up --variant debug
check "another configuration is built beside it" '[ $status = 0 ] && [ -e "$cache/petsc-3.26.7/debug-host/.petsctc-complete" ] && [ "$(ran make)" = 3 ] && grep -q "with-debugging=1" "$work/ran"'
check "the default stays the release" 'grep -qx "PETSC_ARCH=opt-host" "$cache/default.env"'

set_up --variant headers
check "headers are configured and not built" '[ $status = 0 ] && [ "$(ran configure)" = 5 ] && [ "$(ran make)" = 3 ]'

rm -rf "$arch_dir"
echo 3 >"$work/delay"
"$root/scripts/setup.sh" --without-cuda >"$work/first" 2>&1 &
first=$!
sleep 1
set_up --without-cuda
check "a second set-up at the same time waits for the first" '[ $status = 0 ] && grep -q "another set-up is running" "$work/out" && [ "$(ran make)" = 4 ]'
wait $first || { echo "FAILED: the first of two set-ups" && cat "$work/first" && failures=$((failures + 1)); }
echo 0 >"$work/delay"

set_up --without-cuda --petsc "$tree"
check "a tree of the user's is used where it is" '[ $status = 0 ] && grep -qx "export PETSC_DIR=$tree" "$work/out" && [ -e "$tree/opt-host/.petsctc-complete" ]'
rm "$tree/opt-host/.petsctc-complete"
set_up --without-cuda --petsc "$tree"
check "what it did not complete in a user's tree is not removed" '[ $status != 0 ] && [ -e "$tree/opt-host/lib/libpetsc.so" ]'
finish
