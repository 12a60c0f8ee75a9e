"""Contingency tables: many tables from few passes over the rows.

Pairs are counted as super-attributes, families in sweeps, and joint values are numbered by what occurs.
Learners ask `bncli.engine.counting.counts`; these modules know how the rows are read.
"""
