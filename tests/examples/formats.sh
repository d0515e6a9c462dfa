#!/usr/bin/env bash
# Every accepted form of a file gives the same matrix or vector, bit for bit, on one process and on several.
# shellcheck source=common.bash
source "$(dirname "$0")/common.bash"

# read_as NP NAME OPTIONS...: reads the matrix and writes it, and its right-hand side, as PETSc binary files NAME.mat and NAME.vec
read_as() {
  local np=$1 name=$2
  shift 2
  rm -f "$name.mat" "$name.vec"
  run "$np" -mat_type aij -ksp_type richardson -ksp_max_it 1 -ksp_view_mat "binary:$name.mat" -ksp_view_rhs "binary:$name.vec" "$@"
}
# same_matrix REFERENCE.mat FILE [NP...]
same_matrix() {
  local reference=$1 file=$2 np
  shift 2
  for np in "${@:-1}"; do
    read_as "$np" read -f "$file"
    check "$file is the matrix of $reference, np $np" '[ "$status" = 0 ] && cmp "$reference" read.mat'
  done
}
digits=${single:+%.6g} digits=${digits:-%.17g}
lines() { printf '%s\n' "$@"; }
banner='%%MatrixMarket matrix'

# The reference: written as it should be, checked number by number in PETSc's own print
lines "$banner coordinate real general" '4 4 7' '1 1 2.5' '1 3 -1' '2 2 4' '3 1 1e-3' '3 3 3' '4 1 7' '4 4 1' >plain.mtx
run 1 -f plain.mtx -mat_type aij -ksp_type richardson -ksp_max_it 1 -ksp_view_mat ascii:plain.txt:ascii_matlab
awk 'NF == 3 && $1 ~ /^[0-9]+$/ { printf "%d %d '"$digits"'\n", $1, $2, $3 }' plain.txt >plain.entries
lines '1 1 2.5' '1 3 -1' '2 2 4' '3 1 0.001' '3 3 3' '4 1 7' '4 4 1' | awk '{ printf "%d %d '"$digits"'\n", $1, $2, $3 }' >plain.expected
check 'plain.mtx has the entries written in it' '[ "$status" = 0 ] && diff plain.expected plain.entries'
check 'its facts' '[ "$(fact rows)" = 4 ] && [ "$(fact columns)" = 4 ] && [ "$(fact nonzeros)" = 7 ] && [ "$(fact "longest row")" = 2 ] && [ "$(fact symmetry)" = "general (header)" ]'
read_as 1 reference -f plain.mtx
check 'the reference as PETSc binary' '[ "$status" = 0 ] && [ -s reference.mat ]'
same_matrix reference.mat plain.mtx 2 3 4
same_matrix reference.mat reference.mat 1 2

# Unsorted, an entry in three parts, comments, empty lines, blanks and tabs, returns, capitals, signs, no newline at the end
printf '%%%%matrixmarket MATRIX Coordinate Real\tGENERAL\r\n%% one\r\n\r\n%%\r\n  4\t4 9\r\n4 4 +1.0\r\n1 3 -1.\r\n\r\n 3 3 .3E1\r\n%% here too\r\n2 2 1\r\n2 2 2\t\r\n1 1 2.5\r\n3 1 0.001\r\n2 2 1\r\n4 1 7' >odd.mtx
same_matrix reference.mat odd.mtx 1 2
gzip -c plain.mtx >plain.mtx.gz
same_matrix reference.mat plain.mtx.gz 1 2
cp plain.mtx.gz gzipped_without_saying.mtx
same_matrix reference.mat gzipped_without_saying.mtx
lines "$banner array real general" '4 4' 2.5 0 0.001 7 0 4 0 0 -1 0 3 0 0 0 0 1 >array.mtx
same_matrix reference.mat array.mtx 1 3

# Integer and pattern
lines "$banner coordinate real general" '3 3 4' '1 1 1' '2 3 1' '3 1 1' '3 3 1' >ones.mtx
lines "$banner coordinate integer general" '3 3 4' '1 1 1' '2 3 +1' '3 1 1' '3 3 1' >integer.mtx
lines "$banner coordinate pattern general" '3 3 4' '3 3' '1 1' '2 3' '3 1' >pattern.mtx
read_as 1 ones -f ones.mtx
same_matrix ones.mat integer.mtx
same_matrix ones.mat pattern.mtx 1 2

# Symmetric and skew-symmetric
lines "$banner coordinate real general" '3 3 7' '1 1 4' '1 2 -1' '2 1 -1' '2 2 5' '2 3 2' '3 2 2' '3 3 6' >both.mtx
lines "$banner coordinate real symmetric" '3 3 5' '1 1 4' '2 1 -1' '2 2 5' '3 2 2' '3 3 6' >lower.mtx
lines "$banner coordinate real symmetric" '3 3 5' '3 3 6' '2 3 2' '2 2 5' '1 2 -1' '1 1 4' >upper.mtx
lines "$banner array integer symmetric" '3 3' 4 -1 0 5 2 6 >symmetric_array.mtx
read_as 1 both -f both.mtx
same_matrix both.mat lower.mtx 1 2 3
check 'a symmetric header is told' '[ "$(fact symmetry)" = "symmetric (header)" ] && [ "$(fact nonzeros)" = 7 ]'
same_matrix both.mat upper.mtx
same_matrix both.mat symmetric_array.mtx
same_matrix both.mat both.mat 2
check 'a PETSc binary file is tested for symmetry' '[ "$(fact symmetry)" = "symmetric (tested)" ]'
same_matrix reference.mat reference.mat
check 'and a nonsymmetric one' '[ "$(fact symmetry)" = "general (tested)" ]'
lines "$banner coordinate real general" '3 3 4' '1 2 -2' '2 1 2' '2 3 5' '3 2 -5' >skew_both.mtx
lines "$banner coordinate real skew-symmetric" '3 3 2' '2 1 2' '3 2 -5' >skew.mtx
lines "$banner array real skew-symmetric" '3 3' 2 0 -5 >skew_array.mtx
read_as 1 skew_both -f skew_both.mtx
same_matrix skew_both.mat skew.mtx 1 2
check 'a skew-symmetric header is told' '[ "$(fact symmetry)" = "skew-symmetric (header)" ]'
same_matrix skew_both.mat skew_array.mtx

# Shapes: one row, more processes than rows, no entries, empty rows
lines "$banner coordinate real general" '1 1 1' '1 1 3' >single.mtx
read_as 1 single -f single.mtx
same_matrix single.mat single.mtx 2
lines "$banner coordinate real general" '3 3 0' >nothing.mtx
read_as 1 nothing -f nothing.mtx
check 'a matrix without entries' '[ "$status" = 0 ] && [ "$(fact nonzeros)" = 0 ] && [ "$(fact "longest row")" = 0 ]'
same_matrix nothing.mat nothing.mtx 2
awk -v head="$banner coordinate pattern general" 'BEGIN { print head; printf "2 2 1\n%%"; for (k = 0; k < 3000000; ++k) printf "x"; print "\n2 2" }' >longcomment.mtx
run 1 -f longcomment.mtx -mat_type aij -ksp_type richardson -ksp_max_it 1
check 'a comment of 3 million letters' '[ "$status" = 0 ] && [ "$(fact nonzeros)" = 1 ]'

# Right-hand sides: 1, 2, 0, -4
lines "$banner array real general" '4 1' 1 2 0 -4 >b_array.mtx
lines "$banner array integer general" '% comment' '4 1' 1 2 0 -4 >b_integer.mtx
lines "$banner coordinate real general" '4 1 3' '4 1 -4' '1 1 1' '2 1 2' >b_coordinate.mtx
gzip -c b_array.mtx >b_array.mtx.gz
read_as 1 b -f plain.mtx -rhs b_array.mtx
cp b.vec b_binary.vec
for np in 1 2; do
  for rhs in b_array.mtx b_integer.mtx b_coordinate.mtx b_array.mtx.gz b_binary.vec; do
    read_as $np read -f plain.mtx -rhs $rhs
    check "-rhs $rhs, np $np" '[ "$status" = 0 ] && cmp b_binary.vec read.vec'
  done
done
lines "$banner array real general" '4 1' 1.5 4 3.001 8 >rowsums.mtx
read_as 1 rowsums -f plain.mtx -rhs rowsums.mtx
read_as 1 read -f plain.mtx
check 'without -rhs the right-hand side is A*1' '[ "$status" = 0 ] && cmp rowsums.vec read.vec'

# A solution known beforehand: both.mtx * (1, 2, 3) = (2, 15, 22)
lines "$banner array real general" '3 1' 2 15 22 >b3.mtx
run 1 -f lower.mtx -rhs b3.mtx -mat_type aij -ksp_type cg -ksp_rtol 1e-14 -ksp_view_solution ascii:x.txt
check 'the solution is 1, 2, 3' '[ "$status" = 0 ] && awk "/^[0-9.e+-]+\$/ { ++n; if ((\$1 - n)^2 > ${single:+1e-10 + }1e-20) bad = 1 } END { exit bad || n != 3 }" x.txt'
check 'the true residual is small' 'awk "BEGIN { exit !($(fact "true residual") < ${single:+1e-6 + }1e-12) }"'

# The real matrices: what the README beside them says, and the same on several processes
while IFS='|' read -r _ file _ rows _ nonzeros row _ norm _; do
  file=$(tr -d '` ' <<<"$file") rows=${rows// /} nonzeros=${nonzeros// /} norm=${norm// /}
  longest=$(awk '{ print $NF }' <<<"$row")
  read_as 1 "one-$file" -f "$data/$file"
  check "$file: $rows rows, $nonzeros nonzeros, at most $longest in a row, norm $norm" '[ "$status" = 0 ] && [ "$(fact rows)" = $rows ] && [ "$(fact nonzeros)" = $nonzeros ] && [ "$(fact "longest row")" = $longest ] && awk "BEGIN { d = $(fact "Frobenius norm") / $norm - 1; e = ${single:+1e-3 + }1e-9; exit !(d < e && d > -e) }"'
  read_as 3 "three-$file" -f "$data/$file"
  check "$file: the same on 3 processes" '[ "$status" = 0 ] && cmp "one-$file.mat" "three-$file.mat"'
done < <(awk -F'|' 'NF == 10 && $2 ~ /mtx.gz/' "$data/README.md")
check 'all three were checked' '[ "$(ls three-*.mat | wc -l)" = 3 ]'

finish
