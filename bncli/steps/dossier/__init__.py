"""The dossier of a model: a validator's checklists, filled in from the model, test rows and what a person adds.

- `about`: what a person knows, from ABOUT.toml.
- `checklists`: the items of TRIPOD+AI, model validation and Annex IV, and which facts answer them.
- `findings`: every figure, from the step that computes it.
- `facts`: the same in sentences.
- `dossier`: the two files.
- `page`: the page.
"""
