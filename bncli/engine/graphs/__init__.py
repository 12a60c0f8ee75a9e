"""Graphs of numbered nodes: trees, branchings, orders, separation. Nothing here knows rows, counts or probabilities."""
