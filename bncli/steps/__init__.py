"""The work of the commands: each step takes paths (and a recipe if it learns), and returns an immutable report.

There is one module or folder per command, and a Python program may call the steps as the commands do. A step reads
files, calls the engine, writes files and measures the time; it prints nothing.

- the commands: `calibrate`, `compare`, `convergence`, `count`, `describe`, `diff`, `discretize`, `dossier`, `edit`,
  `encode`, `evaluate`, `explain`, `export`, `fit`, `import_network`, `inspect`, `learn_structure`, `merge`, `monitor`,
  `report`, `score`, `simulate`, `verify`
- `run`: recording of events, stages that overlap, free memory
- `learning_inputs`: the training table and its check; supplied files of cuts or of a structure, which are then not
  learned
- `row_scoring`: scoring of rows, for `score`, `monitor` and Python
- `effects_and_regions`: a model's effects and the path of its region search, with the names of columns
- `forecast`: `fit --dry-run`
- `properties`: the properties that `verify` proves or refutes, stated as sentences
- `cluster`: work on a Dask cluster
"""
