"""Work on a Dask cluster, with the same results as without a cluster.

- `connection`: connects to a cluster and submits tasks; the only module that imports dask
- `tasks`: checks the workers; runs folds, comparisons and the files of a table as independent tasks
- `fitting`: distributes the row blocks of a fit over the workers
"""
