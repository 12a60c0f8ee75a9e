"""What the optimisers are built of: directions, searches along them, reasons to stop.

`quasi_newton.py` is the loop of the preconditioned methods, `loop.py` that of the classical ones; all other modules are
parts of them.
"""
