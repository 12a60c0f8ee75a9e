"""Work done by the workers of a Dask cluster; the results are the same as without one.

connection  the only module that imports dask: connect, submit, wait, retry
checks      whether every worker has the same versions and sees the same files
tasks       folds, comparisons and files as tasks
fitting     the row blocks of a fit, held by the workers
"""
