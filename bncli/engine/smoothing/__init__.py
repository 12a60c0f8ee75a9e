"""Smoothing: from counts to probabilities, by the rules typed after --smoothing.

`rules` has those that add something to every count; `hdp` shrinks a distribution towards the one with a parent less.
"""
