#!/usr/bin/env python3
"""Seconds that each file of the library took to compile, from the log of Ninja; a file that needs more than twice the median of its kind fails.

  tests/build/times.py BUILD [--table]      --table: as rows of a table for docs/developer.md

A cache of compiled files hides the times: exit status 77 where there is one, or where the build is not by Ninja."""
import argparse
import os
import re
import statistics
import sys

LEAST = 20.0  # seconds: below that nobody waits for a file
KINDS = [  # the first that matches
    ("products that unroll the decoder", r"/mult_(rows|mixed|tiles|sweep|waxpy)\.cu"),
    ("products", r"/(mult|spmm)\w*\.cu"),
    ("builds", r"src/mat/.*\.cu|src/parts/.*\.cu"),
    ("solvers that read a layout", r"streamed\w*\.cu"),
    ("solvers", r"src/(ksp|vec)/.*\.cu"),
    ("host", r"\.cxx"),
]


def seconds(build):
    """{source: seconds}, of the last time that each was compiled"""
    found = {}
    with open(os.path.join(build, ".ninja_log")) as log:
        for line in log:
            parts = line.rstrip("\n").split("\t")
            match = len(parts) > 3 and re.search(r"petsctc(?:_kernels)?\.dir/(src/.*)\.o$", parts[3])
            if match:
                found[match.group(1)] = (int(parts[1]) - int(parts[0])) / 1000.0
    return found


def launcher(build):
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        return any(re.match(r"CMAKE_(C|CXX|CUDA)_COMPILER_LAUNCHER:\w+=.+", line) for line in cache)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.build, ".ninja_log")) or launcher(options.build):
        print("no log of Ninja, or a cache of compiled files: nothing to be known")
        return 77
    times, bad, taken = seconds(options.build), 0, set()
    if not times:
        print("the log knows no file of the library")
        return 1
    for kind, pattern in KINDS:
        files = {f: t for f, t in times.items() if f not in taken and re.search(pattern, f)}
        taken |= set(files)
        if not files:
            continue
        median = statistics.median(files.values())
        limit = max(2.0 * median, LEAST)
        for f, t in sorted(files.items(), key=lambda item: -item[1]):
            late = t > limit
            bad += late
            if options.table:
                if t >= LEAST / 2:
                    print(f"| `{os.path.basename(f)}` | {kind} | {t:.0f} |")
            elif late or t >= LEAST:
                print(f"{'TOO LONG' if late else 'ok':8} {t:7.1f} s  {f} ({kind}: median {median:.1f})")
    print(f"{'' if options.table else 'all files: '}{sum(times.values()):.0f} s of {len(times)} files")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
