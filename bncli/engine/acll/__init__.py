"""The approximate conditional log-likelihood of Carvalho et al. 2013: what its scores and its parameters share.

`approximation.py` finds the straight line that stands for the logarithm of a sum; `contrast.py` says what it makes of
counts; `tables.py` learns tables by it.
"""
