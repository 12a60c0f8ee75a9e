"""Ensembles: `--structure auto`, which weights the best of many candidate models, and its boosted trees.

- `auto`: the entry point: try candidates on held-out folds, weight them, refit the best ones
- `candidates`, `held_out_evaluation`, `trials`, `budget`: which models are tried, how well they predict held-out rows
  and with which penalty, in which order, and at what cost
- `pool_weights`: the weights of the ensemble
- `component_spread`: the uncertainty of the ensemble, from the spread of its components
- `boosted_bag`, `boosted_trees`, `tree_splits`: boosted oblivious trees, turned into tables
"""
