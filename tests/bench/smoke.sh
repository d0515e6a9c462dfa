#!/usr/bin/env bash
# The benchmark program on the host: every variant of small matrices of every generator is verified, its JSON file holds what docs/benchmark.md says, a failed case is a row.
set -u
: "${PETSCTC_BUILD:?set it to the build folder}"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data" && pwd)
source "$data/../checks.bash"
bench=$PETSCTC_BUILD/bin/petsctc-bench
[ -x "$bench" ] || { echo "skipped: $bench is not built"; exit 77; }
work=$PETSCTC_BUILD/bench-test
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export CUDA_VISIBLE_DEVICES='' OPENBLAS_NUM_THREADS=1
unset PETSC_OPTIONS PETSC_OPTIONS_YAML

told() { grep -a 'FAILED\|ERROR' "$work/output" | head -20; }
run() { # OPTIONS...
  status=0
  timeout 300 "$bench" -bench_limit 0.004 -bench_copy_bytes 1e6 -options_left 0 "$@" >"$work/output" 2>&1 </dev/null || status=$?
}
json() { python3 - "$@"; } # a program of Python, with the file's name as its argument

run -bench_matrices test -bench_products all -bench_ksp -bench_ksp_pcs none,jacobi -bench_ksp_iterations 3 -bench_json own.json
check 'all variants of all generators' '[ $status = 0 ] && grep -q "^18 matrices, 0 failures" output && grep -q "No GPU" output'
check 'its file' 'json own.json <<"END"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["machine"]["gpu"] is None and j["machine"]["copy_gigabytes_per_second"] > 0 and j["petsc"].startswith("PETSc") and j["failures"] == 0
variants = [f + c for f in ("auto", "tensor", "core", "row") for c in ("", "-pattern", "-value", "-off")]
sizes = {"7pt:20": (8000, 7 * 8000 - 6 * 400), "5pt:30x31": (930, 5 * 930 - 2 * 61), "27pt:9": (729, 25**3), "elas:6": (648, 9 * 16**3), "diag:500": (500, 500), "sw2:1280": (1280, 5120), "tet:2000:rcm": (2197, 15 * 2197),
         "longrows:20x1500": (20, 30000), "4perrow:700": (700, 2800), "debruijn:9": (512, 4 * 512 - 6), "roadnet:3000:6452": (3000, 6452), "markov:30": (496, 496 + 3 * 465), "mesh:800:20000:blocks:1000": (1000, 20000)}
assert len(j["matrices"]) == 18
worst = 0
for m in j["matrices"]:
    if m["name"] in sizes:
        assert (m["rows"], m["nonzeros"]) == sizes[m["name"]], (m["name"], m["rows"], m["nonzeros"])
    assert [p["variant"] for p in m["products"]] == variants + ["aij"], m["name"]
    for p in m["products"]:
        assert p["verified"] is True and p["us"] > 0 and p["call"]["least_us"] <= p["call"]["median_us"] <= p["call"]["most_us"], (m["name"], p)
        assert p["device"] is None and p["bytes"] == p["matrix_bytes"] + 8 * (m["rows"] + m["columns"])
        worst = max(worst, p["largest_error_per_bound"])
        if p["variant"] == "aij":
            assert p["matrix_bytes"] == 12 * m["nonzeros"] + 4 * (m["rows"] + 1) and p["build_us"] is None and p["speedup_over_baseline"] == 1
        else:
            assert p["matrix_bytes"] > 0 and p["build_us"] >= 0 and p["refresh_us"] >= 0 and p["layout"]["cuda"] is False
    by = {p["variant"]: p["matrix_bytes"] for p in m["products"]}
    assert by["auto"] <= by["auto-off"] and by["auto-off"] >= 12 * m["nonzeros"], (m["name"], by)
    kinds = {p["variant"]: p["layout"] for p in m["products"] if "layout" in p}
    assert kinds["row"]["slices_tile"] == 0 and kinds["tensor"]["rows_short"] <= m["rows"], m["name"]
    solves = 0 if m["rows"] != m["columns"] else 4
    assert len(m["solves"]) == solves and all("error" not in s for s in m["solves"]), m["name"]
# Sums in other orders differ in the last bits: the bounds are near enough to see it
assert 1e-3 < worst <= 1, worst
END'

run -bench_matrices "5pt:20x20,cage10.mtx.gz,$data/cage10.mtx.gz,apache1" -bench_folder "$data" -bench_values random -bench_products off,pattern,value,aij -bench_setup 0 -bench_json random.json
check 'files, random values' '[ $status = 0 ] && json random.json <<"END"
import json, sys
j = json.load(open(sys.argv[1]))
assert [(m["name"], m["origin"], m["rows"], m["nonzeros"]) for m in j["matrices"]] == [("5pt:20x20", "5pt:20x20", 400, 1920), ("cage10.mtx.gz", "cage10.mtx.gz", 11397, 150645), ("cage10.mtx.gz", "cage10.mtx.gz", 11397, 150645),
    ("apache1", "apache1.mtx.gz", 80800, 542184)]
for m in j["matrices"]:
    assert [p["variant"] for p in m["products"]] == ["auto-off", "auto-pattern", "auto-value", "aij"] and all(p["verified"] and p["build_us"] is None for p in m["products"])
    by = {p["variant"]: p["matrix_bytes"] for p in m["products"]}
    assert by["auto-pattern"] >= 8 * m["nonzeros"], by # values that do not compress
END'

# The same matrix, numbered at random: products are verified, and no two numberings read alike
run -bench_matrices 7pt:20,cage10.mtx.gz,kkt:300:200:900:17:1 -bench_folder "$data" -bench_shuffle 3 -bench_products auto,aij -bench_json shuffled.json
check 'numbered at random' '[ $status = 0 ] && json shuffled.json <<"END"
import json, sys
m = json.load(open(sys.argv[1]))["matrices"]
assert [x["nonzeros"] for x in m[:2]] == [53600, 150645] and m[0]["symmetric"]
assert all(p["verified"] for x in m for p in x["products"])
assert m[0]["products"][0]["matrix_bytes"] > 2 * m[0]["nonzeros"], m[0]["products"][0] # a grid no more
END'

run -bench_matrices nosuch:3,7pt:x,sw2:100,diag:40,nosuch.mtx -bench_products nosuch,aij,auto -bench_json errors.json
check 'failed cases are rows' '[ $status = 1 ] && grep -q "^5 matrices, 5 failures" output && json errors.json <<"END"
import json, sys
m = json.load(open(sys.argv[1]))["matrices"]
assert ["error" in x for x in m] == [True, True, True, False, True]
assert "no generator" in m[0]["error"] and "is no size" in m[1]["error"] and "multiple of 640" in m[2]["error"]
assert ["error" in p for p in m[3]["products"]] == [True, False, False] and "No variant" in m[3]["products"][0]["error"]
END'
run -bench_matrices diag:40 -bench_values wrong
check 'a wrong option is an error' '[ $status != 0 ] && grep -q "own or random" output'
run -bench_matrices diag:40 -bench_products aij -bench_json /nosuch/folder/file.json
check 'a file that cannot be written is an error' '[ $status != 0 ]'

finish
