"""Contingency tables, counted in few passes over the rows.

counts          the entry point: the tables that a learner requests, counted once and kept
table_batches   many tables in one pass: pairs as super-attributes, families in sweeps
fused_codes     joint values of several attributes, numbered by what occurs
counted_rows    counts of a table in a file, which can be merged
"""
