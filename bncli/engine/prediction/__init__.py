"""Prediction: from a model and a row's codes to probabilities, and everything that is derived from them.

- scoring: the entry point: compile a model once, then score blocks of rows.
- factors, path_factors: what a compiled model looks up and adds to the scores of rows.
- marginalization: rows that lack values, by a network; ln P(x) of a row.
- purification: scores rewritten so that each table has one meaning.
- contributions, effects: explanations of a row, and of the whole model.
- portable: a model as plain tables, for exports to other programs.
- decision_rules, out_of_fold: costs, thresholds and prediction sets; rules and calibration from held-out rows.
- positive_label, prior: a model with its two labels swapped; predictions under other class frequencies.
- monitoring: drift of scored rows.
- what_if: the fewest changes that change a decision; the next value to ask for.
- verification: whether a model, or an export of it, still predicts what it did when it was made.
"""
