"""Bayesian networks with all their probabilities.

network      networks by index and by names, and the network with the P(y | x) of a model
simulation   random networks, rows drawn from a network, and missing values put into these rows
"""
