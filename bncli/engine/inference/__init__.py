"""Exact inference for rows with missing values: every unobserved attribute is marginalized.

program                 which tables rows need, the order of elimination, and the operations, compiled once
execution               runs programs: forward for probabilities, backward for expected counts
incomplete_likelihood   the likelihood of a data set, which the rest of the engine uses
"""
