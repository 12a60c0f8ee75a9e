"""Many tables from few passes over the rows: pairs as super-attributes, families in sweeps, joint values numbered by
what occurs.

Learners ask `bncli.engine.counting.counts`; these modules know how the rows are read.
"""
