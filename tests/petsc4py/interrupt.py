"""Ctrl-C in a long solve from Python ends it at once, by way of a monitor, with the error that PETSc's own types end with, and the same solver then solves as a new one does."""
import os
import signal
import sys
import threading
import time

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402 (init first: it reads -dll_append)

N = 50
LONG, SOON, PAUSE = 20.0, 5.0, 0.3  # seconds: that a solve would take at least, in which it is left, of an iteration


def grid(mat_type, convection):
    """Five-point operator on an N x N grid; convection makes it nonsymmetric"""
    A = PETSc.Mat().create(PETSc.COMM_SELF)
    A.setSizes([N * N, N * N])
    A.setType(mat_type)
    A.setPreallocationNNZ(5)
    for row in range(N * N):
        i, j = divmod(row, N)
        A[row, row] = 4.0 + 0.001 * (row % 7)
        for di, dj, value in ((-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0 - convection), (0, 1, -1.0 + convection)):
            if 0 <= i + di < N and 0 <= j + dj < N:
                A[row, (i + di) * N + j + dj] = value
    A.assemble()
    return A


def solver(A, ksp_type):
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(A)
    ksp.setType(ksp_type)
    ksp.getPC().setType("jacobi")
    ksp.setTolerances(rtol=1e-12, max_it=100000)
    return ksp


def interrupt(ksp, b, x):
    """Was the solve left because of KeyboardInterrupt, after how many iterations and seconds from the signal? A monitor makes it long"""
    sent, seen = [], []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def monitor(ksp, it, norm):
        seen.append(it)
        if len(seen) == 3:
            threading.Timer(PAUSE, send).start()
        time.sleep(PAUSE)

    ksp.setMonitor(monitor)
    try:
        ksp.solve(b, x)
    except PETSc.Error as error:  # petsc4py's, raised from the monitor's
        return bool(sent) and isinstance(error.__cause__, KeyboardInterrupt), len(seen), time.monotonic() - (sent or [0.0])[0]
    finally:
        ksp.monitorCancel()
    return False, len(seen), 0.0


def solve(ksp, b, x):
    x.set(0.0)
    ksp.solve(b, x)
    return ksp.getIterationNumber(), ksp.getConvergedReason(), x.getArray().copy()


def main():
    failures = 0
    for mat_type, ksp_type, convection in (("aij", "cg", 0.0), ("aijtc", "tccg", 0.0), ("aijtc", "tcbcgs", 0.4)):
        A = grid(mat_type, convection)
        x, b = A.createVecs()
        b.set(1.0)
        its, reason, expected = solve(solver(A, ksp_type), b, x)
        ksp = solver(A, ksp_type)
        x.set(0.0)
        left, seen, seconds = interrupt(ksp, b, x)
        again = solve(ksp, b, x)
        good = its * PAUSE >= LONG and left and 2 <= seen < its and seconds <= SOON and again[:2] == (its, reason) and (again[2] == expected).all()
        print(f"{'ok' if good else 'FAILED'}: {mat_type}, {ksp_type}: left {left} after {seen} of {its} iterations, {seconds:.2f} s after the signal; then {again[0]} iterations, reason {again[1]}, the same bits {(again[2] == expected).all()}")
        failures += not good
    return 1 if failures else 0


sys.exit(main())
