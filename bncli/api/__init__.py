"""The Python interface: `fit`, `load`, `Model`, `evaluate`, `compare`, `simulate`, and `Classifier` for scikit-learn.

It stands where the command line stands, over the same steps. A table that is not a file is written to one of Arrow
first, so that it is read as every file is, and the same rows give the same bytes as the command.

    tables     what is taken for a table, and what its columns are
    learning   fit, evaluate, compare, simulate
    models     Model, load
    estimator  Classifier (needs scikit-learn)
    linear_algebra  one thread for the BLAS while bncli works
"""
