"""Bayesian networks with all their probabilities.

network         probabilities by index, and the network that a model's tables define
named_network   the same with the names of variables and states, as other programs exchange them
simulation      random networks, rows drawn from a network, and missing values put into them
"""
