"""Everything that touches the disk: tables are read; models, structures, predictions and pictures are written.

- `reading`: tables to learn from, to test on and to score, as `Columns`
- `artifacts`: the files that bncli writes and reads again: model, cuts, structure, counts, codes, monitor
- `exports`: formats for other programs, and predictions; one module per format, named after it
- `pictures`: SVG drawings and the report page
- `simulated_rows`: tables of simulated rows, as CSV or Parquet
- `option_files`: files given as the value of an option: a number per label, costs, domain knowledge
- `json_documents`: JSON files, read strictly
- `atomic`: output files that appear complete or not at all; temporary folders, removed even after a process was killed
- `paths`: paths that users type: default outputs, checks, errors with a hint

Readers check everything that the engine relies on, and their errors name the location (file, line or key).
"""
