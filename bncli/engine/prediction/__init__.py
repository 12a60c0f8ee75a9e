"""Prediction: from a model's tables and a row's codes to probabilities of the classes.

`scoring` is the way in: it compiles a model once and applies it to blocks of rows. `factors` and `softmax` are what it
is made of, `packed_tables` looks up very many small tables together, `table_factors` chooses between the two, `path_*`
averages over the steps of a path, `marginalization` sums over what a row lacks.
"""
