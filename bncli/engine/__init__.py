"""The engine: pure functions from tables to models and from models to probabilities.

Its functions read and write no files, print nothing, and use no clock, no global state and no hidden randomness. Start
reading at `learn` and `model`.

- `learn`: from a table to a model, step by step
- `model`: the parts of a model: its predictor, its parameters, and the records of how it was learned
- `training_data`: the first step: select attributes, discretize and encode the training rows
- `calibration`: maps that make predicted probabilities match observed frequencies
- `data`: columns, schema, encoded rows, splits of rows
- `discretizers`, `structure_learners`, `parameter_learners`, `optimizers`: the methods that a user chooses by name
- `structures`: graphs and regions over the attributes, and the scores of their families
- `counting`: contingency tables
- `parameters`: the common parts of parameter learners: likelihood, coordinates, penalty, intervals
- `networks`: Bayesian networks with all their probabilities
- `inference`: exact inference for rows with missing values
- `kikuchi`: Kikuchi-Bayes models of overlapping regions
- `ensembles`: `--structure auto` and boosted trees
- `prediction`: from a model and rows to probabilities, explanations and decisions
- `evaluation`: metrics, confidence intervals, tests
- `kernels`: functions of arrays only
"""
