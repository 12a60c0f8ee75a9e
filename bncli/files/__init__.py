"""Everything that touches the disk: tables are read; models, structures, predictions and pictures are written.

    reading/        tables to learn from, to test on and to score, as `Columns`
    artifacts/      the files that bncli writes and reads again: model, cuts, structure, counts, codes, monitor, trace
    exports/        formats for other programs, and predictions; one module per format, named by its word
    pictures/       SVG drawings and the report page
    documents, atomic, paths        JSON read strictly, files that appear whole or not at all, where to write

A reader checks everything that the engine will trust, and its error names the place (file, line or key).
"""
