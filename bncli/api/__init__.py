"""The Python interface: `fit`, `load`, `Model`, `evaluate`, `compare`, `simulate`, and `Classifier` for scikit-learn.

It runs the same steps as the command line. A table to learn from or to evaluate on that is not a file is first
written to a temporary Arrow file. It is then read like any other file, so the same rows give the same model file.

- `learning`: `fit`, `evaluate`, `compare` and `simulate`
- `models`: `Model` and `load`
- `scorer`: `Scorer`, a model as a function of one row
- `estimator`: `Classifier` (needs scikit-learn)
- `arguments`: checks of numbers that are passed as arguments
- `calls`: what every call shares: tables as arguments, wording of errors, progress, one BLAS thread
"""
