"""The Python interface: `fit`, `load`, `Model`, `evaluate`, `compare`, `simulate`, and `Classifier` for scikit-learn.

It runs the same steps as the command line. A table that is not a file is first written to a temporary Arrow file, so
that it is read like any file, and the same rows give the same bytes as the command.

- `learning`: `fit`, `evaluate`, `compare` and `simulate`
- `models`: `Model` and `load`
- `scorer`: `Scorer`, a model as a function of one row
- `estimator`: `Classifier` (needs scikit-learn)
- `calls`: what every call shares: tables as arguments, wording of errors, progress, one BLAS thread
"""
