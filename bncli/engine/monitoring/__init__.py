"""A model at work: whether the rows that it scores are still like those that it was learnt from.

`tallies` counts a stream of rows in bounded memory, `drift` says how far the counts are from those of training, and
`surprise` has the probability that a generative model gives to a row.
"""
