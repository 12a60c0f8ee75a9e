"""Everything that touches the disk: tables come in, models, cuts, structures and predictions go in and out.

    table, reading/        tables to learn from, to test on and to score, as Columns
    model, cuts, structure, and what they hold as JSON (documents reads it strictly)
    formats/               what `export` and `score` write: one module a format, named by its word
    scores, rows           predictions and simulated rows, block by block
    atomic, paths, archive, output_streams, recognition

A reader checks everything that the engine will trust and says where the fault is (file, line or key); a writer goes
through `atomic`, so that a file appears whole or not at all.
"""
