"""Bayesian networks with all their probabilities.

- `network`: networks by attribute index and by names, and the network that is equivalent to a model
- `prior_network`: an expert's network as a prior of the parameters
- `simulation`: random networks, rows drawn from a network, and missing values put into these rows
"""
