"""Comparing methods by figures that are there already: nothing in this room learns or scores.

Contract of a module here: functions of arrays in, a frozen record out. Paired figures are two arrays of one length,
an element for each data set in the same order, the first method's before the second's; whether the higher or the
lower figure is the better one is the caller's to know.
"""
