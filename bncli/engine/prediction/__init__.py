"""Prediction: from a model and a row's codes to probabilities, and everything that is derived from them.

scoring                             the way in: compile a model once, then score blocks of rows
factors, table_factors              what a compiled model consists of: sums of table look-ups
contributions                       explain a row: what each attribute adds to the log-odds of a class
purification, effects, mixtures     the effects of the whole model: interactions with main effects taken out
portable, portable_effects          a model as plain tables, for exports to other programs
decision_rules, held_out_rows       thresholds, costs and prediction sets; those chosen on held-out rows
prior                               probabilities under other class frequencies
monitoring, joint_model             drift of scored rows, and ln P(x) of a row
what_if                             the smallest change that changes a decision; the next value to ask for
verification                        whether a model, or an export of it, still predicts what it did when made
"""
