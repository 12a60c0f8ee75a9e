"""Compare several learners over several tables.

compare     the command: plan the runs, collect their outcomes, write the files
entries     data sets, learners and outcomes
runner, pool, checkpoint    fit and score one fold; in several processes; with a file to resume from
analysis    figures, ranks and tests over all data sets
outputs     tables in CSV and LaTeX, and drawings
"""
