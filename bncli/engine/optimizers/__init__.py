"""Optimisers, one module a word typed after --optimizer.

Contract: `minimise(objective, start, *, tolerance, max_iterations, report) -> Optimum`. An optimiser knows an
`Objective` and nothing of networks; `report(point, ...)` is called after every iteration.
"""
