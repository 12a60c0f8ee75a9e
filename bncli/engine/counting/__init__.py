"""Contingency tables, counted in few passes over the rows.

- `counts`: the entry point: the tables that a learner requests, counted once and kept
- `table_batches`: many tables in one pass over the rows: of all pairs, or of a family with one more parent
- `fused_codes`: joint codes of several attributes, numbered by the values that occur
- `counted_rows`: counts of a table as `bncli count` writes them, which can be merged
"""
