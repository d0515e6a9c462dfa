#!/usr/bin/env bash
# Every malformed input ends in a PETSc error that names the file and the line, on one process and on two, without a crash or a hang.
# shellcheck source=common.bash
source "$(dirname "$0")/common.bash"

# refused NAME "TEXT OF THE ERROR" [OPTIONS...]: solve -f NAME fails with an error of that text
refused() {
  local name=$1 text=$2 np
  shift 2
  for np in 1 2; do
    run $np -f "$name" -mat_type aij -ksp_type gmres "$@"
    check "$name, np $np: $text" 'is_refusal "$text"'
  done
}
# An error of PETSc with a message, not a signal (128 and above), not the time limit (124)
is_refusal() { [ "$status" -gt 0 ] && [ "$status" -lt 124 ] && has "$1" && has "PETSC ERROR" && ! grep -qE 'AddressSanitizer|runtime error:|SEGV|Abort signal|exited on signal (4|6|7|8|11)|bad_alloc|terminate called' <<<"$output"; }

# mtx NAME LINES...: writes a file
mtx() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$name"
}
real='%%MatrixMarket matrix coordinate real general'
symmetric='%%MatrixMarket matrix coordinate real symmetric'

# Not there, not a matrix
refused nosuchfile.mtx 'nosuchfile.mtx: cannot be opened: No such file'
mkdir folder.mtx
refused folder.mtx 'folder.mtx, line 1: cannot be read on: Is a directory'
: >empty.mtx
refused empty.mtx 'empty.mtx, line 1: no Matrix Market file'
head -c 3000 "$solve" >program.mtx
refused program.mtx 'program.mtx, line 1: no Matrix Market file'

# The banner
mtx nobanner.mtx '2 2 1' '1 1 1.0'
refused nobanner.mtx 'nobanner.mtx, line 1: no Matrix Market file'
mtx short.mtx '%%MatrixMarket matrix coordinate' '1 1 1' '1 1 1.0'
refused short.mtx "short.mtx, line 1: the banner says field ''"
mtx object.mtx '%%MatrixMarket vector coordinate real general' '1 1 1' '1 1 1.0'
refused object.mtx "object.mtx, line 1: the banner says object 'vector'"
mtx format.mtx '%%MatrixMarket matrix elliptic real general' '1 1 1' '1 1 1.0'
refused format.mtx "format.mtx, line 1: the banner says format 'elliptic'"
mtx field.mtx '%%MatrixMarket matrix coordinate quaternion general' '1 1 1' '1 1 1.0'
refused field.mtx "field.mtx, line 1: the banner says field 'quaternion'"
mtx complex.mtx '%%MatrixMarket matrix coordinate complex general' '1 1 1' '1 1 1.0 0.0'
refused complex.mtx 'complex.mtx, line 1: complex matrices are not handled'
mtx hermitian.mtx '%%MatrixMarket matrix coordinate complex hermitian' '1 1 1' '1 1 1.0 0.0'
refused hermitian.mtx 'hermitian.mtx, line 1: complex matrices are not handled'
mtx symmetry.mtx '%%MatrixMarket matrix coordinate real sometimes' '1 1 1' '1 1 1.0'
refused symmetry.mtx "symmetry.mtx, line 1: the banner says symmetry 'sometimes'"
mtx skewpattern.mtx '%%MatrixMarket matrix coordinate pattern skew-symmetric' '2 2 1' '2 1'
refused skewpattern.mtx 'skewpattern.mtx, line 1: the banner says pattern, which cannot be skew-symmetric'
mtx longbanner.mtx "$real yes" '1 1 1' '1 1 1.0'
refused longbanner.mtx "longbanner.mtx, line 1: 'yes' follows where the line should end"

# The sizes
mtx onlybanner.mtx "$real" '% nothing more'
refused onlybanner.mtx 'onlybanner.mtx, line 2: the file ends before the line with the sizes'
mtx twosizes.mtx "$real" '2 2' '1 1 1.0'
refused twosizes.mtx 'twosizes.mtx, line 2: the line ends where the number of entries should be'
mtx foursizes.mtx "$real" '%' '2 2 1 1' '1 1 1.0'
refused foursizes.mtx "foursizes.mtx, line 3: '1' follows where the line should end"
mtx negative.mtx "$real" '-2 2 1' '1 1 1.0'
refused negative.mtx 'negative.mtx, line 2: the number of rows -2 is negative'
mtx negativecount.mtx "$real" '2 2 -1' '1 1 1.0'
refused negativecount.mtx 'negativecount.mtx, line 2: the number of entries -1 is negative'
mtx wordsize.mtx "$real" '2 two 1' '1 1 1.0'
refused wordsize.mtx "wordsize.mtx, line 2: 'two' is no integer where the number of columns should be"
mtx realsize.mtx "$real" '2.0 2 1' '1 1 1.0'
refused realsize.mtx "realsize.mtx, line 2: '2.0' is no integer where the number of rows should be"
mtx toolarge.mtx "$real" '99999999999999999999 2 1' '1 1 1.0'
refused toolarge.mtx "toolarge.mtx, line 2: the number of rows '99999999999999999999' is too large"
mtx manyentries.mtx "$real" '2 2 9223372036854775807' '1 1 1.0'
refused manyentries.mtx 'manyentries.mtx, line 3: the file ends after 1 of the 9223372036854775807 entries that line 2 announces'
mtx notsquare.mtx "$real" '%' '%' '2 3 1' '1 1 1.0'
refused notsquare.mtx 'notsquare.mtx, line 4: the matrix has 2 rows and 3 columns'
mtx symmetricnotsquare.mtx "$symmetric" '2 3 1' '1 1 1.0'
refused symmetricnotsquare.mtx 'symmetricnotsquare.mtx, line 2: 2 rows and 3 columns, but the banner says a symmetric matrix'
mtx norows.mtx "$real" '0 0 0'
refused norows.mtx 'norows.mtx, line 2: the matrix has no rows'

# The entries
mtx toofew.mtx "$real" '2 2 3' '1 1 1.0' '2 2 1.0'
refused toofew.mtx 'toofew.mtx, line 4: the file ends after 2 of the 3 entries that line 2 announces'
mtx toomany.mtx "$real" '2 2 1' '1 1 1.0' '' '2 2 1.0'
refused toomany.mtx 'toomany.mtx, line 5: the file goes on after the 1 entries that line 2 announces'
mtx row0.mtx "$real" '2 2 2' '1 1 1.0' '0 2 1.0'
refused row0.mtx 'row0.mtx, line 4: row 0 is not in 1 to 2'
mtx column0.mtx "$real" '2 2 1' '1 0 1.0'
refused column0.mtx 'column0.mtx, line 3: column 0 is not in 1 to 2'
mtx rownegative.mtx "$real" '2 2 1' '-1 1 1.0'
refused rownegative.mtx 'rownegative.mtx, line 3: row -1 is not in 1 to 2'
mtx rowbeyond.mtx "$real" '2 2 1' '3 1 1.0'
refused rowbeyond.mtx 'rowbeyond.mtx, line 3: row 3 is not in 1 to 2'
mtx columnbeyond.mtx "$real" '2 2 1' '1 4294967297 1.0'
refused columnbeyond.mtx 'columnbeyond.mtx, line 3: column 4294967297 is not in 1 to 2'
mtx rowhuge.mtx "$real" '2 2 1' '18446744073709551617 1 1.0'
refused rowhuge.mtx "rowhuge.mtx, line 3: the row '18446744073709551617' is too large"
mtx novalue.mtx "$real" '2 2 1' '1 1'
refused novalue.mtx 'novalue.mtx, line 3: the line ends where the value should be'
mtx cutline.mtx "$real" '2 2 2' '1 1 1.0'
printf '2' >>cutline.mtx
refused cutline.mtx 'cutline.mtx, line 4: the line ends where the column should be'
mtx garbage.mtx "$real" '2 2 1' '1 1 1.0 2.0'
refused garbage.mtx "garbage.mtx, line 3: '2.0' follows where the line should end"
mtx glued.mtx "$real" '2 2 1' '1 1 1.0x'
refused glued.mtx "glued.mtx, line 3: '1.0x' is no number where the value should be"
mtx word.mtx "$real" '2 2 1' '1 1 one'
refused word.mtx "word.mtx, line 3: 'one' is no number where the value should be"
mtx nan.mtx "$real" '2 2 2' '1 1 1.0' '2 2 NaN'
refused nan.mtx "nan.mtx, line 4: the value 'NaN' is not a finite number"
mtx inf.mtx "$real" '2 2 1' '1 1 -Inf'
refused inf.mtx "inf.mtx, line 3: the value '-Inf' is not a finite number"
mtx overflow.mtx "$real" '2 2 1' '1 1 1e999'
refused overflow.mtx "overflow.mtx, line 3: the value '1e999' is not a finite number"
mtx halfinteger.mtx '%%MatrixMarket matrix coordinate integer general' '2 2 1' '1 1 1.5'
refused halfinteger.mtx "halfinteger.mtx, line 3: '1.5' is no integer where the value should be"
mtx patternvalue.mtx '%%MatrixMarket matrix coordinate pattern general' '2 2 1' '1 1 1.0'
refused patternvalue.mtx "patternvalue.mtx, line 3: '1.0' follows where the line should end"
printf '%s\n2 2 1\n1 1 1.0\0 5\n' "$real" >nul.mtx
refused nul.mtx "nul.mtx, line 3: '1.0?' is no number where the value should be"
mtx bothsides.mtx "$symmetric" '3 3 3' '1 1 1.0' '2 1 1.0' '1 3 1.0'
refused bothsides.mtx 'bothsides.mtx, line 5: entry (1, 3) is on the other side of the diagonal than those before'
mtx skewdiagonal.mtx '%%MatrixMarket matrix coordinate real skew-symmetric' '2 2 1' '1 1 1.0'
refused skewdiagonal.mtx 'skewdiagonal.mtx, line 3: a skew-symmetric file stores no diagonal entry (1, 1)'
mtx arrayshort.mtx '%%MatrixMarket matrix array real general' '2 2' 1 2 3
refused arrayshort.mtx 'arrayshort.mtx, line 5: the file ends after 3 of the 4 values of the array that line 2 announces'
awk -v head="$real" 'BEGIN { print head; printf "2 2 1\n1 1 "; for (k = 0; k < 3000000; ++k) printf "x"; print "" }' >longline.mtx
refused longline.mtx "longline.mtx, line 3: 'xxxxxxxxxx"

# gzip
gzip -dc "$data/cage10.mtx.gz" | head -n 2000 >cage.mtx
head -c 300000 "$data/cage10.mtx.gz" >cut.mtx.gz
refused cut.mtx.gz 'the gzip file is cut short'
check 'cut.mtx.gz: the error names file and line' 'grep -qE "cut.mtx.gz, line [1-9][0-9]+: the gzip" <<<"$output"'
head -c 5 "$data/cage10.mtx.gz" >cuthead.mtx.gz
refused cuthead.mtx.gz 'cuthead.mtx.gz, line 1: the gzip file is cut short'
printf '%s\n2 2 2\n1 1 1.0\n2 2 1.0\n' "$real" | gzip -n | head -c -4 >cuttail.mtx.gz
refused cuttail.mtx.gz 'cuttail.mtx.gz, line 5: the gzip file is cut short'
{ head -c 300000 "$data/cage10.mtx.gz"; head -c 1000 /dev/zero | tr '\0' '\377'; tail -c +301001 "$data/cage10.mtx.gz"; } >corrupt.mtx.gz
refused corrupt.mtx.gz 'corrupt.mtx.gz, line '
gzip -n <cage.mtx | head -c -8 >badsum.mtx.gz
printf '\1\2\3\4\5\6\7\10' >>badsum.mtx.gz
refused badsum.mtx.gz 'cannot be read on: incorrect data check'

# Right-hand sides
mtx one.mtx "$real" '3 3 3' '1 1 1.0' '2 2 1.0' '3 3 1.0'
mtx shortrhs.mtx '%%MatrixMarket matrix array real general' '2 1' 1 2
refused one.mtx 'shortrhs.mtx, line 2: 2 rows and 1 columns where a vector of 3 rows and 1 column is needed' -rhs shortrhs.mtx
mtx widerhs.mtx '%%MatrixMarket matrix array real general' '3 2' 1 2 3 4 5 6
refused one.mtx 'widerhs.mtx, line 2: 3 rows and 2 columns where' -rhs widerhs.mtx
mtx nanrhs.mtx '%%MatrixMarket matrix array real general' '3 1' 1 nan 3
refused one.mtx "nanrhs.mtx, line 4: the value 'nan' is not a finite number" -rhs nanrhs.mtx
refused one.mtx 'nosuchrhs.mtx: cannot be opened' -rhs nosuchrhs.mtx

# PETSc binary, read by PETSc
run 1 -f one.mtx -mat_type aij -ksp_type gmres -ksp_view_mat binary:one.bin
check 'a PETSc binary file to spoil' '[ "$status" = 0 ] && [ -s one.bin ]'
head -c 40 one.bin >cut.bin
refused cut.bin 'Read past end of file'
head -c 3 one.bin >three.bin
refused three.bin 'three.bin, line 1: no Matrix Market file'

# No file at all
run 1 -mat_type aij
check 'without -f' 'is_refusal "No matrix: give one with -f <file>"'

finish
