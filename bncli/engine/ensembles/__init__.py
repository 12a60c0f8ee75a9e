"""Ensembles: `--structure auto`, which weights the best of many candidate models, and its boosted trees.

- `auto`: the entry point: try candidates on held-out folds, weight them, refit the best ones
- `candidates`, `held_out_evaluation`, `trials`, `budget`: which models are tried, how well they predict held-out rows
  and with which penalty, in which order, and at what cost
- `pooling`: the weights of the ensemble, and its uncertainty from the spread of its components
- `boosted_bag`, `boosted_trees`: boosted oblivious trees, turned into tables
"""
