"""Work done by the workers of a Dask cluster: tasks of a comparison or an evaluation, sums over row blocks of a fit.

`connection` alone imports dask. A cluster is one more place where the same functions run: what comes out is the same.
"""
