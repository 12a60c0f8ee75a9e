"""Exact inference for rows with missing values: every unobserved attribute is marginalized.

elimination     which variables matter, and in which order they are summed out
program         the table operations, compiled once for the patterns of missing values that occur
execution       run them: forward for probabilities, backward for expected counts
row_blocks      the rows of a data set by pattern; `IncompleteLikelihood` is what the rest of the engine uses
"""
