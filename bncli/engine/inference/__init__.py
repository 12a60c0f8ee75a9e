"""Exact inference: what rows with holes say, every unobserved attribute summed out of the network.

A program of table operations is compiled once for the rows at hand (`compilation`) and run in every pass, forward for
probabilities and backward for expected counts (`execution`); `incomplete` is what the rest of the engine sees.
"""
