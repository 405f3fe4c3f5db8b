"""Iterative solvers of linear systems. Not there yet: the names can be imported, and say so when they are used."""

from warp._unimplemented import names_of

globals().update(
    names_of(
        __name__,
        "solvers of linear systems",
        "BiCGSTAB CG CR FSAI GMRES LinearOperator LinearSolverState",
        "aslinearoperator bicgstab cg cr gmres preconditioner",
    )
)
