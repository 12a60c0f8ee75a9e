"""Work done by the workers of a Dask cluster; the results are the same as without one.

- `connection`: connects to a cluster and submits tasks; the only module that imports dask
- `tasks`: checks the workers; runs folds, comparisons and the files of a table as independent tasks
- `fitting`: distributes the row blocks of a fit over the workers
"""
