"""The files that bncli writes and reads again.

- `model`: the model file
- `predictors`, `provenance`, `edits`: parts of it: tables and their families, how the model was fitted, and edits by
  hand
- `cuts`, `structure`, `counts`, `codes`: the files that the steps before `fit` pass on
- `monitors`, `traces`: what scoring counted; the iterations of an optimizer
- `archive`: the ZIP container of models and counts, with its checksum
- `file_kinds`: what kind of file this is, by its first bytes
- `arrow_sizes`: checks of the sizes that an Arrow file claims
"""
