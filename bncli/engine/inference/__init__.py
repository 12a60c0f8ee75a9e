"""Exact inference: what rows with missing values say, every unobserved attribute marginalized.

A program of table operations is compiled once for the rows at hand (`compilation`) and run in every pass, forward for
probabilities and backward for expected counts (`execution`); `incomplete` is what the rest of the engine sees.
"""
