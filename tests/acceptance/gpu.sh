#!/usr/bin/env bash
# PETSc's tests of AIJCUSPARSE, and the option sweep, on a GPU: aijtc against aijcusparse; and some of the tests of folders.sh.
#   gpu.sh            runs them; skipped where there is no GPU
#   gpu.sh --prepare  builds the programs only, for scripts/bundle.sh
set -euo pipefail
source "$(dirname "$0")/common.bash"
source "$here/gpu_ab.bash"
if ! grep -q '^#define PETSC_HAVE_CUDA ' "$PETSC_DIR/${PETSC_ARCH:+$PETSC_ARCH/}include/petscconf.h"; then
  echo "skipped: this PETSc has no CUDA"
  exit 77
fi
if [ "${1:-}" != --prepare ] && ! "$here/../has_gpu.sh"; then
  echo "skipped: no usable GPU"
  exit 77
fi
flock 9
"$here/sweep.sh" --list >"$work/sweep-gpu.txt"
generate_scripts
# shellcheck disable=SC2046 # one word each
build_programs $(cat "$here"/{gpu-scripts,folders-gpu}.txt | programs_of /dev/stdin) $(cut -d'|' -f3 "$work/sweep-gpu.txt" | sort -u)
flock -u 9
[ "${1:-}" != --prepare ] || exit 0
status=0
gpu_scripts || status=1
gpu_sweep "$work/sweep-gpu.txt" || status=1
gpu_folders || status=1
exit $status
