"""The dossier of a model: a validator's checklists, filled in from the model, test rows and what a person adds.

- `checklists`: the items of TRIPOD+AI, model validation and Annex IV; the fields of ABOUT.toml that answer them.
- `findings`: calls the steps that compute the metrics and tables, and collects their results.
- `dossier`: describes the findings in sentences, and writes the page and the JSON file.
"""
