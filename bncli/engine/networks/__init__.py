"""Bayesian networks in full: probabilities by index, random ones, and those with names that other programs read."""
