"""Report pages.

- `report`: the page of a model (the command, and `fit --report`) and of an evaluation
- `performance_section`, `effects_section`, `structure_section`, `reliability_section`: sections of these pages
- `command_pages`: pages of `describe`, `compare` and `monitor`
"""
