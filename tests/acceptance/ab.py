#!/usr/bin/env python3
"""Runs the same test programs twice, on stock PETSc and with the plugin under them, and compares what they print.

PETSc's own reference outputs mask every floating-point number, and many of them are stale, so they cannot say whether the plugin changes a result.
Stock PETSc on the same machine can. The cases are run scripts that PETSc's harness generated (--scripts) or command lines (--commands); each program
started by a case is one run, and the runs of both sides are compared in order:

  - text must be equal, after the plugin's type names are replaced by PETSc's; whole numbers (iteration counts, sizes) and converged reasons are text;
  - floating-point numbers must agree within RTOL relatively, or within one in the last of four and more digits printed, or within ATOL of the largest number printed in the same place of such lines: a residual
    at the rounding error of its solve carries no digits; or within --floor;
  - where whole outputs differ (timings), the test's own output filter is applied to both and decides;
  - where they still differ, stock PETSc runs again, up to RETRIES times: a parallel one can differ from itself from run to run, by the order of messages.
    Only if it does, the plugin runs again too, and an output of the plugin equal to any of stock's is accepted.

A case that did not run, or that fails on stock PETSc, proves nothing and counts as a failure unless --exceptions names it. --require names
counters of the line that -petsctc_summary prints: a case without such a use of the plugin fails too ("group:" counters: at least one case must show it).

Where time is short, --part K/N takes every Nth case, and --limit starts no program after so many seconds: what was not started is told, and is a failure.

--twin gives options of another stock side: what another type that PETSc itself puts in place of AIJ makes of a case. A case that differs from stock, but not from
a twin, in its output or in the error that it ends with, is "as a twin": it asks for the exact name of a type. --vary gives options that change the rounding of
stock PETSc. A case in which numbers alone differ, everywhere by less than VARIES times what they differ between stock, its twins and those, is "within rounding".
Both are no failures.

For whole folders of tests that nobody chose: with --tally a case that did not run, or that fails on stock PETSc, is counted as such and is no failure; one in
which every counter of --used is zero is "not used". --table writes what is not identical, and the figures of each folder.
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time

RTOL, ATOL = 1e-5, 1e-11
DIFFERENT = ("different", "numbers differ")
RETRIES = 3
VARIES = 10

NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")
SUMMARY = re.compile(r"^PETSc-TC: (.*)$")
# What only one side can print: option warnings that quote the plugin's options, and what the plugin's types add to -mat_view and -ksp_view.
ONE_SIDED = re.compile(r"Option left|-dll_append|-petsctc_summary|WARNING! There are|option you set|spelling|There (?:is|are) .* unused database option|^\s*fused solves \d+, PETSc's path \d+|^\s*(no )?iterations begun ahead|^\s*(not )?resident\b"
                       r"|^\s*the preconditioner is (part of the steps|one number)|^\s*dot products with a product of the matrix|^\s*vectors that are multiplied are made in that pass|^\s*recurrences with a reduction less|^\s*the solution follows \d+ iterations"
                       r"|^\s*matrix solves by blocks|^\s*sliced layout on the |^\s*not built yet: no product|^\s*rows: long=\d+, medium=|^\s*form=\w+: a row of at most|^\s*rows share their offsets: |^\s*slices: pieces="
                       r"|^\s*gathered: blocks of |^\s*compress=\w+: slices with offsets|^\s*bytes=\d+: pattern=|^\s*products by \w+: the layout counts")


class Case:
    """One entry of the list: where it runs and the command of each side."""

    def __init__(self, name, side_commands, filters=""):
        self.name, self.commands, self.filter = name, side_commands, filters


def read_list(path):
    with open(path) as f:
        lines = (line.split("#")[0].strip() for line in f)
        return [line for line in lines if line]


def replace_names(text, pairs):
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def harness_case(args, script):
    """A run script of PETSc's harness, moved: its paths are those of the machine that generated it."""
    with open(os.path.join(args.tree, script + ".sh")) as f:
        text = f.read()
    petsc = re.search(r"^wPETSC_DIR='(.*)'$", text, re.M).group(1)
    tree = re.search(r"^testlogtapfile=(.*)/test_\$\{petsc_arch\}", text, re.M).group(1)
    program = re.search(r"^executable='\.\./(.*)'$", text, re.M).group(1)
    filters = re.search(r"^filter='(.*)'$", text, re.M).group(1)
    runfiles = re.search(r"^runfiles='(.*)'$", text, re.M).group(1).split()
    folder = os.path.dirname(script)
    commands = {}
    for side in args.sides:
        root = os.path.join(args.work, side)
        own = text.replace(f"executable='../{program}'", f"executable='{os.path.join(args.tree, folder, program)}'")
        own = own.replace(f'petsc_testend "{tree}"', f'petsc_testend "{root}"').replace(f"testlogtapfile={tree}/", f"testlogtapfile={root}/")
        own = own.replace(f"testlogerrfile={tree}/", f"testlogerrfile={root}/").replace(petsc, args.petsc)
        if side == "plugin":
            own = replace_names(own, args.replace)
        path = os.path.join(root, script + ".sh")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(own)
        for name in runfiles: # which the script copies from where it is
            source, target = os.path.join(args.tree, folder, name), os.path.join(root, folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(source):
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif os.path.exists(source):
                shutil.copy(source, target)
        commands[side] = ["bash", path, "-t", str(args.timeout), "-o", "err_only", "-E", args.sides[side]]
    return Case(script, commands, filters)


def command_case(args, line):
    """name | processes | program in the tree | options | stock options | plugin options"""
    name, np, program, options, stock, plugin = (field.strip() for field in line.split("|"))
    runner = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpiexec_record"), "-n", np, os.path.join(args.tree, program)]
    return Case(name, {side: runner + shlex.split(options) + shlex.split(plugin if side == "plugin" else stock) + shlex.split(args.sides[side]) for side in args.sides})


def run_folder(args, case, side):
    return os.path.join(args.work, side, case.name)


def time_over(args):
    return args.limit and time.time() - args.start > args.limit


def run(args, case, side):
    folder = run_folder(args, case, side)
    os.makedirs(folder, exist_ok=True)
    if time_over(args):
        with open(os.path.join(folder, "harness.log"), "w") as log:
            log.write(f"not started within {args.limit} s\n")
        return
    env = dict(os.environ, AB_MPIEXEC=args.mpiexec, PETSCMPIEXEC=os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpiexec_record"), PETSCDIFF="true")
    env.update(OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_rmaps_base_oversubscribe="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe", MPIEXEC_TIMEOUT=str(args.timeout))
    env.update(pair.split("=", 1) for pair in (args.plugin_env if side == "plugin" else args.stock_env))
    if args.commands:
        env["PETSC_OPTIONS"] = env.get("PETSC_OPTIONS", "") + " -malloc_dump -checkfunctionlist -error_output_stdout"
    with open(os.path.join(folder, "harness.log"), "w") as log:
        p = subprocess.Popen(case.commands[side], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        try:
            p.wait(timeout=10 * args.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()


def outputs(folder):
    """The runs of one case: (exit status, output) each."""
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.startswith("run-") and name.endswith(".status"):
            with open(os.path.join(folder, name)) as f, open(os.path.join(folder, name[:-7] + ".out"), errors="replace") as g:
                found.append((int(f.read()), g.read()))
    return found


def one_case(args, case):
    """Both sides of a case; what fails on stock PETSc is not tried with the plugin."""
    run(args, case, "stock")
    if not stock_failure(outputs(run_folder(args, case, "stock"))):
        run(args, case, "plugin")
    verdict, remark, counters = judge(args, case, run_folder(args, case, "stock"), run_folder(args, case, "plugin"))
    if verdict in DIFFERENT and args.stated.get(case.name, ("", ""))[0] != verdict:
        twin = next((k for k in range(len(args.twin)) if as_twin(args, case, f"twin{k}")), None)
        if twin is not None:
            verdict, remark = "as a twin", f"{remark}, and with {args.twin[twin]}"
        else:
            verdict, remark, counters = judge_with_retries(args, case)
        if verdict == "numbers differ" and args.vary:
            for side in args.sides:
                if side.startswith("vary"):
                    run(args, case, side)
            folders = {side: run_folder(args, case, side) for side in args.sides}
            others = [folder for side, folder in folders.items() if side not in ("stock", "plugin")]
            if judge(args, case, folders["stock"], folders["plugin"], others)[0] == "identical":
                verdict, remark = "within rounding", f"{remark}, less than {VARIES} times as much as stock with {' or '.join(args.twin + args.vary)}"
    if args.used and verdict in ("identical", "within rounding") and not any(counters.get(c) for c in args.used):
        verdict, remark = "not used", "no " + ", ".join(args.used)
    if args.clean and verdict in ("identical", "not used", "as a twin", "within rounding"):
        for side in args.sides:
            shutil.rmtree(run_folder(args, case, side), ignore_errors=True)
    return verdict, remark, counters


def harness_remark(args, case, side):
    """Why a harness script ran nothing."""
    try:
        with open(os.path.join(run_folder(args, case, side), "harness.log"), errors="replace") as f:
            text = f.read()
    except OSError:
        return "no log"
    found = re.search(r"SKIP (.*)", text)
    return found.group(1).strip() if found else (text.strip().splitlines() or ["no output"])[-1][:200]


def type_names_equal(text):
    text = re.sub(r"\b(seq|mpi)?aij(?:tc|cusparse|perm|crl)\b", lambda m: (m.group(1) or "") + "aij", text)
    return re.sub(r"\btc(cg|bcgs)\b", r"\1", text)


def split_output(text, counters):
    """The lines to compare; the plugin's counters are added to counters."""
    lines = []
    for line in type_names_equal(text).splitlines():
        found = SUMMARY.match(line)
        if found:
            words = found.group(1).split()
            for key, value in zip(words[::2], words[1::2]):
                if value.isdigit():
                    counters[key] = counters.get(key, 0) + int(value)
        elif not ONE_SIDED.search(line):
            lines.append(line.rstrip())
    return lines


def last_digit(number):
    """What one more in the last digit printed would add."""
    digits, _, exponent = number.lower().partition("e")
    return 1.001 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def first_difference(a, b, floor=1e-14, variants=()):
    """None, or the first pair of lines that differ. Where variants, as long as a, differ from it in numbers, b may by VARIES times as much."""
    largest = {}
    for line in a:
        shape = NUMBER.sub("#", re.sub(r"\d+", "0", NUMBER.sub("#", line)))
        values = [abs(float(v)) for v in NUMBER.findall(line)]
        largest[shape] = [max(p) for p in zip(values, largest.get(shape, values))]
    variants = [v for v in variants if len(v) == len(a)]
    for n, (x, y) in enumerate(zip(a, b)):
        if x == y:
            continue
        if NUMBER.sub("#", x) != NUMBER.sub("#", y):
            return x, y
        others = [NUMBER.findall(v[n]) for v in variants if NUMBER.sub("#", v[n]) == NUMBER.sub("#", x)]
        scales = largest[NUMBER.sub("#", re.sub(r"\d+", "0", NUMBER.sub("#", x)))]
        for k, (p, q, scale) in enumerate(zip(NUMBER.findall(x), NUMBER.findall(y), scales)):
            last = min(last_digit(p), last_digit(q))
            p, q = float(p), float(q)
            varies = VARIES * max((abs(float(v[k]) - p) for v in others), default=0)
            if not abs(p - q) <= max(RTOL * max(abs(p), abs(q)), last if last <= 1e-3 * abs(p) else 0) + max(ATOL * scale, floor, varies):
                return x, y
    if len(a) != len(b):
        longer = a if len(a) > len(b) else b
        return ("(no more lines)", longer[len(a)]) if longer is b else (longer[len(b)], "(no more lines)")
    return None


def through_filter(lines, command):
    p = subprocess.run(["bash", "-c", "cat | " + command], input="\n".join(lines) + "\n", capture_output=True, text=True, errors="replace")
    return p.stdout.splitlines()


def first_error(text):
    """PETSc tells the kind of an error, then what is wrong."""
    # Processes that write at the same time leave several prefixes in one line: what follows the last is told
    told = [line.rpartition("PETSC ERROR: ")[2] for line in text.splitlines() if "PETSC ERROR: " in line]
    lines = [line for line in told if line and not re.match(r"-----|WARNING|  Option|See |#", line)][:2]
    return ": ".join(line[:150] for line in lines if not line.startswith("PETSc Release"))


def stock_failure(runs):
    for i, (status, text) in enumerate(runs):
        if status or "PETSC ERROR" in text:
            return f"run {i}: exit {status} {first_error(text)}"
    return None


def judge(args, case, stock_folder, plugin_folder, variant_folders=()):
    """(verdict, remark, counters): verdict is identical, different, numbers differ (and nothing else), stock fails, or did not run."""
    counters = {}
    stock, plugin = outputs(stock_folder), outputs(plugin_folder)
    failure = stock_failure(stock)
    if failure:
        return "stock fails", failure, counters
    if not stock or not plugin:
        return "did not run", harness_remark(args, case, "plugin" if stock else "stock"), counters
    if len(stock) != len(plugin):
        return "different", f"{len(stock)} runs on stock, {len(plugin)} with the plugin", counters
    filtered, numbers = False, None
    variants = [v for v in map(outputs, variant_folders) if len(v) == len(stock)]
    for i, ((_, text), (status, own)) in enumerate(zip(stock, plugin)):
        a, b = split_output(text, {}), split_output(own, counters)
        if status:
            return "different", f"run {i}: exit {status} with the plugin {first_error(own)}", counters
        others = [split_output(v[i][1], {}) for v in variants]
        difference = first_difference(a, b, args.floor, others)
        if difference and case.filter:
            a, b, *others = (through_filter(lines, case.filter) for lines in (a, b, *others))
            difference, filtered = first_difference(a, b, args.floor, others), True
        if difference:
            remark = f"run {i}:\n      stock  {difference[0][:160]}\n      plugin {difference[1][:160]}"
            if [NUMBER.sub("#", line) for line in a] != [NUMBER.sub("#", line) for line in b]:
                return "different", remark, counters
            numbers = numbers or remark
    if numbers:
        return "numbers differ", numbers, counters
    return "identical", f"{len(stock)} run{'s' * (len(stock) > 1)}" + (", through the test's filter" if filtered else ""), counters


def as_twin(args, case, side):
    """Whether the plugin's side prints what that side does, or ends with the same error."""
    run(args, case, side)
    twin, plugin = (outputs(run_folder(args, case, s)) for s in (side, "plugin"))
    if not twin or len(twin) != len(plugin):
        return False
    for (status, text), (own_status, own) in zip(twin, plugin):
        if status and own_status:
            if type_names_equal(first_error(text)) != type_names_equal(first_error(own)):
                return False
        elif status or own_status or first_difference(*([line for line in split_output(t, {}) if "I-node" not in line] for t in (text, own)), args.floor):
            return False # PETSc's types have I-nodes of their own
    return True


def run_again(args, case, side, folders, attempt):
    """folders, the last of which is renamed, and the new one added"""
    folder = folders[-1]
    folders[-1] = f"{folder}.{attempt}"
    os.rename(folder, folders[-1])
    run(args, case, side)
    folders.append(folder)
    return folders


def judge_with_retries(args, case):
    folders = {side: [run_folder(args, case, side)] for side in ("stock", "plugin")}
    result = judge(args, case, folders["stock"][0], folders["plugin"][0])
    for attempt in range(RETRIES):
        if result[0] not in DIFFERENT or time_over(args):
            break
        if attempt == 0:
            print(f"  again: {case.name}: {result[1]}", flush=True)
        stock = run_again(args, case, "stock", folders["stock"], attempt)
        if all(judge(args, case, stock[0], other)[0] == "identical" for other in stock[1:]):
            continue
        run_again(args, case, "plugin", folders["plugin"], attempt)
        for pair in ((a, b) for a in stock for b in folders["plugin"]):
            verdict, remark, counters = judge(args, case, *pair)
            if verdict == "identical":
                return verdict, f"{remark}, stock PETSc varies from run to run", counters
    return result


def read_exceptions(path):
    exceptions = {}
    for line in read_list(path) if path else []:
        name, verdict, reason = line.split(None, 2)
        exceptions[name] = (verdict.replace("-", " "), reason)
    return exceptions


def write_table(path, table):
    """The figures of each folder, then a line for each case that is not identical."""
    kinds = ["identical", "within rounding", "as a twin", *DIFFERENT, "not used", "did not run", "stock fails"]
    with open(path, "w") as f:
        f.write("\t".join(["folder"] + kinds) + "\n")
        for folder in sorted({os.path.dirname(name) for name, _, _ in table}):
            f.write("\t".join([folder] + [str(sum(os.path.dirname(n) == folder and v == kind for n, v, _ in table)) for kind in kinds]) + "\n")
        for name, verdict, remark in table:
            if verdict != "identical":
                f.write(f"{name}\t{verdict}\t{' | '.join(remark.split(chr(10)))}\n")


def report(args, cases, results, seconds):
    every = [r for r in args.require if not r.startswith("group:")]
    once = [r[6:] for r in args.require if r.startswith("group:")]
    total, shown, failed, table = {}, {}, [], []
    archive = tarfile.open(args.keep_failures, "w:gz") if args.keep_failures else None
    for case, (verdict, remark, counters) in zip(cases, results):
        missing = [c for c in every if not counters.get(c)] if verdict == "identical" else []
        if missing:
            verdict, remark = "unused", f"the plugin's count of {', '.join(missing)} is zero or was not printed"
        table.append((case.name, verdict, remark))
        for key, value in counters.items():
            total[key] = total.get(key, 0) + value
        allowed, reason = args.stated.get(case.name, ("", ""))
        good = verdict in ("identical", "as a twin", "within rounding", "not used", allowed) or (args.tally and verdict in ("stock fails", "did not run") and not remark.startswith("not started"))
        label = kind = verdict
        if verdict != "identical":
            label = f"{verdict} ({'stated: ' + reason if verdict == allowed else 'FAILURE'})" if not good or verdict == allowed else verdict
            kind = f"{verdict} as stated" if verdict == allowed else label
        shown[kind] = shown.get(kind, 0) + 1
        use = " ".join(f"{k} {v}" for k, v in counters.items() if v)
        line = f"{label}: {case.name}: {remark}{'; ' + use if use else ''}"
        if good and verdict == "identical":
            print("  " + line)
        elif good:
            failed.append((False, line))
        else:
            failed.append((True, line))
            for side in ("stock", "plugin") if archive else ():
                if os.path.isdir(run_folder(args, case, side)):
                    archive.add(run_folder(args, case, side), os.path.join(side, case.name))
    if archive:
        archive.close()
    if args.table:
        write_table(args.table, table)
    for _, line in failed:
        print("  " + line)
    bad = sum(f for f, _ in failed)
    for counter in once:
        if not total.get(counter):
            bad += 1
            print(f"  FAILURE: no case of this list shows any '{counter}' of the plugin")
    if total:
        print("  plugin's use in all cases: " + " ".join(f"{k} {v}" for k, v in total.items()))
    print(f"A/B {args.title}: {len(cases)} cases: " + ", ".join(f"{n} {k}" for k, n in sorted(shown.items(), key=lambda s: -s[1])) + f"; {bad} failures; {seconds:.0f} s")
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--title", required=True)
    p.add_argument("--tree", required=True, help="folder with the programs (and the generated run scripts)")
    p.add_argument("--work", required=True, help="folder for the outputs of both sides; emptied first")
    p.add_argument("--petsc", default=os.environ.get("PETSC_DIR", ""), help="PETSc's folder on this machine")
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--scripts", help="list of run scripts below the tree, without .sh")
    what.add_argument("--commands", help="list of command lines: name | np | program | options | stock options | plugin options")
    p.add_argument("--stock", default="", help="options of the stock side")
    p.add_argument("--plugin", default="", help="options of the plugin's side")
    p.add_argument("--twin", action="append", default=[], metavar="OPTIONS", help="options of a further stock side, repeatable: what PETSc's own types do that stand for AIJ")
    p.add_argument("--vary", action="append", default=[], metavar="OPTIONS", help="options that change the rounding of stock alone, repeatable")
    p.add_argument("--stock-env", nargs="*", default=[], metavar="NAME=VALUE")
    p.add_argument("--plugin-env", nargs="*", default=[], metavar="NAME=VALUE")
    p.add_argument("--replace", nargs="*", default=[], metavar="OLD=NEW", help="names replaced in the plugin's copy of the scripts")
    p.add_argument("--exceptions", help="lines: case verdict reason")
    p.add_argument("--require", nargs="*", default=[], help="counters of -petsctc_summary that every case (group:NAME: the group) must show")
    p.add_argument("--used", nargs="*", default=[], help="counters of which a case must show one, or it is 'not used'")
    p.add_argument("--tally", action="store_true", help="cases that did not run or fail on stock are no failures")
    p.add_argument("--table", metavar="FILE", help="the figures of each folder and a line for each case that is not identical")
    p.add_argument("--clean", action="store_true", help="outputs of cases that are identical are removed")
    p.add_argument("--floor", type=float, default=1e-14, help="differences of at most so much are rounding")
    p.add_argument("--keep-failures", metavar="FILE.tar.gz", help="archive of the outputs of cases that fail")
    p.add_argument("--mpiexec", default=os.environ.get("MPIEXEC", "mpiexec"))
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--timeout", type=int, default=120, help="seconds for one program")
    p.add_argument("--limit", type=int, default=0, help="seconds after which no program is started; 0: none")
    p.add_argument("--part", default="1/1", metavar="K/N", help="of the list, cases K, K + N, ..")
    args = p.parse_args()
    args.replace = [pair.split("=", 1) for pair in args.replace]
    args.tree, args.work, args.petsc = (os.path.abspath(d) for d in (args.tree, args.work, args.petsc))

    args.start = time.time()
    first, step = (int(n) for n in args.part.split("/"))
    if not 1 <= first <= step:
        sys.exit(f"A/B {args.title}: --part {args.part} is no part")
    args.sides = {"stock": args.stock, "plugin": args.plugin, **{f"twin{k}": f"{args.stock} {twin}" for k, twin in enumerate(args.twin)},
                  **{f"vary{k}": f"{args.stock} {vary}" for k, vary in enumerate(args.vary)}}
    args.stated = read_exceptions(args.exceptions)
    shutil.rmtree(args.work, ignore_errors=True)
    cases = [harness_case(args, s) for s in read_list(args.scripts)] if args.scripts else [command_case(args, s) for s in read_list(args.commands)]
    names = [c.name for c in cases]
    if not cases or len(set(names)) != len(names):
        sys.exit(f"A/B {args.title}: the list is empty or names a case twice")
    cases = cases[first - 1 :: step]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda case: one_case(args, case), cases))
    sys.exit(1 if report(args, cases, results, time.time() - args.start) else 0)


if __name__ == "__main__":
    main()
