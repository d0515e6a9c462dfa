#!/usr/bin/env python3
"""Translates the library's CUDA sources for a C++ compiler (emulation.h).

  translate.py SOURCE DESTINATION FILE...     the tops of two trees, and files of the first; x.cu becomes x.cu.cxx, others are copied. Files that have not changed keep their time

What the preprocessor cannot do: launches, PTX, dynamic shared memory, kernels that take a structure by value in a cooperative launch, and headers that expect CUDA's compiler.
PTX that is not known here is an error."""
import pathlib
import re
import sys

# A part of the PTX, and the statement for it. Names are those of the functions that the PTX is in
PTX = (
    ("griddepcontrol", "(void)0"),
    ("fence.proxy.async", "(void)0"),
    ("cp.async.bulk", "emulation::copyBulk(to, from, bytes)"),
    ("mma.sync.aligned.m8n8k4", "emulation::multiplyTile(d0, d1, a, b, c0, c1)"),
    ("st.relaxed.gpu.global.b128", "emulation::store16(to, low, high)"),
    ("ld.relaxed.gpu.global.b128", "emulation::load16(from, low, high)"),
    ("st.relaxed.sys.global.u64", "*(volatile uint64_t *)to = half"),
    ("ld.relaxed.sys.global.u64", "half = *(const volatile uint64_t *)from, emulation::yield()"),  # other threads of the block go on, as who looks may wait for them by way of another process
    ("globaltimer", "ns = emulation::nanoseconds()"),
    ("atom.release.gpu.global.inc", "before = emulation::atomicIncrement(arrived, members - 1)"),
    ("st.global.v2.f64", "to[0] = pair.x, to[1] = pair.y"),
    ("atom.acq_rel.cta.shared", "before = (int)atomicAdd(counter, 1)"),
    ('"" : "+l"', "(void)0"),  # a value that the compiler is to have in a register
    ("rcp.approx.ftz.f64", "y = 1.0 / d * (1.0 + 0x1p-20)"),
    ("mbarrier.init", "*barrier = emulation::barrierOf(threads)"),
    ("mbarrier.try_wait.parity", "over = emulation::isOver(barrier, parity)"),
    ("mbarrier.arrive.release", "emulation::arrive(barrier)"),
    ("mbarrier.arrive.expect_tx", "emulation::arrive(barrier)"),
)

HEADERS = re.compile(r"#include <((?:cub|thrust|cuda)/[\w/.]+|cuda_pipeline_primitives\.h)>")
DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w:]+)\s+(\w+)\[\];")
BY_VALUE = re.compile(r"const __grid_constant__ ([\w:<>, ]+?) (\w+)(?=[,)])")


def behind(text, at):
    """The place behind the parenthesis that ends what begins with the one at `at`"""
    depth = 0
    while True:
        if text[at] == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if not depth:
            return at


def replace_ptx(text, path):
    begin = re.compile(r"\basm(?: volatile)?\(")
    match = begin.search(text)
    while match:
        end = behind(text, match.end() - 1)
        ptx = text[match.start() : end]
        found = [statement for part, statement in PTX if part in ptx]
        if len(found) != 1:
            sys.exit(f"{path}: PTX that tests/emulation/translate.py does not know: {ptx}")
        text = text[: match.start()] + found[0] + text[end:]
        match = begin.search(text, match.start())
    return text


def replace_launches(text):
    while True:
        at = text.find("<<<")
        if at < 0:
            return text
        name = re.compile(r"[\w:]+(?:<[^<>;]*(?:<[^<>;]*>[^<>;]*)*>)?$").search(text[:at])
        end = text.index(">>>", at)
        call = behind(text, end + 3)
        text = f"{text[: name.start()]}emulation::launchCall({text[at + 3 : end]}, [&] {{ {name.group()}{text[end + 3 : call]}; }}){text[call:]}"


def translate(text, path):
    text = replace_launches(replace_ptx(text, path))
    text = HEADERS.sub("#include <emulation/cccl.h>", text)
    text = DYNAMIC.sub(r"\1 *const \2 = (\1 *)emulation::dynamic_shared;", text)
    text = BY_VALUE.sub(r"const \1 &\2", text)
    return text.replace("cudaLaunchKernelEx(", "emulation::launchConfigured(").replace("cudaLaunchCooperativeKernel(", "emulation::launchCooperative(")


def main(source, destination, files):
    for file in files:
        path = pathlib.Path(source, file)
        to = pathlib.Path(destination, file)
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".cu", ".cuh"):
            text = translate(text, path)
        if path.suffix == ".cu":
            to = to.with_name(path.name + ".cxx")
        if to.exists() and to.read_text(encoding="utf-8") == text:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
