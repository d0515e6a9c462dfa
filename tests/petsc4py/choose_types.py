"""The plugin's types from Python, by setType and by options: same iterations and reason as PETSc's own, and a residual that is computed here."""
import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402 (init first: it reads -dll_append)

N = 24


def matrix(mat_type, convection):
    """Five-point operator on an N x N grid; convection makes it nonsymmetric. None: the type comes from the options."""
    A = PETSc.Mat().create(PETSc.COMM_WORLD)
    A.setSizes([N * N, N * N])
    if mat_type:
        A.setType(mat_type)
    else:
        A.setFromOptions()
    A.setPreallocationNNZ(5)
    first, end = A.getOwnershipRange()
    for row in range(first, end):
        i, j = divmod(row, N)
        A[row, row] = 4.0
        for di, dj, value in ((-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0 - convection), (0, 1, -1.0 + convection)):
            if 0 <= i + di < N and 0 <= j + dj < N:
                A[row, (i + di) * N + j + dj] = value
    A.assemble()
    return A


def solve(mat_type, ksp_type, convection):
    A = matrix(mat_type, convection)
    x, b = A.createVecs()
    b.set(1.0)
    ksp = PETSc.KSP().create(PETSc.COMM_WORLD)
    ksp.setOperators(A)
    ksp.getPC().setType("jacobi")
    ksp.setTolerances(rtol=1e-9)
    if ksp_type:
        ksp.setType(ksp_type)
    ksp.setFromOptions()
    ksp.solve(b, x)
    residual = b.duplicate()
    A.mult(x, residual)
    residual.aypx(-1.0, b)
    return A.getType(), ksp.getType(), ksp.getIterationNumber(), ksp.getConvergedReason(), residual.norm() / b.norm()


def check(what, condition, detail):
    PETSc.Sys.Print(f"{'ok' if condition else 'FAILED'}: {what}: {detail}")
    return 0 if condition else 1


def main():
    prefix = "seq" if PETSc.COMM_WORLD.size == 1 else "mpi"
    failures = 0
    options = PETSc.Options()
    for ours, theirs, convection in (("tccg", "cg", 0.0), ("tcbcgs", "bcgs", 0.4)):
        stock = solve("aij", theirs, convection)
        failures += check(f"aij, {theirs}", stock[3] == PETSc.KSP.ConvergedReason.CONVERGED_RTOL and stock[2] > 5, stock)
        by_type = solve("aijtc", ours, convection)
        options["mat_type"], options["ksp_type"] = "aijtc", ours
        by_option = solve(None, None, convection)
        options.delValue("mat_type")
        options.delValue("ksp_type")
        for how, result in (("setType", by_type), ("options", by_option)):
            good = result[0] == prefix + "aijtc" and result[1] == ours and result[2:4] == stock[2:4] and result[4] < 1e-7
            failures += check(f"aijtc, {ours} by {how}", good, result)
    return 1 if failures else 0


sys.exit(main())
