#!/usr/bin/env bash
# Whole folders of PETSc's own tests, with every sequential AIJ and every block of a parallel one made ours, against stock PETSc.
#   folders.sh [--mpiaij] [--part K/N] [--table FILE] [--list] [FOLDER...]      FOLDER: ksp/ksp/tests, dm, ...; default: ksp mat snes ts vec
#     --mpiaij       parallel AIJ are ours too; only tests on several processes
#     --part K/N     the Kth of N parts; K is "turn": another one each day, or $PETSCTC_TURN
#     --table FILE   the figures of each folder, and a line for each test that is not identical
#     --list         prints the tests only
# A test in which no matrix became ours is counted as not used. What needs data files that PETSc does not ship, Fortran, or (on a machine without one) a GPU is left out.
set -euo pipefail
source "$(dirname "$0")/common.bash"
source "$here/gpu_ab.bash"
plugin=$(dirname "$PETSCTC_LIB")/libpetsctctests.so
part=1/1 mode=folders list=0 table=()
folders=()
while [ $# -gt 0 ]; do
  case $1 in
    --mpiaij) mode='folders-mpiaij' ;;
    --part) part=$2 && shift ;;
    --table) table=(--table "$(realpath -m "$2")") && shift ;;
    --list) list=1 ;;
    -*) echo "folders.sh: unknown option $1" >&2 && exit 2 ;;
    *) folders+=("${1%/}") ;;
  esac
  shift
done
[ ${#folders[@]} -gt 0 ] || folders=(ksp mat snes ts vec)
[ "${part%/*}" != turn ] || part=$((10#${PETSCTC_TURN:-$(date +%j)} % ${part#*/} + 1))/${part#*/}
[ -f "$plugin" ] || { echo "skipped: no $plugin, which the tests of the build make"; exit 77; }

# The run scripts that can run here, each with its program
scripts() {
  local left_out='SKIP (Requires DATAFILESPATH|Fortran required)'
  "$here/../has_gpu.sh" >/dev/null 2>&1 || left_out+="|^(testname=|args=|[A-Za-z_]*_in=|executable=).*(cuda|cusparse|hip|kokkos)"
  cd "$tree"
  find "${folders[@]}" -name 'run*.sh' | sort -V | xargs grep -LE "$left_out" >"$work/$mode.candidates" || true # the exit status of grep -L depends on its version
  if [ $mode = folders-mpiaij ]; then
    # shellcheck disable=SC2016 # the script's own text
    xargs grep -L 'nsize_in=${nsize:-1}$' <"$work/$mode.candidates" >"$work/$mode.parallel" || true
    mv "$work/$mode.parallel" "$work/$mode.candidates"
  fi
  xargs grep -H "^executable='../" <"$work/$mode.candidates" | sed -E "s#^((.*)/[^/]*)\.sh:executable='\.\./(.*)'#\1 \2/\3#" >"$work/$mode.programs"
}
# Only programs whose source makes or uses matrices: most of those below vec and dm do not
with_matrices() { # < PROGRAM...
  local program source
  while read -r program; do
    for source in "$petsc_root/src/$program".*; do
      ! grep -qE '\b(MatCreate|MatSet|MatLoad|DMCreateMatrix|KSPCreate|SNESCreate|TSCreate|TaoCreate)' "$source" || { echo "$program" && break; }
    done
  done
}

flock 9
generate_scripts
scripts
cut -d' ' -f2 "$work/$mode.programs" | sort -uV | with_matrices >"$work/$mode.chosen"
# All tests of a program are in one part, where it is compiled; a program of very many tests is in all parts
awk -v k="${part%/*}" -v n="${part#*/}" '
  pass == 1 { count[$2]++; next }
  pass == 2 { number[$1] = ++programs; next }
  pass == 3 && $2 in number && (count[$2] > 30 ? ++scripts : number[$2]) % n == k % n { print }' \
  pass=1 "$work/$mode.programs" pass=2 "$work/$mode.chosen" pass=3 "$work/$mode.programs" >"$work/$mode.part"
cut -d' ' -f1 "$work/$mode.part" >"$work/$mode.txt"
cut -d' ' -f2 "$work/$mode.part" | sort -u >"$work/$mode.chosen"
[ $list = 0 ] || { cat "$work/$mode.txt" && exit 0; }
# shellcheck disable=SC2046 # one word each
build_programs $(cat "$work/$mode.chosen")
flock -u 9

# On one machine: most of these programs take less time than the search of networks when they start
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=${OMPI_MCA_btl:-self,vader}
options=
[ $mode = folders ] || options=-acceptance_mpiaij
folders_ab "$mode" "$work/$mode.txt" "$options" --clean --timeout 60 "${table[@]}"
