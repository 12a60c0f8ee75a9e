"""The dossier of a model: a validator's checklists, filled in from the model, test rows and what a person adds.

- `checklists`: the items of TRIPOD+AI, model validation and Annex IV; the fields of ABOUT.toml that answer them.
- `findings`: every figure, from the step that computes it.
- `dossier`: the same in sentences; the page and the JSON file.
"""
