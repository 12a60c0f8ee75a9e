"""Evaluation: metrics of predictions, their confidence intervals, and tests of whether one method beats another.

- `cross_validation`: learn and predict fold by fold
- `metrics`: metrics of predictions, decisions and prediction sets; bias and variance over several training sets
- `two_class`: weight of evidence, KS, gains, calibration and net benefit for two classes
- `intervals`: confidence intervals of metrics, by bootstrap
- `groups`: metrics per group of rows, fairness
- `curves`: ROC, precision-recall, gains and reliability curves; calibration
- `table_checks`: rows that belong together, leaks and drift in a table
- `value_ranks`: the distinct values of a column in order, and the rank of each row's value
- `significance`: tests for pairs of methods, and for several methods over many data sets

`significance` compares results that were computed elsewhere. Paired results are two arrays of equal length
with one element per data set, in the same order.
"""
