"""Prediction: the probabilities that a model gives to rows, and everything that is derived from them.

Scoring:

- `scoring` (the entry point): compile a model once, then score blocks of rows, or single rows in microseconds;
  predictions under other class frequencies
- `factors`: what a compiled model looks up and adds to the scores of rows
- `marginalization`: rows that lack values, by inference in a network; ln P(x) of a row
- `probability_intervals`: intervals for probabilities and effects, from the uncertainty of the tables

Decisions:

- `decision_rules`: costs, thresholds, abstention and prediction sets
- `out_of_fold`: decision rules and calibration maps learned from held-out rows

Explanations:

- `purification`: scores rewritten so that each table has one meaning
- `contributions`, `effects`: the parts of one row's score, and of the whole model
- `what_if`: the fewest changes that change a decision; the missing value most worth asking for; how much predictions
  depend on each attribute, on given rows
- `sufficient_reasons`: a set of a row's values, if possible a smallest one, that alone fixes the row's decision
- `properties`: statements about all inputs, proven or refuted
- `least_scores`: the minimum of a sum of tables over all inputs, which `sufficient_reasons` and `properties` need

Whole models:

- `edits`: one effect changed by hand; a model with its two labels swapped
- `disclosure`: what a model file reveals about small numbers of training rows
- `network_models`: models made from networks that experts or other programs wrote
- `portable`: a model as plain tables, for exports to other programs
- `verification`: whether a model, or an export of it, still predicts what it did when it was made
- `monitoring`: drift of scored rows, and the accuracy expected of them
"""
