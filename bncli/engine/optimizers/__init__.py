"""Optimizers: the methods of the option `--optimizer`, and their parts.

- `quasi_newton`: newton and lbfgs, with preconditioned L-BFGS and truncated Newton steps
- `classical`: bfgs, cg and cgb as published, without a preconditioner
- `growing_samples`: descent on growing samples of many rows, then on all of them
- `augmented_lagrangian`: minimisation under linear inequalities
- `line_search`: searches along a direction
- `objective`: the objectives that optimizers receive, and the steps that they report

An optimizer is a function `minimise_WORD(objective, start, *, tolerance, max_iterations, report) -> Optimum`. It
depends on an `Objective` alone, not on networks, and calls `report(step, point)` at the start and after every
iteration.
"""
