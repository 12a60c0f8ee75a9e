"""Ensembles: `--structure auto`, which weighs the best of many candidate models, and its boosted trees.

auto                    the way in: fit candidates on held-out folds, weigh them, refit the best
candidates, grids       which models are tried, and how finely each cuts its attributes
candidate_trials, candidate_selection, budget    the order of the trials, penalties, limits of time and memory
boosted_candidate, boosted_trees, tree_splits, joint_fit    boosted oblivious trees, kept as tables
"""
