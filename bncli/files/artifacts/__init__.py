"""The files that bncli writes and reads again.

- `model`: the model file
- `predictors`, `provenance`: parts of it: tables and their families; how the model was fitted and edited by hand
- `cuts`, `structure`, `counts`, `codes`: the files that the steps before `fit` pass on
- `monitors`: counts of the rows that were scored, and their drift
- `archive`: the ZIP container of models and counts, with its checksum
- `file_kinds`: the kind of a file, recognised from its first bytes
- `arrow_sizes`: checks of the sizes that an Arrow file claims
"""
