"""Cross-validate learning options, or test a model on a table.

- `evaluate`: the command
- `report`: the results, and their JSON
- `group_columns`: groups of rows by the values of columns
- `plots`: curves as SVG
"""
