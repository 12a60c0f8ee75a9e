"""Cross-validate learning options, or test a model on a table.

- `evaluate`: the command
- `report`: the results, with their JSON, and their curves as SVG
- `group_columns`: groups of rows by the values of columns
"""
