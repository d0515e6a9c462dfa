#!/usr/bin/env python3
"""Two builds of petsctc-bench, or one with two sets of options, by turns in one run: times of GPUs drift from run to run by more than most changes bring.

  bench/compare.py [--passes N] [--json FILE] SIDE SIDE [OPTIONS of petsctc-bench for both]

A SIDE is 'NAME=PROGRAM [OPTIONS]'; a program finds libpetsctc.so in ../lib beside it, and its own options come last:
  bench/compare.py --passes 3 'before=old/bin/petsctc-bench' 'now=build-release/bin/petsctc-bench' -bench_matrices paper18 -bench_ksp
  bench/compare.py 'steps=bin/petsctc-bench' 'form=bin/petsctc-bench -bench_ksp_ksp_tccg_resident form' -bench_matrices tet:1000000:rcm -bench_ksp

For each matrix, variant and solver: the least microseconds of each side over the passes, of a product or an iteration, and the second side's time over the first's of the same pass: median, least and most. A mark where
all passes agree that the second is faster (+) or slower (-), by a percent at least: with three passes that chance agrees is one case in four. The side that begins changes with each pass. Then the geometric means of the medians. Exit status 1 if a case failed, or is of one side alone, or there is none.
"""
import argparse
import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

AGREED = 0.01  # less is no difference, whatever the passes agree on


class Side:
    def __init__(self, text):
        self.name, _, command = text.partition("=")
        self.command = shlex.split(command)
        if not self.name or not self.command:
            raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PROGRAM [OPTIONS]")
        program = shutil.which(self.command[0])
        if not program:
            raise argparse.ArgumentTypeError(f"'{self.command[0]}' is no program")
        self.command[0] = os.path.realpath(program)
        self.runs = []  # of each pass: time and iterations by case
        self.failed = []  # (matrix, case, error)

    def run(self, options, folder):
        """One pass. The program says itself what it does; a failed case is a row of its file, which it writes anew after each matrix"""
        path = os.path.join(folder, "results.json")
        library = os.path.join(os.path.dirname(os.path.dirname(self.command[0])), "lib")
        environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(filter(None, [library, os.environ.get("LD_LIBRARY_PATH", "")])))
        status = subprocess.run([self.command[0], *options, *self.command[1:], "-bench_json", path], env=environment, stdout=sys.stderr).returncode
        if not os.path.exists(path):
            raise SystemExit(f"compare.py: {shlex.join(self.command)} ended with status {status} and left no results")
        with open(path) as file:
            run, failed = cases(json.load(file))
        os.remove(path)
        self.runs.append(run)
        self.failed += failed
        if status and not (status == 1 and failed):  # 1: with failed cases, which it has told
            self.failed.append(("", "", f"ended with status {status}"))


def cases(results):
    """{(matrix, what): (microseconds, iterations or None)}, and the cases that failed. A second matrix of the same name is NAME#2"""
    times, failed, names = {}, [], {}
    for matrix in results["matrices"]:
        name = matrix["name"]
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}#{names[name]}"
        rows = [((p["variant"],), p.get("us"), p) for p in matrix.get("products", [])]
        rows += [((s["ksp_type"], s["mat_type"], s["pc_type"]), s.get("us_per_iteration"), s) for s in matrix.get("solves", [])]
        if "error" in matrix:
            failed.append((name, "", matrix["error"]))
        for what, time, row in rows:
            case = (name, " ".join(what))
            if "error" in row:
                failed.append(case + (row["error"],))
            elif time is not None:
                times[case] = (time, row.get("iterations"))
    return times, failed


def compare(first, second):
    """Rows of what both have, and the cases of one alone"""
    rows, alone = [], []
    for case in dict.fromkeys(case for side in (first, second) for run in side.runs for case in run):
        pairs = [(a[case], b[case]) for a, b in zip(first.runs, second.runs) if case in a and case in b]
        if len(pairs) < len(first.runs):
            alone.append(case)
            continue
        ratios = [b[0] / a[0] for a, b in pairs]
        iterations = sorted({run[1] for pair in pairs for run in pair if run[1] is not None})
        agreed = "+" if max(ratios) <= 1 - AGREED else "-" if min(ratios) >= 1 + AGREED else ""
        rows.append({
            "matrix": case[0],
            "case": case[1],
            "us": {side.name: min(run[case][0] for run in side.runs) for side in (first, second)},
            "iterations": iterations,
            "ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)},
            "agreed": agreed,
        })
    return rows, alone


def means(rows):
    """{case: geometric mean of the ratios of all matrices that have it}"""
    by = {}
    for row in rows:
        by.setdefault(row["case"], []).append(row["ratio"]["median"])
    return {case: {"ratio": math.exp(statistics.fmean(map(math.log, ratios))), "matrices": len(ratios)} for case, ratios in by.items()}


def others(row):
    """Solves that end after other numbers of iterations are other solves"""
    return "" if len(row["iterations"]) < 2 else f" iterations {'/'.join(map(str, row['iterations']))}"


def report(rows, sides, by_case):
    names = [side.name[:12] for side in sides]
    print(f"{'matrix':<28} {'case':<28} {names[0]:>12} {names[1]:>12} {'ratio':>7} {'least-most':>13}")
    for row in rows:
        us, ratio = [row["us"][side.name] for side in sides], row["ratio"]
        print(f"{row['matrix'][:28]:<28} {row['case'][:28]:<28} {us[0]:12.2f} {us[1]:12.2f} {ratio['median']:7.3f} {ratio['least']:6.3f}-{ratio['most']:.3f} {row['agreed']}{others(row)}".rstrip())
    print(f"\ngeometric means of {names[1]} over {names[0]}")
    for case, mean in by_case.items():
        print(f"{case:<57} {mean['ratio']:27.3f}   of {mean['matrices']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="compare.py [--passes N] [--json FILE] SIDE SIDE [OPTIONS of petsctc-bench]", add_help=False)
    parser.add_argument("--help", action="help")  # -help and the like are petsctc-bench's
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("side", type=Side, nargs=2)
    arguments, options = parser.parse_known_args()
    first, second = arguments.side
    if arguments.passes < 1:
        parser.error("--passes: at least 1")
    if first.name == second.name:
        parser.error(f"both sides are called '{first.name}'")
    try:
        file = open(arguments.json, "w") if arguments.json else None  # before hours of measurements
    except OSError as error:
        parser.error(f"--json: {error}")
    with tempfile.TemporaryDirectory() as folder:
        for k in range(arguments.passes):
            for side in (first, second) if k % 2 == 0 else (second, first):
                print(f"pass {k + 1} of {arguments.passes}: {side.name}", file=sys.stderr, flush=True)
                side.run(options, folder)
    rows, alone = compare(first, second)
    by_case = means(rows)
    report(rows, (first, second), by_case)
    failed = [(side.name, *case) for side in (first, second) for case in side.failed]
    for name, *case in dict.fromkeys(failed):
        print(f"FAILED {name}: {' '.join(filter(None, case[:2])) or 'the program'}: {case[2][:200]}")
    for case in alone:
        print(f"FAILED of one side alone, or not in every pass: {' '.join(case)}")
    if file:
        with file:
            json.dump({"sides": {side.name: side.command for side in (first, second)}, "options": options, "passes": arguments.passes, "rows": rows, "means": by_case, "failed": failed}, file, indent=1)
            file.write("\n")
    return 1 if failed or alone or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
