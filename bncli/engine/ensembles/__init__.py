"""Ensembles: `--structure auto`, which weights the best of many candidate models, and its boosted trees.

- `auto`: the entry point: try candidates on held-out folds, weight them, refit the best ones
- `candidates`, `penalty_path`, `trials`, `budget`: which models are tried, with which penalties, in which order, and
  at what cost
- `pool_weights`: the weights of the ensemble
- `component_spread`: the uncertainty of the ensemble, from the spread of its components
- `boosted_bag`, `boosted_trees`, `tree_splits`: boosted oblivious trees, turned into tables
"""
