"""Compare several learners over several data sets.

- `compare`: the command: check, run all tasks, analyse, write the files
- `trials`: data sets, learners, tasks and outcomes; running one task
- `pool`: running tasks in several processes
- `checkpoint`: the file from which an interrupted run continues
- `analysis`: metrics, ranks and tests over all data sets
- `outputs`: tables in CSV and LaTeX, and drawings
"""
