"""The files that bncli writes and reads again.

- `model`: the model file
- `predictors`: the part of the model file that describes its tables and their families
- `provenance`: the part of the model file that records how the model was fitted, and edited by hand
- `cuts`, `structure`, `counts`, `codes`: the files that the steps before `fit` write
- `monitors`: counts of the rows that were scored, and their drift
- `archive`: the ZIP container of models and counts, with its checksum
- `file_kinds`: the kind of a file, recognised from its first bytes
- `arrow_sizes`: checks of the sizes that an Arrow file claims
"""
