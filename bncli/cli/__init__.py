"""The command line: one module a command, which turns typed words into a call of the step of the same name.

Modules import numpy, rich and the steps only inside functions: help must appear at once.
"""
