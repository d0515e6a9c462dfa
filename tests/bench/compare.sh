#!/usr/bin/env bash
# bench/compare.py: its numbers from programs whose times are given, then with the benchmark program itself; what it does where a side fails.
set -u
: "${PETSCTC_BUILD:?set it to the build folder}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
compare=$root/bench/compare.py
source "$root/tests/checks.bash"
bench=$PETSCTC_BUILD/bin/petsctc-bench
[ -x "$bench" ] || { echo "skipped: $bench is not built"; exit 77; }
work=$PETSCTC_BUILD/bench-compare-test
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export CUDA_VISIBLE_DEVICES='' OPENBLAS_NUM_THREADS=1
unset PETSC_OPTIONS PETSC_OPTIONS_YAML LD_LIBRARY_PATH

told() { head -30 "$work/output" && tail -20 "$work/progress"; }
run() { # ARGUMENTS...
  status=0
  python3 "$compare" "$@" >"$work/output" 2>"$work/progress" </dev/null || status=$?
}

# fake -times FILE: a program whose k-th run takes the times of the k-th line of FILE, of a product of A, of an iteration with A and of a product of B; "error" fails, "-" leaves the case out. A fourth word is the second
# matrix' name, a fifth the iterations, a sixth the signal that it dies of
mkdir -p bin
cat >bin/fake <<'END'
#!/usr/bin/env python3
import json, os, sys
times = sys.argv[sys.argv.index("-times") + 1]
calls = times + ".calls"
k = len(open(calls).read()) if os.path.exists(calls) else 0
open(calls, "a").write(".")
open("order", "a").write(times + " ")
open("options", "w").write(" ".join(sys.argv[1:]) + "\n" + os.environ["LD_LIBRARY_PATH"])
words = open(times).read().splitlines()[k].split()
def row(word, key, names):
    return [] if word == "-" else [dict(names, error="broken")] if word == "error" else [dict(names, **{key: float(word)})]
words += ["B", "100", "0"][len(words) - 3:]
solve = {"ksp_type": "tccg", "mat_type": "seqaijtc", "pc_type": "none", "iterations": int(words[4])}
matrices = [{"name": "A", "products": row(words[0], "us", {"variant": "auto"}), "solves": row(words[1], "us_per_iteration", solve)}, {"name": words[3], "products": row(words[2], "us", {"variant": "auto"}), "solves": []}]
with open(sys.argv[sys.argv.index("-bench_json") + 1], "w") as file:
    json.dump({"matrices": matrices}, file)
if int(words[5]):
    os.kill(os.getpid(), int(words[5]))
END
chmod +x bin/fake
sides() { # LINES LINES: of both
  rm -f order ./*.calls
  printf "$1" >first
  printf "$2" >second
}

sides '10 4 8\n20 4 8\n12 4 8\n' '8 5 8\n17 4.4 2\n12 6 4\n'
run --passes 3 --json result.json 'old=bin/fake -times first -own' 'new=bin/fake -times second' -bench_x 1
check 'times, ratios, means' '[ $status = 0 ] && python3 - <<"END"
import json, math
j = json.load(open("result.json"))
rows = {(r["matrix"], r["case"]): r for r in j["rows"]}
assert list(rows) == [("A", "auto"), ("A", "tccg seqaijtc none"), ("B", "auto")], list(rows)
a, solve, b = rows.values()
near = lambda x, y: abs(x - y) < 1e-12
assert a["us"] == {"old": 10, "new": 8} and near(a["ratio"]["median"], 0.85) and near(a["ratio"]["least"], 0.8) and near(a["ratio"]["most"], 1) and a["agreed"] == ""
assert solve["us"] == {"old": 4, "new": 4.4} and near(solve["ratio"]["median"], 1.25) and solve["agreed"] == "-"
assert b["us"] == {"old": 8, "new": 2} and near(b["ratio"]["median"], 0.5) and b["agreed"] == ""
assert near(j["means"]["auto"]["ratio"], math.sqrt(0.85 * 0.5)) and j["means"]["auto"]["matrices"] == 2 and j["failed"] == []
END'
check 'its table' 'grep -Eq "^A +auto +10.00 +8.00 +0.850 +0.800-1.000$" output && grep -Eq "^A +tccg seqaijtc none +4.00 +4.40 +1.250 .* -$" output'
check 'sides take turns to begin' '[ "$(cat order)" = "first second second first first second " ]'
check "a side's own options come last, its library first" 'grep -q "^-bench_x 1 -times second -bench_json" options && [ "$(tail -1 options)" = "$(realpath "$work")/lib" ]'

sides '10 4 8\n10 4 8\n' '10 error 8\n10 4 -\n'
run --passes 2 'old=bin/fake -times first' 'new=bin/fake -times second'
check 'what failed, or is missing, is told' '[ $status = 1 ] && grep -q "^FAILED new: A tccg seqaijtc none: broken" output && grep -q "^FAILED of one side alone, or not in every pass: B auto" output && grep -Eq "^A +auto .* 1.000" output'
sides '10 4 8 B 100 11\n' '10 4 8 B 100 11\n'
run --passes 1 'old=bin/fake -times first' 'new=bin/fake -times second'
check 'a program that dies after its results has failed' '[ $status = 1 ] && grep -q "^FAILED old: the program: ended with status -11" output && grep -q "^FAILED new: the program" output'
sides '10 4 8 A 100\n' '10 4 16 A 37\n'
run --passes 1 'old=bin/fake -times first' 'new=bin/fake -times second'
check 'matrices of one name are two, other iterations are told' '[ $status = 0 ] && grep -Eq "^A#2 +auto +8.00 +16.00 +2.000" output && grep -Eq "^A +tccg .* iterations 37/100$" output && grep -Eq "^auto .* of 2$" output'
run 'old=bin/fake -times nosuch' 'new=bin/fake -times second'
check 'a program without results is an error' '[ $status = 1 ] && grep -q "left no results" progress'
run 'old=bin/fake' 'old=bin/fake'
check 'names are two' '[ $status = 2 ] && grep -q "both sides are called .old." progress'
run 'old=bin/nosuch' 'new=bin/fake'
check 'a program that is none' '[ $status = 2 ] && grep -q "bin/nosuch. is no program" progress'
run --json /nosuch/folder/file.json 'old=bin/fake' 'new=bin/fake'
check 'a file that cannot be written is found first' '[ $status = 2 ] && ! grep -q "^pass" progress'
run bin/fake bin/fake
check 'a side has a name' '[ $status = 2 ] && grep -q "is not NAME=PROGRAM" progress'

run --passes 1 --json real.json "tile=$bench -bench_products tensor" "row=$bench -bench_products aij" -bench_matrices diag:500 -bench_limit 0.004 -bench_copy_bytes 1e6 -options_left 0
check 'other cases on both sides have no ratio' '[ $status = 1 ] && [ "$(grep -c "^FAILED of one side alone" output)" = 2 ]'
run --passes 1 --json real.json "one=$bench" "other=$bench -bench_aijtc_mat_aijtc_params form=row" -bench_matrices diag:500 -bench_products auto,aij -bench_ksp -bench_ksp_iterations 3 -bench_limit 0.004 -bench_copy_bytes 1e6 -options_left 0
check 'the program itself' '[ $status = 0 ] && python3 -c "
import json
rows = json.load(open(\"real.json\"))[\"rows\"]
assert [r[\"case\"] for r in rows] == [\"auto\", \"aij\", \"cg seqaij none\", \"tccg seqaijtc none\"] and all(r[\"us\"][s] > 0 for r in rows for s in (\"one\", \"other\")), rows
"'

finish
