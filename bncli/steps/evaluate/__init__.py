"""Cross-validate learning options, or test a model on a table.

evaluate        the command
report          the figures, and their JSON
by_column       figures by group of rows
learning_curve  figures by size of the training sample
on_cluster      folds on the workers of a cluster
plots           curves as SVG
"""
