"""What the commands do, without the command line: paths and a recipe in, a frozen report out.

There is one module per command, and a Python program may call them as the commands do. A step reads files, calls the
engine, writes files and measures the time; it prints nothing. Modules that several steps use:

    run                  recording of events, stages that overlap, free memory
    supplied_files       files of cuts or of a structure that replace learning these
    row_scoring          scoring of rows, for `score`, `monitor` and Python
    effects_and_regions  effects and region paths of a model by the names of columns
    forecast             `fit --dry-run`
    cluster              work on a Dask cluster

`compare`, `evaluate` and `report` are folders.
"""
