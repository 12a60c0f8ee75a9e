"""Optimisers, one module per word typed after --optimizer, and what they are built of.

Contract: `minimise(objective, start, *, tolerance, max_iterations, report) -> Optimum`. An optimiser knows an
`Objective` and nothing of networks; `report(point, ...)` is called after every iteration. `quasi_newton.py` is the
loop of the preconditioned methods, `loop.py` that of the classical ones; the other modules are parts of them:
directions, searches along them, reasons to stop.
"""
