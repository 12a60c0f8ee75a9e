"""Bayesian network classifiers on the command line."""

__version__ = "0.1.0"
