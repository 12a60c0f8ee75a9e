"""Compare several learners over several data sets.

- `compare`: the command: check, run all tasks, analyse, write the files
- `trials`: data sets, learners, tasks and outcomes; running tasks in several processes
- `analysis`: metrics, ranks and tests over all data sets
- `outputs`: tables in CSV and LaTeX, and drawings
"""
